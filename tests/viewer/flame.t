#!/usr/bin/env python3
"""The flame graph, the table and the callers of the page, in a real Chromium: a page with a profile inside, opened from a file."""
import base64
import gzip
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from browser import tab  # noqa: E402
from gotools import rows_of_pprof  # noqa: E402
import pprof_writer  # noqa: E402

VIEW = "document.querySelector('.fg-view').fg_view"
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
#         stacks, leaf first, of the functions below; values; labels
SAMPLES = [([4, 2, 1], 30, [("tenant", "acme")]), ([5, 2, 1], 10, [("tenant", "zeta")]), ([3, 1], 40, []), ([2, 2, 1], 15, []), ([6], 5, [])]
NAMES = ["main", "walk", "idle", "hash", "copy", "other"]


def profile(samples=SAMPLES, names=NAMES, types=TYPES, objects=("/usr/bin/prog", "/lib/libc.so.6")):
    """hash is inlined into hash_all, the fourth location."""
    names = list(names) + ["hash_all"]
    locations = [(i + 1, 1 + i % 2, 16 * i + 16, [(i + 1, 10 + i)] + ([(len(names), 99)] if i == 3 else [])) for i in range(len(names) - 1)]
    return gzip.compress(pprof_writer.profile(
        types, [(stack, [value, value * 10 ** 7], labels) for stack, value, labels in samples], locations,
        [(i + 1, name, name, "src/%s.c" % name[:40], 1) for i, name in enumerate(names)],
        [(i + 1, path, "") for i, path in enumerate(objects)]), mtime=0)


def page(d, raw, name="cpu.pb.gz"):
    """The address of the joined page with this profile inside, as componentctl profile --html writes it."""
    with open(os.path.join(BUILD, "profiler/viewer/viewer.html"), encoding="utf-8") as f:
        html = f.read()
    inside = '<script id="profile" type="application/octet-stream" data-name="%s">%s</script>' % (name, base64.b64encode(raw).decode())
    equal(html.count("\n<!-- profile -->\n"), 1)
    path = os.path.join(d, "page.html")
    with open(path, "w", encoding="utf-8") as f:
        f.write(html.replace("<!-- profile -->", inside))
    return "file://" + path


@contextlib.contextmanager
def shown(raw=None, **kw):
    with tempdir() as d, tab(**kw) as t:
        address = page(d, raw or profile())
        t.open(address, "document.querySelector('.fg-view') && %s.rectangles().length" % VIEW)
        yield t
        t.is_content()
        equal(set(t.requests) - {address}, set(), "what was asked for")


def frames(t):
    return t.js(VIEW + ".rectangles()")


def frame(t, name, row=None):
    found = [r for r in frames(t) if r["name"] == name and row in (None, r["row"])]
    need(found, "%s is not drawn: %s" % (name, [r["name"] for r in frames(t)]))
    return found[0]


def click(t, name, **kw):
    r = frame(t, name)
    t.click(r["x"] + r["w"] / 2, r["y"] + r["h"] / 2, **kw)


def about(t):
    return t.js("document.querySelector('.fg-about').innerText")


def choose(t, select, value):
    t.js("(() => { const s = document.querySelectorAll('.fg-bar select')[%d]; s.value = %s; s.dispatchEvent(new Event('change')); })()"
         % (select, json.dumps(value)))


@test
def a_profile_inside_the_file_is_drawn_as_wide_as_its_parts_and_nothing_is_asked_for():
    with shown() as t:
        drawn = {(r["row"], r["name"]): r for r in frames(t)}
        equal(set(drawn), {(0, "all"), (1, "main"), (1, "other"), (2, "walk"), (2, "idle"), (3, "hash_all"), (3, "copy"), (3, "walk"), (4, "hash")})
        width = drawn[0, "all"]["w"]
        for key, share in ((1, "main"), .95), ((2, "walk"), .55), ((3, "walk"), .15), ((4, "hash"), .30):
            need(abs(drawn[key]["w"] / width - share) < .002, (key, drawn[key], width))
        equal([name for (_, name), r in sorted(drawn.items()) if r["inlined"]], ["hash"])
        equal((drawn[2, "walk"]["self"], drawn[2, "walk"]["total"]), (0, 550000000))


