#!/usr/bin/env python3
"""componentctl sd: what has a record, as scrapers discover it; and a file that follows it."""
import json
import os
import signal
import re
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
import daemons  # noqa: E402

own_run()


@contextlib.contextmanager
def running(*words):
    """A program of componentctl run, once it is listed; killed in the end."""
    with started([CTL, "run", *words], env=environment(), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        poll(lambda: words[0].split("=")[1] in listed(), "its record")
        yield listed()[words[0].split("=")[1]]
        p.terminate()
        p.wait(DEADLINE)


def cat(name):
    return running("--app-id=" + name, "cat")


def discovered(text):
    return {o["labels"]["app_id"]: o for o in json.loads(text)}


@test
def each_that_answers_at_a_port_is_a_target():
    need_own_run()
    equal(json.loads(ctl("sd")), [])
    with cat("one") as one, cat("two") as two:
        found = discovered(ctl("sd"))
        equal(sorted(found), ["one", "two"])
        for name, row in ("one", one), ("two", two):
            equal(found[name]["targets"], ["127.0.0.1:%d" % row["daprPort"]])
            equal(found[name]["labels"], {"app_id": name, "service_name": name, "__meta_component_pid": str(row["pid"]),
                                          "__meta_component_command": "cat"})


@test
def arguments_of_a_program_are_told_to_no_scraper():
    need_own_run()
    with started_by_ctl("--app-id=secret", "sh", "-c", "read line", "--requirepass=hidden", stdin=subprocess.PIPE) as p:
        said_at_start(p.stderr)
        said = ctl("sd")
        equal(discovered(said)["secret"]["labels"]["__meta_component_command"], "sh")
        need("hidden" not in said, said)
        p.communicate("\n", timeout=DEADLINE)


@test
def a_unix_socket_is_left_out_and_that_is_said():
    need_own_run()
    with tempdir() as d:
        words = ["--enable-pprof", "--profiling-registry", "--profiling-bind-address=unix:%s/s" % d]
        with started([program("examples/hello")] + words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            poll(lambda: "hello" in listed(), "its record")
            r = run(CTL, "sd", env=environment())
            equal((r.returncode, json.loads(r.stdout)), (0, []))
            contains(r.stderr, "1 left out: scrapers know no unix socket")


@test
def a_file_follows_what_comes_and_goes():
    need_own_run()
    with tempdir() as d:
        file = os.path.join(d, "targets.json")

        def has(*names):
            poll(lambda: os.path.exists(file) and sorted(discovered(text_of(file))) == sorted(names), names)
        with started([CTL, "sd", "--watch=" + file], env=environment()) as p:
            has()
            with cat("one") as one:
                has("one")
                with cat("two"):
                    has("one", "two")
                    os.kill(one["pid"], signal.SIGKILL)
                    has("two")
            has()
            equal(os.listdir(d), ["targets.json"])
            p.terminate()
            equal(p.wait(DEADLINE), 0)


SCRAPES = """
scrape_configs:
- job_name: daemons
  file_sd_configs: [{files: [%s]}]
  relabel_configs:
  - {source_labels: [__meta_component_pid], target_label: pid}
"""


def targets_of(port):
    with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/targets?state=active" % port, timeout=DEADLINE) as answer:
        return {t["labels"]["app_id"]: t for t in json.load(answer)["data"]["activeTargets"]}


@test
def prometheus_lists_them_with_their_labels_and_drops_what_has_ended():
    need_own_run()
    prometheus = daemons.found("prometheus")
    with tempdir() as d, cat("one") as one, started([CTL, "sd", "--watch=%s/targets.json" % d], env=environment()):
        config, said = d + "/prometheus.yml", d + "/said"
        with open(config, "w") as f:
            f.write(SCRAPES % (d + "/targets.json"))
        with open(said, "w") as f, started([prometheus, "--config.file=" + config, "--storage.tsdb.path=" + d + "/data",
                                            "--web.listen-address=127.0.0.1:0"], stdout=f, stderr=f) as p:
            def listening():
                need(p.poll() is None, text_of(said))
                text = text_of(said)  # it listens, and refuses, before it is ready
                return "Server is ready" in text and re.search(r'"Listening on" address=127.0.0.1:(\d+)', text)
            port = int(poll(listening, "prometheus")[1])
            address = "127.0.0.1:%d" % one["daprPort"]
            found = poll(lambda: targets_of(port).get("one"), "the target", 2 * DEADLINE)
            equal(found["labels"], {"app_id": "one", "service_name": "one", "instance": address, "job": "daemons", "pid": str(one["pid"])})
            equal({k: v for k, v in found["discoveredLabels"].items() if k.startswith("__meta_component")},
                  {"__meta_component_pid": str(one["pid"]), "__meta_component_command": "cat"})
            equal(found["scrapeUrl"], "http://%s/metrics" % address)
            with cat("two"):
                poll(lambda: sorted(targets_of(port)) == ["one", "two"], "both", 2 * DEADLINE)
            poll(lambda: sorted(targets_of(port)) == ["one"], "the one that is left", 2 * DEADLINE)


@test
def a_file_that_cannot_be_written_is_told():
    contains(ctl("sd", "--watch=/nosuch/targets.json", status=1),
             "'/nosuch/targets.json': No such file or directory; write another file with --watch=FILE")


main()
