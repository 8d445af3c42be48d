#!/usr/bin/env python3
"""own_table.t - the agent's threads have a table of descriptors of their own, which the program neither meets nor waits for."""
import glob
import http.client
import os
import select
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from at_work import asked  # noqa: E402
from pprof_reader import Profile  # noqa: E402

AGENT = os.path.join(BUILD, "components/preload/libcomponent-preload.so")
PYTHON = os.path.realpath(sys.executable)
TABLES = "kernel older than 5.9, or this test is under a seccomp filter"

if not os.path.exists(AGENT):
    print("1..0 # SKIP configured without the agent")
    sys.exit(0)


@contextlib.contextmanager
def under_agent(program, **more):
    """A Python program, which says "ready" and goes on with each line; ended by the end of its standard input."""
    env = dict(os.environ, LD_PRELOAD=AGENT, PPROF_BIND_ADDRESS="127.0.0.1:0")
    p = subprocess.Popen([PYTHON, "-c", "import os, socket, sys, time\n" + program], env=env, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True, **more)
    try:
        said(p, "ready")
        yield p
        p.stdin.close()
        equal(p.wait(DEADLINE), 0)
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def said(p, line):
    equal(p.stdout.readline(), line + "\n")


def go_on(p):
    p.stdin.write("\n")
    p.stdin.flush()


WAITS = "print('ready', flush=True)\nsys.stdin.read()"
GOES_ON = "print('ready', flush=True)\nsys.stdin.readline()\n"


def table_of(task):
    """Number to what it is open on."""
    found = {}
    for fd in glob.glob(task + "/fd/*"):
        with contextlib.suppress(OSError):  # it was open for an instant
            found[int(os.path.basename(fd))] = os.readlink(fd)
    return found


def name_of(task):
    with contextlib.suppress(OSError):  # it has ended meanwhile
        return text_of(task + "/comm")


def tables(pid):
    """The program's, and that of our server's thread."""
    thread, = [t for t in glob.glob("/proc/%d/task/*" % pid) if name_of(t) == "component-http\n"]
    return table_of("/proc/%d" % pid), table_of(thread)


def lasting(table):
    """Without what is read for an instant, which has a low number."""
    return {n: t for n, t in table.items() if n < 3 or n >= 768}


def are_two(pid):
    """By the standard input, which the program has from here."""
    theirs, ours = tables(pid)
    return theirs[0] != ours[0]


def need_tables():
    with under_agent(WAITS) as p:
        if not are_two(p.pid):
            raise Skip(TABLES)


@test
def the_program_has_but_the_listener_and_what_wakes_the_server_and_our_threads_have_nothing_of_the_programs():
    need_tables()
    with under_agent(WAITS) as p:
        theirs, ours = tables(p.pid)
        high = {n: t for n, t in theirs.items() if n >= 768}
        equal(len(high), 2, theirs)
        need(all(t.startswith("socket:") and t in ours.values() for t in high.values()), (theirs, ours))
        equal(len(listens(p.pid)), 1)
        equal({ours[n] for n in (0, 1, 2)}, {"/dev/null"})
        tasks = glob.glob("/proc/%d/task/*" % p.pid)
        need(len(tasks) > 1, tasks)
        known = [lasting(t) for t in tables(p.pid)]
        poll(lambda: all(lasting(table_of(t)) in known for t in tasks), "one of the two in each thread")
        poll(lambda: tables(p.pid)[1].keys() == known[1].keys(), "nothing below")


@test
def a_program_that_closes_all_descriptors_ends_neither_a_window_nor_the_server():
    need_tables()
    with under_agent(GOES_ON + "os.closerange(3, 4096)\nprint('closed', flush=True)\nsys.stdin.read()") as p:
        port, = listens(p.pid)
        before = {n: t for n, t in tables(p.pid)[1].items() if n >= 768}
        window = requested(("127.0.0.1", port), "profile?seconds=600")
        poll(lambda: "component-job" in threads(p.pid).values(), "the window")
        begin = time.monotonic()
        go_on(p)
        said(p, "closed")
        asked(port, "goroutine")
        equal(select.select([window], [], [], 0.5)[0], [], "it was cut short")
        seconds = time.monotonic() - begin
        need(Profile(answer_of(window).body).all[10][0] >= seconds * 1e9, "it was cut short")
        equal(max(tables(p.pid)[0]), 2)
        asked(port, "goroutine")
        after = tables(p.pid)[1]
        need(len(before) >= 6 and before.items() <= after.items(), (before, after))


