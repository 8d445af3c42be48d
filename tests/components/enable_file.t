#!/usr/bin/env python3
"""--profiling-enable-file: a pod's annotations switch profiling, beside the options, USR1 and reloads."""
import ctypes
import os
import re
import shutil
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

own_network()
SUBJECT = "tests/programs/obedient_daemon"
ADOPTED = "tests/programs/adopted_daemon"
KEY = "dapr.io/enable-profiling"
LARGEST = 1 << 20  # bytes
LIBC = ctypes.CDLL(None)


def quoted(value):
    """As Go's %q does, of what the tests need."""
    named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\a": "\\a"}
    return '"' + "".join(named.get(c) or (c if c.isprintable() else "\\u%04x" % ord(c)) for c in value) + '"'


class Pod:
    """A volume of the downward API, written as kubelet does: a new folder, and a link that is replaced."""
    def __init__(self, folder):
        self.folder, self.path, self.count = folder, os.path.join(folder, "annotations"), 0

    def annotate(self, annotations=(), **more):
        os.makedirs(self.folder, exist_ok=True)
        self.count += 1
        new, link = "..2026_%d" % self.count, os.path.join(self.folder, "..data")
        before = os.readlink(link) if os.path.islink(link) else None
        os.mkdir(os.path.join(self.folder, new))
        with open(os.path.join(self.folder, new, "annotations"), "w") as f:
            f.writelines("%s=%s\n" % (k, quoted(v)) for k, v in sorted({**dict(annotations), **more}.items()))
        os.symlink(new, link + "_tmp")
        os.rename(link + "_tmp", link)
        if not os.path.islink(self.path):
            os.symlink("..data/annotations", self.path)
        if before:
            shutil.rmtree(os.path.join(self.folder, before))


@contextlib.contextmanager
def followed(*words, annotations=None, **kw):
    """A daemon that follows a pod's annotations; None: there is no file yet."""
    with tempdir() as t:
        pod = Pod(os.path.join(t, "podinfo"))
        os.mkdir(pod.folder)
        if annotations is not None:
            pod.annotate(annotations)
        with daemon(SUBJECT, "--profiling-enable-file=" + pod.path, *words, wait=False, **kw) as d:
            poll(lambda: "ready" in d.output() or "profiling" in d.output(), "the start")
            yield d, pod


def is_on(d):
    return "component-http" in threads(d.pid).values()


def becomes(d, on):
    poll(lambda: is_on(d) == on, "profiling to be %s" % ("on" if on else "off"))


def heard(d, what):
    return d.output().count(what)


def after(d, what, do):
    """Does it, and waits until the log has said that once more."""
    count = heard(d, what)
    do()
    poll(lambda: heard(d, what) > count, what)


def reload(d):
    """Which looks into the file, too."""
    after(d, "reloaded", lambda: d.signal(signal.SIGHUP))


def notifier(pid):
    return [n for n, to in descriptors(pid).items() if "inotify" in to]


def switches(d):
    """The lines that tell of one by the file."""
    return [line for line in d.output().splitlines() if "profiling switched " in line and "by=USR1" not in line]


@test
def an_annotation_switches_a_running_daemon_on_and_off_again():
    with followed(annotations={"kubernetes.io/config.seen": "now"}) as (d, pod):
        d.wait_log("profiling is off")
        contains(d.output(), "file=" + pod.path)
        need("has no effect" not in d.output(), d.output())
        after(d, "profiling switched on", lambda: pod.annotate({KEY: "true"}))
        d.wait_port()
        equal(d.get("/debug/pprof/").status, 200)
        contains(switches(d)[0], "by=%s key=%s" % (pod.path, KEY))
        after(d, "profiling switched off", lambda: pod.annotate({KEY: "false"}))
        becomes(d, False)
        after(d, "profiling switched on", lambda: pod.annotate({KEY: "true"}))
        after(d, "profiling switched off", pod.annotate)
        need("key=" not in switches(d)[3], switches(d)[3])
        equal(len(switches(d)), 4, d.output())
        equal(d.stop(), 0)


