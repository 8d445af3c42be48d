#!/usr/bin/env python3
"""componentctl profile PID and dump PID of processes that serve nothing: seen from outside, by name, undisturbed, as far
as the kernel allows."""
import os
import re
import shutil
import signal
import stat
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
import gotools  # noqa: E402
from busy import Busy, agent  # noqa: E402
from pprof_reader import Profile  # noqa: E402

own_run()
ROOT = os.geteuid() == 0
SUBJECT = os.path.join(SRC, "tests/programs/looked_at.c")
OURS = "call_here", "burn_here", "burn_less_here", "work_here"
NOBODY = 65534
AS_LESS_THAN_ROOT = ["setpriv", "--bounding-set=-sys_ptrace"]
OUT_OF_IT = "run this outside of the container, or with CAP_SYS_PTRACE"
BEYOND_IT = "run this outside of the container, or with CAP_PERFMON"
AS_NOBODY = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]


def compiled(folder, *flags, cc=CC, name="looked_at"):
    os.chmod(folder, 0o755)
    path = os.path.join(folder, name)
    r = run(*cc.split(), "-O1", "-g", "-pthread", *flags, "-o", path, SUBJECT)
    equal(r.returncode, 0, r.stderr)
    return path


def stacks(folder, pid, *options, wrap=(), status=0):
    """The folded stacks of a second, and what was said on stderr."""
    need_perf()
    r = run(*wrap, CTL, "profile", str(pid), "--seconds=1", "--folded", "-o", os.path.join(folder, "p.pb.gz"), *options,
            env=environment())
    equal(r.returncode, status, r.stdout + r.stderr)
    return r.stdout, r.stderr


def sees(folder, pid, *functions, **kw):
    """A second of a crowded machine may have too little of it: until all of these are in its stacks."""
    return poll(lambda: (lambda out: out if all(f in out for f in functions) else None)(stacks(folder, pid, **kw)[0]), functions)


def dump(pid, wrap=()):
    r = run(*wrap, CTL, "dump", str(pid), env=environment())
    equal(r.returncode, 0, r.stdout + r.stderr)
    return r.stdout


def threads_of(text):
    """Their functions, leaf first, by thread id."""
    return {int(i): re.findall(r"^([^\s(][^\n]*?)\(\.\.\.\)$", body, re.M)
            for i, body in re.findall(r"^goroutine (\d+) [^\n]*:\n((?:[^\n]+\n)*)", text, re.M)}


@contextlib.contextmanager
def undisturbed(b, pid=None):
    """No thread of it, or of this process that it has started, is stopped or traced while the block runs; in the end it
    says "fine": those of tests/programs count calls that were interrupted."""
    seen, done = set(), threading.Event()

    def watch():
        while not done.wait(0.001):
            for path in glob.glob("/proc/%d/task/*/status" % (pid or b.p.pid)):
                with contextlib.suppress(OSError):  # of a thread that has ended
                    seen.update(re.findall(r"^(State:\s+[tT].*|TracerPid:\s+[1-9]\d*)", text_of(path), re.M))
    watching = in_background(watch)
    try:
        yield
    finally:
        done.set()
        watching.result()
    equal(seen, set())
    b.finish()


def seen_and_dumped(folder, argv, *functions, env=None, word=b""):
    """word: what it waits for on its standard input before it works."""
    with Busy(argv, env) as b, undisturbed(b):
        b.p.stdin.write(word)
        b.p.stdin.flush()
        sees(folder, b.p.pid, *functions)
        text = dump(b.p.pid)
        equal(set(threads_of(text)), {int(t) for t in os.listdir("/proc/%d/task" % b.p.pid)}, text)
    return text


@test
def a_program_that_nobody_prepared_is_profiled_and_dumped_by_name():
    with tempdir() as d, Busy([compiled(d)]) as b:
        out = sees(d, b.p.pid, *OURS)
        need(re.search(r"work_here;call_here;burn_here \d+", out), out)

        def whole():
            """A thread that runs for an instant, as the first one does each second, may have no answer."""
            text = dump(b.p.pid)
            f = threads_of(text)
            return "main" in f[b.p.pid] and any("work_here" in w for w in f.values()) and text
        text = poll(whole, "a dump with the stacks of all")
        waits, = (f for f in threads_of(text).values() if "wait_here" in f)
        contains(waits, "start_thread")
        contains(text, "sync.Mutex.Lock")
        b.finish()


