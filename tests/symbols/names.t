#!/usr/bin/env python3
"""names.t - names of addresses, against nm and readelf, in good files and in others."""
import os
import re
import shutil
import subprocess
import sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *

C = r"""
#include <unistd.h>
#include <stdlib.h>
#include <string.h>
static __attribute__((noinline)) int hidden_helper(int n) { volatile int a = n; while (n--) a += n * a; return a; }
int exported_work(int n) { return hidden_helper(n) + (int)getpid() + (int)strlen(getenv("HOME")); }
int alias_of_work(int n) __attribute__((alias("exported_work")));
int __alias_of_work(int n) __attribute__((alias("exported_work")));
static int (*choose(void))(int) { return hidden_helper; }
int chosen(int) __attribute__((ifunc("choose")));
#ifdef __x86_64__
/* A label inside a sized function, a function without a size, and bytes that are nobody's. */
__asm__(".text\n.globl sized_asm\n.type sized_asm,@function\nsized_asm:\n.fill 16,1,0x90\ninner_label:\n.fill 16,1,0x90\n"
        ".size sized_asm,.-sized_asm\n.fill 64,1,0x90\n.globl unsized_asm\n.type unsized_asm,@function\nunsized_asm:\n.fill 32,1,0x90\n");
#endif
"""
CXX_SOURCE = r"""
#include <map>
#include <string>
namespace shop {
template <typename T> struct Basket { __attribute__((noinline)) int total(const std::map<std::string, T> &m) const; };
template <typename T> int Basket<T>::total(const std::map<std::string, T> &m) const { int s = 0; for (auto &e : m) s += (int)e.second; return s; }
template struct Basket<int>;
int operator+(const Basket<int> &, int n) { return n; }
}
int plain(int n) { auto f = [](int k) __attribute__((noinline)) { volatile int a = k; return a; }; return f(n); }
"""


def build(d, name, source, *flags, cxx=False):
    src = os.path.join(d, name + (".cc" if cxx else ".c"))
    with open(src, "w") as f:
        f.write(source)
    out = os.path.join(d, name + ".so")
    compiler = (CXX if cxx else CC).split()
    r = run(*compiler, "-g", "-O1", "-fPIC", "-shared", *flags, "-o", out, src)
    equal(r.returncode, 0, r.stderr)
    return out


def tool(*argv):
    if not shutil.which(argv[0]):
        raise Skip("no " + argv[0])
    r = run(*argv)
    equal(r.returncode, 0, "%r: %s" % (argv, r.stderr))
    return r.stdout


