#!/usr/bin/env python3
"""/debug/pprof/memory: where the resident memory is.  What is planted is found in its place."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from hooked import library
from memory_load import *

PAGE = os.sysconf("SC_PAGE_SIZE")


@test
def all_of_it_is_what_smaps_counts():
    def rss():
        return int(re.search(r"^Rss:\s+(\d+)", text_of("/proc/%d/smaps_rollup" % d.pid), re.M)[1]) * 1024

    with load() as d:
        before, t, after = rss(), table(d), rss()  # it grows meanwhile: by unwind tables, by the answer itself
        need(before * 0.95 <= t["resident"] <= after * 1.05, (before, t["resident"], after))
        need(t["by"]["unexplained"]["resident"] <= 0.05 * t["resident"], str(t["by"]["unexplained"]))


@test
def text_is_what_curl_gets_and_says_the_same():
    with load() as d:
        for query in ("", "?debug=1"):
            r = d.get("/debug/pprof/memory" + query)
            equal((r.status, r.headers["content-type"]), (200, TEXT))
            m = re.match(r"memory: (\d+) bytes resident, (\d+) mapped, (\d+) swapped out; allocator: glibc\n", r.text)
            need(m, r.text)
            classes = re.findall(r"^ *(\d+) +\d+\.\d\d%  (?! )([a-z ]+)", r.text, re.M)
            equal([c[1] for c in classes], ["heap", "mappings", "stacks", "files", "shared memory", "profiler", "unexplained"])
            equal(sum(int(c[0]) for c in classes), int(m.group(1)))


@test
def leaked_blocks_are_heap_in_use():
    with load() as d:
        before = table(d)["by"]["heap"]
        near(grown(d, ["leak 30"], "heap", "main arena"), 30 * MB)
        near(table(d)["by"]["heap"]["in_use"] - before["in_use"], 30 * MB, "in use")


@test
def freed_blocks_are_free_heap_and_advice_says_what_trimming_gives_back():
    with load() as d:
        before = table(d)["by"]["heap"]["free"]
        near(grown(d, ["free 40"], "heap", "main arena"), 40 * MB)
        t = table(d)
        near(t["by"]["heap"]["free"] - before, 40 * MB, "free")
        said = int(re.search(r"malloc_trim\(\) would give back (\d+) MB at least", " ".join(t["advice"])).group(1)) * MB
        d.take("trim")
        after = table(d)
        near(t["resident"] - after["resident"], said, "given back")
        need(not any("malloc_trim" in a for a in after["advice"]), str(after["advice"]))


@test
def memstats_of_the_heaps_text_have_what_is_free_and_what_was_given_back():
    def memstats(d):
        text = d.get("/debug/pprof/heap?debug=1").text
        found = {k: int(n) for k, n in re.findall(r"^# (\w+) = (\d+)$", text, re.M)}
        found["StackInuse"] = int(re.search(r"^# Stack = (\d+) / \d+$", text, re.M).group(1))
        return found
    with load() as d:
        before = memstats(d)
        d.take("leak 5", "free 40", "stack 10")
        freed = memstats(d)
        near(freed["HeapIdle"] - before["HeapIdle"], 40 * MB, "HeapIdle")
        near(freed["HeapSys"] - before["HeapSys"], 45 * MB, "HeapSys")
        near(freed["StackInuse"] - before["StackInuse"], 10 * MB, "StackInuse")
        d.take("trim")
        near(memstats(d)["HeapReleased"] - freed["HeapReleased"], 40 * MB, "HeapReleased")
        d.take("block")
        contains(d.get("/debug/pprof/heap?debug=1").text, "# not known now, as the allocator has not answered: HeapSys")


@test
def a_large_block_is_heap():
    with load() as d:
        near(grown(d, ["large 25"], "heap", "large blocks"), 25 * MB)


def pages_there(pid, start, size):
    """Of so many bytes, those that have a page, be it one of zeros."""
    with open("/proc/%d/pagemap" % pid, "rb") as f:
        f.seek(start // PAGE * 8)
        words = f.read(size // PAGE * 8)
    return sum(words[i + 7] >> 7 for i in range(0, len(words), 8)) * PAGE


@test
def to_look_for_blocks_brings_no_page_in():
    with load() as d:
        d.take("large 5")  # or there is nothing to look for
        size = 200 << 20
        start = int(d.command("raw %d" % (size // MB + 1)).split()[0], 16)
        equal(pages_there(d.pid, start, size), 0)
        table(d)
        equal(pages_there(d.pid, start, size), 0, "bytes that the table has touched")


@test
def a_stack_counts_as_far_as_it_was_touched():
    with load() as d:
        near(grown(d, ["stack 20"], "stacks", "planted-stack"), 20 * MB)


def need_guards(pid):
    """Skips where the C library has a stack's guard inside of its mapping, so that nothing looks as a stack."""
    for start, limit, how in re.findall(r"^(\w+)-(\w+) (\S+)", text_of("/proc/%d/maps" % pid), re.M):
        if how == "---p" and int(limit, 16) - int(start, 16) == PAGE:
            return
    raise Skip("no guard is a mapping")