@test
def the_number_of_a_thread_means_its_process():
    with tempdir() as d, Busy([compiled(d)]) as b:
        tid = [t for t in os.listdir("/proc/%d/task" % b.p.pid) if int(t) != b.p.pid][0]
        need(stacks(d, tid)[0], "stacks")
        contains(stacks(d, tid)[1], "%s is a thread of process %d, which is taken as a whole" % (tid, b.p.pid))
        b.finish()


@test
def what_is_saved_is_a_whole_profile():
    with tempdir() as d, Busy([compiled(d)]) as b:
        sees(d, b.p.pid, *OURS)
        with open(os.path.join(d, "p.pb.gz"), "rb") as f:
            p = Profile(f.read())
        equal(p.types, [("samples", "count"), ("cpu", "nanoseconds")])
        need(any("from outside" in c and str(b.p.pid) in c for c in p.comments), p.comments)
        need(p.strings[p.mappings[0][5]].endswith("/looked_at"), p.strings[p.mappings[0][5]])
        for pprof in gotools.pprofs():
            contains(pprof("-top", os.path.join(d, "p.pb.gz")), "burn_here")


@test
def nobody_is_stopped_and_no_call_is_interrupted():
    with tempdir() as d, Busy([compiled(d)]) as b, undisturbed(b):
        waits, = [tid for tid, f in threads_of(dump(b.p.pid)).items() if "wait_here" in f]
        switches = lambda: re.findall(r"^\w+_ctxt_switches:.*", text_of("/proc/%d/task/%d/status" % (b.p.pid, waits)), re.M)  # noqa: E731
        before = switches()
        sees(d, b.p.pid, *OURS)
        for _ in range(20):
            dump(b.p.pid)
        equal((len(before), switches()), (2, before), "who waits for a lock was never awake")


@test
def functions_and_their_shares_are_those_that_the_agent_sees():
    with tempdir() as d, Busy([compiled(d)], agent()) as b:
        b.find()
        at = "127.0.0.1:%d" % int(re.search(r":(\d+)/", b.url)[1])

        def shares(target):
            out = run(CTL, "profile", target, "--seconds=2", "--folded", "-o", os.path.join(d, "s.pb.gz"), env=environment()).stdout
            found = {}
            for line in out.splitlines():
                stack, n = line.rsplit(" ", 1)
                leaf = stack.split(";")[-1]
                found[leaf] = found.get(leaf, 0) + int(n)
            total = sum(found.values())
            return total, {leaf: n / total for leaf, n in found.items() if leaf in OURS}

        def alike():
            inside, outside = in_background(shares, at), in_background(shares, str(b.p.pid))
            (n, a), (m, c) = inside.result(), outside.result()
            if n < 30 * 10**7 or m < 30 * 10**7:
                return False
            # Four standard deviations of what so few samples can tell.
            room = 4 * (0.25 / (n / 10**7) + 0.25 / (m / 10**7)) ** 0.5
            return all(abs(a.get(f, 0) - c.get(f, 0)) < room for f in ("burn_here", "burn_less_here"))
        poll(alike, "shares alike")


@test
def a_program_that_is_linked_statically_is_seen():
    with tempdir() as d:
        text = seen_and_dumped(d, [compiled(d, "-static")], *OURS)
        contains(text, "wait_here")


@test
def so_is_one_of_musl():
    if not shutil.which("musl-gcc"):
        raise Skip("musl-gcc is not here (Debian: musl-tools)")
    with tempdir() as d:
        seen_and_dumped(d, [compiled(d, "-static", cc="musl-gcc")], *OURS)
        seen_and_dumped(d, [compiled(d, cc="musl-gcc", name="dynamic")], *OURS)


@test
def so_is_one_in_go():
    gos = gotools.gos()
    if not gos:
        raise Skip("no Go is here")
    with tempdir() as d:
        path = os.path.join(d, "looked_at")
        r = run(gos[0][1], "build", "-o", path, os.path.join(SRC, "tests/programs/looked_at.go"),
                env=dict(gotools.ENV, CGO_ENABLED="0", GOCACHE=os.path.join(d, "cache"), HOME=d), timeout=gotools.BUILDS)
        equal(r.returncode, 0, r.stderr)
        # Without the signals by which Go's own runtime interrupts threads: any interruption would be ours.
        seen_and_dumped(d, [path], "main.callHere", "main.burnHere", env={"GODEBUG": "asyncpreemptoff=1"})


@test
def so_is_one_in_rust():
    rustc = shutil.which("rustc") or shutil.which(os.path.expanduser("~/.cargo/bin/rustc"))
    if not rustc:
        raise Skip("no rustc is here")
    with tempdir() as d:
        path = os.path.join(d, "busy")
        r = run(rustc, "-O", "-g", os.path.join(SRC, "tests/programs/busy.rs"), "-o", path, timeout=gotools.BUILDS)
        equal(r.returncode, 0, r.stderr)
        seen_and_dumped(d, [path], "burn_here", word=b"\n")


