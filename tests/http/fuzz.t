#!/usr/bin/env python3
"""The server against requests that nobody would send: methods, paths, queries, headers, bodies, pipelining, half-closes and
resets, by chance.  HTTP_FUZZ_SEED=N does the same ones again; with TEST_STRESS there are 1,000,000 and not 20,000.

After every round nothing may have stayed behind: no connection, no job, no descriptor, little memory; and all that was
answered must have been HTTP, by a status that there is."""
import os
import random
import re
import select
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from serving import *

ROUNDS = 50 if os.environ.get("TEST_STRESS") else 1
REQUESTS = 20000  # a round
AT_ONCE = 24      # connections
SEED = int(os.environ.get("HTTP_FUZZ_SEED", time.time_ns() % (1 << 32)))
firsts = {}  # of the first answers of connections, by status
STATUSES = {200, 301, 400, 401, 403, 404, 405, 413, 431, 500, 501, 503, 505}
# What takes long is asked for rarely, for its own sake and not the fuzzer's.
NAMES = ["cmdline"] * 8 + ["symbol"] * 4 + ["rates"] * 2 + ["", "nope", "heap", "allocs", "block", "mutex", "threadcreate"]
SLOW = ["profile", "trace", "goroutine", "fgprof"]
VALUES = ["", "0", "1", "-1", "+1", "2", "999999999999999999999", "0x10", "1e3", "NaN", "a", "%", "%00", "%zz", "a;b", " ", "%31"]
KEYS = ["seconds", "debug", "gc", "format", "token", "labels", "x", "", "%64ebug"]


