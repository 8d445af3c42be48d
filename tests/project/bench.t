#!/usr/bin/env python3
"""bench.t - the arithmetic of bench/, what its driver makes of programs, and its rows; nothing is timed."""
import dataclasses
import importlib.machinery
import json
import os
import re
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

import daemons  # noqa: E402

sys.dont_write_bytecode = True
BENCH = os.path.join(SRC, "bench")
sys.path.insert(0, BENCH)
import method  # noqa: E402
import report  # noqa: E402
from method import Bar, Row, at_least, at_most, between  # noqa: E402

ROW = Row("a_ratio", "ratio", at_most(1.0), ("x",), ("y",), twin="a_insn", peer_name="foo")
TWIN = Row("a_insn", "instructions", at_most(8), ("x",), ("y",), kind="insn")


def rounds_of(ratios, noise=0.0):
    """Rounds whose ratio is given, ours differing from itself by up to the noise."""
    made = []
    for i, r in enumerate(ratios):
        off = noise * (i / (len(ratios) - 1) - 0.5)
        made.append((r * (1 + off), r * (1 - off), 1.0, 1.0))
    return made


def verdict(ratio, noise, row=ROW):
    return method.ratio_result(row, rounds_of([ratio] * 21, noise)).ok


def driver(d, rows, *args, status=0):
    """Runs a copy of the driver on rows of its own: (results, output)."""
    for name in ("run", "method.py", "report.py"):
        shutil.copyfile(os.path.join(BENCH, name), os.path.join(d, name))
    with open(os.path.join(d, "rows_test.py"), "w") as f:
        f.write("from method import *\n" + rows)
    out = os.path.join(d, "out.json")
    r = run(sys.executable, os.path.join(d, "run"), "--build", d, "--out", out, *args)
    equal(r.returncode, status, r.stdout + r.stderr)
    return (json.load(open(out)) if os.path.exists(out) else None), r.stdout + r.stderr


def files(d):
    return {os.path.relpath(os.path.join(at, f), d) for at, _, names in os.walk(d) for f in names}


def script(d, name, text):
    path = os.path.join(d, name)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


@test
def medians_and_their_intervals_are_order_statistics():
    equal(method.median([3, 1, 2]), 2)
    equal(method.median([4, 1, 2, 3]), 2.5)
    # For 21 values the 95 % interval of the median is from the 7th to the 15th.
    equal(method.interval(range(21, 0, -1)), (7, 15))
    equal(method.width(range(21)), 8)
    equal(method.interval([5]), (5, 5))


@test
def a_ratio_is_the_median_of_the_ratios_of_rounds():
    # Rounds of very different speed: their own ratios are what counts.
    rounds = [(k, k, 2 * k, 2 * k) for k in range(1, 21)] + [(1000, 1000, 1, 1)]
    r = method.ratio_result(ROW, rounds)
    equal(r.value, 0.5)
    equal(r.noise, 0.0)
    equal(r.ok, True)


@test
def the_interval_is_that_of_the_noisier_side():
    quiet = [(1.0, 1.0, 1.0, 1.0)] * 21
    equal(method.ratio_result(ROW, quiet).noise, 0.0)
    for side in (0, 2):
        rounds = [tuple(1.0 + (0.01 * i if k == side else 0) for k in range(4)) for i in range(21)]
        need(method.ratio_result(ROW, rounds).noise > 0.05, "noise of one side is not seen")


@test
def what_is_added_is_the_median_of_differences():
    row = Row("d_us", "us", at_most(5), ("x",), ("y",), kind="added", peer_name="without")
    r = method.added_result(row, [(10 + k, 12 + k, 6 + k, 6 + k) for k in range(21)])
    equal((r.value, r.ok, r.noise), (5, True, 0.0))
    equal(method.added_result(row, [(12, 12, 6, 6)] * 21).ok, False)


