#!/usr/bin/env python3
"""coming_from.t - what docs/coming-from.md has people type here, row by row, against examples/hunts.

It serves what each row needs: a hot loop, a heap, waits.  A row's files are those of the rows above it.
"""
import gzip
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from documents import tables  # noqa: E402
from gotools import ENV  # noqa: E402

PAGE = "docs/coming-from.md"
# What is wrong with it, and how to see that it has begun.
HOT = "hot", "profile?seconds=1&format=top", "find_user"
LEAK = "leak", "heap?format=top", "remember_visit"


def commands(heading):
    found, = tables(PAGE, heading)
    return [c for row in found for c in re.findall(r"`((?:curl|go tool) [^`]*)`", "`%s`" % row[1])]


def gives_something(line, here, folder, function):
    """A second of a crowded machine may have nothing of the program in it; the lines below need a window that has."""
    r = run("sh", "-c", here, cwd=folder, env=dict(ENV, PPROF_TMPDIR=folder), timeout=120)
    equal(r.returncode, 0, "%s\n%s%s" % (line, r.stdout[-2000:], r.stderr[-2000:]))
    file = re.search(r"> (\S+)$", line)
    if not file:
        return len(r.stdout) > 50
    with open(os.path.join(folder, file[1]), "rb") as f:
        written = f.read()
    if file[1].endswith(".pprof") and "seconds=" in here:
        return function.encode() in gzip.decompress(written)
    return len(written) > 50


def follow(heading, fault, path, function):
    go = shutil.which("go", path=ENV["PATH"]) is not None
    with daemon("examples/hunts", "--enable-pprof", "--fault=" + fault, "--heap-profile-rate=4KiB", "--mutex-profile-fraction=1",
                "--block-profile-rate=10us") as d, tempdir() as folder:
        poll(lambda: function in d.get("/debug/pprof/" + path).text, function)
        lines = commands(heading)
        need(len(lines) >= 8, lines)
        for name in "cpu.pprof", "heap.out", "later.out":  # of tables above
            kind = "profile?seconds=1" if name == "cpu.pprof" else "heap"
            with open(os.path.join(folder, name), "wb") as f:
                f.write(d.get("/debug/pprof/" + kind).body)
        for line in lines:
            if line.startswith("go ") and not go or "-svg" in line and not shutil.which("dot"):
                continue
            here = re.sub(r"seconds=\d+", "seconds=1", line.replace("localhost:6060", "127.0.0.1:%d" % d.port)).replace("curl ", "curl --fail ")
            poll(lambda: gives_something(line, here, folder, function), line)
        if not go:
            raise Skip("no go on this machine: its commands did not run")


@test
def what_replaces_gperftools_can_be_pasted():
    follow("gperftools", *HOT)


@test
def what_replaces_jemallocs_profiler_can_be_pasted():
    follow("jemalloc", *LEAK)


@test
def what_replaces_perf_can_be_pasted():
    follow("perf", *HOT)


main()
