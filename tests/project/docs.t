#!/usr/bin/env python3
"""The documents are true: compared with the sources and the programs they speak of.

What they tell people to paste is run by commands.t, and what needs port 6060 or an
installed library here, in a network namespace of its own.  Other claims have their
tests elsewhere: signals and what nohup ignores in signals.t; exit statuses, fork and
the doors in entry_points.t; taken ports, reload and addresses in profiling.t and
test_listen.c; health in health.t; systemd in systemd.t and test_notify.c; limits in
limits.t; tokens and hosts in auth.t; log formats in test_log.c; what is
left when all is off in start_stop.t; samples and their values in test_guest.c and
test_accuracy.c; the agent in preload.t.
"""
import atexit
import glob
import itertools
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from documents import DOCUMENTS, blocks, prose, shell_lines, tables, text_of  # noqa: E402
from installed import UP, alone, as_installed, clean, prefix  # noqa: E402

CTL = "components/componentctl/componentctl"
PROGRAMS = ["hello", "backend-controller", "cluster-agent", "appstudio-controller"]
LINES_MAX = 25
# Options of other people's programs, and of ours that are no daemons.
FOREIGN = {"--pdf", "--cflags", "--libs", "--enable-werror", "--seconds", "--unix-socket", "--verify", "--host", "--prefix", "--eh-frame-hdr",
           "--fault",  # of examples/hunts
           "--load",  # of scripts/soak
           "--modversion", "--format",  # of pkg-config and git
           "--secure-port", "--contention-profiling", "--profiling", "--min-resync-period", "--concurrent-",  # of Kubernetes
           "--fault"}  # of examples/hunts
work = tempfile.mkdtemp(prefix="component-docs-")
atexit.register(shutil.rmtree, work, True)


def lines_of(name, first):
    """The block of a document that begins with a line, as it stands there."""
    for _, block in blocks("sh", name):
        if block.startswith(first):
            return block
    raise AssertionError("no block of %s begins with %r" % (name, first))


def ours(name):
    """A document's prose; of what other tools are told, in the first cells of coming-from.md, nothing."""
    return re.sub(r"^\|[^|]*\|", "|", prose(name), flags=re.M) if name == "docs/coming-from.md" else prose(name)


def dump(name, *args, **env):
    r = run("examples/" + name, *args, "--dump-options=json", env={**clean(), **env})
    equal(r.returncode, 0, r.stderr)
    return {o["name"]: o for o in json.loads(r.stdout)["options"]}


def help_all(name):
    return run("examples/" + name, "--help-all", env=clean()).stdout


# The program of README.md

@test
def the_daemon_of_the_readme_is_an_example_and_short():
    text = blocks("c", "README.md")[0][1]
    equal(text, text_of("examples/hello.c"), "README.md and examples/hello.c")
    need(len(text.splitlines()) <= LINES_MAX, "%d lines" % len(text.splitlines()))


@test
def it_compiles_as_the_readme_says_and_its_profile_can_be_taken():
    env = as_installed()
    os.makedirs(os.path.join(work, "examples"))
    shutil.copy(os.path.join(SRC, "examples/hello.c"), os.path.join(work, "examples/hello.c"))
    start, look = lines_of("README.md", "cc "), lines_of("README.md", "curl 'http://localhost:6060/debug/pprof/profile")
    if not shutil.which("go", path=env["PATH"]):
        look = look.replace("go tool pprof -top cpu.pprof\n", "")
    out = alone(start + UP + look.replace("seconds=5", "seconds=2").replace("kill $!", "kill $! && wait $!"), env, work)
    contains(out, "profile: cpu, total ")
    if "go tool" in look:
        contains(out, "File: hello\n")
        contains(out, "component_main")
    with open(os.path.join(work, "cpu.pprof"), "rb") as f:
        equal(f.read(2), b"\x1f\x8b")


# What the lines of README.md's other ways in speak of.
AROUND_THEM = """#include <event2/http.h>
#include <poll.h>
%s
int main(int argc, char **argv)
{
	static const struct component_flags_spec flags_spec = COMPONENT_FLAGS_SPEC(.name = "mydaemon");
	static const struct component_flag rows[] = { COMPONENT_FLAG_END };
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component_profiling_rows *profiling = NULL;
	struct component_flags *flags = NULL;
	struct component *c = NULL;
	struct evhttp *http = NULL;
	struct pollfd fds[2] = { { 0, 0, 0 } };
	void (*my_other_pages)(struct evhttp_request *, void *) = NULL;
	int status = 0;

	(void)flags_spec, (void)rows, (void)err, (void)profiling, (void)flags, (void)c, (void)http, (void)fds, (void)my_other_pages;
	(void)argc, (void)argv;
%s
	return status;
}
"""