@test
def it_is_as_annotated_from_the_start():
    with followed(annotations={KEY: "true"}) as (d, pod):
        d.wait_port()
        equal(d.get("/debug/pprof/").status, 200)
        d.wait_log("profiling switched on by=%s key=%s" % (pod.path, KEY))
        need("profiling is off" not in d.output(), d.output())
        equal(d.stop(), 0)
    with followed("--enable-pprof", annotations={KEY: "no"}) as (d, pod):
        d.wait_log("profiling switched off by=%s key=%s" % (pod.path, KEY))
        equal(is_on(d), False)
        equal(d.stop(), 0)
    with followed("--enable-pprof", annotations={KEY: "true"}) as (d, pod):
        d.wait_port()
        reload(d)
        equal(switches(d), [])


NOISE = {"kubectl.kubernetes.io/last-applied-configuration":
         '{"annotations":{"component.dev/profiling":"true"}}\ncomponent.dev/profiling="true"\n',
         "a": 'dapr.io/profiling="true"', "xcomponent.dev/profiling": "true", "component.dev/profiling-x": "true", "z\"\\": "\a\u200b\\"}
# Annotations, and whether it is on then; None: they say nothing.
SAID = (({"component.dev/profiling": "true"}, True),
        (NOISE, None),
        ({"component.dev/profiling": "true", **NOISE}, True),
        ({"component.dev/profiling": "true", "dapr.io/enable-profiling": "false", "dapr.io/profiling": "false"}, True),
        ({"component.dev/profiling": "false", "dapr.io/enable-profiling": "true", "dapr.io/profiling": "true"}, False),
        ({"dapr.io/enable-profiling": "true", "dapr.io/profiling": "no"}, True),
        ({"dapr.io/enable-profiling": "", "dapr.io/profiling": "true"}, False),
        ({"dapr.io/profiling": "true"}, True),
        *(({KEY: value}, False) for value in ("", "True", "TRUE", "1", "yes", "on", " true", "true ", "true\n", "\"true\"", "tru\u200be")))


@test
def the_first_of_three_keys_decides_and_nothing_but_true_is_on():
    with followed(annotations={}) as off, followed("--enable-pprof", annotations={}) as on:
        for annotations, wanted in SAID:
            for (d, pod), option in (off, False), (on, True):
                pod.annotate(annotations)
                reload(d)
                becomes(d, option if wanted is None else wanted)
        for d, _ in off, on:
            equal(d.stop(), 0)


@test
def without_a_key_it_is_as_the_options_say():
    with followed("--enable-pprof", annotations={KEY: "false"}) as (d, pod):
        d.wait_log("profiling switched off")
        after(d, "profiling switched on", pod.annotate)
        after(d, "profiling switched off", lambda: pod.annotate({KEY: "false"}))
        after(d, "profiling switched on", lambda: os.unlink(pod.path))
        becomes(d, True)
        equal(d.stop(), 0)


@test
def what_usr1_did_stays_until_the_file_says_another_thing():
    with followed(annotations={KEY: "true", "other": "1"}) as (d, pod):
        d.wait_port()
        after(d, "profiling switched off by=USR1", lambda: d.signal(signal.SIGUSR1))
        pod.annotate({KEY: "true", "other": "2"})
        reload(d)
        equal(is_on(d), False, "the file says what it said")
        pod.annotate({"component.dev/profiling": "true"})
        reload(d)
        equal(is_on(d), False, "by another key, but the same")
        after(d, "profiling switched on by=USR1", lambda: d.signal(signal.SIGUSR1))
        after(d, "profiling switched off by=" + pod.path, lambda: pod.annotate({KEY: "0"}))
        after(d, "profiling switched on by=USR1", lambda: d.signal(signal.SIGUSR1))
        pod.annotate()
        reload(d)
        equal(is_on(d), True, "the options say off, as the file did")
        after(d, "profiling switched off by=" + pod.path, lambda: pod.annotate({KEY: "0"}))
        equal(d.stop(), 0)


