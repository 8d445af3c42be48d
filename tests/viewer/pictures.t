#!/usr/bin/env python3
"""The pictures of the documents, taken of programs at work: PICTURES=docs/pictures tests/viewer/pictures.t takes them anew, to be
looked at and committed.  Otherwise they go to a temporary folder: each must show what its document says, and be small."""
import contextlib
import json
import os
import re
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from browser import tab  # noqa: E402
from documents import prose  # noqa: E402
from harness import *  # noqa: E402,F403
from hooked import LIBS, build  # noqa: E402

VIEWER = os.path.join(BUILD, "profiler/viewer/viewer.html.gz")
FOLDER = os.environ.get("PICTURES") and os.path.abspath(os.environ["PICTURES"])
ALL_BYTES_MAX = 600 << 10  # of all pictures in the tree
WIDE, LOW, PHONE = (1100, 600), (1100, 430), (360, 760)
SHOWN = "document.querySelector('main[data-view=%s][data-state=shown]')"
VIEW = "document.querySelector('.fg-view').fg_view"


def picture(t, name):
    """As the page is now, where nothing has the pointer or the keyboard."""
    t.point(0, 0)
    t.js("document.activeElement.blur()")
    t.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    with tempdir() as d:
        path = os.path.join(FOLDER or d, name + ".png")
        t.picture(path)
        with open(path, "rb") as f:
            data = f.read()
    equal(struct.unpack(">II", data[16:24]), tuple(t.js("[innerWidth, innerHeight]")))
    need(len(data) < ALL_BYTES_MAX / 3, "%s has %d bytes" % (name, len(data)))
    t.is_content()


