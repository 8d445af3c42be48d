#!/usr/bin/env python3
"""evhttp.t - the routes on a daemon's own evhttp: as on our port, whatever its client, its
loop, its fork or its end do meanwhile."""
import http.client
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from serving import *
from pprof_reader import Profile

HEAP = PPROF + "heap?debug=1"


class Mounted(LineDaemon):
    """tests/programs/evhttp_daemon, with its server open; .get() asks that one."""

    def __init__(self, *options, mount="mount", start=True):
        super().__init__("tests/programs/evhttp_daemon", *options)
        self.port = int(self.command("open"))
        if mount:
            equal(self.command(mount), "0")
        if start:
            equal(self.command("start"), "0")

    def profile(self, seconds):
        return self.get(PPROF + "profile?seconds=%d" % seconds, timeout=seconds + DEADLINE)

    def open_window(self, seconds=7200):
        """A connection that waits for a profile which is being taken."""
        s = self.connect()
        s.sendall(get_line(PPROF + "profile?seconds=%d" % seconds, "Host: localhost"))
        poll(lambda: "component-job" in own_threads(self.pid), "the window")
        return s


def mounted(*options, **kw):
    return used(Mounted(*options, **kw))


def port_get(socket_path, path, method="GET", body=None):
    """Asks the profiler's own server, which listens on a unix socket."""
    c = http.client.HTTPConnection("localhost", timeout=DEADLINE)
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.settimeout(DEADLINE)
    c.sock.connect(socket_path)
    try:
        c.request(method, path, body=body, headers={"Host": "localhost"})
        r = c.getresponse()
        return Response(r.status, r.getheaders(), r.read())
    finally:
        c.close()


def is_profile(body):
    return sum(v[0] for _, v, _ in Profile(body).samples) > 0


def sockets(pid):
    return sorted(t for t in descriptors(pid).values() if t.startswith(("socket:", "anon_inode:[eventp")))


@test
def every_route_status_and_header_is_that_of_the_port():
    with tempdir() as t:
        path = os.path.join(t, "x.sock")
        with mounted("--address", "unix:" + path) as d:
            asked = [(m, p, None) for m in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "POST")
                     for p in ("", "cmdline", "heap?debug=1", "symbol?0x1+0x2", "nothing", "heap?seconds=0", "rates")]
            asked += [("GET", p, None) for p in (
                "heap", "allocs", "block", "mutex", "goroutine", "goroutine?debug=2", "threadcreate", "%68eap", "heap/",
                "/heap", "../pprof/heap?x=%zz;", "profile?seconds=99999", "heap?seconds=1&debug=1", "heap?format=x",
                "profle", "heap?format=top&focus=a(b", "heap?format=folded&focsu=a", "heap?format=top&focus=no.such&n=3")]
            asked += [("POST", "symbol", "0x1+0x2"), ("POST", "symbol", "0x1" * 400000), ("HEAD", "goroutine?debug=2", None)]
            for method, p, body in asked:
                what = "%s %s" % (method, p)
                here, there = d.get(PPROF + p, method, body), port_get(path, PPROF + p, method, body)
                equal(here.status, there.status, what)
                for r in here, there:
                    need(r.headers.pop("date"), what)
                    r.headers.pop("connection", None)
                    r.headers.pop("x-component-threads", None)
                    if here.status == 200:
                        r.headers.pop("content-length", None)  # of what is never twice the same
                equal(here.headers, there.headers, what)
                equal(bool(here.body), bool(there.body), what)
                if here.status != 200 or "symbol" in p or "cmdline" in p:
                    equal(here.body, there.body, what)
            need(re.match(rb"go 1\.\d+ trace\0\0\0", d.get(PPROF + "trace?seconds=0.2").body), "no trace")
            need(Profile(d.get("/debug/fgprof?seconds=1").body).samples, "no threads over time")
            equal(d.get("/debug/pprof").headers["location"], "/debug/pprof/")
            poll(lambda: is_profile(d.profile(1).body), "a sample")


