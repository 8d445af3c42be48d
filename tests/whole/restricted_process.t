#!/usr/bin/env python3
"""restricted_process.t - where a container, a chroot or a change of user takes things away, every
endpoint answers or says why not, and the daemon goes on."""
import contextlib
import gzip
import http.client
import os
import re
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403

PPROF = "/debug/pprof/"


def program_confined(d, stripped=False):
    """stripped: its names are in a file beside it."""
    exe = os.path.join(d, "confined")
    compile_(CC, *BASE, "-Wl,--no-as-needed", source("restricted_process.c"), "-o", exe, *link("linked"), "-pthread", "-ldl")
    if stripped:
        names = exe + ".debug"
        for argv in (["--only-keep-debug", exe, names], ["--strip-all", "--add-gnu-debuglink=" + names, exe]):
            equal(run("objcopy", *argv).returncode, 0, argv)
    return exe


class Answer:
    def __init__(self, response):
        self.status, self.body = response.status, response.body
        self.text = response.text
        if self.body[:2] == b"\x1f\x8b":
            self.body = gzip.decompress(self.body)
            self.text = self.body.decode("latin-1")  # comments and names stand in it as they are


def ask(address, path):
    c = http.client.HTTPConnection(*address, timeout=120)
    try:
        c.request("GET", path)
        r = c.getresponse()
        return Answer(Response(r.status, r.getheaders(), r.read()))
    finally:
        c.close()


def namespace():
    wrap = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    r = subprocess.run(wrap + ["true"], capture_output=True, text=True)
    if r.returncode:
        raise Skip("no namespaces: " + r.stderr.strip())
    return wrap


def profile_with(address, name):
    """A CPU profile; longer ones while name is missing, as a busy machine may give a thread no time for a second."""
    for seconds in 1, 2, 4, 8, 16, 32:
        answer = ask(address, PPROF + "profile?seconds=%d" % seconds)
        if answer.status != 200 or name in answer.text:
            break
    return answer


def asked_until(address, path, told):
    """Its answer; once more while told is missing: a thread that is in our code at that moment is left out of the index,
    and one that had no processor yet has no samples."""
    for _ in range(100):
        answer = ask(address, path)
        if re.search(told, answer.text):
            break
        time.sleep(0.1)
    return answer


def confined(how, when, name, told="", stripped=False):
    """Path to answer, of everything the index names; name is to be in the CPU profile, if there is one, and told in the
    index at the end."""
    wrap = namespace() if how.startswith("chroot") or how == "no-proc" else []
    with tempdir() as d:
        os.chmod(d, 0o755)  # whoever it becomes must find itself
        exe = program_confined(d, stripped)
        with started(wrap + [exe, how, when], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                     text=True) as p:
            line = p.stdout.readline()
            if line.startswith("cannot "):
                raise Skip(line.strip())
            m = re.match(r"url http://([^:/]+):(\d+)/", line)
            need(m, "%r, and then %r" % (line, p.poll()))
            address = (m.group(1), int(m.group(2)))
            page = ask(address, PPROF)
            equal(page.status, 200)
            answers = {"": page, "symbol?0x1000": ask(address, PPROF + "symbol?0x1000")}
            asked_until(address, PPROF + "heap", name)
            for kind in sorted(set(re.findall(r"href='([a-z_]+)\?", page.text)) - {"profile", "trace"}):
                for query in "", "?debug=1", "?format=top":
                    answers[kind + query] = ask(address, PPROF + kind + query)
            windows = {path: in_background(ask, address, PPROF + path) for path in ("trace?seconds=1", "fgprof?seconds=1", "heap?seconds=1")}
            answers["profile?seconds=1"] = profile_with(address, name)
            answers["goroutine?debug=2"] = ask(address, PPROF + "goroutine?debug=2")
            answers.update((path, window.result()) for path, window in windows.items())
            answers["after"] = asked_until(address, PPROF, told)
            need(p.poll() is None, "it ended with %r" % p.poll())
            p.stdin.close()
            equal(p.stdout.read(), "fine\n")
            equal(p.wait(DEADLINE), 0)
    if os.environ.get("CONFINED_SHOW"):  # for a person
        for path, a in sorted(answers.items()):
            text = re.sub("<[^>]*>", "", a.text)
            print("# %s: %d %d bytes %r" % (path, a.status, len(a.body), " | ".join(re.findall("[ -~]{9,}", text))[:300]))
    for path, a in answers.items():
        need(a.status in (200, 400, 404, 500, 503), "%s: %d" % (path, a.status))
        need(a.status == 200 or len(a.text.strip()) > 10, "%s: %d, and no word why" % (path, a.status))
    return answers