UNSHARES = "import ctypes, resource\nlibc = ctypes.CDLL(None)\n" + GOES_ON + "%s\nprint(libc.unshare(0x10000000), flush=True)\nsys.stdin.read()"


def unshares(p):
    if p.stdout.readline() != "0\n":
        plain = subprocess.run([PYTHON, "-c", "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000) != 0)"])
        if plain.returncode:
            raise Skip("no user namespace can be had")
        raise AssertionError("our threads are in its way")


@test
def when_our_threads_rest_all_becomes_the_programs_and_connections_go_on():
    need_tables()
    for before in "pass", "os.closerange(3, 4096)":
        with under_agent(UNSHARES % before) as p:
            port, = listens(p.pid)
            ours = tables(p.pid)[1]
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
            with contextlib.closing(c):
                for i in range(2):
                    c.request("GET", "/debug/pprof/cmdline")
                    contains(c.getresponse().read().decode(), "ready")
                    if i == 0:
                        at = c.sock.getsockname()
                        go_on(p)
                        unshares(p)
                equal(c.sock.getsockname(), at)
                need(not are_two(p.pid), "two tables")
                now = tables(p.pid)[0]
                need({n: t for n, t in ours.items() if n >= 768}.items() <= now.items(), (before, ours, now))
                equal(listens(p.pid), [port])


@test
def a_program_at_its_limit_of_descriptors_changes_its_namespace_all_the_same():
    fill = """resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True:
        os.open("/dev/null", os.O_RDONLY)
except OSError:
    pass"""
    with under_agent(UNSHARES % fill) as p:
        go_on(p)
        unshares(p)


@test
def clients_that_ask_all_the_time_keep_nobody_waiting():
    with under_agent(UNSHARES % "os.closerange(3, 4096)") as p:
        port, = listens(p.pid)
        stop = threading.Event()

        def ask():
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
            with contextlib.closing(c):
                while not stop.wait(0.1):
                    c.request("GET", "/debug/pprof/cmdline")
                    c.getresponse().read()
        asks = in_background(ask)
        go_on(p)
        unshares(p)
        stop.set()
        asks.result()


@test
def when_a_program_has_the_numbers_of_ours_a_child_has_all_of_its_own():
    opens = """
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
try:
    while True:
        last = os.open("/dev/zero", os.O_RDONLY)
except OSError:
    os.close(last)
    os.close(last - 1)
    os.close(last - 2)"""
    child = """
def own():
    found = []
    for n in range(3, 1024):
        try:
            found += [n] if os.readlink("/proc/self/fd/%d" % n) == "/dev/zero" else []
        except OSError:
            pass
    return found
mine = own()
pid = os.fork()
if not pid:
    os._exit(own() != mine)
print(len(mine) > 900, os.waitpid(pid, 0)[1], flush=True)
sys.stdin.read()"""
    with under_agent((UNSHARES % opens).replace("\nsys.stdin.read()", child)) as p:
        go_on(p)
        unshares(p)
        said(p, "True 0")


@test
def who_reads_what_the_program_writes_sees_the_end_when_the_program_closes_it():
    program = GOES_ON + "print('closes', flush=True)\nos.close(1); os.close(2); os.close(there.fileno())\nsys.stdin.read()"
    here, there = socket.socketpair()
    with contextlib.closing(here):
        with under_agent("there = socket.socket(fileno=%d)\n" % there.fileno() + program, stderr=subprocess.PIPE,
                         pass_fds=(there.fileno(),)) as p:
            there.close()
            port, = listens(p.pid)
            go_on(p)
            said(p, "closes")
            here.settimeout(DEADLINE)
            equal((p.stdout.read(), p.stderr.read(), here.recv(1)), ("", "", b""))
            asked(port, "goroutine")
            p.stderr.close()


