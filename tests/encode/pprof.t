#!/usr/bin/env python3
"""pprof.t - profiles read by other people's readers, and by a decoder of our own."""
import os
import re
import shutil
import sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *
from harness import *
from pprof_reader import Profile

SAMPLE = "tests/programs/made_up_profile"


def output(form, kind, path=None):
    r = run(SAMPLE, form, kind, text=False)
    equal(r.returncode, 0, r.stderr)
    if path:
        with open(path, "wb") as f:
            f.write(r.stdout)
    return r.stdout


def check(p):
    equal(p.strings[0], "")
    equal(len(set(p.strings)), len(p.strings), "no text twice")
    for what in (p.mappings, p.functions, p.locations):
        equal([m.get(1) for m in what], list(range(1, len(what) + 1)), "ids are dense and in order")
    for name in (9, 12):
        equal(len(p.all.get(name, [])), 1, "field %d stands once" % name)
    equal(len(p.all[11]), 1)
    for stack, values, labels in p.samples:
        equal(len(values), len(p.types))
        need(stack and all(1 <= i <= len(p.locations) for i in stack))
        for l in labels:
            equal((p.strings[l[1]], 4 in l, 2 in l), ("bytes", False, False))
    for l in p.locations:
        need(l["lines"] and all(1 <= x[1] <= len(p.functions) for x in l["lines"]))
        if 2 in l:
            m = p.mappings[l[2] - 1]
            need(m[2] <= l[3] < m[3], "an address lies in its mapping")
            equal(m.get(7), 1, "has_functions")
    for f in p.functions:
        need(p.strings[f[2]] and p.strings[f[3]], "a function has a name")
    need(not p.mappings or "made_up_profile" in p.strings[p.mappings[0][5]], "the main binary is first")
    for m in p.mappings:
        need(len(p.strings[m.get(6, 0)]) != 1)


@test
def every_rule_of_the_format_holds():
    for kind in ("cpu", "heap", "odd", "empty", "big"):
        check(Profile(output("pprof", kind)))


@test
def stacks_and_values_are_what_they_were():
    p = Profile(output("pprof", "cpu"))
    equal(p.types, [("samples", "count"), ("cpu", "nanoseconds")])
    equal([(p.stack(s), v) for s, v, _ in p.samples],
          [(["crunch", "handle_request", "serve_forever"], [60, 600000000]),
           (["prepare", "handle_request", "handle_request", "serve_forever"], [40, 400000000])])
    p = Profile(output("pprof", "heap"))
    equal([v for _, v, _ in p.samples],
          [[100, 409600, 10, 40960], [7, 7340032, 3, 3145728], [0, 0, 0, 0]])
    equal([[l[3] for l in labels] for _, _, labels in p.samples], [[4096], [1048576], []])
    p = Profile(output("pprof", "odd"))
    equal(p.stack(p.samples[-1][0]), ["[lost samples]"])


@test
def go_tool_pprof_shows_functions_and_complains_of_nothing():
    with tempdir() as d:
        for kind in ("cpu", "heap", "odd", "big"):
            output("pprof", kind, os.path.join(d, kind))
        for pprof in pprofs():
            shows_functions(pprof, d)


def shows_functions(pprof, d):
    for kind in ("cpu", "heap", "odd", "big"):
        path = os.path.join(d, kind)
        for report in ("-top", "-raw", "-traces", "-tree", "-peek=."):
            text = pprof(report, "-nodecount=10", path)
            contains(text, "made_up_profile" if report == "-raw" else "File: made_up_profile")
    text = pprof("-top", os.path.join(d, "cpu"))
    # Versions differ in the unit: 600ms, 0.60s.
    need(re.search(r"Duration: 5s, Total samples = \S+ \(20.00%\)", text), text)
    need(re.search(r"60.00% 60.00% +\S+ 60.00%  crunch\n", text), text)
    need(re.search(r" 0 +0% +100% +\S+ +100%  serve_forever\n", text), text)
    text = pprof("-top", "-sample_index=alloc_space", os.path.join(d, "heap"))
    need(re.search(r" 94.71% 94.71% +\S+ 94.71%  crunch\n", text), text)
    text = pprof("-top", os.path.join(d, "odd"))
    contains(text, "[lost samples]")
    contains(text, "0x1234567")
    contains(pprof("-comments", os.path.join(d, "odd")), "second")
    contains(pprof("-top", "-base=" + os.path.join(d, "cpu"), os.path.join(d, "cpu")), "File: made_up_profile")


@test
def go_tool_pprof_reads_nothing_at_all_as_an_empty_profile():
    with tempdir() as d:
        path = os.path.join(d, "empty")
        output("pprof", "empty", path)
        for pprof in pprofs():
            contains(pprof("-raw", path), "cpu nanoseconds")


@test
def go_tool_pprof_reads_the_text_of_the_heap():
    with tempdir() as d:
        path = os.path.join(d, "heap.txt")
        text = output("text", "heap", path).decode()
        contains(text, "heap profile: 13: 3186688 [107: 7749632] @ heap/1048576\n")
        for pprof in pprofs():
            raw = pprof("-raw", "-symbolize=none", path)
            contains(raw, "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes")
            contains(raw, "Period: 524288")


@test
def the_tarball_carries_the_generated_files():
    files = run("make", "-s", "-C", BUILD, "-f", "Makefile", "-f", "/dev/stdin", "show-distributed",
                input="show-distributed:\n\t@echo $(DIST_SOURCES) $(EXTRA_DIST) $(am__DIST_COMMON)\n", stdin=None)
    if files.returncode:
        raise Skip("make cannot show its variables")
    for name in ("profile.pb-c.c", "profile.pb-c.h", "profile.proto"):
        contains(files.stdout, "profiler/encode/" + name)


main()
