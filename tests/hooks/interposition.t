#!/usr/bin/env python3
"""interposition.t - interposition is proven: calls are counted, whoever makes them."""
import errno
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403


def check_counts(text, places, skip=()):
    """Each name of each place was called, and seen once."""
    seen = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 4:
            seen[fields[0], fields[1]] = int(fields[2]), int(fields[3])
    names = sorted({n for _, n in seen})
    need(len(names) >= 98, "only %d names" % len(names))
    wrong = []
    for place in places:
        for name in names:
            called, counted = seen[place, name]
            if name in skip:
                continue
            if called != 1 or counted != 1:
                wrong.append("%s from %s: answered %d, seen %d times" % (name, place, called, counted))
    need(not wrong, "\n".join(wrong))


# Hooked by the agent alone, see hooks/object/waits.c; and by programs alone, see malloc.c.
OLD = "pthread_cond_wait_2_2_5", "pthread_cond_timedwait_2_2_5"
NOT_THE_AGENTS = "malloc_usable_size",
PLACES = ("program", "before", "after", "plugin")
OPERATORS = {n for n in names_of("NEW") + names_of("DELETE")}


@test
def every_name_is_seen_from_everywhere_when_linked():
    with tempdir() as d:
        r = run_ok(build_calls(d, "linked"), plugin(d))
        contains(r.stdout, "rate 0\n")
        check_counts(r.stdout, PLACES, OLD)


@test
def every_name_is_seen_from_everywhere_when_preloaded():
    with tempdir() as d:
        r = run_ok(build_calls(d, "foreign"), plugin(d), env=preload_env(core=True))
        contains(r.stdout, "rate 0\n")
        check_counts(r.stdout, PLACES, NOT_THE_AGENTS)


@test
def every_name_is_seen_with_a_static_libcomponent():
    with tempdir() as d:
        r = run_ok(build_calls(d, "linked-a"), plugin(d))
        contains(r.stdout, "rate 0\n")
        check_counts(r.stdout, PLACES, OLD)


@test
def a_program_not_bound_lazily_nor_position_independent_is_seen_too():
    with tempdir() as d:
        r = run_ok(build_calls(d, "linked", ["-no-pie", "-fno-pie", "-Wl,-z,now"]), plugin(d))
        check_counts(r.stdout, PLACES, OLD)


@test
def it_does_not_matter_how_the_program_is_linked():
    ways = [["-flto"], ["-Wl,--gc-sections", "-ffunction-sections"],
            ["-Wl,--as-needed", "-Wl,-z,relro,-z,now"], ["-Wl,-Bsymbolic"]]
    if shutil.which("ld.gold"):
        ways.append(["-fuse-ld=gold"])
    for flags in ways:
        with tempdir() as d:
            check_counts(run_ok(build_calls(d, "linked", flags), plugin(d)).stdout, PLACES, OLD)


@test
def linkers_that_know_no_versions_in_a_program_give_libraries_the_condition_variables_of_today():
    linkers = [name for name in ("lld", "mold") if shutil.which("ld." + name) or shutil.which(name)]
    if not linkers:
        raise Skip("no lld and no mold")
    for name in linkers:
        for more in [], ["-no-pie", "-fno-pie"]:
            with tempdir() as d:
                exe = build_calls(d, "linked", ["-fuse-ld=" + name] + more)
                # Libraries made for a glibc before 2.3.2 are not told apart there.
                check_counts(run_ok(exe, plugin(d), env={"HOOKS_WITHOUT_OLD": "1"}).stdout, PLACES, OLD)


@test
def pthread_once_is_answered_by_the_hooks_only_in_the_place_of_glibcs():
    with tempdir() as d:
        behind = os.path.join(d, "libbehind.so")
        compile_(CC, *BASE, "-DBEHIND", "-shared", "-fPIC", source("hooks_once.c"), "-o", behind, "-ldl")
        foreign = build(d, "foreign", "hooks_once.c", mode="foreign")
        linked = build(d, "linked", "hooks_once.c", mode="linked")
        linked_before = build(d, "linked-before", "hooks_once.c", mode="linked", after=[behind, "-Wl,-rpath," + d])
        equal(run_ok(foreign, env=preload_env()).stdout, "ran 1, failed 0, passed on 1\n")
        equal(run_ok(linked).stdout, "ran 1, failed 0, passed on 1\n")
        equal(run_ok(foreign, env=preload_env(after=behind)).stdout, "ran 1, failed 0, passed on 1000\n")
        equal(run_ok(linked_before).stdout, "ran 1, failed 0, passed on 1000\n")


