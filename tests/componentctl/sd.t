#!/usr/bin/env python3
"""componentctl sd: what has a record, as scrapers discover it; and a file that follows it."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403

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


@test
def a_file_that_cannot_be_written_is_told():
    contains(ctl("sd", "--watch=/nosuch/targets.json", status=1), "/nosuch/targets.json")


main()
