#!/usr/bin/env python3
"""The profiling part from outside: start, busy ports, switches at run time, sockets of other kinds."""
import fcntl
import gzip
import json
import os
import re
import socket
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

own_network()
SUBJECT = "tests/programs/obedient_daemon"
HELLO = "examples/hello"


def unix_get(path, url, address=None):
    """GET over a unix socket: status and body."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(DEADLINE)
        s.connect(address or path)
        s.sendall(b"GET %s HTTP/1.0\r\n\r\n" % url.encode())
        data = b""
        while True:
            part = s.recv(65536)
            if not part:
                break
            data += part
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def sockets_of(pid):
    return sorted(t for t in descriptors(pid).values() if t.startswith("socket:"))


def listeners_of(pid):
    """The TCP sockets it listens on; connections of clients come and go."""
    with open("/proc/%d/net/tcp" % pid) as f:
        rows = [line.split() for line in f.read().splitlines()[1:]]
    return sorted({"socket:[%s]" % r[9] for r in rows if r[3] == "0A"} & set(sockets_of(pid)))


def own_threads(pid):
    return sorted(n for n in threads(pid).values() if n.startswith("component-") and n != "component-sig")


@contextlib.contextmanager
def taken_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        yield s.getsockname()[1]


@test
def a_log_that_nobody_reads_holds_up_no_window_and_no_other_request():
    reader, writer = os.pipe()
    fcntl.fcntl(writer, 1031, 4096)  # F_SETPIPE_SZ
    with daemon(HELLO, "--enable-pprof", preexec_fn=lambda: os.dup2(writer, 2)) as d:
        filler = os.open("/proc/self/fd/%d" % writer, os.O_WRONLY | os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(filler, b"x")
        r = d.get("/debug/pprof/profile?seconds=1")
        equal(r.status, 200)
        need(gzip.decompress(r.body), "a whole profile")
        equal(d.get("/debug/pprof/rates", method="POST", body="heap-profile-rate=4096\n").status, 200)
        equal(d.get("/debug/pprof/cmdline").status, 200)
        os.close(filler)
        os.close(writer)
        os.close(reader)
        equal(d.stop(), 0)


@test
def the_smallest_daemon_answers_index_and_cmdline():
    with daemon(HELLO, "--enable-pprof") as d:
        r = d.get("/debug/pprof/")
        equal(r.status, 200)
        contains(r.text, "/debug/pprof/")
        equal(d.get("/debug/pprof/cmdline").body.split(b"\0")[1], b"--enable-pprof")
        equal(d.stop(), 0)


@test
def one_line_after_the_bind_tells_port_and_url_in_each_format():
    for form in "text", "logfmt", "json":
        with daemon(HELLO, "--enable-pprof", "--logging-format=" + form) as d:
            words = "starting profiling server on port %d" % d.port
            d.wait_log(words)
            lines = [line for line in d.output().splitlines() if words in line]
            equal(len(lines), 1, form)
            contains(lines[0], d.url)
            if form == "logfmt":
                contains(lines[0], 'msg="%s"' % words)
            if form == "json":
                line = json.loads(lines[0])
                need(words in line.values(), line)
                need(any(v == d.url for v in line.values()), line)


@test
def one_line_tells_that_it_is_off_and_how_to_turn_it_on():
    for form in "text", "logfmt", "json":
        with daemon(SUBJECT, "--logging-format=" + form, port_file=False) as d:
            d.wait_log("profiling is off")
            lines = [line for line in d.output().splitlines() if "profiling is off" in line]
            equal(len(lines), 1, form)
            for way in "--enable-pprof", "PPROF_BIND_ADDRESS", "USR1":
                contains(lines[0], way)
            equal((sockets_of(d.pid), own_threads(d.pid)), ([], []), "off is off")


@test
def a_busy_port_ends_the_start_with_status_1_and_a_message_with_everything_in_it():
    with taken_port() as port:
        address = "127.0.0.1:%d" % port
        for args, env, named in ((["--profiling-bind-address=" + address], {}, "'--profiling-bind-address'"),
                                 (["--profile-port=%d" % port], {}, "'--profile-port'"),
                                 ([], {"PPROF_BIND_ADDRESS": address}, "environment variable PPROF_BIND_ADDRESS")):
            r = run(HELLO, "--enable-pprof", *args, env=dict(os.environ, **env))
            equal(r.returncode, 1)
            lines = [line for line in r.stderr.splitlines() if "cannot serve profiles" in line]
            equal(len(lines), 1, r.stderr)
            for part in ("hello: cannot serve profiles on %s: Address already in use" % address, named,
                         "held by process %d (" % os.getpid(), "set --profiling-bind-address or "
                         "COMPONENT_PROFILING_BIND_ADDRESS", "port 0 for any free port", "--enable-pprof=false"):
                contains(lines[0], part)
            need("hello who" not in r.stderr, "no work may have begun:\n" + r.stderr)
            need("starting profiling server" not in r.stderr, r.stderr)


@test
def an_address_that_is_bound_and_cannot_be_watched_is_told_in_one_sentence():
    with tempdir() as t:
        source, library = os.path.join(t, "watch.c"), os.path.join(t, "watch.so")
        with open(source, "w") as f:
            f.write("""
