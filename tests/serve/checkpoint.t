#!/usr/bin/env python3
"""checkpoint=N: while a window or a delta goes on, its answer says again and again what there is so far."""
import gzip
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from checkpoints import *
from gotools import opens, readers
from perfetto_reader import Perfetto
from pprof_reader import Profile
from serving import *

MIB = 1 << 20
NOT_MEASURED = '"checkpoint" is for what is measured over a time; leave it out, or write "seconds" beside it'
COMMENT = "a checkpoint: what was measured in the first "


def ask(d, path):
    """HTTP/1.0, so that nothing is between the pieces of the answer."""
    s = d.connect()
    s.sendall(get_line(PPROF + path, version="1.0"))
    return s


def read_members(s, data, count):
    """data and what follows, until there are so many."""
    while len(members(data)) < count:
        more = s.recv(65536)
        need(more, "the answer ended after %d bytes" % len(data))
        data += more
    return data


def number(profile, field):
    return profile.all.get(field, [0])[0]


def weight(profile, value=0):
    return sum(s[1][value] for s in profile.samples)


@test
def each_checkpoint_is_a_whole_profile_of_what_there_is_so_far_and_the_last_is_the_answer():
    for kind, burns in ("profile", ["--burn"]), ("fgprof", ["--burn"]), ("heap", []):
        with server("--heap-rate", "1", *burns) as d, ask(d, kind + "?seconds=90&checkpoint=1&window=mine") as s:
            poll(lambda: job_waits(d), "the window")
            if kind == "heap":
                equal(d.command("alloc %d" % MIB), "0")
            head, read = head_and_body(read_members(s, b"", 1))
            contains(head.lower(), "x-component-checkpoints: ")
            contains(head.lower(), "content-type: " + BINARY)
            read = read_members(s, read, 2)
            equal(d.get(PPROF + "stop?window=mine", method="POST").text, "stopped=1\n")
            read += receive_all(s)
            found = [Profile(m) for m in members(read)]
            equal(sum(map(len, members(read))), len(read), "nothing is behind the last one")
            need(len(found) >= 3, found)
            for p in found[:-1]:
                need([c for c in p.comments if c.startswith(COMMENT)], p.comments)
            need(not [c for c in found[-1].comments if c.startswith(COMMENT)], found[-1].comments)
            for before, after in zip(found, found[1:]):
                equal(before.types, after.types)
                need(number(before, 10) < number(after, 10), "durations grow")
                need(weight(before) <= weight(after), "what is counted grows")
            if kind == "heap":
                equal(weight(found[-1], 1), MIB)
            else:
                equal(len({number(p, 9) for p in found}), 1, "one window begins once")
                need(weight(found[0]) > 0, "the first has samples")


@test
def a_window_without_them_one_that_is_shorter_and_a_difference_of_threads_are_answered_as_ever():
    with server("--burn") as d:
        plain, short = d.get(PPROF + "profile?seconds=1"), d.get(PPROF + "profile?seconds=1&checkpoint=5")
        equal((plain.status, plain.headers.get("x-component-checkpoints")), (200, None))
        for r in plain, short, d.get(PPROF + "threads?seconds=2&checkpoint=1"):
            equal([len(m) for m in members(r.body)], [len(r.body)])


def words(trace):
    """What is written in a trace as it stands."""
    return re.findall(rb"a checkpoint: what was measured in the first (\d+) ms", trace)


def traces(*forms):
    """Of a busy daemon, in each form: the checkpoints and the trace itself, and the form."""
    for form in forms:
        with server("--burn") as d, ask(d, "trace?seconds=90&checkpoint=1&window=mine&format=" + form) as s:
            poll(lambda: job_waits(d), "the window")
            read = read_members(s, b"", 2)
            equal(d.get(PPROF + "stop?window=mine", method="POST").text, "stopped=1\n")
            read = head_and_body(read + receive_all(s))[1]
            found = [gzip.decompress(m) for m in members(read)]
            equal(sum(map(len, members(read))), len(read), "nothing is behind the last one")
            need(len(found) >= 3, len(found))
            equal([len(words(f)) for f in found], [1] * (len(found) - 1) + [0])
            need(all(int(words(a)[0]) < int(words(b)[0]) for a, b in zip(found, found[1:-1])), "each is longer")
            yield found, form


@test
def each_checkpoint_of_a_trace_is_a_whole_trace_that_go_reads():
    for found, form in traces("go1.19", "go1.22"):
        try:
            programs = readers(form)
        except Skip:
            if form == "go1.19":
                raise
            continue
        with tempdir() as folder:
            path = os.path.join(folder, "trace")
            for trace in found:
                with open(path, "wb") as f:
                    f.write(trace)
                for tool in programs:
                    opens(tool, path, form)


@test
def each_checkpoint_of_a_trace_for_perfetto_is_a_whole_one():
    for found, _ in traces("perfetto"):
        for trace in found:
            need(any("burn" in stack for stack in map(" ".join, Perfetto(trace).stacks.values())), "the burning thread")


@test
def what_has_no_checkpoints_is_refused_with_a_way_out():
    with server() as d:
        for query, text in (("profile?checkpoint=0", 'invalid value for "checkpoint" - must be a positive integer'),
                            ("profile?checkpoint=x", 'invalid value for "checkpoint" - must be a positive integer'),
                            ("memory?checkpoint=1", NOT_MEASURED),
                            ("heap?checkpoint=1", NOT_MEASURED),
                            ("profile?seconds=1&checkpoint=1&format=top", '"checkpoint" is for the binary form alone; leave format and debug out')):
            is_error(d.get(PPROF + query), 400, text + "\n")


@test
def a_client_that_leaves_between_two_ends_its_window():
    with server("--burn") as d:
        with ask(d, "profile?seconds=90&checkpoint=1") as s:
            read_members(s, b"", 1)
        poll(lambda: is_idle(d), "the end of the job")


main()
