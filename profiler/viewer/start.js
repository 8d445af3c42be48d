/*
 * start.js - what is shown: by the address behind '#', by what is inside the file, by what is dropped.
 *
 *     #                               the index
 *     #threads  #memory               views of their own
 *     #heap/flame?seconds=5&at=2      a profile; at: its number in this tab
 *
 * Profiles that were looked at are kept, the last few, so that the way back costs the daemon nothing; the view
 * of them offers them as base of a difference.  What a stranger would get wrong: the address is
 * written by replaceState() while a view changes its mode, and that is no change to route.
 *
 * Tests: tests/viewer/.
 */
const KEPT = 12;
const kept = new Map(); /* number: { profile, bytes, title, about, name, again, hash } */
let kept_last = Date.now(), leave = null; /* not those of before a reload, which the history has */

function looked_at() {
	return [...kept.values()].reverse();
}

function keep(one) {
	const at = ++kept_last;

	kept.set(at, one);
	if (kept.size > KEPT)
		kept.delete(kept.keys().next().value);
	return at;
}

/* ---- the address ---- */

function hash_read() {
	const [path, query] = location.hash.slice(1).split("?");
	const [name, mode] = path.split("/").map((part) => {
		try {
			return decodeURIComponent(part);
		} catch {
			return "";
		}
	});

	return { name: name || "", mode: mode || "flame", query: new URLSearchParams(query || "") };
}

function hash_text(name, mode, query) {
	return `#${encodeURIComponent(name)}/${mode}${String(query) ? `?${query}` : ""}`;
}

function hash_set(hash) {
	history.replaceState(history.state, "", hash);
}

/* ---- a profile ---- */

function profile_show(main, at, signal, mode, query) {
	const one = kept.get(at);
	const place = element("div", { class: "explorer" });
	const again = one.again ? button("Again", () => { location.hash = one.again; }, { "data-do": "again" }) : null;
	const file = one.bytes ? button("Download", () => save(one.bytes, one.name), { "data-do": "download" }) : null;

	document.title = one.title;
	main.replaceChildren(view_head(one.title, one.about, again, file), place);
	query.set("at", String(at));
	const view = profile_view(place, { mode, type: query.get("type") || undefined, on_file: file_show, on_change: (state) => {
		if (signal.aborted)
			return;
		if (state.type)
			query.set("type", state.type);
		one.hash = hash_text(one.kind, state.mode || mode, query);
		hash_set(one.hash);
	} });
	one.hash = hash_text(one.kind, mode, query);
	hash_set(one.hash);
	view.show(one.profile);
	main.dataset.state = "shown";
	signal.addEventListener("abort", () => view.destroy());
}

/* Where the daemon takes 30 s if nothing is said, so does the page. */
function seconds_of(name, query) {
	const s = Number(query.get("seconds"));

	return s > 0 ? s : name === "profile" || name === "fgprof" ? 30 : 0;
}

function profile_about(profile, seconds, snapshot) {
	const span = seconds ? `${snapshot ? "what was added in " : ""}${seconds.toFixed(seconds % 1 ? 1 : 0)} s` : "";

	return [profile.program, span, clock_text(new Date())].filter(Boolean).join(", ");
}

async function profile_take(main, place, name, mode, query, signal) {
	const seconds = seconds_of(name, query), title = kind_title(name);
	const path = encodeURIComponent(name) + (seconds ? `?seconds=${seconds}` : "");
	const taken = await take(place, path, { seconds, what: title }, signal);

	if (signal.aborted)
		return;
	if (!taken) {
		location.hash = "";
		return;
	}
	const file = file_name(name, stamp(new Date())) + ".pb.gz";
	const profile = await profile_decode(taken.bytes, file);
	if (signal.aborted)
		return;
	const again = new URLSearchParams(seconds ? { seconds: String(seconds) } : {});
	const at = keep({ kind: name, profile, bytes: taken.bytes, name: file_name(profile.program || "", file).replace(/^-/, ""),
		title, about: profile_about(profile, taken.seconds, name !== "profile" && name !== "fgprof"),
		again: hash_text(name, mode, again) });
	profile_show(main, at, signal, mode, query);
}

