#!/usr/bin/env python3
"""unloaded_plugins.t - plugins that are unloaded, and others in their place, in profiles
as go tool pprof reads them."""
import os
import re
import shutil
import sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *  # noqa: E402,F403
from harness import *  # noqa: E402,F403
from serving import *  # noqa: E402,F403

BLOCK = 4096
# Where nobody maps anything: without one the kernel puts a plugin into the highest hole, and
# others' mappings, too.  The loader takes the address of the file for a wish.
PLACE = "-Wl,-Ttext-segment=0x1000000000"
# Nothing but names differ, and those are of one length: two such objects are of one size.
PLUGIN = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#define JOINED(a, b) a##b
#define BEGINS(name) JOINED(name, _begins)
static void *kept[1 << 16];
static int count;
__attribute__((noinline)) void NAME(int n);
void NAME(int n) { while (n-- > 0) { kept[count] = malloc(%d); *(volatile char *)kept[count++] = 1; } }
void *BEGINS(NAME)(void *stays);
void *BEGINS(NAME)(void *stays) { while (stays) pause(); return stays; }
int plugin_work(int n);
/* -1: a thread that stays, -2: one that ends */
int plugin_work(int n)
{
	pthread_t t;

	if (n < 0)
		return pthread_create(&t, NULL, BEGINS(NAME), n == -1 ? &count : NULL) || (n == -2 && pthread_join(t, NULL));
	NAME(n);
	return count > 0 ? 0 : 1;
}
""" % BLOCK


def plugin(d, name, path=None):
    source = os.path.join(d, "plugin.c")
    with open(source, "w") as f:
        f.write(PLUGIN)
    path = path or os.path.join(d, name + ".so")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # never written over: it may be mapped
    r = run(*CC.split(), "-shared", "-fPIC", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-builtin",
            PLACE, "-Wl,--build-id", "-DNAME=" + name, "-o", path, source)
    equal(r.returncode, 0, r.stderr)
    notes = run("readelf", "-n", path).stdout
    return path, re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


@contextlib.contextmanager
def sampled(*options):
    """A daemon whose every allocation is a sample."""
    with server("--heap-rate", "1", *options) as s:
        equal(s.command("alloc 1000000"), "0")  # what was counted while it was off
        yield s


def load(s, path):
    answer = s.command("load " + path)
    need(answer.startswith("0x"), answer)
    return int(answer.split()[0], 16)


def seen(s):
    """Has the daemon look at its objects, and name none."""
    equal(s.get(PPROF + "symbol?0x1").status, 200)


def work(s, path, n):
    """Loads, has it work, and unloads it when it was seen; where it was."""
    at = load(s, path)
    equal(s.command("call %d" % n), "0")
    seen(s)
    equal(s.command("unload"), "0")
    return at


def agreed_of(read, d, data, *args):
    """What read() makes of what a go tool pprof says, whichever it is."""
    path = os.path.join(d, "profile.pb.gz")
    with open(path, "wb") as f:
        f.write(data)
    return agreed(lambda pprof: read(pprof("-symbolize=none", *args, path)))


class Raw:
    """go tool pprof -raw: functions by name, to the mappings and the addresses they have."""

    def __init__(self, text):
        self.text = text
        self.mapping, self.at = {}, {}
        where, mappings = "", {}
        for line in text.splitlines():
            if line in ("Samples:", "Locations", "Mappings"):
                where = line
            elif where == "Mappings":
                m = re.match(r"(\d+): (0x[0-9a-f]+)/(0x[0-9a-f]+)/(0x[0-9a-f]+) (\S*) ?([0-9a-f]*)", line)
                need(m, line)
                mappings[int(m[1])] = (int(m[2], 16), int(m[3], 16), m[5], m[6])
            elif where == "Locations":
                m = re.match(r"\s*\d+: (0x[0-9a-f]+) (?:M=(\d+) )?((?!M=)\S+)", line)
                if m:  # which has a name
                    self.at.setdefault(m[3], set()).add((int(m[1], 16), int(m[2] or 0)))
        self.mappings = sorted(mappings.values())
        for name, places in self.at.items():
            self.mapping[name] = {mappings[m][2:] for _, m in places if m}
            for address, m in places:
                inside = [i for i, (start, limit, _, _) in mappings.items() if start <= address < limit]
                need(not m or inside == [m], "%s at %#x is in %r of %r, not in %d alone" % (name, address, inside, mappings, m))
        # The numbers of mappings are the tool's own.
        self.at = {name: {a for a, _ in places} for name, places in self.at.items()}

    def __repr__(self):
        return "%r %r of\n%s" % (sorted(self.mapping.items()), sorted(self.at.items()), self.text)

    def __eq__(self, other):
        return (self.mapping, self.at) == (other.mapping, other.at)  # some leave out what has no samples


def raw_of(d, data):
    return agreed_of(Raw, d, data, "-raw")


def heap(s):
    r = s.get(PPROF + "heap")
    equal(r.status, 200)
    return r.body


def objects(d, data, name):
    """What a function has allocated itself, in blocks, by pprof -top."""
    def read(text):
        found = [int(line.split()[0]) for line in text.splitlines() if line.split()[-1:] == [name]]
        equal(len(found), 1, "rows of %s in\n%s" % (name, text))
        return found[0]
    return agreed_of(read, d, data, "-top", "-sample_index=alloc_objects", "-nodecount=1000")


def both_are_named(unwinder):
    """Are their stacks whole, too?"""
    with tempdir() as d, sampled("--unwinder", unwinder) as s:
        (alpha, alpha_id), (gamma, gamma_id) = plugin(d, "alpha_keeps"), plugin(d, "gamma_keeps")
        equal(work(s, alpha, 3), work(s, gamma, 5), "addresses")
        data = heap(s)
        raw = raw_of(d, data)
        equal(raw.mapping["alpha_keeps"], {(alpha, alpha_id)})
        equal(raw.mapping["gamma_keeps"], {(gamma, gamma_id)})
        equal((objects(d, data, "alpha_keeps"), objects(d, data, "gamma_keeps")), (3, 5))
        names = "alpha_keeps", "gamma_keeps"
        whole = agreed_of(lambda text: [n for n in names if re.search(n + r"\n\s+plugin_work\n\s+do_call\n", text)],
                          d, data, "-traces", "-sample_index=alloc_objects")
        text = s.get(PPROF + "heap?debug=1").text
        for name in ("alpha_keeps", "gamma_keeps"):
            shown = re.search(r"#\t0x([0-9a-f]+)\t%s\+" % name, text)
            need(shown, text)
            # What is shown can be asked for again.
            contains(s.get(PPROF + "symbol?0x" + shown[1]).text, name)
        top = s.get(PPROF + "heap?format=top").text
        contains(top, "alpha_keeps")
        contains(top, "gamma_keeps")
        return whole == list(names)


def both_are_named_and_whole(unwinder):
    # Of a plugin that has just come a hook waits 10 ms for tables, which may be too little on a busy machine.
    need(any(both_are_named(unwinder) for _ in range(10)), "ten times stacks ended in a plugin")


@test
def a_plugin_and_the_one_that_took_its_place_are_both_named():
    both_are_named_and_whole("tables")


@test
def also_with_frame_pointers():
    both_are_named_and_whole("frame-pointer")


@test
def one_that_is_loaded_now_has_its_real_addresses_and_the_older_one_synthetic_ones():
    with tempdir() as d, sampled() as s:
        alpha, gamma = plugin(d, "alpha_keeps")[0], plugin(d, "gamma_keeps")[0]
        equal(work(s, alpha, 2), load(s, gamma), "addresses")
        equal(s.command("call 2"), "0")
        raw = raw_of(d, heap(s))
        old, = raw.at["alpha_keeps"]
        new, = raw.at["gamma_keeps"]
        need(old >> 48 and not new >> 48 and old & ((1 << 48) - 1) == new, "%#x %#x" % (old, new))
        with open("/proc/%d/maps" % s.pid) as f:
            real = [tuple(int(x, 16) for x in line.split()[0].split("-")) for line in f if line.rstrip().endswith(gamma)]
        need(any(a <= new < b for a, b in real), "%#x is not in %r" % (new, real))


@test
def every_allocation_of_many_changes_goes_to_its_own_object():
    with tempdir() as d, sampled() as s:
        names = ["alpha_keeps", "gamma_keeps", "omega_keeps"]
        paths = [plugin(d, n)[0] for n in names]
        places = [work(s, paths[i % 3], 1 + i % 3) for i in range(30)]
        equal(len(set(places)), 1, "places of three objects")
        data = heap(s)
        equal([objects(d, data, n) for n in names], [10, 20, 30])
        raw = raw_of(d, data)
        # However often: an object in one place is one mapping.
        equal(len([m for m in raw.mappings if m[2] in paths]), len({(p, a) for p, a in zip(paths * 10, places)}))


@test
def a_file_that_was_replaced_keeps_its_build_id_and_not_its_names():
    with tempdir() as d, sampled() as s:
        path, old_id = plugin(d, "alpha_keeps", os.path.join(d, "plugin.so"))
        place = work(s, path, 3)
        path, new_id = plugin(d, "gamma_keeps", path)
        equal(work(s, path, 4), place, "addresses")
        need(old_id != new_id)
        data = heap(s)
        raw = raw_of(d, data)
        equal(raw.mapping["gamma_keeps"], {(path, new_id)})
        need("alpha_keeps" not in raw.mapping, "a name of the new file on the old one's address")
        unnamed = [n for n in raw.mapping if re.match(r"plugin\.so\+0x[0-9a-f]+$", n)]
        equal({m for n in unnamed for m in raw.mapping[n]}, {(path, old_id)})
        equal(objects(d, data, "gamma_keeps"), 4)
        contains(raw.text, "objects are without names")


@test
def a_name_that_was_asked_for_is_known_when_the_file_is_another():
    with tempdir() as d, sampled() as s:
        path, old_id = plugin(d, "alpha_keeps", os.path.join(d, "plugin.so"))
        load(s, path)
        equal(s.command("call 3"), "0")
        heap(s)
        equal(s.command("unload"), "0")
        path, new_id = plugin(d, "gamma_keeps", path)
        work(s, path, 4)
        data = heap(s)
        raw = raw_of(d, data)
        equal((raw.mapping["alpha_keeps"], raw.mapping["gamma_keeps"]), ({(path, old_id)}, {(path, new_id)}))
        equal((objects(d, data, "alpha_keeps"), objects(d, data, "gamma_keeps")), (3, 4))


@test
def an_object_that_is_gone_and_has_no_successor_keeps_its_addresses():
    with tempdir() as d, sampled() as s:
        alpha, alpha_id = plugin(d, "alpha_keeps")
        at = load(s, alpha)
        equal(s.command("call 1"), "0")
        heap(s)  # somebody has seen it
        equal(s.command("unload"), "0")
        raw = raw_of(d, heap(s))
        equal(raw.mapping["alpha_keeps"], {(alpha, alpha_id)})
        need(all(abs(a - at) < 4096 for a in raw.at["alpha_keeps"]), "%r, and it was at %#x" % (raw.at, at))


@contextlib.contextmanager
def second_in_a_place():
    """A daemon with a plugin whose place another one had, alpha_keeps, and that one's address."""
    with tempdir() as d, sampled() as s:
        alpha, gamma = plugin(d, "alpha_keeps")[0], plugin(d, "gamma_keeps")[0]
        equal(work(s, alpha, 1), load(s, gamma), "addresses")
        yield s


@test
def a_thread_of_the_second_one_is_named_as_its_in_what_sigquit_prints():
    with second_in_a_place() as s:
        equal(s.command("call -1"), "0")

        def dumped():
            equal(s.command("dump"), "0")
            return re.findall(r"^(\w+)_keeps_begins\(\.\.\.\)$", text_of(s.log_path), re.M)
        equal(set(poll(dumped, "a dump with that thread")), {"gamma"})


@test
def in_a_trace_too_it_has_begun_in_the_second_one():
    with second_in_a_place() as s:
        trace = in_background(s.get, PPROF + "trace?seconds=1")
        while trace.is_alive():
            equal(s.command("call -2"), "0")
        equal(set(re.findall(rb"(\w+)_keeps_begins", trace.result().body)), {b"gamma"})


main()