@test
def each_way_in_is_few_lines_and_compiles():
    env = as_installed()
    found = blocks("c", "README.md")[1:]
    need(len(found) >= 5, "%d ways" % len(found))
    for _, text in found:
        head, _, lines = text.partition("\n\n")
        need(len(lines.splitlines()) <= 5, lines)
        with open(os.path.join(work, "way.c"), "w") as f:
            f.write(AROUND_THEM % ("#include <component/component.h>\n" + head, lines.replace("\n", "\n\t")))
        r = run("sh", "-c", CC + " -Wall -Wextra -Werror way.c -o way $(pkg-config --cflags --libs libcomponent libevent_extra)",
                cwd=work, env=env)
        equal(r.returncode, 0, lines + r.stderr)


@test
def every_way_of_switching_it_on_does():
    env = as_installed()
    daemons = os.path.join(work, "daemons")
    os.mkdir(daemons)
    shutil.copy(program("examples/.libs/hello"), daemons)
    for line in lines_of("docs/getting-started.md", "./hello --enable-pprof --profiling-bind").replace(":6071", ":6060").splitlines():
        out = alone("%s 2>log &%scurl -s http://localhost:6060/debug/pprof/cmdline | tr '\\0' ' '\nkill $! && wait $!\n"
                    % (line, UP), env, daemons)
        contains(out, "hello")
        with open(os.path.join(daemons, "log")) as f:
            contains(f.read(), "starting profiling server on port 6060 url=\"http://")


@test
def the_agent_serves_a_program_nobody_rebuilt():
    env = as_installed()
    of_readme, of_profiling = lines_of("README.md", "LD_PRELOAD="), lines_of("docs/profiling.md", "LD_PRELOAD=")
    for line in of_readme, of_profiling.strip() + " &\n":
        out = alone("%s%scurl -s http://localhost:6060/debug/pprof/cmdline | tr '\\0' ' '\nkill $!\n" % (
            line.replace("/usr/local/lib", prefix() + "/lib").replace("true program", "true sleep 100"), UP), env, work)
        equal(out, "sleep 100")


