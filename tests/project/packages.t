#!/usr/bin/env python3
"""Debian's packages: built of the tarball's tree, then installed, used and removed again.

They are built without optimisation and without the tests, which have been run by others.  They are installed
into a view of this machine that nobody else has: an overlay of / in a mount namespace, whose changes are in memory.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from documents import blocks  # noqa: E402
from hooked import exported  # noqa: E402
import daemons  # noqa: E402

NAMES = ["component-tools", "libcomponent-common", "libcomponent-dev", "libcomponent-preload", "libcomponent0"]
work = tempfile.mkdtemp(prefix="component-packages-")
made = {}


def packages():
    """Builds them once; the path of each by its name."""
    if "error" in made:
        raise made["error"]
    if not made.get("debs"):
        try:
            made["debs"] = build()
        except (Skip, AssertionError) as e:
            made["error"] = e
            raise
    return made["debs"]


def build():
    for tool, package in (("dpkg-buildpackage", "build-essential"), ("dh", "debhelper")):
        if not shutil.which(tool):
            raise Skip("no " + tool + ": install the Debian package " + package)
    tree = os.path.join(work, "libcomponent")
    r = run("make", "-s", "-C", BUILD, "distdir", "distdir=" + tree, timeout=600)
    equal(r.returncode, 0, r.stderr[-3000:])
    tools = os.path.join(work, "tools")
    os.mkdir(tools)
    with open(tools + "/git", "w") as f:
        f.write("#!/bin/sh\necho \"$@\" >>%s/git-was-asked\nexit 1\n" % work)
        os.fchmod(f.fileno(), 0o755)
    # What is stripped in the end need not be made.
    env = dict(os.environ, PATH=tools + ":" + os.environ["PATH"], DEB_CFLAGS_STRIP="-g", DEB_CXXFLAGS_STRIP="-g",
               DEB_BUILD_OPTIONS="nocheck noopt noautodbgsym terse parallel=%d" % os.cpu_count())
    for name in "CC", "CXX", "MAKEFLAGS", "MFLAGS", "MAKELEVEL":
        env.pop(name, None)
    r = run("sh", "-ec", blocks("sh", "docs/packages.md")[0][1], cwd=tree, env=env, timeout=1800)
    equal(r.returncode, 0, r.stdout[-4000:] + r.stderr[-4000:])
    debs = {re.match(r"[^_]*", n).group(): os.path.join(work, n) for n in os.listdir(work) if n.endswith(".deb")}
    equal(sorted(debs), NAMES)
    return debs


def files_of(name):
    r = run("dpkg-deb", "--fsys-tarfile", packages()[name], text=False)
    listed = run("tar", "-t", input=r.stdout, stdin=None, text=False).stdout.decode()
    return [line[1:] for line in listed.splitlines() if not line.endswith("/")]


@test
def they_are_built_from_the_tarball_alone_and_have_its_version():
    version = re.search(r"AC_INIT\(\[libcomponent\], \[([^]]+)", text_of("configure.ac")).group(1)
    for path in packages().values():
        need(os.path.basename(path).split("_")[1].startswith(version + "-"), path)
    need(not os.path.exists(work + "/git-was-asked"), "git was asked")


@test
def each_has_what_its_description_says():
    triplet = run("dpkg-architecture", "-qDEB_HOST_MULTIARCH").stdout.strip()
    library = "/usr/lib/" + triplet + "/"
    doc = "/usr/share/doc/"
    equal(sorted(f for f in files_of("libcomponent0") if not f.startswith("/usr/share/")),
          [library + "libcomponent.so.0", library + "libcomponent.so.0.0.0"])
    equal([f for f in files_of("libcomponent-preload") if not f.startswith("/usr/share/")], 
          [library + "libcomponent-preload-core.so", library + "libcomponent-preload.so"])
    equal([f for f in files_of("component-tools") if not f.startswith("/usr/share/doc/")],
          ["/usr/bin/componentctl", "/usr/lib/tmpfiles.d/component.conf", "/usr/share/bash-completion/completions/componentctl"] +
          ["/usr/share/man/man1/componentctl%s.1.gz" % c
           for c in ("-annotate", "-disable", "-doctor", "-dump", "-enable", "-list", "-memory", "-profile", "-run", "-sd",
                     "-stop", "-top", "-trace", "")])
    equal([f for f in files_of("libcomponent-common") if not f.startswith("/usr/share/doc/")],
          ["/usr/share/libcomponent/viewer.html.gz"])
    dev = files_of("libcomponent-dev")
    for name in ("libcomponent.a", "libcomponent.so", "libcomponent_hooks.a", "libcomponent_hooks.so",
                 "libcomponent_hooks_nonshared.a", "pkgconfig/libcomponent.pc", "pkgconfig/libcomponent-core.pc"):
        need(library + name in dev, name)
    for name in ("/usr/include/component/profiler.h", "/usr/share/man/man3/component_profiler_start.3.gz",
                 "/usr/share/man/man7/libcomponent.7.gz", doc + "libcomponent-dev/docs/profiling.md",
                 doc + "libcomponent-dev/examples/hello.c", doc + "libcomponent-dev/examples/gitops/gitops.h"):
        need(name in dev, name)
    equal([f for f in dev if f.startswith("/usr/bin/") or f.endswith(".la")], [])


@test
def a_program_needs_the_version_that_its_symbols_came_with():
    r = run("dpkg-deb", "-I", packages()["libcomponent0"], "symbols")
    found = re.findall(r"^ (component_\w+)@COMPONENT_0 0\.2\.0$", r.stdout, re.M)
    equal(found, re.findall(r"^\t(component_\w+);", text_of("components/libcomponent.map"), re.M))


@test
def lintian_has_nothing_to_say():
    packages()
    if not shutil.which("lintian"):
        raise Skip("no lintian: install the Debian package lintian")
    changes, = glob.glob(work + "/*.changes")
    r = run("lintian", "--no-cfg", "--tag-display-limit", "0", "--fail-on", "error,warning", changes, timeout=600,
            env=dict(os.environ, HOME=work))
    equal((r.returncode, r.stdout), (0, ""), r.stderr)
    for path in glob.glob(SRC + "/deploy/debian/*lintian-overrides"):
        lines = text_of(path).splitlines()
        for above, line in zip([""] + lines, lines):
            need(line.startswith("#") or above.startswith("#"), "%s: no reason above %r" % (path, line))


# Outside: a machine like this one, for this script alone.  What is written to it lies in UP/u.
OUTSIDE = r"""
mount --make-rprivate /
mkdir -p {w}/up {w}/root
mount -t tmpfs tmpfs {w}/up
mkdir {w}/up/u {w}/up/w
mount -t overlay overlay -o lowerdir=/,upperdir={w}/up/u,workdir={w}/up/w {w}/root
mount -t proc proc {w}/root/proc
mount --rbind /dev {w}/root/dev
mount -t tmpfs tmpfs {w}/root/tmp
mount -t tmpfs tmpfs {w}/root/usr/local
# The index of all of this machine's manual pages takes a minute to make.
rm -f {w}/root/var/lib/man-db/auto-update
"""
INSIDE = r"""
cd /tmp
quietly() { "$@" >log 2>&1 || { cat log >&2; exit 1; }; }
# Asks the program just started until it answers.
answer() {
	i=0
	until curl -s "$@" >answered; do
		i=$((i + 1))
		[ $i -lt 1000 ] && kill -0 $! || { echo "no answer: $*" >&2; exit 1; }
		sleep 0.03
	done
}
install='dpkg --path-include=* -i' # a container's dpkg may leave manual pages out
quietly $install libcomponent-preload.deb # by itself
COMPONENT_ENABLE_PPROF=true COMPONENT_PROFILING_BIND_ADDRESS=unix:/tmp/agent LD_PRELOAD=libcomponent-preload.so sleep 1000 &
answer --unix-socket agent http://localhost/debug/pprof/cmdline
kill $!
echo "agent $(tr '\0' ' ' <answered)"

