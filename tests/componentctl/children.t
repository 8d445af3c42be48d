#!/usr/bin/env python3
"""componentctl profile --children: a master and its workers in one window, as one file that go tool pprof reads."""
import collections
import contextlib
import gzip
import http.server
import os
import pty
import random
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from gotools import ENV, newest_pprof, to_the_minute  # noqa: E402
from pprof_reader import Profile  # noqa: E402
from pprof_writer import any_profile, profile  # noqa: E402
from records import start_of, write_record  # noqa: E402

own_run()
SUBJECT = "tests/programs/adopted_daemon"
VIEWS = (), ("--top=0",), ("--cum",), ("--sample-index=0",)


class Servers:
    """Processes that sleep, with records that lead to this test, which answers in their place: a profile, a number of HTTP,
    or a part of a profile.  All are answered once all have asked."""

    def __init__(self, answers, parents=None, id="family", off=()):
        self.all = [subprocess.Popen(["sleep", "3600"]) for _ in answers]
        self.pids = [p.pid for p in self.all]
        self.answers = dict(zip(self.pids, answers))
        self.together = threading.Barrier(len(answers) - len(off))
        self.records = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        os.makedirs(FOLDER, mode=0o755, exist_ok=True)
        os.chmod(FOLDER, 0o1777)
        for i, pid in enumerate(self.pids):
            parent = self.pids[parents[i]] if parents and parents[i] is not None else 0 if parents or not i else self.pids[0]
            url = "off" if i in off else "http://127.0.0.1:%d/%d/debug/pprof/" % (self.server.server_port, pid)
            with open("/proc/%d/stat" % pid) as f:
                start = f.read().rpartition(")")[2].split()[19]
            self.records.append("%s/%d.%s" % (FOLDER, pid, start))
            with open(self.records[-1], "w") as f:
                f.write("id %s\nurl %s\napp_port 0\ncreated %d\nparent %d\n" % (id, url, 1000 + i, parent))

    def answer(self, request):
        try:
            self.together.wait(DEADLINE)
        except threading.BrokenBarrierError:
            return
        body = self.answers[int(request.path.split("/")[1])]
        if isinstance(body, int):
            request.send_error(body, "No")
            return
        request.send_response(200)
        if isinstance(body, list):
            request.send_header("X-Component-Checkpoints", "yes")
            body = b"".join(body)
        request.send_header("Content-Length", str(len(body) + (body[-4:] == b"more")))
        request.end_headers()
        request.wfile.write(body)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.together.abort()
        for p in self.all:
            p.kill()
            p.wait()
        for path in self.records:
            with contextlib.suppress(FileNotFoundError):  # who looked has removed it
                os.unlink(path)
        self.server.shutdown()
        self.server.server_close()


def small(value, name="work", comments=()):
    return gzip.compress(profile([("cpu", "nanoseconds")], [([1], [value], [("k", "v")]), ([2, 1], [1], [])],
                                 [(1, 1, 4096 + value, [(1, 7)]), (2, 1, 8000 + value, [(2, 8)])],
                                 [(1, name, name, "a.c", 1), (2, "leaf", "leaf", "a.c", 2)], [(1, "/bin/x", "abc")], duration=10 ** 9, comments=comments), mtime=0)


def read(path):
    with open(path, "rb") as f:
        return Profile(f.read())


def labels_of(p):
    """Of each sample, the processes that it names."""
    return [[p.strings[l[2]] for l in labels if p.strings[l[1]] == "process"] for _, _, labels in p.samples]


def sums(*profiles):
    """Values by stack, of all."""
    found = collections.Counter()
    for p in profiles:
        for ids, values, _ in p.samples:
            for i, v in enumerate(values):
                found[i, tuple(name_lines(p, ids))] += v
    return {k: v for k, v in found.items() if v}


def totals(p):
    return [sum(values[i] for _, values, _ in p.samples) for i in range(len(p.types))]


