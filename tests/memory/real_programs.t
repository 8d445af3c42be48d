#!/usr/bin/env python3
"""Where the resident memory of daemons is that others wrote, under the agent: next to all of it has a
name, and what they are given is found where they have put it."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from memory_load import *
from hooked import listens
from daemons import environment, found, under_agent

ROOT = os.geteuid() == 0


class Program:
    """Under the agent, whose port is the only one: the program itself listens on a unix socket."""

    def __init__(self, d, name, *argv, user=None):
        path = found(name)
        self.process = subprocess.Popen([path, *argv], env=under_agent(path), cwd=d, stdin=subprocess.DEVNULL,
                                        stdout=open(os.path.join(d, "said"), "w"), stderr=subprocess.STDOUT, user=user)
        self.said = os.path.join(d, "said")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0]:
            print("# " + open(self.said).read().replace("\n", "\n# "))
        self.process.terminate()
        try:
            self.process.wait(DEADLINE)
        finally:
            self.process.kill()

    def table(self):
        def port():
            need(self.process.poll() is None, "it ended: " + open(self.said).read())
            return listens(self.process.pid)
        return table(At(poll(port, "the server")[0]))


class At(harness.Daemon):
    def __init__(self, port):
        self.host, self.port = "127.0.0.1", port


def explained(t):
    need(t["by"]["unexplained"]["resident"] <= 0.05 * t["resident"],
         "of %d: %s" % (t["resident"], t["by"]["unexplained"]))


@test
def redis_has_its_keys_in_the_heap():
    cli = found("redis-cli")
    with tempdir() as d:
        sock = os.path.join(d, "s")
        with Program(d, "redis-server", "--port", "0", "--unixsocket", sock, "--save", "", "--appendonly", "no") as p:
            def ask(*words):
                return subprocess.run([cli, "-s", sock, *words], env=environment(cli), capture_output=True, text=True, timeout=DEADLINE).stdout

            def used_memory():
                return int(re.search(r"^used_memory:(\d+)", ask("info", "memory"), re.M).group(1))
            poll(lambda: "PONG" in ask("ping"), "redis")
            before, used_before = p.table(), used_memory()
            ask("eval", "for i = 1, 40000 do redis.call('set', 'key' .. i, string.rep('x', 1000)) end", "0")
            after, used_after = p.table(), used_memory()
            explained(before)
            explained(after)
            need(used_after - used_before > 40 * MB, "redis has not taken the keys")
            near(after["by"]["heap"]["in_use"] - before["by"]["heap"]["in_use"], used_after - used_before, "in use")
            near(after["by"]["heap"]["resident"] - before["by"]["heap"]["resident"], used_after - used_before, "resident")


@test
def nginx_has_a_name_for_its_memory():
    with tempdir() as d:
        temp = "".join(" %s_temp_path %s/%s;" % (w, d, w) for w in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        conf = os.path.join(d, "conf")
        with open(conf, "w") as f:
            f.write("daemon off; master_process off; pid %s/pid; error_log stderr; events { worker_connections 4096; }\n"
                    "http { access_log off;%s limit_req_zone $uri zone=planted:8m rate=1r/s;\n"
                    " server { listen unix:%s/s; location / { return 200 'hi'; } } }\n" % (d, temp, d))
        with Program(d, "nginx", "-e", "stderr", "-c", conf) as p:
            explained(p.table())


def need_entry(user, path):
    """postgres refuses root, and another user has to get to it."""
    while user and path != "/":
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & 1:
            raise Skip("%s may not enter %s; build in a folder that all may enter" % (user, path))


@test
def postgres_has_its_buffers_in_shared_memory():
    initdb, server = found("initdb"), found("postgres")
    with tempdir() as d:
        os.chmod(d, 0o777)
        user = "nobody" if ROOT else None
        need_entry(user, initdb)
        r = subprocess.run([initdb, "-D", d + "/data", "-A", "trust", "-N"], user=user, capture_output=True, text=True, cwd=d,
                           env=environment(initdb), timeout=120)
        if r.returncode:
            raise Skip("initdb: " + r.stderr.strip()[-200:])
        with Program(d, server, "-D", d + "/data", "-k", d, "-c", "listen_addresses=", "-c", "shared_buffers=64MB", user=user) as p:
            # Its server answers before it has made them.
            poll(lambda: p.table()["by"].get("shared memory", {}).get("resident", 0) > MB, "its buffers")
            explained(p.table())


main()
