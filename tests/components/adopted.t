#!/usr/bin/env python3
"""The options about profiling in a daemon that reads its own, becomes a daemon, has workers and ends by itself."""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from adopting import *  # noqa: E402,F403

SUBJECT = "tests/programs/adopted_daemon"


@contextlib.contextmanager
def adopted(d, *words, env=None, before=(), fds=()):
    with open(os.path.join(d, "out"), "wb") as out, \
         started([*before, program(SUBJECT), "--enable-pprof", "--profiling-port-file=" + os.path.join(d, "port"), *words],
                 env={**CLEAN, **(env or {})}, pass_fds=fds, stdin=subprocess.DEVNULL, stdout=out, stderr=out) as p:
        try:
            yield p
        finally:
            if p.poll() is None:
                p.terminate()
                equal(p.wait(DEADLINE), 0)


def said(d):
    return open(os.path.join(d, "out")).read()


def address(d, p):
    def look():
        with contextlib.suppress(FileNotFoundError):
            return open(os.path.join(d, "port")).read().strip()
        need(p.poll() is None, "it ended: " + said(d))
    return poll(look, "the port file")


@test
def own_options_are_read_as_before_and_it_ends_as_before():
    with tempdir() as d:
        with adopted(d, "-c", "own.conf", "--profiling-bind-address", "127.0.0.1:0", "-vv", "-w", "0", "file") as p:
            contains(ask("http://" + address(d, p), "cmdline"), "own.conf")
        need(said(d).startswith("c=own.conf d=0 v=2 w=0 rest=1\n"), said(d))
        need(said(d).endswith("bye\n"), said(d))


@test
def without_the_option_it_is_off():
    r = subprocess.run([program(SUBJECT), "-w", "x9", "--profiling-on-error=warn", "-z"], env=CLEAN, capture_output=True, text=True,
                       timeout=DEADLINE)
    equal(r.returncode, 3)  # its own getopt's word on -z
    contains(r.stderr, "'z'")


@test
def without_its_address_it_ends_or_says_so_and_goes_on():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = "--profiling-bind-address=127.0.0.1:%d" % taken.getsockname()[1]
        r = subprocess.run([program(SUBJECT), "--enable-pprof", where, "-w", "0"], env=CLEAN, capture_output=True, text=True,
                           timeout=DEADLINE)
        equal(r.returncode, 1)
        contains(r.stderr, "--profiling-bind-address")
        with tempdir() as d:
            with adopted(d, where, "--profiling-on-error=warn", "-w", "0"):
                poll(lambda: "log: " in said(d) and "disable with --enable-pprof=false" in said(d), "a warning")
            need(said(d).endswith("bye\n"), said(d))


@test
def a_mistake_and_a_question_end_it():
    r = subprocess.run([program(SUBJECT), "--enable-pprof=perhaps", "-z"], env=CLEAN, capture_output=True, text=True, timeout=DEADLINE)
    equal((r.returncode, r.stdout), (2, ""))
    contains(r.stderr, "--enable-pprof")
    contains(r.stderr, "--profiling-help")
    r = subprocess.run([program(SUBJECT), "--profiling-help", "-z"], env=CLEAN, capture_output=True, text=True, timeout=DEADLINE)
    equal((r.returncode, r.stderr), (0, ""))
    contains(r.stdout, "--profiling-bind-address")
    need(not re.search(r"^ +-\w\b|--help-all|--version", r.stdout, re.M), r.stdout)


@test
def variables_have_the_daemons_name():
    with tempdir() as d, adopted(d, "-w", "0", env={"ADOPTED_PROFILING_BIND_ADDRESS": "unix:%s/own.%%p.sock" % d}) as p:
        equal(address(d, p), "unix:%s/own.%d.sock" % (d, p.pid))


@test
def after_daemon_the_survivor_serves():
    with tempdir() as d, adopted(d, "-d", "--profiling-bind-address=127.0.0.1:0", "-w", "0") as p:
        equal(p.wait(DEADLINE), 0)
        port = os.path.join(d, "port")
        where = poll(lambda: os.path.exists(port) and open(port).read().strip(), "the port file")
        contains(ask("http://" + where, "cmdline"), "-d")
        os.kill(survivors(d)[0], signal.SIGTERM)
        poll(lambda: said(d).endswith("bye\n"), "its own end")