@test
def the_controllers_keep_a_tree_in_sync_as_their_document_lets_one_try():
    env, tree = as_installed(), os.path.join(work, "try")
    block = lines_of("docs/controllers.md", "mkdir -p /tmp/try").replace("/tmp/try", tree).replace("=10s", "=100ms")
    with open(os.path.join(work, "try.log"), "w+") as log:
        p = subprocess.Popen(["sh", "-c", block + "wait\n"], cwd=work, env=env, start_new_session=True,
                             stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            for environment in "dev", "staging", "production":
                path = os.path.join(tree, "targets", environment, "shop/index")
                poll(lambda: os.path.exists(path), path)
                with open(path) as f:
                    equal(f.read(), "hello\n", path)
        finally:
            os.killpg(p.pid, signal.SIGTERM)
            p.wait()
            poll(lambda: not group_lives(p.pid), "the controllers to end")


def group_lives(group):
    try:
        os.killpg(group, 0)
        return True
    except ProcessLookupError:
        return False


@test
def a_controller_of_ones_own_is_as_short_as_their_document_says():
    env, things = as_installed(), os.path.join(work, "things")
    os.mkdir(things)
    (_, text), = blocks("c", "docs/controllers.md")
    with open(os.path.join(work, "own.c"), "w") as f:
        f.write("#include <component/component.h>\n#include <component/controller.h>\n#include <stdio.h>\n"
                + text.replace("/srv/things", things).replace(
                    "ret->outcome", '(void)arg;\n\tprintf("saw %s\\n", key);\n\tfflush(stdout);\n\tret->outcome')
                + "int main(int argc, char **argv)\n{\n\tstatic const struct component_spec spec = COMPONENT_SPEC("
                ".name = \"own\",\n\t\t.summary = \"One.\", .version = \"1\", .start = start, .parts = parts);\n"
                "\treturn component_main(&spec, argc, argv);\n}\n")
    r = run("sh", "-c", CC + " -Wall -Wextra -Werror own.c -o own $(pkg-config --cflags --libs libcomponent)", cwd=work, env=env)
    equal(r.returncode, 0, r.stderr)
    with daemon(os.path.join(work, "own"), "--enable-pprof", env=env) as d:
        with open(os.path.join(things, "thing"), "w") as f:
            f.write("x")
        d.wait_log("saw thing")
        equal(d.stop(), 0)


# Files

def dedented(text):
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


@test
def manifests_and_units_for_beginners_are_those_of_deploy():
    found = blocks("yaml", "docs/getting-started.md") + blocks("ini", "docs/getting-started.md")
    equal(len(found), 4)
    for (_, block), name in zip(found, ("kubernetes/backend-controller.yaml", "kubernetes/backend-controller-env.yaml",
                                        "kubernetes/backend-controller-annotation.yaml",
                                        "systemd/profiling.conf")):
        with open(os.path.join(SRC, "deploy", name)) as f:
            shipped = dedented(f.read())
        lines, at = dedented(block), 0
        for line in lines:  # in this order, with others in between
            need(line in shipped[at:], "%r of docs/getting-started.md is not in deploy/%s, or not there" % (line, name))
            at = shipped.index(line, at) + 1
    # Indentation is YAML's grammar: what is inside what must be the same.
    args = next(line for line in found[0][1].splitlines() if "args:" in line)
    env = next(line for line in found[1][1].splitlines() if "env:" in line)
    for line, name in ((args, "backend-controller.yaml"), (env, "backend-controller-env.yaml")):
        with open(os.path.join(SRC, "deploy/kubernetes", name)) as f:
            contains(f.read(), "\n" + line + "\n")


@test
def the_config_file_in_the_documents_is_read_whole():
    (_, text), = blocks("yaml", "docs/flags.md")
    path = os.path.join(work, "config.yaml")
    with open(path, "w") as f:
        f.write(text)
    r = run("examples/backend-controller", "--config=" + path, "--check-config", env=clean())
    equal((r.returncode, r.stderr), (0, ""))
    got = dump("backend-controller", "--config=" + path)
    from_file = sorted(n for n, o in got.items() if o["source"].startswith("file:"))
    equal(from_file, ["enable-pprof", "graceful-shutdown-timeout", "logging-format", "profiling-bind-address"])
    equal(len(from_file), len(text.splitlines()) - 1, "a line each, but for 'profiling:'")


@test
def every_link_leads_somewhere():
    def anchors(path):
        text = re.sub(r"^```.*?^```$", "", open(path).read(), flags=re.M | re.S)
        return {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}
    links = 0
    for name in DOCUMENTS:
        for target in re.findall(r"\]\(([^)]+)\)", prose(name)):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(SRC, os.path.dirname(name), file)) if file else os.path.join(SRC, name)
            need(os.path.exists(path), "%s links to %s" % (name, target))
            need(not anchor or anchor in anchors(path), "%s links to %s, which has no such heading" % (name, target))
            links += 1
    need(links > 10, "%d links" % links)


@test
def files_that_are_named_exist():
    for name in DOCUMENTS:
        for token in re.findall(r"`([\w./*-]+)`", prose(name)):
            known = re.match(r"(components|deploy|docs|examples|flags|libcomponent|profiler|scripts|tests)/", token)
            if not known or "*" in token:
                continue
            need(os.path.exists(os.path.join(SRC, token)) or os.path.exists(os.path.join(BUILD, token)),
                 "%s names %s" % (name, token))
    for name, line in shell_lines():
        for token in re.findall(r"(?:^|\s)((?:scripts|tests)/[\w./-]+)", line):
            need(os.path.exists(os.path.join(SRC, token)), "%s: %s" % (name, line))


