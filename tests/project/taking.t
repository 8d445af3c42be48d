#!/usr/bin/env python3
"""taking.t - a collector, a format or an unwinder is taken away: its files and its row, and nothing else.

The library is linked once more from the objects of the build, without those of the files, beside a
table that is compiled without the row.  No name may be left open then (-z defs), no other file may
include one of those that are gone, a daemon serves all the others with it, and the quick tests that
are not about what is gone pass with it: two files of them each time, all with TEST_STRESS=1.
"""
import functools
import glob
import itertools
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from quick_tests import others_pass, tree_without  # noqa: E402

ROOMS = "libcomponent", "flags", "profiler", "components"
COLLECT, ENCODE, UNWIND = "profiler/collect", "profiler/encode", "profiler/unwind"
made = {}
turns = itertools.count()


@functools.lru_cache(maxsize=None)
def variables(*names):
    """Of the build's Makefile, each as words."""
    with tempdir() as d:
        with open(d + "/show.mk", "w") as f:
            f.write("include Makefile\nshow:\n" + "".join("\t@echo '$(%s)'\n" % name for name in names))
        r = run("make", "-s", "-C", BUILD, "-f", d + "/show.mk", "show", env=dict(os.environ, MAKEFLAGS=""))
    equal(r.returncode, 0, r.stderr)
    return [line.split() for line in r.stdout.splitlines()]


def objects():
    """{path of the source without its ending: object}, of the library."""
    if not made:
        for room in ROOMS:
            # The newest last: a build folder may hold what an older Makefile has made.
            for path in sorted(glob.glob(os.path.join(BUILD, room, "**/.libs/*_la-*.o"), recursive=True), key=os.path.getmtime):
                source = re.sub(r"\.libs/\w+_la-(.*)\.o$", r"\1", os.path.relpath(path, BUILD))
                if any(os.path.exists(os.path.join(top, source + ".c")) for top in (SRC, BUILD)):
                    made[source] = path
        if not made:
            raise Skip("only static libraries are built")
        need(len(made) > 200, "only %d objects are found" % len(made))
    return made


def sources():
    for room in ROOMS:
        for folder, _, names in os.walk(os.path.join(SRC, room)):
            for name in names:
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), SRC)


def is_gone(path, gone):
    return any(path == g or path.startswith(g + "/") for g in gone)


def included(gone):
    """Lines of other files that include one that is gone."""
    headers = {os.path.basename(p): p for p in sources() if is_gone(p, gone) and p.endswith(".h")}
    for path in sources():
        if is_gone(path, gone):
            continue
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text_of(path), re.M):
            base = os.path.basename(name)
            own = os.path.exists(os.path.join(SRC, os.path.dirname(path), name))
            if base in headers and not own and headers[base].endswith("/" + name):
                yield path + ": " + name


