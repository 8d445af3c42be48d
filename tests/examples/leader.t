#!/usr/bin/env python3
"""Several cluster-agents on one root: one leads, whatever happens to it.

LEADER_SECONDS=N makes the chaos as long as one likes, TEST_STRESS 10 minutes; LEADER_SEED=N is
another course of it.
"""
import ctypes
import io
import os
import random
import re
import select
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from demo_input import DEMO_INPUT, load_demo_input  # noqa: E402

SECONDS = int(os.environ.get("LEADER_SECONDS", "600" if os.environ.get("TEST_STRESS") else "15"))
SEED = int(os.environ.get("LEADER_SEED", "7"))
AGENTS = 10
BACKEND, AGENT = "examples/backend-controller", "examples/cluster-agent"
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
    """What a probe says of the election once the agent is ready."""
    def look():
        answer = d.get("/readyz?verbose")
        return answer.status == 200 and re.search(r"\[\+\]leader (.*)", answer.text)
    return poll(look, "ready")[1]


def works(d):
    return "operations" in threads(d.pid).values()


def switches(d):
    """How often the thread that tries to lead has waited."""
    tid, = [t for t, name in threads(d.pid).items() if name == "component-lead"]
    return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text_of("/proc/%d/task/%d/status" % (d.pid, tid)), re.M).group(1))


def tries_again(d):
    before = switches(d)
    poll(lambda: switches(d) >= before + 5, "five tries more")


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


@test
def a_graceful_stop_hands_over_and_nobody_speaks_of_a_loss():
    with led_root() as root, agent(root) as first:
        first.wait_log("became leader")
        with agent(root) as second:
            equal(first.stop(), 0)
            second.wait_log("became leader")
            need("lost" not in first.output(), first.output())
            equal(second.stop(), 0)


@test
def who_is_not_elected_and_who_is_are_never_two():
    with led_root() as root, daemon(AGENT, "--root=" + root, port_file=False) as plain:
        poll(lambda: works(plain))
        elsewhere = os.path.join(root, "elsewhere")
        with open(elsewhere, "w") as f:
            f.write(LED)
        with agent(root) as second, agent(root, "--leader-elect-lock=" + elsewhere, *QUICK) as third:
            for d in second, third:
                poll(lambda: leader_line(d).startswith("ok: led by pid %d on " % plain.pid))
                tries_again(d)
                need(not works(d))
            r = run(AGENT, "--root=" + root)
            equal(r.returncode, 1, r.stderr)
            contains(r.stderr, "pid %d on " % plain.pid)
            equal(plain.stop(), 0)
            poll(lambda: works(second) or works(third))
            first, last = (second, third) if works(second) else (third, second)
            tries_again(last)
            need(not works(last))
            equal(first.stop(), 0)
            poll(lambda: works(last))


@test
def a_leader_whose_lock_is_replaced_ends_with_status_1_and_the_next_one_leads():
    with led_root() as root, agent(root) as first:
        first.wait_log("became leader")
        with agent(root) as second:
            poll(lambda: leader_line(second).startswith("ok: led by "))
            with open(os.path.join(root, "new"), "w") as f:
                f.write(LED)
            os.rename(os.path.join(root, "new"), os.path.join(root, LOCK))
            equal(first.wait(), 1)
            contains(first.output(), "leader election lost: '%s' was removed or replaced" % os.path.join(root, LOCK))
            second.wait_log("became leader")
            equal(second.stop(), 0)


@beside
def a_leader_that_is_stopped_for_longer_than_the_renew_deadline_leads_on_and_nobody_else_meanwhile():
    with led_root() as root, agent(root, "--leader-elect") as first, agent(root, "--leader-elect", QUICK[-1]) as second:
        first.wait_log("became leader")
        begin = time.monotonic()
        first.signal(signal.SIGSTOP)
        poll(lambda: time.monotonic() > begin + 11, "more than --leader-elect-renew-deadline")
        tries_again(second)
        need(not works(second))
        first.signal(signal.SIGCONT)
        tries_again(first)
        equal(leader_line(first), "ok: this process leads")
        need("lost" not in first.output(), first.output())
        equal(first.stop(), 0)
        second.wait_log("became leader")


