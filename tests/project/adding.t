#!/usr/bin/env python3
"""adding.t - in a copy of the tree, a collector is added, a format, an option and an unwinder, as
ARCHITECTURE.md says: a file and a row each, of the option a member and a row.  They then have all
that others have.
"""
import atexit
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

BUILD = os.environ.get("top_builddir", os.path.join(SRC, "build"))
PATH = "/debug/pprof/"
PROGRAMS = ["examples/" + n for n in ("hello", "backend-controller", "cluster-agent", "appstudio-controller")]
TOY_COLLECTOR = r"""
#include <config.h>

#include "collector.h"

#include <stdatomic.h>

#include "stack_table.h"

static _Atomic int64_t rate;

static int64_t
rate_get(void)
{
	return atomic_load(&rate);
}

static int
rate_set(int64_t to)
{
	atomic_store(&rate, to);
	return 0;
}

static int
snapshot(const struct collector *c, const struct collect_params *params, struct product *ret)
{
	struct profile_sample s = { .values = { rate_get() } };
	uintptr_t             pc = (uintptr_t)rate_get;

	(void)params;
	ret->type = PRODUCT_PROFILE;
	collector_profile(c, &ret->profile);
	ret->profile.period_type = c->types[0];
	s.stack = stack_table_add(&pc, 1);
	return profile_add(&ret->profile, &s);
}

static size_t
count(const struct collector *c)
{
	(void)c;
	return 17;
}

static void
forked(void)
{
	atomic_store(&rate, 0);
}

static const struct collector_rate toy_rate = {
	.option = "toy-profile-rate", .help = "Toys that are out.", .max = 1000, .get = rate_get, .set = rate_set, .usual = 3,
};

const struct collector collect_toy = {
	.name = "toy", .description = "What is played with", .products = PRODUCT_PROFILE,
	.types = { { "toys", "count" } }, .snapshot = snapshot,
	.count = count, .rate = &toy_rate, .forked = forked,
};
"""
TOY_MAKE = """
noinst_LTLIBRARIES += %D%/libtoy.la
%C%_libtoy_la_SOURCES = %D%/toy.c
%C%_libtoy_la_CPPFLAGS = $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libtoy.la
"""

TOY_FORMAT = r"""
#include <config.h>

#include "encode.h"

#include <stdio.h>

int
encode_toy(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	char text[64];

	(void)s;
	return write(arg, text, (size_t)snprintf(text, sizeof(text), "%zu samples of %s\n", p->count, p->name));
}
"""
TOY_UNWINDER = r"""
#include <config.h>

#include "unwind.h"

static int
toy_open(void)
{
	return 0;
}

static int
walk(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	(void)r;
	*ret_truncated = 0;
	if (max > 0)
		pcs[0] = regs->pc;
	return max > 0;
}

const struct unwinder unwind_by_toy = { .name = "toy", .open = toy_open, .capture = walk };
"""
USER = r"""
#include <component/profiler.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* With the unwinder that was added. */
static int
walked(struct component_profile_write_options *o)
{
	struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_profile         *own;

	options.address = "127.0.0.1:0";
	options.unwinder = COMPONENT_UNWINDER_TOY;
	o->debug = 1;
	return component_profiler_start_options(&options, NULL) || component_profile_new("own", &own, NULL) ||
		component_profile_add(own, own, 0) || component_profile_write("own", 1, o);
}

int
main(int argc, char **argv)
{
	struct component_profile_write_options o = COMPONENT_PROFILE_WRITE_OPTIONS_INIT;

	(void)argv;
	if (argc > 1)
		return walked(&o);
	o.format = "toy";
	if (component_profiler_start("127.0.0.1:0"))
		return 1;
	if (component_profile_write("toy", 1, &o))
		return 2;
	o.format = "top";
	if (fork() == 0) {
		if (component_profile_write("toy", 1, &o)) /* off: forked() */
			_exit(3);
		_exit(component_after_fork() || component_profile_write("toy", 1, &o) ? 4 : 0);
	}
	wait(NULL);
	component_profiler_stop();
	return 0;
}
"""
tree = {}


