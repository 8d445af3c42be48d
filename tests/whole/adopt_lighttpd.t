#!/usr/bin/env python3
"""adopt_lighttpd.t - lighttpd with what examples/adopt/lighttpd puts into its source: few lines; every kind of profile
under load with its functions by name, alone, in its workers, and in another root as another user; daemonising, reopened
logs, graceful restart and its ends as before; and its own tests with profiles taken meanwhile.  TEST_STRESS=1: its units, too."""
import contextlib
import http.client
import os
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from adopting import *  # noqa: E402,F403
from hooked import INCLUDES, link  # noqa: E402

FILES = 20  # in the folder that is listed; of a larger one lighttpd lists one at a time
made = {}


def lighttpd():
    """Its folder, built once."""
    if "lighttpd" not in made:
        folder = adopted_source("lighttpd")
        pcre = "--with-pcre2" if os.path.exists("/usr/include/pcre2.h") else "--without-pcre2"
        must("./configure", "-q", "--disable-dependency-tracking", pcre, "--without-bzip2", "CPPFLAGS=" + " ".join(INCLUDES),
             "CFLAGS=-g -O1 -fno-optimize-sibling-calls", cwd=folder)
        must("make", "-s", "-j2", "-C", "src", "LIBUNWIND_LIBS=" + " ".join(link("linked")), cwd=folder)
        made["lighttpd"] = folder
    return made["lighttpd"]


def fetch(port, path):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    try:
        c.request("GET", path)
        r = c.getresponse()
        return r.status, r.read()
    finally:
        c.close()


@contextlib.contextmanager
def loaded(port):
    """Asked for a folder and its files again and again, by connections that last and by such that do not."""
    stop, failed = threading.Event(), []

    def again(lasts):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        i = 0
        while not stop.is_set():
            path = "/" if i % 2 else "/%d.txt" % (i % FILES)
            c.request("GET", path, headers={"Connection": "keep-alive" if lasts and i % 50 else "close"})
            r = c.getresponse()
            body = r.read()
            equal(r.status, 200, path)
            need(b"19.txt" in body if path == "/" else len(body) == 20000, path)
            i += 1

    def guarded(lasts):
        try:
            again(lasts)
        except Exception as e:  # noqa: BLE001
            failed.append(e)

    threads = [threading.Thread(target=guarded, args=(lasts,)) for lasts in (True, True, False)]
    for t in threads:
        t.start()
    try:
        yield
    finally:
        stop.set()
        for t in threads:
            t.join()
    for e in failed:
        raise e


class Running:
    """A daemon: d its folder, port where it serves, pid."""


@contextlib.contextmanager
def running(*words, conf="", root="", address=None):
    """Daemonised; root: "/root", and it sees its folder as "/"."""
    d = tempfile.mkdtemp(dir=work)
    os.chmod(d, 0o777)
    os.mkdir(d + "/www")
    os.mkdir(d + "/dev")
    open(d + "/dev/null", "w").close()  # lighttpd opens it, in another root too
    os.chmod(d + "/dev/null", 0o666)
    for i in range(FILES):
        with open("%s/www/%d.txt" % (d, i), "w") as f:
            f.write("x" * 20000)
    r = Running()
    r.d, r.port, r.pid = d, free_port(), None
    seen = "" if root else d
    with open(d + "/conf", "w") as f:
        f.write('server.modules = ("mod_accesslog")\nserver.bind = "127.0.0.1"\nserver.port = %d\nserver.pid-file = "%s/pid"\n'
                'server.document-root = "%s/www"\nserver.errorlog = "%s/error"\naccesslog.filename = "%s/access"\n'
                'dir-listing.activate = "enable"\nmimetype.assign = (".txt" => "text/plain")\n%s\n'
                % (r.port, d, seen, seen, seen, conf + ('\nserver.chroot = "%s"' % d if root else "")))
    try:
        started = run(lighttpd() + "/src/lighttpd", "-f", d + "/conf", "-m", lighttpd() + "/src/.libs", "--enable-pprof",
                      "--profiling-bind-address", address.replace("DIR", seen) if address else "127.0.0.1:0",
                      "--profiling-port-file=" + seen + "/pprof", "--heap-profile-rate=4KiB", *words,
                      cwd=d, env=CLEAN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=DEADLINE)
        equal(started.returncode, 0, content(d + "/error"))
        r.where = content(d + "/pprof").removeprefix("unix:")  # it has begun, or its first process would wait still
        r.pid = int(content(d + "/pid"))
        yield r
    finally:
        with contextlib.suppress(OSError, TypeError):
            os.killpg(os.getpgid(r.pid), signal.SIGKILL)  # its workers, too: daemonising has made it a group of its own


