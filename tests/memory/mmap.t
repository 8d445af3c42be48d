#!/usr/bin/env python3
"""/debug/pprof/mmap: what a program has mapped itself, by the stack that did it; and its place in the
table of resident memory."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from memory_load import *

MMAP = "/debug/pprof/mmap"


def folded(d, name):
    """Bytes in use below a function."""
    r = d.get(MMAP + "?format=folded")
    equal(r.status, 200)
    return sum(int(n) for stack, n in re.findall(r"^(.*) (\d+)$", r.text, re.M) if name in stack.split(";"))


def counts(d, name):
    """Mappings and bytes in use, and all that were made, as the text has them."""
    text = d.get(MMAP + "?debug=1").text
    found = [0, 0, 0, 0]
    for numbers, stack in re.findall(r"^(\d+: \d+ \[\d+: \d+\]) @.*\n((?:#.*\n)+)", text, re.M):
        if re.search(r"\t%s\+" % name, stack):
            found = [a + int(b) for a, b in zip(found, re.findall(r"\d+", numbers))]
    return found


@test
def a_mapping_is_in_use_by_the_function_that_made_it():
    with load() as d:
        near(grown(d, ["map 20"], "mappings", "map_table"), 20 * MB)
        need(20 * MB <= folded(d, "map_table") < 20 * MB + 4096, "bytes in use")
        equal(counts(d, "map_table")[0::2], [1, 1])
        d.take("map 5", "unmap")
        equal(counts(d, "map_table")[:3], [0, 0, 2])
        near(counts(d, "map_table")[3], 25 * MB)


@test
def what_is_unmapped_from_the_middle_leaves_two():
    with load() as d:
        d.take("map 20", "middle 5")
        used_ = counts(d, "map_table")
        equal(used_[0], 2)
        near(used_[1], 15 * MB)
        near(sum(r["resident"] for r in table(d)["by"]["mappings"]["rows"] if "map_table" in r["stack"]), 15 * MB)


@test
def what_moves_and_grows_belongs_to_who_made_it():
    with load() as d:
        d.take("map 4", "map 4", "grow 12")
        near(folded(d, "map_table"), 20 * MB)
        near(sum(r["resident"] for r in table(d)["by"]["mappings"]["rows"] if "map_table" in r["stack"]), 20 * MB)
        d.take("unmap")
        equal(folded(d, "map_table"), 0)


@test
def go_tool_pprof_and_a_table_read_it_and_a_delta_says_what_came():
    with load() as d:
        d.take("map 10")
        contains(d.get(MMAP + "?format=top").text, "map_table")
        delta = in_background(lambda: d.get(MMAP + "?seconds=2&format=folded").text)
        poll(lambda: job_waits(d), "the first snapshot")
        d.take("map 7")
        near(sum(int(n) for n in re.findall(r"map_table (\d+)$", delta.result(), re.M)), 7 * MB)


@test
def its_rate_switches_it_off_and_on():
    with load() as d:
        contains(d.get("/debug/pprof/rates").text, "mmap")
        equal(d.get("/debug/pprof/rates", method="POST", body="mmap-profile-rate=0").status, 200)
        d.take("map 10")
        equal(folded(d, "map_table"), 0)
        equal(d.get("/debug/pprof/rates", method="POST", body="mmap-profile-rate=1").status, 200)
        d.take("map 5")
        near(folded(d, "map_table"), 5 * MB)


@test
def a_child_that_is_brought_back_has_its_parents_mappings_and_its_own():
    with load() as d:
        d.take("map 8")
        os.unlink(d.port_file)
        d.take("fork")
        d.wait_port()
        d.take("map 4")
        near(folded(d, "map_table"), 12 * MB)
        near(sum(r["resident"] for r in table(d)["by"]["mappings"]["rows"] if "map_table" in r["stack"]), 12 * MB)


@test
def as_many_mappings_as_the_kernel_gives_are_all_known():
    with open("/proc/sys/vm/max_map_count") as f:
        if int(f.read()) < 61000:
            raise Skip("the kernel gives a process fewer mappings than this takes")
    with load() as d:
        d.take("pages 60")
        used_ = counts(d, "map_pages")
        equal(used_[0::2], [60000, 60000])
        equal(used_[1], 60000 * os.sysconf("SC_PAGE_SIZE"))
        # Every other one may be read alone, and so is a page of zeros, which the kernel does not count.
        near(sum(r["resident"] for r in table(d)["by"]["mappings"]["rows"] if "map_pages" in r["stack"]), used_[1] // 2)


@test
def mappings_of_the_library_are_not_the_programs():
    with load() as d:
        for path in ("heap", "goroutine", "profile?seconds=1", "memory"):
            equal(d.get("/debug/pprof/" + path).status, 200)
        equal(re.findall(r"component_\w+|pages_map_for", d.get(MMAP + "?format=folded").text), [])


main()
