#!/usr/bin/env python3
"""What a person asks for by hand: the name of a profile, and what of it is shown; slips are told."""
import os
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


main()