@test
def too_few_rounds_are_an_error():
    try:
        method.ratio_result(ROW, rounds_of([1.0] * 20))
    except ValueError:
        return
    raise AssertionError("20 rounds were taken")


@test
def only_a_narrow_interval_lets_a_ratio_pass_or_fail():
    alone = dataclasses.replace(ROW, twin="")
    for row in (ROW, alone):
        equal(verdict(0.9, 0.0, row), True)
        equal(verdict(0.9, 0.2, row), "unresolved")
        equal(verdict(1.01, 0.2, row), "unresolved")
    equal([verdict(1.1, 0.0, alone), verdict(5.0, 0.2, alone)], [False, False])
    # With a twin, that one decides.
    equal([verdict(1.1, 0.0), verdict(5.0, 0.2)], ["unresolved", "unresolved"])
    wide = Row("b_ratio", "ratio", at_most(1.0), ("x",), ("y",), noise=method.NOISE_PAIRS)
    equal((method.NOISE, method.NOISE_PAIRS, method.ROUNDS), (0.02, 0.04, 21))
    # Each is off by up to half of it, the interval is 8/20 of both.
    equal((verdict(0.9, 0.035), verdict(0.9, 0.035, wide)), ("unresolved", True))


@test
def bars_hold_on_either_side():
    equal([at_most(2).holds(x) for x in (2, 2.1)], [True, False])
    equal([at_least(2).holds(x) for x in (2, 1.9)], [True, False])
    equal([between(1, 2).holds(x) for x in (0.9, 1, 2, 2.1)], [False, True, True, False])
    equal(Bar().holds(1e9), True)
    equal([str(b) for b in (at_most(2), at_least(0.9999), between(0.995, 1.005), Bar())],
          ["<= 2", ">= 0.9999", "0.995..1.005", ""])


@test
def what_is_measured_side_by_side_is_unresolved_where_the_interval_spans_the_bar():
    row = Row("a_ratio", "ratio", at_most(1.02), ("x",), kind="paired", metric="a_us", peer_metric="b_us", rounds=15)

    def verdict(low, middle, high, row=row):
        return method.paired_result(row, [(r, 1.0) for r in [0.5, 0.6] + [low] * 4 + [middle] * 3 + [high] * 4 + [7, 8]])
    for ratios, ok in ((1.0, 1.01, 1.015), True), ((1.0, 1.01, 1.03), "unresolved"), ((1.01, 1.03, 1.04), "unresolved"), ((1.03, 1.04, 1.05), False):
        r = verdict(*ratios)
        equal((r.ok, r.value, round(r.noise, 9), r.ours, r.theirs), (ok, ratios[1], round(ratios[2] - ratios[0], 9), ratios[1], 1.0), ratios)
    equal(verdict(1.0, 9.0, 20.0, dataclasses.replace(row, bar=Bar())).ok, True)


@test
def unresolved_passes_by_its_twin_alone():
    unresolved = method.Result(ROW, 0.9, "unresolved")
    equal(method.passes(unresolved, [unresolved]), False)
    for insn, wanted in ((7, True), (9, False)):
        results = [unresolved, method.insn_result(TWIN, 100 + insn, 100)]
        equal(method.passes(unresolved, results), wanted)
    skipped = [unresolved, method.Result(TWIN, why="no valgrind")]
    equal(method.passes(unresolved, skipped), False)
    equal(method.passes(skipped[1], skipped), False)
    contains(report.summary(results), "1 unresolved")
    contains(report.summary(skipped), "0 passed, 0 missed, 1 unresolved, 1 skipped")


