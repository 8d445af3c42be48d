#!/usr/bin/env python3
"""What the page computes of profiles is what go tool pprof says: its decoder, trees and sums, run by node without a browser."""
import gzip
import json
import os
import random
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from gotools import rows_of_pprof  # noqa: E402
from pprof_reader import Profile  # noqa: E402
import pprof_writer  # noqa: E402

TYPES = [("samples", "count"), ("cpu", "nanoseconds"), ("space", "bytes")]


def ask(jobs, texts=()):
    """What tests/viewer/figures.js answers."""
    node = shutil.which("node")
    if not node:
        raise Skip("no node is here")
    r = run(node, os.path.join(SRC, "tests/viewer/figures.js"), os.path.join(SRC, "profiler/viewer"),
            stdin=None, input=json.dumps({"jobs": jobs, "texts": texts}), timeout=DEADLINE)
    equal((r.returncode, r.stderr), (0, ""), "figures.js")
    return json.loads(r.stdout)


def compare(path, answer, what, base=None, options=()):
    """Rows that are somewhere, which are the same."""
    need("error" not in answer, (what, answer))
    count = 0
    for kind, unit in [tuple(t) for t in what]:
        ours = answer["types"][kind]
        rows, total = rows_of_pprof(path, kind, unit, *options, *(["-diff_base=" + base] if base else []))
        for name in set(rows) | set(ours["rows"]):
            a, b = rows.get(name, [0, 0]), ours["rows"].get(name, [0, 0])
            near = 0.006 + 1e-9 * ours["whole"]
            need(abs(a[0] - b[0]) <= near and abs(a[1] - b[1]) <= near, "%s of %s in %s: pprof %s, viewer %s" % (kind, name, path, a, b))
            count += 1
        if total is not None and ours["whole"]:
            need(abs(total - ours["whole"]) <= 1e-6 * total, "total of %s: pprof %s, viewer %s" % (kind, total, ours["whole"]))
        equal(ours["wrong"], [], "trees around functions")
    return count


