#!/usr/bin/env python3
"""The page for browsers: who is given it and who is not, what it asks for (status), and windows that it ends early."""
import base64
import concurrent.futures
import gzip
import json
import os
import re
import sys
import xml.dom.minidom

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from gotools import *  # noqa: E402,F403
from harness import *  # noqa: E402,F403

HELLO = "examples/hello"
PPROF = "/debug/pprof/"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
FILE = os.path.join(BUILD, "profiler/viewer/viewer.html.gz")


def hello(*words, viewer=FILE):
    return daemon(HELLO, "--enable-pprof", "--profiling-viewer-file=" + viewer, *words)


def page(d, query="", **headers):
    return d.get(PPROF + query, headers={k.replace("_", "-"): v for k, v in headers.items()})


def is_plain(r):
    equal(r.status, 200, r.text)
    need(r.text.startswith("<html>\n<head>\n<title>/debug/pprof/</title>"), r.text[:200])


@test
def a_browser_is_given_the_file_as_it_lies_there():
    with hello() as d:
        r = page(d, Accept=BROWSER, Accept_Encoding="gzip, deflate, br")
        equal((r.status, r.headers["content-type"], r.headers["content-encoding"]), (200, "text/html; charset=utf-8", "gzip"))
        with open(FILE, "rb") as f:
            packed = f.read()
        equal(r.body, packed)
        equal(r.headers["content-security-policy"], "frame-ancestors 'none'")
        equal(r.headers["x-content-type-options"], "nosniff")
        equal(r.headers["vary"], "Accept, Accept-Encoding, User-Agent")
        inflated = page(d, Accept=BROWSER)
        need("content-encoding" not in inflated.headers, inflated.headers)
        equal(inflated.body, gzip.decompress(packed))
        equal(page(d, Accept="text/html", Accept_Encoding="gzip;q=0").body, gzip.decompress(packed))


@test
def everybody_else_is_given_the_list_byte_for_byte():
    with hello() as d:
        plain = page(d)
        is_plain(plain)
        for query, headers in (("", {"Accept": "*/*"}), ("", {"Accept": "text/*"}), ("", {"Accept": "text/html;q=0, */*"}),
                               ("", {"Accept": "text/html; q=0.0 , */*"}), ("", {"Accept": "text/html;q=0;x=1"}),
                               ("", {"Accept": "text/htmlx"}), ("", {"Accept": BROWSER, "User_Agent": "Go-http-client/1.1"}),
                               ("?plain=1", {"Accept": BROWSER}), ("?format=html-please", {"Accept": BROWSER})):
            r = page(d, query, **headers)
            equal(r.body, plain.body, (query, headers))
            equal(sorted(r.headers), sorted(plain.headers), (query, headers))
        notes = json.loads(page(d, "?format=json", Accept=BROWSER).text)
        equal([n["level"] for n in notes if n["about"] == "page"], ["ok"])


@test
def where_the_file_is_missing_the_list_says_so():
    with tempdir() as t:
        broken = os.path.join(t, "broken")
        for text in None, "no gzip":
            if text:
                with open(broken, "w") as f:
                    f.write(text)
            with hello(viewer=broken) as d:
                for headers in {}, {"Accept": BROWSER, "Accept_Encoding": "gzip"}:
                    r = page(d, **headers)
                    is_plain(r)
                    need("content-encoding" not in r.headers, r.headers)
                    if not text:
                        contains(r.text, "<li>page: there is no page for browsers: %s: No such file or directory; install it" % broken)
        os.remove(broken)
        os.mkfifo(broken)
        with hello(viewer=broken) as d:
            is_plain(page(d, Accept=BROWSER))


@test
def the_page_takes_the_token_as_every_route_does():
    with tempdir() as t:
        with open(t + "/token", "w") as f:
            f.write("secret\n")
        os.chmod(t + "/token", 0o600)
        with hello("--profiling-token-file=" + t + "/token") as d:
            for path in "", "status":
                equal(d.get(PPROF + path, headers={"Accept": BROWSER}).status, 401)
                equal(d.get(PPROF + path + "?token=secret", headers={"Accept": BROWSER}).status, 200)
                equal(d.get(PPROF + path, headers={"Accept": BROWSER, "Authorization": "Bearer secret"}).status, 200)
            equal(d.get(PPROF + "stop?window=a", "POST").status, 401)


