"""records.py - records that processes write, and those that tests write in their place."""
import contextlib
import os

from ctl import FOLDER
from harness import daemon

SUBJECT = "tests/programs/obedient_daemon"


@contextlib.contextmanager
def recorded(*words, **kw):
    """A daemon whose record is written, which the line tells that comes after it."""
    with daemon(SUBJECT, "--enable-pprof", "--profiling-registry", *words, **kw) as d:
        d.wait_log("starting profiling server")
        yield d


def records():
    return os.listdir(FOLDER) if os.path.exists(FOLDER) else []


def start_of(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rpartition(")")[2].split()[19]


def write_record(pid, start, text, mode=0o600):
    path = "%s/%d.%s" % (FOLDER, pid, start)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path