def name_lines(p, ids):
    by_id = {l[1]: l for l in p.locations}
    functions = {f[1]: f for f in p.functions}
    return [(p.strings[functions[line[1]].get(3, 0)] or p.strings[functions[line[1]].get(2, 0)], line.get(2, 0))
            for i in ids for line in by_id[i]["lines"]]


def go(*words):
    r = run(newest_pprof(), "-symbolize=remote", *words, env=dict(ENV, PPROF_TMPDIR=BUILD))
    equal(r.returncode, 0, "%s\n%s" % (words, r.stderr))
    return r.stdout


def same_in_go(path, views=VIEWS):
    for view in views:
        theirs = go("-top", *["-" + {"--top=0": "nodecount=0"}.get(v, v[2:].replace("-", "_")) for v in view],
                    *([] if "--top=0" in view else ["-nodecount=10"]), path)
        ours, wanted = to_the_minute(ctl("profile", path, *view), theirs)
        equal(ours, wanted, view)


@test
def what_others_could_have_written_adds_up_as_go_tool_pprof_does_it():
    need_own_run()
    newest_pprof()
    for seed in range(6):
        r = random.Random(seed)
        types = [("cpu", "nanoseconds"), ("samples", "count")][:r.randint(1, 2)]
        answers = [gzip.compress(any_profile(r, types), mtime=0) for _ in range(3)]
        with tempdir() as d, Servers(answers) as s:
            out = os.path.join(d, "out")
            ctl("profile", "family", "--children", "--raw", "--seconds=1", "-o", out)
            merged = read(out)
            equal(sums(merged), sums(*[Profile(a) for a in answers]), seed)
            need(all(len(l) == 1 and int(l[0]) in s.pids for l in labels_of(merged)), seed)
            same_in_go(out)
            parts = []
            for i, a in enumerate(answers):
                parts.append(os.path.join(d, str(i)))
                with open(parts[-1], "wb") as f:
                    f.write(a)
            together = os.path.join(d, "go")
            go("-proto", "-output=" + together, *parts)
            equal(totals(read(together)), totals(merged), seed)  # its stacks have no frames that are to be dropped


@contextlib.contextmanager
def adopted(d, *words):
    """It ends by itself, and so do its workers."""
    with started([os.path.join(BUILD, SUBJECT), "--enable-pprof", "--profiling-registry", "--profiling-bind-address=unix:%s/%%p.sock" % d, *words],
                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment()) as p:
        try:
            yield p
        finally:
            p.terminate()
            p.wait(DEADLINE)


def family_of(count):
    """Numbers of the processes that have a record, once there are so many: the master first."""
    poll(lambda: len(os.listdir(FOLDER) if os.path.exists(FOLDER) else ()) == count, "%d records" % count)
    found = {}
    for name in os.listdir(FOLDER):
        with open(os.path.join(FOLDER, name)) as f:
            found[int(name.split(".")[0])] = "\nparent 0\n" in f.read()
    return sorted(found, key=lambda pid: not found[pid])


