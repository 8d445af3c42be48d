#!/usr/bin/env python3
"""componentctl enable and disable: of daemons by SIGUSR1, of what run has started by a line in its record."""
import contextlib
import errno
import json
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from pprof_reader import Profile  # noqa: E402
from records import *  # noqa: E402,F403

own_run()
PYTHON = os.path.realpath(sys.executable)
OFF = "is off; 'componentctl enable "


def state(name="obedient_daemon"):
    row = listed()[name]
    return row["daprPort"], row["address"]


@test
def enable_and_disable_switch_a_running_daemon_which_stays_in_the_list():
    need_own_run()
    with recorded() as d:
        on = d.port, "http://127.0.0.1:%d" % d.port
        equal(ctl("enable", "obedient_daemon"), "profiling of obedient_daemon is on: %s\n" % on[1], "it is already")
        equal(ctl("disable", "obedient_daemon"), "profiling of obedient_daemon is off\n")
        equal(state(), (0, "off"))
        with socket.socket() as s:
            need(s.connect_ex(("127.0.0.1", d.port)) != 0, "nothing listens")
        equal(ctl("disable", str(d.pid)), "profiling of obedient_daemon is off\n", "it is already")
        row = ctl("list").splitlines()[1].split()
        equal((row[0], row[1], row[-1]), ("obedient_daemon", "0", str(d.pid)))
        ctl("enable", str(d.pid))
        port, address = state()
        equal(address, "http://127.0.0.1:%d" % port)
        contains(run("curl", "-sS", address + "/debug/pprof/cmdline").stdout, "obedient_daemon")
        ctl("disable", "obedient_daemon")
        equal((d.stop(), records()), (0, []))


@test
def what_is_off_from_its_start_is_found_and_switched_on():
    need_own_run()
    with daemon(SUBJECT, "--profiling-registry", "--profiling-bind-address=127.0.0.1:0", port_file=False) as d:
        poll(lambda: "obedient_daemon" in listed(), "its record")
        equal(state(), (0, "off"))
        contains(ctl("profile", "obedient_daemon", status=1), OFF)
        contains(ctl("enable", "obedient_daemon"), "is on: http://127.0.0.1:")
        d.wait_log("starting profiling server")


@test
def several_at_once_who_enable_are_one():
    need_own_run()
    with recorded() as d:
        for word, port in ("disable", False), ("enable", True), ("disable", False):
            for result in [in_background(ctl, word, str(d.pid)) for _ in range(6)]:
                result.result()
            equal(bool(state()[0]), port, word)


@test
def what_has_no_switch_is_left_alone_and_that_is_said():
    need_own_run()
    with started(["sleep", "1000"]) as p:
        path = write_record(p.pid, start_of(p.pid), "id mine\nurl http://127.0.0.1:1\n")
        contains(ctl("disable", "mine", status=1), "has no switch, as its signals are its own; start it again with profiling off, as by "
                 "'componentctl run --enable-profiling=false'")
        equal(ctl("enable", "mine"), "profiling of mine is on: http://127.0.0.1:1\n")
        os.unlink(path)
    contains(ctl("enable", "nosuch", status=1), "couldn't find app id nosuch")
    contains(ctl("disable", str(os.getpid()), status=1), "process %d has no record" % os.getpid())
    contains(ctl("disable", status=2), "write componentctl disable ID|PID")


@test
def who_is_said_to_take_the_signal_and_does_not_is_not_ended_by_it():
    need_own_run()
    with recorded():
        with started(["sleep", "1000"]) as p:
            path = write_record(p.pid, start_of(p.pid), "id liar\nurl off\napp_port 0\ncreated 1\ntakes USR1\n")
            contains(ctl("enable", "liar", status=1), "has no switch")
            equal(p.poll(), None)
            write_record(os.getpid(), start_of(p.pid), "id reused\nurl off\napp_port 0\ncreated 1\ntakes USR1\n")
            contains(ctl("enable", "reused", status=1), "couldn't find app id reused")
            os.unlink(path)


