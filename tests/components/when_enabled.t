#!/usr/bin/env python3
"""When profiling is on, and where: option, alias variable and address, each combination.

Runs in a network namespace of its own, where every default port is free."""
import http.client
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

SUBJECT = "tests/programs/obedient_daemon"
KARMADA = ["karmada-agent", "karmada-aggregated-apiserver", "karmada-controller-manager", "karmada-descheduler",
           "karmada-search", "karmada-scheduler", "karmada-scheduler-estimator", "karmada-webhook"]


def clean(**env):
    """An environment without any variable that has a say in the matter."""
    kept = {k: v for k, v in os.environ.items() if "PPROF" not in k and "PROFIL" not in k and not k.startswith("COMPONENT_")}
    kept.update(env)
    return kept


class Outcome:
    def __init__(self, address, log):
        self.address, self.log = address, log


def outcome(*args, **env):
    """Starts it and looks whether, and where, it serves profiles."""
    with tempdir() as d:
        port_file = os.path.join(d, "port")
        p = subprocess.Popen([program(SUBJECT), "--profiling-port-file=" + port_file] + list(args), env=clean(**env),
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(os.path.join(d, "log"), "wb"))
        log = lambda: open(os.path.join(d, "log"), errors="replace").read()  # noqa: E731
        try:
            poll(lambda: p.poll() is not None or os.path.exists(port_file) or "profiling is off" in log() or "which means off" in log(),
                 "the daemon to say whether profiling is on")
            need(p.poll() is None, "it ended with %r:\n%s" % (p.returncode, log()))
            address = open(port_file).read().strip() if os.path.exists(port_file) else None
            if address:
                host, _, port = address.rpartition(":")
                c = http.client.HTTPConnection(host.strip("[]").replace("::", "::1") if host == "[::]" else host.strip("[]"),
                                               int(port), timeout=DEADLINE)
                c.request("GET", "/debug/pprof/cmdline")
                equal(c.getresponse().status, 200)
                c.close()
            else:
                sockets = [t for t in descriptors(p.pid).values() if t.startswith("socket:")]
                equal(sockets, [], "off means no listener")
            p.terminate()
            equal(p.wait(DEADLINE), 0)
            return Outcome(address, log())
        finally:
            if p.poll() is None:
                p.kill()
                p.wait()


def is_off(o, warning=None):
    equal(o.address, None)
    if warning:
        warned = [line for line in o.log.splitlines() if " warn" in line]
        need(any(warning in line for line in warned), "no warning %r in:\n%s" % (warning, o.log))
        equal(len(warned), 1, "one warning")
    else:
        need(" warn" not in o.log, o.log)


if not own_network():
    print("1..0 # SKIP no network namespace of our own can be had here")
    sys.exit(0)


@test
def nothing_given_is_off():
    is_off(outcome())


@test
def the_option_alone_is_on_at_the_default_address():
    equal(outcome("--enable-pprof").address, "127.0.0.1:6060")
    for name in "ENABLE_PROFILING", "SUBJECT_ENABLE_PPROF", "COMPONENT_ENABLE_PPROF":
        equal(outcome("--enable-pprof", **{name: "false"}).address, "127.0.0.1:6060")


@test
def the_option_takes_the_flags_address():
    equal(outcome("--enable-pprof", "--profiling-bind-address=127.0.0.2:7001").address, "127.0.0.2:7001")
    equal(outcome("--enable-profiling", "--profiling_bind_address", "127.0.0.2:7001").address, "127.0.0.2:7001")


@test
def a_variable_that_says_true_is_on_at_the_default_address():
    for name in "ENABLE_PROFILING", "SUBJECT_ENABLE_PPROF", "COMPONENT_ENABLE_PPROF":
        for word in "true", "1", "yes", "ON":
            equal(outcome(**{name: word}).address, "127.0.0.1:6060", "%s=%s" % (name, word))


@test
def an_alias_address_is_on_there():
    equal(outcome(PPROF_BIND_ADDRESS="127.0.0.2:7002").address, "127.0.0.2:7002")
    address = outcome(PPROF_BIND_ADDRESS=":6060").address
    need(address in ("[::]:6060", "0.0.0.0:6060"), address)


@test
def an_alias_address_of_0_is_off():
    is_off(outcome(PPROF_BIND_ADDRESS="0"))


@test
def an_empty_alias_address_is_not_given():
    is_off(outcome(PPROF_BIND_ADDRESS=""))
    equal(outcome("--enable-pprof", PPROF_BIND_ADDRESS="").address, "127.0.0.1:6060")


@test
def a_spoken_off_beats_the_alias_address_with_one_warning():
    is_off(outcome(PPROF_BIND_ADDRESS=":6060", ENABLE_PROFILING="false"), "PPROF_BIND_ADDRESS")
    is_off(outcome(PPROF_BIND_ADDRESS=":6060", SUBJECT_ENABLE_PPROF="0"), "PPROF_BIND_ADDRESS")


