#!/usr/bin/env python3
"""componentctl itself: its help, and what of its environment is none of its business."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403


@test
def help_of_a_command_is_that_commands():
    equal(ctl("help", "run"), ctl("run", "--help"))
    contains(ctl("help", "list"), "Usage: componentctl list [OPTION]...")
    equal(ctl("help"), ctl("--help"))
    contains(ctl("help", "rnu", status=2), "there is no command 'rnu'; did you mean 'run'?")
    for word in "help COMMAND", "--version", "--completion=bash":
        contains(ctl("--help"), "'componentctl %s'" % word)


@test
def the_config_file_of_daemons_is_not_read_and_what_is_run_finds_its_name():
    with tempdir() as d:
        path = d + "/backend.yaml"
        with open(path, "w") as f:
            f.write("rate-limiter-qps: 3\n")
        env = environment(COMPONENT_CONFIG=path)
        ctl("list", env=env)
        contains(ctl("run", "--help", env=env), "Usage: componentctl run")
        equal(ctl("run", "--enable-profiling=false", "sh", "-c", "echo $COMPONENT_CONFIG", env=env), path + "\n")
        contains(ctl("list", "--config", path, status=78), "rate-limiter-qps")
        contains(ctl("list", status=78, env=environment(COMPONENTCTL_LIST_CONFIG=path)), "rate-limiter-qps")


@test
def no_page_names_a_variable_that_is_not_read():
    for words in ["--help-all"], ["--generate-man"], ["--dump-options=json"]:
        said = ctl("run", *words)
        contains(said, "COMPONENTCTL_RUN_CONFIG")
        contains(said, "COMPONENT_PROFILE_PORT")
        need("COMPONENT_CONFIG" not in said, said)


@test
def a_trace_without_a_file_is_a_fault_of_usage_whatever_its_target_is():
    with tempdir() as d:
        path = d + "/profile"
        open(path, "w").close()
        for target in "nosuch", str(os.getpid()), "127.0.0.1:1", "unix:relative", path:
            contains(ctl("trace", target, status=2), "write -o FILE")
        contains(ctl("trace", "nosuch", "-o", d + "/trace", status=1), "nosuch")
        equal(os.listdir(d), ["profile"])


main()
