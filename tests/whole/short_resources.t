#!/usr/bin/env python3
"""A whole daemon where resources are short, and once under valgrind."""
import os
import re
import resource
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

HELLO = "examples/hello"


def limited(**limits):
    """For preexec_fn: hard and soft limits by name."""
    def set_them():
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))
    return set_them


def index(d):
    r = d.get("/debug/pprof/")
    equal(r.status, 200)
    return re.sub(r"<[^>]*>", "", r.text)


def works(d):
    """Whatever is off, it serves, is switched off and on, reloads and stops."""
    index(d)
    equal(d.get("/debug/pprof/heap").status, 200)
    d.signal(signal.SIGHUP)
    d.wait_log("reloaded")
    d.signal(signal.SIGUSR1)
    d.wait_log("profiling switched off")
    poll(lambda: not os.path.exists(d.port_file), "the port file to go")
    d.signal(signal.SIGUSR1)
    d.wait_port()
    index(d)
    equal(d.stop(), 0)




@test
def without_a_slot_for_pending_signals_it_runs_on_and_the_index_says_why_there_is_no_cpu_profile():
    with daemon(HELLO, "--enable-pprof", preexec_fn=limited(SIGPENDING=0)) as d:
        r = d.get("/debug/pprof/profile?seconds=1")
        need(r.status in (200, 500, 503), r.status)
        contains(index(d).upper() + r.text.upper(), "RLIMIT_SIGPENDING")
        works(d)


@test
def with_few_descriptors_it_runs_on():
    with daemon(HELLO, "--enable-pprof", preexec_fn=limited(NOFILE=48)) as d:
        # More clients than descriptors: some are kept waiting or closed, none for good.
        clients = []
        for _ in range(60):
            s = socket.create_connection(("127.0.0.1", d.port), timeout=DEADLINE)
            clients.append(s)
        equal(d.process.poll(), None)
        for s in clients:
            s.close()
        poll(lambda: d.get("/debug/pprof/cmdline").status == 200)
        works(d)


@test
def with_little_address_space_it_runs_on():
    with daemon(HELLO, "--enable-pprof", preexec_fn=limited(AS=400 << 20), env={"MALLOC_ARENA_MAX": "1"}) as d:
        equal(d.get("/debug/pprof/profile?seconds=1").status, 200)
        works(d)


@test
def without_descriptors_for_a_server_it_goes_on_where_it_is_told_to():
    with daemon(HELLO, "--enable-pprof", "--profiling-on-error=warn", "--every=50ms", preexec_fn=limited(NOFILE=12),
                wait=False) as d:
        d.wait_log("cannot serve profiles")
        d.wait_log("hello who=world")
        equal(d.stop(), 0)


@test
def valgrind_finds_no_invalid_access_and_no_leak_in_a_daemons_whole_life():
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    real = os.path.join(BUILD, "examples/.libs/hello")
    real = real if os.path.exists(real) else os.path.join(BUILD, HELLO)
    if b"__asan_init" in open(real, "rb").read():
        raise Skip("built with sanitizers")
    with tempdir() as t:
        config, token = os.path.join(t, "c.yaml"), os.path.join(t, "token")
        open(config, "w").write("who: Ann\nprofiling: {enabled: true}\n")
        open(token, "w").write("secret\n")
        os.chmod(token, 0o600)
        with daemon(shutil.which("valgrind"), "-q", "--error-exitcode=9", "--leak-check=full",
                    "--errors-for-leak-kinds=definite,indirect", real, "--config=" + config, "--every=20ms",
                    "--profiling-token-file=" + token, "--health-probe-bind-address=127.0.0.1:0",
                    "--debug-socket-path=" + os.path.join(t, "debug.sock"),
                    env={"LD_LIBRARY_PATH": os.path.join(BUILD, "components/.libs")}) as d:
            equal(d.get("/debug/pprof/").status, 401)
            for path in "", "heap", "heap?debug=1", "allocs", "cmdline", "symbol?0x1", "profile?seconds=1", "nosuch":
                d.get("/debug/pprof/%s%stoken=secret" % (path, "&" if "?" in path else "?"))
            health = int(re.search(r'serving health url="http://127\.0\.0\.1:(\d+)"', d.output()).group(1))
            here, d.port = d.port, health
            poll(lambda: d.get("/readyz?verbose").status == 200)
            d.port = here
            open(config, "w").write("who: Bob\nprofiling: {enabled: true}\nprofiling-max-seconds: 100\n")
            d.signal(signal.SIGHUP)
            d.wait_log("who=Bob")
            open(config, "w").write("who: 'Bob\n")
            d.signal(signal.SIGHUP)
            d.wait_log(config + ":")
            d.signal(signal.SIGUSR1)
            d.wait_log("switched off")
            d.signal(signal.SIGUSR1)
            d.wait_log("switched on")
            status = d.stop()
            equal(status, 0, "\n".join(line for line in d.output().splitlines() if "==" in line))
            need("==" not in d.output(), d.output())
        for args in ["--help"], ["--nosuch"], ["--check-config"], ["--enable-pprof", "--profiling-bind-address=192.0.2.1:1"]:
            r = run(shutil.which("valgrind"), "-q", "--error-exitcode=9", "--leak-check=full",
                    "--errors-for-leak-kinds=definite,indirect", real, *args,
                    env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "components/.libs")))
            need(r.returncode != 9 and "==" not in r.stderr, "%r\n%s" % (args, r.stderr))


main()
