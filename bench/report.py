"""report.py - results as a table on the terminal, as JSON, as a table in one document and a line in another.

Tests: tests/project/bench.t.
"""
import json
import os
import re

import method

COLUMNS = "%-34s %10s %10s %10s %12s %7s  %s"
BEGIN, END = "<!-- made by scripts/bench: begin -->", "<!-- made by scripts/bench: end -->"


def head():
    return COLUMNS % ("figure", "ours", "peer", "ratio/+", "bar", "A/A", "ok")


def word(ok):
    return {True: "yes", False: "NO"}.get(ok, ok)


def line(result):
    row = result.row
    if result.value is None:
        return COLUMNS % (row.name, "", "", "", row.bar, "", "%s: %s" % (word(result.ok), result.why))
    is_ratio = row.kind != "value"
    noise = "" if result.noise is None else "%.1f%%" % (100 * result.noise)
    unit = "" if is_ratio else " " + row.unit
    ok = "" if row.bar == method.Bar() else word(result.ok)
    return COLUMNS % (row.name, method.number(result.ours), method.number(result.theirs),
                      method.number(result.value) if is_ratio else "", row.bar, noise, ok + unit)


def summary(results):
    by_twin = [r for r in results if r.ok == "unresolved" and method.passes(r, results)]
    compared = [r for r in results if r.row.bar == method.Bar() and r.ok is True]
    parts = ["%d passed" % sum(method.passes(r, results) for r in results if r not in compared)]
    if by_twin:
        parts[0] += " (%d unresolved ones by their instruction counts)" % len(by_twin)
    parts.append("%d missed" % sum(r.ok is False for r in results))
    parts.append("%d unresolved" % sum(r.ok == "unresolved" and r not in by_twin for r in results))
    parts.append("%d skipped" % sum(r.ok == "skipped" for r in results))
    if compared:
        parts.append("%d for comparison" % len(compared))
    return ", ".join(parts)


def about_path(path):
    return os.path.splitext(path)[0] + ".about"


def save(path, entries, about):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path + ".new", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(e) for e in entries) + "\n]\n")
    with open(about_path(path), "w") as f:
        f.write(about + "\n")
    os.replace(path + ".new", path)


def decided(entry, entries, twins):
    """What the table says of a row: by which other one it passes, if by any."""
    twin = twins.get(entry["name"])
    if entry["ok"] == "unresolved" and any(e["name"] == twin and e["ok"] is True for e in entries):
        return "yes, by `%s`" % twin
    return "" if entry["bar"] is None and entry["ok"] is True else word(entry["ok"])


def table(path, twins):
    """Markdown, with when and where above it."""
    with open(path) as f:
        entries = json.load(f)
    with open(about_path(path)) as f:
        about = f.read().strip()
    lines = ["Measured %s:" % about, "", "| figure | value | bar | A/A | peer | ok |", "|---|---|---|---|---|---|"]
    for e in entries:
        value = "" if e["value"] is None else "%s %s" % (method.number(e["value"]), e["unit"])
        noise = "" if e["noise"] is None else "%.1f %%" % (100 * e["noise"])
        lines.append("| `%s` | %s | %s | %s | %s | %s |" % (
            e["name"], value.strip(), e["bar"] or "", noise, (e["peer"] or "").replace("|", "/"),
            decided(e, entries, twins)))
    return "\n".join(lines)


# What README.md says of all that.
SENTENCE = ("Off, a pair of malloc() and free() takes {heap_off_linked_insn} instructions more, and a program's start {start_off_us} us. "
            "With the heap sampled the pair takes {heap_on_linked_insn} more; a CPU profile takes {cpu_100hz_core_share} % of a busy processor.")


def sentence(path):
    with open(path) as f:
        values = {e["name"]: e["value"] for e in json.load(f)}
    values["cpu_100hz_core_share"] *= 100
    return SENTENCE.format_map({name: method.number(value) for name, value in values.items() if value is not None})


def between_marks(text, new):
    """The text with this in the place that is kept for it."""
    if BEGIN not in text or END not in text:
        raise ValueError("no place for results: %s and %s" % (BEGIN, END))
    return re.sub(re.escape(BEGIN) + ".*" + re.escape(END), lambda _: "%s\n%s\n%s" % (BEGIN, new, END), text, flags=re.S)


def write(document, new):
    with open(document) as f:
        text = f.read()
    with open(document, "w") as f:
        f.write(between_marks(text, new))
