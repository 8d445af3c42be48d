#!/usr/bin/env python3
"""componentctl profile, trace, dump and memory: targets, tables as go tool pprof makes them, files, and servers and
files that mean harm (what is read of damaged files: test_read.c)."""
import base64
import gzip
import os
import pty
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import xml.dom.minidom
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from busy import Busy, agent  # noqa: E402
from documents import shell_lines  # noqa: E402
from gotools import ENV, gos, newest_pprof, to_the_minute  # noqa: E402
from hooked import build, listens  # noqa: E402
from perfetto_reader import Perfetto  # noqa: E402
from pprof_writer import any_profile, message, packed, profile  # noqa: E402
from soak import cpu_ns  # noqa: E402

own_run()
SUBJECT = "tests/programs/obedient_daemon"
NOBODY = 65534
VIEWER = "--viewer-file=" + os.path.join(BUILD, "profiler/viewer/viewer.html.gz")
# Of g++ 12, clang 14 and rustc; some that are readable, or nearly mangled.
MANGLED = """
_ZN12_GLOBAL__N_14anonEi _ZN12_GLOBAL__N_15tanonIiEET_S1_ _ZNK12_GLOBAL__N_12ASclEi _ZN12_GLOBAL__N_12ASD2Ev
_ZNKSt8functionIFvivEEclEi _ZNSt17_Function_handlerIFiiEZ4mainEUliE0_E9_M_invokeERKSt9_Any_dataOi
_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJPFvvEEEEEE6_M_runEv _ZSt13__invoke_implIvZ4mainEUlvE_JEET_St14__invoke_otherOT0_DpOT1_
_ZZ4mainENKUliE0_clEi _ZZZN12_GLOBAL__N_15tanonIiEET_S1_EN1L2inEiENKUlS1_E_clIiEEDaS1_ _ZZNKR2ns4Meth1bEvENKUlNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEPKcE_clES6_S8_
_ZGVZZZN2ns5OuterIiE5InnerISt6vectorIcSaIcEEE3runEiS5_ENKUliE_clEiEN1Q1qEvE1z _ZN2ns5OuterIiE5InnerIcEC2IdEET_ _ZN10._anon_1301yEv
_ZN2ns2OpcvPT_IcEEv _ZNK2ns2OpcviEv _ZN2ns2OplsIdEERS0_T_ _ZNK2ns2OpltERKS0_ _ZN2ns2OppmEi _ZN2ns2OpptEv _ZN2ns2OpclIPKcEEiT_
_ZNK2ns2OpssEi _ZN2ns2OpnwEm _ZN2ns2OpcmEi _ZN2nsli2_xEy _ZN2ns6retfptIcEEPFilET_ _ZN2ns6callitIXadL_ZNS_6targetEiEEEEvi _ZN2ns2v16taggedB5cxx11Ev
_ZThn16_N2ns1D1gEi _ZTv0_n24_N2ns2VB1fEi _ZTWN2ns2tlE _ZTVNSt6thread11_State_implINS_8_InvokerISt5tupleIJZ4mainEUlvE_EEEEEE _ZNK2nsUliE_clEi
_ZNSs12_S_constructIPKcEEPcT_S3_RKSaIcESt20forward_iterator_tag _ZNSsC2IN9__gnu_cxx17__normal_iteratorIPcSsEEEET_S4_RKSaIcE _ZNSirsERs
_Z4workji.constprop.0 _ZN1a1bEi.part.0.cold _Z1fi@plt _ZSt4sortIPiEvT_S1_ _ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc __ZN3foo3barEv _Z1fGARBAGE _Zo
_RNvXs2_Cs6GmmlP4bgsG_1rQSThEINtB5_2TrlE2go _RNvMs2_NtNtNtCsjrHSEGnQ3l9_3std11collections4hash3mapINtB5_7HashMapRelE6insertCs6GmmlP4bgsG_1r
_RINvMs_Cs6GmmlP4bgsG_1rINtB5_1SlE3inhNCNvB5_4mains0_0EB5_ _RINvCs6GmmlP4bgsG_1ru9gre_6ka8iReEB2_ _RNCNvC1a1b0 _RINvC1a1bDNtB2_5Traitp4ItemlEL_E.llvm.77
_ZN76_$LT$std..sys..unix..pipe..AnonPipe$u20$as$u20$std..os..fd..raw..AsRawFd$GT$9as_raw_fd17h9f5da9690a92f567E
_ZN4core3num59_$LT$impl$u20$core..str..traits..FromStr$u20$for$u20$u8$GT$8from_str17h8a1ce069e15e705aE.llvm.12
ns::f<std::vector<int>>(std::function<void(int)>) std::function<int(int)>::operator()(int)const (anonymous_namespace)::f ns::operator<<(int) ns::operator->(int) a)b<c>::d
""".split() + ["(anonymous namespace)::f(int)", "void std::__invoke_impl<void, main::{lambda()#1}>(std::__invoke_other)", "a::operator<(b<c> const&)"]
VIEWS = ((), ("--top=0",), ("--cum",), ("--cum", "--top=5"), ("--focus=e",), ("--ignore=main", "--top=0"),
         ("--focus=here|main", "--ignore=keep"), ("--sample-index=0", "--top=3"), ("--sample-index=1",))
KINDS = "allocs", "block", "fgprof", "goroutine", "heap", "mutex", "profile", "threadcreate"
SMALL = profile([("cpu", "nanoseconds")], [([1], [7], []), ([2, 1], [5], [])], [(1, 0, 1, [(1, 1)]), (2, 0, 2, [(2, 1)])],
                [(1, "main", "main", "", 0), (2, "crunch", "crunch", "", 0)], [])


