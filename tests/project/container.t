#!/usr/bin/env python3
"""deploy/Containerfile, step by step, without a container runtime: each stage is a fresh Debian 12 in memory that this test alone sees.

What it makes runs as the manifests start it, in a root that cannot be written to and a network of its own.  That
takes root, mmdebstrap and Debian's mirror, and some two minutes.
"""
import os
import re
import shlex
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

CONTAINERFILE = text_of("deploy/Containerfile")
CONTROLLERS = ("backend-controller", "cluster-agent", "appstudio-controller")
SIZE_MAX = 16 * 1024  # KiB on top of the base
work = tempfile.mkdtemp(prefix="component-container-")


def stages():
    """[(base, name, [(instruction, rest)])] of the Containerfile."""
    text = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", CONTAINERFILE, flags=re.M))
    found = []
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            base, *name = re.split(" AS ", rest)
            found.append((base, *(name or [None]), []))
        elif word:
            need(word in ("RUN", "COPY", "USER"), "this test does not know %s" % word)
            found[-1][2].append((word, rest.strip()))
    return found


def copied(rest, root):
    """COPY, in shell: what is in a folder, and files into one."""
    *sources, target = rest.split()
    top = SRC
    if sources[0].startswith("--from="):
        top = "{w}/m/" + sources.pop(0)[len("--from="):]
    lines = ["mkdir -p %s%s" % (root, target)]
    for source in sources:
        path = os.path.join(top, source.lstrip("/"))
        lines.append("if [ -d {p} ]; then cp -a {p}/. {t}; else cp -a {p} {t}; fi".format(p=path.rstrip("/"), t=root + target))
    return lines


BEGIN = """
mount --make-rprivate /
mkdir {w}/m
mount -t tmpfs tmpfs {w}/m
"""
STAGE = """
mkdir {r}
tar -xf {w}/base.tar -C {r}
mount -t proc proc {r}/proc
mount --rbind /dev {r}/dev
cp /etc/resolv.conf /etc/hosts {r}/etc/ # a runtime gives it these
"""
INSIDE = "env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root"
# What the last stage has that the base has not, and how many KiB that is.
LOOK = """
du -skx --exclude=./dev --exclude=./proc {r} | sed 's/^/size /'
mkdir {w}/m/base && tar -xf {w}/base.tar -C {w}/m/base
du -skx {w}/m/base | sed 's/^/base /'
for root in {w}/m/base {r}; do
	(cd $root && find . -xdev | sort) >$root.list
done
comm -13 {w}/m/base.list {r}.list | sed 's,^[.],new ,'
"""
# As a kubelet has it: a root to be read alone, a volume, and no privilege to be had.
READ_ONLY = """
mkdir -p {r}/var/lib/gitops
mount --bind {r} {r}
mount -o remount,bind,ro {r}
mount -t proc proc {r}/proc
mount -t tmpfs -o mode=0700,uid={uid},gid={gid} tmpfs {r}/var/lib/gitops
"""
START = """
controller={name} health={health} profiling={profiling}
chroot {r} env -i {env} setpriv --reuid={uid} --regid={gid} --clear-groups --no-new-privs --bounding-set=-all \\
	/usr/local/bin/{name} {args} 2>{w}/{name}.log &
i=0
until curl -sf http://127.0.0.1:$health/readyz >/dev/null; do
	i=$((i + 1))
	[ $i -lt 2000 ] && kill -0 $! || {{ cat {w}/{name}.log >&2; exit 1; }}
	sleep 0.03
done
sed -n "s/^Uid:/$controller has user/p; s/^CapBnd:/$controller may have/p" /proc/$!/status
curl -sf "http://127.0.0.1:$profiling/debug/pprof/goroutine?debug=2" >{w}/{name}.dump
grep -o "examples/{name}.c:[0-9]*" {w}/{name}.dump | head -n 1
chroot {r} sh -c ': >/usr/local/bin/another' 2>/dev/null || echo "$controller cannot write"
kill $! && wait $! && echo "$controller ended well"
"""


def script():
    """All of it, in shell."""
    lines, roots = [BEGIN.format(w=work)], {}
    for n, (base, name, steps) in enumerate(stages()):
        root = "%s/m/%s" % (work, name or "last")
        lines.append(STAGE.format(w=work, r=root))
        for word, rest in steps:
            if word == "RUN":
                lines.append("chroot %s %s sh -ec %s >&2" % (root, INSIDE, shlex.quote(rest)))
            elif word == "COPY":
                lines += [line.format(w=work) for line in copied(rest, root)]
    uid, gid = dict(steps)["USER"].split(":")
    lines.append((LOOK + READ_ONLY).format(w=work, r=root, uid=uid, gid=gid))
    start = "ip link set lo up\n"
    for name in CONTROLLERS:
        text = text_of("deploy/kubernetes/%s.yaml" % name)
        args = re.search(r"args: \[(.*)\]", text).group(1).replace(",", "")
        env = " ".join("%s=%s" % (k, v.strip('"')) for k, v in re.findall(r"- name: ([A-Z_]+)\n +value: (.*)$", text, re.M))
        port = {m[0]: m[1] for m in re.findall(r"\{name: (\w+), containerPort: (\d+)\}", text)}
        start += START.format(w=work, r=root, name=name, args=args, env=env, health=port["health"], profiling=port["pprof"], uid=uid, gid=gid)
    lines.append("unshare -n sh -euc %s" % shlex.quote(start))
    return "\n".join(lines)


