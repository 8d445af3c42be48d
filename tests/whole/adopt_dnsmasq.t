#!/usr/bin/env python3
"""adopt_dnsmasq.t - dnsmasq with what examples/adopt/dnsmasq puts into its source: few lines, every kind of profile
under load with its functions by name, own options, signals, daemonising, setuid, capabilities and shutdown as before,
and children forked for TCP that leave the profiles alone.  dnsmasq has no tests of its own that could be run."""
import contextlib
import os
import pwd
import re
import signal
import socket
import struct
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from adopting import *  # noqa: E402,F403
from hooked import link, listens  # noqa: E402

HOSTS = 50000
made = {}


def dnsmasq():
    """Its program, built once."""
    if "dnsmasq" not in made:
        folder = adopted_source("dnsmasq")
        must("make", "-s", "-j2", "CFLAGS=-g -O1 -fno-optimize-sibling-calls " + PUBLIC, "LIBS=" + " ".join(link("linked")), cwd=folder)
        made["dnsmasq"] = folder
    return os.path.join(made["dnsmasq"], "src/dnsmasq")


def question(name, number):
    """Of the address (A) of name."""
    labels = b"".join(bytes([len(l)]) + l for l in name.encode().split(b"."))
    return struct.pack("!6H", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", 1, 1)


def address_in(answer, number):
    """The address that the answer ends with."""
    equal(struct.unpack("!H", answer[:2])[0], number)
    return socket.inet_ntoa(answer[-4:])


QUESTIONS = [("x%d.a.test", "127.0.0.9"), ("host%d.b.test", "127.1.2.3")]


def ask_by_udp(port, numbers):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(DEADLINE)
        s.connect(("127.0.0.1", port))
        for n in numbers:
            name, want = QUESTIONS[n % 2]
            s.send(question(name % (n % HOSTS), n % 65536))
            equal(address_in(s.recv(512), n % 65536), want)


def ask_by_tcp(port, numbers):
    """All by one connection: by one child of its."""
    with socket.create_connection(("127.0.0.1", port), DEADLINE) as s:
        f = s.makefile("rb")
        for n in numbers:
            name, want = QUESTIONS[n % 2]
            q = question(name % (n % HOSTS), n % 65536)
            s.sendall(struct.pack("!H", len(q)) + q)
            equal(address_in(f.read(struct.unpack("!H", f.read(2))[0]), n % 65536), want)


@contextlib.contextmanager
def loaded(port, *asks):
    """Each of asks is done again and again; what one of them raises is raised at the end."""
    stop, failed = threading.Event(), []

    def again(ask):
        i = 0
        while not stop.is_set():
            try:
                ask(port, range(i, i + 50))
            except Exception as e:  # noqa: BLE001
                failed.append(e)
                return
            i += 50

    workers = [threading.Thread(target=again, args=(a,)) for a in asks]
    for w in workers:
        w.start()
    try:
        yield
    finally:
        stop.set()
        for w in workers:
            w.join()
    for e in failed:
        raise e


def options(d, port, user):
    """Its own, in its own spellings."""
    with open(d + "/hosts", "w") as f:
        f.writelines("127.1.2.3 host%d.b.test\n" % i for i in range(HOSTS))
    return ["-C", "/dev/null", "--port=%d" % port, "--listen-address=127.0.0.1", "-z", "--no-resolv", "-h", "--addn-hosts=" + d + "/hosts",
            "-A", "/a.test/127.0.0.9", "--pid-file=" + d + "/pid", "-c", "1234", "--log-facility=" + d + "/log", "--user=" + user]


def folder_for_all():
    d = tempfile.mkdtemp(dir=work)
    os.chmod(d, 0o777)
    return d


def start(d, port, *words, user="nobody"):
    return run(dnsmasq(), *options(d, port, user), *words, cwd=d, env=CLEAN, timeout=DEADLINE)


@contextlib.contextmanager
def running(**user):
    """Daemonised, as another user where we may: gives its process, its port, where its profiles are and its folder."""
    d, port, pid = folder_for_all(), free_port(), None
    r = start(d, port, "--enable-pprof", "--profiling-bind-address", "127.0.0.1:0", "--profiling-port-file=" + d + "/pprof", **user)
    equal((r.returncode, r.stderr), (0, ""), content(d + "/log"))
    try:
        where = content(d + "/pprof")  # it has begun, or the command would still run
        pid = int(content(d + "/pid"))
        yield pid, port, where, d
    finally:
        with contextlib.suppress(OSError, TypeError):
            os.kill(pid, signal.SIGKILL)


def status_of(path, *keys):
    with open(path) as f:
        return [l.split()[1] for l in f if l.partition(":")[0] in keys]


def children(pid):
    """Those that answer by TCP at the moment."""
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split()]


def logged(d, pattern):
    return re.search(pattern, content(d + "/log") or "")


@test
def dnsmasq_is_given_few_lines_and_none_of_its_own_is_changed():
    few_lines_are_added("dnsmasq", os.path.join(os.path.dirname(dnsmasq()), ".."))


