#!/usr/bin/env python3
"""The four ways into the library, each as a program of its own, from outside."""
import ctypes
import json
import os
import re
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

HELLO, OWN_LOOP, OPTIONS, ONE_CALL = ("examples/" + n for n in ("hello", "own-loop", "options", "one-call"))


def caught(pid):
    """Numbers of the signals a process has handlers for."""
    mask = int(re.search(r"SigCgt:\s*([0-9a-f]+)", open("/proc/%d/status" % pid).read()).group(1), 16)
    # 32 and 33 are the C library's own; sanitizers want to see what crashes.
    foreign = {32, 33}
    if b"__asan_init" in open("/proc/%d/exe" % pid, "rb").read():
        foreign |= {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE}
    return {n for n in range(1, 65) if mask >> (n - 1) & 1} - foreign


def answers(d, timeout=DEADLINE):
    return poll(lambda: (lambda r: r if r.status == 200 else None)(d.get("/debug/pprof/")), "the index", timeout)


# (a) component_main

@test
def a_whole_main_starts_answers_and_stops_on_term_with_status_0():
    with daemon(HELLO, "--enable-pprof", "--every=50ms", "--who=Ann") as d:
        equal(d.get("/debug/pprof/").status, 200)
        d.wait_log("hello who=Ann")
        equal(d.stop(), 0)
        contains(d.output(), "stopped")


@test
def a_whole_main_ends_at_once_with_status_1_on_the_second_term():
    with daemon(HELLO, "--enable-pprof", "--shutdown-delay=60s") as d:
        d.signal(signal.SIGTERM)
        d.wait_log("stopping")
        equal(d.get("/debug/pprof/").status, 200, "profiles are served until the end")
        d.signal(signal.SIGTERM)
        equal(d.wait(), 1)


@test
def a_whole_main_reloads_on_hup_and_lives_on_under_nohup():
    with tempdir() as t:
        config = os.path.join(t, "c.yaml")
        open(config, "w").write("who: Ann\n")
        with daemon(HELLO, "--enable-pprof", "--every=20ms", "--config=" + config) as d:
            d.wait_log("who=Ann")
            open(config, "w").write("who: Bob\n")
            d.signal(signal.SIGHUP)
            d.wait_log("who=Bob")
            equal(d.get("/debug/pprof/").status, 200)
            equal(d.stop(), 0)
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731 - what nohup does
    with daemon(HELLO, "--enable-pprof", preexec_fn=ignore) as d:
        d.signal(signal.SIGHUP)
        equal(answers(d).status, 200)
        need("reload" not in d.output(), d.output())
        equal(d.stop(), 0)


@test
def exit_statuses_are_those_that_scripts_and_units_know():
    with tempdir() as t:
        config = os.path.join(t, "c.yaml")
        open(config, "w").write("who: x\nnosuch: 1\nevery: fast\n")
        for args, status, out in ((["--help"], 0, "stdout"), (["--version"], 0, "stdout"), (["--check-config"], 0, "stdout"),
                                  (["--nosuch"], 2, "stderr"), (["operand"], 2, "stderr"), (["--every=1"], 2, "stderr"),
                                  (["--enable"], 2, "stderr"), (["--config=" + config], 78, "stderr"),
                                  (["--config=" + t + "/none.yaml"], 78, "stderr")):
            r = run(HELLO, *args)
            equal(r.returncode, status, "%r: %s" % (args, r.stderr))
            need(getattr(r, out), args)
            equal(getattr(r, "stderr" if out == "stdout" else "stdout"), "", args)
        r = run(HELLO, "--config=" + config)
        contains(r.stderr, "%s:2" % config)
        contains(r.stderr, "%s:3" % config)
        with open("/dev/full", "w") as full:
            for option in "--help", "--version", "--dump-options", "--generate-man", "--completion=bash":
                r = run(HELLO, option, stdout=full, stderr=subprocess.PIPE)
                equal(r.returncode, 1, option)
                contains(r.stderr, "hello: cannot write to standard output")


@test
def a_bad_variable_is_named_and_nothing_starts():
    r = run(HELLO, env=dict(os.environ, PPROF_BIND_ADDRESS="6060", HELLO_EVERY="soon"))
    equal(r.returncode, 2)
    contains(r.stderr, "hello: environment variable PPROF_BIND_ADDRESS")
    contains(r.stderr, "missing host part; write ':6060' or '127.0.0.1:6060'")
    contains(r.stderr, "HELLO_EVERY")
    need("hello who" not in r.stderr, r.stderr)