@test
def the_example_answers_on_its_own_port_and_on_no_other():
    for _ in range(5):  # a port that is free now may be taken a moment later
        port = free_port()
        d = Daemon(["examples/evhttp", str(port)], port_file=False)
        try:
            d.port = port

            def page():
                need(d.process.poll() in (None, 1), d.output())
                with contextlib.suppress(OSError):
                    return d.process.poll() == 1 or d.get("/")
            r = poll(page, "the page")
            if r is True:
                continue  # taken
            need(r.text.startswith("this is "), r.text)
            contains(d.get(PPROF).text, "Types of profiles available")
            need(Profile(d.get(PPROF + "goroutine").body).samples, "no threads")
            with open("/proc/%d/net/tcp" % d.pid) as f:
                listening = {int(x.split()[9]) for x in f.read().splitlines()[1:] if x.split()[3] == "0A"}
            ours = {int(t[8:-1]) for t in descriptors(d.pid).values() if t.startswith("socket:[")}
            equal(len(listening & ours), 1, "listening sockets")
            return
        finally:
            d.end()
    raise AssertionError("no free port in five attempts")


@test
def no_header_comes_twice_and_a_connection_serves_many_requests():
    with mounted() as d:
        s = d.connect()
        before = None
        for n in range(30):
            s.sendall(get_line(PPROF + "goroutine?debug=1", "Host: localhost"))
            r = http.client.HTTPResponse(s)
            r.begin()
            names = [k.lower() for k, _ in r.getheaders()]
            equal(len(names), len(set(names)), names)
            contains(r.read().decode(), "goroutine profile: total ")
            if n == 0:
                poll(lambda: is_idle(d), "the end of the job")
                before = sockets(d.pid)
        poll(lambda: sockets(d.pid) == before, "nothing to be left open")
        s.close()


@test
def what_is_not_below_the_prefix_is_the_daemons():
    with mounted(mount="mount /internal/x") as d:
        for path in "/", "/mine", PPROF, "/internal/x/", "/internal/x/debug/pprofile", "/internal":
            equal((d.get(path).status, d.get(path).text), (200, "the daemon's own\n"), path)
        r = d.get("/internal/x/debug/pprof?a=b")
        equal((r.status, r.headers["location"]), (301, "/internal/x/debug/pprof/?a=b"))
        equal(r.text, '<a href="/internal/x/debug/pprof/">Moved Permanently</a>.\n\n')
        equal(d.get("/internal/x/debug/pprof//heap").headers["location"], "/internal/x/debug/pprof/heap")
        contains(d.get("/internal/x/debug/pprof/").text, "Types of profiles available")
        equal(d.get("/internal/x/debug/pprof/heap").status, 200)
        is_error(d.get("/internal/x/debug/pprof/nothing"), 404, "Unknown profile\n")
        equal(d.command("mountalone"), "0")
        equal(d.get("/").status, 404)
        equal(d.get(PPROF + "heap").status, 200)
        equal(d.command("unmount"), "0")
        equal(d.get(PPROF + "heap").status, 404)
        equal(d.command("unmount").split()[0], "-2")
        contains(d.command("mount bad"), "prefix 'bad': write")
        contains(d.command("mount /a/"), "-22 prefix '/a/': write")


@test
def a_profile_larger_than_every_buffer_comes_whole_to_a_slow_client_and_keeps_nobody_waiting():
    with mounted() as d:
        equal(d.command("tree"), "0")
        whole = d.get(HEAP)
        equal(whole.headers.get("transfer-encoding"), "chunked")
        need(len(whole.body) > 2 << 20, "%d bytes are no test" % len(whole.body))
        end = b"\n# DebugGC = false\n"
        need(end in whole.body[-200:], whole.body[-200:])

        def records(body):
            return len(re.findall(rb"^\d+: \d+ \[", body, re.M))

        for version, headers in ("1.1", ["Connection: close"]), ("1.0", []), ("1.0", ["Connection: keep-alive"]):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(DEADLINE)
            s.connect((d.host, d.port))
            before = rss(d.pid)
            s.sendall(get_line(HEAP, "Host: localhost", *headers, version=version))
            begin = s.recv(100)
            equal(status_of(begin), 200)
            for _ in range(3):  # meanwhile
                equal(d.get("/mine").text, "the daemon's own\n")
                equal(d.get(PPROF + "cmdline").status, 200)
            need(not grew_too_much(d.pid, before, 4 << 20), "the reply is kept in memory")
            head, body = head_and_body(begin + receive_all(s))
            equal("\r\nTransfer-Encoding: chunked" in head, version == "1.1")
            need("Content-Length" not in head, head)
            # What serves allocates, too: as many as before or after it, or between.
            few, many = sorted((records(whole.body), records(d.get(HEAP).body)))
            need(few - few // 50 <= records(body) <= many + many // 50, "it is not whole, or more: %d, %d, %d" % (
                few, records(body), many))
            contains(body[-200:], end.strip())
            s.close()