@test
def a_dependency_is_known_in_the_rooms_that_the_architecture_gives_it():
    # What meets a program's own libevent: its header, the files behind it, and how it is used.
    guests = ["profiler/serve/evhttp.c", "profiler/serve/evhttp_ask.c", "profiler/serve/evhttp_ask.h",
              "profiler/serve/evhttp_door.c", "profiler/serve/evhttp_door.h",
              "profiler/include/component/evhttp.h", "examples/evhttp.c"]
    rooms = {"event2?/": ["components/preload", "libcomponent/http"], "yaml.h": ["components/componentctl/annotate", "flags"], "protobuf-c/": ["profiler/encode"],
             "zlib.h": ["components/componentctl/files", "profiler/encode", "profiler/symbols", "profiler/symbols/dwarf"], "lzma.h": ["profiler/symbols"],
             "curl/": ["components/componentctl/target"]}
    found = {pattern: set() for pattern in rooms}
    for top in ("components", "examples", "flags", "libcomponent", "profiler"):
        for folder, _, names in os.walk(os.path.join(SRC, top)):
            for name in names:
                if not name.endswith((".c", ".h")) or ".pb-c." in name:  # those are made
                    continue
                if os.path.relpath(os.path.join(folder, name), SRC) in guests:
                    continue
                with open(os.path.join(folder, name)) as f:
                    text = f.read()
                for pattern in rooms:
                    if re.search(r"^#\s*include [<\"]%s" % pattern, text, re.M):
                        found[pattern].add(os.path.relpath(folder, SRC))
    for pattern, folders in found.items():
        # protobuf-c is known through what it makes of profile.proto.
        equal(sorted(folders), sorted(rooms[pattern]) if pattern != "protobuf-c/" else [], pattern)
    with open(os.path.join(SRC, "profiler/encode/pprof.c")) as f:
        contains(f.read(), '#include "profile.pb-c.h"')


# Options

@test
def every_option_is_in_the_full_help_exactly_once():
    for name in PROGRAMS:
        shown = re.findall(r"^ +(?:-\w, |    )--([\w-]+)", help_all(name), re.M)
        for option in dump(name):
            equal(shown.count(option), 1, "--%s in --help-all of %s" % (option, name))


@test
def every_option_in_the_documents_exists():
    known = set(FOREIGN)
    for name in PROGRAMS:
        known |= set(re.findall(r"--[a-z][\w-]*", help_all(name)))
    known |= {"--with%s-%s" % (o, name) for name in re.findall(r"^AC_ARG_WITH\(\[([\w-]+)\]", text_of("configure.ac"), re.M) for o in ("", "out")}
    known |= set(re.findall(r"--[a-z][\w-]*", run("tests/programs/adopted_daemon", "--profiling-help").stdout))
    for command in re.findall(r"^  (\w+) ", run(CTL, "--help").stdout, re.M):
        known |= set(re.findall(r"--[a-z][\w-]*", run(CTL, command, "--help-all").stdout))
    for name in DOCUMENTS:
        spans = re.findall(r"`([^`\n]+)`", ours(name)) + [b for lang in ("yaml", "ini") for _, b in blocks(lang, name)]
        lines = [line for n, line in shell_lines(name)
                 if re.match(r"(\w+=\S+ )*(\./hello|backend-controller|scripts/)", line)]
        for text in spans + lines:
            for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", text):
                if option in ("--x", "--no-x"):  # any option
                    continue
                need(option in known, "%s mentions %s: %s" % (name, option, text))


@test
def every_variable_in_the_documents_exists():
    known = {"APP_ID", "APP_PORT", "DAPR_PROFILE_PORT", "COMPONENTCTL_RUN_PROFILE_PORT", "XDG_RUNTIME_DIR", "LD_PRELOAD", "PPROF_TMPDIR", "DEB_BUILD_OPTIONS", "TEST_QUICK", "TEST_STRESS", "TESTS_RUNNER", "UPDATE_GOLDEN", "RELEASE_KEY",
             "SIGHUP", "RELOADING", "STOPPING",
             "PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "PKG_CHECK_MODULES", "PR_SET_DUMPABLE",
             "ASAN_OPTIONS", "TSAN_OPTIONS", "MALLOC_ARENA_MAX", "CGO_LDFLAGS_ALLOW", "PROCMAP_QUERY", "POSIX_CPU_TIMERS_TASK_WORK"}
    for folder, _, files in os.walk(SRC):  # macros are no variables
        if folder.endswith("include/component"):
            for file in files:
                with open(os.path.join(folder, file)) as f:
                    known |= set(re.findall(r"^#define (COMPONENT_\w+)\(", f.read(), re.M))
    for name in PROGRAMS:
        known |= {v for o in dump(name).values() for v in o["env"]}
    known |= {v.replace("HELLO_", "MYDAEMON_") for v in known}
    for name in DOCUMENTS:
        spans = re.findall(r"`([^`\n]+)`", ours(name)) + [b for lang in ("yaml", "ini", "sh") for _, b in blocks(lang, name)]
        for text in spans:
            for variable in re.findall(r"(?<![\w$])([A-Z]{2,}(?:_[A-Z]+)+)\b", text):
                if not variable.startswith(("COMPONENT_FLAG", "COMPONENT_PROFILER_OPTIONS", "COMPONENT_KV", "COMPONENT_LABEL", "ARCH_", "RLIMIT_", "SECCOMP_",
                                            "PROCMAP_")):
                    need(variable in known, "%s mentions %s: %s" % (name, variable, text))


