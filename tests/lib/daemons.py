"""daemons.py - daemons that others wrote: this machine's, or those that scripts/test has fetched into build/daemons/root."""
import glob
import os
import shutil

from harness import BUILD, Skip
from hooked import preload_env

UNPACKED = os.path.join(BUILD, "daemons", "root")
FOLDERS = ["/usr/sbin", "/usr/bin", "/sbin", "/usr/local/bin"]


def found(name):
    """Its path; postgres and its kind lie in a folder of their version."""
    roots = FOLDERS + [UNPACKED + f for f in FOLDERS]
    versions = [f for root in ("", UNPACKED) for f in sorted(glob.glob(root + "/usr/lib/postgresql/*/bin"))]
    path = shutil.which(name, path=":".join([os.environ.get("PATH", ""), *roots, *versions]))
    if not path:
        raise Skip(name + " is not here, and was not fetched")
    return path


def environment(path, **more):
    """Where it finds its libraries; more: what is set besides."""
    env = dict(os.environ, **more)
    if path.startswith(UNPACKED):
        folders = [f for at in ("/usr/lib", "/lib") for f in glob.glob(UNPACKED + at + "/*-linux-gnu")]
        env.update(LD_LIBRARY_PATH=":".join([more.get("LD_LIBRARY_PATH", ""), *folders]),
                   RSYSLOG_MODDIR="".join(m for f in folders for m in glob.glob(f + "/rsyslog")))
    return env


def under_agent(path):
    """The environment in which the agent serves from it, at a port that nobody else has."""
    return environment(path, COMPONENT_ENABLE_PPROF="1", COMPONENT_PROFILING_BIND_ADDRESS="127.0.0.1:0", **preload_env())
