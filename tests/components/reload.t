#!/usr/bin/env python3
"""Reloads from outside: refused ones change nothing, the others end nothing; and the end of profiling, by a reload, a
switch or a stop, keeps nobody waiting."""
import http.client
import os
import re
import select
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from harness import program as harness_program  # noqa: E402

own_network()
HELLO = "examples/hello"
CONTROLLER = "examples/backend-controller"
PPROF = "/debug/pprof/"


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o600)


def hup(d, what):
    """Reloads; what is the word that the log has to say once more."""
    count = d.output().count(what)
    d.signal(signal.SIGHUP)
    poll(lambda: d.output().count(what) > count, what)


def own_threads(d):
    return sorted(n for n in threads(d.pid).values() if n.startswith("component-"))


def window(d, seconds=7200, token=""):
    s = socket.create_connection((d.host, d.port), timeout=DEADLINE)
    s.sendall(("GET %sprofile?seconds=%d%s HTTP/1.1\r\n\r\n" % (PPROF, seconds, token)).encode())
    poll(lambda: "component-job" in own_threads(d), "the window")
    return s


def is_answered(s):
    return bool(select.select([s], [], [], 0)[0])


@test
def a_reload_that_any_part_refuses_changes_nothing():
    with tempdir() as t:
        config = t + "/c.yaml"
        good = "profiling: {enabled: true, address: '127.0.0.1:0'}\nroot: %s\nv: 3\n" % t
        bad = "profiling: {enabled: false}\nroot: %s\nv: 4\n" % t
        write(config, good)
        with daemon(CONTROLLER, "--config", config, "--debug-socket-path=" + t + "/s") as d:
            with window(d) as s:
                for line, why in (("rate-limiter-qps: 0\n", "c.yaml:4: option '--rate-limiter-qps': '0': write a number above 0"),
                                  ("profiling-max-seconds: 0\n", "c.yaml:4: ")):
                    write(config, bad + line)
                    hup(d, "reload failed, going on with what was before")
                    contains(d.output(), why)
                    need(not is_answered(s), "the window ended")
                    options = unix_get(t + "/s", "/debug/options")
                    need(re.search(r"^enable-pprof: true ", options, re.M) and re.search(r"^v: 3 ", options, re.M), options)
                # Several faults are a record each.
                write(config, bad + "rate-limiter-qps: 0\nrate-limiter-bucket-size: 0\n")
                hup(d, "--rate-limiter-bucket-size")
                need("\\n" not in d.output(), d.output())
            equal(d.get(PPROF).status, 200)
            write(config, bad)
            hup(d, "reloaded")
            poll(lambda: "component-http" not in own_threads(d), "off")


def unix_get(path, url):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(DEADLINE)
        s.connect(path)
        s.sendall(b"GET %s HTTP/1.0\r\n\r\n" % url.encode())
        data = b""
        while True:
            more = s.recv(65536)
            if not more:
                return data.decode()
            data += more


@test
def settings_that_can_change_in_place_end_no_window():
    with tempdir() as t:
        config = t + "/c.yaml"
        write(t + "/token", "one\n")
        write(config, "")
        with daemon(HELLO, "--enable-pprof", "--profiling-bind-address=127.0.0.1:0", "--config", config) as d:
            with window(d) as s:
                write(config, "profiling-max-seconds: 10\n")
                hup(d, "reloaded")
                contains(d.get(PPROF + "profile?seconds=11").text, "above the limit of 10")
                write(config, "profiling-max-requests: 1\n")
                hup(d, "reloaded")
                equal(d.get(PPROF + "heap").status, 503)
                write(config, "profiling-memory: 64MiB\nprofiling-symbol-memory: 2MiB\n")
                hup(d, "reloaded")
                equal(d.get(PPROF + "heap").status, 200)
                equal(d.get(PPROF, headers={"Host": "a.example"}).status, 403)
                write(config, "profiling-allowed-host: [a.example]\n")
                hup(d, "reloaded")
                equal(d.get(PPROF, headers={"Host": "a.example"}).status, 200)
                write(config, "profiling-token-file: %s/token\n" % t)
                hup(d, "reloaded")
                equal((d.get(PPROF).status, d.get(PPROF + "?token=one").status), (401, 200))
                write(config, "profiling-token-file: %s/none\nprofiling-max-seconds: 5\n" % t)
                hup(d, "reload failed")
                equal(d.get(PPROF + "?token=one").status, 200, "the token of before")
                equal(d.get(PPROF + "heap?seconds=6&token=one", timeout=60).status, 200, "the limit of before")
                write(config, "")
                hup(d, "reloaded")
                equal(d.get(PPROF).status, 200)
                need(not is_answered(s), "the window ended")
            equal(d.stop(), 0)


