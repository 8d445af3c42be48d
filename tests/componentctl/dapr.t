#!/usr/bin/env python3
"""What Dapr's documents promise of profiling (D1 to D19), kept by componentctl and by what it starts, where Dapr's own programs
may not.  Each is shown here once and from outside; run.t, list.t and annotate.t have the depths.

    dapr run --enable-profiling true --profile-port 7777 python myapp.py        D3 D4 D5 D16 D17 D19
    annotations of a pod; READY 2/2; kubectl port-forward POD 7777:7777         D1 D2 D6 D7
    curl, pprof --pdf, -alloc_objects                                           D8 D9 D10
    dapr list, dapr stop                                                        D11 to D15, D18
"""
import fcntl
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from gotools import newest_pprof  # noqa: E402
from pprof_reader import Profile  # noqa: E402

if own_network():  # where port 7777 is nobody's
    os.environ["OWN_NETWORK"] = "1"
own_run()
alone = os.environ.pop("OWN_NETWORK", None)

PORT = 7777 if alone else free_port()
LINE = r'time="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ" level=info msg="starting profiling server on port (\d+)"( app_id=\S+)\n'
BURNER = """#include <stdlib.h>
static volatile int n;
void *kept[64];
void allocate_it(void) { for (int i = 0; i < 64; i++) kept[i] = malloc(1 << 20); }
void burn_it(void) { for (;;) n++; }
int main(void) { allocate_it(); burn_it(); }
"""
POD = """apiVersion: v1
kind: Pod
metadata:
  name: rust-app
  annotations:
    dapr.io/enabled: "true"
    dapr.io/id: "rust-app"
    %s
spec:
  containers:
  - name: rust-app
    image: rust-app:1
    command: [hello]
  - name: sidecar
    image: s:1
"""


def burner(d, name="burner"):
    path = os.path.join(d, name)
    r = run(CC, "-g", "-O1", "-x", "c", "-o", path, "-", input=BURNER, stdin=None)
    equal(r.returncode, 0, r.stderr)
    return path


@contextlib.contextmanager
def under_run(*words, **kw):
    """Once it is up: the process, with .port, the .line that tells it, and all it has .said."""
    need_own_run()
    with started([os.path.abspath(CTL), "run", *words], env=environment(**kw.pop("more", {})), stderr=subprocess.PIPE, text=True,
                 stdin=subprocess.DEVNULL, **kw) as p:
        p.said = said_at_start(p.stderr)
        m = re.search(LINE, p.said)
        need(m, p.said)
        p.line = m.group()
        p.port = int(m.group(1))
        try:
            yield p
        finally:
            p.terminate()  # the program with it
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(DEADLINE)


def asked(port, path, body=None, host="127.0.0.1"):
    c = http.client.HTTPConnection(host, port, timeout=DEADLINE)
    with contextlib.closing(c):
        c.request("POST" if body else "GET", path, body)
        r = c.getresponse()
        data = r.read()
        equal(r.status, 200, path)
        return data


def annotated(annotation):
    r = run(CTL, "annotate", "-f", "-", input=POD % annotation, stdin=None, env=environment())
    equal(r.returncode, 0, r.stderr)
    return r.stdout


def args_of(text):
    return [w.strip('"') for w in re.search(r"args: \[(.*)\]", text).group(1).split(", ")]


@test
def D1_both_spellings_of_the_annotation_count_and_only_true_in_quotes():
    for key in "dapr.io/profiling", "dapr.io/enable-profiling":
        contains(annotated(key + ': "true"'), "args: [--enable-pprof, ")
        equal(annotated(key + ': "false"'), POD % (key + ': "false"'))
        for value in '"yes"', '"True"', "true":
            r = run(CTL, "annotate", "-f", "-", input=POD % (key + ": " + value), stdin=None, env=environment())
            equal((r.returncode, r.stdout), (1, ""))
            contains(r.stderr, "standard input:8: annotation " + key)


