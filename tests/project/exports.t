#!/usr/bin/env python3
"""What the libraries of the build need, export and bind, read from the files."""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from hooked import names_of_the_agent  # noqa: E402

CORE = BUILD + "/components/.libs/libcomponent.so"
AGENT = BUILD + "/components/preload/libcomponent-preload.so"
AGENT_CORE = BUILD + "/components/preload/libcomponent-preload-core.so"
HOOKS = BUILD + "/profiler/hooks/libcomponent_hooks_nonshared.a"
ROOMS = "gnulib", "libcomponent", "flags", "profiler", "components"
OURS = (r"lib(c|m|pthread|dl|rt)\.so\.\d", r"ld-linux-[a-z0-9-]*\.so\.\d")
NEEDED = {CORE: OURS + (r"lib(event_core|event_extra)-.*", r"libz\.so.*", r"libprotobuf-c\.so.*", r"libyaml-0\.so.*"),
          AGENT: OURS, AGENT_CORE: OURS}
BUILT = [path for path in (CORE, AGENT, AGENT_CORE) if os.path.exists(path)]
AGENT_BUILT = [path for path in BUILT if path != CORE]

# A guest calls none of these: they change or end the process, start another, write where
# nobody asked, hand out memory shared by all threads, or set a library up for everybody.
FORBIDDEN = """setenv putenv unsetenv clearenv setlocale uselocale umask chdir fchdir chroot daemon
fork vfork _Fork clone system popen posix_spawn posix_spawnp execl execlp execle execv execve execvp execvpe fexecve
exit abort quick_exit on_exit setuid setgid seteuid setegid setreuid setresuid setregid setresgid setgroups initgroups setfsuid setfsgid capset nice setpriority
alarm setitimer sigprocmask sigaltstack sigsetmask siginterrupt bsd_signal sleep usleep wait wait3 wait4 waitpid waitid
printf puts putchar perror vprintf psignal syslog openlog err errx warn warnx
localtime localtime_r gmtime gmtime_r strftime ctime asctime mktime tzset strtok rand srand random srandom drand48 srand48
mallopt malloc_trim malloc_info setrlimit setrlimit64 personality ptrace mlockall munlockall
dlopen backtrace backtrace_symbols _Unwind_Backtrace tmpfile mkstemp tempnam tmpnam
evthread_use_pthreads evthread_set_lock_callbacks evthread_set_condition_callbacks evthread_set_id_callback
event_set_mem_functions event_set_log_callback event_set_fatal_callback event_enable_debug_mode event_init
libevent_global_shutdown signal sigaction raise _exit prctl""".split()

# The few that may, in the one file whose task it is: daemons that asked for our life.
ALLOWED = {"signal": {"signals", "hooks/weak_references"}, "sigprocmask": {"hooks/weak_references"}, "raise": {"signals"}, "_exit": {"signals"},
           "sigaction": {"signals", "hooks/free_signal", "profiling", "hooks/weak_references"}, "prctl": {"our_thread", "our_table", "trace/perf"},  # the latter two only ask
           "sleep": {"hooks/weak_references"}, "usleep": {"hooks/weak_references"},  # named, never called
           "dlopen": {"by_libunwind", "our_object", "debugdata"},  # libunwind, when it was asked for; itself; liblzma
           "malloc_info": {"resident/allocator", "resident/malloc_info"}}  # on a thread that may be left behind

# In libc.so since 2.33 only, in libc_nonshared.a before: source made for 2.31 has them.
MOVED = {"stat", "fstat", "lstat", "fstatat", "stat64", "fstat64", "lstat64", "fstatat64"}
GLIBC_MAX = (2, 31)


def output(*command):
    r = run(*command)
    equal(r.returncode, 0, r.stderr)
    return r.stdout


def symbols(path, *flags):
    """(kind, name, version) of each."""
    found = re.findall(r" ([A-Za-z]) ([\w.]+)(?:@+(\S+))?$", output("nm", *flags, path), re.M)
    need(found, "nm shows nothing of " + path)
    return found


def hooked():
    text = open(SRC + "/profiler/hooks/abi.h").read()
    names = set(re.findall(r"\bX\((\w+)\)", text)) - {"name"}
    need("malloc" in names and "_ZdlPv" in names, "hooks/abi.h is read wrongly")
    return names | {"component_hooks"}