@test
def jemalloc_linked_before_us_is_the_next_allocator():
    with tempdir() as d:
        r = run_ok(build_calls(d, "linked", before=[jemalloc()]), plugin(d))
        contains(r.stdout, "libjemalloc")
        check_counts(r.stdout, PLACES, OLD)


@test
def jemalloc_linked_after_us_is_the_next_allocator():
    with tempdir() as d:
        r = run_ok(build_calls(d, "linked", after=[jemalloc()]), plugin(d))
        contains(r.stdout, "libjemalloc")
        check_counts(r.stdout, PLACES, OLD)


@test
def jemalloc_preloaded_is_the_next_allocator_of_a_linked_program():
    with tempdir() as d:
        r = run_ok(build_calls(d, "linked"), plugin(d), env={"LD_PRELOAD": jemalloc()})
        contains(r.stdout, "libjemalloc")
        check_counts(r.stdout, PLACES, OLD)


@test
def jemalloc_preloaded_behind_the_agent_is_the_next_allocator():
    with tempdir() as d:
        r = run_ok(build_calls(d, "foreign"), plugin(d), env=preload_env(after=jemalloc(), core=True))
        contains(r.stdout, "libjemalloc")
        check_counts(r.stdout, PLACES, NOT_THE_AGENTS)


@test
def jemalloc_preloaded_before_the_agent_is_left_in_charge_and_named():
    with tempdir() as d:
        r = run_ok(build_calls(d, "foreign"), plugin(d), env=preload_env(before=jemalloc(), core=True))
        need("rate 0\n" not in r.stdout, r.stdout)
        for line in r.stdout.splitlines():
            fields = line.split()
            if len(fields) == 4 and fields[1] in names_of("MALLOC") + list(OPERATORS):
                equal(fields[3], "0", line)
        out = run_ok(build(d, "index", "hooks_index.c", mode="foreign"),
                     env=dict(preload_env(before=jemalloc()), PPROF_BIND_ADDRESS="127.0.0.1:0")).stdout
        contains(out, "malloc() belongs to")
        contains(out, "libjemalloc")


@test
def jemallocs_own_doors_never_see_a_block_of_ours():
    with tempdir() as d:
        exe = build(d, "doors", "hooks_jemalloc.c", mode="linked", after=[jemalloc()])
        contains(run_ok(exe).stdout, "fine")
        contains(run_ok(exe, env={"MALLOC_CONF": "junk:true"}).stdout, "fine")


def before(d, *flags):
    so = os.path.join(d, "libbefore-us.so")
    compile_(CC, *BASE, "-fno-tree-loop-distribute-patterns", *flags, "-shared", "-fPIC", source("hooks_earlier_malloc.c"), "-o", so, "-pthread", "-ldl")
    return so


def runs_behind(so, d):
    """A foreign program and a linked one whose malloc is that of so."""
    foreign = build(d, "foreign", "hooks_family.c", mode="foreign")
    for env in {}, {"PPROF_BIND_ADDRESS": "127.0.0.1:0"}:
        out = run_ok(foreign, args=[] if env else ["127.0.0.1:0"], env=dict(preload_env(before=so, core=not env), **env)).stdout
        contains(out, "fine")
        contains(out, "malloc() belongs to " + so)
    linked = build(d, "linked", "hooks_family.c", mode="linked")
    contains(run_ok(linked, args=["127.0.0.1:0"], env={"LD_PRELOAD": so}).stdout, "fine")
    contains(run_ok(linked, args=["127.0.0.1:0"], env=preload_env(before=so)).stdout, "fine")


