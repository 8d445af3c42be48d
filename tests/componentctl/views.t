#!/usr/bin/env python3
"""componentctl profile --base, --diff-base, --tree and --peek: byte for byte what go tool pprof prints, for profiles of
every kind that our programs make and for those that other tools could have written."""
import gzip
import itertools
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import CTL, ctl, environment, own_run  # noqa: E402
from busy import Busy, agent  # noqa: E402
from gotools import ENV, newest_pprof, to_the_minute  # noqa: E402
from pprof_writer import TYPES, UNITS, any_profile, message, number, packed, profile  # noqa: E402

own_run()
KINDS = "allocs", "block", "fgprof", "goroutine", "heap", "mutex", "profile", "threadcreate"
TREES = (("--tree",), ("--tree", "--top=0"), ("--tree", "--cum", "--top=3"), ("--tree", "--focus=main"), ("--peek=a",),
         ("--peek=here|main", "--cum"), ("--tree", "--sample-index=0"))
TABLES = (("--top=0",), ("--cum", "--top=5"), ("--focus=e",), ("--ignore=main", "--top=0"), ("--sample-index=0",))


def go_words(view):
    """componentctl's options as those of go tool pprof."""
    given = dict(re.match(r"--([\w-]+)=?(.*)", word).groups() for word in view)
    words = [] if "tree" in given or "peek" in given else ["-top"]
    return words + ["-nodecount=" + given.pop("top", "10")] + [
        "-%s%s" % ({"diff-base": "diff_base"}.get(k, k.replace("-", "_")), "=" + v if v else "") for k, v in given.items()]


def settled(text):
    """Calls of one amount, one of them negative, have no order in pprof: it changes from run to run."""
    lines = []
    for key, group in itertools.groupby(text.split("\n"), lambda line: line.split()[0].lstrip("-") if " |   " in line else None):
        lines += group if key is None else sorted(group)
    return lines


def compare(path, view):
    """1; 0 where both say that the profile has none such."""
    go = run(newest_pprof(), "-symbolize=remote", *go_words(view), path, env=dict(ENV, PPROF_TMPDIR=BUILD))
    ours = run(CTL, "profile", path, *view, env=environment())
    if go.returncode and "no matches found for regexp" in go.stderr:
        contains(ours.stderr, "is no function of this profile")
        return 0
    shown, wanted = to_the_minute(ours.stdout, go.stdout)
    equal((ours.returncode, settled(shown)), (go.returncode, settled(wanted)), "%s %s\n%s%s" % (path, view, go.stderr, ours.stderr))
    return 1


def write(path, data):
    with open(path, "wb") as f:
        f.write(gzip.compress(data))
    return path


@test
def trees_and_differences_of_our_profiles_are_those_of_go_tool_pprof():
    newest_pprof()
    with tempdir() as d:
        program = os.path.join(d, "busy")
        equal(run(CC, "-O1", "-g", "-pthread", "-o", program, os.path.join(SRC, "tests/programs/busy.c")).returncode, 0)
        # Values that add up to nothing, in all or in one function: it has no row.
        for samples in ([(2, 1), 30], [(3, 1), -20], [(4, 1), -10]), ([(2, 1), 30000], [(3, 4, 1), 10000], [(2, 4, 1), -10000]):
            zero = write(os.path.join(d, "zero"), profile([("cpu", "nanoseconds")], [(list(stack), [v], []) for stack, v in samples],
                         [(n, 0, 4096 * n, [(n, n)]) for n in (1, 2, 3, 4)], [(n, "abcd"[n - 1], "", "", 0) for n in (1, 2, 3, 4)], []))
            need(all(compare(zero, view) for view in (("--tree",), ("--tree", "--top=2"), ("--peek=a|b",), ("--tree", "--top=0"))), zero)
        with Busy([program], agent()) as b:
            b.find()
            b.go()
            b.look({"heap": ["keep_here"], "block": ["hold_here"]})
            for kind in KINDS:
                for part in "before", "after":
                    ctl("profile", b.url, kind, "--raw", "--seconds=1" if kind in ("profile", "fgprof") else "--seconds=0",
                        "-o", os.path.join(d, "%s.%s" % (kind, part)))

        def one(kind, part):
            path, other = [os.path.join(d, "%s.%s" % (kind, p)) for p in (part, "before" if part == "after" else "after")]
            return sum(compare(path, view) for view in TREES) + sum(
                compare(path, view + (base + other,)) for base in ("--base=", "--diff-base=") for view in TABLES[:2] + TREES[:2])
        jobs = [in_background(lambda p=p: [one(kind, p) for kind in KINDS]) for p in ("before", "after")]
        found = [n for job in jobs for n in job.result()]
        need(len(found) == 2 * len(KINDS) and min(found) >= 13, found)