def everything_answers(how, when, name="burn_and_allocate", stripped=False):
    answers = confined(how, when, name, stripped=stripped)
    for kind in "heap", "allocs", "threadcreate":
        equal(answers[kind].status, 200, kind)
    return answers


@test
def under_the_seccomp_profile_of_docker_everything_answers():
    for when in "before", "after":
        answers = everything_answers("docker", when)
        equal(answers["profile?seconds=1"].status, 200)
        contains(answers["profile?seconds=1"].text, "burn_and_allocate")
        contains(answers[""].text, "unwinder: tables")
        contains(answers[""].text, "<li>memory: process_vm_readv() is refused (seccomp): /proc/thread-self/mem is read instead")
        need(not re.search("<li>(threads|names|fgprof): ", answers[""].text), answers[""].text)
        contains(answers["fgprof?seconds=1"].text, "read")  # main's, which waits


@test
def under_a_tighter_one_that_denies_timers_the_cpu_profile_says_so_and_the_rest_answers():
    for when in "before", "after":
        answers = everything_answers("strict", when)
        equal(answers["profile?seconds=1"].status, 500)
        contains(answers["profile?seconds=1"].text, "timer_create() is refused")
        contains(answers["after"].text, "timer_create() is refused")
        contains(answers["heap"].text, "burn_and_allocate")


@test
def a_filter_of_systemd_that_ends_who_calls_more_ends_nobody():
    for when in "before", "after":
        answers = everything_answers("systemd", when)
        for path in "profile?seconds=1", "trace?seconds=1", "goroutine", "heap":
            equal(answers[path].status, 200, path)
        contains(answers["profile?seconds=1"].text, "burn_and_allocate")


def profiles_are_whole_and_the_index_says_what_is_less(how, when, name="burn_and_allocate"):
    answers = everything_answers(how, when, name)
    for path in "profile?seconds=1", "heap", "allocs", "goroutine", "goroutine?debug=2":
        equal(answers[path].status, 200, path)
        contains(answers[path].text, name)
        if "debug" not in path:
            need(re.search("/confined.{0,4}[0-9a-f]{40}", answers[path].text), "%s: no build id" % path)
            need(re.search("/libc.so.6.{0,4}[0-9a-f]{40}", answers[path].text), "%s: no build id of libc's" % path)
    for path in "fgprof?seconds=1", "trace?seconds=1":
        equal(answers[path].status, 200, path)
    contains(answers["goroutine?debug=2"].text, "\n__libc_start_main")  # below main, which waits, and was woken
    contains(answers["cmdline"].text, "confined\0%s\0%s" % (how, when))
    for what in "threads", "fgprof", "names":
        contains(answers["after"].text, "<li>%s: /proc is not mounted or not readable: " % what)
    contains(answers["after"].text, "where blocked threads wait cannot be read, they are [no answer]")
    contains(answers["after"].text, "unwinder: tables")
    contains(answers["heap"].text, "there is no /proc: objects are known by the loader's list")
    return answers


@test
def in_a_chroot_without_proc_profiles_are_whole_and_the_index_says_what_is_less():
    # The program's file is open since profiling began, and so are names that it does not export.
    answers = profiles_are_whole_and_the_index_says_what_is_less("chroot", "after")
    contains(answers["after"].text, ", but for the program&#39;s own</li>")
    answers = profiles_are_whole_and_the_index_says_what_is_less("chroot", "before", "confined+0x")
    # Code without a name is called by where its function begins: few of them, not as many as addresses.
    burning = set(re.findall(r"confined\+0x[0-9a-f]+", answers["profile?seconds=1"].text))
    need(0 < len(burning) < 12, burning)
    contains(answers["heap"].text, "objects are without names that they do not export: their files were replaced or removed, cannot be opened")


