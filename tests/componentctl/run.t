#!/usr/bin/env python3
"""componentctl run: a program that nobody rebuilt has the agent in it, and nothing else is different."""
import ctypes
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import sys
import termios

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from shell_job import *  # noqa: E402,F403

own_run()


def words(*more):
    return [CTL, "run", *more]


def ran(*more, **kw):
    kw.setdefault("env", environment())
    return run(*words(*more), **kw)


@contextlib.contextmanager
def running(*more, **kw):
    """Once its server is there: the process of componentctl, with .port of the server."""
    p = started_by_ctl(*more, **kw)
    try:
        said = said_at_start(p.stderr)
        m = re.search(r'^time="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ" level=info msg="starting profiling server on port (\d+)" app_id=(\S+)$', said, re.M)
        need(m, said)
        p.port, p.id = int(m.group(1)), m.group(2)
        yield p
    finally:
        if p.poll() is None:
            p.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(DEADLINE)
        p.kill()
        p.wait()
        p.stderr.close()


def asked(port, path):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    with contextlib.closing(c):
        c.request("GET", "/debug/pprof/" + path)
        r = c.getresponse()
        equal(r.status, 200)
        return r.read().decode("utf-8", "replace")


def witness_of(session):
    there = [pid for pid, name in processes_of(session).items() if name == "component-group"]
    return there[0] if len(there) == 1 else None