@test
def stacks_of_threads_that_have_ended_are_shown_as_kept():
    with load() as d:
        need_guards(d.pid)
        d.take("ended 1")
        need(sum(r["resident"] for r in table(d)["by"]["stacks"]["rows"] if r["name"].startswith("kept of")) >= 4 * PAGE)


@test
def the_stack_of_a_thread_that_has_forked_is_its_childs():
    with load() as d:
        need_guards(d.pid)
        os.unlink(d.port_file)
        d.take("thread-fork 1")
        d.wait_port()
        name = "planted-fork (%d)" % json.loads(d.get("/debug/pprof/status").text)["pid"]
        rows = {r["name"]: r["resident"] for r in table(d)["by"]["stacks"]["rows"]}
        need(rows.get(name, 0) >= MB, (name, rows))


@test
def arenas_of_threads_are_told_apart():
    with load() as d:
        near(grown(d, ["arena 10", "arena 20"], "heap", "arena at"), 30 * MB)
        rows = [r for r in table(d)["by"]["heap"]["rows"] if r["name"].startswith("arena at")]
        near(rows[0]["resident"], 20 * MB), near(rows[0]["in_use"], 20 * MB)
        near(rows[1]["resident"], 10 * MB), near(rows[1]["in_use"], 10 * MB)


@test
def arenas_of_threads_that_have_ended_are_advised_against():
    with load() as d:
        equal([a for a in table(d)["advice"] if "arenas" in a], [])
        near(grown(d, ["ended 24"], "heap", "arena at"), 24 * MB)
        count, threads_ = re.search(r"(\d+) arenas for (\d+) thread", " ".join(table(d)["advice"])).groups()
        equal(threads_, "1")
        need(int(count) > 4, count)


@test
def shared_memory_has_its_name():
    with load() as d:
        near(grown(d, ["share 15"], "shared memory", "anonymous"), 15 * MB)
        near(grown(d, ["named 10"], "shared memory", "/memfd:planted"), 10 * MB)


@test
def a_mapped_file_has_its_path():
    with tempdir() as where:
        before = os.getcwd()
        os.chdir(where)
        try:
            with load() as d:
                near(grown(d, ["file 12"], "files", "planted.data"), 12 * MB)
        finally:
            os.chdir(before)


@test
def the_figures_are_those_of_mallinfo2():
    with load() as d:
        d.take("leak 10", "free 10", "large 5", "arena 5")
        said = d.command("figures")
        if said == "none":
            raise Skip("this glibc has no mallinfo2()")
        used_, free, large = (int(x) for x in said.split())
        heap = table(d)["by"]["heap"]
        near(heap["in_use"], used_, "in use")
        near(heap["free"], free, "free")


@test
def a_thread_that_stands_in_malloc_is_left_behind_and_others_are_answered():
    with load() as d:
        d.take("arena 10", "large 10", "block")
        for _ in range(2):  # the second one does not ask at all
            t = table(d)
            equal(t["left_behind"], True)
            contains(t["notes"][0], "the allocator has not answered within 1 s")
            need(t["by"]["unexplained"]["resident"] <= 0.05 * t["resident"], str(t["by"]["unexplained"]))
        equal(sum(n.startswith("component-alloc") for n in thread_names(d.pid)), 1, "threads left behind")
        equal(d.get("/debug/pprof/heap?debug=1").status, 200)
        d.take("unblock")
        poll(lambda: not table(d)["left_behind"], "an answer of the allocator")
        near(grown(d, ["leak 10"], "heap", "main arena"), 10 * MB)


