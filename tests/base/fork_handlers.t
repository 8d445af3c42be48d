#!/usr/bin/env python3
"""fork_handlers.t - a program's own fork handlers may allocate, lock and take profiles: ours run
inside of them.  A library's may end threads and make some, between ours (libcomponent/base/fork.h)."""
import contextlib
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from pprof_reader import Profile  # noqa: E402

FORKS = 50


@test
def fork_handlers_of_the_program_take_profiles():
    with tempdir() as d:
        exe = build(d, "fork_handlers", "fork_handlers.c", "linked")
        written = os.path.join(d, "written")
        os.mkdir(written)
        r = run(exe, written, str(FORKS))
        equal((r.returncode, r.stdout, r.stderr), (0, "0 failed\n", ""))
        for who in ("prepare", "parent", "child"):
            for kind in ("heap", "goroutine"):
                names = [n for n in os.listdir(written) if n.startswith("%s-%s-" % (who, kind))]
                equal(len(names), FORKS // 5, who + " " + kind)
                for name in names:
                    with open(os.path.join(written, name), "rb") as f:
                        p = Profile(f.read())
                    # A child has counted nothing yet.
                    need(p.samples or (who, kind) == ("child", "heap"), name + " has no sample")


@test
def fork_handlers_of_a_library_that_was_there_before_the_agent_wait_for_threads_and_signal_handlers_fork_while_a_cpu_profile_is_taken():
    if not os.path.exists(os.path.join(BUILD, "components/preload/libcomponent-preload.so")):
        raise Skip("configured without the agent")
    with tempdir() as d:
        compile_(CC, *BASE, "-shared", "-fPIC", "-DLIBRARY", source("fork_joins.c"), "-o", os.path.join(d, "libjoins.so"), "-pthread")
        exe = build(d, "fork_joins", "fork_joins.c", "foreign", after=["-L" + d, "-ljoins", "-Wl,-rpath," + d])
        with started([exe, str(FORKS)], env=dict(os.environ, PPROF_BIND_ADDRESS="127.0.0.1:0", **preload_env()),
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            equal(p.stdout.readline(), "ready\n")
            port, = listens(p.pid)
            with contextlib.closing(socket.create_connection(("127.0.0.1", port), DEADLINE)) as s:
                s.sendall(b"GET /debug/pprof/profile?seconds=%d HTTP/1.0\r\n\r\n" % (2 * DEADLINE))
                poll(lambda: "component-cpu" in threads(p.pid).values(), "the window")
                equal(p.communicate("go\n", timeout=DEADLINE)[0], "0 failed, 0 blocked, %d in handlers\n" % FORKS)


main()
