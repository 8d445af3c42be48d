#!/usr/bin/env python3
"""deploy/kubernetes/ is what kubectl, Kubernetes and the three controllers take.

What kubectl makes of each kustomization is checked against the types of Kubernetes' own client for Python, field by
field, and its containers are started as a kubelet would start them, in a network of their own.
"""
import itertools
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
sys.path.append("/usr/lib/python3/dist-packages")  # Debian's packages, for another Python of the same version
from harness import *  # noqa: E402,F403
from daemons import UNPACKED  # noqa: E402

own_network()
try:
    import yaml
except ImportError:
    print("1..0 # SKIP python3-yaml is not here")
    sys.exit(0)

HERE = os.path.join(SRC, "deploy/kubernetes")
PODS = ("base", "overlays/dev", "overlays/secured")
BUILT = PODS + ("monitoring",)
FLAT = ("backend-controller", "cluster-agent", "appstudio-controller", "backend-controller-env", "backend-controller-annotation")
PORTS = {name: dict(zip(("pprof", "health", "metrics"), map(int, numbers))) for name, *numbers in re.findall(
    r'"([a-z-]+)",\s*"[^"]*",\s*(\d+), (\d+), (\d+)\)', text_of("components/include/component/ports.def"))}
CONTROLLERS = sorted(set(PORTS) - {"componentctl"})
POD_IP = "10.0.0.7"  # of the network that this test has alone
_built = {}


def kubectls():
    """This machine's, and Debian's, which scripts/test has fetched."""
    found = [path for path in (shutil.which("kubectl"), UNPACKED + "/usr/bin/kubectl") if path and os.path.exists(path)]
    if not found:
        raise Skip("kubectl is not here, and was not fetched: Debian package kubernetes-client")
    return found


def kustomized(folder, kubectl=None):
    """The objects that kubectl makes of a kustomization."""
    kubectl = kubectl or kubectls()[-1]
    if (folder, kubectl) not in _built:
        r = run(kubectl, "kustomize", os.path.join(HERE, folder), env=dict(os.environ, HOME="/nonexistent"))
        equal(r.returncode, 0, r.stderr)
        _built[folder, kubectl] = list(yaml.safe_load_all(r.stdout))
    return _built[folder, kubectl]


def flat(name):
    return list(yaml.safe_load_all(text_of(os.path.join(HERE, name + ".yaml"))))


def everything():
    """Where it is from, and each object."""
    for folder in BUILT:
        yield from ((folder, o) for o in kustomized(folder))
    for name in FLAT + ("volume",):
        yield from ((name + ".yaml", o) for o in flat(name))


def pods(objects):
    """The name and the pod of each Deployment."""
    return [(o["metadata"]["name"], o["spec"]["template"]) for o in objects if o["kind"] == "Deployment"]


def container(pod):
    only, = pod["spec"]["containers"]
    return only


# Kubernetes' types

GROUPS = {"ServiceAccount": "v1", "PersistentVolumeClaim": "v1", "Deployment": "apps/v1", "Role": "rbac.authorization.k8s.io/v1",
          "NetworkPolicy": "networking.k8s.io/v1", "PodMonitor": "monitoring.coreos.com/v1"}
# Of the Prometheus operator, those fields that are used: what Kubernetes' client knows of its own kinds.
OPERATORS = {
    "V1PodMonitor": {"apiVersion": "str", "kind": "str", "metadata": "V1ObjectMeta", "spec": "PodMonitorSpec"},
    "PodMonitorSpec": {"selector": "V1LabelSelector", "jobLabel": "str", "podMetricsEndpoints": "list[PodMetricsEndpoint]"},
    "PodMetricsEndpoint": {"port": "str"}}
PLAIN = {"str": str, "int": int, "bool": bool, "object": object}


