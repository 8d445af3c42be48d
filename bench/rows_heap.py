"""rows_heap.py - what the heap profile adds to malloc and free, and what others' adds to theirs."""
from method import NOISE_PAIRS, Bar, Row, at_most

OPERATIONS = {"pairs": 4400000, "mixed": 1100000, "request": 704000}
GLIBC = "plain glibc, ns"
# What the profiler's thread does to glibc, which takes locks from then on, is a row of its own.
BASE = {"on": "thread", "off": "plain"}
TCMALLOC = ("env", "LD_PRELOAD=libtcmalloc.so.4")
JEMALLOC = ("env", "LD_PRELOAD=libjemalloc.so.2")


def heap(work, variant="plain", exe="heap_plain", env=(), n=None):
    return tuple(env) + ("{bench}/" + exe, variant, work, str(n or OPERATIONS[work]))


def insn(variant="plain", exe="heap_plain", env=()):
    return tuple(env) + ("{bench}/" + exe, variant, "pairs", "{n}", "count")


def time_row(name, bar, work, ours, base, twin):
    return Row(name, "ratio", at_most(bar), ours, heap(work, base), metric="heap_%s_ns" % work, twin=twin, noise=NOISE_PAIRS,
               peer_name=GLIBC)


def insn_row(name, bar, ours):
    return Row(name, "instructions", at_most(bar), ours, insn(), kind="insn", counts=(2000, 4002000), inside="pairs",
               peer_name="plain glibc, instructions")


def door(prefix, bars, variant, insn_bar, exe, env=()):
    """The rows of one way of being in the program."""
    twin = prefix + "_insn"
    for work, bar in bars.items():
        yield time_row("%s_%s_ratio" % (prefix, work), bar, work, heap(work, variant, exe, env), BASE[variant], twin)
    yield insn_row(twin, insn_bar, insn(variant, exe, env))


def second_thread():
    """What any second thread costs a program that had one."""
    for work in OPERATIONS:
        yield Row("heap_second_thread_%s_ratio" % work, "ratio", Bar(), heap(work, "thread"), heap(work),
                  metric="heap_%s_ns" % work, noise=NOISE_PAIRS, peer_name=GLIBC)


def other(name, env, base, n=None, works=("pairs", "mixed", "request"), peer_name=""):
    """Somebody else's profiler, to its own base."""
    for work in works:
        yield Row("heap_peer_%s_%s_ratio" % (name, work), "ratio", Bar(), heap(work, env=env, n=n), heap(work, env=base, n=n),
                  metric="heap_%s_ns" % work, noise=NOISE_PAIRS, peer_name=peer_name)


AGENT = ("env", "LD_LIBRARY_PATH={libs}", "LD_PRELOAD={preload}:libcomponent.so.0")
PREPARE = {  # no allocator, no row: the loader would only warn
    "libtcmalloc.so.4": ("{src}/bench/library", "libtcmalloc.so.4", "libgoogle-perftools4"),
    "libjemalloc.so.2": ("{src}/bench/library", "libjemalloc.so.2", "libjemalloc2"),
}
ROWS = [
    *door("heap_on_linked", {"pairs": 1.02, "mixed": 1.05, "request": 1.01}, "on", 8, "heap_linked"),
    *door("heap_on_preload", {"pairs": 1.15, "mixed": 1.09, "request": 1.05}, "on", 11, "heap_plain", AGENT),
    *door("heap_off_linked", {"pairs": 1.02}, "off", 6, "heap_linked"),
    *second_thread(),
    *other("tcmalloc", TCMALLOC + ("TCMALLOC_SAMPLE_PARAMETER=524288",), TCMALLOC, peer_name="tcmalloc not sampled, ns"),
    *other("heapprofile", TCMALLOC + ("HEAPPROFILE={work}/hp", "HEAP_PROFILE_ALLOCATION_INTERVAL=0",
                                      "HEAP_PROFILE_INUSE_INTERVAL=0"), TCMALLOC, 22000, ("pairs",), "tcmalloc without, ns"),
    *other("jemalloc", JEMALLOC + ("MALLOC_CONF=prof:true,lg_prof_sample:19",), JEMALLOC, peer_name="jemalloc without prof, ns"),
]
