#!/usr/bin/env python3
"""debian_daemons.t - daemons of the distribution under the agent, at work: they answer before, meanwhile
and after, every kind of profile is there, none says a word about it, and they end by TERM.
scripts/test fetches them and unpacks them below the build; those that are not there are skipped."""
import contextlib
import http.client
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403
from daemons import found, under_agent  # noqa: E402

KINDS = ("profile?seconds=1&format=folded", "fgprof?seconds=1", "trace?seconds=1", "goroutine?debug=2", "goroutine", "heap", "allocs",
         "mmap", "mutex", "block", "threadcreate", "threads?debug=1", "cmdline", "")
ROOT = os.geteuid() == 0


class Taken(Exception):
    """Somebody else has the port by now."""


def by_udp(question, is_answer):
    def ask(port, d):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(2)
            s.connect(("127.0.0.1", port))
            s.send(question)
            return is_answer(s.recv(512))
    return ask


def by_tcp(question, is_answer):
    def ask(port, d):
        with socket.create_connection(("127.0.0.1", port), 2) as s:
            s.sendall(question)
            return is_answer(s.recv(512))
    return ask


def log_line(port, d):
    with socket.create_connection(("127.0.0.1", port), 2) as s:
        s.sendall(b"<13>a line\n" * 20000)
    return os.path.exists(os.path.join(d, "log"))


