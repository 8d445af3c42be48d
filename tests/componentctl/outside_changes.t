#!/usr/bin/env python3
"""componentctl profile PID and dump PID of what changes while it is looked at: its program, its threads; and of what
the kernel gives little room for."""
import os
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from busy import Busy  # noqa: E402

own_run()
ROOT = os.geteuid() == 0
SUBJECT = os.path.join(SRC, "tests/programs/looked_at_twice.c")
SOMEBODY = 61234  # whose locked memory nobody else's tests take
AS_SOMEBODY = ["setpriv", "--reuid=%d" % SOMEBODY, "--regid=%d" % SOMEBODY, "--clear-groups"]
PAGES_OF_A_RING = 129  # kernel.perf_event_mlock_kb, 516 as the kernel comes: for each processor


def built(folder, function):
    os.chmod(folder, 0o755)
    path = os.path.join(folder, function)
    r = run(*CC.split(), "-O1", "-g", "-pthread", "-static", "-no-pie", "-fno-pie", "-DBURNS=" + function, "-o", path, SUBJECT)
    equal(r.returncode, 0, r.stderr)
    return path


def folded(file):
    r = run(CTL, "profile", file, "--folded", env=environment())
    equal(r.returncode, 0, r.stderr)
    return r.stdout


@test
def a_program_that_becomes_another_one_ends_the_window_and_keeps_its_names():
    need_perf()
    for how in "exec", "exec-from-thread":
        with tempdir() as d, Busy([built(d, "burns_first"), how, built(d, "burns_second")]) as b:
            file = os.path.join(d, "p.pb.gz")
            with started([CTL, "profile", str(b.p.pid), "--seconds=3600", "--comments", "-o", file], env=environment(),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
                cpu = lambda: int(text_of("/proc/%d/stat" % b.p.pid).rsplit(")", 1)[1].split()[11])  # noqa: E731
                equal(p.stderr.readline(), "Process %d serves no profiles; it is looked at from outside.\n" % b.p.pid)
                poll(lambda: any("perf_event" in (readlink(fd) or "") for fd in fds_of(p.pid)), "its events")
                before = cpu()
                poll(lambda: cpu() > before + 50, "half a second of its time")
                b.p.stdin.write(b"\n")
                b.p.stdin.flush()
                out, err = p.communicate(timeout=DEADLINE)
            equal(p.returncode, 0, err)
            contains(out, "the process began another program meanwhile")
            stacks = folded(file)
            contains(stacks, "burns_first")
            need("burns_second" not in stacks, (how, stacks))
            # And a window after it is of the other one.
            r = run(CTL, "profile", str(b.p.pid), "--seconds=1", "--folded", "-o", file, env=environment())
            need("burns_first" not in r.stdout, r.stdout)
            b.p.kill()


def fds_of(pid):
    folder = "/proc/%d/fd" % pid
    return [os.path.join(folder, n) for n in os.listdir(folder)]


def readlink(path):
    try:
        return os.readlink(path)
    except OSError:
        return None


@test
def a_user_who_may_lock_no_memory_sees_his_own():
    if not ROOT:
        raise Skip("this needs root")
    if int(text_of("/proc/sys/kernel/perf_event_paranoid")) > 2:
        raise Skip("kernel.perf_event_paranoid keeps perf for root")
    if int(text_of("/proc/sys/kernel/perf_event_mlock_kb")) < PAGES_OF_A_RING * os.sysconf("SC_PAGESIZE") // 1024:
        raise Skip("kernel.perf_event_mlock_kb is less than a ring of this size")
    need_perf()
    with tempdir() as d:
        program = built(d, "burns_first")
        if run(*AS_SOMEBODY, CTL, "--version", env=environment()).returncode:
            raise Skip("another user cannot enter the build's folder")
        with Busy([*AS_SOMEBODY, program, "threads", "1"]) as b, tempdir() as his:
            os.chown(his, SOMEBODY, SOMEBODY)
            r = run(*AS_SOMEBODY, "prlimit", "--memlock=0:0", CTL, "profile", str(b.p.pid), "--seconds=1", "--folded", "-o",
                    os.path.join(his, "p"), env=environment())
            b.p.kill()
        equal(r.returncode, 0, r.stderr)


@test
def a_dump_finds_who_runs_among_as_many_threads_as_its_table_has_rows():
    need_perf()
    with tempdir() as d:
        program = built(d, "burns_first")
        for threads in 256, 512:
            with Busy([program, "threads", str(threads)]) as b:
                poll(lambda: len(os.listdir("/proc/%d/task" % b.p.pid)) == threads, "its threads")

                def main_runs():
                    r = run(CTL, "dump", str(b.p.pid), env=environment())
                    equal(r.returncode, 0, r.stderr)
                    equal(len(re.findall(r"^goroutine ", r.stdout, re.M)), threads)
                    return "burns_first(...)" in r.stdout
                poll(main_runs, "the stack of the one that runs")
                b.p.kill()


REPLACED = """
import os, sys, threading
def burns():
    while True:
        pass
ends = threading.Event()
def ending():
    ends.wait()
old = [threading.Thread(target=ending, daemon=True) for _ in range(100)]
for t in old: t.start()
print("started", flush=True)
sys.stdin.readline()
new = threading.Thread(target=burns, daemon=True)
new.start()
sys.stdin.readline()
ends.set()
for t in old: t.join()
threading.Event().wait()
"""


@test
def what_ended_threads_had_is_given_to_new_ones():
    need_perf()
    processors = os.sysconf("SC_NPROCESSORS_CONF")
    limit = 40 + 102 * processors  # room for the first hundred and one threads
    with tempdir() as d, Busy([sys.executable, "-c", REPLACED]) as b:
        file = os.path.join(d, "p.pb.gz")
        with started(["prlimit", "--nofile=%d:%d" % (limit, limit), CTL, "profile", str(b.p.pid), "--seconds=3600", "-o", file],
                     env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            events = lambda: sum("perf_event" in (readlink(fd) or "") for fd in fds_of(p.pid))  # noqa: E731
            poll(lambda: events() >= 101 * processors, "the events of all")
            # What is left is taken by others, so the new thread finds nothing.
            run("prlimit", "--pid", str(p.pid), "--nofile=%d:%d" % (len(fds_of(p.pid)), limit))
            b.p.stdin.write(b"\n")
            b.p.stdin.flush()
            cpu = lambda: int(text_of("/proc/%d/stat" % b.p.pid).rsplit(")", 1)[1].split()[11])  # noqa: E731
            before = cpu()
            poll(lambda: cpu() > before + 20, "the new one's time")
            b.p.stdin.write(b"\n")
            b.p.stdin.flush()
            poll(lambda: len(os.listdir("/proc/%d/task" % b.p.pid)) == 2, "the end of the old ones")
            poll(lambda: events() <= 2 * processors + processors, "what they had, given back")
            before = cpu()
            poll(lambda: cpu() > before + 50, "half a second of the new one's time")
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=DEADLINE)
        equal(p.returncode, 0, err)
        seen = {line.rsplit(" ", 1)[0] for line in folded(file).splitlines()}
        need(any(s and not s.startswith("[lost") for s in seen), seen)
        b.p.kill()


main()
