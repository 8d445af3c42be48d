#!/usr/bin/env python3
"""Deltas: seconds= on a snapshot kind answers what has been added meanwhile; and what
else a heap's request may ask for as in Go, gc=1 and the MemStats block."""
import contextlib
import json
import os
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *
from serving import *

MIB = 1 << 20


def delta(d, kind="heap", seconds=1, query=""):
    return timed(d.get, PPROF + "%s?seconds=%d%s" % (kind, seconds, query))


def open_delta(d, kind="heap", seconds=2, query=""):
    busy = job_waits(d)
    need(not busy, "a delta is open already")
    found = in_background(delta, d, kind, seconds, query)
    poll(lambda: job_waits(d), "the first snapshot")
    return found


def values(d, body, what="-sample_index=inuse_space"):
    """Bytes by function, by the real tool."""
    path = os.path.join(d.dir, "delta.pb.gz")
    with open(path, "wb") as f:
        f.write(body)
    return agreed(rows, what, path)


def rows(pprof, what, path):
    text = pprof("-top", "-unit=B", "-nodecount=1000", what, path)
    return {m[2]: int(m[1]) for m in re.finditer(r"^ *(-?\d+)B? +.*% +(\S+)$", text, re.M)}


def raw(d, body):
    path = os.path.join(d.dir, "delta.pb.gz")
    with open(path, "wb") as f:
        f.write(body)
    return agreed(lambda pprof: re.sub(r"(?s)\nLocations\n.*", "\n", pprof("-raw", path)))


@test
def a_delta_holds_what_was_added_in_its_time_and_nothing_else():
    with server("--heap-rate", "1") as d:
        equal(d.command("alloc %d" % MIB), "0")
        found = open_delta(d)
        equal(d.command("alloc %d" % (3 * MIB)), "0")
        r, took = found.result()
        equal((r.status, r.headers["content-type"]), (200, BINARY))
        equal(r.headers["content-disposition"], 'attachment; filename="heap-delta"')
        need(1.95 <= took, "took %.2f s" % took)
        # the block that was there has gone, one of three times its size has come
        equal(values(d, r.body).get("do_alloc"), 2 * MIB)
        equal(values(d, r.body, "-sample_index=alloc_space").get("do_alloc"), 3 * MIB)


@test
def what_was_given_back_is_negative():
    with server("--heap-rate", "1") as d:
        equal(d.command("alloc %d" % (3 * MIB)), "0")
        found = open_delta(d)
        equal(d.command("alloc 100000"), "0")
        r, took = found.result()
        equal(values(d, r.body).get("do_alloc"), 100000 - 3 * MIB)


def in_json(body, what, function):
    """The amount in the stacks that this function is in, of the form that docs/profiling.md describes."""
    p = json.loads(body)
    at, width = [t[0] for t in p["types"]].index(what), 2 + len(p["types"])

    def functions(node):
        while node >= 0:
            frame = p["frames"][4 * p["nodes"][2 * node + 1]:][:4]
            yield p["strings"][p["functions"][frame[0]][0]]
            node = p["nodes"][2 * node]
    samples = [p["samples"][i:i + width] for i in range(0, len(p["samples"]), width)]
    return p, sum(int(s[2 + at]) for s in samples if function in functions(s[0]))


@test
def a_delta_as_json_holds_the_same():
    with server("--heap-rate", "1") as d:
        equal(d.command("alloc %d" % MIB), "0")
        found = open_delta(d, query="&format=json")
        equal(d.command("alloc %d" % (3 * MIB)), "0")
        r, took = found.result()
        equal((r.status, r.headers["content-type"]), (200, "application/json"))
        for what, want in ("inuse_space", 2 * MIB), ("alloc_space", 3 * MIB), ("inuse_objects", 0), ("alloc_objects", 1):
            p, amount = in_json(r.body, what, "do_alloc")
            equal(amount, want, what)
        need(1.9e9 <= int(p["duration_ns"]) <= took * 1e9, p["duration_ns"])


@test
def a_window_as_json_tells_its_duration_and_where_the_time_went():
    with server() as d:
        r, took = timed(d.get, PPROF + "fgprof?seconds=1&format=json")
        equal((r.status, r.headers["content-type"]), (200, "application/json"))
        p, waited = in_json(r.body, "time", "main")
        equal(p["name"], "fgprof")
        need(0.95e9 <= int(p["duration_ns"]) <= took * 1e9, p["duration_ns"])
        # The first thread waits for a command all the while.
        need(0.5 * int(p["duration_ns"]) <= waited <= 1.5 * int(p["duration_ns"]), (waited, p["duration_ns"]))


@test
def without_a_change_there_is_no_sample_but_types_and_duration():
    with server("--heap-rate", "0") as d:
        for kind, default in (("heap", None), ("allocs", "alloc_space")):
            r, took = delta(d, kind)
            text = raw(d, r.body)
            need(re.search(r"alloc_objects/count alloc_space/bytes(\[dflt\])? inuse_objects/count inuse_space/bytes", text), text[:400])
            m = re.search(r"^Duration: (\d+)(\.\d+)?$", text, re.M)
            need(m and float(m[0].split()[1]) >= 0.99, text[:400])
            need("PeriodType: space bytes" in text, text[:400])
            equal(len(re.findall(r"^ +\d+ +\d+ +\d+ +\d+: ", text, re.M)), 0)