quietly $install libcomponent0.deb libcomponent-common.deb component-tools.deb
XDG_RUNTIME_DIR=/tmp componentctl run sleep 1000 2>/dev/null &
i=0
until componentctl list | grep -q ^sleep; do
	i=$((i + 1))
	[ $i -lt 1000 ] && kill -0 $! || { echo "not listed" >&2; exit 1; }
	sleep 0.03
done
componentctl stop sleep

if command -v redis-server >/dev/null; then
	ldconfig # for what lies in /usr/local
	begin=$(date +%s)
	XDG_RUNTIME_DIR=/tmp componentctl run redis-server --port 0 --unixsocket /tmp/redis --save '' >/dev/null 2>&1 &
	i=0
	until componentctl list | grep -q ^redis-server && [ -S redis ]; do
		i=$((i + 1))
		[ $i -lt 1000 ] && kill -0 $! || { echo "not listed" >&2; exit 1; }
		sleep 0.03
	done
	redis-benchmark -s /tmp/redis -P 50 -l -q -t get,set >/dev/null 2>&1 &
	i=0
	# Its processor time is limited, and not the time of a busy machine, on which a window may have few samples.
	until (ulimit -t 15 && componentctl profile redis-server --seconds=2) >table 2>/dev/null && sed '1,/flat%/d' table | grep -qwFf redis-names; do
		i=$((i + 1))
		[ $i -lt 20 ] || { cat table >&2; exit 1; }
	done
	echo "redis took $(($(date +%s) - begin)) s, with windows of 2 s: $((i + 1))"
	sed 's/^/redis table: /' table
	kill $!
	componentctl stop redis-server
fi

quietly $install libcomponent-dev.deb
pkg-config --variable=libdir libcomponent
cc -g hello.c -o hello $(pkg-config --cflags --libs libcomponent)
ldd hello | sed -n 's,.*libcomponent.*=> \(/usr\|\)\([^ ]*\).*,hello runs with \2,p'
./hello --enable-pprof --heap-profile-rate=1 --every=10us --log-file=/dev/null --profiling-bind-address=unix:/tmp/daemon &
answer --unix-socket daemon http://localhost/debug/pprof/
curl -sS --unix-socket daemon 'http://localhost/debug/pprof/allocs?debug=1' | head -n 1
kill $!
wait $! && echo "hello ended well"
grep -o '<title>.*</title>' answered
! command -v man >/dev/null || man -w component_profiler_start libcomponent