@test
def so_are_those_of_profiles_that_other_tools_could_have_written():
    newest_pprof()  # before two ask for it at once
    with tempdir() as d:
        def one(seed):
            r = random.Random(seed)
            types = [(t, r.choice(UNITS)) for t in r.sample(TYPES, r.randint(1, 3))]
            paths = [write(os.path.join(d, "%d.%d" % (seed, i)), any_profile(random.Random(r.choice((seed, seed + 1000, seed))), types))
                     for i in (0, 1)]
            return compare(paths[0], r.choice(TREES)) + compare(
                paths[0], r.choice(TABLES + TREES) + (r.choice(("--base=", "--diff-base=")) + paths[1],))
        jobs = [in_background(lambda at=at: sum(one(seed) for seed in range(at, 40, 2))) for at in (0, 1)]
        need(sum(job.result() for job in jobs) > 60, "comparisons")


@test
def a_difference_of_files_with_other_types_shows_the_type_that_pprof_shows():
    with tempdir() as d:
        def file(name, types, default):
            values = [100 * (1 + "abcx".index(t)) + (name == "base") for t in types]
            return write(os.path.join(d, name), profile([(t, "count") for t in types], [([1], values, [])], [(1, 0, 1, [(1, 1)])],
                                                        [(1, "main", "main", "", 0)], [], default=default))
        for types, base_types in ("abc", "abc"), ("abc", "ab"), ("ab", "abc"), ("abc", "bca"), ("abc", "xca"), ("xab", "cab"), ("a", "ab"):
            for default, base_default in ("", ""), ("a", ""), ("", "b"), ("b", "a"), ("x", ""), ("", "x"):
                path = file("file", types, default)
                equal(compare(path, ("--base=" + file("base", base_types, base_default), "--top=0")), 1)


def of_async_profiler(scale):
    """As its converter writes them: no addresses, one mapping of everything, no field packed but the stacks."""
    texts = ["", "cpu", "nanoseconds", "Produced by async-profiler", "async-profiler", "java/lang/Thread.run", "Main.work", "[tid]", "thread"]
    out = message(1, number(1, 1) + number(2, 2)) + number(13, 3)
    for stack, value in ([1, 2], 30 * scale), ([2], 12), ([3, 1, 2], 100 * scale):
        out += message(2, packed(1, stack) + number(2, value) + message(3, number(1, 8) + number(2, 7)))
    out += message(3, number(1, 1) + number(3, (1 << 63) - 1) + number(5, 4))
    for i, function, line in (1, 2, 40), (2, 1, 7), (3, 2, 44):
        out += message(4, number(1, i) + message(4, number(1, function) + number(2, line)))
    for i, name in (1, 5), (2, 6):
        out += message(5, number(1, i) + number(2, name))
    return out + b"".join(message(6, t.encode()) for t in texts) + number(9, 1700000000 * 10 ** 9) + number(10, 10 ** 10)


