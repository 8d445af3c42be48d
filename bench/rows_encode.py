"""rows_encode.py - a profile as bytes, and the names in it."""
from method import Row, at_least, at_most

GO = ("{work}/go_encode", "go")
PREPARE = {"{work}/go_encode": ("env", "HOME={work}", "GOTOOLCHAIN=local", "go", "build", "-o", "{work}/go_encode",
                                "{src}/bench/encode_go/main.go")}
ENCODE = ("{bench}/encode", "ours")
SYMBOLS = ("{src}/bench/symbols", "ours", "{build}")
ROWS = [
    Row("encode_100k_ratio", "ratio", at_most(0.30), ENCODE, GO, metric="encode_100k_ms", twin="encode_100k_insn",
        peer_name="Go's WriteHeapProfile, ms"),
    Row("encode_100k_insn", "ratio", at_most(0.30), ENCODE + ("{n}",), ("env", "GOMAXPROCS=1") + GO + ("{n}",),
        kind="insn_ratio", counts=(1, 3), tool="cachegrind", peer_name="Go's WriteHeapProfile, instructions"),  # callgrind cannot run Go
    Row("encode_extra_rss_mb", "MB", at_most(2), ENCODE, kind="value", rounds=3),
    Row("symbol_name_us", "us", at_most(0.2), ("{bench}/names", "ours"), kind="value"),
    Row("symbol_build_libllvm_ms", "ms", at_most(6), ("{bench}/names", "libllvm"), kind="value"),
    Row("symbol_10k_ms", "ms", at_most(250), SYMBOLS, kind="value", rounds=5),
    Row("symbol_10k_rss_mb", "MB", at_most(40), SYMBOLS, kind="value", rounds=5),
    Row("symbol_frames_vs_addr2line", "ratio", at_least(0.999), ("{src}/bench/symbols", "agreement", "{build}"), kind="value",
        rounds=1, peer_name="addr2line"),
]
