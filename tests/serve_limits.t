#!/usr/bin/env python3
"""What a client can take from us is bounded: header time and size, bodies,
connections, queued bytes, descriptors; and none of it ends or slows the daemon."""
import http.client
import re
import select
import socket
import time

from serving import *

HEADER_SECONDS = 32
CONNECTIONS = 64


def closed(s):
    """Has the server closed this connection?"""
    readable, _, _ = select.select([s], [], [], 0)
    if not readable:
        return False
    try:
        return s.recv(65536) == b""
    except ConnectionResetError:
        return True


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@test
def a_header_sent_byte_by_byte_is_cut_off_after_32_seconds_in_all():
    with server() as d:
        with d.connect() as slow, d.connect() as silent, d.connect() as second:
            begin = time.monotonic()
            # A second request on a used connection has the same limit from its first byte on.
            second.sendall(get_line(PPROF + "cmdline"))
            contains(second.recv(65536), b"200 OK")
            data = get_line(PPROF + "cmdline", "X: " + "a" * 200)
            open_ones = {slow: 0.0, silent: 0.0, second: 0.0}
            for i in range(len(data) - 4):
                for s in (slow, second):
                    if s in open_ones:
                        try:
                            s.sendall(data[i:i + 1])
                        except OSError:
                            pass
                for s in list(open_ones):
                    if closed(s):
                        took = time.monotonic() - begin
                        del open_ones[s]
                        need(HEADER_SECONDS - 1 <= took < HEADER_SECONDS + 15, "closed after %.1f s" % took)
                if not open_ones:
                    break
                time.sleep(0.5)  # the slow client's own pace
            equal(len(open_ones), 0, "connections still open")
        equal(d.get(PPROF + "cmdline").status, 200)


@test
def a_header_above_64_kib_is_431_and_a_body_above_1_mib_413():
    with server() as d:
        for value, want in ((60000, 200), (70000, 431)):
            data = d.raw(get_line(PPROF + "cmdline", "X: " + "a" * value, "Connection: close"))
            equal((status_of(data), value), (want, value))
        data = d.raw(get_line(PPROF + "cmdline", *["H%d: x" % i for i in range(200)]))
        equal(status_of(data), 431)
        equal(d.get(PPROF + "symbol", method="POST", body="1" * (1 << 20)).status, 200)
        data = d.raw(get_line(PPROF + "symbol", "Content-Length: %d" % ((1 << 20) + 1), method="POST") + b"1" * 100000)
        equal(status_of(data), 413)
        data = d.raw(get_line(PPROF + "symbol", "Content-Length: 99999999999999999999", method="POST"))
        equal(status_of(data), 413)
        data = d.raw(get_line(PPROF + "symbol", "Transfer-Encoding: chunked", method="POST") + b"fffffff\r\n")
        equal(status_of(data), 413)
        data = d.raw(get_line(PPROF + "symbol", "Transfer-Encoding: chunked", method="POST") + b"f" * 300)
        equal(status_of(data), 400)


@test
def at_most_64_connections_and_an_idle_or_a_slow_one_makes_room_for_a_new_one():
    with server() as d:
        arriving = [d.connect() for _ in range(CONNECTIONS)]
        for s in arriving:
            s.sendall(b"GET ")
        held = lambda: sum(t.startswith("socket:") for t in descriptors(d.pid).values()) - 1
        poll(lambda: held() == CONNECTIONS, "64 connections")
        extra = d.connect()
        poll(lambda: any(closed(s) for s in [extra] + arriving), "one of 65 closed")
        equal(held(), CONNECTIONS)

        def answered():  # who never asks makes room when he had his time, the longest first
            with contextlib.suppress(OSError, http.client.HTTPException):
                return d.get(PPROF + "cmdline").status == 200
        poll(answered, "an answer beside 64 who never ask")
        need(closed(arriving[0]), "another than the longest was closed")
        for s in arriving + [extra]:
            s.close()
        poll(lambda: held() == 0, "room again")
        arriving = [d.connect()]
        arriving[0].sendall(b"GET ")
        idle = [d.connect() for _ in range(CONNECTIONS - 1)]
        for s in idle:
            s.sendall(get_line(PPROF + "cmdline"))
            contains(s.recv(65536), b"200 OK")
        equal(d.get(PPROF + "cmdline").status, 200, "a new client among idle ones")
        poll(lambda: closed(idle[0]), "the longest idle one closed")
        need(not closed(idle[-1]), "the newest idle one was closed")
        for s in idle + arriving:
            s.close()