def libc_path():
    path = output(*CC.split(), "-print-file-name=libc.so.6").strip()
    need(os.path.isabs(path), "no libc.so.6 to compare with")
    return path


if not os.path.exists(CORE):
    print("1..0 # SKIP configured without shared libraries")
    sys.exit(0)


@test
def needed_are_glibc_and_the_four_dependencies_and_by_the_agent_glibc_alone():
    for path, allowed in ((path, NEEDED[path]) for path in BUILT):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path))
        need(any(n.startswith("libc.so") for n in needed), path + " needs no libc?")
        equal([n for n in needed if not any(re.fullmatch(a, n) for a in allowed)], [], path)


@test
def the_core_exports_its_map_and_nothing_of_libc():
    wanted = set(re.findall(r"^\t(component_\w+);", open(SRC + "/components/libcomponent.map").read(), re.M))
    have = {name for kind, name, _ in symbols(CORE, "-D", "--defined-only") if kind != "A"}
    equal(sorted(have ^ wanted), [])
    libc = {name for _, name, _ in symbols(libc_path(), "-D", "--defined-only")}
    need("malloc" in libc, "that is not libc")
    equal(sorted(have & libc), [])


@test
def the_agents_core_exports_what_the_agent_asks_for_and_binds_nothing_that_a_program_may_bring():
    if AGENT_CORE not in BUILT:
        raise Skip("configured without the agent")
    have = {name for kind, name, _ in symbols(AGENT_CORE, "-D", "--defined-only") if kind != "A"}
    need("component_profiler_start_options" in have, "what the agent asks for is missing")
    equal([name for name in sorted(have) if not re.match("component_(profiler_|after_fork)", name)], [])
    libc = {name for _, name, _ in symbols(libc_path(), "-D", "--defined-only")}
    bound = {name for _, name, _ in symbols(AGENT_CORE, "-D", "--undefined-only")}
    theirs = {name for name in bound - libc - hooked() if not re.match("_|component_hooks$", name)}
    # Weak: what an allocator and its kind say of themselves, if there is one.
    equal(sorted(theirs - {"MallocExtension_GetNumericProperty", "mallctl", "mi_process_info", "AnnotateIgnoreReadsBegin",
                           "AnnotateIgnoreReadsEnd"}), [])
    local = output("nm", "--defined-only", AGENT_CORE)
    for name in ("event_base_new", "deflate", "inflate", "adler32", "crc32", "protobuf_c_message_pack"):
        need(re.search(r" t %s$" % name, local, re.M), name + " is not inside")


@test
def the_agent_and_the_hooks_export_the_hooked_names_alone():
    for path, flags in ((AGENT, ("-D", "--defined-only")), (HOOKS, ("-g", "--defined-only"))):
        if path == AGENT and path not in BUILT:
            continue
        have = {name for kind, name, _ in symbols(path, *flags) if kind != "A"}
        need({"malloc", "free", "component_hooks"} <= have, path)
        equal(sorted(have - hooked() - (names_of_the_agent() if path == AGENT else set())), [], path)


@test
def hooks_are_weak_so_that_a_programs_own_malloc_wins():
    strong = [name for kind, name, _ in symbols(HOOKS, "-g", "--defined-only") if kind not in "WVwv"]
    equal([n for n in strong if not n.startswith("pthread_cond_")], [])


