#!/usr/bin/env python3
"""The options of each shipped program, as --dump-options=json tells them, change only on purpose.

tests/components/golden/PROGRAM.json is what scripts of users rely on: names, types, defaults,
variables, help.  After a wanted change REFRESH writes them anew; the difference is then
part of the commit."""
import difflib
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

SHIPPED = ["backend-controller", "cluster-agent", "appstudio-controller"]
PROGRAMS = SHIPPED + ["hello"]
REFRESH = "UPDATE_GOLDEN=1 make -C build check TESTS=tests/components/golden_options.t"


def dump(name, *args, **env):
    """With nothing in the environment that a program could read."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "ASAN_OPTIONS")}
    r = run("examples/" + name, "--dump-options=json", *args, env=dict(kept, **env))
    equal(r.returncode, 0, r.stderr)
    return r.stdout


def rows(text):
    return {o["name"]: o for o in json.loads(text)["options"]}


def difference(old, new):
    """What is said of the options of a program that are not those of its golden file."""
    said = [" has a new option --%s" % n for n in new if n not in old] + [" has no --%s any more" % n for n in old if n not in new] + [
        " has another --%s" % n for n in new if n in old and new[n] != old[n]]
    return ",".join(said) or " has its options in another order"


def ports():
    """The rows of ports.def: name to profiling, health and metrics port."""
    text = open(os.path.join(SRC, "components/include/component/ports.def")).read()
    found = re.findall(r'COMPONENT_PORTS_ROW\(\w+, "([\w-]+)",\s*"[^"]*", (\d+), (\d+), (\d+)\)', text)
    return {name: tuple(int(p) for p in rest) for name, *rest in found}


@test
def every_shipped_program_has_its_golden_file():
    text = open(os.path.join(SRC, "examples/local.mk")).read()
    programs = re.findall(r"%D%/([\w-]+)", " ".join(re.findall(r"^bin_PROGRAMS \+=(.*)$", text, re.M)))
    equal(sorted(programs), sorted(SHIPPED))


for _name in PROGRAMS:
    def _check(name=_name):
        path = os.path.join(SRC, "tests/components/golden/%s.json" % name)
        got = dump(name)
        if os.environ.get("UPDATE_GOLDEN"):
            open(path, "w").write(got)
        want = open(path).read()
        if got != want:
            diff = difflib.unified_diff(want.splitlines(), got.splitlines(), path, "now", lineterm="", n=0)
            raise AssertionError("%s%s; if on purpose: %s\n%s" % (name, difference(rows(want), rows(got)), REFRESH, "\n".join(diff)))
    _check.__doc__ = "options of %s are those of its golden file" % _name
    _check.__name__ = "golden_" + _name.replace("-", "_")
    test(_check)


@test
def help_shows_a_programs_own_options_before_the_librarys():
    library = ["Profiling", "Serving", "Lifecycle", "Features", "Misc", "Logging"]
    for name, own in (("hello", ["Hello"]), ("backend-controller", ["Directories", "Controllers"]),
                      ("appstudio-controller", ["Promotion", "Directories", "Controllers"])):
        for word in "--help", "--help-all":
            found = re.findall(r"^([A-Z]\w+):$", run("examples/" + name, word).stdout, re.M)
            equal(found, own + library, "%s %s" % (name, word))


@test
def default_addresses_are_those_of_the_port_table():
    table = ports()
    need(len(table) >= 4, table)
    for name in SHIPPED:
        equal(rows(dump(name))["profiling-bind-address"]["value"], "127.0.0.1:%d" % table[name][0], name)
        equal(rows(dump(name))["health-probe-bind-address"]["value"], "0", "health is off by default")
    equal(rows(dump("hello"))["profiling-bind-address"]["value"], "127.0.0.1:6060")


@test
def each_value_says_where_it_came_from():
    with tempdir() as t:
        config = os.path.join(t, "c.yaml")
        open(config, "w").write("\nprofiling-max-seconds: 60\n")
        got = rows(dump("hello", "--enable-pprof", "--config=" + config, PPROF_BIND_ADDRESS=":6070",
                        HELLO_PROFILING_MEMORY="64MiB"))
        equal(got["enable-pprof"]["source"], "flag")
        equal((got["profiling-bind-address"]["source"], got["profiling-bind-address"]["value"]),
              ("env:PPROF_BIND_ADDRESS", ":6070"))
        equal(got["profiling-memory"]["source"], "env:HELLO_PROFILING_MEMORY")
        equal((got["profiling-max-seconds"]["source"], got["profiling-max-seconds"]["value"]), ("file:%s:2" % config, 60))
        equal(got["profile-port"]["source"], "default")


@test
def every_option_is_in_the_full_help_the_man_page_and_the_completion():
    for name in PROGRAMS:
        program_ = "examples/" + name
        texts = {"help": run(program_, "--help-all").stdout, "man": run(program_, "--generate-man").stdout.replace("\\-", "-"),
                 "completion": run(program_, "--completion=bash").stdout}
        for option in rows(dump(name)):
            for where, text in texts.items():
                need(re.search(r"--%s\b" % re.escape(option), text), "--%s is not in the %s of %s" % (option, where, name))
        lines = re.findall(r"^ +(?:-\w, |    )--([\w-]+)", texts["help"], re.M)
        equal(sorted(set(lines)), sorted(lines), "an option occurs once in the help of " + name)


main()