@test
def without_descriptors_the_listener_rests_says_so_once_and_recovers():
    with server() as d:
        equal(d.command("nofile 64"), "0")
        d.command("exhaust 0")
        spent = cpu_seconds(d.pid)
        waiting = [d.connect() for _ in range(3)]
        d.wait_log("cannot accept a connection")
        time.sleep(2.5)  # more than two rests
        need(cpu_seconds(d.pid) - spent < 0.3, "it spins: %.2f s of CPU" % (cpu_seconds(d.pid) - spent))
        equal(d.output().count("cannot accept a connection"), 1)
        d.command("exhaust -1")
        waiting[0].sendall(get_line(PPROF + "cmdline", "Connection: close"))
        equal(status_of(receive_all(waiting[0])), 200)
        for s in waiting:
            s.close()


@test
def a_start_without_descriptors_fails_and_harms_nothing():
    with server(start=False) as d:
        equal(d.command("nofile 64"), "0")
        for spare in range(0, 24, 3):
            d.command("exhaust %d" % spare)
            answer = d.command("start")
            d.command("stop")
            d.command("exhaust -1")
            need(answer.startswith("-24 ") or answer == "0", answer)
        equal(own_threads(d.pid), [])
        equal(d.command("start"), "0")
        d.wait_port()
        equal(d.get(PPROF + "cmdline").status, 200)


@test
def a_body_in_the_smallest_chunks_with_the_longest_frames_costs_neither_memory_nor_time():
    with server() as d:
        head = get_line(PPROF + "symbol", "Transfer-Encoding: chunked", "Connection: close", method="POST")
        with d.connect() as s:
            s.sendall(head)
            size, spent = rss(d.pid), cpu_seconds(d.pid)
            for _ in range(40):  # 10 MB for 40,000 bytes, not all of which are read yet
                s.sendall((b"1;" + b"x" * 240 + b"\r\n1\r\n") * 1000)
            for byte in b"1\r\n1\r\n" * 100:
                s.sendall(bytes([byte]))
            need(not grew_too_much(d.pid, size, 4 << 20), "RSS grew by %d bytes" % (rss(d.pid) - size))
            s.sendall(b"0\r\nTrailer: x\r\n\r\n")
            equal(status_of(receive_all(s)), 200)
            need(cpu_seconds(d.pid) - spent < 2, "%.2f s of CPU" % (cpu_seconds(d.pid) - spent))
        with d.connect() as s:  # trailers have the limit of a header
            s.sendall(head + b"0\r\n" + b"Trailer: x\r\n" * 7000)
            equal(status_of(receive_all(s)), 431)
        for body, status in ((b"1\r\n1\r\n0\r\n\r\n", 200), (b"1\r\n12\r\n0\r\n\r\n", 400), (b"g\r\n", 400),
                             (b"1\n1\n0\n\n", 200), (b"1\0\r\n1\r\n0\r\n\r\n", 400), (b"\r\n", 400), (b"100001\r\n", 413), (b"1 \r\n1\r\n0\r\n\r\n", 200),
                             (b"100000\r\n" + b"1" * (1 << 20) + b"\r\n1\r\n", 413), (b"1" + b" " * 300, 400)):
            equal(status_of(d.raw(head + body)), status, body[:20])


def long_request(d):
    """A POST whose answer, some 2 MB, is larger than what a unix socket takes in."""
    with open("/proc/%d/maps" % d.pid) as f:
        pc = next(int(m.group(1), 16) for m in re.finditer(r"^([0-9a-f]+)-\S+ r-xp", f.read(), re.M)) + 0x100
    body = b"+".join([b"%#x" % pc] * 50000)
    return get_line(PPROF + "symbol", "Content-Length: %d" % len(body), "Connection: close", method="POST") + body


