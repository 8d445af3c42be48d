#!/usr/bin/env python3
"""systemd.t - the units of deploy/systemd: what systemd says of them, and the programs under exactly their rules.

Where systemd cannot be started, the test plays it (NOTIFY_SOCKET), systemd-socket-activate hands sockets over as it
does, and tests/lib/unit_filter.py makes its seccomp filters of the unit's own lines.  Where tests/lib/service_manager.py
can start it, it does all of that itself.
"""
import contextlib
import ctypes
import glob
import os
import re
import shutil
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
import gotools  # noqa: E402
from pprof_reader import Profile  # noqa: E402
import unit_filter  # noqa: E402
from service_manager import service_manager  # noqa: E402

own_network()  # for the units' own ports

FOLDER = os.path.join(SRC, "deploy", "systemd")
FILTER = os.path.join(SRC, "tests", "lib", "unit_filter.py")
PORTS = {m[0]: tuple(map(int, m[1:])) for m in re.findall(r'"([a-z-]+)",\s*"[^"]*",\s*(\d+), (\d+), (\d+)\)',
                                                          text_of("components/include/component/ports.def"))}
# Of each program a function that works all the time when passes follow each other.
WORKS = {"backend-controller": "application_reconcile", "cluster-agent": "operation_reconcile",
         "appstudio-controller": "promotion_reconcile"}
# Passes follow each other, and what they do is sampled.
BUSY = ["--resync-period=10ms", "--heap-profile-rate=512", "--block-profile-rate=1us", "--mutex-profile-fraction=1"]
PPROF = "/debug/pprof/"
EXPOSURE = 1.5  # at most, of 10


def path_of(name):
    return os.path.join(FOLDER, name)


def unit(name):
    return path_of(name + ".service")


def systemd_version():
    return int(re.match(r"systemd (\d+)", run("systemctl", "--version").stdout)[1])


def need_tool(name):
    if not shutil.which(name):
        raise Skip("no " + name)


def environment(name):
    """What a drop-in sets."""
    return dict(v.split("=", 1) for v in unit_filter.settings(path_of(name))["Environment"])


def rules(name, *drop_ins):
    """What stands before a program to put it under the rules of its unit."""
    need_tool("systemd-analyze")
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError as e:
        raise Skip(str(e))
    return [sys.executable, FILTER, ":".join((unit(name), *drop_ins))]


@contextlib.contextmanager
def demo_root():
    with tempdir() as d:
        root = os.path.join(d, "root")
        r = run(os.path.join(SRC, "scripts/demo-input"), root, "--rate=0", "--files=100", "--applications=5")
        equal(r.returncode, 0, r.stderr)
        yield root


@contextlib.contextmanager
def under_its_rules(name, root, *argv, before=(), drop_ins=(), **kw):
    arguments = ["--root=" + root, "--health-probe-bind-address=127.0.0.1:0", *argv]
    with daemon(*before, *rules(name, *drop_ins), program("examples/" + name), *arguments, **kw) as d:
        yield d
        equal(d.stop(), 0)


def status_of(pid, name):
    return re.search(r"^%s:\s*(\S+)" % name, text_of("/proc/%d/status" % pid), re.M).group(1)


def notes(d):
    """What the index says of this process: word to text."""
    page = d.get(PPROF + "?plain=1").text
    return {word: text for word, text in re.findall(r"<li>([a-z ]+): (.*?)</li>", page)}


def names_in(profile):
    return {name for stack, values, _ in profile.samples if any(values) for name in profile.stack(stack)}


def profile_with(d, path, name):
    """Has that function in a profile; longer ones, or later ones, while a busy machine has not let it work."""
    window = path in ("profile", "fgprof")
    seconds = iter((1, 2, 4, 8, 16, 32, 32, 32))

    def look():
        answer = d.get(PPROF + path + ("?seconds=%d" % next(seconds) if window else ""))
        equal(answer.status, 200, path)
        return name in names_in(Profile(answer.body))
    poll(look, "%s in %s" % (name, path))


