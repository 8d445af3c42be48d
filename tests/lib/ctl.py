"""ctl.py - componentctl where nobody else has records: in a mount namespace whose /run is empty."""
import contextlib
import json
import os
import shutil
import subprocess
import sys

from harness import BUILD, DEADLINE, Skip, need, poll, run, text_of
from hooked import LIBS

CTL = os.path.join(BUILD, "components/componentctl/componentctl")
FOLDER = "/run/component"
# For a Python program: confine() puts its thread under a seccomp filter, which allows everything.
FILTER = """
import ctypes, os, sys, time
def confine():
    libc = ctypes.CDLL(None, use_errno=True)
    program = (ctypes.c_uint16 * 4)(6, 0, 0, 0x7fff)  # BPF_RET: allow
    head = (ctypes.c_uint64 * 2)(1, ctypes.addressof(program))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(head), 0, 0):
        sys.exit(9)
"""

_perf = {}
_own = os.environ.pop("OWN_RUN", None)  # programs that are tested do not see it


def own_run():
    """Starts this test again with a /run of its own, once."""
    if _own:
        return
    unshare = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-ec"]
    mount = "mount -t tmpfs -o mode=755 tmpfs /run; "
    if subprocess.run(unshare + [mount], stderr=subprocess.DEVNULL).returncode == 0:
        os.execvpe("unshare", unshare + [mount + 'exec "$@"', "sh", sys.executable] + sys.argv, dict(os.environ, OWN_RUN="1"))


def need_own_run():
    if not _own:
        raise Skip("no mount namespace of our own can be had here")


def environment(**more):
    """For a program that is to have nothing of ours in its environment; the agent of a build tree finds its core by it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("COMPONENT_", "LD_PRELOAD", "APP_"))}
    return dict(kept, LD_LIBRARY_PATH=LIBS, **more)


def ctl(*words, status=0, **kw):
    """Its output, once it has ended as it should."""
    kw.setdefault("env", environment())
    r = run(CTL, *words, **kw)
    need(r.returncode == status, "componentctl %s: %d, not %d\n%s%s" % (" ".join(words), r.returncode, status, r.stdout, r.stderr))
    return r.stdout if status == 0 else r.stderr


def listed():
    return {r["appId"]: r for r in json.loads(ctl("list", "-o", "json"))}


def is_listed(pid):
    """Also where other tests' processes are listed: see need_own_run()."""
    return any(r["pid"] == pid for r in json.loads(ctl("list", "-o", "json")))


def window_opens(pid):
    poll(lambda: "component-job" in {text_of("/proc/%d/task/%s/comm" % (pid, t)).strip()
                                     for t in os.listdir("/proc/%d/task" % pid)}, "its window")


class _Run(subprocess.Popen):
    def __exit__(self, kind, *rest):
        if kind:
            self.terminate()  # nobody waits for a test that has failed
        return super().__exit__(kind, *rest)


def started_by_ctl(*words, **kw):
    """componentctl run, which goes on; its stderr is a pipe."""
    kw.setdefault("env", environment())
    kw.setdefault("stdin", subprocess.DEVNULL)
    return _Run([CTL, "run", *words], stderr=subprocess.PIPE, text=True, **kw)


UP = "You're up and running! Both Dapr and your app logs will appear here."


def said_at_start(stream):
    """The standard error of componentctl run up to its line that the program is up; nothing behind that is read."""
    said = ""
    while UP not in said and (line := stream.readline()):
        said += line if isinstance(line, str) else line.decode()
    return said


@contextlib.contextmanager
def no_records():
    """A file stands where their folder would be."""
    if os.path.isdir(FOLDER):
        shutil.rmtree(FOLDER)
    with open(FOLDER, "w"):
        pass
    try:
        yield
    finally:
        os.unlink(FOLDER)


def others_can_be_had(path):
    """Whether it is another user's now, and who runs it could gain something."""
    with contextlib.suppress(OSError):  # in a user namespace there is no other user or group
        os.chown(path, 65534, 65534)
        st = os.stat(path)
        return st.st_uid != os.geteuid() and st.st_gid != os.getegid() and may_gain(path)
    return False


def may_gain(path):
    return not os.statvfs(path).f_flag & os.ST_NOSUID and "NoNewPrivs:\t0" in text_of("/proc/self/status")


def need_perf():
    """For CPU time from outside."""
    if "why" not in _perf:
        r = run(CTL, "profile", str(os.getpid()), "--seconds=1", "--folded", "-o", "/dev/null", env=environment())
        refused = "cannot be sampled from outside here" in r.stderr or "may not be sampled" in r.stderr or "lock no more memory" in r.stderr
        _perf["why"] = r.stderr.strip().splitlines()[-1] if refused else None
    if _perf["why"]:
        raise Skip(_perf["why"])


__all__ = ["CTL", "DEADLINE", "FILTER", "FOLDER", "UP", "ctl", "environment", "listed", "is_listed", "may_gain", "need_own_run", "need_perf", "no_records", "others_can_be_had", "own_run", "said_at_start",
           "started_by_ctl", "window_opens"]
