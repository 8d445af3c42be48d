"""harness.py - what the tests/*/*.t programs share: TAP, daemons, HTTP.

A test file does

    from harness import *

    @test
    def a_sentence_of_behaviour():
        with daemon("examples/hello", "--enable-pprof") as d:
            equal(d.get("/debug/pprof/cmdline").status, 200)

    main()

Names of tests are printed with blanks for underscores.  A test fails by raising
anything; Skip("why") skips it.  Every daemon listens on port 0 of 127.0.0.1,
tells its address through --profiling-port-file, and is ended, by its own pid,
when its with-block ends.  Nothing sleeps to wait: poll() asks until a deadline.
"""
import contextlib
import fcntl
import glob
import http.client
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

SRC = os.environ.get("top_srcdir", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.environ.get("top_builddir", os.path.join(SRC, "build"))
CC = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")
EMULATED = os.environ.get("cross_compiling") == "yes"
DEADLINE = 120  # seconds; generous, since a busy machine must not fail a test


class Skip(Exception):
    pass


_tests = []


def collectors_with(member):
    """Names of those that fill it in, such as ".open"."""
    return {name for path in glob.glob(os.path.join(SRC, "profiler/collect/*/*.c"))
            for name, body in re.findall(r"^const struct collector collect_(\w+) = \{((?:.|\n)*?)^\};", text_of(path), re.M)
            if member + " = " in body}


def kinds_of_profile():
    """Those that Go's index has, too, by name."""
    with open(os.path.join(SRC, "profiler/collect/collectors.def")) as f:
        found = re.findall(r"^ROW\((\w+)\)", f.read(), re.M)
    need(len(found) >= 9, found)
    return sorted(set(found) - collectors_with(".beside"))


def test(fn):
    _tests.append(fn)
    return fn


def beside(fn):
    """A test that waits for seconds and works little: it runs while the others do, and is judged behind them."""
    fn.beside = True
    return test(fn)


def main(emulated=False):
    """Runs what @test marked, in order, as TAP, and what @beside marked meanwhile.  Arguments select by substring.
    emulated: in a cross build, too."""
    # A shell has them ignored in what it starts in the background, and programs keep that.
    for number in signal.SIGINT, signal.SIGQUIT, signal.SIGHUP:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # of a time limit: what was started is ended
    if EMULATED and not emulated:
        print("1..0 # SKIP whole programs need the machine that they were built for")
        return
    chosen = [t for t in _tests if not sys.argv[1:] or any(a in t.__name__ for a in sys.argv[1:])]
    chosen.sort(key=lambda fn: hasattr(fn, "beside"))
    print("1..%d" % len(chosen), flush=True)
    failed = 0
    running = {fn: in_background(fn) for fn in chosen if hasattr(fn, "beside")}
    for n, fn in enumerate(chosen, 1):
        begin = time.monotonic()
        name = fn.__doc__.split("\n")[0].rstrip(".") if fn.__doc__ else fn.__name__.replace("_", " ")
        try:
            running[fn].result(3600) if fn in running else fn()
            print("ok %d - %s" % (n, name), flush=True)
        except Skip as e:
            print("ok %d - %s # SKIP %s" % (n, name, e), flush=True)
        except BaseException as e:  # noqa: BLE001 - every way to fail is a failure
            failed += 1
            for line in traceback.format_exc().splitlines():
                print("# " + line)
            print("not ok %d - %s" % (n, name), flush=True)
            if isinstance(e, KeyboardInterrupt):
                break
        if time.monotonic() - begin > 2:
            print("# %.1f s" % (time.monotonic() - begin), flush=True)
    sys.exit(1 if failed else 0)


def need(condition, message="condition does not hold"):
    if not condition:
        raise AssertionError(message)


def equal(got, want, what=""):
    if got != want:
        raise AssertionError("%s\n  got  %r\n  want %r" % (what, got, want))


def contains(text, part):
    if part not in text:
        raise AssertionError("%r is not in:\n%s" % (part, text))


def poll(fn, what="condition", deadline=DEADLINE):
    """Calls fn until it returns something true; returns that."""
    end = time.monotonic() + deadline
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("%s: not within %d s" % (what, deadline))
        time.sleep(0.01)


def poll_socket(path):
    """Until somebody listens there: the file of a unix socket is there before, at bind()."""
    def is_answered():
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(path) == 0
    poll(is_answered, "the socket " + path)


def timed(fn, *args, **kw):
    """What it gives, and how many seconds that took."""
    begin = time.monotonic()
    r = fn(*args, **kw)
    return r, time.monotonic() - begin


def text_of(path):
    """Of a file of the sources, or any other by its full path."""
    with open(os.path.join(SRC, path), encoding="utf-8") as f:
        return f.read()


@contextlib.contextmanager
def tempdir():
    path = tempfile.mkdtemp(prefix="component-test-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def program(path):
    """A built program's real file (behind libtool's wrapper script), or the path itself."""
    full = path if os.path.isabs(path) else os.path.join(BUILD, path)
    return full


def command(path):
    """What starts a built program: an argv.  That of a cross build is run by TESTS_RUNNER, and not by libtool's script."""
    if not EMULATED:
        return [program(path)]
    folder, name = os.path.split(program(path))
    return os.environ["TESTS_RUNNER"].split() + ["-E", "LD_LIBRARY_PATH=" + os.path.join(BUILD, "components/.libs"),
                                                os.path.join(folder, ".libs", name)]


def run(*argv, **kw):
    """subprocess.run with text output and a time limit; argv[0] relative to the build."""
    argv = list(argv)
    if "/" in argv[0]:
        argv[0] = program(argv[0])
    kw.setdefault("timeout", 5 * DEADLINE)
    kw.setdefault("stdin", subprocess.DEVNULL)
    if "stdout" not in kw and "stderr" not in kw:
        kw["capture_output"] = True
    kw.setdefault("text", True)
    return subprocess.run(argv, **kw)


@contextlib.contextmanager
def started(argv, **kw):
    """A program that runs meanwhile: subprocess.Popen.  At the end it is killed if need be, and its pipes are closed."""
    p = subprocess.Popen(argv, **kw)
    try:
        yield p
    finally:
        if p.poll() is None:
            p.kill()
        p.wait()
        for f in p.stdin, p.stdout, p.stderr:
            with contextlib.suppress(OSError):  # what was not read by a program that is gone
                if f:
                    f.close()


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, {k.lower(): v for k, v in headers}, body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")


def requested(address, query):
    """The connection of a request for such a profile, which answer_of() reads."""
    s = socket.create_connection(address, timeout=DEADLINE)
    s.sendall(b"GET /debug/pprof/%s HTTP/1.0\r\n\r\n" % query.encode())
    return s


def answer_of(s, early=True):
    """early: by a half-close, which ends a window and has it answered."""
    with s, s.makefile("rb") as f:
        if early:
            s.shutdown(socket.SHUT_WR)
        head, _, body = f.read().partition(b"\r\n\r\n")
    first, *others = head.decode("latin-1").split("\r\n")
    need(first.startswith("HTTP/1."), "no answer: %r" % first)
    return Response(int(first.split()[1]), [other.split(": ", 1) for other in others], body)


class Daemon:
    def __init__(self, argv, env=None, cwd=None, wait=True, port_file=True, **kw):
        self.dir = tempfile.mkdtemp(prefix="component-test-")
        self.port_file = os.path.join(self.dir, "port")
        self.log_path = os.path.join(self.dir, "log")
        argv = command(argv[0]) + list(argv[1:])
        if port_file:
            argv += ["--profiling-bind-address=127.0.0.1:0", "--profiling-port-file=" + self.port_file]
        self.log = open(self.log_path, "wb")
        full_env = dict(os.environ)
        full_env.update(env or {})
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=full_env, cwd=cwd, **kw)
        self.pid = self.process.pid
        self.host, self.port = "127.0.0.1", None
        if wait and port_file:
            with self.ended_if_it_fails():
                self.wait_port()

    @contextlib.contextmanager
    def ended_if_it_fails(self):
        """Around what makes it ready: before its with-block there is nobody else to end it, and to show its log."""
        try:
            yield
        except BaseException:
            self.show_log()
            self.end()
            raise

    def show_log(self):
        print("# log of process %d:" % self.pid)
        for line in self.output().splitlines()[-40:]:
            print("#   " + line)

    def output(self):
        with open(self.log_path, "rb") as f:
            return f.read().decode("utf-8", "replace")

    def wait_port(self):
        def look():
            if self.process.poll() is not None:
                raise AssertionError("the daemon ended with %r:\n%s" % (self.process.returncode, self.output()))
            try:
                with open(self.port_file) as f:
                    text = f.read().strip()
            except FileNotFoundError:
                return None
            return text
        text = poll(look, "the port file")
        self.host, _, port = text.rpartition(":")
        self.port = int(port)

    @property
    def url(self):
        return "http://%s:%d/debug/pprof/" % (self.host, self.port)

    def get(self, path, method="GET", body=None, headers=None, timeout=DEADLINE):
        c = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            c.request(method, path, body=body, headers=headers or {})
            r = c.getresponse()
            return Response(r.status, r.getheaders(), r.read())
        finally:
            c.close()

    def wait_log(self, part, deadline=DEADLINE):
        poll(lambda: part in self.output(), "%r in the log" % part, deadline)

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, deadline=DEADLINE):
        return self.process.wait(deadline)

    def stop(self, deadline=DEADLINE):
        """TERM, and the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(deadline)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)


_own_network = os.environ.pop("OWN_NETWORK", None)  # programs that are tested do not see it


def own_network():
    """Starts this test again in a network namespace of its own, once, where every port is free and
    a wildcard address is nobody else's; whether it is there."""
    if _own_network:
        with socket.socket() as s:  # lo up: SIOCGIFFLAGS, SIOCSIFFLAGS
            flags = struct.unpack("16sh", fcntl.ioctl(s, 0x8913, struct.pack("16sh", b"lo", 0)))[1]
            fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", flags | 1))
        return True
    alone = "-n" if os.geteuid() == 0 else "-rn"  # no user namespace is to be had in a chroot
    if subprocess.run(["unshare", alone, "true"], stderr=subprocess.DEVNULL).returncode == 0:
        os.execvpe("unshare", ["unshare", alone, sys.executable] + sys.argv, dict(os.environ, OWN_NETWORK="1"))
    return False