@test
def a_daemon_ends_cleanly_with_a_reading_left_behind():
    with load() as d:
        d.take("block")
        equal(table(d)["left_behind"], True)
        d.process.stdin.close()
        equal(d.wait(), 0)


@test
def profiling_maps_less_than_a_gibibyte():
    with load() as d:
        with open("/proc/%d/status" % d.pid) as f:
            size = int(re.search(r"^VmSize:\s+(\d+)", f.read(), re.M).group(1)) * 1024
        need(size < 1 << 30, "VmSize is %d" % size)


def thread_names(pid):
    names = []
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
            names.append(f.read().strip())
    return names


def with_allocator(name, free_is_told=True, beside=0):
    """beside: bytes that the allocator may take for itself."""
    with load(env={"LD_PRELOAD": library(name)}) as d:
        before = table(d)
        d.take("leak 30")
        after = table(d)
        resident = after["by"]["heap"]["resident"] - before["by"]["heap"]["resident"]
        near(resident - beside if resident > 30 * MB + beside else resident, 30 * MB, "resident")
        need(after["by"]["unexplained"]["resident"] <= 0.05 * after["resident"], str(after["by"]["unexplained"]))
        if free_is_told:
            near(after["by"]["heap"]["in_use"] - before["by"]["heap"]["in_use"], 30 * MB, "in use")
            d.take("free 40")
            freed = table(d)["by"]["heap"]
            near(freed["in_use"], after["by"]["heap"]["in_use"], "in use")
        near(grown(d, ["map 20"], "mappings", "map_table"), 20 * MB)
        return after["allocator"]


@test
def jemalloc_says_what_it_has():
    equal(with_allocator("libjemalloc.so.2"), "jemalloc")


@test
def tcmalloc_says_what_it_has():
    # It has a table of 2 MiB for every 2 GiB of addresses that its heap reaches into: one heap in fifty reaches a second.
    equal(with_allocator("libtcmalloc_minimal.so.4", beside=2 << 20), "tcmalloc")


@test
def mimalloc_says_what_it_has():
    equal(with_allocator("libmimalloc.so.2", free_is_told=False), "mimalloc")


@test
def mappings_are_the_programs_where_an_allocator_is_linked_into_it():
    with load(program="memory_load_allocator") as d:
        equal(table(d)["allocator"], "jemalloc")
        d.take("low")
        near(grown(d, ["map 20"], "mappings", "map_table"), 20 * MB)


@test
def the_documents_hunt_finds_what_was_planted():
    with open(os.path.join(SRC, "docs/memory.md")) as f:
        steps = re.findall(r"^curl .*$", f.read(), re.M)
    equal(len(steps), 7)

    def follow(d, step):
        r = run("sh", "-c", step.replace("localhost:6060", "127.0.0.1:%d" % d.port).replace("seconds=10", "seconds=1"))
        equal((r.returncode, r.stderr), (0, ""), step)
        return r.stdout

    def sizes(text):
        return {what.strip(): int(n) for n, what in re.findall(r"^ *(\d+) +[\d.]+%  (.*?)(?:: in use.*)?$", text, re.M)}
    with load() as d:
        before = sizes(follow(d, steps[1]))
        d.take("leak 30", "free 60", "map 45", "stack 20", "share 15")
        said = follow(d, steps[0])
        near(int(re.search(r"malloc_trim\(\) would give back (\d+) MB", said).group(1)), 60, said)
        after = sizes(follow(d, steps[1]))
        for what, bytes_ in ("heap", 90), ("mappings", 45), ("stacks", 20), ("shared memory", 15):
            near(after[what] - before[what], bytes_ * MB, what)
        near(sum(after.values()), int(re.match(r"memory: (\d+)", said).group(1)), "the sum")
        contains(follow(d, steps[2]), "leak_blocks")
        rows = sizes(follow(d, steps[3]))
        near(sum(n for row, n in rows.items() if row.startswith("map_table")), 45 * MB, str(rows))
        rows = sizes(follow(d, steps[4]))
        near(sum(n for row, n in rows.items() if row.startswith("planted-stack")), 20 * MB, str(rows))
        near(rows["anonymous"], 15 * MB, str(rows))
        for step in steps[5:]:
            follow(d, step)


main()