# ---- status ----

@test
def status_says_what_the_process_is_and_takes_without_collecting():
    with hello("--profiling-max-seconds=77", "--mutex-profile-fraction=3") as d:
        r = d.get(PPROF + "status")
        equal(r.headers["content-type"], "application/json")
        s = json.loads(r.text)
        equal((s["version"], s["program"], s["pid"], s["host"], s["max_seconds"]), (1, "hello", d.pid, os.uname().nodename, 77))
        with open("/proc/%d/cmdline" % d.pid) as f:
            equal(s["cmdline"], f.read().split("\0")[:-1])
        with open("/proc/%d/status" % d.pid) as f:
            lines = dict(line.split(":", 1) for line in f)
        equal(s["threads"], int(lines["Threads"]))
        near = int(lines["VmRSS"].split()[0]) << 10
        need(near / 2 < s["rss_bytes"] < near * 2, (s["rss_bytes"], near))
        with open("/proc/%d/stat" % d.pid) as f:
            ticks = int(f.read().rsplit(")", 1)[1].split()[19])
        with open("/proc/uptime") as f:
            age = float(f.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
        told = (int(s["now_ns"]) - int(s["start_ns"])) / 1e9
        need(0 <= told <= age + 0.1, (told, age))
        need(int(s["cpu_ns"]) > 0, s["cpu_ns"])
        equal(json.loads(d.get(PPROF + "status").text)["start_ns"], s["start_ns"])
        exe = os.path.realpath("/proc/%d/exe" % d.pid)
        found = re.search(r"Build ID: (\w+)", run("readelf", "-n", exe).stdout)
        equal(s["build_id"], found.group(1) if found else "")
        kinds = {k["name"]: k for k in s["kinds"]}
        equal(kinds["mutex"]["rate"], {"name": "mutex-profile-fraction", "unit": "count", "value": 3, "usual": 0, "on": 1})
        equal(kinds["block"]["rate"], {"name": "block-profile-rate", "unit": "nanoseconds", "value": 0, "usual": 0, "on": 10000})
        contains(kinds["block"]["missing"], "not sampled")
        equal([n for n, k in kinds.items() if k["windowed"]], ["fgprof", "profile", "trace"])
        equal(kinds["heap"]["types"][-1], ["inuse_space", "bytes"])
        equal((kinds["memory"]["product"], kinds["trace"]["product"], kinds["goroutine"]["product"]), ("residence", "trace", "profile"))
        equal(d.get(PPROF + "status", "POST").headers["allow"], "GET, HEAD")


@test
def secrets_of_the_command_line_are_hidden_in_status_as_well():
    with daemon("tests/programs/obedient_daemon", "--enable-pprof", "--password=hunter2") as d:
        r = d.get(PPROF + "status")
        need("hunter2" not in r.text and "hunter2" not in d.get(PPROF + "cmdline").text, r.text)


# ---- formats ----

INSIDE = re.compile(rb'<script id="profile" type="application/octet-stream" data-name="([^"]*)">([^<]*)</script>\n')


@test
def a_profile_is_had_as_a_page_that_has_it_inside():
    with hello() as d:
        for path, name in ("heap?", b"heap.pb.gz"), ("profile?seconds=1&", b"profile.pb.gz"), ("heap?seconds=1&", b"heap-delta.pb.gz"):
            r = d.get(PPROF + path + "format=html")
            equal((r.status, r.headers["content-type"]), (200, "text/html; charset=utf-8"), path)
            (found, text), = INSIDE.findall(r.body)
            equal(found, name)
            with gzip.open(FILE) as f:
                before, after = f.read().rsplit(b"<!-- profile -->\n", 1)
            need(r.body.startswith(before) and r.body.endswith(after), "the page is not around it")
            with open(d.dir + "/inside.pb.gz", "wb") as f:
                f.write(base64.b64decode(text, validate=True))
            shown = run(newest_pprof(), "-raw", d.dir + "/inside.pb.gz")
            equal(shown.returncode, 0, shown.stderr)
            contains(shown.stdout, "PeriodType")
    with hello(viewer="/nowhere/viewer.html.gz") as d:
        r = d.get(PPROF + "heap?format=html")
        equal(r.status, 501)
        contains(r.text, "there is no page for browsers: /nowhere/viewer.html.gz: No such file or directory; install it")


@test
def a_profile_is_had_as_a_picture():
    with hello() as d:
        for path in "goroutine?", "profile?seconds=1&", "heap?seconds=1&", "heap?sample_index=alloc_space&":
            r = d.get(PPROF + path + "format=svg")
            equal((r.status, r.headers["content-type"]), (200, "image/svg+xml"), path)
            xml.dom.minidom.parseString(r.body)
            need("<script" not in r.text, r.text)
        text = d.get(PPROF + "goroutine?format=svg").text
        total, = re.findall(r"<title>all: (\d+) \(100.00%\)</title>", text)
        equal(int(total), len(os.listdir("/proc/%d/task" % d.pid)) + 1)  # the one that looks
        contains(text, "<title>component_main: 1 (")
        need("component_main" not in d.get(PPROF + "goroutine?format=svg&ignore=component_main").text, "ignore")


@test
def threads_are_had_as_json():
    with hello() as d:
        r = d.get(PPROF + "goroutine?format=dump")
        equal((r.status, r.headers["content-type"]), (200, "application/json"))
        dump = json.loads(r.text)
        equal((dump["version"], dump["program"], dump["pid"], dump["deadlocks"]), (1, "hello", d.pid, []))
        equal({t["id"] for t in dump["threads"]} & {int(t) for t in os.listdir("/proc/%d/task" % d.pid)},
              {int(t) for t in os.listdir("/proc/%d/task" % d.pid)})
        main_, = [t for t in dump["threads"] if t["id"] == d.pid]
        need("component_main" in [f[0] for f in main_["frames"]], main_["frames"])
        equal((main_["ours"], main_["labels"], main_["waits"]), (False, [], None))
        equal([t["name"] for t in dump["threads"] if t["name"] == "component-http"], ["component-http"])


# ---- windows ----

@test
def a_window_that_is_stopped_answers_with_what_there_is():
    with hello() as d, concurrent.futures.ThreadPoolExecutor(3) as pool:
        for path in "profile?seconds=3600", "fgprof?seconds=3600", "heap?seconds=3600", "trace?seconds=3600":
            asked = pool.submit(d.get, PPROF + path + "&window=w1")
            other = pool.submit(d.get, PPROF + "profile?seconds=3600&window=w2")
            poll(lambda: d.get(PPROF + "stop?window=w1", "POST").status == 200, "a window to stop")
            r = asked.result(DEADLINE)
            equal(r.status, 200, r.text if r.status != 200 else path)
            if path.startswith("trace"):
                need(r.body.startswith(b"go 1."), r.body[:20])
            else:
                with open(d.dir + "/w.pb.gz", "wb") as f:
                    f.write(r.body)
                shown = run(newest_pprof(), "-raw", d.dir + "/w.pb.gz")
                equal(shown.returncode, 0, shown.stderr)
                contains(shown.stdout, "PeriodType")
            need(not other.done(), "the other window ended, too")
            poll(lambda: d.get(PPROF + "stop?window=w2", "POST").status == 200, "the other window")
            equal(other.result(DEADLINE).status, 200)


@test
def a_window_that_is_none_is_refused():
    with hello() as d:
        is_404 = d.get(PPROF + "stop?window=nothing", "POST")
        equal((is_404.status, is_404.text), (404, "no window of that name is open: it may have ended\n"))
        r = d.get(PPROF + "stop", "POST")
        equal(r.status, 400)
        contains(r.text, "no window is named; write stop?window=NAME")
        equal((d.get(PPROF + "stop?window=a").status, d.get(PPROF + "stop?window=a").headers["allow"]), (405, "POST"))
        equal(d.get(PPROF + "stop?window=a", "POST", headers={"Origin": "http://else.where"}).status, 403)
        for bad in "A", "a%20b", "a" * 33, "..":
            r = d.get(PPROF + "heap?window=" + bad)
            equal((r.status, r.text), (400, '"window" is no name; write 1 to 32 of a-z and 0-9\n'), bad)
        equal(d.get(PPROF + "heap?window=" + "a" * 32).status, 200)
        equal(d.get(PPROF + "heap?format=top&window=a").status, 200)


main()