class Fuzzer:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def some(self, values):
        return self.random.choice(values)

    def chance(self, percent):
        return self.random.random() * 100 < percent

    def noise(self, most):
        return self.random.randbytes(self.random.randrange(most)).decode("latin-1")

    def path(self):
        name = self.some(SLOW) if self.chance(1) else self.some(NAMES)
        path = PPROF + name
        if self.chance(15):
            at = self.random.randrange(len(path))
            path = path[:at] + self.some(["/", "//", "/../", "/./", "%2f", "%2e%2e", "%", "%00", "\t", "a" * 3000, self.noise(8)]) + path[at:]
        if self.chance(3):
            path = self.some(["*", "http://localhost" + path, "http://", "", "/", "/debug/pprof", "/debug/fgprof/", "//"])
        if self.chance(40) or name in SLOW:
            pairs = ["%s=%s" % (self.some(KEYS), self.some(VALUES)) for _ in range(self.random.randrange(4))]
            path += "?" + "&".join((["seconds=%s" % self.some(["0.01", "0", "x"])] if name in SLOW else []) + pairs)
        return path

    def headers(self):
        known = ["Host: localhost", "Host: 127.0.0.1:1", "Connection: close", "Connection: keep-alive",
                 "Connection: x, close", "Accept: */*", "Accept-Encoding: gzip", "Host: evil.example", "Origin: http://evil.example", "Host:", "Expect: 100-continue",
                 "Authorization: Bearer x", "Authorization:", "Range: bytes=0-1", " folded: x", "No colon", ": empty", "Bad name : x",
                 "X: " + "y" * 500, "X: " + self.noise(30), "Content-Length: x", "Content-Length: -1", "Content-Length: 99999999999999999999",
                 "Transfer-Encoding: gzip", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked, chunked", "X: a\rb"]
        weights = [60] + [12] * 9 + [1] * (len(known) - 10)
        found = self.random.choices(known, weights, k=self.random.randrange(4))
        return found + ["H%d: x" % n for n in range(200)] if self.chance(0.3) else found

    def body(self):
        data = self.some(["0x1+0x2", "mutex-profile-fraction=0", "block-profile-rate=x", "1" * 3000, self.noise(200)]).encode("latin-1")
        if self.chance(70):
            return "Content-Length: %d" % (len(data) + (self.some([-1, 1, 5]) if self.chance(10) else 0)), data
        size = max(1, self.random.randrange(len(data) + 1))
        parts = [data[i:i + size] for i in range(0, len(data), size)]
        end = self.some([b"0\r\n\r\n"] * 12 + [b"0\r\nT: x\r\n\r\n", b"", b"g\r\n", b"0x0\r\n\r\n", b"0\n\n"])
        return "Transfer-Encoding: chunked", b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + end

    def request(self):
        method = self.some(["GET"] * 30 + ["HEAD"] * 10 + ["POST"] * 15 + ["PUT", "get", "OPTIONS", "TRACE", "G(T", "", "CONNECT"])
        version = self.some(["HTTP/1.1"] * 60 + ["HTTP/1.0"] * 3 + ["HTTP/2.0", "HTTP/1.", "HTTQ/1.1", "HTTP/0.9", ""])
        headers, data = self.headers(), b""
        if method == "POST" or self.chance(5):
            length, data = self.body()
            headers.insert(self.random.randrange(len(headers) + 1), length)
        line = self.some(["\r\n"] * 40 + ["\n", "\r\n\r\n", "\r"])
        head = (line.join(["%s %s %s" % (method, self.path(), version)] + headers) + line + "\r\n").encode("latin-1", "replace")
        found = head + data
        if self.chance(2):  # any byte
            at = self.random.randrange(len(found))
            found = found[:at] + self.random.randbytes(1) + found[at + 1:]
        if self.chance(2):
            found = found[:self.random.randrange(len(found))]
        return found


class Client:
    """One connection: what it sends, in pieces, and how it ends."""

    def __init__(self, d, fuzzer):
        self.count = fuzzer.random.choices([1, 2, 3, 10], [60, 20, 15, 5])[0]
        self.left = b"".join(fuzzer.request() for _ in range(self.count))
        self.got = b""
        self.piece = fuzzer.some([1 << 20] * 6 + [1, 7, 100, 1000])
        self.end = fuzzer.some(["read"] * 5 + ["half", "reset", "close", "reset early"])
        self.s = socket.create_connection((d.host, d.port), timeout=DEADLINE)
        self.s.setblocking(False)
        self.moved_at = (0, time.monotonic())

    def close(self, reset=False):
        if reset:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.s.close()
        return True

    def step(self, ended):
        """Goes on; true: it is over.  ended: how many have."""
        try:
            if self.left:
                n = self.s.send(self.left[:self.piece])
                self.left = self.left[n:]
                self.moved_at = (ended, time.monotonic())
                if self.end == "reset early" and len(self.left) < 100:
                    return self.close(True)
            elif self.end in ("reset", "close", "reset early"):
                return self.close(self.end != "close")
            elif self.end == "half":
                self.s.shutdown(socket.SHUT_WR)
                self.end = "read"
            more = self.s.recv(1 << 16)
            self.got += more
            self.moved_at = (ended, time.monotonic())
            return not more and self.close()
        except BlockingIOError:
            # It may want more of us, for ever: what was to come has had its time when many others have ended since.
            return ended - self.moved_at[0] > AT_ONCE and self.close()
        except OSError:
            return self.close()

    def check(self):
        """All that came was HTTP; the first answer at least can be told from bodies."""
        self.got = self.got.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self.got:
            need(status_of(self.got) in STATUSES, "status %d" % status_of(self.got))
            firsts[status_of(self.got)] = firsts.get(status_of(self.got), 0) + 1


def round_of(d, fuzzer, requests):
    clients, sent, answered, ended = [], 0, 0, 0
    while sent < requests or clients:
        while len(clients) < AT_ONCE and sent < requests:
            clients.append(Client(d, fuzzer))
            clients[-1].moved_at = (ended, time.monotonic())
            sent += clients[-1].count
        over = [c for c in clients if c.step(ended)]
        last = min(clients, key=lambda c: c.moved_at)
        if not over and min(time.monotonic() - c.moved_at[1] for c in clients) > 0.05:  # all of them wait for more of us
            last.close()
            over = [last]
        ended += len(over)
        for c in over:
            c.check()
            answered += bool(c.got)
        clients = [c for c in clients if c not in over]
        if not over:
            select.select([c.s for c in clients], [c.s for c in clients if c.left], [], 0.001)
    return sent, answered


@test
def twenty_thousand_requests_by_chance_leave_nothing_behind():
    print("# seed %d: HTTP_FUZZ_SEED=%d does it again" % (SEED, SEED), flush=True)
    fuzzer = Fuzzer(SEED)
    with server("--max-seconds", "1") as d:
        poll(lambda: is_idle(d), "rest")
        round_of(d, fuzzer, 1000)  # what is made once is made by now
        poll(lambda: is_idle(d), "rest")
        own = lambda: sorted(t for t in descriptors(d.pid).values())
        poll(lambda: sum(t.startswith("socket:") for t in own()) == 3, "the connections' end")  # it listens, and two wake it
        before, size = len(own()), rss(d.pid)
        for _ in range(ROUNDS):
            sent, answered = round_of(d, fuzzer, REQUESTS)
            need(answered > sent / 10, "%d answers to %d requests" % (answered, sent))
            poll(lambda: is_idle(d), "the jobs' end")
            poll(lambda: len(own()) <= before, "the connections' end")
            equal(d.get(PPROF + "cmdline").status, 200)
        need(not grew_too_much(d.pid, size, 16 << 20), "RSS grew by %d bytes" % (rss(d.pid) - size))
        equal(d.get(PPROF + "profile?seconds=1").status, 200)
    print("# first answers by status: %s" % sorted(firsts.items()), flush=True)
    need({200, 301, 400, 403, 404, 405, 431, 501, 505} <= set(firsts), "too few kinds of answers")


main()