# (b) a component in the daemon's own loop

@test
def in_a_loop_of_its_own_a_daemon_keeps_its_signals_and_serves_profiles():
    with tempdir() as t:
        port_file = os.path.join(t, "port")
        with started([program(OWN_LOOP), "--enable-pprof", "--profile-port=0", "--profiling-port-file=" + port_file],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            d = Daemon.__new__(Daemon)
            d.process, d.port_file, d.output = p, port_file, lambda: ""
            d.wait_port()
            equal(d.get("/debug/pprof/").status, 200)
            p.stdin.write(b"data\n")
            p.stdin.flush()
            equal(os.read(p.stdout.fileno(), 100), b"data\n")
            equal(caught(p.pid), set(), "no signal handler is installed")
            p.stdin.close()
            equal(p.wait(DEADLINE), 0)


@test
def in_a_loop_of_its_own_a_daemon_acts_on_the_signals_that_it_reads():
    with tempdir() as t:
        port_file, config, log = (os.path.join(t, n) for n in ("port", "config", "log"))
        open(config, "w").write("v: 0\n")
        with started([program(OWN_LOOP), "--enable-pprof", "--profile-port=0", "--profiling-port-file=" + port_file,
                      "--config=" + config, "--log-file=" + log], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            said = lambda words: poll(lambda: words in open(log).read(), words)  # noqa: E731
            poll(lambda: os.path.exists(port_file), "the port file")
            p.send_signal(signal.SIGUSR1)
            said("profiling switched off")
            poll(lambda: not os.path.exists(port_file), "the port to be given up")
            p.send_signal(signal.SIGUSR1)
            said("profiling switched on")
            poll(lambda: os.path.exists(port_file), "a port again")
            open(config, "w").write("nosuch: 1\n")
            p.send_signal(signal.SIGHUP)
            said("nosuch")
            p.stdin.write(b"data\n")
            p.stdin.flush()
            equal(os.read(p.stdout.fileno(), 100), b"data\n")
            p.send_signal(signal.SIGTERM)
            equal(p.wait(DEADLINE), 0)
            need(not os.path.exists(port_file), "the port file is left")
    for number in signal.SIGTERM, signal.SIGINT:
        with started([program(OWN_LOOP)], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            poll(lambda: "profiling is off" in p.stderr.readline().decode(), "the start")
            p.send_signal(number)
            equal(p.wait(DEADLINE), 0)


@test
def in_a_loop_of_its_own_options_work_too():
    contains(run(OWN_LOOP, "--help").stdout, "--enable-pprof")
    equal(run(OWN_LOOP, "--help").returncode, 0)
    r = run(OWN_LOOP, "--nosuch")
    equal((r.returncode, r.stdout), (2, ""))
    contains(r.stderr, "own-loop: unknown option '--nosuch'")
    with socket.create_server(("127.0.0.1", 0)) as s:
        r = run(OWN_LOOP, "--enable-pprof", "--profile-port=%d" % s.getsockname()[1])
        equal(r.returncode, 1)
        contains(r.stderr, "Address already in use, held by process %d" % os.getpid())
    r = run(OWN_LOOP, stdin=subprocess.DEVNULL)
    equal(r.returncode, 0)
    need("USR1" not in r.stderr, "a signal it does not handle must not be advised:\n" + r.stderr)


@test
def in_a_loop_of_its_own_a_failure_is_the_exit_status():
    with open("/dev/full", "w") as full, open(__file__) as words:
        r = subprocess.run([program(OWN_LOOP)], stdin=words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=DEADLINE)
    equal(r.returncode, 1)
    contains(r.stderr, "cannot copy: No space left on device")


# (c) the options alone

@test
def the_options_alone_stand_beside_a_programs_own():
    r = run(OPTIONS, "--below=100")
    equal((r.returncode, r.stdout), (0, "25 primes below 100\n"))
    equal(run(OPTIONS, env=dict(os.environ, OPTIONS_BELOW="10")).stdout, "4 primes below 10\n")
    help_text = run(OPTIONS, "--help").stdout
    contains(help_text, "--below")
    contains(help_text, "--enable-pprof")
    r = run(OPTIONS, "--below=many")
    equal(r.returncode, 2)
    contains(r.stderr, "--below")
    rows = {o["name"]: o["value"] for o in json.loads(run(OPTIONS, "--dump-options=json").stdout)["options"]}
    equal(rows["profiling-bind-address"], "127.0.0.1:6060")


@test
def the_options_alone_serve_profiles_of_a_program_that_is_busy():
    with daemon(OPTIONS, "--enable-pprof", "--below=1000000000") as d:
        equal(d.get("/debug/pprof/").status, 200)
        r = d.get("/debug/pprof/profile?seconds=1")
        equal(r.status, 200)
        need(len(r.body) > 100, len(r.body))
    with socket.create_server(("127.0.0.1", 0)) as s:
        r = run(OPTIONS, "--enable-pprof", "--profile-port=%d" % s.getsockname()[1])
        equal(r.returncode, 1)
        contains(r.stderr, "cannot serve profiles on 127.0.0.1:")


# (d) one call

PR_SET_CHILD_SUBREAPER = 36


@contextlib.contextmanager
def orphans():
    """What daemonises itself meanwhile becomes a child of ours, and is ended with the block."""
    libc = ctypes.CDLL(None, use_errno=True)
    need(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)

    def children():
        return [int(p) for p in open("/proc/self/task/%d/children" % os.getpid()).read().split()]
    before = children()
    try:
        yield lambda: [p for p in children() if p not in before]
    finally:
        for pid in [p for p in children() if p not in before]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def reach(port):
    d = Daemon.__new__(Daemon)
    d.host, d.port = "127.0.0.1", port

    def get():
        try:
            return d.get("/debug/pprof/")
        except OSError:
            return None
    equal(poll(get, "the server").status, 200)
    return d


@test
def one_call_after_daemon_is_enough_for_an_old_daemon():
    with orphans() as daemons:
        echo, port = free_port(), free_port()
        r = run(ONE_CALL, str(echo), "127.0.0.1:%d" % port)
        equal(r.returncode, 0)
        d = reach(port)
        pid, = daemons()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(DEADLINE)
            s.sendto(b"ping", ("127.0.0.1", echo))
            equal(s.recv(100), b"ping")
            contains(d.get("/debug/pprof/cmdline").body.decode(), "one-call")
            equal(caught(pid), set(), "no signal handler is installed")
            equal(d.get("/debug/pprof/trace?seconds=0.05").status, 200)
            for number in caught(pid):  # a sampler's may end a wait; that is not the daemon's end
                os.kill(pid, number)
            poll(lambda: re.search(r"ShdPnd:\s*0+\n", open("/proc/%d/status" % pid).read()), "the signals are taken")
            s.sendto(b"pong", ("127.0.0.1", echo))
            equal(s.recv(100), b"pong")
        for n in 0, 1, 2:
            equal(descriptors(pid)[n], "/dev/null")


@test
def a_server_started_before_daemon_comes_back_in_the_survivor_at_the_same_address():
    with orphans() as daemons, tempdir() as t:
        port = free_port()
        out = open(os.path.join(t, "out"), "w+")
        r = run("tests/programs/starts_before_daemon", "127.0.0.1:%d" % port, t + "/port", stdout=out, stderr=subprocess.STDOUT)
        text = lambda: open(t + "/out").read()  # noqa: E731
        equal(r.returncode, 0, text())
        poll(lambda: "running 1 pid" in text() or "running 0 pid" in text(), "the survivor's words")
        contains(text(), "running after fork 0\nafter fork 0\nrunning 1")
        reach(port)
        equal(len(daemons()), 1)
        out.close()


@test
def without_that_call_the_survivor_is_off_and_holds_no_descriptor_of_ours():
    with orphans() as daemons, tempdir() as t:
        out = open(os.path.join(t, "out"), "w+")
        run("tests/programs/starts_before_daemon", "127.0.0.1:0", t + "/port", "stay-off", stdout=out, stderr=subprocess.STDOUT)
        text = lambda: open(t + "/out").read()  # noqa: E731
        poll(lambda: "running 0 pid" in text(), "the survivor's words")
        pid, = daemons()
        equal({n: to for n, to in descriptors(pid).items() if n > 2}, {})
        equal([n for n in threads(pid).values() if n.startswith("component-")], [])
        out.close()


main()
