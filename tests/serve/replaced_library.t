#!/usr/bin/env python3
"""A library that has taken over a function we need is found out before it is called,
and named; the daemon goes on."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from serving import *


def usurper(t, code):
    source, library = os.path.join(t, "usurper.c"), os.path.join(t, "usurper.so")
    with open(source, "w") as f:
        f.write(code)
    r = run(*CC.split(), "-shared", "-fPIC", "-w", "-o", library, source)
    equal(r.returncode, 0, r.stderr)
    return library


@test
def a_function_of_libevent_or_zlib_that_was_taken_over_refuses_the_server():
    for name in ("event_base_new", "event_add", "evbuffer_add", "deflate"):
        with tempdir() as t:
            library = usurper(t, "void %s(void) { __builtin_trap(); }\n" % name)
            with server(start=False, env={"LD_PRELOAD": library}) as d:
                answer = d.command("start")
                contains(answer, "-95 ")
                contains(answer, "'%s' has taken over %s()" % (library, name))
                equal(d.command("running"), "0")
                equal(own_threads(d.pid), [])


@test
def a_library_that_took_over_something_else_does_not_matter():
    with tempdir() as t:
        with server(env={"LD_PRELOAD": usurper(t, "void evhttp_nothing_of_ours(void) { }\n")}) as d:
            equal(d.get(PPROF + "heap").status, 200)


main()
