#!/usr/bin/env python3
"""adopt_memcached.t - memcached with what examples/adopt/memcached puts into its source: few lines, every kind of
profile under load with its functions by name, own options, daemonising, setuid, its seccomp filters and shutdown as
before, and a short part of its own tests with profiling on; with TEST_STRESS=1 all of them."""
import contextlib
import glob
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from adopting import *  # noqa: E402,F403
from hooked import link  # noqa: E402

SECCOMP = os.path.exists("/usr/include/seccomp.h")
SUITE = ("binary-get.t", "cas.t", "daemonize.t", "flags.t", "getset.t", "incrdecr.t", "noreply.t", "stats.t", "touch.t", "unixsocket.t")
made = {}


def memcached():
    """Its folder, built once."""
    if "memcached" not in made:
        folder = adopted_source("memcached")
        must("./configure", "-q", *(["--enable-seccomp"] if SECCOMP else []), "CPPFLAGS=" + PUBLIC, "CFLAGS=-g -O1 -fno-optimize-sibling-calls",
             "LIBS=" + " ".join(link("linked")), cwd=folder)
        must("make", "-s", "-j2", "memcached", "memcached-debug", "timedrun", "sizes", cwd=folder)
        made["memcached"] = folder
    return made["memcached"]


def talk(port, stop=None):
    """Keys of many sizes, set and got; without stop, once."""
    with socket.create_connection(("127.0.0.1", port), DEADLINE) as s:
        f = s.makefile("rb")
        i = 0
        while stop is None or not stop.is_set():
            batch = b"".join(b"set k%d 0 0 %d\r\n%s\r\nget k%d\r\n" % (n, 10 + n % 999, b"x" * (10 + n % 999), n) for n in range(i, i + 50))
            s.sendall(batch)
            for _ in range(50):
                equal(f.readline(), b"STORED\r\n")
                need(f.readline().startswith(b"VALUE "), "no value")
                f.readline()
                equal(f.readline(), b"END\r\n")
            i = (i + 50) % 5000
            if stop is None:
                return


@contextlib.contextmanager
def running(*words):
    """Daemonised, as another user where we may: gives its process, its port and where its profiles are."""
    port = free_port()
    d = tempfile.mkdtemp(dir=work)
    os.chmod(d, 0o777)
    user = "nobody" if ROOT else pwd.getpwuid(os.geteuid()).pw_name
    pid = None
    # Not must(): with -v it keeps its standard output open.
    r = run(os.path.join(memcached(), "memcached"), "-d", "-u", user, "-P", d + "/pid", "-l", "127.0.0.1", "-p", str(port), "-t", "2", "-U", "0",
         "--enable-pprof", "--profiling-bind-address=127.0.0.1:0", "--profiling-port-file", d + "/pprof", *words, cwd=d, env=CLEAN,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=DEADLINE)
    equal(r.returncode, 0)
    try:
        where = poll(lambda: content(d + "/pprof"), "the port of its profiles")
        pid = int(poll(lambda: content(d + "/pid"), "its process"))
        yield pid, port, where
    finally:
        with contextlib.suppress(OSError, TypeError):
            os.kill(pid, signal.SIGKILL)


@test
def memcached_is_given_few_lines_and_none_of_its_own_is_changed():
    few_lines_are_added("memcached", memcached())


@test
def memcached_keeps_its_options_daemonises_changes_its_user_and_is_profiled_under_load():
    with running("-c", "200", "-v") as (pid, port, where):
        owner = os.stat("/proc/%d" % pid).st_uid if not ROOT else int(
            next(l for l in open("/proc/%d/status" % pid) if l.startswith("Uid:")).split()[1])
        equal(owner, pwd.getpwnam("nobody").pw_uid if ROOT else os.geteuid())
        stop = threading.Event()
        load = threading.Thread(target=talk, args=(port, stop))
        load.start()
        try:
            named_in_every_kind(where, EXPECTED)
        finally:
            stop.set()
            load.join()
        with socket.create_connection(("127.0.0.1", port), DEADLINE) as s:
            s.sendall(b"stats settings\r\n")
            text = b""
            while b"END\r\n" not in text:
                text += s.recv(65536)
        for word in (b"STAT maxconns 200\r\n", b"STAT verbosity 1\r\n", b"STAT num_threads 2\r\n"):
            need(word in text, "%r is not among its settings" % word)
        os.kill(pid, signal.SIGTERM)
        poll(lambda: is_over(pid), "its own shutdown")


