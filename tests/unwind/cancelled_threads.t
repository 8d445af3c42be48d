#!/usr/bin/env python3
"""cancelled_threads.t - threads that are cancelled, by force and inside our code, take nothing of ours along."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from pprof_reader import Profile  # noqa: E402

SECONDS = "60" if os.environ.get("TEST_STRESS") else "1"


def number(text, key):
    return int(re.search(r"^%s: (\d+)" % key, text, re.M).group(1))


@test
def a_handler_ends_before_the_thread_it_interrupted_is_cancelled():
    with tempdir() as d:
        exe = build(d, "cancelled", "cancelled.c", "linked")
        out = subprocess.run([exe, SECONDS], cwd=d, capture_output=True, text=True, timeout=300)
        equal(out.returncode, 0, out.stderr)
        need(int(out.stdout.split()[1]) > 0, "nobody was cancelled")
        for name in "during", "after":
            said = "\n".join(Profile(open(os.path.join(d, name), "rb").read()).comments)
            need("has not ended" not in said, "a handler was unwound:\n" + said)
            need(number(said, "samples") - number(said, "lost samples") > 0, "no samples:\n" + said)


main()
