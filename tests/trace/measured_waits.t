#!/usr/bin/env python3
"""measured_waits.t - a program that measures its own waits, traced: the real go tool trace agrees with it."""
import contextlib
import json
import os
import re
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from gotools import *  # noqa: E402,F403

PROGRAM = os.path.join(BUILD, "tests/programs/measured_waits")
SYNC = "wait_for_mutex", "wait_for_condition"
NET = "wait_in_read", "wait_in_poll"


class Daemon:
    def __init__(self, *args):
        self.process = subprocess.Popen([PROGRAM, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if line.startswith("cannot "):
            raise Skip(line.strip())
        m = re.match(r"url http://([^:/]+):(\d+)/", line)
        need(m, line)
        self.address = m.group(1), int(m.group(2))

    def __enter__(self):
        return self

    def __exit__(self, *failed):
        self.process.stdin.close()
        with self.bounded():
            rest = self.process.stdout.read()
        code = self.process.wait(DEADLINE)
        self.process.stdout.close()
        if not failed[0]:
            equal((code, rest[-5:]), (0, "fine\n"))
        elif code:
            print("# the program ended with %d" % code)

    @contextlib.contextmanager
    def bounded(self):
        """If it hangs, its lines end."""
        timer = threading.Timer(DEADLINE * 2, self.process.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def request(self, query):
        return requested(self.address, query)

    def truth(self):
        """What it has waited, by function, once it is done; and how long of it at most for a processor."""
        found = {}
        while True:
            with self.bounded():
                line = self.process.stdout.readline()
            need(line, "it ended with %r" % self.process.poll())
            if line == "done\n":
                return found
            name, ns, delay = line.split()
            found[name] = int(ns), int(delay)


def traced_by(d, name, s, early=True):
    """The answer in a file, and its header's fields."""
    r = answer_of(s, early)
    equal(r.status, 200, r.text)
    path = os.path.join(d, name)
    with open(path, "wb") as f:
        f.write(r.body)
    return path, r.headers


def traced(d, daemon, query):
    """A file with a trace of all that the program does, and what it did."""
    s = daemon.request(query)
    truth = daemon.truth()
    path, headers = traced_by(d, "trace", s)
    contains(headers["content-disposition"], 'filename="trace"')
    need(all(truth[name][0] > 50e6 for name in SYNC + NET), truth)
    return path, truth


def agree(form, path, truth, switches):
    for tool in readers(form):
        opens(tool, path, form)
        for kind, names in (("sync", SYNC), ("net", NET), ("syscall", ())):
            got = waited(tool, path, kind)
            for name in names:
                # A thread that is kept from running does not wait for what it came for, but its clock goes on.
                want, delay = truth[name]
                need(want * 0.95 - delay <= got.get(name, 0) <= want * 1.05,
                     "%s -pprof=%s: %s waited %d ns, by its own clock %d, and was delayed for %d" % (
                         tool, kind, name, got.get(name, 0), want, delay))
            most = 1e6 + max(delay for _, delay in truth.values())  # one may be kept from running within a call
            for name in (set(SYNC + NET) - set(names)) | {"read_at_once"}:
                need(got.get(name, 0) < most, "%s is in -pprof=%s: %d ns" % (name, kind, got.get(name, 0)))
        sched = waited(tool, path, "sched")
        if switches and is_exact(tool):
            got, want = sched.get("competitor", 0), truth["competitor"][1]
            need(abs(got - want) <= want * 0.05, "%s %s: %d ns runnable, by the kernel's count %d" % (tool, form, got, want))


def whole(path):
    """Words of the trace itself, strings as they stand in it."""
    with open(path, "rb") as f:
        return f.read()


def check(*args):
    with tempdir() as d, Daemon(*args) as daemon:
        for form in "go1.19", "go1.22":
            path, truth = traced(d, daemon, "trace?seconds=60&format=" + form)
            text = whole(path)
            agree(form, path, truth, b"switches: perf_event_open" in text)
            need(text.startswith(form.replace("go", "go ").encode() + b" trace\0\0\0"), text[:16])
            for word in b"the-waiter", b"measure", b"10 turns each", b"locks", b"short_life", b"helper", b"rude", b"part=locks":
                need(word in text, "%r is not in the trace" % word)
            if "deny" in args:
                need(b"switches: hooks; a seccomp filter is in force" in text, text[:2000])
                with Viewer(readers(form)[0], path) as viewer:
                    view = json.loads(viewer.get("/jsontrace"))["traceEvents"]
                job = [e["dur"] for e in view if e["ph"] == "X" and "[component-job]" in e["name"]]
                need(job and sum(job) < 1000, "who makes the trace is shown running, in us: %s" % job)
            elif b"switches: hooks" in text:
                raise Skip("no context switches here: %r" % re.search(rb"switches: hooks[ -~]*", text).group())
            else:
                need(b"switches: perf_event_open" in text, text[:2000])


@test
def by_the_kernels_context_switches_waits_are_what_the_program_measured():
    check()


@test
def where_perf_is_denied_hooks_tell_the_same_waits():
    check("deny")


@test
def traces_overlap_and_each_has_its_own_window():
    with tempdir() as d, Daemon() as daemon:
        outer = daemon.request("trace?seconds=60")
        inner = daemon.request("trace?seconds=0.2")
        cpu = daemon.request("profile?seconds=1")
        truth = daemon.truth()
        for s in inner, cpu:
            equal(answer_of(s).status, 200)
        later, _ = traced_by(d, "later", daemon.request("trace?seconds=0.2"), early=False)
        path, _ = traced_by(d, "outer", outer)
        agree("go1.19", path, truth, b"switches: perf_event_open" in whole(path))
        for tool in readers("go1.19"):
            opens(tool, later, "go1.19")
            got = {name: waited(tool, later, kind).get(name, 0) for kind, names in (("sync", SYNC), ("net", NET)) for name in names}
            equal(got, dict.fromkeys(SYNC + NET, 0), "what the outer one alone has seen")


@test
def pages_of_a_real_trace_are_served():
    with tempdir() as d, Daemon() as daemon:
        path, _ = traced(d, daemon, "trace?seconds=60")
        with Viewer(readers("go1.19")[0], path) as viewer:
            contains(viewer.get("/goroutines"), "waiter")
            for page in "/", "/trace", "/jsontrace", "/usertasks", "/userregions", "/io?raw=1", "/block?raw=1":
                viewer.get(page)


@test
def parameters_are_gos_and_what_is_out_of_bounds_is_refused():
    with Daemon() as daemon:
        for query, status in (("seconds=1e9", 400), ("seconds=0.05&format=nothing", 400), ("seconds=Inf", 200),
                              ("seconds=5e-2", 200), ("seconds=0x1p-4&debug=1", 200)):
            s = daemon.request("trace?" + query)
            data = s.recv(64)
            need(b" %d " % status in data, "%s: %r" % (query, data))
            s.close()


main()