@test
def the_driver_runs_ours_and_peer_in_turns_and_the_other_way_round():
    with tempdir() as d:
        log = os.path.join(d, "log")
        script(d, "p", 'printf %%s "$1" >>%s; echo "t_ns $2 ns"\n' % log)
        rows = 'ROWS = [Row("t_ratio", "ratio", at_most(0.6), ("%s/p", "a", "1"), ("%s/p", "b", "2"), metric="t_ns", peer_name="foo")]' % (d, d)
        results, out = driver(d, rows)
        equal(open(log).read(), ("abba" + "baab") * 10 + "abba")
        equal(results, [{"name": "t_ratio", "value": 0.5, "unit": "ratio", "bar": "<= 0.6", "ok": True, "peer": "foo: 2", "noise": 0.0}])
        contains(out, "figure")
        contains(out, "A/A")
        contains(out, "1 passed, 0 missed, 0 unresolved, 0 skipped")


@test
def a_missing_peer_is_a_skipped_row_that_says_so():
    with tempdir() as d:
        script(d, "p", 'echo "t_ns 1 ns"\n')
        script(d, "none", 'echo "libfoo.so.1 is not here" >&2; exit 77\n')
        rows = '\n'.join(['ROWS = [', *(
            'Row("%s", "ratio", at_most(2), ("%s/p",), %s, metric="t_ns", peer_name="foo"),' % (name, d, peer)
            for name, peer in (("a", '("%s/none",)' % d), ("b", '("/nowhere/program",)'), ("c", '("{work}/made",)'))), ']',
            'PREPARE = {"{work}/made": ("/nowhere/compiler",)}'])
        results, out = driver(d, rows)
        equal([r["ok"] for r in results], ["skipped"] * 3)
        equal([r["value"] for r in results], [None] * 3)
        contains(results[0]["peer"], "skipped: libfoo.so.1 is not here")
        contains(results[1]["peer"], "skipped: program is not here")
        contains(results[2]["peer"], "skipped: made cannot be made: compiler is not here")
        contains(out, "0 passed, 0 missed, 0 unresolved, 3 skipped")


@test
def a_bar_that_is_missed_and_a_program_that_fails_are_failures():
    with tempdir() as d:
        script(d, "p", 'echo "# a note"; echo "v_ms 7 ms"\n')
        script(d, "bad", 'echo "broken" >&2; exit 1\n')
        script(d, "mute", 'exit 0\n')
        rows = '\n'.join(['ROWS = [', *(
            'Row("%s", "ms", at_most(%d), ("%s/%s",), kind="value", metric="v_ms", rounds=3),' % (n, bar, d, p)
            for n, bar, p in (("good", 7, "p"), ("high", 6, "p"), ("bad", 9, "bad"), ("mute", 9, "mute"))), ']'])
        results, out = driver(d, rows, status=1)
        equal([(r["name"], r["value"], r["ok"]) for r in results],
              [("good", 7, True), ("high", 7, False), ("bad", None, False), ("mute", None, False)])
        contains(out, "# a note")
        contains(out, "broken")
        contains(out, "1 passed, 3 missed")


@test
def a_comparison_that_is_too_noisy_gets_more_rounds_while_there_is_time():
    with tempdir() as d:
        # Twice as much every other time, in the first 21 rounds and no more.
        script(d, "p", 'echo x >>%s/log; n=$(wc -l <%s/log)\n' % (d, d) +
               'if [ $n -le 84 ] && [ $((n % 2)) = 0 ]; then echo "v 2 ms"; else echo "v 1 ms"; fi\n')
        rows = 'ROWS = [Row("v", "ratio", %%s, ("%s/p",), ("%s/p",), metric="v")]' % (d, d)
        results, out = driver(d, rows % "at_most(1.5)", status=0)
        rounds = int(re.search(r"# (\d+) rounds", out).group(1))
        need(21 < rounds < 200, out)
        equal((results[0]["ok"], results[0]["noise"]), (True, 0))
        os.remove(os.path.join(d, "log"))
        os.environ["BENCH_SECONDS"] = "0.0"
        try:
            results, out = driver(d, rows % "at_most(1.5)", status=1)
        finally:
            del os.environ["BENCH_SECONDS"]
        equal(results[0]["ok"], "unresolved")
        need("rounds" not in out, out)
        os.remove(os.path.join(d, "log"))
        _, out = driver(d, rows % "Bar()", status=0)
        need("rounds" not in out, "a row for comparison alone took more rounds")


