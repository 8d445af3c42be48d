#!/usr/bin/env python3
"""What a client can take from us is bounded: header time and size, bodies,
connections, queued bytes, descriptors; and none of it ends or slows the daemon."""
import fcntl
import http.client
import os
import re
import select
import shutil
import socket
import struct
import sys
import termios
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from serving import *

HEADER_SECONDS = 32
REQUESTS = 64
CONNECTIONS = REQUESTS + 16


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


@beside
def a_header_sent_byte_by_byte_is_cut_off_after_32_seconds_in_all():
    with server() as d:
        with d.connect() as slow, d.connect() as silent, d.connect() as second, d.connect() as told:
            begin = time.monotonic()
            told.sendall(get_line(PPROF + "symbol", "Content-Length: 5", "Expect: 100-continue", method="POST"))
            equal(told.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")  # which does not prolong its time
            # A second request on a used connection has the same limit from its first byte on.
            second.sendall(get_line(PPROF + "cmdline"))
            contains(second.recv(65536), b"200 OK")
            data = get_line(PPROF + "cmdline", "X: " + "a" * 200)
            open_ones = {slow: 0.0, silent: 0.0, second: 0.0, told: 0.0}
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
                        need(HEADER_SECONDS - 1 <= took < HEADER_SECONDS + DEADLINE, "closed after %.1f s" % took)
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


def held(d):
    """Its connections, those of unix sockets among them; two sockets wake the server's thread."""
    return sum(t.startswith("socket:") for t in descriptors(d.pid).values()) - d.listeners - 2


def listening(d, listeners=1):
    d.listeners = listeners
    return d


@test
def at_most_80_connections_and_an_idle_or_the_slowest_one_makes_room_for_a_new_one():
    with server() as d:
        listening(d)
        arriving = [d.connect() for _ in range(CONNECTIONS)]
        for s in arriving:
            s.sendall(b"GET ")
        poll(lambda: held(d) == CONNECTIONS, "80 connections")
        equal(d.get(PPROF + "cmdline").status, 200, "beside 80 who never ask")
        poll(lambda: closed(arriving[0]), "the longest closed")
        need(not closed(arriving[-1]), "the newest was closed")
        for s in arriving:
            s.close()
        poll(lambda: held(d) == 0, "room again")
        arriving = [d.connect()]
        arriving[0].sendall(b"GET ")
        idle = [d.connect() for _ in range(CONNECTIONS - 1)]
        for s in idle:
            s.sendall(get_line(PPROF + "cmdline"))
            contains(s.recv(65536), b"200 OK")
        equal(d.get(PPROF + "cmdline").status, 200, "a new client among idle ones")
        poll(lambda: closed(idle[0]), "the longest idle one closed")
        need(not closed(idle[-1]) and not closed(arriving[0]), "another than the longest idle one was closed")
        for s in idle + arriving:
            s.close()


def crowd_run(address, size, stop, came):
    """size clients who send half a line and come again when they are closed; came[0]: how often they did."""
    watched = select.epoll()
    clients = {}

    def come():
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(address)
        clients[s.fileno()] = s
        watched.register(s, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        came[0] += 1
    for _ in range(size):
        come()
    while not stop.is_set():
        for fd, event in watched.poll(0.1):
            s = clients[fd]
            try:
                s.send(b"G")
                if event & select.EPOLLIN and s.recv(100) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            except OSError:
                watched.unregister(s)
                del clients[fd]
                s.close()
                come()
    for s in clients.values():
        s.close()
    watched.close()


@test
def seven_hundred_who_trickle_and_come_again_keep_nobody_out():
    with tempdir() as t, server("--socket", t + "/s") as d:
        listening(d, 2)
        stop, came = threading.Event(), [0]
        crowd = in_background(crowd_run, (d.host, d.port), 700, stop, came)
        try:
            poll(lambda: came[0] > 1000, "they come again")
            for _ in range(3):
                equal(d.get(PPROF + "cmdline").status, 200)
            for _ in range(20):
                with connect_unix(t + "/s") as s:
                    s.sendall(get_line(PPROF + "cmdline", "Connection: close"))
                    equal(status_of(receive_all(s)), 200)
            need(held(d) <= CONNECTIONS + 1, "%d connections" % held(d))
        finally:
            stop.set()
            crowd.result()


@test
def clients_that_asked_twice_and_left_hold_nothing():
    """a client that pipelines two windows of two hours and leaves, by FIN or by reset, holds nothing"""
    with server() as d:
        listening(d)
        window = get_line(PPROF + "profile?seconds=7200")
        for reset in False, True:
            for _ in range(REQUESTS):
                with d.connect() as s:
                    s.sendall(window * 2)
                    if reset:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            poll(lambda: is_idle(d) and held(d) == 0, "all of them gone, reset %s" % reset)
        for _ in range(REQUESTS):  # reading stops at some amount, and the reset is seen all the same
            with d.connect() as s:
                s.sendall(window)
                with contextlib.suppress(OSError):
                    s.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100000)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        poll(lambda: is_idle(d) and held(d) == 0, "all who sent 2 MB gone")
        equal(d.get(PPROF + "profile?seconds=1").status, 200)


@test
def who_sends_64_kib_behind_a_window_is_closed_and_its_window_ends():
    with server() as d:
        with d.connect() as s:
            s.sendall(get_line(PPROF + "profile?seconds=7200"))
            poll(lambda: not is_idle(d), "the window")
            s.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 60000)
            equal(d.get(PPROF + "cmdline").status, 200)
            need(not is_idle(d), "less ended it too")
            with contextlib.suppress(OSError):
                s.sendall(b"x" * 10000)
            poll(lambda: is_idle(d), "the end of the window")
            poll(lambda: closed(s), "the end of the connection")