@test
def the_option_set_to_false_is_off_whatever_else_is_given():
    for args in ["--enable-pprof=false"], ["--no-enable-pprof"], ["--enable-pprof", "false"], ["--enable-profiling=no"]:
        for env in {}, {"ENABLE_PROFILING": "true"}, {"PPROF_BIND_ADDRESS": ":6060"}:
            equal(outcome(*args, **env).address, None, "%r %r" % (args, env))


@test
def the_flags_address_beats_the_variables():
    equal(outcome("--enable-pprof", "--profiling-bind-address=127.0.0.2:7003", PPROF_BIND_ADDRESS=":6060").address,
          "127.0.0.2:7003")
    equal(outcome("--profiling-bind-address=127.0.0.2:7003", PPROF_BIND_ADDRESS=":6060").address, "127.0.0.2:7003")


@test
def an_address_alone_is_off_with_one_warning():
    is_off(outcome("--profiling-bind-address=127.0.0.2:7004"), "profiling-bind-address")
    is_off(outcome(SUBJECT_PROFILING_BIND_ADDRESS="127.0.0.2:7004"), "BIND_ADDRESS")


@test
def the_two_word_form_is_on():
    equal(outcome("--enable-pprof", "true").address, "127.0.0.1:6060")
    equal(outcome("--enable-profiling", "true", "--profile-port", "7777").address, "127.0.0.1:7777")


@test
def a_profile_port_is_a_port_of_loopback_and_enables_nothing():
    is_off(outcome("--profile-port=7777"))
    equal(outcome("--enable-pprof", "--profile-port=7777").address, "127.0.0.1:7777")
    for number in "0", "-1":
        address = outcome("--enable-pprof", "--profile-port=" + number).address
        need(address.startswith("127.0.0.1:") and int(address.split(":")[1]) >= 1024, address)


@test
def a_profile_port_contradicts_an_address_of_the_same_level_and_beats_a_farther_one():
    r = run(SUBJECT, "--enable-pprof", "--profile-port=1", "--profiling-bind-address=127.0.0.1:2", env=clean())
    equal(r.returncode, 2)
    contains(r.stderr, "--profile-port")
    contains(r.stderr, "--profiling-bind-address")
    equal(outcome("--profile-port=7777", PPROF_BIND_ADDRESS="127.0.0.2:7005").address, "127.0.0.1:7777")
    equal(outcome("--profiling-bind-address=127.0.0.2:7005", "--enable-pprof", SUBJECT_PROFILE_PORT="7777").address,
          "127.0.0.2:7005")


@test
def an_address_of_0_is_off_and_says_so_when_profiling_is_enabled():
    o = outcome("--enable-pprof", "--profiling-bind-address=0")
    equal(o.address, None)
    contains(o.log, "profiling is enabled but its address is 0")


@test
def the_config_file_has_its_say_by_both_spellings():
    with tempdir() as d:
        path = os.path.join(d, "config.yaml")
        for text in ("enable-pprof: true\nprofiling-bind-address: 127.0.0.2:7006\n",
                     "profiling:\n  enabled: true\n  address: 127.0.0.2:7006\n",
                     "profiling: {enabled: yes, address: '127.0.0.2:7006'}\n"):
            with open(path, "w") as f:
                f.write(text)
            equal(outcome("--config", path).address, "127.0.0.2:7006", text)
            equal(outcome("--config", path, ENABLE_PROFILING="false").address, None, text)
            equal(outcome("--config", path, PPROF_BIND_ADDRESS="127.0.0.2:7007").address, "127.0.0.2:7007", text)


@test
def a_component_without_a_row_in_the_port_table_has_6060():
    for name in KARMADA + ["anything-else"]:
        r = run(SUBJECT, "--dump-options=json", env=clean(TELL_NAME=name))
        equal(r.returncode, 0, r.stderr)
        rows = {o["name"]: o for o in json.loads(r.stdout)["options"]}
        equal(rows["profiling-bind-address"]["value"], "127.0.0.1:6060", name)
        equal(rows["enable-pprof"]["value"], False, name)


@test
def components_of_the_port_table_have_their_own():
    for name, port in ("backend-controller", 6060), ("cluster-agent", 6061), ("appstudio-controller", 6062):
        equal(outcome("--enable-pprof", TELL_NAME=name).address, "127.0.0.1:%d" % port)


@test
def one_of_karmadas_started_with_the_option_alone_serves_on_6060():
    o = outcome("--enable-pprof", TELL_NAME="karmada-scheduler")
    equal(o.address, "127.0.0.1:6060")
    contains(o.log, "starting profiling server on port 6060")
    contains(o.log, "http://127.0.0.1:6060/debug/pprof/")


main()