@test
def an_address_that_cannot_be_had_ends_no_window_either():
    with tempdir() as t, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        config = t + "/c.yaml"
        write(config, "profiling: {address: '127.0.0.1:0'}\n")
        with daemon(HELLO, "--enable-pprof", "--config", config, "--profiling-port-file", t + "/port", port_file=False) as d:
            d.port_file = t + "/port"
            d.wait_port()
            with window(d) as s:
                write(config, "profiling: {address: '127.0.0.1:%d'}\n" % taken.getsockname()[1])
                hup(d, "reload failed")
                contains(d.output(), "Address already in use")
                need(not is_answered(s), "the window ended")
                equal(d.get(PPROF).status, 200)
            equal(d.stop(), 0)


def listening(d):
    """The sockets of the process that listen, by number."""
    mine = {m.group(1) for m in (re.match(r"socket:\[(\d+)\]", t) for t in descriptors(d.pid).values()) if m}
    found = []
    for name in "tcp", "tcp6":
        with open("/proc/%d/net/%s" % (d.pid, name)) as f:
            found += [w[1] for w in map(str.split, f) if w[3] == "0A" and w[9] in mine]
    return found


@test
def another_address_is_served_while_a_window_of_the_old_one_goes_on_and_is_answered_there():
    with tempdir() as t:
        config, port_file = t + "/c.yaml", t + "/port"
        write(config, "profiling: {address: '127.0.0.1:0'}\n")
        with daemon(HELLO, "--enable-pprof", "--config", config, "--profiling-port-file", port_file, port_file=False) as d:
            d.port_file = port_file
            d.wait_port()
            first = d.port
            with window(d) as s:
                # Each place of a listener is used again: there are 16.
                for n in range(20):
                    write(config, "profiling: {address: '127.0.0.%d:0'}\ndebug-socket-path: %s/s%d\n" % (2 + n, t, n % 2))
                    hup(d, "reloaded")
                    d.wait_port()
                    equal((d.host, d.get(PPROF).status), ("127.0.0.%d" % (2 + n), 200))
                    contains(unix_get(t + "/s%d" % (n % 2), PPROF), "200 OK")
                    need(not os.path.exists(t + "/s%d" % (1 - n % 2)), "the old socket file")
                with socket.socket() as left:
                    need(left.connect_ex(("127.0.0.1", first)) != 0, "the old address is left")
                equal(len(listening(d)), 1)
                need(not is_answered(s), "the window ended")
                # An end that is not of the reload: what it has by then comes by the old connection.
                d.signal(signal.SIGUSR1)
                reply = http.client.HTTPResponse(s)
                reply.begin()
                equal((reply.status, reply.getheader("Content-Type")), (200, "application/octet-stream"))
                equal(reply.read()[:2], b"\x1f\x8b")
            equal(d.stop(), 0)


@test
def an_address_in_the_place_of_the_old_one_is_had_and_given_back_without_an_end():
    need_own_network()
    with tempdir() as t, socket.socket() as taken:
        config, port = t + "/c.yaml", free_port()
        write(config, "profiling: {address: '127.0.0.1:%d'}\n" % port)
        with daemon(HELLO, "--enable-pprof", "--config", config, port_file=False) as d:
            d.wait_log("starting profiling server")
            d.host, d.port = "127.0.0.1", port
            with window(d) as s:
                write(config, "profiling: {address: '0.0.0.0:%d'}\n" % port)
                hup(d, "reloaded")
                equal(d.get(PPROF).status, 200)
                write(config, "profiling: {address: '127.0.0.1:%d'}\n" % port)
                hup(d, "reloaded")
                equal(len(listening(d)), 1)
                taken.bind(("127.0.0.2", port))
                taken.listen()
                write(config, "profiling: {address: '0.0.0.0:%d'}\n" % port)
                hup(d, "reload failed")
                contains(d.output(), "Address already in use")
                equal(d.get(PPROF).status, 200, "the one of before")
                need(not is_answered(s), "the window ended")
            equal(d.stop(), 0)


