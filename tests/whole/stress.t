#!/usr/bin/env python3
"""stress.t - never the daemon's problem: a program that does all at once what profilers
have died of (tests/programs/stress.c), profiled in every way at once.

STRESS_SECONDS is how long each of the variants runs; without it, seconds.
"""
import atexit
import functools
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from stressing import *  # noqa: E402,F403
import soak  # noqa: E402

SECONDS = int(os.environ.get("STRESS_SECONDS", "300" if os.environ.get("TEST_STRESS") else "14"))


def go(exe, *args, env=None):
    """Runs it to its end, profiled; the index page."""
    full = dict(os.environ)
    full.update(env or {})
    full.update(SANITIZED)
    clients, index = None, ""
    v = Victim(exe, SECONDS, args, full)
    try:
        m = v.wait_line("^url http://([^:/]+):([0-9]+)/", PATIENCE)
        if m:
            address = (m.group(1), int(m.group(2)))
            index = re.sub(r"<[^>]*>", "", ask(address, PPROF).text)
            clients = Clients(address)
            m = v.wait_line("^(ending|hung)$", SECONDS + PATIENCE)
            if m and m.group(1) == "hung":
                print("# " + stacks_of(v.p.pid).replace("\n", "\n# "))
        if clients and m:
            clients.end()
    finally:
        if clients:
            clients.over.set()
        status = v.end()
    out = v.output()
    need(status == 0 and out.endswith("fine\n"), "it ended with %r\n%s" % (status, out[-12000:]))
    need(not clients.wrong, "\n".join(clients.wrong[:20]))
    print("# %s; %d requests" % (out[out.index("ending\n") + 7:].replace("\nfine\n", "").replace("\n", ", "),
                                 sum(clients.counts.values())), flush=True)
    return index


@functools.lru_cache(maxsize=None)
def linked():
    d = tempfile.mkdtemp(prefix="component-test-")
    atexit.register(shutil.rmtree, d, True)
    return built(d, "linked")


@test
def a_program_with_the_hooks_linked_in_survives_everything_at_once():
    index = go(linked())
    need("heap sampling is off" not in index, index)


@test
def so_does_one_whose_stacks_are_walked_by_frame_pointers():
    contains(go(linked(), "frame-pointer"), "unwinder: frame-pointer")


@test
def so_does_one_that_the_agent_was_preloaded_into():
    with tempdir() as d:
        index = go(built(d, "foreign"), env=dict(preload_env(), PPROF_BIND_ADDRESS="127.0.0.1:0"))
        need("heap sampling is off" not in index, index)


@test
def so_does_one_under_address_sanitizer_whose_blocks_are_sampled_as_well():
    need_sanitizer("address")
    with tempdir() as d:
        index = go(built(d, "linked", "address"))
        need("heap sampling" not in index, index)


@test
def so_does_one_under_thread_sanitizer_whose_blocks_are_sampled_as_well():
    need_sanitizer("thread")
    with tempdir() as d:
        index = go(built(d, "linked", "thread"))
        need("heap sampling" not in index, index)


@test
def a_soak_of_seconds_has_its_lines_and_nothing_is_wrong():
    hours = "0.02" if os.environ.get("TEST_STRESS") else "0.002"
    r = run(sys.executable, os.path.join(SRC, "tests/lib/soak.py"), hours, "--every=2", "--crowd=200", "--load=10", "--window=1",
            "--program=" + linked(), timeout=4 * PATIENCE)
    equal(r.returncode, 0, r.stdout + r.stderr)
    contains(r.stdout, "nothing grew, and nothing was wrong\n")
    rows = [line.split() for line in r.stdout.splitlines() if re.match(" +\\d", line)]
    need(rows and all(len(row) == len(soak.Watcher.COLUMNS) and int(row[1]) > 1000 for row in rows), r.stdout)
    need(int(rows[-1][6]) > 0, "no answers:\n" + r.stdout)


@test
def what_grows_for_good_is_told_from_what_comes_and_goes():
    part, much = soak.SLACK["rss KiB"]
    flat = [20000 + (i * 7919) % 9000 for i in range(200)]
    need(not soak.grows(flat, part, much))
    need(not soak.grows([10000 + 40000 * min(i, 30) // 30 + v for i, v in enumerate(flat)], part, much), "it had to warm up")
    need(soak.grows([v + 200 * i for i, v in enumerate(flat)], part, much), "40 MB on top")
    need(soak.grows([10 + i // 20 for i in range(200)], *soak.SLACK["descriptors"]), "a descriptor each 20 looks")
    need(not soak.grows([10 + i for i in range(10)], *soak.SLACK["descriptors"]), "ten looks are no run")


main()
