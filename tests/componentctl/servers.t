#!/usr/bin/env python3
"""Servers of the distribution, a virtual machine and a benchmark under componentctl run, at work: what they answer, what
they write and their status are those of one that runs beside without it, every kind of profile is there and read by Go's
tool, and the hottest functions of a CPU profile are those that are seen from outside in the other.

scripts/test fetches them; those that are not there are skipped.  TEST_STRESS=1 asks for longer windows.
"""
import atexit
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from at_work import OTHERS, PROTO, SECONDS, asked, compared  # noqa: E402
from busy import BUSY_CLASS  # noqa: E402
from pprof_reader import Profile  # noqa: E402
import daemons  # noqa: E402
import gotools  # noqa: E402

own_run()
ROOT = os.geteuid() == 0
# How many requests a server finds at once is chance where its client runs beside it: of two of a kind one spent 5 % in epoll_wait(),
# the other 19 %.
ON_ONE_PROCESSOR = ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
END = b"END\r\n"
VALUE = b"v" * 195 + END


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


# ---- what loads them, until it is told to stop: each gives its first answer ----

class Load(threading.Thread):
    """Asks for as long as it runs; .first is the first answer, .error why it ended."""

    def __init__(self, program, ask):
        super().__init__(daemon=True)
        self.program, self.ask, self.first, self.error, self.stopped = program, ask, None, None, threading.Event()
        self.start()

    def run(self):
        try:
            for answer in self.ask(self.program):
                if self.first is None:
                    os.sched_setaffinity(0, os.sched_getaffinity(self.program.p.pid))  # of this thread
                    self.first = answer
                equal(len(answer), len(self.first), "the length of an answer")
                if self.stopped.is_set():
                    break
        except Exception as e:  # noqa: BLE001 - told by whoever looks
            self.error = self.error or e

    def began(self):
        need(self.error is None, "its load: %r; %s" % (self.error, self.program.text()[-500:]))
        return self.first is not None

    def stop(self):
        self.stopped.set()
        self.join(DEADLINE)
        need(not self.is_alive() and self.began(), "its load goes on")


def shaped(answer):
    return re.sub(rb"\d", b"N", re.sub(rb"\r\nDate: [^\r]*", b"", answer, flags=re.I))


def connected(place):
    """A path, or the number of a port."""
    def connect():
        s = socket.socket(socket.AF_UNIX if isinstance(place, str) else socket.AF_INET)
        s.settimeout(DEADLINE)
        with contextlib.suppress(ConnectionRefusedError, FileNotFoundError, PermissionError):
            s.connect(place if isinstance(place, str) else ("127.0.0.1", place))
            return s
        s.close()
    return poll(connect, place)


def pipelined(question, end, count):
    """Many requests under way; the end of an answer comes so often."""
    def ask(program):
        with connected(program.socket) as s:
            while True:
                s.sendall(question)
                got = b""
                while got.count(end) < count:
                    more = s.recv(1 << 18)
                    need(more, "the server has closed its connection: %r" % got[-300:])
                    got += more
                yield got
    return ask


