#!/usr/bin/env python3
"""Health and profiles at one address: each is answered by its own rules, and switching, moving or crowding the one
leaves the other alone."""
import ctypes
import gzip
import http.client
import os
import re
import select
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

own_network()
SUBJECT = "tests/programs/obedient_daemon"
PPROF = "/debug/pprof/"
OFF = "404 page not found; profiling is off or has another address; there are /healthz, /livez and /readyz\n"
PROBES = "/healthz", "/livez", "/readyz"


@contextlib.contextmanager
def shared(*words, host="127.0.0.1", enabled=True, **kw):
    """A subject with both at one port, once it is ready."""
    port = free_port()
    where = "%s:%d" % (host, port)
    with tempdir() as t:
        fifo = os.path.join(t, "commands")
        os.mkfifo(fifo)
        with daemon(SUBJECT, "--health-probe-bind-address=" + where, "--profiling-bind-address=" + where,
                    *(["--enable-pprof", "--profiling-port-file=" + t + "/port"] if enabled else []), *words, port_file=False,
                    env={"TELL_COMMANDS": fifo}, **kw) as d:
            d.port, d.folder = port, t
            d.wait_log("serving health")
            poll(lambda: d.get("/readyz").status == 200, "ready")
            if enabled:
                poll(lambda: os.path.exists(t + "/port"), "the port file")

            def do(line):
                with open(fifo, "w") as f:
                    f.write(line + "\n")
            d.do = do
            yield d


def listeners(d):
    """Of TCP, by the kernel's tables."""
    inodes = {m.group(1) for t in descriptors(d.pid).values() for m in [re.fullmatch(r"socket:\[(\d+)\]", t)] if m}
    found = []
    for table in "tcp", "tcp6":
        with open("/proc/%d/net/%s" % (d.pid, table)) as f:
            found += [line.split()[1] for line in f if line.split()[3] == "0A" and line.split()[9] in inodes]
    return found


class Probing:
    """Asks for health, each time by a connection of its own, until it is told to end."""

    def __init__(self, d):
        self.d, self.count, self.wrong, self.ended = d, 0, [], False

    def __enter__(self):
        self.thread = threading.Thread(target=self.go, daemon=True)
        self.thread.start()
        self.more(3)
        return self

    def go(self):
        while not self.ended:
            path = PROBES[self.count % 3]
            try:
                r = self.d.get(path)
                if (r.status, r.body) != (200, b"ok"):
                    self.wrong.append("%s: %d %r" % (path, r.status, r.body))
            except Exception as e:  # noqa: BLE001 - refused, reset, cut off: each is one too many
                self.wrong.append("%s: %r" % (path, e))
            self.count += 1

    def more(self, n=20):
        """Once it has asked so often again."""
        want = self.count + n
        poll(lambda: self.count >= want or self.wrong, "%d probes" % n)
        equal(self.wrong, [])

    def __exit__(self, *error):
        self.ended = True
        self.thread.join(DEADLINE)
        if error[0] is None:
            equal(self.wrong, [])


def is_cpu_profile(r):
    """Whole: gzip has its sum at the end."""
    equal(r.status, 200)
    contains(gzip.decompress(r.body), b"nanoseconds")


def usr1(d, words):
    before = d.output().count(words)
    d.signal(signal.SIGUSR1)
    poll(lambda: d.output().count(words) > before, words)


@test
def both_are_answered_at_one_listener_and_each_is_told_once():
    with shared() as d:
        equal(len(listeners(d)), 1, "listening sockets")
        for path in PROBES:
            equal((d.get(path).status, d.get(path).body), (200, b"ok"))
        contains(d.get(PPROF).text, "goroutine")
        equal(d.get("/nosuch").status, 404)
        equal(d.get("/readyz", method="POST", body=b"x").status, 405)
        equal(open(d.folder + "/port").read(), "127.0.0.1:%d\n" % d.port)
        equal(d.output().count("serving health url="), 1)
        equal(d.output().count("starting profiling server on port %d" % d.port), 1)
        equal(d.stop(), 0)
        need(not os.path.exists(d.folder + "/port"), "the port file is left")


