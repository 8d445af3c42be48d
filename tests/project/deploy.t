#!/usr/bin/env python3
"""What deploy/ tells people to use is what the programs take.  kubernetes.t has more of its manifests, systemd.t its units."""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

PORTS = {m[0]: tuple(map(int, m[1:])) for m in re.findall(
    r'"([a-z-]+)",\s*"[^"]*",\s*(\d+), (\d+), (\d+)\)',
    open(os.path.join(SRC, "components/include/component/ports.def")).read())}
MANIFESTS = sorted(glob.glob(os.path.join(SRC, "deploy", "kubernetes", "**", "*.yaml"), recursive=True))


def read(path):
    with open(path) as f:
        return f.read()


def manifest(path):
    """Name, arguments and environment of a Deployment's only container."""
    text = read(path)
    name = re.search(r"^  name: (\S+)$", text, re.M).group(1)
    args = re.search(r"^ +args: \[(.*)\]$", text, re.M)
    env = dict((k, v.strip('"')) for k, v in re.findall(r"- name: ([A-Z_]+)\n +value: (.*)$", text, re.M))
    return name, re.split(r", *", args.group(1)) if args else [], env


def checked(name, args, env=None):
    """What --check-config says, with a root that is there."""
    with tempdir() as t:
        r = run("examples/" + name, *args, *(["--root=" + t] if "controller" in name or "agent" in name else []), "--check-config", env=env)
    return r.returncode, r.stderr


@test
def both_ways_of_turning_it_on_are_there_as_documented():
    text = read(os.path.join(SRC, "deploy", "kubernetes", "backend-controller.yaml"))
    contains(text, "args: [--enable-pprof, --profiling-bind-address=127.0.0.1:6060]\n")
    need("PPROF_BIND_ADDRESS" not in text)
    text = read(os.path.join(SRC, "deploy", "kubernetes", "backend-controller-env.yaml"))
    contains(text, '- name: PPROF_BIND_ADDRESS\n              value: ":6060"\n')
    need("--enable-pprof" not in text)


@test
def the_annotation_that_a_manifest_names_switches_by_the_file_that_it_mounts():
    path = os.path.join(SRC, "deploy", "kubernetes", "backend-controller-annotation.yaml")
    name, args, env = manifest(path)
    mount = re.search(r"\{name: podinfo, mountPath: (\S+)\}", read(path)).group(1)
    file = re.search(r"- name: podinfo\n +downwardAPI:\n +items:\n +- \{path: (\S+), fieldRef: \{fieldPath: metadata.annotations\}\}",
                     read(path)).group(1)
    key, value = re.search(r"^# +kubectl annotate pod -l app.kubernetes.io/name=%s (\S+)=(\S+)$" % name, read(path), re.M).groups()
    equal(args[0], "--profiling-enable-file=%s/%s" % (mount, file))
    with tempdir() as d:
        with daemon("examples/" + name, "--root=" + d, "--profiling-enable-file=%s/%s" % (d, file), wait=False) as b:
            b.wait_log("profiling is off")
            with open("%s/%s" % (d, file), "w") as f:
                f.write('%s="%s"\n' % (key, value))
            b.wait_port()
            equal(b.get("/debug/pprof/").status, 200)
            equal(b.stop(), 0)


@test
def commands_in_comments_can_be_pasted():
    for path in MANIFESTS:
        for url in re.findall(r"go tool pprof (.*)$", read(path), re.M):
            need(re.fullmatch(r"'[^']*'|\"[^\"]*\"", url), "%s: a shell may take the ? of %s for a pattern" % (path, url))


@test
def scrapers_ask_the_three_controllers_at_the_ports_of_the_table():
    wanted = sorted((name, ports[0]) for name, ports in PORTS.items() if name != "componentctl")
    equal(len(wanted), 3)
    for name, target in (("parca.yaml", r"job_name: ([a-z-]+), .*targets: \['127\.0\.0\.1:(\d+)'\]"),
                         ("config.alloy", r'"__address__" = "127\.0\.0\.1:(\d+)", "service_name" = "([a-z-]+)"')):
        found = [sorted(pair, reverse=True) for pair in re.findall(target, read(os.path.join(SRC, "deploy", name)))]
        equal(sorted((job, int(port)) for job, port in found), wanted, name)


@test
def what_scrapers_comments_name_is_taken():
    for name in "parca.yaml", "config.alloy":
        options = re.findall(r"--(?:block|mutex)-profile[^ .]*", read(os.path.join(SRC, "deploy", name)))
        equal(len(options), 2, name)
        equal(checked("backend-controller", ["--enable-pprof", *options]), (0, ""), name)


main()
