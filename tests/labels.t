#!/usr/bin/env python3
"""Labels of threads, from outside: in CPU, heap and goroutine profiles, by the real tool
and in the text forms."""
import os
import re
import shutil

from serving import *

GO = shutil.which("go") or "/usr/local/go/bin/go"


def profile(d, path):
    """Fetched to a file."""
    r = d.get(PPROF + path)
    equal(r.status, 200, r.text)
    name = os.path.join(d.dir, re.sub(r"\W", "-", path))
    with open(name, "wb") as f:
        f.write(r.body)
    return name


def pprof(*args):
    r = run(GO, "tool", "pprof", *args, timeout=300)
    equal(r.returncode, 0, r.stderr)
    return r.stdout


def share(text, key, value):
    """Per cent, of -tags."""
    table = re.search(r"^ *%s: Total .*\n((?: +.*\n)+)" % key, text, re.M)
    row = table and re.search(r"\(([\d.]+)%%\): %s$" % re.escape(value), table[1], re.M)
    need(row, "no %s=%s in\n%s" % (key, value, text))
    return float(row[1])


def total(text):
    m = re.search(r"Showing nodes accounting for [^,]*, ([\d.]+)% of ", text)
    need(m, text)
    return float(m[1])


@test
def go_tells_cpu_time_apart_by_label_and_focuses_on_one():
    with server() as d:
        for command in ("tenant acme", "tenant acme", "tenant acme", "tenant zeta"):
            equal(d.command(command), "0")
        path = profile(d, "profile?seconds=2")
        tags = pprof("-tags", path)
        acme, zeta = share(tags, "tenant", "acme"), share(tags, "tenant", "zeta")
        # All four get the same of a processor, or nearly, whatever else runs.
        need(acme + zeta > 99 and 50 < acme < 95, tags)
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
        contains(pprof("-top", profile(d, "heap?debug=1")), "100% of 4MB total")


@test
def goroutines_of_equal_stacks_are_counted_by_their_labels():
    odd = 'a"b],\\c'
    with server() as d:
        for command in ("waits acme", "waits acme", "waits " + odd):
            equal(d.command(command), "0")
        poll(lambda: d.get(PPROF + "goroutine?debug=2").text.count("wait_for_ever(") == 3, "three threads wait")
        text = d.get(PPROF + "goroutine?debug=1").text
        need(re.search(r'^2 @( 0x[0-9a-f]+)+\n# labels: {"kind":"waits", "tenant":"acme"}\n#\t', text, re.M), text)
        need(re.search(r'^1 @( 0x[0-9a-f]+)+\n# labels: {"kind":"waits", "tenant":"a\\"b\],\\\\c"}\n#\t', text, re.M),
             text)
        contains(pprof("-top", profile(d, "goroutine?debug=1")), "100% of ")
        tags = pprof("-tags", profile(d, "goroutine"))
        contains(tags, "tenant: Total 3 of ")
        need(re.search(r"^ +2 .*: acme$", tags, re.M) and re.search(r"^ +1 .*: a\"b\],\\c$", tags, re.M), tags)
        heads = re.findall(r"^goroutine \d+ \[(.*)\]:$", d.get(PPROF + "goroutine?debug=2").text, re.M)
        equal(sorted(h.split(", ", 2)[2] for h in heads if "tenant" in h),
              ["kind: waits, tenant: a\"b??\\c"] + 2 * ["kind: waits, tenant: acme"])
        # Our own threads have none, nor has the one that cleared its scopes.
        equal(len([h for h in heads if "tenant" in h]), 3)


@test
def time_of_the_wall_is_told_apart_by_label_whether_threads_wait_or_run():
    with server() as d:
        for command in "waits acme", "waits acme", "waits ajax", "tenant ajax":
            equal(d.command(command), "0")
        poll(lambda: d.get(PPROF + "goroutine?debug=2").text.count("wait_for_ever(") == 3, "three threads wait")
        name = profile(d, "fgprof?seconds=2")
        for focus, seconds in (("-tagfocus=tenant=acme", 4), ("-tagfocus=tenant=ajax", 4), ("-tagfocus=kind=burns", 2),
                               ("-tagfocus=kind=waits", 6), ("-tagignore=tenant", 2)):  # the last: main
            raw = pprof("-raw", "-unit=ns", "-sample_index=time", focus, name)
            got = sum(int(x) for x in re.findall(r"^ +\d+ +(\d+): ", raw, re.M)) / 1e9
            need(abs(got - seconds) < 0.1 * seconds, "%s: %.3f s, not %d" % (focus, got, seconds))


@test
def traces_name_threads_with_their_labels():
    with server() as d:
        equal(d.command("tenant acme"), "0")
        r = d.get(PPROF + "trace?seconds=0.3")
        equal(r.status, 200, r.text)
        need(b"kind=burns tenant=acme" in r.body, "no labels in %d bytes" % len(r.body))


main()
