"""rows_metrics.py - what it costs to count: a counter beside the atomic add that it is."""
from method import Bar, Row, at_most


NOISE = 0.25  # of a bar of 2: what threads that share a cache line take varies, and far from it that decides nothing


def counted(variant, threads, bar):
    return Row("%s_%d_ratio" % (variant, threads), "ratio", bar, ("{bench}/metric", variant, str(threads)),
               ("{bench}/metric", "atomic", str(threads)), metric="add_ns", noise=NOISE,
               peer_name="a relaxed atomic add, %d threads" % threads)


ROWS = [counted("counter", 1, at_most(2)), counted("counter", 16, at_most(2)),
        counted("histogram", 1, Bar()), counted("histogram", 16, Bar())]