@test
def a_client_that_leaves_ends_its_window_and_nothing_is_left_of_it():
    with mounted() as d:
        before = sockets(d.pid)
        for linger in None, b"\1\0\0\0\0\0\0\0":  # FIN, and RST
            s = d.open_window()
            if linger:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            s.close()
            poll(lambda: is_idle(d), "the window to be freed")
            poll(lambda: sockets(d.pid) == before, "descriptors")
        # In the middle of a reply, too
        equal(d.command("tree"), "0")
        s = d.connect()
        s.sendall(get_line(HEAP, "Host: localhost"))
        equal(status_of(s.recv(100)), 200)
        s.close()
        poll(lambda: is_idle(d), "the job to end", 90)
        poll(lambda: sockets(d.pid) == before, "descriptors")
        equal(d.get(PPROF + "heap").status, 200)


@test
def a_client_that_closes_its_sending_half_at_once_gets_the_whole_reply():
    with mounted() as d:
        equal(d.command("tree"), "0")
        text = PPROF + "goroutine?debug=1"
        for what, data, end in (
                ("small", get_line(text, "Host: localhost"), b"\n"),
                ("HTTP/1.0", get_line(text, version="1.0"), b"\n"),
                ("HEAD", get_line(HEAP, "Host: localhost", method="HEAD"), b"\r\n\r\n"),
                ("a body", get_line(PPROF + "symbol", "Content-Length: 100000", method="POST") + b"1" * 100000, b"\n"),
                ("large", get_line(HEAP, "Host: localhost"), b"\n\r\n0\r\n\r\n"),
                ("large HTTP/1.0", get_line(HEAP, version="1.0"), b"\n"),
                ("a second, too", get_line(text, "Host: localhost") * 2, b"\n")):
            for _ in range(3):
                got = d.raw(data, half_close=True)
                equal(status_of(got), 200, what)
                need(got.endswith(end), "%s: %d bytes that end with %r" % (what, len(got), got[-40:]))
                need("large" not in what or b"\n# MaxRSS = " in got[-60:], what)
                equal(len(re.findall(rb"^HTTP/1\.", got, re.M)), 1 + ("second" in what), what)
        poll(lambda: is_idle(d), "the jobs' end")


@test
def a_loop_that_waits_for_a_profile_sleeps():
    with tempdir() as t, mounted("--address", "unix:" + os.path.join(t, "x.sock")) as d:
        s = d.open_window()

        def switches():
            with open("/proc/%d/task/%d/status" % (d.pid, d.pid)) as f:
                return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M).group(1))

        def slept():
            at = switches()
            equal(port_get(os.path.join(t, "x.sock"), PPROF + "trace?seconds=0.3").status, 200)
            return switches() == at
        poll(slept, "a trace of the port during which the loop does not wake up")
        # A half-close is a hangup, and is told once.
        s.shutdown(socket.SHUT_WR)
        poll(lambda: is_idle(d), "the window to end")
        poll(lambda: not s.recv(65536), "the end")
        s.close()


@test
def a_server_that_the_daemon_frees_cuts_its_requests_and_ends_their_windows():
    with mounted() as d:
        s = d.open_window()
        equal(d.command("free"), "0")
        equal(receive_all(s), b"")
        s.close()
        poll(lambda: is_idle(d), "the window to end")
        d.port = int(d.command("open"))
        equal(d.command("mount"), "0")
        equal(d.get(PPROF + "heap").status, 200)
        s = d.open_window()
        equal(d.command("freebase"), "0")
        equal(receive_all(s), b"")
        s.close()


@test
def the_profiler_may_be_stopped_under_open_requests_and_started_again():
    with mounted() as d:
        for stop in "stop", "stophere":
            s = d.open_window()
            equal(d.command(stop), "0")
            r = http.client.HTTPResponse(s)
            r.begin()
            equal(r.status, 200)
            need(Profile(r.read()).all[10][0] < 7200 * 10**9, "not its duration")
            s.close()
            is_error(d.get(PPROF + "heap"), 503, "profiling is off\n")
            head = d.get(PPROF + "heap", "HEAD")
            equal((head.status, head.body, head.headers["content-length"]), (503, b"", "17"))
            equal(own_threads(d.pid), [])
            equal(d.command("start"), "0")
            equal(d.get(PPROF + "heap").status, 200)
        # What no client takes is cut off, and looks so.
        equal(d.command("tree"), "0")
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(DEADLINE)
        s.connect((d.host, d.port))
        s.sendall(get_line(HEAP, "Host: localhost"))
        begin = s.recv(100)
        equal(d.command("stop"), "0")
        data = begin
        with contextlib.suppress(ConnectionResetError):
            data += receive_all(s)
        need(not data.endswith(b"0\r\n\r\n"), "half a profile that looks whole")
        s.close()