async function profile_view_of(main, { name, mode, query }, signal) {
	const at = Number(query.get("at"));
	const place = element("div", { class: "place" });

	if (kept.has(at) && kept.get(at).kind === name) {
		profile_show(main, at, signal, mode, query);
		return;
	}
	query.delete("at");
	main.dataset.state = "taking";
	document.title = kind_title(name);
	main.replaceChildren(view_head(kind_title(name), ""), place);
	try {
		await profile_take(main, place, name, mode, query, signal);
	} catch (error) {
		if (signal.aborted)
			return;
		main.dataset.state = "failed";
		place.replaceChildren(failure(error, route));
	}
}

/* ---- files ---- */

async function file_show(file) {
	const main = document.getElementById("main");

	try {
		const bytes = new Uint8Array(await file.arrayBuffer());
		const profile = await profile_decode(bytes, file.name);
		const at = keep({ kind: "file", profile, bytes, name: file.name, title: file.name, about: profile_about(profile, 0, true) });
		if (page_of_file) {
			leave.abort();
			leave = new AbortController();
			profile_show(main, at, leave.signal, "flame", new URLSearchParams());
		} else {
			location.hash = `file/flame?at=${at}`;
		}
	} catch (error) {
		main.prepend(failure(error));
	}
}

function choose_file() {
	const input = element("input", { type: "file", class: "unseen" });

	input.addEventListener("change", () => input.files[0] && file_show(input.files[0]));
	document.body.append(input);
	input.click();
	input.remove();
}

/* While no profile is shown; one that is shown takes files itself, as what to compare with. */
function files_watch() {
	const { dataset } = document.getElementById("main"), mine = () => dataset.view !== "profile" || dataset.state !== "shown";

	document.addEventListener("dragover", (event) => { if (mine()) event.preventDefault(); });
	document.addEventListener("drop", (event) => {
		if (!mine() || !event.dataTransfer.files.length)
			return;
		event.preventDefault();
		file_show(event.dataTransfer.files[0]);
	});
}

/* ---- */

function route() {
	const main = document.getElementById("main"), where = hash_read();

	if (leave)
		leave.abort();
	leave = new AbortController();
	main.dataset.state = "";
	window.scrollTo(0, 0);
	main.dataset.view = where.name === "threads" || where.name === "memory" ? where.name :
		where.name && where.name !== "." && where.name !== ".." ? "profile" : "kinds";
	if (where.name === "file" && !kept.has(Number(where.query.get("at"))))
		main.dataset.view = "kinds"; /* a file is gone when the page is read anew */
	({
		kinds: () => kinds_view(main, leave.signal), threads: () => threads_view(main, leave.signal),
		memory: () => memory_view(main, leave.signal), profile: () => profile_view_of(main, where, leave.signal),
	})[main.dataset.view]();
	if (location.hash)
		main.focus({ preventScroll: true });
}

/* From the address into memory, so that it is in no history and on no picture.  It has no blank: what reads as one was '+'. */
function token_take() {
	const parameters = new URLSearchParams(location.search);

	access.token = (parameters.get("token") || "").replace(/ /g, "+");
	if (!parameters.has("token"))
		return;
	parameters.delete("token");
	history.replaceState(null, "", `${location.pathname}${String(parameters) ? `?${parameters}` : ""}${location.hash}`);
}

async function inside_show(inside) {
	const main = document.getElementById("main"), name = inside.dataset.name || "profile.pb.gz";

	page_of_file = true;
	main.dataset.view = "profile";
	leave = new AbortController();
	try {
		const bytes = bytes_of_base64(inside.textContent), profile = await profile_decode(bytes, name);
		const at = keep({ kind: "file", profile, title: name, name,
			about: [profile.program, profile.time_ns ? new Date(Number(profile.time_ns) / 1e6).toLocaleString() : ""]
				.filter(Boolean).join(", "),
			bytes });
		const { mode, query } = hash_read();
		profile_show(main, at, leave.signal, mode, query);
	} catch (error) {
		main.dataset.state = "failed";
		main.replaceChildren(failure(error));
	}
}

function start() {
	const inside = document.getElementById("profile");

	if (inside) {
		inside_show(inside);
		return;
	}
	token_take();
	files_watch();
	addEventListener("hashchange", route);
	route();
}

if (document.readyState === "loading")
	document.addEventListener("DOMContentLoaded", start);
else
	start();
