#!/usr/bin/env python3
"""What a component says of itself beside its profiles: /statusz, /flagz, /configz, /version and the verbosity."""
import json
import os
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

SUBJECT = "tests/programs/obedient_daemon"
STRUCTURED = "application/json;g=config.k8s.io;v=%s;as=%s"
PAGES = "/statusz", "/flagz", "/configz", "/version", "/debug/options", "/debug/flags/v"


def structured(d, page, form="v1beta1"):
    answer = d.get(page, headers={"Accept": STRUCTURED % (form, page[1:].capitalize())})
    equal((answer.status, answer.headers["content-type"]), (200, "application/json"))
    return json.loads(answer.text)


@test
def statusz_is_text_as_kubernetes_has_it():
    with daemon(SUBJECT, "--enable-pprof") as d:
        answer = d.get("/statusz")
        equal((answer.status, answer.headers["content-type"]), (200, "text/plain; charset=utf-8"))
        need(answer.text.startswith("\nsubject statusz\nWarning: "), answer.text)
        for line in (r"Started: \w{3} \w{3} +\d+ \d\d:\d\d:\d\d UTC \d{4}", r"Up: \d+ hr \d\d min \d\d sec", r"Binary version: \S+",
                     r"Library version: \d+\.\d+\.\d+", r"Paths: .*/statusz.*"):
            need(re.search("^%s$" % line, answer.text, re.M), line)


