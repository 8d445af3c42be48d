#!/usr/bin/env python3
"""preload.t - the agent in programs that know nothing of us."""
import os
import re
import shutil
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import *  # noqa: E402,F403

VARIABLES = ("COMPONENT_ENABLE_PPROF", "COMPONENT_PROFILING_BIND_ADDRESS", "PPROF_BIND_ADDRESS")
SLEEPER = ["/bin/cat"]  # until its stdin ends
AGENT = os.path.join(BUILD, "components/preload/libcomponent-preload.so")
AGENT_CORE = os.path.join(BUILD, "components/preload/libcomponent-preload-core.so")

if not os.path.exists(AGENT):
    print("1..0 # SKIP configured without the agent")
    sys.exit(0)


def environment(**variables):
    env = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    env.update(preload_env())
    env.update(variables)
    return env


class Foreign:
    """A foreign program with the agent in it."""

    def __init__(self, argv, **variables):
        self.program = started(argv, env=environment(**variables), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        self.p = self.program.__enter__()
        return self

    def __exit__(self, *failed):
        try:
            if self.p.poll() is None:
                self.p.stdin.close()
                self.p.wait(DEADLINE)
        finally:
            self.program.__exit__(*failed)

    def listens(self):
        return listens(self.p.pid)

    def end(self):
        out, err = self.p.communicate("done\n", timeout=10 * DEADLINE)
        equal(self.p.returncode, 0, err)
        return out, err


def shared(d, name, text):
    c, so = os.path.join(d, name + ".c"), os.path.join(d, name + ".so")
    with open(c, "w") as f:
        f.write(text)
    r = run(*CC.split(), "-shared", "-fPIC", "-O1", c, "-o", so, "-ldl")
    equal(r.returncode, 0, r.stderr)
    return so


def answer(port, path=""):
    return urllib.request.urlopen("http://127.0.0.1:%d/debug/pprof/%s" % (port, path), timeout=DEADLINE).read()


def outcome(**variables):
    """(is it serving, what stderr says) for a cat with these variables."""
    with Foreign(SLEEPER, **variables) as f:
        # The constructor is over when cat answers: it echoes a line.
        f.p.stdin.write("hello\n")
        f.p.stdin.flush()
        equal(f.p.stdout.readline(), "hello\n")
        ports = f.listens()
        for port in ports:
            contains(answer(port).decode(), "/debug/pprof/")
        return ports, f.end()[1]


@test
def nothing_given_nothing_happens():
    equal(outcome(), ([], ""))


@test
def the_alias_variable_switches_on():
    port = free_port()
    equal(outcome(PPROF_BIND_ADDRESS="127.0.0.1:%d" % port), ([port], ""))
    equal(outcome(PPROF_BIND_ADDRESS=":%d" % port), ([port], ""))


@test
def enable_alone_means_port_6060_of_loopback():
    ports, err = outcome(COMPONENT_ENABLE_PPROF="true")
    if ports != [6060]:
        contains(err, "6060")  # somebody else has it here: then it is named


@test
def enable_and_an_address():
    port = free_port()
    for yes in ("1", "t", "TRUE", "yes", "On"):
        equal(outcome(COMPONENT_ENABLE_PPROF=yes, COMPONENT_PROFILING_BIND_ADDRESS="127.0.0.1:%d" % port),
              ([port], ""))


@test
def the_own_address_wins_over_the_alias():
    port = free_port()
    equal(outcome(PPROF_BIND_ADDRESS="127.0.0.1:1", COMPONENT_PROFILING_BIND_ADDRESS="127.0.0.1:%d" % port),
          ([port], ""))


@test
def zero_is_off():
    equal(outcome(PPROF_BIND_ADDRESS="0"), ([], ""))
    equal(outcome(COMPONENT_ENABLE_PPROF="true", PPROF_BIND_ADDRESS="0"), ([], ""))


@test
def an_explicit_false_wins_and_says_so():
    for no in ("0", "f", "False", "no", "off"):
        ports, err = outcome(COMPONENT_ENABLE_PPROF=no, PPROF_BIND_ADDRESS="127.0.0.1:0")
        equal(ports, [])
        contains(err, "PPROF_BIND_ADDRESS")
        equal(err.count("\n"), 1)
    equal(outcome(COMPONENT_ENABLE_PPROF="false"), ([], ""))


@test
def an_address_alone_has_no_effect_and_says_so():
    ports, err = outcome(COMPONENT_PROFILING_BIND_ADDRESS="127.0.0.1:0")
    equal(ports, [])
    contains(err, "COMPONENT_PROFILING_BIND_ADDRESS")
    contains(err, "COMPONENT_ENABLE_PPROF=true")


@test
def an_empty_variable_is_not_given():
    equal(outcome(COMPONENT_ENABLE_PPROF="", PPROF_BIND_ADDRESS=""), ([], ""))


@test
def a_bad_value_is_told_once_and_the_program_runs_on():
    for variables, what in (({"COMPONENT_ENABLE_PPROF": "maybe"}, "maybe"),
                            ({"PPROF_BIND_ADDRESS": "localhost"}, "localhost"),
                            ({"PPROF_BIND_ADDRESS": "127.0.0.1:99999"}, "99999")):
        ports, err = outcome(**variables)
        equal(ports, [])
        contains(err, what)
        contains(err, "libcomponent-preload: ")
        equal(err.count("\n"), 1, err)


@test
def a_busy_port_is_told_and_the_program_runs_on():
    with Foreign(SLEEPER, PPROF_BIND_ADDRESS="127.0.0.1:0") as first:
        first.p.stdin.write("x\n")
        first.p.stdin.flush()
        first.p.stdout.readline()
        port = first.listens()[0]
        ports, err = outcome(PPROF_BIND_ADDRESS="127.0.0.1:%d" % port)
        equal(ports, [])
        contains(err, str(port))
        contains(err, "PPROF_BIND_ADDRESS")


@test
def children_of_a_profiled_program_are_quiet():
    port = free_port()
    script = "read x; /bin/true; /bin/echo child; sh -c '/bin/echo grandchild; true'; echo end"
    with Foreign(["/bin/sh", "-c", script], PPROF_BIND_ADDRESS="127.0.0.1:%d" % port) as f:
        out, err = f.end()
    equal(out, "child\ngrandchild\nend\n")
    equal(err, "")


@contextlib.contextmanager
def agent_for_others():
    """The LD_PRELOAD of an agent that another user may read."""
    if os.getuid():
        raise Skip("this needs root")
    with tempdir() as d:
        os.chmod(d, 0o755)
        for path in AGENT, AGENT_CORE:
            shutil.copy(path, d)
        if run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "ls", d).returncode:
            raise Skip("another user cannot enter the folder for what is temporary")
        yield os.path.join(d, os.path.basename(AGENT))


