#!/usr/bin/env python3
"""componentctl profile FILE of what gperftools and jemalloc write: the figures of go tool pprof, names by the objects that
are here, and files that were made to harm (what is read of damaged ones: test_read.c)."""
import glob
import os
import re
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import CTL, environment  # noqa: E402
from gotools import ENV, newest_pprof  # noqa: E402

BASE = 0x10000000  # where the fixtures have the program
SOURCE = """
#include <stdlib.h>
#include <string.h>
static volatile unsigned long sink;
__attribute__((noinline)) void crunch(void) { for (unsigned long i = 0; i < 400000000ul; i++) sink += i * i; }
__attribute__((noinline)) void less(void) { for (unsigned long i = 0; i < 100000000ul; i++) sink += i * i; }
__attribute__((noinline)) void *keep(size_t n) { void *p = malloc(n); memset(p, 1, n); return p; }
__attribute__((noinline)) void many(void) { for (int i = 0; i < 20000; i++) { void *p = keep(1000 + i % 100); sink += (long)p; if (i % 2) free(p); } }
__attribute__((noinline)) void big(void) { for (int i = 0; i < 20; i++) sink += (long)keep(1 << 20); }
int main(void) { many(); big(); crunch(); less(); return 0; }
"""
OURS = "crunch", "less", "keep", "many", "big", "main"


def build(d):
    source, program = os.path.join(d, "work.c"), os.path.join(d, "work")
    with open(source, "w") as f:
        f.write(SOURCE)
    r = run(CC, "-O1", "-g", "-o", program, source)
    equal(r.returncode, 0, r.stderr)
    return program


def library(name):
    found = sorted(glob.glob("/usr/lib/*/" + name) + glob.glob("/usr/lib64/" + name))
    if not found:
        raise Skip(name + " is not here")
    return found[0]


def write(path, data):
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


def go(path, *words):
    r = run(newest_pprof(), "-top", *words, path, env=dict(ENV, PPROF_TMPDIR=BUILD))
    equal(r.returncode, 0, r.stderr)
    return r.stdout


def ours(path, *words, status=0):
    r = run(CTL, "profile", path, *words, env=environment())
    equal(r.returncode, status, "%s\n%s" % (path, r.stderr))
    return r.stderr if status else r.stdout


def rows(table):
    """{function: (flat, flat%, cum, cum%)} of those that have debug information, without which go tool pprof knows none."""
    found = re.findall(r"^ *(\S+) +(\S+%?) +\S+ +(\S+) +(\S+%?)  (\w+)$", table, re.M)
    return {name: rest for *rest, name in found if name in OURS}


def unit_of(figure):
    return re.sub(r"[\d.-]", "", figure)


def amount_of(figure):
    return float(figure[:len(figure) - len(unit_of(figure))]) * {"": 1, "B": 1, "kB": 1 << 10, "MB": 1 << 20, "ms": 1, "s": 1000}[unit_of(figure)]


def same_rows(path, go_path, wanted, index):
    a, b = ours(path, "--top=0", "--sample-index=%d" % index), go(go_path, "-nodecount=0", "-sample_index=%d" % index)
    known, wanted_rows = rows(a), rows(b)
    equal(set(known), set(wanted_rows), a + b)
    for name, (flat, flat_share, cum, cum_share) in known.items():
        # What debug information does not name has rows of its own here, of which a smaller one may choose another unit.
        for mine, theirs in (flat, wanted_rows[name][0]), (cum, wanted_rows[name][2]):
            need(mine == theirs or (unit_of(mine) != unit_of(theirs) and abs(amount_of(mine) / amount_of(theirs) - 1) < .02), a + b)
        equal((flat_share, cum_share), (wanted_rows[name][1], wanted_rows[name][3]), a + b)
    need(set(wanted) <= set(rows(a)), a)
    equal(re.findall("^(?:File|Type): .*", a, re.M), re.findall("^(?:File|Type): .*", b, re.M))


@test
def a_cpu_profile_of_gperftools_has_the_figures_of_go_tool_pprof():
    newest_pprof()
    with tempdir() as d:
        program, path = build(d), os.path.join(d, "cpu.prof")
        equal(run(program, env=dict(os.environ, LD_PRELOAD=library("libprofiler.so.0"), CPUPROFILE=path)).returncode, 0)
        for index in 0, 1:
            same_rows(path, path, {"crunch", "less", "main"}, index)
        contains(ours(path, "--tree", "--focus=crunch"), "| crunch")


