#!/usr/bin/env python3
"""A program under componentctl run ends as without us, also within a window, of which what was measured is kept."""
import gzip
import json
import os
import re
import shutil
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from checkpoints import members  # noqa: E402
from ctl import *  # noqa: E402,F403
from pprof_reader import Profile  # noqa: E402

own_run()

# It burns until it is told how to end.
ENDS = """
import os, sys, threading
def burn():
    while True:
        sum(range(1000))
threading.Thread(target=burn, daemon=True).start()
for line in sys.stdin:
    if line == "child\\n":
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        os.waitpid(pid, 0)
        print("child ended", flush=True)
    else:
        sys.exit(3)
"""


@contextlib.contextmanager
def window(folder, kind, *options, program=ENDS):
    """The program, and componentctl with a window of an hour that the server has begun."""
    file = os.path.join(folder, "p.pb.gz")
    with started_by_ctl("--app-id=ends", *options, sys.executable, "-c", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        contains(said_at_start(p.stderr), "starting profiling server")
        pid = listed()["ends"]["pid"]
        with started([CTL, "profile", "ends", kind, "--seconds=3600", "--comments", "-o", file], env=environment(),
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as c:
            window_opens(pid)
            yield p, c, file, pid


def burnt(pid, ticks):
    """Until the program has used so much more CPU time."""
    used = lambda: sum(map(int, text_of("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()[11:13]))  # noqa: E731
    before = used()
    poll(lambda: used() >= before + ticks, "its CPU time")


def told(p, line):
    p.stdin.write(line)
    p.stdin.flush()


@test
def a_window_of_a_program_that_exits_is_kept_with_a_comment():
    for kind in "profile", "heap":
        with tempdir() as d, window(d, kind) as (p, c, file, pid):
            burnt(pid, 50)
            told(p, "end\n")
            out, err = c.communicate(timeout=DEADLINE)
            equal(p.wait(DEADLINE), 3)
            equal(c.returncode, 0, err)
            contains(out, "the program ended meanwhile")
            with open(file, "rb") as f:
                profile = Profile(f.read())
            if kind == "profile":
                need(sum(s[1][0] for s in profile.samples) >= 20, len(profile.samples))


@test
def a_trace_of_a_program_that_exits_is_kept():
    with tempdir() as d:
        file = os.path.join(d, "trace")
        with started_by_ctl("--app-id=ends", sys.executable, "-c", ENDS, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            contains(said_at_start(p.stderr), "starting profiling server")
            pid = listed()["ends"]["pid"]
            with started([CTL, "trace", "ends", "--seconds=3600", "-o", file], env=environment(), stderr=subprocess.PIPE, text=True) as c:
                window_opens(pid)
                burnt(pid, 20)
                told(p, "end\n")
                err = c.communicate(timeout=DEADLINE)[1]
            equal((p.wait(DEADLINE), c.returncode), (3, 0), err)
        with open(file, "rb") as f:
            need(f.read(5) == b"go 1.", "a trace")


def ends_but(handler):
    """The same with a handler of TERM, which is there when the first line is."""
    return ENDS.replace("for line", "import signal\nsignal.signal(signal.SIGTERM, %s)\nprint('there', flush=True)\nfor line" % handler)


@test
def a_window_of_a_program_that_run_ends_by_a_signal_is_kept_with_a_comment():
    for how, program, status in ("stop", ENDS, 128 + 15), ("terminate", ENDS, 128 + 15), ("terminate", ends_but("signal.SIG_IGN"), 128 + 9):
        with tempdir() as d, window(d, "profile", "--graceful-shutdown-timeout=100ms", program=program) as (p, c, file, pid):
            burnt(pid, 50)
            if program != ENDS:
                equal(p.stdout.readline(), "there\n")
            if how == "stop":
                ctl("stop", "ends")
            else:
                p.terminate()
            out, err = c.communicate(timeout=DEADLINE)
            equal((p.wait(DEADLINE), c.returncode), (status, 0), err)
            contains(out, "the program ended meanwhile")
            with open(file, "rb") as f:
                need(sum(s[1][0] for s in Profile(f.read()).samples) >= 20, "what was measured")


def weight(raw):
    """How many samples a profile has."""
    return sum(s[1][0] for s in Profile(raw).samples)


@contextlib.contextmanager
def relay(port, look):
    """The address of one to the server at that port for one connection; look() is called with all of the answer so far, at each piece."""
    def serve():
        with listener.accept()[0] as client, socket.create_connection(("127.0.0.1", port)) as server:
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += client.recv(4096) or b"\r\n\r\n"
            server.sendall(asked)
            answer = b""
            with contextlib.suppress(ConnectionError):
                while piece := server.recv(65536):
                    client.sendall(piece)
                    answer += piece
                    look(answer)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(DEADLINE)
        served = in_background(serve)
        yield "127.0.0.1:%d" % listener.getsockname()[1]
        served.result(DEADLINE)


@test
def of_a_program_that_is_killed_within_a_window_the_last_checkpoint_is_kept():
    for kind in "profile", "fgprof", "heap":
        came, killed = [], []

        def look(answer):
            came[:] = members(answer)
            enough = len(came) >= 2 and (kind == "heap" or weight(came[-1]) >= 50)
            if enough and not killed:
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)
        with tempdir() as d, started_by_ctl("--app-id=ends", sys.executable, "-c", ENDS, stdin=subprocess.PIPE) as p:
            contains(said_at_start(p.stderr), "starting profiling server")
            record, file = listed()["ends"], os.path.join(d, "p.pb.gz")
            pid = record["pid"]
            with relay(record["profilePort"], look) as address:
                r = run(CTL, "profile", address, kind, "--seconds=3600", "--comments", "-o", file, env=environment())
            equal((p.wait(DEADLINE), r.returncode), (128 + 9, 0), r.stderr)
            contains(r.stdout, "a checkpoint: what was measured in the first ")
            need(re.search(r"went away after [0-9.]+ s, .*\nWhat it has measured in the first [0-9.]+ s is kept\.\nSaved as ", r.stderr), r.stderr)
            with open(file, "rb") as f:
                saved = f.read()
            need(len(came) >= 2 and saved in came[1:], "a whole checkpoint")
            if kind != "heap":
                need(weight(saved) >= 50, "what was measured")


@test
def of_a_trace_of_a_program_that_is_killed_the_last_checkpoint_is_kept():
    for options, beginning in ([], b"go 1."), (["--perfetto"], b"\x0a"):
        came, killed = [], []

        def look(answer):
            came[:] = members(answer)
            if len(came) >= 2 and not killed:
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)
        with tempdir() as d, started_by_ctl("--app-id=ends", sys.executable, "-c", ENDS, stdin=subprocess.PIPE) as p:
            contains(said_at_start(p.stderr), "starting profiling server")
            record, file = listed()["ends"], os.path.join(d, "trace")
            pid = record["pid"]
            with relay(record["profilePort"], look) as address:
                r = run(CTL, "trace", address, "--seconds=3600", "-o", file, *options, env=environment())
            equal((p.wait(DEADLINE), r.returncode), (128 + 9, 0), r.stderr)
            need(re.search(r"went away after [0-9.]+ s, .*\nWhat it has traced until its last checkpoint is kept\.\nSaved as ", r.stderr), r.stderr)
            with open(file, "rb") as f:
                saved = f.read()
            need(saved in [gzip.decompress(m) for m in came[1:]], "a whole checkpoint")
            need(saved.startswith(beginning) and b"a checkpoint: what was measured in the first " in saved, saved[:16])


@test
def of_a_trace_that_ends_within_its_first_checkpoint_nothing_is_saved():
    def serve():
        with listener.accept()[0] as client:
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += client.recv(4096) or b"\r\n\r\n"
            client.sendall(b"HTTP/1.1 200 OK\r\nX-Component-Checkpoints: yes\r\nConnection: close\r\n\r\n" + gzip.compress(os.urandom(10000))[:5000])
    with socket.create_server(("127.0.0.1", 0)) as listener, tempdir() as d:
        listener.settimeout(DEADLINE)
        served, file = in_background(serve), os.path.join(d, "trace")
        with open(file, "w") as f:
            f.write("before")
        r = run(CTL, "trace", "127.0.0.1:%d" % listener.getsockname()[1], "-o", file, env=environment())
        served.result(DEADLINE)
        equal((r.returncode, text_of(file)), (1, "before"), r.stderr)
        contains(r.stderr, "the server went away after ")
        contains(r.stderr, "what came is no whole trace, and was not saved")


@test
def a_signal_that_a_program_handles_ends_no_window():
    with tempdir() as d, window(d, "profile", program=ends_but("lambda *_: print('had it', flush=True)")) as (p, c, file, pid):
        equal(p.stdout.readline(), "there\n")
        p.terminate()
        equal(p.stdout.readline(), "had it\n")
        burnt(pid, 20)
        need(c.poll() is None, "the window has ended")
        told(p, "end\n")
        equal((p.wait(DEADLINE), c.wait(DEADLINE)), (3, 0))


@test
def a_window_of_a_daemon_that_stops_or_is_switched_off_says_so():
    with tempdir() as d, daemon("tests/programs/obedient_daemon", "--enable-pprof", "--profiling-registry") as p:
        p.wait_log("starting profiling server")
        file = os.path.join(d, "p.pb.gz")
        with started([CTL, "profile", str(p.pid), "--seconds=3600", "--comments", "-o", file], env=environment(), stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True) as c:
            window_opens(p.pid)
            ctl("disable", str(p.pid))
            out, err = c.communicate(timeout=DEADLINE)
        equal(c.returncode, 0, err)
        contains(out, "the profiling server stopped meanwhile")


@test
def a_child_that_exits_ends_no_window_of_its_parent():
    with tempdir() as d, window(d, "profile") as (p, c, file, pid):
        told(p, "child\n")
        equal(p.stdout.readline(), "child ended\n")
        burnt(pid, 20)
        need(c.poll() is None, "the window ended with a child")
        told(p, "end\n")
        equal(p.wait(DEADLINE), 3)
        contains(c.communicate(timeout=DEADLINE)[0], "the program ended meanwhile")


def main_ends(folder):
    program = os.path.join(folder, "main_ends")
    r = run(*CC.split(), "-pthread", "-o", program, os.path.join(SRC, "tests/programs/main_ends.c"))
    equal(r.returncode, 0, r.stderr)
    return program


def received(s, slowly, p):
    """All that comes; slowly: while the program is there but 1 KiB a second, or the server would end what makes no progress."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while slowly and p.poll() is None:
            said += s.recv(1024)
            time.sleep(1)
        while data := s.recv(65536):
            said += data
    return said


@test
def it_is_kept_where_no_record_can_be_written_as_well():
    need_own_run()
    with no_records():
        pauses = "import os, signal\nprint(os.getpid(), flush=True)\nsignal.pause()"
        with tempdir() as d, started_by_ctl(sys.executable, "-c", pauses, stdout=subprocess.PIPE, env=environment(XDG_RUNTIME_DIR="")) as p:
            said = said_at_start(p.stderr)
            contains(said, "no record can be written")
            address = "127.0.0.1:" + re.search(r"server on port (\d+)", said)[1]
            with started([CTL, "profile", address, "--seconds=3600", "--comments", "-o", d + "/p.pb.gz"], env=environment(),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as c:
                window_opens(int(p.stdout.readline()))
                p.terminate()
                out, err = c.communicate(timeout=DEADLINE)
            equal((p.wait(DEADLINE), c.returncode), (128 + signal.SIGTERM, 0), err)
            contains(out, "the program ended meanwhile")


@test
def a_client_that_hardly_reads_holds_no_program_up():
    with tempdir() as d:
        exe = main_ends(d)
        for slowly in False, True:
            with started_by_ctl("--app-id=main", exe, "stacks", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p, socket.socket() as s:
                port = int(re.search(r"server on port (\d+)", said_at_start(p.stderr))[1])
                # Loopback's segments of 64 KiB would get a buffer that takes it all.
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                s.settimeout(DEADLINE)
                s.connect(("127.0.0.1", port))
                s.sendall(b"GET /debug/pprof/heap?seconds=3600&format=json HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % port)
                window_opens(listed()["main"]["pid"])
                answer = in_background(received, s, slowly, p)
                told(p, "end\n")
                equal((p.wait(DEADLINE), p.stdout.read()), (0, " at the end"))
                said = answer.result()
                equal((said[:12], said.endswith(b"}\n\r\n0\r\n\r\n")), (b"HTTP/1.1 200", not slowly), len(said))


@test
def a_program_whose_main_thread_ends_first_ends_with_its_last_thread():
    with tempdir() as d:
        program = main_ends(d)
        for argument in [], ["thrd_exit"], ["cancelled"], ["worker"]:
            for options in [], ["--follow-forks"]:
                with started_by_ctl("--app-id=main", *options, program, *argument, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
                    contains(said_at_start(p.stderr), "starting profiling server")
                    if argument == ["worker"]:
                        out = ctl("profile", "main", "--seconds=1", "--comments", "-o", os.path.join(d, "p.pb.gz"))
                        need("ended meanwhile" not in out, out)
                    out = p.communicate(timeout=DEADLINE)[0]  # its standard input ends
                equal((p.returncode, out), (0, ("worked" if argument == ["worker"] else "") + " at the end"))


@test
def a_child_that_another_thread_forked_ends_with_its_last_thread():
    with tempdir() as d:
        program = main_ends(d)
        for how in "forks", "forks_on":
            with started_by_ctl("--app-id=main", "--follow-forks", program, how, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
                said_at_start(p.stderr)
                poll(lambda: [r for r in json.loads(ctl("list", "-o", "json")) if r["parent"]], "the child's record")
                out = p.communicate(timeout=DEADLINE)[0]
            equal((p.returncode, out), (0, " at the endchild ended at the end"), how)
        for k in range(20):  # and before, while and after its server starts
            with started_by_ctl("--follow-forks", program, "forks", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
                said_at_start(p.stderr)
                time.sleep(0.01 + k * 0.002)
                out = p.communicate(timeout=DEADLINE)[0]
            equal((p.returncode, out), (0, " at the endchild ended at the end"), k)


@test
def a_program_under_a_filter_of_its_own_ends_without_a_call_of_ours():
    with tempdir() as d:
        program = main_ends(d)
        plain = run(program, "filtered")
        if plain.returncode == 77:
            raise Skip("seccomp filters cannot be had here")
        equal((plain.returncode, plain.stdout), (0, "filtered at the end"))
        r = run(CTL, "run", program, "filtered", env=environment())
        equal((r.returncode, r.stdout), (0, plain.stdout))


@test
def a_window_of_such_a_program_is_kept_as_well():
    with tempdir() as d:
        program, file = main_ends(d), os.path.join(d, "p.pb.gz")
        with started_by_ctl("--app-id=main", program, "worker", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            contains(said_at_start(p.stderr), "starting profiling server")
            pid = listed()["main"]["pid"]
            with started([CTL, "profile", "main", "--seconds=3600", "--comments", "-o", file], env=environment(),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as c:
                window_opens(pid)
                equal(p.communicate(timeout=DEADLINE)[0], "worked at the end")
                out, err = c.communicate(timeout=DEADLINE)
        equal((p.returncode, c.returncode), (0, 0), err)
        contains(out, "the program ended meanwhile")


@test
def it_is_profiled_where_few_descriptors_may_be_open():
    for most in 64, 100:
        with started(["prlimit", "--nofile=%d:%d" % (most, most), CTL, "run", "cat"], env=environment(), stdin=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True) as p:
            contains(said_at_start(p.stderr), "starting profiling server")
            p.communicate(timeout=DEADLINE)
        equal(p.returncode, 0)


@test
def an_agent_whose_path_the_loader_would_split_is_refused():
    with tempdir() as d:
        for name in "bin dir", "a:b":
            folder = os.path.join(d, name, "componentctl")
            os.makedirs(folder)
            os.makedirs(os.path.join(d, name, "preload"))
            real = os.path.join(BUILD, "components/componentctl/.libs/componentctl")
            shutil.copy(real if os.path.exists(real) else CTL, os.path.join(folder, "componentctl"))
            shutil.copy(os.path.join(BUILD, "components/preload/libcomponent-preload.so"), os.path.join(d, name, "preload"))
            r = run(os.path.join(folder, "componentctl"), "run", "true", env=environment())
            equal(r.returncode, 1, r.stderr)
            contains(r.stderr, "LD_PRELOAD takes no")


main()
