#!/usr/bin/env python3
"""signals.t - what signals do to a component: stop, stop at once, reload, and
nothing to anybody they are not meant for.  See also tests/programs/life_daemon.c."""
import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402, F403

TERM, INT, HUP, USR1, PIPE = signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGPIPE


def life(*options, do="", wait="info started", **kw):
    env = {"LIFE_DO": do}
    env.update(kw.pop("env", {}))
    d = daemon("tests/programs/life_daemon", *options, port_file=False, env=env, **kw)

    class Both:
        def __enter__(self):
            self.d = d.__enter__()
            if wait:
                self.d.wait_log(wait)
            return self.d

        def __exit__(self, *what):
            return d.__exit__(*what)
    return Both()


def ignoring(*numbers):
    return lambda: [signal.signal(n, signal.SIG_IGN) for n in numbers]


def mask(pid, what):
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith(what + ":"):
                return int(line.split()[1], 16)
    raise AssertionError(what)


def has(bits, number):
    return bool(bits >> (number - 1) & 1)


def has_open(pid, path):
    return path in descriptors(pid).values()


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split()]


def gone(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before or while it is read
        return True


@test
def term_and_int_stop_gracefully_with_status_0():
    for number in TERM, INT:
        with life() as d:
            d.signal(number)
            equal(d.wait(), 0)
            contains(d.output(), "signal received, stopping signal=%s sender=%d" % (number.name, os.getpid()))
            contains(d.output(), "daemon stops")
            contains(d.output(), "info stopped")


@test
def the_second_signal_exits_at_once_with_status_1():
    for first, second in (TERM, TERM), (INT, TERM):
        with life("--graceful-shutdown-timeout=-1s", do="hold") as d:
            d.signal(first)
            d.wait_log("waiting for work to finish")
            d.signal(second)
            equal(d.wait(), 1)
            contains(d.output(), "error second signal to stop, exiting at once signal=%s" % second.name)


@test
def the_second_signal_exits_at_once_when_the_loop_is_stuck():
    with life("--graceful-shutdown-timeout=-1s", do="stick", wait="info stuck") as d:
        d.signal(TERM)
        d.wait_log("signal received, stopping")
        d.signal(TERM)
        equal(d.wait(), 1)


@test
def the_second_signal_exits_at_once_when_nobody_reads_the_log():
    p = subprocess.Popen([program("tests/programs/life_daemon"), "--graceful-shutdown-timeout=-1s"], stderr=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, env=dict(os.environ, LIFE_DO="chatter"))
    try:
        room = fcntl.fcntl(p.stderr, 1032)  # F_GETPIPE_SZ

        def is_full():
            waiting = struct.unpack("i", fcntl.ioctl(p.stderr, termios.FIONREAD, b"\0\0\0\0"))[0]
            return waiting > room - 2 * 4096
        poll(is_full)
        p.send_signal(TERM)
        poll(lambda: not has(mask(p.pid, "ShdPnd") | mask(p.pid, "SigPnd"), TERM))  # two that wait are one
        p.send_signal(TERM)
        equal(p.wait(DEADLINE), 1)
    finally:
        p.kill()
        p.wait()
        p.stderr.close()


@test
def a_stuck_loop_does_not_outlive_the_graceful_time():
    with life("--graceful-shutdown-timeout=100ms", do="stick", wait="info stuck") as d:
        began = time.monotonic()
        d.signal(TERM)
        equal(d.wait(), 1)
        need(time.monotonic() - began < 24, "the 25 s are the profiling server's alone")
        contains(d.output(), "error not finished within 100ms: the event loop, which does not answer")


@test
def work_that_does_not_end_is_named_and_the_status_is_1():
    with life("--graceful-shutdown-timeout=100ms", "--logging-format=logfmt", do="hold",
              wait="started") as d:
        d.signal(TERM)
        equal(d.wait(), 1)
        contains(d.output(), 'level=error msg="not finished within 100ms: endless work"')


@test
def a_signal_during_the_start_is_honoured():
    with tempdir() as t:
        go = os.path.join(t, "go")
        with life(do="slow-start", wait="info starting", env={"LIFE_GO": go}) as d:
            d.signal(TERM)
            d.wait_log("signal received, stopping")
            open(go, "w").close()
            equal(d.wait(), 0)
            contains(d.output(), "daemon stops")
        with life(do="slow-start", wait="info starting", env={"LIFE_GO": go + "2"}) as d:
            d.signal(HUP)
            d.wait_log("signal received, reloading")
            open(go + "2", "w").close()
            d.wait_log("daemon reloads")
            equal(d.stop(), 0)


@test
def hup_reloads_and_never_exits():
    with life() as d:
        for n in range(1, 4):
            d.signal(HUP)
            poll(lambda: d.output().count("info reloaded") == n)
        equal(d.output().count("daemon reloads"), 3)
        equal(d.stop(), 0)
    with life(do="bad-reload") as d:
        d.signal(HUP)
        d.wait_log('reload failed, going on with what was before error="rules.conf:3: what is this"')
        equal(d.stop(), 0)


@test
def hup_reads_the_config_again_keeps_the_old_one_when_it_is_bad_and_reopens_the_log():
    with tempdir() as t:
        config, log = os.path.join(t, "c.yaml"), os.path.join(t, "log")

        def write(content):
            with open(config, "w") as f:
                f.write(content)
        write("logging-format: text\n")
        with life("--config=" + config, "--log-file=" + log, wait=None) as d:
            poll(lambda: os.path.exists(log) and "info started" in text_of(log))
            os.rename(log, log + ".1")
            write("logging-format: json\n")
            d.signal(HUP)
            poll(lambda: os.path.exists(log) and '"msg":"reloaded"' in text_of(log))
            write("logging-format: [\n")
            d.signal(HUP)
            poll(lambda: '"msg":"reload failed' in text_of(log))
            contains(text_of(log), "c.yaml")
            equal(d.stop(), 0)
            contains(text_of(log), '"msg":"stopped"')


@test
def hup_during_a_stop_reopens_the_log():
    with tempdir() as t:
        log = os.path.join(t, "log")
        with life("--log-file=" + log, "--graceful-shutdown-timeout=-1s", do="hold", wait=None) as d:
            poll(lambda: os.path.exists(log) and "info started" in text_of(log))
            d.signal(TERM)
            poll(lambda: "waiting for work to finish" in text_of(log))
            os.rename(log, log + ".1")
            d.signal(HUP)
            poll(lambda: os.path.exists(log) and not has_open(d.pid, log + ".1"))
            d.signal(TERM)
            equal(d.wait(), 1)
            contains(text_of(log), "second signal to stop")


@test
def hup_and_int_that_are_ignored_at_the_start_stay_ignored():
    with life(preexec_fn=ignoring(HUP, INT)) as d:
        ignored = mask(d.pid, "SigIgn")
        need(has(ignored, HUP) and has(ignored, INT), "ignored: %x" % ignored)
        d.signal(HUP)
        d.signal(INT)
        equal(d.stop(), 0)
        need("signal received, reloading" not in d.output())
        contains(d.output(), "signal=SIGTERM")


@test
def under_nohup_a_hang_up_is_not_noticed():
    p = subprocess.Popen(["nohup", program("tests/programs/life_daemon")], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        text = ""
        while "info started" not in text:
            line = p.stdout.readline()
            need(line, text)
            text += line
        p.send_signal(HUP)
        p.send_signal(TERM)
        text += p.stdout.read()
        equal(p.wait(DEADLINE), 0)
        need("SIGHUP" not in text, text)
    finally:
        p.kill()
        p.wait()


@test
def term_ignored_by_whoever_started_it_is_taken_all_the_same():
    with life(preexec_fn=ignoring(TERM, USR1)) as d:
        d.signal(TERM)
        equal(d.wait(), 0)


@test
def a_handler_that_was_there_is_never_replaced():
    with life(do="own-hup") as d:
        contains(d.output(), "warning signal has a handler already, left to it signal=SIGHUP")
        d.signal(HUP)
        d.wait_log("own handler")
        need("reloaded" not in d.output())
        equal(d.stop(), 0)


@test
def a_signal_the_daemon_keeps_is_left_alone():
    with life(do="leave-term") as d:
        caught = mask(d.pid, "SigCgt")
        need(not has(caught, TERM) and not has(caught, INT) and has(caught, HUP))
        d.signal(TERM)
        equal(d.wait(), -TERM)


@test
def quit_and_usr2_keep_their_defaults():
    with life() as d:
        caught = mask(d.pid, "SigCgt") | mask(d.pid, "SigIgn")
        need(not has(caught, signal.SIGQUIT) and not has(caught, signal.SIGUSR2))
        for number in TERM, INT, HUP, USR1, PIPE:
            need(has(caught, number), number.name)


@test
def usr1_calls_what_was_set_for_it_on_the_loop():
    with life(do="usr1") as d:
        for n in range(1, 4):
            d.signal(USR1)
            poll(lambda: d.output().count("info toggled arg=") == n)
        equal(d.stop(), 0)
    with life() as d:
        d.signal(USR1)
        d.wait_log("nothing is set to be done on this signal")
        equal(d.stop(), 0)


@test
def a_broken_pipe_is_an_error_and_not_an_end():
    with life(do="ignore-pipe-write") as d:
        contains(d.output(), "broken pipe number=32")
        d.signal(PIPE)
        equal(d.stop(), 0)


@test
def programs_it_runs_have_nothing_blocked_or_ignored():
    with life(do="exec") as d:
        lines = dict(line.split() for line in d.output().splitlines() if line.startswith("Sig"))
        equal(int(lines["SigBlk:"], 16), mask(os.getpid(), "SigBlk"))
        # No more than we were started with; Python ignores PIPE, but not for what it runs.
        more = int(lines["SigIgn:"], 16) & ~mask(os.getpid(), "SigIgn")
        need(not more and not has(int(lines["SigIgn:"], 16), PIPE), lines)


@test
def a_forked_child_has_no_descriptor_of_ours_and_default_signals():
    with tempdir() as t:
        log = os.path.join(t, "log")
        with life("--log-file=" + log, do="child", wait=None) as d:
            poll(lambda: os.path.exists(log) and "child waits" in text_of(log) and "info started" in text_of(log))
            ours = descriptors(d.pid)
            need(any("eventpoll" in v for v in ours.values()), ours)
            poll(lambda: "component-sig" in threads(d.pid).values())
            child = children(d.pid)[0]
            try:
                # The child logged, so it has opened the log for itself.
                equal(sorted(v for n, v in descriptors(child).items() if n > 2), [log])
                caught = mask(child, "SigCgt")
                need(not has(caught, TERM) and not has(caught, HUP) and not has(caught, INT))
                equal(list(threads(child).values()), ["life_daemon"])
                os.kill(child, TERM)
                poll(lambda: gone(child))
            finally:
                if not gone(child):
                    os.kill(child, signal.SIGKILL)
            need("signal received" not in text_of(log), text_of(log))
            equal(d.stop(), 0)


@test
def a_forked_child_cannot_drive_its_parents_loop_and_may_free_it():
    with life(do="drive") as d:
        contains(d.output(), "child ended with number=42")
        d.signal(HUP)
        d.wait_log("info reloaded")
        equal(d.stop(), 0)


@test
def daemon_3_between_parsing_and_starting_leaves_a_whole_daemon():
    with tempdir() as t:
        pid_file, log = os.path.join(t, "pid"), os.path.join(t, "log")
        with life("--pid-file=" + pid_file, "--log-file=" + log, do="daemonize usr1", wait=None) as d:
            equal(d.wait(), 0)
            poll(lambda: os.path.exists(log) and "info started" in text_of(log))
            with open(pid_file) as f:
                pid = int(f.read())
            try:
                need(pid != d.pid)
                poll(lambda: "component-sig" in threads(pid).values())
                os.kill(pid, USR1)
                poll(lambda: "toggled" in text_of(log))
                os.kill(pid, HUP)
                poll(lambda: "info reloaded" in text_of(log))
                os.kill(pid, TERM)
                poll(lambda: "info stopped" in text_of(log))
                poll(lambda: gone(pid))
                need(not os.path.exists(pid_file))
            finally:
                if not gone(pid):
                    os.kill(pid, signal.SIGKILL)


@test
def daemon_3_in_start_is_too_late_and_is_told():
    with life(do="late", wait="call daemon(3) before the component starts") as d:
        equal(d.wait(), 0)


@test
def it_ends_with_no_thread_or_signal_left_behind_under_many_signals():
    with life("--graceful-shutdown-timeout=5s", do="usr1") as d:
        for _ in range(200):
            d.signal(USR1)
            d.signal(HUP)
        d.wait_log("info reloaded")
        equal(d.stop(), 0)


main()