def base():
    """Debian as containers have it, in a tar file."""
    for tool, package in (("mmdebstrap", "mmdebstrap"), ("ip", "iproute2"), ("curl", "curl")):
        if not shutil.which(tool):
            raise Skip("no %s: install the Debian package %s" % (tool, package))
    r = run("mmdebstrap", "--quiet", "--variant=apt", "--mode=root", "--aptopt=Acquire::Retries \"5\"", "bookworm", work + "/base.tar")
    if r.returncode != 0:
        raise Skip("no Debian could be fetched: " + (r.stderr.strip().splitlines() or [""])[-1])


@test
def its_steps_make_a_small_image_whose_controllers_run_as_the_manifests_have_it():
    if os.geteuid() != 0 or run("unshare", "-m", "-p", "-n", "-f", "--mount-proc", "mount", "-t", "tmpfs", "tmpfs", work).returncode != 0:
        raise Skip("no mount namespace with roots of its own may be made here")
    base()
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    r = run("unshare", "-m", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-euc", script(), env=env, timeout=1800)
    if r.returncode != 0 and re.search("^E: (Failed to fetch|Unable to fetch)", r.stderr, re.M):
        raise Skip("Debian's mirror has gone: " + re.search("^E: .*", r.stderr, re.M).group())
    equal(r.returncode, 0, r.stdout[-2000:] + r.stderr[-4000:])
    for name in CONTROLLERS:
        for line in (r"%s has user\s65532\s65532\s65532\s65532$", r"%s may have\s0+$", r"examples/%s\.c:\d+$", "%s cannot write$", "%s ended well$"):
            need(re.search("^" + line % name, r.stdout, re.M), (line % name, r.stdout))
    new = re.findall(r"^new (.*)", r.stdout, re.M)
    equal([path for path in new if path.startswith("/usr/local/")],
          ["/usr/local/bin/" + name for name in sorted(CONTROLLERS)] +
          ["/usr/local/lib/libcomponent.so.0", "/usr/local/lib/libcomponent.so.0.0.0",
           "/usr/local/share/libcomponent", "/usr/local/share/libcomponent/viewer.html.gz"])
    # Of packages, libraries alone; and what a runtime gives.
    known = r"/(usr/local/|usr/lib/[^/]*-linux-gnu/lib[^/]*\.so\.[0-9.]+$|usr/share/(doc|lintian)/|var/|etc/hosts$)"
    equal([path for path in new if not re.match(known, path)], [])
    size, before = (int(re.search(r"^%s (\d+)" % word, r.stdout, re.M).group(1)) for word in ("size", "base"))
    print("# %d KiB on top of the base" % (size - before))
    need(size - before < SIZE_MAX, "%d KiB on top of the base's %d" % (size - before, before))


@test
def its_image_its_user_and_its_programs_are_those_of_the_manifests():
    tag = re.search(r"^# +podman build -f deploy/Containerfile -t (\S+) \.$", CONTAINERFILE, re.M).group(1)
    paths = [p for p in glob.glob(SRC + "/deploy/kubernetes/**/*.yaml", recursive=True) if re.search("^ +image:", text_of(p), re.M)]
    need(len(paths) >= len(CONTROLLERS), paths)
    for path in paths:
        text = text_of(path)
        equal(re.findall(r"^ +image: (\S+)", text, re.M), [tag], path)
        need(re.search(r"^ +command: \[/usr/local/bin/(.*)\]$", text, re.M).group(1) in CONTROLLERS, path)
        user, group = (re.search(r"^ +runAs%s: (\d+)$" % who, text, re.M).group(1) for who in ("User", "Group"))
        equal(dict(stages()[-1][2])["USER"], user + ":" + group, path)


@test
def what_it_installs_to_build_is_what_building_takes():
    """scripts/packages.sh has the list for everything; an image has no C++, git or componentctl."""
    packages = re.search(r'build_packages="([^"]*)"', text_of("scripts/packages.sh")).group(1).split()
    step = next(rest for word, rest in stages()[0][2] if word == "RUN")
    equal(sorted(set(packages) - set(step.split())), ["ca-certificates", "g++", "git", "libcurl4-openssl-dev"])


try:
    main()
finally:
    shutil.rmtree(work, ignore_errors=True)