@test
def so_are_those_of_a_program_that_was_root():
    code = "import os, sys\nos.setgid(65534)\nos.setuid(65534)\nsys.exit(os.system('/bin/echo child; /bin/echo again'))\n"
    with agent_for_others() as agent, Foreign([sys.executable, "-S", "-c", code], LD_PRELOAD=agent, LD_LIBRARY_PATH="",
                                              PPROF_BIND_ADDRESS="127.0.0.1:%d" % free_port()) as f:
        equal(f.end(), ("child\nagain\n", ""))


@test
def a_daemon_that_root_starts_as_another_user_says_that_its_port_is_taken():
    with agent_for_others() as agent, socket.create_server(("127.0.0.1", 0)) as taken:
        r = run("/bin/echo", "it runs", user=65534, group=65534, extra_groups=[],
                env=dict(os.environ, COMPONENT_ENABLE_PPROF="true", LD_PRELOAD=agent, LD_LIBRARY_PATH="",
                         PPROF_BIND_ADDRESS="127.0.0.1:%d" % taken.getsockname()[1]))
        equal((r.returncode, r.stdout), (0, "it runs\n"))
        contains(r.stderr, "libcomponent-preload: profiling is off: ")


@test
def profiles_of_a_foreign_program_can_be_had():
    if not shutil.which("python3"):
        raise Skip("no python3")
    port = free_port()
    code = "import sys\nkeep = [bytearray(300000) for _ in range(300)]\nprint('ready', flush=True)\nsys.stdin.readline()\n"
    with Foreign([sys.executable, "-S", "-c", code], PPROF_BIND_ADDRESS="127.0.0.1:%d" % port) as f:
        equal(f.p.stdout.readline(), "ready\n")
        text = answer(port, "heap?debug=1").decode()
        m = re.match(r"heap profile: (\d+): (\d+) \[(\d+): (\d+)\] @ heap/1048576", text)
        need(m, text[:200])
        need(int(m.group(2)) > 20 << 20, "of 90 MB that live %s bytes were seen" % m.group(2))
        top = answer(port, "heap?format=top").decode()
        contains(top, "MB")
        equal(f.end()[1], "")