@contextlib.contextmanager
def changes(root, rate):
    """A tree of files that changes so often."""
    with started([os.path.join(SRC, "scripts/demo-input"), root, "--files=1200", "--applications=30", "--rate=%d" % rate],
                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as p:
        said = p.stdout.readline()
        need(" files in " in said, said)
        yield


@contextlib.contextmanager
def at_work():
    """A controller whose files change five times a second, and what changes that.  Its command line is one that people would write."""
    port = "COMPONENT_PROFILING_PORT_FILE", "COMPONENT_PROFILING_BIND_ADDRESS"
    with tempdir() as d, contextlib.ExitStack() as work:
        now = work.enter_context(contextlib.ExitStack())
        now.enter_context(changes(os.path.join(d, "root"), 5))
        shutil.copy(os.path.join(BUILD, "examples/.libs/backend-controller"), d)
        c = Daemon(["/usr/bin/env", "-C", d, "./backend-controller", "--root=root", "--enable-pprof", "--resync-period=1s"],
                   wait=False, port_file=False, env={
                       "LD_LIBRARY_PATH": LIBS, port[0]: os.path.join(d, "port"), port[1]: "127.0.0.1:0", "COMPONENT_PROFILING_VIEWER_FILE": VIEWER,
                       "COMPONENT_HEAP_PROFILE_RATE": "4KiB", "COMPONENT_MMAP_PROFILE_RATE": "1", "COMPONENT_MUTEX_PROFILE_FRACTION": "1",
                       "BACKEND_CONTROLLER_RATE_LIMITER_QPS": "1000", "BACKEND_CONTROLLER_RATE_LIMITER_BUCKET_SIZE": "1000"})
        work.callback(c.end)
        c.port_file = os.path.join(d, "port")
        c.wait_port()

        def change(rate):
            now.close()
            now.enter_context(changes(os.path.join(d, "root"), rate))
        yield c, change


def show(t, d, where, view):
    """A view by its address."""
    t.call("Emulation.setLocaleOverride", locale="en-GB")
    t.open(d.url, SHOWN % "kinds")
    t.js("location.hash = %s" % json.dumps(where))
    t.until(SHOWN % view)


@test
def a_flame_graph_and_what_has_changed_since_the_one_before():
    with at_work() as (d, change), tab(size=WIDE) as t:
        show(t, d, "profile/flame?seconds=3", "profile")
        t.until(VIEW + ".rectangles().length > 20")
        names = {r["name"] for r in t.js(VIEW + ".rectangles()")}
        need(any("backend" in n or "sync" in n or "reconcile" in n for n in names), names)
        picture(t, "flame")
        change(400)
        t.js("location.hash = ''")
        t.until(SHOWN % "kinds")
        t.js("location.hash = 'profile/flame?seconds=3'")
        t.until(SHOWN % "profile")
        t.js("(() => { const s = document.querySelectorAll('.fg-bar select')[2];"
             "s.value = [...s.options].find((o) => o.value && o.value !== 'file').value; s.dispatchEvent(new Event('change')); })()")
        t.until("/ before/.test(document.querySelector('.fg-about').innerText)")
        hues = {int(m.group(1)) for r in t.js(VIEW + ".rectangles()") for m in [re.match(r"hsl\((\d+)", r["color"])] if m}
        need(len(hues) > 1, hues)
        picture(t, "difference")


@test
def a_hot_loop_and_a_leak_are_seen_at_a_glance():
    for fault, where, function in (("hot", "profile/flame?seconds=%d" % (10 if FOLDER else 2), "find_user"),
                                   ("leak", "heap/flame?seconds=5&type=inuse_space", "remember_visit")):
        with daemon("examples/hunts", "--fault=" + fault, "--enable-pprof", "--profiling-viewer-file=" + VIEWER) as d, tab(size=LOW) as t:
            def drawn():  # of a busy machine a window may have too little
                show(t, d, where, "profile")
                return t.js("%s.rectangles().some(r => r.name === '%s' && r.total > 0)" % (VIEW, function))
            poll(drawn, function)
            picture(t, fault)


@test
def threads_that_wait_for_each_other():
    with tempdir() as folder:
        exe = build(folder, "deadlocks", "deadlocks.c", "linked")
        with daemon(exe, "--enable-pprof", "--profiling-viewer-file=" + VIEWER, env={"DEADLOCKS": "1"}) as d, tab(size=WIDE) as t:
            poll(lambda: "deadlock:" in d.get("/debug/pprof/goroutine?debug=2").text, "the deadlock")
            show(t, d, "threads", "threads")
            t.until("document.querySelectorAll('.circle .box').length >= 2")
            picture(t, "threads")


@test
def resident_memory():
    with at_work() as (d, _), tab(size=WIDE) as t:
        show(t, d, "memory", "memory")
        t.until("document.querySelectorAll('.class').length >= 5")
        t.js("document.querySelector('.opener').click()")
        picture(t, "memory")


@test
def the_first_view_on_a_phone():
    with at_work() as (d, _), tab(size=PHONE) as t:
        t.call("Emulation.setLocaleOverride", locale="en-GB")
        t.open(d.url, SHOWN % "kinds" + " && document.querySelector('[data-kind=heap]')")
        t.until("document.querySelector('.tile:last-child .trend-line').getAttribute('d')?.match(/[ L]/g)?.length > 6")
        # Whoever takes it, the name of the machine is not what is to be seen.
        t.js("document.querySelectorAll('dd').forEach((e) => { if (e.textContent === %s) e.textContent = 'node-7'; })" % json.dumps(os.uname().nodename))
        picture(t, "phone")


@test
def those_of_the_documents_are_there_and_small_and_each_is_shown():
    paths = {os.path.relpath(p, SRC) for p in glob.glob(os.path.join(SRC, "docs/pictures/*.png"))}
    named = set()
    for name in [n for n in os.listdir(os.path.join(SRC, "docs")) if n.endswith(".md")] + ["../README.md"]:
        document = os.path.normpath("docs/" + name)
        for text, link in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", prose(document)):
            need(text, "%s: %s has no words for those who do not see it" % (document, link))
            named.add(os.path.normpath(os.path.join(os.path.dirname(document), link)))
    equal(named, paths)
    need(len(paths) >= 5, paths)
    need(sum(os.path.getsize(os.path.join(SRC, p)) for p in paths) < ALL_BYTES_MAX, "larger")


main()
