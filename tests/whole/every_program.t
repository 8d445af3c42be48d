#!/usr/bin/env python3
"""every_program.t - every program of this machine says its --version with the agent as it does without.

Each is run plain, with the agent that is off, and with the agent that serves: same status,
same words.  By default a part of them is run, chosen by lot; a seed that was printed
can be given back as TEST_SEED.  TEST_STRESS=1 runs all.  They have no terminal, nothing on
standard input, an empty folder as home, and where this runs as root, no rights.
"""
import concurrent.futures
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403

FOLDERS = "/usr/bin", "/usr/sbin"
ALWAYS = "curl", "wget", "ps", "top", "gdb", "psql", "gpg", "lslogins", "python3", "perl", "git", "node"  # they once hung
PLAIN_SECONDS = 5      # who takes longer does not answer --version
AGENT_SECONDS = 60     # who hangs, hangs for ever; who is slow takes so long,
AGENT_TIMES = 40       # or so many times as long as plain
CPU_SECONDS = 20       # of the part that is run by default
AT_ONCE = 4
NOBODY = 65534

LEFT_OUT = (
    (r"reboot|shutdown|halt|poweroff|init|telinit|kexec|ctrlaltdel|rtcwake|hwclock", "changes what the machine does"),
    (r"(mkfs|mkswap|mke2fs|mkdosfs|mkntfs|fsck|e2fsck|tune2fs|resize2fs|wipefs|[cs]?fdisk|parted|blkdiscard|badblocks)(\..*)?"
     r"|dd|swapon|swapoff|mount|umount|losetup", "writes to disks, or mounts them"),
    (r"systemctl|systemd.*|udevadm|dmsetup|modprobe|insmod|rmmod|depmod|kmod|sysctl|iptables.*|ip6tables.*|nft|.*tables-.*",
     "talks to the machine's manager or its kernel"),
    (r"dpkg.*|apt.*|update-.*|unminimize|invoke-rc.d|service|debconf.*|tasksel|pam-auth-update|cpan.*|gsutil|gcloud",
     "looks after packages, or asks the network"),
    (r"(user|group)(add|del|mod|mems)|(add|del)(user|group)|.*passwd|(pw|grp)(un)?conv|vipw|vigr|newusers|chage|chsh|chfn|chfn",
     "changes who may log in"),
    (r"killall5?|pkill|kill|skill|snice|fuser|start-stop-daemon", "ends others' programs"),
    (r"yes|script|scriptlive|screen|tmux|agetty|getty|login|su|sudo|runuser|newgrp|sg|sulogin|vimtutor|jconsole|instmodsh",
     "waits for a person"),
    (r"ssh-agent|gpg-agent|dbus-(daemon|launch|run-session)|.*d-wrapper", "goes on in the background"),
)


def left_out(name):
    return next((why for pattern, why in LEFT_OUT if re.fullmatch(pattern, name)), None)


def programs():
    """Their paths, each file once."""
    found = {}
    for folder in FOLDERS:
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            real = os.path.realpath(path)
            if os.path.isfile(real) and os.access(real, os.X_OK) and not left_out(name) and not left_out(os.path.basename(real)):
                found.setdefault(real, path)
    return sorted(found.values())


class Agent:
    """A copy that anybody may read, and a home."""

    def __init__(self, d):
        os.chmod(d, 0o755)
        for path in ("components/preload/libcomponent-preload.so", "components/preload/libcomponent-preload-core.so",
                     "components/.libs/libcomponent.so.0"):
            shutil.copy(os.path.join(BUILD, path), d)
        self.d = d

    def run(self, argv, home, seconds, **more):
        """(status, output, errors); None for the status: it did not end."""
        shutil.rmtree(home, ignore_errors=True)
        os.mkdir(home)
        who = {}
        if os.geteuid() == 0:
            os.chown(home, NOBODY, NOBODY)
            who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        env = dict({"PATH": "/usr/bin:/usr/sbin:/bin:/sbin", "HOME": home, "TMPDIR": home, "LC_ALL": "C.UTF-8", "TERM": "dumb",
                    "PERL_HASH_SEED": "0", "PYTHONHASHSEED": "0"}, **more)
        p = subprocess.Popen(argv, env=env, cwd=home, start_new_session=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, **who)
        try:
            out, err = p.communicate(timeout=seconds)
            return p.returncode, out, err
        except subprocess.TimeoutExpired:
            return None, b"", b""
        finally:
            try:
                os.killpg(p.pid, signal.SIGKILL)  # it, or what it has left behind
            except OSError:
                pass
            p.stdout.close()
            p.stderr.close()
            p.wait()

    def preloaded(self, argv, home, seconds, **more):
        return self.run(argv, home, seconds, LD_PRELOAD=os.path.join(self.d, "libcomponent-preload.so"), **more)