#include <dlfcn.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* As the kernel refuses it to a user with too many watches. */
int epoll_ctl(int set, int op, int fd, struct epoll_event *e)
{
	int (*next)(int, int, int, struct epoll_event *) = dlsym(RTLD_NEXT, "epoll_ctl");
	int listens = 0;
	socklen_t size = sizeof(listens);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens) {
		errno = ENOSPC;
		return -1;
	}
	return next(set, op, fd, e);
}
""")
        r = run(*CC.split(), "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, source)
        equal(r.returncode, 0, r.stderr)
        r = run(HELLO, "--enable-pprof", "--profiling-bind-address=127.0.0.1:0", env=dict(os.environ, LD_PRELOAD=library))
    equal(r.returncode, 1, r.stderr)
    lines = [line for line in r.stderr.splitlines() if "cannot" in line]
    equal(len(lines), 1, r.stderr)
    contains(lines[0], "hello: cannot serve profiles: the HTTP server cannot listen: ")
    equal(lines[0].count("cannot serve profiles"), 1, lines[0])


@test
def with_on_error_warn_it_goes_on_and_says_so_where_readiness_is_asked():
    with taken_port() as port:
        with daemon(SUBJECT, "--enable-pprof", "--profiling-bind-address=127.0.0.1:%d" % port,
                    "--profiling-on-error=warn", "--health-probe-bind-address=127.0.0.1:0", port_file=False) as d:
            found = poll(lambda: re.search(r'serving health url="http://127\.0\.0\.1:(\d+)"', d.output()), "health")
            d.port = int(found.group(1))
            r = poll(lambda: (lambda r: r if r.status == 200 else None)(d.get("/readyz?verbose")))
            contains(r.text, "[+]profiling off: address in use\n")
            warnings = [line for line in d.output().splitlines() if " warn" in line]
            equal(len(warnings), 1, d.output())
            contains(warnings[0], "cannot serve profiles on 127.0.0.1:%d: Address already in use" % port)
            equal(d.stop(), 0)


@test
def what_else_cannot_be_had_is_told_the_same_way():
    for address, why in (("192.0.2.1:6060", "no interface of this machine has that address"),
                         ("unix:/nonexistent/x.sock", "its directory does not exist"),
                         ("fd:3", "LISTEN_FDS is not set"),
                         ("no-such-host.invalid:6060", "cannot resolve host")):
        r = run(HELLO, "--enable-pprof", "--profiling-bind-address=" + address)
        equal(r.returncode, 1, address)
        contains(r.stderr, "cannot serve profiles on " + address)
        contains(r.stderr, why)


@test
def usr1_switches_it_off_and_on_and_nothing_stays_behind():
    with daemon(SUBJECT, "--enable-pprof") as d:
        equal(d.get("/debug/pprof/").status, 200)
        for n in range(1, 4):
            d.signal(signal.SIGUSR1)
            poll(lambda: d.output().count("profiling switched off") == n, "off")
            equal((sockets_of(d.pid), own_threads(d.pid)), ([], []), "off is off")
            if os.path.exists(d.port_file):
                os.unlink(d.port_file)
            d.signal(signal.SIGUSR1)
            poll(lambda: d.output().count("profiling switched on") == n, "on")
            d.wait_port()
            equal(d.get("/debug/pprof/").status, 200)
        equal(d.stop(), 0)


@test
def usr1_switches_on_what_was_never_enabled():
    with daemon(SUBJECT, wait=False) as d:
        d.wait_log("profiling is off")
        d.signal(signal.SIGUSR1)
        d.wait_port()
        equal(d.get("/debug/pprof/").status, 200)


@test
def usr1_on_a_busy_port_is_a_log_line_and_no_end():
    with taken_port() as port:
        with daemon(SUBJECT, "--profiling-bind-address=127.0.0.1:%d" % port, port_file=False) as d:
            d.wait_log("profiling is off")
            d.signal(signal.SIGUSR1)
            d.wait_log("cannot serve profiles on 127.0.0.1:%d: Address already in use" % port)
            equal(d.process.poll(), None)
            equal(d.stop(), 0)


def reload(d):
    before = d.output().count("reload")
    d.signal(signal.SIGHUP)
    poll(lambda: d.output().count("reload") >= before + 2, "the reload to end")


def write(path, text, mode=0o600):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.chmod(path + ".new", mode)
    os.rename(path + ".new", path)


@test
def hup_applies_what_the_config_file_says_now():
    with tempdir() as t:
        config, port_file = os.path.join(t, "c.yaml"), os.path.join(t, "port")
        write(config, "profiling: {enabled: false}\n")
        with daemon(SUBJECT, "--config", config, "--profiling-port-file", port_file, port_file=False) as d:
            d.port_file = port_file
            d.wait_log("profiling is off")
            write(config, "profiling: {enabled: true, address: '127.0.0.1:0'}\n")
            reload(d)
            d.wait_port()
            equal(d.get("/debug/pprof/").status, 200)
            old = d.port
            os.unlink(port_file)
            write(config, "profiling: {enabled: true, address: '127.0.0.2:0'}\n")
            reload(d)
            d.wait_port()
            equal(d.host, "127.0.0.2")
            equal(d.get("/debug/pprof/").status, 200)
            with socket.socket() as s:
                equal(s.connect_ex(("127.0.0.1", old)) != 0, True, "the old address is left")
            write(config, "profiling: {enabled: false}\n")
            reload(d)
            poll(lambda: sockets_of(d.pid) == [], "off")
            equal(d.stop(), 0)


@test
def hup_with_nothing_new_keeps_the_server_and_what_usr1_did():
    with daemon(SUBJECT, "--enable-pprof") as d:
        before = listeners_of(d.pid)
        equal(len(before), 1)
        reload(d)
        equal(listeners_of(d.pid), before, "the same listener")
        d.signal(signal.SIGUSR1)
        poll(lambda: sockets_of(d.pid) == [], "off")
        reload(d)
        equal(sockets_of(d.pid), [], "a reload does not undo a switch")


@test
def hup_that_adds_a_debug_socket_leaves_on_what_usr1_switched_on():
    with tempdir() as t:
        config = os.path.join(t, "c.yaml")
        write(config, "")
        with daemon(SUBJECT, "--config", config, wait=False) as d:
            d.wait_log("profiling is off")
            d.signal(signal.SIGUSR1)
            d.wait_port()
            write(config, "debug-socket-path: %s/s\n" % t)
            reload(d)
            equal(unix_get(t + "/s", "/debug/pprof/")[0], 200)
            equal(d.get("/debug/pprof/").status, 200)
            equal(d.stop(), 0)


@test
def hup_with_a_bad_config_keeps_the_old_one():
    with tempdir() as t:
        config, port_file = os.path.join(t, "c.yaml"), os.path.join(t, "port")
        write(config, "profiling: {enabled: true, address: '127.0.0.1:0'}\n")
        with daemon(SUBJECT, "--config", config, "--profiling-port-file", port_file, port_file=False) as d:
            d.port_file = port_file
            d.wait_port()
            write(config, "profiling: {enabled: true, address: '6060'}\n")
            d.signal(signal.SIGHUP)
            d.wait_log("missing host part")
            contains(d.output(), config + ":1")
            equal(d.get("/debug/pprof/").status, 200)


@test
def hup_with_an_address_that_cannot_be_had_goes_on_with_the_old_one():
    with tempdir() as t, taken_port() as port:
        config, port_file = os.path.join(t, "c.yaml"), os.path.join(t, "port")
        write(config, "profiling: {enabled: true, address: '127.0.0.1:0'}\n")
        with daemon(SUBJECT, "--config", config, "--profiling-port-file", port_file, port_file=False) as d:
            d.port_file = port_file
            d.wait_port()
            before = listeners_of(d.pid)
            write(config, "profiling: {enabled: true, address: '127.0.0.1:%d'}\n" % port)
            d.signal(signal.SIGHUP)
            d.wait_log("Address already in use")
            d.wait_log("going on with what was before")
            equal(listeners_of(d.pid), before)
            equal(d.get("/debug/pprof/").status, 200)
            equal(d.stop(), 0)


@test
def hup_that_cannot_switch_it_on_leaves_no_word_of_it_behind():
    with tempdir() as t, taken_port() as port:
        config = os.path.join(t, "c.yaml")
        write(config, "profiling: {enabled: false}\n")
        with daemon(SUBJECT, "--config", config, "--health-probe-bind-address=127.0.0.1:0", port_file=False) as d:
            d.port = int(poll(lambda: re.search(r'serving health url="http://127\.0\.0\.1:(\d+)"', d.output()), "health")[1])
            d.wait_log("profiling is off")
            write(config, "profiling: {enabled: true, address: '127.0.0.1:%d'}\n" % port)
            d.signal(signal.SIGHUP)
            d.wait_log("going on with what was before")
            contains(d.get("/readyz?verbose").text, "[+]profiling ok\n")
            equal(d.stop(), 0)


@test
def hup_changes_the_rate_of_heap_sampling_without_a_new_server():
    with tempdir() as t:
        config = os.path.join(t, "c.yaml")
        write(config, "heap-profile-rate: 4KiB\n")
        with daemon(HELLO, "--enable-pprof", "--config", config) as d:
            contains(d.get("/debug/pprof/heap?debug=1").text, "@ heap/8192")
            before = listeners_of(d.pid)
            equal(len(before), 1)
            write(config, "heap-profile-rate: 16KiB\n")
            reload(d)
            contains(d.get("/debug/pprof/heap?debug=1").text, "@ heap/32768")
            equal(listeners_of(d.pid), before)


@test
def hup_reads_the_token_again():
    with tempdir() as t:
        token = os.path.join(t, "token")
        write(token, "first\n")
        with daemon(SUBJECT, "--enable-pprof", "--profiling-token-file=" + token) as d:
            equal(d.get("/debug/pprof/").status, 401)
            equal(d.get("/debug/pprof/?token=first").status, 200)
            write(token, "second\n")
            equal(d.get("/debug/pprof/?token=first").status, 200, "until a reload")
            reload(d)
            equal(d.get("/debug/pprof/?token=first").status, 401)
            equal(d.get("/debug/pprof/", headers={"Authorization": "Bearer second"}).status, 200)
            need("first" not in d.output() and "second" not in d.output(), "a token is never logged")


@test
def a_unix_socket_has_mode_0600_and_goes_at_exit():
    with tempdir() as t:
        path = os.path.join(t, "x.sock")
        with daemon(SUBJECT, "--enable-pprof", "--profiling-bind-address=unix:" + path, port_file=False) as d:
            poll(lambda: os.path.exists(path) and "starting profiling server" in d.output(), "the socket")
            equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            equal(unix_get(path, "/debug/pprof/")[0], 200)
            equal(d.stop(), 0)
        need(not os.path.exists(path), "left behind")
        # A crash leaves it; the next start takes its place.
        with daemon(SUBJECT, "--enable-pprof", "--profiling-bind-address=unix:" + path, port_file=False) as d:
            d.wait_log("starting profiling server")
            d.process.kill()
            d.wait()
        need(os.path.exists(path))
        with daemon(SUBJECT, "--enable-pprof", "--profiling-bind-address=unix:" + path, port_file=False) as d:
            d.wait_log("starting profiling server")
            equal(unix_get(path, "/debug/pprof/")[0], 200)
            r = run(SUBJECT, "--enable-pprof", "--profiling-bind-address=unix:" + path)
            equal(r.returncode, 1)
            contains(r.stderr, "held by process %d (" % d.pid)


@test
def a_debug_socket_stands_beside_tcp_or_alone():
    with tempdir() as t:
        path = os.path.join(t, "debug.sock")
        with daemon(SUBJECT, "--enable-pprof", "--debug-socket-path=" + path) as d:
            equal(d.get("/debug/pprof/").status, 200)
            equal(unix_get(path, "/debug/pprof/")[0], 200)
            equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with daemon(SUBJECT, "--debug-socket-path=" + path, port_file=False) as d:
            def answer():
                with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):  # it is there before it listens
                    return unix_get(path, "/debug/pprof/")
            equal(poll(answer, "the socket")[0], 200)
            equal(listeners_of(d.pid), [], "no TCP listener")
        with daemon(SUBJECT, "--debug-socket-path=" + path, "--enable-pprof=false", port_file=False) as d:
            d.wait_log("profiling is off")
            equal(sockets_of(d.pid), [])


def unix_send(path, method, url, body=""):
    """Status and body of one request over a unix socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(DEADLINE)
        s.connect(path)
        s.sendall(("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                   % (method, url, len(body), body)).encode())
        data = b""
        while True:
            part = s.recv(65536)
            if not part:
                break
            data += part
    return int(data.split()[1]), data.decode()


@test
def the_debug_socket_shows_the_options_and_sets_the_verbosity():
    with tempdir() as t:
        path, fifo = os.path.join(t, "debug.sock"), os.path.join(t, "commands")
        os.mkfifo(fifo)
        with daemon(SUBJECT, "--enable-pprof", "--debug-socket-path=" + path, "--password=hunter2",
                    env={"TELL_COMMANDS": fifo}) as d:
            status, text = unix_send(path, "GET", "/debug/options")
            equal(status, 200)
            need(re.search(r"^enable-pprof: true +# flag$", text, re.M), text)
            contains(text, "profiling-bind-address: 127.0.0.1:0")
            need("hunter2" not in text, "a secret is not shown")
            equal(unix_send(path, "POST", "/debug/options")[0], 405)
            equal(unix_send(path, "POST", "/debug/flags/v")[0], 405)
            equal(unix_send(path, "GET", "/debug/nosuch")[0], 404)
            equal(unix_send(path, "PUT", "/debug/pprof/heap")[0], 405)
            for junk in "", "x", "1x", " 1", "-3", "99999999999", "0x1":
                equal(unix_send(path, "PUT", "/debug/flags/v", junk)[0], 400, junk)
            for verbosity, heard in ("0", 0), ("3\n", 1), ("0", 1):
                equal(unix_send(path, "PUT", "/debug/flags/v", verbosity)[0], 200)
                before = d.output().count(" did ")
                with open(fifo, "w") as f:
                    f.write("ready\n")
                poll(lambda: d.output().count(" did ") > before, "the command")
                equal(d.output().count(" heard "), heard, "lines of debugging")
            with open(fifo, "w") as f:
                f.write("until %s/end\n" % t)
            poll(lambda: unix_send(path, "GET", "/debug/options")[0] == 503, "the hanging loop to be told")
            equal(unix_get(path, "/debug/pprof/cmdline")[0], 200)
            open(t + "/end", "w").close()
            poll(lambda: unix_send(path, "GET", "/debug/options")[0] == 200, "the loop to go on")
            equal(d.stop(), 0)


@test
def a_debug_socket_that_cannot_be_had_is_named_as_such():
    with tempdir() as t:
        path = os.path.join(t, "taken")
        open(path, "w").close()
        for args in ["--debug-socket-path=" + path], ["--debug-socket-path=" + path, "--enable-pprof", "--profile-port=0"]:
            r = run(SUBJECT, *args)
            equal(r.returncode, 1)
            contains(r.stderr, "cannot serve profiles on unix:%s: there is a file that is not a socket" % path)
            contains(r.stderr, "option '--debug-socket-path'")
            contains(r.stderr, "COMPONENT_DEBUG_SOCKET_PATH")
            need("--profiling-bind-address" not in r.stderr, r.stderr)


@test
def localhost_is_served_on_each_of_its_addresses_and_says_which_it_could_not_have():
    with socket.socket(socket.AF_INET6) as s:
        try:
            s.bind(("::1", 0))
        except OSError:
            raise Skip("no IPv6 here")
        s.listen()
        port = s.getsockname()[1]
        with daemon(SUBJECT, "--enable-pprof", "--profiling-bind-address=localhost:%d" % port, port_file=False) as d:
            d.wait_log("starting profiling server on port %d" % port)
            poll(lambda: "[::1]:%d: Address already in use" % port in d.output(), "the note")
    with daemon(SUBJECT, "--enable-pprof", "--profiling-bind-address=localhost:0", port_file=False) as d:
        found = poll(lambda: re.search(r"starting profiling server on port (\d+)", d.output()), "the start")
        for host in "127.0.0.1", "::1":
            d.host, d.port = host, int(found.group(1))
            equal(d.get("/debug/pprof/").status, 200)


@test
def an_abstract_socket_is_served_with_a_warning():
    name = "@component-test-%d" % os.getpid()
    with daemon(SUBJECT, "--enable-pprof", "--profiling-bind-address=unix:" + name, port_file=False) as d:
        d.wait_log("starting profiling server")
        poll(lambda: "every user of this machine may connect" in d.output(), "the warning")
        equal(unix_get(None, "/debug/pprof/", address="\0" + name[1:])[0], 200)


@test
def a_socket_that_systemd_hands_over_is_served_by_name_and_found_again():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    # The pid is known only after the fork: sh sets it, puts the sockets in place and execs.
    script = 'n=$1; shift; eval "exec 3<&$n 4<&$n"; LISTEN_PID=$$ exec "$@"'
    d = Daemon.__new__(Daemon)
    with tempdir() as t:
        log = open(os.path.join(t, "log"), "wb")
        n = listener.fileno()
        p = subprocess.Popen(["sh", "-c", script, "sh", str(n), program(SUBJECT), "--enable-pprof",
                              "--profiling-bind-address=fd:profiles"], pass_fds=(n,), stdin=subprocess.DEVNULL,
                             stdout=log, stderr=log, env=dict(os.environ, LISTEN_FDS="2", LISTEN_FDNAMES="profiles:strange"))
        text = lambda: open(os.path.join(t, "log")).read()  # noqa: E731
        try:
            poll(lambda: p.poll() is not None or "starting profiling server on port %d" % port in text(), "the start")
            need(p.poll() is None, text())
            d.host, d.port = "127.0.0.1", port
            equal(Daemon.get(d, "/debug/pprof/").status, 200)
            poll(lambda: 'an inherited socket is named by no option address="fd:4" name=strange' in text(), "the warning")
            need('address="fd:3"' not in text(), text())
            p.send_signal(signal.SIGUSR1)
            poll(lambda: "profiling switched off" in text())
            p.send_signal(signal.SIGUSR1)
            poll(lambda: "profiling switched on" in text())
            equal(Daemon.get(d, "/debug/pprof/").status, 200)
            p.terminate()
            equal(p.wait(DEADLINE), 0)
        finally:
            if p.poll() is None:
                p.kill()
                p.wait()
            log.close()
            listener.close()


@test
def a_socket_that_systemd_hands_over_is_claimed_by_profiling_that_is_off():
    script = 'n=$1; shift; eval "exec 3<&$n 4<&$n"; LISTEN_PID=$$ exec "$@"'
    with socket.create_server(("127.0.0.1", 0)) as listener:
        n = listener.fileno()
        with daemon("/bin/sh", "-c", script, "sh", str(n), *command(SUBJECT), "--profiling-bind-address=fd:profiles",
                    "--profiling-enable-file=/nonexistent", port_file=False, env={"LISTEN_FDS": "2", "LISTEN_FDNAMES": "profiles:strange"},
                    pass_fds=(n,)) as d:
            d.wait_log('an inherited socket is named by no option address="fd:4" name=strange')
            need('address="fd:3"' not in d.output(), d.output())


@test
def a_socket_that_systemd_hands_over_is_not_served_twice_under_its_number_and_its_name():
    script = 'n=$1; shift; eval "exec 3<&$n 4<&$n"; LISTEN_PID=$$ exec "$@"'
    env = dict(os.environ, LISTEN_FDS="2", LISTEN_FDNAMES="profiles:probes")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        n = listener.fileno()
        for health, status in ("fd:profiles", 0), ("fd:3", 2), ("fd:4", 0), ("fd:probes", 0):
            r = run("sh", "-c", script, "sh", str(n), *command(SUBJECT), "--check-config", "--enable-pprof",
                    "--profiling-bind-address=fd:profiles", "--health-probe-bind-address=" + health, env=env, pass_fds=(n,))
            equal(r.returncode, status, health + r.stderr)
            if status:
                contains(r.stderr, "--profiling-bind-address=fd:profiles); write the same for both")


@test
def a_unix_socket_that_systemd_hands_over_is_asked_for_the_token_and_any_host():
    script = 'n=$1; shift; eval "exec 3<&$n"; LISTEN_PID=$$ exec "$@"'
    with tempdir() as t, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(t + "/s")
        listener.listen()
        write(t + "/token", "secret\n")
        os.chmod(t + "/token", 0o600)
        n = listener.fileno()
        with daemon("/bin/sh", "-c", script, "sh", str(n), *command(SUBJECT), "--enable-pprof", "--profiling-bind-address=fd:3",
                    "--profiling-token-file=" + t + "/token", "--debug-socket-path=" + t + "/debug", port_file=False,
                    env={"LISTEN_FDS": "1"}, pass_fds=(n,)) as d:
            d.wait_log("starting profiling server")
            cmdline = "/debug/pprof/cmdline"
            equal(unix_get(t + "/s", cmdline)[0], 401)
            equal(unix_get(t + "/s", cmdline + "?token=secret")[0], 200)
            equal(unix_get(t + "/debug", cmdline)[0], 200, "of mode 0600")


@test
def a_secret_is_not_shown_to_whoever_asks_for_the_command_line():
    for args in (["--password=hunter2"], ["--password", "hunter2"]):
        with daemon(SUBJECT, "--enable-pprof", *args) as d:
            body = d.get("/debug/pprof/cmdline").body
            need(b"hunter2" not in body, body)
            need(b"--password" in body, body)


@test
def a_forked_worker_holds_no_descriptor_of_ours():
    with tempdir() as t:
        fifo = os.path.join(t, "commands")
        os.mkfifo(fifo)
        with daemon(SUBJECT, "--enable-pprof", "--health-probe-bind-address=127.0.0.1:0", env={"TELL_COMMANDS": fifo}) as d:
            equal(d.get("/debug/pprof/").status, 200)
            with open(fifo, "w") as f:
                f.write("fork\n")
            worker = int(poll(lambda: re.search(r"did what=fork pid=(\d+)", d.output()), "the worker").group(1))
            # Its own: standard streams and the fifo.  fork() may return to the parent first.
            ours = lambda: {n: to for n, to in descriptors(worker).items()  # noqa: E731
                            if n > 2 and not to.endswith("/commands")}
            poll(lambda: not ours(), "the worker to close what is not its own")
            equal(d.get("/debug/pprof/").status, 200)
            equal(d.stop(), 0)


@test
def an_unwinder_that_is_not_built_is_refused():
    for name in "libunwindx", "nonsense":
        r = run(SUBJECT, "--profiling-unwinder=" + name)
        equal(r.returncode, 2)
        contains(r.stderr, "option '--profiling-unwinder'")
        contains(r.stderr, name)
        contains(r.stderr, "frame-pointer")


@test
def libunwind_that_is_not_installed_is_named_with_its_package():
    with tempfile.TemporaryDirectory() as dir:
        for arch in "x86_64", "aarch64":  # what the loader finds first is no library
            with open("%s/libunwind-%s.so.8" % (dir, arch), "w") as f:
                f.write("no library\n")
        env = dict(os.environ, LD_LIBRARY_PATH=":".join([dir] + os.environ.get("LD_LIBRARY_PATH", "").split(":")[:1]))
        r = run(SUBJECT, "--enable-pprof", "--profiling-bind-address=127.0.0.1:0", "--profiling-unwinder=libunwind", env=env)
        need(r.returncode > 0, r.returncode)
        for words in "libunwind8", "--profiling-unwinder=auto":
            contains(r.stderr, words)


@test
def what_makes_no_sense_is_refused_with_status_2():
    for option in ("--profiling-max-seconds=0", "--profiling-max-requests=-1", "--profile-port=65536", "--profile-port=-2",
                   "--profiling-memory=1KiB", "--profiling-on-error=maybe", "--heap-profile-rate=-1",
                   "--profiling-bind-address=6060", "--health-probe-bind-address=:70000"):
        r = run(SUBJECT, option)
        equal(r.returncode, 2, option + r.stderr)
        contains(r.stderr, option.split("=")[0])
        contains(r.stderr, "Try 'subject --help'")


@test
def a_wildcard_without_a_token_warns_once():
    need_own_network()
    with daemon(SUBJECT, "--enable-pprof", "--profiling-bind-address=0.0.0.0:0", port_file=False) as d:
        d.wait_log("starting profiling server")
        poll(lambda: " warn" in d.output(), "a warning")
        equal(len([line for line in d.output().splitlines() if " warn" in line]), 1, d.output())


@test
def a_reload_that_opens_a_wildcard_warns_by_the_token_that_it_has_then():
    need_own_network()
    for before, then in (True, False), (False, True):
        with tempdir() as t:
            config = os.path.join(t, "config")
            write(os.path.join(t, "token"), "secret\n")

            def text(address, token):
                return "profiling-bind-address: %s:0\n" % address + "profiling-token-file: %s/token\n" % t * token

            write(config, text("127.0.0.1", before))
            with daemon(SUBJECT, "--enable-pprof", "--config", config, port_file=False) as d:
                d.wait_log("starting profiling server")
                write(config, text("0.0.0.0", then))
                reload(d)
                equal("can be read by everybody" in d.output(), not then, d.output())


main()