@test
def every_form_of_a_profile_comes_as_from_a_listener_of_its_own():
    with shared() as d:
        is_cpu_profile(d.get(PPROF + "profile?seconds=1"))
        contains(d.get(PPROF + "goroutine?debug=2").text, "obedient_daemon")
        r = d.get(PPROF + "heap", method="HEAD")
        equal((r.status, r.body), (200, b""))
        equal(d.get("/debug/pprof").status, 301)
        address = re.search(r"0x[0-9a-f]+", d.get(PPROF + "goroutine?debug=1").text).group()
        contains(d.get(PPROF + "symbol", method="POST", body=address.encode()).text, "num_symbols: 1")
        # A body that is larger than all buffers on the way, and one that comes in pieces.
        equal(d.get(PPROF + "symbol", method="POST", body=b"+".join([address.encode()] * 20000)).status, 200)
        equal(d.get(PPROF + "symbol", method="POST", body=iter([address.encode()] * 3)).status, 200)
        equal(d.get(PPROF + "heap", method="POST", body=b"x" * 100000).status, 405)
        r = d.get(PPROF + "rates", method="POST", body=b"heap-profile-rate=much\n")
        need(r.status == 400 and "heap-profile-rate" in r.text, "%d %s" % (r.status, r.text))


@test
def a_probe_needs_no_token_and_no_known_host_and_a_profile_does():
    with tempdir() as t:
        with open(t + "/token", "w") as f:
            f.write("secret-word\n")
        os.chmod(t + "/token", 0o600)
        for host in "127.0.0.1", "0.0.0.0", "":
            with shared("--profiling-token-file=" + t + "/token", host=host) as d:
                odd = {"Host": "10.1.2.3.evil.example:81"}
                for path in PROBES:
                    equal(d.get(path, headers=odd).status, 200)
                equal(d.get(PPROF).status, 401)
                equal(d.get(PPROF, headers={"Authorization": "Bearer wrong"}).status, 401)
                equal(d.get(PPROF, headers={"Authorization": "Bearer secret-word"}).status, 200)
                equal(d.get(PPROF + "symbol", method="POST", body=b"x" * 900000).status, 401, "before its body is taken")
                equal(d.get(PPROF + "?token=secret-word", headers=odd).status, 403)  # it is asked at 127.0.0.1
                need("can be read by everybody" not in d.output(), d.output())
        with shared(host="0.0.0.0") as d:
            contains(d.output(), "profiles can be read by everybody who reaches this server's port")


@test
def a_connection_goes_on_with_probes_and_ends_with_a_profile():
    with shared() as d:
        c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=DEADLINE)
        for path in PROBES:
            c.request("GET", path)
            r = c.getresponse()
            equal((r.status, r.read(), r.will_close), (200, b"ok", False))
        c.request("GET", PPROF)
        r = c.getresponse()
        need(r.status == 200 and len(r.read()) > 100 and r.will_close, "%d, closes: %r" % (r.status, r.will_close))
        c.close()
        # Whoever sends both at once has the probe's answer, then the profile, then the end.
        with socket.create_connection(("127.0.0.1", d.port), timeout=DEADLINE) as s:
            s.sendall(("GET /livez HTTP/1.1\r\n\r\nGET %scmdline HTTP/1.1\r\n\r\n" % PPROF).encode())
            text = b""
            while True:
                more = s.recv(65536)
                if not more:
                    break
                text += more
            need(re.fullmatch(rb"HTTP/1.1 200 OK\r\n.*\r\n\r\nokHTTP/1.1 200 OK\r\n.*obedient_daemon.*", text, re.S), text)


@test
def a_client_that_has_left_is_gone_from_both():
    with shared() as d:
        before = len(descriptors(d.pid))
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", d.port), timeout=DEADLINE) as s:
                s.sendall(("GET %sprofile?seconds=600 HTTP/1.1\r\n\r\n" % PPROF).encode())
                poll(lambda: "component-job" in threads(d.pid).values(), "the window")
        poll(lambda: "component-job" not in threads(d.pid).values(), "the windows to end")
        poll(lambda: len(descriptors(d.pid)) <= before, "descriptors to be closed")


@test
def switching_profiling_off_and_on_refuses_no_probe():
    with shared() as d, Probing(d) as probing:
        for _ in range(5):
            equal(d.get(PPROF).status, 200)
            usr1(d, "profiling switched off")
            probing.more()
            r = d.get(PPROF)
            equal((r.status, r.text), (404, OFF))
            equal(d.get("/nosuch").text, "404 page not found; there are /healthz, /livez and /readyz\n")
            equal(len(listeners(d)), 1)
            usr1(d, "profiling switched on")
            probing.more()
        equal(d.get(PPROF).status, 200)


