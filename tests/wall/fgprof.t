#!/usr/bin/env python3
"""fgprof: where threads spend time, running or not; as much as there is, at little cost
however many threads there are, and without any of them noticing."""
import gzip
import math
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *
from serving import *
from wall_looks import Looks

SHARE_MAX = 2.0  # percent of one processor, by the sampler's own clock


class Load(LineDaemon):
    """tests/programs/fgprof_load with so many threads."""

    def __init__(self, blocked, spinning):
        super().__init__("tests/programs/fgprof_load", "PORT_FILE", str(blocked), str(spinning))
        try:
            poll(lambda: self.process.poll() is not None or os.path.exists(self.port_file), "the server", 120)
            if self.process.poll() == 0:
                raise Skip("limits allow %s of %d threads" % (self.reply(), blocked))
            self.wait_port()
        except BaseException:
            self.end()
            raise

    def account(self):
        """Nanoseconds worked and slept by the thread of both, and waits with EINTR."""
        return [int(x) for x in self.command("").split()[1:]]


def load(blocked, spinning):
    return used(Load(blocked, spinning))


def fetch(d, seconds, path="/debug/pprof/fgprof?seconds=%d"):
    r = d.get(path % seconds)
    equal((r.status, r.headers["content-type"]), (200, BINARY))
    name = os.path.join(d.dir, "fgprof.pb.gz")
    with open(name, "wb") as f:
        f.write(r.body)
    return name