def dump_is_whole(d):
    text = d.get(PPROF + "goroutine?debug=2").text
    return (re.search(r"^goroutine \d+ \[.*\]:\n(.*\n\t.*\n)*worker\(", text, re.M)
            and re.search(r"^main\(\.\.\.\)\n\t\./examples/", text, re.M) and "no answer" not in text)


def trace_tools():
    """The go tool trace of each Go that is here, by the form that it reads."""
    found = {"go1.19": [], "go1.22": []}
    for form in found:
        with contextlib.suppress(Skip):
            found[form] = gotools.readers(form)
    return found


def everything_is_there(d, function, folder, tools):
    """Profiles have samples with names, a dump has stacks, and go tool trace opens a trace."""
    for path in "profile", "heap", "allocs", "fgprof", "goroutine":
        profile_with(d, path, "worker" if path in ("fgprof", "goroutine") else function)
    poll(lambda: Profile(d.get(PPROF + "block").body).samples, "waits in block")
    equal(Profile(d.get(PPROF + "mutex").body).types, [("contentions", "count"), ("delay", "nanoseconds")])
    poll(lambda: dump_is_whole(d), "every stack in a dump")
    memory = d.get(PPROF + "memory")
    equal(memory.status, 200, memory.text)
    for form in tools:
        trace = d.get(PPROF + "trace?seconds=1&format=" + form)
        equal(trace.status, 200)
        path = os.path.join(folder, "trace-of-" + function)
        with open(path, "wb") as f:
            f.write(trace.body)
        for tool in tools[form]:
            gotools.opens(tool, path, form)


# What systemd says

@test
def each_unit_is_as_little_exposed_as_its_documents_say():
    need_tool("systemd-analyze")
    for name in WORKS:
        r = run("systemd-analyze", "--no-pager", "security", "--offline=true", unit(name))
        found = re.search(r"Overall exposure level for %s.service: ([\d.]+) " % name, r.stdout)
        need(found, r.stdout + r.stderr)
        need(float(found[1]) <= EXPOSURE, r.stdout)
        if systemd_version() == 252:
            contains(text_of("docs/operating.md"), "`systemd-analyze security` calls its exposure %s of 10" % found[1])


@test
def the_units_are_one_text_but_for_what_is_each_programs_own():
    def common(name, suffix):
        text = text_of(path_of(name + suffix))
        text = re.sub(r"(?m)^(# %s - |Description=).*" % name, r"\1", text)
        return re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text).replace(name, "NAME")
    for suffix in ".service", ".socket":
        equal(sorted(os.path.basename(p)[:-len(suffix)] for p in glob.glob(path_of("*" + suffix))), sorted(WORKS))
        equal(len({common(name, suffix) for name in WORKS}), 1, suffix)


@test
def units_say_what_the_daemon_keeps_to():
    for name in WORKS:
        text = text_of(unit(name))
        for line in ("Type=notify", "ExecReload=/bin/kill -HUP $MAINPID", "RestartPreventExitStatus=78", "WatchdogSec=30", "TimeoutStopSec=40",
                     "SystemCallErrorNumber=EPERM", "User=gitops",
                     "ExecStart=/usr/local/bin/%s --health-probe-bind-address=127.0.0.1:%d" % (name, PORTS[name][1])):
            contains(text, line + "\n")
        arguments = re.search(r"^ExecStart=\S+ (.*)$", text, re.M).group(1).split()
        with tempdir() as root:
            for drop_in in "profiling.conf", "profiling-socket.conf":
                r = run("examples/" + name, *arguments, "--root=" + root, "--dump-options", env={**os.environ, **environment(drop_in)})
                equal((r.returncode, r.stderr), (0, ""), name + " " + drop_in)
                need(re.search(r"enable-pprof\W+true", r.stdout), r.stdout)
    contains(text_of(path_of("profiling.conf")), "[Service]\nEnvironment=COMPONENT_ENABLE_PPROF=true")


