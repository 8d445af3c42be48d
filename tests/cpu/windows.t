#!/usr/bin/env python3
"""CPU windows: as long as asked, each its own, ended early by a client that leaves or
a server that stops, and never in each other's way."""
import gzip
import os
import re
import select
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from serving import *


def profile(d, seconds, **kw):
    return timed(d.get, PPROF + "profile?seconds=%s" % seconds, **kw)


def is_window(d):
    """Is a CPU window open now?"""
    return "component-job" in threads(d.pid).values()


def open_window(d, seconds=3600):
    s = d.connect()
    s.sendall(get_line(PPROF + "profile?seconds=%d" % seconds))
    poll(lambda: is_window(d), "the window")
    return s


@test
def a_window_takes_its_time_and_is_a_valid_profile():
    with server("--burn") as d:
        def seen():  # a busy machine may leave a window without a sample
            r, took = profile(d, 1)
            equal((r.status, r.headers["content-type"]), (200, BINARY))
            equal(r.headers["content-disposition"], 'attachment; filename="profile"')
            need(took >= 0.95, "took %.2f s" % took)
            return r if b"burn_cycles" in gzip.decompress(r.body) else None
        r = poll(seen, "a sample of its work")
        poll(lambda: "burn_cycles" in d.get(PPROF + "profile?seconds=1&format=top").text, "a sample of its work")
        d.wait_log("profile finished peer=127.0.0.1:")
        line = next(x for x in d.output().split("\n") if "bytes=%d " % len(r.body) in x)
        need(re.search(r" kind=profile seconds=\d+\.\d bytes=\d+ samples=[1-9]\d* lost=\d+$", line), line)


@test
def libunwind_walks_cpu_stacks_like_the_tables():
    found = {}
    for unwinder in "tables", "libunwind":
        with server("--burn", "--unwinder", unwinder) as d:
            contains(d.get(PPROF).text, "unwinder: " + unwinder)

            def seen():  # a busy machine may leave a window without a sample
                body = gzip.decompress(profile(d, 1)[0].body)
                contains(body, b"unwinder: " + unwinder.encode())
                names = set(re.findall(rb"burn_[a-z_]+|start_thread|clone[3]?", body))
                return names if b"burn_cycles" in names else None
            found[unwinder] = poll(seen, "a sample of its work")
            equal(d.get(PPROF + "heap").status, 200)
            contains(d.get(PPROF + "goroutine?debug=2").text, "main")
            dump = gzip.decompress(d.get(PPROF + "goroutine").body)
            contains(dump, b"unwinder: " + unwinder.encode())
            equal(b"stacks walked by libunwind: " in dump, unwinder == "libunwind")
    equal(found["libunwind"], found["tables"])


@test
def windows_overlap_and_other_routes_answer_meanwhile():
    with server("--burn") as d:
        long = in_background(profile, d, 5)
        poll(lambda: is_window(d), "the window")
        r, took = profile(d, 1)
        equal(r.status, 200)
        need(took >= 0.95, "took %.2f s" % took)
        equal(d.get(PPROF + "heap").status, 200)
        need(long.is_alive(), "the short window waited for the long one")
        r, took = long.result()
        equal(r.status, 200)
        need(took >= 4.95, "took %.2f s" % took)


@test
def a_client_that_closes_frees_its_window_at_once():
    with server("--burn") as d:
        s = open_window(d)
        s.close()
        poll(lambda: is_idle(d), "the window freed")


@test
def a_client_that_resets_frees_its_window_at_once_and_nothing_spins():
    with server() as d:
        s = open_window(d)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        poll(lambda: is_idle(d), "the window freed")
        spent = cpu_seconds(d.pid)
        time.sleep(0.5)  # the measured time itself
        need(cpu_seconds(d.pid) - spent < 0.2, "%.2f s of CPU in 0.5 s" % (cpu_seconds(d.pid) - spent))


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@test
def a_half_close_ends_the_window_early_with_a_200():
    with server("--burn") as d:
        with open_window(d) as s:
            s.shutdown(socket.SHUT_WR)
            head, body = head_and_body(receive_all(s))  # of 3600 s
            contains(head, "HTTP/1.1 200 OK")
            need(body[:2] == b"\x1f\x8b", "no gzip")
            gzip.decompress(body)


@test
def bytes_sent_while_a_reply_is_pending_are_the_next_request_and_harm_nothing():
    with server("--burn") as d:
        with d.connect() as s:
            s.sendall(get_line(PPROF + "profile?seconds=1"))
            poll(lambda: is_window(d), "the window")
            s.sendall(b"G")
            s.sendall(get_line(PPROF + "cmdline", "Connection: close")[1:])
            data = receive_all(s)
            equal(data.count(b"HTTP/1.1 200 OK"), 2)
        equal(d.process.poll(), None)


@test
def a_missing_or_bad_duration_is_thirty_seconds():
    # That none ends at once, as asked or as another's would; tests/cpu/test_cpu.c has the thirty.
    bad = ("", "?seconds=", "?seconds=0", "?seconds=-1", "?seconds=abc", "?seconds=1.5", "?seconds=+1",
           "?seconds=99999999999999999999")
    with server() as d, contextlib.ExitStack() as connections:
        asked = {connections.enter_context(d.connect()): q for q in bad}
        for s, q in asked.items():
            s.sendall(get_line(PPROF + "profile" + q))
        poll(lambda: own_threads(d.pid).count("component-job") == len(bad), "the windows")
        answered = select.select(list(asked), [], [], 2.5)[0]  # longer than 1.5 s and 1 s, the measured time itself
        equal([(asked[s], s.recv(100)) for s in answered], [])


@test
def too_long_a_duration_is_refused_with_the_limit_named():
    with server("--max-seconds", "100") as d:
        is_error(d.get(PPROF + "profile?seconds=101"), 400,
                 '"seconds" is above the limit of 100 (--profiling-max-seconds)\n')
        is_error(d.get(PPROF + "profile?seconds=9223372036854775807"), 400)
    with server() as d:
        is_error(d.get(PPROF + "profile?seconds=7201"), 400)
        open_window(d, 7200).close()


@test
def more_than_max_requests_is_503_with_retry_after_and_frees_up_again():
    with server("--max-requests", "2") as d:
        one, two = open_window(d), d.connect()
        two.sendall(get_line(PPROF + "profile?seconds=3600"))
        poll(lambda: own_threads(d.pid).count("component-job") == 2, "two windows")
        for path in ("profile?seconds=1", "heap", "symbol"):
            r = d.get(PPROF + path)
            is_error(r, 503)
            equal(r.headers.get("retry-after"), "1")
            contains(r.text, "--profiling-max-requests")
        equal(d.get(PPROF + "cmdline").status, 200)
        one.close()
        poll(lambda: d.get(PPROF + "heap").status == 200, "a place")
        two.close()


@test
def stopping_ends_windows_early_with_a_valid_profile():
    with server("--burn") as d:
        with open_window(d) as s:
            equal(d.command("stop"), "0")
            head, body = head_and_body(receive_all(s))
            contains(head, "HTTP/1.1 200 OK")
            contains(gzip.decompress(body), b"samples")
        equal(own_threads(d.pid), [])


@test
def head_of_a_window_takes_its_time_and_sends_no_body():
    with server() as d:
        begin = time.monotonic()
        head, body = head_and_body(d.raw(get_line(PPROF + "profile?seconds=1", "Connection: close", method="HEAD")))
        need(time.monotonic() - begin >= 0.95, "too early")
        contains(head, "HTTP/1.1 200 OK")
        equal(body, b"")


main()