# It has no thread but the first.
EXPECTED = {"profile": [["main;server_main_loop"], ["connection_state_machine"], ["http_dirlist", "http_response", "mod_dirlisting"]],
            "fgprof": [["main;server_main_loop"], ["fdevent_"]], "goroutine": [["main;server_main_loop"]],
            "heap": [["connection_", "chunk", "buffer_"]], "allocs": [["connection_", "chunk", "buffer_"]], "threadcreate": []}


@test
def lighttpd_is_given_few_lines_and_none_of_its_own_is_changed():
    few_lines_are_added("lighttpd", lighttpd())


@test
def lighttpd_daemonises_and_is_profiled_under_load():
    with running() as r, loaded(r.port):
        named_in_every_kind(r.where, EXPECTED)


OTHERS_WITHOUT_PROC = [kind for kind in OTHERS if kind != "memory"]


def is_named_in(where, function):
    """In a CPU profile, once somebody serves there."""
    with contextlib.suppress(OSError):
        return function in ask(where, "profile?seconds=1&format=folded")


def started_times(r):
    return (content(r.d + "/error") or "").count("server started")


def own_end(r, number, by=os.getpid()):
    """What the signal makes of it, and what it leaves; workers are told by their master."""
    os.kill(r.pid, number)
    poll(lambda: is_over(r.pid), "its own end")
    contains(content(r.d + "/error"), "server stopped by UID = %d PID = %d" % (os.stat("/proc/self").st_uid, by))
    poll(lambda: not [f for f in os.listdir(r.d) if "pprof" in f or f.endswith(".sock")], "the end of its workers' sockets")


@test
def lighttpd_reopens_its_logs_restarts_gracefully_in_the_middle_of_a_profile_and_stops_as_before():
    with running() as r:
        equal(fetch(r.port, "/1.txt")[0], 200)
        os.rename(r.d + "/access", r.d + "/access.1")
        os.kill(r.pid, signal.SIGHUP)
        poll(lambda: os.path.exists(r.d + "/access"), "its new log")
        window = in_background(ask, r.where, "fgprof?seconds=5&format=folded")
        poll(lambda: "fgprof" in ask(r.where), "the index")
        os.kill(r.pid, signal.SIGUSR1)
        poll(lambda: started_times(r) == 2 and fetch(r.port, "/1.txt")[0] == 200, "its second start")
        contains(window.result(), "server_main_loop")
        with loaded(r.port):
            named_in_every_kind(r.where, EXPECTED)
        own_end(r, signal.SIGTERM)
    with running() as r:
        own_end(r, signal.SIGINT)


@test
def what_replaces_lighttpd_at_a_restart_in_the_background_has_profiles_too():
    with running(conf='server.feature-flags = ("server.graceful-restart-bg" => "enable", "server.graceful-shutdown-timeout" => 1)\n'
                      'server.systemd-socket-activation = "enable"') as r:
        first = r.pid
        os.kill(r.pid, signal.SIGUSR1)
        poll(lambda: started_times(r) == 2, "its second start")
        r.pid = poll(lambda: (lambda pid: pid and int(pid) != first and int(pid))(content(r.d + "/pid")), "its daemon")
        poll(lambda: "server stopped by" in content(r.d + "/error"), "the end of the one before")
        with loaded(r.port):
            poll(lambda: is_named_in(content(r.d + "/pprof"), "server_main_loop"), "its profile", 4 * DEADLINE)
        own_end(r, signal.SIGTERM)


WORKERS = "server.max-worker = 2"


def a_worker_of(r):
    return next(pid for pid in all_of(r.where, 3) if pid != r.pid)