@test
def every_option_has_its_place_in_the_documents_with_its_default():
    text = text_of("docs/flags.md") + text_of("docs/controllers.md")
    rows = tables("docs/flags.md", "Options of every program")[0] + tables("docs/controllers.md", "The kit")[0]
    said = {option: row[1] for row in rows for option in re.findall(r"--([a-z][\w-]+)", row[0])}
    need(len(said) > 30, said)
    own, checked = {"who", "every"}, set()  # hello's
    for name in PROGRAMS:
        options = dump(name)
        for option in set(re.findall(r"^ +(?:-\w, |    )--([\w-]+)", help_all(name), re.M)) - own:
            need("`--%s`" % option in text or "`--%s` (" % option in text, "no word of --%s of %s" % (option, name))
        for option in set(options) & set(said):
            want = options[option]["value"]
            want = ",".join(want) if isinstance(want, list) else str(want).lower() if isinstance(want, bool) else want
            if name == "hello" or option not in ("profiling-bind-address", "profile-port"):  # others: the table of ports
                equal(said[option], "%s" % want, "--%s of %s" % (option, name))
                checked.add(option)
    equal(sorted(set(said) - checked), ["enable-profiling"], "in the tables, but not checked")


def inline_functions():
    """Of the public headers: no library has them."""
    found = set()
    for folder, _, names in os.walk(SRC):
        if folder.endswith("include/component"):
            for name in names:
                with open(os.path.join(folder, name)) as f:
                    found |= set(re.findall(r"^static inline (?:int|void)\n(component_[a-z_]+[a-z])\(", f.read(), re.M))
    return found


@test
def every_public_function_is_in_the_list_below_its_header_and_nothing_else_is():
    with open(os.path.join(SRC, "components/libcomponent.map")) as f:
        want = set(re.findall(r"^\s+(component_\w+);", f.read(), re.M)) | inline_functions()
    api, found = text_of("docs/api.md"), []
    for part in re.split(r"^## ", api, flags=re.M)[1:]:
        headers = re.findall(r"<component/(\w+\.h)>", part.split("|")[0] if "|" in part else part)
        text = ""
        for folder, _, names in os.walk(SRC):
            if folder.endswith("include/component"):
                text += "".join(open(os.path.join(folder, n)).read() for n in names if n in headers)
        cells = " ".join(re.findall(r"^\|([^|]*)\|", part, re.M)) if "|" in part else part
        for function in re.findall(r"`(component_\w+)`", cells):
            need(re.search(r"\b%s\(" % function, text), "%s is not of %s" % (function, headers))
            found.append(function)
    equal(sorted(found), sorted(want))


@test
def when_profiling_is_on_is_what_the_table_says():
    rows, = tables("docs/flags.md", "When is profiling on")
    addresses = {"": [""], "any": ["", ":6070", "0"]}
    booleans = {"": [""], "any": ["", "true", "false"]}
    for option, variable, address, then in rows:
        args = {"": [], "given": ["--enable-pprof"], "`=false`": ["--enable-pprof=false"], "=false": ["--enable-pprof=false"]}
        for v, a in itertools.product(booleans.get(variable, [variable]), addresses.get(address, [address])):
            env = {k: x for k, x in (("ENABLE_PROFILING", v), ("PPROF_BIND_ADDRESS", a)) if x}
            got = dump("hello", *args[option], **env)
            where = got["profiling-bind-address"]["value"]
            on = got["enable-pprof"]["value"] and where != "0"
            equal(bool(on), then.startswith("on"), "%r %r: %s" % (args[option], env, then))
            if on:
                want = {"on, at the address given or the default": a or "127.0.0.1:6060",
                        "on, at the default address": "127.0.0.1:6060", "on, at `:6060": ":6060"}
                equal(where, want[then], "%r %r" % (args[option], env))


