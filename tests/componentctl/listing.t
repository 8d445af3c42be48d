#!/usr/bin/env python3
"""componentctl profile --list: byte for byte what go tool pprof -list prints, and sources that were named to harm."""
import gzip
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import CTL, ctl, environment, own_run  # noqa: E402
from busy import Busy, agent  # noqa: E402
from gotools import ENV, newest_pprof  # noqa: E402
from pprof_writer import profile  # noqa: E402

own_run()
SOURCE = "".join("line %d\twith a tab\n" % n for n in range(1, 60))


def go_words(view):
    given = [re.match(r"--([\w-]+)=?(.*)", word).groups() for word in view]
    return ["-%s%s" % ({"diff-base": "diff_base"}.get(k, k.replace("-", "_")), "=" + v if v else "") for k, v in given]


def ours(path, *view, status=0, cwd=None):
    r = run(os.path.abspath(CTL), "profile", path, *view, env=environment(), cwd=cwd)
    equal(r.returncode, status, r.stderr)
    return r.stderr if status else r.stdout


def compare(path, *view, cwd=None):
    """The listing, which both print."""
    go = run(newest_pprof(), "-symbolize=remote", *go_words(view), path, env=dict(ENV, PPROF_TMPDIR=os.path.abspath(BUILD)), cwd=cwd)
    equal(go.returncode, 0, go.stderr)
    shown = ours(path, *view, cwd=cwd)
    equal(shown, go.stdout, "%s %s" % (path, view))
    return shown


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    return path


def made(d, functions, samples, lines, name="made.pb.gz"):
    """lines: location to [(function, line)], innermost first; functions: number to (name, file, first line)."""
    data = profile([("samples", "count"), ("cpu", "nanoseconds")], [(stack, [v, v * 10000000], []) for v, stack in samples],
                   [(n, 0, 4096 * n, at) for n, at in sorted(lines.items())],
                   [(n, f[0], f[0], f[1], f[2]) for n, f in sorted(functions.items())], [])
    return write(os.path.join(d, name), gzip.compress(data))


@test
def listings_of_our_profiles_are_those_of_go_tool_pprof():
    newest_pprof()
    with tempdir() as d:
        program = os.path.join(d, "busy")
        equal(run(CC, "-O1", "-g", "-pthread", "-o", program, os.path.join(SRC, "tests/programs/busy.c")).returncode, 0)
        with Busy([program], agent()) as b:
            b.find()
            b.go()
            b.look({"heap": ["keep_here"], "block": ["hold_here"]})
            for kind in "heap", "block", "mutex":
                path = os.path.join(d, kind)
                ctl("profile", b.url, kind, "--raw", "-o", path)
                for view in ("--list=here",), ("--list=main|thread",), ("--list=.",), ("--list=here", "--sample-index=0"), ("--list=a", "--focus=keep|hold"):
                    contains(compare(path, *view), "ROUTINE ======================== ")
            need(re.search(r"^ +\S+ +\S+ +\d+:.*malloc", compare(os.path.join(d, "heap"), "--list=keep_here"), re.M), "the line that allocates")