def seen_in_another_root(d, program, inside):
    """inside: what the shell does in namespaces of mounts and processes before the program runs below /mnt."""
    if not ROOT:
        raise Skip("this needs root")
    if run("unshare", "-mp", "--fork", "true").returncode:
        raise Skip("no namespaces can be made here")
    script = "mount -t tmpfs none /mnt; %s; exec chroot /mnt %s" % (inside, program)
    with Busy(["unshare", "-mp", "--fork", "--kill-child", "sh", "-ec", script]) as b:
        pid = int(text_of("/proc/%d/task/%d/children" % (b.p.pid, b.p.pid)).split()[0])
        with undisturbed(b, pid):
            sees(d, pid, *OURS)
            contains(dump(pid), "wait_here")


@test
def root_sees_one_in_another_root_and_pid_namespace():
    with tempdir() as d:
        seen_in_another_root(d, "/bin/inside", "mkdir /mnt/bin; cp %s /mnt/bin/inside" % compiled(d, "-static"))


@test
def names_of_one_in_another_root_are_those_of_its_own_libraries_and_not_of_those_at_the_same_path_here():
    with tempdir() as d:
        library, own = os.path.join(d, "library.so"), compiled(d, "-shared", "-fPIC", "-Dmain=looked_at", "-Wl,-soname,library.so", name="own.so")
        for text, flags in ("int looked_at(void) { return 0; }\n", ("-shared", "-fPIC", "-o", library)), \
                ("int looked_at(void);\nint main(void) { return looked_at(); }\n", ("-o", d + "/program", library, "-Wl,-rpath," + d)):
            r = run(*CC.split(), "-x", "c", "-", "-x", "none", *flags, input=text, stdin=None)
            equal(r.returncode, 0, r.stderr)
        needed = re.findall(r"(/\S+) \(0x", run("ldd", d + "/program").stdout)
        need(library in needed and any("/libc.so" in f for f in needed), needed)
        seen_in_another_root(d, d + "/program", "cp -L --parents %s/program %s /mnt; cp %s /mnt%s" % (d, " ".join(needed), own, library))


@test
def another_user_sees_his_own_and_is_told_why_no_others():
    if not ROOT:
        raise Skip("this needs root")
    with tempdir() as d:
        program = compiled(d)
        privileged = shutil.copy(program, os.path.join(d, "privileged"))
        os.chown(privileged, 1, 1)
        os.chmod(privileged, 0o4755)
        os.mkdir(os.path.join(d, "his"))
        os.chown(os.path.join(d, "his"), NOBODY, NOBODY)
        if run(*AS_NOBODY, CTL, "--version", env=environment()).returncode:
            raise Skip("another user cannot enter the build's folder")
        with Busy(AS_NOBODY + [program]) as b:
            r = run(*AS_NOBODY, CTL, "profile", str(b.p.pid), "--seconds=1", "--folded", "-o", os.path.join(d, "his/p"),
                    env=environment())
            if r.returncode:  # where perf is root's, and Debian's kernel says so
                contains(r.stderr, "may not be sampled")
            else:
                sees(os.path.join(d, "his"), b.p.pid, *OURS, wrap=AS_NOBODY)
            contains(dump(b.p.pid, AS_NOBODY), "wait_here")
            b.finish()
        for argv in [program], AS_NOBODY + [privileged]:
            with Busy(argv) as b, undisturbed(b):
                for command in "profile", "dump":
                    r = run(*AS_NOBODY, CTL, command, str(b.p.pid), env=environment(), cwd=os.path.join(d, "his"))
                    equal((r.returncode, r.stdout, r.stderr), (1, "", "componentctl: %d: is another user's process, or has gained "
                          "privileges; run this as root\n" % b.p.pid))
                sees(d, b.p.pid, *OURS)
                contains(dump(b.p.pid), "wait_here")


@test
def root_of_a_container_is_told_what_it_lacks_to_see_another_users():
    if not ROOT:
        raise Skip("this needs root")
    with tempdir() as d, Busy(AS_NOBODY + [compiled(d)]) as b:
        for command in "profile", "dump":
            r = run(*AS_LESS_THAN_ROOT, CTL, command, str(b.p.pid), env=environment(), cwd=d)
            equal((r.returncode, r.stdout, r.stderr), (1, "", "componentctl: %d: is another user's process, or has gained "
                  "privileges; %s\n" % (b.p.pid, OUT_OF_IT)))
        b.finish()