@test
def a_reload_does_not_undo_what_the_file_says():
    with tempdir() as t:
        config = os.path.join(t, "config")

        def options(enabled):
            with open(config, "w") as f:
                f.write("profiling: {enabled: %s}\n" % enabled)
        options("false")
        with followed("--config=" + config, annotations={KEY: "true"}) as (d, pod):
            d.wait_port()
            for enabled in "true", "false":
                options(enabled)
                reload(d)
                equal(is_on(d), True, enabled)
            after(d, "profiling switched off by=" + pod.path, lambda: pod.annotate({KEY: "false"}))
            options("true")
            reload(d)
            equal(is_on(d), False)
            after(d, "profiling switched on by=" + pod.path, pod.annotate)  # as the options say by now
            pod.annotate({KEY: "true"})
            after(d, "profiling switched off by=USR1", lambda: d.signal(signal.SIGUSR1))
            options("false")
            reload(d)
            options("true")
            reload(d)
            equal(is_on(d), False, "what counts has not changed since USR1")
            equal(d.stop(), 0)


@test
def windows_go_on_where_nothing_is_switched():
    with followed("--enable-pprof", annotations={}) as (d, pod):
        d.wait_port()
        with socket.create_connection((d.host, d.port), timeout=DEADLINE) as s:
            s.sendall(b"GET /debug/pprof/profile?seconds=7200 HTTP/1.1\r\n\r\n")
            poll(lambda: "component-job" in threads(d.pid).values(), "the window")
            for annotations in {KEY: "true"}, {}:
                pod.annotate(annotations)
                reload(d)
                need("component-job" in threads(d.pid).values(), "the window ended")
            pod.annotate({KEY: "false"})
            data = b""
            while b"\r\n\r\n" not in data:  # ends early, with what it has
                data += s.recv(65536)
            contains(data.decode("latin-1"), "200 OK")
        becomes(d, False)


@test
def a_file_that_comes_later_is_followed_and_one_that_goes_is_as_none():
    with followed() as (d, pod):
        d.wait_log("it may come later")
        after(d, "profiling switched on", lambda: pod.annotate({KEY: "true"}))
        after(d, "profiling switched off", lambda: os.unlink(pod.path))
        for _ in range(3):
            reload(d)
        equal(heard(d, "it may come later"), 2, d.output())
        with open(pod.path, "w") as f:
            f.write("%s=\"true\"" % KEY)  # by hand, and without an end of the line
        becomes(d, True)
        need(" warn" not in d.output(), d.output())


@test
def a_file_that_is_written_in_place_is_looked_at_when_it_is_whole():
    with tempdir() as t:
        path, fifo = os.path.join(t, "annotations"), os.path.join(t, "commands")
        os.mkfifo(fifo)
        with open(path, "w") as f:
            f.write(KEY + '="true"\n')
        began, looked = time.monotonic(), lambda: time.monotonic() - began > 9
        with daemon(SUBJECT, "--profiling-enable-file=" + path, env={"TELL_COMMANDS": fifo}) as d, open(fifo, "w") as commands:
            def turn():
                """The loop has seen what was there before; it does not look into the file for that."""
                after(d, "did what=ready", lambda: print("ready", file=commands, flush=True))
            for count, (value, was, on) in enumerate((("true", True, True), ("no", True, False), ("true", False, True)), 1):
                with open(path, "w") as f:  # empty by now
                    turn()
                    f.write(KEY)
                    f.flush()
                    turn()
                    # The look every 10 s does not wait for who writes.
                    need(is_on(d) == was or looked(), "it was read half written")
                    f.write('="%s"\nother="1"\n' % value)
                # One that is stopping is not said to be off when it is wanted again before it has ended.
                poll(lambda: looked() or len(switches(d)) == count, "%d switches, the one at the start among them" % count)
                becomes(d, on)
                turn()
                turn()  # by now it has read what was written, and does not come for it when the next is half written
            equal(d.stop(), 0)


@beside
def a_folder_that_comes_later_is_followed():
    with tempdir() as t:
        pod = Pod(os.path.join(t, "far", "podinfo"))
        with daemon(SUBJECT, "--profiling-enable-file=" + pod.path, wait=False) as d:
            d.wait_log("it may come later")
            pod.annotate({KEY: "true"})
            becomes(d, True)
            pod.annotate({KEY: "off"})
            becomes(d, False)
            os.rename(pod.folder, pod.folder + ".old")  # and another one takes its place
            pod.annotate({KEY: "true"})
            becomes(d, True)
            need("cannot be watched" not in d.output(), d.output())


