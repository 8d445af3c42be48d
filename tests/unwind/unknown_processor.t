#!/usr/bin/env python3
"""What is left where arch/ has no folder for the processor.  Stacks are walked by libunwind from
copies, and nothing is hooked.

Run by scripts/test in two builds, which scripts/variant makes: build-other/ has ARCH_DIR=other on
a processor that has a folder, and build-riscv64/ is for one that has none.  qemu-riscv64 runs
that: it has no timers of threads, and what the kernel tells of threads is qemu's own, so
stacks are build-other's alone.
"""
import gzip
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from serving import *
import pprof_reader

with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as makefile:
    if not re.search(r"^ARCH_DIR = other$", makefile.read(), re.M):
        sys.exit("%s is not configured with ARCH_DIR=other" % BUILD)


def native(fn):
    return fn if EMULATED else test(fn)


@test
def every_route_answers_with_a_valid_profile():
    with server() as d:
        for name in kinds_of_profile():
            answer = d.get(PPROF + name + ("?seconds=1" if name in ("profile", "trace") else ""))
            equal(answer.status, 200, name)
            need(answer.body, name)
            if name not in ("cmdline", "trace"):
                need(pprof_reader.Profile(answer.body).types, name)
        contains(d.get(PPROF).text, "unwinder: libunwind")


@native
def cpu_samples_have_whole_stacks_by_libunwind():
    with server("--burn") as d:
        contains(d.get(PPROF).text, "unwinder: libunwind")
        stacks = poll(lambda: [line for line in d.get(PPROF + "profile?seconds=1&format=folded").text.split("\n") if "burn_cycles" in line],
                      "a sample of its work")
        need(all(re.search(r"clone|start_thread", line) for line in stacks), stacks)


@native
def blocked_threads_are_walked_too():
    with server("--burn") as d:
        text = d.get(PPROF + "goroutine?debug=2").text
        need(re.search(r"\[read, thread: profiled_daemon\]:\n(\S*read\S*\n\t.*\n)+\S+\(\.\.\.\)\n", text), text)
        contains(gzip.decompress(d.get(PPROF + "goroutine").body), b"stacks walked by libunwind: ")


@test
def a_thread_that_runs_is_told_to_run():
    with server("--burn") as d:
        contains(d.get(PPROF + "goroutine?format=folded").text, "[running]")


@test
def nobody_is_told_of_address_0():
    with server("--burn") as d:
        text = d.get(PPROF + "goroutine?debug=1").text
        need(re.search(r"^#\t0x", text, re.M), text)
        need(not re.search(r"^#\t0x0*[01]\t", text, re.M), text)


@test
def kinds_that_need_hooks_answer_and_say_what_lacks():
    with server("--burn") as d:
        contains(d.get(PPROF).text, "heap sampling is off: there are no hooks for this architecture")
        contains(d.get(PPROF).text, "waits are not seen: there are no hooks for this architecture")


main(emulated=True)