def faults(value, kind, where=""):
    """What Kubernetes would not take of a value of that kind, as its client for Python writes kinds."""
    try:
        import kubernetes.client.models as models
    except ImportError:
        raise Skip("Debian's python3-kubernetes is not here")
    many = re.fullmatch(r"list\[(.*)\]", kind)
    if many:
        if not isinstance(value, list):
            return ["%s is no list" % where]
        return [f for n, v in enumerate(value) for f in faults(v, many.group(1), "%s[%d]" % (where, n))]
    many = re.fullmatch(r"dict\(str, (.*)\)", kind)
    if many:
        return [f for k, v in value.items() for f in faults(k, "str", where) + faults(v, many.group(1), where + "." + k)]
    if kind in PLAIN:
        right = isinstance(value, PLAIN[kind]) and not (kind == "int" and isinstance(value, bool))
        return [] if right else ["%s is no %s: %r" % (where, kind, value)]
    if not isinstance(value, dict):
        return ["%s is no %s" % (where, kind)]
    model = getattr(models, kind, None)
    names = {theirs: ours for ours, theirs in model.attribute_map.items()} if model else OPERATORS[kind]
    types = {k: model.openapi_types[ours] for k, ours in names.items()} if model else names
    found = ["%s has no field '%s'" % (where or kind, k) for k in value if k not in types]
    found += [f for k, v in value.items() if k in types for f in faults(v, types[k], where + "." + k)]
    try:
        need(model or set(value) == set(types), "%s lacks %s" % (where or kind, set(types) - set(value)))
        model and model(**{names[k]: v for k, v in value.items() if k in names})
    except (AssertionError, ValueError) as e:  # one that it demands, or none of the words that it knows
        found.append("%s: %s" % (where or kind, e))
    return found


def object_faults(o):
    if GROUPS.get(o.get("kind")) != o.get("apiVersion"):
        return ["no %s of %s" % (o.get("kind"), o.get("apiVersion"))]
    return faults(o, "V1" + o["kind"])


@test
def each_kubectl_makes_the_same_objects_of_each_kustomization():
    wanted = sorted(itertools.product(("Deployment", "ServiceAccount"), CONTROLLERS)) + [("PersistentVolumeClaim", "gitops"), ("Role", "profiler")]
    for folder, kubectl in itertools.product(BUILT, kubectls()):
        objects = kustomized(folder, kubectl)
        expected = {"overlays/secured": wanted + [("NetworkPolicy", "controllers")], "monitoring": [("PodMonitor", "controllers")]}
        equal(sorted((o["kind"], o["metadata"]["name"]) for o in objects), sorted(expected.get(folder, wanted)), (folder, kubectl))
        for o in objects:
            need(o in kustomized(folder), (folder, kubectl, o))


@test
def every_field_is_one_of_kubernetes():
    for where, o in everything():
        equal(object_faults(o), [], where)


@test
def a_field_that_does_not_exist_one_of_another_type_and_one_that_is_missing_are_found():
    with tempdir() as d:
        shutil.copytree(HERE, d + "/k")
        for name, was, is_now, fault in [("base/cluster-agent",) + row for row in (
                ("readinessProbe:", "readynessProbe:", ".spec.template.spec.containers[0] has no field 'readynessProbe'"),
                ("httpGet: {path: /readyz, ", "httpGet: {url: /readyz, ", ".readinessProbe.httpGet has no field 'url'"),
                ("containerPort: 6061", "containerPort: \"6061\"", ".ports[0].containerPort is no int: '6061'"),
                ("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: 1", ".readOnlyRootFilesystem is no bool: 1"),
                ("claimName: gitops", "readOnly: true", "`claim_name`, must not be `None`"),
                ("replicas: 2", "replica: 2", ".spec has no field 'replica'"),
                ("apiVersion: apps/v1", "apiVersion: apps/v1beta1", "no Deployment of apps/v1beta1"))] + [
                    ("monitoring/podmonitor", "- port: metrics", "- targetPorts: metrics", ".podMetricsEndpoints[0]"),
                    ("monitoring/podmonitor", "matchLabels:", "matchLabel:", ".spec.selector has no field 'matchLabel'")]:
            path = "%s/k/%s.yaml" % (d, name)
            right = text_of(path)
            need(was in right, was)
            with open(path, "w") as f:
                f.write(right.replace(was, is_now))
            r = run(kubectls()[-1], "kustomize", os.path.dirname(path))
            equal(r.returncode, 0, r.stderr)
            found = [f for o in yaml.safe_load_all(r.stdout) for f in object_faults(o)]
            need(found and all(fault in f for f in found), (fault, found))
            with open(path, "w") as f:
                f.write(right)


# What they say