@test
def a_thousand_who_ask_at_once_get_as_many_windows_as_are_allowed_and_503_for_the_rest():
    with server("--max-requests", "100") as d:
        clients = [socket.socket() for _ in range(1000)]
        for s in clients:
            s.setblocking(False)
            s.connect_ex((d.host, d.port))
        waiting, refused_ones = set(clients), 0
        poll_set = select.epoll()
        by_fd = {s.fileno(): s for s in clients}
        for s in clients:
            poll_set.register(s, select.EPOLLOUT)
        until = time.monotonic() + 4 * DEADLINE
        while len(waiting) > 100 and time.monotonic() < until:
            for fd, event in poll_set.poll(1):
                if event & select.EPOLLOUT:
                    by_fd[fd].send(get_line(PPROF + "profile?seconds=7200"))
                    poll_set.modify(fd, select.EPOLLIN)
                    continue
                data = by_fd[fd].recv(65536)
                equal(status_of(data), 503)
                contains(data, b"--profiling-max-requests")
                waiting.remove(by_fd[fd])
                poll_set.unregister(fd)
                by_fd[fd].close()
                refused_ones += 1
        equal((refused_ones, own_threads(d.pid).count("component-job")), (900, 100))
        # What go tool pprof shows of it.
        go = shutil.which("go")
        if go:
            r = run(go, "tool", "pprof", "-raw", "-output", "/dev/null", d.url + "profile?seconds=1",
                    env={**os.environ, "PPROF_TMPDIR": d.dir})
            contains(r.stderr, "too many profiles are being collected at the same time (--profiling-max-requests)")
        for s in waiting:
            s.close()
        poll(lambda: is_idle(d), "the jobs' end")


@test
def bodies_are_not_kept_before_host_token_path_and_method_are_known_to_be_right():
    with tempdir() as t:
        with open(t + "/token", "w") as f:
            f.write("secret\n")
        os.chmod(t + "/token", 0o600)
        with server("--token-file", t + "/token") as d:
            ask = lambda what, *headers, method="POST": get_line(what, "Content-Length: 1000000", *headers, method=method)
            right = "Authorization: Bearer secret"
            for request, status in ((ask(PPROF + "symbol"), 401), (ask(PPROF + "symbol", right, "Host: evil.example"), 403),
                                    (ask(PPROF + "heap", right), 405), (ask("/nothing", right), 404),
                                    (ask(PPROF + "symbol", right, method="GET"), 200), (ask(PPROF + "cmdline", right, method="PUT"), 405),
                                    (ask(PPROF + "symbol", "Expect: 100-continue"), 401)):
                with d.connect() as s:  # the answer comes without the body
                    s.sendall(request)
                    data = s.recv(65536)
                    equal(status_of(data), status)
                    contains(data, b"Connection: close")
            size, clients = rss(d.pid), [d.connect() for _ in range(REQUESTS)]
            for s in clients:
                s.sendall(ask(PPROF + "symbol"))
                with contextlib.suppress(OSError):
                    s.sendall(b"1" * 999999)
            need(not grew_too_much(d.pid, size, 8 << 20), "RSS grew by %d bytes" % (rss(d.pid) - size))
            for s in clients:
                s.close()
            equal(d.get(PPROF + "symbol", method="POST", body="1" * 1000000, headers={"Authorization": "Bearer secret"}).status, 200)


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


def one_read_each(s, data):
    """Sends bytes, each when the one before it has been read: of a unix socket the kernel tells."""
    for byte in data:
        s.sendall(bytes([byte]))
        while struct.unpack("i", fcntl.ioctl(s, termios.TIOCOUTQ, bytes(4)))[0]:
            os.sched_yield()


@test
def a_body_that_comes_byte_by_byte_costs_its_bytes_alone():
    with tempdir() as t, server("--socket", t + "/s") as d:
        for method in "POST", "GET":  # kept, and dropped
            with connect_unix(t + "/s") as s:
                size, body = rss(d.pid), b"1" * 12000
                s.sendall(get_line(PPROF + "symbol", "Content-Length: %d" % len(body), "Connection: close", method=method))
                one_read_each(s, body[:-1])
                need(not grew_too_much(d.pid, size, 4 << 20), "%s: RSS grew by %d bytes" % (method, rss(d.pid) - size))
                s.sendall(body[-1:])
                equal(status_of(receive_all(s)), 200)


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
        one = get_line(PPROF + "nope?" + "x" * 10000)
        with d.connect() as s:
            sender = in_background(s.sendall, one * 400 + get_line(PPROF + "cmdline", "Connection: close"))
            data = receive_all(s)
            sender.result()
        equal(data.count(b"HTTP/1.1 404 Not Found"), 400)
        equal(data.count(b"HTTP/1.1 200 OK"), 1)


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
            need(time.monotonic() - begin < DEADLINE, "stop took %.1f s" % (time.monotonic() - begin))
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