@test
def a_library_before_the_agent_that_watches_malloc_and_calls_the_next_one_gets_there():
    with tempdir() as d:
        runs_behind(before(d), d)


@test
def an_allocator_before_the_agent_that_lacks_half_of_the_family_gets_no_block_of_another():
    with tempdir() as d:
        runs_behind(before(d, "-DALLOCATOR"), d)


@test
def a_program_that_watches_its_own_malloc_runs_with_the_agent():
    with tempdir() as d:
        exe = os.path.join(d, "watches")
        compile_(CC, *BASE, source("hooks_earlier_malloc.c"), source("hooks_family.c"), "-o", exe, "-pthread", "-ldl")
        out = run_ok(exe, args=["127.0.0.1:0"], env=preload_env(core=True)).stdout
        contains(out, "fine")
        contains(out, "malloc() belongs to")


@test
def a_program_that_holds_the_whole_library_itself_runs_with_the_agent():
    with tempdir() as d:
        exe = build(d, "whole", "hooks_family.c", mode="linked-a-hidden")
        for more in {}, {"PPROF_BIND_ADDRESS": "127.0.0.1:0"}:
            out = run_ok(exe, args=["127.0.0.1:0"], env=dict(preload_env(), **more)).stdout
            contains(out, "fine")
            contains(out, "second copy")


@test
def of_two_cores_in_a_process_one_has_the_hooks_and_the_other_says_so():
    with tempdir() as d:
        so = os.path.join(d, "plugin.so")
        compile_(CC, *BASE, "-DPLUGIN", "-shared", "-fPIC", source("hooks_two_cores.c"), "-Wl,--exclude-libs,ALL",
                 os.path.join(LIBS, "libcomponent.a"), *static_dependencies(), "-o", so, "-pthread", "-ldl")
        exe = build(d, "two", "hooks_two_cores.c", mode="linked")
        out = run_ok(exe, args=[so, "program"]).stdout
        equal(out, "program 0 0 0\nplugin 0 1 1\nprogram %d 0 0\nfine\n" % -errno.EALREADY)
        out = run_ok(exe, args=[so, "plugin"]).stdout
        equal(out, "plugin 0 0 0\nprogram 0 1 1\nfine\n")


@test
def a_second_copy_stands_aside_and_is_named():
    with tempdir() as d:
        r = run_ok(build_calls(d, "linked"), plugin(d), env=preload_env())
        contains(r.stdout, "copy 1\n")
        check_counts(r.stdout, PLACES, OLD)
        out = run_ok(build(d, "index", "hooks_index.c", mode="linked"), env=preload_env(),
                     args=["127.0.0.1:0"]).stdout
        contains(out, "second copy")