@test
def a_kept_connection_of_the_debug_socket_has_its_pages_when_the_socket_moves_or_goes():
    with tempdir() as t:
        config = t + "/c.yaml"
        write(config, "debug-socket-path: %s/a\n" % t)
        with daemon(HELLO, "--enable-pprof", "--profiling-bind-address=127.0.0.1:0", "--config", config) as d, \
                socket.socket(socket.AF_UNIX) as s:
            s.settimeout(DEADLINE)
            s.connect(t + "/a")
            kept = http.client.HTTPConnection("kept")
            kept.sock = s

            def status():
                kept.request("GET", "/debug/options")
                with kept.getresponse() as reply:
                    reply.read()
                    return reply.status

            equal(status(), 200)
            for text in "debug-socket-path: %s/b\n" % t, "":
                write(config, text)
                hup(d, "reloaded")
                need(not os.path.exists(t + "/a"), "the old socket file")
                equal(status(), 200)
            equal(d.get("/debug/options").status, 200, "by TCP, too")
            equal(d.stop(), 0)


@test
def what_could_not_be_had_at_the_start_is_tried_again_by_a_reload():
    with tempdir() as t, socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with daemon(HELLO, "--enable-pprof", "--profiling-bind-address=127.0.0.1:%d" % port, "--profiling-on-error=warn",
                    port_file=False) as d:
            d.wait_log("Address already in use")
            hup(d, "reloaded")
            equal(d.output().count("Address already in use"), 2, d.output())
            taken.close()
            hup(d, "reloaded")
            d.host, d.port = "127.0.0.1", port
            equal(d.get(PPROF).status, 200)


@test
def what_dump_options_prints_is_read_as_a_config_file():
    """what --dump-options prints is read by --config, by each program, and means the same"""
    with tempdir() as t:
        for name in "hello", "options", "backend-controller", "cluster-agent", "appstudio-controller":
            for args in ([], ["--profile-port=7001"], ["--profiling-bind-address=[::1]:7002", "--enable-pprof"],
                         ["-v", "2", "--profiling-allowed-host=a,*.b", "--heap-profile-rate=64KiB"]):
                if name == "options" and "-v" in args:
                    args = args[2:]
                program_path = harness_program("examples/" + name)
                if name.endswith(("controller", "agent")):
                    args = args + ["--root=" + t]
                first = run(program_path, *args, "--dump-options")
                equal(first.returncode, 0, first.stderr)
                write(t + "/f", first.stdout)
                r = run(program_path, "--config", t + "/f", "--check-config")
                equal((r.returncode, r.stderr), (0, ""), first.stdout)
                again = run(program_path, "--config", t + "/f", "--dump-options")
                values = lambda text: [line.split(" #")[0].rstrip() for line in text.splitlines() if not line.startswith("#")]
                equal(values(again.stdout), values(first.stdout))
        write(t + "/f", run(harness_program(HELLO), "--profile-port=0", "--enable-pprof", "--dump-options").stdout)
        with daemon(HELLO, "--config", t + "/f", port_file=False) as d:
            d.wait_log("starting profiling server")
            need(":6060/" not in d.output(), "the default of the address won over the port that was given")


@test
def faults_of_checks_name_their_sources_all_at_once_and_the_file_alone_ends_with_78():
    with tempdir() as t:
        write(t + "/c", "rate-limiter-qps: 0\nprofiling-token-file: %s/none\n" % t)
        asked = [harness_program(CONTROLLER), "--root=" + t, "--config=" + t + "/c", "--check-config"]
        r = run(*asked)
        equal(r.returncode, 78, r.stderr)
        contains(r.stderr, "%s/c:1: option '--rate-limiter-qps': '0': write a number above 0" % t)
        contains(r.stderr, "%s/c:2: option '--profiling-token-file': '%s/none': " % (t, t))
        contains(r.stderr, "No such file")
        r = run(*asked, "--rate-limiter-bucket-size=-1", env=dict(os.environ, COMPONENT_CONTROLLERS="nobody"))
        equal(r.returncode, 2, r.stderr)
        contains(r.stderr, "%s/c:1: option '--rate-limiter-qps'" % t)
        contains(r.stderr, "environment variable COMPONENT_CONTROLLERS: 'nobody': ")
        contains(r.stderr, "option '--rate-limiter-bucket-size': '-1': ")
        write(t + "/token", "secret\n")
        write(t + "/c", "profiling-token-file: %s/token\n" % t)
        equal(run(*asked).returncode, 0)
        r = run(*asked[:1], "--root=" + t + "/none", "--check-config")
        equal(r.returncode, 2, r.stderr)
        contains(r.stderr, "option '--root': '%s/none': No such file or directory; name a directory that is there" % t)
        equal(sorted(os.listdir(t)), ["c", "token"], "it made something")


