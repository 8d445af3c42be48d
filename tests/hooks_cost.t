#!/usr/bin/env python3
"""hooks_cost.t - instructions that the hooks add to a malloc/free pair, counted."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("top_srcdir", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests"))
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403

FEW, MANY = 2000, 202000
RATE = str(512 << 10)
NO_SAMPLE = str(1 << 40)  # the same path through the hooks, and never a sample


def instructions(exe, n, rate, env, *more):
    full = dict(os.environ)
    full.update(env)
    r = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", exe, str(n), rate, *more],
                       capture_output=True, text=True, env=full, timeout=300)
    if "debuginfo reader" in r.stderr:
        raise Skip("this valgrind cannot read what this compiler writes")
    need(r.returncode == 0, r.stderr)
    return int(re.search(r"Collected : (\d+)", r.stderr).group(1))


def per_pair(exe, rate="-", env={}, more=()):
    """From two counts, so that start and end of the process do not matter."""
    return (instructions(exe, MANY, rate, env, *more) - instructions(exe, FEW, rate, env, *more)) / (MANY - FEW)


@test
def a_pair_costs_few_instructions_more():
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    if os.uname().machine != "x86_64":
        raise Skip("the bars are x86-64's")
    with tempdir() as d:
        # As a daemon is built: optimised, position independent, lazily bound.
        flags = ["-O2", "-fomit-frame-pointer"]
        plain = per_pair(build(d, "plain", "hooks_cost.c", "foreign", flags))
        foreign = os.path.join(d, "plain")
        linked = build(d, "linked", "hooks_cost.c", "linked", flags)
        rows = [("linked, off", per_pair(linked) - plain, 6),
                ("linked, on", per_pair(linked, NO_SAMPLE) - plain, 8),
                ("linked, on, with its samples", per_pair(linked, RATE) - plain, 9),
                ("preloaded, off", per_pair(foreign, env=preload_env()) - plain, 9),
                ("preloaded, on", per_pair(foreign, NO_SAMPLE, preload_env()) - plain, 11),
                ("preloaded, on, with its samples", per_pair(foreign, RATE, preload_env()) - plain, 12)]
    print("# a pair without hooks: %.2f instructions" % plain)
    for name, added, bar in rows:
        print("# %s: %+.2f, at most %d" % (name, added, bar))
    for name, added, bar in rows:
        need(added <= bar + 0.01, "%s: %.2f instructions more than without, above %d" % (name, added, bar))


@test
def an_uncontended_lock_costs_few_instructions():
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    if os.uname().machine != "x86_64":
        raise Skip("the bars are x86-64's")
    with tempdir() as d:
        flags = ["-O2", "-fomit-frame-pointer"]
        plain = per_pair(build(d, "plain", "hooks_cost.c", "foreign", flags), more=["locks"])
        linked = build(d, "linked", "hooks_cost.c", "linked", flags)
        rows = [("linked, off", per_pair(linked, more=["locks"]), plain + 6),
                ("linked, on", per_pair(linked, "1", more=["locks"]), 85),
                ("preloaded, off", per_pair(os.path.join(d, "plain"), env=preload_env(), more=["locks"]), plain + 9),
                ("preloaded, on", per_pair(os.path.join(d, "plain"), "1", preload_env(), more=["locks"]), 85)]
    print("# lock and unlock without hooks: %.2f instructions" % plain)
    for name, count, bar in rows:
        print("# %s: %.2f, at most %.2f" % (name, count, bar))
    for name, count, bar in rows:
        need(count <= bar + 0.01, "%s: %.2f instructions, above %.2f" % (name, count, bar))


@test
def a_system_call_costs_one_branch_while_no_trace_is_open():
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    if os.uname().machine != "x86_64":
        raise Skip("the bars are x86-64's")
    with tempdir() as d:
        flags = ["-O2", "-fomit-frame-pointer"]
        plain = per_pair(build(d, "plain", "hooks_cost.c", "foreign", flags), more=["calls"])
        rows = [("linked", per_pair(build(d, "linked", "hooks_cost.c", "linked", flags), more=["calls"]), 3),
                ("preloaded", per_pair(os.path.join(d, "plain"), env=preload_env(), more=["calls"]), 4)]
    for name, count, more in rows:
        print("# read, %s: %.2f instructions, %.2f without hooks" % (name, count, plain))
    for name, count, more in rows:
        need(count - plain <= more + 0.01, "%s: %.2f instructions, %.2f without" % (name, count, plain))


main()