def resp(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def on_stdin(line):
    """What it works on is its standard input."""
    def ask(program):
        while True:
            program.p.stdin.write(line)
            program.p.stdin.flush()
            yield b""
    return ask


@contextlib.contextmanager
def to_postgres(program):
    """A connection: what asks it, and gives the last row."""
    words = b"".join(w + b"\0" for w in (b"user", b"nobody", b"database", b"postgres", b""))
    poll(lambda: "ready to accept connections" in program.text(), "the server")  # it writes a line for each that comes before
    with connected(program.folder + "/.s.PGSQL.5432") as s, s.makefile("rb") as f:
        s.sendall(struct.pack(">ii", 8 + len(words), 3 << 16) + words)
        until_ready(f)

        def row(question):
            s.sendall(b"Q" + struct.pack(">i", 5 + len(question)) + question + b"\0")
            return until_ready(f)
        yield row


def connections(program):
    """One after the other, each with a question."""
    while True:
        with to_postgres(program) as row:
            yield row(b"select 6 * 7 as answer")


def one_connection(program):
    with to_postgres(program) as row:
        while True:
            yield row(b"select max(md5(n::text)) from generate_series(1, 2000) n")


def until_ready(f):
    """The last row of what it says until it waits again."""
    answer = None
    while True:
        kind, length = struct.unpack(">ci", f.read(5))
        body = f.read(length - 4)
        need(kind != b"E", body)
        if kind == b"D":
            answer = body
        elif kind == b"Z":
            return answer


# ---- a program at work ----

def children(pid):
    return [int(w) for w in text_of("/proc/%d/task/%d/children" % (pid, pid)).split()]


class Program:
    """In a folder of its own, where .socket is to be, or a port that its words have chosen; ours: under componentctl run."""

    def __init__(self, d, name, words, ours, wrap=(), env=None, options=(), group=None):
        self.folder, self.socket, self.ours, self.leads = d, os.path.join(d, "socket"), ours, group == 0
        path = daemons.found(name)
        env = daemons.environment(path, **environment(XDG_RUNTIME_DIR=d, **(env or {})))
        self.said = open(os.path.join(d, "said"), "w+b")
        self.p = subprocess.Popen([*wrap, *([CTL, "run", *options, "--"] if ours else []), path, *words(d)], env=env, bufsize=0,
                                  stdin=subprocess.PIPE, stdout=self.said, stderr=self.said, process_group=group)

    def text(self):
        with open(self.said.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def port(self):
        def look():
            need(self.p.poll() is None, "it ended: " + self.text())
            return re.search(r"starting profiling server on port (\d+)", self.text())
        return int(poll(look, "its server")[1])

    def served(self):
        """The number of the process that is the program."""
        return children(self.p.pid)[0] if self.ours else self.p.pid

    def lines(self):
        """What it wrote, whatever the numbers in it."""
        kept = re.sub(r'time="[^\n]* app_id=\S+\n', "", self.text().replace(self.folder, "FOLDER"))
        return sorted({re.sub(r"[\dA-F.]+", "N", l) for l in kept.splitlines()})

    def end(self):
        if self.p.poll() is None:
            if self.leads:  # its workers would stay
                os.killpg(self.p.pid, signal.SIGKILL)
            for pid in children(self.p.pid) if self.ours else []:  # it would go on without componentctl
                os.kill(pid, signal.SIGKILL)
            self.p.kill()
        self.p.wait()
        self.said.close()


@contextlib.contextmanager
def beside_each_other(name, words, ask, prepare=lambda d: None, **kw):
    """One as it is, one under componentctl run, both at work."""
    daemons.found(name)
    with tempdir() as d, contextlib.ExitStack() as stack:
        os.chmod(d, 0o755)
        both, loads = [], []
        for ours in False, True:
            folder = os.path.join(d, "ours" if ours else "plain")
            os.mkdir(folder)
            prepare(folder)
            both.append(Program(folder, name, words, ours, **kw))
            stack.callback(both[-1].end)
            loads.append(Load(both[-1], ask))
        yield both, loads


def profile_of(program, target, *options):
    """What componentctl makes of a window of it: of one that does not serve, from outside."""
    file = os.path.join(program.folder, "window.pb.gz")
    ctl("profile", str(target), "--seconds=%d" % SECONDS, "--raw", "-o", file, *options)
    with open(file, "rb") as f:
        return f.read()


def seen_alike(name, plain, ours, window_of, working=Program.served, **kw):
    """window_of gives a profile of ours; working, which process of one is at work.  Gives why plain is not seen from
    outside, which the test is to be skipped for at its end."""
    why = None
    try:
        need_perf()
    except Skip as e:
        why = e
    compared(name, window_of, None if why else lambda: profile_of(plain, working(plain)), lambda: working(ours), **kw)
    return why


def every_kind(port, folder):
    jobs = {kind: in_background(asked, port, kind) for kind in PROTO + OTHERS + ("profile?seconds=1",)}
    pprof = gotools.newest_pprof() if gotools.gos() else None
    for kind, job in jobs.items():
        body = job.result()
        need(body, kind + " is empty")
        if kind in OTHERS:
            continue
        need(Profile(body).types, kind)
        if pprof:
            file = os.path.join(folder, kind.split("?")[0])
            with open(file, "wb") as f:
                f.write(body)
            r = run(pprof, "-top", file, env=gotools.ENV)
            need(r.returncode == 0 and "flat%" in r.stdout, kind + ": " + r.stderr)


def is_no_other(name, words, ask, ends=signal.SIGTERM, alike={}, family=None, said=Program.lines, anew=lambda *_: None, **kw):
    """alike: what compared() is to know besides; family: how names of its functions begin, for a master that is one target
    with its workers; said: what one has written in the end; anew: what is done to both before that."""
    need_own_run()
    if family:  # an end may be a signal to the whole process group, which is not to be that of this test
        kw.update(options=("--follow-forks", "--app-id=web"), group=0)
    with beside_each_other(name, words, ask, **kw) as ((plain, ours), loads):
        port = ours.port()
        for load in loads:
            poll(load.began, "its first answer")
        if family:
            poll(lambda: worker_at_work(ours) in workers_of(ours), "the record of the worker at work")
            unseen = seen_alike(name + " --follow-forks", plain, ours, lambda: profile_of(ours, "web", "--children"), worker_at_work)
            one_target(ours, worker_at_work(ours), family)
        else:
            unseen = seen_alike(name, plain, ours, lambda: asked(port, "profile?seconds=%d" % SECONDS), **alike)
        every_kind(port, ours.folder)
        for load in loads:
            load.stop()
        equal(shaped(loads[1].first), shaped(loads[0].first), "what it answers")
        anew(plain, ours, loads)
        for program in plain, ours:
            if ends is None:
                program.p.stdin.close()
            else:
                program.p.send_signal(ends)
        equal(ours.p.wait(DEADLINE), status(plain.p.wait(DEADLINE)), ours.text()[-500:])
        equal(said(ours), said(plain))
        if family:
            equal(in_the_list("web"), {})
    if unseen:
        raise Skip("not compared with what is seen from outside: %s; the rest was as it should be" % unseen)


def status(code):
    return 128 - code if code < 0 else code


@test
def redis_is_no_other():
    batch = b"".join(resp(b"SET", b"key%d" % i, VALUE) + resp(b"LPUSH", b"list", VALUE) for i in range(50))
    batch += b"".join(resp(b"GET", b"key%d" % i) + resp(b"LPOP", b"list") for i in range(50))
    is_no_other("redis-server", lambda d: ["--port", "0", "--unixsocket", d + "/socket", "--save", "", "--dir", d],
                pipelined(batch, END, 100), wrap=ON_ONE_PROCESSOR)


@test
def memcached_is_no_other():
    batch = b"".join(b"set key%d 0 0 %d\r\n%s\r\nget key%d\r\n" % (i, len(VALUE), VALUE, i) for i in range(50))
    is_no_other("memcached", lambda d: ["-s", d + "/socket", "-U", "0", "-t", "2", *(["-u", "root"] if ROOT else [])],
                pipelined(batch, b"\r\nEND\r\n", 50), wrap=ON_ONE_PROCESSOR)


GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 100


def nginx_words(d, processes):
    temp = "".join(" %s_temp_path %s/%s;" % (w, d, w) for w in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    text = ("daemon off; %s pid %s/pid; error_log stderr; events {}\nhttp { access_log off; keepalive_requests 100000000;%s\n"
            " server { listen unix:%s/socket; location / { return 200 '%s'; } } }\n" % (processes, d, temp, d, VALUE.decode().strip()))
    return ["-e", "stderr", "-c", write(d + "/conf", text)]


@test
def nginx_of_one_process_is_no_other():
    is_no_other("nginx", lambda d: nginx_words(d, "master_process off;"), pipelined(GET, b"END", 100), wrap=ON_ONE_PROCESSOR)


@test
def haproxy_is_no_other():
    def words(d):
        text = ("global\n nbthread 2\ndefaults\n mode http\n timeout client 1h\n timeout connect 1h\n timeout server 1h\nfrontend f\n bind unix@%s/socket\n"
                " http-request return status 200 content-type text/plain string '%s'\n" % (d, VALUE.decode().strip()))
        return ["-db", "-f", write(d + "/conf", text)]
    is_no_other("haproxy", words, pipelined(GET, b"END", 100), wrap=ON_ONE_PROCESSOR)


# ---- postgres: root may not start it, and another user has to get to all of it ----

AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if ROOT else []
cluster = []  # a new one, of which each test has copies


def postgres(words, ask, **kw):
    initdb = daemons.found("initdb")
    if AS_NOBODY and run(*AS_NOBODY, CTL, "--version", env=environment()).returncode:
        raise Skip("another user cannot enter the build's folder")

    def prepare(d):
        os.chmod(d, 0o777)
        if not cluster:
            folder = tempfile.mkdtemp(prefix="component-test-")
            atexit.register(shutil.rmtree, folder, True)
            os.chmod(folder, 0o777)
            r = run(*AS_NOBODY, initdb, "-D", folder + "/data", "-A", "trust", "-N", "-U", "nobody", env=daemons.environment(initdb))
            if r.returncode:
                raise Skip("initdb: " + r.stderr.strip()[-200:])
            cluster.append(folder + "/data")
        equal(run("cp", "-a", cluster[0], d).returncode, 0)
    is_no_other("postgres", words, ask, prepare=prepare, wrap=AS_NOBODY, **kw)


def postgres_words(d):
    return ["-D", d + "/data", "-k", d, "-c", "listen_addresses=", "-c", "shared_buffers=16MB", "-c", "fsync=off"]


@test
def postgres_of_one_process_is_no_other():
    question = b"select sum(n), max(md5(n::text)) from generate_series(1, 5000) n;" + b" " * 4000 + b"\n"
    postgres(lambda d: ["--single", "-D", d + "/data", "postgres"], on_stdin(question), ends=None)


@test
def the_master_of_postgres_is_no_other():
    # Signals wait until a fork is over, so inside it is below another function; and there is more to copy than outside.
    postgres(postgres_words, connections, alike={"whole": ("fork_process",), "room": 0.3, "enough": 30})  # it works little


# ---- masters with workers: the one that forks serves nobody, and those that it forked do ----

def in_the_list(name):
    return {r["pid"]: r["parent"] for r in json.loads(ctl("list", "-o", "json")) if r["appId"] == name}


def cpu_ticks(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return sum(int(w) for w in text_of("/proc/%d/stat" % pid).rpartition(")")[2].split()[11:13])
    return 0


def worker_at_work(program):
    return max(children(program.served()), key=cpu_ticks)


def workers_of(ours):
    """Those of its workers that have a server, with the master: none yet, or not of this generation, is none."""
    now = children(ours.served())
    return [pid for pid, parent in in_the_list("web").items() if parent == ours.served() and pid in now]


def one_target(ours, worker, functions):
    """A window of all has the worker's samples, under its label and with names of the server's own functions, which begin so."""
    def window():
        p = Profile(profile_of(ours, "web", "--children"))
        return [p.stack(stack) for stack, _, labels in p.samples if any(
            (p.strings[l[1]], p.strings[l[2]]) == ("process", str(worker)) for l in labels)]
    stacks = poll(window, "samples of worker %d" % worker, 4 * DEADLINE)
    need(any(f.startswith(functions) for stack in stacks for f in stack), stacks[:3])


@test
def nginx_with_its_workers_is_no_other_and_one_target():
    as_root = "user nobody nogroup; " if ROOT else ""
    is_no_other("nginx", lambda d: nginx_words(d, as_root + "worker_processes 2;"), pipelined(GET, b"END", 100), family="ngx_")


@test
def postgres_with_its_backends_is_no_other_and_one_target():
    os.makedirs(FOLDER, exist_ok=True)
    os.chmod(FOLDER, 0o1777)  # another user's records lie there, too
    postgres(postgres_words, one_connection, family="PostgresMain")


def apache_words(mpm, modules):
    def words(d):
        os.mkdir(d + "/pages")
        page = write(d + "/pages/page", VALUE.decode())
        os.utime(page, (0, 0))
        as_root = "User nobody\nGroup nogroup\n" if ROOT else ""
        return ["-DFOREGROUND", "-f", write(d + "/conf", as_root + """ServerName a
LoadModule mpm_%s_module %s/mod_mpm_%s.so
LoadModule authz_core_module %s/mod_authz_core.so
Listen 127.0.0.1:%d
DefaultRuntimeDir %s
PidFile %s/pid
ErrorLog %s/log
ErrorLogFormat "[%%l] %%M"
DocumentRoot %s/pages
FileETag None
StartServers 2
MaxKeepAliveRequests 0
KeepAliveTimeout 300
""" % (mpm, modules, mpm, modules, free_port(), d, d, d, d))]
    return words


def asks_apache(program):
    program.socket = int(re.search(r"Listen .*:(\d+)", text_of(program.folder + "/conf"))[1])
    return pipelined(GET.replace(b" / ", b" /page "), b"END", 100)(program)


def log_of(program):
    text = text_of(program.folder + "/log").replace(program.folder, "FOLDER")
    return sorted({re.sub(r"\d+", "N", l) for l in text.splitlines()})


def apache_is_no_other(mpm):
    path = daemons.found("apache2")
    modules = next((f for f in (daemons.UNPACKED + "/usr/lib/apache2/modules", "/usr/lib/apache2/modules") if os.path.isdir(f)), "")
    if not os.path.exists("%s/mod_mpm_%s.so" % (modules, mpm)):
        raise Skip("apache2 has no %s here" % mpm)

    def graceful(plain, ours, loads):
        before = [children(program.served()) for program in (plain, ours)]
        for program in plain, ours:  # as apachectl graceful does it
            r = run(path, "-f", program.folder + "/conf", "-k", "graceful", env=daemons.environment(path))
            equal((r.returncode, r.stdout + r.stderr), (0, ""))
        for program, old in zip((plain, ours), before):
            poll(lambda: children(program.served()) and not set(old) & set(children(program.served())), "other workers")
        again = [Load(program, asks_apache) for program in (plain, ours)]
        for load in again:
            poll(load.began, "an answer of the new ones")
        poll(lambda: worker_at_work(ours) in workers_of(ours), "the record of a new one")
        need(not set(before[1]) & set(in_the_list("web")), "the old ones are still listed")
        one_target(ours, worker_at_work(ours), "ap_")
        for load in again:
            load.stop()
        equal(shaped(again[1].first), shaped(loads[0].first), "what the new ones answer")
    is_no_other("apache2", apache_words(mpm, modules), asks_apache, family="ap_", anew=graceful,
                said=lambda program: (program.lines(), log_of(program)))


@test
def apache_of_many_processes_is_no_other_and_one_target():
    apache_is_no_other("prefork")


@test
def apache_of_processes_with_threads_is_no_other_and_one_target():
    apache_is_no_other("event")


@test
def a_java_virtual_machine_is_no_other():
    def words(d):
        with open(os.path.join(d, "Busy.class"), "wb") as f:
            f.write(BUSY_CLASS)
        return ["-Xmx64m", "-cp", d, "Busy"]

    def ask(program):
        program.p.stdin.write(b"go\n")
        while True:
            time.sleep(0.05)
            yield b""
    is_no_other("java", words, ask, ends=None)


@test
def openssl_speed_is_no_other():
    def ask(program):
        while True:
            time.sleep(0.05)
            yield b""
    is_no_other("openssl", lambda d: ["speed", "-seconds", "3600", "-bytes", "8192", "sha256"], ask)


main()