EXPECTED = {"profile": [["process_command", "try_read_command", "drive_machine", "conn_"]], "fgprof": [["worker_libevent"], ["main"]],
            "goroutine": [["worker_libevent"], ["main"]], "heap": [["main", "memcached_thread_init", "assoc_init", "slabs_"]],
            "allocs": [["main", "memcached_thread_init", "assoc_init", "slabs_"]], "threadcreate": [["memcached_thread_init", "create_worker"]]}


@contextlib.contextmanager
def filtered(user, *words):
    """In the foreground, as its own test has it: under its seccomp filters, which end it at an unknown system call."""
    if not SECCOMP:
        raise Skip("libseccomp-dev is not here")
    port, d = free_port(), tempfile.mkdtemp(dir=work)
    os.chmod(d, 0o777)
    argv = [os.path.join(memcached(), "memcached"), "-u", user, "-l", "127.0.0.1", "-p", str(port),
            "-t", "2", "-U", "0", "-o", "drop_privileges", *words]
    with open(d + "/said", "w") as said, started(argv, cwd=d, env=CLEAN, stdin=subprocess.DEVNULL, stdout=said, stderr=said) as p:
        def talks():
            need(p.poll() is None, "it ended with %r: %s" % (p.returncode, content(d + "/said")))
            with contextlib.suppress(ConnectionRefusedError):
                talk(port)
                return True

        poll(talks, "its answer")
        yield p, port, d


def ends_well(p, d):
    p.send_signal(signal.SIGTERM)
    equal(p.wait(DEADLINE), 0, content(d + "/said"))
    equal(content(d + "/said"), "")


PROFILED = ("--enable-pprof", "--profiling-bind-address=127.0.0.1:0", "--profiling-port-file=pprof", "--heap-profile-rate=4096",
            "--mutex-profile-fraction=1", "--block-profile-rate=1us")


@test
def memcached_under_its_own_seccomp_filters_is_profiled_and_ends_as_it_does_without():
    user = pwd.getpwuid(os.geteuid()).pw_name
    with filtered(user) as (p, port, d):
        ends_well(p, d)
    with filtered(user, *PROFILED) as (p, port, d):
        where = content(d + "/pprof")
        stop = threading.Event()
        load = threading.Thread(target=talk, args=(port, stop))
        load.start()
        try:
            named_in_every_kind(where, EXPECTED)
        finally:
            stop.set()
            load.join()
        ends_well(p, d)
        equal(os.listdir(d), ["said"])


@test
def memcached_under_its_filters_and_as_another_user_says_which_threads_were_not_asked():
    if not ROOT:
        raise Skip("only root may change the user")
    with filtered("nobody", *PROFILED) as (p, port, d):
        where = content(d + "/pprof")
        contains(ask(where, "goroutine?debug=2"), "[not asked (seccomp), ")
        for kind in BY_NAME + OTHERS:
            ask(where, kind)
        talk(port)
        ends_well(p, d)


ON = {"MEMCACHED_ENABLE_PPROF": "true", "MEMCACHED_PROFILING_BIND_ADDRESS": "127.0.0.1:0",
      "MEMCACHED_PROFILING_PORT_FILE": os.path.join(work, "pprof")}


def suite(folder, names, env):
    """The names of those that fail."""
    r = run("prove", "-j", "2", *names, cwd=folder, env={**CLEAN, **env}, timeout=3600)
    failed = set(re.findall(r"^(t/\S+\.t) +\(Wstat", r.stdout, re.M))
    need(bool(failed) == ("Result: PASS" not in r.stdout), r.stdout[-3000:] + r.stderr[-3000:])
    return failed


@test
def memcacheds_own_test_scripts_pass_with_profiling_on():
    folder = memcached()
    stress = os.environ.get("TEST_STRESS")
    names = ["t/" + n for n in SUITE] if not stress else sorted(glob.glob("t/*.t", root_dir=folder))
    if stress:
        must("make", "-s", "testapp", cwd=folder)
        must("./testapp", cwd=folder, env=ON)
    failing = in_background(suite, folder, names, ON)
    poll(lambda: content(ON["MEMCACHED_PROFILING_PORT_FILE"]), "a server of profiles", 4 * DEADLINE)
    failed = failing.result(3600)
    # Some need more than a machine may have; they fail without profiling, too.
    equal(sorted(failed - (suite(folder, sorted(failed), {}) if failed else set())), [])


main()
