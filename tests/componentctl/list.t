#!/usr/bin/env python3
"""componentctl list and stop, and the records that they read (libcomponent/base/record.c)."""
import fcntl
import json
import os
import re
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from records import *  # noqa: E402,F403

own_run()
EMPTY = "No Dapr instances found.\n"


@test
def without_records_it_says_so_in_each_form():
    need_own_run()
    equal(ctl("list"), EMPTY)
    equal(ctl("list", "-o", "json"), "[]\n")
    equal(ctl("list", "--output=yaml"), "[]\n")


@test
def a_daemon_is_listed_from_its_start_to_its_end_and_without_the_option_never():
    need_own_run()
    with daemon(SUBJECT, "--enable-pprof"):
        equal(ctl("list"), EMPTY)
    with recorded() as d:
        found = listed()["obedient_daemon"]
        equal((found["daprPort"], found["profilePort"], found["pid"], found["appPort"]), (d.port, d.port, d.pid, 0))
        equal(found["address"], "http://127.0.0.1:%d" % d.port)
        equal(os.stat(FOLDER).st_mode & 0o7777, 0o1777)
        name, = records()
        equal(os.stat(FOLDER + "/" + name).st_mode & 0o777, 0o600)
        equal(d.stop(), 0)
    equal((ctl("list"), records()), (EMPTY, []))