@test
def a_master_and_its_workers_are_one_profile_with_a_label():
    need_own_run()
    with tempdir() as d, adopted(d, "-w", "2") as p:
        pids = family_of(3)
        equal(pids[0], p.pid)
        name, = listed()  # libtool's has another one than the program

        def measured():
            out = os.path.join(d, "out.pb.gz")
            table = ctl("profile", name, "--children", "--seconds=1", "-o", out)
            merged = read(out)
            working = {l[0] for l, (stack, _, _) in zip(labels_of(merged), merged.samples) if "worker_turns" in merged.stack(stack)}
            return working == {str(pid) for pid in pids[1:]} and (out, table, merged)
        out, table, merged = poll(measured, "a sample of each worker")
        contains(table, "worker_turns")
        contains(ctl("profile", out, "--comments"), "processes, whose numbers are the label 'process': 3\n")
        same_in_go(out)
        tags = go("-tags", out)
        need("process" in tags and all(str(pid) in tags for pid in pids[1:]), tags)
        contains(go("-top", "-tagfocus=process=^%d$" % pids[1], out), "worker_turns")
        contains(go("-tree", "-tagroot=process", out), str(pids[2]))
        contains(ctl("profile", str(p.pid), "--children", "--seconds=1", "--folded", "-o", out), ";worker_turns ")
        # Of one worker alone.
        ctl("profile", str(pids[1]), "--children", "--seconds=1", "--raw", "-o", out)
        equal(set(map(tuple, labels_of(read(out)))) - {()}, set(), "one has no workers")
        for kind in "heap", "goroutine", "mutex", "block", "allocs", "threadcreate", "fgprof":
            ctl("profile", name, kind, "--children", "--raw", "--seconds=%d" % (kind == "fgprof"), "-o", out)
            contains(ctl("profile", out, "--comments"), "processes, whose numbers are the label 'process': 3\n")
            same_in_go(out, VIEWS[:1])


def taken(d, *words, kind="profile", status=0):
    """The file, and what was said on stderr."""
    out = os.path.join(d, "out.pb.gz")
    r = run(CTL, "profile", *words, kind, "--children", "--seconds=1", "-o", out, env=environment(), cwd=d)
    equal(r.returncode, status, r.stderr)
    return (read(out) if not status else os.path.exists(out)), r.stderr


@test
def who_goes_away_or_refuses_is_left_out_with_a_word_in_the_profile():
    need_own_run()
    with tempdir() as d, Servers([small(3), small(4)[:40] + b"more", 503, small(9), small(5), b"rubbish"], off={4}) as s:
        p, said = taken(d, "family")
        equal({l[0] for l in labels_of(p)}, {str(s.pids[0]), str(s.pids[3])})
        equal((totals(p), p.all[10]), ([3 + 1 + 9 + 1], [10 ** 9]), "values are added, and the window is one")
        notes = [c for c in p.comments if c.startswith("left out: ")]
        equal(len(notes), 4)
        for i, part in (1, "went away"), (2, "HTTP 503"), (4, "is off"), (5, "is no pprof profile"):
            note = [c for c in notes if "process %d" % s.pids[i] in c]
            need(len(note) == 1 and part in note[0], notes)
            contains(said, note[0].replace("left out", "Left out"))


@test
def what_another_user_says_to_be_of_the_family_is_not_asked():
    need_own_run()
    if os.geteuid() != 0 or "4294967295" not in open("/proc/self/uid_map").read():
        raise Skip("only root can write as somebody else")
    with tempdir() as d, Servers([small(3), small(4)]) as s, started(["setpriv", "--reuid=65534", "--clear-groups", "sleep", "3600"]) as p:
        poll(lambda: os.stat("/proc/%d" % p.pid).st_uid == 65534, "the other user's process")
        path = write_record(p.pid, start_of(p.pid), "id family\nurl http://127.0.0.1:%d/%d/debug/pprof/\napp_port 0\ncreated 1\nparent %d\n" % (
            s.server.server_port, p.pid, s.pids[0]))
        os.chown(path, 65534, 65534)
        merged, said = taken(d, "family")
        equal(({l[0] for l in labels_of(merged)}, said.count("Left out")), ({str(pid) for pid in s.pids}, 0))
        os.unlink(path)


@test
def of_who_goes_away_behind_a_checkpoint_the_last_one_is_kept_with_a_word():
    need_own_run()
    with tempdir() as d, Servers([small(3), [small(4, comments=["early"]), small(5, comments=["late"]), small(9)[:40] + b"more"],
                                  [small(6), small(7)], [small(8), small(9)[:40]]]) as s:
        p, said = taken(d, "family")
        equal(totals(p), [3 + 1 + 5 + 1 + 7 + 1 + 8 + 1])
        equal(sorted({l[0] for l in labels_of(p)}), sorted(map(str, s.pids)))
        need("#process %d: late" % s.pids[1] in p.comments and not [c for c in p.comments if "early" in c or "left out" in c], p.comments)
        equal(said.count("is kept.\n"), 2, said)
        for i in 1, 3:
            need(re.search(r"process %d: the server went away after .*\nWhat it has measured in the first 1\.0 s is kept\.\n" % s.pids[i], said), said)