@test
def so_has_a_heap_profile_of_gperftools():
    newest_pprof()
    with tempdir() as d:
        program = build(d)
        equal(run(program, env=dict(os.environ, LD_PRELOAD=library("libtcmalloc.so.4"), HEAPPROFILE=os.path.join(d, "heap"))).returncode, 0)
        path = os.path.join(d, "heap.0001.heap")
        for index in range(4):
            same_rows(path, path, {"keep", "main", "big" if index % 2 else "many"}, index)


@test
def so_has_a_dump_of_jemalloc_which_go_tool_pprof_reads_once_it_looks_like_gperftools():
    newest_pprof()
    with tempdir() as d:
        program, prefix = build(d), os.path.join(d, "je")
        r = run(program, env=dict(os.environ, LD_PRELOAD=library("libjemalloc.so.2"),
                                  MALLOC_CONF="prof:true,lg_prof_sample:16,prof_final:true,prof_prefix:" + prefix))
        equal(r.returncode, 0, r.stderr)
        found = glob.glob(prefix + ".*.heap")
        if not found:
            raise Skip("this jemalloc was built without its profiler")
        with open(found[0]) as f:
            text = f.read()
        own = [[int(n, 16) for n in m.groups()] for m in re.finditer(r"^(\w+)-(\w+) \S+x\S* .*libjemalloc", text, re.M)]
        total = re.search(r"t\*: (.*)", text).group(1)
        lines = ["heap profile: %s @ heap_v2/%s" % (total, re.match(r"heap_v2/(\d+)", text).group(1))]
        for stack, amounts in re.findall(r"^@ (.*)\n  t\*: (.*)", text, re.M):
            callers = [a for a in stack.split() if not any(low <= int(a, 16) < high for low, high in own)]
            lines.append("%s @ %s" % (amounts, " ".join(callers)))
        need(len(lines) > 2, text[:2000])
        other = write(os.path.join(d, "as-gperftools"), "\n".join(lines) + "\n\n" + text[text.index("MAPPED_LIBRARIES"):])
        for index in 0, 1:
            same_rows(found[0], other, {"keep", "main", "big" if index % 2 else "many"}, index)


def places(program):
    """Addresses in its functions, as the fixtures have them: where it is mapped from its beginning."""
    found = {name: BASE + int(address, 16) + 8 for address, name in re.findall(r"^(\w+) T (\w+)$", run("nm", program).stdout, re.M)}
    return [found[name] for name in OURS]


def words(form, *numbers):
    return b"".join(struct.pack(form, n) for n in numbers)


def cpu(form, stacks, maps):
    out = words(form, 0, 3, 0, 10000, 0)
    for hits, stack in stacks:
        out += words(form, hits, len(stack), *stack)
    return out + words(form, 0, 1, 0) + maps.encode()


def fixtures(program):
    crunch, less, keep, many, big, main = places(program)
    maps = "%x-%x r-xp 00001000 fe:00 1234   %s\n7f0000000000-7f0000001000 r-xp 00000000 fe:00 99 /no/such/libother.so\n" % (BASE + 0x1000, BASE + 0x2000, program)
    brief = "0x%x-0x%x: %s (@1000)\n" % (BASE + 0x1000, BASE + 0x2000, program)
    stacks = [(7, [crunch, main]), (3, [less, main]), (2, [keep, many, main]), (1, [main])]
    handler = [(hits, stack[:1] + [many] + stack[1:]) for hits, stack in stacks[:2]]
    doubled = [(hits, stack[:1] + stack) for hits, stack in stacks]
    for form in "<Q", ">Q", "<L", ">L":
        yield "cpu" + form, cpu(form, stacks, maps)
    yield "handler", cpu("<Q", handler, maps)
    yield "doubled", cpu("<Q", doubled, brief)
    yield "no end", cpu("<Q", stacks, "")[:-24]

    def at(*stack):
        return "@ " + " ".join("0x%x" % a for a in stack)
    tail = "\nMAPPED_LIBRARIES:\n" + maps
    blocks = ["  3: 3000 [ 10: 10000] " + at(keep, many, main), " 1: 1048576 [ 2: 2097152] " + at(keep, big, main), "0: 0 [ 4: 400] " + at(less, main)]
    for kind in "heap_v2/524288", "heapz_v2/4096", "heap/1024", "heapprofile", "heap_v2/1":
        yield kind, "heap profile: 4: 1051576 [ 16: 2107552] @ %s\n# a remark\n\n" % kind + "\n".join(blocks) + "\n" + tail
        yield "in use " + kind, "heap profile: 4: 1051576 [ 0: 0] @ %s\n" % kind + "\n".join(blocks) + tail
    for kind in "growthz", "growth", "fragmentationz":
        yield kind, "heap profile: 4: 1051576 [ 4: 1051576] @ %s\n" % kind + "\n".join(blocks) + tail
    yield "negative", "heap profile: 4: 10 [ 4: 10] @ heapprofile\n-2: -600 [0: 0] %s\n 5: 900 [5: 900] %s\n" % (at(keep, main), at(less, main)) + tail
    slow = "%d %d %s\n" % (90000, 3, at(keep, main)) + " 12 1 %s\n" % at(less, many, main)
    yield "contentionz", "--- contentionz 1 ---\ncycles/second = 2000000000\nsampling period = 100\nms since reset = 5000\ndiscarded samples = 0\n" + slow + "--- Memory map: ---\n" + brief
    yield "mutex", "--- mutex:\ncycles/second=1000000000\nsampling period=1\n" + slow + "--- Memory map: ---\n" + maps
    yield "no rate", "--- contention:\n" + slow + "\n--- Memory map: ---\n" + maps


