#!/usr/bin/env python3
"""Records in users' own folders, which root sees (libcomponent/base/record.c); list.t has those of the folder for all."""
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403

own_run()
NOBODY = 65534
TEXT = "id %s\nurl unix:/nowhere\napp_port 0\ncreated 1\n"


def need_users():
    need_own_run()
    if os.geteuid() != 0 or "4294967295" not in open("/proc/self/uid_map").read():
        raise Skip("only root can write as somebody else")
    if run(CTL, "--version", user=NOBODY, env=environment()).returncode != 0:
        raise Skip("another user cannot enter the build's folder")


def folder_of(user, owner=None):
    path = "/run/user/%d/component" % user
    os.makedirs(path, mode=0o700, exist_ok=True)
    for at in os.path.dirname(path), path:
        os.chown(at, *2 * [user if owner is None else owner])
    return path


def record(folder, p, name, owner, start=None):
    """Of a process, or of one of its number that began at another time."""
    with open("/proc/%d/stat" % p.pid) as f:
        start = start or f.read().rpartition(")")[2].split()[19]
    path = "%s/%d.%s" % (folder, p.pid, start)
    with open(path, "w") as f:
        f.write(TEXT % name)
    os.chown(path, owner, owner)
    return path


def seen(xdg="", **kw):
    rows = json.loads(ctl("list", "-o", "json", env=environment(XDG_RUNTIME_DIR=xdg), **kw))
    return sorted(row["appId"] for row in rows)


@test
def root_sees_what_users_wrote_into_their_own_folders():
    need_users()
    with started(["setpriv", "--reuid=%d" % NOBODY, "--clear-groups", "sleep", "1000"]) as p:
        poll(lambda: os.stat("/proc/%d" % p.pid).st_uid == NOBODY, "the other user's process")
        path = record(folder_of(NOBODY), p, "his", NOBODY)
        equal(seen(), ["his"])
        equal(seen(user=NOBODY), [], "another user's list has his own folder alone")
        equal(seen("/run/user/%d" % NOBODY, user=NOBODY), ["his"])
        equal(seen("/run/user/%d" % NOBODY), ["his"], "that root has his variable changes nothing")
        ctl("stop", "his", env=environment(XDG_RUNTIME_DIR=""))
        poll(lambda: p.poll() is not None, "its end")
        equal((seen(), os.path.exists(path)), ([], False), "what it leaves is removed")


@test
def of_a_process_that_is_not_his_a_users_record_does_not_count():
    need_users()
    with started(["sleep", "1000"]) as p:
        path = record(folder_of(NOBODY), p, "liar", NOBODY)
        equal(seen(), [])
        os.unlink(path)


@test
def of_several_users_of_one_id_root_is_told_to_choose_unless_roots_is_the_master():
    need_users()
    with started(["setpriv", "--reuid=%d" % NOBODY, "--clear-groups", "sleep", "1000"]) as his, started(["sleep", "1000"]) as ours:
        poll(lambda: os.stat("/proc/%d" % his.pid).st_uid == NOBODY, "the other user's process")
        os.makedirs("/run/component", mode=0o1777, exist_ok=True)
        for parents, chosen in (((1, 1), False), ((0, 1), False), ((0, 0), False), ((1, 0), True)):
            paths = [record(folder_of(NOBODY), his, "both", NOBODY), record("/run/component", ours, "both", 0)]
            for path, parent in zip(paths, parents):
                with open(path, "a") as f:
                    f.write("parent %d\n" % parent)
            said = ctl("profile", "both", status=1)
            equal("processes have the id 'both'; write the PID" in said, not chosen, (parents, said))
            for path in paths:
                os.unlink(path)


@test
def a_folder_that_others_write_to_or_a_link_is_not_read():
    need_users()
    with tempdir() as d, started(["sleep", "1000"]) as p:
        folder = folder_of(NOBODY, owner=NOBODY - 1)
        path = record(folder, p, "mine", 0)
        equal(seen(), [], "it is another user's folder")
        folder_of(NOBODY)
        equal(seen(), ["mine"])
        os.chmod(folder, 0o777)
        equal(seen(), [], "everybody writes there")
        os.unlink(path)
        os.rmdir(folder)
        gone = record(d, p, "mine", 0, start=1)
        record(d, p, "mine", 0)
        os.chown(d, NOBODY, NOBODY)
        os.symlink(d, folder)
        equal((seen(), os.path.exists(gone)), ([], True))
        os.unlink(folder)


@test
def the_folder_for_all_is_made_by_systemd_tmpfiles():
    need_own_run()
    if os.geteuid() != 0 or not shutil.which("systemd-tmpfiles"):
        raise Skip("this needs root and systemd-tmpfiles")
    r = run("systemd-tmpfiles", "--create", os.path.join(SRC, "deploy/systemd/tmpfiles.d/component.conf"))
    equal(r.returncode, 0, r.stderr)
    equal((os.stat(FOLDER).st_mode & 0o7777, os.stat(FOLDER).st_uid), (0o1777, 0))


@test
def what_is_in_roots_own_folder_is_listed_once_however_that_is_written():
    need_own_run()
    if os.geteuid() != 0:
        raise Skip("only root reads the folders of all users")
    with started(["sleep", "1000"]) as p:
        path = record(folder_of(0), p, "mine", 0)
        for xdg in "", "/run/user/0", "/run/user/0/", "/run/./user/0":
            equal(seen(xdg), ["mine"], xdg)
        os.unlink(path)


def what_run_says():
    p = started_by_ctl("sleep", "1000", env=environment(XDG_RUNTIME_DIR=""))
    with p:
        first = said_at_start(p.stderr)
        contains(first, "starting profiling server")
        p.terminate()
        return first + p.stderr.read()


@test
def where_no_record_can_be_written_run_says_so_once_and_the_way_out_is_one():
    need_own_run()
    with no_records():
        said = what_run_says()
    why = "neither to /run/component nor to component/ in $XDG_RUNTIME_DIR, so 'componentctl list' does not show the program"
    equal(said.count(why), 1, said)
    way_out = re.search("by 'sudo (install [^']*)'", said)[1]
    equal(run("sh", "-c", way_out).returncode, 0, way_out)
    need("$XDG_RUNTIME_DIR" not in what_run_says(), "it is mended")


main()
