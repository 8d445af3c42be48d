#!/usr/bin/env python3
"""gotrace.t - execution traces of a simulator, opened by every go tool trace that is installed."""
import html
import json
import os
import re
import subprocess
import sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *
from harness import *
from perfetto_reader import Perfetto
from pprof_reader import fields

SAMPLE = "tests/programs/made_up_trace"
FORMATS = "go1.19", "go1.22"
FUNCTIONS = {"program_main", "worker_main", "consumer_main", "producer_main", "spinner_main", "idle_main",
             "helper_main"}
# What tools call a thread that was created at the very end.
NEVER_RAN = {"", "(Inactive, no stack trace sampled)"}


def sample(path, *args):
    """Writes a trace; what its threads waited in truth."""
    with open(path, "wb") as f:
        r = run(SAMPLE, *map(str, args), stdout=f, stderr=subprocess.PIPE)
    equal(r.returncode, 0, r.stderr)
    return {line.split()[0]: int(line.split()[1]) for line in r.stderr.splitlines()}


def leaf(stack):
    return (stack or [""])[:1]


def close(got, want, what):
    need(abs(got - want) <= max(want * 0.005, 50000), "%s: got %d ns, want %d ns" % (what, got, want))


def blocking_agrees(source):
    with tempdir() as d:
        for form in FORMATS:
            path = os.path.join(d, form)
            truth = sample(path, form, source, 60)
            need(truth["sync"] > 5e6 and truth["cond"] > 5e6 and truth["network"] > 5e6, truth)
            try:
                found = readers(form)
            except Skip:
                if form == "go1.19":
                    raise
                continue
            for tool in found:
                sync, net = waited(tool, path, "sync", leaf), waited(tool, path, "net", leaf)
                close(sync.pop("lock_mutex"), truth["sync"], "%s %s mutex" % (tool, form))
                close(sync.pop("wait_for_work"), truth["cond"], "%s %s condition" % (tool, form))
                equal(sync, {}, "other functions in the profile of locks")
                close(net.pop("receive"), truth["network"], "%s %s network" % (tool, form))
                equal(net, {}, "other functions in the profile of sockets")
                call = waited(tool, path, "syscall", leaf)
                equal(set(call), {"flush_file"}, "waits for locks, others and times are no calls")
                if is_exact(tool):
                    close(call["flush_file"], truth["file"], "%s %s file" % (tool, form))
                sched = waited(tool, path, "sched", leaf)
                need("crunch" in sched, "who is woken waits for a CPU from there")
                if source == "switches" and is_exact(tool):  # hooks know nothing of who is preempted
                    close(sched["crunch"] + sched["[preempted]"], truth["runnable"], "%s %s runnable" % (tool, form))


@test
def the_blocking_profiles_say_what_the_threads_waited():
    blocking_agrees("switches")


@test
def without_switches_the_waits_alone_give_the_same_profiles():
    blocking_agrees("hooks")


def is_graph(path):
    return re.match(r"/(io|block|syscall|sched|region\w+)\b(?!.*raw=1)", path)


def all_pages(viewer, most=1000):
    """Every page that can be reached from the first one, at most so many that differ in
    numbers alone; of the graphs, which take long and need graphviz, those of the whole trace."""
    todo, pages, alike = ["/"], {}, {}
    while todo:
        path = todo.pop()
        shape = re.sub(r"\d+", "N", path)
        if path in pages or alike.get(shape, 0) == most or (
                is_graph(path) and ("?" in path or not shutil.which("dot"))):
            continue
        alike[shape] = alike.get(shape, 0) + 1
        pages[path] = viewer.get(path)
        if path.startswith(("/trace", "/mmu", "/jsontrace")):
            continue
        for link in re.findall(r'href="?(/[^">\s]*)', pages[path]):
            todo.append(html.unescape(link).replace(" ", "%20"))
    return pages


def goroutine_names(page):
    """Names of the groups of goroutines; older tools link them by number."""
    return set(re.findall(r"<a href=\"/goroutine[^>]*>\s*([^<]*?)\s*</a>", page))


