"""stressing.py - what tests/whole/stress.t and scripts/soak share: tests/programs/stress.c built and run,
and clients that ask its server for everything."""
import http.client
import os
import re
import subprocess
import threading

from harness import *  # noqa: F401,F403
from hooked import *  # noqa: F401,F403

PARTS = ["stress.c", "stress_blocks.c", "stress_children.c", "stress_signals.c", "stress_threads.c"]
PATIENCE = 300  # seconds: only for what hangs
PPROF = "/debug/pprof/"
SANITIZED = {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=0",
             "TSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:die_after_fork=0:report_signal_unsafe=0:suppressions=" +
             os.path.join(SRC, "tests/lib/tsan.supp")}


def built(d, mode, sanitizer=None, compilers=(CC, CXX)):
    """The program and its two plugins in d."""
    flags = ["-fsanitize=" + sanitizer] if sanitizer else []
    flags += ["-DLINKED"] if mode == "linked" else []
    flags += ["-O2", "-g", "-Wno-unused-result"]
    objects, jobs = [], []
    for part in PARTS + ["stress_throw.cc"]:
        objects.append(os.path.join(d, part + ".o"))
        language = [compilers[1], "-std=c++17"] if part.endswith(".cc") else [compilers[0]]
        jobs.append(in_background(compile_, *language, *[f for f in BASE if f not in ("-fno-omit-frame-pointer", "-O1")],
                                  *flags, "-c", source(part), "-o", objects[-1]))
    for which in (0, 1):
        jobs.append(in_background(compile_, compilers[0], "-O2", "-g", "-shared", "-fPIC", "-DWHICH=%d" % which,
                                  source("stress_plugin.c"), "-o", os.path.join(d, "stress_plugin_%d.so" % which)))
    for job in jobs:
        job.result(PATIENCE)
    exe = os.path.join(d, "stress")
    compile_(compilers[1], *flags, "-Wl,--no-as-needed", *objects, "-o", exe, *link(mode), "-pthread", "-ldl")
    return exe


def ask(address, path, timeout=PATIENCE):
    c = http.client.HTTPConnection(*address, timeout=timeout)
    try:
        c.request("GET", path)
        r = c.getresponse()
        return Response(r.status, r.getheaders(), r.read())
    finally:
        c.close()


def everything_served(address):
    """Paths of every kind that the index names, each in the ways it can be asked for."""
    page = ask(address, PPROF).text
    names = sorted(set(re.findall(r"href='([a-z_]+)\?", page)))
    need("profile" in names and "heap" in names, page)
    paths = [PPROF, PPROF + "symbol?0x1000"]
    for name in names:
        if name in ("profile", "trace", "fgprof"):
            paths += [PPROF + name + "?seconds=%d" % s for s in (1, 2)]
        elif name == "cmdline":
            paths.append(PPROF + name)
        else:
            paths += [PPROF + name, PPROF + name + "?debug=1", PPROF + name + "?format=top"]
    return paths


class Clients:
    """Ask for everything all the time, four at once."""

    def __init__(self, address):
        self.address, self.over, self.counts, self.wrong = address, threading.Event(), {}, []
        self.lock = threading.Lock()
        paths = everything_served(address)
        self.threads = [threading.Thread(target=self.go, args=(paths, n), daemon=True) for n in range(4)]
        for t in self.threads:
            t.start()

    def go(self, paths, n):
        while not self.over.is_set():
            path = paths[n % len(paths)]
            n += 1
            try:
                r = ask(self.address, path)
                bad = r.status not in (200, 503) and "%s: %d %s" % (path, r.status, r.text[:300])
            except (OSError, http.client.HTTPException) as e:
                bad = None if self.over.is_set() else "%s: %r" % (path, e)
            with self.lock:
                self.counts[path] = self.counts.get(path, 0) + 1
                if bad:
                    self.wrong.append(bad)

    def end(self):
        self.over.set()
        for t in self.threads:
            t.join(PATIENCE)
        need(not any(t.is_alive() for t in self.threads), "a request hangs")


def stacks_of(pid):
    if not shutil.which("gdb"):
        return "(no gdb)"
    r = subprocess.run(["gdb", "-batch", "-nx", "-p", str(pid), "-ex", "thread apply all bt 25"], capture_output=True,
                       text=True, timeout=120, stdin=subprocess.DEVNULL)
    return r.stdout[-60000:]


class Victim:
    """The program, its output read as it comes."""

    def __init__(self, exe, seconds, args, env):
        self.p = subprocess.Popen([exe, "127.0.0.1:0", str(seconds), os.path.dirname(exe), *args], env=env,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", preexec_fn=lambda: os.nice(5))
        self.lines, self.over = [], threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.p.stdout:
            self.lines.append(line)
        self.over.set()

    def output(self):
        return "".join(self.lines)

    def wait_line(self, pattern, seconds):
        """The match; None when its output ends first."""
        def look():
            return re.search(pattern, self.output(), re.M) or self.over.is_set()
        poll(look, pattern, seconds)
        return re.search(pattern, self.output(), re.M)

    def end(self):
        """Its status, None for a hang; killed if that is what it takes."""
        try:
            self.p.stdin.close()
            self.p.wait(PATIENCE)
        except OSError:
            pass
        except subprocess.TimeoutExpired:
            print("# " + stacks_of(self.p.pid).replace("\n", "\n# "))
            return None
        finally:
            if self.p.poll() is None:
                self.p.kill()
                self.p.wait()
            self.reader.join(30)
        return self.p.returncode
