"""rows_serve.py - what many stacks take: in memory, and in an answer."""
from method import Row, at_most

ROWS = [
    Row("stack_table_bytes", "bytes", at_most(300), ("{bench}/stack_table", "ours"), kind="value", rounds=3),
    Row("scrape_16k_ms", "ms", at_most(60), ("{bench}/scrape", "ours"), kind="value"),
]