def write(d, name, data):
    path = os.path.join(d, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


@test
def figures_are_those_of_go_tool_pprof_for_any_profile():
    with tempdir() as d:
        paths = [write(d, "%d" % seed, (gzip.compress if seed % 2 else bytes)(pprof_writer.any_profile(random.Random(seed), TYPES)))
                 for seed in range(24)]
        answers = ask([{"paths": [p], "around": True} for p in paths])["answers"]
        need(sum(compare(p, a, TYPES) for p, a in zip(paths, answers)) > 200, "rows")


def of_one_program(r):
    """As two runs of it would be: the same functions, some of the same stacks."""
    samples = [([r.randint(1, 40) for _ in range(r.randint(1, 6))] + [1], [r.randint(0, 9), r.randint(0, 10 ** 9), r.randint(0, 1 << 20)],
                [("k", r.choice("ab"))] if r.random() < .3 else []) for _ in range(r.randint(1, 60))]
    return pprof_writer.profile(
        TYPES, samples, [(i, 1, 16 * i, [(i % 20 + 1, i)] if i % 3 else [((i + 5) % 20 + 1, 3), (i % 20 + 1, i)]) for i in range(1, 41)],
        [(i, "f%d" % i, "f%d" % i, "f.c", 0) for i in range(1, 21)], [(1, "/usr/bin/prog", "abc")])


@test
def drop_frames_takes_no_longer_for_a_name_that_can_be_read_in_many_ways():
    def dropping(pattern):
        names = "main", "aab", "a" * 60, "leaf"
        return pprof_writer.profile(TYPES[:1], [([4, 2, 1], [1], []), ([4, 3, 1], [2], [])], [(i, 1, 16 * i, [(i, i)]) for i in range(1, 5)],
                                    [(i, name, name, "x.c", 0) for i, name in enumerate(names, 1)], [(1, "/usr/bin/prog", "")], drop=pattern)
    with tempdir() as d:
        paths = [write(d, "%d" % i, dropping(p)) for i, p in enumerate(("(a|aa)*b", "(a?){60}b", "(a+)+b", "(", "x" * 5000))]
        answers = ask([{"paths": [p]} for p in paths])["answers"]
        compare(paths[0], answers[0], TYPES[:1])
        equal(answers[0]["types"]["samples"]["rows"], {"main": [1, 3], "a" * 60: [0, 2], "leaf": [2, 2]})
        for a in answers[1:]:  # what is not understood drops nothing
            equal(a["types"]["samples"]["rows"], {"main": [0, 3], "aab": [0, 1], "a" * 60: [0, 2], "leaf": [3, 3]})


@test
def so_are_those_of_a_difference():
    with tempdir() as d:
        pairs = [[write(d, "%d.%d" % (seed, i), of_one_program(random.Random(seed + i * 1000))) for i in (0, 1)] for seed in range(12)]
        answers = ask([{"paths": pair, "around": True} for pair in pairs])["answers"]
        need(sum(compare(pair[0], a, TYPES, base=pair[1]) for pair, a in zip(pairs, answers)) > 250, "rows")


@test
def so_are_those_by_line():
    with tempdir() as d:
        stack, other = [3, 2, 1, 2, 1], [2, 1]
        data = pprof_writer.profile(
            TYPES, [(stack, [1, 10, 100], []), (other, [2, 20, -50], [])],
            [(1, 1, 16, [(1, 5)]), (2, 1, 32, [(3, 9), (2, 7)]), (3, 1, 48, [(1, 6)])],
            [(1, "main", "main", "/src/main.c", 1), (2, "walk", "walk", "/src/walk.c", 1), (3, "step", "step", "/src/walk.c", 8)],
            [(1, "/usr/bin/prog", "")])
        path = write(d, "lines", data)
        answers = ask([{"paths": [path], "group": "line", "around": True}, {"paths": [path], "group": "object"}])["answers"]
        need(compare(path, answers[0], TYPES, options=["-lines"]) >= 12, answers)
        equal(answers[1]["types"]["cpu"]["rows"], {"prog": [30, 30]})


@test
def so_are_those_of_a_daemon_and_of_its_deltas_in_both_forms():
    with daemon("examples/hello", "--enable-pprof", "--heap-profile-rate=1") as d, tempdir() as files:
        paths, kinds = [], []
        for kind in ("heap", "heap?seconds=1", "goroutine", "allocs", "profile?seconds=1", "fgprof?seconds=1"):
            paths.append(write(files, re.sub(r"\W", "_", kind), d.get("/debug/pprof/" + kind).body))
            with open(paths[-1], "rb") as f:
                kinds.append(Profile(f.read()).types)
        answers = ask([{"paths": [p], "around": True} for p in paths])["answers"]
        need(sum(compare(p, a, k) for p, a, k in zip(paths, answers, kinds)) > 40, "rows")


@test
def what_the_daemon_writes_as_json_is_what_it_writes_as_pprof():
    with daemon("examples/hello", "--enable-pprof", "--heap-profile-rate=1") as d, tempdir() as files:
        def same(kind):
            """Of a moment in which nothing was counted between the two."""
            forms = [d.get("/debug/pprof/%s%s" % (kind, form)).body for form in ("", "?format=json", "")]
            paths = [write(files, "%s.%d" % (kind, i), body) for i, body in enumerate(forms)]
            before, ours, after = ask([{"paths": [p], "group": "line"} for p in paths])["answers"]
            need(before["samples"] > 0, before)
            if before["types"] != after["types"] or before["labels"] != after["labels"]:
                return False
            equal(ours["types"], before["types"], kind)
            equal([ours[k] for k in ("usual", "samples", "labels")], [before[k] for k in ("usual", "samples", "labels")], kind)
            return True
        for kind in "heap", "allocs", "goroutine":
            poll(lambda: same(kind), kind)


def as_json(raw):
    """The JSON form of a pprof profile, written here anew."""
    p = Profile(raw)
    strings = p.strings + ["n/a"]
    frames, nodes, samples, sets = [], [], [], [[]]
    mappings = {m[1]: i for i, m in enumerate(p.mappings)}
    for stack, values, labels in p.samples:
        node = -1
        for location in (p.locations[i - 1] for i in reversed(stack)):
            for at, line in enumerate(reversed(location["lines"])):
                frames += [line[1] - 1, line.get(2, 0), mappings.get(location.get(2), -1), 1 if at else 0]
                nodes += [node, len(frames) // 4 - 1]
                node = len(nodes) // 2 - 1
        sets.append([[l.get(1, 0), l.get(2, len(strings) - 1)] for l in labels])
        samples += [node, len(sets) - 1] + [str(v) if abs(v) > 1 << 53 else v for v in values]
    return json.dumps({
        "version": 1, "name": "x", "program": "p", "time_ns": "1", "duration_ns": 0, "types": p.types, "default": 0, "lost": 3, "truncated": 0,
        "comments": p.comments, "strings": strings, "objects": [m.get(5, 0) for m in p.mappings],
        "functions": [[f.get(2, 0), f.get(4, 0)] for f in p.functions], "frames": frames, "labels": sets, "nodes": nodes,
        "samples": samples}).encode()


@test
def the_json_form_has_the_same_figures():
    with daemon("examples/hello", "--enable-pprof", "--heap-profile-rate=1") as d, tempdir() as files:
        raw = d.get("/debug/pprof/heap").body
        one, two = ask([{"paths": [write(files, "pprof", raw)], "group": "line"},
                        {"paths": [write(files, "json", as_json(raw))], "group": "line"}])["answers"]
        equal(two["types"], one["types"])
        need(one["types"]["alloc_space"]["whole"] > 0 and two["lost"] == 3, two)


@test
def filters_and_labels_leave_what_they_say():
    with tempdir() as d:
        path = write(d, "labels", pprof_writer.profile(
            TYPES[:1], [([2, 1], [1], [("tenant", "a")]), ([3, 1], [2], [("tenant", "b")]), ([2, 3, 1], [4], []), ([2, 2, 1], [8], [("tenant", "a")])],
            [(i, 1, 16 * i, [(i, i)]) for i in (1, 2, 3)], [(i, name, name, "x.c", 0) for i, name in ((1, "main"), (2, "leaf"), (3, "via"))],
            [(1, "/usr/bin/prog", "")]))
        rows = [a["types"]["samples"]["rows"] for a in ask([{"paths": [path], "filters": f, "group": g, "label": "tenant"} for f, g in (
            ([{"what": "label", "key": "tenant", "value": "a", "only": True}], "function"),
            ([{"what": "label", "key": "tenant", "value": "a", "only": False}], "function"),
            ([{"what": "function", "value": "via", "only": False}, {"what": "label", "key": "tenant", "value": "b", "only": False}], "function"),
            ([], "label"), ([], "thread"))])["answers"]]
        equal(rows[0], {"main": [0, 9], "leaf": [9, 9]})
        equal(rows[1], {"main": [0, 6], "leaf": [4, 4], "via": [2, 6]})
        equal(rows[2], {"main": [0, 9], "leaf": [9, 9]})
        equal(rows[3], {"tenant=a": [0, 9], "tenant=b": [0, 2], "without tenant": [0, 4], "main": [0, 15], "leaf": [13, 13], "via": [2, 6]})
        equal(rows[4]["main"], [0, 15])


def damaged_json(r):
    """Of each two a byte that is another, and a value that is of another type or out of range."""
    whole = as_json(gzip.compress(of_one_program(r), mtime=0))
    for _ in range(100):
        data = bytearray(whole)
        data[r.randrange(len(data))] = r.choice(b'[]{},:"-0123456789e.a')
        yield bytes(data)
        form = json.loads(whole)
        of = form[r.choice([k for k in form if isinstance(form[k], list) and form[k]])]
        of[r.randrange(len(of))] = r.choice((None, -7, 1e300, 10 ** 9, "x", {}, [], [[]], True))
        if r.random() < .3:
            form[r.choice(list(form))] = r.choice((None, -7, "x", {}, []))
        yield json.dumps(form).encode()


@test
def broken_files_are_refused_by_a_sentence_and_hold_nothing_up():
    whole = pprof_writer.any_profile(random.Random(3), TYPES)
    with tempdir() as d:
        r = random.Random(1)
        files = [b"", b"{", b"[]", b"{}", b"\x1f\x8b", gzip.compress(whole)[:-20], gzip.compress(b""), b"<html>",
                 gzip.compress(gzip.compress(gzip.compress(whole))),  # a file that unpacks to itself has no end of these
                 bytes(1000), b"\xff" * 1000,
                 b'{"version":1,"types":[["a","b"]],"samples":[0,0,1],"strings":[],"functions":[],"labels":[[]],"frames":[],"nodes":[0,0]}']
        fixed = len(files)
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(r.randint(1, 6)):
                data[r.randrange(len(data))] = r.randrange(256)
            files.append(bytes(data[:r.randint(1, len(data))] if r.random() < .3 else data))
        answers = ask([{"paths": [write(d, "%d" % i, data)], "around": True} for i, data in enumerate(files)])["answers"]
        answers += ask([{"paths": [write(d, "json%d" % i, data)], "around": True} for i, data in enumerate(damaged_json(r))])["answers"]
        for i, a in enumerate(answers):
            need("types" in a or (a["kind"] == "Error" and a["error"].endswith(".")), (i, a))
            need(i >= fixed or "error" in a, (i, a))
        need(sum("error" in a for a in answers) > 100, "refused")


@test
def figures_read_as_people_write_them():
    texts = [["count_text", 1572864, "bytes"], ["count_text", 2300000000, "nanoseconds"], ["count_text", 12345, "count"],
             ["count_text", -1024, "bytes"], ["signed_text", 10, "count"], ["count_text", 90000000000, "nanoseconds"],
             ["percent_text", 1, 3], ["percent_text", 0, 0], ["percent_text", 1, 100000], ["count_text", 5, "widgets"],
             ["shown_text", "a\nb\u202ec" + "x" * 50, 6]]
    equal(ask([], texts)["texts"], ["1.50 MiB", "2.30 s", "12,345", "-1 KiB", "+10", "1.50 min", "33.3 %", "0 %", "< 0.01 %", "5 widgets",
                                    "a\ufffdb\ufffdcx\u2026"])


main()