def pages_answer(form):
    with tempdir() as d:
        path = os.path.join(d, "trace.out")
        sample(path, form, "switches", 40)
        for tool in readers(form):
            with Viewer(tool, path) as viewer:
                pages = all_pages(viewer)
                need(len(pages) > 15, "only these pages: %s" % sorted(pages))
                names = goroutine_names(pages["/goroutines"])
                equal(names - NEVER_RAN, FUNCTIONS, "threads are named by where they began")
                contains(pages["/usertasks"], "request")
                for region in "housekeeping", "reconcile", "locked":
                    contains(pages["/userregions"], region)
                view = json.loads(viewer.get("/jsontrace"))["traceEvents"]
                yield tool, view


def slices(view):
    return [e for e in view if e["ph"] == "X" and re.match(r"G\d|worker-|consumer", e["name"])]


def nests(view):
    """Slices of one row, none of which overlaps the one before."""
    last = {}
    for e in sorted(slices(view), key=lambda e: e["ts"]):
        key = e["pid"], e["tid"]
        need(e["ts"] >= last.get(key, 0) - 0.0015, "%s overlaps" % e)
        last[key] = e["ts"] + e["dur"]


@test
def every_page_answers_and_threads_bear_the_programs_names():
    for form in FORMATS:
        try:
            for tool, view in pages_answer(form):
                names = {e["name"] for e in slices(view)}
                need(any("worker-1" in n and "request=7" in n for n in names), "labels: %s" % names)
                equal(len({e["tid"] for e in slices(view)}), 2, "one row a CPU")
                names = {e["name"] for e in view}
                for note in ("source: a simulator", "17 records are lost", "began at 2023-11-14T22:13:20.123Z"):
                    need(any(note in n for n in names), "%s in %s" % (note, names))
                need(any("h\u00f6he 7" in n for n in names), "logs: %s" % names)
                need(any(e["ph"] == "C" and "Allocated" in json.dumps(e) for e in view), "heap")
                need(any("CPU profile sample" in n or "CpuSample" in n for n in names), "samples: %s" % names)
        except Skip:
            if form == "go1.19":
                raise


@test
def a_label_is_shown_as_long_as_a_thread_has_it():
    with tempdir() as d:
        path = os.path.join(d, "trace.out")
        truth = sample(path, "go1.19", "switches", 60)  # tools name a slice of the newer one once
        for tool in readers("go1.19"):
            with Viewer(tool, path) as viewer:
                view = json.loads(viewer.get("/jsontrace"))["traceEvents"]
            shown = sum(e["dur"] for e in slices(view) if "request=7" in e["name"]) * 1000
            close(shown, truth["labelled"], "%s: request=7" % tool)


@test
def without_switches_every_thread_has_a_row_of_its_own():
    with tempdir() as d:
        path = os.path.join(d, "trace.out")
        sample(path, "go1.19", "hooks", 40)
        for tool in readers("go1.19"):
            with Viewer(tool, path) as viewer:
                view = json.loads(viewer.get("/jsontrace"))["traceEvents"]
                need(len({e["tid"] for e in slices(view)}) >= 7, "rows of %s" % tool)
                nests(view)


@test
def no_cpu_runs_two_threads_at_once_whatever_is_lost():
    with tempdir() as d:
        path = os.path.join(d, "trace.out")
        for args in ((1, 0, 0), (2, 30, 3000), (3, 10, 100000)):
            sample(path, "go1.19", "switches", 40, *args)
            for tool in readers("go1.19"):
                with Viewer(tool, path) as viewer:
                    nests(json.loads(viewer.get("/jsontrace"))["traceEvents"])


def always_opens(form, seeds):
    """Records dropped, times moved, kernel ids used again, ends without a last OUT."""
    with tempdir() as d:
        path = os.path.join(d, "trace.out")
        found = readers(form)
        for seed in seeds:
            drop, jitter = (0, 5, 30)[seed % 3], (3000 if seed % 2 else 0)
            sample(path, form, "hooks" if seed % 4 == 3 else "switches", 25, seed, drop, jitter)
            tool = found[seed % len(found)]
            opens(tool, path, "%s, seed %d" % (form, seed))


