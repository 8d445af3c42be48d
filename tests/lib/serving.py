"""serving.py - what the tests of serve/ share: programs driven by lines, first of all
tests/programs/profiled_daemon, and HTTP by the byte where http.client is too polite."""
import contextlib
import os
import re
import socket
import subprocess
import tempfile
import threading

from harness import *  # noqa: F401,F403
import harness

TEXT = "text/plain; charset=utf-8"
BINARY = "application/octet-stream"
PPROF = "/debug/pprof/"


class LineDaemon(harness.Daemon):
    """A program that obeys lines on its standard input, and ends when that does.  PORT_FILE
    among its arguments is the file for wait_port()."""

    def __init__(self, *argv, env=None):
        self.dir = tempfile.mkdtemp(prefix="component-test-")
        self.port_file = os.path.join(self.dir, "port")
        self.log_path = os.path.join(self.dir, "log")
        self.log = open(self.log_path, "wb")
        self.process = subprocess.Popen(
            harness.command(argv[0]) + [a.replace("PORT_FILE", self.port_file) for a in argv[1:]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env={**os.environ, **(env or {})},
            text=True, bufsize=1)
        self.host, self.port = "127.0.0.1", None
        # libtool's wrapper script becomes the program by exec, so the pid is the daemon's
        self.pid = self.process.pid

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def reply(self):
        return self.process.stdout.readline().rstrip()

    def command(self, line):
        self.send(line)
        return self.reply()

    def connect(self, timeout=DEADLINE):
        s = socket.create_connection((self.host, self.port), timeout=timeout)
        return s

    def raw(self, data, half_close=False, timeout=DEADLINE):
        """Sends bytes and returns all that comes back until the server closes."""
        with self.connect(timeout) as s:
            s.sendall(data)
            if half_close:
                s.shutdown(socket.SHUT_WR)
            return receive_all(s)

    def finish(self):
        """Lets it end by itself, which must be clean (sanitizers and valgrind have a say here)."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        equal(self.process.wait(DEADLINE), 0, "exit status")

    def end(self):
        if self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class Server(LineDaemon):
    """tests/programs/profiled_daemon; its command lines answer with one line each."""

    def __init__(self, *options, start=True, env=None, wait=True):
        super().__init__("tests/programs/profiled_daemon", "--port-file", "PORT_FILE", *options, env=env)
        with self.ended_if_it_fails():
            equal(self.command("running"), "0", "before it was started")  # and libtool's wrapper has become it
            if start:
                answer = self.command("start")
                if wait:
                    equal(answer, "0", "start")
                    self.wait_port()


def receive_all(s):
    data = b""
    while True:
        more = s.recv(65536)
        if not more:
            return data
        data += more


@contextlib.contextmanager
def used(d):
    """Ends a LineDaemon that was started, well if all was well, and shows its log if not."""
    try:
        yield d
        d.finish()
    except BaseException:
        d.show_log()
        raise
    finally:
        d.end()


def server(*options, **kw):
    return used(Server(*options, **kw))


def get_line(path, *headers, method="GET", version="1.1"):
    """A request as bytes."""
    return ("%s %s HTTP/%s\r\n%s\r\n" % (method, path, version, "".join(h + "\r\n" for h in headers))).encode()


def head_and_body(data):
    head, blank, body = data.partition(b"\r\n\r\n")
    need(blank, "no end of header in %r" % data[:200])
    return head.decode("latin-1"), body


def status_of(data):
    m = re.match(rb"HTTP/1\.[01] (\d+) ", data)
    need(m, "no status line in %r" % data[:80])
    return int(m.group(1))


def is_error(r, status, text=None):
    equal(r.status, status, "status")
    equal(r.headers.get("content-type"), TEXT)
    equal(r.headers.get("x-content-type-options"), "nosniff")
    equal(r.headers.get("x-go-pprof"), "1")
    if text is not None:
        equal(r.text, text)


def grew_too_much(pid, before, bytes_allowed):
    """Has RSS grown?  Not asked of a sanitizer, which keeps freed memory on purpose."""
    with open("/proc/%d/maps" % pid) as f:
        maps = f.read()
    return "libasan" not in maps and "libtsan" not in maps and rss(pid) - before > bytes_allowed


def is_idle(d):
    """No request is being answered and no CPU window is open."""
    return not set(own_threads(d.pid)) & {"component-job", "component-cpu"}


def own_threads(pid):
    return sorted(n for n in threads(pid).values() if n.startswith("component-"))


def job_waits(d):
    """Has a job taken its first snapshot?  Then it waits with a timeout, and only then."""
    for tid, name in threads(d.pid).items():
        if name != "component-job":
            continue
        with contextlib.suppress(OSError):
            with open("/proc/%d/task/%d/syscall" % (d.pid, tid)) as f:
                words = f.read().split()
            if len(words) > 4 and words[0] in ("202", "98") and int(words[4], 16) != 0:
                return True
    return False
