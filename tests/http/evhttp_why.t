#!/usr/bin/env python3
"""evhttp_why.t - why the server is not libevent's evhttp: each reason that ARCHITECTURE.md and
libcomponent's httpd.c give, shown on the libevent at hand by a server on evhttp that has the
guards which evhttp offers (tests/programs/evhttp_why.c).

A libevent of which a reason is known must show it, or the reason is to be taken out of both.
Another one that does not show it is named in a skip.
"""
import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from serving import *

KNOWN = "2.1.12-stable"  # the libevent that the reasons are of
MENDED = "2.1.12-stable-8+deb12u1"  # the Debian 12 package that has CVE-2026-63388 mended
# What evhttp would do for us.
HTTP_FILES = tuple("libcomponent/http/%s.c" % name for name in ("connection", "request", "reply"))
AUTHORIZED = "Authorization: Bearer secret"
BODY = 1024 * 1024
PROGRAM = "tests/programs/evhttp_why"


def package_version(path):
    """The version of the Debian package that a file belongs to, or None."""
    if shutil.which("dpkg-query"):
        owner = run("dpkg-query", "-S", os.path.realpath(path)).stdout.partition(": ")[0].split(",")[0]
        if owner:
            return run("dpkg-query", "-W", "-f", "${Version}", owner).stdout or None
    return None


def older(a, b):
    return subprocess.run(["dpkg", "--compare-versions", a, "lt", b]).returncode == 0


def at_hand():
    """The version of the libevent at hand, of its package, and both in words."""
    version, library = run(PROGRAM, "version").stdout.split()
    package = package_version(library)
    return version, package, "libevent " + (package or version)


def not_shown(what):
    version, _, name = at_hand()
    need(version != KNOWN, "%s: not so with %s; ARCHITECTURE.md and httpd.c say it is" % (what, name))
    raise Skip("%s does not show it" % name)


class Evhttp(LineDaemon):
    """A server on evhttp; its client's connections are to a unix socket, where what was sent has come."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "s")
        super().__init__(PROGRAM, "serve", self.path)
        equal(self.reply(), "ready")

    def connect(self, timeout=DEADLINE, bind=None):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(timeout)
        if bind:
            s.bind(bind)
        s.connect(self.path)
        return s

    def counts(self):
        words = self.command("counts").split()
        return {k: int(v) for k, v in zip(words[::2], words[1::2])}

    def lives(self):
        try:
            return self.command("counts") != ""
        except OSError:
            return False

    def pending(self, path):
        """A connection whose request is not answered yet."""
        s = self.connect()
        s.sendall(get_line(path, AUTHORIZED))
        poll(lambda: self.counts()["pending"], "the request")
        return s


def evhttp(folder):
    return used(Evhttp(folder))


def answer(s):
    """The status and the header of a reply."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = s.recv(65536)
        need(more, "no whole reply: %r" % data)
        data += more
    return status_of(data), data.partition(b"\r\n\r\n")[0].lower()


def ends(request):
    """{number of the block that was refused: what became of the request}"""
    r = run(PROGRAM, "faults", request)
    equal((r.returncode, r.stderr), (0, ""))
    return {int(n): end for n, _, end in (line.partition(" ") for line in r.stdout.splitlines())}


@test
def a_block_that_evhttp_is_refused_ends_the_process_in_each_request():
    survived = []
    for request in "get", "post", "streamed", "refused", "again":
        got = ends(request)
        need("answered" in got.values() and len(got) > 20, "%s: no such run: %r" % (request, got))
        crashes = {n: end for n, end in got.items() if end.startswith("signal") or end == "exit"}
        print("# %s: %d of %d blocks: %s" % (request, len(crashes), len(got), " ".join(map(str, crashes))))
        for end in crashes.values():
            need(end == "exit" or "/libevent" in end, "the server of this test is at fault: " + end)
        if not crashes:
            survived.append(request)
    if survived:
        not_shown("%s survives each block that is refused" % ", ".join(survived))


