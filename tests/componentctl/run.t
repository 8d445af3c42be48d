#!/usr/bin/env python3
"""componentctl run: a program that nobody rebuilt has the agent in it, and nothing else is different."""
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import sys
import termios

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403

own_run()


def words(*more):
    return [CTL, "run", *more]


def ran(*more, **kw):
    kw.setdefault("env", environment())
    return run(*words(*more), **kw)


@contextlib.contextmanager
def running(*more, **kw):
    """Once its server is there: the process of componentctl, with .port of the server."""
    p = started_by_ctl(*more, **kw)
    try:
        p.line = p.stderr.readline()
        m = re.match(r'time="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ" level=info msg="starting profiling server on port (\d+)" app_id=(\S+)$', p.line)
        need(m, p.line)
        p.port, p.id = int(m.group(1)), m.group(2)
        yield p
    finally:
        if p.poll() is None:
            p.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(DEADLINE)
        p.kill()
        p.wait()
        p.stderr.close()


def asked(port, path):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    with contextlib.closing(c):
        c.request("GET", "/debug/pprof/" + path)
        r = c.getresponse()
        equal(r.status, 200)
        return r.read().decode("utf-8", "replace")


def processes_of(session):
    """Number to name."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.getsid(int(pid)) == session:
                found[int(pid)] = text_of("/proc/%s/comm" % pid).strip()
    return found


def witness_of(session):
    there = [pid for pid, name in processes_of(session).items() if name == "componentctl-w"]
    return there[0] if len(there) == 1 else None


def compiled(d, name, text, *flags):
    path = os.path.join(d, name)
    with open(path + ".c", "w") as f:
        f.write(text)
    r = run(CC, "-g", "-o", path, path + ".c", *flags)
    equal(r.returncode, 0, r.stderr)
    return path


@test
def without_the_agent_it_says_so_and_starts_nothing():
    if os.path.exists("/usr/local/lib/libcomponent-preload.so"):
        raise Skip("the agent is installed here")
    with tempdir() as d:
        shutil.copy(CTL, d)
        r = run(d + "/componentctl", "run", "sh", "-c", "echo started", env=environment())
        equal((r.returncode, r.stdout), (1, ""), r.stderr)
        contains(r.stderr, "the agent is not here: ")
        contains(r.stderr, "libcomponent-preload")
        equal(run(d + "/componentctl", "run", "--enable-profiling=false", "sh", "-c", "echo started", env=environment()).stdout, "started\n")


SLEEPER = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"


@test
def output_input_and_status_are_the_programs():
    need_own_run()
    r = ran("--", "sh", "-c", "cat; echo error >&2; exit 7", stdin=None, input="in\n")
    equal((r.returncode, r.stdout), (7, "in\n"))
    need("error" in r.stderr.splitlines() and len(r.stderr.splitlines()) == 2, r.stderr)
    equal(ran("sh", "-c", "kill -SEGV $$").returncode, 128 + 11)
    equal(ran("sh", "-c", "echo \"$@\"", "sh", "--enable-profiling", "--help").stdout, "--enable-profiling --help\n")
    equal(ran("--enable-profiling", "true", "--app-port", "3000", "--", "sh", "-c", "echo hi").stdout, "hi\n")


@test
def the_process_is_as_without_us_but_for_three_variables():
    need_own_run()
    show = "env | sort; grep -E '^(SigBlk|SigIgn|Sig.gt|Threads)' /proc/self/status; umask; pwd"
    env = environment(ONE="1", COMPONENT_SOMETHING="x")

    def shown(r):
        # 32 and 33 are glibc's, which takes them when the first thread is made.
        return re.sub(r"(?<=^Sig...:\t)\w+", lambda m: "%x" % (int(m.group(), 16) & ~(3 << 31)), r.stdout, flags=re.M)
    plain = shown(run("sh", "-c", show, env=env))
    under = shown(ran("-a", "mine", "--", "sh", "-c", show, env=env))
    port = re.search(r"^DAPR_PROFILE_PORT=[1-9]\d*\n", under, re.M)
    need(port, under)
    under = under.replace(port.group(), "").replace("APP_ID=mine\n", "")
    equal(under, plain.replace("COMPONENT_SOMETHING=x\n", ""))
    contains(ran("-p", "3000", "env").stdout, "APP_PORT=3000\n")
    need("APP_PORT" not in ran("env", env=environment(APP_PORT="1")).stdout, "APP_PORT is left out when there is none")


@test
def its_children_are_plain_and_an_LD_PRELOAD_of_its_own_stays():
    need_own_run()
    r = ran("sh", "-c", "grep -c libcomponent /proc/$$/maps; sh -c 'grep -c libcomponent /proc/$$/maps'; true")
    first, second = map(int, r.stdout.split())
    need(first > 0 and second == 0, r.stdout)
    with tempdir() as d:
        other = compiled(d, "other.so", "int nothing;\n", "-shared", "-fPIC")
        equal(ran("sh", "-c", "echo $LD_PRELOAD", env=environment(LD_PRELOAD=other)).stdout, other + "\n")


@test
def it_is_listed_under_its_name_and_profiled_by_name():
    need_own_run()
    burn = "static volatile int n;\nvoid burn_it(void) { for (;;) n++; }\nint main(void) { burn_it(); }\n"
    with tempdir() as d:
        exe = compiled(d, "burner", burn)
        with running("--app-port=3000", exe) as p, running(exe) as second:
            equal((p.id, second.id), ("burner", "burner-%d" % second.pid))
            found = listed()
            equal((found["burner"]["daprPort"], found["burner"]["appPort"], found["burner"]["command"]), (p.port, 3000, exe))
            poll(lambda: "burn_it" in asked(p.port, "profile?seconds=1&format=folded"), "burn_it")
            contains(asked(p.port, "heap?debug=1"), "heap profile:")
            ctl("stop", "burner")
            equal(p.wait(DEADLINE), 128 + signal.SIGTERM)
            equal(list(listed()), [second.id])
    equal(listed(), {})


@test
def a_port_that_is_asked_for_is_had_or_refused_before_anything_starts():
    need_own_run()
    with tempdir() as d:
        mark = d + "/started"
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
            e = ctl("run", "--profile-port", str(port), "--", "touch", mark, status=1)
            contains(e, "invalid configuration for ProfilePort. Port %d is not available: 127.0.0.1:%d: Address already in use, "
                     "held by process %d" % (port, port, os.getpid()))
        need(not os.path.exists(mark), "it was started")
        with running("--profile-port=%d" % port, "sleep", "1000") as p:
            equal(p.port, port)


@test
def what_cannot_be_loaded_into_is_refused_with_the_reason():
    need_own_run()
    with tempdir() as d:
        def refused(path, why, status=1):
            contains(ctl("run", path, status=status), why)

        static = compiled(d, "static", "int main(void) { return 3; }\n", "-static")
        refused(static, static + " is linked statically, so nothing can be loaded into it; start it as always, "
                "and write 'componentctl profile PID', which looks at it from outside")
        equal(ran("--enable-profiling=false", static).returncode, 3)
        script = d + "/script"
        with open(script, "w") as f:
            f.write("#! %s x\n" % static)
        os.chmod(script, 0o755)
        refused(script, static + " is linked statically")
        exe = compiled(d, "exe", "int main(void) { return 3; }\n")
        equal(ran(exe).returncode, 3)
        os.chmod(exe, 0o4755)
        refused(exe, "gains privileges when it starts")
        with open(exe, "rb") as f:
            head = bytearray(f.read())
        for name, at, value, why in (("arm", 18, 40, "is for another kind of processor"), ("x32", 4, 1, "is for another kind of processor")):
            with open(d + "/" + name, "wb") as f:
                f.write(bytes(head[:at]) + bytes([value]) + bytes(head[at + 1:]))
            os.chmod(d + "/" + name, 0o755)
            refused(d + "/" + name, why)
        loader, = re.findall(rb"/lib\S*/ld-linux[^\0]*", head)[:1]
        with open(d + "/musl", "wb") as f:
            f.write(head.replace(loader, b"/lib/ld-musl-x86_64.so.1"[:len(loader)].ljust(len(loader), b"\0")))
        os.chmod(d + "/musl", 0o755)
        refused(d + "/musl", "is linked with musl")
        refused("nosuchcommand", "Failed to find command nosuchcommand")
        refused(d + "/nosuch", "Failed to find command")
        refused(d + "/exe.c", "Permission denied")
    contains(ctl("run", status=2), "no application command found; write componentctl run")
    contains(ctl("run", "--app-id", "a b", "true", status=2), "'a b' is no id")
    contains(ctl("run", "--profile-port=x", "true", status=2), "--profile-port")


@test
def signals_are_passed_on_and_who_does_not_end_is_killed():
    need_own_run()
    # os.write(): a signal may come while print() is at work, which cannot be entered again.
    counts = "import os, signal, sys, time\nfor s in (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM):\n" \
        "    signal.signal(s, lambda n, f: os.write(1, b'%d\\n' % n) and n == signal.SIGTERM and sys.exit(5))\n" \
        "print('ready', flush=True)\nwhile True: time.sleep(0.1)\n"  # pause() may miss one that comes just before it
    with running("--", sys.executable, "-c", counts, stdout=subprocess.PIPE) as p:
        equal(p.stdout.readline(), "ready\n")
        for s in (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM):
            p.send_signal(s)
            equal(p.stdout.readline(), "%d\n" % s)
        equal(p.wait(DEADLINE), 5)
        p.stdout.close()
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\nwhile True: signal.pause()\n"
    with running("--graceful-shutdown-timeout=100ms", "--", sys.executable, "-c", stubborn, stdout=subprocess.PIPE) as p:
        equal(p.stdout.readline(), "ready\n")
        p.terminate()
        equal(p.wait(DEADLINE), 128 + 9)
        contains(p.stderr.read(), "the program did not end in time and is killed")
        p.stdout.close()


def until(fd, text):
    """What a terminal shows, as far as text."""
    said = b""
    while text not in said:
        need(select.select([fd], [], [], DEADLINE)[0], said)
        said += os.read(fd, 1000)
    return said


@test
def keys_of_a_terminal_reach_the_program_once():
    need_own_run()
    # By a pipe: a signal that comes just before input() waits would be heard of at the next key only.
    counts = "import os, select, signal\nr, w = os.pipe()\nos.set_blocking(w, False)\nn = {signal.SIGINT: 0, signal.SIGWINCH: 0}\n" \
        "for s in n:\n    signal.signal(s, lambda n, f: None)\nsignal.set_wakeup_fd(w)\nprint('rea' + 'dy', flush=True)\n" \
        "while 0 not in select.select([0, r], [], [])[0]:\n    for s in os.read(r, 100):\n        n[s] += 1\n" \
        "        os.write(1, b'%s %d\\n' % (signal.Signals(s).name.encode(), n[s]))\nprint('all', *n.values(), flush=True)\n"
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.execve(CTL, words("--graceful-shutdown-timeout=1ms", "--", sys.executable, "-c", counts), environment())
        finally:
            os._exit(99)
    try:
        until(fd, b"ready")
        for n in (1, 2):
            os.write(fd, b"\x03")
            until(fd, b"SIGINT %d" % n)
        for n in (1, 3):
            before = poll(lambda: witness_of(pid), "the witness")
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30 + n, 100, 0, 0))
            until(fd, b"SIGWINCH %d" % n)
            poll(lambda: witness_of(pid) not in (before, None), "another witness")
            os.kill(pid, signal.SIGWINCH)  # which goes to one process, and is passed on
            until(fd, b"SIGWINCH %d" % (n + 1))
        os.write(fd, b"\n")
        until(fd, b"all 2 4")
        _, status = os.waitpid(pid, 0)
        equal(os.waitstatus_to_exitcode(status), 0)
        pid = 0
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(fd)


@test
def what_the_kernel_sends_to_us_alone_reaches_the_program():
    need_own_run()
    pid, fd = pty.fork()  # the leader of a session, whom alone a hang-up is told
    if pid == 0:
        try:
            os.execve(CTL, words("--", "sleep", "1000"), environment())
        finally:
            os._exit(99)
    try:
        until(fd, b"starting profiling server")
    finally:
        os.close(fd)
        _, status = os.waitpid(pid, 0)
    equal(os.waitstatus_to_exitcode(status), 128 + signal.SIGHUP)
    with running("--", "sleep", "1000", preexec_fn=lambda: signal.alarm(2)) as p:  # exec(2) keeps it
        equal(p.wait(DEADLINE), 128 + signal.SIGALRM)


COUNTS = """
import os, signal
both = {signal.SIGRTMIN, signal.SIGRTMIN + 1}
signal.pthread_sigmask(signal.SIG_BLOCK, both)
print("ready", flush=True)
n = 0
while signal.sigwait(both) == signal.SIGRTMIN:
    n += 1
print(n, flush=True)
"""


@test
def a_signal_to_the_group_reaches_the_program_once():
    need_own_run()
    with running("--", sys.executable, "-c", COUNTS, stdout=subprocess.PIPE, start_new_session=True) as p:
        equal(p.stdout.readline(), "ready\n")
        for _ in 1, 2:  # the second one is told from the first
            before = poll(lambda: witness_of(p.pid), "its witness")
            os.killpg(p.pid, signal.SIGRTMIN)
            poll(lambda: witness_of(p.pid) not in (before, None), "another witness")
        p.send_signal(signal.SIGRTMIN)  # this one is passed on
        p.send_signal(signal.SIGRTMIN + 1)
        equal(p.stdout.readline(), "3\n")
        equal(p.wait(DEADLINE), 0)
        p.stdout.close()
        equal(processes_of(p.pid), {})


@test
def a_program_that_has_the_library_linked_in_is_served_once():
    need_own_run()
    if not shutil.which(CC.split()[0]):
        raise Skip("no compiler")
    with running(program("examples/hello"), "--log-file=/dev/null") as p:
        contains(asked(p.port, "cmdline"), "hello")
        equal(len(listed()), 1)


main()
