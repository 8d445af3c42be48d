#!/usr/bin/env python3
"""componentctl doctor: what is in the way of looking into a program, and the command that mends it."""
import json
import os
import re
import resource
import shlex
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import UnixStreamServer

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from busy import Busy  # noqa: E402
from pprof_writer import profile  # noqa: E402
from records import recorded, start_of, write_record  # noqa: E402

own_run()
ROOT = os.geteuid() == 0
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PYTHON = os.path.realpath(sys.executable)
SUBJECT = "tests/programs/obedient_daemon"


def doctor(*words):
    """Its findings; the status tells whether there are warnings."""
    r = run(CTL, "doctor", "-o", "json", *words, env=environment())
    equal(r.stderr, "")
    found = json.loads(r.stdout)
    equal(r.returncode, 1 if any(f["level"] == "warning" for f in found) else 0, r.stdout)
    return found


def about(found, word):
    one, = (f for f in found if f["about"] == word)
    return one


def named(found, file):
    """What is said of the names in a file."""
    one, = (f for f in found if f["about"] == "names" and f["text"].startswith(file + ": "))
    return one


def access(path):
    f = about(doctor(path), "access")
    return f["level"], f["text"], f["command"]


def compiled(d, name, *flags, text="int main(void) { return 3; }\n"):
    path = os.path.join(d, name)
    with open(path + ".c", "w") as f:
        f.write(text)
    r = run(CC, "-o", path, path + ".c", *flags)
    equal(r.returncode, 0, r.stderr)
    return path


@test
def of_a_command_that_the_agent_can_be_loaded_into_that_is_said_and_what_to_type():
    with tempdir() as d:
        path = compiled(d, "plain")
        equal(access(path), ("ok", "the agent: it can be loaded into " + path, "componentctl run " + path))
        found = doctor(path, "--its", "-own", "options")
        need({"seccomp", "perf", "memory"} <= {f["about"] for f in found}, found)


@test
def of_one_that_it_cannot_be_the_reason_is_said_and_that_it_can_be_looked_at_from_outside():
    with tempdir() as d:
        static = compiled(d, "static", "-static")
        outside = "from outside, for the CPU time and the threads alone: "
        level, text, command = access(static)
        equal((level, command), ("warning", "componentctl profile PID"))
        contains(text, outside + static + " is linked statically")
        script = os.path.join(d, "script")
        with open(script, "w") as f:
            f.write("#!%s\n" % static)
        os.chmod(script, 0o755)
        contains(access(script)[1], outside + static + " is linked statically")
        privileged = compiled(d, "privileged")
        if others_can_be_had(privileged):
            os.chmod(privileged, 0o4755)
            contains(access(privileged)[1], outside + privileged + " gains privileges")
        need("perf" in {f["about"] for f in doctor(static)}, "may its CPU time be sampled?")


@test
def a_program_for_another_processor_gets_none():
    with tempdir() as d:
        with open(compiled(d, "foreign"), "r+b") as f:
            f.seek(18)  # e_machine
            f.write(b"\x03\x00")
        level, text, command = access(os.path.join(d, "foreign"))
        equal((level, command), ("warning", "file -L %s/foreign" % d))
        contains(text, "none: %s/foreign is for another kind of processor" % d)


@test
def a_process_that_serves_nothing_is_looked_at_from_outside():
    with tempdir() as d, started([compiled(d, "waits", text="#include <unistd.h>\nint main(void) { return pause(); }\n")]) as p:
        found = doctor(str(p.pid))
        f = about(found, "access")
        equal((f["level"], f["command"]), ("ok", "componentctl profile %d" % p.pid))
        contains(f["text"], "process %d serves no profiles, and its memory may be read" % p.pid)
        equal(about(found, "namespaces")["text"], "those of this terminal")
        perf = about(found, "perf")
        refused = run(CTL, "profile", str(p.pid), "--seconds=1", "-o", "/dev/null", "--raw", env=environment()).returncode != 0
        equal(perf["level"], "warning" if refused else "ok", perf["text"])


@test
def namespaces_and_another_root_are_told():
    if not ROOT or run("unshare", "-mp", "--fork", "true").returncode:
        raise Skip("no namespaces can be made here")
    with started(["unshare", "-m", "sleep", "1000"]) as p:
        poll(lambda: "sleep" in text_of("/proc/%d/comm" % p.pid), "its program")
        contains(about(doctor("--seconds=0", str(p.pid)), "namespaces")["text"],
                 "its own: mounts; its files are read below /proc/%d/root" % p.pid)


