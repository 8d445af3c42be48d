#!/usr/bin/env python3
"""lines.t - lines and inlined functions, against addr2line and llvm-symbolizer.

An address agrees when all its frames, innermost first, have the function, file and
line that addr2line -fi says, or, where that one is known to be wrong, that
llvm-symbolizer says: binutils 2.40 takes the unit's first file for another one in
DWARF 5, overlooks some inlined functions of clang's, and cannot read all of .zdebug.
A name that neither debug information nor the symbol table has cannot be compared.
"""
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import zlib
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *

C = r"""
#include <stdio.h>
static inline __attribute__((always_inline)) int sq(int x) { volatile int a = x; return a * a; }
static inline __attribute__((always_inline)) int tw(int x) { int s = 0; for (int i = 0; i < x; i++) s += sq(i)
  + sq(x); return s; }
__attribute__((noinline)) int work(int n)
{
    int s = 0;
    for (int i = 0; i < n; i++) { if (i % 3) s += tw(i); else s -= sq(i); }
    return s;
}
__attribute__((noinline)) int cold(int n) { return __builtin_expect(n == 77, 0) ? printf("%d\n", tw(n)) : work(n); }
int main(int c, char **v) { (void)v; return work(c) + printf("%d\n", cold(c)); }
"""
NESTED = r"""
__attribute__((noinline)) int outer(int n)
{
    __attribute__((noinline)) int inner(int k) {
        volatile int a = k + n;
        return a * n;
    }
    volatile int b = inner(n);
    return b;
}
int main(int c, char **v) { (void)v; return outer(c); }
"""
CXX_SOURCE = r"""
#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>
namespace shop {
template <class T> struct B { T v; T total(std::map<std::string, T> &m) const { T s{}; for (auto &e : m) s += e.second; return s + v; } };
struct Q { virtual int f(int); virtual ~Q(); };
int Q::f(int n) { std::vector<int> a(n); std::sort(a.begin(), a.end(), [](int x, int y) { return x > y; }); return a[0]; }
Q::~Q() {}
}
int main(int c, char **v)
{
    std::map<std::string, int> m;
    for (int i = 0; i < c; i++) m[v[i]] = i;
    shop::B<int> b{c}; shop::Q q;
    std::cout << b.total(m) << q.f(c);
    try { throw 1; } catch (int e) { std::cout << e; }
    return 0;
}
"""
COUNT = 2000


def tool(*argv, **kw):
    if not shutil.which(argv[0]):
        raise Skip("no " + argv[0])
    r = subprocess.run(argv, capture_output=True, text=True, **kw)
    equal(r.returncode, 0, "%r: %s" % (argv, r.stderr))
    return r.stdout


def build(d, source, compiler, *flags, name="program"):
    cxx = "++" in compiler
    src = os.path.join(d, name + (".cc" if cxx else ".c"))
    with open(src, "w") as f:
        f.write(source)
    out = os.path.join(d, name)
    tool(compiler, "-g", *flags, "-o", out, src, cwd=d)
    return out


def sample(path, count=COUNT):
    """Addresses inside functions, the same each time; longer functions have more."""
    spans = set()
    for line in tool("nm", "-S", "--defined-only", path).splitlines():
        m = re.match(r"([0-9a-f]+) ([0-9a-f]+) [tTwWi] ", line)
        if m and int(m[2], 16):
            spans.add((int(m[1], 16), int(m[2], 16)))
    spans = sorted(spans)
    r = random.Random(1)
    return [a + r.randrange(n) for a, n in r.choices(spans, [n for _, n in spans], k=count)]