def edited(path, old, new):
    path = os.path.join(tree["top"], path)
    with open(path) as f:
        text = f.read()
    need(text.count(old) == 1, "%s: %r stands %d times in it" % (path, old, text.count(old)))
    with open(path, "w") as f:
        f.write(text.replace(old, new))


def added(path, text):
    with open(os.path.join(tree["top"], path), "w") as f:
        f.write(text.lstrip())


def poured(source, target, *left_out):
    """A copy with the times of files, for make."""
    os.makedirs(target, exist_ok=True)
    run("sh", "-c", 'from=$1 to=$2; shift 2; tar cf - -C "$from" "$@" . | tar xf - -C "$to"', "sh", source, target,
        *("--exclude=" + n for n in left_out), check=True)


def moved(build, top):
    """Has make look at the copy, where the tree was configured by its full path."""
    old, new = os.path.realpath(SRC).encode(), os.path.realpath(top).encode()
    for folder, _, names in os.walk(build):
        for name in names:
            path = os.path.join(folder, name)
            if name not in ("Makefile", "config.status", "libtool") and not name.endswith((".Plo", ".Po", ".la", ".lai")):
                continue
            with open(path, "rb") as f:
                text = f.read()
            if old in text:
                st = os.stat(path)
                with open(path, "wb") as f:
                    f.write(text.replace(old, new))
                os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))


def copied():
    """The copy, built with what is added.  What was compiled before is taken along."""
    if tree:
        need(not tree["fault"], tree["fault"])
        return tree
    for tool in ("automake", "autoconf", "libtoolize"):
        if not shutil.which(tool):
            raise Skip("no " + tool)
    if not os.path.exists(os.path.join(SRC, "configure")) or os.path.realpath(os.path.join(BUILD, "..")) != os.path.realpath(SRC):
        raise Skip("the build is not a folder of the tree")
    top = tempfile.mkdtemp(prefix="component-adding-")
    atexit.register(shutil.rmtree, top, True)
    build = os.path.join(top, os.path.basename(os.path.realpath(BUILD)))
    builds = [n for n in os.listdir(SRC) if os.path.exists(os.path.join(SRC, n, "config.status"))]
    poured(SRC, top, "./.git", "./autom4te.cache", *("./" + n for n in builds))
    poured(BUILD, build, "./tests", "./bench", "./libcomponent-[0-9]*", "./servers")
    os.makedirs(build + "/tests")
    moved(build, top)
    tree.update(top=top, build=build, fault="")
    os.mkdir(os.path.join(top, "profiler/collect/toy"))
    added("profiler/collect/toy/toy.c", TOY_COLLECTOR)
    added("profiler/collect/toy/local.mk", TOY_MAKE)
    edited("profiler/collect/collectors.def", "ROW(cmdline)", "ROW(cmdline)\nROW(toy)")
    edited("profiler/collect/local.mk", "include profiler/collect/trace/", "include profiler/collect/toy/local.mk\ninclude profiler/collect/trace/")
    added("profiler/encode/toy_format.c", TOY_FORMAT)
    edited("profiler/encode/encode.h", "int encode_top(", "int encode_toy(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg);\nint encode_top(")
    edited("profiler/encode/format.c", '{ .name = "top",', '{ .name = "toy", .profile = encode_toy },\n\t{ .name = "top",')
    edited("profiler/encode/local.mk", "%D%/format.c ", "%D%/format.c %D%/toy_format.c ")
    header = "profiler/include/component/profiler.h"
    edited(header, "the end; or NULL */\n};", "the end; or NULL */\n	int64_t            toy_seconds; /* longest game */\n};")
    tree["alone"] = made("profiler/serve/libserve_la-options.lo")
    edited(header, ".max_seconds = 7200, ", ".toy_seconds = 7, .max_seconds = 7200, ")
    edited("profiler/serve/options.def", "FLAG(on_error,", """OPTION(toy_seconds, COUNT, RELOAD, "toy-seconds",
	"Longest game.",
	.argument = "SECONDS", .max = 1000)
FLAG(on_error,""")
    edited("profiler/serve/routes.c", "&s->options.max_seconds", "&s->options.toy_seconds")
    added("profiler/unwind/by_toy.c", TOY_UNWINDER)
    edited("profiler/unwind/local.mk", "_SOURCES += %D%/by_tables.c", "_SOURCES += %D%/by_tables.c %D%/by_toy.c")
    edited("profiler/unwind/unwinders.def", "UNWINDER(UNWIND_LIBUNWIND, ", "UNWINDER(UNWIND_TOY, unwind_by_toy)\nUNWINDER(UNWIND_LIBUNWIND, ")
    edited("profiler/unwind/unwind.h", "	UNWIND_MODES\n", "	UNWIND_TOY,\n	UNWIND_MODES\n")
    edited(header, "	COMPONENT_UNWINDER_LIBUNWIND, ", "	COMPONENT_UNWINDER_TOY = 4,\n	COMPONENT_UNWINDER_LIBUNWIND = 3, ")
    edited("components/profiling_rows.c", '"libunwind", NULL', '"libunwind", "toy", NULL')
    r = made("components/libcomponent.la", *PROGRAMS)
    if r.returncode:
        tree["fault"] = "it does not build:\n" + (r.stdout + r.stderr)[-3000:]
    return copied()


