"""busy.py - what tests/whole/sanitizers.t and tests/whole/languages.t share: a program that runs until its
standard input ends, its server asked for every kind of profile.

The program prints "started", waits for a line, works, and prints "fine" at its end.  What is
expected in a profile is waited for, as nobody knows how slow a tool makes it.
"""
import base64
import os
import re
import subprocess
import tempfile
import urllib.error
import urllib.request
import zlib

import gotools
from harness import DEADLINE, equal, in_background, need, poll, shutil
from hooked import listens, preload_env
from pprof_reader import Profile

STATUS = 3
PATIENCE = 10 * DEADLINE  # under a tool, on a busy machine
RATES = b"heap-profile-rate=512", b"mutex-profile-fraction=1&block-profile-rate=1us"
LINKED = "127.0.0.1:0"
KINDS = "allocs", "block", "fgprof?seconds=1", "goroutine", "heap", "mutex", "profile?seconds=1", "threadcreate"

# tests/programs/Busy.java: javac -g:none --release 8 Busy.java
BUSY_CLASS = zlib.decompress(base64.b64decode(
    "eNp1U0tz21QU/q4l+cqKGhK3ThPShPQB2E4gfVHaOhTSB8SJ8yAOKW6Aothqq1SRPLJc2nUpf4Ad3TDdeMUizkzqaSHM0B0/gVVnuu2whekMNefK"
    "jzpMmNHo3HvOud/57nfO/f3lo20AJ1HQEILEIetQEGboWTNuGeO24VwfX7rhmUaBITxhOZZ/jkGKJ5YlyN8/jSACjaNLh449DPL5cukOGdvN32SI"
    "Zl5BzK+umXk/JfJf09GDXsoqWQ5lsWmNnHt17EOMQV0te86U6ZkUj08npsWB/Tr6MUAOx3XIH1pJaxjEAY4hHcN4YwfV7J2Sb65Trnnb8gVGOrHM"
    "cZBh+FXOXNm2F1zL8U3v0u28WfQt1xF1Dus4gjfpkHvL9IjYFUHsbR1xIYd6w7ULgphwJnWMCmfkmlG2feGVwL77USj4ro5xHGVQSrZpFhu3IAbH"
    "dzBIi9peueibhQ4Ggzip4z2cIn3dMpGPNfSz3PEFj9hmferCekrFaQZe8g2PTms4ixTHhI4PQH3Zu8sBSi6Kne0QYryjJRS2nOupxLKo/JGOSZwn"
    "cS2ns3DaKZZbhTVcxCWOj3V8gqmOWh05dN3GpNCApIVQkpBkRkdGqKUEpIVnTse88Mhr1AYVn9LqmuWYHNkdzWwMjYZFSJRxwS1Q9/dkfSN/c9Yo"
    "LhmrNp34vMWkNanuNyJAFLwyXUVeN8SN+uIru92c40s6vkuI4+p/Ao03kGLQ2h0rcazuqN6O0LhM5O3gseAgyRCiFyZjSowXrabE/JPtF4+GrCrG"
    "mywHE0+P/p/RrpcsI6skH4JtAEEivZFm+DQlKmQPRCalU3JMjvIH6B2JyfeG7xqT38qsUv9z5CeKMyzTn0T/B4rMXhCCKga6ibJItAS54SrU3Mxv"
    "VXTTV0PU2ER38kkFaib5ZPTXDcoJU+X+gPRgYBu4UYTqtGWckOh3+QXhqeJtNPHP0F5cor+KPlmZ74nU8HoF+gxV0USNjSDahW6MNBE5QnMcIypt"
    "c22YTJNmsopDP+CtmvgShBEd+1ndvieAtBreqdSfZXpUUaH+hwAewBDBHmsCq5BwleOYSv24ghXCE8i1QHHgbhUnou9v4UwVH27hwmXlF4Ry0mNE"
    "cg+Rzubk1iozOju2fS5QfOgB9o3F5ONnlQFlC9OB5s8bx+8jXKn/JW/i0P+lz7bST0QXqGqYWG+0VT0MpY6jUDi+4PiKPkYq/Y2+rpfoCna0xtfB"
    "TDEYdLN8W6n9gU4k6WMsEuGlTaiN2cG/Pw83VA=="))