@test
def deltas_overlap_and_each_has_its_own_time():
    with server("--heap-rate", "1") as d:
        long = open_delta(d, seconds=4)
        equal(d.command("alloc %d" % MIB), "0")
        r, took = delta(d)
        need(long.is_alive(), "the short one waited for the long one")
        need(values(d, r.body).get("do_alloc") is None, "allocated before it began")
        r, took = long.result()
        equal(values(d, r.body).get("do_alloc"), MIB)


@test
def wrong_seconds_and_text_are_refused_as_by_go():
    with server("--max-seconds", "100") as d:
        for q in ("0", "-1", "x", "1.5", "1s", "99999999999999999999"):
            is_error(d.get(PPROF + "allocs?seconds=" + q), 400,
                     'invalid value for "seconds" - must be a positive integer\n')
        for q in ("1&debug=1", "1&debug=2", "1&debug=-1"):
            is_error(d.get(PPROF + "heap?seconds=" + q), 400, "seconds and debug params are incompatible\n")
        is_error(d.get(PPROF + "heap?seconds=0&debug=1"), 400,
                 'invalid value for "seconds" - must be a positive integer\n')
        is_error(d.get(PPROF + "heap?seconds=101"), 400,
                 '"seconds" is above the limit of 100 (--profiling-max-seconds)\n')
        is_error(d.get(PPROF + "nope?seconds=1"), 404)
        equal(d.get(PPROF + "heap?seconds=").headers["content-disposition"], 'attachment; filename="heap"')
        r, took = delta(d, query="&debug=0&gc=1")
        equal(r.status, 200)


@test
def a_client_that_leaves_ends_its_delta_and_a_stop_answers_early():
    with server() as d:
        s = d.connect()
        s.sendall(get_line(PPROF + "heap?seconds=100"))
        poll(lambda: job_waits(d), "the first snapshot")
        s.close()
        poll(lambda: is_idle(d), "the end of the job")
        s = d.connect()
        s.sendall(get_line(PPROF + "heap?seconds=100", "Connection: close"))
        poll(lambda: job_waits(d), "the first snapshot")
        equal(d.command("stop"), "0")
        data = receive_all(s)
        s.close()
        equal(status_of(data), 200)
        head, body = head_and_body(data)
        need("PeriodType: space bytes" in raw(d, body))


@test
def gc_is_accepted_and_a_comment_says_that_nothing_was_collected():
    with server() as d:
        said = "there is no garbage collector in this process"
        need(said in raw(d, d.get(PPROF + "heap?gc=1").body))
        for q in ("heap", "heap?gc=0", "heap?gc=x", "allocs?gc=1"):
            need(said not in raw(d, d.get(PPROF + q).body), q)


MEMSTATS = """Alloc TotalAlloc Sys Lookups Mallocs Frees HeapAlloc HeapSys HeapIdle HeapInuse HeapReleased HeapObjects
Stack MSpan MCache BuckHashSys GCSys OtherSys NextGC LastGC PauseNs PauseEnd NumGC NumForcedGC GCCPUFraction DebugGC
MaxRSS""".split()


@test
def a_heap_as_text_ends_with_every_key_of_gos_memstats():
    with server("--heap-rate", "1") as d:
        equal(d.command("alloc %d" % (5 * MIB)), "0")
        for kind in ("heap", "allocs"):
            r = d.get(PPROF + kind + "?debug=1")
            equal(r.status, 200, r.text[:200])
            text = r.text
            head, mark, tail = text.partition("\n# runtime.MemStats\n")
            need(mark, "no block in ..." + text[-400:])
            found = dict(re.findall(r"^# (\w+) = (.*)$", tail, re.M))
            equal(list(found), MEMSTATS)
            equal(len(tail.strip().split("\n")), len(MEMSTATS))
            need(5 * MIB <= int(found["Alloc"]) <= int(found["TotalAlloc"]), found)
            equal(int(found["Mallocs"]) - int(found["Frees"]), int(found["HeapObjects"]))
            need(rss(d.pid) // 2 <= int(found["MaxRSS"]) <= 1 << 36, found["MaxRSS"])
            need(int(found["Sys"]) >= 5 * MIB and int(found["BuckHashSys"]) > 0, found)
            equal(len(found["PauseNs"].strip("[]").split()), 256)
            zeros = re.search(r"^# always 0 in a C process: (.*)$", text, re.M)[1].split()
            for key in zeros:
                need(re.match(r"\[?[0 /]+\]?$|false$", found[key]), key + " " + found[key])
        path = os.path.join(d.dir, "text")
        with open(path, "w") as f:
            f.write(text)
        for pprof in pprofs():
            pprof("-top", path)


@test
def a_difference_of_what_shows_one_moment_is_refused():
    with server() as d:
        for kind in "goroutine", "goroutineleak":
            is_error(d.get(PPROF + kind + "?seconds=1&format=dump"), 400,
                     '"seconds" asks for a difference, and format=dump shows one moment; leave one of the two out\n')
            is_error(d.get(PPROF + kind + "?seconds=1&debug=2"), 400, "seconds and debug params are incompatible\n")
            equal(d.get(PPROF + kind + "?format=dump").status, 200)
            equal(d.get(PPROF + kind + "?seconds=1&format=json").status, 200)


@test
def a_gc_that_is_no_small_number_counts_as_in_go():
    with server() as d:
        said = "there is no garbage collector in this process"
        need(said in raw(d, d.get(PPROF + "heap?gc=99999999999999999999").body))
        need(said not in raw(d, d.get(PPROF + "heap?gc=-99999999999999999999").body), "below 0")


main()