class Journal:
    """Who wrote below some folders, in order: each file of an agent comes into being under a name that says whose it is."""

    def __init__(self, *folders):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.writers, self.lost, self.over = [], False, threading.Event()
        for folder in folders:
            for directory, _, _ in os.walk(folder):
                need(self.libc.inotify_add_watch(self.fd, os.fsencode(directory), 0x100) >= 0, directory)  # IN_CREATE
        self.reader = in_background(self.read)

    def read(self):
        poller = select.poll()
        poller.register(self.fd, select.POLLIN)
        while not self.over.is_set() or poller.poll(0):
            if not poller.poll(100):
                continue
            data, at = os.read(self.fd, 1 << 16), 0
            while at < len(data):
                _, mask, _, length = struct.unpack_from("iIII", data, at)
                name = data[at + 16:at + 16 + length].rstrip(b"\0").decode()
                at += 16 + length
                self.lost |= bool(mask & 0x4000)  # IN_Q_OVERFLOW
                of_agent = re.match(r"\.gitops-partial\.cluster-agent\.(\w+-\d+)\.", name)
                if of_agent and self.writers[-1:] != [of_agent.group(1)]:
                    self.writers.append(of_agent.group(1))

    def end(self):
        """The writers; one that wrote again after another did is there twice."""
        self.over.set()
        self.reader.result()
        os.close(self.fd)
        need(not self.lost, "some writes were not seen")
        return self.writers


class Chaos:
    def __init__(self, root):
        self.root, self.chance, self.agents, self.kills = root, random.Random(SEED), [], 0

    def more(self):
        while len(self.agents) < AGENTS:
            self.agents.append(Daemon([AGENT, "--root=" + self.root, *QUICK], port_file=False))

    def leader(self):
        pid = int(re.search(r"pid: (\d+)", text_of(os.path.join(self.root, LOCK))).group(1))
        return next((d for d in self.agents if d.pid == pid and "became leader" in d.output()), None)

    def kill(self, d):
        self.kills += 1
        d.signal(signal.SIGKILL)
        equal(d.wait(), -signal.SIGKILL, d.output())
        self.gone(d)

    def stop(self, d):
        status, said = d.stop(), d.output()
        need(status == 0 or (status == -signal.SIGTERM and not said), "%r:\n%s" % (status, said))  # it had not begun
        self.gone(d)

    def gone(self, d):
        self.agents.remove(d)
        d.end()

    def hurt(self):
        """One is killed, told to stop, or stopped for a while; in half of all cases the one that leads."""
        d = self.chance.choice([poll(self.leader, "a leader"), self.chance.choice(self.agents)])
        equal(d.process.poll(), None, "ended by itself:\n" + d.output())
        kind = self.chance.random()
        if kind < 0.4:
            d.signal(signal.SIGSTOP)
            time.sleep(self.chance.uniform(0, 0.3))  # a moment of chance, nothing is waited for
        if kind < 0.2:
            d.signal(signal.SIGCONT)
        elif kind < 0.9:
            self.kill(d)
        else:
            self.stop(d)

    def end(self):
        for d in self.agents:
            d.process.kill()
            d.end()


@test
def ten_agents_killed_stopped_and_continued_at_random_are_never_two_writers_and_all_is_in_sync_in_the_end():
    demo = load_demo_input()

    def faults(root):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            demo.verify(root)
        return said.getvalue()

    with led_root() as root:
        made = ("--applications=6", "--files=120", "--size=8000", "--seed=%d" % SEED, "--hands-off")
        equal(run(DEMO_INPUT, root, "--rate=0", *made).returncode, 0)
        with daemon(BACKEND, "--root=" + root, port_file=False):
            with daemon(AGENT, "--root=" + root, port_file=False) as first:
                poll(lambda: not faults(root), "a first sync")
                equal(first.stop(), 0)
            journal = Journal(*(os.path.join(root, name) for name in ("targets", "managed", "status")))
            halves, over = [], threading.Event()

            def read():
                while not over.is_set():
                    halves.extend(path for path, data in demo.tree(os.path.join(root, "targets")).items()
                                  if ".gitops-partial." not in path and not demo.is_whole(data))
            reader, chaos = in_background(read), Chaos(root)
            try:
                with started([DEMO_INPUT, root, "--rate=100", *made], stdout=subprocess.DEVNULL) as changes:
                    end = time.monotonic() + SECONDS
                    while time.monotonic() < end or chaos.kills < 10:
                        chaos.more()
                        time.sleep(chaos.chance.uniform(0, 0.2))  # likewise
                        chaos.hurt()
                    changes.send_signal(signal.SIGTERM)
                    equal(changes.wait(DEADLINE), 0)
                chaos.more()
                chaos.kill(poll(chaos.leader, "a leader"))
                # There is no --resync-period: what one look at everything finds is all.
                poll(lambda: not faults(root), "all in sync:\n" + faults(root), 2 * DEADLINE)
                for d in list(chaos.agents):
                    chaos.stop(d)
            finally:
                over.set()
                reader.result()
                writers = journal.end()
                chaos.end()
        equal(halves, [])
        print("# %d killed, %d wrote" % (chaos.kills, len(set(writers))))
        need(len(set(writers)) >= 3, writers)
        equal(sorted(writers), sorted(set(writers)), "who wrote, in order: %s" % writers)


main()