def state(pid):
    """A letter of proc(5); None: it is gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return text_of("/proc/%d/stat" % pid).rpartition(")")[2].split()[0]


def script(d, name, text):
    path = os.path.join(d, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path


def compiled(d, name, text, *flags):
    path = os.path.join(d, name)
    with open(path + ".c", "w") as f:
        f.write(text)
    r = run(CC, "-g", "-o", path, path + ".c", *flags)
    equal(r.returncode, 0, r.stderr)
    return path


@test
def without_the_agent_it_says_so_and_starts_nothing():
    if os.path.exists("/usr/local/lib/libcomponent-preload.so"):
        raise Skip("the agent is installed here")
    with tempdir() as d:
        shutil.copy(CTL, d)
        r = run(d + "/componentctl", "run", "sh", "-c", "echo started", env=environment())
        equal((r.returncode, r.stdout), (1, ""), r.stderr)
        contains(r.stderr, "the agent is not here: ")
        contains(r.stderr, "libcomponent-preload")
        equal(run(d + "/componentctl", "run", "--enable-profiling=false", "sh", "-c", "echo started", env=environment()).stdout, "started\n")


@test
def a_standard_error_that_nobody_reads_or_that_may_not_grow_ends_no_program():
    need_own_run()
    with tempdir() as d:
        for options in [], ["--enable-profiling=false"]:
            r, w = os.pipe()
            os.close(r)
            said = run(*words(*options, "sh", "-c", "sleep 0.3; echo out"), env=environment(), stderr=w, stdout=subprocess.PIPE)
            os.close(w)
            equal((said.returncode, said.stdout), (0, "out\n"))
            with open(d + "/full", "w") as f:
                said = run("prlimit", "--fsize=0", *words(*options, "sh", "-c", "sleep 0.3; echo out"), env=environment(), stderr=f, stdout=subprocess.PIPE)
            equal((said.returncode, said.stdout), (0, "out\n"))


SLEEPER = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"


@test
def output_input_and_status_are_the_programs():
    need_own_run()
    r = ran("--", "sh", "-c", "cat; echo error >&2; exit 7", stdin=None, input="in\n")
    equal((r.returncode, r.stdout), (7, "in\n"))
    need("error" in r.stderr.splitlines() and len(r.stderr.splitlines()) == 4, r.stderr)
    equal(ran("sh", "-c", "kill -SEGV $$").returncode, 128 + 11)
    equal(ran("sh", "-c", "echo \"$@\"", "sh", "--enable-profiling", "--help").stdout, "--enable-profiling --help\n")
    equal(ran("--enable-profiling", "true", "--app-port", "3000", "--", "sh", "-c", "echo hi").stdout, "hi\n")


@test
def the_process_is_as_without_us_but_for_three_variables():
    need_own_run()
    show = "env | sort; grep -E '^(SigBlk|SigIgn|Sig.gt|Threads)' /proc/self/status; umask; pwd"
    env = environment(ONE="1", COMPONENT_SOMETHING="x")

    def shown(r):
        # 32 and 33 are glibc's, which takes them when the first thread is made.
        return re.sub(r"(?<=^Sig...:\t)\w+", lambda m: "%x" % (int(m.group(), 16) & ~(3 << 31)), r.stdout, flags=re.M)
    plain = shown(run("sh", "-c", show, env=env))
    under = shown(ran("-a", "mine", "--", "sh", "-c", show, env=env))
    port = re.search(r"^DAPR_PROFILE_PORT=[1-9]\d*\n", under, re.M)
    need(port, under)
    under = under.replace(port.group(), "").replace("APP_ID=mine\n", "")
    equal(under, plain.replace("COMPONENT_SOMETHING=x\n", ""))
    contains(ran("-p", "3000", "env").stdout, "APP_PORT=3000\n")
    need("APP_PORT" not in ran("env", env=environment(APP_PORT="1")).stdout, "APP_PORT is left out when there is none")


# As Go's runtime finds it in a program that is linked dynamically: behind the variables that the process began with.
FINDS_PAGE_SIZE = """
#include <elf.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char              **p = argv + argc + 1;
	const Elf64_auxv_t *begin, *v;

	while (*p)
		p++;
	begin = v = (const Elf64_auxv_t *)(p + 1);
	while (v->a_type != AT_NULL && v->a_type != AT_PAGESZ)
		v++;
	if (v->a_type == AT_NULL)
		puts(v == begin ? "none" : "wrong"); /* of none Go asks /proc */
	else
		puts(v->a_un.a_val == (unsigned long)sysconf(_SC_PAGESIZE) ? "right" : "wrong");
}
"""


@test
def what_is_behind_the_environment_is_never_read_as_something_else():
    need_own_run()
    if not shutil.which(CC.split()[0]):
        raise Skip("no compiler")
    with tempdir() as d:
        finds = compiled(d, "finds", FINDS_PAGE_SIZE)
        equal(run(finds).stdout, "right\n")
        none = compiled(d, "none.so", "int nothing;\n", "-shared", "-fPIC")
        for more in {}, {"LD_PRELOAD": none}, {"COMPONENT_A": "1"}, {"COMPONENT_A": "1", "COMPONENT_B": "2"}:
            found = ran(finds, env=environment(**more)).stdout
            need(found in ("right\n", "none\n"), (more, found))


@test
def its_children_are_plain_and_an_LD_PRELOAD_of_its_own_stays():
    need_own_run()
    r = ran("sh", "-c", "grep -c libcomponent /proc/$$/maps; sh -c 'grep -c libcomponent /proc/$$/maps'; true")
    first, second = map(int, r.stdout.split())
    need(first > 0 and second == 0, r.stdout)
    with tempdir() as d:
        other = compiled(d, "other.so", "int nothing;\n", "-shared", "-fPIC")
        equal(ran("sh", "-c", "echo $LD_PRELOAD", env=environment(LD_PRELOAD=other)).stdout, other + "\n")


@test
def it_is_listed_under_its_name_and_profiled_by_name():
    need_own_run()
    burn = "static volatile int n;\nvoid burn_it(void) { for (;;) n++; }\nint main(void) { burn_it(); }\n"
    with tempdir() as d:
        exe = compiled(d, "burner", burn)
        with running("--app-port=3000", exe) as p, running(exe) as second:
            found = listed()
            equal((p.id, second.id), ("burner", "burner-%d" % found[second.id]["pid"]))
            equal((found["burner"]["daprPort"], found["burner"]["appPort"], found["burner"]["command"]), (p.port, 3000, exe))
            poll(lambda: "burn_it" in asked(p.port, "profile?seconds=1&format=folded"), "burn_it")
            contains(asked(p.port, "heap?debug=1"), "heap profile:")
            ctl("stop", "burner")
            equal(p.wait(DEADLINE), 128 + signal.SIGTERM)
            equal(list(listed()), [second.id])
    equal(listed(), {})


@test
def a_port_that_is_asked_for_is_had_or_refused_before_anything_starts():
    need_own_run()
    with tempdir() as d:
        mark = d + "/started"
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
            e = ctl("run", "--profile-port", str(port), "--", "touch", mark, status=1)
            contains(e, "invalid configuration for ProfilePort. Port %d is not available: 127.0.0.1:%d: Address already in use, "
                     "held by process %d" % (port, port, os.getpid()))
        need(not os.path.exists(mark), "it was started")
        with running("--profile-port=%d" % port, "sleep", "1000") as p:
            equal(p.port, port)


OUTSIDE = "; start it as always, and write 'componentctl profile PID', which looks at it from outside"
GAINS = " gains privileges when it starts (set-user-ID, set-group-ID or file capabilities), and the loader then loads nothing into it"


@test
def what_cannot_be_loaded_into_is_refused_with_the_reason():
    need_own_run()
    with tempdir() as d:
        def refused(path, why, status=1):
            contains(ctl("run", path, status=status), why)

        static = compiled(d, "static", "int main(void) { return 3; }\n", "-static")
        refused(static, static + " is linked statically, so nothing can be loaded into it" + OUTSIDE)
        equal(ran("--enable-profiling=false", static).returncode, 3)
        refused(script(d, "script", "#! %s x\n" % static), static + " is linked statically")
        refused(script(d, "for_env", "#!/usr/bin/env %s\n" % static), static + " is linked statically")
        exe = compiled(d, "exe", "int main(void) { return 3; }\n")
        equal(ran(exe).returncode, 3)
        os.chmod(exe, 0o4755)
        equal(ran(exe).returncode, 3, "its owner gains nothing")
        if others_can_be_had(exe):
            os.chmod(exe, 0o4755)
            refused(exe, exe + GAINS + OUTSIDE)
            os.chmod(exe, 0o4711)  # whom others may run and not read
            os.chmod(d, 0o755)
            r = run("setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", *words(exe), env=environment())
            need(exe + GAINS + OUTSIDE in r.stderr or "the agent is not here" in r.stderr or "setpriv: " in r.stderr, r.stderr)
            equal(run("setpriv", "--no-new-privs", *words(exe), env=environment()).returncode, 3)
        os.chmod(exe, 0o755)
        refused(script(d, "nothing", "#!/no/such interpreter\n"), "/no/such is not there, and the script names it as its interpreter")
        refused(script(d, "crlf", "#!/bin/sh\r\necho\r\n"), "has lines that end in CR LF")
        with open(exe, "rb") as f:
            head = bytearray(f.read())
        for name, at, value, why in (("arm", 18, 40, "is for another kind of processor"), ("x32", 4, 1, "is for another kind of processor")):
            with open(d + "/" + name, "wb") as f:
                f.write(bytes(head[:at]) + bytes([value]) + bytes(head[at + 1:]))
            os.chmod(d + "/" + name, 0o755)
            refused(d + "/" + name, why)
        loader, = re.findall(rb"/lib\S*/ld-linux[^\0]*", head)[:1]
        with open(d + "/musl", "wb") as f:
            f.write(head.replace(loader, b"/lib/ld-musl-x86_64.so.1"[:len(loader)].ljust(len(loader), b"\0")))
        os.chmod(d + "/musl", 0o755)
        refused(d + "/musl", d + "/musl is linked with musl, and the agent needs glibc" + OUTSIDE)
        refused("nosuchcommand", "Failed to find command nosuchcommand")
        refused(d + "/nosuch", "Failed to find command")
        refused(d + "/exe.c", "Permission denied")
    contains(ctl("run", status=2), "WARNING: no application command found. Write componentctl run")
    contains(ctl("run", "--app-id", "a b", "true", status=2), "'a b' is no id")
    contains(ctl("run", "--profile-port=x", "true", status=2), "--profile-port")


@test
def what_gains_a_group_or_capabilities_is_refused_before_anything_starts():
    need_own_run()
    with tempdir() as d:
        exe = compiled(d, "exe", "#include <stdio.h>\nint main(void) { return puts(\"started\") < 0; }\n")

        def refused():
            r = ran(exe)
            equal((r.returncode, r.stdout), (1, ""), r.stderr)
            contains(r.stderr, exe + GAINS + OUTSIDE)
        equal(ran(exe).stdout, "started\n")
        os.chmod(exe, 0o2755)
        equal(ran(exe).stdout, "started\n", "whose group is ours")
        if others_can_be_had(exe):
            os.chmod(exe, 0o2755)
            refused()
        os.chmod(exe, 0o755)
        try:  # cap_net_raw+ep, as a struct vfs_cap_data of the second version
            os.setxattr(exe, "security.capability", struct.pack("<5I", 0x2000001, 1 << 13, 0, 0, 0))
        except OSError as e:
            raise Skip("a file can be given no capabilities here: %s; set-group-ID was refused" % e)
        if os.getuid():
            if may_gain(exe):
                refused()
            return
        equal(ran(exe).stdout, "started\n", "root has them all")
        os.chmod(d, 0o755)
        if not others_can_be_had(exe):
            return
        os.setxattr(exe, "security.capability", struct.pack("<5I", 0x2000001, 1 << 13, 0, 0, 0))  # another owner has taken it away
        r = run("setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", *words(exe), env=environment())
        equal(r.stdout, "", r.stderr)
        need(exe + GAINS + OUTSIDE in r.stderr or "the agent is not here" in r.stderr or "setpriv: " in r.stderr, r.stderr)


STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\nwhile True: signal.pause()\n"


@test
def signals_are_passed_on_and_who_does_not_end_is_killed():
    need_own_run()
    # os.write(): a signal may come while print() is at work, which cannot be entered again.
    counts = "import os, signal, sys, time\nfor s in (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM):\n" \
        "    signal.signal(s, lambda n, f: os.write(1, b'%d\\n' % n) and n == signal.SIGTERM and sys.exit(5))\n" \
        "print('ready', flush=True)\nwhile True: time.sleep(0.1)\n"  # pause() may miss one that comes just before it
    with running("--", sys.executable, "-c", counts, stdout=subprocess.PIPE) as p:
        equal(p.stdout.readline(), "ready\n")
        for s in (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM):
            p.send_signal(s)
            equal(p.stdout.readline(), "%d\n" % s)
        equal(p.wait(DEADLINE), 5)
        p.stdout.close()
    with running("--graceful-shutdown-timeout=100ms", "--", sys.executable, "-c", STUBBORN, stdout=subprocess.PIPE) as p:
        equal(p.stdout.readline(), "ready\n")
        p.terminate()
        equal(p.wait(DEADLINE), 128 + 9)
        said = p.stderr.read()
        equal(re.findall('level=(.*) app_id', said), ['info msg="terminated signal received: shutting down"',
                                                     'warning msg="the program did not end in time and is killed"'], said)
        p.stdout.close()


@test
def a_grace_period_below_zero_or_beyond_all_time_is_none():
    need_own_run()
    slow = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda n, f: (time.sleep(0.5), sys.exit(5)))\n" \
        "print('ready', flush=True)\nwhile True: time.sleep(0.1)\n"
    for grace in "-1s", "2562047h":
        with running("--graceful-shutdown-timeout=" + grace, "--", sys.executable, "-c", slow, stdout=subprocess.PIPE) as p:
            equal(p.stdout.readline(), "ready\n")
            p.terminate()
            equal(p.wait(DEADLINE), 5, grace)
            p.stdout.close()


@test
def who_looks_for_componentctl_finds_run_alone():
    need_own_run()
    with running("--", "sleep", "1000", start_new_session=True) as p:
        poll(lambda: witness_of(p.pid), "its witness")
        found = {pid: text_of("/proc/%d/cmdline" % pid).replace("\0", " ") for pid in processes_of(p.pid)}
        equal([pid for pid, words in found.items() if "componentctl" in words], [p.pid], found)
        equal([pid for pid, name in processes_of(p.pid).items() if "componentctl" in name], [p.pid])


ORPHANS = """
import os, sys, time
if os.fork() == 0:
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        os._exit(0)
    while os.getppid() != int(sys.argv[1]): time.sleep(0.01)
    os._exit(0)