def made(*targets):
    return run("make", "-s", "-C", tree["build"], *targets, env=dict(os.environ, MAKEFLAGS=""))


def hello(*argv, **kw):
    return daemon(os.path.join(copied()["build"], "examples/hello"), "--enable-pprof", *argv, **kw)


def tested(name, *parts, **env):
    """What a test of the copy says, and whether it passed."""
    t = copied()
    r = run(sys.executable, os.path.join(t["top"], "tests", name), *parts, env=dict(os.environ, top_srcdir=t["top"], top_builddir=t["build"], **env))
    return r.stdout + r.stderr, r.returncode == 0


@test
def a_collector_that_is_added_has_index_routes_deltas_and_all_formats():
    with hello() as d:
        page = d.get(PATH).text
        contains(page, "<tr><td>17</td><td><a href='toy?debug=1'>toy</a></td></tr>")
        contains(page, "What is played with")
        contains(page, "how often heap, mutex, block, mmap and toy are sampled")
        contains(d.get(PATH + "toy?debug=1").text, "toy profile: total 3\n")
        equal(d.get(PATH + "toy").body[:2], b"\x1f\x8b")
        contains(d.get(PATH + "toy?format=top").text, "rate_get")
        need(re.search(r"rate_get 3$", d.get(PATH + "toy?format=folded").text, re.M), d.get(PATH + "toy?format=folded").text)
        equal(d.get(PATH + "toy?seconds=1&format=folded").text, "")
        equal(d.get(PATH + "toy?seconds=1&debug=1").status, 400)


@test
def its_rate_is_an_option_a_line_of_rates_and_follows_a_reload():
    with tempdir() as t:
        config = os.path.join(t, "c.yaml")
        with open(config, "w") as f:
            f.write("toy-profile-rate: 5\n")
        contains(run(os.path.join(copied()["build"], "examples/hello"), "--help").stdout, "--toy-profile-rate=N")
        with hello("--config", config) as d:
            contains(d.get(PATH + "rates").text, "toy-profile-rate=5\n")
            equal(d.get(PATH + "rates", method="POST", body="toy-profile-rate=7").status, 200)
            contains(d.get(PATH + "toy?debug=1").text, "total 7\n")
            contains(d.get(PATH + "rates", method="POST", body="x=7").text, "mmap-profile-rate= or toy-profile-rate=")
            with open(config, "w") as f:
                f.write("toy-profile-rate: 11\n")
            d.signal(signal.SIGHUP)
            poll(lambda: "total 11\n" in d.get(PATH + "toy?debug=1").text, "the rate of the file")
        contains(run(os.path.join(copied()["build"], "examples/hello"), "--toy-profile-rate=1001").stderr, "toy-profile-rate")


