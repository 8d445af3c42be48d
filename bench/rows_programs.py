"""rows_programs.py - what real servers pay for a request, with the agent preloaded, and with allocators that profile."""
from method import Bar, Row, at_most

ROUNDS = 15
OURS = "off", "on", "window"
OTHERS = "jemalloc", "tcmalloc"
REQUESTS = {"redis": "60000", "memcached": "50000", "nginx": "20000", "postgres": "4000"}  # some seconds for both
COUNTED = {"redis": "3000", "memcached": "3000", "nginx": "1500", "postgres": "200"}


def row(name, variant):
    preloaded = ("{preload}", "{libs}") if variant in OURS else ()
    peer = name if variant in OURS or variant == "same" else "%s with %s alone" % (name, variant)
    return Row("%s_%s_ratio" % (name, variant), "ratio", at_most(1.02) if variant in OURS else Bar(),
               ("{src}/bench/programs", name, variant, REQUESTS[name]) + preloaded, kind="paired", metric="request_us", peer_metric="peer_us",
               peer_name=peer + ", us", rounds=ROUNDS, twin=name + "_on_insn" if variant == "on" else "")


def counted(name):
    return Row(name + "_on_insn", "ratio", at_most(1.02), ("{src}/bench/programs", name, "insn", COUNTED[name], "{preload}", "{libs}"),
               kind="paired", metric="request_insn", peer_metric="peer_insn", peer_name=name + ", instructions", rounds=1)


PREPARE = {}
ROWS = [r for name in REQUESTS for r in [row(name, variant) for variant in ("same", *OURS, *OTHERS)] + [counted(name)]]
