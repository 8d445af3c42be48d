#!/usr/bin/env python3
"""What a processor is to the tree: a folder of profiler/unwind/arch/, which no other file names.

That the rest builds and runs without one is tests/unwind/unknown_processor.t.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

ARCH = "profiler/unwind/arch"
ROOMS = "profiler", "libcomponent", "flags"


def sources():
    for room in ROOMS:
        for folder, _, names in os.walk(os.path.join(SRC, room)):
            for name in sorted(names):
                if name.endswith(".c") and "/arch/" not in folder:
                    yield os.path.relpath(os.path.join(folder, name), SRC)


@test
def no_if_names_an_architecture_outside_of_arch():
    out = subprocess.run([sys.executable, os.path.join(SRC, "scripts/count")], capture_output=True, text=True, timeout=DEADLINE)
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
