#!/usr/bin/env python3
"""continuous_scrape.t - what a continuous profiler does to three daemons, all day long.

Parca asks for five paths of each daemon, each in a loop of its own, every
scrape_interval, with scrape_interval seconds of CPU: so some CPU profile is open at
every moment.  Meanwhile a person takes a long one, and another with go tool pprof.  Its
connections are kept alive, it follows no redirect and asks for no compression; its store
takes a profile only by rules that are stricter than pprof's.

Alloy takes the differences of the cumulative kinds itself, stack by stack: tests/programs/scraped.go
does so with the google/pprof library, which the second test gets from Go's module proxy.

TEST_STRESS=1 makes it 60 seconds long, SCRAPE_SECONDS=N as long as one likes; then every
answer has to come whole within Parca's own time limit.  Else it is as short as shows that the
loops go round, and an answer may take its time on a machine that is busy with other tests.
"""
import contextlib
import http.client
import os
import re
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
import gotools  # noqa: E402
from harness import *  # noqa: E402,F403
from pprof_reader import Profile, fields  # noqa: E402

LONG = "SCRAPE_SECONDS" in os.environ or "TEST_STRESS" in os.environ
SECONDS = int(os.environ.get("SCRAPE_SECONDS", "60" if LONG else "12"))
INTERVAL = 3
LIMIT = 2 * INTERVAL  # of a whole answer: more than the interval, for the seconds of the profile
CONTROLLERS = ("backend-controller", "cluster-agent", "appstudio-controller")
# What Parca and Pyroscope ask for unless told otherwise, and the types by which they know it.
HEAP = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
WAITS = [("contentions", "count"), ("delay", "nanoseconds")]
PATHS = {
    "allocs": (HEAP, ("space", "bytes")),
    "block": (WAITS, ("contentions", "count")),
    "goroutine": ([("goroutine", "count")], ("goroutine", "count")),
    "mutex": (WAITS, ("contentions", "count")),
    "profile": ([("samples", "count"), ("cpu", "nanoseconds")], ("cpu", "nanoseconds")),
}
CUMULATIVE = ("alloc_objects", "alloc_space", "contentions", "delay")
LIBRARY = "github.com/google/pprof v0.0.0-20230207041349-798e818bf904"  # builds with Go 1.19
LIBRARY_SUMS = """%s h1:4/hN5RUoecvl+RmJRE2YxKWtnnQls6rQjjW5oV7qg2U=
%s/go.mod h1:uglQLonpP8qtYCYyzA+8c/9qtqgA3qsXGYqCPKARAFg=
""" % (LIBRARY, LIBRARY)
_scraped = []  # the first test's loops, for the second


class Loop(threading.Thread):
    """One path of one daemon, scraped until the time is over."""

    def __init__(self, d, name, kind, number, end):
        super().__init__(daemon=True)
        self.d, self.name_of, self.kind, self.end_at = d, name, kind, end
        self.offset = number * INTERVAL / (len(CONTROLLERS) * len(PATHS))  # not all at once
        self.path = "/debug/pprof/" + kind + ("?seconds=%d" % INTERVAL if kind == "profile" else "")
        self.answers, self.error = [], None

    def run(self):
        c = http.client.HTTPConnection(self.d.host, self.d.port, timeout=LIMIT if LONG else DEADLINE)
        try:
            at = time.monotonic() + self.offset
            while at < self.end_at or len(self.answers) < 2 and not LONG:
                time.sleep(max(0, at - time.monotonic()))
                self.answers.append(self.scrape(c))
                at = max(at + INTERVAL, time.monotonic())
        except Exception as e:  # noqa: BLE001 - told by the test
            self.error = e
        finally:
            c.close()

    def scrape(self, c):
        begin = time.monotonic()
        c.putrequest("GET", self.path, skip_accept_encoding=True)
        c.putheader("User-Agent", "conprof/test")
        c.endheaders()
        r = c.getresponse()
        body = r.read()
        return (r.status, {k.lower(): v for k, v in r.getheaders()}, body, time.monotonic() - begin)


