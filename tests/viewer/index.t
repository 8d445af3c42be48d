#!/usr/bin/env python3
"""The page of a daemon in Chromium: every view of every kind on the three controllers, on a phone, in the dark, at 4K, and
without JavaScript.  What can be done with one profile: flame.t; with the daemon: page.t."""
import contextlib
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from browser import tab  # noqa: E402
from harness import *  # noqa: E402,F403

VIEWER = os.path.join(BUILD, "profiler/viewer/viewer.html.gz")
PPROF = "/debug/pprof/"
CONTROLLERS = "backend-controller", "cluster-agent", "appstudio-controller"


@contextlib.contextmanager
def controller(name, *words):
    with tempdir() as d:
        for folder in "applications", "sources", "targets":
            os.mkdir(os.path.join(d, folder))
        with daemon("examples/" + name, "--root=" + d, "--enable-pprof", "--profiling-viewer-file=" + VIEWER, *words) as c:
            yield c


def url(d, where=""):
    return "http://127.0.0.1:%d%s%s" % (d.port, PPROF, where)


def index(t, d):
    t.open(url(d), "document.querySelector('[data-kind=trace]') && document.querySelector('[data-kind=block]')")


def show(t, where, state):
    """Goes to a view by its address, and waits until it is there."""
    t.js("location.hash = %s" % json.dumps(where))
    t.until("document.querySelector('main').dataset.state !== '' && document.querySelector(%s)" % json.dumps(state))


def fits(t, what):
    """Nothing is wider than the window."""
    wide, window = t.js("[document.documentElement.scrollWidth, innerWidth]")
    need(wide <= window, "%s: %d of %d pixels" % (what, wide, window))


def is_alone(t, d):
    """No complaint, and nobody else was asked."""
    t.is_content()
    equal([u for u in t.requests if not u.startswith(("data:", "blob:", "about:", "http://127.0.0.1:%d/" % d.port))], [], "others")


@test
def every_view_of_every_kind_is_shown_without_a_complaint():
    for name in CONTROLLERS:
        with controller(name, "--heap-profile-rate=1", "--mutex-profile-fraction=1", "--block-profile-rate=1ns") as d, tab() as t:
            index(t, d)
            contains(t.js("document.body.innerText"), name)
            for kind in json.loads(d.get(PPROF + "status").text)["kinds"]:
                if kind["product"] != "profile":
                    continue
                show(t, "%s/flame%s" % (kind["name"], "?seconds=1" if kind["windowed"] else ""), "main[data-state=shown]")
                for mode in "both", "table", "callers", "flame":
                    t.click_on(".fg-tab[data-mode=%s]" % mode)
                    t.until("document.querySelector('.fg-tab[data-mode=%s][aria-pressed=true]')" % mode)
                fits(t, kind["name"])
            show(t, "threads", "main[data-state=shown] .thread")
            contains(t.js("document.body.innerText"), "Threads of " + name)
            show(t, "memory", "main[data-view=memory][data-state=shown]")
            fits(t, "memory")
            is_alone(t, d)


@test
def each_kind_has_a_card_with_all_that_can_be_done():
    with controller("backend-controller") as d, tab() as t:
        index(t, d)
        cards = t.js("[...document.querySelectorAll('[data-kind]')].map(c => c.dataset.kind)")
        kinds = [k["name"] for k in json.loads(d.get(PPROF + "status").text)["kinds"] if k["product"] != "page"]
        equal(sorted(cards), sorted(kinds))
        for kind in "profile", "heap", "mutex":
            equal(t.js("['flame', 'table', 'download'].filter(x => !document.querySelector(`[data-kind=%s] [data-do=${x}]`))" % kind), [])
        t.click_on("[data-kind=heap] summary")
        t.until("document.querySelector('[data-kind=heap]').textContent.includes(\"go tool pprof '%s'\")" % url(d, "heap"))
        t.until("document.querySelector('[data-kind=heap]').textContent.includes('componentctl profile http://127.0.0.1:%d heap')" % d.port)
        is_alone(t, d)


@test
def it_fits_a_phone_and_4k_and_knows_the_dark():
    with controller("backend-controller", "--heap-profile-rate=1") as d:
        for size, dark in ((360, 740), False), ((360, 740), True), ((3840, 2160), False):
            with tab(size=size, dark=dark) as t:
                index(t, d)
                light = t.js("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).slice(0, 3)"
                             ".reduce((a, n) => a + Number(n), 0)")
                need((light < 200) == dark, light)
                fits(t, "the index")
                for where in "heap/flame", "heap/table", "goroutine/callers":
                    show(t, where, "main[data-state=shown] .fg-view")
                    fits(t, where)
                show(t, "threads", "main[data-state=shown] .thread")
                fits(t, "threads")
                show(t, "memory", "main[data-state=shown]")
                fits(t, "memory")
                is_alone(t, d)


@test
def without_javascript_there_is_a_list_whose_links_work():
    with controller("backend-controller") as d, tab(scripts=False) as t:
        t.call("Page.navigate", url=url(d))
        poll(lambda: "Every thread and where it stands" in json.dumps(t.call("DOM.getDocument", depth=-1)["root"]), "the list")
        page = d.get(PPROF, headers={"Accept": "text/html"}).text
        shown = page[page.index("<noscript>"):page.index("</noscript>")]
        links = [link.replace("&amp;", "&") for link in re.findall(r'href="([^"]+)"', shown)]
        need(len(links) > 15, links)
        for link in links:
            equal(d.get(PPROF + re.sub(r"seconds=\d+", "seconds=1", link)).status, 200, link)


main()