@test
def comments_that_all_have_stay_and_others_say_whose_they_are_where_no_table_shows_them():
    need_own_run()
    with tempdir() as d, Servers([small(1, comments=("unwinder: tables", "samples: %d" % n)) for n in (1, 2)]) as s:
        p, _ = taken(d, "family")
        equal(p.comments, ["unwinder: tables", "#process %d: samples: 1" % s.pids[0], "#process %d: samples: 2" % s.pids[1],
                           "processes, whose numbers are the label 'process': 2"])
        table = ctl("profile", d + "/out.pb.gz")
        need("unwinder: tables\n" in table and "samples" not in table.replace("Total samples", ""), table)
        contains(ctl("profile", d + "/out.pb.gz", "--comments"), "#process %d: samples: 2\n" % s.pids[1])


@test
def it_is_an_error_where_nobody_answers():
    need_own_run()
    with tempdir() as d, Servers([404, small(1)[:30] + b"more", 404]):
        there, said = taken(d, "family", status=1)
        need(not there, "a file")
        contains(said, "none of 3 processes has answered; process ")
        contains(said, "HTTP 404")


@test
def one_bar_is_for_all_and_an_interrupt_ends_all():
    need_own_run()
    with tempdir() as d, Servers([small(1)] * 3) as s:
        s.together = threading.Barrier(4)  # nobody is answered
        master, slave = pty.openpty()
        with started([CTL, "profile", "family", "--children", "--seconds=1000"], cwd=d, env=environment(), stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL, stderr=slave) as p:
            os.close(slave)
            poll(lambda: s.together.n_waiting == 3, "three questions")
            shown = b""
            while not re.search(rb"\] \d+ s of 1000 s", shown):
                shown += os.read(master, 4096)
            need(b"\n" not in shown, shown)
            p.send_signal(signal.SIGINT)
            equal(p.wait(DEADLINE), -signal.SIGINT)
        os.close(master)
        equal(os.listdir(d), [])


@test
def a_worker_means_those_below_it_and_an_id_without_a_master_all():
    need_own_run()
    for word, expected in (1, {1, 3}), (0, {0, 1, 2, 3}), ("family", {0, 1, 2, 3}):
        with tempdir() as d, Servers([small(i + 1) for i in range(4)], parents=(None, 0, 0, 1)) as s:
            s.together = threading.Barrier(len(expected))
            p, _ = taken(d, str(s.pids[word]) if isinstance(word, int) else word)
            equal({int(l[0]) for l in labels_of(p)}, {s.pids[i] for i in expected})
    with tempdir() as d, Servers([small(i + 1) for i in range(3)], parents=(2, 0, 1)) as s:  # nobody's, and round in a circle
        p, said = taken(d, "family")
        equal((len(set(map(tuple, labels_of(p)))), said.count("Left out")), (3, 0))


@test
def one_alone_is_as_without_and_what_has_no_record_is_refused():
    need_own_run()
    with tempdir() as d, Servers([small(3)]) as s:
        p, _ = taken(d, "family")
        equal((labels_of(p), p.comments), ([[], []], []))
        with open(os.path.join(d, "file"), "wb") as f:
            f.write(small(1))
        for word in "127.0.0.1:%d" % s.server.server_port, "file", str(os.getpid()):
            _, said = taken(d, word, status=2)
            contains(said, "--children finds the processes of a program by their records; write an ID or PID")


if "\n  profile " in run(CTL, "--help", env=environment()).stdout:
    main()
else:
    print("1..0 # SKIP componentctl was built without libcurl")
