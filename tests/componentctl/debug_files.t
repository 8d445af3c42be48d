#!/usr/bin/env python3
"""Names from debug files: a daemon of Debian's source, built and then split and stripped as Debian's packages are, whose
debug file lies where its -dbgsym package would put it.  Inside, from outside and in doctor its functions have names and
lines then, and are places in the object before.

scripts/test fetches the source; without it this is skipped.  /usr/lib/debug is another in this test alone.
"""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from pprof_reader import Profile  # noqa: E402

own_run()
from adopting import daemon_source, must  # noqa: E402 - it makes a folder, which own_run() would leave

DEBUG = "/usr/lib/debug"
BY_ITS_DEBUG_FILE = "all names (its debug file), lines (its debug file)"


def split(d):
    """dnsmasq as its package has it, its debug file beside, and the place of that."""
    folder, path = daemon_source("dnsmasq"), d + "/dnsmasq"
    must("make", "-s", "-j2", "CFLAGS=-g -O2 -Wl,--build-id", cwd=folder)
    shutil.copy(folder + "/src/dnsmasq", path)
    id = re.search(r"Build ID: ([0-9a-f]+)", must("readelf", "-n", path, cwd=d))[1]
    must("objcopy", "--only-keep-debug", "--compress-debug-sections", path, d + "/debug", cwd=d)
    must("strip", "--remove-section=.comment", "--remove-section=.note", path, cwd=d)
    return path, d + "/debug", "%s/.build-id/%s/%s.debug" % (DEBUG, id[:2], id[2:])


def ask(port, stopped, failed):
    labels = b"".join(bytes([len(l)]) + l for l in (b"x", b"a", b"test"))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(DEADLINE)
            s.connect(("127.0.0.1", port))
            while not stopped.is_set():
                s.send(struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", 1, 1))
                equal(s.recv(512)[-4:], bytes([127, 0, 0, 9]))
    except Exception as e:  # noqa: BLE001 - told below
        failed.append(e)


@contextlib.contextmanager
def at_work(path, ours):
    """Its number, while it is asked without pause; ours: under componentctl run."""
    port, stopped, failed = free_port(), threading.Event(), []
    words = [path, "-k", "-C", "/dev/null", "--port=%d" % port, "--listen-address=127.0.0.1", "-z", "--no-resolv", "-h", "--no-daemon",
             "-A", "/a.test/127.0.0.9", "--pid-file=" + path + ".pid", "-c", "1234"]
    before = [CTL, "run", "--app-id=names", "--"] if ours else []
    with started(before + words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        poll(lambda: ":%04X " % port in text_of("/proc/net/udp"), "its socket")
        if ours:
            poll(lambda: run(CTL, "dump", "names", env=environment()).returncode == 0, "its server")
        asking = threading.Thread(target=ask, args=(port, stopped, failed), daemon=True)
        asking.start()
        try:
            yield listed()["names"]["pid"] if ours else p.pid
        finally:
            stopped.set()
            asking.join(DEADLINE)
            p.terminate()  # which ends its daemon, where it is run
            ended = p.wait(DEADLINE)
        equal((failed, ended), ([], 0))


def functions_of(pid, path, d):
    """Of the daemon's own file: each name that was met, with the files and lines of it."""
    ctl("profile", str(pid), "--seconds=1", "--raw", "-o", d + "/cpu.pb.gz")
    with open(d + "/cpu.pb.gz", "rb") as f:
        p = Profile(f.read())
    own = {m[1] for m in p.mappings if p.strings[m.get(5, 0)] == path}
    functions = {f[1]: f for f in p.functions}
    met = {}
    for l in p.locations:
        for line in l["lines"] if l.get(2) in own else ():
            f = functions[line[1]]
            met.setdefault(p.strings[f[2]], set()).add((os.path.basename(p.strings[f.get(4, 0)]), line.get(2, 0)))
    return met


def names_in(target, path):
    found = json.loads(run(CTL, "doctor", "-o", "json", str(target), env=environment()).stdout)
    one, = (f for f in found if f["about"] == "names" and f["text"].startswith(path + ": "))
    return one


def without_its_debug_file(path, debug, place, d):
    """Which functions these are is said by places alone, and doctor tells where the file would be."""
    for ours in ways():
        with at_work(path, ours) as pid:
            met = poll(lambda: functions_of(pid, path, d), "samples")
            need(all(re.fullmatch(r"dnsmasq\+0x[0-9a-f]+|\w+@plt", name) for name in met), met)  # a stub has its name from what it leads to
            f = names_in(pid, path)
            equal(f["level"], "warning", f)
            contains(f["text"], "put its debug file at " + place)


def with_it(path, debug, place, d):
    os.makedirs(os.path.dirname(place))
    shutil.copy(debug, place)
    for ours in ways():
        with at_work(path, ours) as pid:
            met = poll(lambda: (lambda m: "receive_query" in m and m)(functions_of(pid, path, d)), "a question that is answered")
            need(not any("+0x" in name for name in met), met)
            need(all(file == "forward.c" and line > 0 for file, line in met["receive_query"]), met["receive_query"])
            contains(names_in(pid, path)["text"], BY_ITS_DEBUG_FILE)
    contains(names_in(path, path)["text"], BY_ITS_DEBUG_FILE)


def ways():
    """Inside; and from outside, where that can be had."""
    try:
        need_perf()
    except Skip as e:
        print("# not seen from outside: %s" % e)
        return True,
    return True, False


@test
def a_stripped_daemon_has_the_names_and_lines_of_its_debug_package():
    need_own_run()
    if not os.path.isdir(DEBUG):
        raise Skip("there is no " + DEBUG)
    with tempdir() as d:
        d = os.path.realpath(d)
        os.chmod(d, 0o755)
        made = split(d)
        must("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", DEBUG, cwd=d)
        try:
            without_its_debug_file(*made, d)
            with_it(*made, d)
        finally:
            must("umount", DEBUG, cwd="/")


main()
