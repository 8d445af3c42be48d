#!/usr/bin/env python3
"""What a person sees of the options of a program: help, version, dump, man page,
completion, faults and exit statuses.

After a wanted change the golden files are written anew by
UPDATE_GOLDEN=1 make check TESTS=tests/flags/output.t"""
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import BUILD, SRC, Skip, contains, equal, main, test

PROGRAM = os.path.join(BUILD, "tests/programs/options")
CLEAN = {"PATH": os.environ["PATH"], "LC_ALL": "C"}


def run(*words, status=0, program=PROGRAM, **env):
    done = subprocess.run([program, *words], env={**CLEAN, **env}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != status:
        raise AssertionError("%r: status %d\n%s%s" % (words, done.returncode, done.stdout, done.stderr))
    return done


def golden(name, text):
    path = os.path.join(SRC, "tests/flags", name)
    if os.environ.get("UPDATE_GOLDEN"):
        with open(path, "w") as f:
            f.write(text)
    with open(path) as f:
        equal(text, f.read())


def options():
    return json.loads(run("--dump-options=json").stdout)["options"]


@test
def help_in_a_pipe_is_the_text_we_know():
    golden("help.expected", run("--help").stdout)
    equal(run("-h").stdout, run("--help").stdout)


@test
def help_all_is_the_text_we_know():
    golden("help_all.expected", run("--help-all").stdout)


@test
def each_option_stands_in_help_all_exactly_once():
    text = run("--help-all").stdout
    found = re.findall(r"^  (?:-\w, |    )--([a-z-]+)", text, re.M)
    equal(len(found), len(set(found)))
    names = {o["name"] for o in options()}
    builtin = {"help", "help-all", "version", "check-config", "dump-options", "completion", "generate-man"}
    equal(set(found), names | builtin | {"enable-profiling", "elect"})


@test
def help_hides_hidden_options_and_aliases():
    text = run("--help").stdout
    for name in ("profile-port", "enable-profiling ", "completion", "generate-man", "--elect"):
        assert name not in text, name


@test
def help_asked_for_anywhere_wins_over_every_fault():
    equal(run("--nope", "x", "--help", LOG_LEVEL="x").stdout, run("--help").stdout)


@test
def no_line_of_help_is_wider_than_the_terminal_says():
    for columns in (50, 60, 79, 80, 81, 100, 132, 200):
        for line in run("--help-all", COLUMNS=str(columns)).stdout.splitlines():
            # What cannot be broken: a word at its column, and the fixed lines at the end.
            if len(line) > columns and " " in line[29:].strip() and line.startswith(" "):
                raise AssertionError("%d columns: %r" % (columns, line))


@test
def a_strange_COLUMNS_is_ignored():
    for columns in ("", "0", "-5", "80x", "99999999999", "nan"):
        equal(run("--help", COLUMNS=columns).stdout, run("--help").stdout)


@test
def help_is_as_wide_as_the_terminal():
    def seen(columns):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        p = subprocess.Popen([PROGRAM, "--help"], env=CLEAN, stdout=slave, stdin=subprocess.DEVNULL)
        os.close(slave)
        text = b""
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:
                break
            if not chunk:
                break
            text += chunk
        os.close(master)
        equal(p.wait(), 0)
        return text.decode().replace("\r\n", "\n")
    for columns in (60, 120):
        equal(seen(columns), run("--help", COLUMNS=str(columns)).stdout)


@test
def help_of_one_section():
    text = run("--help=profiling").stdout
    assert text.startswith("Profiling:\n"), text
    assert "--profile-port" in text and "--logging-format" not in text
    done = run("--help=nope", status=2)
    equal(done.stdout, "")
    equal(done.stderr, "flags-program: option '--help': 'nope': no such section; write one of 'Controllers', "
          "'Profiling', 'Lifecycle', 'Misc', 'Logging'\nTry 'flags-program --help' for more information.\n")


@test
def version_for_people_and_for_programs():
    text = run("--version").stdout
    assert re.fullmatch(r"flags-program 1\.2\.3\nBuilt with libcomponent \S+\.\n", text), text
    equal(run("-V").stdout, text)
    raw = run("--version=raw").stdout
    assert re.fullmatch(r"flags-program/1\.2\.3 libcomponent/\S+ linux/\S+ cc/[^\n]+\n", raw), raw
    facts = json.loads(run("--version=json").stdout)
    equal((facts["name"], facts["version"], facts["os"]), ("flags-program", "1.2.3", "linux"))
    run("--version=xml", status=2)


@test
def the_dump_as_json_is_the_text_we_know():
    golden("dump.expected", run("--dump-options=json").stdout)


@test
def the_dump_tells_values_and_their_sources():
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("rate-limiter-qps: 0.5\ncontrollers: [a, \"b c\"]\n")
        f.flush()
        text = run("--dump-options=json", "-c", f.name, "--enable-pprof", "--log-file=/x\t\"\\\x01\udcff",
                   LOG_FORMAT="json", COMPONENT_PROFILING_TOKEN="hunter2").stdout
        got = {o["name"]: (o["value"], o["source"]) for o in json.loads(text)["options"]}
        equal(got["enable-pprof"], (True, "flag"))
        equal(got["logging-format"], ("json", "env:LOG_FORMAT"))
        equal(got["rate-limiter-qps"], (0.5, "file:%s:1" % f.name))
        equal(got["controllers"], (["a", "b c"], "file:%s:2" % f.name))
        equal(got["config"], (f.name, "flag"))
        equal(got["log-file"][0], "/x\t\"\\\x01\ufffd")
        equal(got["heap-profile-rate"], ("512KiB", "default"))
        equal(got["graceful-shutdown-timeout"], ("25s", "default"))
        equal(got["profiling-token"], ("(redacted)", "env:COMPONENT_PROFILING_TOKEN"))
        assert "hunter2" not in text
        assert "hunter2" not in run("--dump-options", COMPONENT_PROFILING_TOKEN="hunter2").stdout


@test
def the_dump_as_text_is_a_config_file():
    words = ["--enable-pprof", "--profiling-bind-address=[::1]:7", "--heap-profile-rate=3MB", "--controllers=*,-a,b: c",
             "--rate-limiter-qps=0.125", "--log-file=/a b#c: 'd' \"e\"", "-v3", "--logging-format=logfmt",
             "--graceful-shutdown-timeout=-1s", "--no-leader-elect", "--profile-port=-1"]
    text = run("--dump-options", *words).stdout
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        again = json.loads(run("--dump-options=json", "-c", f.name).stdout)["options"]
        once = json.loads(run("--dump-options=json", *words).stdout)["options"]
        equal([a["name"] for a in once], [b["name"] for b in again])
        for a, b in zip(once, again):
            if a["name"] != "config":
                equal(a["value"], b["value"], a["name"])
        run("--check-config", "-c", f.name)


@test
def check_config_says_so_and_nothing_else():
    done = run("--check-config")
    equal((done.stdout, done.stderr), ("configuration OK\n", ""))
    run("--check-config", "--v=x", status=2)
    run("--check-config", "-c", "/nonexistent", status=78)


@test
def the_exit_status_tells_options_from_the_config_file():
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("v: x\n")
        f.flush()
        run("-c", f.name, status=78)
        run("-c", f.name, "--nope", status=2)
        run(status=78, COMPONENT_CONFIG=f.name)
    run("--nope", status=2)
    contains(run(status=2, LOG_LEVEL="x").stderr, "LOG_LEVEL: 'x': not a whole number; write digits, such as 42, without "
             "blanks, sign '+' or leading zeros; or one of 'error', 'info', 'debug'\n")


@test
def faults_go_to_standard_error_with_the_way_to_help_last():
    done = run("--v=x", "--nope", status=2)
    equal(done.stdout, "")
    lines = done.stderr.splitlines()
    equal(len(lines), 3)
    assert all(line.startswith("flags-program: ") for line in lines[:2]), lines
    equal(lines[2], "Try 'flags-program --help' for more information.")


@test
def a_set_user_id_start_reads_no_variable():
    if os.getuid() != 0:
        raise Skip("needs root to make a set-user-ID program")
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        copy = os.path.join(d, "flags_program")
        shutil.copy(PROGRAM, copy)
        os.chown(copy, 65534, 65534)
        os.chmod(copy, 0o4755)
        if os.statvfs(d).f_flag & os.ST_NOSUID:
            raise Skip("temporary folder is mounted nosuid")
        done = run(program=copy, PPROF_BIND_ADDRESS=":1", LOG_LEVEL="x")
        assert "enable-pprof=0 (default)" in done.stdout, done.stdout
        assert "v=0 (default)" in done.stdout, done.stdout
        assert "environment variables are ignored" in done.stderr, done.stderr
        done = run("--v=2", program=copy)
        assert "v=2 (flag)" in done.stdout and done.stderr == ""


@test
def the_man_page_has_every_option_and_no_warning():
    page = run("--generate-man").stdout
    assert page.startswith('.TH "FLAGS\\-PROGRAM" 1 '), page[:80]
    plain = page.replace("\\-", "-")
    for o in options():
        assert "--" + o["name"] in plain, o["name"]
        for variable in o["env"]:
            assert variable in plain, variable
    for line in page.splitlines():
        assert not line.startswith("'"), line
    assert "\\ekept" in page and "it\\(aqs" in page
    tool = next((t for t in (["groff", "-man", "-Tutf8", "-ww", "-z"], ["mandoc", "-T", "lint", "-W", "warning"],
                             ["man", "--warnings", "-E", "UTF-8", "-l", "-Z", "/dev/stdin"]) if shutil.which(t[0])), None)
    if not tool:
        return print("# neither groff nor mandoc nor man is here: the page was not formatted")
    done = subprocess.run(tool, input=page, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    equal(done.stderr, "")


def complete(*words):
    """What bash offers behind these words, the last of which is being written."""
    script = run("--completion=bash").stdout
    with tempfile.NamedTemporaryFile("w", suffix=".bash") as f:
        f.write(script + """
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_flags_program
printf '%s\\n' "${COMPREPLY[@]}"
""")
        f.flush()
        done = subprocess.run(["bash", f.name, "flags-program", *words], env=CLEAN, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=True, cwd=os.path.join(SRC, "tests/lib"))
        equal(done.stderr, "")
        return [line for line in done.stdout.splitlines() if line]


@test
def bash_completes_names_words_and_files():
    if not shutil.which("bash"):
        raise Skip("no bash")
    equal(complete("--enable"), ["--enable-pprof", "--enable-profiling"])
    equal(complete("--no-l"), ["--no-leader-elect"])
    equal(complete("--logging-f"), ["--logging-format="])
    # bash makes three words of "--x=y".
    equal(complete("--logging-format", "=", "j"), ["json"])
    equal(complete("--logging-format", "="), ["text", "logfmt", "json"])
    equal(complete("--enable-pprof", "=", ""), ["true", "false"])
    equal(complete("--version", "=", "j"), ["json"])
    equal(complete("--config", "=", "harness.p"), ["harness.py"])
    equal(complete("-c", "harness.p"), ["harness.py"])
    equal(complete("--heap-profile-rate", "=", ""), [])
    assert "--help-all" in complete("--") and "--profile-port=" not in complete("--")
    assert "--no-help-all" not in complete("--no")


@test
def zsh_gets_a_script_that_it_can_read():
    script = run("--completion=zsh").stdout
    assert script.startswith("#compdef flags-program\n")
    assert "'--logging-format=[Shape of log lines.]:enum:(text logfmt json)'" in script, script
    if not shutil.which("zsh"):
        return print("# no zsh here: the script was not read by it")
    subprocess.run(["zsh", "-n", "/dev/stdin"], input=script, text=True, check=True)


main()