@test
def prefixes_choose_rows_and_rows_of_one_command_share_its_runs():
    with tempdir() as d:
        log = os.path.join(d, "log")
        script(d, "p", 'echo "$1" >>%s; echo "x_ms 1 ms"; echo "y_ms 2 ms"\n' % log)
        rows = '\n'.join(['ROWS = [', *(
            'Row("%s", "ms", at_most(9), ("%s/p", "{round}"), kind="value", rounds=2),' % (n, d)
            for n in ("x_ms", "y_ms", "z_ms"))] + [']'])
        results, _ = driver(d, rows, "x_", "y_")
        equal([(r["name"], r["value"]) for r in results], [("x_ms", 1), ("y_ms", 2)])
        equal(open(log).read(), "0\n1\n")
        _, out = driver(d, rows, "nothing", status=2)
        contains(out, "no row begins with nothing")


@test
def two_builds_are_compared_row_by_row_and_noise_alone_is_no_miss():
    with tempdir() as d:
        for name, printed in (("new", "1$(($(wc -l <%s/log) %% 3)) ms" % d), ("old", "10 ms")):
            os.makedirs(os.path.join(d, name, "bench"))
            script(d, name + "/bench/p", 'echo %s >>%s/log\necho "a_ms %s"; echo "b_ms 10 ms"\n' % (name, d, printed))
        rows = "\n".join(['ROWS = [',
            'Row("a_ms", "ms", at_most(1), ("{bench}/p",), kind="value", rounds=5),',
            'Row("b_ratio", "ratio", at_most(0.1), ("{bench}/p",), ("/nowhere/peer",), metric="b_ms"),',
            'Row("c_ratio", "ratio", at_least(80), ("{bench}/p",), kind="value", metric="b_ms"),',
            'Row("d_ratio", "ratio", Bar(), ("{bench}/p",), ("/nowhere/peer",), metric="b_ms")]'])
        os.environ["BENCH_SECONDS"] = "0"
        try:
            results, out = driver(d, rows, "--build", d + "/new", "--against", d + "/old")
            log = open(os.path.join(d, "log")).read().split()
            equal(log[:8], ["new", "old", "old", "new", "old", "new", "new", "old"])
            equal([(r["name"], r["ok"]) for r in results], [("a_ms", True), ("b_ratio", True)], out)
            need(1 < results[0]["value"] <= 1 + results[0]["noise"], out)
            script(d, "new/bench/p", 'echo "a_ms 11 ms"; echo "b_ms 10 ms"\n')
            results, out = driver(d, rows, "--build", d + "/new", "--against", d + "/old", status=1)
        finally:
            del os.environ["BENCH_SECONDS"]
        equal([(r["name"], r["value"], r["ok"]) for r in results], [("a_ms", 1.1, False), ("b_ratio", 1, True)], out)


@test
def a_table_goes_between_its_marks_and_nowhere_else():
    with tempdir() as d:
        path = os.path.join(d, "r.json")
        entries = [method.insn_result(TWIN, 10, 4).json(), method.Result(ROW, why="no foo").json()]
        report.save(path, entries, "on a day, on a machine")
        equal(json.load(open(path)), entries)
        text = report.between_marks("before\n%s\nold\n%s\nafter\n" % (report.BEGIN, report.END), report.table(path, {}))
        need(text.startswith("before\n" + report.BEGIN) and text.endswith(report.END + "\nafter\n"), text)
        need("old" not in text, text)
        contains(text, "on a day, on a machine")
        contains(text, "| `a_insn` | 6 instructions | <= 8 |")
        contains(text, "skipped: no foo")
        equal(report.between_marks(text, report.table(path, {})), text)