@test
def D2_in_a_pod_the_port_is_7777():
    text = annotated('dapr.io/profiling: "true"')
    contains(text, "--profiling-bind-address=127.0.0.1:7777")
    contains(text, "{name: pprof, containerPort: 7777}")


@test
def D3_the_command_works_as_the_document_writes_it():
    with tempdir() as d:
        os.symlink(sys.executable, d + "/python")
        with open(d + "/myapp.py", "w") as f:
            f.write("import sys, time\nprint(sys.argv, flush=True)\ntime.sleep(1000)\n")
        words = ["--enable-profiling", "true", "--profile-port", str(PORT), "python", "myapp.py"]
        with under_run(*words, cwd=d, stdout=subprocess.PIPE, more={"PATH": d + ":" + os.environ["PATH"]}) as p:
            equal(p.stdout.readline(), "['myapp.py']\n")
            contains(asked(PORT, "/debug/pprof/cmdline").decode(), "python\0myapp.py")
    need_own_run()
    r = run(CTL, "run", "--enable-profiling", "--", "true", "--profile-port", "x", env=environment())
    equal(r.returncode, 0, "a program that is called true needs -- alone: " + r.stderr)


@test
def D4_without_a_port_the_program_binds_a_free_one_and_a_busy_one_is_refused_before_it_starts():
    with under_run("sleep", "1000") as p:
        pid = listed()["sleep"]["pid"]
        need(p.port > 0)
        need(any("socket:" in t for t in descriptors(pid).values()), "it is the program's own socket")
        contains(asked(p.port, "/debug/pprof/cmdline").decode(), "sleep")
    with tempdir() as d, socket.create_server(("127.0.0.1", 0)) as s:
        busy = s.getsockname()[1]
        e = ctl("run", "--profile-port", str(busy), "--", "touch", d + "/started", status=1)
        contains(e, "invalid configuration for ProfilePort. Port %d is not available" % busy)
        contains(e, "held by process %d" % os.getpid())
        contains(e, "leave --profile-port out, and a free one is taken")
        equal(os.listdir(d), [])


@test
def D5_the_log_line_comes_when_the_port_is_bound():
    with under_run("--profile-port", str(PORT), "-a", "rust-app", "sleep", "1000") as p:
        equal(re.fullmatch(LINE, p.line).groups(), (str(PORT), " app_id=rust-app"))
        socket.create_connection(("127.0.0.1", PORT), DEADLINE).close()
    with daemon("examples/hello", "--enable-pprof", "--logging-format=logfmt") as h:
        h.wait_log('level=info msg="starting profiling server on port %d"' % h.port)


def need_ports_of_the_pod():
    need_own_run()
    if not alone:
        raise Skip("no network namespace of our own can be had here")


@test
def D6_what_kubelet_asks_of_the_annotated_container_says_ready():
    need_ports_of_the_pod()
    text = annotated('dapr.io/profiling: "true"')
    equal(text.count("livenessProbe"), 1)
    port = int(re.search(r"name: health, containerPort: (\d+)", text).group(1))
    with daemon("examples/hello", *args_of(text), port_file=False) as h:
        h.wait_log("starting profiling server")
        for probe in re.findall(r"path: (\S+),", text):
            poll(lambda: asked(port, probe) == b"ok", probe)
        equal(asked(port, "/readyz"), b"ok")
        contains(asked(7777, "/debug/pprof/cmdline").decode(), "hello")
        equal(h.stop(), 0)


def connected(port):
    """As kubelet does it for kubectl port-forward: to localhost inside the pod, by IPv4 and else by IPv6."""
    try:
        return socket.create_connection(("127.0.0.1", port), DEADLINE)
    except ConnectionRefusedError:
        return socket.create_connection(("::1", port), DEADLINE)


@contextlib.contextmanager
def port_forward(port):
    """For one connection: the port at which it is here."""
    def answer():
        here, _ = s.accept()
        with here, connected(port) as there:
            there.sendall(here.recv(65536))
            while data := there.recv(65536):
                here.sendall(data)
    with socket.create_server(("127.0.0.1", 0)) as s:
        done = in_background(answer)
        yield s.getsockname()[1]
        done.result()


