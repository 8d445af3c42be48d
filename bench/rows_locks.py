"""rows_locks.py - what the mutex and block profiles add to a lock, and to a wait."""
from method import NOISE_PAIRS, Row, at_most

PLAIN, OURS = "{bench}/locks_plain", "{bench}/locks_linked"
PAIRS, WAITS = "2200000", "11000"


def ratio(name, bar, variant, base, twin):
    return Row(name, "ratio", at_most(bar), (OURS, variant, "pairs", PAIRS), (PLAIN, base, "pairs", PAIRS), metric="mutex_ns",
               twin=twin, noise=NOISE_PAIRS, peer_name="plain glibc, ns of lock and unlock")


def insn(name, bar, variant, base=""):
    """Of lock and unlock in all, or what is added to the base."""
    return Row(name, "instructions", at_most(bar), (OURS, variant, "pairs", "{n}", "count"),
               (PLAIN, base, "pairs", "{n}", "count") if base else (), kind="insn", inside="pairs",
               peer_name="plain glibc, instructions" if base else "")


ROWS = [
    ratio("mutex_off_ratio", 1.02, "off", "plain", "mutex_off_insn"),
    insn("mutex_off_insn", 6, "off", "plain"),
    ratio("mutex_on_ratio", 1.15, "on", "thread", "mutex_on_insn"),
    insn("mutex_on_insn", 85, "on"),
    Row("wait_added_ns", "ns", at_most(2500), (OURS, "on", "waits", WAITS), (PLAIN, "thread", "waits", WAITS), kind="added",
        metric="wait_ns", peer_name="plain glibc, ns of a turn"),
]