@test
def a_click_zooms_and_the_keys_walk():
    with shown() as t:
        whole = frame(t, "all")["w"]
        click(t, "walk")
        equal(round(frame(t, "walk")["w"]), round(whole))
        need("idle" not in [r["name"] for r in frames(t)], frames(t))
        need(re.search(r"^walk\n", about(t)) and "Total 550 ms (55.0 %)" in about(t), about(t))
        need("src/walk.c:11" in about(t) and "libc.so.6" in about(t), about(t))
        t.key("Escape")
        need("idle" in [r["name"] for r in frames(t)], frames(t))
        for key, name in ("Home", "all"), ("ArrowDown", "main"), ("ArrowDown", "walk"), ("ArrowRight", "idle"), ("ArrowLeft", "walk"), ("ArrowUp", "main"):
            t.key(key)
            said = t.js("document.querySelector('.fg-live').textContent")
            equal(said.split(",")[0], name, "behind " + key)
        t.key("ArrowDown")
        t.key("Enter")
        equal(round(frame(t, "walk")["w"]), round(whole))
        click(t, "all")
        r = frame(t, "hash")
        t.point(r["x"] + r["w"] / 2, r["y"] + 9)
        tip = t.js("document.querySelector('.fg-tip').innerText").split("\n")
        need(tip[0] == "hash" and "src/hash.c:13" in tip and "300 ms (30.0 %)" in tip and "inlined into its caller" in tip, tip)


@test
def the_way_to_the_caller_of_all_leads_nowhere():
    tiny = ["tiny%d" % i for i in range(100)]
    with shown(profile([([1], 99900, [])] + [([i + 2], 1, []) for i in range(len(tiny))], ["main"] + tiny)) as t:
        drawn = frames(t)
        equal([r["name"] for r in drawn], ["all", "main"], "the others are one grey piece")
        t.js("document.querySelector('.fg-canvas').focus()")
        for key in "ArrowUp", "Enter":
            t.key(key)
            contains(t.js("document.querySelector('.fg-live').textContent"), "all, Self 0 ns (0 %), Total 16.7 min (100 %)")
        equal(frames(t), drawn)


@test
def a_search_counts_each_stack_once():
    with shown() as t:
        t.key("/")
        t.type("WALK")
        equal(t.js("document.querySelector('.fg-matches').textContent"), "55.0 % in 1")
        equal([(r["row"], r["name"]) for r in frames(t) if r["found"]], [(2, "walk"), (3, "walk")])
        t.key("Escape")
        t.type("/^(hash|copy)$/")
        equal(t.js("document.querySelector('.fg-matches').textContent"), "40.0 % in 2")


@test
def the_table_has_the_figures_of_go_tool_pprof_and_is_sorted_by_a_click():
    raw = profile()
    with tempdir() as d, shown(raw) as t:
        path = os.path.join(d, "cpu.pb.gz")
        with open(path, "wb") as f:
            f.write(raw)
        for kind, unit in TYPES:
            rows, _ = rows_of_pprof(path, kind, unit)
            t.click_on(".fg-tab[data-mode=table]")
            choose(t, 0, kind)
            found = t.js("[...document.querySelectorAll('.fg-table tbody tr')].map(r => [r.querySelector('.fg-name').textContent, "
                         "Number(r.querySelector('[data-self]').dataset.self), Number(r.querySelector('[data-total]').dataset.total)])")
            equal({name: [a, b] for name, a, b in found}, rows)
        names = "[...document.querySelectorAll('.fg-name')].map(e => e.textContent)"
        equal(t.js(names)[:2], ["idle", "hash"])
        t.click_on(".fg-table thead th:nth-child(2) button")
        equal(t.js(names)[:2], ["main", "walk"])
        equal(t.js("document.querySelector('.fg-table th[aria-sort=descending]').textContent"), "Total")
        t.click_on(".fg-table thead th:nth-child(3) button")
        equal(t.js(names), sorted(t.js(names)))