@test
def a_forked_child_has_neither_a_descriptor_of_ours_nor_a_say_in_open_requests():
    with mounted() as d:
        s = d.open_window(2)
        r, child = d.command("fork").split()
        try:
            equal(r, "0", "event_reinit()")
            ours = {t for t in descriptors(d.pid).values() if t.startswith(("socket:", "pipe:"))}
            got = {t for t in descriptors(int(child)).values() if t.startswith(("socket:", "pipe:"))}
            # The daemon's own: its listener, the client's connection, our pipes, and libevent's.
            need(len(ours - got) >= 2, "the child has both ends: %r of %r" % (got, ours))
            reply = http.client.HTTPResponse(s)
            reply.begin()
            equal(reply.status, 200)
            equal(Profile(reply.read()).types, [("samples", "count"), ("cpu", "nanoseconds")])
        finally:
            os.kill(int(child), signal.SIGKILL)
        s.close()


@test
def who_may_ask_is_asked_as_on_the_port():
    with tempdir() as t:
        token = os.path.join(t, "token")
        with open(token, "w") as f:
            os.fchmod(f.fileno(), 0o600)
            f.write("known-to-few\n")
        path = os.path.join(t, "web.sock")
        with mounted("--token-file", token, "--unix", path) as d:
            is_error(d.get(PPROF), 401)
            equal(d.get("/mine").status, 200)
            know = {"Authorization": "Bearer known-to-few"}
            equal(d.get(PPROF, headers=know).status, 200)
            equal(d.get(PPROF + "?token=known-to-few").status, 200)
            is_error(d.get(PPROF, headers=dict(know, Host="rebound.example.com")), 403)
            body = "mutex-profile-fraction=0"
            is_error(d.get(PPROF + "rates", "POST", body, dict(know, Origin="http://else.where")), 403)
            equal(d.get(PPROF + "rates", "POST", body, know).status, 200)
            for headers, status in ({}, 401), (know, 200), (dict(know, Host="web.example.com"), 200):
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(DEADLINE)
                s.connect(path)
                s.sendall(get_line(PPROF, "Connection: close", *("%s: %s" % h for h in headers.items())))
                equal(status_of(receive_all(s)), status, headers)
                s.close()


@test
def what_the_port_would_not_read_is_refused_in_its_words():
    with tempdir() as t:
        path = os.path.join(t, "x.sock")
        with mounted("--address", "unix:" + path) as d:
            for what, headers, status in (
                    ("two hosts", ["Host: localhost", "Host: rebound.example.com"], 400),
                    ("many headers", ["Host: localhost"] + ["X-%d: y" % i for i in range(200)], 431),
                    ("long headers", ["Host: localhost", "X: " + "y" * 70000], 431)):
                ask = get_line(PPROF, "Connection: close", *headers)
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(DEADLINE)
                s.connect(path)
                s.sendall(ask)
                here, there = head_and_body(d.raw(ask)), head_and_body(receive_all(s))
                s.close()
                equal(status_of(here[0].encode()), status, what)
                equal(here[1], there[1], what)
            equal(d.get(PPROF).status, 200)


@test
def without_a_port_it_has_to_be_mounted_first_and_another_libevent_is_found_out():
    with mounted(mount=None, start=False) as d:
        contains(d.command("start"), "-22 cannot serve profiles on nothing")
        equal(d.command("mount"), "0")
        is_error(d.get(PPROF), 503, "profiling is off\n")
        equal(d.command("start"), "0")
        equal(d.get(PPROF).status, 200)
    with tempdir() as t:
        source, lib = os.path.join(t, "x.c"), os.path.join(t, "libold.so")
        with open(source, "w") as f:
            f.write("struct evhttp_request;\nvoid evhttp_send_reply_end(struct evhttp_request *r) { (void)r; }\n")
        equal(run(*CC.split(), "-shared", "-fPIC", "-o", lib, source).returncode, 0)
        os.environ["LD_PRELOAD"] = lib
        try:
            with mounted(mount=None, start=False) as d:
                del os.environ["LD_PRELOAD"]
                answer = d.command("mount")
                contains(answer, "-95 ")
                contains(answer, "libold.so")
        finally:
            os.environ.pop("LD_PRELOAD", None)


main()
