#!/usr/bin/env python3
"""program_signals.t - signals that a program blocks, resets, waits for, or takes on a small stack, while it is profiled."""
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from at_work import asked  # noqa: E402
from pprof_reader import Profile  # noqa: E402

AGENT = os.path.exists(os.path.join(BUILD, "components/preload/libcomponent-preload.so"))
STRICT = "-U_GNU_SOURCE", "-std=c99", "-D_XOPEN_SOURCE=700"  # signal() is __sysv_signal() there
_dir = tempdir()
WHERE = _dir.__enter__()
EXE = {}
MODES = ("linked", "agent") if AGENT else ("linked",)


def exe(mode, flags):
    name = "masks-%s%d" % (mode, len(flags))
    if name not in EXE:
        EXE[name] = build(WHERE, name, "program_signals.c", mode, flags)
    return EXE[name]


def outcome(case, mode="linked", function=None, flags=()):
    """It runs to its end and finds nothing wrong; its last profile, if there is one.  A busy machine may give it no time for
    a while: it tries again until there is enough in the profile, most of it function's if there is one.  mode "agent" is a
    foreign program under it."""
    agent = mode == "agent"
    env, port, took = dict(preload_env(), PPROF_BIND_ADDRESS="127.0.0.1:0") if agent else {}, None, 1
    with tempdir() as d, open(os.path.join(d, "err"), "w+") as err:
        said, profile, begun = "", None, time.monotonic()
        with started([exe("foreign" if agent else mode, flags), case], cwd=d, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     stderr=err, text=True, env=dict(os.environ, **env)) as p:
            watch = threading.Timer(240, p.kill)
            watch.daemon = True
            watch.start()
            for line in p.stdout:
                if line == "start\n":
                    ports = listens(p.pid)
                    equal(len(ports), agent, ports)
                    port = ports[0] if agent else None
                    p.stdin.write("go\n")
                    p.stdin.flush()
                    continue
                if line != "profile\n":
                    said += line
                    continue
                if agent:
                    profile = Profile(asked(port, "profile?seconds=%d" % took))
                    took = min(2 * took, 16)
                else:
                    profile = Profile(open(os.path.join(d, "profile"), "rb").read())
                enough = seconds(profile) > 0.1 and (not function or mostly(profile, function))
                p.stdin.write("enough\n" if enough or time.monotonic() - begun > 120 else "again\n")
                p.stdin.flush()
            p.wait()
            watch.cancel()
        err.seek(0)
        equal(p.returncode, 0, "%s, %s: %s%s" % (case, mode, said[-2000:], err.read()[-2000:]))
        equal(said, "done\n", case)
        return profile


def seconds(profile):
    return sum(values[1] for _, values, _ in profile.samples) / 1e9


def mostly(profile, function):
    """Is more than half of the CPU time that function's?"""
    seen = sum(values[0] for stack, values, _ in profile.samples if function in profile.stack(stack))
    return seen * 2 > sum(values[0] for _, values, _ in profile.samples)


@test
def a_thread_that_blocks_every_signal_has_a_cpu_profile():
    for case in "blocked", "blocked-before":
        p = outcome(case, function="compute_with_all_blocked")
        said = "\n".join(p.comments)
        need(mostly(p, "compute_with_all_blocked"), case + ":\n" + said)
        need("they block" not in said, said)


@test
def masks_are_reported_as_they_were_set():
    outcome("compare", "foreign")
    for mode in MODES:
        outcome("compare", mode)


@test
def a_program_that_resets_every_signal_lives_and_sees_them_reset():
    for mode in MODES:
        for flags in (), STRICT:
            p = outcome("reset", mode, "compute_until_enough", flags)
            need(mostly(p, "compute_until_enough"), "\n".join(p.comments))


@test
def a_program_that_takes_the_profilers_signal_gets_none_of_the_profilers_from_then_on():
    for mode in MODES:
        for case, flags in ("taken", ()), ("taken-once", ()), ("taken-by-signal", ()), ("taken-by-signal", STRICT):
            p = outcome(case, mode, "compute_until_enough", flags)
            need(mostly(p, "compute_until_enough"), "\n".join(p.comments))
            need(any(c.startswith("signal: SIGRTMAX") for c in p.comments), p.comments)


@test
def a_program_that_asks_for_the_handler_of_the_profilers_signal_finds_none_and_may_bring_that_back():
    for mode in MODES:
        p = outcome("asked", mode, "compute_until_enough")
        need(mostly(p, "compute_until_enough"), "\n".join(p.comments))
        need("signal: SIGPROF" in p.comments, p.comments)


@test
def a_handler_on_a_small_alternate_stack_is_not_interrupted():
    for mode in MODES:
        outcome("alternate", mode)
    outcome("alternate-before")


@test
def signals_that_a_program_waits_for_are_its_own():
    for case in "urg", "prof":
        p = outcome(case, function="compute_until_enough")
        need(mostly(p, "compute_until_enough"), "\n".join(p.comments))


try:
    main()
finally:
    _dir.__exit__(None, None, None)