@test
def the_flat_manifests_are_those_of_base_but_for_how_profiling_is_switched():
    base = dict(pods(kustomized("base")))

    def common(pod):
        pod = yaml.safe_load(yaml.safe_dump(pod))
        pod["spec"].pop("serviceAccountName", None)
        pod["spec"]["volumes"] = pod["spec"]["volumes"][:1]
        one = container(pod)
        one.pop("args", None)
        one["env"] = [e for e in one["env"] if "PPROF" not in e["name"] and "TOKEN" not in e["name"]]
        one["volumeMounts"] = one["volumeMounts"][:1]
        return pod
    for name in FLAT:
        (controller, pod), = pods(flat(name))
        equal(common(pod), common(base[controller]), name)
    annotated = container(pods(flat("backend-controller-annotation"))[0][1])
    for key in "args", "volumeMounts":
        equal(annotated[key], container(base["backend-controller"])[key])
    equal(flat("volume"), [o for o in kustomized("base") if o["kind"] == "PersistentVolumeClaim"])


@test
def ports_have_the_names_and_numbers_of_the_table():
    for where, o in everything():
        for name, pod in pods([o]):
            for port in container(pod)["ports"]:
                equal(port["containerPort"], PORTS[name][port["name"]], where)
            equal([p["name"] for p in container(pod)["ports"]], ["pprof", "health", "metrics"], where)


