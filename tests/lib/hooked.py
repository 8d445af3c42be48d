"""hooked.py - building programs with the hooks, for the tests that look at them."""
import contextlib
import glob
import os
import re
import subprocess

from harness import BUILD, CC, CXX, SRC, Skip, descriptors, need, tempdir, threads

HOOKS_INC = os.path.join(SRC, "profiler/hooks")
LIBS = os.path.join(BUILD, "components/.libs")
HOOKS = os.path.join(BUILD, "profiler/hooks")
with open(os.path.join(BUILD, "Makefile")) as f:
    ARCH_INC = "profiler/unwind/arch/" + re.search(r"^ARCH_DIR = (\w+)", f.read(), re.M).group(1)
INCLUDES = ["-I" + os.path.join(SRC, d) for d in
            ("profiler/hooks", "profiler/collect", ARCH_INC, "profiler/include", "libcomponent/base/include", "flags/include",
             "libcomponent/include", "components/include")]
BASE = ["-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-builtin",
        "-Wno-builtin-declaration-mismatch"] + INCLUDES
CXX_FLAGS = ["-std=c++17", "-fsized-deallocation"]
DEPENDENCIES = ["libevent_core", "libevent_extra", "zlib", "libprotobuf-c", "yaml-0.1"]


def source(name):
    return os.path.join(SRC, "tests/programs", name)


def compile_(*argv):
    r = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    need(r.returncode == 0, " ".join(argv) + "\n" + r.stderr)


def need_sanitizer(kinds):
    """Skips where the compiler cannot build the least of programs with it."""
    with tempdir() as d:
        r = subprocess.run([CC, "-fsanitize=" + kinds, "-x", "c", "-", "-o", os.path.join(d, "least")],
                           input="int main(void) { return 0; }\n", capture_output=True, text=True, timeout=600)
    if r.returncode != 0:
        raise Skip("no sanitizer: " + (r.stderr.splitlines() or ["%s says nothing" % CC])[-1])


def names_of(kind):
    """The names of one X-macro list of hooks/abi.h: MALLOC, NEW, DELETE or THREAD."""
    text = open(os.path.join(HOOKS_INC, "abi.h")).read().replace("\\\n", " ")
    body = re.search(r"#define HOOKS_%s_NAMES\(X\)(.*)" % kind, text).group(1)
    return re.findall(r"X\((\w+)\)", body)


def names_of_the_agent():
    """What it has besides, in components/preload."""
    folder, names = os.path.join(SRC, "components/preload"), set()
    for name in os.listdir(folder):
        if name.endswith(".c"):
            text = open(os.path.join(folder, name)).read()
            names |= set(re.findall(r"^CREDENTIALS\((\w+)", text, re.M)) | set(re.findall(r"^EXPORT [\w ]+\n(\w+)\(", text, re.M))
    need({"setuid", "setns", "prctl"} <= names, "components/preload is read wrongly")
    return names


def exported(path):
    """Functions and data that a shared object defines."""
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True).stdout
    return {f[2].split("@")[0] for f in (line.split() for line in out.splitlines())
            if len(f) == 3 and f[1] in "TtWwVuiBDR"}


def library_folders():
    """Where shared libraries lie, on the systems that we know."""
    return ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib/x86_64-linux-gnu",
            "/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


def library(name):
    for d in library_folders():
        path = os.path.join(d, name)
        if os.path.exists(path):
            return path
    raise Skip("no " + name)


def jemalloc():
    return library("libjemalloc.so.2")


def static_dependencies():
    return subprocess.run(["pkg-config", "--static", "--libs"] + DEPENDENCIES,
                          capture_output=True, text=True).stdout.split()


