#!/usr/bin/env python3
"""agent.t - the agent is a stranger in a program: neither has the other's functions, and the program does what it does without."""
import gzip
import http.client
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from daemons import environment, found, under_agent  # noqa: E402

AGENT = os.path.join(BUILD, "components/preload/libcomponent-preload.so")
KINDS = ("profile?seconds=1", "trace?seconds=1", "heap", "allocs?debug=1", "goroutine?debug=2", "goroutine", "mutex", "block", "threadcreate")

if not os.path.exists(AGENT):
    print("1..0 # SKIP configured without the agent")
    sys.exit(0)


def agent_alone():
    return dict(os.environ, LD_PRELOAD=AGENT, PPROF_BIND_ADDRESS="127.0.0.1:0")


def asked(port, path):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    with contextlib.closing(c):
        c.request("GET", "/debug/pprof/" + path)
        r = c.getresponse()
        body = r.read()
        equal(r.status, 200, "%s: %s" % (path, body[:300]))
        return body


def compiled(d, name, *flags):
    exe = os.path.join(d, name)
    compile_(*CC.split(), "-g", "-O1", "-fno-builtin", "-rdynamic", source(name + ".c"), "-o", exe, *flags, "-ldl")
    return exe


def every_kind(port):
    for path in KINDS:
        body = asked(port, path)
        if body.startswith(b"\x1f\x8b"):
            need(len(gzip.decompress(body)) > 20, path)
    need(len(asked(port, "")) > 100, "no index")


def looked_into(argv):
    """What it prints, with every kind of profile taken in between."""
    p = subprocess.Popen(argv, env=agent_alone(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    equal(p.stdout.readline(), "ready\n")
    ports = listens(p.pid)
    if not ports:
        raise AssertionError("no server: " + p.communicate("go\n", timeout=DEADLINE)[1])
    every_kind(ports[0])
    out, err = p.communicate("go\n", timeout=DEADLINE)
    equal((p.returncode, out, err), (0, "end\n", ""), argv)


@test
def functions_of_the_programs_own_called_deflate_or_event_base_new_are_never_called_and_never_replaced():
    with tempdir() as d:
        looked_into([compiled(d, "agent_names")])


@test
def libraries_that_the_program_opens_later_are_its_own():
    with tempdir() as d:
        looked_into([compiled(d, "agent_names"), "opened"])


@test
def a_program_with_zlib_linked_into_it_packs_and_unpacks_while_profiles_are_packed():
    archive = run(*CC.split(), "-print-file-name=libz.a").stdout.strip()
    if not os.path.isabs(archive):
        raise Skip("no libz.a")
    with tempdir() as d:
        looked_into([compiled(d, "agent_zlib", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive")])


def libraries(pid):
    return sorted(set(re.findall(r"/([^/\s]*\.so[.\d]*)$", text_of("/proc/%d/maps" % pid), re.M)))


@test
def tmux_whose_libevent_is_another_copy_works_and_is_profiled():
    path = found("tmux")
    with tempdir() as d:
        def client(*words):
            return subprocess.run([path, "-N", "-S", d + "/socket", *words], env=environment(path), capture_output=True, text=True, timeout=DEADLINE)

        have = []
        for env in environment(path), under_agent(path):
            with open(d + "/said", "w") as said:
                p = subprocess.Popen([path, "-D", "-S", d + "/socket", "-f", "/dev/null"], env=env, stdout=said, stderr=said,
                                     stdin=subprocess.DEVNULL)
            try:
                poll(lambda: client("new-session", "-d", "-s", "one", "cat").returncode == 0, "a session")
                for port in listens(p.pid):
                    every_kind(port)
                equal(client("list-sessions", "-F", "#S").stdout, "one\n")
                have.append((libraries(p.pid), len(listens(p.pid))))
                client("kill-server")
                status = p.wait(DEADLINE)
            finally:
                p.kill()
                p.wait()
            have[-1] += (status, text_of(d + "/said"))
        (plain, none, *before), (with_agent, one, *after) = have
        equal((none, one), (0, 1))
        equal(before, after)
        equal([n for n in with_agent if n not in plain and not n.startswith(("libcomponent-preload", "liblzma", "libunwind"))], [])


main()
