"""soak.py - the program of scripts/soak: tests/programs/stress.c for hours, asked for every kind of
profile, and watched for what grows.

Every answer is read and has to be right: counters that only grow do, a CPU profile has no
more time than the kernel's account, what is in use was allocated.  Four looks at its
memory, descriptors and mappings in each line; what is judged at the end is the lowest of
each fifth of the run: a thing grows when that rises from the second to the last, each time.

Tests: tests/whole/stress.t.
"""
import argparse
import atexit
import os
import re
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import opens, tools  # noqa: E402
from pprof_reader import Profile  # noqa: E402
from stressing import *  # noqa: E402,F403

LOOKS = 4  # in each line
WORKERS_MIN = 10  # of its threads are there all the time
LOOKS_MIN = 20  # in a run that is judged
# What may come on top without being a leak: a part, and so much.
SLACK = {"rss KiB": (0.05, 8192), "descriptors": (0, 3), "mappings": (0.05, 32), "heap KiB": (0.1, 1024)}
# These may have no sample: nothing is in use just now, or it has counted since a moment ago only.
MAY_BE_EMPTY = {"heap", "allocs", "mutex", "block", "threadcreate"}
COUNTERS = {"allocs": ("alloc_objects", "alloc_space"), "mutex": ("contentions", "delay"),
            "block": ("contentions", "delay"), "threadcreate": ("threadcreate",)}
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def grows(values, part, much):
    """Whether the lowest of each fifth but the first is above the one before, and the last by more than the slack."""
    if len(values) < LOOKS_MIN:
        return False
    cut = [len(values) * i // 5 for i in range(6)]
    lows = [min(values[a:b]) for a, b in zip(cut[1:], cut[2:])]
    return all(a < b for a, b in zip(lows, lows[1:])) and lows[-1] - lows[0] > max(much, part * lows[0])


def cpu_ns(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 10**9 // CLOCK_TICKS


def total(p, name):
    at = [t for t, _ in p.types].index(name)
    return sum(values[at] for _, values, _ in p.samples)


class Scraper:
    """Asks for everything, each kind in its turn, and judges what comes."""

    def __init__(self, pid, address, seconds, pause):
        self.pid, self.address, self.seconds, self.pause = pid, address, seconds, pause
        self.over, self.lock, self.before = threading.Event(), threading.Lock(), {}
        self.answers = self.refused = self.lost = self.samples = self.heap_kib = 0
        self.wrong = []
        one_window = [("profile?seconds=%d" % seconds, self.cpu)]
        states = [(kind, self.states) for kind in ("heap", "allocs", "mutex", "block", "threadcreate", "goroutine")]
        texts = [("goroutine?debug=2", self.dump), ("goroutineleak?debug=2", self.no_leak), ("fgprof?seconds=%d" % seconds, self.plain), ("", None),
                 ("trace?seconds=1", self.trace), ("heap?debug=1", None), ("profile?seconds=1&format=top", None)]
        self.threads = [threading.Thread(target=self.go, args=(paths,), daemon=True)
                        for paths in (one_window, states, texts)]
        for t in self.threads:
            t.start()

    def go(self, paths):
        n = 0
        while not self.over.is_set():
            path, judge = paths[n % len(paths)]
            n += 1
            try:
                began, used = time.monotonic(), cpu_ns(self.pid)
                r = ask(self.address, PPROF + path)
                used, took = cpu_ns(self.pid) - used, time.monotonic() - began
                if r.status == 503:
                    with self.lock:
                        self.refused += 1
                else:
                    equal(r.status, 200, r.text[:300])
                    if judge:
                        judge(path, r, used, took)
                    with self.lock:
                        self.answers += 1
            except Exception as e:  # noqa: BLE001 - whatever it is, it is told
                if self.over.is_set():
                    return
                with self.lock:
                    self.wrong.append("%s: %s" % (path or "index", e if isinstance(e, AssertionError) else repr(e)))
            self.over.wait(self.pause)

    def plain(self, path, r, used, took):
        p = Profile(r.body)
        for stack, values, _ in p.samples:
            need(stack and all(1 <= i <= len(p.locations) for i in stack), "a stack of %r" % stack)
            equal(len(values), len(p.types), "values")
            need(min(values) >= 0, "a negative value")
        need(p.samples or path in MAY_BE_EMPTY, "no sample")
        return p

    def cpu(self, path, r, used, took):
        p = self.plain(path, r, used, took)
        got = total(p, "cpu")
        # Half: the rest of raw threads that lived for less than a look is not seen.  On a crowded machine the window is
        # a part of what the request took.
        least = used * min(1, p.all[10][0] / 1e9 / took)
        need(least * 0.5 - 3e8 <= got <= used * 1.1 + 2e8,
             "%.3f s of CPU, the kernel says %.3f in the %.3f s of the request" % (got / 1e9, used / 1e9, took))
        said = [re.match(r"lost samples: (\d+)", s) for s in p.strings]
        with self.lock:
            self.samples += total(p, "samples")
            self.lost += sum(int(m[1]) for m in said if m)

    def states(self, path, r, used, took):
        p = self.plain(path, r, used, took)
        if path == "heap":
            for _, values, _ in p.samples:
                need(values[2] <= values[0] and values[3] <= values[1], "more is in use than was allocated: %r" % values)
            self.heap_kib = total(p, "inuse_space") >> 10
        for name in COUNTERS.get(path, ()):
            now, before = total(p, name), self.before.get((path, name), 0)
            self.before[path, name] = now
            need(now >= before, "%s fell from %d to %d" % (name, before, now))

    def dump(self, path, r, used, took):
        heads = re.findall(r"^goroutine \d+ \[.*\]:$", r.text, re.M)
        need(len(heads) >= WORKERS_MIN, "%d threads" % len(heads))
        contains(r.text, "main(...)")

    def no_leak(self, path, r, used, took):
        equal(r.text, "", "threads that are said to wait for ever")

    def trace(self, path, r, used, took):
        need(re.match(rb"go 1\.\d+ trace\0\0\0", r.body), "begins with %r" % r.body[:16])
        now = time.monotonic()
        if now < self.before.get("opened", -1e9) + 600:  # which takes the tool a while
            return
        self.before["opened"] = now
        with tempdir() as d:
            name = os.path.join(d, "trace")
            with open(name, "wb") as f:
                f.write(r.body)
            for version, tool in tools():
                if version >= (1, 22):
                    opens(tool, name, "the trace")

    def end(self):
        self.over.set()
        for t in self.threads:
            t.join(PATIENCE)
        need(not any(t.is_alive() for t in self.threads), "a request hangs")


class Watcher:
    """A line each so many seconds, and in the end what grew."""

    HEAD = "%8s %9s %11s %8s %7s %8s %7s %7s %12s %8s %8s"
    COLUMNS = ("seconds", "rss KiB", "descriptors", "mappings", "threads", "heap KiB", "answers", "refused", "samples",
               "lost", "wrong")

    def __init__(self, pid, scraper):
        self.pid, self.scraper, self.begin = pid, scraper, time.monotonic()
        self.series = {name: [] for name in SLACK}
        print(self.HEAD % self.COLUMNS, flush=True)

    def look(self):
        with open("/proc/%d/maps" % self.pid) as f:
            mappings = sum(1 for _ in f)
        found = {"rss KiB": rss(self.pid) >> 10, "descriptors": len(descriptors(self.pid)), "mappings": mappings,
                 "heap KiB": self.scraper.heap_kib}
        for name, value in found.items():
            self.series[name].append(value)

    def line(self):
        s = self.scraper
        lows = {name: min(values[-LOOKS:]) for name, values in self.series.items()}
        print(self.HEAD % (int(time.monotonic() - self.begin), lows["rss KiB"], lows["descriptors"], lows["mappings"],
                           len(os.listdir("/proc/%d/task" % self.pid)), lows["heap KiB"], s.answers, s.refused,
                           s.samples, s.lost, len(s.wrong)), flush=True)

    def verdict(self):
        for name, values in self.series.items():
            if values:
                cut = len(values) // 5
                print("%s: %d at first, %d after a fifth, %d at most, %d at the end" % (
                    name, values[0], values[cut], max(values), min(values[-max(1, cut):])))
        if len(self.series["mappings"]) < LOOKS_MIN:
            print("too short to tell what grows")
        return [name for name, values in self.series.items() if grows(values, *SLACK[name])]


def arguments():
    p = argparse.ArgumentParser(prog="scripts/soak", description="Profiles a hostile program for hours, and watches it.")
    p.add_argument("hours", type=float)
    p.add_argument("--load", type=int, default=100, help="per cent of its time for which each of its workers works")
    p.add_argument("--crowd", type=int, default=2000, help="threads that come and go at once")
    p.add_argument("--every", type=float, default=60, help="seconds from line to line")
    p.add_argument("--pause", type=float, default=1, help="seconds between two requests of each of three clients")
    p.add_argument("--window", type=int, default=5, help="seconds of a CPU window")
    p.add_argument("--agent", action="store_true", help="the agent preloaded into a program that knows nothing of us")
    p.add_argument("--program", help="one that is built already")
    return p.parse_args()


def soak(o, v, deadline):
    """Until it has ended; what was wrong."""
    m = v.wait_line("^url http://([^:/]+):([0-9]+)/", PATIENCE)
    need(m, "it did not begin:\n" + v.output())
    poll(lambda: v.over.is_set() or len(threads(v.p.pid)) >= 2 * WORKERS_MIN, "its workers", PATIENCE)
    scraper = Scraper(v.p.pid, (m.group(1), int(m.group(2))), o.window, o.pause)
    watcher = Watcher(v.p.pid, scraper)
    looks = 0
    try:
        while not v.over.is_set() and not re.search("^(ending|hung)$", v.output(), re.M):
            need(time.monotonic() < deadline, "it does not end")
            looks += 1
            end = watcher.begin + looks * o.every / LOOKS
            while time.monotonic() < end and not v.over.wait(0.05) and "ending\n" not in v.lines:
                pass
            if v.p.poll() is None and "ending\n" not in v.lines:
                watcher.look()
                if looks % LOOKS == 0:
                    watcher.line()
    except KeyboardInterrupt:
        print("ended early", flush=True)
        v.p.kill()
    early = v.p.poll() is not None
    scraper.end()
    status = v.end()
    wrong = list(scraper.wrong)
    if not (status == 0 and v.output().endswith("fine\n")) and not (early and status == -signal.SIGKILL):
        wrong.append("the program ended with %r:\n%s" % (status, v.output()[-8000:]))
    return wrong + ["%s grew" % name for name in watcher.verdict()]


def main():
    o = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    d = tempfile.mkdtemp(prefix="component-soak-")
    atexit.register(shutil.rmtree, d, True)
    exe = o.program or built(d, "foreign" if o.agent else "linked")
    env = dict(os.environ, STRESS_LOAD=str(o.load), STRESS_CROWD=str(o.crowd))
    if o.agent:
        env.update(preload_env(), PPROF_BIND_ADDRESS="127.0.0.1:0")
    v = Victim(exe, int(o.hours * 3600), [], env)
    print("pid %d, %g hours, load %d %%, %d threads at once" % (v.p.pid, o.hours, o.load, o.crowd), flush=True)
    try:
        wrong = soak(o, v, time.monotonic() + o.hours * 3600 + 4 * PATIENCE)
    finally:
        if v.p.poll() is None:
            v.p.kill()
            v.p.wait()
    for line in wrong[:100]:
        print("WRONG: " + line)
    print("%d things were wrong" % len(wrong) if wrong else "nothing grew, and nothing was wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