class Answer:
    def __init__(self, path, addresses, *options):
        r = subprocess.run([program("tests/programs/lines_of_addresses"), *options, path], capture_output=True, text=True,
                           input="".join("%x\n" % a for a in addresses))
        equal(r.returncode, 0, r.stderr)
        need("lost" not in r.stderr, r.stderr)
        m = re.search(r"status (-?\d+) cpu_us (\d+) rss_kb (\d+)", r.stderr)
        self.status, self.cpu_us, self.rss_kb = (int(n) for n in m.groups())
        self.frames = []
        for line in r.stdout.splitlines():
            if not line.startswith("\t"):
                self.frames.append([])
            else:
                name, file, number, start = line[1:].split("\t")
                self.frames[-1].append((name, file, int(number)))
        equal(len(self.frames), len(addresses))


def place(text):
    text = re.sub(r" \(discriminator \d+\)$", "", text)
    file, _, line = text.rpartition(":")
    return ("?" if file in ("", "?", "??") else file), (int(line) if line.isdigit() else 0)


def addr2line(path, addresses):
    found, lines = [], tool("addr2line", "-afi", "-e", path, input="".join("%x\n" % a for a in addresses)).splitlines()
    i = 0
    while i < len(lines):
        if re.match(r"0x[0-9a-f]{8,}$", lines[i]):
            found.append([])
            i += 1
        else:
            found[-1].append((lines[i], *place(lines[i + 1])))
            i += 2
    return found


def llvm(path, addresses):
    if not shutil.which("llvm-symbolizer"):
        return None
    found = []
    out = tool("llvm-symbolizer", "--no-demangle", "--obj=" + path, input="".join("%#x\n" % a for a in addresses))
    for block in out.rstrip("\n").split("\n\n"):
        lines = block.strip("\n").splitlines()
        found.append([(lines[i], *place(lines[i + 1].rpartition(":")[0])) for i in range(0, len(lines) - 1, 2)])
    return found if len(found) == len(addresses) else None


def same(ours, theirs):
    if not theirs:
        return False
    if not ours:  # no debug information covers it: the symbol table names it
        return len(theirs) == 1 and theirs[0][2] == 0
    if [f[1:] for f in ours] != [f[1:] for f in theirs]:
        return False
    for (mine, _, _), (other, _, _) in zip(ours, theirs):
        # A suffix of the compiler's, or a name that the other one has from the symbol table.
        if mine != other and mine != "?" and not other.startswith("_Z") and other.split(".")[0] != mine:
            return False
    return True


def differing(oracle, addresses, answer):
    """Which addresses disagree, and what addr2line says of all."""
    theirs, second = addr2line(oracle, addresses), None
    differ = [i for i in range(len(addresses)) if not same(answer.frames[i], theirs[i])]
    if differ:
        second = llvm(oracle, [addresses[i] for i in differ])
        if second:
            # LLVM names functions by the symbol table, so names may be addr2line's all the same.
            mixed = [[(a[0], *b[1:]) for a, b in zip(theirs[i], second[k])] if len(theirs[i]) == len(second[k]) else []
                     for k, i in enumerate(differ)]
            differ = [i for k, i in enumerate(differ)
                      if not same(answer.frames[i], second[k]) and not same(answer.frames[i], mixed[k])]
        else:  # by function and line only
            differ = [i for i in differ if [(f[0], f[2]) for f in answer.frames[i]] != [(f[0], f[2]) for f in theirs[i]]]
    return differ, theirs


def agreement(path, addresses, answer, oracle=None):
    differ, theirs = differing(oracle or path, addresses, answer)
    text = "\n".join("%#x\n  ours %r\n  addr2line %r" % (addresses[i], answer.frames[i], theirs[i]) for i in differ[:5])
    need(len(differ) <= len(addresses) * 0.001, "%d of %d differ:\n%s" % (len(differ), len(addresses), text))


def check(path, *options, oracle=None, inlined=True, count=COUNT):
    addresses = sample(oracle or path, count)
    answer = Answer(path, addresses, *options)
    equal(answer.status, 0)
    agreement(path, addresses, answer, oracle)
    frames = sum(len(f) for f in answer.frames)
    need(not inlined or frames > len(addresses) * 1.1, "only %d frames of %d addresses" % (frames, len(addresses)))
    return answer