os.wait()
sys.stdin.read()
"""


@test
def orphans_of_a_container_are_waited_for_and_a_witness_that_was_killed_is_replaced():
    need_own_run()
    # A subreaper, as process 1 is.
    with running("--", "sh", "-c", 'exec "$0" -c "$1" "$PPID"', sys.executable, ORPHANS, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                 preexec_fn=lambda: ctypes.CDLL(None).prctl(36, 1), start_new_session=True) as p:
        orphan = int(p.stdout.readline())
        poll(lambda: state(orphan) is None, "its end, and that somebody has waited for it")
        before = witness_of(p.pid)
        os.kill(before, signal.SIGKILL)
        poll(lambda: witness_of(p.pid) not in (before, None) and state(before) is None, "another one")
        p.stdin.close()
        equal(p.wait(DEADLINE), 0)
        p.stdout.close()


SHOW = """import sys
print([open("/proc/self/" + name).read() for name in ("cmdline", "comm")], flush=True)
sys.stdin.read()
"""


@test
def a_script_for_env_is_what_env_runs_and_is_profiled():
    need_own_run()
    with tempdir() as d:
        os.symlink(sys.executable, d + "/other-python")
        env = environment(PATH=d + ":" + os.environ["PATH"])
        for line in "#!/usr/bin/env other-python", "#! /usr/bin/env -S other-python  -u -X dev ":
            path = script(d, "script", line + "\n" + SHOW)
            plain = run(path, "a b", "", env=env)
            equal((plain.returncode, "other-python" in plain.stdout), (0, True), plain.stderr)
            with running(path, "a b", "", env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
                equal(p.stdout.readline(), plain.stdout)
                contains(asked(p.port, "cmdline"), "other-python\0")
                p.stdin.close()
                equal(p.wait(DEADLINE), 0)
                p.stdout.close()
        # What env alone can do is left to it.
        for line in "#!/usr/bin/env -S ONE=1 other-python", "#!/usr/bin/env -S other-python '-u'", "#!/usr/bin/env no-such-python":
            path = script(d, "script", line + "\n" + SHOW)
            plain, ours = run(path, "x", env=env), ran(path, "x", env=env)
            equal((ours.returncode, ours.stdout), (plain.returncode, plain.stdout), ours.stderr)


OTHER = 'level=warning msg="the program has run another one in its place, which is not profiled; write --follow-forks, or run that one"'


@test
def of_a_program_that_runs_another_one_in_its_place_it_is_told():
    need_own_run()
    for begin in "", "read word; ":
        with running("sh", "-c", begin + "exec cat", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as p:
            p.stdin.write("word\n")
            p.stdin.flush()
            contains(in_background(p.stderr.readline).result(), OTHER)
            p.stdin.close()
            equal((p.wait(DEADLINE), p.stderr.read()), (0, ""))
    with running("--follow-forks", "sh", "-c", "exec cat", stdin=subprocess.PIPE) as p:
        poll(lambda: listed().get("sh", {}).get("command") == "cat", "the other one's record")
        p.stdin.close()
        equal((p.wait(DEADLINE), p.stderr.read()), (0, ""))


@test
def a_pipe_that_a_process_of_the_programs_has_kept_is_not_waited_for():
    need_own_run()
    with tempdir() as d:
        static = compiled(d, "static", """#include <stdio.h>