def need_own_network():
    if not _own_network:
        raise Skip("no network namespace of our own can be had here")


@contextlib.contextmanager
def daemon(*argv, **kw):
    d = Daemon(list(argv), **kw)
    try:
        yield d
    except BaseException:
        d.show_log()
        raise
    finally:
        d.end()


def _descriptors_now(pid):
    found = {}
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            found[int(name)] = os.readlink("/proc/%d/fd/%s" % (pid, name))
        except OSError:
            pass
    return found


def descriptors(pid):
    """The open descriptors of a process, number to target; not those open for a moment,
    as when the library looks into /proc, which not all of five looks see."""
    found = _descriptors_now(pid)
    for _ in range(4):
        time.sleep(0.02)
        now = _descriptors_now(pid)
        found = {n: t for n, t in found.items() if now.get(n) == t}
    return found


def threads(pid):
    """The threads of a process, tid to name."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
                found[int(tid)] = f.read().strip()
        except OSError:
            pass
    return found


def free_port():
    """For TCP and UDP: a DNS server takes both."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as u:
            s.bind(("127.0.0.1", 0))
            with contextlib.suppress(OSError):
                u.bind(s.getsockname())
                return s.getsockname()[1]


def rss(pid):
    """Resident bytes of a process."""
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def in_background(fn, *args):
    """Runs fn on a thread; .result() waits and gives its value or raises its error."""
    box = {}

    def go():
        try:
            box["value"] = fn(*args)
        except BaseException as e:  # noqa: BLE001 - handed to result()
            box["error"] = e
    t = threading.Thread(target=go, daemon=True)
    t.start()

    def result(deadline=DEADLINE * 3):
        t.join(deadline)
        need(not t.is_alive(), "still running after %d s" % deadline)
        if "error" in box:
            raise box["error"]
        return box["value"]
    t.result = result
    return t