def slow_client(d, path):
    """Of an answer that is larger than what a unix socket takes in, and who does not read it."""
    with open("/proc/%d/maps" % d.pid) as f:
        pc = next(int(m.group(1), 16) for m in re.finditer(r"^([0-9a-f]+)-\S+ r-xp", f.read(), re.M)) + 0x100
    body = b"+".join([b"%#x" % pc] * 50000)
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(DEADLINE)
    s.connect(path)
    s.sendall(b"POST %ssymbol HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (PPROF.encode(), len(body), body))
    poll(lambda: is_answered(s), "the first of the answer")
    return s


@test
def while_profiling_waits_for_a_slow_client_to_end_the_loop_goes_on():
    with tempdir() as t:
        config = t + "/c.yaml"
        write(config, "profiling: {enabled: true, address: '127.0.0.1:0'}\n")
        with daemon(HELLO, "--config", config, "--debug-socket-path=" + t + "/s", "--health-probe-bind-address=127.0.0.1:0",
                    port_file=False) as d:
            d.wait_log("serving health")
            d.host, d.port = "127.0.0.1", int(re.search(r'serving health url="?http://127\.0\.0\.1:(\d+)', d.output()).group(1))

            def is_on():
                return "component-http" in own_threads(d)

            def stopping_is_not_felt(ask):
                poll_socket(t + "/s")
                with slow_client(d, t + "/s"):
                    ask()
                    poll(lambda: "component-stop" in own_threads(d) or not is_on(), "the stop")
                    answers = 0
                    while "component-stop" in own_threads(d) and answers < 3:
                        equal(d.get("/livez").status, 200)
                        answers += 1
                    need(answers == 3 or "component-stop" not in own_threads(d))
            stopping_is_not_felt(lambda: d.signal(signal.SIGUSR1))
            d.wait_log("profiling switched off")
            d.signal(signal.SIGUSR1)
            d.wait_log("profiling switched on")
            write(config, "profiling: {enabled: false}\n")
            stopping_is_not_felt(lambda: d.signal(signal.SIGHUP))
            poll(lambda: not is_on(), "off")
            write(config, "profiling: {enabled: true, address: '127.0.0.2:0'}\n")
            hup(d, "reloaded")
            poll(lambda: "127.0.0.2" in d.output(), "the new address")
            # A switch while it stops is for what comes then.
            said = lambda what: d.output().count("profiling switched " + what)
            for _ in range(5):  # a starved machine may need more for three signals than the stop takes
                before = said("off"), said("on")
                with slow_client(d, t + "/s"):
                    for _ in range(3):
                        seen = d.output().count("signal=SIGUSR1")
                        d.signal(signal.SIGUSR1)
                        poll(lambda: d.output().count("signal=SIGUSR1") > seen, "the signal")  # two that wait are one
                        equal(d.get("/livez").status, 200)
                    stops = "component-stop" in own_threads(d)
                poll(lambda: "component-stop" not in own_threads(d) and not is_on(), "off")
                poll(lambda: said("off") > before[0], "the log")
                after = said("off"), said("on")
                d.signal(signal.SIGUSR1)
                poll(lambda: said("on") > after[1], "on")
                if stops:
                    break
            need(stops, "three signals were slower than a stop, each time")
            equal(after, (before[0] + 1, before[1]))
            with slow_client(d, t + "/s"):
                equal(d.stop(), 0)


@test
def without_a_graceful_time_a_client_that_does_not_read_is_no_failure_of_the_stop():
    with tempdir() as t:
        with daemon(HELLO, "--enable-pprof", "--profiling-bind-address=127.0.0.1:0", "--graceful-shutdown-timeout=0",
                    "--debug-socket-path=" + t + "/s") as d:
            poll_socket(t + "/s")
            with slow_client(d, t + "/s"):
                equal(d.stop(), 0)


main()
