#!/usr/bin/env python3
"""harness.t - what harness.py promises of tests that do not end well: they leave nothing running, and say why."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import *  # noqa: E402,F403

IMPORTS = "import sys\nsys.path.insert(0, %r)\nfrom serving import *\n" % os.path.dirname(os.path.abspath(__file__))


def gone(pid):
    return not os.path.exists("/proc/%d" % pid)


@test
def a_time_limit_ends_what_a_test_has_started_as_well():
    with tempdir() as d:
        program = os.path.join(d, "hangs.t")
        with open(program, "w") as f:
            f.write(IMPORTS + """
@test
def it_hangs():
    with daemon("/bin/sleep", "1000", port_file=False) as d:
        print("# pid %d" % d.pid, flush=True)
        time.sleep(1000)


main()
""")
        with started([sys.executable, program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as p:
            equal(p.stdout.readline(), "1..1\n")
            pid = int(p.stdout.readline().split()[2])
            need(not gone(pid))
            p.terminate()  # as timeout does
            contains(p.stdout.read(), "not ok 1 - it hangs\n")
            equal(p.wait(DEADLINE), 1)
            need(gone(pid), "its program goes on")


@test
def a_program_that_does_not_start_shows_its_log_and_leaves_no_folder():
    for start, why in (("Daemon(['/bin/sh', '-c', 'echo what is wrong >&2; exit 3'])", "#   what is wrong\n"),
                       ("Server('--nothing-like-it', '1')", "# AssertionError: before it was started\n")):
        with tempdir() as d:
            program = os.path.join(d, "fails.t")
            with open(program, "w") as f:
                f.write(IMPORTS + "\n\n@test\ndef it_fails():\n    %s\n\n\nmain()\n" % start)
            r = run(sys.executable, program, env=dict(os.environ, TMPDIR=d))
            equal(r.returncode, 1, r.stdout + r.stderr)
            contains(r.stdout, "# log of process ")
            contains(r.stdout, why)
            equal(os.listdir(d), ["fails.t"])


main()
