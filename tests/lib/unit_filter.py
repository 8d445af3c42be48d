#!/usr/bin/env python3
"""unit_filter.py - what a systemd unit allows its program, put upon a program by a test.

    python3 unit_filter.py UNIT[:DROP-IN] PROGRAM ARGUMENT...

takes away the capabilities, installs the seccomp filters that systemd makes of the unit, and becomes
PROGRAM.  The list of system calls is the unit's own, its @groups as this machine's systemd-analyze
expands them; libseccomp makes the filters.  For those lines of a unit that forbid calls by their
arguments (MemoryDenyWriteExecute= and the like) systemd has rules of its own, which are written again here.

What a stranger would get wrong: @default is on every list that allows, and a list that begins with "~" takes away from
those before it.  execve() and all that a dynamic program starts with has to be on the list, too.

Tests: tests/project/systemd.t looks at Seccomp_filters of what runs so, and at what is refused.
"""
import ctypes
import errno
import os
import re
import socket
import subprocess
import sys

ALLOW, REFUSE = 0x7fff0000, 0x00050000  # SCMP_ACT_ALLOW, SCMP_ACT_ERRNO(0)
EQUAL, GREATER, MASKED = 4, 6, 7  # SCMP_CMP_*
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
CLONE_NEW = 0x7e020000  # every CLONE_NEW* that RestrictNamespaces= knows
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
FAMILIES = 64  # more than the kernel has
SET_ID_MODES = (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("open", 2), ("openat", 3), ("creat", 1), ("mkdir", 1),
                ("mkdirat", 2), ("mknod", 1), ("mknodat", 2))  # which argument is the mode


class Compare(ctypes.Structure):  # struct scmp_arg_cmp
    _fields_ = [("argument", ctypes.c_uint), ("how", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def settings(*paths):
    """Of a unit file and its drop-ins: name to the list of its values, in order."""
    found = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for name, value in re.findall(r"^([A-Za-z]+)=(.*)$", f.read(), re.M):
                found.setdefault(name, []).append(value)
    return found


def members(word):
    """System calls that a word of SystemCallFilter= means."""
    if not word.startswith("@"):
        return {word}
    said = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", word], capture_output=True, text=True, check=True).stdout
    return set().union(*(members(line.strip()) for line in said.splitlines()[1:] if not line.strip().startswith("#")))


def allowed(lines):
    """System calls that the lines SystemCallFilter= of a unit leave, of which the first allows."""
    names = members("@default")
    for line in lines:
        for word in line.lstrip("~").split():
            names = names - members(word) if line.startswith("~") else names | members(word)
    return names


class Filters:
    def __init__(self):
        self.library = ctypes.CDLL("libseccomp.so.2")
        self.library.seccomp_init.restype = ctypes.c_void_p
        self.installed = 0

    def number(self, name):
        """Of a system call, negative where this processor has none of that name."""
        return self.library.seccomp_syscall_resolve_name(name.encode())

    def install(self, others, rules):
        """One filter: what becomes of other calls, and (action, name, Compare...) for those that are named."""
        context = ctypes.c_void_p(self.library.seccomp_init(ctypes.c_uint32(others)))
        for action, name, *compares in rules:
            if self.number(name) < 0:
                continue
            array = (Compare * max(len(compares), 1))(*compares)
            r = self.library.seccomp_rule_add_array(context, ctypes.c_uint32(action), self.number(name), len(compares), array)
            if r < 0:
                raise OSError(-r, "the rule for " + name)
        r = self.library.seccomp_load(context)
        if r < 0:
            raise OSError(-r, "seccomp_load()")
        self.installed += 1

    def refuse(self, *rules):
        """(name, number of an error, Compare...): those calls, and none besides."""
        self.install(ALLOW, [(REFUSE | number, name, *compares) for name, number, *compares in rules])


def install(unit):
    """The filters of a unit, for this thread and what it becomes."""
    filters, is_on = Filters(), lambda name: unit.get(name) == ["yes"]
    if is_on("MemoryDenyWriteExecute"):
        both = PROT_WRITE | PROT_EXEC
        filters.refuse(("mmap", errno.EPERM, Compare(2, MASKED, both, both)),
                       *((name, errno.EPERM, Compare(2, MASKED, PROT_EXEC, PROT_EXEC)) for name in ("mprotect", "pkey_mprotect")),
                       ("shmat", errno.EPERM, Compare(2, MASKED, SHM_EXEC, SHM_EXEC)))
    if is_on("RestrictNamespaces"):
        bits = [1 << i for i in range(32) if CLONE_NEW >> i & 1]
        filters.refuse(("clone3", errno.ENOSYS), ("setns", errno.EPERM),
                       *((name, errno.EPERM, Compare(0, MASKED, bit, bit)) for name in ("clone", "unshare") for bit in bits))
    if is_on("RestrictSUIDSGID"):
        filters.refuse(("openat2", errno.ENOSYS), *((name, errno.EPERM, Compare(at, MASKED, bit, bit))
                                                   for name, at in SET_ID_MODES for bit in (0o4000, 0o2000)))
    if is_on("RestrictRealtime"):
        filters.refuse(*(("sched_setscheduler", errno.EPERM, Compare(1, EQUAL, policy)) for policy in (1, 2, 6)))
    if is_on("LockPersonality"):
        filters.refuse(("personality", errno.EPERM, Compare(0, GREATER, 0)))
    if "RestrictAddressFamilies" in unit:
        known = {getattr(socket, word).value for line in unit["RestrictAddressFamilies"] for word in line.split()}
        filters.refuse(("socket", errno.EAFNOSUPPORT, Compare(0, GREATER, FAMILIES)),
                       *(("socket", errno.EAFNOSUPPORT, Compare(0, EQUAL, i)) for i in range(FAMILIES + 1) if i not in known))
    # The last one, as it may know none of the calls that install another.
    refused = REFUSE | getattr(errno, unit["SystemCallErrorNumber"][0])
    filters.install(refused, [(ALLOW, name) for name in sorted(allowed(unit["SystemCallFilter"]))])
    return filters.installed


def give_up_capabilities():
    """Whoever runs this: what it becomes has no more than a user with these files."""
    libc = ctypes.CDLL(None)
    for number in range(64):
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


if __name__ == "__main__":
    give_up_capabilities()
    install(settings(*sys.argv[1].split(":")))
    os.execv(sys.argv[2], sys.argv[2:])
