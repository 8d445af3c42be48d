"""rows_dump.py - a dump of all threads: what it takes of the thread that makes it, beside eu-stack."""
from method import Bar, Row, at_least, at_most


def dump(name, unit, bar, what, threads, rounds, peer_name=""):
    return Row(name, unit, bar, ("{bench}/dump", what, str(threads)), kind="value", rounds=rounds, peer_name=peer_name)


ROWS = [
    dump("dump_1k_cpu_ms", "ms", at_most(20), "stacks", 1000, 7),
    dump("dump_1k_again_cpu_ms", "ms", Bar(), "again", 1000, 3),
    dump("dump_10k_cpu_ms", "ms", at_most(220), "stacks", 10000, 3),
    dump("dump_10k_debug2_cpu_ms", "ms", at_most(400), "debug2", 10000, 3),
    dump("dump_vs_eustack_ratio", "ratio", at_least(80), "eu-stack", 1000, 5, "eu-stack --raw, its CPU time by ours"),
    dump("dump_handler_p99_us", "us", at_most(3), "handler", 1000, 5),
]
