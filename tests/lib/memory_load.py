"""memory_load.py - a program with known memory, and the table that tells of it."""
import json

from serving import *  # noqa: F401,F403

MB = 1000000


class Load(LineDaemon):
    """tests/programs/memory_load, in a directory of its own."""

    def __init__(self, env=None, program="memory_load"):
        super().__init__("tests/programs/" + program, "PORT_FILE", env=env)
        with self.ended_if_it_fails():
            self.wait_port()

    def take(self, *lines):
        for line in lines:
            equal(self.command(line), "ok", line)


def load(**kw):
    return used(Load(**kw))


def table(d):
    r = d.get("/debug/pprof/memory?format=json")
    equal((r.status, r.headers["content-type"]), (200, "application/json"))
    t = json.loads(r.text)
    equal(sum(c["resident"] for c in t["classes"]), t["resident"], "the sum of the classes")
    for c in t["classes"]:
        equal(sum(row["resident"] for row in c["rows"]), c["resident"], "the sum of " + c["class"])
    t["by"] = {c["class"]: c for c in t["classes"]}
    return t


def near(got, want, what=""):
    need(abs(got - want) <= want * 0.05, "%s: %d is not within 5 %% of %d" % (what, got, want))


def grown(d, by, cls, row=None, share=None):
    """What a class, or one row of it, has more after these lines."""
    def of(t):
        rows = [r["resident"] for r in t["by"][cls]["rows"] if row is None or row in r["name"] + " ".join(r.get("stack", []))]
        return sum(rows)
    before = table(d)
    d.take(*by)
    after = table(d)
    need(after["by"]["unexplained"]["resident"] <= 0.05 * after["resident"],
         "%d of %d are unexplained: %s" % (after["by"]["unexplained"]["resident"], after["resident"], after["by"]["unexplained"]))
    return of(after) - of(before)