@test
def the_table_says_which_row_lets_an_unresolved_one_pass():
    with tempdir() as d:
        path = os.path.join(d, "r.json")
        for added, wanted in ((6, "yes, by `a_insn` |"), (9, "unresolved |")):
            report.save(path, [method.Result(ROW, 1.1, "unresolved").json(), method.insn_result(TWIN, 10 + added, 10).json()], "x")
            contains(report.table(path, {"a_ratio": "a_insn"}), wanted)
        contains(report.table(path, {}), "unresolved |")


# What a request of a real server may cost with the agent, and with a window open besides.
SERVERS = {"%s_%s_ratio" % (name, variant): "<= 1.02" for name in ("redis", "memcached", "nginx", "postgres") for variant in ("on", "window")}

# The figures that are promised, and their bars.
PROMISED = {
    "unwind_cold_60_ratio": "<= 0.5", "unwind_first_in_thread_ratio": "<= 0.02", "unwind_warm_60_ratio": "<= 0.8",
    "unwind_agreement": ">= 0.9999", "unwind_agreement_samples": ">= 40000", "unwind_divergent": "<= 0",
    "unwind_table_ratio": "<= 2", "unwind_build_ms": "<= 40",
    "heap_on_linked_pairs_ratio": "<= 1.02", "heap_on_linked_mixed_ratio": "<= 1.05",
    "heap_on_linked_request_ratio": "<= 1.01", "heap_on_linked_insn": "<= 8",
    "heap_on_preload_pairs_ratio": "<= 1.15", "heap_on_preload_mixed_ratio": "<= 1.09",
    "heap_on_preload_request_ratio": "<= 1.05", "heap_on_preload_insn": "<= 11",
    "heap_off_linked_pairs_ratio": "<= 1.02", "heap_off_linked_insn": "<= 6",
    "cpu_signal_vs_empty_handler": "<= 1.6", "cpu_100hz_core_share": "<= 0.001",
    "cpu_count_ratio": "0.995..1.005", "cpu_tv_pp": "<= 0.35", "cpu_signal_scale_ratio": "<= 1.5",
    "so_size_kb": "<= 1024", "start_off_us": "<= 600", "dirty_off_kb": "<= 256", "dirty_on_kb": "<= 4096", "threads_off": "<= 0",
    "start_on_us": "<= 2000", "start_agent_off_us": "<= 300", "start_agent_on_us": "<= 2000",
    "encode_100k_ratio": "<= 0.3", "encode_extra_rss_mb": "<= 2", "symbol_name_us": "<= 0.2", "symbol_10k_ms": "<= 250",
    "symbol_10k_rss_mb": "<= 40", "symbol_frames_vs_addr2line": ">= 0.999",
    "stack_table_bytes": "<= 300", "scrape_16k_ms": "<= 60",
    "dump_1k_cpu_ms": "<= 20", "dump_10k_cpu_ms": "<= 220", "dump_10k_debug2_cpu_ms": "<= 400",
    "dump_vs_eustack_ratio": ">= 80", "dump_handler_p99_us": "<= 3",
    "mutex_off_ratio": "<= 1.02", "mutex_on_ratio": "<= 1.15", "mutex_on_insn": "<= 85", "wait_added_ns": "<= 2500",
    **SERVERS,
}


def declared():
    r = run(sys.executable, os.path.join(BENCH, "run"), "--list")
    equal(r.returncode, 0, r.stderr)
    return dict((line.split(None, 1)[0], line) for line in r.stdout.splitlines())


@test
def every_promised_figure_is_measured_against_its_bar():
    rows = declared()
    for name, bar in PROMISED.items():
        need(name in rows, name + " is not measured")
        need(rows[name].endswith(" " + bar), "%s: promised %s, measured against %s" % (name, bar, rows[name]))


