#!/usr/bin/env python3
"""What the page does with a daemon, in Chromium: rates, windows and their end, what it asks for and what it keeps, tokens, threads
and memory.  Names that would be markup, where it shows those of a program, come from a server of the test's own."""
import base64
import contextlib
import gzip
import http.server
import json
import os
import re
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from browser import tab  # noqa: E402
from harness import *  # noqa: E402,F403

VIEWER = os.path.join(BUILD, "profiler/viewer/viewer.html.gz")
PPROF = "/debug/pprof/"
POLLS_MS = 3000  # three times that the page would have asked
INDEX = "document.querySelector('main[data-view=kinds][data-state=shown] [data-kind=heap]')"
SHOWN = "document.querySelector('main[data-view=%s][data-state=shown]')"


def hello(*words):
    return daemon("examples/hello", "--enable-pprof", "--profiling-viewer-file=" + VIEWER, *words)


def url(d, rest=""):
    return "http://127.0.0.1:%d%s%s" % (d.port, PPROF, rest)


def rates(d):
    return dict(line.split("=") for line in d.get(PPROF + "rates").text.split())


def asked(t, d, name):
    """The requests for a route, their queries."""
    return [u for u in t.requests if re.match(re.escape(url(d, name)) + r"(\?|$)", u)]


def window_open(t, d):
    """That of 600 s is open, and has gone on for a second; its id."""
    t.open(url(d), INDEX)
    t.js("location.hash = 'profile/flame?seconds=600'")
    t.until("(document.querySelector('.taking-text') || {}).textContent?.match(/^[1-9][0-9]* of 600 s$/)")
    return re.search(r"window=(\w+)", asked(t, d, "profile")[0]).group(1)