#include <unistd.h>
int main(void)
{
	int pid = fork();
	if (pid) {
		printf("%d\\n", pid);
		return 3;
	}
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	for (;;)
		pause();
}
""", "-static")
        os.chmod(static, 0o111)  # so nothing is known of it before

        def as_who_cannot_read():
            for capability in 1, 2:  # to read what others may not
                ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
        r = ran(static, preexec_fn=as_who_cannot_read, timeout=DEADLINE)
        os.kill(int(r.stdout), signal.SIGKILL)
        equal(r.returncode, 3)
        contains(r.stderr, "profiling is off: the program ended, or has closed all descriptors, before the agent was there")
        need(UP not in r.stderr, "nobody has said so")


@test
def stop_begins_the_grace_period_and_waits_for_the_end():
    need_own_run()
    with running("--app-id=stubborn", "--graceful-shutdown-timeout=100ms", "--", sys.executable, "-c", STUBBORN, stdout=subprocess.PIPE) as p:
        equal(p.stdout.readline(), "ready\n")
        pid = listed()["stubborn"]["pid"]
        equal(ctl("stop", "stubborn"), "app stopped successfully: stubborn\n")
        need(state(pid) in ("Z", None), "it lives")
        equal(p.wait(DEADLINE), 128 + 9)
        p.stdout.close()
    forks = "import os, time\npid = os.fork()\nwhile not pid: time.sleep(0.05)\nprint(pid, os.waitpid(pid, 0)[1], flush=True)\ninput()\n"
    with running("--follow-forks", "--app-id=forks", "--", sys.executable, "-c", forks, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        child = poll(lambda: [r["pid"] for r in json.loads(ctl("list", "-o", "json")) if r["parent"]], "the child's record")[0]
        ctl("stop", str(child))
        equal(p.stdout.readline(), "%d %d\n" % (child, signal.SIGTERM))
        equal(p.poll(), None, "it alone was stopped")
        p.stdin.write("\n")
        p.stdin.close()
        equal(p.wait(DEADLINE), 0)
        p.stdout.close()


@test
def so_does_the_stop_of_a_version_that_has_replaced_that_of_run_meanwhile():
    need_own_run()
    with tempdir() as d:
        for name in "componentctl/componentctl", "preload/libcomponent-preload.so", "preload/libcomponent-preload-core.so":
            os.makedirs(os.path.dirname(os.path.join(d, name)), exist_ok=True)
            shutil.copy(os.path.join(BUILD, "components", name), os.path.join(d, name))
        older = d + "/componentctl/componentctl"
        with started([older, "run", "--app-id=stubborn", "--graceful-shutdown-timeout=100ms", "--", sys.executable, "-c", STUBBORN],
                     env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            equal(p.stdout.readline(), "ready\n")
            os.unlink(older)
            ctl("stop", "stubborn")
            equal(p.wait(DEADLINE), 128 + 9)


# It has a daemon that becomes an orphan, and stops it.
STOPS_ORPHAN = """
import os, re, subprocess, sys, time
ctl, *daemon = sys.argv[1:]
pid = subprocess.run(["sh", "-c", '"$@" >&2 & echo $!', "sh", *daemon], stdout=subprocess.PIPE, text=True).stdout.strip()
while not any(re.fullmatch(pid + r"[.]\\d+", name) for name in os.listdir("/run/component")):
    time.sleep(0.01)
