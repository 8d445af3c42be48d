#!/usr/bin/env python3
"""Who waits for whom: goroutine?debug=2 and goroutineleak, of each kind of lock, with the hooks
linked in, preloaded, and absent.  See tests/programs/deadlocks.c."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *
from hooked import build, listens, preload_env
from pprof_reader import Profile
from serving import *

LINE = re.compile(r'^(thread \d+ "\S+" )?waits for the (mutex|read-write lock) at (0x[0-9a-f]+)(?: \((\S+)\))?'
                  r'(?:, held by thread (\d+)(?: "(\S+)"|(, which has ended)))?$', re.M)
HEAD = re.compile(r"^goroutine (\d+) \[([^,\]]+)[^\]]*thread: ([^,\]]+)[^\]]*\]:$", re.M)
MODES = "linked", "timed", "core", "foreign"  # timed: linked, with all waits timed


@contextlib.contextmanager
def waiting(mode, *kinds):
    """The program with these threads, profiled."""
    with tempdir() as d:
        exe = build(d, "deadlocks", "deadlocks.c", "linked" if mode == "timed" else mode)
        env = dict(preload_env(), PPROF_BIND_ADDRESS="127.0.0.1:0") if mode == "foreign" else {}
        with used(LineDaemon(exe, *kinds, env=env)) as p:
            equal(p.reply(), "ready")
            pid = children(p.pid)[0] if "forked" in kinds else p.pid
            p.port = poll(lambda: listens(pid), "its port")[0]
            if mode == "timed":
                equal(p.get(PPROF + "rates?mutex-profile-fraction=1", method="POST", body="").status, 200)
            yield p


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(n) for n in f.read().split()]


def blocks(text):
    """Thread name to (state, id, line that matches LINE or None), of debug=2."""
    found = {}
    for block in text.split("\n\n"):
        m = HEAD.match(block)
        if m:
            found[m.group(3)] = (m.group(2), int(m.group(1)), LINE.search(block))
    return found


def dump(d, kind="goroutine"):
    r = d.get(PPROF + kind + "?debug=2&own=0")
    equal(r.status, 200)
    return r.text


def settled(d, *names):
    """The dump in which all of these wait for a lock of which something is said."""
    def look():
        text = dump(d)
        found = blocks(text)
        return text if all(n in found and found[n][2] for n in names) else None
    return poll(look, "lines of %s" % (names,))


def leaked(d):
    return sorted(blocks(dump(d, "goroutineleak")))


def held_by(found, waiter, holder, kind="mutex"):
    line = found[waiter][2]
    need(line, "no line of " + waiter)
    equal((line.group(2), line.group(5), line.group(6)), (kind, str(found[holder][1]), holder), waiter)
    return line


@test
def a_deadlock_of_two_comes_first_with_the_names_of_its_static_locks():
    for mode in MODES:
        with waiting(mode, "two") as d:
            text = poll(lambda: (lambda t: t if t.startswith("deadlock:\n") else None)(dump(d)), mode)
            found = blocks(text)
            equal(held_by(found, "wait_ledger", "wait_accounts").group(4), "ledger")
            equal(held_by(found, "wait_accounts", "wait_ledger").group(4), "accounts+0x40")
            heads = [LINE.fullmatch(line) for line in text.split("\n\n")[0].split("\n")[1:]]
            need(all(heads), text)
            equal(sorted(h.group(4) for h in heads), ["accounts+0x40", "ledger"])
            equal(sorted(HEAD.findall(text)[i][2] for i in (0, 1)), ["wait_accounts", "wait_ledger"], "the first threads")
            told = json.loads(d.get(PPROF + "goroutine?format=dump").text)
            threads = {t["name"]: t for t in told["threads"]}
            equal([sorted(c) for c in told["deadlocks"]], [sorted(threads[n]["id"] for n in ("wait_ledger", "wait_accounts"))])
            waits = threads["wait_accounts"]["waits"]
            equal((waits["name"], waits["offset"], waits["kind"], waits["holder"], waits["holder_name"], waits["ended"]),
                  ("accounts", 0x40, "mutex", threads["wait_ledger"]["id"], "wait_ledger", False))


@test
def a_deadlock_of_three_on_the_heap_is_a_leak_in_all_forms():
    for mode in MODES:
        with waiting(mode, "three") as d:
            names = ["wait_three_a", "wait_three_b", "wait_three_c"]
            poll(lambda: leaked(d) == names, mode)
            text = dump(d, "goroutineleak")
            equal(text.count("deadlock:\n"), 1)
            found = blocks(text)
            for a, b in ("a", "b"), ("b", "c"), ("c", "a"):
                need(held_by(found, "wait_three_" + a, "wait_three_" + b).group(4) is None)
            text = d.get(PPROF + "goroutineleak?debug=1").text
            need(text.startswith("goroutineleak profile: total 3\n"), text[:80])
            contains(text, "take_both+")
            p = Profile(d.get(PPROF + "goroutineleak").body)
            equal(sum(v[0] for _, v, _ in p.samples), 3)
            contains(d.get(PPROF).text, "<tr><td>3</td><td><a href='goroutineleak?debug=1'>goroutineleak</a></td></tr>")


@test
def who_waits_for_himself_is_a_deadlock_alone():
    for mode in MODES:
        with waiting(mode, "again") as d:
            poll(lambda: leaked(d) == ["wait_again"], mode)
            held_by(blocks(dump(d)), "wait_again", "wait_again")


@test
def a_circle_with_a_timeout_is_shown_and_is_no_deadlock():
    for mode in MODES:
        with waiting(mode, "timed") as d:
            text = settled(d, "wait_until", "wait_timed_end")
            found = blocks(text)
            held_by(found, "wait_until", "wait_timed_end")
            held_by(found, "wait_timed_end", "wait_until")
            need("deadlock:" not in text, text)
            equal(leaked(d), [])


@test
def each_kind_of_mutex_that_has_an_owner_names_it():
    kinds = "recursive", "checked", "adaptive", "robust", "inherit"
    for mode in MODES:
        with waiting(mode, "kinds") as d:
            text = settled(d, *("wait_" + k for k in kinds + ("shared",)))
            found = blocks(text)
            for k in kinds:
                held_by(found, "wait_" + k, "hold_" + k)
            equal(found["wait_shared"][2].group(5), None, "of one that processes share")
            need("deadlock:" not in text, text)
            equal(leaked(d), [])


@test
def a_mutex_that_processes_share_names_no_thread_by_a_number_of_another_namespace():
    for mode in MODES:
        with waiting(mode, "other_namespace") as d:
            text = settled(d, "wait_other")
            equal(blocks(text)["wait_other"][2].group(5), None)
            need("deadlock:" not in text, text)
            equal(leaked(d), [])


@test
def who_was_refused_a_circle_of_inheriting_mutexes_waits_for_no_lock():
    names = {"wait_refused_a", "wait_refused_b"}
    for mode in MODES:
        def once():
            with waiting(mode, "inherit_circle") as d:
                def look():
                    found = blocks(dump(d))
                    lines = {n: found[n][2] for n in names & set(found)}
                    asleep = len(lines) == 2 and all(found[n][0] != "running" for n in names)
                    return lines if asleep and sum(1 for m in lines.values() if m) == 1 else None
                with contextlib.suppress(AssertionError):  # both came at the same moment, and both were refused
                    return poll(look, mode, 3)
        lines = poll(once, mode)
        waiter = next(n for n in names if lines[n])
        equal(lines[waiter].group(2, 6), ("mutex", (names - {waiter}).pop()))


@test
def who_waits_for_the_lock_of_an_ended_thread_is_a_leak():
    for mode in MODES:
        with waiting(mode, "ended") as d:
            poll(lambda: leaked(d) == ["wait_ended"], mode)
            text = dump(d)
            line = blocks(text)["wait_ended"][2]
            equal(line.group(7), ", which has ended")
            need("deadlock:" not in text, text)


@test
def who_has_locked_before_a_fork_has_not_ended_in_the_child():
    for mode in "linked", "core":
        with waiting(mode, "forked") as d:
            line = blocks(settled(d, "wait_forked"))["wait_forked"][2]
            equal(line.group(5, 7), (None, None))
            equal(leaked(d), [])


@test
def a_read_write_lock_names_its_writer_and_no_reader():
    for mode in MODES:
        with waiting(mode, "rwlocks") as d:
            text = settled(d, "wait_read", "wait_write", "wait_readers")
            found = blocks(text)
            for waiter in "wait_read", "wait_write":
                equal(held_by(found, waiter, "hold_written", "read-write lock").group(4), "written")
            equal(found["wait_readers"][2].group(2, 4, 5), ("read-write lock", "read_by", None))
            equal(leaked(d), [])


@test
def conditions_semaphores_and_barriers_have_no_line():
    for mode in MODES:
        with waiting(mode, "others", "two") as d:
            text = settled(d, "wait_ledger")
            need({"wait_cond", "wait_sem", "wait_barrier"} <= set(blocks(text)), text)
            for _ in range(5):
                found = blocks(dump(d))
                for name in "wait_cond", "wait_sem", "wait_barrier":
                    need(found[name][2] is None, (mode, found[name]))


@test
def a_crowd_that_contends_has_no_deadlock():
    for mode in "timed", "core":
        with waiting(mode, "crowd") as d:
            lines = 0
            for _ in range(150):
                text = dump(d)
                lines += len(LINE.findall(text))
                need("deadlock:" not in text and "has ended" not in text, text)
                equal(leaked(d), [])
            need(lines > 0, "nobody waited")


@test
def a_dump_by_signal_begins_with_whose_it_is_and_then_with_the_deadlock():
    for mode in "linked", "core":
        with tempdir() as d:
            exe = build(d, "deadlocks", "deadlocks.c", mode)
            with daemon(exe, port_file=False, env={"DEADLOCKS": "1"}) as p:
                head = r"^deadlocks 1\.2, pid %d, \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n" % p.pid

                def rests():  # a signal is for another thread, and wakes it, while the first one has one to handle
                    status = text_of("/proc/%d/status" % p.pid)
                    return re.search(r"^State:\t[SD]", status, re.M) and not re.search(r"^S\w+Pnd:\t0*[1-9a-f]", status, re.M)

                def there():
                    poll(rests, "the first thread to rest")
                    p.signal(signal.SIGUSR2)
                    return re.search(head + r"\ndeadlock:\nthread \d+ \"wait_", p.output(), re.M)
                poll(lambda: "wait_accounts" in threads(p.pid).values(), "its threads")
                poll(there, "the deadlock in a dump")
                poll(rests, "the first thread to rest")
                p.signal(signal.SIGQUIT)
                equal(p.wait(), 2)
                need(re.search(head + r"SIGQUIT: quit\n\ndeadlock:\nthread \d+ \"wait_", p.output(), re.M), p.output())


@test
def the_documents_hunt_finds_both_threads_and_both_locks():
    with open(os.path.join(SRC, "docs/deadlock.md")) as f:
        steps = re.findall(r"^curl .*$", f.read(), re.M)
    equal(len(steps), 3)
    with waiting("core", "two") as d:
        poll(lambda: leaked(d) == ["wait_accounts", "wait_ledger"], "the deadlock")

        def follow(step):
            r = subprocess.run(["sh", "-c", step.replace("localhost:6060", "127.0.0.1:%d" % d.port)], capture_output=True,
                               text=True, timeout=DEADLINE)
            equal((r.returncode, r.stderr), (0, ""), step)
            return r.stdout
        equal(follow(steps[0]), "goroutineleak profile: total 2\n")
        lines = follow(steps[1]).split("\n")
        equal(lines[0], "deadlock:")
        equal(sorted(LINE.fullmatch(line).group(4, 6) for line in lines[1:3]),
              [("accounts+0x40", "wait_ledger"), ("ledger", "wait_accounts")])
        equal(follow(steps[2]).count("take_both(...)\n"), 2)


main()