@test
def an_address_that_cannot_be_had_leaves_it_off():
    need_own_run()
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
        with daemon(SUBJECT, "--enable-pprof", "--profiling-registry", "--profiling-on-error=warn",
                    "--profiling-bind-address=127.0.0.1:%d" % port, port_file=False):
            poll(lambda: "obedient_daemon" in listed(), "its record")
            equal(state(), (0, "off"))
            s.close()
            equal(ctl("enable", "obedient_daemon"), "profiling of obedient_daemon is on: http://127.0.0.1:%d\n" % port)


# ---- of what run has started ----

@contextlib.contextmanager
def running(*words):
    """A program under run that ends with its standard input."""
    with started_by_ctl("--app-id=mine", *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        said_at_start(p.stderr)
        yield p
        p.stdin.close()
        equal(p.wait(DEADLINE), 0)


def refuses(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def can_be_had(port):
    try:
        socket.create_server(("127.0.0.1", port)).close()  # with SO_REUSEADDR
    except OSError as e:
        equal(e.errno, errno.EADDRINUSE)
        return False
    return True


def asked(address, path, *words):
    """Its status."""
    return run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", *words, address + "/debug/pprof/" + path).stdout


@test
def a_program_under_run_is_switched_off_and_on_and_keeps_its_port():
    need_own_run()
    for words in [], ["--profile-port=%d" % free_port()]:
        with running(*words, "--", "cat"):
            address, port = listed()["mine"]["address"], listed()["mine"]["daprPort"]
            equal(asked(address, "rates", "-d", "mutex-profile-fraction=7"), "200")
            rates = run("curl", "-sS", address + "/debug/pprof/rates").stdout
            contains(rates, "mutex-profile-fraction=7")
            for again in range(2):
                equal(ctl("disable", "mine"), "profiling of mine is off\n")
                equal((state("mine"), refuses(port)), ((0, "off"), True))
                if words or again:  # the kernel takes one back that it had chosen, once
                    need(not can_be_had(port), "nobody else can have it meanwhile")
                contains(ctl("profile", "mine", "heap", status=1), OFF)
                equal(ctl("enable", "mine"), "profiling of mine is on: %s\n" % address)
                equal(run("curl", "-sS", address + "/debug/pprof/rates").stdout, rates, "rates are what they were")
        equal(os.listdir(FOLDER), [])


@test
def while_it_is_off_nothing_is_sampled():
    need_own_run()
    program = """
import sys
for line in sys.stdin:
    held = [bytearray(1 << 20) for _ in range(64)]
    del held
    print("done", flush=True)
"""
    def allocated():
        out = ctl("profile", "mine", "allocs", "--raw", "-o", file)
        equal(out, "")
        with open(file, "rb") as f:
            p = Profile(f.read())
        return sum(values[1] for _, values, _ in p.samples)

    def allocate():
        p.stdin.write("go\n")
        p.stdin.flush()
        equal(p.stdout.readline(), "done\n")
    with tempdir() as d, running("--", PYTHON, "-c", program) as p:
        file = os.path.join(d, "p.pb.gz")
        allocate()
        before = allocated()
        need(before >= 32 << 20, before)  # it is 64 MiB, give or take a few
        ctl("disable", "mine")
        allocate()
        ctl("enable", "mine")
        need(allocated() < before + (32 << 20), "what was allocated meanwhile is not there")
        allocate()
        need(allocated() >= before + (32 << 20), "what is allocated from then on is")


@test
def an_open_window_ends_with_what_was_measured():
    need_own_run()
    with tempdir() as d, running("--", "cat"):
        pid, file = listed()["mine"]["pid"], os.path.join(d, "p.pb.gz")
        with started([CTL, "profile", "mine", "--seconds=3600", "--comments", "-o", file], env=environment(), stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True) as c:
            window_opens(pid)
            ctl("disable", "mine")
            out, err = c.communicate(timeout=DEADLINE)
        equal(c.returncode, 0, err)
        contains(out, "profiling was switched off meanwhile")
        with open(file, "rb") as f:
            need(Profile(f.read()).all[10][0] < 3600e9, out)


@test
def a_port_that_was_chosen_freely_and_is_anothers_by_then_is_replaced():
    need_own_run()
    with running("--", "cat"):
        port = listed()["mine"]["daprPort"]
        ctl("disable", "mine")
        with socket.create_server(("127.0.0.1", port)):
            ctl("enable", "mine")
            now = listed()["mine"]
            need(now["daprPort"] not in (0, port) and now["address"] == "http://127.0.0.1:%d" % now["daprPort"], now)
            equal(asked(now["address"], "cmdline"), "200")


@test
def at_a_stop_windows_end_where_it_serves_by_then_and_not_at_the_port_that_it_had():
    need_own_run()
    program = "import os, signal\nos.close(0)\nsignal.pause()"  # which does not handle TERM
    with started_by_ctl("--app-id=mine", "--", PYTHON, "-c", program) as p, tempdir() as d:
        said_at_start(p.stderr)
        port = listed()["mine"]["daprPort"]
        ctl("disable", "mine")
        with socket.create_server(("127.0.0.1", port)) as other:
            ctl("enable", "mine")
            with started([CTL, "profile", "mine", "--seconds=3600", "-o", d + "/p.pb.gz"], env=environment(), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True) as c:
                window_opens(listed()["mine"]["pid"])
                p.terminate()
                _, err = c.communicate(timeout=DEADLINE)
                equal(c.returncode, 0, err)
            equal(p.wait(DEADLINE), 128 + signal.SIGTERM)
            other.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                other.accept()
                raise AssertionError("the other one was asked")
        with open(d + "/p.pb.gz", "rb") as f:
            contains("\n".join(Profile(f.read()).comments), "the program ended meanwhile")


@test
def children_that_are_followed_are_switched_with_their_parent_and_one_alone():
    need_own_run()
    program = """
import os, sys, time
pid = os.fork()
while not pid:
    time.sleep(0.01)
sys.stdin.read()
os.kill(pid, 9)
os.waitpid(pid, 0)
"""
    def addresses():
        return {r["pid"]: r["address"] for r in json.loads(ctl("list", "-o", "json"))}
    with running("--follow-forks", "--", PYTHON, "-c", program):
        on = poll(lambda: len(addresses()) == 2 and addresses(), "two records")
        child, = [pid for pid, address in on.items() if address.startswith("unix:")]
        path = on[child][len("unix:"):]
        ctl("disable", "mine")
        equal(set(addresses().values()), {"off"})
        equal(asked("http://a", "cmdline", "--unix-socket", path), "503", "its socket tells its user so")
        ctl("enable", str(child))
        equal((addresses()[child], sorted(addresses().values())[0]), (on[child], "off"))
        equal(asked("http://a", "cmdline", "--unix-socket", path), "200")
        ctl("enable", "mine")
        equal(addresses(), on)


def low_numbers(pid):
    return {n for n in os.listdir("/proc/%d/fd" % pid) if int(n) < 100}


def switched_around(program, word):
    """Off, then the program does that, and then on and off."""
    with running("--", PYTHON, "-c", program) as p:
        pid = listed()["mine"]["pid"]
        ctl("disable", "mine")
        p.stdin.write(word + "\n")
        p.stdin.flush()
        equal(p.stdout.readline(), "0\n")
        for _ in range(2):
            contains(ctl("enable", "mine"), "is on: http://")
            equal(asked(listed()["mine"]["address"], "cmdline"), "200")
            ctl("disable", "mine")
        equal(low_numbers(pid), {"0", "1", "2"}, "its numbers are its own")


@test
def it_is_switched_before_and_after_our_threads_had_to_end_for_it():
    need_own_run()
    program = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for line in sys.stdin:
    r = libc.unshare(0x10000000)  # CLONE_NEWUSER, which one thread alone may
    if line == "close\\n":
        os.closerange(3, 4096)
    print(r, flush=True)
"""
    with started([PYTHON, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        if p.communicate("go\n", timeout=DEADLINE)[0] != "0\n":
            raise Skip("no user namespace can be had here")
    for word in "go", "close":  # and it may close all of our descriptors then
        switched_around(program, word)


@test
def it_is_switched_when_it_has_another_user_or_root_by_then():
    need_own_run()
    if os.geteuid() != 0:
        raise Skip("only root can become somebody else")
    program = """
import os, sys
for line in sys.stdin:
    exec(line)
    print("0", flush=True)
"""
    with tempdir() as d:
        for change in "os.chroot(%r); os.chdir('/')" % d, "os.setgroups([]); os.setgid(65534); os.setuid(65534)":
            switched_around(program, change)
    equal((ctl("list"), os.listdir(FOLDER)), ("No Dapr instances found.\n", []))


@test
def a_worker_that_has_no_switch_is_no_fault_of_its_parents():
    need_own_run()
    with recorded() as d, started(["sleep", "1000"]) as worker:
        path = write_record(worker.pid, start_of(worker.pid), "id obedient_daemon\nurl unix:/nowhere\nparent %d\n" % d.pid)
        equal(ctl("disable", "obedient_daemon"), "profiling of obedient_daemon is off\n")
        os.unlink(path)


@test
def what_is_no_word_in_a_record_changes_nothing():
    need_own_run()
    with running("--", "cat"):
        address = listed()["mine"]["address"]
        name, = os.listdir(FOLDER)
        for text in "profiling maybe\n", "profiling off", "x" * 5000, "\0\n", "profiling off\nprofiling on\n":
            with open(os.path.join(FOLDER, name), "a") as f:
                f.write(text)
            for _ in range(3):  # each is a look at the record
                equal(asked(address, "cmdline"), "200", repr(text[:20]))
            equal(os.listdir(FOLDER), [name])
    equal((ctl("list"), os.listdir(FOLDER)), ("No Dapr instances found.\n", []), "nor does it stay")


@test
def a_word_that_is_lost_is_said_again():
    need_own_run()  # it is where the program writes its record just then
    off = "id mine\nurl off\napp_port 0\ncreated 1\nparent 0\ntakes words\n"
    with started(["sleep", "600"]) as program:
        path = write_record(program.pid, start_of(program.pid), off)
        with started([CTL, "enable", "mine"], env=environment(), stdout=subprocess.PIPE, text=True) as enable:
            for answer in off, off.replace("url off", "url http://127.0.0.1:1"):
                poll(lambda: "profiling on" in text_of(path), "the word")
                with open(path, "r+") as f:
                    f.truncate(f.write(answer))
            equal(enable.communicate()[0], "profiling of mine is on: http://127.0.0.1:1\n")
        os.unlink(path)


@test
def a_program_under_a_filter_of_its_own_is_left_as_it_is():
    need_own_run()
    if run(PYTHON, "-c", FILTER + "confine()").returncode:
        raise Skip("this kernel has no seccomp")
    with running("--", PYTHON, "-c", FILTER + "confine()\nprint('confined', flush=True)\nsys.stdin.read()") as p:
        equal(p.stdout.readline(), "confined\n")
        address = listed()["mine"]["address"]
        name, = os.listdir(FOLDER)
        with open(os.path.join(FOLDER, name), "a") as f:
            f.write("profiling off\n")
        for _ in range(3):  # each is a look at the record
            equal(asked(address, "cmdline"), "200")
        equal(p.poll(), None)


main()