@test
def D7_a_forwarded_port_reaches_it_at_either_loopback_address():
    need_ports_of_the_pod()
    families = ["127.0.0.1", "localhost"]
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        families.append("[::1]")
    for host in families:
        with daemon("examples/hello", "--enable-pprof", "--profiling-bind-address=%s:7777" % host, port_file=False) as h:
            h.wait_log("starting profiling server")
            with port_forward(7777) as port, contextlib.closing(socket.create_connection(("127.0.0.1", port), DEADLINE)) as c:
                c.sendall(b"GET /debug/pprof/cmdline HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n\r\n" % port)
                said = b""
                while data := c.recv(65536):
                    said += data
                need(said.startswith(b"HTTP/1.1 200 ") and b"hello" in said, said)
    contains("\n".join(args_of(annotated('dapr.io/profiling: "true"'))), "--profiling-bind-address=127.0.0.1:7777")


@test
def D8_a_window_of_two_minutes_is_taken_and_what_curl_saves_is_a_profile():
    with tempdir() as d:
        with under_run("--profile-port", str(PORT), burner(d)) as p:
            def hot():
                r = run("curl", "-sSf", "http://localhost:%d/debug/pprof/profile?seconds=1" % p.port, stdout=subprocess.PIPE, stderr=None, text=False)
                equal(r.returncode, 0)
                return "burn_it" in Profile(r.stdout).strings
            poll(hot, "burn_it in the profile")
        with daemon("examples/hello", "--enable-pprof") as h:
            window = in_background(h.get, "/debug/pprof/profile?seconds=120")
            poll(lambda: "component-job" in threads(h.pid).values(), "the window")
            h.stop()  # a window ends with its daemon, and keeps what it has
            r = window.result()
            equal(r.status, 200)
            equal(Profile(r.body).types[-1], ("cpu", "nanoseconds"))


@test
def D9_pprof_draws_a_PDF_with_names_from_the_profile_or_from_symbol():
    with tempdir() as d:
        exe = burner(d)
        with under_run(exe) as p:
            url = "http://localhost:%d/debug/pprof/" % p.port
            equal(asked(p.port, "/debug/pprof/symbol"), b"num_symbols: 1\n")

            def window():
                r = Profile(asked(p.port, "/debug/pprof/profile?seconds=1"))
                return r if "burn_it" in r.strings else None
            profile = poll(window, "burn_it")
            burnt = profile.strings.index("burn_it")
            function = next(n for n, f in enumerate(profile.functions, 1) if f[2] == burnt)
            address = next(hex(x[3]) for x in profile.locations if any(line[1] == function for line in x["lines"]))
            contains(asked(p.port, "/debug/pprof/symbol", address).decode(), "burn_it")
            contains(asked(p.port, "/debug/pprof/symbol?" + address).decode(), "burn_it")
            builds = {profile.strings[m[5]]: profile.strings[m.get(6, 0)] for m in profile.mappings}
            need(re.fullmatch("[0-9a-f]{8,}", builds[exe]), builds)
            if not shutil.which("dot"):
                raise Skip("no graphviz, which pprof draws with; the rest was as it should be")
            pprof = newest_pprof()  # skips where there is no Go
            r = run(pprof, "--pdf", exe, url + "profile?seconds=1", text=False, env=dict(environment(), PPROF_TMPDIR=d))
            need(r.returncode == 0 and r.stdout.startswith(b"%PDF"), r.stderr)


@test
def D10_the_heap_has_its_four_values_and_is_saved_under_the_programs_name():
    types = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
    with tempdir() as d:
        exe = burner(d, "daprd")
        with under_run(exe) as p:
            url = "http://localhost:%d/debug/pprof/heap" % p.port
            profile = poll(lambda: (lambda r: r if "allocate_it" in r.strings else None)(Profile(asked(p.port, "/debug/pprof/heap"))), "allocate_it")
            equal([name for name, _ in profile.types], types)
            equal(profile.strings[profile.mappings[0][5]], exe)
            pprof = newest_pprof()
            r = run(pprof, "-alloc_objects", "-top", exe, url, env=dict(environment(), PPROF_TMPDIR=d))
            need(r.returncode == 0 and "allocate_it" in r.stdout, r.stderr)
            contains(os.listdir(d), "pprof.daprd.%s.001.pb.gz" % ".".join(types))


