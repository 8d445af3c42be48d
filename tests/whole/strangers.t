#!/usr/bin/env python3
"""strangers.t - programs of the distribution under componentctl run, at work: what they write and their status are
those of a plain run, every kind of profile is there meanwhile, the CPU's samples lie in objects that are known, and the
hottest functions are those that are seen from outside in the plain one.

Each works on lines of its standard input until that ends, both as long as the profiles take: the distinct lines that
they write are compared.  TEST_STRESS=1 asks for longer windows.
"""
import json
import os
import re
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from at_work import OTHERS, PROTO, SECONDS, asked, compared  # noqa: E402
from pprof_reader import Profile  # noqa: E402

own_run()

OF_RUN = r'time="[^\n]* app_id=\S+\n'  # a line that is not the program's
PAD = b" " * 4000 + b"\n"  # few lines fill the pipe: what is left there is worked on after the last profile

PYTHON = """
import concurrent.futures, sys, threading
work = lambda n: sum(i * i for i in range(n))
pool = concurrent.futures.ThreadPoolExecutor(2)
for line in sys.stdin:
    short = threading.Thread(target=work, args=(10,))
    short.start()
    list(pool.map(work, [20000] * 2))
    short.join()
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


class Fed:
    """A program that is given the same work again and again; said is what it wrote, at the end."""

    def __init__(self, argv, work):
        self.p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        self.over = threading.Event()
        self.feeding, self.out = in_background(self.feed, work), in_background(self.p.stdout.read)
        self.first = said_at_start(self.p.stderr) if argv[0] == CTL else ""
        self.err = in_background(self.p.stderr.read)

    def feed(self, work):
        with contextlib.suppress(BrokenPipeError), self.p.stdin:
            while not self.over.is_set():
                self.p.stdin.write(work)
                self.p.stdin.flush()

    def end(self):
        """Its status, and the lines that it wrote."""
        self.over.set()
        try:
            self.feeding.result()
            self.p.wait(2 * DEADLINE)
        finally:
            self.p.kill()
            self.p.wait()
            said = self.out.result(), re.sub(OF_RUN.encode(), b"", self.first.encode() + self.err.result())
            self.p.stdout.close()
            self.p.stderr.close()
        return self.p.returncode, distinct(said[0]), distinct(said[1])


def from_outside(d, pid):
    """What componentctl makes of a window of it; with need_perf()."""
    file = os.path.join(d, "window.pb.gz")
    ctl("profile", str(pid), "--seconds=%d" % SECONDS, "--raw", "-o", file)
    with open(file, "rb") as f:
        return f.read()


def is_no_other(name, *words, work=b"7" + PAD, **kw):
    path = shutil.which(name, path="/usr/bin:/usr/sbin:/bin")
    if not path:
        raise Skip(name + " is not here")
    need_own_run()
    unseen = None
    try:
        need_perf()
    except Skip as e:
        unseen = e
    plain = Fed([path, *words], work)
    ours = Fed([CTL, "run", "--", path, *words], work)
    try:
        m = re.search(r"starting profiling server on port (\d+)", ours.first)
        need(m, ours.first)
        port = int(m.group(1))
        with tempdir() as d:
            compared(name, lambda: asked(port, "profile?seconds=%d" % SECONDS), None if unseen else lambda: from_outside(d, plain.p.pid),
                     lambda: int(text_of("/proc/%d/task/%d/children" % (ours.p.pid, ours.p.pid)).split()[0]), **kw)
        for kind in PROTO:
            need(Profile(asked(port, kind)).types, kind)
        for kind in OTHERS:
            need(asked(port, kind), kind + " is empty")
    finally:
        ended = [in_background(fed.end) for fed in (plain, ours)]
        expected, found = [job.result() for job in ended]
    equal(found, expected)
    if unseen:
        raise Skip("not compared with what is seen from outside: %s; the rest was as it should be" % unseen)


@test
def python3_with_threads_is_no_other():
    is_no_other("python3", "-c", PYTHON)


@test
def bash_is_no_other():
    is_no_other("bash", "-c", BASH)


@test
def node_is_no_other():
    is_no_other("node", "-e", NODE)


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


def gcc():
    path = shutil.which("gcc", path="/usr/bin")
    if not path:
        raise Skip("gcc is not here")
    return path


@test
def gcc_compiles_to_the_same():
    path = gcc()
    need_own_run()
    for text in ("int f(int n) { return n * 7; }\n", "int f(\n"):
        words = path, "-O2", "-S", "-o", "-", "-x", "c", "-"
        plain = run(*words, input=text, stdin=None, env=environment())
        ours = run(CTL, "run", "--", *words, input=text, stdin=None, env=environment())
        equal((ours.returncode, ours.stdout), (plain.returncode, plain.stdout), ours.stderr)
        equal(re.sub(OF_RUN, "", ours.stderr), plain.stderr)


@test
def gcc_and_the_compiler_that_it_runs_are_profiled_when_it_follows_forks_and_compile_to_the_same():
    need_own_run()
    with tempdir() as d:
        fifo, out, file = (os.path.join(d, name) for name in ("source", "out", "p.pb.gz"))
        os.mkfifo(fifo)
        words = gcc(), "-O2", "-S", "-o", out, "-x", "c", fifo

        def awaited():
            """The end of it to write to, once cc1 is there to read."""
            with contextlib.suppress(OSError):
                source = open(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK), "wb", 0)
                os.set_blocking(source.fileno(), True)
                return source

        def profiled(source):
            def both():
                source.write(b"\n" * 8192)  # cc1 allocates for it now and then, and has its server behind that
                found = [r for r in json.loads(ctl("list", "-o", "json")) if r["appId"] == "compiler"]
                return len(found) == 2 and found
            for record in poll(both, "records of gcc and of cc1"):
                for kind in "profile", "heap", "allocs", "goroutine", "block", "mutex", "threadcreate":
                    ctl("profile", str(record["pid"]), kind, *["--seconds=1"] * (kind == "profile"), "--raw", "-o", file)
                    with open(file, "rb") as f:
                        need(Profile(f.read()).types, (kind, record))

        def compiled(*before, meanwhile=lambda source: None):
            with started([*before, *words], env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
                said = in_background(p.stderr.read)
                with poll(awaited, "a reader of the source") as source:
                    meanwhile(source)
                    source.write(b"int f(int n) { return n * 7; }\n")
                status = p.wait(DEADLINE)
                equal((status, re.sub(OF_RUN.encode(), b"", said.result())), (0, b""))
            text = text_of(out)
            os.remove(out)
            return text
        plain = compiled()
        equal(compiled(CTL, "run", "--follow-forks", "--app-id=compiler", "--", meanwhile=profiled), plain)


main()
