"""rows_labels.py - what it costs to say on whose behalf a thread works."""
from method import Row, at_most


def label(variant, bar):
    return Row("label_%s_insn" % variant, "instructions", at_most(bar), ("{bench}/labels", variant, "{n}"), kind="insn",
               counts=(1000, 21000), inside="measured")


ROWS = [label("known", 560), label("second", 780), label("new", 1250), label("use", 220)]