@test
def a_body_is_read_before_evhttp_lets_anybody_ask_for_the_token():
    with tempdir() as t, evhttp(t) as d, d.connect() as s:
        head = get_line("/", "Content-Length: %d" % BODY, method="POST")
        s.sendall(head + b"x" * (BODY - 1))
        poll(lambda: d.counts()["received"] == len(head) + BODY - 1, "all but the last byte")
        early = d.counts()["asked"]
        s.sendall(b"x")
        equal(answer(s)[0], 401)
        need(d.counts()["asked"] > early)
    if early:
        not_shown("the token can be asked for by the header")


@test
def ours_asks_for_the_token_before_the_body():
    with tempdir() as t:
        token = os.path.join(t, "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write("secret\n")
        with server("--token-file", token) as d, d.connect() as s:
            s.sendall(get_line(PPROF + "symbol", "Content-Length: %d" % BODY, method="POST"))
            equal(answer(s)[0], 401)


@test
def a_client_bound_to_a_long_path_ends_evhttp():
    """a client bound to a long path ends evhttp before Debian's deb12u1 alone"""
    _, package, name = at_hand()
    with tempdir() as t, contextlib.ExitStack() as stack:
        d = Evhttp(t)
        stack.callback(d.end)
        with d.connect(bind=os.path.join(t, "c" * 60)) as s:
            try:
                s.sendall(get_line("/", AUTHORIZED))
                status = answer(s)[0]
            except (OSError, AssertionError):
                status = None
        if status:
            equal(status, 200)
            need(not package or not older(package, MENDED), "%s survives it; it should not before %s" % (name, MENDED))
            print("# %s has CVE-2026-63388 mended" % name)
            return
        equal(d.wait(), -signal.SIGABRT, d.output())
        contains(d.output(), "Assertion")
        need(not package or "+deb12u" not in package, "%s should have it mended" % name)


@test
def a_byte_while_a_reply_is_pending_ends_evhttp_only_where_it_reads_meanwhile():
    with tempdir() as t, evhttp(t) as d, d.pending("/pending") as s:
        s.sendall(b"G")
        d.counts()  # a turn of its loop, at least
        equal(d.command("release"), "released")
        equal(answer(s)[0], 200)
        s.sendall(get_line("/", AUTHORIZED)[1:])
        equal(answer(s)[0], 200)
    with tempdir() as t:
        d = Evhttp(t)
        try:
            with d.pending("/pending/read") as s:
                s.sendall(b"G")
                lives = [d.lives() for _ in range(3)]  # turns of its loop, at least
            if all(lives):
                not_shown("a byte while it reads ends the process")
            equal(d.wait(), 1, d.output())
            contains(d.output(), "illegal connection state")
        finally:
            d.end()


@test
def evhttp_says_in_html_what_it_does_not_like():
    with tempdir() as t, evhttp(t) as d, d.connect() as s:
        s.sendall(b"GET\r\n\r\n")
        status, head = answer(s)
        equal(status, 400)
    if b"content-type: text/html" not in head:
        not_shown("what it refuses, it refuses in HTML")


@test
def what_our_own_costs_is_as_many_lines_as_the_architecture_says():
    if not shutil.which("git") or run("git", "ls-files", "--error-unmatch", *HTTP_FILES, cwd=SRC).returncode:
        raise Skip("scripts/count needs a git checkout")
    counted = int(run(sys.executable, os.path.join(SRC, "scripts/count"), *HTTP_FILES).stdout.partition("\nall ")[2].split()[1])
    with open(os.path.join(SRC, "ARCHITECTURE.md"), encoding="utf-8") as f:
        said, = re.findall(r"some ([\d,]+)\s+lines\s+of\s+code", f.read())
    print("# %d lines of code in %s" % (counted, " ".join(HTTP_FILES)))
    need(abs(int(said.replace(",", "")) - counted) <= 100, "ARCHITECTURE.md says %s lines of code, it is %d" % (said, counted))


main()
