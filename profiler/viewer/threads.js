/*
 * threads.js - every thread of the program: deadlocks first, then who waits for whom, then where each stands.
 *
 * The data is `goroutine?format=dump`.  Threads of equal stacks that wait for no known lock share a row.
 * What a stranger would get wrong: in a circle everybody holds and waits, so a tree of holders has
 * no root there; its members are roots then, and those who wait behind them hang below.  A circle that
 * a timeout will end is no deadlock: the first of it that is met is the root.
 *
 * Tests: tests/viewer/.
 */
const THREADS_SHOWN = 200; /* rows, until the rest is asked for */

function thread_name(thread) {
	return [element("b", null, thread.name || "thread"), element("span", { class: "quiet" }, ` ${thread.id}`)];
}

/* Of one that may have ended. */
function holder_name(waits, threads) {
	const holder = threads.get(waits.holder);

	if (holder)
		return thread_name(holder);
	if (!waits.holder)
		return [element("span", { class: "quiet" }, "somebody who is not known")];
	return [...thread_name({ name: waits.holder_name, id: waits.holder }),
		waits.ended ? element("span", { class: "bad-text" }, ", which has ended") : null];
}

function lock_name(waits) {
	const place = waits.offset ? `${waits.name}+0x${waits.offset.toString(16)}` : waits.name;

	return element("code", { title: `${waits.kind} at ${waits.lock}` }, place || waits.lock);
}

function waited(thread) {
	return thread.seconds >= 1 ? duration_text(thread.seconds) : "";
}

/* ---- deadlocks ---- */

/* The threads come by their numbers; each one here is followed by whom it waits for. */
function circle_order(circle, threads) {
	const ordered = [];

	for (let id = circle[0]; threads.has(id) && !ordered.includes(id); id = (threads.get(id).waits || {}).holder)
		ordered.push(id);
	return ordered.length === circle.length ? ordered : circle;
}

function deadlock_show(circle, threads) {
	const steps = circle_order(circle, threads).map((id) => threads.get(id)).filter(Boolean).map((thread) => element("li", null,
		element("a", { href: `#thread-${thread.id}`, class: "box", onclick: (event) => thread_open(event, thread) },
			thread_name(thread)),
		thread.waits ? element("p", { class: "step" }, "waits for ", lock_name(thread.waits), ", held by ",
			...holder_name(thread.waits, threads), waited(thread) ? element("span", { class: "quiet" }, `, ${waited(thread)}`) : null) : null));

	return element("section", { class: "notice bad deadlock", "aria-label": "A deadlock" },
		element("h2", null, `Deadlock of ${plural(circle.length, "thread")}`),
		element("ol", { class: "circle" }, steps));
}

/* ---- who waits for whom ---- */

function waiting_tree(dump, threads) {
	const waiters = new Map(), in_circle = new Set(dump.deadlocks.flat());

	for (const thread of dump.threads) {
		if (!thread.waits)
			continue;
		const key = thread.waits.holder || `lock ${thread.waits.lock}`;
		waiters.set(key, [...(waiters.get(key) || []), thread]);
	}
	const roots = [...waiters.keys()].filter((key) => {
		const holder = threads.get(key);
		return !holder || !holder.waits || in_circle.has(key);
	});
	const met = new Set();
	for (const { id } of dump.threads) {
		const path = new Set();
		let at = id;

		for (; (threads.get(at) || {}).waits && !in_circle.has(at) && !met.has(at); at = threads.get(at).waits.holder) {
			met.add(at);
			path.add(at);
		}
		if (path.has(at))
			roots.push(at);
	}
	const below = (key, seen) => {
		const here = (waiters.get(key) || []).filter((thread) => !in_circle.has(thread.id) && !seen.has(thread.id));
		here.forEach((thread) => seen.add(thread.id));
		return here.length ? element("ul", null, here.slice(0, THREADS_SHOWN).map((thread) => element("li", null,
			thread_link(thread), " waits for ", lock_name(thread.waits),
			waited(thread) ? element("span", { class: "quiet" }, `, ${waited(thread)}`) : null, below(thread.id, seen))),
		here.length > THREADS_SHOWN ? element("li", { class: "quiet" }, `and ${plural(here.length - THREADS_SHOWN, "more")}`) : null) : null;
	};
	return roots.map((key) => ({ key, first: waiters.get(key)[0].waits, tree: below(key, new Set()) })).filter((root) => root.tree);
}

