"""rows_programs.py - what real servers pay for a request, with the agent preloaded, and with allocators that profile."""
from method import Bar, Row, at_most

ROUNDS = 15
OURS = "off", "on", "window"
ALLOCATORS = "jemalloc", "tcmalloc"
# Of nobody's: what any profiler with a thread costs at least, and what anybody does who stands before malloc.
ALONE = {"thread": "{work}/second_thread.so", "jump": "{work}/one_jump.so"}
SLOW = "{work}/slow_time.so"  # callgrind's server is slower, and so are the window's timers
# Some 0.2 s of CPU time at least, in slices of 1 ms or one request of every client (bench/programs).
REQUESTS = {"redis": "307200", "memcached": "122880", "nginx": "61440", "postgres": "15360"}
NOISE = 0.008  # what is 1.01 can be told from 1.02, mostly: two starts of one server are 1 % apart
COUNTED = {"redis": "3072", "memcached": "3072", "nginx": "1536", "postgres": "128"}
COUNTED_ROUNDS = {"redis": 21}  # its dictionaries have random seeds, which are 0.5 % to and fro; the others repeat to 0.2 %


def row(name, variant):
    preloaded = ("{preload}", "{libs}") if variant in OURS else (ALONE[variant],) if variant in ALONE else ()
    peer = name if variant not in ALLOCATORS else "%s with %s alone" % (name, variant)
    return Row("%s_%s_ratio" % (name, variant), "ratio", at_most(1.02) if variant in OURS else Bar(),
               ("{src}/bench/programs", name, variant, REQUESTS[name]) + preloaded, kind="paired", metric="request_us", peer_metric="peer_us",
               peer_name=peer + ", us", rounds=ROUNDS, noise=NOISE, twin="%s_%s_insn" % (name, variant) if variant in ("on", "window") else "")


def counted(name, variant, bar, *preloaded):
    return Row("%s_%s" % (name, variant), "ratio", bar, ("{src}/bench/programs", name, variant, COUNTED[name]) + preloaded,
               kind="paired", metric="request_insn", peer_metric="peer_insn", peer_name=name + ", instructions", rounds=COUNTED_ROUNDS.get(name, 3))


def shared(library):
    return "{cc}", "-shared", "-fPIC", "-O2", "-o", library, library.replace("{work}", "{src}/bench").replace(".so", ".c")


PREPARE = {library: shared(library) for library in (*ALONE.values(), SLOW)}
ROWS = [r for name in REQUESTS for r in [
    *(row(name, variant) for variant in ("same", *OURS, *ALONE, *ALLOCATORS)),
    counted(name, "on_insn", at_most(1.02), "{preload}", "{libs}"),
    counted(name, "window_insn", at_most(1.02), "{preload}", "{libs}", SLOW), counted(name, "thread_insn", Bar(), ALONE["thread"])]]