@test
def sixty_broken_traces_open_in_the_older_format():
    always_opens("go1.19", range(1, 61))


@test
def sixty_broken_traces_open_in_the_newer_format():
    always_opens("go1.22", range(1, 61))


def long_trace_opens(form):
    with tempdir() as d:
        path = os.path.join(d, "trace.out")
        truth = sample(path, form, "switches", 6000)
        need(truth["records"] > 100000, truth)
        tool = readers(form)[-1]
        opens(tool, path, form)
        close(waited(tool, path, "sync", leaf)["lock_mutex"], truth["sync"], "mutex")
        with Viewer(tool, path) as viewer:
            pages = all_pages(viewer, most=2)
            need(len(pages) > 15, "only these pages: %s" % sorted(pages))
            contains(pages["/usertasks"], "request")
            need(len(slices(json.loads(viewer.get("/jsontrace"))["traceEvents"])) > 10000, "switches")


@test
def a_trace_of_100000_events_opens_in_the_older_format():
    long_trace_opens("go1.19")


@test
def a_trace_of_100000_events_opens_in_the_newer_format():
    long_trace_opens("go1.22")


@test
def perfetto_gets_switches_waits_regions_tasks_samples_and_logs():
    with tempdir() as d:
        path = os.path.join(d, "trace.pftrace")
        truth = sample(path, "perfetto", "switches", 60)
        with open(path, "rb") as f:
            p = Perfetto(f.read())
        runs = {}
        for cpu, time, before, state, after in p.switches():
            equal(runs.get(cpu, 0), before, "who leaves a CPU was on it")
            runs[cpu] = after
        equal(set(runs), {0, 1}, "CPUs")
        open_slices, seen, waits = {}, set(), {}
        for packet in p.packets:
            for event in p.events(packet):
                row, kind, name = event[11][0], event[9][0], event.get(23, [b""])[0].decode()
                if kind == 1:
                    open_slices.setdefault(row, []).append((name, packet[8][0], event.get(56, [0])[0]))
                elif kind == 2:
                    name, since, stack = open_slices[row].pop()
                    if stack and name.startswith("waits"):
                        leaf = p.stacks[stack][-1]
                        waits[leaf] = waits.get(leaf, 0) + packet[8][0] - since
                seen.add((kind, name))
        need({(1, "housekeeping"), (1, "reconcile"), (1, "request"), (3, "h\u00f6he 7"), (3, "source: a simulator"),
              (4, ""), (3, "17 records are lost: there was no room for them")} <= seen, seen)
        for leaf, kind in (("lock_mutex", "sync"), ("wait_for_work", "cond"), ("receive", "network")):
            need(waits[leaf] >= truth[kind] * 0.995, "%s: %d of %d" % (kind, waits[leaf], truth[kind]))
        equal({s[0] for s in p.stacks.values()} - {"[kernel wakeup]"}, FUNCTIONS,
              "stacks begin with the root")
        samples = [dict(fields(s)) for packet in p.packets for s in packet.get(66, [])]
        need(len(samples) > 20 and all(p.stacks[s[4]][-1] == "crunch" for s in samples), "CPU samples")
        threads = [p.all(row[4][0]) for row in p.rows.values() if 4 in row]
        need({b"worker-0", b"consumer", b"component-http"} <= {t[5][0] for t in threads}, "names of threads")


@test
def perfetto_gets_well_formed_files_of_broken_traces_too():
    with tempdir() as d:
        path = os.path.join(d, "trace.pftrace")
        for seed in range(1, 13):
            sample(path, "perfetto", "hooks" if seed % 3 == 0 else "switches", 25, seed, 10 * (seed % 4), 3000)
            with open(path, "rb") as f:
                p = Perfetto(f.read())
            runs = {}
            for cpu, time, before, state, after in p.switches():
                equal(runs.get(cpu, 0), before, "seed %d: who leaves a CPU was on it" % seed)
                runs[cpu] = after
            need(seed % 3 or not runs, "no switches are made up where none were seen")


main()