@test
def of_a_server_in_another_network_namespace_it_is_said_how_to_get_there():
    need_own_run()  # where the only record is its
    if not ROOT or run("unshare", "-n", "true").returncode:
        raise Skip("no namespaces can be made here")
    with tempdir() as d, socket.create_server(("127.0.0.1", 0)) as given:
        path, name = "unix:%s/sock" % d, "unix:@component-test-%d" % os.getpid()
        begins = ["unshare", "-n", "sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&%d' % given.fileno(), "sh", program(SUBJECT)]
        # An abstract name is of one network, and a file of all.  The socket that is handed over is of ours.
        for address, level in ("127.0.0.1:0", "warning"), (name, "warning"), (path, "ok"), ("fd:3", "ok"):
            with started(begins + ["--enable-pprof", "--profiling-registry", "--profiling-bind-address=" + address],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[given.fileno()]):
                pid = int(poll(listed, "its record").popitem()[1]["pid"])
                found = doctor("--seconds=0", str(pid))
                equal(about(found, "reachable")["level"], level)
                f = about(found, "namespaces")
                if level == "ok":
                    equal((f["level"], f["text"]), ("ok", "its own: network; its files are read below /proc/%d/root" % pid))
                    continue
                equal((f["level"], f["command"]), ("warning", "nsenter -t %d -n componentctl doctor %d" % (pid, pid)))
                contains(f["text"], "network; its address is not on this network")


def where(mounts, *words):
    """doctor, where other files lie in the place of the kernel's: path to text."""
    need_own_run()
    with tempdir() as d:
        script = ""
        for i, (path, text) in enumerate(mounts.items()):
            with open("%s/%d" % (d, i), "w") as f:
                f.write(text)
            script += "mount --bind %s/%d %s; " % (d, i, path)
        os.chmod(d, 0o755)
        r = run("unshare", "-m", "sh", "-ec", script + 'exec "$@"', "sh", *words, env=environment())
        need(r.returncode in (0, 1) and not r.stderr, r.stderr)
        return json.loads(r.stdout)


@test
def what_the_kernel_allows_to_root_alone_is_told_to_others_with_the_command():
    if not ROOT or run(*AS_NOBODY, CTL, "--version", env=environment()).returncode:
        raise Skip("this needs root, and a build's folder that another user can enter")
    paranoid, yama = "/proc/sys/kernel/perf_event_paranoid", "/proc/sys/kernel/yama/ptrace_scope"
    if not os.path.exists(paranoid):
        raise Skip("the kernel has no perf")
    f = about(where({paranoid: "3\n"}, *AS_NOBODY, CTL, "doctor", "-o", "json", "sh"), "perf")
    if "seccomp filter" not in f["text"]:
        equal((f["level"], f["command"]), ("warning", "sudo sysctl kernel.perf_event_paranoid=2"))
        contains(f["text"], "kernel.perf_event_paranoid is 3, and it has no CAP_PERFMON")
        equal(about(where({paranoid: "2\n"}, *AS_NOBODY, CTL, "doctor", "-o", "json", "sh"), "perf")["level"], "ok")
        equal(about(where({paranoid: "3\n"}, CTL, "doctor", "-o", "json", "sh"), "perf")["level"], "ok", "root may")
    if os.path.exists(yama):
        with tempdir() as d:
            os.chmod(d, 0o755)
            asked = AS_NOBODY + [CTL, "doctor", "-o", "json", compiled(d, "static", "-static")]
            f = about(where({yama: "1\n"}, *asked), "yama")
            equal((f["level"], f["command"]), ("warning", "sudo sysctl kernel.yama.ptrace_scope=0"))
            need("yama" not in {f["about"] for f in where({yama: "0\n"}, *asked)}, "with 0 all is well")


@test
def another_users_process_is_refused_and_nothing_is_guessed_of_it():
    if not ROOT or run(*AS_NOBODY, CTL, "--version", env=environment()).returncode:
        raise Skip("this needs root, and a build's folder that another user can enter")
    with started(["sleep", "1000"]) as p:
        r = run(*AS_NOBODY, CTL, "doctor", "-o", "json", str(p.pid), env=environment())
        found = json.loads(r.stdout)
        equal(r.returncode, 1)
        f = about(found, "access")
        equal((f["text"], f["command"]), ("none: %d: is another user's process, or has gained privileges; run this as root" % p.pid,
                                          "sudo componentctl doctor %d" % p.pid))
        equal(about(found, "namespaces")["text"], "not known: they may not be read")


@test
def one_that_has_ended_and_one_that_root_may_not_read_have_a_command():
    with started(["true"]) as p:
        poll(lambda: re.search(r"^State:\s+Z", text_of("/proc/%d/status" % p.pid), re.M), "its end")
        f = about(doctor("--seconds=0", str(p.pid)), "access")
        equal((f["level"], f["command"]), ("warning", "ps -o pid,stat,comm -p %d" % p.pid))
    if not ROOT:
        raise Skip("the rest needs root")
    yama = "/proc/sys/kernel/yama/ptrace_scope"
    cases = [({yama: "1\n"}, "sysctl kernel.yama.ptrace_scope=0"), ({yama: "0\n"}, "docker run --cap-add=SYS_PTRACE IMAGE")]
    with started(["sleep", "1000"]) as p:
        for mounts, command in cases if os.path.exists(yama) else [({}, cases[1][1])]:
            f = about(where(mounts, "setpriv", "--bounding-set=-sys_ptrace", CTL, "doctor", "-o", "json", str(p.pid)), "access")
            equal((f["level"], f["command"]), ("warning", command))
            contains(f["text"], "none: %d: its memory may not be read" % p.pid)


CONFINED = FILTER + "confine()\nprint('confined', flush=True)\nsys.stdin.read()\n"
STRICT = r"""#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	char c;

	if (prctl(PR_SET_SECCOMP, 1, 0, 0, 0))
		return 9;
	syscall(SYS_write, 1, "strict\n", 7L);
	while (syscall(SYS_read, 0, &c, 1L) > 0)
		;
	syscall(SYS_exit, 0);
	return 0;
}
"""


def need_filters():
    if run(PYTHON, "-c", FILTER + "confine()").returncode:
        raise Skip("this kernel has no seccomp")


@test
def a_filter_of_seccomp_is_told_from_outside_and_of_what_it_starts():
    need_filters()
    with started([PYTHON, "-c", CONFINED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        equal(p.stdout.readline(), "confined\n")
        f = about(doctor("--seconds=0", str(p.pid)), "seccomp")
        equal((f["level"], f["text"], f["command"]), ("ok", "a filter, which who looks from outside does not meet", ""))
    r = run(PYTHON, "-c", FILTER + "confine()\nos.execv(sys.argv[1], sys.argv[1:])\n", CTL, "doctor", "-o", "json", "sh", env=environment())
    equal((r.returncode, r.stderr), (1, ""))
    found = json.loads(r.stdout)
    f = about(found, "seccomp")
    equal((f["level"], f["text"], f["command"]), ("ok", "a filter, which what is started here inherits", ""))
    f = about(found, "perf")
    equal((f["level"], f["command"]), ("warning", "docker run --security-opt=seccomp=unconfined IMAGE"))
    contains(f["text"], "a seccomp filter is in force")


@test
def of_a_server_under_a_filter_its_unwinder_is_told_and_who_sees_its_switches_all_the_same():
    need_filters()
    with started_by_ctl("--app-id=confined", "--", PYTHON, "-c", CONFINED, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        equal(p.stdout.readline(), "confined\n")
        pid = int(listed()["confined"]["pid"])
        found = doctor("--seconds=0", str(pid))
        f = about(found, "seccomp")
        equal((f["level"], f["text"], f["command"]),
              ("ok", "a filter decides which calls it may make; what that takes from the profiles is told above", ""))
        f = about(found, "perf")
        equal((f["level"], f["command"]), ("warning", "sudo perf record -e context-switches -c 1 -g -p %d -- sleep 5" % pid))
        contains(f["text"], "a seccomp filter is in force")
        f = about(found, "unwinder")
        equal((f["level"], f["command"]), ("ok", ""))
        need(f["text"] in ("tables", "libunwind", "frame-pointer"), f["text"])


@test
def strict_seccomp_is_a_warning_and_its_command_looks_at_it():
    with tempdir() as d:
        exe = compiled(d, "strict", text=STRICT)
        with started_by_ctl("--app-id=strict", "--", exe, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            if p.stdout.readline() != "strict\n":
                raise Skip("seccomp cannot be strict here")
            pid = int(listed()["strict"]["pid"])
            try:
                f = about(doctor("--seconds=0", str(pid)), "seccomp")
                equal((f["level"], f["text"], f["command"]),
                      ("warning", "strict: it may read, write and end, and nothing else; look at it from outside",
                       "componentctl profile %d" % pid))
            finally:
                os.kill(pid, signal.SIGKILL)


@test
def memory_that_its_control_group_leaves_is_told():
    need_own_run()
    if not ROOT:
        raise Skip("this needs root")
    path = next((line.strip().split("::")[1] for line in open("/proc/self/cgroup") if line.startswith("0::")), None)
    if path is None or not os.path.isdir("/sys/fs/cgroup"):
        raise Skip("there are no control groups of the second version here")
    folder = ("/sys/fs/cgroup" + path).rstrip("/")
    script = "mount -t tmpfs none /sys/fs/cgroup; mkdir -p %s; echo %d > %s/memory.max; echo %d > %s/memory.current; %s\nexec %s doctor -o json sh"

    def told(left, command=":"):
        r = run("unshare", "-m", "sh", "-ec", script % (folder, 2000 << 20, folder, 2000 - left << 20, folder, command, CTL), env=environment())
        return about(json.loads(r.stdout), "memory")
    for left, level in (10, "warning"), (1000, "ok"):
        f = told(left)
        equal((f["level"], bool(f["command"])), (level, level == "warning"))
        contains(f["text"], "%d of 2000 MiB are left to its control group" % left)
    equal(told(10, told(10)["command"])["text"], "74 of 2064 MiB are left to its control group", "the command mends it")
    stat = "printf 'anon 1\\ninactive_anon 7\\ninactive_file %d\\n' > %s/memory.stat"
    equal(told(10, stat % (500 << 20, folder))["text"], "510 of 2000 MiB are left to its control group", "the kernel takes these back")
    equal(told(10, stat % (5000 << 20, folder))["text"], "2000 of 2000 MiB are left to its control group")


@test
def so_is_that_of_one_of_the_first_version():
    need_own_run()
    path = next((line.strip().split(":", 2)[2] for line in open("/proc/self/cgroup") if ":memory:" in line), None)
    if not ROOT or path is None:
        raise Skip("this needs root, and control groups of the first version")
    folder = ("/sys/fs/cgroup/memory" + path).rstrip("/")
    script = "mount -t tmpfs none /sys/fs/cgroup; mkdir -p %s; cd %s; echo %d > memory.limit_in_bytes; echo %d > memory.usage_in_bytes; " \
        "echo 'inactive_file 9\ntotal_inactive_file %d' > memory.stat; cd /; exec %s doctor -o json sh"
    r = run("unshare", "-m", "sh", "-ec", script % (folder, folder, 2000 << 20, 1990 << 20, 500 << 20, CTL), env=environment())
    equal(about(json.loads(r.stdout), "memory")["text"], "510 of 2000 MiB are left to its control group")


@test
def a_server_tells_itself_what_is_in_order():
    with recorded() as d:
        notes = json.loads(d.get("/debug/pprof/?format=json").text)
        equal(d.get("/debug/pprof/?format=json").headers["content-type"], "application/json")
        need({"heap and allocs", "mutex and block", "unwinder", "stack table"} <= {n["about"] for n in notes}, notes)
        for target in str(d.pid), "127.0.0.1:%d" % d.port, d.url:
            found = doctor("--seconds=0", target)
            contains(about(found, "reachable")["text"], "%d/debug/pprof answers" % d.port)
            for n in notes:
                need(any((f["about"], f["level"]) == (n["about"], n["level"]) and f["text"] == (n["text"] or "in order") for f in found), n)
        need("descriptors" in {f["about"] for f in doctor("--seconds=0", "localhost:%d" % d.port)}, "it listens on this machine")
        found = doctor(str(d.pid))
        need({"descriptors", "perf", "seccomp", "memory"} <= {f["about"] for f in found}, found)
        contains(named(found, os.readlink("/proc/%d/exe" % d.pid))["text"], "all names (.symtab)")


@test
def what_is_less_than_it_could_be_is_a_warning_and_its_command_mends_it():
    with daemon("examples/hello", "--enable-pprof", "--heap-profile-rate=0") as d:
        f = about(doctor("--seconds=0", d.url), "heap and allocs")
        equal((f["level"], f["text"]), ("warning", "heap sampling is off: its rate is 0"))
        equal(run("sh", "-c", f["command"]).returncode, 0, f["command"])
        f = about(doctor("--seconds=0", d.url), "heap and allocs")
        equal(f["level"], "ok")
        need(re.match(r"hooks are in force; malloc\(\) behind them is that of .*libc\.so", f["text"]), f["text"])


@test
def profiling_that_is_off_is_a_warning_and_its_command_mends_it():
    with daemon("examples/hello", "--profiling-registry", "--profiling-bind-address=127.0.0.1:0", port_file=False) as d:
        poll(lambda: is_listed(d.pid), "its record")
        found = doctor("--seconds=0", str(d.pid))
        equal(about(found, "reachable")["command"], "componentctl enable %d" % d.pid)
        contains(about(found, "access")["text"], "from outside: process %d serves no profiles" % d.pid)
        ctl(*about(found, "reachable")["command"].split()[1:])
        contains(about(doctor("--seconds=0", str(d.pid)), "reachable")["text"], "/debug/pprof answers")


@test
def what_cannot_be_switched_on_is_to_be_started_again():
    need_own_run()
    with started(["sleep", "1000"]) as p:
        path = write_record(p.pid, start_of(p.pid), "id mine\nurl off\napp_port 0\ncreated 1\n")
        f = about(doctor("--seconds=0", "mine"), "reachable")
        os.unlink(path)
        equal((f["level"], f["command"]), ("warning", "PROGRAM --enable-pprof"))
        equal(f["text"], "profiling of 'mine' is off, and it has no switch, as its signals are its own; start it again with --enable-pprof")


@test
def a_program_that_is_stopped_is_not_asked_and_its_command_has_it_go_on():
    with recorded() as d:
        d.signal(signal.SIGSTOP)
        poll(lambda: re.search(r"^State:\s+T", text_of("/proc/%d/status" % d.pid), re.M), "its stop")
        found = doctor(str(d.pid))
        f = about(found, "reachable")
        equal((f["level"], f["text"], f["command"]),
              ("warning", "process %d is stopped, and answers nobody until it goes on" % d.pid, "kill -CONT %d" % d.pid))
        need("descriptors" in {f["about"] for f in found}, "what the kernel knows is told")
        equal(run("sh", "-c", f["command"]).returncode, 0, f["command"])
        contains(about(doctor("--seconds=0", str(d.pid)), "reachable")["text"], "/debug/pprof answers")


@test
def a_limit_that_is_near_is_a_warning_and_its_command_mends_it():
    low = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))  # noqa: E731
    with recorded(preexec_fn=low) as d:
        f = about(doctor("--seconds=0", str(d.pid)), "descriptors")
        equal(f["level"], "warning")
        contains(f["text"], "of 40 are taken (RLIMIT_NOFILE)")
        equal(run("sh", "-c", f["command"]).returncode, 0, f["command"])
        equal(about(doctor("--seconds=0", str(d.pid)), "descriptors")["level"], "ok")


@test
def so_is_one_of_timers_and_address_space_is_none():
    few = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 31, resource.getrlimit(resource.RLIMIT_AS)[1]))  # noqa: E731
    with recorded(preexec_fn=few) as d:
        hard = resource.prlimit(d.pid, resource.RLIMIT_SIGPENDING)[1]
        resource.prlimit(d.pid, resource.RLIMIT_SIGPENDING, (1, hard))
        found = doctor("--seconds=0", str(d.pid))
        need(not any("RLIMIT_AS" in f["text"] for f in found), "nothing is reserved of it")
        f = about(found, "timers")
        equal(f["level"], "warning")
        contains(f["text"], "(RLIMIT_SIGPENDING), and half of the rest is too few")
        if ROOT:
            equal(run("sh", "-c", f["command"]).returncode, 0, f["command"])
            equal(about(doctor("--seconds=0", str(d.pid)), "timers")["level"], "ok")


@test
def what_gives_more_timers_lowers_no_limit_and_is_enough_where_many_signals_are_queued():
    need_own_run()
    if not ROOT:
        raise Skip("this needs root")
    with recorded() as d:
        status, threads = "/proc/%d/status" % d.pid, len(os.listdir("/proc/%d/task" % d.pid))
        hard = resource.prlimit(d.pid, resource.RLIMIT_SIGPENDING)[1]
        for hard, queued in (hard, 0), (1000, 0), (1000, 100000), (1, 0):
            resource.prlimit(d.pid, resource.RLIMIT_SIGPENDING, (1, hard))
            text = re.sub(r"\nSigQ:.*", "\nSigQ:\t%d/1" % queued, text_of(status))
            f = about(where({status: text}, CTL, "doctor", "-o", "json", "--seconds=0", str(d.pid)), "timers")
            equal(f["level"], "warning")
            soft, new = re.fullmatch(r"prlimit --pid=%d --sigpending=(\d+):(\d*)" % d.pid, f["command"]).groups()
            need(int(soft) >= queued + 2 * threads, "%d threads, %d are queued: %s" % (threads, queued, f["command"]))
            if new:
                need(int(new) == int(soft) and (hard == 1 or queued), "%d are enough: %s" % (hard, f["command"]))
            else:
                equal(run("sh", "-c", f["command"]).returncode, 0, f["command"])
                equal(resource.prlimit(d.pid, resource.RLIMIT_SIGPENDING), (int(soft), hard))


@test
def who_traces_it_is_told():
    seize = "import ctypes, sys\nif ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None): sys.exit(1)\nprint('there', flush=True)\ninput()"
    with started(["sleep", "1000"]) as p, started([sys.executable, "-c", seize, str(p.pid)], stdin=subprocess.PIPE,
                                                  stdout=subprocess.PIPE, text=True) as tracer:
        if tracer.stdout.readline() != "there\n":
            raise Skip("no process may be traced here")
        f = about(doctor("--seconds=0", str(p.pid)), "tracer")
        equal(f["level"], "warning")
        contains(f["text"], "process %d (python" % tracer.pid)
        equal(run("sh", "-c", f["command"]).returncode, 0, f["command"])
        tracer.wait(DEADLINE)
        need("tracer" not in {f["about"] for f in doctor("--seconds=0", str(p.pid))}, "it has ended")
        equal(p.poll(), None, "and what it traced goes on")


@test
def who_is_not_let_in_is_told_what_to_write():
    with tempdir() as folder:
        token = os.path.join(folder, "token")
        with open(token, "w") as f:
            f.write("s3cret\n")
        with recorded("--profiling-token-file=" + token) as d:
            f = about(doctor(d.url), "reachable")
            equal((f["level"], f["command"]), ("warning", "componentctl doctor --token-file=FILE " + d.url))
            contains(f["text"], "write --token-file=FILE")
            equal(about(doctor("--token-file=" + token, d.url), "access"), {"level": "ok", "about": "access", "text": "the token was taken",
                                                                           "command": ""})
        with recorded() as d:
            contains(about(doctor("--seconds=0", "--token-file=" + token, d.url), "access")["text"], "no token is asked for at http://127.0.0.1:")
        name = "unix:@component-test-%d" % os.getpid()
        for options, given, text in (((), (), "no token is asked for at " + name),
                                     (("--profiling-token-file=" + token,), ("--token-file=" + token,), "the token was taken")):
            with daemon(SUBJECT, "--enable-pprof", "--profiling-bind-address=" + name, *options, port_file=False):
                poll_socket("\0" + name[6:])
                equal(about(doctor("--seconds=0", *given, name), "access")["text"], text)
    f = about(doctor("127.0.0.1:%d" % free_port()), "reachable")
    equal((f["level"], f["command"]), ("warning", "componentctl list -o wide"))
    contains(f["text"], "nobody listens there")


UP = "import fcntl, os, socket, struct, sys\ns = socket.socket()\nfcntl.ioctl(s, 0x8914, struct.pack('16sh', b'lo', 0x49))\n" \
    "os.execv(sys.argv[1], sys.argv[1:])"  # SIOCSIFFLAGS: up, loopback, running


@test
def whom_a_server_lets_in_is_the_same_by_whatever_name_of_this_machine_it_is_asked():
    need_own_run()  # where the only record is its
    if not ROOT or run("unshare", "-n", "true").returncode:
        raise Skip("no namespaces can be made here")
    with tempdir() as d:
        token = os.path.join(d, "token")
        with open(token, "w") as f:
            f.write("s3cret\n")
        for host, options, given, level in (("127.0.0.1", (), (), "ok"), ("0.0.0.0", (), (), "warning"), ("", (), (), "warning"),
                                            ("0.0.0.0", ("--profiling-token-file=" + token,), ("--token-file=" + token,), "ok")):
            with started(["unshare", "-n", PYTHON, "-c", UP, program(SUBJECT), "--enable-pprof", "--profiling-registry",
                          "--profiling-bind-address=%s:0" % host, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
                record = poll(listed, "its record").popitem()[1]
                pid, port = record["pid"], str(record["profilePort"])
                for name in str(pid), "localhost:" + port, "127.0.0.1:" + port:
                    r = run("nsenter", "-t", str(pid), "-n", CTL, "doctor", "-o", "json", "--seconds=0", *given, name, env=environment())
                    equal(r.stderr, "")
                    f = about(json.loads(r.stdout), "access")
                    equal((f["level"], f["command"]), (level, "" if level == "ok" else "PROGRAM --profiling-token-file=FILE"), (host, name, f))


@test
def a_host_that_is_not_allowed_and_a_socket_that_is_not_ours_are_told():
    if not ROOT or run(*AS_NOBODY, CTL, "--version", env=environment()).returncode:
        raise Skip("this needs root, and a build's folder that another user can enter")
    with recorded() as d:
        hosts = {"/etc/hosts": "127.0.0.1 localhost elsewhere.example\n"}
        f = about(where(hosts, CTL, "doctor", "-o", "json", "elsewhere.example:%d" % d.port), "reachable")
        equal((f["level"], f["command"]), ("warning", "PROGRAM --profiling-allowed-host=elsewhere.example"))
    with tempdir() as folder:
        os.chmod(folder, 0o755)
        path = folder + "/profiles.sock"
        with daemon(SUBJECT, "--enable-pprof", "--profiling-bind-address=unix:" + path, port_file=False):
            poll_socket(path)
            equal(about(doctor("--seconds=0", "unix:" + path), "access")["text"], "a unix socket: its file's mode decides who may ask")
            f = about(where({}, *AS_NOBODY, CTL, "doctor", "-o", "json", "unix:" + path), "reachable")
            contains(f["text"], "this user may not open its socket; run this as the program's user, or as root")
            equal(f["command"], "sudo componentctl doctor unix:" + path)


@contextlib.contextmanager
def strange(answers, path=None):
    """A server of ours in name alone; what it answers, by the path behind /debug/pprof/.  path: of a unix socket."""
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = answers.get(self.path.split("/debug/pprof/")[1].split("?")[0])
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"no\n")

        def log_message(self, *_):
            pass
    with UnixStreamServer(path, Handler) if path else HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = in_background(server.serve_forever)
        try:
            yield "unix:" + path if path else "127.0.0.1:%d" % server.server_port
        finally:
            server.shutdown()
            serving.result()


@test
def a_server_that_says_nothing_of_itself_is_no_fault_and_half_an_answer_is_not_believed():
    answers = {}
    with strange(answers) as target:
        for answers[""] in (b"<html>", b"[", b'[{"about": "a", "level": "ok", "text": "b"}', b'[{"about": 1}]', b"[]",
                            b'[{"about": "a", "level": "warning", "text": "\\u00"}]'):
            found = doctor(target)
            contains(about(found, "server")["text"], "says nothing of itself")
            need("a" not in {f["about"] for f in found}, found)
        answers[""] = b'[{"about": "a", "new": "x", "level": "warning", "text": "\\u001b[2J\\"b\\""}]\n'
        equal(about(doctor(target), "a")["text"], '\x1b[2J"b"')
        contains(run(CTL, "doctor", target, env=environment()).stdout, 'warning  a          \\x1b[2J"b"\n')


@test
def one_that_answers_otherwise_is_to_be_asked_by_curl_and_a_token_that_is_not_there_to_be_written():
    with strange({}) as target, tempdir() as d:
        f = about(doctor(target), "reachable")
        equal((f["level"], f["command"]), ("warning", "curl -v http://%s/debug/pprof/" % target))
        f = about(doctor("--token-file=%s/none" % d, target), "reachable")
        equal((f["level"], f["command"]), ("warning", "componentctl doctor --token-file=FILE " + target))


@test
def what_others_have_chosen_is_one_word_of_a_command():
    off = json.dumps([{"about": "heap", "level": "warning", "text": "its rate is 0"},
                      {"about": "threads", "level": "warning", "text": "valgrind runs one thread at a time"}]).encode()
    with strange({}) as address, strange({"": off}) as noted, tempdir() as d, strange({}, d + "/it's;$(reboot)") as local:
        url = "http://%s/;reboot;$(reboot)'/debug/pprof/" % address
        equal(shlex.split(about(doctor(url), "reachable")["command"]), ["curl", "-v", url])
        equal(shlex.split(about(doctor(local), "reachable")["command"]),
              ["curl", "-v", "--unix-socket", local[5:], "http://localhost/debug/pprof/"])
        equal(shlex.split(about(doctor("--token-file=%s/none" % d, local), "reachable")["command"]),
              ["componentctl", "doctor", "--token-file=FILE", local])
        url = "http://%s/;reboot;/debug/pprof/" % noted
        found = doctor("--seconds=0", url)
        equal(shlex.split(about(found, "heap")["command"]), ["curl", "-d", "heap-profile-rate=524288", url + "rates"])
        equal(shlex.split(about(found, "threads")["command"]), ["componentctl", "profile", url])
        path = compiled(d, "a;reboot")
        equal(shlex.split(access(path)[2]), ["componentctl", "run", path])


def as_root(command):
    """What root alone may do is offered to others with sudo."""
    return command if ROOT or command.endswith(":") or command.split(" ")[0] not in CHANGES else "sudo " + command


CHANGES = "apt-get", "dnf", "install", "mount", "nsenter", "prlimit", "sysctl"
PROC, RUN, FILES = "mount -t proc proc /proc/PID/root/proc", "componentctl run PROGRAM", "prlimit --pid=PID --nofile=1048576:1048576"
MEMORY, REBUILD, SAMPLES = "prlimit --pid=PID --as=unlimited", "cc SOURCES $(pkg-config --cflags --libs libcomponent)", \
    "sudo perf record -g -p PID -- sleep 30"
# What servers say, and what is typed then.
NOTES = (
    ("/proc is not mounted or not readable: threads are those that the hooks have seen begin; threads are not seen being made: the program "
     "is not linked with -lcomponent_hooks nor started with libcomponent-preload.so", PROC),
    ("/proc is that of another pid namespace", "unshare --pid --fork --mount-proc PROGRAM"),
    ("threads cannot be listed: /proc cannot be read", PROC),
    ("threads cannot be listed: no descriptor is free (RLIMIT_NOFILE)", FILES),
    ("process_vm_readv() is refused and no descriptor is left: there are no names and no unwind tables", FILES),
    ("when the last one began, switches came from the hooks alone: too few descriptors are left", FILES),
    ("process_vm_readv() is refused and /proc/thread-self/mem cannot be opened: memory is read through a socket", PROC),
    ("the processors cannot be listed: /sys is not mounted or not readable", "mount -t sysfs sysfs /proc/PID/root/sys"),
    ("heap sampling is off: the program is not linked with -lcomponent_hooks nor started with libcomponent-preload.so", RUN),
    ("waits are not seen: pthread_mutex_lock() is the program's own; start it with libcomponent-preload.so", RUN),
    ("threads that block SIGPROF, since before profiling began or unseen by the hooks: 1", RUN),
    ("heap sampling is off in this forked process: component_after_fork() brings it back", "componentctl run --follow-forks -- PROGRAM"),
    ("threads are not seen being made: the program is linked with -static", REBUILD),
    ("waits are not seen: the hooks linked into the program are of another version", REBUILD),
    ("waits are not seen: another copy of libcomponent in this process has the hooks", "grep libcomponent /proc/PID/maps"),
    ("there is no memory for samples (RLIMIT_AS, RLIMIT_MEMLOCK)", MEMORY + " --memlock=unlimited"),
    ("some waits are not seen: no memory for their tables", MEMORY),
    ("when the last one began, switches came from the hooks alone: out of memory", MEMORY),
    ("no thread can be started (RLIMIT_NPROC, pids.max)", "prlimit --pid=PID --nproc=unlimited"),
    ("RLIMIT_SIGPENDING leaves no timers for some threads", "prlimit --pid=PID --sigpending=unlimited"),
    ("perf_event_open() is refused (kernel.perf_event_paranoid above 2, seccomp)", "sysctl kernel.perf_event_paranoid=2"),
    ("a seccomp filter is in force, which may end a program that calls perf_event_open()",
     "sudo perf record -e context-switches -c 1 -g -p PID -- sleep 5"),
    ("timer_create() is refused to this process (seccomp?)", SAMPLES),
    ("the program uses SIGPROF and every real-time signal", SAMPLES),
    ("valgrind runs one thread at a time", "componentctl profile TARGET"),
    ("/opt/x.so: none can be found; link it with -Wl,--eh-frame-hdr, and compile it with -fasynchronous-unwind-tables",
     "cc -fasynchronous-unwind-tables -Wl,--eh-frame-hdr SOURCES"),
    ("there is no page for browsers; install it (Debian: libcomponent-common)", "apt-get install libcomponent-common"),
    ("new stacks will be [stack table full]; give it more by --profiling-memory", "PROGRAM --profiling-memory=128MiB"),
    ("profiles can be read by everybody who reaches this server's port; use a loopback address or --profiling-token-file",
     "PROGRAM --profiling-token-file=FILE"),
    ("none", "apt-get install libunwind8"),
    ("heap sampling is off: malloc() belongs to /usr/lib/libjemalloc.so.2; load libcomponent's hooks before it, or do without it", RUN),
    ("heap sampling is off: malloc() belongs to /usr/bin/prog; load libcomponent's hooks before it, or do without it", ""),
    ("process_vm_readv() is refused (seccomp): /proc/thread-self/mem is read instead", ""),
    ("waits are not seen: there are no hooks for this architecture", ""),
    ("what nobody knows yet", ""),
)


@test
def what_servers_warn_of_has_its_command():
    notes = [{"about": "note %d" % i, "level": "warning", "text": text} for i, (text, _) in enumerate(NOTES)]
    with strange({"": json.dumps(notes).encode()}) as target:
        found = doctor("--seconds=0", target)
        for i, (text, command) in enumerate(NOTES):
            f = about(found, "note %d" % i)
            equal((f["level"], f["text"], f["command"]), ("warning", text, as_root(command.replace("TARGET", target))))


@test
def what_root_alone_may_do_is_offered_to_others_with_sudo():
    if not ROOT or run(*AS_NOBODY, CTL, "--version", env=environment()).returncode:
        raise Skip("this needs root, and a build's folder that another user can enter")
    asked = AS_NOBODY + [CTL, "doctor", "-o", "json"]

    def told(*words, **kw):
        return json.loads(run(*asked, *words, env=environment(), **kw).stdout)
    notes = [{"about": "note %d" % i, "level": "warning", "text": text} for i, (text, _) in enumerate(NOTES)]
    with strange({"": json.dumps(notes).encode()}) as target:
        found = told("--seconds=0", target)
        for i, (_, command) in enumerate(NOTES):
            equal(about(found, "note %d" % i)["command"], ("sudo " if command.split(" ")[0] in CHANGES else "") + command.replace("TARGET", target))
    low = lambda hard: lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (30, hard))  # noqa: E731
    equal(about(told("sh", preexec_fn=low(100)), "descriptors")["command"], "ulimit -S -n 100")
    command = about(told("sh", preexec_fn=low(30)), "descriptors")["command"]
    need(re.fullmatch(r"sudo prlimit --pid=\$\$ --nofile=(\d+):\1", command), command)
    path = next((line.strip().split("::")[1] for line in open("/proc/self/cgroup") if line.startswith("0::")), None)
    if path is None or not os.path.isdir("/sys/fs/cgroup"):
        raise Skip("there are no control groups of the second version here")
    folder = ("/sys/fs/cgroup" + path).rstrip("/")
    need_own_run()
    script = "mount -t tmpfs none /sys/fs/cgroup; mkdir -p %s; echo 10 > %s/memory.max; echo 5 > %s/memory.current; exec \"$@\""
    r = run("unshare", "-m", "sh", "-ec", script % (folder, folder, folder), "sh", *asked, "sh", env=environment())
    equal(about(json.loads(r.stdout), "memory")["command"], "echo %d | sudo tee %s/memory.max" % (10 + (64 << 20), folder))


@test
def what_servers_are_known_to_say_is_what_the_profiler_says():
    parts = re.findall(r'^\t\t\{ "([^"]+)", ', text_of("components/componentctl/doctor/notes.c"), re.M)
    need(len(parts) > 20, parts)
    said = "".join(text_of(os.path.join(folder, name)) for folder, _, names in os.walk(os.path.join(SRC, "profiler"))
                   for name in names if name.endswith((".c", ".h")))
    equal([part for part in parts if part not in said], [])
    equal([part for part in parts if not any(part in text for text, _ in NOTES)], [], "no note here has it")


@test
def code_that_no_file_has_is_a_warning_and_its_command_shows_the_stacks():
    answers = {"": b"[]", "goroutine": profile([("goroutine", "count")], [([1], [3], [])], [(1, 0, 0x5000, [(1, 0)])],
                                               [(1, "0x5000", "0x5000", "", 0)], [])}
    with strange(answers) as target:
        f, = (f for f in doctor("--seconds=0", target) if "code that no file has" in f["text"])
        equal((f["level"], f["command"]), ("warning", "componentctl dump " + target))
        need(f["text"].startswith("3 frames are in code"), f["text"])


@test
def names_and_lost_samples_are_counted_in_what_a_server_elsewhere_answers():
    functions = [(1, "main", "main", "", 0), (2, "far.so+0x1234", "far.so+0x1234", "", 0), (3, "[lost samples]", "[lost samples]", "", 0)]
    at = [(1, 1, 0x1000, [(1, 1)]), (2, 2, 0x2234, [(2, 0)]), (3, 0, 0, [(3, 0)])]
    maps = [(1, "/opt/far", "abcd"), (2, "/opt/far.so", "")]
    cpu = [([1], [50], []), ([2, 1], [25], []), ([3], [25], [])]
    answers = {"": b"[]", "profile": profile([("samples", "count"), ("cpu", "nanoseconds")], [(s, [n[0], n[0] * 10**7], la) for s, n, la in cpu],
                                             at, functions, maps)}
    with strange(answers) as target:
        found = doctor(target)
        need("descriptors" not in {f["about"] for f in found}, "who listens here is not it: it only forwards")
        f = about(found, "stacks")
        equal((f["level"], f["text"].split(";")[0]), ("warning", "25.0 % of 100 samples of CPU time have none"))
        equal(f["command"], "componentctl profile %s --comments" % target)
        f = named(found, "/opt/far.so")
        equal((f["level"], f["text"].split(";")[0]), ("warning", "/opt/far.so: 25 of 25 frames in it have no name"))
        equal(f["command"], "ssh HOST componentctl doctor ID")
        f, = (f for f in found if f["text"] == "25.0 % of 100 frames in 100 stacks have none")
        equal((f["level"], f["command"]), ("warning", "componentctl profile %s --folded" % target))
        equal(about(doctor("--seconds=0", target), "stacks"),
              {"level": "ok", "about": "stacks", "text": "not known: no CPU time was looked at", "command": ""})
        for answers["profile"], why in (None, "the server says: no (HTTP 404)"), (b"<html>", "the answer for 'profile' "):
            found = doctor("--seconds=1", target)
            equal(about(found, "stacks")["text"], "not known: no CPU time was looked at")
            f = about(found, "profile")
            equal((f["level"], f["command"]), ("warning", "componentctl profile " + target))
            contains(f["text"], "%s: %s" % (target, why))
        answers["profile"] = profile([("samples", "count"), ("cpu", "nanoseconds")], [], [], [], [])
        equal(about(doctor(target), "stacks")["text"], "no CPU time was used, so no sample could be lost")


@test
def of_a_file_it_is_said_where_its_names_come_from_and_what_would_give_more():
    with tempdir() as d:
        f = named(doctor(compiled(d, "whole", "-g")), d + "/whole")
        equal((f["level"], f["text"]), ("ok", d + "/whole: all names (.symtab), lines (.debug_info)"))
        f = named(doctor(compiled(d, "bare", "-s", "-Wl,--build-id=0x" + 20 * "ab")), d + "/bare")
        equal((f["level"], f["command"]), ("warning", as_root("install -D -m 644 UNSTRIPPED /usr/lib/debug/.build-id/ab/" + 19 * "ab" + ".debug")))
        contains(f["text"], "/bare: exported names alone (.dynsym); keep its table (no strip, no -s), or put its debug file at "
                 "/usr/lib/debug/.build-id/ab/" + 19 * "ab" + ".debug")


@test
def the_unstripped_file_at_the_place_that_is_told_gives_a_stripped_one_its_names():
    """The command for a file that no package has."""
    need_own_run()
    if not os.path.isdir("/usr/lib/debug"):
        raise Skip("there is no /usr/lib/debug")
    id = "-Wl,--build-id=0x" + 20 * "cd"
    with tempdir() as d:
        whole, bare = compiled(d, "whole", "-g", id), compiled(d, "bare", "-s", id)
        command = named(doctor(bare), bare)["command"].replace("UNSTRIPPED", whole)
        r = run("unshare", "-m", "sh", "-ec", "mount -t tmpfs -o mode=755 tmpfs /usr/lib/debug; %s; exec \"$@\"" % command, "sh",
                CTL, "doctor", "-o", "json", bare, env=environment())
        need(r.returncode in (0, 1) and not r.stderr, r.stderr)
        f = named(json.loads(r.stdout), bare)
        equal((f["level"], f["text"]), ("ok", bare + ": all names (its debug file), lines (its debug file)"))


@test
def of_a_file_of_a_package_the_command_installs_that_of_its_symbols():
    path = os.path.realpath("/usr/bin/dpkg")
    if not shutil.which("dpkg-query"):
        raise Skip("there is no dpkg")
    f = named(doctor(path), path)
    if f["level"] == "ok":
        raise Skip("they are installed")
    equal(f["command"], as_root("apt-get install dpkg-dbgsym"))


@test
def an_older_dpkg_is_asked_in_words_that_it_knows():
    dpkg, path = shutil.which("dpkg-query"), os.path.realpath("/usr/bin/dpkg")
    if not dpkg:
        raise Skip("there is no dpkg")
    if named(doctor(path), path)["level"] == "ok":
        raise Skip("its symbols are installed")
    with tempdir() as d:
        with open(d + "/dpkg-query", "w") as f:  # --root came with 1.21
            f.write('#!/bin/sh\ncase $1 in --root=*) exit 2; esac\nexec %s "$@"\n' % dpkg)
        os.chmod(d + "/dpkg-query", 0o755)
        r = run(CTL, "doctor", "-o", "json", path, env=dict(environment(), PATH=d + ":" + os.environ["PATH"]))
        equal(named(json.loads(r.stdout), path)["command"], as_root("apt-get install dpkg-dbgsym"))


@test
def of_a_process_it_is_said_which_objects_have_functions_without_names():
    with tempdir() as d:
        burns = "#include <stdio.h>\nint main(void) { puts(\"started\"); fflush(stdout); getchar(); puts(\"fine\"); return 3; }\n"
        with Busy([compiled(d, "bare", "-static", "-s", "-Wl,--build-id=none", text=burns)]) as b:
            found = doctor(str(b.p.pid))
            f = named(found, d + "/bare")
            equal(f["level"], "warning")
            need(re.search(r"bare: no names; [1-9]\d* of [1-9]\d* frames in it have no name; keep its table", f["text"]), f["text"])
            equal(f["command"], "cc -g -Wl,--build-id SOURCES")
            need(any(f["level"] == "warning" and f["text"].endswith("stacks have none") and
                     f["command"] == "componentctl profile %d --folded" % b.p.pid for f in found), found)
            b.finish()
        with Busy([compiled(d, "whole", "-static", "-g", text=burns)]) as b:
            found = doctor(str(b.p.pid))
            equal(named(found, d + "/whole")["level"], "ok")
            contains(named(found, d + "/whole")["text"], "all names (.symtab), lines (.debug_info); 0 of ")
            b.finish()


@test
def bad_input_gets_one_sentence():
    contains(ctl("doctor", "no-such-thing", status=1), "'no-such-thing': there is no such program, running or to be run; write HOST:PORT")
    contains(ctl("doctor", "/no/such", status=1), "'/no/such': there is no such program")
    contains(ctl("doctor", status=2), "write componentctl doctor TARGET|CMD")
    contains(ctl("doctor", "--json", "sh", status=2), "--json")
    with recorded() as d:
        contains(ctl("doctor", str(d.pid), "-o", "json", status=2), "'%d' runs, and nothing may stand behind it; write options before it" % d.pid)


main()
