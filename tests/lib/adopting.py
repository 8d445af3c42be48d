"""adopting.py - what the tests of daemons that others wrote share: their sources with what examples/adopt/ puts into
them, questions to their profiles, and the rules that hold for each patch.  scripts/test fetches the sources; without
one its tests are skipped.

Tests: tests/whole/adopt_*.t, tests/components/adopted.t.
"""
import atexit
import contextlib
import difflib
import glob
import http.client
import os
import re
import shutil
import socket
import subprocess
import tempfile

from harness import *  # noqa: F403
from hooked import INCLUDES

ADDED_MAX = 25  # lines, in each daemon
ROOT = os.geteuid() == 0
PUBLIC = " ".join(i for i in INCLUDES if i.endswith("/include"))  # as "pkg-config --cflags": no header of ours of another name
# Kinds that any daemon under load has samples in; and those that answer whatever it does.  Windows last a second or two.
BY_NAME = ("profile?seconds=2", "fgprof?seconds=1", "goroutine?", "heap?gc=1", "allocs?", "threadcreate?")
OTHERS = ("mutex", "block", "trace?seconds=1", "mmap", "memory", "threads?debug=1", "goroutineleak", "cmdline", "")
# Whoever runs the tests may have these set for programs of his own.
CLEAN = {k: v for k, v in os.environ.items() if "PPROF" not in k and "PROFIL" not in k}
work = tempfile.mkdtemp(prefix="component-adopt-")
os.chmod(work, 0o755)
atexit.register(shutil.rmtree, work, True)


def must(*argv, cwd, env=None, timeout=1800):
    """Runs it to its end, which has to be 0; gives what it printed."""
    r = subprocess.run(argv, cwd=cwd, env={**CLEAN, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    equal(r.returncode, 0, "%s\n%s\n%s" % (" ".join(argv), r.stdout[-3000:], r.stderr[-3000:]))
    return r.stdout


def daemon_source(name):
    """A copy of the daemon's source, as it is: its folder."""
    found = glob.glob(os.path.join(BUILD, "sources", name + "-*/"))
    if not found:
        raise Skip("the source of %s is not here: it was not fetched" % name)
    folder = os.path.join(work, name)
    shutil.rmtree(folder, True)  # of a test that failed half-way
    shutil.copytree(found[0], folder)
    return folder


def adopted_source(name):
    """The same with what examples/adopt/NAME puts into it."""
    folder = daemon_source(name)
    must(os.path.join(SRC, "examples/adopt", name), folder, cwd=work)
    return folder


def few_lines_are_added(name, folder):
    """What examples/adopt/NAME did: at most ADDED_MAX lines, none of the daemon's own changed, none of them written there."""
    with open(os.path.join(SRC, "examples/adopt", name)) as f:
        script = {l.strip().rstrip("\\") for l in f}
    added = 0
    for before in glob.glob(os.path.join(folder, "**/*.orig"), recursive=True):
        with open(before) as a, open(before[:-len(".orig")]) as b:
            theirs, ours = a.readlines(), b.readlines()
        changes = [l for l in difflib.ndiff(theirs, ours) if l[0] in "+-"]
        equal([l for l in changes if l[0] == "-"], [], before)
        added += len(changes)
        equal(sorted(script & {l.strip() for l in theirs if len(l.strip()) > 20}), [], before)
    need(0 < added <= ADDED_MAX, "%d lines are added" % added)


class Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(where, path=""):
    """The answer of the profiling server at where ("127.0.0.1:6060", with or without "http://", or a socket's path) for
    /debug/pprof/PATH, as text."""
    c = Unix(where, 120) if where.startswith("/") else http.client.HTTPConnection(where.removeprefix("http://"), timeout=120)
    try:
        c.request("GET", "/debug/pprof/" + path)
        r = c.getresponse()
        body = r.read()
        equal(r.status, 200, "%s: %s" % (path, body[:300]))
        return body.decode(errors="replace")
    finally:
        c.close()


def processes(where):
    """What the index says: number to address, and which is asked."""
    url = r"http://127\.0\.0\.1:\d+"
    listed = re.findall(r"<li>(\d+)( \(this one\)| \(the parent\)|): (?:<a href='(%s)/debug/pprof/'>|curl --unix-socket (\S+) )" % url, ask(where))
    return {int(pid): tcp or path for pid, _, tcp, path in listed}, {word.strip(" ()"): int(pid) for pid, word, _, _ in listed if word}


def all_of(where, count):
    """Once the index names so many."""
    def look():
        found = processes(where)[0]
        return len(found) == count and found
    return poll(look, "%d processes on the index" % count)


def named_in_every_kind(where, expected, others=OTHERS):
    """Waits until each kind of BY_NAME shows, of each list of expected[kind], a function; asks for the others, too."""
    for kind in BY_NAME:
        def named():
            text = ask(where, kind + "&format=folded")
            return all(any(w in text for w in words) for words in expected[kind.partition("?")[0]])
        poll(named, "its functions in " + kind, 4 * DEADLINE)
    for kind in others:
        ask(where, kind)


def content(path):
    """What the file says, without white space around it; None where there is no such file."""
    with contextlib.suppress(FileNotFoundError):
        with open(path) as f:
            return f.read().strip()


def is_over(pid):
    try:
        return open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