class Sample:
    def __init__(self, name="tests/programs/names_of_addresses", **kw):
        self.p = subprocess.Popen([program(name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **kw)

    def __enter__(self):
        return self

    def __exit__(self, *a):
        self.p.stdin.close()
        need(a[0] or self.p.wait(DEADLINE) == 0, "the sample ended with %r" % self.p.returncode)
        self.p.stdout.close()

    def tell(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        return self.p.stdout.readline().rstrip("\n")

    def load(self, path):
        answer = self.tell("load " + path)
        need(answer.startswith("base "), answer)
        return int(answer.split()[1], 16)

    def open(self, limit=""):
        equal(self.tell("open %s" % limit), "open 0")

    def at(self, address):
        """(name, system name, offset, object), or None."""
        answer = self.tell("at %#x" % address)
        return None if answer == "nothing" else tuple(answer.split("\t"))

    def maps(self):
        line, found = self.tell("maps"), []
        while line != "end":
            rng, offset, build_id, path = line.split(" ", 3)
            found.append((int(rng.split("-")[0], 16), int(rng.split("-")[1], 16), int(offset, 16), build_id, path))
            line = self.p.stdout.readline().rstrip("\n")
        return found

    def number(self, command):
        return int(self.tell(command).split()[1])


def functions(path, *flags):
    """address to (size, {names}) of what nm calls code."""
    found = {}
    for line in tool("nm", "-S", "--defined-only", *flags, path).splitlines():
        m = re.match(r"([0-9a-f]+) (?:([0-9a-f]+) )?([tTWi]) (.*)$", line)
        if not m:
            continue
        size, names = found.get(int(m[1], 16), (0, set()))
        found[int(m[1], 16)] = (max(size, int(m[2] or "0", 16)), names | {m[4].split("@")[0]})
    return found


def build_id(path):
    m = re.search(r"Build ID: ([0-9a-f]+)", tool("readelf", "-n", path))
    return m[1] if m else "-"


def check_all(s, base, want):
    """Every function, at its start, in its middle and at its last byte."""
    checked = 0
    for address, (size, names) in want.items():
        for offset in {0, size // 2, size - 1} if size else {0}:
            got = s.at(base + address + offset)
            inner = [n for a, (z, n) in want.items() if a <= address + offset < a + max(z, 1)]
            need(any(got[1] in n for n in inner), "%#x+%d: %r, nm says %r" % (address, offset, got, inner))
            checked += 1
    return checked


@test
def every_function_of_a_C_object_has_the_name_that_nm_gives_it():
    with tempdir() as d, Sample() as s:
        so = build(d, "victim", C)
        base = s.load(so)
        s.open()
        want = {a: v for a, v in functions(so).items() if v[0]}
        need(check_all(s, base, want) >= 12)
        work = [a for a, (z, n) in want.items() if "exported_work" in n][0]
        name, system, offset, obj = s.at(base + work + 3)
        equal((system, offset, obj), (name, "3", so))
        need(not name.startswith("_"), "an alias without underscores is preferred, got " + name)


@test
def a_large_stripped_library_agrees_with_nm():
    with Sample() as s:
        s.tell("debug /nonexistent")
        s.open()
        path = [m for m in s.maps() if re.search(r"/libc[.-]", m[4])][0]
        want = {a: v for a, v in functions(path[4], "-D").items() if v[0]}
        need(len(want) > 1000)
        # The ELF address of a byte of the text is its offset plus a constant.
        text = [l.split() for l in tool("readelf", "-lW", path[4]).splitlines() if " R E " in l][0]
        base = path[0] - path[2] + int(text[1], 16) - int(text[2], 16)
        for address in sorted(want)[::23]:
            got = s.at(base + address)
            need(got[1] in want[address][1], "%#x: %r, nm says %r" % (address, got, want[address]))


@test
def past_the_end_of_a_sized_function_nothing_is_claimed():
    with tempdir() as d, Sample() as s:
        so = build(d, "victim", C)
        base = s.load(so)
        s.open()
        at = {n: a for a, (z, names) in functions(so).items() for n in names}
        if "sized_asm" not in at:
            raise Skip("the assembly is for x86-64")
        equal(s.at(base + at["sized_asm"] + 20)[:3], ("sized_asm", "sized_asm", "20"))
        got = s.at(base + at["sized_asm"] + 40)
        equal(got[0], "victim.so+%#x" % (at["sized_asm"] + 40))
        equal(s.at(base + at["unsized_asm"] + 5)[:3], ("unsized_asm", "unsized_asm", "5"))


@test
def a_stub_is_named_after_what_it_calls():
    if os.uname().machine == "x86_64":
        forms = ["-Wl,-z,lazy"], ["-Wl,-z,now"], ["-fcf-protection=full", "-Wl,-z,ibtplt"]
    else:
        # Without libc's startup code, which may lack the landing pads that BTI wants.
        marked = ["-nostartfiles", "-mbranch-protection=standard"]
        forms = [["-Wl,-z,lazy"], ["-Wl,-z,now"]] + [marked + ["-Wl," + o] for o in (
            "-z,force-bti", "-z,pac-plt", "-z,force-bti,-z,pac-plt")]
    for flags in forms:
        with tempdir() as d, Sample() as s:
            so = build(d, "victim", C, *flags)
            base = s.load(so)
            s.open()
            found = re.findall(r"^([0-9a-f]+) <([^>]+@plt)>:", tool("objdump", "-d", so), re.M)
            need(any(n == "getpid@plt" for _, n in found), "objdump sees %r" % found)
            for address, name in found:
                if name.startswith("*ABS*") or "-0x" in name or "+0x" in name:
                    continue
                # __cxa_finalize and the like have a version in objdump's name.
                equal(s.at(base + int(address, 16))[0], re.sub(r"@[^@]*@plt", "@plt", name), str(flags))


@test
def C_plus_plus_names_are_readable_in_a_program_of_C():
    with tempdir() as d:
        so = build(d, "shop", CXX_SOURCE, cxx=True)
        mangled = {a: v for a, v in functions(so).items() if v[0]}
        readable = functions(so, "-C")
        with Sample() as s:
            base = s.load(so)
            s.open()
            for address in mangled:
                name, system, _, _ = s.at(base + address)
                need(system in mangled[address][1], "%r not in %r" % (system, mangled[address]))
                need(name in readable[address][1], "%r not in %r" % (name, readable[address]))
            names = {s.at(base + a)[0] for a in mangled}
            need(any(n.startswith("shop::Basket<int>::total(") for n in names), str(names))


@test
def a_stub_of_a_cxx_function_has_its_readable_name():
    with tempdir() as d, Sample() as s:
        so = build(d, "stubs", "int far_away(int n);\n__attribute__((noinline)) int far_away(int n) { return n * 3; }\n"
                   "int near_by(int n);\nint near_by(int n) { return far_away(n) + 1; }\n", cxx=True)
        stubs = re.findall(r"^([0-9a-f]+) <(_Z8far_awayi@plt)>:", tool("objdump", "-d", so), re.M)
        need(stubs, "objdump sees no stub")
        base = s.load(so)
        s.open()
        equal(s.at(base + int(stubs[0][0], 16))[:2], ("far_away(int)@plt", "_Z8far_awayi@plt"))


@test
def a_name_crafted_to_unfold_is_cut_or_stays_mangled():
    with tempdir() as d, Sample() as s:
        deep = "_Z1f" + "P" * 1000 + "i"
        wide = "_Z1f1aIiiE" + "".join("S_IS%s_S%s_E" % ((x, x)) for x in ["0"] + list("123456789ABCDEFGHIJKLMN"))
        fine = "_Z1f" + "P" * 100 + "i"
        so = build(d, "crafted", "".join('int f%d(int n) __asm__("%s"); int f%d(int n) { return n; }\n' % (i, n, i)
                                         for i, n in enumerate((deep, wide, fine))))
        base = s.load(so)
        s.open()
        for address, (size, names) in functions(so).items():
            got = s.at(base + address)
            if deep in names:
                equal(got[0], got[1])
            if wide in names:
                need(len(got[0]) <= 4096, "%d bytes" % len(got[0]))
            if fine in names:
                equal(got[0], "f(int" + "*" * 100 + ")")


@test
def a_stripped_object_keeps_its_exported_names():
    with tempdir() as d, Sample() as s:
        so = build(d, "victim", C)
        everything = functions(so)
        tool("strip", so)
        base = s.load(so)
        s.open()
        check_all(s, base, {a: v for a, v in functions(so, "-D").items() if v[0]})
        hidden = [a for a, (z, n) in everything.items() if "hidden_helper" in n][0]
        # Called by where it begins, so that all of one function is one line.
        for offset in (0, 1, everything[hidden][0] - 1):
            equal(s.at(base + hidden + offset)[0], "victim.so+%#x" % hidden)
        equal(s.number("unread"), 0)


@test
def a_debug_link_gives_the_names_of_static_functions():
    for place, good in (("%s", True), ("%s/.debug", True), ("%s", False)):
        with tempdir() as d, Sample() as s:
            so = build(d, "victim", C, "-Wl,--build-id=none")
            everything = functions(so)
            where = place % os.path.dirname(so)
            os.makedirs(where, exist_ok=True)
            debug = os.path.join(where, "victim.debug")
            tool("objcopy", "--only-keep-debug", so, debug)
            tool("strip", so)
            tool("objcopy", "--add-gnu-debuglink=" + debug, so)
            if not good:
                with open(debug, "ab") as f:
                    f.write(b"\0")
            base = s.load(so)
            s.open()
            hidden = [a for a, (z, n) in everything.items() if "hidden_helper" in n][0]
            equal(s.at(base + hidden)[0], "hidden_helper" if good else "victim.so+%#x" % hidden)
            equal(s.number("unread"), 0)


@test
def functions_without_names_are_told_apart_as_readelf_tells_them():
    with Sample() as s:
        s.tell("debug /nonexistent")
        s.open()
        libc = [m for m in s.maps() if re.search(r"/libc[.-]", m[4])][0]
        text = [l.split() for l in tool("readelf", "-lW", libc[4]).splitlines() if " R E " in l][0]
        base = libc[0] - libc[2] + int(text[1], 16) - int(text[2], 16)
        if functions(libc[4]):
            raise Skip("this C library has all its names")
        names = functions(libc[4], "-D")
        ranges = [(int(a, 16), int(b, 16)) for a, b in
                  re.findall(r"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", run("readelf", "--debug-dump=frames", libc[4]).stdout)]
        unnamed = [(a, b) for a, b in ranges if not any(x <= a < x + z for x, (z, _) in names.items())]
        need(len(unnamed) > 100, "%d" % len(unnamed))
        checked = 0
        for a, b in unnamed[::7]:
            got = {s.at(base + x)[0] for x in (a, (a + b) // 2, b - 1)}
            if any("@plt" in n for n in got):
                continue
            equal(got, {"%s+%#x" % (os.path.basename(libc[4]), a)})
            checked += 1
        need(checked > 20)


@test
def the_packed_symbols_of_a_distribution_are_unpacked():
    with tempdir() as d, Sample() as s:
        so = build(d, "victim", C)
        everything = functions(so)
        mini = os.path.join(d, "mini")
        tool("objcopy", "--only-keep-debug", so, mini)
        tool("objcopy", "-S", "--remove-section", ".gdb_index", "--remove-section", ".comment",
             "--keep-symbol=hidden_helper", "--keep-symbol=choose", mini)
        tool("xz", mini)
        tool("strip", so)
        tool("objcopy", "--add-section", ".gnu_debugdata=" + mini + ".xz", so)
        base = s.load(so)
        place = {w: [a for a, (z, n) in everything.items() if w in n][0] for w in ("hidden_helper", "choose", "exported_work")}
        s.open()
        # What unpacks is not loaded by itself, and what is exported has its name without.
        need("liblzma" not in open("/proc/%d/maps" % s.p.pid).read(), "liblzma is there before it is asked for")
        need(s.at(base + place["exported_work"])[0] in everything[place["exported_work"]][1], "exported_work, packed")
        need(s.at(base + place["hidden_helper"])[0] not in everything[place["hidden_helper"]][1], "unpacked without liblzma")
        need(s.tell("close").startswith("bytes "), "not closed")
        equal(s.tell("prepare"), "prepared")
        s.open()
        for wanted, address in place.items():
            need(s.at(base + address)[0] in everything[address][1], wanted)


@test
def symbols_that_were_split_off_are_found_by_build_id():
    for good in (True, False):
        with tempdir() as d, Sample() as s:
            so = build(d, "victim", C)
            want = functions(so)
            other = build(d, "other", C.replace("hidden_helper", "wrong_name_here"))
            id = build_id(so)
            os.makedirs(os.path.join(d, "debug", ".build-id", id[:2]))
            tool("objcopy", "--only-keep-debug", so if good else other, os.path.join(d, "debug", ".build-id", id[:2], id[2:] + ".debug"))
            tool("strip", so)
            base = s.load(so)
            s.tell("debug " + os.path.join(d, "debug"))
            before = len(descriptors(s.p.pid))
            s.open()
            hidden = [a for a, (z, n) in want.items() if "hidden_helper" in n][0]
            equal(s.at(base + hidden + 1)[0], "hidden_helper" if good else "victim.so+%#x" % hidden)
            if good:
                check_all(s, base, {a: v for a, v in want.items() if v[0]})
            equal(len(descriptors(s.p.pid)), before)


def replaced(change, **kw):
    """A library is loaded, then change(path, dir) happens to its file; the answers for hidden_helper."""
    with tempdir() as d, Sample(**kw) as s:
        so = build(d, "victim", C)
        address = [a for a, (z, n) in functions(so).items() if "hidden_helper" in n][0]
        base = s.load(so)
        change(so, d)
        s.open()
        got = s.at(base + address)
        mapped = [m for m in s.maps() if m[4] == so]
        equal(len(mapped), 1, "the path is shown without (deleted)")
        return got, address, mapped[0], s.number("unread")


def without_privileges():
    """To start a program as somebody else, who must be able to reach it."""
    if os.getuid() != 0:
        return {}
    os.umask(0o022)
    if run("/usr/bin/test", "-x", program("tests/programs/names_of_addresses"), preexec_fn=lambda: os.setuid(65534)).returncode:
        raise Skip("the build directory cannot be read by others")
    return {"preexec_fn": lambda: os.setuid(65534)}


@test
def a_deleted_file_is_never_replaced_by_a_namesake():
    def other(so, d):
        os.unlink(so)
        shutil.copy(build(d, "other", C.replace("hidden_helper", "wrong_name_here")), so)

    got, address, mapped, unread = replaced(lambda so, d: os.unlink(so))
    need(got[0] in ("hidden_helper", "victim.so+%#x" % address), str(got))
    need(len(mapped[3]) == 40, "the build id is read from memory, got " + mapped[3])
    got, address, mapped, unread = replaced(other)
    need(got[0] in ("hidden_helper", "victim.so+%#x" % address), str(got))


@test
def without_privileges_a_replaced_file_means_no_names_and_says_so():
    def other(so, d):
        os.chmod(d, 0o755)
        os.unlink(so)
        shutil.copy(build(d, "other", C.replace("hidden_helper", "wrong_name_here")), so)

    def gone(so, d):
        os.chmod(d, 0o755)
        os.unlink(so)

    def same(so, d):
        os.chmod(d, 0o755)
        shutil.copy(so, so + ".new")
        os.rename(so + ".new", so)

    for change in (other, gone):
        got, address, mapped, unread = replaced_open_dir(change)
        need(got[0].startswith("victim.so+0x"), str(got))
        equal(unread, 1)
    got, address, mapped, unread = replaced_open_dir(same)
    equal((got[0], unread), ("hidden_helper", 0), "a copy with the same build id is as good")


def replaced_open_dir(change):
    with tempdir() as d:
        os.chmod(d, 0o755)
        so = build(d, "victim", C)
        address = [a for a, (z, n) in functions(so).items() if "hidden_helper" in n][0]
        with Sample(**without_privileges()) as s:
            base = s.load(so)
            change(so, d)
            s.open()
            got = s.at(base + address)
            mapped = [m for m in s.maps() if m[4] == so]
            return got, address, mapped[0], s.number("unread")


@test
def a_file_cut_short_under_a_running_program_costs_names_only():
    with tempdir() as d, Sample() as s:
        so = build(d, "victim", C)
        want = {a: v for a, v in functions(so).items() if v[0]}
        base = s.load(so)
        os.truncate(so, 5000)
        s.open()
        for address in want:
            equal(s.at(base + address)[0], "victim.so+%#x" % address)
        equal(s.number("unread"), 1)


@test
def the_main_binary_is_first_the_rest_sorted_and_build_ids_are_those_of_readelf():
    with Sample() as s:
        s.open()
        maps = s.maps()
        equal(os.path.realpath(maps[0][4]), os.path.realpath("/proc/%d/exe" % s.p.pid))
        equal([m[0] for m in maps[1:]], sorted(m[0] for m in maps[1:]))
        lines = [l.split(None, 5) for l in open("/proc/%d/maps" % s.p.pid)]
        executable = sorted((int(l[0].split("-")[0], 16), int(l[0].split("-")[1], 16)) for l in lines
                            if "x" in l[1] and len(l) > 5)
        equal(sorted((m[0], m[1]) for m in maps), executable)
        for m in maps:
            if m[4].startswith("/"):
                equal(m[3], build_id(m[4]), m[4])
        vdso = [m for m in maps if m[4] == "[vdso]"]
        if vdso:
            need(len(vdso[0][3]) >= 16, "the vdso has a build id, got %r" % vdso[0][3])
            names = {s.at(a)[0] for a in range(vdso[0][0], vdso[0][1], 16)}
            need(any("clock_gettime" in n for n in names), str(names))


@test
def a_view_gives_back_its_memory_and_descriptors():
    with tempdir() as d, Sample() as s:
        base = s.load(build(d, "victim", C))

        def look():
            maps = len(open("/proc/%d/maps" % s.p.pid).readlines())
            return maps, len(os.listdir("/proc/%d/fd" % s.p.pid))
        counts = []
        for _ in range(4):
            s.open()
            for m in s.maps():
                s.at(m[0] + 100)
            equal(len(os.listdir("/proc/%d/fd" % s.p.pid)), 3, "no descriptor is kept for small tables")
            need(s.number("close") > 0)
            counts.append(look())
        equal(counts[1:], counts[1:2] * 3)


@test
def names_that_are_too_many_for_memory_are_read_one_by_one():
    with tempdir() as d, Sample() as s:
        names = ["f%d_%s" % (i, "x" * 3000) for i in range(3000)]  # 9 MB, the table's limit is 8
        src = os.path.join(d, "large.s")
        with open(src, "w") as f:
            f.write(".text\n")
            for n in names:
                f.write(".globl %s\n.type %s,@function\n%s:\n.fill 16,1,0x90\n.size %s,16\n" % (n, n, n, n))
        so = os.path.join(d, "large.so")
        r = run(*CC.split(), "-shared", "-nostdlib", "-Wl,--build-id", "-o", so, src)
        equal(r.returncode, 0, r.stderr)
        want = functions(so)
        copies = [so] + [os.path.join(d, "copy%d.so" % i) for i in range(8)]
        for c in copies[1:]:
            shutil.copy(so, c)
        bases = [s.load(c) for c in copies]
        before = len(descriptors(s.p.pid))
        s.open()
        for i, base in enumerate(bases):
            for address in sorted(want)[::500]:
                got = s.at(base + address + 5)
                if i < 8:
                    need(got[0] in want[address][1], got[0][:80])
                else:
                    equal(got[0], "copy7.so+%#x" % (address + 5), "one more file than may stay open")
        equal(len(descriptors(s.p.pid)), before + 8)
        equal(s.number("unread"), 1)
        need(s.number("close") < 4 << 20)
        equal(len(descriptors(s.p.pid)), before)


@test
def the_main_binary_keeps_its_names_when_its_file_is_gone():
    with tempdir() as d:
        os.chmod(d, 0o755)
        path = os.path.join(d, "sample")
        shutil.copy(program("tests/programs/names_of_addresses"), path)
        at = {n: a for a, (z, names) in functions(path).items() for n in names}
        with Sample(path, **without_privileges()) as s:
            s.open()  # it runs
            s.tell("close")
            os.unlink(path)
            s.open()
            main = s.maps()[0]
            equal(main[4], path)
            text = [l.split() for l in tool("readelf", "-lW", program("tests/programs/names_of_addresses")).splitlines() if " R E " in l][0]
            equal(s.at(main[0] - main[2] + int(text[1], 16) - int(text[2], 16) + at["symbols_open"])[0], "symbols_open")


@test
def without_a_build_id_device_and_inode_decide():
    def rebuilt(so):
        shutil.copy(so, so + ".new")
        os.rename(so + ".new", so)
    for change, name in ((lambda so: None, "hidden_helper"), (rebuilt, "victim.so+")):
        with tempdir() as d:
            os.chmod(d, 0o755)
            so = build(d, "victim", C, "-Wl,--build-id=none")
            address = [a for a, (z, n) in functions(so).items() if "hidden_helper" in n][0]
            with Sample(**without_privileges()) as s:
                base = s.load(so)
                change(so)
                s.open()
                need(s.at(base + address)[0].startswith(name), "%r" % (s.at(base + address),))


@test
def over_its_limit_a_table_is_left_out_and_counted():
    with Sample() as s:
        s.tell("debug /nonexistent")
        s.open(320 << 10)
        libc = [m for m in s.maps() if re.search(r"/libc[.-]", m[4])][0]
        need(re.match(r"libc.*\+0x[0-9a-f]+$", s.at(libc[0] + 5000)[0]))
        equal(s.number("unread"), 1)
        need(s.number("close") <= 320 << 10)


@test
def outside_of_all_mappings_there_is_nothing():
    with Sample() as s:
        s.open()
        for address in (0, 1, 0x1000, 0x7fffffffffff, 0xffffffffffffffff):
            equal(s.at(address), None)


@test
def a_daemon_without_standard_descriptors_never_gets_ours_as_one():
    def close_them():
        os.close(2)
    with Sample(preexec_fn=close_them) as s:
        s.open()
        for m in s.maps():
            s.at(m[0] + 100)
        need(2 not in descriptors(s.p.pid))


main()