@test
def callers_and_callees_upside_down_groups_and_labels_are_shown():
    with shown() as t:
        click(t, "copy", count=2)
        equal(t.js(VIEW + ".state.mode"), "callers")
        equal([[r["name"] for r in t.js(VIEW + ".flames()[%d].rectangles()" % half)] for half in (0, 1)], [["copy", "walk", "main"], ["copy"]])
        table = t.js("window.table = document.querySelector('.fg-table table'); table.rows.length")
        t.js("[...document.querySelectorAll('.fg-name')].find(e => e.textContent === 'walk').click()")
        equal([sorted({r["name"] for r in t.js(VIEW + ".flames()[%d].rectangles()" % half)}) for half in (0, 1)],
              [["main", "walk"], ["copy", "hash", "hash_all", "walk"]])
        equal(t.js("document.querySelector('.fg-table table') === window.table && table.rows.length"), table, "the same table")
        t.click_on(".fg-tab[data-mode=flame]")
        t.click_on(".fg-bar button[aria-pressed]:not(.fg-tab)")
        equal([r["name"] for r in frames(t) if r["row"] == 1], ["idle", "hash", "walk", "copy", "other"])
        t.click_on(".fg-bar button[aria-pressed]:not(.fg-tab)")
        choose(t, 1, "object")
        equal([r["name"] for r in frames(t) if r["row"] == 1], ["prog", "libc.so.6"])
        choose(t, 1, "label tenant")
        equal([(r["name"], r["total"]) for r in frames(t) if r["row"] == 1],
              [("without tenant", 600000000), ("tenant=acme", 300000000), ("tenant=zeta", 100000000)])
        choose(t, 1, "function")
        t.click_on(".fg-bar button[aria-expanded], .fg-bar .fg-field + button")
        t.click_on(".fg-label button[aria-label='Only acme']")
        equal({r["name"] for r in frames(t)}, {"all", "main", "walk", "hash_all", "hash"})
        t.click_on(".fg-chip")
        equal(len(frames(t)), 9)


DROP = """(async () => {
	const data = Uint8Array.from(atob(%s), c => c.charCodeAt(0)), files = new DataTransfer();

	files.items.add(new File([data], %s));
	document.dispatchEvent(new DragEvent("dragenter", { dataTransfer: files, bubbles: true }));
	const zones = document.querySelectorAll(".fg-zone"), open = !zones[0].parentNode.hidden;
	zones[%d].dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
	return open && zones[0].parentNode.hidden;
})()"""


def drop(t, raw, name, zone):
    equal(t.js(DROP % (json.dumps(base64.b64encode(raw).decode()), json.dumps(name), zone)), True, "the zones open and close")


@test
def a_dropped_file_is_looked_at_or_is_what_was_before_and_red_grew_and_blue_shrank():
    before = profile([([4, 2, 1], 10, []), ([3, 1], 60, []), ([5, 2, 1], 10, [])])
    with shown() as t:
        drop(t, before, "before.pb.gz", 1)
        t.until("document.querySelector('.fg-about').innerText.includes('before')")
        need("1 s now" in about(t) and "800 ms before" in about(t) and "+200 ms (25.0 %)" in about(t), about(t))
        hue = {r["name"]: int(re.match(r"hsl\((\d+)", r["color"]).group(1)) for r in frames(t)}
        total = {r["name"]: r["total"] for r in frames(t) if r["row"] != 3 or r["name"] != "walk"}
        equal((hue["hash"], hue["idle"], hue["copy"]), (6, 214, 215), "red, blue, grey")
        equal((total["hash"], total["idle"], total["copy"]), (200000000, -200000000, 0))
        choose(t, 2, "")
        equal(frame(t, "idle")["total"], 400000000)
        drop(t, before, "other.pb.gz", 0)
        t.until("document.querySelector('.fg-about')?.innerText.includes('other.pb.gz')")
        contains(t.js("document.querySelector('main').innerText"), "other.pb.gz\n")
        equal(t.js("document.title"), "other.pb.gz")
        equal(frame(t, "idle")["total"], 600000000)
        drop(t, b"no profile", "x.png", 0)
        t.until("document.querySelector('.fg-complaint')")
        need(about(t).startswith("x.png: This is no profile"), about(t))
        equal(frame(t, "idle")["total"], 600000000, "what was there stays")


