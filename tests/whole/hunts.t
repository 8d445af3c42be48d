#!/usr/bin/env python3
"""hunts.t - the steps of docs/hunts.md find what is wrong with examples/hunts.c."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from documents import shell_lines  # noqa: E402
from gotools import ENV, pprofs  # noqa: E402
from harness import *  # noqa: E402,F403

BUILT = "cc -g examples/hello.c -o hello $(pkg-config --cflags --libs libcomponent)"  # by docs.t
LINES = [line for _, line in shell_lines("docs/hunts.md")]


def steps(fault):
    """The commands below the one that starts it with this fault, up to the next."""
    at = next(i for i, line in enumerate(LINES) if line.endswith("--fault=" + fault))
    rest = LINES[at + 1:]
    end = next((i for i, line in enumerate(rest) if line.startswith("./hunts ")), len(rest))
    return LINES[at].split(), rest[:end]


def here(step, d):
    return re.sub(r"seconds=\d+", "seconds=2", step.replace("localhost:6060", "127.0.0.1:%d" % d.port))


def curl(step, d):
    r = run("sh", "-c", here(step, d))
    equal((r.returncode, r.stderr), (0, ""), step)
    return r.stdout


def fetched(pprof, step, d):
    """What go tool pprof prints of this step, with this Go."""
    r = run(pprof.path, *here(step, d).replace("'", "").split()[3:], env=dict(ENV, PPROF_TMPDIR=d.dir), cwd=SRC)
    return r.stdout


def first_row(text):
    found = re.search(r"\n *flat .*\n.* (\S+)\n", text)
    return found and found.group(1)


@test
def it_is_built_as_the_first_daemon_is():
    contains([line for _, line in shell_lines("README.md")], BUILT)
    equal(LINES[0], BUILT.replace("hello", "hunts"))


@test
def the_hot_loop_is_found_with_its_caller_and_its_line():
    (program, *options), (top, peek, listing) = steps("hot")
    with daemon(program.replace("./", "examples/"), *options) as d:
        # A busy machine may leave it no time in a window.
        poll(lambda: first_row(curl(top, d)) == "find_user", "the hot loop is first")
        for pprof in pprofs():
            poll(lambda: re.search(r"handle_visit\n.*\| +find_user\n", fetched(pprof, peek, d)), peek)
            poll(lambda: re.search(r"^ +\S+ms +\S+ms +\d+:\s*(for|if) \(.*[uU][sS][eE][rR]", fetched(pprof, listing, d), re.M), listing)


@test
def the_leak_is_found_while_it_grows_and_in_all():
    (program, *options), (growth, whole) = steps("leak")
    with daemon(program.replace("./", "examples/"), *options) as d:
        poll(lambda: "remember_visit" in curl(growth, d), "the leak is sampled")
        equal(first_row(curl(growth, d)), "remember_visit")
        for pprof in pprofs():
            need(re.search(r" remember_visit$", fetched(pprof, whole, d), re.M))


@test
def the_program_without_a_fault_is_well():
    with daemon("examples/hunts", "--enable-pprof") as d:
        need("find_user" not in curl(steps("hot")[1][0], d))
        need("remember_visit" not in curl(steps("leak")[1][0], d))


main()