@contextlib.contextmanager
def library_without(gone, table, rows, beside=(), cflags="INC_COLLECT", words="", rooms=()):
    """The folder of a libcomponent.so without those files, and without those lines of the table.  beside: what is
    compiled with the table.  Quick tests that do not match words and are in none of the rooms pass with it."""
    equal(list(included(gone)), [], "a file that is gone is included by")
    (cc, own, flags, include, map_, libs) = variables("CC", "DEFS", "CFLAGS", cflags, "components_libcomponent_la_LDFLAGS",
                                                      "components_libcomponent_la_LIBADD")
    include = [os.path.join(BUILD, w) if re.match(r"\.\.?(/|$)", w) else re.sub(r"^-I(?=\.)", "-I" + BUILD + "/", w) for w in include]
    folder = os.path.dirname(table)
    before = text_of(table)
    after = "".join(line + "\n" for line in before.splitlines() if not any(re.search(row, line) for row in rows))
    equal(len(before.splitlines()) - len(after.splitlines()), len(rows), "rows of " + table)
    compiled = [os.path.splitext(p)[0] for p in (table,) + tuple(beside) if p.endswith(".c")]
    with tempdir() as d:
        for path in (table,) + tuple(beside):
            with open(os.path.join(d, os.path.basename(path)), "w") as f:
                f.write(after if path == table else text_of(path))
        for source in compiled:
            r = run(*cc, *own, "-I" + BUILD, *include, "-iquote", os.path.join(SRC, folder), "-std=gnu11", "-D_GNU_SOURCE", *flags,
                    "-w", "-fPIC", "-fvisibility=hidden", "-c", "-o", os.path.join(d, os.path.basename(source) + ".o"),
                    os.path.join(d, os.path.basename(source) + ".c"))
            equal(r.returncode, 0, source + " without it does not compile:\n" + r.stderr)
        objs = [o for source, o in sorted(objects().items()) if source not in compiled and not is_gone(source + ".c", gone)]
        need(len(objs) + len(compiled) < len(objects()) or not gone, "nothing was taken away")
        script = [w if os.path.isabs(w) else os.path.join(BUILD, w) for w in
                  (m.group(1) for m in (re.match(r"-Wl,--version-script=(.*)", w) for w in map_) if m)]
        r = run(*cc, *flags, "-shared", "-o", d + "/libcomponent.so.0", "-Wl,-soname,libcomponent.so.0", "-Wl,-z,defs", "-Wl,-z,now",
                "-Wl,--version-script=" + script[0], *objs, *glob.glob(d + "/*.o"), os.path.join(BUILD, "gnulib/.libs/libgnu.a"),
                *[w for w in libs if w.startswith(("-l", "-L"))], "-lpthread", "-ldl")
        equal(r.returncode, 0, "without it the library does not link:\n" + r.stderr[-3000:])
        with tree_without(gone, d + "/libcomponent.so.0", table, after) as env:
            others = in_background(others_pass, words, rooms, env, next(turns))
            try:
                yield d
            finally:
                others.join()
            others.result()


def hello(folder, *argv):
    exe = os.path.join(BUILD, "examples/.libs/hello")
    if not os.path.exists(exe):
        exe = os.path.join(BUILD, "examples/hello")
    return daemon(exe, "--enable-pprof", *argv, env={"LD_LIBRARY_PATH": folder})


def rows_of(folder):
    """Names in collectors.def of what the files of a folder define."""
    return [name for path in sorted(glob.glob(os.path.join(SRC, folder, "*.c")))
            for name in re.findall(r"^const struct collector(?:_family)? collect_(\w+) = ", text_of(os.path.relpath(path, SRC)), re.M)]


# What else names a collector in tests, and rooms beside its own whose tests are about it.
ABOUT = {"cpu": ["window"], "custom": ["CONTROLLER"], "heap": ["%68eap"], "threads": ["threads", "debug=2"]}
ROOMS_ABOUT = {"custom": ["examples"]}  # the controllers have profiles of their own


def collector_is_taken_away(folder):
    rows = rows_of(COLLECT + "/" + folder)
    need(rows, "no collector is in " + folder)
    table = re.findall(r"^ROW\((\w+)\)", text_of(COLLECT + "/collectors.def"), re.M)
    beside = COLLECT + "/collectors.c", COLLECT + "/collector.h"
    windows = collectors_with(".open")
    need("profile" in windows, windows)
    with library_without([COLLECT + "/" + folder], COLLECT + "/collectors.def", [r"^\w+\(%s\)" % name for name in rows], beside,
                         words="|".join([r"\b(%s)\b" % "|".join(rows)] + ABOUT.get(folder, [])),
                         rooms=[folder] + ROOMS_ABOUT.get(folder, [])) as d:
        with hello(d) as daemon_:
            need("/libcomponent.so.0" in open("/proc/%d/maps" % daemon_.pid).read() and
                 d in open("/proc/%d/maps" % daemon_.pid).read(), "it runs with another library")
            asked = {name: in_background(daemon_.get, "/debug/pprof/" + name + ("?seconds=1" if name in windows else "")) for name in table}
            for name in table:
                equal(asked[name].result().status, 404 if name in rows else 200, name)
            page = daemon_.get("/debug/pprof/").text
            for name in set(table) & set(kinds_of_profile()):
                equal("<a href='%s?debug=1'>" % name in page, name not in rows, name + " on the index")


def _collector(folder):
    def fn():
        collector_is_taken_away(folder)
    fn.__name__ = "a_library_without_%s_serves_all_others" % folder
    return test(fn)


for _folder in sorted(os.listdir(os.path.join(SRC, COLLECT))):
    if rows_of(COLLECT + "/" + _folder):
        _collector(_folder)


