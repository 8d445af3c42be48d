#!/usr/bin/env python3
"""What a person asks for by hand: the name of a profile, and what of it is shown; slips are told."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *
from serving import *


@test
def a_404_names_the_nearest_profile():
    with server() as d:
        d.command("profile connections")
        for name, near in (("profle", "profile"), ("goroutines", "goroutine"), ("tread", "threads"), ("cmdlin", "cmdline"),
                           ("conections", "connections"), ("mutx", "mutex"), ("block%20", "block")):
            is_error(d.get(PPROF + name), 404, 'Unknown profile; did you mean "%s"?\n' % near)
        is_error(d.get(PPROF + "profle?seconds=x"), 404, 'Unknown profile; did you mean "profile"?\n')
        for name in "nope", "x", "Heap", "heap/", "a" * 2000, "%3Cscript%3E":
            is_error(d.get(PPROF + name), 404, "Unknown profile\n")


@test
def with_a_format_an_unknown_parameter_is_told_and_without_it_is_ignored():
    with server() as d:
        for query, want in (("sconds=1", 'unknown parameter "sconds"; did you mean "seconds"?'),
                            ("Debug=1", 'unknown parameter "Debug"; did you mean "debug"?'),
                            ("idel", 'unknown parameter "idel"; did you mean "idle"?'),
                            ("%3Cscript%3E=1", "unknown parameter; there are format, "),
                            ("flamegraph=1", 'unknown parameter "flamegraph"; there are format, '),
                            ("own=%zz", "a parameter cannot be read: write %3B for ';' and %25 for '%'"),
                            ("own=0;gc=1", "a parameter cannot be read: write %3B for ';' and %25 for '%'")):
            for path in "heap?format=top&" + query, "goroutine?%s&format=pprof" % query, "trace?format=go1.19&" + query:
                r = d.get(PPROF + path)
                is_error(r, 400)
                need(r.text.startswith(want), (path, r.text))
            equal(d.get(PPROF + "heap?" + query).status, 200, query)
        is_error(d.get(PPROF + "profile?format=top&secs=5"), 400)  # before the window of half a minute
        equal(d.get(PPROF + "goroutine?format=top&own=0&gc=1&token=x&idle=0&debug=1").status, 200)


def amount(text):
    """Bytes, or a count."""
    number, unit = re.match(r"([\d.]+)(\w*)$", text).groups()
    return float(number) * {"": 1, "B": 1, "kB": 1024, "MB": 1 << 20}[unit]


def rows(text):
    """[function, flat, cum] of a table, in its order."""
    found = re.findall(r"^ *(\S+) +\S+% +(\S+) +\S+%  (.*)$", text.partition("function\n")[2], re.M)
    return [(name, amount(flat), amount(cum)) for flat, cum, name in found]


def of_pprof(pprof, path, options):
    """The same of go tool pprof, in its order."""
    text = pprof("-top", "-nodefraction=0", "-unit=B", *options, path).partition("cum%")[2]
    found = re.findall(r"^ *(\S+) +\S+% +\S+% +(\S+) +\S+%  ?(.*)$", text, re.M)
    return [(name.replace(" (inline)", "").strip(), amount(flat), amount(cum)) for flat, cum, name in found]


def is_near(a, b):
    """As two digits behind the point have it."""
    return abs(a - b) <= 0.006 * max(a, b)


def is_same(ours, theirs, key):
    """The same functions with the same amounts, in the same order, but for those of equal ones; key: 1, flat, or 2, cum."""
    by_name = {name: amounts for name, *amounts in theirs}
    return len(ours) == len(theirs) == len(by_name) and all(
        name in by_name and is_near(flat, by_name[name][0]) and is_near(cum, by_name[name][1]) and
        is_near(ours[i][key], theirs[i][key]) for i, (name, flat, cum) in enumerate(ours))


# what is asked of us, and of pprof
VIEWS = (("focus=do_alloc", ["-focus=do_alloc"]), ("ignore=do_alloc", ["-ignore=do_alloc"]),
         ("focus=^main$&ignore=do_s.*t$", ["-focus=^main$", "-ignore=do_s.*t$"]), ("cum=1", ["-cum"]), ("cum", ["-cum"]),
         ("focus=do_alloc|nothing$&sample_index=alloc_objects", ["-focus=do_alloc|nothing$", "-sample_index=alloc_objects"]),
         ("sample_index=0", ["-sample_index=0"]), ("sample_index=inuse_objects&cum=true", ["-sample_index=inuse_objects", "-cum"]),
         ("focus=profiled_daemon\\.c$", ["-focus=profiled_daemon\\.c$"]), ("focus=libc\\.so", ["-focus=libc\\.so"]))


@test
def a_view_shows_what_pprof_shows():
    with server("--heap-rate", "1") as d:
        d.command("alloc 300000")
        seen = set()
        for query, options in VIEWS:
            def same():
                path = os.path.join(d.dir, "heap")
                top = d.get(PPROF + "heap?format=top&n=100000&" + query.replace("\\", "%5C").replace("^", "%5E"))
                body = d.get(PPROF + "heap").body
                with open(path, "wb") as f:
                    f.write(body)
                equal(top.status, 200, query)
                want = agreed(of_pprof, path, options)
                return is_same(rows(top.text), want, 2 if "cum" in query else 1) and [want]  # no sample came between
            seen.add(str(poll(same, "the same of both: " + query)))
        need(len(seen) >= 6, "views are different: %d" % len(seen))


@test
def a_view_is_the_same_of_a_call_and_folded_is_cut_likewise():
    with server("--heap-rate", "1") as d:
        d.command("alloc 300000")
        d.command("profile own")
        d.command("begin 1")
        for query in ("format=top&focus=do_begin&sample_index=own&cum=1&n=2", "format=folded&focus=do_begin&n=1", "format=folded&ignore=.",
                      "format=top&ignore=main&n=3"):
            want = d.get(PPROF + "own?" + query).body
            form, _, more = query.partition("=")[2].partition("&")
            path = os.path.join(d.dir, "written")
            equal(d.command("write %s own 0 0 %s %s" % (path, form, more.replace("&", " "))), "0")
            with open(path, "rb") as f:
                equal(f.read(), want, query)
        contains(d.get(PPROF + "own?format=top&n=2").text, " functions left out\n")
        contains(d.get(PPROF + "own?format=folded&focus=do_begin").text, "do_begin")
        equal(d.get(PPROF + "own?format=folded&ignore=do_begin").text, "")


@test
def what_makes_no_sense_of_a_view_is_refused_before_any_window():
    with server() as d:
        for query, want in (("focus=a(b", "\"focus\" has a '(' there; understood are . .* ^ $ | and \\( for the character\n"),
                            ("ignore=a+", ""), ("ignore=a%2B", "\"ignore\" has a '+' there"), ("focus=" + "a" * 256, "\"focus\" is longer than 255 bytes\n"),
                            ("focus=" + "a|" * 5000, "\"focus\" is longer than 255 bytes\n"), ("focus=" + "a" * 255, ""),
                            ("sample_index=inuse_space", "\"sample_index\" must be samples, cpu or a number from 0 to 1\n"),
                            ("sample_index=2", "\"sample_index\" must be"), ("cum=yes", "invalid value for \"cum\" - must be 1 or 0\n"),
                            ("n=0", "invalid value for \"n\" - must be a positive integer\n"), ("n=x", "invalid value for \"n\""),
                            ("focsu=main", "unknown parameter \"focsu\"; did you mean \"focus\"?\n")):
            r = d.get(PPROF + "profile?seconds=1&format=top&" + query)
            equal(r.status, 400 if want else 200, query)
            contains(r.text, want)
        for path in "heap?format=pprof&focus=x", "trace?format=perfetto&n=1":
            is_error(d.get(PPROF + path), 400, "focus, ignore, sample_index, cum and n are for format=top, format=folded and format=svg\n")
        equal(d.get(PPROF + "heap?focus=(&n=x").status, 200)  # as in Go
        path = os.path.join(d.dir, "written")
        for form, more, want in (("-", "focus=x", "need format; they are for format=top, format=folded and format=svg"), ("top", "focus=(", "has a '('"), ("top", "sample_index=x", "must be goroutine or 0"),
                                 ("top", "ignore=" + "a" * 300, "is longer than 255 bytes")):
            code, _, sentence = d.command("write %s goroutine 0 0 %s %s" % (path, form, more)).partition(" ")
            equal(code, "-22", more)
            contains(sentence, want)


main()