@test
def statusz_is_json_for_those_who_ask_by_group_version_and_kind():
    with daemon(SUBJECT, "--enable-pprof") as d:
        for form in "v1beta1", "v1alpha1":
            s = structured(d, "/statusz", form)
            equal((s["kind"], s["apiVersion"], s["metadata"]), ("Statusz", "config.k8s.io/" + form, {"name": "subject"}))
            with open("/proc/%d/stat" % d.pid) as f:
                ticks = int(f.read().rpartition(")")[2].split()[19])
            with open("/proc/uptime") as f:
                up = float(f.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
            need(abs(s["uptimeSeconds"] - up) < 60, (s, up))
            need(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", s["startTime"]), s)
            equal(s["sections"]["Health"]["running"], "ok")
            equal(s["sections"]["Profiling"], {"server": "on", "url": d.url})
            equal(s["paths"], sorted(s["paths"]))
            for path in s["paths"]:
                equal(d.get(path).status, 200, path)


@contextlib.contextmanager
def hides_proc(when):
    """The daemon's own /proc is empty: before it starts, or once it has."""
    alone, hide = ("-m" if os.geteuid() == 0 else "-rm"), "mount -t tmpfs none /proc"
    if run("unshare", alone, "sh", "-c", hide).returncode:
        raise Skip("no mount namespace of our own can be had here")
    before = hide + " && " if when == "before" else ""
    with daemon("/usr/bin/env", "unshare", alone, "sh", "-c", before + 'exec "$@"', "sh", *command(SUBJECT), "--enable-pprof") as d:
        if when == "after":
            r = run("nsenter", "-t", str(d.pid), alone.replace("r", "U"), "sh", "-c", hide)
            equal(r.returncode, 0, r.stderr)
        yield d


@test
def when_it_began_is_left_out_where_it_is_not_known():
    with hides_proc("before") as d:
        text, s = d.get("/statusz").text, structured(d, "/statusz")
        contains(text, "\nBinary version: ")
        need("Started:" not in text and "Up:" not in text, text)
        need("startTime" not in s and "uptimeSeconds" not in s, s)


@test
def when_it_began_is_known_to_one_that_has_left_its_proc_behind():
    with hides_proc("after") as d:
        contains(d.get("/statusz").text, "\nStarted: ")
        need(structured(d, "/statusz")["uptimeSeconds"] < 86400, "since this test has begun, not 1970")


@test
def how_long_it_is_up_does_not_change_with_the_clock_of_the_day():
    with tempdir() as t:
        with open(t + "/set.c", "w") as f:
            f.write("""
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* A day later once that file is there. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int (*next)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
	int r = next(clock, ts);

	if (clock == CLOCK_REALTIME && getenv("IS_SET") && access(getenv("IS_SET"), F_OK) == 0)
		ts->tv_sec += 86400;
	return r;
}
""")
        r = run(*CC.split(), "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", t + "/set.so", t + "/set.c")
        equal(r.returncode, 0, r.stderr)
        with daemon(SUBJECT, "--enable-pprof", env={"LD_PRELOAD": t + "/set.so", "IS_SET": t + "/set"}) as d:
            before = structured(d, "/statusz")
            open(t + "/set", "w").close()
            after = structured(d, "/statusz")
            equal(after["startTime"], before["startTime"])
            need(0 <= after["uptimeSeconds"] - before["uptimeSeconds"] < 86400, (before, after))


@test
def a_program_adds_a_section_by_one_call():
    with daemon(SUBJECT, "--enable-pprof", "--greeting=a\nb\x1b[1m") as d:
        contains(d.get("/statusz").text, "\nGreeting\n  greeting: a\\x0ab\\x1b[1m\n  characters: 7\n")
        equal(structured(d, "/statusz")["sections"]["Greeting"], {"greeting": "a\nb\x1b[1m", "characters": "7"})


@test
def a_section_with_a_long_title_has_all_its_rows():
    title = "A section whose title is longer than others are, since it is a sentence"
    with daemon(SUBJECT, "--enable-pprof") as d:
        contains(d.get("/statusz").text, "\n%s\n  greeting: hello\n  characters: 5\n" % title)
        equal(structured(d, "/statusz")["sections"][title], {"greeting": "hello", "characters": "5"})


@test
def flagz_has_each_option_with_its_value_and_source_and_no_secret():
    with daemon(SUBJECT, "--enable-pprof", "--password=hunter2", env={"COMPONENT_GRACEFUL_SHUTDOWN_TIMEOUT": "7s"}) as d:
        text, s = d.get("/flagz").text, structured(d, "/flagz")
        need(text.startswith("\nsubject flagz\nWarning: "), text)
        rows = dict(re.findall(r"^([a-z][\w-]*)=(.*)$", text, re.M))
        equal(list(rows), sorted(rows))
        equal(rows["enable-pprof"], "true  # flag")
        equal(rows["graceful-shutdown-timeout"], "7s  # env:COMPONENT_GRACEFUL_SHUTDOWN_TIMEOUT")
        equal(rows["password"], "(redacted)  # flag")
        equal({k: "%s  # %s" % (v, s["sources"][k]) for k, v in s["flags"].items()}, rows)
        for page in PAGES:
            need("hunter2" not in d.get(page).text, page)


@test
def configz_has_them_as_the_dump_does():
    with daemon(SUBJECT, "--enable-pprof", "--password=hunter2") as d:
        answer = d.get("/configz")
        equal(answer.headers["content-type"], "application/json")
        rows = {r["name"]: r for r in json.loads(answer.text)["subject"]["options"]}
        equal((rows["enable-pprof"]["value"], rows["enable-pprof"]["source"]), (True, "flag"))
        equal(rows["password"]["value"], "(redacted)")


@test
def version_is_json():
    with daemon(SUBJECT, "--enable-pprof") as d:
        v = json.loads(d.get("/version").text)
        equal(sorted(v), ["compiler", "gitVersion", "libraryVersion", "platform"])
        equal(v["platform"], "linux/" + os.uname().machine)


@test
def what_nobody_can_give_is_refused_with_what_there_is():
    with daemon(SUBJECT, "--enable-pprof") as d:
        for accept in (STRUCTURED % ("v9", "Statusz"), STRUCTURED % ("v1beta1", "Flagz"), "application/json;g=apps;v=v1beta1;as=Statusz",
                       "image/png", "text/plain;q=0"):
            answer = d.get("/statusz", headers={"Accept": accept})
            equal((answer.status, answer.text),
                  (406, "there is text/plain, and application/json;g=config.k8s.io;v=v1beta1;as=Statusz\n"), accept)
        for accept in "*/*", "text/html,application/xhtml+xml,*/*;q=0.8", "application/json;q=0.1, text/plain":
            contains(d.get("/statusz", headers={"Accept": accept}).headers["content-type"], "text/plain")
        for accept in "application/json", "text/plain;q=0.5, application/json":
            equal(d.get("/statusz", headers={"Accept": accept}).headers["content-type"], "application/json", accept)


@test
def the_verbosity_is_read_and_set_and_a_reload_takes_it_back():
    with daemon(SUBJECT, "--enable-pprof", "-v", "1") as d:
        equal(d.get("/debug/flags/v").text, "1\n")
        equal(d.get("/debug/flags/v", method="PUT", body=b"3").text, "verbosity is 3 until the next reload\n")
        equal(d.get("/debug/flags/v").text, "3\n")
        contains(d.get("/flagz").text, "\nv=3  # PUT /debug/flags/v\n")
        equal(structured(d, "/flagz")["sources"]["v"], "PUT /debug/flags/v")
        for junk in b"", b"x", b"-3", b"99999999999", b"1 1":
            answer = d.get("/debug/flags/v", method="PUT", body=junk)
            equal((answer.status, answer.text[:26]), (400, "verbosity: write a number "), junk)
        equal(d.get("/debug/flags/v", method="PUT", body=b"1" * 5000).status, 413)
        d.signal(signal.SIGHUP)
        d.wait_log("reloaded")
        contains(d.get("/flagz").text, "\nv=1  # flag\n")


@test
def a_reload_that_is_refused_leaves_the_verbosity_as_it_was_set():
    with tempdir() as t:
        config = os.path.join(t, "c.yaml")

        def write(text):
            with open(config, "w") as f:
                f.write(text)
        write("v: 1\n")
        with daemon("examples/backend-controller", "--root=" + t, "--enable-pprof", "--config=" + config) as d:
            equal(d.get("/debug/flags/v", method="PUT", body=b"3").status, 200)
            write("v: 1\nrate-limiter-qps: 0\n")  # which is read, and then refused by a check
            d.signal(signal.SIGHUP)
            d.wait_log("reload failed")
            equal(d.get("/debug/flags/v").text, "3\n")


@test
def they_are_guarded_as_profiles_are():
    with tempdir() as t:
        with open(t + "/token", "w") as f:
            f.write("secret\n")
        with daemon(SUBJECT, "--enable-pprof", "--profiling-token-file=" + t + "/token") as d:
            for page in PAGES:
                equal(d.get(page).status, 401, page)
                equal(d.get(page + "?token=secret").status, 200, page)
                equal(d.get(page + "?token=secret", headers={"Host": "evil.example"}).status, 403, page)
            origin = {"Origin": "http://evil.example"}
            equal(d.get("/debug/flags/v?token=secret", method="PUT", body=b"3", headers=origin).status, 403)
            equal(d.get("/debug/flags/v?token=secret").text, "0\n")


@test
def other_methods_are_told_which_there_are():
    with daemon(SUBJECT, "--enable-pprof") as d:
        for page in PAGES:
            answer = d.get(page, method="POST", body=b"x")
            equal((answer.status, answer.headers["allow"]), (405, "GET, HEAD, PUT" if page == "/debug/flags/v" else "GET, HEAD"), page)
            head = d.get(page, method="HEAD")
            equal((head.status, head.body), (200, b""), page)
        equal(d.get("/statusz", method="PUT", body=b"x").status, 405)
        equal(d.get("/statusz/").status, 404)


@test
def a_loop_that_hangs_is_told():
    with tempdir() as t:
        fifo = os.path.join(t, "commands")
        os.mkfifo(fifo)
        with daemon(SUBJECT, "--enable-pprof", env={"TELL_COMMANDS": fifo}) as d:
            with open(fifo, "w") as f:
                f.write("until %s/end\n" % t)
            poll(lambda: d.get("/statusz").status == 503, "the hanging loop to be told")
            equal(d.get("/debug/pprof/cmdline").status, 200)
            open(t + "/end", "w").close()
            poll(lambda: d.get("/statusz").status == 200, "the loop to go on")


@beside
def a_check_that_hangs_is_told_and_keeps_no_place_of_the_profiles():
    with tempdir() as t:
        fifo = os.path.join(t, "commands")
        os.mkfifo(fifo)
        with daemon(SUBJECT, "--enable-pprof", "--profiling-max-requests=2", env={"TELL_COMMANDS": fifo}) as d:
            with open(fifo, "w") as f:
                f.write("stick %s/end\n" % t)
            d.wait_log(" did what=stick")
            for page in "/statusz", "/flagz", "/statusz":
                equal(d.get(page).status, 503, page)
            equal(d.get("/debug/pprof/goroutine").status, 200)
            open(t + "/end", "w").close()
            poll(lambda: d.get("/statusz").status == 200, "the check to go on")


@test
def they_go_with_the_profiling_server():
    with daemon(SUBJECT, "--enable-pprof", "--metrics-bind-address=127.0.0.1:0") as d:
        d.wait_log("serving metrics")
        metrics = int(re.search(r'serving metrics url="http://127\.0\.0\.1:(\d+)"', d.output())[1])
        d.port, pprof = metrics, d.port
        for page in PAGES:
            equal(d.get(page).status, 404, page)
        d.port = pprof
        equal(d.get("/statusz").status, 200)


main()
