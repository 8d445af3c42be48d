#!/usr/bin/env python3
"""The manual pages of the library: each function has one, man shows them, and they say what the headers say."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

PAGES = os.path.join(BUILD, "docs/manuals/pages")
TOOLS = os.path.join(SRC, "docs/manuals")

HEADER = r"""/*
 * tap.h - water, by the litre.
 *
 *     tap_open(1);
 */
#ifndef TAP_H
#define TAP_H
#include <component/export.h>
COMPONENT_BEGIN
#define COMPONENT_TAP_MAX 9 /* litres */
#define COMPONENT_TAP_INNER_ 1
#define COMPONENT_LITRES(n) ((n) * \
	1000)
/* Which water. */
enum component_tap {
	COMPONENT_TAP_COLD, /* \n is not a line */
};
#ifdef __cplusplus
inline int component_tap_no(void);
#endif
/*
 * component_tap_open, _shut - let it run
 *
 * .as long as you like
 *
 *   litres   per 'minute'; not more than
 *            a few
 *   returns  0, or
 *              -EINVAL  no such tap
 *   threads  any
 */
COMPONENT_API int component_tap_open(int litres,
	...) COMPONENT_PRINTF(1, 2);
COMPONENT_API void component_tap_shut(void);
COMPONENT_API int component_tap_wet(void); /* Is the floor wet?  See component_tap_shut(). */
COMPONENT_END
#endif
"""


def pages_of(folder, header):
    path = os.path.join(folder, "tap.h")
    with open(path, "w") as f:
        f.write(header)
    return run("awk", "-v", "version=1.2.3", "-f", TOOLS + "/roff.awk", "-f", TOOLS + "/functions.awk",
               "-v", "folder=" + folder, path)


def shown(path):
    """As man shows it, with one blank for several."""
    need_man()
    r = run("man", "--warnings", "-l", path, env=dict(os.environ, MANWIDTH="100", LC_ALL="C.UTF-8"))
    equal((r.returncode, r.stderr), (0, ""), path)
    return re.sub(r"[ \t]+", " ", r.stdout)


def need_man():
    if not shutil.which("man"):
        raise Skip("no man: install the Debian package man-db")


@test
def every_public_function_has_a_page():
    want = set(re.findall(r"^\t(component_\w+);", text_of("components/libcomponent.map"), re.M)) | {"component_evhttp_mount"}
    with open(PAGES + "/names") as f:
        have = {name[:-len(".3")] for name in f.read().split()}
    equal(sorted(want - have), [])
    equal(sorted(n for n in have if not os.path.exists("%s/%s.3" % (PAGES, n))), [])
    for header in "component", "flags", "profiler", "labels", "trace", "log", "controller", "ports", "error", "main", "evhttp", "duration":
        need("component_%s.h" % header in have, header)


@test
def groff_and_whatis_take_all_pages_as_they_are():
    need_man()
    pages = [p for p in sorted(glob.glob(PAGES + "/*.[37]")) if not text_of(p).startswith(".so ")]
    need(len(pages) > 60, "%d pages" % len(pages))
    r = run("groff", "-K", "utf8", "-man", "-ww", "-z", "-Tutf8", *pages)
    equal((r.returncode, r.stderr), (0, ""))
    r = run("lexgrog", *pages)
    equal(r.returncode, 0, "\n".join(line for line in r.stdout.splitlines() if "parse failed" in line))
    shown(PAGES + "/libcomponent.7")
    shown(PAGES + "/component_profiler_start.3")
    if shutil.which("mandoc"):
        r = run("mandoc", "-Tlint", "-Wwarning", *pages)
        equal([line for line in r.stdout.splitlines() if "missing date" not in line], [])


@test
def man_finds_a_page_by_each_name_it_has():
    need_man()
    with tempdir() as stage:
        r = run("make", "-s", "-C", BUILD, "install-data-local", "DESTDIR=" + stage)
        equal(r.returncode, 0, r.stderr)
        share, = [d for d, folders, _ in os.walk(stage) if "man3" in folders]
        for name in "component_profiler_start", "component_profiler_start_options", "component_health":
            r = run("man", "-M", share, name, env=dict(os.environ, LC_ALL="C.UTF-8"))
            equal((r.returncode, r.stderr), (0, ""))
            contains(r.stdout, name)
        r = run("make", "-s", "-C", BUILD, "uninstall-local", "DESTDIR=" + stage)
        equal(r.returncode, 0, r.stderr)
        equal([f for _, _, files in os.walk(stage) for f in files], [], "left by uninstall")


@test
def a_page_says_what_the_comment_says():
    with tempdir() as folder:
        equal(pages_of(folder, HEADER).returncode, 0)
        equal(open(folder + "/component_tap_shut.3").read(), ".so man3/component_tap_open.3\n")
        equal(open(folder + "/COMPONENT_LITRES.3").read(), ".so man3/component_tap.h.3\n")
        text = shown(folder + "/component_tap_open.3")
        for part in ("component_tap_open, component_tap_shut - let it run\n", "component_tap_wet - is the floor wet\n",
                     "int component_tap_open(int litres, ...);\n", "\n .as long as you like\n",
                     "litres per 'minute'; not more than a few\n", "RETURN VALUE\n 0, or\n\n -EINVAL\n no such tap\n", "Threads any\n"):
            contains(text, part)
        need("COMPONENT_PRINTF" not in text and "COMPONENT_API" not in text, text)
        text = shown(folder + "/component_tap.h.3")
        for part in ("\n tap_open(1);\n", "component_tap_open(3), component_tap_shut(3)\n let it run\n",
                     "#define COMPONENT_TAP_MAX 9 /* litres */\n #define COMPONENT_LITRES(n)\n", "COMPONENT_TAP_COLD, /* \\n is not a line */\n"):
            contains(text, part)
        need("INNER" not in text and "component_tap_no" not in text, text)


@test
def a_function_without_a_comment_of_its_own_name_is_an_error_that_says_what_to_write():
    with tempdir() as folder:
        equal(pages_of(folder, HEADER.replace("by the litre.", "by the litre.  Not to be included for itself.")).returncode, 0)
        equal(os.listdir(folder), ["tap.h"])
        r = pages_of(folder, HEADER.replace(" * component_tap_open, _shut - let it run\n", " * lets it run\n"))
        equal(r.returncode, 1)
        line = HEADER[:HEADER.index("\t...")].count("\n") + 1
        contains(r.stderr, 'tap.h:%d: component_tap_open has no manual page: begin its comment with "component_tap_open - what it does"\n' % line)
        equal([n for n in os.listdir(folder) if n != "tap.h"], [])


@test
def the_overview_is_of_the_documents_and_fails_where_a_heading_is_gone():
    text = shown(PAGES + "/libcomponent.7")
    for part in ("component_main(&spec, argc, argv)", "component_profiler.h(3)", "--enable-pprof, --enable-profiling (default false)\n",
                 "/debug/pprof/profile?seconds=N\n", "debug=2 (of goroutine, goroutineleak)\n",
                 "USR1 profiling on, or off again; componentctl enable and disable send it\n",
                 "78 a config file", "static void greet(struct component *c, void *whom)\n"):
        contains(text, part)
    with tempdir() as folder:
        with open(folder + "/frame", "w") as f:
            f.write("@title@\n@section docs/operating.md Sickness\n")
        r = run("awk", "-f", TOOLS + "/roff.awk", "-f", TOOLS + "/overview.awk", "-v", "top=" + SRC, folder + "/frame")
        equal(r.returncode, 1)
        contains(r.stderr, "docs/operating.md has no heading 'Sickness'")


main()
