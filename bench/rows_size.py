"""rows_size.py - what it weighs: the library's size, start-up, memory and threads of a program with us in it."""
from method import Row, at_most

PEER = "the same program without us"


def added(name, unit, bar, metric, *words):
    return Row(name, unit, at_most(bar), ("{bench}/door_linked",) + words, ("{bench}/door_plain", "off"), kind="added",
               metric=metric, peer_name=PEER)


ROWS = [
    Row("so_size_kb", "KiB", at_most(1024), ("{src}/bench/so_size", "{libs}/libcomponent.so"), kind="value", rounds=1),
    Row("start_off_us", "us", at_most(600), ("{bench}/door_plain", "start", "{bench}/door_linked"),
        ("{bench}/door_plain", "start", "{bench}/door_plain"), kind="added", metric="start_us", peer_name=PEER),
    Row("start_on_us", "us", at_most(2000), ("{bench}/door_plain", "start-on", "{bench}/door_linked"),
        ("{bench}/door_plain", "start-on", "{bench}/door_plain"), kind="added", metric="start_us", peer_name=PEER),
    added("dirty_off_kb", "KiB", 256, "dirty_kb", "off"),
    added("threads_off", "threads", 0, "threads", "off"),
    added("dirty_on_kb", "KiB", 4096, "dirty_kb", "on"),
]
