#!/usr/bin/env python3
"""allocators.t - jemalloc, mimalloc and tcmalloc beside us, wherever they are linked or loaded.

Each of them: the program works, C and C++ blocks are counted with their bytes, once, or the
index says why nothing is counted.  The blocks also go through the allocator's own functions.
"""
import os
import re
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from pprof_reader import Profile  # noqa: E402

RATE = 2048
BYTES = 6000 * 1280  # of each site that keeps its blocks: 3,750 samples, 1.6 % of them is one sigma
TOLERANCE = 0.1
SITES = "malloc", "calloc", "realloc", "aligned", "new", "new_array", "new_aligned"


class Program:
    def __init__(self, exe, env, linked):
        self.p = subprocess.Popen([exe] + ["127.0.0.1:0"] * linked, env=dict(os.environ, **env), stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        for f in (self.p.stdin, self.p.stdout, self.p.stderr):
            f.close()

    def says(self, word):
        line = self.p.stdout.readline()
        if not line.startswith(word):
            self.p.wait(DEADLINE)
            raise AssertionError("not %s but %r, status %d\n%s" % (word, line, self.p.returncode, self.p.stderr.read()[-2000:]))
        return line

    def goes_on(self):
        self.p.stdin.write("go\n")
        self.p.stdin.flush()

    def find_port(self):
        ports = listens(self.p.pid)
        equal(len(ports), 1, "what it listens on")
        self.port = ports[0]

    def ask(self, path, body=None):
        return urllib.request.urlopen("http://127.0.0.1:%d/debug/pprof/%s" % (self.port, path), body, timeout=DEADLINE).read()


def bytes_of(profile, column):
    """By the name of the site that is somewhere on the stack."""
    which = [t[0] for t in profile.types].index(column)
    found = {}
    for stack, values, _ in profile.samples:
        for name in profile.stack(stack):
            m = re.match(r"(?:_ZL\d+)?site_([a-z_]+?)(?:PPvi|i)?(?:\(.*)?$", name)
            if m:
                found[m.group(1)] = found.get(m.group(1), 0) + values[which]
                break
    return found


def right_bytes(p):
    p.ask("rates", b"heap-profile-rate=%d" % RATE)
    p.goes_on()
    crossed = "crossed" in p.says("ready")
    profile = Profile(p.ask("heap"))
    kept, all_ = bytes_of(profile, "inuse_space"), bytes_of(profile, "alloc_space")
    for site in SITES:
        for what, found in ("kept", kept), ("allocated", all_):
            got = found.get(site, 0)
            need(abs(got / BYTES - 1) < TOLERANCE, "%s: %d bytes %s, want %d\n%s\n%s" % (site, got, what, BYTES, kept, all_))
    if crossed:
        need(all_.get("cross", 0) > BYTES, all_)
        need(kept.get("cross", 0) < all_["cross"] / 5, "given back by another door, and still here: %s of %s" % (kept, all_))
    p.goes_on()
    p.says("fine")
    equal(p.p.wait(DEADLINE), 0)
    return crossed


def look(exe, env, linked, refused=None):
    """Right figures or, with `refused`, the sentence that says why there are none."""
    with Program(exe, env, linked) as p:
        p.says("started")
        p.find_port()
        index = p.ask("").decode()
        if not refused:
            need("heap sampling is off" not in index, index)
            return right_bytes(p)
        contains(index, refused)
        p.goes_on()
        p.says("ready")
        p.goes_on()
        p.says("fine")
        equal(p.p.wait(DEADLINE), 0)
        return False


def agent(**order):
    return dict(preload_env(**order), PPROF_BIND_ADDRESS="127.0.0.1:0")


def rows(name):
    """Each way to have the allocator beside us."""
    path = library(name)
    refused = "malloc() belongs to " + path
    with tempdir() as d:
        foreign = build(d, "foreign", "allocators.cc", mode="foreign")
        itself = build(d, "itself", "allocators.cc", mode="foreign", after=[path])
        linked = build(d, "linked", "allocators.cc", mode="linked")
        before = build(d, "before", "allocators.cc", mode="linked", before=[path])
        after = build(d, "after", "allocators.cc", mode="linked", after=[path])
        for what, args in (("linked before us", (before, {}, True)),
                           ("linked behind us", (after, {}, True)),
                           ("preloaded, we are linked", (linked, {"LD_PRELOAD": path}, True)),
                           ("linked, we are preloaded", (itself, agent(), False)),
                           ("preloaded behind us", (foreign, agent(after=path), False)),
                           ("preloaded before us", (foreign, agent(before=path), False, refused))):
            try:
                need(look(*args) or len(args) > 3, "its own functions were not found")
            except Exception as e:
                raise AssertionError("%s %s: %s" % (name, what, e)) from e


@test
def the_c_librarys_own_allocator_is_counted_right():
    with tempdir() as d:
        look(build(d, "linked", "allocators.cc", mode="linked"), {}, True)
        look(build(d, "foreign", "allocators.cc", mode="foreign"), agent(), False)


@test
def jemalloc_is_counted_right_wherever_it_is():
    rows("libjemalloc.so.2")


@test
def mimalloc_is_counted_right_wherever_it_is():
    rows("libmimalloc.so.2")


@test
def tcmalloc_is_counted_right_wherever_it_is():
    rows("libtcmalloc.so.4")


@test
def the_small_tcmalloc_is_counted_right_wherever_it_is():
    rows("libtcmalloc_minimal.so.4")


main()