def matrix(compiler, source, inlined=True):
    if compiler.startswith("clang") and not shutil.which("llvm-symbolizer"):
        raise Skip("no llvm-symbolizer: addr2line loses inlined functions of clang's")
    for version in ("-gdwarf-4", "-gdwarf-5"):
        for packed in ([], ["-gz=zlib"]):
            for optimized in ("-O0", "-O2"):
                with tempdir() as d:
                    check(build(d, source, compiler, version, optimized, *packed), inlined=inlined and optimized != "-O0")


@test
def gcc_C_agrees_with_addr2line():
    matrix("gcc", C)


@test
def gcc_C_plus_plus_agrees_with_addr2line():
    matrix("g++", CXX_SOURCE)


@test
def clang_C_agrees_with_addr2line_or_llvm():
    matrix("clang", C)


@test
def clang_C_plus_plus_agrees_with_addr2line_or_llvm():
    matrix("clang++", CXX_SOURCE)


@test
def code_optimized_at_link_time_agrees():
    for version in ("-gdwarf-4", "-gdwarf-5"):
        with tempdir() as d:
            check(build(d, CXX_SOURCE, "g++", version, "-O2", "-flto"))


@test
def sections_in_the_old_compressed_form_agree():
    with tempdir() as d:
        check(build(d, C, "gcc", "-gdwarf-4", "-O2", "-gz=zlib-gnu"))


@test
def functions_in_functions_are_found():
    with tempdir() as d:
        path = build(d, NESTED, "gcc", "-O1")
        answer = check(path, inlined=False)
        names = {f[0] for frames in answer.frames for f in frames}
        need({"outer", "inner", "main"} <= names, str(names))


@test
def code_that_the_linker_threw_away_hides_no_other():
    source = C + "".join("int unused_%d(int n) { volatile int a = n; for (int i = 0; i < n; i++) a += i * %d; return a; }\n" % (i, i)
                         for i in range(400))
    with tempdir() as d:
        check(build(d, source, "gcc", "-O2", "-ffunction-sections", "-Wl,--gc-sections"))


def debug_file(path):
    """What has its debug information: itself, or a package's file; None."""
    if not os.path.exists(path) or ".debug_info" in tool("readelf", "-SW", path):
        return path if os.path.exists(path) else None
    m = re.search("Build ID: (..)(\\w+)", tool("readelf", "-n", path))
    found = "/usr/lib/debug/.build-id/%s/%s.debug" % m.groups() if m else ""
    return found if os.path.exists(found) else None


@test
def a_library_of_python_agrees():
    paths = [os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(sys.executable))), "lib", n)
             for n in ("libpython3.11.so.1.0", "libpython3.%d.so.1.0" % sys.version_info[1])] + [os.path.realpath(sys.executable), "/usr/bin/python3.11"]
    for path in paths:
        debug = debug_file(path)
        if debug:
            answer = check(path, oracle=debug, count=10000)
            print("# %s: 10000 addresses, %d frames, %.0f ms, %.1f MB" % (
                os.path.basename(path), sum(len(f) for f in answer.frames), answer.cpu_us / 1e3, answer.rss_kb / 1024))
            need(answer.rss_kb < 40 * 1024, "%d KiB" % answer.rss_kb)
            return
    raise Skip("no python with debug information")


@test
def libc_agrees_where_its_debug_file_is_installed():
    libc = re.search(r"(/\S*/libc\.so\.6)", tool("ldd", "/bin/sh"))
    path = os.path.realpath(libc[1]) if libc else ""
    id = re.search(r"Build ID: ([0-9a-f]+)", tool("readelf", "-n", path)) if path else None
    debug = "/usr/lib/debug/.build-id/%s/%s.debug" % (id[1][:2], id[1][2:]) if id else ""
    if not os.path.exists(debug):
        raise Skip("libc's debug file is not installed")
    check(path, oracle=os.path.realpath(debug), count=5000)


