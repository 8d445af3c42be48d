#!/usr/bin/env python3
"""What the documents tell people to paste, run as it stands there.

paste() takes a line that must be in a shell block of README.md or docs/, puts this
machine's port, seconds and paths into it, and nothing else, and gives it to a shell.
The daemon is backend-controller, working on a tree that scripts/demo-input keeps
changing, with cluster-agent beside it.  The last test asks whether any line of the
documents was left out; those that cannot run here are named in NOT_RUN with the
reason, or with the test that runs them.
"""
import atexit
import gzip
import http.client
import json
import os
import re
import shlex
import shutil
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from documents import shell_lines  # noqa: E402
from gotools import gos  # noqa: E402
from serving import server  # noqa: E402

SECONDS = 2
HOT = re.compile(r"\b(gitops_\w+|application_reconcile)\b")  # functions of backend-controller
INSTALLED = "/usr/local/bin/backend-controller"
# Documents whose every line another test runs.
FOLLOWED = {"docs/componentctl.md": "tests/componentctl/profile.t", "docs/deadlock.md": "tests/threads/deadlock.t",
            "docs/getting-started.md": "tests/project/getting_started.t",
            "docs/hunts.md": "tests/whole/hunts.t", "docs/memory.md": "tests/memory/memory.t",
            "docs/porting.md": "tests/project/porting.t"}
# Lines that no test can run, and lines that others run.
NOT_RUN = {
    "scripts/demo --seconds 20": "installs packages; it is what CI runs before anything else",
    "scripts/test": "is what runs this",
    "cc -g examples/hello.c -o hello $(pkg-config --cflags --libs libcomponent)": "tests/project/docs.t",
    "./hello --enable-pprof --every=10us --log-file=/dev/null &": "tests/project/docs.t",
    "kill $!": "tests/project/docs.t",
    'LD_PRELOAD="$HOME/libcomponent/lib/libcomponent-preload.so" COMPONENT_ENABLE_PPROF=true sleep 100 &': "tests/project/docs.t",
    "LD_PRELOAD=/usr/local/lib/libcomponent-preload.so COMPONENT_ENABLE_PPROF=true program": "tests/project/docs.t",
    "mkdir -p /tmp/try/applications/dev /tmp/try/sources/shop && echo hello > /tmp/try/sources/shop/index": "tests/project/docs.t",
    r"printf 'name: shop\nsource: shop\ntarget: dev/shop\nprune: true\ninterval: 30s\n' "
    "> /tmp/try/applications/dev/shop.yaml": "tests/project/docs.t",
    "backend-controller --root=/tmp/try & cluster-agent --root=/tmp/try & "
    "appstudio-controller --root=/tmp/try --soak-time=10s &": "tests/project/docs.t",
    "./autogen.sh": "makes this build's configure; tests/project/dist.t goes on from the tarball",
    "mkdir build-install && cd build-install": "tests/project/dist.t",
    '../configure --prefix="$HOME/libcomponent"': "tests/project/dist.t",
    'make -j"$(nproc)" && make install && cd ..': "tests/project/dist.t",
    'export PATH="$HOME/libcomponent/bin:$PATH" PKG_CONFIG_PATH="$HOME/libcomponent/lib/pkgconfig"': "tests/project/dist.t",
    'export LD_LIBRARY_PATH="$HOME/libcomponent/lib"': "tests/project/dist.t",
    "make release RELEASE_KEY=you@example.org": "tests/project/release.t",
    "cp -r deploy/debian .": "tests/project/packages.t",
    "dpkg-buildpackage -us -uc -b": "tests/project/packages.t",
    "sudo dpkg -i ../libcomponent0_*.deb ../libcomponent-common_*.deb ../libcomponent-dev_*.deb ../libcomponent-preload_*.deb "
    "../component-tools_*.deb":
    "tests/project/packages.t",
    "podman build -f deploy/Containerfile -t localhost/component-controllers:0.2.0 .": "tests/project/container.t does its steps",
    "kubectl apply -k deploy/kubernetes/overlays/dev": "needs a cluster; tests/project/kubernetes.t has what it would be sent",
    "kubectl apply -k deploy/kubernetes/overlays/secured": "the same",
    "kubectl create rolebinding profiler --role=profiler --user=NAME": "needs a cluster",
    'kubectl port-forward "$(kubectl get pod -l app.kubernetes.io/name=backend-controller -o name | head -n 1)" 6060': "needs a cluster",
    "(umask 077 && openssl rand -hex 32 >token)": "for the next line",
    "kubectl create secret generic profiling-token --from-file=token": "needs a cluster",
    "sha256sum -c libcomponent-0.2.0.tar.xz.sha256": "tests/project/release.t",
    "gpg --verify libcomponent-0.2.0.tar.xz.asc libcomponent-0.2.0.tar.xz": "tests/project/release.t",
}
home = tempfile.mkdtemp(prefix="component-commands-")
os.mkdir(os.path.join(home, "another"))
atexit.register(shutil.rmtree, home, True)
pasted = set()
shared = {}