def link(mode):
    """What a program adds: linked, linked-a (static libcomponent; -hidden: exports nothing of it), core, foreign, static."""
    hooks = ["-L" + HOOKS, "-Wl,-u,component_hooks", "-lcomponent_hooks"]
    shared = [os.path.join(LIBS, "libcomponent.so"), "-Wl,-rpath," + LIBS]
    archive = [os.path.join(LIBS, "libcomponent.a")]
    return {
        "linked": hooks + shared,
        "linked-a": ["-rdynamic", "-Wl,-u,component_profiler_set_heap_rate"] + hooks + archive + static_dependencies() + ["-pthread", "-ldl"],
        "linked-a-hidden": hooks + archive + static_dependencies() + ["-pthread", "-ldl"],
        "core": shared,
        "foreign": [],
        "static": ["-static"] + hooks + archive + static_dependencies() + ["-pthread"],
    }[mode]


def build(d, name, file, mode, flags=(), before=(), after=()):
    exe = os.path.join(d, name)
    linked = [] if mode == "foreign" else ["-DLINKED"]
    flags = list(flags) + (CXX_FLAGS if file.endswith(".cc") else [])
    compile_(CXX if file.endswith(".cc") else CC, *BASE, *linked, *flags, "-Wl,--no-as-needed", source(file), "-o",
             exe, *before, *link(mode), *after, "-pthread", "-ldl")
    return exe


def build_calls(d, mode, flags=(), before=(), after=()):
    """hooks_calls with libraries on both sides of ours."""
    for caller in ("before", "after", "plugin"):
        compile_(CC, *BASE, "-shared", "-fPIC", "-DCALLER=" + caller, source("hooks_caller.c"),
                 "-o", os.path.join(d, "lib%s.so" % caller))
    obj = os.path.join(d, "caller.o")
    pic = [] if "-no-pie" in flags else ["-fPIC"]
    compile_(CC, *BASE, *pic, *flags, "-DCALLER=program", "-c", source("hooks_caller.c"), "-o", obj)
    # The order matters here, and every library stays, used or not.
    exe = os.path.join(d, "calls")
    # Weak references of a foreign program are the agent's to fill.
    weak = ["-Wl,-z,dynamic-undefined-weak"] if mode == "foreign" else ["-DLINKED"]
    compile_(CC, *BASE, "-Wl,--no-as-needed", *flags, *weak, source("hooks_calls.c"),
             obj, "-o", exe, os.path.join(d, "libbefore.so"), *before, *link(mode), *after,
             os.path.join(d, "libafter.so"), "-Wl,-rpath," + d, "-pthread", "-ldl")
    return exe


def plugin(d):
    return os.path.join(d, "libplugin.so")


def preload_env(before=None, after=None, core=False):
    """core: the program itself looks for our functions, which the agent loads where it is asked for a server."""
    libraries = (before, os.path.join(BUILD, "components/preload/libcomponent-preload.so"), after, core and "libcomponent.so.0")
    return {"LD_PRELOAD": " ".join(p for p in libraries if p), "LD_LIBRARY_PATH": LIBS}


def run_ok(exe, *more, args=(), env=None, timeout=600):
    full = dict(os.environ)
    full.update(env or {})
    r = subprocess.run([exe] + list(more) + list(args), capture_output=True, text=True, env=full,
                       stdin=subprocess.DEVNULL, timeout=timeout)
    need(r.returncode == 0, "%s ended with %d\n%s\n%s" % (exe, r.returncode, r.stdout[-2000:], r.stderr[-4000:]))
    return r


def listens(pid):
    """TCP ports of a process, from its own descriptors, and from those of our server's thread."""
    open_on = list(descriptors(pid).values())
    for tid in [tid for tid, name in threads(pid).items() if name == "component-http"]:
        for fd in glob.glob("/proc/%d/task/%d/fd/*" % (pid, tid)):
            with contextlib.suppress(OSError):  # it was open for an instant
                open_on.append(os.readlink(fd))
    inodes = {t[8:-1] for t in open_on if t.startswith("socket:[")}
    ports = []
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = open(path).readlines()[1:]
        except OSError:
            continue
        for line in lines:
            f = line.split()
            if f[3] == "0A" and f[9] in inodes:
                ports.append(int(f[1].split(":")[1], 16))
    return ports