@test
def it_is_switched_on_later_and_a_window_that_is_open_ends_whole():
    with shared(enabled=False) as d, Probing(d) as probing:
        equal(d.get(PPROF).text, OFF)
        need("component-http" not in threads(d.pid).values(), "off is off")
        usr1(d, "profiling switched on")
        window = in_background(d.get, PPROF + "profile?seconds=600")
        poll(lambda: "component-job" in threads(d.pid).values(), "the window")
        probing.more()
        usr1(d, "profiling switched off")
        is_cpu_profile(window.result())
        probing.more()


@test
def a_reload_splits_them_and_joins_them_again():
    with tempdir() as t:
        config, other = t + "/c.yaml", free_port()

        def reload(d, port):
            with open(config, "w") as f:
                f.write("profiling-bind-address: 127.0.0.1:%d\n" % port)
            before = d.output().count("reloaded")
            d.signal(signal.SIGHUP)
            poll(lambda: d.output().count("reloaded") > before, "reloaded")

        def index_at(port):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
            with contextlib.closing(c):
                c.request("GET", PPROF)
                return c.getresponse().status

        port = free_port()
        with open(config, "w") as f:
            f.write("profiling-bind-address: 127.0.0.1:%d\n" % port)
        with daemon(SUBJECT, "--config=" + config, "--enable-pprof", "--health-probe-bind-address=127.0.0.1:%d" % port,
                    "--profiling-port-file=" + t + "/port", port_file=False) as d:
            d.port = port
            poll(lambda: os.path.exists(t + "/port") and d.get("/readyz").status == 200, "ready")
            equal(index_at(port), 200)
            with Probing(d) as probing:
                for _ in range(3):
                    window = requested((d.host, port), "profile?seconds=600")
                    poll(lambda: "component-job" in threads(d.pid).values(), "the window")
                    reload(d, other)
                    equal((index_at(other), index_at(port)), (200, 404))
                    equal(len(listeners(d)), 2)
                    equal(open(t + "/port").read(), "127.0.0.1:%d\n" % other)
                    probing.more()
                    is_cpu_profile(answer_of(window))  # asked for before
                    reload(d, port)
                    equal(index_at(port), 200)
                    equal(len(listeners(d)), 1)
                    equal(open(t + "/port").read(), "127.0.0.1:%d\n" % port)
                    probing.more()
                # One that cannot be had changes nothing.
                with socket.create_server(("127.0.0.1", 0)) as taken:
                    with open(config, "w") as f:
                        f.write("profiling-bind-address: 127.0.0.1:%d\n" % taken.getsockname()[1])
                    d.signal(signal.SIGHUP)
                    d.wait_log("reload failed, going on with what was before")
                    equal(index_at(port), 200)
                    probing.more()


@test
def a_crowd_at_the_profiles_leaves_room_for_probes():
    with shared("--profiling-max-requests=4") as d:
        crowd = []
        try:
            for _ in range(200):
                s = socket.create_connection(("127.0.0.1", d.port), timeout=DEADLINE)
                crowd.append(s)
                s.sendall(("GET %sprofile?seconds=600 HTTP/1.1\r\n\r\n" % PPROF).encode())
            for _ in range(200):
                crowd.append(socket.create_connection(("127.0.0.1", d.port), timeout=DEADLINE))  # and says nothing
            for path in PROBES * 10:
                equal(d.get(path).status, 200)
            equal(sum(n == "component-job" for n in threads(d.pid).values()) <= 4, True, "windows")
        finally:
            for s in crowd:
                s.close()
        poll(lambda: "component-job" not in threads(d.pid).values(), "the windows to end")
        equal(d.get(PPROF).status, 200)


