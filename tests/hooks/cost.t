#!/usr/bin/env python3
"""cost.t - instructions that the hooks add to a malloc/free pair, to a lock and to the start of a program, counted."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
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


def in_programs(count):
    """count(plain, linked), both built as a daemon is: optimised, position independent, lazily bound."""
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    if os.uname().machine != "x86_64":
        raise Skip("the bars are x86-64's")
    with tempdir() as d:
        flags = ["-O2", "-fomit-frame-pointer"]
        return count(build(d, "plain", "hooks_cost.c", "foreign", flags), build(d, "linked", "hooks_cost.c", "linked", flags))


def judge(plain, rows):
    """Rows of a name, what is counted, and its bar."""
    print("# without hooks: %.2f instructions" % plain)
    for name, counted, bar in rows:
        print("# %s: %.2f, at most %.2f" % (name, counted, bar))
    for name, counted, bar in rows:
        need(counted <= bar + 0.01, "%s: %.2f instructions, above %.2f" % (name, counted, bar))


@test
def a_pair_costs_few_instructions_more():
    def count(plain, linked):
        agent, base = preload_env(core=True), per_pair(plain)
        return base, [("linked, off", per_pair(linked), base + 6),
                      ("linked, on", per_pair(linked, NO_SAMPLE), base + 8),
                      ("linked, on, with its samples", per_pair(linked, RATE), base + 10),
                      ("preloaded, off", per_pair(plain, env=agent), base + 15),
                      ("preloaded, on", per_pair(plain, NO_SAMPLE, agent), base + 11),
                      ("preloaded, on, with its samples", per_pair(plain, RATE, agent), base + 13)]
    judge(*in_programs(count))


@test
def an_uncontended_lock_costs_no_more_instructions_while_waits_are_seen():
    def count(plain, linked):
        agent, base = preload_env(core=True), per_pair(plain, more=["locks"])
        return base, [("linked, off", per_pair(linked, more=["locks"]), base + 6),
                      ("linked, on", per_pair(linked, "1", more=["locks"]), base),
                      ("preloaded, off", per_pair(plain, env=agent, more=["locks"]), base + 9),
                      ("preloaded, on", per_pair(plain, "1", agent, more=["locks"]), base)]
    judge(*in_programs(count))


@test
def a_system_call_costs_one_branch_while_no_trace_is_open():
    def count(plain, linked):
        base = per_pair(plain, more=["calls"])
        return base, [("linked", per_pair(linked, more=["calls"]), base + 3),
                      ("preloaded", per_pair(plain, env=preload_env(core=True), more=["calls"]), base + 4)]
    judge(*in_programs(count))


@test
def a_program_that_asks_for_nothing_starts_with_few_instructions_more():
    def count(plain, _):  # 96,000; with the core and its libraries bound for nobody 840,000
        base, off = (instructions(plain, 0, "-", env) for env in ({}, preload_env()))
        return base, [("preloaded, off", off, base + 150000)]
    judge(*in_programs(count))


main()