@beside
def a_link_to_another_folder_is_followed():
    with tempdir() as t:
        for name, value in ("a", "true"), ("b", "false"):
            Pod(os.path.join(t, name)).annotate({KEY: value})
        link = os.path.join(t, "current")
        os.symlink("a", link)
        with daemon(SUBJECT, "--profiling-enable-file=%s/annotations" % link) as d:
            os.symlink("b", link + ".new")
            os.rename(link + ".new", link)
            becomes(d, False)


@contextlib.contextmanager
def instead(function):
    """The environment of a program whose function of libc is that one."""
    with tempdir() as t:
        source, library = os.path.join(t, "instead.c"), os.path.join(t, "instead.so")
        with open(source, "w") as f:
            f.write("#include <errno.h>\n" + function)
        r = run(*CC.split(), "-shared", "-fPIC", "-o", library, source)
        equal(r.returncode, 0, r.stderr)
        yield {"LD_PRELOAD": library}


@test
def kubelets_swap_and_other_ways_to_replace_it_are_seen_without_waiting_for_the_next_look():
    # No timer of the loop comes due.
    with instead("int timerfd_settime(int fd, int flags, const void *to, void *was)\n"
                 "{\n\treturn fd < 0 || flags < 0 || !to || was ? -1 : 0;\n}\n") as env, followed(annotations={}, env=env) as (d, pod):
        for value, on in ("true", True), ("no", False), ("true", True):
            pod.annotate({KEY: value})
            becomes(d, on)
        os.unlink(pod.path)
        becomes(d, False)
        with open(pod.path, "w") as f:
            f.write(KEY + '="true"\n')
        becomes(d, True)
        with open(pod.path + ".new", "w") as f:
            f.write(KEY + '="false"\n')
        os.rename(pod.path + ".new", pod.path)
        becomes(d, False)
        with open(pod.path, "w") as f:
            f.write(KEY + '="true"\n')
        becomes(d, True)
        os.rename(pod.path, pod.path + ".old")
        becomes(d, False)
        os.link(pod.path + ".old", pod.path)
        becomes(d, True)
        os.rename(pod.folder, pod.folder + ".old")
        becomes(d, False)
        equal(d.stop(), 0)


@beside
def where_inotify_is_refused_it_is_looked_at_every_ten_seconds():
    with instead("int inotify_init1(int flags)\n{\n\t(void)flags;\n\terrno = EMFILE;\n\treturn -1;\n}\n") as env, \
            followed(annotations={}, env=env) as (d, pod):
        d.wait_log("cannot be watched; the file is looked at every 10 s")
        contains(d.output(), "Too many open files")
        equal(notifier(d.pid), [])
        pod.annotate({KEY: "true"})
        becomes(d, True)
        for _ in range(3):
            reload(d)
        equal(heard(d, "cannot be watched"), 1)
        equal(d.stop(), 0)


def spoil(pod, how):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(pod.path)
    if how == "folder":
        os.mkdir(pod.path)
    elif how == "fifo":
        os.mkfifo(pod.path)
    elif how == "loop":
        os.symlink("annotations", pod.path)
    elif how == "large":
        with open(pod.path + ".new", "w") as f:
            f.write('a="%s"\n%s="false"\n' % ("x" * LARGEST, KEY))
        os.rename(pod.path + ".new", pod.path)


@test
def a_file_that_cannot_be_read_changes_nothing_and_is_warned_of_once():
    for how, why in (("folder", "is not a regular file"), ("fifo", "is not a regular file"), ("loop", "cannot be read: Too many levels"),
                     ("large", "is larger than %d bytes" % LARGEST)):
        with followed(annotations={}) as (d, pod):
            after(d, "profiling switched on", lambda: pod.annotate({KEY: "true"}))
            # In one step, or it would be missing for a moment.
            spoiled = Pod(pod.folder + ".spoiled")
            os.mkdir(spoiled.folder)
            spoil(spoiled, how)
            os.rename(pod.folder, pod.folder + ".old") if how == "folder" else os.rename(spoiled.path, pod.path)
            if how == "folder":
                os.rename(spoiled.folder, pod.folder)
            for _ in range(3):
                reload(d)
            lines = [line for line in d.output().splitlines() if " warn" in line]
            equal(len(lines), 1, d.output())
            contains(lines[0], "--profiling-enable-file=%s %s" % (pod.path, why))
            if how != "folder":
                equal(is_on(d), True, how)
                os.unlink(pod.path)
                becomes(d, False)
                spoil(pod, how)
                poll(lambda: len([line for line in d.output().splitlines() if " warn" in line]) == 2, "a warning again")
            equal(d.stop(), 0)