@test
def the_table_has_the_columns_and_formats_of_dapr_list():
    need_own_run()
    with recorded() as d:
        head, row = ctl("list").splitlines()
        equal(re.split(r"  +", head), ["APP ID", "DAPR PORT", "APP PORT", "COMMAND", "AGE", "CREATED", "PID"])
        with open("/proc/%d/cmdline" % d.pid) as f:
            command = f.read().replace("\0", " ")[:20]
        cells = [row[head.index(c):head.index(n) if n else None].strip() for c, n in
                 zip(["APP ID", "DAPR PORT", "APP PORT", "COMMAND", "AGE", "CREATED", "PID"],
                     ["DAPR PORT", "APP PORT", "COMMAND", "AGE", "CREATED", "PID", None])]
        equal(cells[:4] + cells[6:], ["obedient_daemon", str(d.port), "0", command.strip(), str(d.pid)])
        need(re.fullmatch(r"\d+s", cells[4]) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d\.\d\d", cells[5]), row)
        wide = ctl("list", "-o", "wide").splitlines()
        need(wide[0].endswith("PROFILE PORT  PARENT  ADDRESS") and wide[1].endswith("  %d%s0       http://127.0.0.1:%d" % (
            d.port, " " * (14 - len(str(d.port))), d.port)), "\n".join(wide))
        yaml = ctl("list", "-o", "yaml")
        need(yaml.startswith('- appId: "obedient_daemon"\n  daprPort: %d\n' % d.port), yaml)


@test
def ages_are_in_their_largest_unit():
    need_own_run()
    with recorded() as d:
        name, = records()
        with open(FOLDER + "/" + name) as f:
            text = f.read()
        now = int(re.search(r"created (\d+)", text).group(1))
        for seconds, shown in ((61, "1m"), (59 * 60 + 30, "59m"), (3 * 3600 + 5, "3h"), (49 * 3600, "2d")):
            write_record(d.pid, name.partition(".")[2], re.sub(r"created \d+", "created %d" % (now - seconds), text))
            need(listed()["obedient_daemon"]["age"] in (shown, "%d%s" % (int(shown[:-1]) + 1, shown[-1])), shown)


@test
def a_unix_socket_has_no_port_and_its_path_is_the_address():
    need_own_run()
    with tempdir() as t:
        path = t + "/s"
        with recorded("--profiling-bind-address=unix:" + path, port_file=False) as d:
            d.wait_log("starting profiling server")
            found = listed()["obedient_daemon"]
            equal((found["daprPort"], found["address"]), (0, "unix:" + path))


@test
def a_reload_to_another_address_is_in_the_record():
    need_own_run()
    with tempdir() as t:
        config = t + "/c"
        with open(config, "w") as f:
            f.write("profiling-bind-address: 127.0.0.1:0\n")
        with recorded("--config", config, port_file=False) as d:
            d.wait_log("starting profiling server")
            with open(config, "w") as f:
                f.write("profiling-bind-address: 127.0.0.2:0\n")
            d.signal(signal.SIGHUP)
            poll(lambda: listed()["obedient_daemon"]["address"].startswith("http://127.0.0.2:"), "the new address")
            equal(len(records()), 1)
            d.signal(signal.SIGUSR1)
            poll(lambda: listed()["obedient_daemon"]["address"] == "off", "off")
            equal(len(records()), 1)


@test
def what_a_killed_one_leaves_is_removed_by_who_looks():
    need_own_run()
    with recorded() as d:
        d.signal(signal.SIGKILL)
        poll(lambda: "\nState:\tZ" in text_of("/proc/%d/status" % d.pid), "its end, for which nobody waits")
        equal(len(records()), 1)
        equal((ctl("list"), records()), (EMPTY, []))


@test
def of_a_process_in_another_namespace_record_and_socket_stay_as_long_as_it_lives():
    need_own_run()
    with recorded(), socket.socket(socket.AF_UNIX) as s:
        name = "%s/%d.1" % (FOLDER, 2 ** 30)  # no process here has that number
        s.bind(name + ".sock")
        with open(name, "w") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            ctl("list")
            need({os.path.basename(name), os.path.basename(name) + ".sock"} <= set(os.listdir(FOLDER)), os.listdir(FOLDER))
        ctl("list")
        ctl("list")  # the folder may list the socket before the record
        equal([n for n in os.listdir(FOLDER) if n.startswith(os.path.basename(name))], [])


@test
def of_a_process_in_another_namespace_that_starts_its_socket_stays_before_there_is_a_record():
    need_own_run()
    with recorded(), socket.socket(socket.AF_UNIX) as s:
        name = "%d.1.sock" % 2 ** 30
        s.bind(os.path.join(FOLDER, name))
        s.listen()
        ctl("list")
        contains(os.listdir(FOLDER), name)
        s.close()
        ctl("list")
        need(name not in os.listdir(FOLDER), os.listdir(FOLDER))


@test
def a_record_that_lies_is_not_followed():
    need_own_run()
    with recorded() as d:
        name, = records()
        text = "id liar\nurl http://127.0.0.1:1\napp_port 0\ncreated 1\n"
        start = start_of(d.pid)
        # A number that is another process's by now, and no process at all.
        write_record(os.getpid(), start, text)
        write_record(d.pid, "1", text)
        equal(sorted(listed()), ["obedient_daemon"])
        equal(records(), [name], "they are removed")
        # What is no record, and what no terminal should get.
        for bad in ("", "id x y\nurl http://h\n", "id liar\n", "id 12\nurl http://h\n", "id liar\nurl \x1b[2J\n", "id liar\nurl " + "x" * 600,
                    "\0" * 100, "id liar\nurl http://h\napp_port 70000\n"):
            path = write_record(os.getpid(), start_of(os.getpid()), bad)
            equal(sorted(listed()), ["obedient_daemon"], repr(bad[:40]))
            os.unlink(path)
        os.symlink("/etc/passwd", "%s/%d.%s" % (FOLDER, os.getpid(), start_of(os.getpid())))
        os.mkfifo("%s/1.%s" % (FOLDER, start_of(1)))
        equal(sorted(listed()), ["obedient_daemon"])
        for other in set(records()) - {name}:
            os.unlink(FOLDER + "/" + other)


@test
def another_users_record_of_a_process_that_is_not_his_does_not_count():
    need_own_run()
    if os.geteuid() != 0 or not os.access("/proc/self/uid_map", os.R_OK) or "4294967295" not in open("/proc/self/uid_map").read():
        raise Skip("only root can write as somebody else")
    with recorded() as d:
        name, = records()
        with open(FOLDER + "/" + name) as f:
            text = f.read().replace("id obedient_daemon", "id liar")
        os.unlink(FOLDER + "/" + name)
        path = write_record(d.pid, name.partition(".")[2], text)
        equal(list(listed()), ["liar"])
        os.chown(path, 65534, 65534)
        equal(list(listed()), [])


@test
def stop_ends_one_by_its_id_or_its_number_and_no_other():
    need_own_run()
    with recorded() as one, recorded() as two:
        e = ctl("stop", "obedient_daemon", status=1)
        contains(e, "2 processes have the id 'obedient_daemon'; write the PID")
        equal(ctl("stop", str(one.pid)), "app stopped successfully: obedient_daemon\n")
        equal(one.wait(), 0)
        equal(two.process.poll(), None)
        ctl("stop", "obedient_daemon")
        equal(two.wait(), 0)


@test
def of_processes_with_one_id_it_is_the_parent_that_is_meant():
    need_own_run()
    with started(["sleep", "1000"]) as child, started(["sleep", "1000"]) as parent:
        text = "id several\nurl unix:/nowhere\napp_port 0\ncreated %d\n"
        paths = [write_record(child.pid, start_of(child.pid), text % 1 + "parent %d\n" % parent.pid),
                 write_record(parent.pid, start_of(parent.pid), text % 2)]
        rows = json.loads(ctl("list", "-o", "json"))
        equal({r["pid"]: r["parent"] for r in rows if r["appId"] == "several"}, {child.pid: parent.pid, parent.pid: 0})
        ctl("stop", "several")
        equal(parent.wait(DEADLINE), -signal.SIGTERM)
        equal(child.poll(), None)
        ctl("stop", "several")
        equal(child.wait(DEADLINE), -signal.SIGTERM, "a child is meant when its parent has gone")
        for path in paths:
            if os.path.exists(path):
                os.unlink(path)


@test
def what_is_wrong_is_told_in_one_sentence():
    need_own_run()
    contains(ctl("stop", "nosuch", status=1), "couldn't find app id nosuch; 'componentctl list' shows")
    contains(ctl("stop", str(os.getpid()), status=1), "process %d has no record" % os.getpid())
    contains(ctl("stop", status=2), "no operand is given; write componentctl stop ID|PID")
    contains(ctl("list", "-o", "xml", status=2), "write 'table', 'wide', 'json' or 'yaml'")
    contains(ctl("list", "x", status=2), "extra operand 'x'")
    contains(ctl("lst", status=2), "there is no command 'lst'; did you mean 'list'?")
    contains(run(CTL).stderr, "Usage: componentctl COMMAND")
    equal(run(CTL).returncode, 2)
    contains(ctl("--help"), "list")
    contains(ctl("list", "--help"), "Usage: componentctl list [OPTION]...")
    r = run("sh", "-c", CTL + " list >/dev/full")
    equal((r.returncode, "cannot write to standard output" in r.stderr), (1, True), r.stderr)


@test
def bash_completes_commands_and_their_options():
    def completed(*words):
        script = "eval \"$(%s --completion=bash)\"; COMP_WORDS=(%s); COMP_CWORD=%d; _componentctl; echo ${COMPREPLY[*]}" % (
            CTL, " ".join((CTL,) + words), len(words))
        r = run("bash", "-c", script)
        equal(r.stderr, "")
        return r.stdout.split()
    equal(completed("li"), ["list"])
    need({"run", "list", "stop"} <= set(completed("''")), completed("''"))
    equal(completed("list", "--out"), ["--output"])
    equal(completed("run", "--app"), ["--app-id", "--app-port"])


@test
def where_no_record_can_be_written_the_daemon_says_so_and_serves():
    need_own_run()
    with no_records():
        with recorded(env={"XDG_RUNTIME_DIR": ""}) as d:
            contains(d.output(), "no record of this process can be written to /run/component")
            equal(d.get("/debug/pprof/cmdline").status, 200)
        with tempdir() as t, recorded(env={"XDG_RUNTIME_DIR": t}) as d:
            equal(len(os.listdir(t + "/component")), 1)
            contains(ctl("list", env=environment(XDG_RUNTIME_DIR=t)), "obedient_daemon")
            equal(d.stop(), 0)
            equal(os.listdir(t + "/component"), [])


main()
