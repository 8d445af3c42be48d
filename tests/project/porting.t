#!/usr/bin/env python3
"""porting.t - the programs and build files of docs/porting.md, built against an installed library and run.

In the place of each comment "What was here before" stands what a daemon has there: it prints
where it serves, keeps a block of memory, and goes on when its standard input ends.
"""
import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from documents import block, shell_lines  # noqa: E402
from installed import HOME, as_installed, prefix  # noqa: E402

PAGE = "docs/porting.md"
INCLUDES = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <component/profiler.h>\n"
LOOP = r"""
	{
		static void *volatile kept;
		char url[600];

		kept = calloc(1, 4000000);
		component_profiler_url(url, sizeof(url));
		printf("at %s\n", kept ? url : "no memory");
		fflush(stdout);
		while (getchar() != EOF)
			;
	}
"""
GETOPT = r"""
	for (int letter; (letter = getopt(argc, argv, "p:v")) != -1;)
		printf("option %c %s\n", letter, letter == 'p' ? optarg : "");
"""
JAIL = r"""
	if (getenv("JAIL")) {
		if (chroot(getenv("JAIL")) || chdir("/") || setgid(65534) || setuid(65534))
			_exit(3);
		if (getenv("AGAIN"))
			prctl(PR_SET_DUMPABLE, 1);
	}
"""


def source(heading, language="c"):
    """The program below a heading, with what was there before."""
    text = block(PAGE, heading, language)
    text, n = re.subn(r"/\* What was here before: [^*]*loop[^*]*\*/", lambda _: LOOP, text)
    need(n or "component_dispatch" in text, "there is no loop in it")
    text = re.sub(r"/\* What was here before: getopt[^*]*\*/", lambda _: GETOPT, text)
    text = re.sub(r"/\* What was here before: chroot[^*]*\*/", lambda _: JAIL, text)
    return "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n" + INCLUDES + "#include <unistd.h>\n#include <sys/prctl.h>\n" + text