function waiting_show(dump, threads) {
	const roots = waiting_tree(dump, threads);

	return roots.length ? element("section", null, element("h2", null, "Who waits for whom"),
		element("ul", { class: "waits" }, roots.map(({ key, first, tree }) => element("li", null,
			threads.get(key) ? thread_link(threads.get(key)) : element("span", null, ...holder_name(first, threads)),
			threads.get(key) ? element("span", { class: "quiet" }, ` is in ${threads.get(key).state}`) : null, tree)))) : null;
}

function thread_link(thread) {
	return element("a", { href: `#thread-${thread.id}`, onclick: (event) => thread_open(event, thread) }, thread_name(thread));
}

/* The address names views, so a link to a thread is followed here: what keeps its row out of the list gives way. */
function thread_open(event, thread) {
	const find = () => document.querySelector(`[data-threads~="${thread.id}"]`);
	const [word, , ours] = document.querySelectorAll(".filter input");

	event.preventDefault();
	if (!find() && (word.value || thread.ours)) {
		word.value = "";
		ours.checked = ours.checked || thread.ours;
		word.dispatchEvent(new Event("input"));
	}
	while (!find())
		document.querySelector("[data-do=more]").click();
	const row = find();
	row.open = true;
	row.scrollIntoView({ block: "center" });
	row.querySelector("summary").focus();
}

/* ---- where each stands ---- */

function frame_item([name, file, line, object, inlined]) {
	const place = file ? `${file}:${line}` : object;

	return element("li", { class: inlined ? "inlined" : "" }, element("code", null, name || "?"),
		inlined ? element("span", { class: "tag", title: "Inlined into its caller" }, "inlined") : null,
		place ? element("span", { class: "quiet place-name" }, ` ${place}`) : null);
}

/* What to show of a stack in one line: the first function that is not the C library's. */
function top_function(frames) {
	const library = /\/(libc|libpthread|ld-linux[^/]*|ld-musl[^/]*)[.-][^/]*$/;
	const call = /^(_|0x|lll_|futex_|pthread_|sem_)|^(\?|futex|poll|select|read|write|recv|send|accept|nanosleep|sleep|start_thread|syscall)$/;
	const found = frames.find(([name, , , object]) => name && !library.test(object) && !call.test(name));

	return (found || frames[0] || ["no stack"])[0];
}

function thread_row(group, threads) {
	const first = group[0], many = group.length > 1;
	const labels = first.labels.map(([key, value]) => element("span", { class: "tag" }, `${key}: ${value}`));
	const row = element("details", { class: "thread", "data-threads": group.map((thread) => thread.id).join(" ") },
		element("summary", null, element("span", { class: "thread-who" }, many ? element("b", null, plural(group.length, "thread")) : thread_name(first)),
			element("span", { class: `tag state ${first.state === "running" ? "good" : ""}` }, first.state),
			waited(first) ? element("span", { class: "quiet" }, waited(first)) : null,
			element("code", { class: "thread-where" }, top_function(first.frames)),
			labels, first.ours ? element("span", { class: "tag" }, "profiler") : null,
			first.waits ? element("span", { class: "warn-text" }, "waits for ", lock_name(first.waits), ", held by ", ...holder_name(first.waits, threads)) : null));

	row.addEventListener("toggle", () => {
		if (row.childElementCount > 1)
			return;
		row.append(element("div", { class: "thread-body" },
			many ? element("p", { class: "quiet" }, group.map((thread) => `${thread.name || "thread"} ${thread.id}`).join(", ")) : null,
			element("ol", { class: "frames" }, first.frames.map(frame_item)),
			first.created_by.length ? [element("h3", null, "Created by"), element("ol", { class: "frames" }, first.created_by.map(frame_item))] : null));
	});
	return row;
}