WATCHER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static unsigned long seen;
static int next(const char *name, void *mutex)
{
	seen++;
	return ((int (*)(void *))dlsym(RTLD_NEXT, name))(mutex);
}
int pthread_mutex_lock(void *m) { return next("pthread_mutex_lock", m); }
int pthread_mutex_trylock(void *m) { return next("pthread_mutex_trylock", m); }
__attribute__((destructor)) static void tell(void) { fprintf(stderr, "seen %lu\\n", seen); }
"""


@test
def who_watches_locks_behind_us_sees_each():
    with tempdir() as d:
        with open(d + "/watcher.c", "w") as f:
            f.write(WATCHER)
        compile_(CC, *BASE, "-shared", "-fPIC", d + "/watcher.c", "-o", d + "/watcher.so", "-ldl")
        err = run_ok(build(d, "plain", "hooks_cost.c", mode="foreign"), "1000", "1", "locks", env=preload_env(after=d + "/watcher.so", core=True)).stderr
        need(int(re.search(r"seen (\d+)", err).group(1)) >= 1000, err)


@test
def without_hooks_the_index_says_what_to_link():
    with tempdir() as d:
        out = run_ok(build(d, "index", "hooks_index.c", mode="core"), args=["127.0.0.1:0"]).stdout
        contains(out, "-lcomponent_hooks")


@test
def a_program_with_a_malloc_of_its_own_links_and_keeps_it():
    with tempdir() as d:
        out = run_ok(build(d, "own", "hooks_own_malloc.c", mode="linked"), args=["127.0.0.1:0"]).stdout
        contains(out, "own malloc called")
        contains(out, "belongs to")


# ---- C++ ----

@test
def a_cplusplus_program_throws_through_a_profiled_loop():
    with tempdir() as d:
        for extra in ([], [jemalloc()]):
            exe = build(d, "throws", "hooks_throws.cc", mode="linked", after=extra)
            contains(run_ok(exe).stdout, "fine")
        exe = build(d, "throws", "hooks_throws.cc", mode="foreign")
        contains(run_ok(exe, env=preload_env(core=True)).stdout, "fine")


@test
def a_cplusplus_plugin_in_a_c_program_allocates_and_throws():
    with tempdir() as d:
        so = os.path.join(d, "plugin_cc.so")
        compile_(CXX, *CXX_FLAGS, "-shared", "-fPIC", "-O1", "-fno-omit-frame-pointer", "-DPLUGIN", "-I" + HOOKS_INC,
                 source("hooks_throws.cc"), "-o", so)
        alone = os.path.join(d, "plugin_alone.so")
        compile_(CXX, *CXX_FLAGS, "-shared", "-fPIC", "-O1", "-DPLUGIN", "-I" + HOOKS_INC, source("hooks_throws.cc"),
                 "-static-libstdc++", "-static-libgcc", "-o", alone)
        linked = build(d, "host", "hooks_plugin_host.c", mode="linked")
        foreign = build(d, "host2", "hooks_plugin_host.c", mode="foreign")
        for lib in (so, alone):
            contains(run_ok(linked, args=[lib]).stdout, "fine")
            contains(run_ok(foreign, args=[lib], env=preload_env(core=True)).stdout, "fine")


@test
def the_locks_of_cplusplus_are_seen_and_keep_their_promises():
    with tempdir() as d:
        names = "pthread_mutex_lock", "pthread_mutex_clocklock", "pthread_rwlock_rdlock"
        contains(run_ok(build(d, "locks", "hooks_locks.cc", mode="linked")).stdout, "fine")
        foreign = build(d, "locks", "hooks_locks.cc", mode="foreign")
        contains(run_ok(foreign, env=preload_env(core=True)).stdout, "fine")
        # It is these that its locks are made of.
        out = subprocess.run(["nm", "-D", "--undefined-only", foreign], capture_output=True, text=True).stdout
        for name in names:
            contains(out, name)


@test
def a_program_larger_than_its_address_is_high_starts():
    # valgrind loads programs at 1 MiB.
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    with tempdir() as d:
        large = os.path.join(d, "large.s")
        with open(large, "w") as f:
            f.write(".section .rodata\n.globl large\nlarge: .fill 4194304, 1, 1\n.section .note.GNU-stack,\"\",@progbits\n")
        for mode, env in ("foreign", preload_env()), ("linked", {}):
            exe = build(d, mode, "hooks_large.c", mode, ["-fPIE", "-pie", large])
            contains(run_ok("valgrind", "-q", "--tool=none", exe, env=env).stdout, "fine")


# ---- what is behind us ----

def nexts(d, mode_flags=(), before=(), after=()):
    """The names of a program linked like this, by what hooks_real_functions says of what is behind them."""
    out = run_ok(build(d, "next", "hooks_real_functions.c", mode="linked", flags=["-I" + HOOKS_INC] + list(mode_flags), before=before,
                       after=after)).stdout
    need(" other" not in out, out)
    found = {}
    for line in out.splitlines():
        name, what = line.split()[:2]
        found.setdefault(what, set()).add(name)
    return found


@test
def the_functions_behind_ours_are_those_that_the_loader_would_give():
    made = {"valloc", "pvalloc", "reallocarray", "cfree", "free_sized", "free_aligned_sized"}
    for flags in [], ["-no-pie", "-fno-pie"], ["-Wl,-z,lazy"], ["-Wl,--hash-style=sysv"]:
        with tempdir() as d:
            found = nexts(d, flags)
            need(found["made"] <= made | OPERATORS, found["made"])
            need(len(found["same"]) > 60, found)
    with tempdir() as d:
        found = nexts(d, before=["-lstdc++"])
        need(OPERATORS <= found["same"], OPERATORS - found["same"])


@test
def a_function_in_two_versions_an_indirect_and_a_hidden_one_are_found_as_the_loader_does():
    for style in "gnu", "sysv":
        with tempdir() as d:
            script = os.path.join(d, "odd.map")
            with open(script, "w") as f:
                f.write("ODD_1 { };\nODD_2 { odd_expected; poll; };\n")
            so = os.path.join(d, "libodd.so")
            compile_(CC, *BASE, "-DODD", "-shared", "-fPIC", "-Wl,--hash-style=" + style, "-Wl,--version-script=" + script,
                     source("hooks_real_functions.c"), "-o", so)
            found = nexts(d, after=[so, "-Wl,-rpath," + d])
            need({"poll", "fsync", "fdatasync", "nanosleep"} <= found["same"], found)


# ---- lists ----

@test
def our_list_is_libcs():
    path = subprocess.run([CC, "-print-file-name=libc.a"], capture_output=True, text=True).stdout.strip()
    if not os.path.isfile(path):
        raise Skip("no libc.a")
    libc = set()
    member = None
    for line in subprocess.run(["nm", path], capture_output=True, text=True).stdout.splitlines():
        if line.endswith(":"):
            member = line[:-1]
        m = re.match(r"[0-9a-f]+ [TW] (\w+)$", line)
        if m and member in ("malloc.o", "reallocarray.o") and not m.group(1).startswith("_"):
            libc.add(m.group(1))
    need("malloc" in libc and "free" in libc, "malloc.o was not read: %s" % libc)
    # What looks at the allocator, instead of allocating.
    libc -= {"mallinfo", "mallinfo2", "malloc_info", "malloc_stats", "malloc_trim", "mallopt",
             "malloc_get_state", "malloc_set_state"}
    ours = set(names_of("MALLOC"))
    # Not in every libc yet, or no longer in the static one.
    equal(ours - {"cfree", "free_sized", "free_aligned_sized"}, libc - {"cfree", "free_sized", "free_aligned_sized"})


@test
def our_operators_are_libstdcplusplus():
    path = subprocess.run([CXX, "-print-file-name=libstdc++.so"], capture_output=True, text=True).stdout.strip()
    if not os.path.isfile(path):
        raise Skip("no libstdc++.so")
    theirs = {n for n in exported(os.path.realpath(path)) if re.match(r"_Z(nw|na|dl|da)", n)}
    equal(set(OPERATORS), theirs)


@test
def libcomponent_defines_no_function_of_libc():
    libc = set()
    for name in ("libc.so.6", "libpthread.so.0"):
        path = subprocess.run([CC, "-print-file-name=" + name], capture_output=True, text=True).stdout.strip()
        if os.path.isfile(path):
            libc |= exported(path)
    need("malloc" in libc and "pthread_create" in libc)
    ours = exported(os.path.join(BUILD, "components/.libs/libcomponent.so"))
    need("component_main" in ours)
    equal(ours & libc, set())
    equal({n for n in ours if not n.startswith(("component_", "COMPONENT_"))}, set())


@test
def the_hooks_export_their_names_and_nothing_else():
    ours = exported(os.path.join(BUILD, "components/preload/libcomponent-preload.so"))
    want = {n for kind in ("MALLOC", "NEW", "DELETE", "THREAD", "WAIT", "CALL", "SIGNAL", "SYSV", "MAP") for n in names_of(kind)} | {"component_hooks"}
    equal(ours, want - set(NOT_THE_AGENTS) | names_of_the_agent())


@test
def a_static_program_gets_the_stub():
    with tempdir() as d:
        if not all(glob.glob(p) for p in ("/usr/lib/*/libevent_core.a", "/usr/lib/*/libc.a")):
            raise Skip("no static libraries")
        exe = build(d, "static", "hooks_index.c", mode="static")
        contains(run_ok(exe, args=["127.0.0.1:0"]).stdout, "-static")


main()
