#!/usr/bin/env python3
"""What Prometheus is told of a component: its own promtool and server read it, and curl's user can."""
import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
import daemons  # noqa: E402
from harness import *  # noqa: E402,F403

HELLO = "examples/hello"
CONTROLLERS = "backend-controller", "cluster-agent", "appstudio-controller"
PROMETHEUS_ACCEPT = ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                     "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")


@contextlib.contextmanager
def measured(*words, program=HELLO, **kw):
    """A daemon with its metrics at a port of their own."""
    with daemon(program, "--metrics-bind-address=127.0.0.1:0", *words, port_file=False, **kw) as d:
        d.wait_log("serving metrics")
        d.port = int(re.search(r'serving metrics url="http://127\.0\.0\.1:(\d+)"\n', d.output())[1])
        yield d


def values(d):
    """Each line: its series to its number."""
    answer = d.get("/metrics")
    equal(answer.status, 200)
    return {k: float(v) for k, v in re.findall(r"^([^# ][^ ]*(?:\{.*\})?) (\S+)$", answer.text, re.M)}


def clean(text):
    """promtool has nothing to say of it."""
    promtool = daemons.found("promtool")
    done = subprocess.run([promtool, "check", "metrics"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=daemons.environment(promtool), timeout=DEADLINE)
    equal((done.returncode, done.stdout.decode()), (0, ""))


@test
def metrics_are_off_unless_they_have_an_address():
    with daemon(HELLO, port_file=False) as d:
        d.wait_log("profiling is off")
        need("component-probe" not in threads(d.pid).values(), threads(d.pid))
        need(not any("socket" in t for t in descriptors(d.pid).values()), descriptors(d.pid))


@test
def promtool_finds_nothing_wrong_with_any_of_the_programs():
    with measured() as d:
        clean(d.get("/metrics").text)
    for name in CONTROLLERS:
        with tempdir() as root, measured("--root=" + root, program="examples/" + name) as d:
            clean(d.get("/metrics").text)


@test
def who_asks_for_openmetrics_gets_it_and_others_the_text():
    with measured() as d:
        plain, prometheus = d.get("/metrics"), d.get("/metrics", headers={"Accept": PROMETHEUS_ACCEPT})
        equal(plain.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        contains(plain.text, "# TYPE component_log_lines_total counter\n")
        equal(prometheus.headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8")
        contains(prometheus.text, "# TYPE component_log_lines counter\ncomponent_log_lines_total{")
        need(prometheus.text.endswith("\n# EOF\n") and "# EOF" not in plain.text, prometheus.text[-80:])
        for accept in "*/*", "text/plain", "application/openmetrics-text;q=0, text/plain", "text/html,*/*;q=0.8":
            contains(d.get("/metrics", headers={"Accept": accept}).headers["content-type"], "text/plain")


def full_fifo(path):
    """Its one reader.  Who writes waits until that is closed."""
    os.mkfifo(path)
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(fd, b"\n")
    return fd


@test
def the_first_scrape_has_all_of_it():
    port = free_port()
    with tempdir() as t:
        log = os.path.join(t, "log")
        reader = full_fifo(log)
        with daemon(HELLO, "--metrics-bind-address=127.0.0.1:%d" % port, "--log-file=" + log, port_file=False) as d:
            d.port = port

            def answer():
                with contextlib.suppress(ConnectionRefusedError):
                    return d.get("/metrics")
            try:  # its first line, "serving metrics", is not out yet
                text = poll(answer, "an answer").text
            finally:
                os.close(reader)
            for name in "component_build_info{", "process_threads ", "component_profiler_running ":
                contains(text, "\n" + name)


@test
def it_is_compressed_for_those_who_take_that():
    with measured() as d:
        packed = d.get("/metrics", headers={"Accept-Encoding": "gzip"})
        equal(packed.headers["content-encoding"], "gzip")
        contains(gzip.decompress(packed.body).decode(), "component_build_info{")
        need("content-encoding" not in d.get("/metrics", headers={"Accept-Encoding": "gzip;q=0"}).headers)


@test
def other_methods_and_paths_are_told_what_there_is():
    with measured() as d:
        equal(d.get("/metrics", method="HEAD").body, b"")
        answer = d.get("/metrics", method="POST", body=b"")
        equal((answer.status, answer.headers["allow"]), (405, "GET, HEAD"))
        answer = d.get("/")
        equal((answer.status, answer.text), (404, "404 page not found; there is /metrics\n"))


@test
def the_process_is_as_proc_has_it():
    with measured() as d:
        v = values(d)
        need(v["process_open_fds"] - len(os.listdir("/proc/%d/fd" % d.pid)) in (0, 1), v)  # 1: the connection, if it has gone
        equal(v["process_threads"], len(threads(d.pid)))
        need(abs(v["process_resident_memory_bytes"] - rss(d.pid)) < 8 << 20, (v["process_resident_memory_bytes"], rss(d.pid)))
        need(v["process_virtual_memory_bytes"] >= v["process_resident_memory_bytes"], v)
        with open("/proc/%d/stat" % d.pid) as f:
            ticks = int(f.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime") as f:
            up = float(f.read().split()[0])
        started = time.time() - up + ticks / os.sysconf("SC_CLK_TCK")
        need(abs(v["process_start_time_seconds"] - started) < 5, (v["process_start_time_seconds"], started))
        before = v["process_cpu_seconds_total"]
        poll(lambda: values(d)["process_cpu_seconds_total"] > before, "more CPU time")


@test
def descriptors_are_counted_where_the_first_thread_has_ended():
    with measured(program="tests/programs/obedient_daemon", env={"TELL_SECOND_THREAD": "1"}) as d:
        poll(lambda: text_of("/proc/%d/stat" % d.pid).rpartition(")")[2].split()[0] == "Z", "the end of the first thread")
        poll(lambda: not os.listdir("/proc/%d/fd" % d.pid), "its descriptors to go")
        need(values(d)["process_open_fds"] > 2, "at least the standard streams")


@test
def what_is_running_stands_in_its_labels():
    with measured() as d:
        version = subprocess.run([program(HELLO), "--version=raw"], stdout=subprocess.PIPE).stdout.decode()
        contains(d.get("/metrics").text, 'component_build_info{component="hello",version="')
        contains(version, re.search(r'component_build_info{.*?version="([^"]*)"', d.get("/metrics").text)[1])


@test
def a_reload_that_fails_and_one_that_does_not_are_told_apart():
    with tempdir() as t:
        config = os.path.join(t, "hello.yaml")

        def write(text):
            with open(config, "w") as f:
                f.write(text)
        write("v: 0\n")
        with measured("--config=" + config) as d:
            well = "component_config_last_reload_successful"
            when = "component_config_last_reload_success_timestamp_seconds"
            first = values(d)
            equal(first[well], 1)
            write("nonsense: 1\n")
            d.signal(signal.SIGHUP)
            poll(lambda: values(d)[well] == 0, "a failed reload")
            equal(values(d)[when], first[when])
            write("v: 1\n")
            d.signal(signal.SIGHUP)
            poll(lambda: values(d)[well] == 1, "a reload")
            need(values(d)[when] > first[when], "its time")
            need(values(d)['component_log_lines_total{level="error"}'] >= 1, "the error's line")


@test
def the_profiler_tells_what_it_has_taken():
    with measured("--fault=hot", "--enable-pprof", "--profiling-bind-address=127.0.0.1:0", program="examples/hunts") as d:
        pprof = poll(lambda: re.search(r'url="(http://[^"]*/debug/pprof/)"', d.output()), "profiling")[1]
        before = values(d)
        equal(before["component_profiler_running"], 1)
        equal(before["component_profiler_windows_total"], 0)
        n = size = taken = 0
        while not taken:  # it works a part of the time only
            with urllib.request.urlopen(pprof + "profile?seconds=1", timeout=DEADLINE) as answer:
                size += len(answer.read())
            n += 1
            after = values(d)
            taken = after['component_profiler_samples_total{profile="profile"}']
        equal(after["component_profiler_windows_total"], n)
        equal(after["component_profiler_open_windows"], 0)
        equal(after["component_profiler_answers_total"], n)
        equal(after["component_profiler_answer_bytes_total"], size)
        equal(after['component_profiler_lost_samples_total{profile="profile"}'], 0)
        need(after['component_profiler_handler_seconds_total{profile="profile"}'] > 0, after)
        need(after["component_profiler_memory_bytes"] > 1 << 20, after)


@test
def health_metrics_and_profiles_share_an_address_each_by_its_own_rules():
    port = free_port()
    with tempdir() as t:
        where, token = "127.0.0.1:%d" % port, os.path.join(t, "token")
        with open(token, "w") as f:
            f.write("secret\n")
        with daemon(HELLO, "--enable-pprof", *("--%s-bind-address=%s" % (n, where) for n in ("health-probe", "metrics", "profiling")),
                    "--profiling-token-file=" + token, port_file=False) as d:
            d.port = port
            d.wait_log("starting profiling server")
            poll(lambda: d.get("/readyz").status == 200, "ready")
            contains(d.get("/metrics").text, "component_profiler_running 1\n")
            equal(d.get("/debug/pprof/").status, 401)
            equal(d.get("/debug/pprof/?token=secret").status, 200)
            contains(d.get("/metrics", headers={"Host": "10.1.2.3"}).text, "process_open_fds")
            d.signal(signal.SIGUSR1)
            d.wait_log("profiling switched off")
            contains(d.get("/debug/pprof/").text, "there are /healthz, /livez, /readyz and /metrics\n")
            contains(d.get("/metrics").text, "component_profiler_running 0\n")


@test
def metrics_and_profiles_share_an_address_without_health():
    where = "127.0.0.1:%d" % free_port()
    with daemon(HELLO, "--enable-pprof", "--metrics-bind-address=" + where, "--profiling-bind-address=" + where,
                port_file=False) as d:
        d.port = int(where.rpartition(":")[2])
        d.wait_log("starting profiling server")
        contains(d.get("/metrics").text, "process_open_fds")
        equal(d.get("/debug/pprof/cmdline").status, 200)
        equal(d.get("/healthz").status, 404)


@test
def an_address_that_is_a_part_of_another_is_refused():
    port = free_port()
    done = run(HELLO, "--enable-pprof", "--profiling-bind-address=127.0.0.1:%d" % port, "--metrics-bind-address=:%d" % port)
    equal(done.returncode, 2)
    contains(done.stderr, "option '--metrics-bind-address'")
    done = run(HELLO, "--health-probe-bind-address=127.0.0.1:%d" % port, "--metrics-bind-address=:%d" % port)
    equal(done.returncode, 2)
    contains(done.stderr, "option '--metrics-bind-address'")
    contains(done.stderr, "--health-probe-bind-address=127.0.0.1:%d" % port)


@test
def a_busy_port_is_told_with_the_way_out():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run(HELLO, "--metrics-bind-address=127.0.0.1:%d" % taken.getsockname()[1])
        equal(done.returncode, 1)
        contains(done.stderr, "cannot serve metrics on 127.0.0.1:")
        contains(done.stderr, "set --metrics-bind-address, use port 0 for any free port, or 0 to turn it off")


@test
def who_leads_is_one_and_the_standby_is_none():
    name = 'leader_election_master_status{name="cluster-agent"}'
    words = ["--leader-elect", "--leader-elect-lease-duration=121s", "--leader-elect-renew-deadline=120s",
             "--leader-elect-retry-period=50ms", "--enable-pprof", "--profiling-bind-address=127.0.0.1:0"]
    with tempdir() as root, contextlib.ExitStack() as stack:
        os.mkdir(root + "/locks")
        with open(root + "/locks/cluster-agent.lock", "w") as f:  # somebody has led: nobody waits for a lease duration
            f.write('pid: 1\nhost: "before"\nsince: "2026-01-01T00:00:00Z"\n')
        one = stack.enter_context(measured("--root=" + root, *words, program="examples/cluster-agent"))
        poll(lambda: values(one).get(name) == 1, "a leader")
        with measured("--root=" + root, *words, program="examples/cluster-agent") as two:
            poll(lambda: values(two).get(name) == 0, "a standby")
            pprof = re.search(r'url="(http://[^"]*)/debug/pprof/"', two.output())[1]
            with urllib.request.urlopen(pprof + "/statusz", timeout=DEADLINE) as answer:
                rows = answer.read().decode().partition("\nLeader election\n")[2]
            contains(rows, "  leads: no\n")
            contains(rows, "  leader: pid %d on " % one.pid)
            one.stop()
            poll(lambda: values(two)[name] == 1, "the standby to lead")
            clean(two.get("/metrics").text)
    # With no election there is no such metric.
    with tempdir() as root, measured("--root=" + root, program="examples/cluster-agent") as d:
        need("leader_election" not in d.get("/metrics").text, "it")


@test
def prometheus_scrapes_the_three_controllers():
    prometheus = daemons.found("prometheus")
    with contextlib.ExitStack() as stack:
        root, d = (stack.enter_context(tempdir()) for _ in range(2))
        all_of = {n: stack.enter_context(measured("--root=" + root, program="examples/" + n)) for n in CONTROLLERS}
        os.makedirs(root + "/applications/dev", exist_ok=True)
        os.makedirs(root + "/sources/shop", exist_ok=True)
        with open(root + "/sources/shop/a", "w") as f:
            f.write("a")
        with open(root + "/applications/dev/shop.yaml", "w") as f:
            f.write("name: shop\nsource: shop\ntarget: dev/shop\nprune: true\ninterval: 1h\n")
        poll(lambda: os.path.exists(root + "/targets/dev/shop/a"), "the controllers' work")
        config, said = d + "/prometheus.yml", d + "/said"
        with open(config, "w") as f:
            f.write("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: controllers\n  static_configs:\n")
            for name, c in all_of.items():
                f.write("  - {targets: ['127.0.0.1:%d'], labels: {program: %s}}\n" % (c.port, name))
        out = stack.enter_context(open(said, "w"))
        p = stack.enter_context(started([prometheus, "--config.file=" + config, "--storage.tsdb.path=" + d + "/data",
                                         "--web.listen-address=127.0.0.1:0"], stdout=out, stderr=out))

        def listening():
            need(p.poll() is None, text_of(said))
            return "Server is ready" in text_of(said) and re.search(r'"Listening on" address=127.0.0.1:(\d+)', text_of(said))
        port = int(poll(listening, "prometheus")[1])

        def asked(query):
            url = "http://127.0.0.1:%d/api/v1/query?query=%s" % (port, urllib.parse.quote(query))
            with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
                return {r["metric"]["program"]: float(r["value"][1]) for r in json.load(answer)["data"]["result"]}
        poll(lambda: asked("up") == {n: 1 for n in CONTROLLERS}, "all up", 2 * DEADLINE)
        poll(lambda: sorted(asked("sum by (program) (controller_runtime_reconcile_total{result=~'success|requeue_after'}) > 0"))
             == sorted(CONTROLLERS), "their reconciliations", 2 * DEADLINE)
        waited = "histogram_quantile(0.9, sum by (program, le) (workqueue_queue_duration_seconds_bucket))"
        need(all(0 < v < 1000 for v in asked(waited).values()) and len(asked(waited)) == 3, asked(waited))
        equal(len(asked("process_resident_memory_bytes > 1e5")), 3)


main()
