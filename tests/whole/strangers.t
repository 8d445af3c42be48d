#!/usr/bin/env python3
"""strangers.t - programs of the distribution under componentctl run, at work: what they write and their status are
those of a plain run, every kind of profile is there meanwhile, and the CPU's samples lie in objects that are known.

Each works on lines of its standard input until that ends.  A plain run reads one piece of work, the profiled
one as many as the profiles take: the distinct lines that they write are compared.  TEST_STRESS=1 asks for longer windows.
"""
import os
import re
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from at_work import KNOWN, OTHERS, PROTO, asked, leaves  # noqa: E402
from pprof_reader import Profile  # noqa: E402

own_run()

PAD = b" " * 4000 + b"\n"  # few lines fill the pipe: what is left there is worked on after the last profile

PYTHON = """
import sys, threading
for line in sys.stdin:
    workers = [threading.Thread(target=lambda: sum(i * i for i in range(20000))) for _ in range(2)]
    for w in workers: w.start()
    for w in workers: w.join()
print("fine"); print("an error", file=sys.stderr); sys.exit(3)
"""
BASH = "while read -r n; do for ((i = 0; i < 20000; i++)); do x=$((i * n)); done; done; echo fine; echo error >&2; exit 3"
NODE = """
let left = 0;
process.stdin.on("data", () => { let s = 0; for (let i = 0; i < 1e6; i++) s += i ^ 7; left = s; })
  .on("end", () => { console.log("fine"); process.exit(3); });
"""
SQL = b"with recursive c(n) as (select 1 union all select n + 1 from c where n < 50000) select sum(n), hex(max(n)) from c;" + PAD


def distinct(text):
    return sorted(set(text.splitlines()))


def is_no_other(name, *words, work=b"7" + PAD, generates=False):
    """generates: it makes code as it runs, which is in no object."""
    path = shutil.which(name, path="/usr/bin:/usr/sbin:/bin")
    if not path:
        raise Skip(name + " is not here")
    need_own_run()
    plain = subprocess.run([path, *words], input=work, capture_output=True, env=environment(), timeout=60)
    stop = threading.Event()
    p = subprocess.Popen([CTL, "run", "--", path, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=environment())
    said = {}

    def feed():
        with contextlib.suppress(BrokenPipeError), p.stdin:
            while not stop.is_set():
                p.stdin.write(work)
                p.stdin.flush()

    first = p.stderr.readline().decode()
    threads = [threading.Thread(target=feed)]
    threads += [threading.Thread(target=lambda f=f, n=n: said.update({n: f.read()})) for n, f in (("out", p.stdout), ("err", p.stderr))]
    for t in threads:
        t.start()
    try:
        m = re.search(r"starting profiling server on port (\d+)", first)
        need(m, first)
        seen = leaves(int(m.group(1)), name)
        for kind in PROTO:
            need(Profile(asked(int(m.group(1)), kind)).types, kind)
        for kind in OTHERS:
            need(asked(int(m.group(1)), kind), kind + " is empty")
    finally:
        stop.set()
        try:
            threads[0].join(2 * DEADLINE)
            p.wait(2 * DEADLINE)
        finally:
            p.kill()
            p.wait()
            for t in threads:
                t.join()
    print("# %s: %s, hottest %s" % (name, seen, seen.hottest(1)[0]))
    equal(p.returncode, plain.returncode, said["err"][-500:])
    equal(distinct(said["out"]), distinct(plain.stdout))
    equal(distinct(said["err"]), distinct(plain.stderr))
    need(generates or seen.known >= KNOWN * seen.total, "%s: %s" % (name, seen))


@test
def python3_with_threads_is_no_other():
    is_no_other("python3", "-c", PYTHON)


@test
def bash_is_no_other():
    is_no_other("bash", "-c", BASH)


@test
def node_is_no_other():
    is_no_other("node", "-e", NODE, generates=True)


@test
def sqlite3_is_no_other():
    is_no_other("sqlite3", ":memory:", work=SQL)


@test
def openssl_is_no_other():
    is_no_other("openssl", "enc", "-des-ede3-cbc", "-K", "07" * 24, "-iv", "07" * 8, "-out", "/dev/null", work=bytes(1 << 20))


@test
def git_is_no_other():
    with tempdir() as d:
        with open(d + "/file", "wb") as f:
            f.write(bytes(1 << 22))
        is_no_other("git", "-C", d, "hash-object", "--no-filters", "--stdin-paths", work=(d + "/" + "./" * 1500 + "file\n").encode())


@test
def gcc_compiles_to_the_same():
    path = shutil.which("gcc", path="/usr/bin")
    if not path:
        raise Skip("gcc is not here")
    need_own_run()
    for text in ("int f(int n) { return n * 7; }\n", "int f(\n"):
        words = path, "-O2", "-S", "-o", "-", "-x", "c", "-"
        plain = run(*words, input=text, stdin=None, env=environment())
        ours = run(CTL, "run", "--", *words, input=text, stdin=None, env=environment())
        equal((ours.returncode, ours.stdout), (plain.returncode, plain.stdout), ours.stderr)
        equal(ours.stderr.split("\n", 1)[1], plain.stderr)


main()
