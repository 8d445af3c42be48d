#!/usr/bin/env python3
"""Profiles of the program's own, as pprof.NewProfile makes them: on the index, as a
route, and read by the real tool."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *
from serving import *



def count_of(d, name):
    m = re.search(r"<td>(\d+)</td><td><a href='%s\?debug=1'>%s</a>" % (name, name), d.get(PPROF).text)
    return m and int(m[1])


@test
def what_has_begun_and_not_ended_is_there_by_the_function_that_began_it():
    with server() as d:
        is_error(d.get(PPROF + "connections"), 404)
        equal(d.command("profile connections"), "0")
        equal(count_of(d, "connections"), 0)
        for value in range(7):
            equal(d.command("begin %d" % value), "0")
        need(int(d.command("begin 3")) < 0, "twice")
        equal(d.command("end 3"), "0")
        need(int(d.command("end 3")) < 0, "ended twice")
        equal(count_of(d, "connections"), 6)
        r = d.get(PPROF + "connections")
        equal((r.status, r.headers["content-type"]), (200, BINARY))
        equal(r.headers["content-disposition"], 'attachment; filename="connections"')
        path = os.path.join(d.dir, "p")
        with open(path, "wb") as f:
            f.write(r.body)
        for pprof in pprofs():
            text = pprof("-raw", path)
            contains(text, "PeriodType: connections count\nPeriod: 1\n")
            contains(text, "\nSamples:\nconnections/count\n")
            text = pprof("-top", path)
            need(re.search(r"^ +6 +100% +100% +6 +100% +do_begin$", text, re.M), text)
        contains(d.get(PPROF + "connections?format=top").text, "do_begin")


@test
def its_text_is_gos_and_counts_by_stack():
    with server() as d:
        equal(d.command("profile jobs"), "0")
        equal(d.get(PPROF + "jobs?debug=1").text.split("\n")[0], "jobs profile: total 0")
        for value in (1, 2):
            equal(d.command("begin %d" % value), "0")
        for debug in (1, 2):
            r = d.get(PPROF + "jobs?debug=%d" % debug)
            equal(r.headers["content-type"], TEXT)
            need(re.match(r"jobs profile: total 2\n2 @( 0x[0-9a-f]+)+\n#\t0x[0-9a-f]+\tdo_begin\+0x", r.text), r.text)


@test
def seconds_are_refused_as_by_go():
    with server() as d:
        equal(d.command("profile jobs"), "0")
        is_error(d.get(PPROF + "jobs?seconds=x"), 400, 'invalid value for "seconds" - must be a positive integer\n')
        is_error(d.get(PPROF + "jobs?seconds=1"), 400,
                 '"seconds" parameter is not supported for this profile type\n')
        is_error(d.get(PPROF + "jobs?seconds=1&debug=1"), 400,
                 '"seconds" parameter is not supported for this profile type\n')
        equal(d.get(PPROF + "jobs?seconds=").status, 200)
        equal(d.get(PPROF + "jobs", method="POST", body="").status, 405)


@test
def names_are_listed_in_order_and_wrong_ones_are_refused_with_a_sentence():
    with server() as d:
        for name in ("zebra", "aardvark", "iguana"):
            equal(d.command("profile " + name), "0")
        for name, says in (("zebra", "is a profile already"), ("heap", "is a profile already"),
                           ("a/b", "may hold letters"), ("symbol", "is a page of the server")):
            contains(d.command("profile " + name), says)
        names = re.findall(r"debug=1'>([^<]+)<", d.get(PPROF).text)
        equal(names, sorted(names))
        need({"zebra", "aardvark", "iguana", "heap"} <= set(names), names)


@test
def values_live_through_a_stop_and_a_start():
    with server() as d:
        equal(d.command("profile jobs"), "0")
        equal(d.command("begin 1"), "0")
        equal(d.command("stop"), "0")
        equal(d.command("begin 2"), "0")
        equal(d.command("start"), "0")
        d.wait_port()
        equal(count_of(d, "jobs"), 2)


main()
