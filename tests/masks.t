#!/usr/bin/env python3
"""masks.t - signals that a program blocks, resets, waits for, or takes on a small stack, while it is profiled."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("top_srcdir", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests"))
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from pprof_reader import Profile  # noqa: E402

AGENT = os.path.join(BUILD, "components/preload/libcomponent-preload.so")
_dir = tempdir()
WHERE = _dir.__enter__()
EXE = {}


def exe(mode):
    if mode not in EXE:
        EXE[mode] = build(WHERE, "masks-" + mode, "masks.c", mode)
    return EXE[mode]


def outcome(case, mode="linked", **env):
    """It ran to its end and found nothing wrong; its profile, if it wrote one."""
    with tempdir() as d:
        r = subprocess.run([exe(mode), case], cwd=d, capture_output=True, text=True, timeout=120, env=dict(os.environ, **env))
        equal(r.returncode, 0, "%s, %s: %s%s" % (case, mode, r.stdout[-2000:], r.stderr[-2000:]))
        equal(r.stdout, "done\n", case)
        path = os.path.join(d, "profile")
        return Profile(open(path, "rb").read()) if os.path.exists(path) else None


def mostly(profile, function):
    """Is more than half of the CPU time that function's?"""
    seen = sum(values[0] for stack, values, _ in profile.samples if function in profile.stack(stack))
    return seen * 2 > sum(values[0] for _, values, _ in profile.samples)


@test
def a_thread_that_blocks_every_signal_has_a_cpu_profile():
    for case in "blocked", "blocked-before":
        p = outcome(case)
        said = "\n".join(p.comments)
        need(mostly(p, "compute_with_all_blocked"), case + ":\n" + said)
        need("they block" not in said, said)


@test
def masks_are_reported_as_they_were_set():
    outcome("compare", "foreign")
    outcome("compare")
    outcome("compare", "foreign", LD_PRELOAD=AGENT, LD_LIBRARY_PATH=LIBS, COMPONENT_PPROF_BIND_ADDRESS="127.0.0.1:0")


@test
def a_program_that_resets_every_signal_lives_and_sees_them_reset():
    p = outcome("reset")
    need(mostly(p, "compute_until_enough"), "\n".join(p.comments))


@test
def a_handler_on_a_small_alternate_stack_is_not_interrupted():
    outcome("alternate")
    outcome("alternate-before")


@test
def signals_that_a_program_waits_for_are_its_own():
    for case in "urg", "prof":
        p = outcome(case)
        need(mostly(p, "compute_until_enough"), "\n".join(p.comments))


try:
    main()
finally:
    _dir.__exit__(None, None, None)