def separate(d, *flags, compress=False):
    """A program and the file with its debug information; the program has none any more."""
    path = build(d, C, "gcc", "-O2", *flags)
    full = path + ".full"
    shutil.copy(path, full)
    tool("objcopy", "--only-keep-debug", *(["--compress-debug-sections=zlib"] if compress else []), full, path + ".debug")
    tool("strip", path)
    return path, full


def without_lines(path, full, *options):
    answer = Answer(path, sample(full, 100), *options)
    equal([f for f in answer.frames if f], [])
    return answer


@test
def a_debug_file_is_found_by_build_id_and_only_with_the_same_one():
    with tempdir() as d:
        root = os.path.join(d, "root")
        path, full = separate(d, "-Wl,--build-id", compress=True)
        id = re.search(r"Build ID: ([0-9a-f]+)", tool("readelf", "-n", path))[1]
        where = os.path.join(root, ".build-id", id[:2])
        os.makedirs(where)
        equal(without_lines(path, full, "-r", root).status, -2)
        os.rename(path + ".debug", os.path.join(where, id[2:] + ".debug"))
        check(path, "-r", root, oracle=full)
        other = build(d, C.replace("77", "78"), "gcc", "-O1", "-Wl,--build-id", name="other")
        shutil.copy(other, os.path.join(where, id[2:] + ".debug"))
        equal(without_lines(path, full, "-r", root).status, -2)


@test
def a_debug_file_is_found_by_its_link_and_only_with_the_right_checksum():
    for place_of in ("%(dir)s", "%(dir)s/.debug", "%(root)s%(dir)s"):
        with tempdir() as d:
            d = os.path.realpath(d)
            root = os.path.join(d, "root")
            path, full = separate(d, "-Wl,--build-id=none")
            tool("objcopy", "--add-gnu-debuglink=" + path + ".debug", path)
            where = place_of % {"dir": d, "root": root}
            os.makedirs(where, exist_ok=True)
            target = os.path.join(where, "program.debug")
            os.rename(path + ".debug", target)
            check(path, "-r", root, oracle=full)
            with open(target, "ab") as f:
                f.write(b"\0")
            equal(without_lines(path, full, "-r", root).status, -2)


@test
def a_debug_link_with_a_build_id_needs_no_checksum_but_the_same_id():
    with tempdir() as d:
        path, full = separate(d, "-Wl,--build-id")
        tool("objcopy", "--add-gnu-debuglink=" + path + ".debug", path)
        with open(path + ".debug", "ab") as f:
            f.write(b"\0")
        check(path, "-r", os.path.join(d, "root"), oracle=full)
        shutil.copy(build(d, C.replace("77", "78"), "gcc", "-O1", "-Wl,--build-id", name="other"), path + ".debug")
        equal(without_lines(path, full, "-r", os.path.join(d, "root")).status, -2)


@test
def files_packed_by_dwz_agree():
    with tempdir() as d:
        one = build(d, C, "gcc", "-O2", "-gdwarf-4", "-Wl,--build-id", name="one")
        two = build(d, C, "gcc", "-O2", "-gdwarf-4", "-Wl,--build-id", name="two")
        tool("dwz", "-m", os.path.join(d, "common"), "-r", one, two)
        need(".gnu_debugaltlink" in tool("readelf", "-SW", one))
        check(one)