def faults(files):
    """What systemd-analyze verify has against units; files: a name to the path of what is there by it."""
    need_tool("systemd-analyze")
    with tempdir() as d:
        for name, path in files.items():
            os.makedirs(os.path.dirname(os.path.join(d, name)), exist_ok=True)
            shutil.copy(path, os.path.join(d, name))
        units = [os.path.join(d, name) for name in files if "/" not in name]
        r = run("systemd-analyze", "verify", *units)
        # What is not installed here is not a fault of the unit.
        return [line for line in r.stderr.splitlines() if ("controller" in line or "agent" in line)
                and "not executable" not in line and "man " not in line]


@test
def systemd_finds_no_fault_in_the_units_alone_and_with_their_drop_ins():
    for name in WORKS:
        equal(faults({name + ".service": unit(name)}), [])
        equal(faults({name + ".service": unit(name), name + ".socket": path_of(name + ".socket"),
                      name + ".service.d/profiling.conf": path_of("profiling-socket.conf")}), [])


@test
def systemd_253_and_later_take_the_drop_in_that_waits_for_a_reload_and_252_says_that_it_does_not():
    need_tool("systemd-analyze")
    for name in WORKS:
        said = faults({name + ".service": unit(name), name + ".service.d/notify-reload.conf": path_of("notify-reload.conf")})
        refused = [line for line in said if "Failed to parse service type, ignoring: notify-reload" in line]
        equal(said, refused)
        equal(len(set(refused)), 1 if systemd_version() < 253 else 0, said)


@test
def the_user_of_the_units_is_made_by_systemd_sysusers():
    need_tool("systemd-sysusers")
    with tempdir() as d:
        os.mkdir(os.path.join(d, "etc"))
        r = run("systemd-sysusers", "--root=" + d, path_of("sysusers.d/gitops.conf"))
        equal(r.returncode, 0, r.stderr)
        with open(os.path.join(d, "etc/passwd")) as f:
            user = [line.split(":") for line in f.read().splitlines() if line.startswith("gitops:")]
        with open(os.path.join(d, "etc/group")) as f:
            contains(f.read(), "gitops:")
    equal([(u[4], u[5], os.path.basename(u[6])) for u in user], [("GitOps controllers", "/var/lib/gitops", "nologin")])
    for name in WORKS:
        settings = unit_filter.settings(unit(name))
        equal((settings["User"], settings["Group"], settings["StateDirectory"]), (["gitops"], ["gitops"], ["gitops"]))


# The programs under the rules of their units

@test
def the_filter_of_a_unit_refuses_what_its_lines_forbid():
    attempts = """
import ctypes, errno, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
def refused(call, *args):
    r = call(*args)
    return ctypes.get_errno() if r in (-1, ctypes.c_void_p(-1).value) else 0
def family(number):
    try:
        socket.socket(number, socket.SOCK_RAW if number == 16 else socket.SOCK_STREAM).close()
    except OSError as e:
        return e.errno
    return 0
page = libc.mmap(None, ctypes.c_size_t(4096), 3, 0x22, -1, ctypes.c_long(0))
print(refused(libc.mmap, None, ctypes.c_size_t(4096), 7, 0x22, -1, ctypes.c_long(0)),
      refused(libc.mprotect, ctypes.c_void_p(page), ctypes.c_size_t(4096), 5),
      refused(libc.unshare, 0x10000000), refused(libc.chmod, b"FILE", 0o4755), refused(libc.chmod, b"FILE", 0o755),
      refused(libc.setpriority, 0, 0, 0), refused(libc.chown, b"FILE", -1, -1), family(16), family(2), family(1))
"""
    for name in WORKS:
        with tempdir() as d:
            path = os.path.join(d, "file")
            open(path, "w").close()
            r = run(*rules(name), sys.executable, "-c", attempts.replace("FILE", path))
        equal(r.returncode, 0, r.stderr)
        # EPERM for all, but for a kind of socket that is not on the list: EAFNOSUPPORT.
        equal(r.stdout.split(), ["1", "1", "1", "1", "0", "1", "1", "97", "0", "0"])


