#!/usr/bin/env python3
"""Several cluster-agents on one root: one leads, whatever happens to it."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

AGENT = "examples/cluster-agent"
LOCK = "locks/cluster-agent.lock"
# A lock by which somebody has led before, so that nobody waits for a lease duration.
LED = "pid: 1\nhost: \"before\"\nsince: \"2026-01-01T00:00:00Z\"\n"
# A slow machine must not lose what it verifies each 50 ms.
QUICK = ("--leader-elect", "--leader-elect-lease-duration=121s", "--leader-elect-renew-deadline=120s",
         "--leader-elect-retry-period=50ms")


@contextlib.contextmanager
def led_root():
    with tempdir() as root:
        os.mkdir(os.path.join(root, "locks"))
        with open(os.path.join(root, LOCK), "w") as f:
            f.write(LED)
        yield root


@contextlib.contextmanager
def agent(root, *argv):
    with daemon(AGENT, "--root=" + root, "--health-probe-bind-address=127.0.0.1:0", *(argv or QUICK), port_file=False) as d:
        d.port = int(poll(lambda: re.search(r'serving health url="http://127\.0\.0\.1:(\d+)"', d.output())).group(1))
        yield d


def leader_line(d):
    answer = d.get("/readyz?verbose")
    equal(answer.status, 200, answer.text)
    return re.search(r"\[\+\]leader (.*)", answer.text).group(1)


def works(d):
    return "operations" in threads(d.pid).values()


@test
def a_standby_is_ready_says_who_leads_and_leads_when_that_one_is_killed():
    with led_root() as root, agent(root) as first:
        first.wait_log("became leader")
        equal(leader_line(first), "ok: this process leads")
        with agent(root) as second:
            poll(lambda: leader_line(second).startswith("ok: led by pid %d on " % first.pid))
            need(not works(second))
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
            second.wait_log("became leader")
            poll(lambda: works(second))
            equal(leader_line(second), "ok: this process leads")
            equal(second.stop(), 0)
            contains(second.output(), "stopped leading")


main()