# Files below encode/, and its rows of format.c.
FORMATS = {
    "pprof": (("pprof.c", "pprof_sample.c", "pprof_sample.h"), ['"pprof"', '"html"']),
    "top": (("top.c",), ['"top"']),
    "folded": (("folded.c",), ['"folded"']),
    "profile json": (("profile_json.c",), ["encode_profile_json"]),
    "svg": (("svg.c",), ['"svg"']),
    "counts": (("text_counts.c",), ["TEXT_COUNTS", "TEXT_DELAYS", "TEXT_CONTENTIONS"]),
    "heap text": (("text.c",), ["TEXT_HEAP"]),
    "panic": (("panic.c",), ["encode_panic"]),
    "dump": (("dump_json.c",), ["encode_dump_json"]),
    "table": (("residence.c",), ["encode_residence_text", "encode_residence_json"]),
    "go1.19": (("trace/go_v1.c",), [r'"go1\.19"']),
    "go1.22": (("trace/go_v2.c",), [r'"go1\.22"']),
    "perfetto": (("trace/perfetto.c", "trace/perfetto_message.c", "trace/perfetto_message.h"), ['"perfetto"']),
}
# How tests name it, where not by its name.
NAMED = {"pprof": r"Profile\(|go_tool|window", "counts": "debug=1", "heap text": "debug=1", "panic": "debug=2|goroutine", "table": "memory", "profile json": "format=json"}
ASKED = {"pprof": "heap?format=pprof", "top": "heap?format=top", "folded": "heap?format=folded", "dump": "goroutine?format=dump", "svg": "heap?format=svg", "profile json": "heap?format=json", "go1.19": "trace?seconds=1&format=go1.19",
         "go1.22": "trace?seconds=1&format=go1.22", "perfetto": "trace?seconds=1&format=perfetto"}


def format_is_taken_away(name):
    files, rows = FORMATS[name]
    gone = [ENCODE + "/" + f for f in files]
    for path in gone:
        need(os.path.exists(os.path.join(SRC, path)), path)
    with library_without(gone, ENCODE + "/format.c", rows, cflags="INC_ENCODE", words=NAMED.get(name, name)) as d, hello(d) as daemon_:
        asked = {query: in_background(daemon_.get, "/debug/pprof/" + query) for other, query in ASKED.items()
                 if other == name or "trace" not in query or "trace" in ASKED.get(name, "")}
        for query, answer in asked.items():
            equal(answer.result().status, 400 if query == ASKED.get(name) else 200, query)
        page = daemon_.get("/debug/pprof/").text
        for link, of in (("profile?seconds=5&amp;format=top", "top"), ("goroutine?debug=2", "panic")):
            equal(link in page, name != of, link + " on the index")


def _format(name):
    def fn():
        format_is_taken_away(name)
    fn.__name__ = "a_library_without_the_format_%s_has_all_others" % name
    return test(fn)


def every_row_of_formats_is_tried():
    rows = re.findall(r"^\t(\{ \..*\}),$", text_of(ENCODE + "/format.c"), re.M)
    need(len(rows) > 8, rows)
    for row in rows:
        equal(sum(bool(re.search(p, row)) for _, of in FORMATS.values() for p in of), 1, row)


for _name in FORMATS:
    _format(_name)
test(every_row_of_formats_is_tried)


def unwinder_is_taken_away(name):
    gone = UNWIND + "/by_%s.c" % name
    need(os.path.exists(os.path.join(SRC, gone)), gone)
    with library_without([gone], UNWIND + "/unwinders.def", ["unwind_by_%s\\)" % name], (UNWIND + "/unwind.c",), "INC_UNWIND",
                         words=name.replace("_", "-")) as d:
        with hello(d) as daemon_:
            text = daemon_.get("/debug/pprof/goroutine?debug=2").text
            contains(text, "main")
            equal(daemon_.get("/debug/pprof/profile?seconds=1").status, 200)


def _unwinder(name):
    def fn():
        unwinder_is_taken_away(name)
    fn.__name__ = "a_library_without_the_unwinder_%s_walks_by_another" % name
    return test(fn)


for _name in re.findall(r"^UNWINDER\(\w+, unwind_by_(\w+)\)", text_of(UNWIND + "/unwinders.def"), re.M):
    _unwinder(_name)


if __name__ == "__main__":
    main()