@test
def under_exactly_the_system_calls_of_its_unit_each_controller_is_profiled_dumped_and_traced():
    with demo_root() as root, contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(under_its_rules(
            name, root, *BUSY, env=environment("profiling.conf"))) for name in WORKS}
        tools = trace_tools()
        looks = [in_background(everything_is_there, d, WORKS[name], os.path.dirname(root), tools) for name, d in running.items()]
        for look in looks:
            look.result(DEADLINE * 10)
        for d in running.values():
            equal((status_of(d.pid, "Seccomp"), status_of(d.pid, "CapEff")), ("2", "0" * 16))
            said = notes(d)
            equal(set(said) - {"unwinder", "page"}, {"trace"})
            contains(said["trace"], "a seccomp filter is in force")
            equal(said["unwinder"], "tables")
            # By signals, and with everything begun anew.
            d.signal(signal.SIGUSR2)
            poll(lambda: re.search(r"\nworker\((.*\n)*main\(|\nmain\((.*\n)*worker\(", d.output()), "a dump in the log")
            for word in "off", "on":
                d.signal(signal.SIGUSR1)
                d.wait_log("profiling switched " + word)
        for name, d in running.items():
            d.wait_port()  # another one
            profile_with(d, "profile", WORKS[name])


@test
def what_a_tighter_list_takes_the_index_says_and_the_rest_is_there():
    with demo_root() as root:
        tighter = os.path.join(os.path.dirname(root), "tighter.conf")
        with open(tighter, "w") as f:
            f.write("[Service]\nSystemCallFilter=~timer_create process_vm_readv\n")
        name = "backend-controller"
        with under_its_rules(name, root, *BUSY, drop_ins=[tighter], env=environment("profiling.conf")) as d:
            refused = d.get(PPROF + "profile?seconds=1")
            equal(refused.status, 500, refused.text)
            contains(refused.text, "timer_create() is refused")
            said = notes(d)
            contains(said["profile"], "timer_create() is refused")
            contains(said["memory"], "process_vm_readv() is refused (seccomp): /proc/thread-self/mem is read instead")
            profile_with(d, "heap", WORKS[name])
            poll(lambda: dump_is_whole(d), "every stack in a dump")
            equal(d.get(PPROF + "trace?seconds=1").status, 200)