def agent(**order):
    return dict(preload_env(**order), PPROF_BIND_ADDRESS="127.0.0.1:0")


class Busy:
    """It runs while the block does."""

    def __init__(self, argv, env=None):
        self.dir = tempfile.mkdtemp(prefix="component-test-")
        self.err = open(os.path.join(self.dir, "err"), "w+b")
        self.p = subprocess.Popen(argv, env=dict(os.environ, **(env or {})), stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=self.err)

    def __enter__(self):
        try:
            line = self.p.stdout.readline()
            need(line == b"started\n", "not started but %r: %s" % (line, self.said()))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        for f in (self.p.stdin, self.p.stdout, self.err):
            f.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def said(self):
        with open(self.err.name, "rb") as f:
            return f.read().decode("utf-8", "replace")

    def finish(self):
        """Status and output are the program's own; what was said on standard error."""
        self.p.stdin.close()
        out = self.p.stdout.read()
        status = self.p.wait(PATIENCE)
        equal((status, out), (STATUS, b"fine\n"), self.said()[-6000:])
        return self.said()

    def find(self):
        ports = listens(self.p.pid)
        equal(len(ports), 1, "what it listens on: " + self.said())
        self.url = "http://127.0.0.1:%d/debug/pprof/" % ports[0]

    def ask(self, path, body=None):
        return urllib.request.urlopen(self.url + path, body, timeout=PATIENCE).read()

    def refusal(self, path):
        try:
            self.ask(path)
        except urllib.error.HTTPError as e:
            return e.read().decode()
        raise AssertionError("%s was answered" % path)

    def index(self):
        """What it says of this process."""
        page = self.ask("").decode().split("In this process:")[1]
        page = re.sub(r"<[^>]*>", "", page)
        for entity, character in ("&lt;", "<"), ("&gt;", ">"), ("&#39;", "'"), ("&#34;", '"'), ("&amp;", "&"):
            page = page.replace(entity, character)
        return page

    def go(self):
        """Takes all there is, which is on or says why not; then it may begin."""
        for rate in RATES:
            try:
                self.ask("rates", rate)
            except urllib.error.HTTPError as e:
                equal(e.code, 501)
                need(e.read().decode().strip() in self.index(), "a word on the index")
        self.p.stdin.write(b"go\n")
        self.p.stdin.flush()

    def read(self, path):
        """The profile, and the names that have more than nothing in it."""
        raw = self.ask(path)
        profile = Profile(raw)
        found = set()
        for stack, values, _ in profile.samples:
            if any(values):
                found.update(profile.stack(stack))
        return raw, profile, found

    def look(self, kinds, refused=()):
        """Each kind is valid; those of kinds have these functions (parts of names), sooner or later."""
        raws = {}

        def one(path):
            wanted = kinds.get(path.partition("?")[0], ())

            def ready():
                raws[path], profile, found = self.read(path)
                missing = [w for w in wanted if not any(w in name for name in found)]
                return not missing or None
            try:
                poll(ready, "%s in %s" % (wanted, path), PATIENCE / 2)
            except AssertionError as e:
                raise AssertionError("%s; there are %s" % (e, sorted(self.read(path)[2])))
        jobs = [in_background(one, path) for path in KINDS if path.partition("?")[0] not in refused]
        for job in jobs:
            job.result(PATIENCE)
        need(self.ask("trace?seconds=0.2")[:3] == b"go ", "the head of a trace")
        self.opens(raws["profile?seconds=1"])
        return raws

    def opens(self, raw):
        """Go's tools read it."""
        path = os.path.join(self.dir, "profile")
        with open(path, "wb") as f:
            f.write(raw)
        if gotools.gos():
            for pprof in gotools.pprofs():
                need("flat%" in pprof("-top", path), "a table")
