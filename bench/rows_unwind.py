"""rows_unwind.py - stacks: what one costs, whether it is right, and what the tables take."""
from method import Bar, Row, at_least, at_most

PEER = "libunwind unw_backtrace"
LIBRARIES = ("libLLVM-14.so.1", "libLLVM-15.so.1", "libLLVM-16.so.1", "libclang-cpp.so.14")


def stack(mode, frames=60, variant="ours", *more):
    return ("{bench}/unwind", variant, mode, str(frames)) + more


def pair(name, bar, mode, twin):
    """The time, and its twin."""
    yield Row(name, "ratio", at_most(bar), stack(mode), stack(mode, variant="libunwind"), metric="unwind_%s_60_ns" % mode,
              twin=twin, peer_name=PEER + ", ns")
    counted = "first" if mode == "first" else "warm"
    yield Row(twin, "ratio", at_most(bar), stack(counted, 60, "ours", "{n}"), stack(counted, 60, "libunwind", "{n}"),
              kind="insn_ratio", counts=(1, 21) if mode == "first" else (100, 1100), inside="measured",
              peer_name=PEER + ", instructions")


BUILD = ("{bench}/unwind_build", "ours") + LIBRARIES
AGREEMENT = ("{src}/bench/unwind_agreement", "{build}/tests/unwind/test_tables")

ROWS = [
    *pair("unwind_cold_60_ratio", 0.5, "cold", "unwind_cold_60_insn"),
    *pair("unwind_first_in_thread_ratio", 0.02, "first", "unwind_first_in_thread_insn"),
    *pair("unwind_warm_60_ratio", 0.80, "warm", "unwind_warm_60_insn"),
    Row("unwind_warm_60_vs_glibc_ratio", "ratio", Bar(), stack("warm"), stack("warm", variant="glibc"),
        metric="unwind_warm_60_ns", peer_name="glibc backtrace(), ns"),
    Row("unwind_agreement", "ratio", at_least(0.9999), AGREEMENT, kind="value", rounds=1, peer_name="libunwind unw_step"),
    Row("unwind_agreement_samples", "stacks", at_least(40000), AGREEMENT, kind="value", rounds=1),
    Row("unwind_divergent", "stacks", at_most(0), AGREEMENT, kind="value", rounds=1, peer_name="libunwind unw_step"),
    Row("unwind_table_ratio", "ratio", at_most(2.0), BUILD, kind="value"),
    Row("unwind_build_ms", "ms", at_most(40), BUILD, kind="value"),
]
