#!/usr/bin/env python3
"""languages.t - the agent in programs of other languages, whose runtimes have signals, stacks and
generated code of their own: they do what they do without it, and what the system knows of is in
the profiles.

The table in docs/profiling.md has a row for each.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from busy import *  # noqa: E402,F403

C_IN_GO = {"profile": ["c_burn_here", "goBurnHere"], "fgprof": ["c_burn_here"], "heap": ["c_keep_here"], "allocs": ["c_keep_here"],
           "mutex": ["c_hold_here"], "block": ["c_hold_here"], "threadcreate": ["pthread_create"], "goroutine": ["runtime."]}


def program_of(*names):
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    raise Skip("no " + " or ".join(names))


def row(argv, env, seen):
    """Every thread answers the dump; what the program said on standard error."""
    with Busy(argv, env) as b:
        b.find()
        b.go()
        b.look(seen)
        poll(lambda: "[no answer" not in b.ask("goroutine?debug=2").decode() or None, "an answer of all threads")
        return b.finish()


def go_builds(d, go, name, *flags, linked=False):
    exe = os.path.join(d, name)
    env = dict(gotools.ENV, CC=CC, CGO_ENABLED="1", CGO_CFLAGS="-g -O1", CGO_LDFLAGS_ALLOW=".*", CGO_LDFLAGS="")
    if linked:
        env.update(CGO_CFLAGS=" ".join(["-g", "-O1", "-DLINKED"] + INCLUDES), CGO_LDFLAGS=" ".join(link("linked")))
    r = run(go, "build", *flags, "-o", exe, source("busy.go"), env=env, timeout=gotools.BUILDS)
    equal(r.returncode, 0, r.stderr)
    return exe


def gos():
    if not gotools.gos():
        raise Skip("no Go is here")
    return [go for _, go in gotools.gos()]


@test
def go_with_c_in_it_has_the_agent_beside_its_own_profiler():
    with tempdir() as d:
        for go in gos():
            exe, own = go_builds(d, go, "foreign"), os.path.join(d, "own")
            equal(row([exe], agent(), C_IN_GO), "")
            equal(row([exe, own], agent(), C_IN_GO), "")
            for pprof in gotools.pprofs():
                contains(pprof("-top", own), "main.goBurnHere")


@test
def c_that_go_calls_starts_the_server_it_is_linked_with():
    with tempdir() as d:
        for go in gos():
            equal(row([go_builds(d, go, "linked", linked=True), LINKED], {}, C_IN_GO), "")


if os.environ.get("TEST_STRESS"):  # builds Go's library for it
    @test
    def gos_race_detector_has_nothing_to_report():
        with tempdir() as d:
            for go in gos():
                exe = go_builds(d, go, "racing", "-race")
                equal(row([exe], agent(), {k: C_IN_GO[k] for k in ("profile", "heap", "mutex", "threadcreate")}), "")


@test
def a_java_virtual_machine_runs_as_before_and_its_own_code_has_names():
    java = program_of("java")
    with tempdir() as d:
        with open(os.path.join(d, "Busy.class"), "wb") as f:
            f.write(BUSY_CLASS)
        seen = {"profile": ["start_thread"], "fgprof": ["JavaMain"], "goroutine": ["JavaMain"], "heap": ["JNI_CreateJavaVM"],
                "allocs": ["JNI_CreateJavaVM"], "block": ["start_thread"], "threadcreate": ["create_thread"]}
        equal(row([java, "-Xmx64m", "-cp", d, "Busy"], agent(), seen), "")


@test
def rust_panics_unwind_as_before_and_all_profiles_have_its_functions():
    rustc = program_of("rustc", os.path.expanduser("~/.cargo/bin/rustc"))
    with tempdir() as d:
        exe = os.path.join(d, "busy")
        compile_(rustc, "-O", "-g", source("busy.rs"), "-o", exe)
        seen = {"profile": ["burn_here", "worker"], "fgprof": ["burn_here", "wait_here"], "goroutine": ["wait_here"],
                "heap": ["keep_here"], "allocs": ["keep_here"], "threadcreate": ["main"]}
        equal(row([exe], agent(), seen), "")


SCRIPTS = {
    "python3": """
import sys, threading, time
over = threading.Event()
def work():
    kept = []
    while not over.is_set():
        kept = [bytearray(1000) for _ in range(500)]
        sum(range(20000))
        time.sleep(0.001)
print("started", flush=True)
sys.stdin.readline()
workers = [threading.Thread(target=work) for _ in range(2)]
for w in workers:
    w.start()
sys.stdin.read()
over.set()
for w in workers:
    w.join()
print("fine", flush=True)
sys.exit(3)
""",
    "perl": """
use IO::Select; $| = 1;
print "started\\n"; <STDIN>;
my $in = IO::Select->new(\\*STDIN);
until ($in->can_read(0.001)) { my @kept = map { "x" x 1000 } 1 .. 500; my $sum = 0; $sum += $_ for 1 .. 20000; }
print "fine\\n"; exit 3;
""",
    "node": """
const fs = require("fs"), one = Buffer.alloc(1);
function work() { let s = 0; for (let i = 0; i < 1e5; i++) s += i ^ 7; return [s, new Array(1000).fill("x")]; }
fs.writeSync(1, "started\\n");
while (fs.readSync(0, one, 0, 1) && one[0] != 10);
const turns = setInterval(work, 1);
process.stdin.on("data", () => {}).on("end", () => { clearInterval(turns); fs.writeSync(1, "fine\\n"); process.exit(3); });
""",
}


def script(name, option, **seen):
    path = program_of(name)
    equal(row([path, option, SCRIPTS[name]], agent(), seen), "")


@test
def python_runs_as_before():
    script("python3", "-c", profile=["Py"], heap=["Py"], allocs=["Py"], goroutine=["Py"])


@test
def perl_runs_as_before():
    script("perl", "-e", profile=["Perl_"], heap=["Perl_"], allocs=["Perl_"], goroutine=["pp_sselect"])


@test
def node_runs_as_before_and_one_with_a_zlib_of_its_own_is_told_so():
    path = program_of("node")
    with Busy([path, "-e", SCRIPTS["node"]], agent()) as b:
        if "' has taken over deflate(), which it needs" in b.said():
            b.p.stdin.write(b"go\n")
            equal(b.finish().count("\n"), 1, "one line about it")
            return
    script("node", "-e", profile=["node"], allocs=["v8"], threadcreate=["node"], goroutine=["uv_"])


main()
