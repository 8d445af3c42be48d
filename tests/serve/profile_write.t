#!/usr/bin/env python3
"""component_profile_write(): the same bytes as over HTTP, with a server and without."""
import gzip
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *
from serving import *

TYPES = {"profile": "cpu", "fgprof": "time", "goroutine": "goroutine", "threads": "goroutine", "own": "own",
         "heap": "inuse_space", "allocs": "alloc_space", "mutex": "delay", "block": "delay",
         "threadcreate": "threadcreate"}


def write(d, name, seconds=0, debug=0, format="-", more=""):
    """What the daemon has written, and what the call said."""
    path = os.path.join(d.dir, "written")
    code, _, sentence = d.command("write %s %s %s %d %s %s" % (path, name, seconds, debug, format, more)).partition(" ")
    with open(path, "rb") as f:
        return f.read(), int(code), sentence


def opens(d, name, seconds=0):
    body, code, sentence = write(d, name, seconds)
    equal((code, sentence), (0, ""), name)
    return agreed(functions, os.path.join(d.dir, "written"), TYPES[name])


def functions(pprof, path, type_name):
    """Those of -top, the most costly first."""
    text = pprof("-top", path)
    contains(text, "Type: %s\n" % type_name)
    names = re.findall(r"% +([^%\s][^%\n]*)$", text.partition("flat%")[2], re.M)
    return [n.replace(" (inline)", "") for n in names]  # newer ones say it


@test
def without_a_server_stacks_are_whole_and_nothing_is_left_behind():
    with server("--burn", start=False) as d:
        contains(opens(d, "profile", 1), "burner")
        found = opens(d, "fgprof", 1)
        for f in "burner", "start_thread", "main":
            contains(found, f)
        contains(opens(d, "goroutine"), "do_write")
        contains(write(d, "goroutine", 0, 2)[0].decode(), "main(...)")
        d.command("profile own")
        d.command("begin 1")
        contains(opens(d, "own"), "do_begin")
        equal(own_threads(d.pid), [])


@test
def what_needs_a_rate_says_so_until_it_has_one():
    with server(start=False) as d:
        for name, word in (("heap", "component_profiler_set_heap_rate()"), ("allocs", "heap sampling is off"),
                           ("mutex", "component_profiler_set_mutex_fraction()"),
                           ("block", "component_profiler_set_block_rate()"), ("threadcreate", "profiling server")):
            body, code, sentence = write(d, name)
            equal((body, code), (b"", -61), name)
            contains(sentence, word)
        equal(d.command("rate 1"), "0")
        d.command("alloc 100000")
        contains(opens(d, "heap"), "do_alloc")
        d.command("rate 0")
        contains(opens(d, "allocs"), "do_alloc")


@test
def beside_a_server_every_kind_opens_and_texts_are_those_of_http():
    with server("--heap-rate", "1") as d:
        d.get(PPROF + "rates", method="POST", body="mutex-profile-fraction=1&block-profile-rate=1")
        d.command("contend 3")
        d.get(PPROF + "rates", method="POST", body="mutex-profile-fraction=0&block-profile-rate=0")
        d.command("profile own")
        d.command("begin 1")
        for name in TYPES:
            opens(d, name, 1 if name in ("profile", "fgprof") else 0)
        for query in "own?debug=1", "mutex?debug=1", "block?debug=1", "own?format=folded", "mutex?format=top":
            want = poll(lambda: (lambda a, b: a if a == b else None)(
                d.get(PPROF + query).body, d.get(PPROF + query).body), "a profile that stays")
            name, _, option = query.partition("?")
            debug, format = (1, "-") if option == "debug=1" else (0, option.partition("=")[2])
            equal(write(d, name, 0, debug, format), (want, 0, ""), query)
        body, code, _ = write(d, "trace", "0.2")
        equal((body[:16], code), (b"go 1.19 trace\0\0\0", 0))
        equal(write(d, "trace", "0.1", 0, "go1.22")[0][:16], b"go 1.22 trace\0\0\0")
        contains(write(d, "fgprof", 1, 0, "folded")[0].decode(), "do_write")
        need(b"do_write" not in write(d, "fgprof", 1, 0, "folded", "idle=0")[0], "what waits is not idle")
        body = write(d, "heap", 1)[0]  # a delta
        contains(gzip.decompress(body), b"alloc_space")
        equal(d.command("running").split()[0], "1")


@test
def what_makes_no_sense_is_refused_by_a_sentence_before_any_window():
    with server(start=False) as d:
        d.command("profile own")
        for line, code, sentence in (("nosuch", -2, "'nosuch' is no profile of this process"),
                                     ("profle", -2, "did you mean 'profile'?"), ("cmdline", -2, "is no profile"), ("symbol", -2, "is no profile"),
                                     ("profile -1", -22, "seconds: not a duration"),
                                     ("profile nan", -22, "seconds: not a duration"),
                                     ("profile 0.5", -22, "whole"), ("fgprof 99999", -22, "above the limit of 7200"),
                                     ("goroutine 1 1", -22, "seconds and debug params are incompatible"),  # needs debug=1
                                     ("own 1", -22, "not supported for this profile type"),
                                     ("goroutine 0 0 a&b", -22, "format"), ("goroutine 0 0 jpeg", -22, "format")):
            name, seconds, debug, format = (line.split() + ["0", "0", "-"][len(line.split()) - 1:])
            body, got, text = write(d, name, seconds, int(debug), format)
            equal((body, got), (b"", code), line)
            contains(text, sentence)


main()
