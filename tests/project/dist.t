#!/usr/bin/env python3
"""The tarball, on a machine without autotools, gnulib and protoc-c."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from documents import blocks  # noqa: E402

# What a machine that only builds tarballs does not have.
ABSENT = re.compile(r"(auto(conf|make|header|reconf|scan|update|m4te|point).*|aclocal.*|libtool(ize)?|"
                    r"gnulib-tool|protoc.*|ifnames|m4)")
work = tempfile.mkdtemp(prefix="component-dist-")
made = {}


def lean_path():
    folder = os.path.join(work, "bin")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        for source in ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"):
            if not os.path.isdir(source):
                continue
            for name in os.listdir(source):
                if not ABSENT.fullmatch(name) and not os.path.lexists(os.path.join(folder, name)):
                    os.symlink(os.path.join(source, name), os.path.join(folder, name))
    return folder


def unpacked():
    folder = os.path.join(work, "source")
    if not os.path.isdir(folder):
        r = run("make", "-s", "-C", BUILD, "distdir", "distdir=" + folder, timeout=3600)
        equal(r.returncode, 0, r.stderr[-3000:])
    return folder


def sh(command, cwd, timeout=3600, **env):
    r = run("sh", "-ec", command, cwd=cwd, timeout=timeout, env=dict(os.environ, PATH=lean_path(), **env))
    equal(r.returncode, 0, command + "\n" + r.stdout[-3000:] + r.stderr[-3000:])
    return r.stdout


@test
def the_tarball_holds_what_git_leaves_out():
    folder = unpacked()
    for name in ("configure", "Makefile.in", "gnulib/local.mk", "profiler/encode/profile.pb-c.c",
                 "profiler/encode/profile.pb-c.h", "LICENSE", "NOTICE", "README.md", "scripts/demo", "scripts/test"):
        need(os.path.exists(os.path.join(folder, name)), name + " is missing")


def installed():
    """The folders of a build and of what it has installed, as README.md tells to type; who asks takes it away again."""
    folder, prefix = unpacked(), os.path.join(work, "libcomponent")
    if not os.path.isdir(prefix):
        lines, = [text for _, text in blocks("sh", "README.md") if "../configure" in text]
        made["said"] = sh("make() { command make -s \"$@\"; }\n%s%s\n./hello --version\nbackend-controller --version\n" % (
            lines.replace("./autogen.sh", "#", 1).replace("../configure", "../configure -q"),
            next(text for _, text in blocks("sh", "README.md") if text.startswith("cc ")).splitlines()[0]), folder, HOME=work)
    return os.path.join(folder, "build-install"), prefix


@test
def the_tarball_holds_what_git_holds_but_for_what_is_of_the_repository():
    r = run("git", "-C", SRC, "ls-files") if shutil.which("git") else None
    if not r or r.returncode or not r.stdout:
        raise Skip("no git checkout: this is a tarball already")
    files = [name for name in r.stdout.splitlines() if not name.startswith((".ci/", ".gitignore"))]
    equal([name for name in files if not os.path.exists(os.path.join(unpacked(), name))], [], "in no list of a local.mk")


@test
def what_the_readme_tells_to_type_installs_below_a_prefix_and_builds_its_daemon():
    build, prefix = installed()
    contains(made["said"], "backend-controller")
    contains(made["said"], "Built with libcomponent %s." % re.search(r"^AC_INIT\(\[libcomponent\], \[([^]]+)", text_of("configure.ac"), re.M).group(1))
    sh("make -s uninstall", build)
    left = [os.path.join(d, f) for d, _, fs in os.walk(prefix) for f in fs]
    equal(left, [], "left behind by uninstall")


@test
def a_missing_dependency_is_named_by_its_debian_package():
    folder = unpacked()
    build = os.path.join(work, "build-missing")
    os.mkdir(build)
    # pkg-config that knows nothing, and nothing in its default folders.
    r = run("sh", "-c", folder + "/configure -q", cwd=build,
            env=dict(os.environ, PKG_CONFIG_LIBDIR=work, PKG_CONFIG_PATH=""), timeout=3600)
    need(r.returncode != 0, "configure went on")
    for package in ("libevent-dev", "zlib1g-dev", "libprotobuf-c-dev", "libyaml-dev", "liblzma-dev"):
        contains(r.stderr, package)


@test
def installing_into_the_default_prefix_leaves_programs_that_run():
    """Into /usr/local of a mount namespace of its own, so that this machine keeps its own.
    The build is configured anew, and not compiled again: only the library and what is linked to it know the
    prefix, and what config.status makes is as it was."""
    setup = ("mount --make-rprivate / && mount -t tmpfs tmpfs /usr/local && mkdir -p {w}/up {w}/wk && "
             "mount -t tmpfs tmpfs {w}/up && mkdir {w}/up/u {w}/up/w && "
             "mount -t overlay overlay -o lowerdir=/etc,upperdir={w}/up/u,workdir={w}/up/w /etc")
    w = os.path.join(work, "ns")
    os.mkdir(w)
    setup = setup.format(w=w)
    if run("unshare", "-m", "sh", "-ec", setup).returncode != 0:
        raise Skip("no mount namespace with an overlay may be made here")
    build = installed()[0]
    script = setup + """
cd {build}
mv config.status config.status.was
../configure -q
touch -r config.status.was config.status
rm -f components/libcomponent.la
make -s -j{n} install >install.out 2>&1 || {{ tail -n 30 install.out; exit 1; }}
command=$(sed -n 's/^ *Run this first: //p' install.out | tail -n 1)
[ -z "$command" ] || sh -c "$command"
/usr/local/bin/backend-controller --version
printf '#include <component/component.h>\\n#include <stdio.h>\\nint main(void) {{ puts(component_version()); return 0; }}\\n' >o.c
gcc o.c -o o $(pkg-config --cflags --libs libcomponent)
./o
make -s uninstall >/dev/null
find /usr/local -type f -o -type l
""".format(build=build, n=os.cpu_count())
    r = run("unshare", "-m", "sh", "-ec", script, timeout=3600, env=dict(os.environ, PATH=lean_path()))
    equal(r.returncode, 0, r.stdout[-3000:] + r.stderr[-3000:])
    contains(r.stdout, "backend-controller")
    equal([line for line in r.stdout.splitlines() if line.startswith("/usr/local/")], [], "left behind")


try:
    main()
finally:
    run("chmod", "-R", "u+w", work)
    shutil.rmtree(work, ignore_errors=True)