REFUSES = """#include <sys/syscall.h>
#include <unistd.h>
#include "refused_call.h"
int main(int argc, char **argv) { return argc && refuse_call(SYS_perf_event_open) ? 77 : execv(argv[1], argv + 1); }
"""


@test
def which_setting_of_the_kernel_keeps_it_for_root_is_told_with_the_command():
    if not ROOT:
        raise Skip("this needs root")
    # All of the folder is ours, as a kernel without yama has nothing there to mount over; and the kernel itself goes on as
    # it is set, so that what it would refuse is refused by a filter, and by the lack of a capability that the process has.
    settings = "mount -t tmpfs none /proc/sys/kernel; cd /proc/sys/kernel; mkdir yama; echo %d >perf_event_paranoid; echo %d >yama/ptrace_scope; exec \"$@\""
    if run("unshare", "-m", "sh", "-ec", settings % (0, 0), "sh", "true").returncode:
        raise Skip("no mount namespace can be made here")
    with tempdir() as d, Busy([compiled(d)]) as b:
        filtered = os.path.join(d, "filtered")
        r = run(*CC.split(), "-x", "c", "-I", os.path.join(SRC, "tests/lib"), "-o", filtered, "-", input=REFUSES, stdin=None)
        equal(r.returncode, 0, r.stderr)

        def refused(paranoid, yama, *words):
            r = run("unshare", "-m", "sh", "-ec", settings % (paranoid, yama), "sh", *words, str(b.p.pid), env=environment())
            equal((r.returncode, r.stdout), (1, ""), r.stderr)
            return r.stderr.splitlines()[-1]
        for yama, why in (1, ", as kernel.yama.ptrace_scope is 1; write 'sysctl kernel.yama.ptrace_scope=0', or " + OUT_OF_IT), \
                (0, ": Permission denied; " + OUT_OF_IT):
            for command in "profile", "dump":
                equal(refused(2, yama, *AS_LESS_THAN_ROOT, CTL, command), "componentctl: %d: its memory may not be read%s" % (b.p.pid, why))
        if run(filtered, "/bin/true").returncode:
            raise Skip("the kernel has no seccomp filters; yama's sentence was as it should be")
        for paranoid, why in (3, ", as kernel.perf_event_paranoid is 3; write 'sysctl kernel.perf_event_paranoid=2', or " + BEYOND_IT), \
                (2, ": perf_event_open(2) says 'Operation not permitted' (a container's seccomp rules?); " + BEYOND_IT):
            equal(refused(paranoid, 0, filtered, CTL, "profile"), "componentctl: %d: may not be sampled%s" % (b.p.pid, why))
        b.finish()


