#!/usr/bin/env python3
"""goroutine and threads: each thread of the process, in all forms, with its name, its
wait and its creator; and as many in each dump."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *
from pprof_reader import Profile
from serving import *

HEAD = re.compile(r"goroutine (\d+) \[([^\]]+)\]:")


def blocks(text):
    """[(tid, [words in brackets], [(function, place)], creator)] of debug=2, read strictly."""
    found = []
    for block in text.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        if lines[0] == "deadlock:":
            continue
        m = HEAD.fullmatch(lines[0])
        need(m, "head %r" % lines[0])
        frames, creator, i = [], None, 1
        while i < len(lines):
            if lines[i].startswith(("...", "waits for the ")):
                i += 1
                continue
            need(re.fullmatch(r"\t\S.*:\d+( \+0x[0-9a-f]+)?", lines[i + 1]), "place %r" % lines[i + 1])
            if lines[i].startswith("created by "):
                creator = (lines[i][len("created by "):], lines[i + 1].strip())
            else:
                need(lines[i].endswith("(...)"), "frame %r" % lines[i])
                frames.append((lines[i][:-len("(...)")], lines[i + 1].strip()))
            i += 2
        found.append((int(m.group(1)), m.group(2).split(", "), frames, creator))
    return found


def dump(d, query=""):
    r = d.get(PPROF + "goroutine?debug=2" + query)
    equal((r.status, r.headers["content-type"]), (200, TEXT))
    return blocks(r.text)


def by_name(found, name):
    these = [b for b in found if "thread: " + name in b[1]]
    equal(len(these), 1, "threads named " + name)
    return these[0]


def functions(block):
    return [f for f, _ in block[2]]


@test
def every_thread_is_there_once_and_the_one_that_answers_comes_first():
    with server("--burn") as d:
        poll(lambda: sorted(own_threads(d.pid)) == ["component-cfi", "component-http"], "an idle server")
        want = set(threads(d.pid))
        found = dump(d)
        equal(found[0][1], ["running", "thread: component-job"])
        equal({b[0] for b in found[1:]}, want)
        equal(len(found), len(want) + 1)
        main = next(b for b in found if b[0] == d.pid)
        equal(main[1][0], "read")
        contains(functions(main), "main")
        need(any("burn_cycles" in functions(b) and b[1][0] == "running" for b in found), found)
        equal(by_name(found, "component-http")[1][0], "poll")
        contains(functions(by_name(found, "component-cfi")), "start_thread")


@test
def own_0_leaves_out_the_librarys_threads():
    with server() as d:
        # its main thread has written "started", and may be on the way to its read
        poll(lambda: [b[1][0] for b in dump(d, "&own=0")] != ["running"], "the main thread to wait")
        found = dump(d, "&own=0")
        equal([b[1] for b in found], [["read", "thread: profiled_daemon"]])
        equal(len(dump(d, "&own=1")), len(dump(d)))
        contains(d.get(PPROF + "goroutine?debug=1&own=0").text, "goroutine profile: total 1\n")


@test
def the_forms_agree_and_go_tool_pprof_reads_them():
    quiet = "4; quiet=3; signalled=0; silent=0"
    with server() as d:
        for kind in "goroutine", "threads":
            # ours may be working just now, on a machine that has better things to do
            r = poll(lambda: (lambda a: a if a.headers.get("x-component-threads", quiet) == quiet else None)(
                d.get(PPROF + kind)), "a dump that woke nobody")
            equal((r.status, r.headers["content-type"]), (200, BINARY))
            equal(r.headers["content-disposition"], 'attachment; filename="%s"' % kind)
            equal(r.headers["x-component-threads"], quiet)
            text = d.get(PPROF + kind + "?debug=1").text
            need(text.startswith("goroutine profile: total 4\n"), text[:80])
            equal(len(blocks(d.get(PPROF + kind + "?debug=2").text)), 4)
            for name, body in ("binary", r.body), ("text", text.encode()):
                path = os.path.join(d.dir, name)
                with open(path, "wb") as f:
                    f.write(body)
                for pprof in pprofs():
                    contains(pprof("-top", path), "of 4 total")
            for pprof in pprofs():
                contains(pprof("-comments", os.path.join(d.dir, "binary")),
                         "threads: 4, of these 3 read quietly, 0 signalled, 0 gave no answer")
        contains(d.get(PPROF).text, '<a href="goroutine?debug=2">full goroutine stack dump</a>')
        equal(d.get(PPROF + "goroutine?seconds=1&debug=2").status, 400)


@test
def an_idle_process_has_as_many_threads_in_100_dumps_in_a_row():
    with server() as d:
        seen = {re.match(r"goroutine profile: total (\d+)\n", d.get(PPROF + "goroutine?debug=1").text).group(1)
                for _ in range(100)}
        equal(seen, {"4"})


@test
def a_deadlock_shows_both_threads_both_locks_and_who_made_them():
    with server() as d:
        equal(d.command("deadlock"), "0")

        def stuck():
            # one of ours may be in front of a lock, too
            found = [b for b in dump(d, "&own=0") if "sync.Mutex.Lock" in b[1]]
            return found if len(found) == 2 else None
        found = poll(stuck, "the deadlock")
        left, right = by_name(found, "left??hand"), by_name(found, "righthand")
        for block, function in (left, "takes_left_then_right"), (right, "takes_right_then_left"):
            f = functions(block)
            need(any("pthread_mutex_lock" in x or "lll_lock_wait" in x for x in f), f)
            at = f.index("lock_second")
            equal(f[at + 1], function)
            place = dict(block[2])[function]
            need(re.search(r"/profiled_daemon\.c:\d+ \+0x", place), place)
            need(block[3] and block[3][0] == "start_deadlock", block[3])
            contains(block[3][1], "profiled_daemon.c:")


@test
def while_waits_are_timed_no_frame_of_ours_is_below_the_c_librarys():
    with server() as d:
        r = d.get(PPROF + "rates?mutex-profile-fraction=1&block-profile-rate=1", method="POST", body="")
        equal(r.status, 200, r.text)
        equal(d.command("deadlock"), "0")
        found = poll(lambda: (lambda a: a if len(a) == 2 else None)(
            [b for b in dump(d, "&own=0") if "sync.Mutex.Lock" in b[1]]), "the deadlock")
        for block in found:
            f = functions(block)
            need(not [x for x in f if x.startswith(("cold_", "wait_", "on_wait", "begin", "go"))], f)
            at = f.index("lock_second")
            need(any("pthread_mutex_lock" in x for x in f[:at]), f)
            contains(f[at + 1], "takes_")
            equal(f[at + 2:], ["start_thread"] + f[at + 3:])


HOOKS = re.compile(r"/profiler/(hooks/|collect/waits/record\.c)|/libcomponent/base/our_thread\.c")


def frames(raw):
    """(functions, files) of each sample, leaf first."""
    p = Profile(raw)
    for ids, _, _ in p.samples:
        f = [p.functions[l[1] - 1] for i in ids for l in p.locations[i - 1]["lines"]]
        yield [p.strings[x[2]] for x in f], [p.strings[x.get(4, 0)] for x in f]


@test
def no_kind_of_profile_shows_the_hooks_between_the_programs_frames_and_the_c_librarys():
    with server("--burn") as d:
        r = d.get(PPROF + "rates?mutex-profile-fraction=1&block-profile-rate=1&heap-profile-rate=1", method="POST", body="")
        equal(r.status, 200, r.text)
        d.command("leak 10000")  # and from now on each allocation is a sample, also those that make a thread
        equal(d.command("deadlock"), "0")
        equal(d.command("contend 2"), "0")
        poll(lambda: len([b for b in dump(d, "&own=0") if "sync.Mutex.Lock" in b[1]]) == 2, "the deadlock")
        for kind, want in (("fgprof?seconds=1", "takes_left_then_right"), ("profile?seconds=1", "burner"),
                           ("goroutine", "takes_left_then_right"), ("mutex", "hold_contended"),
                           ("block", "wait_for_contended"), ("allocs", "do_leak"), ("threadcreate", "start_deadlock")):
            def seen():  # a busy machine may leave a window without a sample
                found = list(frames(d.get(PPROF + kind).body))
                return found if [f for f, _ in found if want in f] else None
            found = poll(seen, "%s in %s" % (want, kind))
            for functions, files in found:
                need(not [x for x in files[1:] if HOOKS.search(x)], (kind, functions))


@test
def the_librarys_own_waits_are_in_no_block_profile():
    with server() as d:
        r = d.get(PPROF + "rates?mutex-profile-fraction=1&block-profile-rate=1", method="POST", body="")
        equal(r.status, 200, r.text)
        equal(d.command("contend 1"), "0")
        for kind in "profile", "heap":  # each waits for a thread of ours
            equal(d.command("write %s %s 1 0 -" % (os.path.join(d.dir, "written"), kind)).strip(), "0")
        found = [f for f, _ in frames(d.get(PPROF + "block").body)]
        need([f for f in found if "wait_for_contended" in f], found)
        for functions in found:
            need("component_profile_write" not in functions and not functions[0].startswith("job_"), functions)


@test
def a_thread_that_runs_and_takes_no_signal_is_listed_with_name_and_state():
    with server() as d:
        equal(d.command("deaf"), "0")
        poll(lambda: "deaf" in threads(d.pid).values(), "the thread")
        poll(lambda: by_name(dump(d), "deaf")[1][:2] == ["no answer", "state R"], "a dump without its answer")
        equal(by_name(dump(d), "deaf")[2], [])
        r = d.get(PPROF + "goroutine")
        contains(r.headers["x-component-threads"], "silent=1")
        path = os.path.join(d.dir, "binary")
        with open(path, "wb") as f:
            f.write(r.body)
        for pprof in pprofs():
            contains(pprof("-top", path), "[no answer]")
            need(re.search(r'no answer: thread \d+ "deaf", state R', pprof("-comments", path)))


main()
