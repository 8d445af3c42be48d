#!/usr/bin/env python3
"""sanitizers.t - beside the sanitizers of gcc and clang, and under valgrind: the program does what
it does without us, nothing is reported of us, and every profile is right or its absence is said.

The table in docs/profiling.md has a row for each.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from busy import *  # noqa: E402,F403

# Names that must be in a profile; the tool's own may be around them.
SEEN = {"profile": ["burn_here", "hold_here"], "fgprof": ["burn_here", "wait_here"], "goroutine": ["wait_here"],
        "heap": ["keep_here"], "allocs": ["keep_here", "give_back_here"], "mutex": ["hold_here"], "block": ["hold_here"],
        "threadcreate": ["main"]}
REPORTED = re.compile(r"==\d+==|(ERROR|WARNING): \w+Sanitizer|runtime error")
# Libraries that are not built for it are not looked into; see docs/profiling.md.
TSAN = {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1"}
NO_HEAP = "heap and allocs: heap sampling is off: malloc() belongs to "
NO_WAITS = "mutex and block: waits are not seen: pthread_mutex_lock() is the program's own"
NO_THREADS = "threadcreate: threads are not seen being made: pthread_create() is the program's own"


def without(*kinds):
    return {k: v for k, v in SEEN.items() if k not in kinds}


def made(d, compiler, mode, *flags):
    exe = os.path.join(d, mode)
    linked = [] if mode == "foreign" else ["-DLINKED"]
    compile_(compiler, *BASE, *linked, *flags, "-Wl,--no-as-needed", source("busy.c"), "-o", exe, *link(mode), "-pthread", "-ldl")
    return exe


def row(argv, env, seen, *words, quiet=True):
    with Busy(argv, env) as b:
        b.find()
        page = b.index()
        for word in words:
            contains(page, word)
        if "heap" in seen:
            need("heap sampling is off" not in page, page)
        b.go()
        b.look(seen)
        said = b.finish()
        if quiet:
            need(not REPORTED.search(said), said[-6000:])


def finds(argv, env, status, word):
    """What it is there for, it still finds."""
    r = subprocess.run(argv, env=dict(os.environ, **env), input="go\n", capture_output=True, text=True, timeout=PATIENCE)
    equal(r.returncode, status, r.stderr[-4000:])
    contains(r.stderr, word)
    contains(r.stderr, "do_wrong")


def file_of(compiler, name):
    path = subprocess.run([compiler, "-print-file-name=" + name], capture_output=True, text=True).stdout.strip()
    return os.path.realpath(path)


def clang():
    if not shutil.which("clang"):
        raise Skip("no clang")
    return "clang"


def gcc():
    if not shutil.which("gcc"):
        raise Skip("no gcc")
    return "gcc"


@test
def gccs_address_sanitizer_and_a_linked_program_both_see_all():
    with tempdir() as d:
        exe = made(d, gcc(), "linked", "-fsanitize=address")
        row([exe, LINKED], {}, SEEN)
        finds([exe, LINKED, "use-after-free"], {}, 1, "heap-use-after-free")


@test
def gccs_address_sanitizer_wants_to_come_before_the_agent_or_to_be_told_not_to():
    with tempdir() as d:
        exe = made(d, gcc(), "foreign", "-fsanitize=address")
        r = run(exe, env=dict(os.environ, **agent()))
        equal(r.returncode, 1)
        contains(r.stderr, "ASan runtime does not come first in initial library list")
        row([exe], dict(agent(), ASAN_OPTIONS="verify_asan_link_order=0"), SEEN)
        row([exe], agent(before=file_of("gcc", "libasan.so")), without("heap", "allocs"), NO_HEAP + file_of("gcc", "libasan.so"))


@test
def clangs_static_sanitizers_keep_their_functions_and_the_index_says_which():
    with tempdir() as d:
        exe = made(d, clang(), "linked", "-fsanitize=address")
        row([exe, LINKED], {}, without("heap", "allocs", "mutex", "block", "threadcreate"), NO_HEAP + exe, NO_WAITS, NO_THREADS,
            "(-shared-libasan)")
        finds([exe, LINKED, "use-after-free"], {}, 1, "heap-use-after-free")
        exe = made(d, clang(), "foreign", "-fsanitize=address")
        row([exe], agent(), without("heap", "allocs"), NO_HEAP + exe)


@test
def clangs_shared_address_sanitizer_and_a_linked_program_both_see_all():
    runtime = subprocess.run([clang(), "-print-runtime-dir"], capture_output=True, text=True).stdout.strip()
    with tempdir() as d:
        exe = made(d, "clang", "linked", "-fsanitize=address", "-shared-libasan", "-Wl,-rpath," + runtime)
        row([exe, LINKED], {}, SEEN)


@test
def undefined_behaviour_and_leak_sanitizers_have_nothing_to_report():
    with tempdir() as d:
        row([made(d, gcc(), "linked", "-fsanitize=undefined,leak"), LINKED], {}, SEEN)
        row([made(d, gcc(), "foreign", "-fsanitize=undefined,leak")], agent(), SEEN)


@test
def gccs_thread_sanitizer_sees_the_programs_races_alone():
    with tempdir() as d:
        exe = made(d, gcc(), "linked", "-fsanitize=thread")
        row([exe, LINKED], TSAN, SEEN)
        finds([exe, LINKED, "race"], TSAN, 66, "data race")
        row([made(d, gcc(), "foreign", "-fsanitize=thread")], dict(TSAN, **agent()), SEEN)


@test
def clangs_thread_sanitizer_sees_the_programs_races_alone():
    with tempdir() as d:
        exe = made(d, clang(), "linked", "-fsanitize=thread")
        row([exe, LINKED], TSAN, without("heap", "allocs", "mutex", "block", "threadcreate"), NO_HEAP + exe, NO_WAITS, NO_THREADS)
        exe = made(d, clang(), "foreign", "-fsanitize=thread")
        row([exe], dict(TSAN, **agent()), without("heap", "allocs"), NO_HEAP + exe)
        finds([exe, LINKED, "race"], dict(TSAN, **agent()), 66, "data race")


@test
def under_memory_sanitizer_the_server_is_refused_and_the_program_goes_on():
    with tempdir() as d:
        for argv, env in ([made(d, clang(), "linked", "-fsanitize=memory"), LINKED], {}), \
                         ([made(d, clang(), "foreign", "-fsanitize=memory")], agent()):
            with Busy(argv, env) as b:
                equal(listens(b.p.pid), [])
                b.p.stdin.write(b"go\n")
                said = b.finish()
                contains(said, "the HTTP server is refused: the program is built with -fsanitize=memory")
                need(not REPORTED.search(said), said)


# What valgrind says of fgprof, and what its tools ask of a program.
NO_WALL = "fgprof: valgrind runs one thread at a time"
VALGRIND = ["valgrind", "-q", "--error-exitcode=9", "--fair-sched=try"]


def under_valgrind(*options, seen=SEEN, silent=True):
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    with tempdir() as d:
        for argv, env in ([made(d, CC, "linked"), LINKED], {}), ([made(d, CC, "foreign")], agent()):
            with Busy(VALGRIND + list(options) + argv, env) as b:
                b.find()
                contains(b.index(), NO_WALL)
                need("heap sampling is off" not in b.index(), b.index())
                b.go()
                b.look(seen, refused=("fgprof",))
                contains(b.refusal("fgprof?seconds=1"), "Could not enable wall-clock profiling: valgrind runs")
                said = b.finish()
                if not options[0].startswith("--leak-check"):  # memcheck is asked in another way
                    said = re.sub(r"--\d+-- (sigprocmask: unknown 'how' field|Warning: Bad set handler address).*\n", "", said)
                need(not silent or not said, said)


@test
def memcheck_has_nothing_to_say_and_every_profile_is_right_but_fgprof_which_is_refused():
    under_valgrind("--leak-check=full", "--errors-for-leak-kinds=definite", "--show-leak-kinds=definite")


if os.environ.get("TEST_STRESS"):  # a hundred times slower
    @test
    def valgrinds_other_tools_run_and_profiles_are_right_beside_them():
        under_valgrind("--tool=callgrind", "--callgrind-out-file=/dev/null")
        under_valgrind("--tool=massif", "--massif-out-file=/dev/null")
        under_valgrind("--tool=dhat", "--dhat-out-file=/dev/null")
        # It knows no atomic operations, and reports ours.
        under_valgrind("--tool=helgrind", "--error-exitcode=0", silent=False)


main()
