#!/usr/bin/env python3
"""hanging_daemon.t - QUIT and USR2 print every thread's stack, of a daemon in which all threads
hang, with the locks of malloc, of the loader and of stderr held.  See tests/programs/hanging_threads.c."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402, F403

QUIT, USR2 = signal.SIGQUIT, signal.SIGUSR2
HEAD = re.compile(r"^goroutine \d+ \[([^\]]+)\]:$", re.M)
HOLDERS = ("holds_malloc", "holds_object_list", "holds_loader", "holds_stderr", "stick")


def stuck(*options, env=None, **kw):
    plugin = os.path.join(BUILD, "tests/programs/.libs/hanging_plugin.so")
    need(os.path.exists(plugin), plugin)
    d = daemon("tests/programs/hanging_threads", *options, port_file=False,
               env=dict(env or {}, STUCK_PLUGIN=plugin), **kw)

    class Both:
        def __enter__(self):
            self.d = d.__enter__()
            self.d.wait_log("all stuck")
            return self.d

        def __exit__(self, *what):
            return d.__exit__(*what)
    return Both()


def complete(text, count):
    """Each thread that hangs is in the text, with the function that it hangs in, so many times."""
    return len(HEAD.findall(text)) >= 6 * count and all(text.count("\n%s(...)\n" % f) >= count for f in HOLDERS)


def check_text(text):
    contains(text, "[sync.Mutex.Lock, thread: hanging_threads]:\n")
    need(re.search(r"^stick\(\.\.\.\)\n\t\S+/hanging_threads\.c:\d+ \+0x[0-9a-f]+$", text, re.M), text)
    contains(text, "never_loaded(...)\n")
    need(re.search(r"thread: component-sig\]:", text), text)
    last = [name.startswith("component-") for name in re.findall(r"^goroutine .*thread: ([^,\]]+)", text, re.M)]
    need(sorted(last) == last, "threads of the library come last")
    contains(text, WAITS)


# Which lock the first thread waits for is not said by a dump that meets it running: the signal may have come to
# that very thread, which is on its way back into the lock.
WAITS = "\nwaits for the mutex at 0x"
TRIES = 20


@test
def quit_prints_every_thread_and_exits_2_while_all_threads_hang():
    for options in (), ("--enable-pprof", "--profiling-bind-address=127.0.0.1:0"):
        text = ""
        for _ in range(TRIES):
            text = quit_text(options)
            if WAITS in text:
                break
        check_text(text)


def quit_text(options):
    with stuck(*options) as d:
        d.signal(QUIT)
        equal(d.wait(), 2, options)
        text = d.output()
        need(re.search(r"^hanging_threads 0, pid %d, \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\nSIGQUIT: quit\n\n(deadlock:|goroutine )"
                       % d.pid, text, re.M), text)
        need(complete(text, 1), text)
        return text


@test
def usr2_prints_the_same_and_goes_on():
    with stuck() as d:
        before = set(descriptors(d.pid))
        for n in range(1, TRIES):
            if n > 3 and WAITS in d.output()[d.output().rindex("hanging_threads 0, pid"):]:
                break
            d.signal(USR2)
            poll(lambda: complete(d.output(), n), "dump number %d" % n)
            equal(len(re.findall(r"^hanging_threads 0, pid %d, \S+Z\n\n" % d.pid, d.output(), re.M)), n)
        check_text(d.output()[d.output().rindex("hanging_threads 0, pid"):])
        need("SIGQUIT" not in d.output())
        poll(lambda: set(descriptors(d.pid)) == before, "the descriptors of before")
        d.signal(QUIT)
        equal(d.wait(), 2)


@test
def the_second_quit_exits_at_once_when_nobody_reads_the_dump():
    r, w = os.pipe()
    os.set_blocking(w, False)
    plugin = os.path.join(BUILD, "tests/programs/.libs/hanging_plugin.so")
    p = subprocess.Popen([program("tests/programs/hanging_threads")], stderr=w, stdin=subprocess.DEVNULL,
                         env=dict(os.environ, STUCK_PLUGIN=plugin))
    try:
        text = b""

        def said():
            nonlocal text
            text += os.read(r, 4096)
            return b"all stuck" in text
        poll(said)
        try:
            while True:
                os.write(w, b"x" * 4096)
        except BlockingIOError:
            pass
        p.send_signal(QUIT)
        poll(lambda: not pending(p.pid, QUIT))
        p.send_signal(QUIT)
        equal(p.wait(DEADLINE), 2)
    finally:
        p.kill()
        p.wait()
        os.close(r)
        os.close(w)


def pending(pid, number):
    with open("/proc/%d/status" % pid) as f:
        bits = [int(line.split()[1], 16) for line in f if line.startswith(("ShdPnd:", "SigPnd:"))]
    return any(b >> (number - 1) & 1 for b in bits)


@test
def handlers_of_the_program_stay():
    with stuck(env={"STUCK_OWN_SIGNALS": "1"}) as d:
        for n, number in enumerate((QUIT, USR2), 1):
            d.signal(number)
            poll(lambda: d.output().count("own handler\n") == n)
        need("goroutine" not in d.output(), d.output())


main()