@test
def a_difference_of_deltas_has_the_sums_of_what_came_and_went_and_shares_of_what_was_before():
    ten = ([4, 2, 1], 10, [("tenant", "acme")])
    for now, before, said, labels in (
            ([ten, ([3, 1], -30, [])], [ten], ["-200 ms now", "100 ms before", "-300 ms (-300 %)", "grew", "shrank"], "0 ns (0 %)"),
            ([ten], [([3, 1], 40, [])], ["100 ms now", "400 ms before", "-300 ms (-75.0 %)", "grew", "shrank"], "+100 ms (25.0 %)"),
            ([ten], [([3, 1], 0, [])], ["100 ms now", "0 ns before", "+100 ms", "grew", "shrank"], "+100 ms (100 %)")):
        with shown(profile(now)) as t:
            drop(t, profile(before), "before.pb.gz", 1)
            t.until("document.querySelector('.fg-about').innerText.includes('before')")
            equal(t.js("[...document.querySelectorAll('.fg-facts span')].map(e => e.textContent)"), said)
            t.js(VIEW + ".show_labels(true)")
            equal(t.js("document.querySelector('.fg-label .fg-quiet').textContent"), labels)


@test
def a_hostile_profile_is_text_and_nothing_else():
    names = ["<script>document.title='bad'</script>", "\"'><img src=x onerror=document.title='bad'>", "a\nb\u202ec", "x" * 10000, "__proto__", "</script>"]
    raw = profile([(stack, value, [("<b>k</b>", "<u>v</u>"), ("__proto__", "constructor")]) for stack, value, _ in SAMPLES], names,
                  [("constructor", "toString"), ("<i>cpu</i>", "__proto__")], ("/usr/<b>prog</b>", "/lib/\u202ex.so"))
    raw = gzip.compress(gzip.decompress(raw).replace("\u202ec".encode(), b"\xff\xfe!c"))
    with shown(raw) as t:
        title = t.js("document.title")
        for mode in "flame", "both", "table", "callers":
            t.click_on(".fg-tab[data-mode=%s]" % mode)
            for select in (0, 1, 2):
                for value in t.js("[...document.querySelectorAll('.fg-bar select')[%d].options].map(o => o.value)" % select):
                    if value != "file":
                        choose(t, select, value)
            t.js(VIEW + ".show_labels(true)")
        choose(t, 1, "function")
        t.click_on(".fg-tab[data-mode=flame]")
        for r in frames(t):
            t.point(r["x"] + 2, r["y"] + 9)
        click(t, names[3])
        equal((t.js("document.title"), t.js("document.querySelectorAll('.fg-view :is(script, img, u, i, b b)').length")), (title, 0))
        need(len(about(t)) < 2000, len(about(t)))


@test
def it_fits_a_phone_and_the_dark():
    for size, dark in ((360, 740), False), ((360, 740), True), ((1280, 800), True), ((3840, 2160), False):
        with shown(size=size, dark=dark) as t:
            for mode in "flame", "both", "table", "callers":
                t.click_on(".fg-tab[data-mode=%s]" % mode)
                need(t.js("document.documentElement.scrollWidth") <= size[0], "%s at %s is wider" % (mode, size))
            light = t.js("getComputedStyle(document.documentElement).backgroundColor").strip("rgba()").split(",")
            need((int(light[0]) < 128) == dark, light)


def of_half(t, half):
    return t.js(VIEW + ".flames()[%d].rectangles()" % half)


@test
def where_callees_come_first_no_frame_has_a_self_that_is_another_ones():
    def tip(r):
        t.point(r["x"] + r["w"] / 2, r["y"] + 9)
        return t.js("document.querySelector('.fg-tip').innerText").split("\n")

    with shown() as t:
        need({"Self", "Total"} <= set(tip(frame(t, "walk"))), "as it is")
        t.click_on(".fg-bar button[aria-pressed]:not(.fg-tab)")
        for name in "idle", "main":
            found = tip(frame(t, name))
            need("Total" in found and "Self" not in found, found)
        equal({r.get("self") for r in frames(t)}, {None})
        t.click_on(".fg-tab[data-mode=callers]")
        equal({r.get("self") for r in of_half(t, 0)}, {None})
        need(None not in {r.get("self") for r in of_half(t, 1)}, of_half(t, 1))