def write(d, name, text):
    path = os.path.join(d, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def unbound(d, port):
    text = ('server:\n chroot: "%s"\n directory: "%s"\n username: "%s"\n interface: 127.0.0.1\n port: %d\n do-daemonize: no\n'
            ' use-syslog: no\n logfile: ""\n num-threads: 2\n pidfile: ""\n auto-trust-anchor-file: ""\n module-config: "iterator"\n'
            ' local-zone: "a.test" redirect\n local-data: "a.test A 127.0.0.9"\nremote-control:\n control-enable: no\n')
    root = os.path.join(d, "root") if ROOT else ""  # which has no /proc
    if root:
        os.mkdir(root, 0o755)
    return ["-d", "-c", write(d, "conf", text % (root, root or d, "nobody" if ROOT else "", port))]


def chronyd(d, port):
    if not ROOT:
        raise Skip("chronyd wants to be root")
    text = "cmdport 0\nbindcmdaddress /\nport %d\nbindaddress 127.0.0.1\nallow\nlocal stratum 3\npidfile %s/pid\nuser root\n"
    return ["-d", "-x", "-F", "1", "-f", write(d, "conf", text % (port, d))]  # under a filter that ends it


def rsyslogd(d, port):
    text = ('global(workDirectory="%s")\nmodule(load="imtcp")\ninput(type="imtcp" port="%d" address="127.0.0.1")\n'
            'action(type="omfile" file="%s/log")\n')
    return ["-n", "-i", os.path.join(d, "pid"), "-f", write(d, "conf", text % (d, port, d))]


def nginx(d, port):
    temp = "".join(" %s_temp_path %s/%s;" % (w, d, w) for w in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    text = ("daemon off; master_process off; pid %s/pid; error_log stderr; events {}\nhttp { access_log off;%s\n"
            " server { listen 127.0.0.1:%d; location / { return 200 'hi'; } } }\n")
    return ["-e", "stderr", "-c", write(d, "conf", text % (d, temp, port))]


def memcached(d, port):
    return ["-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "2", "-o", "drop_privileges", *(["-u", "nobody"] if ROOT else [])]


def dnsmasq(d, port):
    return ["-k", "-C", "/dev/null", "--port=%d" % port, "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv", "--no-hosts",
            "--address=/a.test/127.0.0.9", "--pid-file=", "--log-facility=-", *(["--user=nobody"] if ROOT else [])]


def tor(d, port):
    return ["--quiet", "-f", write(d, "conf", "DataDirectory %s/data\nDisableNetwork 1\nSocksPort 0\nControlPort 127.0.0.1:%d\nLog err stdout\n" % (d, port)),
            "--defaults-torrc", write(d, "none", "")]


CONTROL = by_tcp(b"PROTOCOLINFO 1\r\n", lambda a: a.startswith(b"250"))
DNS = by_udp(b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\1x\1a\4test\0\0\1\0\1", lambda a: a.endswith(b"\x7f\0\0\x09"))
NTP = by_udp(b"\x23" + bytes(47), lambda a: struct.unpack("B", a[:1])[0] & 7 == 4)
GET = by_tcp(b"GET / HTTP/1.0\r\n\r\n", lambda a: b"200 OK" in a)
CACHE = by_tcp(b"set a 0 0 3\r\nabc\r\nget a\r\n", lambda a: a.startswith(b"STORED"))


def answers(ask, port, d):
    try:
        return ask(port, d)
    except OSError:
        return False


@contextlib.contextmanager
def running(program, arguments, d, port):
    path = found(program)
    with open(os.path.join(d, "said"), "w") as said:
        p = subprocess.Popen([path, *arguments(d, port)], env=under_agent(path), cwd=d, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        yield p
    finally:
        if p.poll() is None:
            p.kill()
        p.wait()


def profiles_are_taken(program, arguments, ask):
    for _ in range(5):
        with contextlib.suppress(Taken):
            return profiles_are_taken_once(program, arguments, ask)
    raise AssertionError("no port stays free")


def profiles_are_taken_once(program, arguments, ask):
    stop = threading.Event()
    with tempdir() as d:
        os.chmod(d, 0o755)
        port = free_port()

        def load():
            while not stop.is_set():
                answers(ask, port, d)

        with running(program, arguments, d, port) as p:
            def alive():
                if p.poll() is not None:
                    said = open(os.path.join(d, "said")).read()
                    if "in use" in said:
                        raise Taken()
                    raise AssertionError("it ended with %r: %s" % (p.returncode, said))
                return True

            poll(lambda: alive() and answers(ask, port, d), "its answer")
            ours = poll(lambda: alive() and [n for n in listens(p.pid) if n != port], "the server")
            worker = threading.Thread(target=load)
            worker.start()
            try:
                samples = poll(lambda: taken(ours[0]), "samples", 4 * DEADLINE)
            finally:
                stop.set()
                worker.join()
            need(answers(ask, port, d) and p.poll() is None, "it answers no more")
            p.send_signal(signal.SIGTERM)
            equal(p.wait(DEADLINE), 0)
        said = open(os.path.join(d, "said")).read()
        need("component" not in said.replace(d, "") and "[warn]" not in said, said)
        return samples


def taken(port):
    first = None
    for path in KINDS:
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        c.request("GET", "/debug/pprof/" + path)
        r = c.getresponse()
        body = r.read()
        c.close()
        equal(r.status, 200, "%s: %s" % (path, body[:300]))
        first = body.decode() if first is None else first
    return first


@test
def unbound_that_leaves_its_root_answers_and_is_profiled():
    profiles_are_taken("unbound", unbound, DNS)


@test
def chronyd_under_its_own_seccomp_filter_answers_and_is_profiled():
    profiles_are_taken("chronyd", chronyd, NTP)


@test
def memcached_without_privileges_answers_and_is_profiled():
    profiles_are_taken("memcached", memcached, CACHE)


@test
def tor_whose_libevent_and_zlib_are_other_copies_answers_and_is_profiled():
    profiles_are_taken("tor", tor, CONTROL)


@test
def rsyslogd_writes_on_and_is_profiled():
    profiles_are_taken("rsyslogd", rsyslogd, log_line)


@test
def dnsmasq_answers_and_is_profiled():
    profiles_are_taken("dnsmasq", dnsmasq, DNS)


@test
def nginx_answers_and_is_profiled():
    profiles_are_taken("nginx", nginx, GET)


main()
