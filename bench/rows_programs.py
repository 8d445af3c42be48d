"""rows_programs.py - what real servers pay for a request, with the agent preloaded."""
from method import Row, at_most

REQUESTS = "50000"  # a second
NOISE = 0.06  # a server and its client share processors and caches with whatever else runs


def server(name, variant, *where):
    return ("{src}/bench/programs", name, variant, REQUESTS) + where


def row(name, variant, bar):
    return Row("%s_%s_ratio" % (name, variant), "ratio", at_most(bar), server(name, variant, "{preload}", "{libs}"),
               server(name, "plain"), metric="request_us", noise=NOISE, peer_name=name + " without the agent, us")


PREPARE = {}
ROWS = [row(name, variant, bar) for name in ("redis", "memcached", "nginx") for variant, bar in (("off", 1.04), ("on", 1.10))]