@test
def ordinary_programs_run_under_it():
    port = free_port()
    with tempdir() as d:
        c = os.path.join(d, "x.c")
        with open(c, "w") as f:
            f.write("#include <stdio.h>\nint main(void) { puts(\"built\"); return 0; }\n")
        env = environment(PPROF_BIND_ADDRESS="127.0.0.1:%d" % port)
        for argv, want in ((CC.split() + ["-O2", c, "-o", os.path.join(d, "x")], ""),
                           ([os.path.join(d, "x")], "built\n"),
                           (["/bin/sh", "-c", "seq 1 2000 | sort -rn | tail -1"], "1\n")):
            r = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=5 * DEADLINE)
            equal((r.returncode, r.stdout, r.stderr), (0, want, ""), str(argv))


@test
def a_program_that_is_not_position_independent_and_takes_the_address_of_malloc():
    """A program at a fixed address that knows malloc by its own PLT entry works, and is seen."""
    port = free_port()
    with tempdir() as d:
        c, exe = os.path.join(d, "fixed.c"), os.path.join(d, "fixed")
        with open(c, "w") as f:
            f.write("""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void *(*volatile take)(size_t);
void *(*volatile again)(void *, size_t);
void (*volatile give)(void *);
int main(void)
{
	take = malloc; /* in code: its address is that of a PLT entry here */
	again = realloc;
	give = free;
	for (int i = 0; i < 3000; i++) {
		char *p = again(take(50000), 100000);
		memset(p, 1, 1000);
		if (i % 3)
			give(p);
	}
	puts("ready");
	fflush(stdout);
	return getchar() == EOF;
}
""")
        r = run(*CC.split(), "-O1", "-no-pie", "-fno-pic", c, "-o", exe)
        equal(r.returncode, 0, r.stderr)
        if not re.search(r"0000[1-9a-f]\S* .* UND malloc", run("readelf", "-W", "--dyn-syms", exe).stdout):
            raise Skip("this compiler gives malloc no address of the program's own")
        for extra in ({}, {"PPROF_BIND_ADDRESS": "127.0.0.1:%d" % port}):
            with Foreign([exe], **extra) as f:
                equal(f.p.stdout.readline(), "ready\n")
                if extra:
                    text = run("curl", "-sS", "-m", "20", "http://127.0.0.1:%d/debug/pprof/heap?debug=1" % port).stdout
                    need(not text.startswith("heap profile: 0:"), text[:300])
                    contains(text, "main+")
                equal(f.p.communicate("x\n", timeout=DEADLINE)[1], "")
                equal(f.p.returncode, 0)


