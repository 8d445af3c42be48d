#!/usr/bin/env python3
"""What probes are answered, by a daemon that is well, unready, hanging or stopping."""
import http.client
import re
import socket
import sys

import os
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

SUBJECT = "tests/programs/obedient_daemon"


class Probed(Daemon):
    """A subject with its health server, and a fifo for commands."""

    def __init__(self, *args, **kw):
        env = dict(kw.pop("env", {}))
        self.fifo_dir = tempfile.mkdtemp(prefix="component-test-")
        self.fifo = os.path.join(self.fifo_dir, "commands")
        os.mkfifo(self.fifo)
        env["TELL_COMMANDS"] = self.fifo
        super().__init__([SUBJECT, "--health-probe-bind-address=127.0.0.1:0"] + list(args), env=env,
                         port_file=False, **kw)
        text = poll(lambda: re.search(r'serving health url="http://127\.0\.0\.1:(\d+)"', self.output()), "health line")
        self.port = int(text.group(1))

    def do(self, line):
        before = self.output().count(" did ")
        with open(self.fifo, "w") as f:
            f.write(line + "\n")
        return lambda: poll(lambda: self.output().count(" did ") > before, line)

    def end(self):
        super().end()
        shutil.rmtree(self.fifo_dir, ignore_errors=True)


@contextlib.contextmanager
def probed(*args, **kw):
    d = Probed(*args, **kw)
    try:
        yield d
    except BaseException:
        for line in d.output().splitlines()[-30:]:
            print("#   " + line)
        raise
    finally:
        d.end()


@test
def health_is_off_unless_it_has_an_address():
    with daemon(SUBJECT, port_file=False) as d:
        d.wait_log("profiling is off")
        poll(lambda: "component-probe" not in threads(d.pid).values())
        need(not any("socket" in t for t in descriptors(d.pid).values()), descriptors(d.pid))


@test
def a_daemon_that_is_well_is_alive_and_ready():
    with probed() as d:
        for path in "/healthz", "/livez", "/readyz":
            r = poll(lambda: (lambda r: r if r.status == 200 else None)(d.get(path)), path)
            equal((r.body, r.headers["content-type"]), (b"ok", "text/plain; charset=utf-8"))
            equal(r.headers["x-content-type-options"], "nosniff")
        equal(d.get("/readyz?verbose").text,
              "[+]loop ok\n[+]running ok\n[+]profiling ok\n[+]work ok\nreadyz check passed\n")
        equal(d.get("/livez?verbose").text, "[+]loop ok\nlivez check passed\n")
        equal(d.get("/readyz/work").text, "ok")


@test
def what_does_not_exist_is_404_and_other_methods_are_405():
    with probed() as d:
        equal(d.get("/").status, 404)
        equal(d.get("/debug/pprof/").status, 404)
        equal(d.get("/readyz/nosuch").status, 404)
        r = d.get("/readyz", method="POST", body=b"x")
        equal((r.status, r.headers.get("allow")), (405, "GET, HEAD"))
        r = d.get("/livez", method="HEAD")
        equal((r.status, r.body), (200, b""))


@test
def a_failing_check_makes_it_unready_and_not_dead_and_its_reason_goes_to_the_log_alone():
    with probed() as d:
        d.do("unready the disk of db7 broke")()
        r = d.get("/readyz")
        equal((r.status, r.text), (500, "[+]loop ok\n[+]running ok\n[+]profiling ok\n"
                                   "[-]work failed: reason withheld\nreadyz check failed\n"))
        equal(d.get("/livez").status, 200)
        equal(d.get("/readyz?exclude=work").status, 200)
        equal(d.get("/readyz/work").status, 500)
        d.wait_log("the disk of db7 broke")
        for _ in range(5):
            d.get("/readyz")
        equal(d.output().count("not ready failing"), 1, "one line a change")
        d.do("ready")()
        equal(d.get("/readyz").status, 200)
        d.wait_log("ready again")


