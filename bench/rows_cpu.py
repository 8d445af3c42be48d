"""rows_cpu.py - samples of the CPU profile: what one costs, and whether their number is right."""
from method import Bar, Row, at_most, between


def signal(*words):
    return ("{bench}/cpu_signal",) + words


def accuracy(variant):
    return ("{bench}/cpu_accuracy", variant, "{round}")


def exact(name, unit, bar, command, metric="", peer_name="", rounds=3):
    return Row(name, unit, bar, command, kind="value", rounds=rounds, metric=metric, peer_name=peer_name)


GO = ("{src}/bench/cpu_accuracy_go", "{work}/go_accuracy", "{round}")
PREPARE = {"{work}/go_accuracy": ("env", "HOME={work}", "GOTOOLCHAIN=local", "go", "build", "-o", "{work}/go_accuracy",
                                  "{src}/bench/accuracy/main.go")}
ROWS = [
    Row("cpu_signal_vs_empty_handler", "ratio", at_most(1.6), signal("ours", "30"), signal("empty", "30"), metric="cpu_signal_ns",
        peer_name="empty handler, ns"),
    Row("cpu_signal_scale_ratio", "ratio", at_most(1.5), signal("ours", "30", "1000"), signal("ours", "30"),
        metric="cpu_signal_ns", twin="cpu_signal_scale_insn", peer_name="ours with one thread, ns"),
    Row("cpu_signal_scale_insn", "ratio", at_most(1.5), signal("ours", "30", "1000", "{n}"), signal("ours", "30", "1", "{n}"),
        kind="insn_ratio", counts=(2000, 12000), inside="sample_take", peer_name="ours with one thread, instructions"),
    Row("cpu_100hz_core_share", "share", at_most(0.001), signal("share", "30"), kind="value", rounds=5),
    exact("cpu_count_ratio", "ratio", between(0.995, 1.005), accuracy("ours"), rounds=7),
    exact("cpu_tv_pp", "pp", at_most(0.35), accuracy("ours"), rounds=7),
    exact("cpu_peer_gperftools_count_ratio", "ratio", Bar(), accuracy("gperftools"), "cpu_count_ratio", "gperftools"),
    exact("cpu_peer_gperftools_tv_pp", "pp", Bar(), accuracy("gperftools"), "cpu_tv_pp", "gperftools"),
    exact("cpu_peer_go_count_ratio", "ratio", Bar(), GO, "cpu_count_ratio", "Go's runtime"),
    exact("cpu_peer_go_tv_pp", "pp", Bar(), GO, "cpu_tv_pp", "Go's runtime"),
]