@contextlib.contextmanager
def made_up(**routes):
    """A server of the page whose routes answer this, as JSON."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.split("?")[0][len(PPROF):]
            with open(VIEWER, "rb") as f:
                body = json.dumps(routes.get(name, [])).encode() if name or "?" in self.path else gzip.decompress(f.read())
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if name or "?" in self.path else "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    s.port = s.server_address[1]
    thread = threading.Thread(target=s.serve_forever)
    thread.start()
    try:
        yield s
    finally:
        s.shutdown()
        thread.join()
        s.server_close()


def thread(tid, name, waits=None, **more):
    return {"id": tid, "name": name, "state": "sync.Mutex.Lock", "seconds": 90, "ours": False, "labels": [], "waits": waits,
            "frames": [["main", "main.c", 7, "/bin/program", 0]], "created_by": [], **more}


def waits(lock, holder, name="", ended=False):
    return {"lock": "0x10", "kind": "mutex", "name": lock, "offset": 0, "holder": holder, "holder_name": name, "ended": ended}


def dump(threads, deadlocks=()):
    return {"version": 1, "program": "program", "pid": 1, "time_ns": "1", "deadlocks": list(deadlocks), "threads": threads}


@test
def a_switch_sets_the_rate_and_a_wrong_one_is_refused_where_it_was_written():
    with hello() as d, tab() as t:
        t.open(url(d), INDEX)
        for want in "1", "0":
            t.click_on("[data-kind=mutex] [role=switch]")
            t.until("document.querySelector('[data-kind=mutex] [role=switch]').ariaChecked === '%s'" % ("true" if want == "1" else "false"))
            equal(rates(d)["mutex-profile-fraction"], want)
        t.is_content()
        t.click_on("[data-kind=block] summary")
        t.until("document.querySelector('[data-kind=block] .command input')")
        for text, said in ("10us", "10 µs and longer"), ("often", "is not a rate"):
            t.js("document.querySelector('[data-kind=block] .command input').value = %s" % json.dumps(text))
            t.js("document.querySelector('[data-kind=block] .command input').focus()")
            t.key("Enter")
            t.until("/%s/.test(document.querySelector('[data-kind=block]').textContent)" % said)
            equal(rates(d)["block-profile-rate"], "10000")
        contains(t.js("document.querySelector('[data-kind=block] [role=alert]').textContent"), "is not a rate; write a number")


@test
def stop_ends_a_window_and_shows_what_was_measured_until_then():
    with hello() as d, tab() as t:
        window_open(t, d)
        t.click_on("[data-do=stop]")
        t.until(SHOWN % "profile")
        seconds = float(re.search(r"([\d.]+) s,", t.js("document.querySelector('.view-title').textContent")).group(1))
        need(1 <= seconds < 600, seconds)
        t.is_content()


@test
def a_stop_that_is_refused_is_told_and_may_be_tried_again():
    with hello() as d, tab() as t:
        window_open(t, d)
        t.js("window.real = fetch; window.fetch = (to, how) => how.method === 'POST' ?"
             "Promise.resolve(new Response('not from here\\n', { status: 403 })) : real(to, how)")
        t.click_on("[data-do=stop]")
        t.until("document.querySelector('.taking [role=alert]')?.textContent === 'not from here'")
        t.until("!document.querySelector('[data-do=stop]').hidden && /of 600 s$/.test(document.querySelector('.taking-text').textContent)")
        t.js("window.fetch = real")
        t.click_on("[data-do=stop]")
        t.until(SHOWN % "profile")
        t.is_content()


@test
def cancel_frees_the_daemon_of_the_window_and_so_does_leaving():
    for act in "document.querySelector('[data-do=cancel]').click()", "history.back()":
        with hello() as d, tab() as t:
            name = window_open(t, d)
            t.js(act)
            t.until(INDEX)
            poll(lambda: d.get(PPROF + "stop?window=" + name, method="POST", body="").status == 404, "the window's end")
            t.is_content()


@test
def what_was_looked_at_is_shown_again_without_a_request():
    with hello("--heap-profile-rate=1") as d, tab() as t:
        t.open(url(d), INDEX)
        t.click_on("[data-kind=heap] [data-do=flame]")
        t.until(SHOWN % "profile")
        t.js("history.back()")
        t.until(INDEX)
        t.until("document.querySelector('.earlier a').textContent === 'Heap'")
        for back in "history.forward()", "document.querySelector('.earlier a').click()":
            t.js(back)
            t.until(SHOWN % "profile" + " && document.querySelector('.fg-view')")
            t.js("location.hash = ''")
            t.until(INDEX)
        equal(len(asked(t, d, "heap")), 1)
        t.js("location.hash = 'heap/table'")
        t.until(SHOWN % "profile")
        equal(len(asked(t, d, "heap")), 2, "a new one")
        t.is_content()


@test
def after_a_reload_the_way_back_shows_what_its_address_says():
    with hello("--heap-profile-rate=1") as d, tab() as t:
        t.open(url(d), INDEX)
        for where in "heap/flame?seconds=1", "heap/flame":
            t.js("location.hash = '%s'" % where)
            t.until("location.hash.includes('at=')")
        t.call("Page.reload")
        t.until(SHOWN % "profile")
        t.js("window.before = document.querySelector('.fg-view'); history.back()")
        t.until(SHOWN % "profile" + " && document.querySelector('.fg-view') !== before")
        contains(t.js("location.hash"), "seconds=1")
        contains(t.js("document.querySelector('.view-title').textContent"), "what was added in 1")
        t.is_content()


@test
def a_file_is_taken_while_a_profile_is_and_after_one_has_failed():
    with hello("--heap-profile-rate=1") as d, tab() as t:
        drop = ("(() => { const files = new DataTransfer(), data = Uint8Array.from(atob('%s'), (c) => c.charCodeAt(0));"
                "files.items.add(new File([data], 'heap.pb.gz'));"
                "return ['dragover', 'drop'].map((what) => !document.dispatchEvent("
                "new DragEvent(what, { dataTransfer: files, cancelable: true }))); })()" % base64.b64encode(d.get(PPROF + "heap").body).decode())
        t.open(url(d), INDEX)
        for where, state in ("profile/flame?seconds=600", "taking"), ("nothing/flame", "failed"):
            t.js("location.hash = '%s'" % where)
            t.until("document.querySelector('main[data-state=%s]')" % state)
            equal(t.js(drop), [True, True], "the browser does nothing with it")
            t.until(SHOWN % "profile")
            equal(t.js("document.title"), "heap.pb.gz")


@test
def it_asks_each_second_while_it_is_seen_and_says_when_nobody_answers():
    with hello() as d, tab() as t:
        t.open(url(d), INDEX)
        t.js("document.querySelector('[data-kind=heap]').mark = 1")
        poll(lambda: len(asked(t, d, "status")) >= 4, "the fourth request")
        t.until("/%$/.test(document.querySelector('.tile:last-child strong').textContent)")
        equal(t.js("document.querySelector('[data-kind=heap]').mark"), 1, "the same card, only its texts change")
        need(set(t.requests) <= {url(d), url(d, "status"), url(d, "?format=json")} | {u for u in t.requests if u.startswith("data:")}, t.requests)
        t.js("Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });"
             "document.dispatchEvent(new Event('visibilitychange'))")
        before = len(asked(t, d, "status"))
        t.js("new Promise((done) => setTimeout(done, %d))" % POLLS_MS)
        need(len(asked(t, d, "status")) <= before + 1, "asked while nobody looks")  # one was on its way
        t.is_content()
        t.js("delete document.visibilityState; document.dispatchEvent(new Event('visibilitychange'))")
        poll(lambda: len(asked(t, d, "status")) > before + 1, "it to ask again")
        equal(d.stop(), 0)
        t.until("[...document.querySelectorAll('[role=alert]')].some((e) => !e.hidden && /does not answer/.test(e.textContent))")


@test
def a_token_is_taken_from_the_address_at_once_and_kept_in_memory_alone():
    with tempdir() as folder:
        path = os.path.join(folder, "token")
        with open(path, "w") as f:
            f.write("open+sesame/1234567890=\n")
        os.chmod(path, 0o600)
        with hello("--profiling-token-file=" + path, "--heap-profile-rate=1") as d, tab() as t:
            equal(d.get(PPROF, headers={"Accept": "text/html"}).status, 401)
            t.open(url(d, "?token=open+sesame/1234567890="), INDEX)
            equal(t.js("location.href"), url(d))
            t.click_on("[data-kind=heap] [data-do=table]")
            t.until(SHOWN % "profile")
            equal([u for u in t.requests[1:] if "sesame" in u], [])
            equal(t.js("[localStorage.length, sessionStorage.length, document.cookie]"), [0, 0, ""])
            equal([e["url"] for e in t.call("Page.getNavigationHistory")["entries"] if "sesame" in e["url"]], [], "the history")
            t.js("location.hash = ''")
            t.until(INDEX)
            t.click_on("[data-kind=heap] summary")
            t.until("document.querySelector('[data-kind=heap]').textContent.includes('token=TOKEN')")
            need("sesame" not in t.js("document.body.innerHTML"), "the page shows it")
            t.is_content()


@test
def deadlocks_come_first_in_the_order_in_which_threads_wait():
    threads = [thread(1, "one", waits("a", 3)), thread(2, "two", waits("b", 1)), thread(3, "three", waits("c", 2)),
               thread(4, "behind", waits("a", 3)), thread(5, "behind_it", waits("d", 4)), thread(6, "orphan", waits("e", 99, "gone", True)),
               *(thread(n, "worker") for n in range(100, 140)), thread(200, "component-job", ours=True)]
    with made_up(goroutine=dump(threads, [[1, 2, 3]])) as d, tab() as t:
        t.open(url(d, "#threads"), SHOWN % "threads")
        equal(t.js("document.querySelector('main > :nth-child(2)').className.includes('deadlock')"), True)
        equal(t.js("[...document.querySelectorAll('.circle .box b')].map((e) => e.textContent)"), ["one", "three", "two"])
        tree = t.js("document.querySelector('.waits').innerText")
        need(re.search(r"three.*\n+.*behind 4 waits for a.*\n+.*behind_it 5 waits for d", tree), tree)
        contains(tree, "gone 99, which has ended")
        need(not re.search(r"^(one|two)\b", tree, re.M), tree)
        contains(t.js("document.querySelector('.threads').innerText"), "40 threads")
        need("component-job" not in t.js("document.querySelector('.threads').innerText"), "the profiler's own")
        t.click_on(".filter input[type=search]")
        t.type("orphan")
        t.until("document.querySelectorAll('.thread').length === 1")
        t.click_on(".thread summary")
        t.until("document.querySelector('.thread .frames')?.textContent === 'main main.c:7'")
        t.is_content()


@test
def threads_that_wait_for_each_other_until_a_timeout_are_in_the_list():
    threads = [thread(9, "behind", waits("a", 1)), thread(1, "one", waits("b", 2)), thread(2, "two", waits("c", 3)),
               thread(3, "three", waits("a", 1)), thread(4, "holder"), thread(5, "waiter", waits("d", 4))]
    with made_up(goroutine=dump(threads)) as d, tab() as t:
        t.open(url(d, "#threads"), SHOWN % "threads")
        tree = t.js("document.querySelector('.waits').innerText")
        for line in "behind 9 waits for a", "one 1 waits for b", "two 2 waits for c", "three 3 waits for a", "waiter 5 waits for d":
            equal(tree.count(line), 1, line + " in\n" + tree)
        equal(t.js("document.querySelector('.waits').childElementCount"), 2)
        t.is_content()


@test
def a_link_to_a_thread_opens_its_row_wherever_the_list_has_it():
    threads = [thread(1, "holder", state="running", seconds=None), thread(2, "component-job", ours=True),
               *(thread(n, "waiter", waits("a", 1)) for n in range(10, 610)), thread(1000, "behind", waits("b", 2))]
    with made_up(goroutine=dump(threads)) as d, tab() as t:
        t.open(url(d, "#threads"), SHOWN % "threads")
        rows = "document.querySelectorAll('.thread').length"
        word, ours = "document.querySelector('.filter [type=search]').value", "document.querySelectorAll('.filter [type=checkbox]')[1].checked"
        opened = "document.querySelector('.thread[open] > .thread-body') && document.activeElement.parentNode.dataset.threads === '%d'"
        equal(t.js(rows), 200)
        t.click_on(".waits a[href='#thread-1']")
        t.until(opened % 1)
        equal(t.js("[%s, %s, %s]" % (rows, word, ours)), [602, "", False])
        t.click_on(".filter [type=search]")
        t.type("behind")
        t.until(rows + " === 1")
        t.click_on(".waits a[href='#thread-1000']")
        t.until(opened % 1000)
        equal(t.js("[%s, %s, %s]" % (rows, word, ours)), [1, "behind", False], "it is there")
        t.click_on(".waits a[href='#thread-10']")
        t.until(opened % 10)
        equal(t.js("[%s, %s, %s]" % (rows, word, ours)), [200, "", False])
        t.click_on(".waits a[href='#thread-2']")
        t.until(opened % 2)
        equal(t.js(ours), True)
        t.is_content()


@test
def memory_adds_up_and_its_rows_open():
    with hello() as d, tab() as t:
        t.open(url(d, "#memory"), SHOWN % "memory")
        table = json.loads(d.get(PPROF + "memory?format=json").text)
        classes = t.js("[...document.querySelectorAll('.class th')].map((e) => e.querySelector('button').textContent)")
        equal(classes, [c["class"].split(":")[0] for c in table["classes"]])
        shares = t.js("[...document.querySelectorAll('.class')].map((e) => parseFloat(e.querySelectorAll('td')[1].textContent))")
        need(abs(sum(shares) - 100) <= 0.05 * len(shares), shares)
        at = classes.index("files")
        t.js("document.querySelectorAll('.opener')[%d].focus()" % at)
        t.key("Enter")
        t.until("!document.querySelector('#class-%d').hidden && /libc/.test(document.querySelector('#class-%d').textContent)" % (at, at))
        t.is_content()


@test
def a_programs_names_are_never_markup():
    name = "</script><img src=x onerror='hit = 1'>\"'&\n\u202e" + "x" * 10000
    kind = {"name": name, "text": name, "why": name, "missing": "", "product": "profile", "windowed": False, "delta": True, "count": 1,
            "types": [[name, name]], "rate": {"name": name, "unit": name, "value": 1, "usual": 1, "on": 1}}
    status = {"version": 1, "program": name, "library_version": name, "pid": 1, "host": name, "user": name, "build_id": name,
              "cmdline": [name, name], "start_ns": "1", "now_ns": "2", "cpu_ns": "1", "threads": 1, "rss_bytes": 1, "heap_bytes": 1,
              "max_seconds": 1, "kinds": [kind, dict(kind, name="heap", product="profile")]}
    memory = {"resident": 2, "mapped": 2, "swapped": 0, "allocator": name, "notes": [name], "advice": [name], "classes": [
        {"class": name, "resident": 2, "mapped": 2, "rows": [{"name": name, "resident": 2, "mapped": 2, "stack": [name, name]}]}]}
    frame = [name, name, 1, name, 1]
    threads = [thread(1, name, waits(name, 2), state=name, labels=[[name, name]], frames=[frame], created_by=[frame]),
               thread(2, name, waits(name, 1), state=name), thread(3, name, waits(name, 9, name, True))]
    notes = [{"about": name, "level": "warning", "text": name}]
    for size in (1280, 800), (360, 740):
        with made_up(status=status, memory=memory, goroutine=dict(dump(threads, [[1, 2]]), program=name), **{"": notes}) as d, tab(size=size) as t:
            t.open(url(d), INDEX)
            t.until("document.querySelector('.notes')")
            for view, more in (("kinds", "true"), ("threads", "document.querySelectorAll('summary').forEach((e) => e.click())"),
                               ("memory", "document.querySelectorAll('.opener').forEach((e) => e.click())")):
                t.js("location.hash = '%s'" % view.replace("kinds", ""))
                t.until(SHOWN % view)
                t.js(more)
                contains(t.js("document.body.textContent"), "onerror='hit = 1'")
                equal(t.js("[document.scripts.length, document.images.length, typeof hit]"), [1, 0, "undefined"], view)
                wide, window = t.js("[document.documentElement.scrollWidth, innerWidth]")
                need(wide <= window, "%s: %d of %d pixels" % (view, wide, window))
            t.is_content()


main()
