#!/usr/bin/env python3
"""thousand_blocked.t - a thousand blocked threads and a hundred dumps that none of them notices;
see tests/programs/threads_blocked.c."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402, F403

THREADS = 1000
# Sanitizers start threads of their own, and take far longer.
BUILDS = (("tests/programs/threads_blocked", 99), ("tests/programs/threads_blocked_fp", 90))


def blocked(name, *arguments):
    p = run(program(name), *[str(a) for a in arguments])
    equal(p.returncode, 0, p.stderr)
    print("# %s: %s" % (name, p.stdout.replace("\n", ", ")))
    return {k: int(v) for k, v in (line.split() for line in p.stdout.splitlines())}


@test
def a_thousand_blocked_threads_do_not_notice_100_dumps():
    for name, percent in BUILDS:
        f = blocked(name, THREADS, 100)
        need(f["threads"] >= THREADS + 1, f)
        need(f["quiet"] * 100 >= THREADS * percent, "%s: %s" % (name, f))
        equal(f["silent"], 0)
        need(f["whole"] >= f["threads"] - 1, "stacks without a root: %s" % f)
        equal((f["same_count"], f["different_stacks"]), (100, 0), name)
        if f["signals"] == 0:
            equal((f["interrupted"], f["woken"]), (0, 0), name)
        equal(f["extra_switches"], 0, name)


@test
def quiet_stacks_are_those_that_a_signal_shows_which_is_how_it_works_after_a_setuid():
    if os.geteuid() != 0:
        raise Skip("only root can give up rights")
    for name, _ in BUILDS:
        f = blocked(name, THREADS, 1, "setuid")
        need("denied" not in f, "the rights could not be given up")
        need(f["signalled"] >= THREADS, f)
        need(f["whole"] >= THREADS, f)
        # the library's own thread takes no signal: it has a stack before, and none after
        need(f["different_stacks"] <= 1, "%s: %s" % (name, f))
        need(f["silent"] <= 1, f)


@test
def libunwind_walks_the_same_stacks_of_blocked_threads_as_the_tables():
    for name, _ in BUILDS:
        f = blocked(name, 300, 1, "libunwind")
        if "missing" in f:
            raise Skip("libunwind is not installed, or of no use on this machine")
        need(f["by_libunwind"] >= 297, f)
        need(f["whole"] >= f["threads"] - 1, "stacks without a root: %s" % f)
        equal(f["different_stacks"], 0, name)
        equal((f["signals"], f["extra_switches"]), (0, 0), name)


main()
