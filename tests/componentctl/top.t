#!/usr/bin/env python3
"""componentctl top: a table each second, keys on a terminal, and a terminal that is as before in every way out."""
import fcntl
import http.server
import os
import pty
import re
import select
import signal
import socket
import struct
import sys
import termios
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from busy import Busy  # noqa: E402
from pprof_writer import profile  # noqa: E402
from shell_job import shell_job, until  # noqa: E402

own_run()
SUBJECT = "tests/programs/obedient_daemon"
LEAVES = b"\x1b[?1049l"


class Terminal:
    """A componentctl that runs in one of its own."""

    def __init__(self, *words, size=(24, 100)):
        need_perf()
        go_on, goes_on = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.read(go_on, 1)
            os.execve(CTL, [CTL] + list(words), environment())
        self.before = termios.tcgetattr(self.fd)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.status = None
        os.write(goes_on, b"\n")
        os.close(go_on)
        os.close(goes_on)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def until(self, pattern):
        """What is shown from now on, as far as that."""
        said = b""
        while not re.search(pattern, said):
            need(select.select([self.fd], [], [], DEADLINE)[0], said)
            said += os.read(self.fd, 65536)
        return said

    def keys(self, text):
        os.write(self.fd, text)

    def end(self, said=b""):
        """Its status; the terminal is as it was."""
        with contextlib.suppress(OSError):  # at its end
            while LEAVES not in said:
                said += os.read(self.fd, 65536)
        contains(said.decode("utf-8", "replace"), LEAVES.decode())
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        equal(termios.tcgetattr(self.fd)[3], self.before[3], "modes of the terminal")
        return self.status


def looked_at(folder):
    os.chmod(folder, 0o755)
    path = os.path.join(folder, "looked_at")
    equal(run(CC, "-O1", "-g", "-pthread", "-o", path, os.path.join(SRC, "tests/programs/looked_at.c")).returncode, 0)
    return path


@test
def where_nobody_listens_it_says_so_at_once():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # and does not listen
        contains(ctl("top", "127.0.0.1:%d" % s.getsockname()[1], "--seconds=3600", status=1, timeout=DEADLINE), "nobody listens there")


SILENCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
int curl_easy_setopt(void *curl, int option, ...)
{
	va_list args;
	void *value;
	va_start(args, option);
	value = va_arg(args, void *);
	va_end(args);
	if (option == 20) /* CURLOPT_LOW_SPEED_TIME */
		fprintf(stderr, "patience %ld\\n", (long)value);
	return ((int (*)(void *, int, ...))dlsym(RTLD_NEXT, "curl_easy_setopt"))(curl, option, value);
}
"""


@test
def a_server_may_be_silent_for_the_whole_window():
    with tempdir() as d, socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        source, library = os.path.join(d, "silence.c"), os.path.join(d, "silence.so")
        with open(source, "w") as f:
            f.write(SILENCE)
        equal(run(CC, "-shared", "-fPIC", "-o", library, source, "-ldl").returncode, 0)
        said = ctl("top", "127.0.0.1:%d" % s.getsockname()[1], "--seconds=3600", status=1, env=environment(LD_PRELOAD=library))
        need(int(re.search(r"patience (\d+)", said)[1]) > 3600, said)


@test
def a_table_a_second_goes_to_a_pipe():
    need_perf()
    with tempdir() as d, Busy([looked_at(d)]) as b:
        out = ctl("top", str(b.p.pid), "--count=3")
        heads = re.findall(r"^\d\d:\d\d:\d\d %d  profile$" % b.p.pid, out, re.M)
        equal(len(heads), 3, out)
        equal(len(re.findall(r"^ +flat  flat%   sum%        cum   cum%$", out, re.M)), 3, out)
        contains(out, "work_here")


@test
def a_server_is_asked_for_any_of_the_kinds():
    with daemon(SUBJECT, "--enable-pprof", "--heap-profile-rate=1") as d:
        at = "127.0.0.1:%d" % d.port
        contains(ctl("top", at, "heap", "--count=1"), "Type: inuse_space")
        contains(ctl("top", at, "mutex", "--count=1"), "Type: delay")
        contains(ctl("top", at, "goroutine", "--count=1"), "Type: goroutine")
        contains(ctl("top", at, "trace", status=2), "'trace' is no kind that is shown again and again")
        contains(ctl("top", at, "--focus=a{2}", status=2), "--focus 'a{2}'")


def sometimes(answers, begin=None):
    """The port of a server that gives these, one after the other, and the last again and again: profiles, or 500 with a sentence.
    begin: an event that it waits for."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if begin:
                begin.wait(DEADLINE)
            body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(500 if isinstance(body, str) else 200)
            self.end_headers()
            self.wfile.write(body.encode() if isinstance(body, str) else body)

        def log_message(self, *_):
            pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


USED = "Could not enable CPU profiling: cpu profiling already in use\n"
WHOLE = profile([("cpu", "nanoseconds")], [([1], [10 ** 7], [])], [(1, 1, 5000, [(1, 7)])], [(1, "work_here", "work_here", "a.c", 1)],
                [(1, "/bin/x", "abc")], duration=10 ** 9)


@test
def a_window_that_is_refused_ends_nothing_if_there_was_one_before():
    out = ctl("top", "127.0.0.1:%d" % sometimes([WHOLE, USED, WHOLE]), "--count=3", "--seconds=1")
    equal((out.count("work_here"), out.count("already in use")), (2, 1), out)
    contains(ctl("top", "127.0.0.1:%d" % sometimes([USED]), "--count=3", "--seconds=1", status=1), "already in use")


