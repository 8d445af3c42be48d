#!/usr/bin/env python3
"""The tree on an architecture that profiler/unwind/arch/ has no folder for.

riscv64 stands for all of them, by Debian's cross compiler: it has headers of libc alone, so
what includes other libraries is left out.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

CC = "riscv64-linux-gnu-gcc"
ARCH = "profiler/unwind/arch"
ROOMS = "profiler", "libcomponent", "flags"
with open(os.path.join(SRC, "Makefile.am")) as makefile:
    INCLUDED = re.findall(r"(-iquote |-I)\$\(top_srcdir\)/([^\s$]+)", makefile.read())
QUOTED = [ARCH + "/other"] + [d for how, d in INCLUDED if how == "-iquote "]
PUBLIC = ["gnulib"] + [d for how, d in INCLUDED if how == "-I"]
FOREIGN = re.compile(r"#include <(event2/|yaml|zlib|lzma|protobuf-c)|#include <component/evhttp|#include \"(profile\.pb-c|httpd_internal)\.h\"")


def sources():
    for room in ROOMS:
        for folder, _, names in os.walk(os.path.join(SRC, room)):
            if "/arch/" in folder or folder.endswith("/hooks/object"):
                continue
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), SRC)
                if name.endswith(".c") and not name.endswith(".pb-c.c") and not FOREIGN.search(text_of(path)):
                    yield path


def complaints(path):
    argv = [CC, "-std=gnu11", "-D_GNU_SOURCE", "-DHAVE_CONFIG_H", "-Wall", "-Wextra", "-Wno-missing-field-initializers",
            "-Werror", "-c", "-o", "/dev/null", "-include", os.path.join(SRC, "libcomponent/base/our_wait.h"),
            "-I" + BUILD, "-I" + BUILD + "/gnulib"]
    for d in QUOTED:
        argv += ["-iquote", os.path.join(SRC, d)]
    argv += ["-I" + os.path.join(SRC, d) for d in PUBLIC]
    r = subprocess.run(argv + [os.path.join(SRC, path)], capture_output=True, text=True)
    return "" if r.returncode == 0 else path + ":\n" + "\n".join(r.stderr.split("\n")[:5])


@test
def it_compiles_where_no_folder_is_for_it():
    if not shutil.which(CC):
        raise Skip("no %s: install the Debian package gcc-riscv64-linux-gnu" % CC)
    paths = list(sources())
    need(len(paths) > 200, "only %d files were found" % len(paths))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [c for c in pool.map(complaints, paths) if c]
    need(not wrong, "\n".join(wrong[:5]))


@test
def no_if_names_an_architecture_outside_of_arch():
    out = subprocess.run([sys.executable, os.path.join(SRC, "scripts/count")], capture_output=True, text=True, timeout=60)
    found = re.search(r"^architectures +(\d+)", out.stdout, re.M)
    need(int(re.search(r"^all +(\d+)", out.stdout, re.M).group(1)) > 300, out.stdout)
    equal(found.group(1), "0")


@test
def each_folder_has_the_headers_of_other():
    def headers(folder):
        return {n for n in os.listdir(os.path.join(SRC, ARCH, folder)) if n.endswith(".h")}
    for folder in os.listdir(os.path.join(SRC, ARCH)):
        equal((folder, headers("other") - headers(folder)), (folder, set()))
        for own in headers(folder) - headers("other"):
            users = [path for path in sources() if '#include "%s"' % own in text_of(path)]
            equal(users, [], "%s is the folder's own, and is included by" % own)


main()
