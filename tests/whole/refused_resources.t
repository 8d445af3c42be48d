#!/usr/bin/env python3
"""refused_resources.t - each block, mapping, descriptor, thread and timer that we ask for is refused
once, in turn, while the profiler starts and while profiles are taken (tests/programs/refused_resources.c).

What must hold: no crash and no hang; a start is refused with a sentence or serves; whoever
asks again is answered well, or the index says what is off; and after a stop nothing is left
that would not be there otherwise.

TEST_STRESS=1 tries every number, else so many by chance; FAULTS_SEED=N repeats a run, and
FAULTS="map 17" tries one.
"""
import atexit
import http.client
import os
import random
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from pprof_reader import Profile  # noqa: E402

KINDS = ("block", "map", "descriptor", "thread", "timer")
PATHS = ("", "heap", "mutex", "goroutine", "goroutine?debug=2", "profile?seconds=1", "trace?seconds=0.2", "fgprof?seconds=1",
         "heap?format=top")
TRIES = 2  # of each kind
LATE = 10  # seconds until a busy machine has let the program do something
ROUNDS = 3  # until it has come to the call
AT_ONCE = 4
work = tempfile.mkdtemp(prefix="component-faults-")
atexit.register(shutil.rmtree, work, True)
shared = {}


class Faulty:
    """The program, one of whose calls fails."""

    def __init__(self, kind="", number=0):
        argv = [shared["exe"]] + ([kind, str(number)] if kind else [])
        self.said = open(os.path.join(work, "%s-%d" % (kind, number)), "w+b")
        self.p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True, bufsize=1)
        equal(self.p.stdout.readline(), "ready\n")
        self.descriptors, self.threads = descriptors(self.p.pid), sorted(threads(self.p.pid))

    def ask(self, line):
        """A command's one line.  One that hangs ends by whoever stops the test."""
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        reply = in_background(self.p.stdout.readline).result()
        if not reply:
            raise AssertionError("it ended at %r, with %r" % (line, self.p.wait(DEADLINE)))
        return reply.rstrip()

    def report(self):
        words = self.ask("report").split()
        return {k: int(v) for k, v in zip(words[::2], words[1::2])}

    def failed(self):
        """Where the call was."""
        self.said.seek(0)
        m = re.search(r"^failed (\S+) (\S+)\+0x(\w+)$", self.said.read().decode("utf-8", "replace"), re.M)
        if not m:
            return ""
        r = run("addr2line", "-fpsi", "-e", m[2], "0x" + m[3])
        return "%s in %s" % (m[1], r.stdout.strip().replace("\n", ", "))

    def start(self):
        """True when it serves."""
        reply = self.ask("start")
        m = re.match(r"serves http://([^:]+):(\d+)/", reply)
        if m:
            self.address = (m[1], int(m[2]))
            return True
        need(re.match(r"refused: \S.{10,}", reply), reply)
        return False

    def stop(self):
        equal(self.ask("stop"), "stopped 0")
        poll(lambda: sorted(threads(self.p.pid)) == self.threads, "our threads to be gone")
        poll(lambda: descriptors(self.p.pid) == self.descriptors, "our descriptors to be closed")

    def get(self, path):
        d = Daemon.__new__(Daemon)
        d.host, d.port = self.address
        return d.get("/debug/pprof/" + path, timeout=2 * DEADLINE)

    def end(self):
        self.p.stdin.close()
        try:
            return self.p.wait(DEADLINE)
        finally:
            if self.p.poll() is None:
                self.p.kill()
                self.p.wait()
            self.p.stdout.close()
            self.said.close()


def judged(path, r):
    """What is wrong with an answer, or ""."""
    if r.status != 200:
        return "%d %s" % (r.status, r.text.strip())
    if path.startswith("trace"):
        return "" if re.match(rb"go 1\.\d+ trace\0\0\0", r.body) else "no trace"
    if "debug" in path or "format" in path or not path:
        need(r.body, "nothing")
        return "" if path else re.sub("<[^>]*>", "", r.text)
    p = Profile(r.body)
    return "" if sum(v[0] for _, v, _ in p.samples) else "no sample"


