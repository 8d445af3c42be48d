#!/usr/bin/env python3
"""fork_handlers.t - a program's own fork handlers may allocate, lock and take profiles: ours run
inside of them (libcomponent/base/fork.h)."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from pprof_reader import Profile  # noqa: E402

FORKS = 50


@test
def fork_handlers_of_the_program_take_profiles():
    with tempdir() as d:
        exe = build(d, "fork_handlers", "fork_handlers.c", "linked")
        written = os.path.join(d, "written")
        os.mkdir(written)
        r = run(exe, written, str(FORKS))
        equal((r.returncode, r.stdout, r.stderr), (0, "0 failed\n", ""))
        for who in ("prepare", "parent", "child"):
            for kind in ("heap", "goroutine"):
                names = [n for n in os.listdir(written) if n.startswith("%s-%s-" % (who, kind))]
                equal(len(names), FORKS // 5, who + " " + kind)
                for name in names:
                    with open(os.path.join(written, name), "rb") as f:
                        p = Profile(f.read())
                    # A child has counted nothing yet.
                    need(p.samples or (who, kind) == ("child", "heap"), name + " has no sample")


main()
