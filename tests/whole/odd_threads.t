#!/usr/bin/env python3
"""odd_threads.t - threads that a profiler may take for what they are not, and threads that a
seccomp filter ends for a system call of ours; see tests/programs/odd_threads.c."""
import contextlib
import gzip
import http.client
import os
import re
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403

PPROF = "/debug/pprof/"


class Odd:
    """tests/programs/odd_threads in one of its ways, under a name."""

    def __init__(self, d, how, name):
        exe = os.path.join(d, name)
        compile_(CC, *BASE, "-Wl,--no-as-needed", source("odd_threads.c"), "-o", exe, *link("linked"), "-pthread", "-ldl")
        self.p = subprocess.Popen([exe, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = self.p.stdout.readline()
        m = re.match(r"url http://([^:/]+):(\d+)/", line)
        need(m, "%r, and then %r" % (line, self.p.poll()))
        self.address = (m.group(1), int(m.group(2)))

    def get(self, path):
        c = http.client.HTTPConnection(*self.address, timeout=120)
        try:
            c.request("GET", PPROF + path)
            r = c.getresponse()
            body = r.read()
        finally:
            c.close()
        equal(r.status, 200, "%s: %s" % (path, body[:300]))
        text = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        return text.decode("latin-1"), r.getheader("x-component-threads")

    def finish(self):
        """Calls that were interrupted by a signal."""
        self.p.stdin.close()
        rest = self.p.stdout.read()
        m = re.search(r"fine (\d+)", rest)
        if not m and "cannot " in rest:
            raise Skip(rest.strip())
        need(m, "%r, and then %r" % (rest, self.p.wait(DEADLINE)))
        return int(m.group(1))

    def end(self):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        self.p.stdout.close()


@contextlib.contextmanager
def odd(how, name="odd_threads"):
    with tempdir() as d:
        o = Odd(d, how, name)
        try:
            yield o
        finally:
            o.end()


def sees_the_program(o):
    contains(o.get("profile?seconds=1&format=folded")[0], "burn_here")
    dump, header = o.get("goroutine?debug=2")
    contains(dump, "burn_here(")
    contains(dump, "wait_here(")
    contains(o.get("fgprof?seconds=1&format=folded")[0], "wait_here")
    trace = o.get("trace?seconds=1&format=perfetto")[0]
    contains(trace, "burn_here")
    need(o.finish() == 0, "a dump has interrupted calls")
    return dump, header


@test
def a_program_that_is_named_as_our_threads_are_is_not_taken_for_them():
    with odd("plain", "component-x") as o:
        dump, _ = sees_the_program(o)
        contains(dump, "thread: component-x]")


@test
def after_main_has_ended_by_pthread_exit_stacks_have_names_and_nobody_is_signalled():
    with odd("main-ends") as o:
        _, header = sees_the_program(o)
        need(re.search(r"signalled=[01];", header), header)  # who burns, at most


@test
def threads_that_the_kernel_keeps_in_the_process_are_no_threads_of_the_program():
    with odd("uring") as o:
        poll(lambda: o.p.poll() is not None or b"iou-" in b"".join(
            open("/proc/%d/task/%s/comm" % (o.p.pid, t), "rb").read() for t in os.listdir("/proc/%d/task" % o.p.pid)), "its thread")
        if o.p.poll() is not None:
            o.finish()
        folded = o.get("fgprof?seconds=1&format=folded")[0]
        for line in folded.splitlines():
            need(re.search("burn_here|wait_here|wait_for_the_end", line) or "no answer" not in line and "running" not in line, folded)
        dump, header = o.get("goroutine?debug=2")
        need("iou-" not in dump, dump)
        contains(header, "silent=0")
        equal(o.finish(), 0)


@test
def a_program_that_closes_our_descriptors_and_changes_its_user_keeps_its_events_and_the_server_comes_back():
    with odd("closes") as o:
        port = int(re.match(r"port (\d+)", o.p.stdout.readline()).group(1))
        for n in range(100):
            with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as s:
                got = b""
                while not got.endswith(b"\n"):
                    piece = s.recv(64)
                    need(piece, "connection %d: %r, and then its end" % (n, got))
                    got += piece
                equal(got, b"program\n", "connection %d" % n)

        def answers():
            try:
                return "goroutine" in o.get("")[0]
            except OSError:
                return False

        poll(answers, "the server")
        o.finish()


@test
def under_a_filter_that_ends_the_program_for_a_call_that_glibc_does_not_make_everything_can_be_had():
    with odd("filtered") as o:
        poll(lambda: o.p.poll() is not None or len(os.listdir("/proc/%d/task" % o.p.pid)) >= 6, "its threads")
        for path in ("", "heap", "allocs", "mutex", "block", "threadcreate", "goroutine", "goroutine?debug=1", "fgprof?seconds=1",
                     "profile?seconds=1", "trace?seconds=1", "heap?seconds=1", "goroutine?debug=2", "mutex?debug=1"):
            o.get(path)
        contains(o.get("profile?seconds=1&format=folded")[0], "burn_here")
        contains(o.get("threadcreate?debug=1")[0], "under_a_filter")
        contains(o.get("heap?debug=1")[0], "live_here")
        dump, header = o.get("goroutine?debug=2")
        contains(header, "; filtered=")
        need(re.search(r"\[not asked \(seccomp\), state [RS], thread: odd_threads\]", dump), dump)
        contains(o.get("goroutine")[0], "that the program has put on them, and were not signalled")
        o.finish()  # the filtered thread ends the server


main()
