"""service_manager.py - systemd itself, for a test: process 1 of namespaces of its own, on a copy of the machine.

    with service_manager() as manager:
        manager.sh("systemctl start backend-controller")

The copy is an overlay of /: what systemd and the commands write is gone with them.  The network is the test's.
It has no unit but those that are put into /etc/systemd/system there, and empty targets.  Skip where that cannot be had:
it takes root, overlayfs, and a cgroup of version 2.

What a stranger would get wrong: systemd would have all of the machine's units, and so clean up its /tmp, if it found them;
and what it sets in /proc/sys is the machine's, so that is not to be written.

Tests: tests/project/systemd.t.
"""
import contextlib
import os
import re
import subprocess

from harness import Skip, need, poll, run, started, tempdir

SYSTEMD = "/lib/systemd/systemd"
TARGETS = "basic sysinit sockets shutdown multi-user local-fs slices paths timers umount".split()
COPY = r"""
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$1"
cd "$1"
mkdir upper work root
mount -t overlay -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" overlay root
cd root
mkdir -p proc sys dev run tmp etc/systemd/system before
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t tmpfs -o mode=755 tmpfs dev
while read -r name minor; do
	mknod -m 666 dev/$name c 1 $minor
done <<END
null 3
zero 5
full 7
random 8
urandom 9
END
mknod -m 666 dev/tty c 5 0
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs etc/systemd/system
for target in $3; do
	printf '[Unit]\nDefaultDependencies=no\n' >etc/systemd/system/$target.target
done
pivot_root . before
umount -l /before
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_UNIT_PATH=/etc/systemd/system \
	"$2" --system --unit=basic.target </dev/null
"""


class Manager:
    def __init__(self, pid):
        self.enter = ["nsenter", "-t", str(pid), "-m", "-p", "-i", "-u", "-C", "-r", "-w"]

    def sh(self, commands, **kw):
        """A shell's commands there, in the folder / unless they change it; what they print."""
        r = run(*self.enter, "sh", "-ec", commands, **kw)
        need(r.returncode == 0, "%s\n%s%s" % (commands, r.stdout, r.stderr))
        return r.stdout


@contextlib.contextmanager
def own_cgroup():
    """A cgroup of version 2 for the processes of a block."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        mounts = re.findall(r"^\d+ \d+ \S+ \S+ (\S+) .* - cgroup2 ", f.read(), re.M)
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        ours = re.findall(r"^0::(/.*)$", f.read(), re.M)
    if not mounts or not ours:
        raise Skip("no cgroup of version 2")
    path = "%s%s/component-test-%d" % (mounts[0], ours[0].rstrip("/"), os.getpid())
    try:
        os.mkdir(path)
    except OSError as e:
        raise Skip(str(e))
    try:
        yield path
    finally:
        def gone():
            for folder, _, _ in os.walk(path, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            return not os.path.exists(path)
        poll(gone, "the end of a cgroup")


def first_process(p):
    """The number of process 1 there, once it is systemd."""
    need(p.poll() is None, "ended with %r" % p.poll())
    for child in run("pgrep", "-P", str(p.pid)).stdout.split():
        with contextlib.suppress(OSError):
            if os.readlink("/proc/%s/exe" % child).endswith("/systemd"):
                return child
    return None


@contextlib.contextmanager
def service_manager():
    if os.geteuid() != 0 or not os.path.exists(SYSTEMD):
        raise Skip("it takes root and systemd")
    with tempdir() as d, own_cgroup() as cgroup:
        log = os.path.join(d, "log")
        with open(log, "wb") as f, started(
                ["sh", "-c", 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"', "sh", cgroup,
                 "setpriv", "--pdeathsig", "KILL", "unshare", "--kill-child", "-m", "-p", "-f", "-u", "-i", "-C", "sh", "-c", COPY, "sh", d, SYSTEMD, " ".join(TARGETS)],
                stdin=subprocess.DEVNULL, stdout=f, stderr=f) as p:
            try:
                manager = Manager(poll(lambda: first_process(p), "systemd"))
                poll(lambda: run(*manager.enter, "systemctl", "is-system-running").stdout.strip() in ("running", "degraded"), "its start")
            except AssertionError as e:
                with open(log, encoding="utf-8", errors="replace") as said:
                    raise Skip("no systemd of our own: %s %s" % (e, said.read().strip()[-200:]))
            yield manager