@test
def so_are_those_of_lines_that_other_tools_could_have_written():
    newest_pprof()
    with tempdir() as d:
        one, other = write(os.path.join(d, "src/one.c"), SOURCE), write(os.path.join(d, "src/other.c"), SOURCE[:-1])
        write(os.path.join(d, "src/dos.c"), SOURCE.replace("\n", "\r\n"))
        functions = {1: ("main", one, 3), 2: ("work", one, 20), 3: ("inlined", other, 0), 4: ("work", other, 40), 5: ("nowhere", "", 0),
                     6: ("gone", "/no/such/folder/gone.c", 2), 7: ("dots", d + "/src//./x/../dos.c", 1), 8: ("far", other, 58), 9: ("shut", "/no/such", 1)}
        lines = {1: [(1, 5)], 2: [(2, 22)], 3: [(3, 9), (2, 24)], 4: [(4, 44)], 5: [(5, 0)], 6: [(6, 4)], 7: [(7, 6)], 8: [(8, 500)],
                 9: [(2, 22), (1, 7)], 10: [], 11: [(3, 2)]}
        samples = [(7, [2, 1]), (3, [3, 1]), (2, [3, 3, 2, 1]), (5, [4, 1]), (1, [5, 1]), (1, [6, 1]), (4, [7, 1]), (2, [8, 1]), (1200, [9]),
                   (1, [10, 1]), (2, [11, 2, 1]), (6, [2, 6, 1]), (0, [4])]
        path = made(d, functions, samples, lines)
        base = made(d, functions, [(9, [2, 1]), (1, [3, 1]), (5, [4, 1])], lines, "base.pb.gz")
        for view in ("--list=.",), ("--list=main",), ("--list=work",), ("--list=inlined|far",), ("--list=nowhere",), ("--list=gone",), ("--list=^work$", "--sample-index=0"), \
                ("--list=.", "--ignore=gone"), ("--list=.", "--base=" + base), ("--list=.", "--diff-base=" + base), ("--list=dots",):
            compare(path, *view)
        contains(ours(path, "--list=gone"), " Error: open /no/such/folder/gone.c: no such file or directory\n")
        contains(ours(path, "--list=nowhere"), "No source information for nowhere\n")
        contains(ours(path, "--list=nothing", status=1), "--list 'nothing' is no function of this profile")


@test
def a_source_is_found_by_the_folders_given():
    newest_pprof()
    with tempdir() as d:
        write(os.path.join(d, "project/sub/a.c"), SOURCE)
        write(os.path.join(d, "project/b.c"), SOURCE)
        functions = {1: ("f", "sub/a.c", 1), 2: ("g", "b.c", 4), 3: ("h", "/build/elsewhere/project/sub/a.c", 2), 4: ("i", "/proc/self/cwd/b.c", 2),
                     5: ("j", "/build/b.c", 2), 6: ("k", "../up.c", 1)}
        path = made(d, functions, [(n, [n]) for n in functions], {n: [(n, 5)] for n in functions})
        project = os.path.join(d, "project")
        for cwd in project, project + "/sub", d:
            for view in (), ("--source-path=" + project,), ("--source-path=/no/such:" + project + "/sub",), ("--trim-path=/build",), \
                    ("--trim-path=/build/elsewhere/:/build", "--source-path=" + project):
                compare(path, "--list=.", *view, cwd=cwd)
        contains(ours(path, "--list=h", "--source-path=" + project), ":line 5\twith a tab\n")
        contains(ours(path, "--list=f", cwd=project + "/sub"), ":line 5\twith a tab\n")


@test
def what_is_no_file_is_not_opened_and_no_terminal_obeys_a_source():
    with tempdir() as d:
        fifo = os.path.join(d, "fifo")
        os.mkfifo(fifo)
        red = write(os.path.join(d, "red.c"), b"one\n\x1b[31mtwo\x07\n\tthree\xff\n")
        functions = {1: ("a", fifo, 1), 2: ("b", "/dev/zero", 1), 3: ("c", d, 1), 4: ("d", red, 1), 5: ("e\x1b[2J", "/x\x1b[2J/y.c", 1),
                     6: ("f", os.path.join(d, "red.c"), 1)}
        lines = {n: [(n, 2)] for n in functions}
        lines[6] = [(6, (1 << 63) - 1)]
        path = made(d, functions, [(1, [n]) for n in functions], lines)
        shown = ours(path, "--list=.")
        for name in fifo, "/dev/zero", d:
            contains(shown, " in %s\n" % name)
            contains(shown, " Error: open %s: " % name)
        contains(shown, "     3:\tthree")
        need(not re.search("[\x00-\x08\x0b-\x1f\x7f]", shown), repr(shown))


@test
def list_excludes_the_other_views():
    with tempdir() as d:
        path = made(d, {1: ("f", "a.c", 1)}, [(1, [1])], {1: [(1, 1)]})
        contains(ours(path, "--list=f", "--tree", status=2), "exclude each other")
        contains(ours(path, "--list=f{2}", status=2), "--list 'f{2}'")
        contains(ours(path, "--source-path=/", status=2), "--list")


main()
