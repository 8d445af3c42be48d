#!/usr/bin/env python3
"""confined.t - where a container, a chroot or a change of user takes things away, every
endpoint answers or says why not, and the daemon goes on."""
import gzip
import http.client
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("top_srcdir", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests"))
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403

PPROF = "/debug/pprof/"


def program_confined(d):
    exe = os.path.join(d, "confined")
    compile_(CC, *BASE, "-Wl,--no-as-needed", source("confined.c"), "-o", exe, *link("linked"), "-pthread", "-ldl")
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


def confined(how, when):
    """Path to answer, of everything the index names."""
    wrap = []
    if how in ("chroot", "no-proc"):
        wrap = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        r = subprocess.run(wrap + ["true"], capture_output=True, text=True)
        if r.returncode:
            raise Skip("no namespaces: " + r.stderr.strip())
    with tempdir() as d:
        os.chmod(d, 0o755)  # whoever it becomes must find itself
        exe = program_confined(d)
        p = subprocess.Popen(wrap + [exe, how, when], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        try:
            line = p.stdout.readline()
            if line.startswith("cannot "):
                raise Skip(line.strip())
            m = re.match(r"url http://([^:/]+):(\d+)/", line)
            need(m, "%r, and then %r" % (line, p.poll()))
            address = (m.group(1), int(m.group(2)))
            page = ask(address, PPROF)
            equal(page.status, 200)
            answers = {"": page, "symbol?0x1000": ask(address, PPROF + "symbol?0x1000")}
            for name in sorted(set(re.findall(r"href='([a-z_]+)\?", page.text))):
                window = name in ("profile", "trace", "fgprof")
                for query in ("?seconds=1",) if window else ("", "?debug=1", "?format=top"):
                    answers[name + query] = ask(address, PPROF + name + query)
            answers["goroutine?debug=2"] = ask(address, PPROF + "goroutine?debug=2")
            answers["heap?seconds=1"] = ask(address, PPROF + "heap?seconds=1")
            answers["after"] = ask(address, PPROF)
            need(p.poll() is None, "it ended with %r" % p.poll())
            p.stdin.close()
            equal(p.stdout.read(), "fine\n")
            equal(p.wait(DEADLINE), 0)
        finally:
            if p.poll() is None:
                p.kill()
                p.wait()
            p.stdout.close()
    if os.environ.get("CONFINED_SHOW"):  # for a person
        for path, a in sorted(answers.items()):
            text = re.sub("<[^>]*>", "", a.text)
            print("# %s: %d %d bytes %r" % (path, a.status, len(a.body), " | ".join(re.findall("[ -~]{9,}", text))[:300]))
    for path, a in answers.items():
        need(a.status in (200, 400, 404, 500, 503), "%s: %d" % (path, a.status))
        need(a.status == 200 or len(a.text.strip()) > 10, "%s: %d, and no word why" % (path, a.status))
    return answers



def everything_answers(how, when):
    answers = confined(how, when)
    for name in "heap", "allocs", "threadcreate":
        equal(answers[name].status, 200, name)
    return answers


@test
def under_the_seccomp_profile_of_docker_everything_answers():
    for when in "before", "after":
        answers = everything_answers("docker", when)
        equal(answers["profile?seconds=1"].status, 200)
        contains(answers["profile?seconds=1"].text, "burn_and_allocate")
        contains(answers[""].text, "unwinder: tables")


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


def says_that_proc_is_not_there(how):
    for when in "before", "after":
        answers = everything_answers(how, when)
        for path in "profile?seconds=1", "cmdline":
            equal(answers[path].status, 500, path)
            contains(answers[path].text, "/proc is not mounted or not readable")
        contains(answers[""].text, "/proc is not mounted or not readable")
        contains(answers["heap"].text, "there are no names: /proc/self/maps could not be read")


@test
def in_a_chroot_without_proc_what_cannot_be_had_says_so():
    says_that_proc_is_not_there("chroot")


@test
def with_an_empty_proc_what_cannot_be_had_says_so():
    says_that_proc_is_not_there("no-proc")


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