@test
def names_in_a_supplementary_file_are_read():
    # Made by hand: all that dwz does to a function's name is to move it.
    def elf(path, sections):
        names = b"\0" + b"".join(n.encode() + b"\0" for n in sections) + b".shstrtab\0"
        parts, offset, headers = [], 64 + 56, [b"\0" * 64]
        for name, (kind, body) in list(sections.items()) + [(".shstrtab", (3, names))]:
            flags, address = (6, 0x1000) if name == ".text" else (0, 0)
            if name == ".text":
                parts.append(b"\0" * (0x1000 - offset))
                offset = 0x1000
            headers.append(struct.pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0"), kind, flags, address,
                                       offset, len(body), 0, 0, 4 if kind == 7 else 1, 0))
            parts.append(body)
            offset += len(body)
        ident = b"\x7fELF\2\1\1" + b"\0" * 9
        machine = 62 if os.uname().machine == "x86_64" else 183
        head = ident + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, offset, 0, 64, 56, 1, 64, len(headers), len(headers) - 1)
        load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x2000, 0x2000, 0x1000)
        with open(path, "wb") as f:
            f.write(head + load + b"".join(parts) + b"".join(headers))

    def unit(body):
        body = struct.pack("<HIB", 4, 0, 8) + body
        return struct.pack("<I", len(body)) + body

    def note(id):
        return struct.pack("<III", 4, len(id), 3) + b"GNU\0" + id

    # The supplementary file: a partial unit with a subprogram named in it, declared at line 33.
    alt_abbrev = bytes([1, 0x3c, 1, 0, 0, 2, 0x2e, 0, 0x03, 0x0e, 0x3b, 0x0b, 0, 0, 0])
    alt_info = unit(bytes([1, 2]) + struct.pack("<IB", 1, 33) + bytes([0]))
    entry = 12  # where the subprogram is: behind 11 bytes of header and one of the unit
    # The file: a unit that covers code, and a subprogram whose origin is there.
    abbrev = bytes([1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0,
                    2, 0x2e, 0, 0x11, 0x01, 0x12, 0x07, 0x31]) + bytes([0xa0, 0x3e]) + bytes([0, 0, 0])
    info = unit(bytes([1]) + struct.pack("<QQ", 0x1000, 0x100) +
                bytes([2]) + struct.pack("<QQI", 0x1010, 0x20, entry) + bytes([0]))
    with tempdir() as d:
        path = os.path.join(d, "program")
        elf(os.path.join(d, "common.debug"), {".note.gnu.build-id": (7, note(b"ABCDEFGH")), ".debug_info": (1, alt_info),
                                              ".debug_abbrev": (1, alt_abbrev), ".debug_str": (1, b"\0moved_name\0")})
        text = {".text": (1, b"\x90" * 0x1000)}
        main_sections = {**text, ".debug_info": (1, info), ".debug_abbrev": (1, abbrev)}
        elf(path, {**main_sections, ".gnu_debugaltlink": (1, b"common.debug\0ABCDEFGH")})
        equal(Answer(path, [0x1018, 0x1100]).frames, [[("moved_name", "?", 0)], []])
        elf(path, {**main_sections, ".gnu_debugaltlink": (1, b"common.debug\0other id")})
        equal(Answer(path, [0x1018]).frames, [[("?", "?", 0)]])
        os.unlink(os.path.join(d, "common.debug"))
        os.mkfifo(os.path.join(d, "common.debug"))
        writer = in_background(lambda: os.close(os.open(os.path.join(d, "common.debug"), os.O_WRONLY)))
        equal(Answer(path, [0x1018]).frames, [[("?", "?", 0)]])
        need(writer.is_alive(), "a fifo that an object names was opened")
        os.close(os.open(os.path.join(d, "common.debug"), os.O_RDONLY | os.O_NONBLOCK))
        writer.result()


@test
def what_is_too_large_to_keep_is_read_in_pieces_with_the_same_answers():
    with tempdir() as d:
        path = build(d, CXX_SOURCE, "g++", "-O2")
        addresses = sample(path)
        all = Answer(path, addresses)
        pieces = Answer(path, addresses, "-m", "2500000")
        equal((all.status, pieces.status), (0, 0))
        equal(all.frames, pieces.frames)


@test
def what_does_not_fit_has_no_lines_and_says_so():
    with tempdir() as d:
        path = build(d, CXX_SOURCE, "g++", "-O2", "-gz=zlib")
        addresses = sample(path)
        for limit in (0, 65536, 300000):
            answer = Answer(path, addresses, "-m", str(limit))
            equal(answer.status, -12)


main()
