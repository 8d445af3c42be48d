"""rows_viewer.py - the page: 50,000 distinct stacks of up to 128 frames in headless Chromium, medians of 20."""
from method import Row, at_most

MEASURED = ("{src}/bench/viewer", "{build}/profiler/viewer/viewer.html")
ROWS = [Row("viewer_%s_ms" % what, "ms", at_most(bar), MEASURED, kind="value", rounds=1)
        for what, bar in (("first", 3000), ("zoom", 200), ("search", 200))]