def connect_unix(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(DEADLINE)
    s.connect(path)
    return s


@test
def a_client_that_does_not_read_holds_a_bounded_queue():
    with tempdir() as t, server("--socket", t + "/s") as d:
        equal(d.get(PPROF + "symbol", method="POST", body="0x1").status, 200)
        with connect_unix(t + "/s") as s:
            s.sendall(long_request(d))
            poll(lambda: "component-job" in own_threads(d.pid), "the job")
            time.sleep(1)  # time to queue more than it may
            need("component-job" in own_threads(d.pid), "it does not wait for the client")
            equal(d.get(PPROF + "heap").status, 200)
            data = receive_all(s)
        contains(data[:1000], b"Transfer-Encoding: chunked")
        need(data.endswith(b"0\r\n\r\n") and len(data) > 1 << 20, "the reply is not whole: %d bytes" % len(data))
        poll(lambda: "component-job" not in own_threads(d.pid), "the job's end")


@test
def a_client_that_leaves_while_a_reply_is_streamed_frees_its_job():
    with tempdir() as t, server("--socket", t + "/s") as d:
        for _ in range(5):
            with connect_unix(t + "/s") as s:
                s.sendall(long_request(d))
                s.recv(1000)
        poll(lambda: is_idle(d), "the jobs' end")


@test
def a_client_that_pipelines_more_than_we_keep_is_read_when_its_turn_comes():
    with server() as d:
        one = get_line(PPROF + "symbol", "Content-Length: 100000", method="POST") + b"1" * 100000
        with d.connect() as s:
            s.sendall(get_line(PPROF + "profile?seconds=1"))
            sender = in_background(s.sendall, one * 40 + get_line(PPROF + "cmdline", "Connection: close"))
            data = receive_all(s)
            sender.result()
        equal(data.count(b"HTTP/1.1 200 OK"), 42)


@test
def as_many_seconds_as_a_number_holds_are_waited_for_where_nothing_limits_them():
    with server("--max-seconds", str((1 << 63) - 1)) as d:
        asked = [d.connect() for _ in range(3)]
        for s, path in zip(asked, ("profile?seconds=9223372036854775806", "heap?seconds=9300000000", "trace?seconds=1e18")):
            s.sendall(get_line(PPROF + path))
        poll(lambda: own_threads(d.pid).count("component-job") == 3, "the jobs")
        equal(d.get(PPROF + "profile?seconds=1").status, 200)
        equal([closed(s) or bool(select.select([s], [], [], 0)[0]) for s in asked], [False] * 3, "they were answered")
        for s in asked:
            s.close()
        poll(lambda: is_idle(d), "the jobs' end")


@test
def stopping_cuts_off_a_client_that_does_not_read():
    with tempdir() as t, server("--socket", t + "/s") as d:
        with connect_unix(t + "/s") as s:
            s.sendall(long_request(d))
            poll(lambda: "component-job" in own_threads(d.pid), "the job")
            begin = time.monotonic()
            equal(d.command("stop"), "0")
            need(time.monotonic() - begin < 20, "stop took %.1f s" % (time.monotonic() - begin))
            equal(own_threads(d.pid), [])
            need(not receive_all(s).endswith(b"0\r\n\r\n"), "a cut reply looks whole")


@test
def two_hundred_heap_profiles_leave_no_descriptor_thread_or_memory_behind():
    with server() as d:
        for _ in range(30):
            d.get(PPROF + "heap")
        poll(lambda: is_idle(d), "rest")
        fds, count, size = len(descriptors(d.pid)), len(threads(d.pid)), rss(d.pid)
        for _ in range(200):
            equal(d.get(PPROF + "heap").status, 200)
        poll(lambda: len(threads(d.pid)) == count, "threads as before")
        poll(lambda: len(descriptors(d.pid)) == fds, "descriptors as before")
        need(not grew_too_much(d.pid, size, 1 << 20), "RSS grew by %d bytes" % (rss(d.pid) - size))


main()
