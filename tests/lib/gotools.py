"""gotools.py - every Go that is installed, for the tests that read the words of its tools.

The words differ from version to version: Debian 12's own Go is 1.19, and people use newer
ones.  A test asks agreed() for what it has read out of them, which must be the same for all,
or takes all of them one after the other from pprofs().
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request

from harness import BUILD, DEADLINE, Skip, equal, need, run
from pprof_reader import Profile

BUILDS = 600  # seconds, on a busy machine
ENV = dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="", GOTELEMETRY="off")
_gos = []
_tools = {}


def gos():
    """(version, program) of each Go, the one that the PATH finds first: (1, 19), "/usr/lib/go-1.19/bin/go"."""
    if not _gos:
        found = [shutil.which("go"), "/usr/local/go/bin/go"] + sorted(glob.glob("/usr/lib/go-1.*/bin/go"))
        for go in filter(None, found):
            r = run(go, "env", "GOVERSION", env=ENV) if os.path.exists(go) else None
            m = re.match(r"go(\d+)\.(\d+)", r.stdout) if r else None
            version = (int(m.group(1)), int(m.group(2))) if m else None
            if version and version not in [v for v, _ in _gos]:
                _gos.append((version, go))
    return _gos


def tools(name="trace"):
    """(version, program) of each go tool NAME: (1, 19), "/usr/lib/.../trace"."""
    if name not in _tools:
        _tools[name] = []
        for version, go in gos():
            run(go, "tool", name, "-h", env=ENV, timeout=BUILDS)  # newer ones build it when it is first asked for
            path = run(go, "tool", "-n", name, env=ENV).stdout.strip()
            need(os.path.exists(path), "%s has no tool %s: %r" % (go, name, path))
            _tools[name].append((version, path))
    return _tools[name]


class Pprof:
    """go tool pprof of one Go: called with its arguments, it returns what it prints."""

    def __init__(self, version, path):
        self.version, self.path, self.name = version, path, "go1.%d tool pprof" % version[1]

    def __call__(self, *args):
        r = run(self.path, *args, env=dict(ENV, PPROF_TMPDIR=BUILD))
        # A profile in text form names no program.
        complaints = r.stderr.replace("Main binary filename not available.\n", "")
        equal((r.returncode, complaints), (0, ""), "%s %s" % (self.name, " ".join(args)))
        return r.stdout


def pprofs():
    """The go tool pprof of every Go."""
    if not gos():
        raise Skip("no Go is here")
    return [Pprof(version, path) for version, path in tools("pprof")]


def newest_pprof():
    """The path of the newest Go's."""
    return max(pprofs(), key=lambda p: p.version).path


def rows_of_pprof(path, kind, unit, *options):
    """{name: [flat, cum]} of each row of -top, in that unit, and the total."""
    r = run(newest_pprof(), "-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-symbolize=none", "-sample_index=" + kind,
            "-unit=" + {"nanoseconds": "ns", "bytes": "B"}.get(unit, unit), *options, path, env=dict(ENV, PPROF_TMPDIR=BUILD))
    equal(r.returncode, 0, r.stderr)
    head, _, table = r.stdout.partition("      flat  flat%   sum%        cum   cum%\n")
    rows = {}
    for line in table.splitlines():
        flat, _, _, cum, _, name = line.split(None, 5) if len(line.split()) > 5 else line.split() + [""]
        name = re.sub(r" \((partial-)?inline\)$", "", name)
        need(name not in rows, "two rows of %s: %s" % (name, r.stdout))
        rows[name] = [float(re.sub(r"[A-Za-z]+$", "", n)) for n in (flat, cum)]
    return rows, float(re.search(r"of (-?[\d.]+)\w* total", head).group(1)) if "total" in head else None


def to_the_minute(text, go):
    """Older ones of Go write "Time: Nov 25, 2026 at 9:44pm (UTC)", without seconds: both tables with times as these."""
    found = re.search(r"^Time: (\w+ \d+, \d+ at \d+:\d+[ap]m) ", go, re.M)
    if found:
        minute = time.strftime("%Y-%m-%d %H:%M", time.strptime(found[1], "%b %d, %Y at %I:%M%p"))
        go = go.replace(found[1] + " (", minute + " (")
        text = re.sub(r"^(Time: [\d-]+ \d+:\d+):\d+ (\S+)$", r"\1 (\2)", text, flags=re.M)
    return text, go


def agreed(read, *args):
    """read(pprof, *args) of every Go, which must be the same."""
    values = [(pprof.name, read(pprof, *args)) for pprof in pprofs()]
    for name, value in values[1:]:
        equal(value, values[0][1], "what %s and %s say" % (name, values[0][0]))
    return values[0][1]


def readers(form):
    """The programs that should open a format."""
    found = [path for version, path in tools() if form == "go1.19" or version >= (1, 22)]
    if not found:
        raise Skip("no Go is here that reads %s: %s" % (form, [v for v, _ in tools()]))
    return found


def opens(tool, path, what):
    """All of it, to the end: newer tools make profiles and pages of what comes before an error."""
    newer = any(known == tool and version >= (1, 24) for version, known in tools())
    r = run(tool, "-d=parsed" if newer else "-pprof=sync", path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    equal((r.returncode, r.stderr), (0, ""), "%s, %s" % (tool, what))


def is_exact(tool):
    """In -pprof=sched and syscall: older ones leave out who was preempted, or count beyond the end (golang/go#74850)."""
    return any(path == tool and version >= (1, 26) for version, path in tools())


def waited(tool, path, kind, names=set):
    """Nanoseconds of -pprof=KIND, by each function that is on the stack, or by those that names() gives of it."""
    r = run(tool, "-pprof=" + kind, path, text=False)
    equal(r.returncode, 0, "%s: %s" % (tool, r.stderr.decode()))
    p = Profile(r.stdout)
    column = [unit for _, unit in p.types].index("nanoseconds")
    found = {}
    for stack, values, _ in p.samples:
        for name in names(p.stack(stack)):
            found[name] = found.get(name, 0) + values[column]
    return found


class Viewer:
    """go tool trace's web server."""

    def __init__(self, tool, path):
        self.process = subprocess.Popen([tool, "-http=127.0.0.1:0", path], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        env=dict(os.environ, BROWSER="true", DISPLAY=""))

    def __enter__(self):
        said = []
        for line in self.process.stderr:
            said.append(line)
            m = re.search(r"listening on (http://\S+)", line)
            if m:
                self.url = m.group(1)
                return self
        raise AssertionError("it does not serve: " + "".join(said))

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(DEADLINE)
        self.process.stderr.close()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=DEADLINE * 4) as r:
            equal(r.status, 200, path)
            return r.read().decode("utf-8", "replace")