@test
def under_the_agent_a_daemon_that_leaves_its_root_at_once_has_whole_stacks_with_names():
    wrap = namespace()
    with tempdir() as d:
        exe = os.path.join(d, "chrooted")
        compile_(CC, *BASE, source("chrooted.c"), "-o", exe, "-pthread")
        env = dict(os.environ, COMPONENT_ENABLE_PPROF="1", COMPONENT_PROFILING_BIND_ADDRESS="127.0.0.1:0", **preload_env())
        with started(wrap + ["env", *["%s=%s" % v for v in env.items()], exe], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True) as p:
            line = p.stdout.readline()
            if not line:
                said = p.stderr.read().strip()
                if p.wait(DEADLINE) == 77:
                    raise Skip(said)
                raise AssertionError(said)
            ports = poll(lambda: listens(p.pid), "its server")
            folded = ask(("127.0.0.1", ports[0]), PPROF + "profile?seconds=1&format=folded").text
            whole = [x for x in folded.splitlines() if re.match(r"(libc\.so\.6\+0x[0-9a-f]+|clone3?);.*;work;burn_in_the_new_root \d+$", x)]
            need(sum(int(x.split()[-1]) for x in whole) > 0.9 * sum(int(x.split()[-1]) for x in folded.splitlines()), folded)
            p.stdin.close()
            equal(p.stdout.read(), "fine\n")


@test
def with_an_empty_proc_they_are_too():
    for when in "before", "after":
        profiles_are_whole_and_the_index_says_what_is_less("no-proc", when)


@test
def without_proc_names_come_from_a_debug_file_too():
    contains(everything_answers("no-proc", "after", stripped=True)["profile?seconds=1"].text, "burn_and_allocate")


@test
def in_a_chroot_where_process_vm_readv_is_refused_they_are_too():
    for how in "chroot-eperm", "chroot-enosys":
        answers = profiles_are_whole_and_the_index_says_what_is_less(how, "after")
        contains(answers["after"].text, "<li>memory: process_vm_readv() is refused and /proc/thread-self/mem cannot be opened: ")


@test
def the_index_counts_threads_that_block_the_profiles_signal_and_names_one():
    told = (r"<li>profile: threads that block SIG[A-Z0-9+-]+, since before profiling began or unseen by the hooks: 1, "
            r"thread \d+ &#34;shut-thread&#34; among them; their CPU time is \[lost samples\]</li>")
    answers = confined("masked", "after", "[lost samples]", told)
    need(re.search(told, answers["after"].text), answers["after"].text)
    contains(answers["profile?seconds=1"].text, "[lost samples]")


@test
def a_child_of_a_program_under_a_filter_makes_those_system_calls_alone_that_the_documentation_names():
    with tempdir() as d:
        exe = program_confined(d)
        with started([exe, "forks", "after"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as p:
            line = p.stdout.readline().decode()
            if line.startswith("cannot "):
                raise Skip(line.strip())
            m = re.match(r"url http://([^:/]+):(\d+)/", line)
            need(m, "%r, and then %r" % (line, p.poll()))
            address = (m.group(1), int(m.group(2)))
            equal(ask(address, PPROF + "profile?seconds=1").status, 200)  # it has seen the filter
            with contextlib.ExitStack() as windows:
                for path in "profile?seconds=60", "trace?seconds=60", "fgprof?seconds=60":
                    windows.enter_context(socket.create_connection(address, timeout=DEADLINE)).sendall(
                        ("GET %s%s HTTP/1.1\r\n\r\n" % (PPROF, path)).encode())
                over = threading.Event()

                def look():  # descriptors that are open for an instant
                    while not over.is_set():
                        equal(ask(address, PPROF + "goroutine").status, 200)

                looks = in_background(look)
                for n in range(50):
                    p.stdin.write(b".")
                    equal(p.stdout.readline(), b"child 0\n", "a child's end, round %d" % n)
                over.set()
                looks.result()
            p.stdin.close()
            equal(p.stdout.read(), b"fine\n")
            equal(p.wait(DEADLINE), 0)


@test
def after_a_change_of_user_inside_the_process_everything_answers():
    for when in "before", "after":
        answers = everything_answers("setuid", when)
        equal(answers["profile?seconds=1"].status, 200)
        contains(answers["profile?seconds=1"].text, "burn_and_allocate")
        contains(answers["heap"].text, "burn_and_allocate")
        contains(answers[""].text, "unwinder: tables")
        # main waits for its input, and has been woken for its stack
        waits = [t for t in answers["goroutine?debug=2"].text.split("\n\n") if "\nmain(" in t]
        need(waits and not re.search(r" \[running", waits[0]), waits)


main()
