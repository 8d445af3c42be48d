#!/usr/bin/env python3
"""limited_process.t - the heap profile in processes that are watched, limited or locked."""
import os
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403

PORT_0 = "127.0.0.1:0"


def go(exe, *args, wrap=(), env=None, limits=None, status=0):
    """Runs heap_load; its output."""
    full = dict(os.environ)
    full.update(env or {})

    def limit():
        for which, bytes_ in (limits or {}).items():
            hard = resource.getrlimit(which)[1]
            resource.setrlimit(which, (bytes_, max(bytes_, hard) if hard != resource.RLIM_INFINITY else hard))
    r = subprocess.run([*wrap, exe, *args], capture_output=True, text=True, env=full, timeout=300,
                       stdin=subprocess.DEVNULL, preexec_fn=limit)
    need(r.returncode == status, "%s ended with %d\n%s\n%s" % (exe, r.returncode, r.stdout[-1500:], r.stderr[-4000:]))
    if status == 0:
        contains(r.stdout, "fine 0\n")
    return r




@test
def at_every_rate_a_program_works_and_nothing_is_said():
    with tempdir() as d:
        exe = build(d, "load", "heap_load.c", "linked")
        for rate in ("1", "4096", "524288", "0"):
            r = go(exe, PORT_0, rate)
            need("heap sampling" not in r.stdout, r.stdout)
        exe = build(d, "load", "heap_load.c", "foreign")
        for rate in ("1", "524288"):
            go(exe, PORT_0, rate, env=preload_env(core=True))


@test
def locked_memory_changes_nothing():
    with tempdir() as d:
        exe = build(d, "load", "heap_load.c", "linked")
        if resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] != resource.RLIM_INFINITY and os.getuid() != 0:
            raise Skip("memory cannot be locked here")
        for when in "lock", "lock-after":
            r = go(exe, PORT_0, "1", when)
            need("heap sampling" not in r.stdout, r.stdout)


@test
def scarce_address_space_is_left_to_the_program():
    with tempdir() as d:
        exe = build(d, "load", "heap_load.c", "linked")
        for mb in 70, 300, 4096:
            r = go(exe, PORT_0, "1", limits={resource.RLIMIT_AS: mb << 20, resource.RLIMIT_STACK: 512 << 10},
                   env={"MALLOC_ARENA_MAX": "1"})
            need("heap sampling" not in r.stdout, r.stdout)


@test
def little_data_memory_is_survived():
    with tempdir() as d:
        exe = build(d, "load", "heap_load.c", "linked")
        go(exe, PORT_0, "1", limits={resource.RLIMIT_DATA: 128 << 20})


@test
def valgrind_finds_nothing_wrong():
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    wrap = ["valgrind", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", "-q"]
    with tempdir() as d:
        exe = build(d, "load", "heap_load.c", "linked")
        r = go(exe, PORT_0, "1", wrap=wrap)
        need("heap sampling" not in r.stdout, r.stdout)
        exe = build(d, "load", "heap_load.c", "foreign")
        go(exe, PORT_0, "1", wrap=wrap, env=preload_env(core=True))


@test
def the_hooks_themselves_are_clean_under_valgrind():
    """valgrind finds nothing when it leaves malloc to us."""
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    wrap = ["valgrind", "--error-exitcode=9", "-q", "--soname-synonyms=somalloc=nowhere", "--undef-value-errors=no"]
    with tempdir() as d:
        exe = build(d, "load", "heap_load.c", "linked")
        go(exe, PORT_0, "4096", wrap=wrap)


@test
def address_sanitizer_still_sees_everything():
    need_sanitizer("address,undefined")
    with tempdir() as d:
        exe = build(d, "load", "heap_load.c", "linked", ["-fsanitize=address,undefined"])
        r = go(exe, PORT_0, "1")
        need("heap sampling" not in r.stdout, r.stdout)
        r = go(exe, PORT_0, "1", "use-after-free", status=1)
        contains(r.stderr, "heap-use-after-free")
        contains(r.stderr, "heap_load.c")


@test
def clangs_address_sanitizer_inside_the_program_is_left_in_charge():
    if not shutil.which("clang"):
        raise Skip("no clang")
    with tempdir() as d:
        exe = os.path.join(d, "load")
        compile_("clang", *BASE, "-DLINKED", "-fsanitize=address", "-Wl,--no-as-needed", source("heap_load.c"), "-o", exe,
                 *link("linked"), "-pthread", "-ldl")
        r = go(exe, PORT_0, "1", env={"ASAN_OPTIONS": "detect_leaks=0"})
        contains(r.stdout, "belongs to")
        r = go(exe, PORT_0, "1", "use-after-free", status=1)
        contains(r.stderr, "heap-use-after-free")


main()