def of_jemalloc_pprof(scale):
    """As the crate writes them: a comment for each mapping, names only where it was built with them, labels again for each frame."""
    return profile([("inuse_space", "bytes")], [([1, 2, 3], [524288 * scale], [("annotation", "a"), ("annotation", "a")]), ([2, 3], [4096], [])],
                   [(1, 1, 4100, [(1, 20), (2, 7)]), (2, 1, 4200, [(2, 9)]), (3, 2, 8200, [])],
                   [(1, "alloc::alloc::alloc", "_ZN5alloc5alloc5alloc17h0123456789abcdefE", "/rustc/alloc.rs", 0),
                    (2, "app::serve", "_ZN3app5serve17h0123456789abcdefE", "src/main.rs", 0)],
                   [(1, "/usr/bin/app", "abcdef"), (2, "/lib/libc.so.6", "")],
                   comments=("executableInfo=3;0;1000", "executableInfo=3;1000;2000"), time=1700000000 * 10 ** 9)


@test
def files_of_async_profiler_and_jemalloc_pprof_are_shown_as_by_go_tool_pprof():
    newest_pprof()
    with tempdir() as d:
        for make in of_async_profiler, of_jemalloc_pprof:
            for pack in gzip.compress, bytes:
                paths = [os.path.join(d, "%s.%d" % (make.__name__, scale)) for scale in (1, 3)]
                for path, scale in zip(paths, (1, 3)):
                    with open(path, "wb") as f:
                        f.write(pack(make(scale)))
                for view in ((), ("--tree",), ("--peek=work|serve",), ("--base=" + paths[1],), ("--diff-base=" + paths[1], "--tree")):
                    equal(compare(paths[0], view), 1)
    with tempdir() as d:
        path = write(os.path.join(d, "x"), of_async_profiler(1))
        equal(ctl("profile", path, "--folded"), "java/lang/Thread.run;Main.work 30\njava/lang/Thread.run 12\n"
              "java/lang/Thread.run;Main.work;Main.work 100\n")


def two(folder):
    """Profiles of one program, at other addresses; the second has less of one stack and more of another."""
    functions = [(1, "main", "main", "", 0), (2, "crunch", "crunch", "", 0)]
    return [write(os.path.join(folder, name), profile([("cpu", "nanoseconds")], [([1], [a], []), ([2, 1], [b], [])],
                  [(1, 0, 4096, [(1, 1)]), (2, 0, 4100, [(2, 1)])], functions, []))
            for name, a, b in (("now", 7, 9), ("then", 7, 20))]


@test
def what_is_equal_in_both_is_gone_and_what_is_less_is_negative():
    with tempdir() as d:
        now, then = two(d)
        equal(ctl("profile", now, "--base=" + then, "--folded"), "main;crunch -11\n")
        equal(ctl("profile", then, "--base=" + now, "--folded"), "main;crunch 11\n")
        equal(ctl("profile", then, "--base=" + then, "--folded"), "")
        contains(ctl("profile", now, "--base=" + then), "     -11ns   100%   100%      -11ns   100%  crunch\n")
        contains(ctl("profile", now, "--diff-base=" + then), "     -11ns 40.74% 40.74%      -11ns 40.74%  crunch\n")
        contains(ctl("profile", now, "--tree"), " |   crunch\n")


@test
def a_base_that_cannot_be_subtracted_is_said_to_be_so():
    with tempdir() as d:
        now, then = two(d)
        other = write(os.path.join(d, "other"), profile([("space", "bytes")], [], [], [], []))
        third = write(os.path.join(d, "third"), profile([("cpu", "seconds")], [], [], [], []))
        for words, status, part in (
                ((now, "--base=" + other), 1, "measure nothing that is the same"),
                ((now, "--base=" + third), 1, "in 'nanoseconds' and in 'seconds'"),
                ((now, "--base=" + d + "/none"), 1, "No such file"),
                ((now, "--base=" + __file__), 1, "is no pprof profile"),
                ((now, "--base=" + then, "--diff-base=" + then), 2, "exclude each other"),
                ((now, "--tree", "--folded"), 2, "exclude each other"),
                ((now, "--peek=nobody"), 1, "--peek 'nobody' is no function of this profile"),
                ((now, "--peek=a{"), 2, "has a '{'")):
            contains(ctl("profile", *words, status=status), part)


if "\n  profile " in run(CTL, "--help", env=environment()).stdout:
    main()
else:
    print("1..0 # SKIP componentctl was built without libcurl")