@contextlib.contextmanager
def thread_stopped(d, name):
    """By ptrace: the others go on."""
    tid, = [tid for tid, n in threads(d.pid).items() if n == name]
    libc = ctypes.CDLL(None, use_errno=True)

    def ptrace(request):
        if libc.ptrace(ctypes.c_long(request), ctypes.c_long(int(tid)), None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    try:
        ptrace(0x4206)  # PTRACE_SEIZE
    except PermissionError:
        raise Skip("the kernel lets no thread be stopped here")
    ptrace(0x4207)  # PTRACE_INTERRUPT
    os.waitpid(int(tid), 0x40000000)  # __WALL
    yield
    ptrace(17)  # PTRACE_DETACH


@test
def what_comes_faster_than_the_server_of_profiles_takes_it_is_told_to_come_again():
    with shared() as d, contextlib.ExitStack() as stack:
        with thread_stopped(d, "component-http"):
            crowd = [stack.enter_context(socket.create_connection(("127.0.0.1", d.port), timeout=DEADLINE)) for _ in range(100)]
            for s in crowd:
                s.sendall(("GET %scmdline HTTP/1.1\r\nConnection: close\r\n\r\n" % PPROF).encode())
            refused = set()
            while len(refused) < 36:
                for s in select.select([s for s in crowd if s not in refused], [], [], DEADLINE)[0]:
                    contains(s.recv(1000).decode(), "503 Service Unavailable\r\n")
                    refused.add(s)
            equal(d.get("/readyz").status, 200)
        answers = [b"".join(iter(lambda s=s: s.recv(1000), b"")) for s in crowd if s not in refused]
        equal([a[:12] for a in answers], [b"HTTP/1.1 200"] * 64)
        equal(d.get(PPROF).status, 200)


@test
def a_loop_that_hangs_fails_its_probes_and_can_be_profiled():
    with shared() as d:
        end = os.path.join(d.folder, "end")
        d.do("until " + end)
        poll(lambda: d.get("/livez").status == 500, "the loop to hang")
        probes = [in_background(d.get, path) for path in PROBES * 3]
        equal(d.get(PPROF).status, 200)
        contains(d.get(PPROF + "goroutine?debug=2").text, "hang")
        for p in probes:
            contains(p.result().text, "[-]loop failed")
        with open(end, "w"):
            pass
        poll(lambda: d.get("/readyz").status == 200, "ready again")


@test
def while_it_stops_it_is_not_ready_and_both_are_answered():
    with shared("--shutdown-delay=60s") as d:
        d.signal(signal.SIGTERM)
        poll(lambda: d.get("/readyz").status == 500, "unready")
        equal(d.get("/livez").status, 200)
        equal(d.get(PPROF).status, 200)
    with shared("--graceful-shutdown-timeout=60s") as d:
        window = in_background(d.get, PPROF + "profile?seconds=600")
        poll(lambda: "component-job" in threads(d.pid).values(), "the window")
        equal(d.stop(), 0)
        is_cpu_profile(window.result())  # it ends early


@test
def a_forked_worker_has_nothing_of_it():
    with shared() as d:
        asked, enough = [], threading.Event()

        def ask():
            while not enough.is_set():
                asked.append(d.get(PPROF + "cmdline").status)
                equal(asked[-1], 200)
        asking = in_background(ask)  # connections are on their way meanwhile
        for n in range(1, 11):
            poll(lambda: len(asked) >= 5 * n, "requests")
            d.do("fork")
            pid = int(poll(lambda: re.findall(r"did what=fork pid=(\d+)", d.output())[n - 1:], "the worker")[0])
            # The parent may tell of it before it has run.
            poll(lambda: not any("socket" in t for t in descriptors(pid).values()), "a worker without sockets")
        enough.set()
        asking.result()
        equal(d.get("/livez").status, 200)
        equal(d.get(PPROF).status, 200)


@test
def a_unix_socket_is_shared_by_its_path():
    with tempdir() as t:
        path = t + "/both.sock"
        with daemon(SUBJECT, "--enable-pprof", "--health-probe-bind-address=unix:" + path, "--profiling-bind-address=unix:" + path,
                    "--profiling-port-file=" + t + "/port", port_file=False) as d:
            poll(lambda: os.path.exists(t + "/port"), "the port file")

            def get(url):
                r = run("curl", "-sS", "--max-time", "20", "--unix-socket", path, "http://x" + url)
                equal(r.returncode, 0, r.stderr)
                return r.stdout
            poll(lambda: get("/readyz") == "ok", "ready")
            contains(get(PPROF), "goroutine")
            usr1(d, "profiling switched off")
            equal((get("/livez"), get(PPROF)), ("ok", OFF))
            need(os.path.exists(path), "the socket has gone with profiling")
            usr1(d, "profiling switched on")
            contains(get(PPROF), "goroutine")
            equal(d.stop(), 0)
        need(not os.path.exists(path), "the socket is left")


@test
def the_health_server_of_another_component_hands_no_profiles_over():
    with shared() as d:
        other = free_port()
        d.do("second 127.0.0.1:%d" % other)
        d.wait_log("did what=second")
        c = http.client.HTTPConnection("127.0.0.1", other, timeout=DEADLINE)
        c.request("GET", PPROF)
        r = c.getresponse()
        equal((r.status, r.read().decode()), (404, OFF))
        c.close()
        equal(d.get(PPROF).status, 200)
        d.do("second-end")
        d.wait_log("did what=second-end")
        usr1(d, "profiling switched off")
        usr1(d, "profiling switched on")
        equal(d.get(PPROF).status, 200)
        equal(d.get("/healthz").status, 200)


main()