@test
def a_unit_with_its_drop_in_becomes_ready_reloads_and_serves():
    """The service manager, played by this test, hears READY, RELOADING, STOPPING and WATCHDOG."""
    name = "backend-controller"
    watchdog = int(unit_filter.settings(unit(name))["WatchdogSec"][0])
    with demo_root() as root, tempdir() as d, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(os.path.join(d, "notify"))
        s.settimeout(DEADLINE)
        heard = []

        def hear(word):
            while not any(word in h for h in heard):
                heard.append(s.recv(4096).decode())
        with under_its_rules(name, root, env={**environment("profiling.conf"), "NOTIFY_SOCKET": os.path.join(d, "notify"),
                                              "WATCHDOG_USEC": str(watchdog * 1000000)}) as b:
            hear("READY=1")
            hear("WATCHDOG=1")
            equal(b.get(PPROF).status, 200)
            heard.clear()
            asked = time.monotonic_ns() // 1000
            b.signal(signal.SIGHUP)
            hear("RELOADING=1")
            # By this systemd knows that it is the reload that it has asked for.
            began = int(re.search(r"^MONOTONIC_USEC=(\d+)$", "\n".join(heard), re.M).group(1))
            need(asked <= began <= time.monotonic_ns() // 1000, (asked, heard))
            heard.clear()
            hear("READY=1")
            equal(b.stop(), 0)
            hear("STOPPING=1")


def served_on(port):
    """A server's answer, as soon as somebody listens."""
    d = Daemon.__new__(Daemon)
    d.host, d.port = "127.0.0.1", port

    def ask():
        with contextlib.suppress(ConnectionRefusedError):
            return d.get(PPROF)
    equal(poll(ask, "a listener").status, 200)
    return d


@test
def the_port_that_a_socket_unit_holds_is_served_by_the_name_that_its_drop_in_names():
    need_tool("systemd-socket-activate")
    for name in WORKS:
        socket_unit = unit_filter.settings(path_of(name + ".socket"))
        equal(socket_unit["ListenStream"], ["127.0.0.1:%d" % PORTS[name][0]])
        drop_in = environment("profiling-socket.conf")
        port = free_port()
        with demo_root() as root, started(
                ["systemd-socket-activate", "--listen=127.0.0.1:%d" % port, "--fdname=" + socket_unit["FileDescriptorName"][0],
                 *("--setenv=%s=%s" % v for v in drop_in.items()), *rules(name), program("examples/" + name), "--root=" + root,
                 "--health-probe-bind-address=127.0.0.1:0", "--resync-period=10ms"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as p:
            d = served_on(port)  # the first request has it started, and waits
            equal(status_of(p.pid, "Seccomp"), "2")
            if name == "backend-controller":  # the others wait for its operations
                profile_with(d, "profile", WORKS[name])
            poll(lambda: "\nmain(" in d.get(PPROF + "goroutine?debug=2").text, "main in a dump")
            p.terminate()
            equal(p.wait(DEADLINE), 0, p.stdout.read())


@test
def with_the_rest_of_the_machine_out_of_reach_it_is_the_same():
    """No process of others in /proc and nothing else there, no device, and files below the root alone"""
    closed = """
mount --bind "$1" "$1"
mount -o remount,bind,ro /
mount -t proc -o subset=pid,hidepid=invisible proc /proc
mount -t tmpfs -o mode=755 tmpfs /dev
shift
exec "$@"
"""
    with demo_root() as root:
        folder = os.path.dirname(root)
        before = [shutil.which("unshare"), "-m", "sh", "-ec", closed, "sh", folder]
        r = run(*before, "ls", "/proc")
        if r.returncode:
            raise Skip(r.stderr.strip())
        need("self" in r.stdout and "sys" not in r.stdout.split(), r.stdout)
        name = "backend-controller"
        with under_its_rules(name, root, *BUSY, "--profiling-bind-address=127.0.0.1:0", "--profiling-port-file=%s/port" % folder,
                             before=before, port_file=False, env=environment("profiling.conf")) as d:
            d.port_file = folder + "/port"
            d.wait_port()
            everything_is_there(d, WORKS[name], folder, trace_tools())
            equal(set(notes(d)) - {"unwinder", "page"}, {"trace"})


# In systemd itself

def commands_of(name, program_name):
    """What the comment of a file of ours says to type, for a program."""
    lines = re.findall(r"^#     (.*)$", text_of(path_of(name)), re.M)
    need(lines, name)
    return "cd %s\n" % FOLDER + "".join(line.replace("backend-controller", program_name) + "\n" for line in lines if not line.startswith("ssh "))


def put(manager, path, *lines):
    manager.sh("mkdir -p $(dirname %s); cat >%s" % (path, path), input="\n".join(lines) + "\n", stdin=None)


def need_rooms(manager):
    """Such units have namespaces of their own, which not every machine allows."""
    probe = re.sub(r"(?m)^ExecStart=.*", "ExecStart=/bin/true", text_of(unit("backend-controller"))).replace("Type=notify", "Type=oneshot")
    put(manager, "/etc/systemd/system/probe.service", probe)
    r = run(*manager.enter, "sh", "-c", "systemctl daemon-reload; systemctl start probe || systemctl --no-pager status probe")
    if "code=exited" in r.stdout:
        raise Skip("a unit cannot be closed here: " + r.stdout)


def install_the_programs(manager):
    binaries = " ".join(os.path.join(BUILD, "examples/.libs", name) for name in WORKS)
    libraries = os.path.join(BUILD, "components/.libs/libcomponent.so*")
    manager.sh("mkdir -p /usr/local/bin /usr/local/lib; cp %s /usr/local/bin; cp -a %s /usr/local/lib" % (binaries, libraries))
    manager.sh("install -m 644 %s/*.service %s/*.socket /etc/systemd/system" % (FOLDER, FOLDER))
    manager.sh(commands_of("sysusers.d/gitops.conf", ""))
    need_rooms(manager)
    # Where the library is, work for the profiles, and a record with what operating.md says that it takes.
    more = ["LD_LIBRARY_PATH=/usr/local/lib", "COMPONENT_PROFILING_REGISTRY=true"]
    more += ["COMPONENT_%s=%s" % (n.upper().replace("-", "_"), v) for n, v in (o[2:].split("=") for o in BUSY)]
    takes = re.search(r"`--profiling-registry` takes `(ReadWritePaths=\S+)` and that folder, of mode 1777", text_of("docs/operating.md")).group(1)
    manager.sh("mkdir -m 1777 /run/component")
    for name in WORKS:
        put(manager, "/etc/systemd/system/%s.service.d/test.conf" % name, "[Service]", takes, *("Environment=" + v for v in more))
    manager.sh("%s/scripts/demo-input /var/lib/gitops --rate=0 --files=100 --applications=5 >/dev/null; chown -R gitops: /var/lib/gitops" % SRC)


def serving(name):
    d = Daemon.__new__(Daemon)
    d.host, d.port = "127.0.0.1", PORTS[name][0]
    return d


def stops_well(manager, name):
    manager.sh("systemctl stop %s.socket %s.service" % (name, name))
    equal(manager.sh("systemctl show -P Result -P ExecMainStatus %s.service" % name).split(), ["success", "0"])


def reloads_as_the_drop_in_says(manager):
    for name in WORKS:
        manager.sh("systemctl reload " + name)
        manager.sh(commands_of("notify-reload.conf", name))
        said = manager.sh("systemctl show -p Type -p CanReload " + name).split()
        if systemd_version() < 253:
            equal(sorted(said), ["CanReload=no", "Type=notify"])
        else:
            equal(sorted(said), ["CanReload=yes", "Type=notify-reload"])
            manager.sh("systemctl reload " + name)  # until READY


@test
def in_systemd_itself_all_of_it_is_so_when_it_is_installed_as_the_comments_say():
    need_own_network()
    with service_manager() as manager, tempdir() as folder:
        install_the_programs(manager)
        for name in WORKS:  # each start is waited for until READY
            manager.sh(commands_of("profiling.conf", name))
        tools = trace_tools()
        for look in [in_background(everything_is_there, serving(name), WORKS[name], folder, tools) for name in WORKS]:
            look.result(DEADLINE * 10)
        for name in WORKS:
            status = manager.sh("cat /proc/$(systemctl show -P MainPID %s)/status" % name)
            for line in "CapBnd:\t" + "0" * 16, "Seccomp:\t2", "NoNewPrivs:\t1":
                contains(status, line + "\n")
            need("Uid:\t0" not in status, status)
            equal(set(notes(serving(name))) - {"unwinder", "page"}, {"trace"})
        equal(sorted(re.findall(r"^id (.*)$", manager.sh("cat /run/component/*"), re.M)), sorted(WORKS))
        reloads_as_the_drop_in_says(manager)
        for name in WORKS:
            stops_well(manager, name)
            manager.sh(commands_of("profiling-socket.conf", name))
            profile_with(serving(name), "profile", WORKS[name])
            manager.sh("systemctl stop %s.service" % name)
            poll(lambda: dump_is_whole(serving(name)), "a dump of a program that a request has started")
            stops_well(manager, name)


main()
