"""rows_mmap.py - what it adds to mmap() and munmap() that mappings are seen."""
from method import Row, at_most

PLAIN, OURS = "{bench}/mmap_plain", "{bench}/mmap_linked"
PAIRS = "220000"


def insn(name, bar, variant):
    """Of mmap() and munmap() of it, in the process; the kernel's are not counted."""
    return Row(name, "instructions", at_most(bar), (OURS, variant, "pairs", "{n}", "count"),
               (PLAIN, "plain", "pairs", "{n}", "count"), kind="insn", inside="pairs", peer_name="plain glibc, instructions")


ROWS = [
    insn("mmap_off_insn", 5, "off"),
    insn("mmap_on_insn", 2800, "on"),
    Row("mmap_on_added_ns", "ns", at_most(2500), (OURS, "on", "pairs", PAIRS), (PLAIN, "plain", "pairs", PAIRS), kind="added",
        metric="mmap_ns", peer_name="plain glibc, ns of mmap and munmap"),
]