@test
def a_loop_that_hangs_is_told_and_no_probe_is_joined_to_it():
    with probed() as d:
        poll(lambda: d.get("/readyz").status == 200)
        end = os.path.join(d.fifo_dir, "end")
        wait = d.do("until " + end)
        poll(lambda: d.get("/livez").status == 500, "the loop to hang")
        probes = [in_background(d.get, path) for path in ("/livez", "/readyz", "/healthz", "/readyz/work") * 3]
        for p in probes:
            r = p.result()
            equal(r.status, 500)
            contains(r.text, "[-]loop failed")
        equal(d.get("/nosuch").status, 404)
        # All of that while it hangs.
        open(end, "w").close()
        wait()
        poll(lambda: d.get("/readyz").status == 200, "ready again after the loop goes on")
        equal(d.stop(), 0)


@test
def it_is_not_ready_before_it_runs_and_while_it_stops():
    with tempdir() as t, probed("--shutdown-delay=60s", env={"TELL_SLOW_START": t + "/start"}) as d:
        r = d.get("/readyz")
        equal(r.status, 500)
        open(t + "/start", "w").close()
        poll(lambda: d.get("/readyz").status == 200, "ready")
        d.signal(signal.SIGTERM)
        poll(lambda: d.get("/readyz").status == 500, "unready while stopping")
        equal(d.get("/livez").status, 200)
        contains(d.get("/readyz").text, "[-]running failed")
        d.signal(signal.SIGTERM)
        equal(d.wait(), 1)


@test
def probes_are_answered_until_the_last_work_has_ended():
    with probed("--graceful-shutdown-timeout=60s") as d:
        d.do("hold")()
        d.signal(signal.SIGTERM)
        poll(lambda: d.get("/readyz").status == 500)
        equal(d.get("/livez").status, 200)
        d.do("release")
        equal(d.wait(), 0)


@test
def clients_that_vanish_while_they_wait_harm_nobody():
    with probed() as d:
        before = len(descriptors(d.pid))
        wait = d.do("block 1500")
        for _ in range(20):
            s = socket.create_connection(("127.0.0.1", d.port))
            s.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            s.close()
        wait()
        poll(lambda: d.get("/readyz").status == 200)
        poll(lambda: len(descriptors(d.pid)) <= before + 1, "descriptors to be closed")


@test
def stopping_while_probes_wait_for_a_hanging_loop_ends_cleanly():
    with probed("--graceful-shutdown-timeout=60s") as d:
        wait = d.do("block 700")
        s = [socket.create_connection(("127.0.0.1", d.port)) for _ in range(5)]
        for one in s:
            one.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        d.signal(signal.SIGTERM)
        equal(d.wait(), 0)
        for one in s:
            one.close()
        del wait


@test
def a_busy_health_port_ends_the_start_with_status_1_and_says_who_holds_it():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        r = run(SUBJECT, "--health-probe-bind-address=127.0.0.1:%d" % port)
        equal(r.returncode, 1)
        contains(r.stderr, "subject: cannot serve health on 127.0.0.1:%d: Address already in use, held by process %d ("
                 % (port, os.getpid()))
        contains(r.stderr, "--health-probe-bind-address")


@test
def an_address_that_is_a_part_of_the_profiling_address_is_refused_and_the_same_one_is_not():
    for profiling, health in ((":6060", "127.0.0.1:6060"), ("127.0.0.1:6060", "0.0.0.0:6060"), ("localhost:6060", "[::1]:6060")):
        r = run(SUBJECT, "--enable-pprof", "--profiling-bind-address=" + profiling,
                "--health-probe-bind-address=" + health, "--check-config")
        equal(r.returncode, 2, "%s and %s" % (profiling, health))
        contains(r.stderr, "--health-probe-bind-address")
        contains(r.stderr, "write the same for both, or another port")
    for profiling, health in (("127.0.0.1:6060", "127.0.0.1:6060"), ("unix:/tmp/x.sock", "unix:/tmp/x.sock"), (":6060", ":6060"),
                              ("localhost:6060", "LOCALHOST:6060"), ("127.0.0.1:6060", "127.0.0.1:6061"), ("127.0.0.1:0", "127.0.0.1:0"),
                              ("127.0.0.1:6060", "[::1]:6060")):
        r = run(SUBJECT, "--enable-pprof", "--profiling-bind-address=" + profiling,
                "--health-probe-bind-address=" + health, "--check-config")
        equal(r.returncode, 0, "%s and %s: %s" % (profiling, health, r.stderr))


main()