@contextlib.contextmanager
def long_window(pid, file, *wrap):
    """Of an hour, once half a second of the process' time is in it."""
    with started([*wrap, CTL, "profile", str(pid), "--seconds=3600", "--comments", "-o", file], env=environment(),
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        equal(p.stderr.readline(), "Process %d serves no profiles; it is looked at from outside.\n" % pid)
        used = lambda: int(text_of("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()[11])  # noqa: E731
        before = used()
        poll(lambda: used() > before + 50, "half a second of its time")
        yield p


@test
def one_that_ends_meanwhile_leaves_what_was_measured():
    need_perf()
    for is_waited_for in True, False:  # where its parent does not wait, it stays as a zombie
        with tempdir() as d, Busy([compiled(d)]) as b:
            file = os.path.join(d, "p.pb.gz")
            with long_window(b.p.pid, file) as p:
                b.p.kill()
                if is_waited_for:
                    b.p.wait()
                out = p.communicate(timeout=DEADLINE)[0]
            equal(p.returncode, 0)
            contains(out, "the process ended meanwhile")
            contains(run(CTL, "profile", file, env=environment()).stdout, "burn_here")


MORE_THREADS = """
import signal, sys, threading
def more(*_):
    for _ in range(100):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.signal(signal.SIGUSR1, more)
print("started", flush=True)
while True:
    pass
"""


@test
def threads_that_cannot_be_sampled_any_more_take_nothing_from_the_others():
    need_perf()
    limit = 40 + 3 * os.sysconf("SC_NPROCESSORS_CONF")  # each thread takes a descriptor for each processor
    with tempdir() as d, Busy([sys.executable, "-c", MORE_THREADS]) as b:
        file = os.path.join(d, "p.pb.gz")
        with long_window(b.p.pid, file, "prlimit", "--nofile=%d:%d" % (limit, limit)) as p:
            b.p.send_signal(signal.SIGUSR1)
            poll(lambda: len(os.listdir("/proc/%d/task" % b.p.pid)) > 100, "its threads")
            poll(lambda: len(os.listdir("/proc/%d/fd" % p.pid)) > limit - 2 * os.sysconf("SC_NPROCESSORS_CONF") - 1, "all of its descriptors")
            p.send_signal(signal.SIGINT)
            out = p.communicate(timeout=DEADLINE)[0]
        equal(p.returncode, 0, out)
        contains(out, "threads that began later may be missing: Too many open files")
        need(os.path.exists(file), file)
        b.p.kill()


@test
def an_interrupt_ends_the_window_and_keeps_what_was_measured():
    with tempdir() as d, Busy([compiled(d)]) as b:
        file = os.path.join(d, "p.pb.gz")
        with started([CTL, "profile", str(b.p.pid), "--seconds=3600", "-o", file], env=environment(),
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            p.stderr.readline()
            handled = lambda: int(re.search(r"^SigCgt:\s+(\w+)", text_of("/proc/%d/status" % p.pid), re.M)[1], 16)  # noqa: E731
            poll(lambda: handled() >> signal.SIGINT - 1 & 1, "its handler")
            p.send_signal(signal.SIGINT)
            p.communicate(timeout=DEADLINE)
        equal(p.returncode, 0)
        need(stat.S_ISREG(os.stat(file).st_mode), file)


SWAPS = r"""
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct pollfd input = { .events = POLLIN };
	void         *plugin = NULL;
	void        (*burn)(void) = NULL;
	char          byte;

	for (int i = 1; i < argc; i++) {
		if (plugin)
			dlclose(plugin);
		plugin = dlopen(argv[i], RTLD_NOW);
		burn = plugin ? (void (*)(void))dlsym(plugin, "burn") : NULL;
		if (!burn)
			return 1;
		puts(i == 1 ? "started" : "swapped");
		fflush(stdout);
		while (!poll(&input, 1, 0))
			burn();
		if (read(0, &byte, 1) < 1)
			break;
	}
	puts("fine");
	return 3;
}
"""
SWAPPED = """
static volatile unsigned long sum;
__attribute__((noinline)) void NAME(void);
void NAME(void) { for (int i = 0; i < 1000000; i++) sum += (unsigned long)i; }
void burn(void);
void burn(void) { NAME(); sum++; }
"""


def written(folder, name, source, *flags):
    path = os.path.join(folder, name)
    with open(path + ".c", "w") as f:
        f.write(source)
    r = run(*CC.split(), "-O1", "-g", *flags, "-o", path, path + ".c", "-ldl")
    equal(r.returncode, 0, r.stderr)
    return path


@test
def an_object_that_takes_anothers_place_within_the_window_is_not_given_its_samples():
    need_perf()
    with tempdir() as d:
        # The loader takes the address of the file for a wish.
        plugins = [written(d, n + ".so", SWAPPED, "-shared", "-fPIC", "-Wl,-Ttext-segment=0x1000000000", "-Wl,--build-id", "-DNAME=" + n)
                   for n in ("alpha_burns", "gamma_burns")]
        with Busy([written(d, "swaps", SWAPS), *plugins]) as b:
            file = os.path.join(d, "p.pb.gz")
            with long_window(b.p.pid, file) as p:
                b.p.stdin.write(b"x")
                b.p.stdin.flush()
                equal(b.p.stdout.readline(), b"swapped\n")
                p.send_signal(signal.SIGINT)
                p.communicate(timeout=DEADLINE)
            equal(p.returncode, 0)
            out = run(CTL, "profile", file, "--folded", env=environment()).stdout
            need(not re.search("alpha_burns|gamma_burns", out) and re.search(r";0x[0-9a-f]+;0x[0-9a-f]+ \d+$", out, re.M), out)
            b.finish()


@test
def what_cannot_be_seen_from_outside_is_told_in_one_sentence():
    with tempdir() as d, Busy([compiled(d)]) as b:
        pid = str(b.p.pid)
        said = ctl("profile", pid, "heap", status=2)
        contains(said, "process %s serves no profiles, and from outside there is no 'heap'; write 'componentctl profile %s'" % (pid, pid))
        contains(ctl("memory", pid, status=2), "process %s serves no profiles" % pid)
        contains(ctl("trace", pid, "-o", os.path.join(d, "t"), status=2), "process %s serves no profiles" % pid)
        b.finish()
    with started(["true"]) as p:
        p.wait()
        contains(ctl("profile", str(p.pid), status=1), "'%d': no such program" % p.pid)
    if ROOT and os.path.exists("/proc/2") and text_of("/proc/2/comm") == "kthreadd\n":
        contains(ctl("profile", "2", status=1), "2: is a thread of the kernel's")


main()
