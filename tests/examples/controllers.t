#!/usr/bin/env python3
"""The three controllers keep a tree in sync: seen through the files alone."""
import glob
import hashlib
import io
import os
import random
import re
import socket
import stat
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from demo_input import DEMO_INPUT, load_demo_input  # noqa: E402

BACKEND, AGENT, APPSTUDIO = ("examples/" + n for n in ("backend-controller", "cluster-agent", "appstudio-controller"))
HOLE = 1 << 40  # bytes: it takes an hour to read them


def without_rights_over_files():
    """What to run a program with, so that root is refused what others are."""
    if os.geteuid() != 0:
        return ()
    bounded = (shutil.which("setpriv"), "--bounding-set=-dac_override,-dac_read_search", "--")
    if subprocess.run([*bounded, "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("setpriv cannot drop capabilities here")
    return bounded


class Tree:
    """A root, and what people do to it and see in it."""

    def __init__(self, root):
        self.root = root
        for name in ("applications", "sources", "targets"):
            os.mkdir(self.path(name))

    def path(self, *names):
        return os.path.join(self.root, *names)

    def put(self, path, data, mode=None):
        full = self.path(path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full + ".new", "w") as f:
            f.write(data)
        if mode is not None:
            os.chmod(full + ".new", mode)
        # Aside first: a half-written file is not what these tests are about.
        os.rename(full + ".new", full)

    def source(self, path, data, mode=None):
        self.put(os.path.join("sources", path), data, mode)

    def app(self, key="dev/shop", source="shop", target=None, prune="true", interval="1h"):
        self.put("applications/%s.yaml" % key, "name: %s\nsource: %s\ntarget: %s\nprune: %s\ninterval: %s\n" % (
            os.path.basename(key), source, target or key, prune, interval))

    def read(self, path):
        try:
            with open(self.path(path)) as f:
                return f.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def status(self, name):
        """The fields of status/NAME, {} when it is not there."""
        text = self.read(os.path.join("status", name)) or ""
        return {k: v.strip('"') for k, v in re.findall(r"^(\w+): (.*)$", text, re.M)}

    def files(self, path):
        """What is below a directory: path to content."""
        base, found = self.path(path), {}
        for directory, _, names in os.walk(base):
            for name in names:
                full = os.path.join(directory, name)
                found[os.path.relpath(full, base)] = self.read(full)
        return found

    def becomes(self, path, want, what=None):
        try:
            poll(lambda: self.files(path) == want, what or path)
        except AssertionError:
            equal(self.files(path), want, path)

    def says(self, name, **fields):
        try:
            poll(lambda: all(self.status(name).get(k) == v for k, v in fields.items()), "status " + name)
        except AssertionError:
            equal(self.status(name), fields, "status " + name)


@contextlib.contextmanager
def tree():
    with tempdir() as d:
        yield Tree(d)


def start(name, t, *argv):
    return daemon(name, "--root=" + t.root, *argv, port_file=False)


@contextlib.contextmanager
def running(t, *names, **argv):
    """The controllers named (backend and agent if none), until the block ends."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(start(n, t, *argv.get("argv", ()))) for n in names or (BACKEND, AGENT)]


# backend-controller and cluster-agent

@test
def without_a_root_each_says_what_to_type_and_that_works():
    with tempdir() as d:
        for name in BACKEND, AGENT, APPSTUDIO:
            roots = [os.path.join(d, "missing")] + ([None] if not os.path.exists("/var/lib/gitops") else [])
            for root in roots:  # None: its default
                env = {k: v for k, v in os.environ.items() if not k.endswith("_ROOT")}
                r = run(name, *(["--root=" + root] if root else []), env=env)
                equal(r.returncode, 1, r.stderr)
                contains(r.stderr, "option '--root': '%s': " % (root or "/var/lib/gitops"))
                contains(r.stderr, "write --root=DIR, a directory of yours (scripts/demo-input DIR makes one to try)")
        there = os.path.join(d, "there")
        equal(run(DEMO_INPUT, there, "--rate=0", "--files=10", "--applications=2").returncode, 0)
        for name in BACKEND, AGENT, APPSTUDIO:
            with daemon(name, "--root=" + there, "--enable-pprof") as controller:
                equal(controller.stop(), 0)


@test
def an_application_brings_its_files_with_their_modes_into_the_target():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.source("shop/bin/run", "two", 0o755)
        t.source("shop/with blank/\u00fc: #", "three")
        t.app()
        t.becomes("targets/dev/shop", {"a": "one", "bin/run": "two", "with blank/\u00fc: #": "three"})
        equal(stat.S_IMODE(os.stat(t.path("targets/dev/shop/bin/run")).st_mode), 0o755)
        t.says("dev/shop.application", state="accepted", count="3")
        t.says("dev/shop.sync", state="in-sync")
        equal(t.status("dev/shop.sync")["revision"], t.status("dev/shop.application")["revision"])


@test
def what_changes_in_the_source_changes_in_the_target():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.app()
        t.becomes("targets/dev/shop", {"a": "one"})
        t.source("shop/a", "two")
        t.source("shop/d/e/f/new", "three")
        t.becomes("targets/dev/shop", {"a": "two", "d/e/f/new": "three"})
        os.chmod(t.path("sources/shop/a"), 0o600)
        poll(lambda: stat.S_IMODE(os.stat(t.path("targets/dev/shop/a")).st_mode) == 0o600)
        os.rename(t.path("sources/shop/d"), t.path("sources/shop/g"))
        t.becomes("targets/dev/shop", {"a": "two", "g/e/f/new": "three"})


@test
def what_goes_from_the_source_is_pruned_with_directories_that_are_empty_then():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.source("shop/d/e/b", "two")
        t.app()
        t.becomes("targets/dev/shop", {"a": "one", "d/e/b": "two"})
        os.unlink(t.path("sources/shop/d/e/b"))
        t.becomes("targets/dev/shop", {"a": "one"})
        poll(lambda: not os.path.exists(t.path("targets/dev/shop/d")))


@test
def without_prune_files_stay_and_are_pruned_once_it_is_asked_for():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.source("shop/b", "two")
        t.app(prune="false")
        t.becomes("targets/dev/shop", {"a": "one", "b": "two"})
        os.unlink(t.path("sources/shop/b"))
        t.says("dev/shop.application", count="1")
        poll(lambda: t.status("dev/shop.sync").get("revision") == t.status("dev/shop.application")["revision"])
        equal(t.files("targets/dev/shop"), {"a": "one", "b": "two"})
        t.app(prune="true")
        t.becomes("targets/dev/shop", {"a": "one"})


@test
def only_what_was_put_there_is_ever_pruned():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.app()
        t.becomes("targets/dev/shop", {"a": "one"})
        t.put("targets/dev/shop/mine", "by hand")
        t.source("shop/a", "two")
        t.becomes("targets/dev/shop", {"a": "two", "mine": "by hand"})
        os.unlink(t.path("applications/dev/shop.yaml"))
        t.becomes("targets/dev/shop", {"mine": "by hand"})
        t.becomes("operations", {})


@test
def a_file_that_was_there_before_and_is_right_is_never_pruned():
    with tree() as t:
        t.put("targets/dev/shop/d/a", "one")
        t.put("targets/dev/shop/b", "one")
        for name in ("d/a", "b", "c"):
            t.source("shop/" + name, "one")
        t.app()
        with running(t):
            t.says("dev/shop.sync", state="in-sync")
            os.unlink(t.path("sources/shop/b"))
            t.says("dev/shop.application", count="2")
            poll(lambda: t.status("dev/shop.sync")["revision"] == t.status("dev/shop.application")["revision"])
            equal(t.files("targets/dev/shop"), {"d/a": "one", "b": "one", "c": "one"})
        with running(t):  # another process knows it, too
            os.unlink(t.path("applications/dev/shop.yaml"))
            t.becomes("managed", {})
            equal(t.files("targets/dev/shop"), {"d/a": "one", "b": "one"})


@test
def a_file_that_was_about_to_be_replaced_for_its_mode_alone_is_not_pruned():
    with tree() as t:
        t.put("targets/dev/shop/a", "one", 0o644)
        t.put("managed/dev/shop.managed", "application: dev/shop.operation\ntarget: dev/shop\nprune: true\ncomplete: false\nfiles:\n"
              "  - intended %s 0755 3 a\n" % hashlib.sha256(b"one").hexdigest())
        with running(t, AGENT):
            t.becomes("managed", {})
            equal(t.files("targets/dev/shop"), {"a": "one"})


@test
def an_application_that_goes_takes_its_files_along_or_leaves_them_as_it_said():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.app("dev/takes", "shop")
        t.app("dev/leaves", "shop", prune="false")
        t.becomes("targets/dev", {"takes/a": "one", "leaves/a": "one"})
        t.says("dev/takes.sync", state="in-sync")
        t.says("dev/leaves.sync", state="in-sync")
        os.unlink(t.path("applications/dev/takes.yaml"))
        os.unlink(t.path("applications/dev/leaves.yaml"))
        t.becomes("targets/dev", {"leaves/a": "one"})
        t.becomes("status", {})
        t.becomes("managed", {})


@test
def drift_of_every_kind_is_repaired():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.source("shop/d/b", "two")
        t.app()
        want = {"a": "one", "d/b": "two"}
        t.becomes("targets/dev/shop", want)
        target = t.path("targets/dev/shop")

        def overwrite():
            with open(os.path.join(target, "a"), "w") as f:
                f.write("changed by hand")

        def link():
            os.symlink("/etc/passwd", t.path("link"))
            os.replace(t.path("link"), os.path.join(target, "a"))  # at once: what is missing is repaired, too
        for change in (overwrite,
                       lambda: os.unlink(os.path.join(target, "a")),
                       lambda: os.chmod(os.path.join(target, "a"), 0o777),
                       lambda: os.rename(os.path.join(target, "d"), os.path.join(target, "elsewhere")),
                       lambda: os.rename(target, target + "-moved"),
                       link):
            change()
            shutil.rmtree(os.path.join(target, "elsewhere"), ignore_errors=True)
            poll(lambda: {k: v for k, v in t.files("targets/dev/shop").items()} == want
                 and not os.path.islink(os.path.join(target, "a"))
                 and stat.S_IMODE(os.stat(os.path.join(target, "a")).st_mode) == 0o644, "the repair")


@test
def drift_while_nobody_ran_is_repaired_at_the_start():
    with tree() as t:
        t.source("shop/a", "one")
        t.app()
        with running(t):
            t.becomes("targets/dev/shop", {"a": "one"})
            t.says("dev/shop.sync", state="in-sync")
        t.put("targets/dev/shop/a", "changed by hand")
        with running(t, AGENT):
            t.becomes("targets/dev/shop", {"a": "one"})


@test
def what_is_not_theirs_in_their_directories_keeps_nobody_from_working():
    bounded = without_rights_over_files()
    with tree() as t, contextlib.ExitStack() as stack:
        for name in ("managed", "operations", "status"):
            lost = t.path(name, "lost+found")
            os.makedirs(lost)
            os.chmod(lost, 0)
            stack.callback(os.chmod, lost, 0o700)
            os.symlink("nowhere", t.path(name, "link"))
            os.mkfifo(t.path(name, "pipe"))
        for name in (BACKEND, AGENT):
            stack.callback(Daemon([*bounded, program(name), "--root=" + t.root], port_file=False).end)
        t.source("shop/a", "one")
        t.app()
        t.becomes("targets/dev/shop", {"a": "one"})


@test
def what_was_taken_away_while_nobody_ran_is_pruned_at_the_start():
    with tree() as t:
        t.source("shop/a", "one")
        t.app("dev/stays", "shop")
        t.app("dev/goes", "shop")
        with running(t):
            t.becomes("targets/dev", {"stays/a": "one", "goes/a": "one"})
            t.says("dev/goes.sync", state="in-sync")
        os.unlink(t.path("applications/dev/goes.yaml"))
        with running(t):
            t.becomes("targets/dev", {"stays/a": "one"})


@test
def a_path_can_turn_from_a_file_into_a_directory_and_back():
    with tree() as t, running(t):
        t.source("shop/x", "file")
        t.source("shop/other", "stays")
        t.app()
        t.becomes("targets/dev/shop", {"x": "file", "other": "stays"})
        os.unlink(t.path("sources/shop/x"))
        t.source("shop/x/y", "below")
        t.becomes("targets/dev/shop", {"x/y": "below", "other": "stays"})
        shutil.rmtree(t.path("sources/shop/x"))
        t.source("shop/x", "file again")
        t.becomes("targets/dev/shop", {"x": "file again", "other": "stays"})


@test
def an_application_that_changes_its_target_leaves_nothing_at_the_old_one():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.app()
        t.becomes("targets", {"dev/shop/a": "one"})
        t.app(target="dev/elsewhere")
        t.becomes("targets", {"dev/elsewhere/a": "one"})


@test
def an_application_file_that_is_missing_for_a_moment_takes_nothing_along():
    # Editors put it aside and write it anew; git checkout removes it first.
    apps = ["app%d" % n for n in range(20)]
    with tree() as t, running(t) as (backend, _):
        t.source("shop/a", "one")
        for app in apps:
            t.app("dev/" + app, "shop")
        t.becomes("targets/dev", {app + "/a": "one" for app in apps})
        before = [os.stat(t.path("targets/dev", app, "a")).st_ino for app in apps]
        files = [t.path("applications/dev/%s.yaml" % app) for app in apps]
        text = {path: t.read(path).replace("interval: 1h", "interval: 2h") for path in files}
        begun = time.monotonic()
        for path in files[::2]:
            os.rename(path, path + "~")
        for path in files[1::2]:
            os.unlink(path)
        for path in files:
            with open(path, "w") as f:
                f.write(text[path])
        moment = time.monotonic() - begun
        poll(lambda: all("interval: 2h\n" in (t.read("operations/dev/%s.operation" % app) or "") for app in apps))
        if moment < 0.5:  # on a machine that was as slow as this they had gone
            need("application withdrawn" not in backend.output(), backend.output())
            equal([os.stat(t.path("targets/dev", app, "a")).st_ino for app in apps], before)


@test
def an_application_file_that_moves_to_another_environment_takes_its_target_along():
    with tree() as t, running(t) as both:
        t.source("shop/a", "one")
        t.app(target="x")
        t.says("dev/shop.sync", state="in-sync")
        os.mkdir(t.path("applications/staging"))
        os.rename(t.path("applications/dev/shop.yaml"), t.path("applications/staging/shop.yaml"))
        seen = set()

        def moved():
            seen.add(t.status("staging/shop.application").get("state"))
            return t.status("staging/shop.sync").get("state") == "in-sync"
        poll(moved, "the move")
        need("rejected" not in seen, seen)
        equal(t.files("targets"), {"x/a": "one"})
        for d in both:
            need("reconcile failed" not in d.output(), d.output())


BAD = [
    ("name: bad\nsource: shop\ntarget: dev/bad\nprune: maybe\n", 4, "write true or false"),
    ("name: bad\nsource: shop\ntarget: dev/bad\ninterval: 30\n", 4, "such as 30s"),
    ("name: bad\nsource: shop\ntarget: dev/bad\ninterval: 0s\n", 4, "such as 30s"),
    ("# first\n\nname: bad\nsuorce: shop\n", 4, "unknown key"),
    ("name: bad\nsource: shop\nsource: shop\ntarget: dev/bad\n", 3, "twice"),
    ("name: bad\nsource: shop\n", 2, "without the key 'target'"),
    ("", 0, "without the key 'name'"),
    ("name: other\nsource: shop\ntarget: dev/bad\n", 1, "the file's name"),
    ("name: bad\nsource: ../etc\ntarget: dev/bad\n", 2, "'..'"),
    ("name: bad\nsource: shop\ntarget: /etc\n", 3, "starts with '/'"),
    ("name: bad\nsource: shop\ntarget: dev/../../x\n", 3, "'..'"),
    ("name: bad\nsource:\n  path: shop\ntarget: dev/bad\n", 3, "nested"),
    ("name: bad\nsource: [shop]\ntarget: dev/bad\n", 2, "quotes"),
    ("name: bad\nsource: \"shop\ntarget: dev/bad\n", 2, "not closed"),
    ("name: bad\n\tsource: shop\n", 2, "tab"),
    ("name: bad\nsource shop\n", 2, "not 'key: value'"),
    ("name:bad\n", 1, "blank is missing"),
    ("name: bad\n---\nname: bad\n", 2, "one document"),
    ("name: bad\nsource: no such thing\ntarget: dev/bad\n", 2, "No such file"),
    ("name: bad\nsource: empty\ntarget: dev/bad\n", 2, "no files"),
    ("name: bad\nsource: linked\ntarget: dev/bad\n", 2, "symbolic link"),
    ("name: bad\nsource: shop\ntarget: dev/shop/inside\n", 3, "belongs to dev/shop.yaml"),
]


@test
def a_bad_application_file_gets_a_status_with_the_reason_and_the_line():
    with tree() as t, running(t) as (backend, _):
        t.source("shop/a", "one")
        os.mkdir(t.path("sources/empty"))
        os.mkdir(t.path("sources/linked"))
        os.symlink("/etc/passwd", t.path("sources/linked/passwd"))
        t.app()
        t.says("dev/shop.application", state="accepted")
        for text, line, reason in BAD:
            t.put("applications/dev/bad.yaml", text)
            poll(lambda: reason in t.status("dev/bad.application").get("reason", "")
                 and t.status("dev/bad.application")["line"] == str(line),
                 "%r in line %d of %r; got %r" % (reason, line, text, t.status("dev/bad.application")))
            equal(t.status("dev/bad.application")["state"], "rejected")
        t.becomes("targets/dev", {"shop/a": "one"})
        contains(backend.output(), "dev/bad.yaml")


@test
def a_file_that_turns_bad_keeps_its_last_good_operation_until_it_is_mended():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.app()
        t.becomes("targets/dev/shop", {"a": "one"})
        t.put("applications/dev/shop.yaml", "name: shop\nnonsense\n")
        t.says("dev/shop.application", state="rejected", line="2")
        t.put("targets/dev/shop/a", "changed by hand")
        t.becomes("targets/dev/shop", {"a": "one"})
        t.source("shop/a", "two")
        t.app()
        t.says("dev/shop.application", state="accepted")
        t.becomes("targets/dev/shop", {"a": "two"})


@test
def names_of_any_bytes_arrive_as_they_are():
    chance = random.Random(int(os.environ.get("CONTROLLERS_SEED", "7")))
    names = {b" leading", b"  two ", b"trailing ", b"new\nline", b"\rreturn\r", b"tab\t", b'"quoted"', b"'", b"\\n", b"- x",
             b"\xff\xfe", b"\x01\x7f", b"#", b"a: b"}
    names |= {bytes(chance.choice(b" \n\t\"\\x\xc3\xa9" + bytes(range(128, 140))) for _ in range(chance.randint(1, 20)))
              for _ in range(60)}
    with tree() as t, running(t):
        source = os.fsencode(t.path("sources/shop"))
        for name in names:
            os.makedirs(os.path.join(source, b"d" + name))
            for path in (name, os.path.join(b"d" + name, name)):
                with open(os.path.join(source, path), "wb") as f:
                    f.write(b"one")
        want = {os.fsdecode(p): "one" for name in names for p in (name, os.path.join(b"d" + name, name))}
        t.app()
        t.becomes("targets/dev/shop", want)
        # An application whose own names are such: its keys, its source and its target.
        odd = " a\nb"
        os.makedirs(t.path("applications/dev/" + odd))
        t.put("applications/dev/%s/x.yaml" % odd, 'name: x\nsource: "shop/d\\"quoted\\""\ntarget: "dev/\\x0ay "\nprune: true\n')
        t.becomes("targets/dev/\ny ", {'"quoted"': "one"})


@test
def a_restart_knows_names_of_any_bytes_as_its_own():
    with tree() as t:
        t.source("shop/ a\n\x01", "one")
        t.source("shop/b", "two")
        t.app()
        with running(t):
            t.becomes("targets/dev/shop", {" a\n\x01": "one", "b": "two"})
        os.unlink(t.path("sources/shop/ a\n\x01"))
        with running(t):
            t.becomes("targets/dev/shop", {"b": "two"})


@test
def what_cannot_be_read_gets_a_status_with_its_path_and_does_not_fill_the_log():
    bounded = without_rights_over_files()
    with tree() as t:
        t.source("shop/d/a", "one")
        t.source("shop/b", "two")
        os.chmod(t.path("sources/shop/d"), 0)
        t.app()
        backend = Daemon([*bounded, program(BACKEND), "--root=" + t.root, "--rate-limiter-base-delay=1ms",
                          "--rate-limiter-max-delay=4ms", "--rate-limiter-qps=1000"], port_file=False)
        try:
            try:
                poll(lambda: "'d'" in t.status("dev/shop.application").get("reason", ""))
                contains(t.status("dev/shop.application")["reason"], "Permission denied")
                equal(t.status("dev/shop.application")["line"], "2")
                poll(lambda: "failures=64" in backend.output())
                need(backend.output().count("reconcile failed") <= 12, backend.output())
            finally:
                os.chmod(t.path("sources/shop/d"), 0o755)
            t.says("dev/shop.application", state="accepted", count="2")
        finally:
            equal(backend.stop(), 0)
            backend.end()


UNREADABLE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
ssize_t read(int fd, void *data, size_t size)
{
	char link[64], path[4096] = "";
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/sources/shop/broken")) {
		errno = EIO;
		return -1;
	}
	return ((ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read"))(fd, data, size);
}
"""


@test
def a_source_on_a_disk_that_fails_gets_a_status_with_its_path():
    with tree() as t, tempdir() as d:
        with open(d + "/unreadable.c", "w") as f:
            f.write(UNREADABLE)
        equal(run(CC, "-shared", "-fPIC", "-o", d + "/unreadable.so", d + "/unreadable.c", "-ldl").returncode, 0)
        t.source("shop/broken", "one")
        t.app()
        with daemon(BACKEND, "--root=" + t.root, port_file=False, env=dict(os.environ, LD_PRELOAD=d + "/unreadable.so")):
            t.says("dev/shop.application", state="rejected", line="2", reason="line 2: cannot read 'broken': Input/output error")
            os.rename(t.path("sources/shop/broken"), t.path("sources/shop/whole"))
            t.says("dev/shop.application", state="accepted", count="1")


@test
def an_application_file_with_another_ending_is_refused_with_a_status_until_it_goes():
    with tree() as t:
        t.source("shop/a", "one")
        with running(t) as (backend, _):
            for name in ("shop.yml", "shop.YAML", "shop.Yml"):
                t.put("applications/dev/" + name, "name: shop\nsource: shop\ntarget: dev/shop\n")
                t.says("dev/%s.application" % name, state="rejected", file="dev/" + name,
                       reason="the name of an application file ends in .yaml; rename it to 'shop.yaml'")
            equal(t.files("targets"), {})
            os.rename(t.path("applications/dev/shop.yml"), t.path("applications/dev/shop.yaml"))
            t.becomes("targets/dev/shop", {"a": "one"})
            poll(lambda: t.read("status/dev/shop.yml.application") is None)
            t.put("applications/dev/notes.txt", "not an application")
        os.unlink(t.path("applications/dev/shop.YAML"))
        with running(t):  # it has gone while nobody looked
            poll(lambda: t.read("status/dev/shop.YAML.application") is None)
            t.says("dev/shop.Yml.application", state="rejected")


@test
def a_source_that_goes_or_empties_does_not_empty_the_target():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.app()
        t.becomes("targets/dev/shop", {"a": "one"})
        os.unlink(t.path("sources/shop/a"))
        t.says("dev/shop.application", state="rejected")
        os.rmdir(t.path("sources/shop"))
        poll(lambda: "No such file" in t.status("dev/shop.application")["reason"])
        equal(t.files("targets/dev/shop"), {"a": "one"})
        t.source("shop/a", "two")
        t.becomes("targets/dev/shop", {"a": "two"})


@test
def a_target_belongs_to_the_first_also_after_a_restart_and_is_free_when_that_goes():
    with tree() as t:
        t.source("shop/a", "one")
        t.source("other/b", "two")
        with running(t):
            t.app("dev/shop", "shop", "dev/x")
            t.becomes("targets/dev/x", {"a": "one"})
            t.app("dev/aaa", "other", "dev/x")
            t.says("dev/aaa.application", state="rejected", line="3")
        with running(t):
            t.source("shop/a", "three")
            t.becomes("targets/dev/x", {"a": "three"})
            equal(t.status("dev/aaa.application")["state"], "rejected")
            os.unlink(t.path("applications/dev/shop.yaml"))
            t.becomes("targets/dev/x", {"b": "two"})


@test
def who_waits_for_a_target_at_the_agent_has_it_as_soon_as_it_is_free():
    names = ("first", "second", "third")
    with tree() as t:
        for name in names:
            t.source("%s/%s" % (name, name), name)
            t.app("dev/" + name, name)
        with running(t, BACKEND):
            for name in names:
                t.says("dev/%s.application" % name, state="accepted")
        operations = {name: t.read("operations/dev/%s.operation" % name) for name in names}
        shutil.rmtree(t.path("operations/dev"))

        def wants(name, target):
            t.put("operations/dev/%s.operation" % name,
                  operations[name].replace("target: dev/%s\n" % name, "target: %s\n" % target))

        with running(t, AGENT, argv=("--rate-limiter-base-delay=1h", "--rate-limiter-max-delay=1h")):
            wants("first", "x")
            t.says("dev/first.sync", state="in-sync")
            wants("second", "x")
            t.says("dev/second.sync", state="out-of-sync")
            contains(t.status("dev/second.sync")["reason"], "belongs to dev/first.operation")
            wants("first", "y")
            t.becomes("targets", {"y/first": "first", "x/second": "second"})
            t.says("dev/second.sync", state="in-sync")
            wants("third", "x")
            t.says("dev/third.sync", state="out-of-sync")
            os.unlink(t.path("operations/dev/second.operation"))
            t.becomes("targets", {"y/first": "first", "x/third": "third"})


@test
def who_moves_and_has_no_good_source_keeps_the_old_target():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.source("other/b", "two")
        t.app()
        t.becomes("targets", {"dev/shop/a": "one"})
        t.app(source="none", target="dev/new")
        t.says("dev/shop.application", state="rejected", line="2")
        t.app("dev/other", "other", "dev/shop")
        t.says("dev/other.application", state="rejected", line="3")
        t.app(target="dev/new")
        t.becomes("targets", {"dev/new/a": "one", "dev/shop/b": "two"})


@test
def no_link_leads_out_of_the_target():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.source("shop/d/b", "two")
        outside = t.path("outside")
        os.mkdir(outside)
        os.mkdir(t.path("targets/dev"))
        os.mkdir(t.path("targets/dev/shop"))
        os.symlink(outside, t.path("targets/dev/shop/d"))
        t.app()
        t.says("dev/shop.sync", state="out-of-sync")
        poll(lambda: "in the way" in t.status("dev/shop.sync")["reason"], "the reason")
        equal(os.listdir(outside), [])
        os.unlink(t.path("targets/dev/shop/d"))
        t.becomes("targets/dev/shop", {"a": "one", "d/b": "two"})
        # and pruning does not follow one either
        shutil.copytree(t.path("targets/dev/shop/d"), os.path.join(outside, "d"))

        def linked():
            """False: it was repaired before it was a link."""
            shutil.rmtree(t.path("targets/dev/shop/d"), ignore_errors=True)
            with contextlib.suppress(FileExistsError):
                os.symlink(os.path.join(outside, "d"), t.path("targets/dev/shop/d"))
                return True
        poll(linked, "the link")
        os.unlink(t.path("applications/dev/shop.yaml"))
        poll(lambda: t.read("targets/dev/shop/a") is None)
        equal(t.read("outside/d/b"), "two")


# appstudio-controller

SOAK = ("--soak-time=500ms",)
# Files carry the time of the kernel's last tick, up to 10 ms older than the clock.
SOAKED_MS = 500 - 10


@test
def an_application_is_promoted_after_it_was_in_sync_for_the_soak_time_and_not_before():
    with tree() as t, running(t), running(t, APPSTUDIO, argv=SOAK):
        t.source("shop/a", "one")
        t.source("shop/d/b", "two", 0o755)
        t.app()
        t.becomes("targets/staging/shop", {"a": "one", "d/b": "two"})
        since = int(t.status("dev/shop.sync")["since_ms"])
        made = os.stat(t.path("applications/staging/shop.yaml")).st_mtime_ns // 1000000
        need(made - since >= SOAKED_MS, "promoted after %d ms" % (made - since))
        t.says("dev/shop.promotion", state="promoted", to="staging")
        t.becomes("targets/production/shop", {"a": "one", "d/b": "two"})
        t.says("staging/shop.promotion", state="promoted", to="production")
        # one copy serves both
        equal(len(os.listdir(t.path("sources/promoted/shop"))), 1)


@test
def what_changes_after_a_promotion_soaks_again_before_it_arrives():
    with tree() as t, running(t), running(t, APPSTUDIO, argv=SOAK):
        t.source("shop/a", "one")
        t.app()
        t.becomes("targets/production/shop", {"a": "one"})
        before = os.stat(t.path("applications/staging/shop.yaml")).st_mtime_ns
        t.source("shop/a", "two")
        t.becomes("targets/dev/shop", {"a": "two"})
        since = poll(lambda: t.status("dev/shop.sync")["state"] == "in-sync"
                     and t.status("dev/shop.sync")["revision"] == t.status("dev/shop.application")["revision"]
                     and int(t.status("dev/shop.sync")["since_ms"]))
        t.becomes("targets/staging/shop", {"a": "two"})
        after = os.stat(t.path("applications/staging/shop.yaml")).st_mtime_ns
        need(after > before and after // 1000000 - since >= SOAKED_MS, "after %d ms" % (after // 1000000 - since))
        t.becomes("targets/production/shop", {"a": "two"})
        # copies nobody uses any more are gone
        poll(lambda: len(os.listdir(t.path("sources/promoted/shop"))) == 1, "one copy")


@test
def a_target_changed_by_hand_starts_its_soak_time_anew():
    with tree() as t, running(t):
        t.source("shop/a", "one")
        t.app()
        t.says("dev/shop.sync", state="in-sync")
        before = int(t.status("dev/shop.sync")["since_ms"])
        t.put("targets/dev/shop/a", "changed by hand")
        poll(lambda: int(t.status("dev/shop.sync")["since_ms"]) > before, "a later since_ms")
        equal(t.read("targets/dev/shop/a"), "one")


@test
def an_application_of_the_next_environment_keeps_its_own_values():
    with tree() as t, running(t), running(t, APPSTUDIO, argv=SOAK):
        t.source("shop/a", "one")
        t.source("old/z", "old")
        t.app("staging/shop", "old", "stage-two/shop", prune="false", interval="2h")
        t.app()
        t.becomes("targets/stage-two/shop", {"a": "one", "z": "old"})
        text = t.read("applications/staging/shop.yaml")
        contains(text, "target: stage-two/shop\n")
        contains(text, "prune: false\ninterval: 2h\n")


@test
def environments_and_their_order_are_an_option():
    with tree() as t, running(t), running(t, APPSTUDIO, argv=("--soak-time=0", "--environments=b,a")):
        t.source("shop/a", "one")
        t.app("b/shop", "shop")
        t.becomes("targets/a/shop", {"a": "one"})
        t.app("other/shop", "shop")
        t.becomes("targets/other/shop", {"a": "one"})
        equal(sorted(os.listdir(t.path("applications"))), ["a", "b", "other"])


@test
def a_promotion_that_cannot_be_made_says_why():
    with tree() as t, running(t), running(t, APPSTUDIO, argv=("--soak-time=0",)):
        t.source("shop/a", "one")
        t.app(target="elsewhere/shop")
        t.says("dev/shop.promotion", state="failed", to="staging")
        contains(t.status("dev/shop.promotion")["reason"], "does not start with 'dev/'")


@test
def a_status_that_cannot_be_read_is_a_failure_that_is_tried_again():
    bounded = without_rights_over_files()
    with tree() as t:
        t.source("shop/a", "one")
        t.app()
        with running(t):
            t.says("dev/shop.sync", state="in-sync")
        os.chmod(t.path("status/dev/shop.sync"), 0)
        promoter = Daemon([*bounded, program(APPSTUDIO), "--root=" + t.root, "--soak-time=0"], port_file=False)
        try:
            promoter.wait_log("failures=2")
            contains(promoter.output(), "Permission denied")
            os.chmod(t.path("status/dev/shop.sync"), 0o644)
            t.says("dev/shop.promotion", state="promoted")
            equal(promoter.stop(), 0)
        finally:
            promoter.end()


@test
def a_status_whose_file_went_while_nobody_looked_goes_at_the_start():
    with tree() as t:
        t.put("status/dev/shop.promotion", "state: promoted\n")
        with running(t, APPSTUDIO):
            t.becomes("status", {})
        t.put("status/dev/shop.sync", "state: out-of-sync\n")
        with running(t, AGENT):
            t.becomes("status", {})


# the life of all three

@test
def kill_minus_9_at_any_moment_leaves_whole_files_and_all_is_in_sync_in_the_end():
    demo = load_demo_input()
    seed = int(os.environ.get("CONTROLLERS_SEED", "7"))
    rounds = int(os.environ.get("CONTROLLERS_KILLS", "40"))
    chance = random.Random(seed)
    with tree() as t:
        made = subprocess.Popen([sys.executable, DEMO_INPUT, t.root, "--applications=8", "--files=240", "--size=24000",
                                 "--rate=150", "--hands-off", "--seed=%d" % seed], stdout=subprocess.DEVNULL)
        halves, over = [], threading.Event()

        def watch():
            while not over.is_set():
                for base in ("targets", "sources"):
                    for path, data in demo.tree(t.path(base)).items():
                        if ".gitops-partial." not in path and ".demo-input" not in path and not demo.is_whole(data):
                            halves.append(path)
        watcher = in_background(watch)
        daemons = {}
        try:
            for n in range(rounds):
                for name in (BACKEND, AGENT, APPSTUDIO):
                    if name not in daemons:
                        argv = ("--soak-time=50ms",) if name == APPSTUDIO else ()
                        daemons[name] = Daemon([name, "--root=" + t.root, *argv], port_file=False)
                time.sleep(chance.uniform(0.02, 0.25))  # a moment of chance, nothing is waited for
                name = chance.choice((BACKEND, AGENT, AGENT, APPSTUDIO))
                equal(daemons[name].process.poll(), None, "%s ended by itself:\n%s" % (name, daemons[name].output()))
                os.kill(daemons[name].pid, signal.SIGKILL)
                daemons[name].wait()
                daemons.pop(name).end()
            made.send_signal(signal.SIGTERM)
            equal(made.wait(DEADLINE), 0)
            for d in daemons.values():
                equal(d.stop(), 0)
                d.end()
            daemons.clear()
            with running(t):
                def faults():
                    with contextlib.redirect_stdout(io.StringIO()) as said:
                        demo.verify(t.root)
                    return said.getvalue()
                try:
                    poll(lambda: not faults(), "all in sync", 2 * DEADLINE)
                except AssertionError:
                    equal(faults(), "")
        finally:
            over.set()
            made.kill()
            made.wait()
            for d in daemons.values():
                d.process.kill()
                d.end()
        watcher.result()
        equal(halves, [])
        equal(glob.glob(t.path("targets", "**", ".gitops-partial.*"), recursive=True), [])


@test
def a_second_process_of_a_program_on_one_root_is_refused_and_told_who_is_there():
    with tree() as t, running(t, BACKEND, AGENT, APPSTUDIO) as all3:
        for name, first in zip((BACKEND, AGENT, APPSTUDIO), all3):
            lock = "locks/%s.lock" % os.path.basename(name)
            poll(lambda: "pid: %d\n" % first.pid in (t.read(lock) or ""))
            for stopped in False, True:
                if stopped:
                    first.signal(signal.SIGSTOP)
                r = run(name, "--root=" + t.root)
                if stopped:
                    first.signal(signal.SIGCONT)
                equal(r.returncode, 1, r.stderr)
                contains(r.stderr, "pid %d on %s since 20" % (first.pid, socket.gethostname()))
                contains(r.stderr, "--wait-for-root")
        t.source("shop/a", "one")
        t.app()
        t.becomes("targets/dev/shop", {"a": "one"})


@test
def who_waits_for_the_root_is_not_ready_and_begins_when_the_first_is_killed():
    with tree() as t:
        t.source("shop/a", "one")
        t.app()
        with running(t, BACKEND), daemon(AGENT, "--root=" + t.root, port_file=False) as first:
            t.becomes("targets/dev/shop", {"a": "one"})
            with daemon(AGENT, "--root=" + t.root, "--wait-for-root", "--health-probe-bind-address=127.0.0.1:0",
                        port_file=False) as second:
                second.wait_log("waiting for the root")
                second.port = int(poll(lambda: re.search(r'serving health url="http://127\.0\.0\.1:(\d+)"',
                                                         second.output())).group(1))
                answer = second.get("/readyz?verbose")
                equal(answer.status, 500)
                contains(answer.text, "[-]root failed")
                os.kill(first.pid, signal.SIGKILL)
                first.wait()
                poll(lambda: second.get("/readyz").status == 200)
                t.source("shop/a", "two")
                t.becomes("targets/dev/shop", {"a": "two"})
                equal(second.stop(), 0)
            with daemon(AGENT, "--root=" + t.root, port_file=False) as third:
                poll(lambda: "pid: %d\n" % third.pid in (t.read("locks/cluster-agent.lock") or ""))
                with daemon(AGENT, "--root=" + t.root, "--wait-for-root", port_file=False) as fourth:
                    fourth.wait_log("waiting for the root")
                    equal(fourth.stop(), 0)  # a stop does not wait for the root


@test
def a_graceful_stop_finishes_what_is_queued():
    with tree() as t:
        for n in range(30):
            for m in range(20):
                t.source("s%d/f%d" % (n, m), "%d %d\n" % (n, m) * 2000)
            t.app("dev/s%d" % n, "s%d" % n)
        with running(t, BACKEND):
            poll(lambda: len(t.files("operations")) == 30, "30 operations")
        with running(t, AGENT) as (agent,):
            poll(lambda: os.path.exists(t.path("targets/dev")), "the first file")
            equal(agent.stop(), 0)
        equal(len(t.files("targets")), 600)
        equal({t.status("dev/s%d.sync" % n).get("state") for n in range(30)}, {"in-sync"})


def reads_a_hole(d):
    """Is it in the middle of a file of HOLE bytes?"""
    for fd in glob.glob("/proc/%d/fd/*" % d.pid):
        with contextlib.suppress(OSError):
            if os.stat(fd).st_size == HOLE:
                return True
    return False


@test
def a_stop_while_a_huge_file_is_read_gives_up_and_nobody_is_told_it_failed():
    def hole(path):
        os.truncate(t.path(path), HOLE)

    def stops_in_the_hole(name, *argv):
        before = t.files("status"), t.files("operations")
        with running(t, name, argv=argv) as (d,):
            poll(lambda: reads_a_hole(d), name + " reads the file")
            equal(d.stop(), 0)
            need(" error " not in d.output(), d.output())
        equal((t.files("status"), t.files("operations")), before, name)

    soaked = "--soak-time=0s"
    with tree() as t:
        t.source("shop/a", "one")
        t.app(interval="1h")
        with running(t), start(APPSTUDIO, t, soaked):
            t.says("dev/shop.promotion", state="promoted")
            t.says("staging/shop.sync", state="in-sync")
        copy, = glob.glob(t.path("sources/promoted/shop/*/a"))
        hole(copy)
        stops_in_the_hole(APPSTUDIO, soaked)
        hole("targets/dev/shop/a")
        stops_in_the_hole(AGENT)
        hole("sources/shop/a")
        stops_in_the_hole(BACKEND)


@test
def a_stop_that_waits_for_nothing_ends_in_the_midst_of_work_and_does_not_crash():
    with tree() as t:
        for n in range(20):
            for m in range(20):
                t.source("s%d/f%d" % (n, m), "%d %d\n" % (n, m) * 2000)
            t.app("dev/s%d" % n, "s%d" % n)
        with running(t, BACKEND):
            poll(lambda: len(t.files("operations")) == 20, "20 operations")
        for _ in range(5):
            for name in ("targets", "managed", "status"):
                shutil.rmtree(t.path(name), ignore_errors=True)
            with running(t, AGENT, argv=("--graceful-shutdown-timeout=0", "--concurrent-syncs=4")) as (agent,):
                poll(lambda: os.path.exists(t.path("targets/dev")), "the first file")
                equal(agent.stop(), 0)
                contains(agent.output(), "stopped")


@test
def workers_are_threads_named_after_their_controller_as_many_as_asked_for():
    with tree() as t, running(t, AGENT, argv=("--concurrent-syncs=3",)) as (agent,):
        poll(lambda: sorted(n for n in threads(agent.pid).values() if n in ("operations", "drift"))
             == ["drift"] * 3 + ["operations"] * 3, "six workers")
        equal(agent.stop(), 0)


@test
def controllers_can_be_left_out():
    with tree() as t, running(t, AGENT, argv=("--controllers=-drift,*",)) as (agent,):
        agent.wait_log("left out by --controllers")
        poll(lambda: "operations" in threads(agent.pid).values())
        need("drift" not in threads(agent.pid).values())


@test
def hup_reloads_pacing_and_a_bad_config_file_changes_nothing():
    with tree() as t:
        config = t.path("config.yaml")
        t.put("config.yaml", "rate-limiter-qps: 5\nresync-period: 1h\n")
        with running(t, AGENT, BACKEND, argv=("--config=" + config,)) as (agent, _):
            t.source("shop/a", "one")
            t.app()
            t.becomes("targets/dev/shop", {"a": "one"})
            t.put("config.yaml", "rate-limiter-qps: 0\n")
            agent.signal(signal.SIGHUP)
            agent.wait_log("rate-limiter-qps")
            t.put("config.yaml", "rate-limiter-qps: fast\n")
            agent.signal(signal.SIGHUP)
            agent.wait_log("fast")
            t.put("config.yaml", "resync-period: 50ms\n")
            agent.signal(signal.SIGHUP)
            t.source("shop/a", "two")
            t.becomes("targets/dev/shop", {"a": "two"})
            equal(agent.process.poll(), None)
            equal(agent.stop(), 0)


@test
def options_that_make_no_sense_end_with_status_2_and_say_what_to_write():
    with tree() as t:
        for argv, part in ((["--controllers=nonsense"], "there are *, operations, drift"),
                           (["--controllers=-nonsense"], "there are *, operations, drift"),
                           (["--rate-limiter-qps=0"], "above 0"),
                           (["--rate-limiter-qps=-1"], "above 0"),
                           (["--rate-limiter-bucket-size=0"], "1 or more"),
                           (["--rate-limiter-base-delay=2s", "--rate-limiter-max-delay=1s"], "above --rate-limiter-max-delay"),
                           (["--concurrent-syncs=0"], "concurrent-syncs")):
            r = run(AGENT, "--root=" + t.root, *argv)
            equal(r.returncode, 2, r.stderr)
            contains(r.stderr, part)
            contains(r.stderr, argv[0].split("=")[0])
            r = run(AGENT, "--root=" + t.root, "--check-config", *argv)
            equal(r.returncode, 2, r.stderr)
        r = run(AGENT, "--root=" + t.root, "--rate-limiter-qps=0", "--rate-limiter-bucket-size=0", "--controllers=x")
        for part in ("--rate-limiter-qps", "--rate-limiter-bucket-size", "'x'"):
            contains(r.stderr, part)


@test
def a_directory_that_is_not_there_is_an_error_that_names_the_option():
    with tree() as t:
        for name in (BACKEND, AGENT, APPSTUDIO):
            r = run(name, "--root=" + t.path("nowhere"))
            equal(r.returncode, 1)
            contains(r.stderr, "--root")
            contains(r.stderr, t.path("nowhere"))
            r = run(name, "--root=" + t.root, "--status-dir=" + t.path("nowhere"))
            equal(r.returncode, 1)
            contains(r.stderr, "--status-dir")


@test
def a_cpu_profile_under_load_shows_the_controllers_own_functions_by_name():
    with tree() as t:
        made = subprocess.Popen([sys.executable, DEMO_INPUT, t.root, "--applications=10", "--files=300", "--rate=200"],
                                stdout=subprocess.DEVNULL)
        try:
            with contextlib.ExitStack() as stack:
                all3 = [stack.enter_context(daemon(n, "--root=" + t.root, "--enable-pprof",
                                                   *(("--soak-time=20ms",) if n == APPSTUDIO else ())))
                        for n in (BACKEND, AGENT, APPSTUDIO)]
                poll(lambda: t.files("status/staging"), "a promotion")
                names = ("application_reconcile", "operation_reconcile", "promotion_reconcile")
                seen = [""] * 3
                # A busy machine leaves few samples in a window.
                for _ in range(40):
                    tops = [in_background(d.get, "/debug/pprof/profile?seconds=3&format=top") for d in all3]
                    seen = [text + top.result().text for text, top in zip(seen, tops)]
                    if all("gitops_hash_block" in text and name in text for text, name in zip(seen, names)):
                        break
                for text, name in zip(seen, names):
                    contains(text, "gitops_hash_block")
                    contains(text, name)
        finally:
            made.kill()
            made.wait()


main()