def store_takes(raw, kind):
    """Parca's rules for what it stores, and Pyroscope's; returns the profile."""
    p = Profile(raw)
    types, period = PATHS[kind]
    equal(p.strings[0], "")
    equal(p.types, types)
    equal(tuple(p.strings[dict(fields(p.all[11][0]))[k]] for k in (1, 2)), period)
    need(not any("-" in t for t, _ in p.types))
    for what in p.mappings, p.locations, p.functions:
        equal([m[1] for m in what], list(range(1, len(what) + 1)), "ids in the order of the file")
    strings, functions = len(p.strings), len(p.functions)
    for m in p.mappings:
        need(max(m.get(5, 0), m.get(6, 0)) < strings, m)
    for f in p.functions:
        need(0 < f[2] < strings and max(f.get(3, 0), f.get(4, 0)) < strings and p.strings[f[2]], f)
    for at in p.locations:
        need(at.get(2, 0) <= len(p.mappings), at)
        need(at["lines"] and all(1 <= line[1] <= functions for line in at["lines"]), at)
    for stack, values, labels in p.samples:
        equal(len(values), len(types))
        need(stack and all(1 <= i <= len(p.locations) for i in stack), stack)
        need(all(0 < label[1] < strings for label in labels), labels)
    need(p.all[9][0] > 1 << 60, "time_nanos")
    # What has a duration is taken for a difference, and added up.
    equal(p.all.get(10, [0])[0] > 0, kind == "profile", "duration_nanos")
    return p


def value(p, name):
    at = [t for t, _ in p.types].index(name)
    return sum(values[at] for _, values, _ in p.samples)


def counts(p):
    """The cumulative values of each sample by where a scraper knows it: addresses and labels, no names."""
    columns = [n for n, (name, _) in enumerate(p.types) if name in CUMULATIVE]
    files = [(p.strings[m.get(5, 0)], m.get(2, 0)) for m in p.mappings]
    at = [(files[at[2] - 1] if at.get(2) else None, at.get(3, 0)) for at in p.locations]
    found = {}
    for stack, values, labels in p.samples:
        key = (tuple(at[i - 1] for i in stack), tuple(
            (p.strings[label[1]], p.strings[label.get(2, 0)], label.get(3, 0)) for label in labels))
        need(key not in found, "two samples of one stack")
        found[key] = [values[n] for n in columns]
    return found


def none_fell(before, after, what):
    """Each stack that was there is there still, under the same addresses, with as much at least."""
    for key, old in before.items():
        need(key in after, "%s: gone: %r" % (what, key))
        need(all(a <= b for a, b in zip(old, after[key])), "%s: %r to %r: %r" % (what, old, after[key], key))


def with_pprof(d, seconds, path):
    """go tool pprof's own window; False if there is none."""
    if not gotools.gos():
        return False
    r = run(gotools.tools("pprof")[0][1], "-proto", "-output=" + path, "-seconds=%d" % seconds,
            "-timeout=%d" % (seconds + 2 * DEADLINE), "http://%s:%d/debug/pprof/profile" % (d.host, d.port),
            env=dict(gotools.ENV, PPROF_TMPDIR=os.path.dirname(path)), timeout=seconds + 4 * DEADLINE)
    equal(r.returncode, 0, r.stderr)
    return True


def get(d, path, seconds):
    r = d.get("/debug/pprof/%s?seconds=%d" % (path, seconds), timeout=seconds + 2 * DEADLINE)
    equal(r.status, 200, path)
    return r.body