@test
def no_call_that_changes_the_process_is_bound():
    members = {}
    for path in [p for room in ROOMS for p in glob.glob(os.path.join(BUILD, room, "**/.libs/*_la-*.o"), recursive=True)]:
        source = re.sub(r"\.libs/\w+_la-(.*)\.o$", r"\1", os.path.relpath(path, BUILD))
        if os.path.exists(os.path.join(SRC, source + ".c")):
            for name in re.findall(r" [Uw] (\w+)$", output("nm", "-u", path), re.M):
                members.setdefault(name, set()).add(source)
    need("malloc" in members and "profiler/hooks/free_signal" in members["sigaction"], "objects are read wrongly")
    for name in FORBIDDEN:
        equal([m for m in sorted(members.get(name, ())) if not ("/" + m).endswith(tuple("/" + a for a in ALLOWED.get(name, ())))],
              [], name + " is called from")
    bound = {name for _, name, _ in symbols(CORE, "-D", "--undefined-only")}
    equal(sorted(bound & set(FORBIDDEN) - set(ALLOWED)), [], "libcomponent.so binds")
    # Its dlopen looks at what is loaded; it starts the core in a program that asked for it.  libevent
    # ends a process that it cannot serve: it never gets so far (http/event_base.c); its evhttp, which
    # nobody calls there, dates its answers by gmtime_r().
    for path, more in zip(AGENT_BUILT, ({"dlopen"}, set(ALLOWED) | {"exit", "abort", "gmtime_r"})):
        bound = {name for _, name, _ in symbols(path, "-D", "--undefined-only")}
        equal(sorted(bound & set(FORBIDDEN) - more), [], path + " binds")


@test
def no_unwinder_of_others_is_bound():
    for path in BUILT:
        names = {name for _, name, _ in symbols(path, "-D", "--undefined-only")}
        equal(sorted(n for n in names if re.match(r"_?_?unw_|_U[a-z0-9]|_Unwind_", n)), [], path)


@test
def no_function_is_needed_that_glibc_2_31_lacks():
    libc = {}
    for _, name, version in symbols(libc_path(), "-D", "--defined-only"):
        m = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
        if m:
            libc.setdefault(name, []).append((int(m.group(1)), int(m.group(2))))
    for path in BUILT:
        late = []
        for kind, name, version in symbols(path, "-D", "--undefined-only"):
            m = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
            # Newer glibc binds to newer versions of what has long been there.
            if m and kind == "U" and (int(m.group(1)), int(m.group(2))) > GLIBC_MAX and \
                    min(libc.get(name, [(9, 9)])) > GLIBC_MAX and name not in MOVED:
                late.append(name + "@" + version)
        # libevent's, which is of the machine that the agent was built on.
        equal([n for n in late if path != AGENT_CORE or not n.startswith("arc4random")], [], path)


@test
def bound_at_once_read_only_after_and_never_executable_stack_or_writable_text():
    for path in BUILT:
        dynamic, segments = output("readelf", "-dW", path), output("readelf", "-lW", path)
        contains(dynamic, "BIND_NOW")
        need("TEXTREL" not in dynamic, "text relocations in " + path)
        contains(segments, "GNU_RELRO")
        flags = re.search(r"GNU_STACK(?:\s+0x\w+){5}\s+([RWE ]+?)\s+0x", segments)
        equal(flags and flags.group(1).strip(), "RW", "stack of " + path)
        need(not re.search(r"LOAD.*\bRWE\b", segments), "a segment of %s is writable and executable" % path)
    for path in CORE, *AGENT_BUILT[1:]:
        contains(output("readelf", "-dW", path), "NODELETE")
    notes = output("readelf", "-SW", HOOKS)
    need(re.search(r"\.note\.GNU-stack\s+PROGBITS\s+\w+ \w+ \w+ 00 +0 ", notes), "the hooks want an executable stack")


@test
def thread_local_memory_is_static_and_at_most_128_bytes_each():
    """What is given to initial-exec after the start is little: 128 bytes at most, each."""
    for path in BUILT:
        m = re.search(r"^\s+TLS(?:\s+0x\w+){4}\s+0x(\w+)", output("readelf", "-lW", path), re.M)
        need(m and 0 < int(m.group(1), 16) <= 128, "%s: %s bytes" % (path, m and int(m.group(1), 16)))
        equal(re.findall(r"\w+(?:DTPMOD|TLSDESC|TLSGD)\w*", output("readelf", "-rW", path)), [], "dynamic TLS in " + path)


@test
def stripped_each_core_is_at_most_a_mebibyte():
    for core in CORE, *AGENT_BUILT[1:]:
        with tempfile.TemporaryDirectory(prefix="component-exports-") as folder:
            path = os.path.join(folder, "stripped.so")
            output("strip", "-o", path, core)
            size = os.path.getsize(path)
        print("# %s: %d KiB" % (os.path.basename(core), size // 1024))
        need(size <= 1024 * 1024, "%d bytes" % size)


main()