def binary(name):
    """The program itself: pprof cannot read libtool's wrapper script."""
    real = os.path.join(BUILD, "examples", ".libs", name)
    return real if os.path.exists(real) else os.path.join(BUILD, "examples", name)


def environment(folder=home):
    env = {k: v for k, v in os.environ.items() if "proxy" not in k.lower() and not k.startswith("PPROF_")}
    env.update(PATH=env.get("PATH", "/usr/bin:/bin") + ":/usr/local/go/bin", LC_ALL="C")
    if "one go" in shared:
        env["PATH"] = os.path.dirname(shared["one go"]) + ":" + env["PATH"]
    if "go" not in shared:  # its caches: newer ones build pprof when it is first asked for
        names = ("GOCACHE", "GOPATH")
        r = run("go", "env", *names, env=env) if shutil.which("go", path=env["PATH"]) else None
        shared["go"] = dict(zip(names, r.stdout.splitlines())) if r else {}
    return {**env, **shared["go"], "HOME": folder}


def need_go(*programs):
    for name in ("go",) + programs:
        if not shutil.which(name, path=environment()["PATH"]):
            raise Skip("no %s on this machine" % name)


def with_every_go(fn):
    """A test that reads what a Go's tool says, run with each that is here."""
    def each():
        need_go()
        for version, go in gos():
            shared["one go"] = go
            try:
                fn()
            except Exception:
                print("# with go1.%d" % version[1])
                raise
            finally:
                del shared["one go"]
    each.__name__, each.__doc__ = fn.__name__, fn.__doc__
    return each


def start_once(name, *argv):
    if name not in shared:
        d = Daemon(["examples/" + name, "--root=" + os.path.join(home, "root"), "--enable-pprof",
                    "--heap-profile-rate=4KiB", *argv])
        atexit.register(d.end)
        shared[name] = d
    return shared[name]