def survivors(d):
    """Their numbers: processes that have the output open."""
    out, found = os.path.join(d, "out"), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if int(pid) != os.getpid() and os.readlink("/proc/%s/fd/1" % pid) == out:
                found.append(int(pid))
    return found


@test
def each_worker_has_a_socket_and_each_index_names_all():
    with tempdir() as d:
        with adopted(d, "--profiling-bind-address=unix:%s/w.%%p.sock" % d, "-w", "3") as p:
            address(d, p)
            first = "%s/w.%d.sock" % (d, p.pid)
            found = all_of(first, 4)
            equal(found, {pid: "%s/w.%d.sock" % (d, pid) for pid in found})
            for pid, path in found.items():
                listed, words = processes(path)
                equal(listed, found)
                equal(words, {"this one": pid, **({} if pid == p.pid else {"the parent": p.pid})})
            worker = next(pid for pid in found if pid != p.pid)
            poll(lambda: "worker_turns" in ask(found[worker], "profile?seconds=1&format=top"), "a sample of its work")
            # One that is killed: its follower removes what it left, and takes its place on the index.
            os.utime(found[worker], (1e9, 1e9))  # a young one stays: its maker may be starting
            os.kill(worker, signal.SIGKILL)
            poll(lambda: worker not in processes(first)[0], "the killed one to be no more")
            all_of(first, 4)
            poll(lambda: not os.path.exists("%s/w.%d.sock" % (d, worker)), "the socket of the killed one to go")
            contains(ask(first, "cmdline"), "adopted_daemon")
        need(said(d).endswith("bye\n"), said(d))


@test
def workers_of_a_port_have_ports_of_their_own_and_keep_them_after_setuid():
    drop = ["-u", "65534"] if os.geteuid() == 0 else []
    with tempdir() as d, adopted(d, "--profiling-bind-address=127.0.0.1:0", "-w", "2", *drop) as p:
        where = "http://" + address(d, p)
        found = all_of(where, 3)
        equal(found[p.pid], where)
        equal(len(set(found.values())), 3)
        for url in found.values():
            equal(processes(url)[0], found)
        worker = next(pid for pid in found if pid != p.pid)
        poll(lambda: "worker_turns" in ask(found[worker], "profile?seconds=1&format=top"), "a sample of its work")
        equal("http://" + open(os.path.join(d, "port")).read().strip(), where, "the port file is the parent's")


@test
def one_that_leaves_its_root_and_is_then_a_daemon_with_workers_has_names_in_all():
    wrap = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if subprocess.run([*wrap, "true"], capture_output=True).returncode:
        raise Skip("no namespaces, and so no chroot(2)")
    with tempdir() as d:
        with adopted(d, "--profiling-bind-address=127.0.0.1:0", "--profiling-port-file=/port", "-d", "-r", d, "-w", "2", before=wrap) as p:
            equal(p.wait(DEADLINE), 0, said(d))
            try:
                where = "http://" + poll(lambda: os.path.exists(d + "/port") and open(d + "/port").read().strip(), "the port file")
                found = all_of(where, 3)
                for url in found.values():
                    contains(ask(url), "but for the program&#39;s own</li>")
                worker = next(pid for pid in found if found[pid] != where)
                poll(lambda: "worker_turns" in ask(found[worker], "profile?seconds=1&format=top"), "a sample of its work")
            finally:
                for pid in survivors(d):
                    with contextlib.suppress(ProcessLookupError):  # its master has ended it
                        os.kill(pid, signal.SIGTERM)
            poll(lambda: said(d).endswith("bye\n"), "its own end")


@test
def one_that_sets_itself_up_once_more_serves_on_with_its_workers():
    with tempdir() as d, adopted(d, "--profiling-bind-address=127.0.0.1:0", "-w", "1") as p:
        where = "http://" + address(d, p)
        found = all_of(where, 2)
        p.send_signal(signal.SIGHUP)
        poll(lambda: said(d).count("begun\n") == 2, "its second begin")
        equal(all_of(where, 2), found)
        contains(ask(where, "profile?seconds=1&format=top"), "profile: cpu, total")


@test
def one_that_replaces_itself_has_the_options_again():
    with tempdir() as d, adopted(d, "-v", "--profiling-bind-address=unix:%s/r.%%p.sock" % d, "-w", "0") as p:
        where = "%s/r.%d.sock" % (d, p.pid)
        poll_socket(where)
        p.send_signal(signal.SIGUSR2)
        poll(lambda: said(d).count("begun\n") == 2, "its successor")
        equal(said(d).count("d=0 v=1 w=0 rest=0\n"), 2)
        contains(ask(where, "cmdline"), "--enable-pprof")


