"""rows_programs.py - what real servers pay for a request, with the agent preloaded."""
from method import Row, at_most

REQUESTS = "100000"
NOISE = 0.06  # a server and its client share processors and caches with whatever else runs


def redis(variant, *where):
    return ("{src}/bench/programs", variant, REQUESTS) + where


def row(variant, bar):
    return Row("redis_%s_ratio" % variant, "ratio", at_most(bar), redis(variant, "{preload}", "{libs}"), redis("plain"),
               metric="redis_request_us", noise=NOISE, peer_name="redis without the agent, us")


PREPARE = {}
ROWS = [row("off", 1.04), row("on", 1.10)]