subprocess.run([ctl, "stop", pid])
sys.exit(5)
"""


@test
def as_process_1_of_a_container_it_is_not_stopped_in_the_place_of_an_orphan():
    need_own_run()
    into_container = ["unshare", "-pf", "--kill-child", "--mount-proc"]
    if run(*into_container, "true").returncode:
        raise Skip("no namespace of processes can be had here")
    r = run(*into_container, *words("--", sys.executable, "-c", STOPS_ORPHAN, CTL, program("tests/programs/obedient_daemon"),
                                    "--enable-pprof", "--profiling-registry", "--profiling-bind-address=127.0.0.1:0"), env=environment())
    equal((r.returncode, r.stdout), (5, "app stopped successfully: obedient_daemon\n"), r.stderr)


def waiting(pid):
    return int(re.search(r"ShdPnd:\t(\w+)", text_of("/proc/%d/status" % pid))[1], 16)


@test
def keys_of_a_terminal_reach_the_program_once():
    need_own_run()
    # By a pipe: a signal that comes just before input() waits would be heard of at the next key only.
    counts = "import os, select, signal\nr, w = os.pipe()\nos.set_blocking(w, False)\nn = {signal.SIGINT: 0, signal.SIGWINCH: 0}\n" \
        "for s in n:\n    signal.signal(s, lambda n, f: None)\nsignal.set_wakeup_fd(w)\nprint('rea' + 'dy', flush=True)\n" \
        "while 0 not in select.select([0, r], [], [])[0]:\n    for s in os.read(r, 100):\n        n[s] += 1\n" \
        "        os.write(1, b'%s %d\\n' % (signal.Signals(s).name.encode(), n[s]))\nprint('all', *n.values(), flush=True)\n"
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.execve(CTL, words("--graceful-shutdown-timeout=1ms", "--", sys.executable, "-c", counts), environment())
        finally:
            os._exit(99)
    try:
        until(fd, b"ready")
        for n in (1, 2):
            os.write(fd, b"\x03")
            until(fd, b"SIGINT %d" % n)
        for n in (1, 3):
            poll(lambda: not waiting(pid), "a run that has read what came: two signals of one kind are one")
            before = poll(lambda: witness_of(pid), "the witness")
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30 + n, 100, 0, 0))
            until(fd, b"SIGWINCH %d" % n)
            poll(lambda: not waiting(pid) and witness_of(pid) not in (before, None), "another witness")
            os.kill(pid, signal.SIGWINCH)  # which goes to one process, and is passed on
            until(fd, b"SIGWINCH %d" % (n + 1))
        os.write(fd, b"\n")
        until(fd, b"all 2 4")
        _, status = os.waitpid(pid, 0)
        equal(os.waitstatus_to_exitcode(status), 0)
        pid = 0
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(fd)


@test
def what_the_kernel_sends_to_us_alone_reaches_the_program():
    need_own_run()
    pid, fd = pty.fork()  # the leader of a session, whom alone a hang-up is told
    if pid == 0:
        try:
            os.execve(CTL, words("--", "sleep", "1000"), environment())
        finally:
            os._exit(99)
    try:
        until(fd, b"starting profiling server")
    finally:
        os.close(fd)
        _, status = os.waitpid(pid, 0)
    equal(os.waitstatus_to_exitcode(status), 128 + signal.SIGHUP)
    with running("--", "sleep", "1000", preexec_fn=lambda: signal.alarm(2)) as p:  # exec(2) keeps it
        equal(p.wait(DEADLINE), 128 + signal.SIGALRM)


COUNTS = """
import os, signal
both = {signal.SIGRTMIN, signal.SIGRTMIN + 1}
signal.pthread_sigmask(signal.SIG_BLOCK, both)
print("ready", flush=True)
n = 0
while signal.sigwait(both) == signal.SIGRTMIN:
    n += 1