REFUSED = re.compile(rb"libcomponent-preload: profiling is off: the HTTP server is refused: .* has taken over .*\n")


def words(answer, exactly):
    """What is compared: numbers of processes, times and the order of what children say may differ."""
    status, out, err = answer
    if exactly:
        return answer
    return status, [sorted(re.sub(rb"0x[0-9a-f]+|\d+", b"#", text).splitlines()) for text in (out, err)]


def same(answers, answer):
    return any(words(a, exactly) == words(answer, exactly) for a in answers for exactly in (True, False))


def look(agent, path, slot):
    """(what is wrong with it or None, was it refused, does it answer at all)"""
    argv, home = [path, "--version"], os.path.join(agent.d, "home%d" % slot)
    started = time.monotonic()
    plain = [agent.run(argv, home, PLAIN_SECONDS)]
    if plain[0][0] is None:
        return None, False, False
    seconds = AGENT_SECONDS + AGENT_TIMES * (time.monotonic() - started)
    refused = False
    for name, more in ("off", {}), ("on", {"PPROF_BIND_ADDRESS": "127.0.0.1:0"}):
        status, out, err = agent.preloaded(argv, home, seconds, **more)
        if status is None:
            return "%s: hangs while the agent is %s" % (path, name), False, True
        refused = bool(more and REFUSED.search(err))
        answer = status, out, REFUSED.sub(b"", err) if more else err
        # Some say another thing each time.
        while not same(plain, answer) and len(plain) < 6:
            plain.append(agent.run(argv, home, seconds))
        if not same(plain, answer) and same(plain[1:], plain[0]):
            return "%s while the agent is %s:\n  plain %r\n  agent %r" % (path, name, plain[0], answer), False, True
    return None, refused, True


def cpu_used():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@test
def every_program_says_its_version_with_the_agent_as_it_does_without():
    whole = bool(os.environ.get("TEST_STRESS"))
    seed = int(os.environ.get("TEST_SEED") or random.randrange(1 << 30))
    paths = programs()
    random.Random(seed).shuffle(paths)
    paths.sort(key=lambda p: os.path.basename(p) not in ALWAYS)
    wrong, silent, refused, done = [], [], [], 0
    start = cpu_used()
    with tempdir() as d, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        agent = Agent(d)
        for first in range(0, len(paths), 4 * AT_ONCE):
            if not whole and cpu_used() - start > CPU_SECONDS:
                break
            some = paths[first:first + 4 * AT_ONCE]
            for path, (what, was_refused, answers) in zip(some, pool.map(look, [agent] * len(some), some, range(len(some)))):
                done += answers
                wrong += [what] if what else []
                refused += [path] if was_refused else []
                silent += [] if answers else [path]
    print("# %d of %d programs, TEST_SEED=%d; no answer within %d s, plain: %s; refused with a sentence: %s" % (
        done, len(paths), seed, PLAIN_SECONDS, " ".join(silent) or "none", " ".join(refused) or "none"))
    need(done > 20, "only %d programs were run" % done)
    need(not wrong, "\n".join(wrong))


# ---- libraries ----