def backend():
    """backend-controller under load."""
    if "input" not in shared:
        root = os.path.join(home, "root")
        p = subprocess.Popen([sys.executable, os.path.join(SRC, "scripts/demo-input"), root, "--size=4096", "--rate=40"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        atexit.register(p.wait)
        atexit.register(p.terminate)
        contains(p.stdout.readline(), " files in ")
        shared["input"] = p
        # What it reads first of all is allocated with sampling on.
        start_once("cluster-agent", "--resync-period=1s")
        start_once("backend-controller", "--concurrent-syncs=2", "--resync-period=100ms",
                   "--profiling-token-file=", "--metrics-bind-address=127.0.0.1:0", "--debug-socket-path=" + os.path.join(home, "x.sock"))
    return start_once("backend-controller")


def paste(line, d=None, swap=(), stdin="", folder=home):
    """Runs a line of the documents in the home directory, or another one that is taken for it."""
    need(line in [text for _, text in shell_lines()], "no document tells people to paste: " + line)
    if "go" in line.split():
        need_go("dot" if "pdf" in line else "go")
    pasted.add(line)
    d = d or backend()
    for old, new in [("localhost:6060", "localhost:%d" % d.port), ("seconds=5", "seconds=%d" % SECONDS),
                     (INSTALLED, binary("backend-controller")), *swap]:
        line = line.replace(old, new)
    r = run("sh", "-c", line, cwd=folder, env=environment(folder), input=stdin, stdin=None, timeout=5 * DEADLINE)
    equal(r.returncode, 0, "%s\n%s%s" % (line, r.stdout[-2000:], r.stderr[-2000:]))
    return r


def file_of(name):
    with open(os.path.join(home, name), "rb") as f:
        return f.read()


def is_pdf(name):
    data = file_of(name)
    need(data.startswith(b"%PDF"), "%s begins with %r" % (name, data[:40]))
    need(len(data) > 2000, "%s has %d bytes" % (name, len(data)))


def fetched(r, path, folder=home):
    """pprof has said where it took the profile from, and where it keeps it; returns that, and what else it said."""
    lines = r.stderr.splitlines()
    equal(lines[0], "Fetching profile over HTTP from http://localhost:%d%s" % (backend().port, path))
    need(lines[1].startswith("Saved profile in %s/pprof/pprof.backend-controller." % folder), lines[1])
    return lines[1].split(" ", 3)[3], lines[2:]


def is_greeting(lines):
    """What pprof says before it asks for commands: facts about the profile, and no complaint."""
    equal(lines[0], "File: backend-controller")
    equal(lines[-1], 'Entering interactive mode (type "help" for commands, "o" for options)')
    for line in lines[1:-1]:
        # On a busy machine there are samples that were lost, and why.
        need(re.match(r"[A-Za-z ]+: \S|\d+ of them ", line), line)
        need(not re.search(r"fail|warn|error|not available|incomplete|cannot|could not", line, re.I), line)


# The commands of docs/profiling.md

@test
def curl_verbose_writes_a_heap_profile():
    r = paste("curl -Sk -v http://localhost:6060/debug/pprof/heap > heap.out")
    contains(r.stderr, "< HTTP/1.1 200 OK")
    contains(r.stderr, "< Content-Type: application/octet-stream")
    need(gzip.decompress(file_of("heap.out")), "an empty profile")


@test
@with_every_go
def an_interactive_pprof_opens_the_heap_file():
    paste("curl -Sk -v http://localhost:6060/debug/pprof/heap > heap.out")
    r = paste("go tool pprof heap.out", stdin="top\ntop -cum\nquit\n")
    is_greeting(r.stderr.splitlines())
    contains(r.stderr, "Type: inuse_space")
    need(HOT.search(r.stdout), "no function of the controller in:\n" + r.stdout)


@test
@with_every_go
def a_cpu_profile_from_curl_shows_the_controllers_own_functions_by_name():
    paste("curl 'http://localhost:6060/debug/pprof/profile?seconds=5' > cpu.pprof")
    r = paste("go tool pprof -top cpu.pprof")
    equal(r.stderr, "")
    contains(r.stdout, "Type: cpu")
    need(HOT.search(r.stdout), "no function of the controller in:\n" + r.stdout)
    need(not re.search(r"\s0x[0-9a-f]+$", r.stdout, re.M), "a function without a name:\n" + r.stdout)


@test
def the_pdf_of_a_cpu_profile_from_the_url_is_a_pdf():
    r = paste("go tool pprof --pdf /usr/local/bin/backend-controller 'http://localhost:6060/debug/pprof/profile?seconds=5'"
              " > profile.pdf")
    is_pdf("profile.pdf")
    equal(fetched(r, "/debug/pprof/profile?seconds=%d" % SECONDS)[1], [])


@test
@with_every_go
def the_pdf_of_a_heap_profile_from_the_url_is_a_pdf():
    r = paste("go tool pprof --pdf /usr/local/bin/backend-controller http://localhost:6060/debug/pprof/heap > heap.pdf")
    is_pdf("heap.pdf")
    equal(fetched(r, "/debug/pprof/heap")[1], [])


@test
@with_every_go
def locks_are_looked_at_once_their_rates_are_set():
    d = backend()
    try:
        r = paste("curl -d mutex-profile-fraction=1 -d block-profile-rate=10us http://localhost:6060/debug/pprof/rates")
        contains(r.stdout, "mutex-profile-fraction")
        poll(lambda: not d.get("/debug/pprof/block?debug=1").text.endswith("=0\n"), "waits")
        contains(paste("go tool pprof -top http://localhost:6060/debug/pprof/mutex").stdout, "Type: delay")
        text = paste("curl 'http://localhost:6060/debug/pprof/block?debug=1'").stdout
        need(re.match(r"--- contention:\ncycles/second=\d+\n(\d+ \d+ @ 0x)", text), text[:300])
    finally:
        d.get("/debug/pprof/rates", method="POST", body="mutex-profile-fraction=0&block-profile-rate=0")


@test
@with_every_go
def a_wall_clock_profile_shows_what_waits():
    text = paste("go tool pprof -top 'http://localhost:6060/debug/pprof/fgprof?seconds=5'").stdout
    contains(text, "Type: time")
    need(re.search(r"[\d.]+m?s +[\d.]+% .*(epoll_wait|pthread_cond|futex)", text), text)
    text = paste("curl 'http://localhost:6060/debug/pprof/fgprof?seconds=5&format=folded'").stdout
    need(re.search(r"^[^;\n]+;.*main;.* \d+$", text, re.M), text)


@test
def curl_alone_shows_what_is_hot():
    lines = paste("curl 'http://localhost:6060/debug/pprof/profile?seconds=5&format=top'").stdout.splitlines()
    need(re.match(r"profile: cpu, total \S+s, duration \S+s$", lines[0]), lines[0])
    equal(lines[1].split(), ["flat", "flat%", "cum", "cum%", "function"])
    need(any(HOT.search(line) for line in lines[2:]), "\n".join(lines))
    for kind in "heap", "allocs":
        text = paste("curl 'http://localhost:6060/debug/pprof/%s?format=top'" % kind).stdout
        equal(text.splitlines()[1].split(), ["flat", "flat%", "cum", "cum%", "function"])
        need(HOT.search(text), text)
    line = "curl 'http://localhost:6060/debug/pprof/heap?format=top&focus=parse%7Crender&sample_index=alloc_space&cum=1&n=10'"
    whole, part = (paste(line, swap=[("parse%7Crender", words)]).stdout for words in ("parse%7Cgitops", "nothing%7Chere"))
    need(part.startswith("heap: alloc_space, "), part)
    need(HOT.search(whole) and not HOT.search(part), whole + part)


@test
def the_heap_is_there_in_gos_text_form():
    text = paste("curl 'http://localhost:6060/debug/pprof/heap?debug=1'").stdout
    need(re.match(r"heap profile: \d+: \d+ \[\d+: \d+\] @ heap/\d+\n", text), text[:200])
    need(re.search(r"^\d+: \d+ \[\d+: \d+\] @( 0x[0-9a-f]+)+$", text, re.M), text[:2000])
    need(re.search(r"^#\t0x[0-9a-f]+\t(gitops_\w+|application_reconcile)\+0x[0-9a-f]+\t", text, re.M), text[:2000])


# Straight from the server

@test
@with_every_go
def pprof_from_the_url_says_its_two_usual_lines_and_nothing_else():
    r = paste("go tool pprof -top 'http://localhost:6060/debug/pprof/profile?seconds=5'")
    equal(fetched(r, "/debug/pprof/profile?seconds=%d" % SECONDS)[1], [])
    need(HOT.search(r.stdout), r.stdout)


@test
@with_every_go
def an_interactive_pprof_takes_a_cpu_profile_from_the_url():
    r = paste("go tool pprof 'http://localhost:6060/debug/pprof/profile?seconds=5'", stdin="top\npeek gitops_\nquit\n")
    is_greeting(fetched(r, "/debug/pprof/profile?seconds=%d" % SECONDS)[1])
    need(HOT.search(r.stdout), r.stdout)


@test
def what_an_interactive_pprof_saved_can_be_drawn_by_another_value():
    other = os.path.join(home, "other")  # where pprof has kept nothing yet, so that it begins at 001
    os.mkdir(other)
    saved = "pprof/pprof.backend-controller.alloc_objects.alloc_space.inuse_objects.inuse_space.001.pb.gz"
    r = paste("go tool pprof http://localhost:6060/debug/pprof/heap", stdin="top\nquit\n", folder=other)
    path, greeting = fetched(r, "/debug/pprof/heap", other)
    equal(path, os.path.join(other, saved))
    is_greeting(greeting)
    r = paste("go tool pprof -alloc_objects --pdf ~/%s > allocations.pdf" % saved, folder=other)
    equal(r.stderr, "")
    is_pdf("other/allocations.pdf")


@test
@with_every_go
def the_source_of_a_function_is_shown_with_its_costs_and_callers():
    # The function that compares files: where this controller spends most of its time.
    paste("curl -s 'http://localhost:6060/debug/pprof/profile?seconds=5' > cpu.pprof")
    r = paste("go tool pprof -list gitops_hash_block cpu.pprof", swap=[("-list", "-source_path='%s' -list" % SRC)])
    equal(r.stderr, "")
    need(re.search(r"^ROUTINE =+ gitops_hash_block in examples/gitops/sha256\.c$", r.stdout, re.M), r.stdout)
    need(re.search(r"^ +\d+m?s +\d+m?s +\d+:\t.*", r.stdout, re.M), "no line with costs:\n" + r.stdout)
    contains(r.stdout, "rotate(")
    r = paste("go tool pprof -peek gitops_hash_block cpu.pprof")
    equal(r.stderr, "")
    need(re.search(r"\|   gitops_\w+", r.stdout), "no caller:\n" + r.stdout)


@test
@with_every_go
def labels_say_for_which_application_time_went():
    paste("curl -s 'http://localhost:6060/debug/pprof/profile?seconds=5' > cpu.pprof")
    r = paste("go tool pprof -tags cpu.pprof")
    need(re.search(r"^ *application: Total ", r.stdout, re.M), r.stdout)
    one, = re.findall(r"^ .*%\): (dev/app-\d\d\.yaml)$", r.stdout, re.M)[:1]
    r = paste("go tool pprof -top -tagfocus=application=dev/app-00.yaml cpu.pprof", swap=[("dev/app-00.yaml", one)])
    need(HOT.search(r.stdout), r.stdout)
    paste("curl -s http://localhost:6060/debug/pprof/heap > heap.out")
    r = paste("go tool pprof -top -tagignore=application heap.out")
    need("application_reconcile" not in r.stdout, r.stdout)


@test
@with_every_go
def the_difference_of_two_heap_profiles_is_what_has_grown():
    paste("curl -s http://localhost:6060/debug/pprof/heap > heap.out")
    paste("curl -s http://localhost:6060/debug/pprof/heap > later.out")
    r = paste("go tool pprof -top -base heap.out later.out")
    equal(r.stderr, "")
    contains(r.stdout, "Type: inuse_space")
    r = paste("go tool pprof -top -base heap.out later.out", swap=[("later.out", "heap.out")])
    contains(r.stdout, "accounting for 0, 0% of 0 total")


@test
@with_every_go
def every_sample_type_of_the_heap_can_be_chosen():
    paste("curl -s http://localhost:6060/debug/pprof/heap > heap.out")
    line = "go tool pprof -top -sample_index=alloc_space heap.out"
    for index in "alloc_space", "alloc_objects", "inuse_objects", "inuse_space":
        r = paste(line, swap=[("alloc_space", index)])
        equal(r.stderr, "")
        contains(r.stdout, "Type: " + index)
        need(HOT.search(r.stdout), r.stdout)


@test
@with_every_go
def comments_say_how_the_profile_was_made():
    paste("curl -s http://localhost:6060/debug/pprof/heap > heap.out")
    need(paste("go tool pprof -comments heap.out").stdout.strip(), "no comments")


@test
def the_command_line_can_be_read():
    lines = paste("curl -s http://localhost:6060/debug/pprof/cmdline | tr '\\0' '\\n'").stdout.splitlines()
    contains(lines[0], "backend-controller")
    contains(lines, "--enable-pprof")


@test
def the_index_without_its_slash_redirects_to_the_index():
    text = paste("curl -L http://localhost:6060/debug/pprof").stdout
    for kind in "allocs", "cmdline", "heap", "profile":
        contains(text, "<a href='%s?debug=1'>%s</a>" % (kind, kind))
    r = run("curl", "-si", "http://localhost:%d/debug/pprof" % backend().port, env=environment())
    contains(r.stdout, "HTTP/1.1 301 Moved Permanently")
    contains(r.stdout, "Location: /debug/pprof/\n")


@test
def a_daemon_with_a_token_is_read_by_those_who_know_it():
    token = os.path.join(home, "token")
    with open(token, "w") as f:
        os.fchmod(f.fileno(), 0o600)
        f.write("secret-of-this-test\n")
    swap = [("/etc/backend-controller.token", token)]
    with daemon("examples/backend-controller", "--root=" + os.path.join(home, "another"), "--enable-pprof",
                "--profiling-token-file=" + token) as d:
        equal(d.get("/debug/pprof/heap").status, 401)
        paste('curl -H "Authorization: Bearer $(cat /etc/backend-controller.token)" http://localhost:6060/debug/pprof/heap'
              ' > heap.out', d, swap)
        equal(file_of("heap.out")[:2], b"\x1f\x8b")
        line = 'go tool pprof "http://localhost:6060/debug/pprof/heap?token=$(cat /etc/backend-controller.token)"'
        contains(paste(line, d, swap, stdin="top\nquit\n").stderr, "Type: inuse_space")


@test
def the_debug_socket_is_read_by_curl():
    backend()
    paste("curl --unix-socket /run/x.sock http://localhost/debug/pprof/heap > heap.out",
          swap=[("/run/x.sock", os.path.join(home, "x.sock"))])
    equal(file_of("heap.out")[:2], b"\x1f\x8b")


@test
def status_pages_and_metrics_are_read_by_curl():
    contains(paste("curl -s http://localhost:6060/statusz").stdout, "backend-controller statusz\n")
    flagz = "curl -s -H 'Accept: application/json;g=config.k8s.io;v=v1beta1;as=Flagz' http://localhost:6060/flagz"
    equal(json.loads(paste(flagz).stdout)["flags"]["enable-pprof"], "true")
    contains(paste("curl -s -X PUT -d 1 http://localhost:6060/debug/flags/v").stdout, "verbosity is 1")
    port = re.search(r'serving metrics url="http://127\.0\.0\.1:(\d+)"', backend().output())[1]
    swap = [("127.0.0.1:18080", "127.0.0.1:" + port)]
    contains(paste("curl -s http://127.0.0.1:18080/metrics", swap=swap).stdout, '\nworkqueue_adds_total{name="applications"')


# Every kind, straight from the URL

def kinds():
    return [k for k in kinds_of_profile() if k not in ("cmdline", "trace")]  # which are no profiles


@test
@with_every_go
def pprof_opens_every_kind_from_its_url():
    need_go("go")
    d = backend()
    need(len(kinds()) >= 7, kinds())
    types = {"profile": "cpu", "heap": "inuse_space", "allocs": "alloc_space", "block": "delay", "mutex": "delay"}
    for kind in kinds() + ["threads"]:
        swap = [("debug/pprof/heap", "debug/pprof/" + kind + ("?seconds=1" if kind == "profile" else ""))]
        r = paste("go tool pprof http://localhost:6060/debug/pprof/heap", swap=swap, stdin="top\nquit\n")
        lines = r.stderr.splitlines()
        need(lines[0].startswith("Fetching profile over HTTP from http://localhost:%d/debug/pprof/%s" % (d.port, kind)),
             lines[0])
        greeting = [line for line in lines[2:] if line != "No samples were found with the default sample value type."]
        greeting = [line for line in greeting if not line.startswith("Try \"sample_index\"")]
        is_greeting(greeting)
        contains(r.stderr, "Type: " + types.get(kind, "goroutine" if kind == "threads" else kind))


@test
def the_flame_graph_in_a_browser_is_served_from_the_url():
    line = "go tool pprof -http=localhost:8000 'http://localhost:6060/debug/pprof/profile?seconds=5'"
    need(line in [text for _, text in shell_lines()], line)
    need_go("go")
    pasted.add(line)
    for _ in range(5):  # a port that is free now may be taken a moment later
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        argv = ["go", "tool", "pprof", "-no_browser", "-http=127.0.0.1:%d" % port,
                "http://localhost:%d/debug/pprof/profile?seconds=1" % backend().port]
        log = os.path.join(home, "web.log")
        with open(log, "w") as out:
            p = subprocess.Popen(argv, cwd=home, env=environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 start_new_session=True)  # "go tool" is two processes

        def page():
            if p.poll() is not None:
                return p.returncode or "ended"
            try:
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
                c.request("GET", "/ui/flamegraph")
                r = c.getresponse()
                return (r.status, r.read().decode("utf-8", "replace"))
            except OSError:
                return None
        try:
            got = poll(page, "the page", 90)
        finally:
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGTERM)
            p.wait()
        if isinstance(got, tuple):
            break
    need(isinstance(got, tuple), file_of("web.log").decode())
    equal(got[0], 200)
    need(HOT.search(got[1]), "no function of the controller in the page:\n" + got[1][:2000])


@test
def a_trace_from_curl_is_shown_by_go_tool_trace_in_a_browser():
    d = backend()
    need_go("go")
    line = "curl -s 'http://localhost:6060/debug/pprof/trace?seconds=5' > trace.out && go tool trace trace.out"
    served = line.replace("go tool trace", "exec go tool trace -http=127.0.0.1:0")  # else port 0 of every address
    need(line in [text for _, text in shell_lines()], line)
    pasted.add(line)
    for old, new in ("localhost:6060", "localhost:%d" % d.port), ("seconds=5", "seconds=1"):
        served = served.replace(old, new)
    log = os.path.join(home, "trace.log")
    with open(log, "w") as out:
        p = subprocess.Popen(["sh", "-c", served], cwd=home, env={**environment(), "BROWSER": "true"},
                             stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    try:
        def listening():
            need(p.poll() is None, "%r ended:\n%s" % (served, file_of("trace.log").decode()))
            return re.search(rb"listening on http://(127\.0\.0\.1):(\d+)", file_of("trace.log"))
        port = int(poll(listening, "the trace viewer", 180).group(2))

        def page(path):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            c.request("GET", path)
            r = c.getresponse()
            equal(r.status, 200, path)
            return r.read().decode("utf-8", "replace")
        contains(page("/"), "/trace")
        shown = json.loads(page("/jsontrace"))["traceEvents"]
        # What ran on the processors, by the names of threads.
        names = {e["name"] for e in shown if e.get("ph") == "X"}
        need(any("component-http" in n or "backend-contr" in n for n in names), sorted(names)[:60])
    finally:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGTERM)
        p.wait()


# What is asked of a daemon that does not do well

@test
def a_deadlock_is_found_by_grep_with_both_threads_and_where_both_took_and_want_their_locks():
    with server() as d:
        equal(d.command("deadlock"), "0")
        line = "curl -s 'http://localhost:6060/debug/pprof/goroutine?debug=2' | grep -A 100 \"sync.Mutex\""

        def both():
            text = run("sh", "-c", line.replace("localhost:6060", "localhost:%d" % d.port), env=environment()).stdout
            return text if re.search("left..hand", text) and "righthand" in text else None
        poll(both, "both threads in front of their locks")
        text = paste(line, d).stdout
        for name, function in ("left??hand", "takes_left_then_right"), ("righthand", "takes_right_then_left"):
            at = re.search(r"^goroutine \d+ \[sync\.Mutex\.Lock[^]]*thread: %s[^]]*\]:\n((?:.+\n?)+)" % re.escape(name),
                           text, re.M)
            need(at, "no thread %s in:\n%s" % (name, text))
            need(re.search(r"^lock_second\(\.\.\.\)\n\t.*/profiled_daemon\.c:\d+ \+0x[0-9a-f]+\n%s\(\.\.\.\)\n"
                           r"\t.*/profiled_daemon\.c:\d+ " % function, at.group(1), re.M), at.group(1))


@test
@with_every_go
def a_leak_is_what_two_heaps_an_hour_apart_differ_by():
    need_go("go")
    with server("--heap-rate", "1024") as d:
        equal(d.command("alloc %d" % (1 << 20)), "0")  # what it needs
        equal(d.command("leak 100"), "0")
        paste("curl -s http://localhost:6060/debug/pprof/heap > heap.out", d)
        equal(d.command("leak 4096"), "0")
        paste("curl -s http://localhost:6060/debug/pprof/heap > later.out", d)
        rows = paste("go tool pprof -top -base heap.out later.out", d).stdout.splitlines()
        at = next(i for i, row in enumerate(rows) if row.split()[:2] == ["flat", "flat%"])
        top = rows[at + 1].split()
        equal(top[-1], "do_leak", "\n".join(rows))
        need(3.2 < float(re.fullmatch(r"([\d.]+)(MB)", top[0]).group(1)) < 4.8, top)  # 4 MiB, sampled
        need(not any("do_alloc" in row for row in rows), "\n".join(rows))


@test
@with_every_go
def a_leak_of_threads_is_seen_by_their_number_and_by_who_makes_them():
    need_go("go")
    with server() as d:
        line = "curl -s 'http://localhost:6060/debug/pprof/goroutine?debug=1' | head -1"

        def count():
            return int(re.fullmatch(r"goroutine profile: total (\d+)\n", paste(line, d).stdout).group(1))
        before = count()
        for _ in range(3):
            equal(d.command("park 10"), "0")
            before += 10
            equal(count(), before)
        rows = paste("go tool pprof -top http://localhost:6060/debug/pprof/threadcreate", d).stdout.splitlines()
        at = next(i for i, row in enumerate(rows) if row.split()[:2] == ["flat", "flat%"])
        row = next(r.split() for r in rows[at + 1:] if r.split()[-1] == "do_park")
        equal(row[3], "30", "\n".join(rows))


# One after another, and all at once

@test
def two_hundred_heap_profiles_leave_no_descriptor_no_thread_and_no_memory_behind():
    d = backend()
    root = os.path.join(home, "root")
    url = "http://localhost:%d/debug/pprof/heap" % d.port

    def rounds(n):
        r = run("sh", "-c", "for i in $(seq %d); do curl -s %s | wc -c; done" % (n, shlex.quote(url)), env=environment(),
                timeout=600)  # each in processes of its own; a busy machine takes half a second for one
        equal((r.returncode, r.stderr), (0, ""))
        sizes = [int(line) for line in r.stdout.split()]
        need(len(sizes) == n and min(sizes) > 100, sizes)

    def ours():
        """What is open but the controller's own files, which come and go."""
        return sorted(re.sub(r"\[\d+\]", "", to) for to in descriptors(d.pid).values() if not to.startswith(root))

    def settle(fn, want, what):
        try:
            poll(lambda: len(fn()) <= len(want), what)
        except AssertionError:
            equal(fn(), want, what)
    rounds(50)  # the first ones read symbols and make arenas
    poll(lambda: "component-job" not in threads(d.pid).values(), "the last job to end")
    open_before, threads_before, rss_before = ours(), sorted(threads(d.pid).values()), rss(d.pid)
    rounds(200)
    settle(ours, open_before, "descriptors")
    settle(lambda: sorted(threads(d.pid).values()), threads_before, "threads")
    grown = rss(d.pid) - rss_before
    need(grown < 4 << 20, "resident memory grew by %d KiB" % (grown >> 10))


@test
def a_window_of_two_hours_starts_lets_others_run_and_is_freed_when_curl_is_killed():
    d = backend()
    windows = lambda: list(threads(d.pid).values()).count("component-job")  # noqa: E731
    poll(lambda: windows() == 0, "no window open")
    seen = d.output().count("profile finished")
    out = open(os.path.join(home, "never.pprof"), "wb")
    url = "http://localhost:%d/debug/pprof/profile?seconds=" % d.port
    p = subprocess.Popen(["curl", "-sS", url + "7200"], stdout=out, env=environment())
    try:
        poll(lambda: windows() == 1, "the window")
        begin = time.monotonic()
        r = run("curl", "-sS", "-o", "second.pprof", url + "1", cwd=home, env=environment())
        equal((r.returncode, r.stderr), (0, ""))
        need(0.9 < time.monotonic() - begin, "took %.1f s" % (time.monotonic() - begin))
        need(HOT.search(gzip.decompress(file_of("second.pprof")).decode("latin-1")), "the second window is not whole")
        equal((p.poll(), windows()), (None, 1), "the first one goes on")
    finally:
        p.kill()
        p.wait()
        out.close()
    poll(lambda: windows() == 0, "the window to be freed")
    poll(lambda: d.output().count("profile finished") == seen + 2, "a line for each window")
    equal(file_of("never.pprof"), b"")
    equal(d.get("/debug/pprof/profile?seconds=1").status, 200)


@test
def while_the_daemons_own_loop_hangs_the_index_and_cmdline_answer_within_100_ms():
    with daemon("tests/programs/hanging_loop", "--enable-pprof", env={"BLOCK_MS": "600000"}) as d:
        d.wait_log("loop blocked")
        for path in "/debug/pprof/", "/debug/pprof/cmdline":
            took = []
            for _ in range(20):
                begin = time.monotonic()
                equal(d.get(path).status, 200)
                took.append(time.monotonic() - begin)
            need(min(took) < 0.1, "%s: %r" % (path, took))  # the others may have waited for a processor
        # A CPU window, too; then the second signal ends what hangs.
        equal(d.get("/debug/pprof/profile?seconds=1").status, 200)
        need("loop goes on" not in d.output(), "it was woken")
        d.signal(signal.SIGTERM)
        d.wait_log("stopping")
        d.signal(signal.SIGTERM)
        equal(d.wait(), 1)


# Signals, as docs/operating.md says

@test
def usr1_switches_off_and_on_again_and_hup_reads_the_configuration():
    config = os.path.join(home, "config.yaml")
    with open(config, "w") as f:
        f.write("profiling:\n  enabled: true\nlogging-format: text\n")
    with daemon("examples/backend-controller", "--root=" + os.path.join(home, "another"), "--config=" + config) as d:
        def answers():
            try:
                return d.get("/debug/pprof/").status == 200
            except OSError:
                return False
        run("sh", "-c", "kill -USR1 %d" % d.pid)
        poll(lambda: not answers(), "profiling off")
        run("sh", "-c", "kill -USR1 %d" % d.pid)
        d.wait_port()
        poll(lambda: d.wait_port() or answers(), "profiling on again")
        with open(config, "w") as f:
            f.write("profiling:\n  enabled: true\nlogging-format: json\n")
        run("sh", "-c", "kill -HUP %d" % d.pid)
        d.wait_log('"msg":')
        equal(d.stop(), 0)


@test
def no_line_of_the_documents_is_left_out():
    if len(sys.argv) > 1:
        raise Skip("only some tests were asked for")
    if not shutil.which("go", path=environment()["PATH"]) or not shutil.which("dot"):
        raise Skip("go and dot did not run")
    lines = {text for name, text in shell_lines() if name not in FOLLOWED}
    equal(sorted(lines - pasted - set(NOT_RUN)), [], "in the documents, but not run")
    equal(sorted(set(NOT_RUN) - lines), [], "said not to run, but not in the documents")


main()
