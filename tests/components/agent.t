#!/usr/bin/env python3
"""agent.t - the agent is a stranger in a program: neither has the other's functions, and the program does what it does without."""
import glob
import gzip
import os
import re
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from at_work import asked  # noqa: E402
from daemons import environment, found, under_agent  # noqa: E402

AGENT = os.path.join(BUILD, "components/preload/libcomponent-preload.so")
KINDS = ("profile?seconds=1", "trace?seconds=1", "heap", "allocs?debug=1", "goroutine?debug=2", "goroutine", "mutex", "block", "threadcreate")

if not os.path.exists(AGENT):
    print("1..0 # SKIP configured without the agent")
    sys.exit(0)


def agent_alone(agent=AGENT):
    return dict(os.environ, LD_PRELOAD=agent, PPROF_BIND_ADDRESS="127.0.0.1:0")


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


def looked_into(argv, agent=AGENT):
    """What it prints, with every kind of profile taken in between."""
    p = subprocess.Popen(argv, env=agent_alone(agent), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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


def what_it_does(exe, what, d, env, *before):
    r = subprocess.run([*before, exe, what, d], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE)
    return r.returncode, r.stdout, r.stderr


@test
def numbers_of_descriptors_signals_children_and_limits_are_what_they_are_without():
    with tempdir() as d:
        exe = compiled(d, "agent_manners")
        plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        for what in "numbers", "signals", "forks", "daemon", "root", "closes", "limits", "abort", "clears":
            without = what_it_does(exe, what, d, plain)
            equal(what_it_does(exe, what, d, agent_alone()), without, what)
            status, said, told = what_it_does(exe, what, d, dict(plain, XDG_RUNTIME_DIR=d),
                                              os.path.join(BUILD, "components/componentctl/componentctl"), "run", "--")
            equal((status, said), (134 if what == "abort" else 7, without[1]), "under run: %s: %s" % (what, told))
            contains(told, "starting profiling server on port")
            equal(without[0], -signal.SIGABRT if what == "abort" else 7, without)
            need(what == "abort" or len(without[1]) > 15, without)


def sockets_of_the_server(pid):
    """Its thread may have a table of descriptors of its own."""
    found = [tid for tid, name in threads(pid).items() if name == "component-http"]
    if len(found) > 1:
        return 0  # one that it has just made has its name for an instant
    return sum(os.readlink(fd).startswith("socket:") for fd in glob.glob("/proc/%d/task/%d/fd/*" % (pid, found[0])))


@test
def numbers_stay_the_same_while_profiles_are_taken():
    with tempdir() as d:
        exe = compiled(d, "agent_manners")
        p = subprocess.Popen([exe, "lines", d], env=agent_alone(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def numbers():
            p.stdin.write("x\n")
            p.stdin.flush()
            return p.stdout.readline() + p.stdout.readline()

        first = numbers()
        contains(first, "numbers 3 4 5 0 6 7\nfolder 8\n")
        port, = listens(p.pid)
        low = [n for n in descriptors(p.pid) if 2 < int(n) < 512]
        equal(low, [])
        for path in "profile?seconds=600", "trace?seconds=600", "heap?seconds=600":
            with requested(("127.0.0.1", port), path) as s:
                # The connection is there, and the window open.
                poll(lambda: sockets_of_the_server(p.pid) > 3, "the connection")
                poll(lambda: "component-job" in threads(p.pid).values(), "the window")
                # What is read for an instant may lie low for that instant.
                poll(lambda: numbers() == first, "the numbers of before")
                equal(answer_of(s).status, 200)
        p.stdin.close()
        equal(p.wait(DEADLINE), 7)
        p.stdout.close()


@beside
def what_scripts_agent_archives_compiles_of_debians_sources_makes_an_agent():
    sources = [f for name in ("libevent", "zlib", "protobuf-c") for f in glob.glob("%s/sources/%s-*/" % (BUILD, name))]
    if len(sources) != 3:
        raise Skip("scripts/test has not fetched the sources of libevent, zlib and protobuf-c")
    with tempdir() as d:
        r = run(SRC + "/scripts/agent-archives", d + "/archives", *[s.rstrip("/") for s in sources], timeout=1800)
        equal(r.returncode, 0, r.stdout[-1000:] + r.stderr[-3000:])
        archives = ["%s/archives/lib%s.a" % (d, name) for name in ("event_core", "event_extra", "z", "protobuf-c")]
        core = d + "/libcomponent-preload-core.so"
        r = run("make", "-s", "-C", BUILD, "PRELOAD_CORE=" + core, "AGENT_ARCHIVES=" + " ".join(archives), core, timeout=1800)
        equal(r.returncode, 0, r.stderr[-3000:])
        shutil.copy(AGENT, d)
        looked_into([compiled(d, "agent_names")], d + "/" + os.path.basename(AGENT))


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
