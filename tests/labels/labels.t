#!/usr/bin/env python3
"""Labels of threads, from outside: in CPU, heap and goroutine profiles, by the real tool
and in the text forms."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *
from pprof_reader import Profile
from serving import *
from wall_looks import Looks


def profile(d, path):
    """Fetched to a file."""
    r = d.get(PPROF + path)
    equal(r.status, 200, r.text)
    name = os.path.join(d.dir, re.sub(r"\W", "-", path))
    with open(name, "wb") as f:
        f.write(r.body)
    return name


def enough(d):
    """A CPU profile of a second of work, or more: of a longer window on a busy machine."""
    for seconds in 2, 4, 8, 16, 32:
        path = profile(d, "profile?seconds=%d" % seconds)
        with open(path, "rb") as f:
            if sum(values[0] for _, values, _ in Profile(f.read()).samples) >= 100:
                return path
    raise AssertionError("no second of work in %d s" % seconds)


def tags(text, key):
    """What -tags says of a label: of each of its values, the cost and per cent, and of all of them."""
    # "Total 3 of 5 (60.00%)" of newer ones is "Total 3.0" of Go 1.19.
    table = re.search(r"^ *%s: Total ([\d.]+)\S*(?: of .*)?\n((?: +.*\n)+)" % key, text, re.M)
    need(table, "no %s in\n%s" % (key, text))
    rows = re.findall(r"^ +([\d.]+)\S* *\( *([\d.]+)%\): (.*)$", table[2], re.M)
    return {value: (float(cost), float(percent)) for cost, percent, value in rows}, float(table[1])


def total(text):
    m = re.search(r"Showing nodes accounting for [^,]*, ([\d.]+)% of ", text)
    need(m, text)
    return float(m[1])


@test
def go_tells_cpu_time_apart_by_label_and_focuses_on_one():
    with server() as d:
        for command in ("tenant acme", "tenant acme", "tenant acme", "tenant zeta"):
            equal(d.command(command), "0")
        path = enough(d)
        for pprof in pprofs():
            text = pprof("-tags", path)
            found, _ = tags(text, "tenant")
            equal(sorted(found), ["acme", "zeta"], text)
            acme, zeta = found["acme"][1], found["zeta"][1]
            # All four get the same of a processor, or nearly, whatever else runs.
            need(acme + zeta > 99 and 50 < acme < 95, text)
            for value, part in (("acme", acme), ("zeta", zeta)):
                text = pprof("-top", "-tagfocus=tenant=" + value, path)
                contains(text, "burn_cycles")
                need(abs(total(text) - part) < 0.5, (part, text))
            contains(pprof("-top", "-tagignore=tenant=.", path), "Showing nodes accounting for 0, 0% of")
            contains(pprof("-raw", path), "kind:[burns] tenant:[acme]")


@test
def heap_samples_have_the_labels_of_who_allocated():
    with server("--heap-rate", "1") as d:
        for command in ("waits acme", "waits zeta"):
            equal(d.command(command), "0")
        path = profile(d, "heap")
        for pprof in pprofs():
            text = pprof("-top", "-sample_index=alloc_space", "-tagfocus=tenant=acme", path)
            need(re.search(r"^ +4MB +\S+ +\S+ +4MB +\S+ +allocate_for_tenant$", text, re.M), text)
            text = pprof("-top", "-sample_index=inuse_space", "-tagfocus=tenant=acme", path)
            need("allocate_for_tenant" not in text, text)
            text = pprof("-top", "-sample_index=inuse_space", "-tagfocus=tenant=zeta", path)
            need(re.search(r"^ +4MB +\S+ +\S+ +4MB +\S+ +allocate_for_tenant$", text, re.M), text)
            contains(pprof("-raw", path), "bytes:[65536]")
        # The text form has a line more, which pprof reads over.
        text = d.get(PPROF + "heap?debug=1").text
        need(re.search(r'^0: 0 \[64: 4194304\] @( 0x[0-9a-f]+)+\n# labels: {"kind":"waits", "tenant":"acme"}\n'
                       r"#\t0x[0-9a-f]+\tallocate_for_tenant\+", text, re.M), text[:3000])
        path = profile(d, "heap?debug=1")
        for pprof in pprofs():
            contains(pprof("-top", path), "100% of 4MB total")


def three_wait(d):
    # From within libc only tables lead to who called it.
    poll(lambda: d.get(PPROF + "goroutine?debug=2").text.count("wait_for_ever(") == 3, "three threads wait")


@test
def goroutines_of_equal_stacks_are_counted_by_their_labels():
    odd = 'a"b],\\c'
    with server() as d:
        for command in ("waits acme", "waits acme", "waits " + odd):
            equal(d.command(command), "0")
        three_wait(d)
        text = d.get(PPROF + "goroutine?debug=1").text
        need(re.search(r'^2 @( 0x[0-9a-f]+)+\n# labels: {"kind":"waits", "tenant":"acme"}\n#\t', text, re.M), text)
        need(re.search(r'^1 @( 0x[0-9a-f]+)+\n# labels: {"kind":"waits", "tenant":"a\\"b\],\\\\c"}\n#\t', text, re.M),
             text)
        plain, binary = profile(d, "goroutine?debug=1"), profile(d, "goroutine")
        for pprof in pprofs():
            contains(pprof("-top", plain), "100% of ")
            text = pprof("-tags", binary)
            found, all_of_them = tags(text, "tenant")
            equal(({value: cost for value, (cost, _) in found.items()}, all_of_them), ({"acme": 2, odd: 1}, 3), text)
        heads = re.findall(r"^goroutine \d+ \[(.*)\]:$", d.get(PPROF + "goroutine?debug=2").text, re.M)
        equal(sorted(h.split(", ", 2)[2] for h in heads if "tenant" in h),
              ["kind: waits, tenant: a\"b??\\c"] + 2 * ["kind: waits, tenant: acme"])
        # Our own threads have none, nor has the one that cleared its scopes.
        equal(len([h for h in heads if "tenant" in h]), 3)


def times(pprof, focus, path):
    """Seconds of all samples, and of the window."""
    raw = pprof("-raw", "-unit=ns", "-sample_index=time", focus, path)
    return (sum(int(x) for x in re.findall(r"^ +\d+ +(\d+): ", raw, re.M)) / 1e9,
            float(re.search(r"^Duration: ([\d.]+)", raw, re.M)[1]))


@test
def time_of_the_wall_is_told_apart_by_label_whether_threads_wait_or_run():
    with server() as d:
        for command in "waits acme", "waits acme", "waits ajax", "tenant ajax":
            equal(d.command(command), "0")
        three_wait(d)
        poll(lambda: "kind: burns" in d.get(PPROF + "goroutine?debug=2").text, "one that has its labels and burns")
        name = profile(d, "fgprof?seconds=2")
        looked = Looks(agreed(lambda pprof: pprof("-comments", name)))
        for focus, threads in (("-tagfocus=tenant=acme", 2), ("-tagfocus=tenant=ajax", 2), ("-tagfocus=kind=burns", 1),
                               ("-tagfocus=kind=waits", 3), ("-tagignore=tenant", 1)):  # the last: main
            got, seconds = agreed(times, focus, name)
            # Of the window that it was, on a busy machine a longer one than was asked for.
            seconds *= threads
            need(abs(got - seconds) < seconds / 100 * max(10, 3 * looked.error(threads / 5)),
                 "%s: %.3f s, not %.3f, after %d looks at %.1f Hz" % (focus, got, seconds, looked.looks, looked.reached))


@test
def traces_name_threads_with_their_labels():
    with server() as d:
        equal(d.command("tenant acme"), "0")
        r = d.get(PPROF + "trace?seconds=0.3")
        equal(r.status, 200, r.text)
        need(b"kind=burns tenant=acme" in r.body, "no labels in %d bytes" % len(r.body))


main()