@test
def a_child_has_nothing_of_ours():
    child = """
def numbers():
    return sorted(int(n) for n in os.listdir("/proc/self/fd"))
before = [n for n in numbers() if n < 700]
pid = os.fork()
if not pid:
    os._exit(numbers() != before)
print(os.waitpid(pid, 0)[1], flush=True)
sys.stdin.read()"""
    with under_agent(GOES_ON + child) as p:
        go_on(p)
        said(p, "0")


@test
def a_child_that_serves_has_a_table_of_its_own():
    need_tables()
    ctl = os.path.join(BUILD, "components/componentctl/componentctl")
    program = """
import os, sys, time
pid = os.fork()
if not pid:
    while True:
        time.sleep(0.005)
print(pid, flush=True)
sys.stdin.read()
os.kill(pid, 15)
os.waitpid(pid, 0)"""
    with tempdir() as d:
        p = subprocess.Popen([ctl, "run", "--follow-forks", "--", PYTHON, "-c", program], env=dict(os.environ, XDG_RUNTIME_DIR=d),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        child = int(p.stdout.readline())

        def server():
            with contextlib.suppress(ValueError):  # none yet
                theirs, ours = tables(child)
                return {t for n, t in theirs.items() if n >= 768} <= set(ours.values()) and len([n for n in theirs if n >= 768]) == 2
            return False
        poll(server, "the child's server, and its listener in the child's table")
        need(are_two(child), "one table")
        p.stdin.close()
        equal(p.wait(DEADLINE), 0)
        p.stdout.close()


@test
def a_socket_that_the_program_was_given_is_served_from_the_programs_table():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as s:
        given = "import os; os.dup2(%d, 3); os.environ['LISTEN_PID'] = str(os.getpid()); os.execv(%r, [%r, '-c', %r])" % (
            s.fileno(), PYTHON, PYTHON, "import os, sys\n" + WAITS)
        env = dict(os.environ, LD_PRELOAD=AGENT, PPROF_BIND_ADDRESS="", LISTEN_FDS="1", LISTEN_FDNAMES="pprof")
        launched = given.replace("os.execv", "os.environ['PPROF_BIND_ADDRESS'] = 'fd:pprof'; os.execv")
        p = subprocess.Popen([PYTHON, "-c", launched], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             pass_fds=(s.fileno(),))
        said(p, "ready")
        asked(s.getsockname()[1], "goroutine")
        need(not are_two(p.pid), "two tables")
        p.stdin.close()
        equal(p.wait(DEADLINE), 0)
        p.stdout.close()


FILTERED = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))  # allow all
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(code)))):
    sys.exit(77)
os.environ["LD_PRELOAD"] = sys.argv[1]
os.execv(sys.argv[2], sys.argv[2:])
"""


@test
def under_a_filter_the_program_was_started_with_there_is_one_table_and_all_is_served():
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    p = subprocess.Popen([PYTHON, "-c", FILTERED, AGENT, PYTHON, "-c", "import os, sys\n" + WAITS],
                         env=dict(env, PPROF_BIND_ADDRESS="127.0.0.1:0"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if p.stdout.readline() != "ready\n":
        equal(p.wait(), 77)
        raise Skip("no seccomp filter can be had")
    need(not are_two(p.pid), "two tables")
    port, = listens(p.pid)
    for path in "profile?seconds=1", "goroutine", "heap":
        asked(port, path)
    p.stdin.close()
    equal(p.wait(DEADLINE), 0)
    p.stdout.close()


@test
def a_program_that_has_run_out_of_descriptors_can_still_be_looked_into():
    import resource

    need_tables()
    program = "import resource\nn = []\n" + GOES_ON + """
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True:
        n.append(os.open("/dev/null", os.O_RDONLY))
except OSError as e:
    print(e.errno, n[-1], flush=True)
sys.stdin.read()"""
    with under_agent(program, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))) as p:
        port, = listens(p.pid)
        go_on(p)
        said(p, "24 63")
        for path in "profile?seconds=1", "goroutine", "heap":
            asked(port, path)


main()