def without_override():
    """What root may do with files of any mode; others cannot anyway.  CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, PR_CAPBSET_DROP."""
    for capability in 1, 2:
        LIBC.prctl(24, capability, 0, 0, 0)


@test
def a_file_that_must_not_be_read_is_warned_of_and_read_when_it_may():
    with followed(annotations={}, preexec_fn=without_override) as (d, pod):
        real = os.path.realpath(pod.path)
        os.chmod(real, 0)
        for _ in range(3):
            reload(d)
        equal(heard(d, "cannot be read: Permission denied"), 1, d.output())
        pod.annotate({KEY: "true"})
        becomes(d, True)
        os.chmod(pod.folder, 0o300)  # inotify needs to read the folder, and nothing else does
        reload(d)
        contains(d.output(), "cannot be watched; the file is looked at every 10 s")
        equal(d.stop(), 0)


@test
def a_line_that_is_cut_off_says_nothing():
    with followed("--enable-pprof") as (d, pod):
        for text, on in ((KEY, True), (KEY + "=", True), (KEY + '="', True), (KEY + '="fal', True), (KEY + '="false"', False),
                         (KEY + "=true", True), (KEY + "=true\n", False), ("\n\n", True), ('\0\n%s="true"\0\n' % KEY, False)):
            with open(pod.path + ".new", "w") as f:
                f.write(text)
            os.rename(pod.path + ".new", pod.path)
            reload(d)
            becomes(d, on)


@test
def the_largest_file_that_annotations_make_is_read():
    with followed() as (d, pod):
        with open(pod.path + ".new", "w") as f:
            line = '%s="true"\n' % KEY
            f.write('a="%s"\n%s' % ("x" * (LARGEST - 5 - len(line)), line))
        equal(os.path.getsize(pod.path + ".new"), LARGEST)
        os.rename(pod.path + ".new", pod.path)
        becomes(d, True)


@test
def a_busy_address_ends_nothing_where_the_file_alone_asks_for_it():
    with socket.create_server(("127.0.0.1", 0)) as s:
        busy = "--profiling-bind-address=127.0.0.1:%d" % s.getsockname()[1]
        with followed(busy, annotations={KEY: "true"}, port_file=False) as (d, pod):
            d.wait_log("Address already in use")
            reload(d)  # tries again
            equal(heard(d, "Address already in use"), 2, d.output())
            equal(switches(d), [])
            s.close()
            reload(d)
            becomes(d, True)
            equal(d.stop(), 0)
    with socket.create_server(("127.0.0.1", 0)) as s, followed(
            "--profiling-bind-address=127.0.0.1:%d" % s.getsockname()[1], "--health-probe-bind-address=127.0.0.1:0",
            annotations={}, port_file=False) as (d, pod):
        d.wait_log("serving health")
        d.port = int(re.search(r'serving health url="http://127\.0\.0\.1:(\d+)"', d.output()).group(1))
        for value, told in ("true", "[+]profiling off: address in use\n"), ("false", "[+]profiling ok\n"):
            pod.annotate({KEY: value})
            poll(lambda: told in d.get("/readyz?verbose").text, told)
        contains(d.output(), "Address already in use")
        equal(d.stop(), 0)
    with socket.create_server(("127.0.0.1", 0)) as s, tempdir() as t:
        pod = Pod(t)
        pod.annotate({KEY: "true"})
        r = run(SUBJECT, "--enable-pprof", "--profiling-bind-address=127.0.0.1:%d" % s.getsockname()[1],
                "--profiling-enable-file=" + pod.path)
        equal(r.returncode, 1, "asked for by an option, too")


@test
def an_address_of_0_is_told_and_off():
    with followed("--profiling-bind-address=0", annotations={KEY: "true"}, port_file=False) as (d, pod):
        d.wait_log("profiling is enabled but its address is 0")
        equal((is_on(d), switches(d)), (False, []))


