#!/usr/bin/env python3
"""hidden_tables.t - whole stacks of programs whose unwind tables no program header names."""
import glob
import os
import struct
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403

OPTIONS = ["-O1", "-fomit-frame-pointer"]
WHOLE = "main;frames_outer;frames_middle;frames_leaf"
NO_HEADER = ["-Wl,--no-eh-frame-hdr"]


def need_static_libraries():
    if not all(glob.glob(p) for p in ("/usr/lib/*/libevent_core.a", "/usr/lib/*/libc.a", "/usr/lib/*/libyaml.a")):
        raise Skip("no static libraries")


class Program:
    def __init__(self, exe, *args):
        self.process = subprocess.Popen([exe, "127.0.0.1:0", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().strip()
        need(self.url, "it did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()

    def get(self, what):
        with urllib.request.urlopen(self.url + what, timeout=DEADLINE) as r:
            return r.read().decode()

    def stacks(self):
        """Weights by stack of the program's own work."""
        def seen():
            found = {}
            for line in self.get("profile?seconds=1&format=folded").splitlines():
                stack, weight = line.rsplit(" ", 1)
                if "frames_leaf" in stack:
                    found[stack] = found.get(stack, 0) + int(weight)
            return found
        return poll(seen, "a sample of its work")


def header_place(exe):
    """Where PT_GNU_EH_FRAME's bytes are in the file; None without one."""
    with open(exe, "rb") as f:
        elf = f.read()
    at, size, count = struct.unpack_from("<Q", elf, 32)[0], *struct.unpack_from("<HH", elf, 54)
    for i in range(count):
        kind, _, offset = struct.unpack_from("<IIQ", elf, at + i * size)
        if kind == 0x6474e550:
            return offset
    return None


def overwrite(exe, offset, data):
    with open(exe, "r+b") as f:
        f.seek(offset)
        f.write(data)


def check_whole(exe, *args):
    with Program(exe, *args) as p:
        found = p.stacks()
        whole = sum(w for s, w in found.items() if WHOLE in s)
        need(whole >= sum(found.values()) * 0.95, str(found))
        dump = p.get("threads?debug=2")
        need(WHOLE.split(";")[1] in dump, dump)
        need("unwind tables:" not in p.get(""), "none are missing")


@test
def a_static_program_has_whole_stacks():
    need_static_libraries()
    with tempdir() as d:
        exe = build(d, "static", "deep_calls.c", "static", OPTIONS)
        equal(header_place(exe), None, "gcc -static has become another")
        check_whole(exe)


@test
def a_program_without_the_header_has_whole_stacks():
    with tempdir() as d:
        exe = build(d, "plain", "deep_calls.c", "linked", OPTIONS + NO_HEADER)
        equal(header_place(exe), None)
        check_whole(exe)


@test
def a_program_whose_header_has_no_search_table_has_whole_stacks():
    with tempdir() as d:
        exe = build(d, "omitted", "deep_calls.c", "linked", OPTIONS)
        overwrite(exe, header_place(exe) + 2, b"\xff\xff")
        check_whole(exe)


@test
def libunwind_walks_by_the_search_table_that_was_made():
    with tempdir() as d:
        exe = build(d, "libunwind", "deep_calls.c", "linked", OPTIONS + NO_HEADER)
        with Program(exe, "libunwind") as p:
            if "unwinder: libunwind" not in p.get(""):
                raise Skip("no libunwind")
        check_whole(exe, "libunwind")


@test
def a_program_whose_file_has_been_replaced_has_whole_stacks():
    with tempdir() as d:
        exe = build(d, "replaced", "deep_calls.c", "linked", OPTIONS + NO_HEADER)
        with Program(exe) as p:
            os.unlink(exe)
            with open(exe, "wb") as f:
                f.write(b"\x7fELF, another one")
            need(any(WHOLE in s for s in p.stacks()), str(p.stacks()))


@test
def the_index_names_an_object_whose_tables_cannot_be_found():
    with tempdir() as d:
        exe = build(d, "headless", "deep_calls.c", "linked", OPTIONS + NO_HEADER)
        overwrite(exe, 40, b"\0" * 8)       # e_shoff
        overwrite(exe, 60, b"\0" * 4)       # e_shnum, e_shstrndx
        with Program(exe) as p:
            p.get("profile?seconds=1&format=folded") # it has read all tables by now
            lines = [n for n in p.get("").splitlines() if "unwind tables:" in n]
            equal(len(lines), 1)
            contains(lines[0], exe)
            contains(lines[0], "-Wl,--eh-frame-hdr")


main()