@test
def a_format_that_is_added_is_had_of_every_profile_and_named_in_advice():
    with hello() as d:
        contains(d.get(PATH + "heap?format=toy").text, " samples of heap\n")
        equal(d.get(PATH + "toy?format=toy").text, "1 samples of toy\n")
        contains(d.get(PATH + "heap?format=tob").text, "write format=toy, format=top, format=folded, format=svg, format=html or format=json, or leave it out")


def user():
    t = copied()
    source, exe = os.path.join(t["top"], "user.c"), os.path.join(t["build"], "user")
    lib = os.path.join(t["build"], "components/.libs")
    if not os.path.exists(exe):
        added("user.c", USER)
        run("cc", "-o", exe, source, "-I" + t["top"] + "/profiler/include", "-I" + t["top"] + "/libcomponent/base/include",
            "-L" + lib, "-lcomponent", "-Wl,-rpath," + lib, check=True)
    return exe


@test
def both_are_had_without_http_and_the_collector_forgets_in_a_child():
    r = run(user())
    equal(r.returncode, 0, r.stderr)
    equal(r.stdout.split("\n")[0], "1 samples of toy")
    equal(re.findall(r"^toy: toys, total (\d+)$", r.stdout, re.M), ["0", "3"], r.stdout)


@test
def an_unwinder_that_is_added_can_be_chosen_and_walks():
    with hello("--profiling-unwinder=toy") as d:
        need(re.search(r"unwinder: toy\b", d.get(PATH).text), d.get(PATH).text)
    r = run(user(), "walked")
    equal(r.returncode, 0, r.stderr)
    need(re.search(r"^1 @ 0x[0-9a-f]+$", r.stdout, re.M), r.stdout)


@test
def an_option_that_is_added_is_on_the_line_in_the_environment_in_the_file_and_follows_a_reload():
    def limit(d):
        return re.search(r"above the limit of (\d+) ", d.get(PATH + "profile?seconds=1001").text).group(1)

    program_ = os.path.join(copied()["build"], "examples/hello")
    contains(run(program_, "--help").stdout, "--toy-seconds=SECONDS")
    contains(run(program_, "--toy-seconds=0").stderr, "option '--toy-seconds': '0': out of range; write a value from 1 to 1000")
    with tempdir() as t:
        config = os.path.join(t, "c.yaml")
        with open(config, "w") as f:
            f.write("toy-seconds: 8\n")
        with hello() as d:
            equal(limit(d), "7")
        with hello(env=dict(os.environ, HELLO_TOY_SECONDS="9")) as d:
            equal(limit(d), "9")
        with hello("--config", config) as d:
            equal(limit(d), "8")
            with open(config, "w") as f:
                f.write("toy-seconds: 10\n")
            d.signal(signal.SIGHUP)
            poll(lambda: limit(d) == "10", "the limit of the file")


@test
def a_member_without_a_row_does_not_compile():
    r = copied()["alone"]
    need(r.returncode != 0, "it compiles")
    contains(r.stderr, "each member of struct component_profiler_options but size has a row in options.def")


@test
def what_was_added_is_asked_for_by_the_golden_files_and_the_documents():
    said, ok = tested("components/golden_options.t", "golden_hello")
    need(not ok, said)
    contains(said, "hello has a new option --toy-seconds, has a new option --toy-profile-rate; if on purpose: UPDATE_GOLDEN=1")
    need(tested("components/golden_options.t", "golden_hello", UPDATE_GOLDEN="1")[1], "the golden file is written")
    said, ok = tested("components/golden_options.t", "golden_hello")
    need(ok, said)
    said, ok = tested("project/docs.t", "every_option_has_its_place")
    need(not ok and re.search(r"no word of --toy-[a-z-]+ of hello", said), said)
    row = "| `--block-profile-rate` | 0s |"
    edited("docs/flags.md", row, "| `--toy-profile-rate` | 3 | toys |\n| `--toy-seconds` | 7 | longest game |\n" + row)
    said, ok = tested("project/docs.t", "every_option_has_its_place")
    need(ok, said)


main()