dpkg -L libcomponent0 libcomponent-common libcomponent-dev libcomponent-preload component-tools | sort -u >listed
quietly dpkg --purge component-tools libcomponent-dev libcomponent-preload libcomponent0 libcomponent-common
while read -r path; do
	[ -d "$path" ] || [ ! -e "$path" ] || echo "left $path"
done <listed
wc -l <listed
"""
# Of the machine, not of the packages: dpkg's own, and what triggers bring up to date.
KEPT_ANEW = r"(var/(lib/dpkg|cache|log|backups)|etc/ld\.so\.cache|tmp|root|run)(/|$)"


def files_of_redis():
    """The server, what loads it, and those libraries that are not this machine's; none where they are not here."""
    try:
        programs = [daemons.found(name) for name in ("redis-server", "redis-benchmark")]
    except Skip:
        return []
    text = "".join(run("ldd", path, env=daemons.environment(path)).stdout for path in programs)
    return programs + sorted(set(re.findall(r"=> (%s/\S+)" % re.escape(daemons.UNPACKED), text)))


@test
def they_are_installed_used_by_pkg_config_and_the_agent_and_leave_nothing_behind():
    debs = packages()
    redis = files_of_redis()
    outside = OUTSIDE.format(w=work)
    unshare = ["unshare", "-m", "-p", "-f", "--kill-child"] + ([] if os.geteuid() == 0 else ["-r"])
    if run(*unshare, "sh", "-ec", outside).returncode != 0:
        raise Skip("no mount namespace with an overlay of / may be made here")
    with open(work + "/hello.c", "w") as f:
        f.write(text_of("examples/hello.c"))
    with open(work + "/inside", "w") as f:
        f.write(INSIDE)
    copies = "".join("cp %s %s/root/tmp/%s.deb\n" % (path, work, name) for name, path in debs.items())
    if redis:
        with open(work + "/redis-names", "w") as f:
            f.write("\n".join(sorted(exported(redis[0]))))
        copies += "cp %s/redis-names %s/root/tmp/\nmkdir %s/root/usr/local/bin %s/root/usr/local/lib\n" % (4 * (work,))
        copies += "".join("cp -L %s %s/root/usr/local/%s/\n" % (path, work, "lib" if ".so" in path else "bin") for path in redis)
    script = outside + copies + "cp {w}/hello.c {w}/inside {w}/root/tmp/\nchroot {w}/root sh -e /tmp/inside\n" \
        "cd {w}/up/u && find . '(' -type f -o -type l ')' -printf 'changed %P\\n'\n".format(w=work)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("COMPONENT_", "PKG_CONFIG")) and "proxy" not in k.lower()}
    r = run(*unshare, "sh", "-ec", script, timeout=600, env=dict(env, DEBIAN_FRONTEND="noninteractive", LC_ALL="C.UTF-8"))
    equal(r.returncode, 0, r.stdout + r.stderr[-3000:])
    library = "/lib/" + run("dpkg-architecture", "-qDEB_HOST_MULTIARCH").stdout.strip()
    for line in ("agent sleep 1000", "app stopped successfully: sleep", "/usr" + library, "hello runs with %s/libcomponent.so.0" % library, "hello ended well"):
        need(re.search("^%s *$" % re.escape(line), r.stdout, re.M), "no %r in\n%s%s" % (line, r.stdout, r.stderr))
    contains(r.stdout, "/debug/pprof/")
    need(re.search(r"^heap profile: \d+: \d+ \[[1-9]", r.stdout, re.M), "no sample by the hooks in\n" + r.stdout)
    if shutil.which("man"):
        contains(r.stdout, "/usr/share/man/man3/component_profiler_start.3.gz\n/usr/share/man/man7/libcomponent.7.gz\n")
    made["table"] = "".join(re.findall(r"^redis table: (.*\n)", r.stdout, re.M))
    for line in re.findall(r"^redis took .*", r.stdout, re.M):
        print("# " + line)
    changed = re.findall(r"^changed (.*)", r.stdout, re.M)
    need(any(path.startswith("var/lib/dpkg/") for path in changed), "nothing was installed:\n" + r.stdout)
    equal(re.findall(r"^left .*", r.stdout, re.M) + [c for c in changed if not re.match(KEPT_ANEW, c)], [], "left behind")


@test
def two_commands_of_the_packages_lead_to_the_hottest_functions_of_a_stock_redis_server():
    packages()
    if not files_of_redis():
        raise Skip("redis-server and redis-benchmark are not here, and were not fetched")
    if "table" not in made:
        raise Skip("the packages could not be installed, or were not in this run")
    rows = made["table"].partition(" cum%\n")[2].splitlines()
    need(exported(daemons.found("redis-server")) & {row.split()[-1] for row in rows if row.split()}, "no function of its own is in\n" + made["table"])


try:
    main()
finally:
    shutil.rmtree(work, ignore_errors=True)
