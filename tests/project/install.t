#!/usr/bin/env python3
"""A staged install, used as an outsider would: pkg-config, C, C++, static."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from installed import STAGE as stage, prefix as staged, uninstall  # noqa: E402

HELLO = r"""
#include <component/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned long sink;

int
main(int argc, char **argv)
{
	char url[256];
	char line[16];

	if (component_profiler_start("127.0.0.1:0") != 0)
		return 3;
	component_profiler_url(url, sizeof(url));
	printf("%s\n", url);
	fflush(stdout);
	for (int i = 0; i < 2000; i++) {
		char *p = malloc(100000);
		memset(p, i, 1000);
		sink += p[7];
		free(p);
	}
	(void)argc; (void)argv;
	return fgets(line, sizeof(line), stdin) ? 0 : 1;
}
"""

THROWS = r"""
#include <component/labels.h>
#include <component/profiler.h>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

__attribute__((noinline)) static void
deeper(int n)
{
	COMPONENT_LABEL_SCOPE("depth", std::to_string(n).c_str());
	std::vector<std::string> strings(50, std::string(1000, 'x'));
	if (n == 0)
		throw std::runtime_error(strings[3]);
	deeper(n - 1);
}

int
main()
{
	char url[256], line[16];
	int caught = 0;

	if (component_profiler_start("127.0.0.1:0") != 0)
		return 3;
	component_profiler_url(url, sizeof(url));
	std::printf("%s\n", url);
	std::fflush(stdout);
	for (int i = 0; i < 3000; i++) {
		try {
			deeper(i % 10);
		} catch (const std::exception &e) {
			caught++;
		}
	}
	/* An exception ends the scopes it leaves. */
	std::printf("%d\n", component_labels_keep().set ? -1 : caught);
	std::fflush(stdout);
	return std::fgets(line, sizeof(line), stdin) ? 0 : 1;
}
"""


def pkg(*args):
    r = run("pkg-config", *args, env=dict(os.environ, PKG_CONFIG_PATH=staged() + "/lib/pkgconfig"))
    equal(r.returncode, 0, r.stderr)
    return r.stdout.split()


def build(name, source, compiler, extra, packages):
    path = os.path.join(stage, name)
    suffix = ".cc" if compiler == CXX else ".c"
    with open(path + suffix, "w") as f:
        f.write(source)
    r = run(*compiler.split(), "-g", "-O1", "-fno-omit-frame-pointer", "-Wall", "-Werror",
            path + suffix, "-o", path, *extra, *packages, "-Wl,-rpath," + staged() + "/lib")
    equal(r.returncode, 0, r.stderr)
    return path


@contextlib.contextmanager
def started(path):
    env = dict(os.environ, LD_LIBRARY_PATH=staged() + "/lib")
    p = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    try:
        url = p.stdout.readline().strip()
        need(url.startswith("http://127.0.0.1:"), "it printed %r" % url)
        yield p, url
        p.stdin.write("\n")
        p.stdin.close()
        equal(p.wait(DEADLINE), 0, "exit status")
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()


def fetch(url):
    r = run("curl", "-sS", "--max-time", "20", url, text=False)
    equal(r.returncode, 0, r.stderr)
    return r.stdout


@test
def a_program_outside_the_tree_builds_with_pkg_config_libcomponent_and_serves_its_heap():
    path = build("hello", HELLO, CC, pkg("--cflags", "--libs", "libcomponent"), [])
    with started(path) as (_, url):
        def sampled():
            text = fetch(url + "heap?debug=1").decode()
            need(text.startswith("heap profile: "), text[:200])
            return "main" in text
        poll(sampled, "a sample: it says where it serves before it allocates")


@test
def a_program_builds_with_the_libraries_named_by_their_paths_as_meson_does():
    flags = pkg("--cflags", "--libs", "libcomponent")
    folder = staged() + "/lib"
    paths = [re.sub(r"^-l(component.*)", folder + r"/lib\1.so", x) for x in flags if not x.startswith("-L")]
    equal(len([x for x in paths if x.startswith(folder)]), 2, paths)
    path = build("by-paths", HELLO, CC, [], paths)
    need(re.search(r" \w component_hooks$", run("nm", path).stdout, re.M), "no hooks in it")


@test
def the_same_program_builds_with_libcomponent_core_and_says_what_to_link():
    path = build("hello-core", HELLO, CC, pkg("--cflags", "--libs", "libcomponent-core"), [])
    with started(path) as (_, url):
        index = fetch(url).decode()
        contains(index, "libcomponent")
        need(fetch(url + "heap")[:2] == b"\x1f\x8b", "an empty but valid heap profile")
        need(fetch(url + "profile?seconds=1")[:2] == b"\x1f\x8b", "a CPU profile")


@test
def a_cxx_program_throws_through_a_profiled_loop():
    for name, package in (("throws", "libcomponent"), ("throws-core", "libcomponent-core")):
        path = build(name, THROWS, CXX, pkg("--cflags", "--libs", package), [])
        with started(path) as (p, url):
            profile = in_background(fetch, url + "profile?seconds=1")
            equal(p.stdout.readline().strip(), "3000")
            need(profile.result()[:2] == b"\x1f\x8b", "a CPU profile")


@test
def a_static_program_builds_with_libcomponent_core():
    path = build("hello-static", HELLO, CC, ["-static"], pkg("--static", "--cflags", "--libs", "libcomponent-core"))
    need("dynamic" not in run("file", path).stdout if shutil.which("file") else True)
    with started(path) as (_, url):
        need(fetch(url + "profile?seconds=1")[:2] == b"\x1f\x8b", "a CPU profile")


@test
def a_static_program_with_libcomponent_links_the_stub_and_says_what_is_off():
    path = build("hello-static-hooks", HELLO, CC, ["-static"], pkg("--static", "--cflags", "--libs", "libcomponent"))
    with started(path) as (_, url):
        contains(fetch(url).decode(), "static")


@test
def a_program_with_an_evhttp_of_its_own_mounts_the_routes_and_brings_that_library_itself():
    with open(os.path.join(SRC, "examples/evhttp.c")) as f:
        source = f.read()
    for name, compiler in ("mounts", CC), ("mounts-cc", CXX):
        build(name, source, compiler, [], pkg("--cflags", "--libs", "libcomponent", "libevent_core", "libevent_extra"))
    for path, has in (os.path.join(stage, "mounts"), True), (staged() + "/lib/libcomponent.so", False):
        equal("[libevent_extra-" in run("readelf", "-dW", path).stdout, has, path)


@test
def the_documents_are_installed_and_the_examples_build_as_they_are():
    folder = staged() + "/share/doc/libcomponent"
    for name in ["LICENSE", "NEWS.md", "README.md"] + [os.path.relpath(p, SRC) for p in glob.glob(SRC + "/docs/*.md")]:
        equal(text_of(os.path.join(folder, name)), text_of(name), name)
    for link in re.findall(r"\]\(((?:deploy|docs|examples)/[^)#]*)", text_of("README.md")):
        need(os.path.exists(os.path.join(folder, link)), "README.md links to %s, which is not installed" % link)
    examples = sorted(glob.glob(folder + "/examples/*.c"))
    need(len(examples) >= 9, examples)
    for path in examples:
        text = text_of(path)
        sources = [path] + (glob.glob(folder + "/examples/gitops/*.c") if '"gitops/' in text else [])
        packages = ["libcomponent"] + (["libevent_core", "libevent_extra"] if "evhttp.h" in text else [])
        r = run(*CC.split(), "-O0", "-o", stage + "/example", *sources, *pkg("--cflags", "--libs", *packages))
        equal((r.returncode, r.stderr), (0, ""), path)


@test
def every_header_compiles_alone_as_c11_and_as_cxx17():
    folder = staged() + "/include/component"
    names = sorted(n for n in os.listdir(folder) if n.endswith(".h"))
    need(len(names) >= 8, "only %r" % names)
    for name in names:
        for language, compiler, standard, form in (("c", CC, "c11", "%s"), ("c++", CXX, "c++17", "%s"),
                                                   ("c++", CXX, "c++17", 'extern "C" {\n%s}\n')):
            source = form % ("#include <component/%s>\n" % name) + "int main(void) { return 0; }\n"
            r = run(*compiler.split(), "-x", language, "-std=" + standard, "-Wall", "-Wextra", "-Wpedantic",
                    "-Werror", "-fsyntax-only", "-I" + staged() + "/include", "-", input=source, stdin=None)
            equal(r.returncode, 0, "%s as %s:\n%s" % (name, standard, r.stderr))


METRIC = r"""
#include <component/metrics.h>
%s
int main(void)
{
	struct component_metric *m, *other;
#ifdef __cplusplus
	%s
	requests.labels[1] = "method";
#endif
	struct component_metric_spec without = requests;
	if (component_metric_new(&requests, &m, NULL))
		return 1;
	component_counter_add(component_counter_of(m, "200", "GET", NULL), 1);
	without.labels[1] = NULL; /* that is another one */
	return component_metric_new(&requests, &other, NULL) || other != m || component_metric_new(&without, &other, NULL) == 0;
}
"""


@test
def the_metric_of_its_header_has_labels_in_c11_and_in_cxx17_and_cxx20():
    comment = text_of(os.path.join(staged(), "include/component/metrics.h")).partition("*/")[0].replace("\n *", "\n")
    spec = re.search(r"static const struct component_metric_spec requests.*?;", comment, re.S).group(0)
    later = re.search(r"requests\.labels.*;", comment).group(0)
    plain = spec.replace(", .labels = { \"code\" }", "").replace("const ", "")
    need(plain.count("labels") == 0, plain)
    for suffix, compiler, standard, how in ("c", CC, "c11", spec.replace('"code" }', '"code", "method" }')), \
            ("cc", CXX, "c++17", plain), ("cc", CXX, "c++20", plain):
        name = "metric-%s.%s" % (standard, suffix)
        path = build(name, METRIC % (how, later), compiler, ["-std=" + standard, "-Wextra", "-Wpedantic"],
                     pkg("--cflags", "--libs", "libcomponent-core"))
        equal(run(path).returncode, 0, name)


LOGS = r"""
#include <component/component.h>
#ifdef __cplusplus
struct limits { static constexpr int most = 3; };
#define MOST limits::most
#else
#define MOST 3
#endif
static int start(struct component *c, struct component_error *err)
{
	const char *none = NULL, *name = "a b";
	unsigned char small = 7, bytes[] = "b c";
	signed char letters[] = "d e";
	bool on = true;
	size_t size = 18446744073709551615u;

	(void)err;
	component_log(c, COMPONENT_LOG_INFO, "as ever", "name", name, "key", "value", NULL);
	component_log(c, COMPONENT_LOG_INFO, "typed", COMPONENT_KV("name", name), COMPONENT_KV("n", -3),
		COMPONENT_KV("size", size), COMPONENT_KV("small", small), COMPONENT_KV("on", on),
		COMPONENT_KV("half", 0.5), COMPONENT_KV("tenth", 0.1f), COMPONENT_KV("none", none), COMPONENT_KV("much", 1e300 * 1e300));
	component_log(c, COMPONENT_LOG_INFO, "mixed", "n", 5, COMPONENT_KV("m", 6LL), "last", name);
	component_log(c, COMPONENT_LOG_INFO, "odd", "key", name, "alone", NULL);
	component_log(c, COMPONENT_LOG_INFO, "odd without an end", "key", name, "alone");
	component_log(c, COMPONENT_LOG_INFO, "null in between", "key", none, "next", name, NULL);
	component_log(c, COMPONENT_LOG_INFO, "number for a key", 42, "key", name, NULL);
	component_log(c, COMPONENT_LOG_INFO, "null for a key", "key", name, none, "next", name);
	component_log(c, COMPONENT_LOG_INFO, "bytes", "u", bytes, "cu", (const unsigned char *)bytes, "s", letters,
		"cs", (const signed char *)letters, COMPONENT_KV("kv", bytes));
	component_log(c, COMPONENT_LOG_INFO, "constant", "most", MOST);
	component_log(c, COMPONENT_LOG_INFO, none);
	component_log(c, COMPONENT_LOG_INFO, "nothing", NULL);
	component_log(c, COMPONENT_LOG_INFO, "nothing at all");
	(component_log)(c, COMPONENT_LOG_INFO, "function", "key", "value", NULL);
	component_stop(c);
	return 0;
}
int main(int argc, char **argv)
{
	static struct component_spec spec = COMPONENT_SPEC();
	spec.name = "logs";
	spec.start = start;
	return component_main(&spec, argc, argv);
}
"""

LOGGED = [
    {"msg": "as ever", "name": "a b", "key": "value"},
    {"msg": "typed", "name": "a b", "n": -3, "size": 2 ** 64 - 1, "small": 7, "on": True, "half": 0.5,
     "tenth": 0.10000000149011612, "none": None, "much": "+Inf"},
    {"msg": "mixed", "n": 5, "m": 6, "last": "a b"},
    {"msg": "odd", "key": "a b", "alone": "(missing)"},
    {"msg": "odd without an end", "key": "a b", "alone": "(missing)"},
    {"msg": "null in between", "key": None, "next": "a b"},
    {"msg": "number for a key", "no_key": 42, "key": "a b"},
    {"msg": "null for a key", "key": "a b"},
    {"msg": "bytes", "u": "b c", "cu": "b c", "s": "d e", "cs": "d e", "kv": "b c"},
    {"msg": "constant", "most": 3},
    {"msg": "(null)"}, {"msg": "nothing"}, {"msg": "nothing at all"},
    {"msg": "function", "key": "value"},
]


@test
def log_calls_of_every_kind_are_lines_and_none_is_a_crash():
    # In C++ NULL is a number: a last key of that sort is the end, a last value is 0.
    languages = [("c", CC, ["-std=c11"]), ("cc", CXX, ["-std=c++11", "-O0"]), ("cc", CXX, ["-std=c++17"]), ("cc", CXX, ["-std=c++20"])]
    for suffix, compiler, options in languages:
        name = "logs." + suffix
        build(name, LOGS, compiler, options + ["-Wall", "-Wextra", "-Wpedantic", "-Werror"], pkg("--cflags", "--libs", "libcomponent"))
        want = [dict(x) for x in LOGGED]
        if suffix == "cc":
            want[3]["alone"] = 0
        for form in "json", "logfmt", "text":
            r = run(os.path.join(stage, name), "--logging-format=" + form, "--enable-pprof=false")
            equal(r.returncode, 0, r.stderr)
            if form != "json":
                contains(r.stderr, 'name="a b" n=-3 size=18446744073709551615 small=7 on=true half=0.5 '
                                   "tenth=0.10000000149011612 none=(null) much=+Inf")
                continue
            lines = [json.loads(x) for x in r.stderr.splitlines()]
            got = [{k: v for k, v in x.items() if k not in ("time", "level")} for x in lines]
            equal([x for x in got if x["msg"] in [y["msg"] for y in want]], want, (suffix, options))


@test
def the_library_defines_no_function_of_libc():
    for name in os.listdir(staged() + "/lib"):
        if not re.match(r"libcomponent\.so\.\d+$", name):
            continue
        ours = set(re.findall(r" [TWi] (\w+)", run("nm", "-D", "--defined-only", staged() + "/lib/" + name).stdout))
        need(ours, "no symbols")
        strangers = [s for s in ours if not s.startswith("component_")]
        equal(strangers, [], "exported beside component_*")
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", staged() + "/lib/" + name).stdout)
        allowed = r"(libc|libm|libpthread|libdl|librt|libevent_core-.*|libevent_extra-.*|libz|libprotobuf-c|libyaml-0)\.so.*"
        equal([n for n in needed if not re.fullmatch(allowed, n)], [], "needed libraries")


@test
def the_static_library_defines_no_name_but_its_own():
    path = staged() + "/lib/libcomponent.a"
    names = set(re.findall(r" [TDBRVWCuSG] (\S+)", run("nm", "-g", "--defined-only", path).stdout))
    need("component_main" in names, "no component_main")
    equal([n for n in sorted(names) if not n.startswith("component_")], [], "names a program may have too")


@test
def exported_symbols_are_those_of_the_map():
    wanted = set(re.findall(r"^\t(component_\w+);", open(SRC + "/components/libcomponent.map").read(), re.M))
    lib = next(n for n in os.listdir(staged() + "/lib") if re.match(r"libcomponent\.so\.\d+$", n))
    have = {s.split("@")[0] for s in re.findall(r" [TDBRWV] ([\w@.]+)", run("nm", "-D", "--defined-only", staged() + "/lib/" + lib).stdout)}
    equal(sorted(have - {"COMPONENT_0"}), sorted(wanted))


@test
def ldconfig_has_nothing_to_say_of_what_is_installed():
    ldconfig = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    if not ldconfig:
        raise Skip("no ldconfig")
    r = run(ldconfig, "-N", "-X", "-v", "-n", staged() + "/lib")
    contains(r.stdout, "libcomponent.so.0")
    equal(r.stderr, "")


@test
def the_controllers_man_pages_and_completions_are_installed_and_uninstall_leaves_nothing():
    prefix = staged()
    for name in ("backend-controller", "cluster-agent", "appstudio-controller"):
        need(os.access(prefix + "/bin/" + name, os.X_OK), name)
        need(os.path.exists(prefix + "/share/man/man1/%s.1" % name), "man page of " + name)
        need(os.path.exists(prefix + "/share/bash-completion/completions/" + name), "completion of " + name)
    need(os.access(prefix + "/bin/componentctl", os.X_OK), "componentctl")
    need(os.path.exists(prefix + "/share/bash-completion/completions/componentctl"), "completion of componentctl")
    for name in [""] + re.findall(r"^  (\w+) ", run(prefix + "/bin/componentctl", "--help").stdout, re.M):
        need(os.path.exists(prefix + "/share/man/man1/componentctl%s.1" % (name and "-" + name)), "man page of componentctl" + name)
    uninstall()
    left = [os.path.join(d, f) for d, _, fs in os.walk(prefix) for f in fs]
    equal(left, [], "left behind")


main()