# The 50 that most programs of Debian need, by what is installed with them; libc and libm are in all.
LIBRARIES = """libz.so.1 libstdc++.so.6 libglib-2.0.so.0 libgobject-2.0.so.0 libgio-2.0.so.0 libX11.so.6 libcrypto.so.3 libssl.so.3
libxml2.so.2 libcurl.so.4 libcurl-gnutls.so.4 libgnutls.so.30 libsqlite3.so.0 libtinfo.so.6 libncursesw.so.6 libreadline.so.8
libpcre2-8.so.0 libselinux.so.1 liblzma.so.5 libbz2.so.1.0 libzstd.so.1 liblz4.so.1 libgcrypt.so.20 libgpg-error.so.0
libp11-kit.so.0 libidn2.so.0 libunistring.so.2 libnettle.so.8 libgmp.so.10 libsystemd.so.0 libudev.so.1 libdbus-1.so.3
libcap.so.2 libacl.so.1 libpam.so.0 libblkid.so.1 libmount.so.1 libuuid.so.1 libkrb5.so.3 libgssapi_krb5.so.2 libldap-2.5.so.0
libexpat.so.1 libffi.so.8 libseccomp.so.2 libnghttp2.so.14 libpng16.so.16 libfreetype.so.6 libevent-2.1.so.7 libpq.so.5
libgomp.so.1""".split()

PROGRAM = """
#include <libintl.h>
#include <locale.h>
#include <stdio.h>
#ifdef LINKED
#include <component/profiler.h>
#endif
int main(int argc, char **argv)
{
	setlocale(LC_ALL, "");
	bindtextdomain("x", "/nowhere");
	textdomain("x");
#ifdef LINKED
	if (argc > 1 && component_profiler_start(argv[1]) < 0)
		return 1;
#endif
	(void)argc;
	(void)argv;
	setlocale(LC_NUMERIC, "C");
	puts(gettext("alive"));
	return 0;
}
"""


def beside(d, agent, objects, path, slot):
    """What is wrong with a program that has this library beside it."""
    wrong = []
    home = os.path.join(agent.d, "home%d" % slot)
    for mode in "linked", "foreign":
        exe = os.path.join(d, "%s%d" % (mode, slot))
        r = subprocess.run([CC, objects[mode], "-o", exe, "-Wl,--no-as-needed"] + link(mode) +
                           [path, "-Wl,--allow-shlib-undefined", "-Wl,-rpath," + d, "-pthread", "-ldl"], capture_output=True, text=True)
        if r.returncode:
            wrong.append("%s: does not link: %s" % (path, r.stderr[-500:]))
            continue
        start = agent.preloaded if mode == "foreign" else agent.run
        runs = ("off", [exe], {}), ("on", [exe] + ["127.0.0.1:0"] * (mode == "linked"),
                                    {"PPROF_BIND_ADDRESS": "127.0.0.1:0"} if mode == "foreign" else {})
        for name, argv, more in runs:
            answer = start(argv, home, AGENT_SECONDS, **more)
            if answer != (0, b"alive\n", b""):
                wrong.append("%s beside a %s program that is %s: %r" % (path, mode, name, answer))
    return wrong


@test
def a_program_starts_with_each_of_the_most_used_libraries_beside_it():
    paths = []
    for name in LIBRARIES:
        found = [p for p in (os.path.join(folder, name) for folder in library_folders()) if os.path.exists(p)]
        paths += found[:1]
    if not paths:
        raise Skip("none of %d libraries is installed" % len(LIBRARIES))
    wrong = []
    with tempdir() as d, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        agent = Agent(d)
        source_file = os.path.join(d, "x.c")
        with open(source_file, "w") as f:
            f.write(PROGRAM)
        objects = {}
        for mode in "linked", "foreign":
            objects[mode] = os.path.join(d, mode + ".o")
            compile_(CC, *BASE, *(["-DLINKED"] if mode == "linked" else []), "-c", source_file, "-o", objects[mode])
        n = len(paths)
        for what in pool.map(beside, [d] * n, [agent] * n, [objects] * n, paths, range(n)):
            wrong += what
    print("# %d libraries, %d of the list are not installed" % (len(paths), len(LIBRARIES) - len(paths)))
    need(not wrong, "\n".join(wrong))


main()