@test
def nor_if_that_one_came_during_a_pause():
    answers, begin = [WHOLE, USED, WHOLE, WHOLE], threading.Event()
    with Terminal("top", "127.0.0.1:%d" % sometimes(answers, begin)) as t:
        t.until(b"q quit")
        t.keys(b"p")
        t.until(b"PAUSED")
        begin.set()
        poll(lambda: len(answers) == 1, "windows behind the one that was refused")
        t.keys(b"p")
        t.until(b"work_here")
        t.keys(b"q")
        equal(t.end(), 0)


@test
def the_line_of_keys_is_there_however_small_the_terminal_is():
    need_perf()
    with tempdir() as d, Busy([looked_at(d)]) as b:
        for size in (9, 100), (4, 100), (1, 100):
            with Terminal("top", str(b.p.pid), "--top=50", "--focus=work", size=size) as t:
                t.until(b"q quit")
                t.keys(b"/")
                t.until(b"only stacks with: _")
                t.keys(b"\n")
                t.until(b"q quit")
                t.keys(b"q")
                equal(t.end(), 0)


@test
def a_focus_is_taken_whole_or_refused():
    with daemon(SUBJECT, "--enable-pprof") as d:
        at = "127.0.0.1:%d" % d.port
        contains(ctl("top", at, "goroutine", "--focus=" + 79 * "a", "--count=1"), "  /" + 79 * "a" + "\n")
        contains(ctl("top", at, "goroutine", "--focus=" + 80 * "a", "--count=1", status=2), "--focus is 80 bytes long, and top takes at most 79")


@test
def keys_change_what_is_shown():
    with tempdir() as d, Busy([looked_at(d)]) as b, Terminal("top", str(b.p.pid)) as t:
        t.until(rb"burn_here")
        t.keys(b"s")
        t.until(rb"sort by flat")
        t.keys(b"t")
        t.until(rb"TID +CPU  STATE NAME")
        t.until(rb"looked_at")
        t.keys(b"t/burn_less\r")
        t.until(rb"focus=burn_less")
        t.keys(b"p")
        t.until(rb"PAUSED")
        t.keys(b"pk")
        t.until(rb"from outside there is no 'heap'")
        t.keys(b"q")
        equal(t.end(), 0)


@test
def every_way_out_leaves_the_terminal_as_it_was():
    with tempdir() as d, Busy([looked_at(d)]) as b:
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            with Terminal("top", str(b.p.pid)) as t:
                t.until(rb"q quit")
                if number == signal.SIGINT:
                    t.keys(b"\x03")
                else:
                    os.kill(t.pid, number)
                equal(t.end(), 128 + number)
    with tempdir() as d, Busy([looked_at(d)]) as b, Terminal("top", str(b.p.pid)) as t:
        t.until(rb"burn_here")
        b.p.kill()
        b.p.wait()
        equal(t.end(), 1)


@test
def stopped_it_gives_the_terminal_back_and_goes_on_with_it():
    with tempdir() as d, Busy([looked_at(d)]) as b, Terminal("top", str(b.p.pid)) as t:
        t.until(rb"q quit")
        os.kill(t.pid, signal.SIGTSTP)  # no shell is there, which could continue it
        t.until(re.escape(LEAVES) + rb"(?s:.)*\x1b\[\?1049h(?s:.)*q quit")
        t.keys(b"q")
        equal(t.end(), 0)
    with tempdir() as d, Busy([looked_at(d)]) as b, shell_job([CTL, "top", str(b.p.pid)]) as fd:
        before = termios.tcgetattr(fd)[3]
        until(fd, b"q quit")
        os.write(fd, b"\x1a")
        contains(until(fd, b"job stopped").decode(), LEAVES.decode())
        equal(termios.tcgetattr(fd)[3], before)
        os.write(fd, b"\n")
        contains(until(fd, b"q quit").decode(), "\x1b[?1049h")
        os.write(fd, b"q")
        until(fd, b"job ended 0")


@test
def a_process_that_ends_and_that_nobody_waits_for_ends_it():
    with tempdir() as d, Busy([looked_at(d)]) as b, Terminal("top", str(b.p.pid)) as t:
        t.until(rb"q quit")
        b.p.kill()
        equal(t.end(), 1)


@test
def no_more_rows_are_drawn_than_there_are_lines():
    with tempdir() as d, Busy([looked_at(d)]) as b, Terminal("top", str(b.p.pid), size=(12, 40)) as t:
        said = t.until(rb"\x1b\[H[^\x1b]*profile(?s:.)*\x1b\[J")
        page = re.findall(rb"\x1b\[H(.*?)\x1b\[J", said, re.S)[-1]
        lines = [re.sub(rb"\x1b\[K", b"", line) for line in page.split(b"\n")]
        need(len(lines) <= 12 and all(len(line.rstrip(b"\r")) <= 40 for line in lines), page)
        t.keys(b"q")
        equal(t.end(), 0)


@test
def a_program_that_goes_away_ends_it_whatever_the_kind():
    with daemon(SUBJECT, "--enable-pprof", "--heap-profile-rate=1") as d:
        p = subprocess.Popen([CTL, "top", "127.0.0.1:%d" % d.port, "heap"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, env=environment())
        try:
            contains(p.stdout.readline(), "  heap")
            d.process.kill()
            said = p.communicate(timeout=DEADLINE)[1]
            equal(p.returncode, 1, said)
            need(re.search("nobody listens there|the server went away", said), said)
        finally:
            p.kill()
            p.wait()


@test
def where_nobody_answers_it_says_so():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        contains(ctl("top", "127.0.0.1:%d" % s.getsockname()[1], status=1), "nobody listens there")
    with tempdir() as d:
        with open(os.path.join(d, "file"), "w") as f:
            f.write("x")
        contains(ctl("top", os.path.join(d, "file"), status=2), "the target is a file")


main()
