"""shell_job.py - a program as the job of a shell on a terminal of its own."""
import contextlib
import os
import pty
import select
import signal
import sys

from ctl import environment
from harness import DEADLINE, need, text_of

__all__ = ["processes_of", "shell_job", "until"]


def until(fd, text):
    """What a terminal shows, as far as text."""
    said = b""
    while text not in said:
        need(select.select([fd], [], [], DEADLINE)[0], said)
        said += os.read(fd, 1000)
    return said


# A job of a terminal, which Enter continues.
SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while os.WIFSTOPPED(status := os.waitpid(pid, os.WUNTRACED)[1]):
    os.tcsetpgrp(0, os.getpid())
    print("job", "stopped", flush=True)
    input()
    os.tcsetpgrp(0, pid)
    os.killpg(pid, signal.SIGCONT)
print("job", "ended", os.waitstatus_to_exitcode(status), flush=True)
"""


def processes_of(session):
    """Number to name."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.getsid(int(pid)) == session:
                found[int(pid)] = text_of("/proc/%s/comm" % pid).strip()
    return found


@contextlib.contextmanager
def shell_job(argv, **variables):
    """The terminal's other end."""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.execve(sys.executable, [sys.executable, "-c", SHELL, *argv], environment(**variables))
        finally:
            os._exit(99)
    try:
        yield fd
    finally:
        for left in processes_of(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        os.close(fd)
        os.waitpid(pid, 0)