@test
def files_of_every_kind_are_shown_byte_for_byte_as_by_go_tool_pprof():
    newest_pprof()
    with tempdir() as d:
        program, count = build(d), 0
        for name, data in fixtures(program):
            path = write(os.path.join(d, re.sub("[^a-z0-9]", "-", name)), data)
            for index in 0, 1:
                equal(ours(path, "--sample-index=%d" % index), go(path, "-nodecount=10", "-sample_index=%d" % index), name)
                count += 1
        equal(count, 2 * 24)


@test
def what_lies_in_an_object_that_is_not_here_is_called_by_its_place():
    with tempdir() as d:
        fifo = os.path.join(d, "fifo")
        os.mkfifo(fifo)
        objects = "/no/such/libother.so", fifo, "/dev/zero", d, "[vdso]", "/a/\x1b[31mred"
        maps = "".join("%x-%x r-xp 00002000 fe:00 1 %s\n" % (BASE + i * 0x1000, BASE + (i + 1) * 0x1000, o) for i, o in enumerate(objects))
        stacks = [(i + 1, [BASE + i * 0x1000 + 0x10]) for i in range(len(objects))] + [(9, [0x1234])]
        table = ours(write(os.path.join(d, "x"), cpu("<Q", stacks, maps)), "--top=0")
        for name in "libother.so", "fifo", "zero", os.path.basename(d), "[vdso]":
            contains(table, "  %s+0x2010\n" % name)
        contains(table, "  <unknown>\n")
        need("\x1b" not in table, repr(table))
        equal(re.findall(r"^ +(\d+)ms", table, re.M), ["90", "60", "50", "40", "30", "20", "10"], table)


@test
def a_damaged_file_gets_a_sentence():
    head = struct.pack("<5Q", 0, 3, 0, 10000, 0)
    cases = [(head + struct.pack("<2Q", 1, 1 << 60), "is cut off"), (head + struct.pack("<Q", 1), "is cut off"),
             (struct.pack("<5Q", 0, 3, 1, 10000, 0), "of Java"),
             ("heap profile: 1: 2 [3: 4] @ heap_v9x\n", "of a kind that is not known"),
             ("heap profile: 1: 2\n", "its first line has not"),
             ("heap profile: 1: 2 [1: 2] @ heapprofile\n1: 2 [1: 2] @ 0x12345678901234567\n", "something else than addresses"),
             ("heap profile: 1: 2 [1: 2] @ heapprofile\n1: 99999999999999999999 [1: 2] @ 0x1\n", "a line has not"),
             ("heap profile: 1: 2 [1: 2] @ heapprofile\n0: 5 [1: 2] @ 0x1\n", "bytes that are no block's"),
             ("heap_v2/x\n", "its first line has not 'heap_v2/BYTES'"), ("heap_v2/524288\n", "is cut off"),
             ("heap_v2/5\n  t*: 1: 2 [0: 0]\n@ 0x1\n  t*: 1: \n", "a line has not"),
             ("--- contentionz 1 ---\nformat = java\n", "a line that is not known"),
             ("--- contentionz 1 ---\n5 @ 0x1\n", "a line has not")]
    with tempdir() as d:
        for data, sentence in cases:
            contains(ours(write(os.path.join(d, "x"), data), status=1), sentence)


main()
