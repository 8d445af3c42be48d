#!/usr/bin/env python3
"""componentctl annotate: what a pod's annotations ask for, in its manifest; read again by another reader of YAML."""
import copy
import glob
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
try:
    import yaml
except ImportError:
    print("1..0 # SKIP python3-yaml is not here")
    sys.exit()

KEYS = ["component.dev/profiling", "dapr.io/enable-profiling", "dapr.io/profiling"]
ARGS = ["--enable-pprof", "--profiling-bind-address=127.0.0.1:7777", "--health-probe-bind-address=:7779"]
PORTS = [{"name": "pprof", "containerPort": 7777}, {"name": "health", "containerPort": 7779}]
PROBES = {"livenessProbe": {"httpGet": {"path": "/livez", "port": "health"}},
          "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}}}
KINDS = {"Pod": [], "Deployment": ["spec", "template"], "StatefulSet": ["spec", "template"], "DaemonSet": ["spec", "template"],
         "ReplicaSet": ["spec", "template"], "Job": ["spec", "template"], "CronJob": ["spec", "jobTemplate", "spec", "template"],
         "PodTemplate": ["template"]}


def annotated(text, *words):
    """What it writes, which annotated again is the same; and what it says beside that."""
    r = run(CTL, "annotate", "-f", "-", *words, input=text, stdin=None, env=environment(), text=False) if isinstance(text, bytes) \
        else run(CTL, "annotate", "-f", "-", *words, input=text, stdin=None, env=environment())
    equal(r.returncode, 0, "%s\n%s" % (text, r.stderr))
    again = run(CTL, "annotate", "-f", "-", *words, input=r.stdout, stdin=None, env=environment(), text=not isinstance(text, bytes))
    equal((again.returncode, again.stdout), (0, r.stdout), "annotated again it is another one")
    return r.stdout, r.stderr


def read(text):
    return list(yaml.safe_load_all(text))


def shape(text):
    return [type(e) for e in yaml.parse(text)]


def pod(container="{name: a, image: x}", annotation='component.dev/profiling: "true"', more=""):
    return "kind: Pod\nmetadata:\n  annotations:\n    %s\nspec:\n  containers:\n  - %s\n%s" % (
        annotation, container.replace("\n", "\n    "), more)


def container(text, *words, n=0):
    return read(annotated(text, *words)[0])[0]["spec"]["containers"][n]


def template_of(o):
    for key in KINDS[o["kind"]]:
        o = o[key]
    return o


def expected(o):
    """The same again, made here: of an object whose only container has nothing that concerns us."""
    o = copy.deepcopy(o)
    c = template_of(o)["spec"]["containers"][0]
    c["args"] = (c.get("args") or []) + ARGS
    c["ports"] = (c.get("ports") or []) + PORTS
    c.update(PROBES)
    return o


@test
def each_spelling_gives_arguments_a_named_port_and_probes_in_each_kind_of_pod():
    for kind, path in KINDS.items():
        for key in KEYS:
            o = {"metadata": {"annotations": {key: "true", "other": "x"}}, "spec": {"containers": [{"name": "a", "image": "x:1"}]}}
            for name in reversed(path):
                o = {name: o}
            o = {"kind": kind, **o}
            out, said = annotated(yaml.safe_dump(o, sort_keys=False))
            equal(read(out), [expected(o)])
            contains(said, "container 'a' had neither command nor args")


@test
def our_daemons_take_the_arguments_that_it_writes():
    args = container(pod())["args"]
    r = run("examples/hello", *args, "--dump-options")
    equal(r.returncode, 0, r.stderr)
    for line in "enable-pprof: true ", "profiling-bind-address: 127.0.0.1:7777 ", "health-probe-bind-address: :7779 ":
        contains(r.stdout.replace('"', ""), "\n" + line)
    d1 = pod(annotation='dapr.io/enabled: "true"\n    dapr.io/id: "rust-app"\n    dapr.io/profiling: "true"')
    out, said = annotated(d1)
    equal(read(out), [expected(read(d1)[0])])
    contains(said, "its sidecar takes port 7777 of the pod, too; --profile-port=N is another one")


@test
def comments_order_and_quotes_stay_and_other_documents_too():
    text = """# first
apiVersion: apps/v1
kind: Deployment
metadata: {name: 'b'}   # the name
spec:
  template:
    metadata:
      annotations:
        dapr.io/profiling: "true"   # on
    spec:
      containers:
      # the one
      - name: größe
        image: "x:1" # which

        # its list
        args:
        - serve      # what
        - |
          a script

        # ends here
        env:
        - {name: A, value: 'b'}
      - name: other
---
# a service
kind: Service
metadata:
    name:   s
...
"""
    out, said = annotated(text)
    kept = iter(out.split("\n"))
    need(all(line in kept for line in text.split("\n")), "lines were changed, and not only added:\n" + out)
    a, b = read(out)
    equal(b, read(text)[1])
    c = a["spec"]["template"]["spec"]["containers"]
    equal(c[0]["args"], ["serve", "a script\n"] + ARGS)
    equal(c[0]["name"], "größe")
    equal(c[1], {"name": "other"})
    contains(said, "of several containers 'größe' is changed; --container=NAME")
    c = read(annotated(text, "--container=other")[0])[0]["spec"]["template"]["spec"]["containers"]
    equal((c[0]["args"], c[1]["args"]), (["serve", "a script\n"], ARGS))


@test
def layouts_of_all_kinds_take_it_with_nothing_else_changed():
    shared = "env:\n- {name: A, value: b}"
    texts = ["name: a\nargs: [x, y]", "name: a\nargs:\n- x\n- y # c", "name: a\nargs:\n    - x\n    -   y", "name: a\nargs: [\n  x, # 1\n  y, # 2\n]",
             "name: a\nargs: []", "name: a\nargs:", "name: a\nargs: ~ # none", "name: a\nargs: null\n" + shared, "name: a\nargs: ['x,', \"y\"]",
             "name: a\ncommand:\n- x\n- >\n  long\n  words\n" + shared, "command: [x]\nname: a\nports: []", "name: a\nports:\n- containerPort: 80\n  name: web",
             "name: a\nports: [{containerPort: 80}]", "args: |-\n  x\nname: a", "{name: a, args: [x], ports: [{containerPort: 1}]}", "{name: a}",
             "name: a\nimage: >-\n  x\n  y\n", '{"name": "a", "args": ["x"]}', "name: &n a\nimage: *n", "name: a\nlabels: &l {a: b}\nmore: *l",
             "name: a\nargs:\n- |+\n  x\n\n\n" + shared, "env:\n- {name: A, value: b}\nname: a\nargs:\n- - y", "name: a\nargs: [a: b]"]
    for n, text in enumerate(texts):
        whole = pod(text)
        ways = [whole + "  restartPolicy: Never\n", whole.rstrip("\n"), whole.replace("\n", "\r\n"), "\ufeff" + whole, "---\n" + whole + "...\n",
                "# é €\n" + whole + "# end"]
        for ends in ways[:2] + [ways[2 + n % 4]]:
            if text.startswith("args: |"):
                r = run(CTL, "annotate", "-f", "-", input=ends, stdin=None, env=environment())
                contains(r.stderr, "'args' is no list; write args: [...]")
                continue
            out, _ = annotated(ends.encode())
            equal(read(out), [expected(o) for o in read(ends)], ends)
            if "\r" in ends:
                equal(out.count(b"\n"), out.count(b"\r\n"))


@test
def a_list_and_JSON_are_as_good_and_JSON_stays_JSON():
    items = read(pod() + "---\n" + pod(annotation='a: "b"') + "---\nkind: ConfigMap\n")
    for text in yaml.safe_dump({"kind": "List", "items": items}), json.dumps({"kind": "List", "items": items}), \
            json.dumps({"kind": "List", "items": items}, indent=2):
        out, _ = annotated(text)
        equal(read(out), [{"kind": "List", "items": [expected(items[0]), items[1], items[2]]}])
        if text.startswith("{"):
            equal(json.loads(out), read(out)[0])
    named = read(pod("{name: a, args: ['--health-probe-bind-address=:8081'], ports: [{name: 8081-tcp, containerPort: 8081}]}"))[0]
    out = json.loads(annotated(json.dumps(named))[0])["spec"]["containers"][0]
    equal(out["livenessProbe"]["httpGet"]["port"], "8081-tcp")


@test
def what_the_manifest_says_already_is_kept():
    c = container(pod("name: a\nargs: [--enable-profiling, 'true', --profile-port, '6061', --health-probe-bind-address=:18081]"))
    equal(c["args"], ["--enable-profiling", "true", "--profile-port", "6061", "--health-probe-bind-address=:18081"])
    equal(c["ports"], [{"name": "pprof", "containerPort": 6061}, {"name": "health", "containerPort": 18081}])
    # The last one counts, and the command's words are as good.
    c = container(pod("name: a\ncommand: [x, --enable-pprof, '--profiling_bind_address=[::1]:6062']\nargs: [--enable-pprof=false]"))
    equal(c["args"], ["--enable-pprof=false", "--enable-pprof", ARGS[2]])
    equal(c["ports"][0], {"name": "pprof", "containerPort": 6062})
    c = container(pod("name: a\nargs: [--no-enable-pprof, '--profiling-bind-address=unix:/run/x', --, operand]"))
    equal(c["args"], ["--no-enable-pprof", "--profiling-bind-address=unix:/run/x", "--enable-pprof", ARGS[2], "--", "operand"])
    equal([p["name"] for p in c["ports"]], ["health"])
    c = container(pod("name: a\nargs:\n- x\n-   --\n- operand"))
    equal(c["args"], ["x"] + ARGS + ["--", "operand"])
    c = container(pod("name: a\ncommand: [tini, -s, /app]\nargs: [x]"))
    equal(c["args"], ["x"] + ARGS)
    for command, first in (("[tini, /app]", "x"), ("[tini]", "/app"), ("[tini, -p, SIGTERM, /app]", "x")):
        c = container(pod("name: a\ncommand: %s\nargs: [%s, '--', operand]" % (command, first)))
        equal(c["args"], [first] + ARGS + ["--", "operand"])
    c = container(pod("name: a\ncommand: [/app]\nargs: ['--', operand]"))
    equal(c["args"], ARGS + ["--", "operand"])
    # Variables of a component, and of all.
    c = container(pod('name: a\nenv:\n- {name: PPROF_BIND_ADDRESS, value: ":6060"}\n- name: B_HEALTH_PROBE_BIND_ADDRESS\n  valueFrom: {}'))
    equal((c["args"], c["ports"]), (["--enable-pprof"], [{"name": "pprof", "containerPort": 6060}]))
    # Names of ports, and other probes.
    c = container(pod("name: a\nports: [{containerPort: 6060, name: pprof}, {containerPort: 7779}, {containerPort: 6060, protocol: UDP}]"))
    equal(c["args"], ["--enable-pprof", "--profiling-bind-address=127.0.0.1:6060", ARGS[2]])
    equal((len(c["ports"]), c["livenessProbe"]["httpGet"]["port"]), (3, 7779))
    c = container(pod("name: a\nreadinessProbe: {exec: {command: [x]}}"))
    equal((c["args"], c["ports"], "livenessProbe" in c), (ARGS[:2], PORTS[:1], False))
    c = container(pod(), "--probes=false", "--profile-port=6065")
    equal((c["args"], c["ports"]), (["--enable-pprof", "--profiling-bind-address=127.0.0.1:6065"], [{"name": "pprof", "containerPort": 6065}]))
    out, said = annotated(pod("name: a\nargs: [--health-probe-bind-address=127.0.0.1:18081]"))
    contains(said, "container 'a' gets no probes: kubelet does not reach its --health-probe-bind-address '127.0.0.1:18081'; write :7779 there")
    need("livenessProbe" not in out, out)


@test
def our_own_manifests_need_a_switch_at_most():
    for path in sorted(glob.glob(os.path.join(SRC, "deploy/kubernetes/*.yaml"))):
        before = text_of(os.path.abspath(path))
        if "kind: Deployment" not in before:
            continue
        on = before.replace("    metadata:\n", "    metadata:\n      annotations: {component.dev/profiling: \"true\"}\n")
        need(on != before, path)
        out, _ = annotated(on)
        was, now = (read(t)[0]["spec"]["template"]["spec"]["containers"][0] for t in (on, out))
        equal(now["args"], was.get("args", []) + ([] if "--enable-pprof" in was.get("args", []) else ["--enable-pprof"]), path)
        equal(now["ports"], was["ports"], path)
        need({k: v for k, v in now.items() if k != "args"} == {k: v for k, v in was.items() if k != "args"}, path)


@test
def the_container_is_the_one_of_kubectls_annotation_and_never_daprs():
    two = "{name: daprd, args: [--app-id, x]}\n  - {name: b}\n  - {name: c}".replace("\n", "\n")
    text = "kind: Pod\nmetadata: {annotations: {dapr.io/profiling: \"true\"%s}}\nspec:\n  containers:\n  - " + two + "\n"

    def changed(more="", *words):
        return [c["name"] for c in read(annotated(text % more, *words)[0])[0]["spec"]["containers"] if ARGS[0] in c.get("args", [])]
    equal(changed(), ["b"])
    equal(changed(", kubectl.kubernetes.io/default-container: c"), ["c"])
    equal(changed(", kubectl.kubernetes.io/default-container: c", "--container", "b"), ["b"])


@test
def without_the_annotation_or_with_false_it_is_written_as_it_was():
    for annotation in ('component.dev/profiling: "false"', 'a: "true"', 'dapr.io/profiling: "true"\n    component.dev/profiling: "false"'):
        out, said = annotated(pod(annotation=annotation))
        equal(out, pod(annotation=annotation))
        contains(said, 'no pod in it is annotated with component.dev/profiling: "true"')
    text = "kind: Deployment\nmetadata:\n  annotations: {dapr.io/profiling: 'true'}\nspec:\n  template:\n    spec:\n      containers: [{name: a}]\n"
    out, said = annotated(text)
    equal(out, text)
    contains(said, "line 1: an annotation of the Deployment itself is none of its pods'; move it to spec.template.metadata.annotations")


@test
def a_file_is_read_like_standard_input_and_a_pipe_too():
    with tempdir() as d:
        path = os.path.join(d, "pod.yaml")
        with open(path, "w") as f:
            f.write(pod())
        equal(ctl("annotate", "-f", path), annotated(pod())[0])
        equal(ctl("annotate", "--filename=" + path), annotated(pod())[0])
        r = run("bash", "-c", "%s annotate -f <(cat %s)" % (CTL, path), env=environment())
        equal((r.returncode, r.stdout), (0, annotated(pod())[0]), r.stderr)
        equal(text_of(path), pod())


@test
def bad_input_is_told_in_one_sentence_and_nothing_is_written():
    def refused(text, why, status=1, words=("-f", "-")):
        r = run(CTL, "annotate", *words, input=text, stdin=None, env=environment(), text=not isinstance(text, bytes))
        said = r.stderr if isinstance(r.stderr, str) else r.stderr.decode()
        equal((r.returncode, len(r.stdout)), (status, 0), "%s\n%s" % (text, said))
        contains(said, "componentctl: " + why)
        equal(len(said.splitlines()), 1, said)

    refused("", "no manifest is given; write componentctl annotate -f FILE, or -f - for standard input", 2, ())
    r = run(CTL, "annotate", "-f", "x", "y", env=environment())
    equal(r.returncode, 2)
    contains(r.stderr, "extra operand 'y'")
    refused("", "/nosuch.yaml cannot be read: No such file or directory", 1, ("-f", "/nosuch.yaml"))
    refused("", "/ cannot be read: Is a directory", 1, ("-f", "/"))
    refused("", "standard input: there is no pod in it; write the manifest of a Pod, Deployment,")
    refused("kind: Service\n", "standard input: there is no pod in it; write")
    refused("hello\n", "standard input:1: no object of Kubernetes: it has no 'kind'; write the manifest of a Pod")
    refused("a: b\n", "standard input:1: no object of Kubernetes")
    refused("kind: Pod\na: [\n", "standard input:3: not YAML: a value is missing")
    refused("kind: Pod\n\ta: b\n", "standard input:2: not YAML: a TAB")
    refused("kind: Pod\n{{- if .x }}\n", "standard input:3: not YAML")
    refused("kind: Pod\n".encode("utf-16"), "standard input:1: not YAML: UTF-16; save the file as UTF-8")
    refused(b"kind: \xff\n", "standard input:1: not YAML: a byte that is not UTF-8")
    refused("kind: Pod\na: " + "[" * 200, "standard input:2: lists and mappings are nested too deeply")
    refused("kind: Deployment\n", "standard input:1: this Deployment has no spec.template; write one")
    for key in KEYS:
        for value, why in (('"yes"', "'yes' is neither \"true\" nor \"false\"; write %s: \"true\""), ('"True"', "'True' is neither"), ("1", "'1' is neither"),
                           ('""', "'' is neither"), ("true", 'true without quotes is no text, and Kubernetes refuses it; write %s: "true"'),
                           ('"\\x1b[2J"', "'\\x1b[2J' is neither"),
                           ("false", 'false without quotes is no text, and Kubernetes refuses it; write %s: "false"')):
            refused(pod(annotation="%s: %s" % (key, value)), "standard input:4: annotation %s: %s" % (key, why % key if "%s" in why else why))
        refused(pod(annotation=key + ": [a]"), "standard input:4: annotation %s is no text; write" % key)
    on = 'component.dev/profiling: "true"'
    refused(pod(annotation=on + "\n    dapr.io/profiling: \"no\""), "standard input:5: annotation dapr.io/profiling: 'no'")
    refused(pod(annotation=on + "\n    " + on), "standard input:5: 'component.dev/profiling' is there twice, first in line 4; keep one")
    refused("kind: Pod\nmetadata: {annotations: {%s}}\n" % on, "standard input:1: the pod has no spec; write spec:")
    refused("kind: Pod\nmetadata: {annotations: {%s}}\nspec: {containers: []}\n" % on, "standard input:3: the pod has no container that")
    refused("kind: Pod\nmetadata: {annotations: {%s}}\nspec: {containers: x}\n" % on, "standard input:3: 'containers' is no list")
    refused("kind: Pod\nmetadata: {annotations: {%s}}\nspec: {containers: [x]}\n" % on, "standard input:3: 'name' is looked for here")
    refused(pod(), "standard input:7: the pod has no container 'b'; write the name", words=("-f", "-", "--container=b"))
    refused(pod("{name: a, args: *x}", on + "\n    x: &x [a]"), "standard input:8: an alias (*name) is the value of 'args'; write the value out")
    refused(pod("{name: a, args: &x [b]}"), "standard input:7: the value of 'args' has an anchor")
    refused(pod("{name: a, args: &x }"), "standard input:7: the value of 'args' has an anchor")
    refused(pod("{name: a, ports: [{name: http, containerPort: 7777}]}"), "standard input:7: port 7777 of container 'a' is 'http'; write another one: --profile-port=N")
    refused(pod("{name: a, ports: [{name: web, containerPort: 7779}]}"), "standard input:7: port 7779 of container 'a' is 'web'; write another one: --health-port=N")
    one = container(pod("{name: a, args: ['--profiling-bind-address=:8080', '--health-probe-bind-address=:8080']}"))
    equal((one["ports"], one["livenessProbe"]["httpGet"]["port"]), ([{"name": "pprof", "containerPort": 8080}], "pprof"))
    for words, text in (("--profile-port=7779",), "{name: a}"), ((), "{name: a, args: ['--profiling-bind-address=:7779']}"):
        refused(pod(text), "standard input:7: container 'a': profiles and probes have the same port 7779", words=("-f", "-", *words))
    refused(pod("&c {name: a}"), "standard input:7: container 'a' has an anchor (&name)")
    refused(pod("{name: a, <<: {args: [b]}}"), "standard input:7: a merge key (<<)")
    refused(pod("{name: a, args: [&x b, *x]}"), "standard input:7: an alias (*name) in 'args'")
    for shell in "[sh, -c, x]", "[/bin/bash, -ec]":
        refused(pod("{name: a, command: %s}" % shell), "standard input:7: container 'a': a shell runs its program, and hands no further arguments on")
    refused(pod("{name: a, command: [x, --, y]}"), "standard input:7: container 'a': what is behind '--' is no option; write '--' and")
    for text in "command: [/usr/bin/tini], args: ['--', /app]", "command: [dumb-init, --, /app]", "args: [/sbin/docker-init, -s, '--', /app]", \
            "command: [/sbin/tini-static], args: [-p, SIGTERM, '--', /app]":
        refused(pod("{name: a, %s}" % text), "standard input:7: container 'a': an init takes the options before '--' for its own; leave '--' out")
    refused(pod("{name: a, args: ['--', /app]}"), "standard input:7: container 'a': the image alone says whose options are before '--'; write its program as command")
    refused(pod("{name: a}\n- {name: b, ports: [{containerPort: 7777}]}".replace("\n", "\n  ").replace("\n  - ", "\n- ")).replace("    - {name: b", "  - {name: b"),
            "standard input:8: port 7777 is that of container 'b'; write another one for 'a': --profile-port=N")
    refused(pod("{name: a, args: ['--profile-port=6060'], ports: [{name: pprof, containerPort: 7000}]}"),
            "standard input:7: container 'a': port 'pprof' is 7000, and an address says 6060; write the same in both")


@test
def pods_that_another_writer_lays_out_at_random_are_annotated_as_they_should_be():
    r = random.Random(7)
    words = ["x", "--y=1", "a: b", "# no", "'q'", "multi\nline\n", "", "é", "-", "true", "5", "{x", "- z", "long " * 30]
    for _ in range(40):
        c = {"name": "a"}
        for key, make in (("image", lambda: r.choice(words)), ("command", lambda: ["p"] + r.choices(words, k=r.randint(0, 3))),
                          ("args", lambda: r.choices(words, k=r.randint(0, 4))), ("env", lambda: [{"name": "A", "value": r.choice(words)}]),
                          ("ports", lambda: [{"containerPort": 80 + i} for i in range(r.randint(0, 2))]), ("tty", lambda: None)):
            if r.random() < .6:
                c[key] = make()
        if r.random() < .5:
            c = dict(r.sample(list(c.items()), len(c)))
        o = {"kind": "Pod", "metadata": {"annotations": {r.choice(KEYS): "true"}}, "spec": {"containers": [c], "x": r.choice(words)}}
        text = yaml.safe_dump(o, sort_keys=False, default_flow_style=r.choice([None, True, False]), indent=r.randint(2, 6),
                              width=r.choice([20, 80, 1000]), allow_unicode=r.random() < .5, default_style=r.choice([None, None, "'", '"']),
                              line_break=r.choice(["\n", "\r\n"]))
        need(read(text) == [o], text)
        out, _ = annotated(text.encode())
        equal(read(out), [expected(o)], text)


@test
def damaged_manifests_end_it_with_a_sentence_or_are_still_YAML():
    r = random.Random(3)
    seeds = [pod("name: a\nargs:\n- x\nports: [{containerPort: 1}]"), json.dumps(read(pod())[0])]
    for _ in range(100):
        data = bytearray(r.choice(seeds).encode())
        for _ in range(r.randint(1, 4)):
            at = r.randrange(len(data))
            data[at:at + r.randint(0, 2)] = r.choice([b" ", b"\n", b"-", b":", b"[", b"}", b"'", b"#", b"&a ", b"*a", b"\t", b"|", b"? ", b"!x "])
        p = run(CTL, "annotate", "-f", "-", input=bytes(data), stdin=None, env=environment(), text=False)
        need(p.returncode in (0, 1), (p.returncode, p.stderr))
        need(p.returncode == 0 or not p.stdout, data)
        with contextlib.suppress(yaml.YAMLError):  # that reader refuses what libyaml takes, such as TABs
            before = shape(bytes(data))
            need(p.returncode or len(shape(p.stdout)) >= len(before), data)


main()
