#!/usr/bin/env python3
"""sample_identity.t - a sample of heap and allocs stays the same sample from scrape to scrape."""
import os
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from gotools import pprofs  # noqa: E402
from pprof_reader import Profile  # noqa: E402

SCRAPES = 60


class Changing:
    """A program that goes on allocating when asked."""
    def __init__(self, process):
        self.process = process
        self.url = process.stdout.readline().strip()

    def change(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        equal(self.process.stdout.readline(), "done\n")

    def scrape(self, path):
        return urllib.request.urlopen(self.url + path, timeout=60).read()


@contextlib.contextmanager
def changing(d):
    argv = [build(d, "sizes", "heap_sizes.c", "linked"), "127.0.0.1:0"]
    with started(argv, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        yield Changing(p)
        p.stdin.close()
        p.wait(DEADLINE)


def by_identity(raw):
    """Values of each sample, by what Go's profile.Merge and the stores tell samples apart by."""
    p = Profile(raw)
    samples = {}
    for stack, values, labels in p.samples:
        # Addresses: ids of locations are each file's own.
        where = tuple(p.locations[i - 1].get(3) for i in stack)
        key = where, tuple(sorted((p.strings[l[1]], p.strings[l.get(2, 0)], l.get(3, 0)) for l in labels))
        need(key not in samples, "two samples of one identity: %r" % (key,))
        samples[key] = values
    return samples


def minus(after, before):
    delta = {k: [a - b for a, b in zip(v, before.get(k, [0] * 4))] for k, v in after.items()}
    return {k: v for k, v in delta.items() if any(v)}


def judge(name):
    with tempdir() as d, changing(d) as program:
        program.change()
        scrapes = [by_identity(program.scrape(name))]
        merged = {}
        for _ in range(SCRAPES):
            program.change()
            scrapes.append(by_identity(program.scrape(name)))
            before, after = scrapes[-2:]
            gone = set(before) - set(after)
            need(not gone, "%d samples are gone: %r" % (len(gone), list(gone)[:2]))
            for key, delta in minus(after, before).items():
                need(delta[0] >= 0 and delta[1] >= 0, "fell by %r: %r" % (delta, key))
                sums = merged.setdefault(key, [0] * 4)
                merged[key] = [a + b for a, b in zip(sums, delta)]
    equal({k: v for k, v in merged.items() if any(v)}, minus(scrapes[-1], scrapes[0]))
    return scrapes


@test
def identities_of_heap_never_change_and_cumulative_values_never_fall():
    scrapes = judge("heap")
    need(max(len(s) for s in scrapes) < 400, "%d samples of three call sites" % len(scrapes[-1]))
    sizes = {n for k in scrapes[-1] for what, _, n in k[1] if what == "bytes"}
    need(5000 in sizes, "the one size of a call site is not told: %r" % sizes)


@test
def nor_do_those_of_allocs():
    judge("allocs")


@test
def go_subtracts_an_older_profile_without_a_negative_remainder():
    with tempdir() as d, changing(d) as program:
        files = []
        for i in range(2):
            for _ in range(5):
                program.change()
            files.append(os.path.join(d, "allocs%d.pb.gz" % i))
            with open(files[-1], "wb") as f:
                f.write(program.scrape("allocs"))
        delta = os.path.join(d, "delta")
        for tool in pprofs():
            r = subprocess.run([tool.path, "-proto", "-symbolize=none", "-output", delta, "-base", *files],
                               capture_output=True, text=True, timeout=300, env=dict(os.environ, HOME=d))
            need(r.returncode == 0, r.stderr)
            with open(delta, "rb") as f:
                samples = by_identity(f.read())
            need(samples, "%s: no sample of what was allocated between" % tool.name)
            for key, values in samples.items():
                need(values[0] >= 0 and values[1] >= 0, "%s: %r of %r" % (tool.name, values, key))


@test
def so_does_the_server_in_a_delta_of_its_own():
    with tempdir() as d, changing(d) as program:
        program.change()
        scrape = in_background(program.scrape, "allocs?seconds=1")
        while scrape.is_alive():
            program.change()
        delta = by_identity(scrape.result())
        need(delta, "no sample of what was allocated meanwhile")
        for key, values in delta.items():
            need(values[0] >= 0 and values[1] >= 0, "%r of %r" % (values, key))


main()