def go_view(view):
    """componentctl's options as those of go tool pprof."""
    given = dict(re.match(r"--([\w-]+)=?(.*)", word).groups() for word in view)
    words = ["-nodecount=" + given.pop("top", "10")]
    return words + ["-%s%s" % (k.replace("-", "_"), "=" + v if v else "") for k, v in given.items()]


def compare(path, view):
    """1; 0 where the profile has no such values, as both say."""
    # remote: names are made of what is in the file, and no object here is asked.
    go = run(newest_pprof(), "-symbolize=remote", "-top", *go_view(view), path, env=dict(ENV, PPROF_TMPDIR=BUILD))
    ours = run(CTL, "profile", path, *view, env=environment())
    if "outside the range" in go.stderr:
        contains(ours.stderr, "this profile has no such type; write one of: ")
        return 0
    table, wanted = to_the_minute(ours.stdout, go.stdout)
    equal((ours.returncode, table), (go.returncode, wanted), "%s %s\n%s%s" % (path, view, go.stderr, ours.stderr))
    return 1


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def small(folder):
    return write(os.path.join(folder, "small.pb.gz"), gzip.compress(SMALL))


def server(answer):
    """Its address; each request gets these bytes, and the connection is closed."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                c, _ = listener.accept()
            except OSError:
                return
            with c:
                asked = b""
                while b"\r\n\r\n" not in asked:
                    asked += c.recv(4096) or b"\r\n\r\n"
                requests.append(asked.decode())
                c.sendall(answer)
    threading.Thread(target=serve, daemon=True).start()
    requests = []
    return "127.0.0.1:%d" % listener.getsockname()[1], requests, listener


def ok(body, length=None):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body


@test
def the_tables_of_our_profiles_and_of_differences_are_those_of_go_tool_pprof():
    pprof = newest_pprof()
    with tempdir() as d:
        program = os.path.join(d, "busy")
        equal(run(CC, "-O1", "-g", "-pthread", "-o", program, os.path.join(SRC, "tests/programs/busy.c")).returncode, 0)
        files = []
        with Busy([program], agent()) as b:
            b.find()
            b.go()
            b.look({"heap": ["keep_here"], "block": ["hold_here"]})
            for kind in KINDS:
                for part in "before", "after":
                    files.append(os.path.join(d, "%s.%s.pb.gz" % (kind, part)))
                    ctl("profile", b.url, kind, "--raw", "--seconds=1" if kind in ("profile", "fgprof") else "--seconds=0", "-o", files[-1])
            for kind in "heap", "mutex", "block", "allocs":
                files.append(os.path.join(d, kind + ".seconds.pb.gz"))
                ctl("profile", b.url, kind, "--raw", "--seconds=1", "-o", files[-1])
        for base, first, then in ("-base", "before", "after"), ("-base", "after", "before"), ("-diff_base", "after", "before"):
            for kind in "heap", "mutex", "allocs":
                files.append(os.path.join(d, "%s%s.%s.pb.gz" % (kind, base, first)))
                equal(run(pprof, "-proto", "-output", files[-1], base, "%s/%s.%s.pb.gz" % (d, kind, first),
                          "%s/%s.%s.pb.gz" % (d, kind, then), env=dict(ENV, PPROF_TMPDIR=d)).returncode, 0)
        jobs = [in_background(lambda f=f: sum(compare(f, v) for v in VIEWS)) for f in files]
        need(sum(job.result() for job in jobs) >= 20 * (len(VIEWS) - 1), "comparisons")
        need(len(files) >= 20, files)


@test
def a_long_filter_is_shown_as_by_go_tool_pprof():
    newest_pprof()
    with tempdir() as d:
        for size in 69, 70, 73, 74, 200:
            need(compare(small(d), ("--focus=main|" + size * "x", "--ignore=" + size * "y")) == 1, size)


@test
def so_are_those_of_profiles_that_other_tools_could_have_written():
    newest_pprof()  # before two of us ask for it
    with tempdir() as d:
        def one(seed):
            r = random.Random(seed)
            data = any_profile(r)
            path = write(os.path.join(d, "%d.pb" % seed), gzip.compress(data) if seed % 3 else data)
            return compare(path, r.choice(VIEWS))
        jobs = [in_background(lambda at=at: sum(one(seed) for seed in range(at, 60, 2))) for at in (0, 1)]
        need(sum(job.result() for job in jobs) > 40, "comparisons")


@test
def mangled_names_are_as_short_as_those_of_go_tool_pprof():
    with tempdir() as d:
        def one(name, drop=""):
            path = write(os.path.join(d, "x"), profile([("cpu", "nanoseconds")], [([1, 2], [1], [])], [(1, 0, 1, [(1, 1)]), (2, 0, 2, [(2, 1)])],
                                                       [(1, name, name, "", 0), (2, "main", "main", "", 0)], [], drop=drop))
            need(compare(path, ("--top=0",)) == 1, name)
        for name in MANGLED:
            if not name.startswith("__Z") or max(gos())[0] > (1, 22):  # older ones leave such a name alone
                one(name)
        for name in "(anonymous namespace)::f(int)", "(anonymous namespace)(int)", "operator()(int)", "f(int)":
            for drop in r"\(anonymous namespace\).*", r".*\)", "f|":
                one(name, drop)


@test
def so_are_those_of_a_go_program():
    newest_pprof()
    with tempdir() as d:
        program, path = os.path.join(d, "busy-go"), os.path.join(d, "own.pb.gz")
        _, go = max(gos())
        r = run(go, "build", "-o", program, os.path.join(SRC, "tests/programs/busy.go"), env=dict(ENV, CGO_ENABLED="1"))
        equal(r.returncode, 0, r.stderr)
        with Busy([program, path]) as b:
            b.p.stdin.write(b"go\n")
            b.p.stdin.flush()
            poll(lambda: cpu_ns(b.p.pid) > 10**9, "a second of work")
            b.finish()
        equal(sum(compare(path, v) for v in VIEWS), len(VIEWS))


@test
def a_target_is_an_address_a_url_a_socket_an_id_a_pid_or_a_file():
    need_own_run()
    with tempdir() as d, daemon(SUBJECT, "--enable-pprof", "--profiling-registry") as one:
        address, name = "127.0.0.1:%d" % one.port, "obedient_daemon"
        for target in (address, ":%d" % one.port, "http://" + address, "http://" + address + "/", "http://%s/debug/pprof" % address,
                       one.url, name, str(one.pid)):
            file = os.path.join(d, "x.pb.gz")
            contains(ctl("profile", target, "heap", "-o", file), "Type: inuse_space\n")
            contains(ctl("profile", file), "Type: inuse_space\n")
            os.remove(file)
        ctl("profile", name, "heap", cwd=d)
        ctl("profile", name, "heap", cwd=d)
        ctl("profile", address, "goroutine", "--raw", cwd=d)
        equal(sorted(os.listdir(d)), ["127.0.0.1-%d.goroutine.001.pb.gz" % one.port, name + ".heap.001.pb.gz", name + ".heap.002.pb.gz"])
    with tempdir() as d, daemon(SUBJECT, "--enable-pprof", "--profiling-bind-address=unix:%s/a.sock" % d, port_file=False) as one:
        poll_socket(d + "/a.sock")
        ctl("profile", "unix:%s/a.sock" % d, "heap", cwd=d)
        contains(os.listdir(d), "a.heap.001.pb.gz")


@test
def a_program_that_is_stopped_is_not_waited_for():
    need_own_run()
    with tempdir() as d, daemon(SUBJECT, "--enable-pprof", "--profiling-registry") as one:
        one.wait_log("starting profiling server")
        one.signal(signal.SIGSTOP)
        poll(lambda: "State:\tT" in text_of("/proc/%d/status" % one.pid), "its stop")
        for words in ("profile",), ("profile", "heap"), ("dump",), ("memory",), ("trace", "-o", d + "/trace"):
            contains(ctl(words[0], str(one.pid), *words[1:], status=1, cwd=d),
                     "%d: it is stopped, and answers nobody until it goes on; 'kill -CONT %d' lets it" % (one.pid, one.pid))
        one.signal(signal.SIGCONT)
        ctl("profile", str(one.pid), "heap", cwd=d)


@test
def without_a_kind_the_processor_is_measured_and_the_table_is_what_stdout_has():
    with tempdir() as d, daemon(SUBJECT, "--enable-pprof") as one:
        r = run(CTL, "profile", one.url, "--seconds=1", cwd=d, env=environment())
        equal((r.returncode, r.stderr), (0, "Saved as 127.0.0.1-%d.profile.001.pb.gz\n" % one.port))
        contains(r.stdout, "Type: cpu\n")
        contains(r.stdout, "\n      flat  flat%   sum%        cum   cum%\n")
        equal(ctl("profile", one.url, "heap", "--raw", cwd=d), "")
        contains(ctl("profile", one.url, "heap", "--comments", cwd=d), "heap")


@test
def a_trace_a_dump_and_the_table_of_memory_are_a_word_each():
    with tempdir() as d, daemon(SUBJECT, "--enable-pprof") as one:
        path = os.path.join(d, "trace")
        traces = []
        for words in ("--seconds=1",), ("--seconds=1", "--perfetto"):
            equal(ctl("trace", one.url, "-o", path, *words), "")
            with open(path, "rb") as f:
                traces.append(f.read())
        equal(traces[0][:5], b"go 1.")
        rows = Perfetto(traces[1]).names_of_rows()
        need(set(threads(one.pid).values()) - {"component-job"} <= rows, rows)
        contains(ctl("dump", one.url), "goroutine ")
        need(ctl("memory", one.url).startswith("memory: "), "the table")
        contains(ctl("trace", one.url, status=2), "write -o FILE")
        contains(ctl("dump", os.path.join(d, "trace"), status=2), "and no file")


@test
def a_dump_begins_with_who_is_in_a_deadlock():
    with tempdir() as d, started([build(d, "deadlocks", "deadlocks.c", "foreign"), "two"], env={**os.environ, **agent()},
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        equal(p.stdout.readline(), b"ready\n")
        target = "127.0.0.1:%d" % poll(lambda: listens(p.pid), "its port")[0]
        text = poll(lambda: (lambda t: "deadlock:\n" in t and t)(ctl("dump", target)), "its deadlock")
        line = r'thread (\d+) "(wait_\w+)" waits for the mutex at 0x\w+ \(\S+\), held by thread (\d+) "(wait_\w+)"\n'
        m = re.match("deadlock:\n" + 2 * line + r"\ngoroutine (\d+) \[.*, thread: (\w+)\]:\n", text)
        need(m and m.group(1, 2) == m.group(7, 8) == m.group(9, 10) and m.group(3, 4) == m.group(5, 6), text[:1000])


@test
def stacks_are_folded_root_first_and_options_that_say_nothing_are_refused():
    with tempdir() as d:
        path = small(d)
        equal(ctl("profile", path, "--folded"), "main 7\nmain;crunch 5\n")
        equal(ctl("profile", path, "--folded", "--focus=cr.nch"), "main;crunch 5\n")
        equal(ctl("profile", path, "--folded", "--focus=(((cr)+u)+)+n"), "main;crunch 5\n")
        equal(ctl("profile", path, "--folded", "--focus=cr\\(?u"), "main;crunch 5\n")
        contains(ctl("profile", path, "--folded", "--focus=" + 30 * "(" + "a" + 30 * "+)", status=2), "leave a '+' out")
        for inside in "\\(", "[[:alpha:](]", "[(]":
            contains(ctl("profile", path, "--folded", "--focus=" + 30 * "(" + "a" + 30 * ("+" + inside + ")"), status=2), "leave a '+' out")
        names = [(1, "<>" * 2000000 + "::a<b>::c", "<>" * 2000000 + "::a<b>::c", "", 0)]
        long = write(os.path.join(d, "long"), gzip.compress(profile([("cpu", "nanoseconds")], [([1], [7], []), ([], [3], [])], [(1, 0, 1, [(1, 1)])], names, [])))
        equal(sorted(ctl("profile", long, "--folded").split("\n")), ["", "::a::c 7", "<unknown> 3"])
        contains(ctl("profile", path, "--folded", "--raw", status=2), "exclude each other")
        contains(ctl("profile", path, "heap", status=2), "the target is a file")
        contains(ctl("profile", path, "--top=1"), "Showing top 1 nodes out of 2\n")
        equal(ctl("profile", "--top", path), ctl("profile", path, "--top=10"), "a value stands behind '=' alone")
        contains(ctl("profile", path, "--top", "3", status=2), "is written --top=N")
        r = run(CTL, "profile", path, "--focus=nobody", env=environment())
        equal((r.returncode, r.stderr), (0, "--focus 'nobody' is no function, file or object of this profile\n"))


@test
def a_pattern_that_pprof_reads_differently_is_refused():
    with tempdir() as d:
        path = small(d)
        for character in "<>`'":
            contains(ctl("profile", path, "--focus=a\\" + character, status=2), "has a '\\' before '%s'; write %s for the character" % (character, character))
        for inside in "[\\w:]+::run", "[^\\]]", "[a\\-z]", "[[:alpha:]\\.]", "[]\\]":
            contains(ctl("profile", path, "--ignore=" + inside, status=2), "has a '\\' between brackets; write ']' first there")
        for focus in "[]c-][^]<>]\\.?", "[/\\\\c]r[^\\\\]":
            equal(ctl("profile", path, "--folded", "--focus=" + focus), "main;crunch 5\n")


@test
def a_mistake_is_answered_by_what_to_write_instead():
    with tempdir() as d, daemon(SUBJECT, "--enable-pprof") as one:
        nobody = free_port()
        write(os.path.join(d, "empty"), b"")
        write(os.path.join(d, "text"), b"hello\n")
        write(os.path.join(d, "half"), gzip.compress(SMALL * 9)[:40])
        for words, status, part in (
                ((one.url, "hep"), 1, 'Unknown profile; did you mean "heap"? (HTTP 404)'),
                ((one.url, "trace"), 2, "write 'componentctl trace TARGET -o FILE'"),
                ((one.url, "memory"), 2, "componentctl memory TARGET"),
                ((one.url, "cmdline"), 1, "the answer for 'cmdline' is no pprof profile"),
                ((one.url + "heap",), 2, "leave that out"),
                (("http://user:word@localhost:1",), 2, "--token-file=FILE"),
                (("http://localhost:1/?token=x",), 2, "write 'http://HOST:PORT'"),
                (("http://",), 2, "write 'http://HOST:PORT'"),
                (("unix:relative",), 2, "write 'unix:/path' or 'unix:@name'"),
                (("unix:%s/none.sock" % d,), 1, "nobody listens there"),
                (("localhost:%d" % nobody,), 1, "is the program running, with --enable-pprof"),
                (("http://name.invalid:1",), 1, "name.invalid"),
                (("nosuch",), 1, "'componentctl list' shows"),
                (("./nosuch",), 1, "no such file"),
                (("",), 2, "is no target"),
                ((os.path.join(d, "empty"),), 1, "is empty"),
                ((os.path.join(d, "text"),), 1, "is no pprof profile"),
                ((os.path.join(d, "half"),), 1, "is cut off"),
                ((d + "/.",), 1, "no such file"),
                (("4194305",), 1, "a file, an ID that 'componentctl list' shows, or the number of any process"),
                ((one.url, "heap", "--focus=(?i)x"), 2, "--focus '(?i)x': the pattern has a '?'"),
                ((one.url, "heap", "--ignore=a{9}"), 2, "has a '{'"),
                ((one.url, "heap", "--ignore=[a"), 2, "--ignore '[a'"),
                ((one.url, "heap", "--sample-index=inuse_spce"), 2, "write one of: alloc_objects, alloc_space, inuse_objects, inuse_space"),
                ((one.url, "heap", "--token-file=" + d + "/none"), 1, "No such file"),
                ((one.url, "heap", "-o", d + "/no/folder"), 1, "write another file with -o FILE"),
                ((one.url, "--seconds=-1"), 2, "--seconds"),
                ((), 2, "TARGET")):
            contains(ctl("profile", *words, status=status, cwd=d), part)


@test
def a_token_goes_to_its_server_alone():
    with tempdir() as d:
        token = write(os.path.join(d, "token"), b"secret\n")
        os.chmod(token, 0o600)
        with daemon(SUBJECT, "--enable-pprof", "--profiling-token-file=" + token) as one:
            contains(ctl("profile", one.url, "heap", "--raw", status=1, cwd=d), "write --token-file=FILE")
            ctl("profile", one.url, "heap", "--raw", "--token-file=" + token, cwd=d)
        elsewhere, asked, there = server(ok(gzip.compress(SMALL)))
        first, _, here = server(b"HTTP/1.1 302 Found\r\nLocation: http://%s/debug/pprof/heap\r\nContent-Length: 0\r\n\r\n" % elsewhere.encode())
        with here, there:
            contains(ctl("profile", first, "heap", "--token-file=" + token, status=1, cwd=d), "which is not followed")
            equal(asked, [])
            ctl("profile", elsewhere, "heap", "--raw", "--token-file=" + token, cwd=d,
                env=environment(http_proxy="http://" + first, all_proxy="http://" + first))
            contains(asked[0], "Authorization: Bearer secret\r\n")


@test
def a_server_that_goes_away_leaves_a_whole_profile_or_nothing():
    whole = gzip.compress(SMALL)
    for body, length, kept in (whole, 1000, True), (whole[:30], 1000, False), (b"", 1000, False), (whole[:30], 30, False):
        with tempdir() as d:
            address, _, listener = server(ok(body, length))
            with listener:
                r = run(CTL, "profile", address, cwd=d, env=environment())
            equal((r.returncode, len(os.listdir(d))), (0, 1) if kept else (1, 0), r.stderr)
            contains(r.stderr, "What came is a whole profile, and is kept." if kept else
                     "is no whole profile, and was not saved" if length == 1000 else "is cut off")
    with tempdir() as d, daemon(SUBJECT, "--enable-pprof") as one:
        def sockets():
            return sum(t.startswith("socket:") for t in descriptors(one.pid).values())
        before = sockets()
        p = in_background(lambda: run(CTL, "profile", one.url, "--seconds=100", cwd=d, env=environment()))
        poll(lambda: sockets() > before, "the connection")
        one.process.kill()
        r = p.result()
        equal((r.returncode, os.listdir(d)), (1, []), r.stderr)
        contains(r.stderr, "went away")


@test
def a_full_file_system_keeps_the_old_profile_and_nothing_beside_it():
    need_own_run()
    address, _, listener = server(ok(gzip.compress(SMALL)))
    with tempdir() as d, listener:
        if run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", d).returncode:
            raise Skip("no file system can be mounted here")
        try:
            path = write(os.path.join(d, "old.pb.gz"), b"old")
            with open(os.path.join(d, "rest"), "wb", 0) as f, contextlib.suppress(OSError):
                while True:
                    f.write(bytes(4096))
            said = ctl("profile", address, "heap", "--raw", "-o", path, status=1)
            contains(said, "'%s': No space left on device; write another file with -o FILE" % path)
            equal(sorted(os.listdir(d)), ["old.pb.gz", "rest"])
            with open(path, "rb") as f:
                equal(f.read(), b"old")
        finally:
            run("umount", d)


@test
def what_cannot_be_saved_or_read_is_told_before_anything_is_measured():
    address, requests, listener = server(ok(gzip.compress(SMALL)))
    with tempdir() as d, listener:
        for words, told in ((["-o", d + "/none/p"], "write another file with -o FILE"), (["--html=" + d], "write another file with --html=FILE"),
                            (["--svg=/dev/full/x"], "--svg=FILE"), (["--base=" + d + "/none"], "No such file"), (["--viewer-file=" + d + "/v", "--html=" + d + "/h"], "No such file")):
            contains(ctl("profile", address, "heap", *words, cwd=d, status=1), told)
        contains(ctl("trace", address, "-o", d + "/none/t", status=1), "write another file with -o FILE")
        equal((requests, os.listdir(d)), ([], []))


@test
def links_and_outputs_are_written_to_and_not_replaced():
    data = gzip.compress(SMALL)
    address, _, listener = server(ok(data))
    with tempdir() as d, listener:
        path, link = write(os.path.join(d, "p.pb.gz"), b"old"), os.path.join(d, "link")
        os.chmod(path, 0o600)
        os.symlink("p.pb.gz", link)
        ctl("profile", address, "heap", "--raw", "-o", link)
        with open(path, "rb") as f:
            equal((f.read(), os.readlink(link), os.stat(path).st_mode & 0o777), (data, "p.pb.gz", 0o600))
        with open(os.path.join(d, "out"), "wb") as f:
            os.write(f.fileno(), b"head")
            for name in "/proc/self/fd/1", "/dev/fd/1", "/dev/stdout":
                equal(run(CTL, "profile", address, "heap", "--raw", "-o", name, env=environment(), stdout=f, stderr=subprocess.PIPE).returncode, 0)
            os.write(f.fileno(), b"tail")
        with open(os.path.join(d, "out"), "rb") as f:
            equal(f.read(), b"head" + 3 * data + b"tail")
        equal(sorted(os.listdir(d)), ["link", "out", "p.pb.gz"])
        if os.access("/dev/shm", os.W_OK | os.X_OK):
            with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
                for _ in 1, 2:
                    ctl("profile", address, "heap", "--raw", "-o", memory + "/p")
                with open(memory + "/p", "rb") as f:
                    equal(f.read(), data)
        contains(run("sh", "-c", "exec \"$@\" 3< /dev/null", "sh", CTL, "profile", address, "heap", "-o", "/dev/fd/3", env=environment()).stderr, "Bad file descriptor")


@test
def a_link_that_leads_nowhere_is_refused_and_stays():
    address, requests, listener = server(ok(gzip.compress(SMALL)))
    with tempdir() as d, listener:
        link, none = os.path.join(d, "latest"), os.path.join(d, "today")
        os.symlink("today", link)
        for words in (address, "heap", "-o", link), (small(d), "--svg=" + link), (small(d), "--html=" + link, VIEWER):
            contains(ctl("profile", *words, status=1), "'%s': No such file or directory; write another file with -" % link)
            equal((os.readlink(link), os.path.exists(none)), ("today", False))
        equal(requests, [])


@test
def a_file_that_another_user_has_made_in_such_as_tmp_is_not_filled():
    if os.geteuid():
        raise Skip("only root gives files away")
    address, requests, listener = server(ok(gzip.compress(SMALL)))
    with tempdir() as d, listener:
        path, fifo = write(os.path.join(d, "his"), b""), os.path.join(d, "fifo")
        os.mkfifo(fifo)
        os.chmod(d, 0o1777)
        for name in path, fifo:
            try:
                os.chown(name, NOBODY, NOBODY)
            except OSError as e:  # one user alone in a namespace
                raise Skip(str(e))
            for words in (address, "heap", "-o", name), (small(d), "--svg=" + name), (small(d), "--html=" + name, VIEWER):
                contains(ctl("profile", *words, status=1), "'%s': Operation not permitted; write another file with -" % name)
        equal((requests, os.stat(path).st_size), ([], 0))
        os.chmod(d, 0o1755)  # nobody else can have made it
        ctl("profile", address, "heap", "--raw", "-o", path)
        os.chmod(d, 0o1777)
        os.chown(d, NOBODY, NOBODY)  # then it is his own folder
        ctl("profile", address, "heap", "--raw", "-o", path)
        equal(os.stat(path).st_uid, NOBODY)


@test
def what_is_shown_is_not_put_behind_a_profile_on_standard_output():
    address, requests, listener = server(ok(gzip.compress(SMALL)))
    with tempdir() as d, listener:
        for name in "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
            for words in (), ("--folded",), ("--tree",), ("--comments",):
                contains(ctl("profile", address, "heap", "-o", name, *words, status=2), "write --raw beside -o /dev/stdout")
        for picture in "--svg=", "--html=":
            contains(ctl("profile", address, "heap", "-o", "/dev/stdout", picture + "/dev/fd/1", status=2), "write --raw beside -o /dev/stdout")
        equal(requests, [])
        r = run(CTL, "profile", address, "heap", "-o", "/dev/stdout", "--svg=" + os.path.join(d, "svg"), env=environment(), text=False)
        equal((r.returncode, r.stdout), (0, gzip.compress(SMALL)))


@test
def a_folder_of_the_targets_name_is_not_in_the_way():
    address, _, listener = server(ok(gzip.compress(SMALL)))
    with tempdir() as d, listener:
        ctl("profile", address, "heap", "--raw", cwd=d)
        name, = os.listdir(d)
        os.mkdir(os.path.join(d, name.partition(".heap")[0]))
        ctl("profile", address, "heap", "--raw", cwd=d)
        need(name.replace(".001.", ".002.") in os.listdir(d), os.listdir(d))


@test
def a_trace_of_go_is_not_saved_as_one_of_perfettos():
    address, _, listener = server(ok(b"go 1.22 trace\0\0\0rest"))
    with tempdir() as d, listener:
        contains(ctl("trace", address, "--perfetto", "-o", d + "/t", status=1), "leave --perfetto out for Go's")
        equal(os.listdir(d), [])
        ctl("trace", address, "-o", d + "/t")


@test
def servers_that_mean_harm_are_refused_and_their_words_obey_no_terminal():
    for answer, part in (
            (ok(b"\x1b[31mred"), "is no pprof profile"),
            (b"HTTP/1.1 500 No\r\nContent-Length: 8\r\n\r\n\x1b[31mred", "the server says: \\x1b[31mred (HTTP 500)"),
            (b"garbage\r\n\r\n", "127.0.0.1"),
            (b"", "went away")):
        with tempdir() as d:
            address, _, listener = server(answer)
            with listener:
                text = ctl("profile", address, "heap", status=1, cwd=d)
            contains(text, part)
            need("\x1b" not in text, text)
            equal(os.listdir(d), [])
    red = SMALL.replace(b"crunch", b"\x1b[31mr")
    widgets = SMALL.replace(b"nanoseconds", b"\x1b[31mwidget")
    need(len(widgets) == len(SMALL) and widgets != SMALL, widgets)
    nameless = profile([("cpu", "\u009b31m")], [([1], [5], [])], [(1, 1, 4096, [])], [], [(1, "/x/\u009b31m", "")])
    with tempdir() as d:
        contains(ctl("profile", write(os.path.join(d, "red"), red)), "\\x1b[31mr")
        path = write(os.path.join(d, "widgets"), widgets)
        contains(ctl("profile", path), "?[31mwidget")
        for out in ctl("profile", path), ctl("profile", path, "--base=" + small(d), status=1), \
                ctl("profile", write(os.path.join(d, "nameless"), nameless)):
            need("\x1b" not in out and "\u009b" not in out, out)
        address, _, listener = server(ok(b"one\n\x1b[31mtwo\n"))
        with listener:
            equal(ctl("dump", address), "one\n\\x1b[31mtwo\n")


def packed_trace(size):
    """An answer with checkpoints, of which the last is a trace of so many MiB."""
    packer, piece = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS), bytes(1 << 20)
    last = packer.compress(b"go 1.22 trace\0\0\0") + b"".join(packer.compress(piece) for _ in range(size)) + packer.flush()
    body = gzip.compress(b"go 1.22 trace\0\0\0") + last
    return ok(body).replace(b"\r\n", b"\r\nX-Component-Checkpoints: 1\r\n", 1)


@test
def a_trace_that_unpacks_to_much_is_a_trace():
    address, _, listener = server(packed_trace(300))
    with listener:
        ctl("trace", address, "--seconds=0", "-o", "/dev/null")
    address, _, listener = server(packed_trace(513))
    with listener:
        contains(ctl("trace", address, "--seconds=0", "-o", "/dev/null", status=1), "the trace is more than 512 MiB; ask for fewer --seconds")


@test
def damaged_files_end_no_reader():
    r = random.Random(1)
    with tempdir() as d:
        path = os.path.join(d, "x")
        for _ in range(150):
            data = bytearray(any_profile(r) or b"x")
            for _ in range(r.randint(1, 8)):
                data[r.randrange(len(data))] = r.randrange(256)
            write(path, data[:r.randint(1, len(data))] if r.random() < .2 else data)
            for words in ("--top=0",), ("--folded",):
                p = run(CTL, "profile", path, *words, env=environment(), text=False)
                need(p.returncode in (0, 1), (p.returncode, p.stderr))


@test
def a_small_file_takes_no_more_memory_than_there_is_for_a_profile():
    text = "A" * (64 << 20)
    for labels, comments in ([("k", text)] * 2000, ()), ([], [text] * 2000):
        with tempdir() as d:
            path = write(os.path.join(d, "x"), gzip.compress(
                profile([("cpu", "nanoseconds")], [([], [1], labels)], [], [], [], comments=comments), 1))
            with open(os.path.join(d, "err"), "w+") as err:
                p = subprocess.Popen([CTL, "profile", path, "--comments"], env=environment(), stdout=subprocess.DEVNULL, stderr=err)
                _, status, usage = os.wait4(p.pid, 0)
                p.returncode = os.waitstatus_to_exitcode(status)
                err.seek(0)
                contains(err.read(), "takes more than the 1024 MiB of memory that there are for a profile")
            equal(p.returncode, 1)
            need(usage.ru_maxrss < 1 << 20, "%d KiB" % usage.ru_maxrss)


@test
def a_small_file_takes_no_longer_for_a_text_that_it_names_often():
    text, cpu, many = "A" * (64 << 20), [("cpu", "nanoseconds")], range(1, 200)
    one = [(1, text, text, "", 0)]
    for data in (profile(cpu, [], [], [], [(i, text, "") for i in many]),
                 profile(cpu, [], [], [(i, text, text, text, 0) for i in many], []),
                 profile(cpu, [], [(1, 0, 1, [(1, 1) for i in many])], one, []),
                 profile(cpu, [], [(i, 1, 4096, []) for i in many], [], [(1, text, "")])):
        with tempdir() as d:
            path = write(os.path.join(d, "x"), gzip.compress(data, 1))
            contains(ctl("profile", path, status=1), "has more than 8192 MiB of names, counted each time that they are used")


@test
def a_view_of_more_than_a_gigabyte_is_none():
    text, many, cpu = "A" * (16 << 20), range(1, 71), [("cpu", "nanoseconds")]
    each, at = [([i], [1], []) for i in many], [(i, 1, 4096, [(i, 1)]) for i in many]
    with tempdir() as d:
        source, path = write(os.path.join(d, "source"), text.encode()), os.path.join(d, "x")
        for words, data in (
                (("--tree",), profile(cpu, [([71, i], [1], []) for i in many], at + [(71, 1, 4096, [(71, 1)])],
                                      [(i, "f%d" % i, "", "", 0) for i in many] + [(71, text, text, "", 0)], [(1, "x", "")])),
                (("--list=f",), profile(cpu, each, at, [(i, "f%d" % i, "", source, 0) for i in many], [(1, "x", "")]))):
            write(path, gzip.compress(data, 1))
            contains(ctl("profile", path, "--top=0", *words, status=1, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE),
                     "more than 1024 MiB would be printed; write --top=N or --focus=RE")


@test
def long_names_on_many_stacks_are_written_once():
    name, count = "n" * 100000, 200000
    data = profile([("cpu", "nanoseconds")], [([1], [3], [])], [(1, 0, 1, [(1, 1)])], [(1, name, name, "", 0)], [])
    data += message(2, packed(1, [1] * 60) + packed(2, [1])) * count
    with tempdir() as d:
        path = write(os.path.join(d, "x"), gzip.compress(data, 1))
        need(ctl("profile", path, "--folded") == "%s 3\n%s %d\n" % (name, ";".join([name] * 60), count), "two stacks")
        ctl("profile", path, "--svg=" + os.path.join(d, "svg"))


@test
def a_file_whose_drop_frames_has_many_states_takes_no_more_either():
    r = random.Random(1)
    names = ["".join(r.choice("ab") for _ in range(size)) for size in [1 << 20] + [4000] * 40]
    places = range(1, len(names) + 1)
    with tempdir() as d:
        path = write(os.path.join(d, "x"), profile([("cpu", "nanoseconds")], [([i], [1], []) for i in places], [(i, 0, i, [(i, 1)] * 3) for i in places],
                                                   [(i, names[i - 1], names[i - 1], "", 0) for i in places], [],
                                                   drop="(a|b)*a" + "(a|b)" * 20, keep="b.*"))
        p = subprocess.Popen([CTL, "profile", path], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        equal(p.returncode, 0)
        need(usage.ru_maxrss < 600 << 10, "%d KiB" % usage.ru_maxrss)  # what we had as it was forked counts, too


@test
def each_line_of_the_document_works():
    need_own_run()
    lines = [line for _, line in shell_lines("docs/componentctl.md")]
    first, last = "componentctl run redis-server", "componentctl stop redis-server"
    with tempdir() as d:
        write(os.path.join(d, "pod.yaml"), re.search(r"```yaml\n(apiVersion.*?)```", text_of("docs/componentctl.md"), re.S).group(1).encode())
        program = write(os.path.join(d, "redis-server.c"), b"#include <unistd.h>\nint main(void) { return pause(); }\n")
        equal(run(CC, "-o", program[:-2], program).returncode, 0)
        shutil.copy(program[:-2], os.path.join(d, "sqlite3"))
        env = environment(PATH="%s:%s:%s" % (os.path.dirname(CTL), d, os.environ["PATH"]))
        with daemon("examples/backend-controller", "--root=" + d, "--profiling-registry",
                    "--profiling-bind-address=127.0.0.1:0", port_file=False), \
                started([program[:-2]], cwd=d) as other, started_by_ctl("redis-server", env=env) as p:
            poll(lambda: {"redis-server", "backend-controller"} <= set(listed()), "their records")
            for line in [line for line in lines if line not in (first, last)] + [last]:
                typed = line.replace("4711", str(other.pid)).replace("--html=", VIEWER + " --html=")  # it is not installed
                r = run("sh", "-c", typed, cwd=d, env=env)
                # What is in the way here is no fault of the line.
                need(r.returncode == 0 or (" doctor " in line and r.returncode == 1 and not r.stderr), line + "\n" + r.stderr)
            p.wait(DEADLINE)
        need(first in lines and last in lines, lines)
        need("redis-server.profile.001.pb.gz" in os.listdir(d), os.listdir(d))


@test
def a_bar_shows_on_a_terminal_how_long_it_takes():
    with tempdir() as d, daemon(SUBJECT, "--enable-pprof") as one:
        master, slave = pty.openpty()
        r = run(CTL, "profile", one.url, "--seconds=2", "--raw", cwd=d, env=environment(), stderr=slave, stdout=subprocess.DEVNULL)
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # at the end of what there is
            while True:
                shown += os.read(master, 4096)
        os.close(master)
        equal(r.returncode, 0)
        contains(shown.decode(), "] 1 s of 2 s")


@test
def a_picture_has_the_shares_of_the_table_and_harms_nobody():
    harm = ('<script>alert(1)</script>', "a\"b'&amp;\uffff", "line\nbreak\x01", "\u00fcn\u00ef" * 900, "NOTUTF8")
    with tempdir() as d:
        path, picture = small(d), os.path.join(d, "x.svg")
        r = run(CTL, "profile", path, "--svg=" + picture, env=environment())
        equal((r.returncode, r.stdout, r.stderr), (0, "", "Wrote %s\n" % picture))
        titles = [t.firstChild.data for t in xml.dom.minidom.parse(picture).getElementsByTagName("title")]
        equal(titles, ["all: 12ns (100.00%)", "main: 12ns (100.00%), itself 7ns (58.33%)", "crunch: 5ns (41.67%), itself 5ns (41.67%)"])
        made = profile([("cpu", "nanoseconds")], [([i + 1], [1 - 3 * (i % 2)], []) for i in range(len(harm))],
                       [(i + 1, 1, i + 1, [(i + 1, 1)]) for i in range(len(harm))], [(i + 1, n, n, "", 0) for i, n in enumerate(harm)],
                       [(1, "/x", "")])
        write(path, made.replace(b"NOTUTF8", b"\xff\xfe\xc3(\x80ab"))
        r = run(CTL, "profile", path, "--svg=" + picture, env=environment())
        equal(r.returncode, 0, r.stderr)
        tree = xml.dom.minidom.parse(picture)
        titles = [t.firstChild.data for t in tree.getElementsByTagName("title")]
        equal((len(tree.getElementsByTagName("script")), len(titles)), (0, len(harm) + 1))
        # Five of them with 1, -2, 1, -2, 1: the whole is 7 without signs, and each keeps its own.
        equal(titles[0], "all: -1ns (-14.29%)")
        need("a\"b'&amp;?: -2ns (-28.57%), itself -2ns (-28.57%)" in titles, titles)
        equal(run(CTL, "profile", path, "--svg=" + picture, "--folded", env=environment()).returncode, 2)


@test
def a_page_for_browsers_has_the_profile_inside():
    with tempdir() as d:
        path, page = small(d), os.path.join(d, "page.html")
        r = run(CTL, "profile", path, "--html=" + page, VIEWER, env=environment())
        equal((r.returncode, r.stdout, r.stderr), (0, "", "Wrote %s\n" % page))
        with open(page) as f:
            text = f.read()
        (name, inside), = re.findall(r'<script id="profile" type="application/octet-stream" data-name="([^"]*)">([^<]*)</script>\n', text)
        equal(name, path)
        again = write(os.path.join(d, "again.pb.gz"), base64.b64decode(inside, validate=True))
        equal(run(CTL, "profile", again, env=environment()).stdout, run(CTL, "profile", path, env=environment()).stdout)
        r = run(CTL, "profile", path, "--base=" + path, "--html=" + page, VIEWER, env=environment())
        equal(r.returncode, 0, r.stderr)
        for words, wanted in (["--html=" + page, "--viewer-file=/nowhere"], "the viewer cannot be read: /nowhere: No such file or directory; "
                              "install it"), (["--html=" + page, "--viewer-file=" + path], "the viewer cannot be read: %s: " % path):
            r = run(CTL, "profile", path, *words, env=environment())
            equal((r.returncode, r.stdout), (1, ""))
            contains(r.stderr, wanted)
        for name in "--html=", "--svg=":
            r = run(CTL, "profile", path, name + "/nosuch/x", *([VIEWER] if name == "--html=" else []), env=environment())
            equal((r.returncode, r.stdout), (1, ""))
            contains(r.stderr, "'/nosuch/x': No such file or directory; write another file with %sFILE" % name)
        for words in ["--html=" + page, "--tree"], ["--html=" + page, "--focus=main"], ["--html=" + page, "--cum"], [VIEWER]:
            equal(run(CTL, "profile", path, *words, env=environment()).returncode, 2, words)
        equal(sorted(os.listdir(d)), ["again.pb.gz", "page.html", "small.pb.gz"])


if "\n  profile " in run(CTL, "--help", env=environment()).stdout:
    main()
else:
    print("1..0 # SKIP componentctl was built without libcurl")