"""installed.py - what was built, installed once into a folder of this test and used as an outsider would.

prefix() is where it is; as_installed() an environment in which commands, pkg-config and the
loader find it there, as README.md's lines make it; alone() runs a shell script where every
port is free, in a folder of its own.
"""
import atexit
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile

from harness import BUILD, CC, CXX, DEADLINE, Skip, equal, run, started

HOME = tempfile.mkdtemp(prefix="component-installed-")
STAGE = os.path.join(HOME, "stage")
atexit.register(shutil.rmtree, HOME, True)
_made = {}

# Waits for the server that was started last, and fails when it never comes.
UP = r"""
i=0
until curl -s -o /dev/null http://localhost:6060/debug/pprof/cmdline; do
	i=$((i + 1))
	[ $i -lt %d ] && kill -0 $! || exit 9
	sleep 0.1
done
""" % (10 * DEADLINE)


def install(*words):
    r = run("make", "-s", "-C", BUILD, *words, "DESTDIR=" + STAGE, timeout=3600)
    equal(r.returncode, 0, r.stdout[-3000:] + r.stderr[-3000:])


def prefix():
    """Installs once.  pkg-config's files there say that it is where it is; $HOME/libcomponent is it, too."""
    if "prefix" not in _made:
        install("install")
        with open(os.path.join(BUILD, "Makefile")) as f:
            configured = re.search(r"^prefix = (.*)$", f.read(), re.M).group(1)
        folder = STAGE + configured
        for name in os.listdir(folder + "/lib/pkgconfig"):
            path = os.path.join(folder, "lib/pkgconfig", name)
            with open(path) as f:
                text = f.read()
            with open(path, "w") as f:
                f.write(re.sub("^prefix=.*", "prefix=" + folder, text, flags=re.M))
        if not os.path.lexists(HOME + "/libcomponent"):
            os.symlink(folder, HOME + "/libcomponent")
        _made["prefix"] = folder
    return _made["prefix"]


def uninstall():
    install("uninstall")
    del _made["prefix"]


def clean():
    """An environment that says nothing about profiling, and finds go."""
    kept = {k: v for k, v in os.environ.items() if "PPROF" not in k and "PROFIL" not in k
            and not k.startswith("COMPONENT_") and "proxy" not in k.lower()}
    kept["PATH"] = kept.get("PATH", "/usr/bin:/bin") + ":/usr/local/go/bin"
    return kept


def of_go():
    """Where go keeps what it has built: newer ones build pprof when it is first asked for, which takes minutes."""
    if "go" not in _made:
        names, go = ("GOCACHE", "GOPATH"), shutil.which("go", path=clean()["PATH"])
        _made["go"] = dict(zip(names, run(go, "env", *names).stdout.splitlines())) if go else {}
        if go:
            run(go, "tool", "pprof", "-h", timeout=600)
    return _made["go"]


def as_installed():
    env, folder = {**clean(), **of_go()}, prefix()
    env.update(HOME=HOME, PATH="%s/bin:%s" % (folder, env["PATH"]), PKG_CONFIG_PATH=folder + "/lib/pkgconfig",
               LD_LIBRARY_PATH=folder + "/lib", CC=CC, CXX=CXX)
    return env


def alone(script, env, cwd):
    """A shell script in a network namespace of its own; what it printed.  Nothing that it started goes on."""
    namespace = "-n" if os.geteuid() == 0 else "-rn"  # no user namespace is to be had in a chroot
    if not shutil.which("ip") or run("unshare", namespace, "true").returncode != 0:
        raise Skip("no network namespace of our own can be had here")
    argv = ["unshare", namespace, "sh", "-c", "ip link set lo up\n" + script]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, \
            started(argv, cwd=cwd, env=env, start_new_session=True, stdin=subprocess.DEVNULL, stdout=out, stderr=err) as p:
        try:
            status = p.wait(5 * DEADLINE)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
        out.seek(0)
        err.seek(0)
        said = out.read()
        equal(status, 0, "%s\n%s%s" % (script, said[-3000:], err.read()[-3000:]))
    return said