/* Equal in all that a row shows. */
function thread_groups(threads, together) {
	const groups = new Map();

	for (const thread of threads) {
		const key = !together || thread.waits ? `thread ${thread.id}` :
			JSON.stringify([thread.state, thread.ours, thread.labels, thread.frames, thread.created_by]);
		groups.set(key, [...(groups.get(key) || []), thread]);
	}
	return [...groups.values()].sort((a, b) => b.length - a.length || b[0].seconds - a[0].seconds);
}

function thread_matches(thread, word) {
	const said = [thread.name, thread.id, thread.state, ...thread.labels.flat(), ...thread.frames.map((frame) => frame[0]),
		thread.waits ? `${thread.waits.name} ${thread.waits.lock}` : ""];

	return said.some((text) => String(text).toLowerCase().includes(word));
}

function list_rows(place, groups, threads, from) {
	place.append(...groups.slice(from, from + THREADS_SHOWN).map((group) => thread_row(group, threads)));
	if (groups.length <= from + THREADS_SHOWN)
		return;
	const more = button(plural(groups.length - from - THREADS_SHOWN, "more row"), () => {
		more.remove();
		list_rows(place, groups, threads, from + THREADS_SHOWN);
	}, { "data-do": "more" });
	place.append(more);
}

function threads_list(dump, threads) {
	const place = element("div", { class: "threads" }), said = element("span", { class: "quiet", role: "status" });
	const word = element("input", { type: "search", placeholder: "Name, state, function, label", "aria-label": "Search threads" });
	const box = (text, checked) => {
		const input = element("input", { type: "checkbox", checked });
		return { input, shown: element("label", { class: "check" }, input, text) };
	};
	const together = box("Equal stacks together", true), ours = box("The profiler's own", false);

	function show() {
		const wanted = dump.threads.filter((thread) => (ours.input.checked || !thread.ours) &&
			thread_matches(thread, word.value.trim().toLowerCase()));
		place.replaceChildren();
		list_rows(place, thread_groups(wanted, together.input.checked), threads, 0);
		said.textContent = `${plural(wanted.length, "thread")} of ${dump.threads.length.toLocaleString()}`;
	}
	for (const input of [word, together.input, ours.input])
		input.addEventListener("input", show);
	show();
	return element("section", null, element("h2", null, "Where each stands"),
		element("div", { class: "tools filter" }, word, together.shown, ours.shown, said), place);
}

function threads_show(main, bytes, again) {
	const dump = JSON.parse(new TextDecoder().decode(bytes));
	const threads = new Map(dump.threads.map((thread) => [thread.id, thread]));
	const waiting = dump.threads.filter((thread) => thread.waits).length, circles = dump.deadlocks.length;
	const keep = () => save(bytes, file_name(dump.program, "threads", stamp(new Date())) + ".json", "application/json");
	const about = [plural(dump.threads.length, "thread"), circles ? plural(circles, "deadlock") : "no deadlock",
		waiting ? `${waiting.toLocaleString()} ${waiting === 1 ? "waits" : "wait"} for a lock` : "nobody waits for a lock"].join(", ");

	document.title = `Threads of ${dump.program}`;
	main.replaceChildren(...[view_head(`Threads of ${dump.program}`, `${about}; ${clock_text(new Date())}`,
		button("Again", again, { "data-do": "again" }),
		element("a", { class: "button", href: "#goroutine/flame" }, "Flame graph"),
		button("Download", keep, { "data-do": "download" })),
	...dump.deadlocks.map((circle) => deadlock_show(circle, threads)), waiting_show(dump, threads),
	threads_list(dump, threads)].filter(Boolean));
	say(about);
}

function threads_view(main, signal) {
	return fetched_view(main, signal, "Threads", "goroutine?format=dump", threads_show);
}
