"""rows_viewer.py - the page: 50,000 distinct stacks of up to 128 frames in headless Chromium, medians of 20; and what it costs while it is open."""
from method import Row, at_most

MEASURED = ("{src}/bench/viewer", "{build}/profiler/viewer/viewer.html")
OPEN = ("{src}/bench/viewer_open", "{build}")
ROWS = [Row("viewer_%s_ms" % what, "ms", at_most(bar), MEASURED, kind="value", rounds=1)
        for what, bar in (("first", 3000), ("zoom", 200), ("search", 200))]
ROWS.append(Row("viewer_open_percent", "%", at_most(0.3), OPEN, kind="value", rounds=1))
