#!/usr/bin/env python3
"""other_profilers.t - another profiler in the same process: both give what is true."""
import os
import struct
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from pprof_reader import Profile  # noqa: E402


def cpu_seconds(pid):
    fields = open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def gperftools_seconds(path):
    """What gperftools' own profile adds up to."""
    data = open(path, "rb").read()
    words = struct.unpack("%dQ" % (len(data) // 8), data[:len(data) // 8 * 8])
    period, at, samples = words[3], 2 + words[1], 0
    while words[at:at + 3] != (0, 1, 0):  # the end
        samples += words[at]
        at += 2 + words[at + 1]
    return samples * period / 1e6


def both(exe, args, env):
    with tempdir() as d:
        theirs = os.path.join(d, "gperftools.prof")
        p = subprocess.Popen([exe] + args, env=dict(os.environ, CPUPROFILE=theirs, **env), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            equal(p.stdout.readline(), "started\n")
            port, before = listens(p.pid)[0], cpu_seconds(p.pid)
            ours = Profile(urllib.request.urlopen("http://127.0.0.1:%d/debug/pprof/profile?seconds=2" % port, timeout=DEADLINE).read())
            window = cpu_seconds(p.pid) - before
            out, err = p.communicate("", timeout=DEADLINE)
            equal(p.returncode, 0, err)
            need("already in use" not in err, err)
            used = float(out.split()[1])
            found = sum(values[1] for stack, values, _ in ours.samples if "burn_here" in ours.stack(stack)) / 1e9
            # A busy machine gives little time, and the window is within what was measured.
            need(window * 0.5 - 0.1 < found < window * 1.2 + 0.1, "we saw %g s of %g" % (found, window))
            got = gperftools_seconds(theirs)
            need(used * 0.5 - 0.1 < got < used * 1.2 + 0.1, "gperftools saw %g s of %g" % (got, used))
        finally:
            if p.poll() is None:
                p.kill()
                p.wait()
            for f in (p.stdin, p.stdout, p.stderr):
                f.close()


@test
def gperftools_profiler_and_the_agent_both_see_the_time():
    path = library("libprofiler.so.0")
    with tempdir() as d:
        env = dict(preload_env(), PPROF_BIND_ADDRESS="127.0.0.1:0")
        both(build(d, "itself", "burns.c", mode="foreign", after=[path]), [], env)


@test
def gperftools_profiler_and_a_linked_program_both_see_the_time():
    path = library("libprofiler.so.0")
    with tempdir() as d:
        both(build(d, "itself", "burns.c", mode="linked", after=[path]), ["127.0.0.1:0"], {})
        both(build(d, "plain", "burns.c", mode="linked"), ["127.0.0.1:0"], {"LD_PRELOAD": path})


main()