def taken(f, lenient):
    """Asks for everything; what came of it.  LENIENT: the call that fails may be one of these."""
    def one(path):
        try:
            r = f.get(path)
        except OSError as e:
            need(lenient, "%s: %r" % (path, e))
            return "nothing"
        except http.client.HTTPException as e:
            need(lenient, "%s: %r" % (path, e))
            return "half of it"
        need(r.status == 200 or len(r.text) > 10, "%s: %d without a sentence" % (path, r.status))
        need(r.status == 200 or lenient or r.status == 503, "%s: %d %s" % (path, r.status, r.text))
        what = judged(path, r)
        end = time.monotonic() + LATE
        while what == "no sample" and not lenient and time.monotonic() < end:
            what = judged(path, f.get(path))
        return what
    with ThreadPoolExecutor(len(PATHS)) as pool:
        return dict(zip(PATHS, pool.map(one, PATHS)))


def tried(kind="", number=0):
    """Starts, asks for everything twice, stops; once more; what is left then.  AssertionError with what was wrong."""
    f = Faulty(kind, number)
    try:
        if not f.start():
            f.stop()
            need(f.start(), "it is refused for good")
        for _ in range(ROUNDS):
            taken(f, bool(kind))
            if not kind or f.report()["failed"]:
                break
        again = taken(f, kind and not f.report()["failed"])
        bad = {path: what for path, what in again.items() if path and what}
        shared.setdefault("index", again[""])
        # What is wrong for good, the index has to say.
        notes = set(again[""].splitlines()) - set(shared["index"].splitlines())
        need(not bad or any(re.search(r"\boff\b|cannot|not |no ", note) for note in notes), "%r, and the index: %s" % (bad, again[""]))
        f.stop()
        need(f.start(), "it does not start again")
        bad = {path: what for path, what in taken(f, False).items() if path and what}
        equal(bad, {}, "after a stop and a start")
        f.stop()
        return f.report()
    except Exception as e:  # noqa: BLE001 - told with the place of the call
        raise AssertionError("%s %d (%s): %s" % (kind, number, f.failed(), e))
    finally:
        status = f.end()
        if sys.exc_info()[0] is None:
            equal(status, 0, "%s %d: exit status" % (kind, number))


def clean():
    """What a run without a fault counts and leaves: the most of some."""
    if "clean" not in shared:
        runs = [tried() for _ in range(2)]
        shared["clean"] = {k: max(r[k] for r in runs) for k in runs[0]}
        print("# without a fault: %r" % shared["clean"])
    return shared["clean"]


def case(kind, number):
    try:
        left = tried(kind, number)
        most = clean()
        need(left["blocks"] <= most["blocks"] and left["bytes"] <= most["bytes"] + (1 << 16), "%s %d: left are %r, else %r" % (
            kind, number, left, most))
        return left["failed"], ""
    except Exception as e:  # noqa: BLE001 - all of them are told
        return 0, str(e)


def all_of(kind):
    if "exe" not in shared:
        shared["exe"] = build(work, "faults", "refused_resources.c", "linked", flags=["-Wno-unused-value"])
    most = clean()[kind] // 2  # in its first life, of two
    one = os.environ.get("FAULTS", "").split()
    seed = int(os.environ.get("FAULTS_SEED", random.randrange(1 << 30)))
    numbers = list(range(1, most + 1))
    if one:
        numbers = [int(one[1])] if one[0] == kind else []
    elif not os.environ.get("TEST_STRESS") and most > TRIES:
        numbers = sorted(random.Random(seed).sample(numbers, TRIES))
    print("# FAULTS_SEED=%d: %s %s" % (seed, kind, numbers if len(numbers) < 50 else "1 to %d" % most), flush=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda n: case(kind, n), numbers))
    wrong = [what for _, what in found if what]
    need(not wrong, "%d of %d:\n%s" % (len(wrong), len(numbers), "\n".join(wrong)))
    need(not numbers or one or sum(n for n, _ in found), "no call failed")


@test
def a_block_that_is_refused_does_no_harm():
    all_of("block")


@test
def a_mapping_that_is_refused_does_no_harm():
    all_of("map")


@test
def a_descriptor_that_is_refused_does_no_harm():
    all_of("descriptor")


@test
def a_thread_that_is_refused_does_no_harm():
    all_of("thread")


@test
def a_timer_that_is_refused_does_no_harm():
    all_of("timer")


main()