# It has no thread but the first.
EXPECTED = {"profile": [["receive_query", "answer_request"], ["main"]], "fgprof": [["do_poll", "main"]], "goroutine": [["main"]],
            "heap": [["read_hostsfile", "cache_reload"]], "allocs": [["read_hostsfile", "cache_reload"]], "threadcreate": []}


@test
def dnsmasq_is_a_daemon_of_another_user_without_capabilities_and_is_profiled_under_load():
    with running() as (pid, port, where, d), loaded(port, ask_by_udp, ask_by_tcp, ask_by_udp):
        named_in_every_kind(where, EXPECTED)
        user = pwd.getpwnam("nobody").pw_uid if ROOT else os.geteuid()
        for tid in os.listdir("/proc/%d/task" % pid):
            path = "/proc/%d/task/%s/status" % (pid, tid)
            equal(status_of(path, "Uid", "CapEff"), [str(user), "0" * 16], tid)


@test
def children_that_answer_by_tcp_have_no_descriptor_of_ours_and_leave_the_server_as_it_is():
    with running(user="root") as (pid, port, where, d):  # whose descriptors can be seen
        with socket.create_connection(("127.0.0.1", port), DEADLINE):
            child = poll(lambda: children(pid), "a child")[0]
            poll(lambda: set(listens(child)) == {port}, "its descriptors without ours")
            equal([t for t in descriptors(child).values() if "event" in t], [])
            equal(len(threads(child)), 1)
            with loaded(port, ask_by_tcp, ask_by_tcp, ask_by_tcp):
                poll(lambda: "main" in ask(where, "profile?seconds=1&format=folded"), "samples", 4 * DEADLINE)
                need("main" in ask(where, "goroutine?debug=2"), "no stack of its first thread")
        poll(lambda: not children(pid), "the end of its children", 4 * DEADLINE)
        equal(set(listens(pid)), {port, int(where.rpartition(":")[2])})
        ask_by_tcp(port, range(10))


@test
def dnsmasq_keeps_the_meaning_of_its_signals():
    with running() as (pid, port, where, d):
        ask_by_udp(port, range(10))
        os.kill(pid, signal.SIGUSR1)
        poll(lambda: logged(d, r"cache size 1234, "), "its statistics")
        os.rename(d + "/log", d + "/log.1")
        os.kill(pid, signal.SIGUSR2)
        poll(lambda: os.path.exists(d + "/log"), "its new log")
        with open(d + "/hosts", "a") as f:
            f.write("127.1.2.4 new.b.test\n")
        os.kill(pid, signal.SIGHUP)
        poll(lambda: logged(d, r"read .*/hosts - %d names" % (HOSTS + 1)), "its hosts, read again")
        ask(where, "heap")
        os.kill(pid, signal.SIGTERM)
        poll(lambda: is_over(pid), "its end")
        need(logged(d, "exiting on receipt of SIGTERM"), content(d + "/log"))
        equal([os.path.exists(d + name) for name in ("/pid", "/pprof")], [False, False])


@test
def a_taken_address_is_told_to_whoever_starts_dnsmasq():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        d = folder_for_all()
        r = start(d, free_port(), "--enable-pprof", "--profiling-bind-address=" + address)
        equal(r.returncode, 5, r.stderr)
        contains(r.stderr, "dnsmasq: ")
        contains(r.stderr, address)
        d = folder_for_all()
        r = start(d, free_port(), "--enable-pprof", "--profiling-bind-address=" + address, "--profiling-on-error=warn")
        equal(r.returncode, 0, r.stderr)
        os.kill(int(content(d + "/pid")), signal.SIGTERM)


@test
def a_wrong_word_is_reported_by_whose_it_is():
    r = run(dnsmasq(), "--enable-pprof", "--profiling-memory=lots", "--no-such-word", env=CLEAN)
    equal(r.returncode, 1)
    contains(r.stderr, "--profiling-memory")
    need("no-such-word" not in r.stderr, r.stderr)
    r = run(dnsmasq(), "--enable-pprof", "--no-such-word", env=CLEAN)
    equal(r.returncode, 1)
    contains(r.stderr, "bad command line options: try --help")
    r = run(dnsmasq(), "--profiling-help", env=CLEAN)
    equal(r.returncode, 0)
    contains(r.stdout, "127.0.0.1:6072")
    contains(r.stdout, "DNSMASQ_")
    r = run(dnsmasq(), "--test", "-C", "/dev/null", env=CLEAN)
    equal(r.returncode, 0)
    contains(r.stderr, "syntax check OK")


@test
def without_the_word_dnsmasq_is_as_it_was():
    d, port = folder_for_all(), free_port()
    r = start(d, port, user="root")
    equal((r.returncode, r.stderr), (0, ""))
    pid = int(content(d + "/pid"))
    try:
        ask_by_udp(port, range(10))
        equal(len(threads(pid)), 1)
        equal(listens(pid), [port])
    finally:
        os.kill(pid, signal.SIGTERM)
        poll(lambda: is_over(pid), "its end")


main()
