"""at_work.py - a program that works while its profiles are taken: all kinds of them, where the CPU's samples lie, and
whether they lie where one beside it is seen from outside.

Tests: tests/whole/strangers.t, tests/componentctl/servers.t, tests/components/agent.t.
"""
import contextlib
import http.client
import math
import os
import re

from harness import DEADLINE, equal, in_background, need, poll
from pprof_reader import Profile

SECONDS = 10 if os.environ.get("TEST_STRESS") else 1
PROTO = ("fgprof?seconds=1", "goroutine", "heap", "allocs", "mmap", "mutex", "block", "threadcreate")
OTHERS = ("trace?seconds=1", "goroutine?debug=2", "threads?debug=1", "cmdline", "")
ENOUGH = 100
TOP = 5
ROOM = 0.05  # of a share: what hooks take is seen as their callers', or as theirs
KNOWN = 0.99
LOST = 0.05


def asked(port, path):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    with contextlib.closing(c):
        c.request("GET", "/debug/pprof/" + path)
        r = c.getresponse()
        body = r.read()
        equal(r.status, 200, "%s: %s" % (path, body[:300]))
        return body


class Leaves:
    """Where the samples of CPU profiles were taken: how many there are, how many of them in a file or the kernel's page,
    how many in each function, and at which addresses the others; beside them, how many have no place, and how many are lost
    in one way or another.  whole: functions whose time is not told apart further."""

    def __init__(self, whole=()):
        self.total, self.known, self.placeless, self.lost, self.functions, self.strays, self.whole = 0, 0, 0, 0, {}, {}, whole

    def add(self, raw):
        p = Profile(raw)
        files = {m[1]: p.strings[m.get(5, 0)] for m in p.mappings}
        for stack, values, _ in p.samples:
            leaf, names, count = p.locations[stack[0] - 1], p.stack(stack), values[0]
            if names[:1] == ["[end of thread]"]:
                self.placeless += count  # time whose place is not known, said as such
                continue
            if names and names[0].startswith("[") and names[0].endswith("]"):
                self.lost += count  # "[lost samples]" and its like, but not "[vdso]+0x123"
                continue
            self.total += count
            if not files.get(leaf.get(2)):
                self.strays[leaf[3]] = self.strays.get(leaf[3], 0) + count
                continue
            self.known += count
            for f in [n for n in names if n in self.whole][:1] or names[:1]:
                self.functions[f] = self.functions.get(f, 0) + count

    def generated(self, pid):
        """How many are in what the program has made executable itself."""
        with open("/proc/%d/maps" % pid) as f:
            made = [tuple(int(n, 16) for n in l.split()[0].split("-")) for l in f if re.match(r"\S+ ..x\S+ \S+ \S+ 0 *(/dev/zero.*)?$", l)]
        return sum(n for address, n in self.strays.items() if any(a <= address < b for a, b in made))

    def hottest(self, count):
        return sorted(self.functions, key=self.functions.get, reverse=True)[:count]

    def __str__(self):
        named = sum(n for f, n in self.functions.items() if "+0x" not in f)
        return "%d of %d leaf samples in known objects (%.1f %%), %.0f %% of these by name, %d more without a place, %d lost" % (
            self.known, self.total, 100 * self.known / max(self.total, 1), 100 * named / max(self.known, 1), self.placeless, self.lost)


def differing(inside, outside, room):
    """A function of the hottest of either whose share in the other is another, by more than three standard deviations of
    what so few samples can tell, and room."""
    for f in dict.fromkeys(inside.hottest(TOP) + outside.hottest(TOP)):
        a, b = inside.functions.get(f, 0), outside.functions.get(f, 0)
        p = (a + b) / (inside.total + outside.total)
        if abs(a / inside.total - b / outside.total) > room + 3 * math.sqrt(p * (1 - p) * (1 / inside.total + 1 / outside.total)):
            return f, a / inside.total, b / outside.total
    return None


def compared(name, window_of, beside_of, pid_of, whole=(), room=ROOM, enough=ENOUGH):
    """window_of gives a profile of one program, beside_of at the same time one of its like as it is seen from outside, None
    where nothing is; pid_of, the process of the first: all but what is in code that it made lies in known objects, and few
    samples are lost."""
    inside, outside, last = Leaves(whole), Leaves(whole), None

    def window():
        nonlocal last
        other = in_background(beside_of) if beside_of else None
        inside.add(window_of())
        if other:
            outside.add(other.result())
        last = differing(inside, outside, room) if inside.total and outside.total else None
        # A crowded machine loses some for a while.
        return inside.total >= enough and inside.lost <= LOST * (inside.total + inside.lost) and (
            not beside_of or outside.total >= enough and last is None)
    try:
        poll(window, "samples of %s, alike" % name, 4 * DEADLINE)
    except AssertionError as e:
        raise AssertionError("%s: %r of %d and %d; %d lost" % (e, last, inside.total, outside.total, inside.lost))
    print("# %s: %s; %s" % (name, inside, ", ".join("%s %.0f %%" % (f, 100 * inside.functions[f] / inside.total)
                                                    for f in inside.hottest(TOP))))
    need(inside.functions, "no function of %s has a name" % name)
    need(inside.known >= KNOWN * (inside.total - inside.generated(pid_of())), str(inside))