@test
def in_both_halves_of_callers_a_double_click_and_o_open_what_they_are_on():
    with shown() as t:
        click(t, "copy", count=2)
        r = next(r for r in of_half(t, 0) if r["name"] == "walk")
        t.click(r["x"] + r["w"] / 2, r["y"] + 9, count=2)
        equal(t.js(VIEW + ".state.key"), "walk")
        r = next(r for r in of_half(t, 0) if r["name"] == "main")
        t.click(r["x"] + r["w"] / 2, r["y"] + 9)
        t.key("o")
        equal(t.js(VIEW + ".state.key"), "main")
        r = next(r for r in of_half(t, 1) if r["name"] == "idle")
        t.click(r["x"] + r["w"] / 2, r["y"] + 9, count=2)
        equal(t.js(VIEW + ".state.key"), "idle")


@test
def what_is_in_the_middle_of_callers_is_what_only_this_and_without_mean():
    with shown() as t:
        t.click_on(".fg-tab[data-mode=callers]")
        for group, row, action, wanted in (("line", "walk src/walk.c:11", 0, {"what": "function", "value": "walk", "only": True}),
                                           ("object", "libc.so.6", 1, {"what": "object", "value": "/lib/libc.so.6", "only": False}),
                                           ("function", "copy", 0, {"what": "function", "value": "copy", "only": True})):
            choose(t, 1, group)
            t.js("[...document.querySelectorAll('.fg-name')].find(e => e.textContent === %s).click()" % json.dumps(row))
            t.js("document.querySelectorAll('.fg-actions button')[%d].click()" % action)
            equal(t.js(VIEW + ".state.filters"), [wanted])
            need(frames(t), "it leaves something")
            t.click_on(".fg-chip")


@test
def objects_of_one_name_are_told_apart_by_their_folders():
    with shown(profile(objects=("/opt/a/libx.so", "/opt/b/libx.so"))) as t:
        choose(t, 1, "object")
        equal([r["name"] for r in frames(t) if r["row"] == 1], ["/opt/a/libx.so", "/opt/b/libx.so"])
        t.click_on(".fg-tab[data-mode=table]")
        t.js("[...document.querySelectorAll('.fg-name')].find(e => e.textContent === '/opt/b/libx.so').click()")
        equal(of_half(t, 0)[0]["name"], "/opt/b/libx.so")


@test
def a_search_does_not_count_what_the_filters_have_taken_out():
    with shown() as t:
        t.js(VIEW + ".filter({ what: 'function', value: 'idle', only: true })")
        t.key("/")
        t.type("/^(idle|hash)$/")
        equal(t.js("document.querySelector('.fg-matches').textContent"), "100 % in 1")


@test
def the_keyboard_stays_on_its_frame_when_the_window_changes():
    tiny = [([5 + i, 2, 1], 6, []) for i in range(5)]
    with shown(profile([([4, 2, 1], 5000, []), *tiny, ([10, 3, 1], 4000, [])],
                       ["main", "left", "right", "wide"] + ["tiny%d" % i for i in range(5)] + ["there"])) as t:
        equal(len([r for r in frames(t) if r["name"].startswith("tiny")]), 5, "all of them are drawn")
        click(t, "all")
        for key in "ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown":
            t.key(key)
        said = "document.querySelector('.fg-live').textContent.split(',')[0]"
        equal(t.js(said), "there")
        t.resize(600, 800)
        t.until(VIEW + ".flame.wide < 600")
        equal([r for r in frames(t) if r["name"].startswith("tiny")], [])
        mark, r = t.js("document.querySelector('.fg-mark').getBoundingClientRect().x"), frame(t, "there")
        need(abs(mark - r["x"]) < 2, (mark, r))
        t.key("ArrowUp")
        equal(t.js(said), "right")


main()