def written(name, text):
    path = os.path.join(HOME, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    return path


def sh(command, cwd, **more):
    r = run("sh", "-ec", command, cwd=cwd, env={**as_installed(), **more}, timeout=300)
    equal(r.returncode, 0, "%s\n%s%s" % (command, r.stdout[-3000:], r.stderr[-3000:]))
    return r.stdout


def built(heading, language="c"):
    folder = os.path.join(HOME, re.sub(r"\W+", "-", heading))
    path = os.path.join(folder, "mydaemon")
    if not os.path.exists(path):
        written(os.path.join(folder, "mydaemon." + language), source(heading, language))
        sh("%s -g -Wall -Wextra -Werror mydaemon.%s -o mydaemon $(pkg-config --cflags --libs libcomponent)" % (
            CXX if language == "cpp" else CC, language), folder)
    return path


@contextlib.contextmanager
def working(path, *argv, servers=1, **env):
    """It runs, and says where it serves; then its input ends, and it must end well."""
    p = subprocess.Popen([path, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env={**as_installed(), **env})
    said, urls = [], []
    try:
        while len(urls) < servers:
            line = p.stdout.readline()
            need(line, "it ended: %r" % said)
            if line.startswith("at "):
                urls.append(line[3:].strip())
            said.append(line.strip())
        yield urls, said
        p.stdin.close()
        equal(p.wait(DEADLINE), 0, "exit status")
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()
        p.stdout.close()


def fetch(url, *options):
    r = run("curl", "-sS", "--fail", "--max-time", "60", *options, url)
    equal(r.returncode, 0, r.stderr)
    return r.stdout


def serves_its_heap(path, *argv, **env):
    with working(path, *argv, **env) as (urls, _):
        poll(lambda: re.search(r"^#\t0x\w+\tmain\+", fetch(urls[0] + "heap?debug=1"), re.M), "main in the heap profile")


ASKED = ("--enable-pprof", "--profiling-bind-address=127.0.0.1:0", "--heap-profile-rate=1")


@test
def a_daemon_with_getopt_keeps_its_options_and_has_ours():
    path = built("Options by getopt")
    with working(path, "-p", "7", *ASKED, "-v") as (urls, said):
        equal(said[:2], ["option p 7", "option v"])
        contains(fetch(urls[0] + "heap?debug=1"), "\tmain+")
    with working(path, "-v") as (urls, said):
        equal((urls, said[0]), ([""], "option v"), "off unless asked for")
    r = run(path, "--profiling-help", env=as_installed())
    equal((r.returncode, r.stderr), (0, ""))
    contains(r.stdout, "--profiling-bind-address")
    r = run(path, "--heap-profile-rate=much", env=as_installed())
    equal(r.returncode, 2)
    contains(r.stderr, "--heap-profile-rate")


@test
def a_daemon_with_a_config_file_hands_it_on_and_the_environment_is_stronger():
    path = built("A config file")
    serves_its_heap(path, MYDAEMON_HEAP_PROFILE_RATE="1")
    with working(path, MYDAEMON_ENABLE_PPROF="false") as (urls, _):
        equal(urls, [""])
    ours = written("profiling.yaml", "profiling:\n  enabled: false\n")
    with working(path, MYDAEMON_CONFIG=ours) as (urls, _):
        equal(urls, [""], "a file of ours")
    r = run(path, env={**as_installed(), "MYDAEMON_HEAP_PROFILE_RATE": "much"})
    equal(r.returncode, 1)
    contains(r.stderr, "MYDAEMON_HEAP_PROFILE_RATE")


@test
def one_call_is_enough():
    with working(built("One call")) as (urls, _):
        contains(fetch(urls[0] + "goroutine?debug=2"), "main(")


@test
def a_loop_of_ones_own_has_the_options_and_keeps_its_signals():
    path = built("A loop of its own")
    r = run(path, "--help", env=as_installed())
    equal((r.returncode, r.stderr), (0, ""))
    equal(run(path, "--nonsense", env=as_installed()).returncode, 1)
    with daemon(path, "--enable-pprof", env=as_installed()) as d:
        contains(d.get("/debug/pprof/goroutine?debug=2").text, "poll")
        equal(d.stop(), -signal.SIGTERM, "nobody has asked for its signal")


@test
def each_worker_has_a_port_and_every_index_names_them_all():
    with working(built("daemon(3), fork and workers"), *ASKED, servers=2) as (urls, _):
        need(len(set(urls)) == 2, urls)
        for url in urls:
            contains(fetch(url + "goroutine?debug=2"), "work(")
            poll(lambda: all(u.split("/")[2] in fetch(url) for u in urls), "both workers in the index")


@test
def each_worker_has_a_socket_with_its_number():
    with tempdir() as d:
        with working(built("daemon(3), fork and workers"), "--enable-pprof", "--profiling-bind-address=unix:%s/x.%%p.sock" % d, servers=2):
            sockets = poll(lambda: len(glob.glob(d + "/*")) == 3 and glob.glob(d + "/*"), "three sockets")
            for path in sockets:
                need(re.fullmatch(r"x\.\d+\.sock", os.path.basename(path)), path)
                contains(fetch("http://localhost/debug/pprof/goroutine?debug=2", "--unix-socket", path), "main(")


def of_jailed(jail, **more):
    """How many threads a dump of each worker has read and has signalled, and its fgprof."""
    if os.geteuid() != 0:
        raise Skip("chroot and setuid are root's")
    with working(built("daemon(3), fork and workers"), *ASKED, servers=2, JAIL=jail, **more) as (urls, _):
        for url in urls:
            contains(fetch(url + "goroutine?debug=2"), "work(")
            contains(fetch(url + "heap?debug=1"), "\twork+")
            contains(fetch(url + "profile?seconds=1&format=top"), "profile: cpu")
            yield (re.search("quiet=.*signalled=\d+", fetch(url + "goroutine?debug=1", "-i"))[0], fetch(url + "fgprof?seconds=1&format=folded"),
                   run("curl", "-s", url + "memory").stdout)


@test
def after_chroot_and_setuid_a_worker_has_its_names_and_all_but_memory():
    with tempdir() as jail:
        os.chmod(jail, 0o755)
        for read, wall, memory in of_jailed(jail):
            equal(read, "quiet=0; signalled=1")
            contains(wall, "[no answer]")
            contains(memory, "Could not read the resident memory")


@test
def after_setuid_blocked_threads_are_signalled_but_where_the_worker_is_dumpable_again():
    for read, wall, memory in of_jailed("/"):
        equal(read, "quiet=0; signalled=1")
        contains(wall, "[no answer]")
    for read, wall, memory in of_jailed("/", AGAIN="1"):
        need(read.endswith("; signalled=0"), read)
        contains(wall, "work;")
        contains(memory, "bytes resident")


@test
def a_cxx_daemon_has_names_as_they_are_written_and_throws():
    path = built("C++", "cpp")
    with working(path) as (urls, _):
        contains(fetch(urls[0] + "goroutine?debug=2"), "main(")
    r = run(path, env=as_installed())
    contains(r.stderr, "less than nothing\n")


# Build files

def a_project(name, **files):
    folder = os.path.join(HOME, name)
    written(os.path.join(folder, "mydaemon.c"), source("Options by getopt"))
    for file, text in files.items():
        written(os.path.join(folder, file.replace("_", ".")), text)
    return folder


def needs(*programs):
    for name in programs:
        if not shutil.which(name):
            raise Skip("no %s on this machine" % name)


@test
def make_builds_it():
    folder = a_project("make", Makefile=block(PAGE, "make", "make"))
    sh("make -s", folder)
    serves_its_heap(os.path.join(folder, "mydaemon"), *ASKED)


@test
def cmake_builds_it():
    needs("cmake")
    folder = a_project("cmake", CMakeLists_txt=block(PAGE, "CMake", "cmake"))
    sh("cmake -S . -B b && cmake --build b", folder)
    serves_its_heap(os.path.join(folder, "b/mydaemon"), *ASKED)


@test
def meson_builds_it():
    needs("meson", "ninja")
    folder = a_project("meson", meson_build=block(PAGE, "meson", "meson"))
    sh("meson setup b && ninja -C b", folder)
    serves_its_heap(os.path.join(folder, "b/mydaemon"), *ASKED)


@test
def autotools_build_it():
    needs("autoreconf")
    folder = a_project("autotools", configure_ac=block(PAGE, "autotools", "m4"), Makefile_am=block(PAGE, "autotools", "automake"))
    sh("autoreconf -fi && ./configure -q && make -s", folder)
    serves_its_heap(os.path.join(folder, "mydaemon"), *ASKED)


@test
def a_configure_script_of_others_takes_it_by_libs():
    needs("autoreconf")
    folder = a_project("theirs", configure_ac=re.sub("PKG_CHECK.*\n", "", block(PAGE, "autotools", "m4")),
                       Makefile_am="bin_PROGRAMS = mydaemon\n")
    line, = [text for name, text in shell_lines(PAGE) if text.startswith("./configure")]
    sh("autoreconf -fi && %s && make -s" % line, folder)
    serves_its_heap(os.path.join(folder, "mydaemon"), *ASKED)


@test
def beside_jemalloc_the_order_of_libraries_does_not_matter():
    folder = a_project("jemalloc")
    if run(*CC.split(), "-x", "c", "-", "-o", os.path.join(folder, "x"), "-ljemalloc", input="int main(void) { return 0; }", stdin=None).returncode:
        raise Skip("no libjemalloc to link with")
    lines = [text for name, text in shell_lines(PAGE) if "jemalloc" in text]
    equal(len(lines), 2)
    for line in lines:
        sh(line.replace("cc ", CC + " -Wl,--no-as-needed ", 1), folder)
        serves_its_heap(os.path.join(folder, "mydaemon"), *ASKED)


@test
def what_a_static_allocator_costs_is_said():
    folder = a_project("static-jemalloc")
    archive = run(*CC.split(), "-print-file-name=libjemalloc.a").stdout.strip()
    if not os.path.isabs(archive):
        raise Skip("no libjemalloc.a")
    sh("%s mydaemon.c -o mydaemon %s $(pkg-config --cflags --libs libcomponent) -lstdc++ -lm -ldl -pthread" % (CC, archive), folder)
    with working(os.path.join(folder, "mydaemon"), *ASKED) as (urls, _):
        contains(fetch(urls[0]), "malloc() belongs to")


main()