print(n, flush=True)
"""


@test
def a_signal_to_the_group_reaches_the_program_once():
    need_own_run()
    with running("--", sys.executable, "-c", COUNTS, stdout=subprocess.PIPE, start_new_session=True) as p:
        equal(p.stdout.readline(), "ready\n")
        for _ in 1, 2:  # the second one is told from the first
            before = poll(lambda: witness_of(p.pid), "its witness")
            os.killpg(p.pid, signal.SIGRTMIN)
            poll(lambda: witness_of(p.pid) not in (before, None), "another witness")
        p.send_signal(signal.SIGRTMIN)  # this one is passed on
        p.send_signal(signal.SIGRTMIN + 1)
        equal(p.stdout.readline(), "3\n")
        equal(p.wait(DEADLINE), 0)
        p.stdout.close()
        equal(processes_of(p.pid), {})


@test
def a_signal_to_our_group_reaches_a_program_that_has_left_it():
    need_own_run()
    ends = "import os, signal, sys, time\n%s\nsignal.signal(signal.SIGTERM, lambda n, f: sys.exit(5))\n" \
        "print('ready', flush=True)\nwhile True: time.sleep(0.1)\n"
    for leave in "os.setpgid(0, 0)", "os.setsid()":
        with running("--", sys.executable, "-c", ends % leave, stdout=subprocess.PIPE, start_new_session=True) as p:
            equal(p.stdout.readline(), "ready\n")
            os.killpg(p.pid, signal.SIGTERM)
            equal(p.wait(DEADLINE), 5, leave)
            p.stdout.close()


@test
def what_is_sent_to_each_process_reaches_a_program_that_has_left_our_group_once():
    need_own_run()
    leaves = "import os\nos.setpgid(0, 0)\nprint(os.getpid(), flush=True)" + COUNTS
    with running("--", sys.executable, "-c", leaves, stdout=subprocess.PIPE, start_new_session=True) as p:
        program = int(p.stdout.readline())
        equal(p.stdout.readline(), "ready\n")

        def apart():
            witness = witness_of(p.pid)
            return witness and os.getpgid(witness) != p.pid and state(p.pid) == "S" and witness  # S: it waits again
        witness = poll(apart, "a witness that has left it, too")
        for pid in program, witness, p.pid:
            os.kill(pid, signal.SIGRTMIN)
        poll(lambda: witness_of(p.pid) not in (witness, None), "another witness")
        p.send_signal(signal.SIGRTMIN + 1)
        equal(p.stdout.readline(), "1\n")
        equal(p.wait(DEADLINE), 0)
        p.stdout.close()


STOPS = """
import os, signal, sys
def stop(*args):
    os.write(1, b"stops\\n")
    os.kill(os.getpid(), signal.SIGSTOP)
    sys.exit(5)