class Profile:
    """What each go tool pprof reads: seconds by function, of all, and the comments."""

    def __init__(self, name):
        vars(self).update(agreed(Profile.read, name))

    @staticmethod
    def read(pprof, name):
        self = Profile.__new__(Profile)
        self.parse(pprof("-raw", "-unit=ns", name), pprof("-comments", name))
        return vars(self)

    def parse(self, raw, comments):
        equal(re.search(r"^PeriodType: (.*)$", raw, re.M).group(1), "wallclock nanoseconds")
        equal(re.search(r"^Period: (.*)$", raw, re.M).group(1), str(10**9 // 99))
        equal(re.search(r"^Samples:\n(.*)$", raw, re.M).group(1), "samples/count time/nanoseconds")
        self.duration = int(round(float(re.search(r"^Duration: ([\d.]+)", raw, re.M).group(1)) * 1e9))
        self.count = self.total = 0
        stacks = re.findall(r"^ +(\d+) +(\d+): ((?:\d+ ?)+)$", raw, re.M)
        for count, ns, _ in stacks:
            self.count += int(count)
            self.total += int(ns)
        functions = {}
        for number, rest in re.findall(r"^ +(\d+): 0x[0-9a-f]+ M=\d+ (\S+)", raw, re.M):
            functions[number] = rest
        self.ns = {}
        for count, ns, ids in stacks:
            for f in {functions.get(i) for i in ids.split()}:
                self.ns[f] = self.ns.get(f, 0) + int(ns)
        self.comments = comments
        self.looked = Looks(comments)

    def near(self, got, want, percent, what):
        need(abs(got - want) <= want * percent / 100, "%s: %.3f s, not %.3f s\n%s" % (
            what, got / 1e9, want / 1e9, self.comments))


def share(p):
    return float(re.search(r"^sampler: (\d+\.\d+) % of a processor$", p.comments, re.M).group(1))


@test
def a_sleeper_and_a_spinner_have_their_time_and_all_together_is_threads_times_duration():
    with load(3, 1) as d:
        before = d.account()
        name = fetch(d, 3)
        after = d.account()
        p = Profile(name)
        p.near(p.total, 6 * p.duration, 1, "the sum")  # main reads, 3 wait, 1 spins, 1 takes turns
        for f in "blocked_in_epoll", "blocked_in_poll", "blocked_in_nanosleep", "spinner":
            p.near(p.ns.get(f, 0), p.duration, 2 * p.looked.error(1 / 6), f)
        worked, slept = after[0] - before[0], after[1] - before[1]
        got = p.ns.get("turn_works", 0) + p.ns.get("turn_sleeps", 0)
        p.near(got, p.duration, 2 * p.looked.error(1 / 6), "the one that takes turns")
        # It worked and slept so many milliseconds by its own account, a little longer than the window.
        part, want = p.ns.get("turn_works", 0) / got, worked / (worked + slept)
        # Half is what scatters most; and a sampler that has to wait for a processor finds nobody else waiting for it.
        need(abs(part - want) < 4 * math.sqrt(0.25 * 6 / p.looked.looks) + 0.2 * p.looked.slack(), "worked %.2f of its time, by the profile %.2f\n%s" % (want, part, p.comments))
        equal(after[2], 0, "waits that were interrupted")
        contains(p.comments, "threads: 6 at the end, the library's own left out")
        need(share(p) <= SHARE_MAX, p.comments)


@test
def without_idle_what_waits_is_left_out_and_what_runs_has_its_time():
    with load(3, 1) as d:
        for path in "/debug/pprof/fgprof?idle=0&seconds=%d", "/debug/fgprof?idle=0&format=pprof&seconds=%d":
            p = Profile(fetch(d, 2, path))
            # Who is just waking up runs inside its sleep; who never wakes does not.
            equal([f for f in p.ns if f and f.startswith("blocked_in_")], [])
            need(p.ns.get("turn_works", 0) > 0, p.ns)
            # the spinner, and the one that takes turns, which works for half its time or so
            need(0.9 * p.duration < p.ns["spinner"] and p.total < 2.2 * p.duration, (p.ns, p.comments))
            contains(p.comments, "idle=0: what waits is left out")
        folded = d.get("/debug/pprof/fgprof?seconds=1&format=folded&idle=0").text
        contains(folded, "spinner")
        need("blocked_in_" not in folded, folded)
        for idle in "1", "", "no":
            contains(d.get("/debug/pprof/fgprof?seconds=1&format=folded&idle=" + idle).text, "blocked_in_poll")


def many(threads, seconds):
    with load(threads, 1) as d:
        known = set(os.listdir("/proc/%d/task" % d.pid))
        got = in_background(fetch, d, seconds)
        sampler = poll(lambda: sampler_of(d.pid, known) or not got.is_alive(), "the sampler")
        if sampler is True:
            raise AssertionError("the window ended at once: %r" % got.result())
        begin, before = time.monotonic(), cpu_ns(d.pid, sampler)
        last = [0, 1]

        def ended():  # and what it has used until then by the kernel's account
            now, spent = time.monotonic(), cpu_ns(d.pid, sampler)
            if spent is not None:
                last[:] = spent - before, now - begin
            return spent is None
        poll(ended, "the end of the sampler", seconds + DEADLINE)
        spent, elapsed = last
        p = Profile(got.result())
        print("# %d threads: sampler %.3f %%, from outside %.3f %%; %s" % (
            threads, share(p), spent / elapsed / 1e7, p.comments.replace("\n", "; ")))
        need(share(p) <= SHARE_MAX, "%.3f %%\n%s" % (share(p), p.comments))
        need(spent / elapsed / 1e7 <= SHARE_MAX * 1.1, "%d ns in %.2f s" % (spent, elapsed))
        p.near(p.total, (threads + 3) * p.duration, 1, "the sum")
        for f in "blocked_in_epoll", "blocked_in_poll", "blocked_in_nanosleep":
            p.near(p.ns.get(f, 0), threads / 3 * p.duration, 4 * p.looked.error(1 / 3), f)
        equal(d.account()[2], 0, "waits that were interrupted")


def sampler_of(pid, known):
    """Its thread, which is none of the known ones: to ask each of 10,000 for its name takes seconds."""
    for tid in set(os.listdir("/proc/%d/task" % pid)) - known:
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
            if f.read() == "component-wall\n":
                return tid


def cpu_ns(pid, tid):
    try:
        with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as f:
            return int(f.read().split()[0])
    except (OSError, IndexError):
        return None


@test
def a_thousand_threads_cost_at_most_2_percent_of_a_processor_and_notice_nothing():
    many(1000, 3)


@test
def ten_thousand_threads_cost_at_most_2_percent_of_a_processor_and_notice_nothing():
    many(10000, 4)


@test
def both_paths_answer_in_both_forms_and_windows_overlap():
    with server("--burn") as d:
        long = in_background(d.get, PPROF + "fgprof?seconds=3&format=folded")
        poll(lambda: "component-wall" in own_threads(d.pid), "the window")
        r = d.get("/debug/fgprof?seconds=1&format=pprof")
        need(long.is_alive(), "the short window waited for the long one")
        equal(r.headers["content-disposition"], 'attachment; filename="fgprof"')
        contains(gzip.decompress(r.body), b"burn_cycles")
        contains(d.get(PPROF + "fgprof?seconds=1&format=top").text, "fgprof: time, total")
        r = long.result()
        equal((r.status, r.headers["content-type"]), (200, TEXT))
        lines = r.text.splitlines()
        for line in lines:
            need(re.fullmatch(r"[^;]+(;[^;]+)* \d+", line), line)
        equal([x for x in {l.rsplit(" ", 1)[0] for l in lines} if sum(l.rsplit(" ", 1)[0] == x for l in lines) > 1], [], "told twice")
        need(any(re.fullmatch(r".*;burner;burn_cycles \d+", line) for line in lines), r.text)
        need(any(re.match(r"_start;.*;main;.*read", line) for line in lines), r.text)
        need("component_" not in r.text and "httpd" not in r.text, r.text)
        contains(d.get(PPROF).text, '<a href="fgprof?seconds=5">fgprof</a>')
        contains(d.get(PPROF + "heap?format=folded").headers["content-type"], "text/plain")
        is_error(d.get(PPROF + "fgprof?seconds=1&format=nosuch"), 400)
        is_error(d.get(PPROF + "fgprof?seconds=99999"), 400)
        equal(d.get("/debug/fgprof", method="POST").status, 405)
        equal(d.get("/debug/fgprof/").status, 404)
        poll(lambda: own_threads(d.pid) == ["component-cfi", "component-http"], "an idle server")


@test
def a_client_that_leaves_ends_the_sampler_and_a_fork_meanwhile_harms_nobody():
    with server() as d:
        with d.connect() as s:
            s.sendall(get_line("/debug/fgprof?seconds=3600"))
            poll(lambda: "component-wall" in own_threads(d.pid), "the window")
            equal(d.command("forks 20"), "0")
        poll(lambda: own_threads(d.pid) == ["component-cfi", "component-http"], "an idle server")
        with d.connect() as s:
            s.sendall(get_line("/debug/fgprof?seconds=3600"))
            poll(lambda: "component-wall" in own_threads(d.pid), "the window")
            equal(d.command("stop"), "0")
            head, body = head_and_body(receive_all(s))
            contains(head, "HTTP/1.1 200 OK")
            gzip.decompress(body)
        equal(own_threads(d.pid), [])


@test
def the_token_protects_both_paths():
    with tempdir() as t:
        token = os.path.join(t, "token")
        with open(token, "w") as f:
            f.write("secret\n")
        os.chmod(token, 0o600)
        with server("--token-file", token) as d:
            for path in "/debug/fgprof", PPROF + "fgprof":
                is_error(d.get(path + "?seconds=1"), 401)
                equal(d.get(path + "?seconds=1&token=secret").status, 200)


main()