def bench_run():
    spec = importlib.machinery.SourceFileLoader("bench_run", os.path.join(BENCH, "run"))
    module = types.ModuleType("bench_run")
    module.__file__ = spec.path
    spec.exec_module(module)
    return module


@test
def every_ratio_of_time_with_a_narrow_bar_has_a_twin():
    rows, _ = bench_run().load()
    for row in rows:
        if row.name.startswith("heap_o") and row.kind == "ratio":
            need(row.twin, row.name + " has no twin")
            equal(row.noise, method.NOISE_PAIRS, row.name)
        if row.kind == "ratio":
            need(row.rounds >= 21, row.name)
            need(row.peer and row.peer_name, row.name + ": whom it is compared with is not said")
        if row.name in SERVERS:
            equal((row.kind, row.rounds), ("paired", 15), row.name)


@test
def the_documents_show_the_recorded_run():
    path = os.path.join(BENCH, "results.json")
    table = report.table(path, {row.name: row.twin for row in bench_run().load()[0]})
    for name, part in ("bench/README.md", table), ("README.md", report.sentence(path)):
        text = text_of(name)
        need(text == report.between_marks(text, part), "run bench/run --write-table bench/results.json bench/README.md README.md")
    about = open(report.about_path(path)).read()
    need(re.match(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC, \d+ x .*, Linux ", about), about)
    contains(table, about.strip())


@test
def the_sentence_of_the_readme_says_what_was_measured():
    with tempdir() as d:
        path = os.path.join(d, "r.json")
        names = re.findall(r"{(\w+)}", report.SENTENCE)
        report.save(path, [{"name": name, "value": 0.001 * n} for n, name in enumerate(names, 1)], "x")
        text = report.sentence(path)
        for number in "takes 0.001 instructions", "start 0.002 us", "takes 0.003 more", "takes 0.4 %":
            contains(text, number)


@test
def recorded_results_have_the_shape_and_the_rows_of_today():
    rows = declared()
    with open(os.path.join(BENCH, "results.json")) as f:
        results = json.load(f)
    for r in results:
        equal(list(r), ["name", "value", "unit", "bar", "ok", "peer", "noise"], r)
        need(r["ok"] in (True, False, "unresolved", "skipped"), r)
        need(r["name"] in rows, r["name"] + " is recorded and not measured any more")
        need(r["ok"] != "skipped" or "skipped: " in r["peer"], r)
        need(r["ok"] is not True or r["value"] is not None, r)
        if r["value"] is not None:
            equal(rows[r["name"]], " ".join((r["name"], r["unit"], r["bar"] or "")).strip())
    names = [r["name"] for r in results]
    for name in PROMISED:
        need(name in names, name + " is not in the recorded run")


def environment_of(program):
    path = daemons.found(program)
    return daemons.environment(path, PATH=os.path.dirname(path) + ":" + os.environ["PATH"])


@test
def real_servers_answer_and_one_that_is_missing_says_its_package():
    programs = os.path.join(BENCH, "programs")
    for name in "redis", "memcached", "nginx", "postgres":
        env = environment_of("redis-server" if name == "redis" else name)
        r = run(sys.executable, programs, name, "same", "6144", env=env, timeout=DEADLINE)
        if r.returncode == 77:
            need("%s is not here (Debian: %s" % (name, name) in r.stderr or "initdb" in r.stderr, r.stderr)
        else:
            need(re.fullmatch(r"request_us \d+\.\d+ us\npeer_us \d+\.\d+ us\n", r.stdout), r.stdout + r.stderr)
    r = run(sys.executable, programs, "redis", "same", "1024", env=dict(os.environ, PATH="/nonexistent"))
    equal((r.returncode, r.stderr), (77, "redis is not here (Debian: redis-server)\n"))


@test
def a_followed_server_is_measured_with_a_window_in_each_of_its_processes():
    agent = os.path.join(BUILD, "components/preload/libcomponent-preload.so")
    if not os.path.exists(agent):
        raise Skip("no agent was built")
    r = run(sys.executable, os.path.join(BENCH, "programs"), "postgres", "window", "1536", agent, os.path.join(BUILD, "components/.libs"),
            env=environment_of("postgres"), timeout=DEADLINE)
    if r.returncode == 77:
        raise Skip(r.stderr.strip())
    need(re.fullmatch(r"request_us \d+\.\d+ us\npeer_us \d+\.\d+ us\n", r.stdout), r.stdout + r.stderr)


USES = """
import resource, time
def used():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime
while used() < 0.5:
    pass
print(used() / time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID), used() / time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID))
"""


@test
def a_counted_servers_cpu_clocks_are_slowed_fifty_times():
    with tempdir() as d:
        made = run(CC, "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", d + "/slow.so", os.path.join(BENCH, "slow_time.c"))
        equal((made.returncode, made.stderr), (0, ""))
        r = run(sys.executable, "-c", USES, env=dict(os.environ, LD_PRELOAD=d + "/slow.so"), timeout=DEADLINE)
        need(r.returncode == 0 and all(45 < float(n) < 55 for n in r.stdout.split()), r.stdout + r.stderr)


SILENT_SERVER = """
import os, socket, sys
with open(os.environ["PIDS"], "a") as f:
    f.write("%d\\n" % os.getpid())
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[sys.argv.index("--unixsocket") + 1])
s.listen()
while True:
    s.accept()[0].close()
"""


@test
def a_server_that_does_not_answer_is_ended_with_the_benchmark():
    with tempdir() as d:
        with open(d + "/server.py", "w") as f:
            f.write(SILENT_SERVER)
        script(d, "redis-server", 'exec %s %s/server.py "$@"\n' % (sys.executable, d))
        r = run(sys.executable, os.path.join(BENCH, "programs"), "redis", "same", "1024",
                env=dict(os.environ, PIDS=d + "/pids", PATH=d + ":" + os.environ["PATH"]), timeout=DEADLINE)
        need(r.returncode == 1 and re.search("closed a connection|ConnectionReset|BrokenPipe", r.stderr), r.stdout + r.stderr)
        with open(d + "/pids") as f:
            pids = f.read().split()
        equal(len(pids), 2, "servers that were started")
        equal([p for p in pids if os.path.exists("/proc/" + p)], [], "servers that are left")


@test
def names_and_lines_are_measured_by_the_functions_of_their_test():
    r = run(os.path.join(BENCH, "symbols"), "ours", BUILD, "/nonexistent/program")
    equal((r.returncode, r.stderr), (77, "debug information of /nonexistent/program is not here (Debian: python3.11-dbg)\n"))


@test
def the_measuring_programs_compile():
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    r = run("make", "-s", "bench-programs", cwd=BUILD, env=env, timeout=3600)
    equal(r.returncode, 0, r.stdout[-2000:] + r.stderr[-2000:])


@test
def a_run_writes_nothing_that_the_tarball_would_take_for_the_recorded_one():
    # make dist takes a file of the build directory before the one of that name in the sources.
    with tempdir() as d:
        for name in ("run", "method.py", "report.py"):
            shutil.copyfile(os.path.join(BENCH, name), os.path.join(d, name))
        with open(os.path.join(d, "rows_test.py"), "w") as f:
            f.write("from method import *\nROWS = [Row('one', 'ns', at_most(1), ('bench/none',), kind='value')]\n")
        build = os.path.join(d, "build")
        os.makedirs(os.path.join(build, "bench"))
        r = run(sys.executable, os.path.join(d, "run"), "--build", build)
        equal(r.returncode, 0, r.stdout + r.stderr)
        need(files(build), "it has written nothing")
        equal([f for f in files(build) if os.path.exists(os.path.join(SRC, f))], [], "files that the sources have too")


main()
