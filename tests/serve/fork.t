#!/usr/bin/env python3
"""A forked child has nothing of the server unless it asks, and then one of its own."""
import os
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from serving import *


def holds(pid):
    return sorted(t.split(":")[0] for n, t in descriptors(pid).items() if n > 2)


@test
def a_child_is_off_and_holds_no_descriptor_of_ours():
    with server() as d:
        with d.connect() as s:
            s.sendall(get_line(PPROF + "profile?seconds=3600"))
            poll(lambda: "component-job" in own_threads(d.pid), "the window")
            r, pid, running = d.command("fork").split()
            equal((r, running), ("0", "0"))
            equal(holds(int(pid)), ["pipe"], "what the child holds besides its own pipe")
            equal(own_threads(int(pid)), [])
            equal(d.get(PPROF + "cmdline").status, 200, "the parent")


@test
def a_child_looks_no_symbol_up():
    # Another thread may stand in dlopen() when the process forks.
    with server(start=False, env={"LD_DEBUG": "symbols", "LD_BIND_NOW": "1"}) as d:
        pid = d.command("fork").split()[1]
        with open(d.log_path, errors="replace") as f:
            asked = [l.split()[:2] for l in f if "symbol=pthread_" in l]
        need(any(who == str(d.pid) + ":" for who, _ in asked), "the loader tells nothing of the parent")
        equal([what for who, what in asked if who == pid + ":"], [])


@test
def the_debug_socket_stays_with_the_parent():
    with tempdir() as t, server("--socket", t + "/s") as d:
        r, pid, running = d.command("fork").split()
        equal((r, running), ("0", "0"))
        equal(holds(int(pid)), ["pipe"], "what the child holds besides its own pipe")
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(DEADLINE)
            s.connect(t + "/s")
            s.sendall(get_line(PPROF + "cmdline", "Connection: close"))
            equal(status_of(receive_all(s)), 200)


@test
def with_port_0_a_child_that_asks_gets_a_server_and_a_port_of_its_own():
    with server() as d:
        parent = d.port
        r, pid, running = d.command("forkback").split()
        equal((r, running), ("0", "1"))
        with open(d.port_file) as f:
            d.port = int(f.read().rpartition(":")[2])
        need(d.port != parent, "two processes on one port")
        need("component-http" in own_threads(int(pid)), "no server")
        equal(d.get(PPROF + "profile?seconds=1").status, 200)
        d.port = parent
        equal(d.get(PPROF + "cmdline").status, 200, "the parent")


@test
def a_child_that_asks_has_the_rates_that_were_set_at_run_time():
    with server() as d:
        text = d.get(PPROF + "rates", method="POST",
                     body="heap-profile-rate=4096\nmutex-profile-fraction=5\nblock-profile-rate=2s\n").text
        for rate in ("heap-profile-rate=4096\n", "mutex-profile-fraction=5\n", "block-profile-rate=2000000000\n"):
            contains(text, rate)
        r, pid, running = d.command("forkback").split()
        equal((r, running), ("0", "1"))
        with open(d.port_file) as f:
            d.port = int(f.read().rpartition(":")[2])
        equal(d.get(PPROF + "rates").text, text)


@test
def or_that_it_has_set_itself_before():
    with server() as d:
        equal(d.command("forkback 4096").split()[0], "0")
        with open(d.port_file) as f:
            d.port = int(f.read().rpartition(":")[2])
        contains(d.get(PPROF + "rates").text, "heap-profile-rate=4096\n")


@test
def on_a_fixed_port_a_child_whose_parent_stays_is_told_after_two_seconds():
    with server("--address", "127.0.0.1:%d" % free_port()) as d:
        begin = time.monotonic()
        r, pid, running = d.command("forkback").split()
        equal((r, running), ("-98", "0"))
        need(1.9 < time.monotonic() - begin, "after %.1f s" % (time.monotonic() - begin))
        equal(holds(int(pid)), ["pipe"])
        equal(d.get(PPROF + "cmdline").status, 200, "the parent")


@test
def trying_again_and_again_does_not_warn_again_and_again():
    with tempdir() as folder:
        with open(folder + "/token", "w") as f:
            f.write("x")
        os.chmod(f.name, 0o644)
        with server("--address", "127.0.0.1:%d" % free_port(), "--token-file", f.name) as d:
            equal(d.output().count("may be read by others"), 1)
            equal(d.command("forkback").split()[0], "-98")
            equal(d.output().count("may be read by others"), 1)


@test
def a_daemon_that_forks_as_daemon_3_does_serves_on_the_same_port():
    with server("--address", "127.0.0.1:%d" % free_port()) as d:
        d.send("daemonize")
        r, pid = d.reply().split()
        equal(r, "0")
        equal(d.wait(), 0, "the parent's exit")
        need("component-http" in own_threads(int(pid)), "no server")
        equal(d.get(PPROF + "heap").status, 200)
        equal(d.get(PPROF + "profile?seconds=1").status, 200)
        with open("/proc/%s/cmdline" % pid, "rb") as f:
            equal(d.get(PPROF + "cmdline").body, f.read()[:-1])
        d.send("stop")
        equal(d.reply(), "0")
        equal(own_threads(int(pid)), [])


@test
def hundreds_of_forks_under_load_close_nothing_of_the_daemons():
    with server("--burn") as d:
        window = in_background(lambda: d.get(PPROF + "profile?seconds=2").status)
        scrape = in_background(lambda: [d.get(PPROF + "heap").status for _ in range(100)])
        equal(d.command("forks 300"), "0")
        equal(window.result(), 200)
        equal(set(scrape.result()), {200})
        equal(d.get(PPROF + "cmdline").status, 200)


main()