@test
def values_may_be_written_as_the_table_says():
    rows, = tables("docs/flags.md", "How to write values")
    forms = dict(rows)
    for word in re.findall(r"\b(1|t|true|yes|on)\b", forms["bool"].split(";")[1].split(",")[0]):
        for spelt in word, word.upper():
            equal(dump("hello", "--enable-pprof=" + spelt)["enable-pprof"]["value"], True)
    for word in re.findall(r"\b(0|f|false|no|off)\b", forms["bool"].split(";")[1].split(",")[1]):
        equal(dump("hello", "--enable-pprof=" + word)["enable-pprof"]["value"], False)
    equal(dump("hello", "--no-enable-pprof")["enable-pprof"]["source"], "flag")
    for option, kind in (("heap-profile-rate", "size"), ("every", "duration"), ("profiling-bind-address", "address")):
        values = re.findall(r"`([^`]+)`", "`" + forms[kind])
        need(len(values) >= 3, forms[kind])
        for value in values:
            if value == "0" and option == "every":
                continue
            equal(dump("hello", "--%s=%s" % (option, value))[option]["source"], "flag", value)
    equal(run("examples/hello", "--every=30", env=clean()).returncode, 2, "a bare number is no duration")
    equal(dump("hello", "--profiling-allowed-host=a,b", "--profiling-allowed-host=c")["profiling-allowed-host"]["value"],
          ["a", "b", "c"])


