"""rows_size.py - what it weighs: the library's size, start-up, memory and threads of a program with us in it."""
from method import Row, at_most

PEER = "the same program without us"


def added(name, unit, bar, metric, *words):
    return Row(name, unit, at_most(bar), ("{bench}/door_linked",) + words, ("{bench}/door_plain", "off"), kind="added",
               metric=metric, peer_name=PEER)


def started(name, bar, program="{bench}/door_plain", how="start", env=()):
    """CPU time from exec to exit, beside that of the same program without us."""
    return Row(name, "us", at_most(bar), env + ("{bench}/door_plain", how, program), ("{bench}/door_plain", how, "{bench}/door_plain"),
               kind="added", metric="start_us", peer_name=PEER)


LINKED = "{bench}/door_linked"
AGENT = ("env", "LD_LIBRARY_PATH={libs}", "LD_PRELOAD={preload}")
SERVES = ("COMPONENT_ENABLE_PPROF=true", "COMPONENT_PROFILING_BIND_ADDRESS=127.0.0.1:0")
ROWS = [
    Row("so_size_kb", "KiB", at_most(1024), ("{src}/bench/so_size", "{libs}/libcomponent.so"), kind="value", rounds=1),
    started("start_off_us", 600, LINKED),
    started("start_on_us", 2000, LINKED, "start-on"),
    started("start_agent_off_us", 300, env=AGENT),
    started("start_agent_on_us", 2000, env=AGENT + SERVES),
    added("dirty_off_kb", "KiB", 256, "dirty_kb", "off"),
    added("threads_off", "threads", 0, "threads", "off"),
    added("dirty_on_kb", "KiB", 4096, "dirty_kb", "on"),
]