@test
def constructors_of_such_a_program_in_cplusplus_get_memory_in_their_order():
    """A C++ program at a fixed address starts as it does without, and its libraries' constructors get memory."""
    with tempdir() as d:
        library_c, library, cc, exe = [os.path.join(d, n) for n in ("other.c", "libother.so", "fixed.cc", "fixed")]
        with open(library_c, "w") as f:
            f.write("""#include <stdlib.h>
#include <unistd.h>
int before_main;
__attribute__((constructor)) static void init(void)
{
	char *p = malloc(100000);
	if (!p || write(1, "constructor\\n", 12) != 12)
		abort();
	p[99999] = 1;
	before_main = 1;
}
""")
        with open(cc, "w") as f:
            f.write("""#include <cstdlib>
#include <iostream>
#include <string>
extern "C" int before_main;
static void *(*chosen)(size_t);
__attribute__((noinline)) void choose(void *(*f)(size_t)) { chosen = f; }
int main()
{
	choose(malloc);
	std::string s(100, 'x');
	std::free(chosen(100));
	std::cout << s.size() << before_main << std::endl;
	std::cin.get();
}
""")
        equal(run(*CC.split(), "-shared", "-fPIC", library_c, "-o", library).returncode, 0)
        r = run(*CXX.split(), "-O1", "-no-pie", "-fno-pie", cc, "-o", exe, library, "-Wl,-rpath," + d)
        equal(r.returncode, 0, r.stderr)
        for extra in ({}, {"PPROF_BIND_ADDRESS": "127.0.0.1:0"}):
            with Foreign([exe], **extra) as f:
                equal(f.p.stdout.readline(), "constructor\n")
                equal(f.p.stdout.readline(), "1001\n")
                equal(len(f.listens()), len(extra))
                equal(f.p.communicate("x\n", timeout=DEADLINE)[1], "")
                equal(f.p.returncode, 0)


@test
def off_it_leaves_no_thread_and_no_descriptor():
    with Foreign(SLEEPER) as f:
        f.p.stdin.write("x\n")
        f.p.stdin.flush()
        f.p.stdout.readline()
        equal(len(threads(f.p.pid)), 1)
        equal(sorted(descriptors(f.p.pid)), [0, 1, 2])
        maps = open("/proc/%d/maps" % f.p.pid).read()
        biggest = max(int(b, 16) - int(a, 16) for a, b in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) ---p 0+ 00:00 0 *$",
                                                                     maps, re.M) or [("0", "0")])
        need(biggest < 1 << 30, "%d bytes of address space are reserved" % biggest)
        equal(re.findall(r"/(?:libcomponent\.so|libcomponent-preload-core|libevent|libz\.|libprotobuf|libyaml).*", maps), [], "loaded for nobody")


@test
def it_loads_the_core_that_lies_beside_it_even_where_dlopen_is_somebody_elses():
    with tempdir() as d:
        for path in AGENT, AGENT_CORE:
            shutil.copy(path, d)
        wrapper = shared(d, "wrapper", """#define _GNU_SOURCE
#include <dlfcn.h>
void *dlopen(const char *name, int flags)
{
	void *r = ((void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen"))(name, flags);
	return r;
}
""")
        agent = os.path.join(d, os.path.basename(AGENT))
        for preload in agent, agent + ":" + wrapper, wrapper + ":" + agent:
            ports, err = outcome(PPROF_BIND_ADDRESS="127.0.0.1:0", LD_PRELOAD=preload, LD_LIBRARY_PATH="")
            equal((len(ports), err), (1, ""), preload)


@test
def a_core_that_is_missing_is_told_and_the_program_runs_on():
    with tempdir() as d:
        shutil.copy(AGENT, d)
        agent = dict(LD_PRELOAD=os.path.join(d, os.path.basename(AGENT)), LD_LIBRARY_PATH="")
        equal(outcome(**agent), ([], ""))
        ports, err = outcome(PPROF_BIND_ADDRESS="127.0.0.1:0", **agent)
        equal(ports, [])
        contains(err, "libcomponent-preload: profiling is off: ")
        contains(err, "libcomponent-preload-core.so")
        equal(err.count("\n"), 1, err)


main()