@test
def each_worker_of_lighttpd_is_profiled_and_every_index_names_all():
    with running(conf=WORKERS, address="unix:DIR/lighttpd.%p.sock") as r:
        found = all_of(r.where, 3)
        equal(found, {pid: "%s/lighttpd.%d.sock" % (r.d, pid) for pid in found})
        for pid, path in found.items():
            equal(processes(path), (found, {"this one": pid, **({} if pid == r.pid else {"the parent": r.pid})}))
        with loaded(r.port):
            named_in_every_kind(found[a_worker_of(r)], EXPECTED)
        need("server_main_setup_workers" in ask(r.where, "goroutine?format=folded"), "its master's stack")
        # Another one follows a worker that is gone, and new ones follow all.
        gone = a_worker_of(r)
        os.kill(gone, signal.SIGKILL)
        followed = poll(lambda: gone not in processes(r.where)[0] and all_of(r.where, 3), "its follower on the index")
        os.kill(r.pid, signal.SIGUSR1)
        renewed = poll(lambda: (lambda now: len(now) == 3 and set(now) & set(followed) == {r.pid} and now)(processes(r.where)[0]),
                       "new workers on the index")
        with loaded(r.port):
            for path in renewed.values():
                poll(lambda: path == r.where or is_named_in(path, "connection_state_machine"), path, 4 * DEADLINE)
        own_end(r, signal.SIGTERM, r.pid)
        for pid in renewed:
            poll(lambda: is_over(pid), "the end of %d" % pid)


@test
def in_another_root_and_as_another_user_functions_of_workers_have_names():
    if not ROOT:
        raise Skip("only root may change its root and its user")
    with running(conf=WORKERS + '\nserver.username = "nobody"\nserver.groupname = "nogroup"', root=True) as r:
        found = all_of(r.where, 3)
        for pid in found:
            with open("/proc/%d/status" % pid) as f:
                contains(f.read(), "\nUid:\t65534\t65534\t65534\t65534\n")
            equal(os.readlink("/proc/%d/root" % pid), r.d)
        with loaded(r.port):
            named_in_every_kind(found[a_worker_of(r)], {**EXPECTED, "fgprof": []}, OTHERS_WITHOUT_PROC)
        gone = a_worker_of(r)
        os.kill(gone, signal.SIGTERM)
        poll(lambda: gone not in processes(r.where)[0], "the end of a worker")
        with loaded(r.port):
            for url in all_of(r.where, 3).values():
                poll(lambda: "main;server_main_" in ask(url, "goroutine?format=folded"), url, 4 * DEADLINE)
        os.kill(r.pid, signal.SIGTERM)
        poll(lambda: is_over(r.pid), "its own end")


@contextlib.contextmanager
def profiled_all_the_while(port_file):
    """Whoever has written there where it serves is asked for profiles, again and again."""
    over, answers = threading.Event(), []

    def again():
        while not over.is_set():
            for path in "profile?seconds=1", "heap", "goroutine":
                with contextlib.suppress(OSError, http.client.HTTPException):
                    where = content(port_file)
                    if where:
                        answers.append(ask(where, path))

    asks = in_background(again)
    try:
        yield answers
    finally:
        over.set()
        asks.result()


@test
def lighttpds_own_tests_pass_while_profiles_are_taken():
    folder = lighttpd()
    if not os.path.exists("/usr/include/pcre2.h"):
        raise Skip("its tests need patterns in a config file: libpcre2-dev is not installed")
    port_file = os.path.join(folder, "pprof")
    with profiled_all_the_while(port_file) as answers:
        out = must("make", "-s", "-C", "tests", "check", cwd=folder, env={
            "LIGHTTPD_ENABLE_PPROF": "true", "LIGHTTPD_PROFILING_BIND_ADDRESS": "127.0.0.1:0",
            "LIGHTTPD_PROFILING_PORT_FILE": port_file})
    need(answers, "no profile was taken")
    contains(out, "Files=4, Tests=224,")
    contains(out, "Result: PASS")
    if os.environ.get("TEST_STRESS"):
        must("make", "-s", "-C", "src", "check", cwd=folder)


main()