@test
def every_pod_is_what_a_restricted_namespace_takes_and_asks_no_API_server():
    for where, o in everything():
        if o["kind"] == "ServiceAccount":
            equal(o["automountServiceAccountToken"], False, where)
        for name, pod in pods([o]):
            spec, one = pod["spec"], container(pod)
            equal((spec["automountServiceAccountToken"], spec["securityContext"]["runAsNonRoot"],
                   spec["securityContext"]["seccompProfile"]), (False, True, {"type": "RuntimeDefault"}), where)
            equal(one["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                           "capabilities": {"drop": ["ALL"]}}, where)
            equal(spec.get("serviceAccountName"), name if "/" in where or where == "base" else None, where)
            equal(set(one["resources"]), {"requests", "limits"}, where)
            for probe, path in ("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz"):
                equal(one[probe]["httpGet"], {"path": path, "port": "health"}, where)


@test
def what_an_object_names_is_there():
    volume = flat("volume")
    for objects in [kustomized(folder) for folder in PODS] + [flat(name) + volume for name in FLAT]:
        there = {(o["kind"], o["metadata"]["name"]) for o in objects}
        need(len(there) == len(objects), there)
        for o in objects:
            for name, pod in pods([o]):
                spec, one = pod["spec"], container(pod)
                need(o["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items(), name)
                need("serviceAccountName" not in spec or ("ServiceAccount", spec["serviceAccountName"]) in there, name)
                equal(sorted(v["name"] for v in spec["volumes"]), sorted(m["name"] for m in one["volumeMounts"]), name)
                claims = [v["persistentVolumeClaim"]["claimName"] for v in spec["volumes"] if "persistentVolumeClaim" in v]
                need(claims and all(("PersistentVolumeClaim", claim) in there for claim in claims), name)
                equal([m for m in one["volumeMounts"] if "subPath" in m], [], name)  # such a file is never replaced


@test
def every_controller_has_two_pods_of_which_one_leads():
    for where, o in everything():
        for name, pod in pods([o]):
            equal((o["spec"]["replicas"], o["spec"]["strategy"]), (2, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}), where)
            need({"name": name.upper().replace("-", "_") + "_LEADER_ELECT", "value": "true"} in container(pod)["env"], where)


@test
def the_limit_of_memory_has_room_for_all_that_the_profiler_may_take():
    text = text_of("docs/profiling.md")
    stacks, = re.search(r"`--profiling-memory`, (\d+) MiB", text).groups()
    names, = re.search(r"`--profiling-symbol-memory`, (\d+) MiB", text).groups()
    records, size, messages = re.search(r"records of all open traces \| ([\d,]+) of (\d+) bytes, and (\d+) MiB", text).groups()
    most = int(stacks) + int(names) + int(records.replace(",", "")) * int(size) // 2**20 + int(messages)
    need(most > 100, most)
    for where, o in everything():
        for _, pod in pods([o]):
            limit = re.fullmatch(r"(\d+)Mi", container(pod)["resources"]["limits"]["memory"]).group(1)
            need(int(limit) >= most + 32, (where, limit, most))


@test
def the_role_opens_tunnels_and_can_do_nothing_else():
    role, = [o for o in kustomized("base") if o["kind"] == "Role"]
    allowed = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    equal(allowed, {("pods", "get"), ("pods", "list"), ("pods/portforward", "create")})
    equal({group for rule in role["rules"] for group in rule["apiGroups"]}, {""})


@test
def only_a_scrapers_namespace_reaches_profiles_and_everybody_the_probes():
    objects = kustomized("overlays/secured")
    policy, = [o["spec"] for o in objects if o["kind"] == "NetworkPolicy"]
    equal(policy["policyTypes"], ["Ingress"])
    equal([(rule.get("from"), [p["port"] for p in rule["ports"]]) for rule in policy["ingress"]],
          [([{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}], ["pprof", "metrics"]),
           (None, ["health"])])
    for name, pod in pods(objects):
        need(policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items(), name)
        need({p["port"] for rule in policy["ingress"] for p in rule["ports"]} <= {p["name"] for p in container(pod)["ports"]}, name)


@test
def the_operator_scrapes_the_metrics_of_all_pods_and_names_jobs_after_them():
    monitor = kustomized("monitoring")[0]["spec"]
    for folder in PODS:
        for name, pod in pods(kustomized(folder)):
            labels = pod["metadata"]["labels"]
            need(monitor["selector"]["matchLabels"].items() <= labels.items(), name)
            equal(labels[monitor["jobLabel"]], name)
            for endpoint in monitor["podMetricsEndpoints"]:
                need(endpoint["port"] in [p["name"] for p in container(pod)["ports"]], name)


# As a kubelet starts them

class Node:
    """Folders and files of one volume each, as kubelet lays them: a file is a link into a folder that is replaced as a whole."""

    def __init__(self, folder):
        self.folder, self.turn = folder, 0
        os.mkdir(self.path("gitops"))
        for volume in "podinfo", "profiling":
            os.mkdir(self.path(volume))
        self.write("podinfo", "annotations", 'kubernetes.io/config.source="api"\n')
        self.write("profiling", "token", "s3cr3t\n")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, volume, name, text):
        self.turn += 1
        new = "..%d" % self.turn
        os.mkdir(self.path(volume, new))
        with open(self.path(volume, new, name), "w") as f:
            f.write(text)
            os.fchmod(f.fileno(), 0o440)
            if os.geteuid() == 0:
                os.fchown(f.fileno(), 1, -1)  # kubelet's file, which the pod reads by its group
        os.symlink(new, self.path(volume, "..new"))
        os.rename(self.path(volume, "..new"), self.path(volume, "..data"))
        if not os.path.islink(self.path(volume, name)):
            os.symlink(os.path.join("..data", name), self.path(volume, name))

    def command(self, pod):
        """argv and environment of its container, with the folders of this node for what is mounted."""
        one = container(pod)
        given = {e["name"]: e["value"] if "value" in e else POD_IP for e in one["env"]}
        equal([e["valueFrom"] for e in one["env"] if "value" not in e], [{"fieldRef": {"fieldPath": "status.podIP"}}] * ("POD_IP" in given))
        mounted = {m["mountPath"]: m["name"] for m in one["volumeMounts"]}

        def here(text):
            text = re.sub(r"\$\((\w+)\)", lambda m: given[m.group(1)], text)
            for path, volume in mounted.items():
                text = text.replace(path, self.path(volume))
            return text
        program, = one["command"]
        return ["examples/" + os.path.basename(program), *map(here, one.get("args", []))], {k: here(v) for k, v in given.items()}


@contextlib.contextmanager
def node():
    with tempdir() as d:
        yield Node(d)


@contextlib.contextmanager
def cluster(objects, wait="starting profiling server"):
    """All pods of these, on one node and one volume; their addresses by their names."""
    need_own_network()
    run("ip", "address", "add", POD_IP + "/32", "dev", "lo")
    with node() as n, contextlib.ExitStack() as running:
        found = {}
        for name, pod in pods(objects):
            argv, env = n.command(pod)
            found[name] = running.enter_context(daemon(*argv, env=env, port_file=False))
        for d in found.values():
            d.wait_log(wait)
        yield n, found
        equal({name: d.stop() for name, d in found.items()}, dict.fromkeys(found, 0))


def status(host, port, path, **headers):
    """Of an answer; None where nobody listens, or not until it is there."""
    c = http.client.HTTPConnection(host, port, timeout=DEADLINE)
    try:
        c.request("GET", path, headers=headers)
        return c.getresponse().status
    except ConnectionError:
        return None
    finally:
        c.close()


def probes_and_metrics_answer(pod, name):
    one = container(pod)
    ports = {p["name"]: p["containerPort"] for p in one["ports"]}
    for probe in "startupProbe", "livenessProbe", "readinessProbe":
        get = one[probe]["httpGet"]
        poll(lambda: status(POD_IP, ports[get["port"]], get["path"]) == 200, "%s of %s" % (probe, name))
    equal(status(POD_IP, ports["metrics"], "/metrics"), 200, name)


@test
def the_programs_take_every_argument_and_variable():
    for where, o in everything():
        for name, pod in pods([o]):
            with node() as n:
                argv, env = n.command(pod)
                r = run(*argv, "--check-config", env={**os.environ, **env})
                equal((r.returncode, r.stderr), (0, ""), where)


@test
def the_flat_manifests_turn_profiling_on_but_for_the_one_with_an_annotation():
    for name in FLAT:
        for _, pod in pods(flat(name)):
            with node() as n:
                argv, env = n.command(pod)
                r = run(*argv, "--dump-options", env={**os.environ, **env})
                equal(re.search(r"enable-pprof\W+(\w+)", r.stdout).group(1), "false" if "annotation" in name else "true", name)


@test
def pods_of_dev_are_ready_and_serve_on_loopback_alone_until_an_annotation_says_false():
    objects = kustomized("overlays/dev")
    with cluster(objects) as (n, running):
        for name, pod in pods(objects):
            probes_and_metrics_answer(pod, name)
            equal([status(host, PORTS[name]["pprof"], "/debug/pprof/heap") for host in ("127.0.0.1", POD_IP)], [200, None], name)
        n.write("podinfo", "annotations", 'component.dev/profiling="false"\n')
        for name in running:
            poll(lambda: status("127.0.0.1", PORTS[name]["pprof"], "/debug/pprof/") is None, name + " is off")


@test
def pods_of_base_are_ready_and_serve_once_an_annotation_asks_for_it():
    objects = kustomized("base")
    with cluster(objects, "profiling is off") as (n, running):
        for name, pod in pods(objects):
            probes_and_metrics_answer(pod, name)
            equal(status("127.0.0.1", PORTS[name]["pprof"], "/debug/pprof/"), None)
        n.write("podinfo", "annotations", 'component.dev/profiling="true"\n')
        for name in running:
            poll(lambda: status("127.0.0.1", PORTS[name]["pprof"], "/debug/pprof/heap") == 200, name + " is on")
            equal(status(POD_IP, PORTS[name]["pprof"], "/debug/pprof/"), None)


@test
def a_second_pod_of_each_is_ready_beside_the_first_as_a_rolling_update_wants_it():
    objects = kustomized("base")
    with cluster(objects, "profiling is off") as (n, running), contextlib.ExitStack() as seconds:
        for name, pod in pods(objects):
            argv, env = n.command(pod)
            prefix = name.upper().replace("-", "_")
            env.update({prefix + "_METRICS_BIND_ADDRESS": "127.0.0.2:0", prefix + "_HEALTH_PROBE_BIND_ADDRESS": "127.0.0.2:1%d" % PORTS[name]["pprof"]})
            second = seconds.enter_context(daemon(*argv, env=env, port_file=False))
            second.wait_log("profiling is off")
            poll(lambda: status("127.0.0.2", 10000 + PORTS[name]["pprof"], "/readyz") == 200, "the second %s is ready" % name)
            equal(second.stop(), 0)


@test
def pods_of_secured_are_ready_and_serve_on_their_address_who_has_the_token():
    objects = kustomized("overlays/secured")
    with cluster(objects) as (n, running):
        for name, pod in pods(objects):
            probes_and_metrics_answer(pod, name)
            need(os.geteuid() or '"warning"' not in running[name].output(), name)
            port = PORTS[name]["pprof"]
            equal([status(POD_IP, port, "/debug/pprof/heap", Authorization="Bearer " + t) for t in ("s3cr3t", "another")], [200, 401], name)
            equal(status("127.0.0.1", port, "/debug/pprof/"), None, name)
        n.write("profiling", "token", "n3xt\n")
        for name, d in running.items():
            d.signal(signal.SIGHUP)
            poll(lambda: status(POD_IP, PORTS[name]["pprof"], "/debug/pprof/heap", Authorization="Bearer n3xt") == 200, name + " has the new token")


@test
def the_pod_whose_environment_asks_for_profiles_serves_who_has_the_token():
    objects = flat("backend-controller-env")
    with cluster(objects):
        for name, pod in pods(objects):
            probes_and_metrics_answer(pod, name)
            for host in "127.0.0.1", POD_IP:
                equal([status(host, 6060, "/debug/pprof/heap", Authorization="Bearer " + t) for t in ("s3cr3t", "another")], [200, 401], name)


main()