COLUMNS = ["APP ID", "DAPR PORT", "APP PORT", "COMMAND", "AGE", "CREATED", "PID"]


def table():
    """Rows of the list, as a cell for each column of its head."""
    head, *rows = ctl("list").splitlines()
    at = [head.index(c) for c in COLUMNS] + [None]
    return re.split("  +", head), [dict(zip(COLUMNS, (r[a:b].strip() for a, b in zip(at, at[1:])))) for r in rows]


@test
def D11_list_has_the_seven_columns_of_the_document_and_wide_more():
    with under_run("-a", "node-subscriber", "sleep", "1000"):
        equal(table()[0], COLUMNS)
        wide = ctl("list", "-o", "wide").splitlines()[0]
        need(wide.startswith("APP ID") and "PROFILE PORT" in wide, wide)


@test
def D12_cells_are_written_as_in_the_document():
    with tempdir() as d:
        shutil.copy(shutil.which("sleep"), d + "/node")
        with under_run("-a", "node-subscriber", "-p", "3000", "node", "1000", "0.000000001", "0", more={"PATH": d + ":" + os.environ["PATH"]}) as p, \
                under_run("sleep", "1000"):
            _, (one, other) = table()
            equal([one[c] for c in COLUMNS[:4]], ["node-subscriber", str(p.port), "3000", "node 1000 0.00000000"])
            need(re.fullmatch(r"\d+s", one["AGE"]), one)
            need(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d\.\d\d", one["CREATED"]), one)
            need(os.readlink("/proc/%s/exe" % one["PID"]) == d + "/node", one)
            equal((other["APP ID"], other["APP PORT"]), ("sleep", "0"))


@test
def D13_an_empty_list_says_so_in_each_format_and_a_bad_format_is_refused():
    need_own_run()
    equal([ctl("list"), ctl("list", "-o", "table"), json.loads(ctl("list", "-o", "json")), ctl("list", "--output", "yaml")],
          ["No Dapr instances found.\n"] * 2 + [[], "[]\n"])
    # Dapr says "An invalid output format was specified." and ends with 1.
    equal(ctl("list", "-o", "xml", status=2).splitlines()[0],
          "componentctl list: option '-o': 'xml': not one of the choices; write 'table', 'wide', 'json' or 'yaml'")


@test
def D14_each_has_a_locked_record_and_one_that_is_stale_is_not_listed():
    with under_run("sleep", "1000") as p:
        pid = listed()["sleep"]["pid"]
        name, = os.listdir(FOLDER)
        need(re.fullmatch(r"%d\.\d+" % pid, name), name)
        with open(os.path.join(FOLDER, name)) as f:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                raise AssertionError("the record is not locked")
            except BlockingIOError:
                pass
        os.kill(pid, signal.SIGKILL)
        equal(p.wait(DEADLINE), 128 + 9)
        equal((ctl("list"), os.listdir(FOLDER)), ("No Dapr instances found.\n", []))
    # The number is that of another process by now.
    with open("%s/%d.1" % (FOLDER, os.getpid()), "w") as f:
        f.write("id other\nurl http://127.0.0.1:1\napp_port 0\ncreated 1\n")
    os.chmod(f.name, 0o600)
    equal(listed(), {})


@test
def D15_the_port_that_list_shows_answers_pprof():
    with under_run("sleep", "1000"):
        _, (row,) = table()
        contains(asked(int(row["DAPR PORT"]), "/debug/pprof/").decode(), "goroutine")
        found = listed()["sleep"]
        equal((found["profilePort"], found["address"]), (int(row["DAPR PORT"]), "http://127.0.0.1:" + row["DAPR PORT"]))


@test
def D16_the_program_has_its_id_and_its_ports_in_its_environment():
    need_own_run()

    def variables(*words):
        r = run(CTL, "run", *words, "env", env=environment(APP_PORT="1"))
        equal(r.returncode, 0, r.stderr)
        return dict(line.partition("=")[::2] for line in r.stdout.splitlines()), re.search(LINE, r.stderr).group(1)
    found, port = variables("--app-id", "mine", "--app-port", "3000")
    equal([found["APP_ID"], found["APP_PORT"], found["DAPR_PROFILE_PORT"]], ["mine", "3000", port])
    found, port = variables()
    equal([found["APP_ID"], found.get("APP_PORT"), found["DAPR_PROFILE_PORT"]], ["env", None, port])


@test
def D17_the_program_is_run_with_an_id_its_own_status_and_a_grace_period():
    need_own_run()
    contains(ctl("run", "nosuchcommand", status=1), "Failed to find command nosuchcommand")
    contains(ctl("run", "--app-id", "x", status=2), "WARNING: no application command found.")
    equal(run(CTL, "run", "sh", "-c", "exit 7", env=environment()).returncode, 7)
    equal(run(CTL, "run", "sh", "-c", "kill -SEGV $$", env=environment()).returncode, 128 + 11)
    # The agent is not a process beside it, so a program without a port of its own is not waited for, and one with a port neither.
    app = "import signal, sys\nsignal.signal(signal.SIGTERM, %s)\nprint('ready', flush=True)\nwhile True: signal.pause()\n"
    for handler, status in ("lambda *a: sys.exit(5)", 5), ("signal.SIG_IGN", 128 + 9):
        grace = "--graceful-shutdown-timeout=" + ("25s" if status == 5 else "100ms")
        with under_run(grace, "-p", "3000", "--", sys.executable, "-c", app % handler, stdout=subprocess.PIPE) as p:
            equal(p.stdout.readline(), "ready\n")
            p.terminate()
            equal(p.wait(DEADLINE), status)
            contains(p.stderr.read(), 'level=info msg="terminated signal received: shutting down" app_id=')


@test
def D17_it_is_told_what_starts_and_once_it_has_started_that_it_is_up():
    def told(said):
        return re.findall(r'^time="[^"]*" level=info msg="([^"]*)" app_id=(\S+)$', said, re.M)
    with under_run("-a", "mine", "sleep", "1000", stdout=subprocess.PIPE) as p:
        # It has one port and no gRPC, so Dapr's " gRPC Port: M" is left out.
        equal(told(p.said), [("Starting Dapr with id mine. HTTP Port: %d." % p.port, "mine"),
                             ("starting profiling server on port %d" % p.port, "mine"), (UP, "mine")])
        equal(asked(p.port, "/debug/pprof/cmdline").decode().strip("\0"), "sleep\0001000")
        p.terminate()
        equal(p.stdout.read(), "")
    r = run(CTL, "run", "--enable-profiling=false", "echo", "out", env=environment())
    equal((r.returncode, r.stdout, told(r.stderr)), (0, "out\n", [("Starting Dapr with id echo.", "echo"), (UP, "echo")]))


@test
def D18_stop_ends_the_one_that_is_named():
    with under_run("-a", "one", "sleep", "1000") as one, under_run("-a", "two", "sleep", "1000") as two, under_run("-a", "three", "sleep", "1000"):
        ctl("stop", "--app-id", "one")
        equal(one.wait(DEADLINE), 128 + signal.SIGTERM)
        ctl("stop", "two")
        equal(two.wait(DEADLINE), 128 + signal.SIGTERM)
        equal(list(listed()), ["three"])
        contains(ctl("stop", "--app-id", "one", status=1), "couldn't find app id one")


@test
def D19_letters_are_those_of_dapr_where_there_is_such_an_option():
    with under_run("-a", "x", "-p", "3000", "sleep", "1000"):
        equal(listed()["x"]["appPort"], 3000)
        ctl("stop", "-a", "x")
    for command in "run", "list", "stop":
        equal(ctl(command, "-h"), ctl(command, "--help"))


main()