signal.signal(signal.SIGTSTP, stop)
print(os.getpid(), flush=True)
while "TSTP" in sys.argv:
    signal.pause()
stop()
"""


@test
def we_stop_and_go_on_with_the_program():
    need_own_run()
    for what in "SIGSTOP", "TSTP":
        for whom in "run", "program":
            with running("--", sys.executable, "-c", STOPS, what, stdout=subprocess.PIPE) as p:
                program = int(p.stdout.readline())
                if what == "TSTP":
                    p.send_signal(signal.SIGTSTP)
                equal(p.stdout.readline(), "stops\n")
                poll(lambda: state(p.pid) == "T", "we stop")
                equal(state(program), "T")
                os.kill(p.pid if whom == "run" else program, signal.SIGCONT)
                equal(p.wait(DEADLINE), 5, (what, whom))
                p.stdout.close()


def job(*more, **variables):
    return shell_job(words(*more), **variables)


GOES_ON = "import os, signal, time\nsignal.signal(signal.SIGCONT, lambda n, f: os.write(1, b'goes ' + b'on\\n'))\n" \
    "%s\nprint('rea' + 'dy', flush=True)\nwhile True: time.sleep(0.1)\n"


def stopped_and_continued(fd, times):
    """By keys, each as soon as the program has answered the one before; then by a signal to run alone; then interrupted."""
    said = until(fd, b"ready")
    run_alone = os.tcgetpgrp(fd)
    for n in range(times):
        os.write(fd, b"\x1a")
        said += until(fd, b"job stopped")
        if n + 1 < times:
            os.write(fd, b"\n")
            said += until(fd, b"goes on")
    for n in range(2):
        os.kill(run_alone, signal.SIGCONT)
        said += until(fd, b"goes on")
        if n == 0:
            poll(lambda: state(run_alone) == "S", "it waits again")
            os.kill(run_alone, signal.SIGTSTP)
            poll(lambda: state(run_alone) == "T", "it stops with the program")
    os.write(fd, b"\n")
    said += until(fd, b"goes on")  # the shell has seen the first stop, and continues the group
    os.write(fd, b"\x03")
    said += until(fd, b"job ended 130")
    need(b"terminated signal" not in said, said)


@test
def a_shell_has_the_terminal_back_when_the_program_stops():
    need_own_run()
    for group in "", "os.setpgid(0, 0)":
        with job("--", sys.executable, "-c", GOES_ON % group) as fd:
            stopped_and_continued(fd, 2)
    with job("--", sys.executable, "-c", STOPS) as fd:
        until(fd, b"job stopped")
        os.write(fd, b"\n")
        until(fd, b"job ended 5")


# componentctl has read a signal, and looks for a third of a second later who else had it.
SLOW_LOOK = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define IS_SLOW(path) (!strcmp(program_invocation_short_name, "componentctl") && strstr(path, "/status"))
#define OPEN(name) \
int name(const char *path, int flags, ...) \
{ \
	va_list args; \
	va_start(args, flags); \
	if (IS_SLOW(path)) \
		nanosleep(&(struct timespec){ 0, 300000000 }, NULL); \
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, va_arg(args, int)); \
}
OPEN(open)
OPEN(open64)
"""