@test
def a_path_without_a_number_gets_one_in_workers():
    with tempdir() as d, adopted(d, "--profiling-bind-address=unix:%s/s" % d, "-w", "1") as p:
        address(d, p)
        found = all_of(d + "/s", 2)
        equal(found, {pid: d + "/s" if pid == p.pid else "%s/s.%d" % (d, pid) for pid in found})


@test
def a_worker_does_not_share_the_socket_that_its_parent_was_given():
    with tempdir() as d, socket.create_server(("127.0.0.1", 0)) as given, \
         adopted(d, "--profiling-bind-address=fd:3", "-w", "1", fds=[given.fileno()],
                 before=["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&%d' % given.fileno(), "sh"]) as p:
        where = "http://127.0.0.1:%d" % given.getsockname()[1]
        address(d, p)
        found = all_of(where, 2)
        equal(found[p.pid], where)
        worker = next(pid for pid in found if pid != p.pid)
        need(found[worker] != where, found)
        equal(processes(found[worker])[1], {"this one": worker, "the parent": p.pid})


def change(d, pid, *lines):
    """Has that worker changed to these, and waits for what it says."""
    with open(os.path.join(d, "again"), "w") as f:
        f.write("\n".join(lines) + "\n")
    before = said(d).count("changed ")
    os.kill(pid, signal.SIGUSR1)
    poll(lambda: said(d).count("changed ") > before, "the change")
    equal(re.findall("changed (.*)", said(d))[-1], "0")
    equal(open(os.path.join(d, "again")).read(), "\n".join(lines) + "\n", "a worker writes no port file")


def takes_long_windows(where):
    c = Unix(where) if where.startswith("/") else http.client.HTTPConnection(where[len("http://"):], timeout=DEADLINE)
    with contextlib.closing(c):
        c.request("GET", "/debug/pprof/trace?seconds=2")
        return c.getresponse().status == 200


@test
def a_worker_that_is_changed_keeps_a_place_of_its_own_beside_its_parent():
    with tempdir() as d, adopted(d, "--profiling-bind-address=127.0.0.1:0", "--debug-socket-path=%s/debug" % d, "-w", "1",
                                 env={"AGAIN": d + "/again"}) as p:
        where = "http://" + address(d, p)
        found = all_of(where, 2)
        worker = next(pid for pid in found if pid != p.pid)
        sockets = {d + "/debug", "%s/debug.%d" % (d, worker)}
        need(takes_long_windows(found[worker]), "before")
        change(d, worker, where[len("http://"):], d + "/debug")
        need(not takes_long_windows(found[worker]), "the change says that 1 s is the longest")
        need(takes_long_windows(where), "the parent is not changed")
        equal(processes(where)[0], found, "both are where they were")
        for path in sockets:
            equal(processes(path)[0], found)
        # Elsewhere: there it has a place of its own, too.
        change(d, worker, "unix:%s/other" % d)
        equal(processes(where)[0], {p.pid: where, worker: "%s/other.%d" % (d, worker)})
        change(d, worker, "unix:%s/other.%%p" % d)
        equal(processes(where)[0], {p.pid: where, worker: "%s/other.%d" % (d, worker)})
        need(not os.path.exists("%s/debug.%d" % (d, worker)), "it has no debug socket any more")
        equal(processes(d + "/debug")[1], {"this one": p.pid})


@test
def a_path_that_a_shell_would_read_otherwise_is_in_no_command_line():
    with tempdir() as d, adopted(d, "--profiling-bind-address=unix:%s/a;b$c" % d, "-w", "1") as p:
        address(d, p)
        page = poll(lambda: (lambda text: "Processes of this program" in text and text)(ask(d + "/a;b$c")), "the worker on the index")
        contains(page, ": %s/a;b$c</li>" % d)
        need("curl" not in page, page)


@test
def a_program_without_workers_lists_no_processes():
    with tempdir() as d, adopted(d, "--profiling-bind-address=127.0.0.1:0", "-w", "0") as p:
        need("Processes of this program" not in ask("http://" + address(d, p)), "one alone is listed")


main()