@test
def the_debug_socket_goes_with_an_explicit_off_and_stays_beside_an_on():
    with tempdir() as t:
        path = os.path.join(t, "debug")
        with followed("--debug-socket-path=" + path, annotations={}) as (d, pod):
            poll_socket(path)
            after(d, "profiling switched on", lambda: pod.annotate({KEY: "true"}))
            d.wait_port()
            equal(d.get("/debug/pprof/").status, 200)
            after(d, "profiling switched off", pod.annotate)  # on TCP
            need(os.path.exists(path) and is_on(d), "the option's own socket")
            pod.annotate({KEY: "false"})
            becomes(d, False)
            need(not os.path.exists(path))
            pod.annotate()
            poll_socket(path)
            equal(d.stop(), 0)


@test
def a_reload_names_another_file_or_none():
    with tempdir() as t:
        config, pods = os.path.join(t, "config"), [Pod(os.path.join(t, name)) for name in "ab"]

        def options(pod):
            with open(config, "w") as f:
                f.write("v: 0\n" + ("profiling-enable-file: %s\n" % pod.path if pod else ""))
        for pod, value in zip(pods, ("true", "false")):
            pod.annotate({KEY: value})
        options(None)
        with daemon(SUBJECT, "--config=" + config, wait=False) as d:
            d.wait_log("profiling is off")
            for pod, on in (pods[0], True), (pods[1], False), (pods[0], True), (None, False):
                options(pod)
                reload(d)
                becomes(d, on)
                equal(len(notifier(d.pid)), 1 if pod else 0)
            pods[0].annotate({KEY: "false"})
            pods[0].annotate({KEY: "true"})
            reload(d)
            equal(is_on(d), False, "nobody follows it any more")
            equal(d.stop(), 0)


@test
def without_the_option_nothing_is_opened_and_a_forked_worker_has_nothing():
    with tempdir() as t:
        fifo = os.path.join(t, "commands")
        os.mkfifo(fifo)
        with daemon(SUBJECT, "--enable-pprof") as d:
            equal(notifier(d.pid), [])
        with followed(annotations={KEY: "true"}, env={"TELL_COMMANDS": fifo}) as (d, pod):
            d.wait_port()
            equal(len(notifier(d.pid)), 1)
            with open(fifo, "w") as f:
                f.write("fork\n")
            worker = int(poll(lambda: re.search(r"did what=fork pid=(\d+)", d.output()), "the worker").group(1))
            poll(lambda: not [to for n, to in descriptors(worker).items() if n > 2 and not to.endswith("/commands")],
                 "the worker to close what is not its own")
            after(d, "profiling switched off", lambda: pod.annotate({KEY: "false"}))
            equal(d.stop(), 0)


@test
def a_relative_path_is_that_of_the_start():
    with tempdir() as t:
        Pod(t).annotate({KEY: "true"})
        with daemon(SUBJECT, "--profiling-enable-file=annotations", cwd=t) as d:
            equal(d.get("/debug/pprof/").status, 200)
            d.wait_log("by=%s/annotations" % os.path.realpath(t))


@test
def a_daemon_without_our_loop_reads_it_once_and_says_so():
    """A daemon without our loop reads it once, at its start, and says so."""
    clean = {k: v for k, v in os.environ.items() if "PPROF" not in k and "PROFIL" not in k}
    for value, option, on in ("true", [], True), ("false", ["--enable-pprof"], False), (None, ["--enable-pprof"], True):
        with tempdir() as t:
            pod, port = Pod(t), os.path.join(t, "port")
            pod.annotate({KEY: value} if value else {})
            log = open(os.path.join(t, "log"), "w")
            with log, started([program(ADOPTED), *option, "--profiling-enable-file=" + pod.path, "--profiling-bind-address=127.0.0.1:0",
                               "--profiling-port-file=" + port, "-w", "0"], env=clean, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as p:
                text = lambda: open(os.path.join(t, "log")).read()  # noqa: E731
                poll(lambda: "begun" in text() or p.poll() is not None, "the start")
                equal(os.path.exists(port), on, text())
                contains(text(), "log: --profiling-enable-file=%s says %s, and is not read again" % (
                    pod.path, {"true": "on", "false": "off"}.get(value, "nothing")))
                equal(notifier(p.pid), [])
                p.terminate()
                equal(p.wait(DEADLINE), 0)


main()