@test
def a_stop_right_after_a_continue_holds():
    need_own_run()
    if not shutil.which(CC.split()[0]):
        raise Skip("no compiler")
    with tempdir() as d:
        slow = compiled(d, "slow.so", SLOW_LOOK, "-shared", "-fPIC")
        with job("--", sys.executable, "-c", GOES_ON % "", LD_PRELOAD=slow) as fd:
            stopped_and_continued(fd, 2)


@test
def a_program_that_has_the_library_linked_in_is_served_once():
    need_own_run()
    if not shutil.which(CC.split()[0]):
        raise Skip("no compiler")
    with running(program("examples/hello"), "--log-file=/dev/null") as p:
        contains(asked(p.port, "cmdline"), "hello")
        equal(len(listed()), 1)


@test
def a_script_without_an_interpreter_is_told_how_it_can_be_run():
    need_own_run()
    with tempdir() as d:
        bare = script(d, "bare", "echo hi\n")
        for options in [], ["--enable-profiling=false"]:
            r = ran(*options, bare)
            equal((r.returncode, r.stdout), (1, ""), r.stderr)
            contains(r.stderr, "'componentctl run sh SCRIPT'")
        equal(ran("sh", bare).stdout, "hi\n")


@test
def where_profiling_is_off_no_port_is_told():
    need_own_run()
    equal(run(*words("--enable-profiling=false", "sh", "-c", "echo $DAPR_PROFILE_PORT"), env=environment(DAPR_PROFILE_PORT="1234")).stdout, "\n")
    with tempdir() as d:
        for name in "componentctl/componentctl", "preload/libcomponent-preload.so":  # and no core
            os.makedirs(os.path.dirname(os.path.join(d, name)))
            shutil.copy(os.path.join(BUILD, "components", name), os.path.join(d, name))
        for options in [], ["--follow-forks"]:
            r = run(d + "/componentctl/componentctl", "run", *options, "env", env=environment())
            equal(re.findall('msg="([^:"]*)', r.stderr), ["Starting Dapr with id env.", "profiling is off", UP])
            need("APP_ID=env\n" in r.stdout and "DAPR_PROFILE_PORT" not in r.stdout, r.stdout)


main()