@test
def defaults_and_limits_are_those_of_the_programs():
    options = dump("hello")
    limits = tables("docs/profiling.md", "Limits")[0]
    checked = 0
    for what, limit in limits:
        for option, value in re.findall(r"--([\w-]+)`, ([^;`]+)", "`" + limit):
            want = options[option]["value"]
            got = int(re.match(r"\d+", value).group()) if isinstance(want, int) else value.split(";")[0].replace(" ", "").strip()
            equal(got, want, "%s: --%s" % (what, option))
            checked += 1
    need(checked >= 3, limits)
    promotion = dump("appstudio-controller")
    for option in re.findall(r"`--(environments|soak-time)` \(([\w,]+)", text_of("docs/controllers.md")):
        value = promotion[option[0]]["value"]
        equal(option[1], ",".join(value) if isinstance(value, list) else value, "--" + option[0])
    contains(text_of("docs/operating.md"), "`--graceful-shutdown-timeout` (%s;" % options["graceful-shutdown-timeout"]["value"])
    header = text_of("libcomponent/http/httpd.h") + text_of("libcomponent/http/answer.h")
    for what, name, unit, each in (
            ("connections", "CONNECTIONS_SPARE", "", 1), ("connections", "REQUEST_MS_KEPT", " ms", 1), ("profiles being collected at once", "REQUESTS", "", 1),
            ("sent behind a request that is being answered", "PIPELINE_BYTES_MAX", " KiB", 1 << 10),
            ("request header", "HEADER_SECONDS_MAX", " s", 1),
            ("request header", "HEADER_BYTES_MAX", " KiB", 1 << 10), ("request body", "BODY_BYTES_MAX", " MiB", 1 << 20),
            ("idle connection", "IDLE_SECONDS_MAX", " s", 1), ("reply without progress", "STALL_SECONDS", " s", 1)):
        factors = re.search(r"#define [A-Z]+_%s +\(?([\d* ]+)" % name, header).group(1).split("*")
        value = 1
        for factor in factors:
            value *= int(factor)
        contains(dict(limits)[what], "%d%s" % (value // each, unit))


# Tables

@test
def the_ports_are_those_of_the_table_in_the_sources():
    with open(os.path.join(SRC, "components/include/component/ports.def")) as f:
        want = re.findall(r'COMPONENT_PORTS_ROW\(\w+, "([\w-]+)",\s*"[^"]*", (\d+), (\d+), (\d+)\)', f.read())
    need(len(want) >= 4, want)
    equal([tuple(row) for row in tables("docs/operating.md", "Ports")[0]], want)


@test
def every_kind_of_profile_is_documented_and_every_documented_route_answers():
    kinds = kinds_of_profile()
    need(len(kinds) >= 4, kinds)
    routes, parameters = tables("docs/profiling.md", "Routes")
    paths = [row[0] for row in routes]
    for kind in kinds:
        need(any(re.fullmatch(r"/debug/pprof/%s(\?.*)?" % kind, p) for p in paths), "no row for " + kind)
    viewer = "--profiling-viewer-file=" + os.path.join(BUILD, "profiler/viewer/viewer.html.gz")  # it is not installed
    with daemon("examples/hello", "--enable-pprof", viewer) as d:
        for path, answer, *_ in routes:
            equal(d.get(path.replace("=N", "=1")).status, 405 if answer.startswith("POST,") else 200, path)
        words = re.findall(r"\b(goroutine|block|mutex|threadcreate|trace)\b", prose("docs/profiling.md"), re.I)
        for path in {w.lower() for w in words} - set(kinds):
            equal(d.get("/debug/pprof/" + path).status, 404, path)
        for parameter, of, _ in parameters:
            where = set(kinds) - {"trace"} if of.startswith("all of them") else re.findall(r"\w+", of)
            for kind in where:
                if kind == "cmdline":
                    continue
                q = parameter.replace("=N", "=1")
                if kind in ("profile", "fgprof") and "seconds" not in q:
                    q += "&seconds=1"
                equal(d.get("/debug/pprof/%s?%s" % (kind, q)).status, 200, "%s of %s" % (parameter, kind))


@test
def security_says_of_every_route_what_it_reveals():
    routes, _ = tables("docs/profiling.md", "Routes")
    rows = re.findall(r"^\| `(/[^`]+)`", text_of("docs/security.md"), re.M)
    equal([p for p, *_ in routes if p not in rows], [], "routes that docs/security.md leaves out")


@test
def what_scrapers_are_told_is_answered():
    paths = [row[0] for row in tables("docs/profiling.md", "Scraping all the time")[0]]
    equal(len(paths), 6)
    with daemon("examples/hello", "--enable-pprof") as d:
        for path in paths:
            r = d.get(path.replace("=N", "=1"))
            equal((r.status, r.headers["content-type"]), (200, "application/octet-stream"), path)
            need(r.body[:2] == b"\x1f\x8b", path)


@test
def functions_that_are_named_exist():
    with open(os.path.join(SRC, "components/libcomponent.map")) as f:
        exported = set(re.findall(r"^\s+(component_\w+);", f.read(), re.M))
    exported |= inline_functions()
    for folder in "components", "libcomponent":  # metrics, which are named as functions are
        for path in glob.glob(os.path.join(SRC, folder, "**", "*.c"), recursive=True):
            exported |= set(re.findall(r'"(component_\w+)"', text_of(path)))
    for name in DOCUMENTS:
        for function in re.findall(r"`(component_\w+)\(?", prose(name)):
            if not function.endswith("_"):  # component_profiler_*
                need(function in exported, "%s names %s()" % (name, function))


@test
def each_source_line_of_a_public_header_names_the_file_that_defines_the_function():
    rooms = [os.path.join(SRC, d) for d in ("flags", "libcomponent", "profiler", "components")]
    sources, headers = [], []
    for folder, _, names in itertools.chain.from_iterable(os.walk(room) for room in rooms):
        sources += [os.path.join(folder, n) for n in names if n.endswith(".c")]
        headers += [os.path.join(folder, n) for n in names if n.endswith(".h") and folder.endswith("include/component")]
    defined = {}
    for path in sources:
        with open(path) as f:
            for function in re.findall(r"^(component_\w+)\([^;{}]*\)\s*\n\{", f.read(), re.M):
                defined[function] = os.path.relpath(path, SRC)
    looked_at = 0
    for path in headers:
        with open(path) as f:
            text = f.read()
        named = ""
        # A comment without such a line goes on with the one before.
        for m in re.finditer(r"/\*.*?\*/|COMPONENT_API[^;]*?\b(component_\w+)\(", text, re.S):
            if not m[1]:
                said = re.search(r"^ \*   source\s+(.*(?:\n \*             +\S.*)*)", m[0], re.M)
                named = said[1] if said else named
            elif m[1] in defined:
                need(defined[m[1]] in re.findall(r"[\w/]+\.c", named), "%s: %s() is in %s, not in %s" % (
                    os.path.basename(path), m[1], defined[m[1]], named or "any file that is named"))
                looked_at += 1
    need(looked_at > 100, "%d functions" % looked_at)


@test
def programs_that_nobody_rebuilt_are_those_that_are_tested():
    beside, alone_ = text_of("tests/componentctl/servers.t"), text_of("tests/whole/strangers.t")
    for program, mark in (row[0].split("`") if "`" in row[0] else (row[0], "") for row in tables("docs/programs.md", "What is seen")[0]):
        if mark:
            need(re.search(r'\b(is_no_other|beside_each_other)\("%s"' % program, beside), program)
        else:
            contains(alone_, '"%s"' % program)


main()
