#!/usr/bin/env python3
"""Rates: what is sampled, seen and changed at run time; and the profiles of contention
that come of it, as Go's tools and eyes read them."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *
from serving import *

NAMES = ["heap-profile-rate", "mutex-profile-fraction", "block-profile-rate", "mmap-profile-rate"]
COUNTS = re.compile(r"^(\d+) (\d+) @((?: 0x[0-9a-f]+)+)\n((?:#\t.*\n)+)", re.M)


def rates(d, body=None, query="", **headers):
    r = d.get(PPROF + "rates" + query, method="POST" if body is not None else "GET", body=body, headers=headers)
    equal(r.status, 200, r.text)
    equal(r.headers["content-type"], TEXT)
    found = re.findall(r"^([a-z-]+)=(\d+)$", r.text, re.M)
    equal([n for n, _ in found], NAMES)
    return [int(v) for _, v in found]


def contention(d, kind, function):
    """Delay and count of all records below whose frames the function is the first."""
    text = d.get(PPROF + kind + "?debug=1").text
    delay = count = 0
    for m in COUNTS.finditer(text):
        if m[4].split("\t")[2].split("+")[0] == function:
            delay += int(m[1])
            count += int(m[2])
    return delay, count


@test
def rates_are_shown_and_changed_in_the_units_of_the_options():
    with server("--heap-rate", "4096") as d:
        equal(rates(d), [4096, 0, 0, 1])
        equal(rates(d, "mutex-profile-fraction=1"), [4096, 1, 0, 1])
        d.wait_log("sampling rates changed peer=127.0.0.1:")
        equal(rates(d, "", "?block-profile-rate=10us&heap-profile-rate=2KiB&mmap-profile-rate=1"), [2048, 1, 10000, 1])
        equal(rates(d, "block-profile-rate=1&mutex-profile-fraction=0", "?mutex-profile-fraction=7"), [2048, 0, 1, 1])
        before = d.get(PPROF + "rates").text
        equal(rates(d, "heap-profile-rate=0\nmutex-profile-fraction=5\nblock-profile-rate=2s\nmmap-profile-rate=0\n"), [0, 5, 2000000000, 0])
        equal(d.get(PPROF + "rates", method="POST", body=before).text, before)


@test
def a_rate_can_be_set_while_a_thread_hangs_in_a_constructor():
    plugin = os.path.join(BUILD, "tests/programs/.libs/hanging_plugin.so")
    d = Server("--heap-rate", "0")
    try:
        d.send("load " + plugin)  # which holds the loader's lock from now on
        poll(lambda: "hanging_plugin" in open("/proc/%d/maps" % d.pid).read(), "the plugin")
        equal(rates(d, "heap-profile-rate=4096\nmutex-profile-fraction=1\nblock-profile-rate=1\n"), [4096, 1, 1, 1])
        equal(d.get(PPROF + "heap").status, 200)
    finally:
        d.process.kill()  # it ends for nothing else
        d.end()


@test
def what_makes_no_sense_is_refused_and_changes_nothing():
    with server() as d:
        before = rates(d)
        for body in ("", "mutex=1", "mutex-profile-fraction=", "mutex-profile-fraction=-1", "block-profile-rate=1h",
                     "block-profile-rate=99999999999999999999", "block-profile-rate=99999999999s",
                     "mutex-profile-fraction=3&block-profile-rate=x", "mutex-profile-fraction=1us"):
            is_error(d.get(PPROF + "rates", method="POST", body=body), 400)
            equal(rates(d), before, body)
        is_error(d.get(PPROF + "rates", method="POST", body="x" * 2000), 413)
        is_error(d.get(PPROF + "rates", method="POST", body="mutex-profile-fraction=1",
                       headers={"Origin": "http://evil.example"}), 403)
        r = d.get(PPROF + "rates", method="PUT", body="mutex-profile-fraction=1")
        equal((r.status, r.headers["allow"]), (405, "GET, HEAD, POST"))
        equal(rates(d), before)


@test
def contention_is_counted_from_the_post_on_and_no_longer_than_it_is_on():
    with server() as d:
        equal(d.command("contend 2"), "0")
        for kind, head in (("mutex", "--- mutex:\ncycles/second=1000000000\nsampling period=0\n"),
                           ("block", "--- contention:\ncycles/second=1000000000\n")):
            equal(d.get(PPROF + kind + "?debug=1").text, head)
        rates(d, "mutex-profile-fraction=1&block-profile-rate=1")
        equal(d.command("contend 3"), "0")
        delay, count = contention(d, "mutex", "hold_contended")
        equal(count, 3)
        need(delay >= 3 * 2000000, delay)
        waited, count = contention(d, "block", "wait_for_contended")
        equal(count, 3)
        need(waited >= delay, (waited, delay))
        rates(d, "mutex-profile-fraction=0&block-profile-rate=0")
        equal(d.command("contend 2"), "0")
        equal(contention(d, "mutex", "hold_contended"), (delay, 3))
        equal(contention(d, "block", "wait_for_contended"), (waited, 3))


@test
def gos_tool_names_who_held_and_who_waited():
    with server() as d:
        rates(d, "mutex-profile-fraction=1&block-profile-rate=1")
        equal(d.command("contend 2"), "0")
        for kind, function in (("mutex", "hold_contended"), ("block", "wait_for_contended")):
            path = os.path.join(d.dir, kind)
            with open(path, "wb") as f:
                f.write(d.get(PPROF + kind).body)
            for pprof in pprofs():
                text = pprof("-top", "-sample_index=contentions", path)
                need(re.search(r"^ +2 .* %s$" % function, text, re.M), text)
                text = pprof("-top", path)
                contains(text, "Type: delay")
                contains(text, function)


@test
def deltas_of_contention_are_what_happened_meanwhile():
    with server() as d:
        rates(d, "mutex-profile-fraction=1&block-profile-rate=1")
        equal(d.command("contend 2"), "0")
        r = d.get(PPROF + "mutex?seconds=1")
        equal((r.status, r.headers["content-disposition"]), (200, 'attachment; filename="mutex-delta"'))
        with open(os.path.join(d.dir, "delta"), "wb") as f:
            f.write(r.body)
        for pprof in pprofs():
            raw = pprof("-raw", os.path.join(d.dir, "delta"))
            need("hold_contended" not in raw, raw)


main()