@test
def all_paths_of_three_daemons_are_scraped_for_good_while_a_person_takes_profiles():
    with contextlib.ExitStack() as stack:
        root = os.path.join(stack.enter_context(tempdir()), "root")
        # The load of scripts/demo
        p = subprocess.Popen([sys.executable, os.path.join(SRC, "scripts/demo-input"), root, "--files=2400",
                              "--applications=60", "--rate=40"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             text=True)
        stack.callback(p.wait)
        stack.callback(p.terminate)
        contains(p.stdout.readline(), " files in ")
        daemons = {}
        for name in CONTROLLERS:
            soak = ["--soak-time=500ms"] if name == "appstudio-controller" else []
            daemons[name] = stack.enter_context(daemon(
                "examples/" + name, "--root=" + root, "--enable-pprof", *soak, "--concurrent-syncs=2",
                "--rate-limiter-qps=1000", "--rate-limiter-bucket-size=1000", "--resync-period=2s",
                "--heap-profile-rate=4KiB", "--block-profile-rate=1us", "--mutex-profile-fraction=1"))
        end = time.monotonic() + SECONDS
        loops = [Loop(d, name, kind, number * len(PATHS) + k, end)
                 for number, (name, d) in enumerate(daemons.items()) for k, kind in enumerate(PATHS)]
        for loop in loops:
            loop.start()
        one = daemons[CONTROLLERS[0]]
        persons = {"profile": in_background(get, one, "profile", SECONDS // 2)}
        own = os.path.join(os.path.dirname(root), "own.pb.gz")
        persons["pprof"] = in_background(with_pprof, one, SECONDS // 3, own)
        persons["trace"] = in_background(get, one, "trace", SECONDS // 4)
        for loop in loops:
            loop.join(SECONDS + 2 * DEADLINE)
            need(not loop.is_alive(), "%s of %s still hangs" % (loop.kind, loop.name_of))
        long = Profile(persons["profile"].result())
        need(long.all[10][0] >= SECONDS // 2 * 10**9 and value(long, "cpu") > 0, "the person's profile")
        if persons["pprof"].result(SECONDS + 4 * DEADLINE):
            with open(own, "rb") as f:
                theirs = Profile(f.read())
            need(theirs.all[10][0] >= SECONDS // 3 * 10**9 and value(theirs, "cpu") > 0, "go tool pprof's profile")
        need(re.match(rb"go 1\.\d+ trace\0\0\0", persons["trace"].result()), "the person's trace")

    longest = 0
    for loop in loops:
        what = "%s of %s" % (loop.kind, loop.name_of)
        need(loop.error is None, "%s, after %d answers: %r" % (what, len(loop.answers), loop.error))
        need(len(loop.answers) >= (SECONDS // INTERVAL // 2), "%s: %d answers" % (what, len(loop.answers)))
        series, before = {}, {}
        for n, (status, headers, body, took) in enumerate(loop.answers):
            equal((status, headers["content-type"]), (200, "application/octet-stream"), what)
            need(took <= LIMIT or not LONG, "%s: answered after %.1f s" % (what, took))
            need("content-encoding" not in headers and body[:2] == b"\x1f\x8b", what)
            longest = max(longest, took - (INTERVAL if loop.kind == "profile" else 0))
            if not LONG and 0 < n < len(loop.answers) - 1:
                continue  # decoding takes longer than all the rest
            p = store_takes(body, loop.kind)
            for name, _ in p.types:
                series[name] = series.get(name, 0) + value(p, name)
            if p.types[0][0] in CUMULATIVE:
                before, earlier = counts(p), before
                none_fell(earlier, before, what)
        if loop.kind == "block":
            need(series["contentions"] > 0, "no waits of " + loop.name_of)
        for name in "cpu", "alloc_space", "goroutine":
            need(series.get(name, 1) > 0, "no %s of %s" % (name, loop.name_of))
    print("# %d answers, the slowest after %.0f ms (and its seconds)" % (
        sum(len(loop.answers) for loop in loops),        longest * 1000))
    _scraped.extend(loops)


def scraper(d):
    """tests/programs/scraped.go, built in d."""
    if not gotools.gos():
        raise Skip("no Go is here")
    version, go = gotools.gos()[0]
    shutil.copy(os.path.join(SRC, "tests/programs/scraped.go"), d)
    for name, text in ("go.mod", "module scraped\n\ngo 1.19\n\nrequire %s\n" % LIBRARY), ("go.sum", LIBRARY_SUMS):
        with open(os.path.join(d, name), "w") as f:
            f.write(text)
    env = dict(gotools.ENV, GOFLAGS="-mod=mod")
    r = run(go, "mod", "download", cwd=d, env=env, timeout=gotools.BUILDS)
    if r.returncode:
        raise Skip("the google/pprof library cannot be had: " + r.stderr.strip().replace("\n", " "))
    exe = os.path.join(d, "scraped")
    r = run(go, "build", "-o", exe, ".", cwd=d, env=env, timeout=gotools.BUILDS)
    equal((r.returncode, r.stderr), (0, ""), "go1.%d build" % version[1])
    return exe


@test
def differences_from_scrape_to_scrape_merged_are_the_difference_of_the_last_and_the_first():
    need(_scraped, "the test before has failed")
    with tempdir() as d:
        exe = scraper(d)
        totals = {}
        for loop in _scraped:
            paths = []
            for n, (_, _, body, _) in enumerate(loop.answers):
                paths.append(os.path.join(d, "%s-%s-%d.pb.gz" % (loop.name_of, loop.kind, n)))
                with open(paths[-1], "wb") as f:
                    f.write(body)
            r = run(exe, *paths)
            equal((r.returncode, r.stderr), (0, ""), "%s of %s: %s" % (loop.kind, loop.name_of, r.stdout))
            totals[loop.kind] = totals.get(loop.kind, 0) + int(r.stdout)
        for kind in "allocs", "block", "goroutine", "profile":
            need(totals[kind] > 0, "nothing of %s: %r" % (kind, totals))
        print("# " + ", ".join("%s %d" % t for t in sorted(totals.items())))


main()
