/*
 * kinds.js - the first view: the program, its figures of this moment, and a card for each kind of profile.
 *
 * `status` tells all of it, once a second while the tab is visible; cards are made once and then
 * only their texts change, so that nothing loses the focus.  What a stranger would get wrong: kinds
 * that are not in KINDS are the program's own, and are shown by what the daemon says of them.
 *
 * Tests: tests/viewer/.
 */
const KINDS = {
	profile: ["Time", "CPU", "Where CPU time goes."],
	fgprof: ["Time", "Wall clock", "Where all threads spend time, on a processor or waiting."],
	trace: ["Time", "Trace", "What every thread did, moment by moment, for go tool trace or Perfetto."],
	heap: ["Memory", "Heap", "Memory in use now, by who allocated it."],
	allocs: ["Memory", "Allocations", "All memory ever allocated, whether it is still in use or not."],
	memory: ["Memory", "Resident memory", "Where the resident memory is: heap, mappings, stacks, files. Each page once."],
	mmap: ["Memory", "Mappings", "Memory that the program has mapped itself, by who called mmap()."],
	goroutine: ["Threads and locks", "Threads", "Where every thread stands now, and who waits for whom."],
	goroutineleak: ["Threads and locks", "Deadlocks", "Threads that wait for each other, or for a lock whose holder has ended."],
	mutex: ["Threads and locks", "Lock holders", "Who held the locks that others waited for, and for how long."],
	block: ["Threads and locks", "Waits", "Where threads waited for each other, and for how long."],
	threadcreate: ["Threads and locks", "Thread creation", "Who created threads, since profiling began."],
};
const KIND_GROUPS = ["Time", "Memory", "Threads and locks", "Kept by the program"];
const POLL_MS = 1000, SOON_MS = 250, HISTORY = 90, START_NS = 2e9;

function kind_words(kind) {
	const known = KINDS[kind.name];

	return known ? { group: known[0], title: known[1], text: known[2] } :
		{ group: "Kept by the program", title: kind.name, text: kind.text || "A profile of the program's own." };
}

function kind_title(name) {
	return KINDS[name] ? KINDS[name][1] : name;
}

/* ---- rates ---- */

function rate_text(rate) {
	const value = rate.value;

	if (!value)
		return "Off";
	if (rate.unit === "bytes")
		return value === 1 ? "Every allocation" : `One in ${count_text(value, "bytes")}`;
	if (rate.unit === "nanoseconds")
		return value === 1 ? "Every wait" : `Waits of ${count_text(value, "nanoseconds")} and longer`;
	return value === 1 ? "Each one" : `One of ${value.toLocaleString()}`;
}

async function rate_post(rate, value) {
	await ask("rates", { method: "POST", body: new URLSearchParams({ [rate.name]: String(value) }) });
}

function rate_row(kind, card) {
	const label = element("span", { class: "quiet rate-text", id: `rate-${kind.name}` });
	const toggle = element("button", { type: "button", role: "switch", class: "switch",
		"aria-label": `Sample ${kind_words(kind).title}`, "aria-describedby": label.id });

	toggle.addEventListener("click", () => {
		const rate = card.kind.rate;
		card_act(card, () => rate_post(rate, rate.value ? 0 : rate.on));
	});
	card.update.push(() => {
		toggle.setAttribute("aria-checked", String(card.kind.rate.value !== 0));
		label.textContent = rate_text(card.kind.rate);
	});
	return element("div", { class: "rate" }, label, toggle);
}

/* The rate itself, as the option is written. */
function rate_form(kind, card) {
	const input = element("input", { type: "text", size: 10, spellcheck: "false", value: kind.rate.value,
		"aria-label": kind.rate.name, onkeydown: (event) => { if (event.key === "Enter") set(); } });
	const set = () => card_act(card, () => rate_post(card.kind.rate, input.value.trim()));

	return element("div", { class: "command" }, element("code", null, `${kind.rate.name}=`), input,
		button("Set", set, { class: "copy" }));
}

/* ---- a card ---- */

/* Does it, then asks how things are; what went wrong stands in the card. */
async function card_act(card, act) {
	card.place.replaceChildren();
	try {
		await act();
		await card.refresh();
	} catch (error) {
		card.place.replaceChildren(failure(error));
	}
}

function card_seconds(card) {
	const chosen = card.shown.querySelector("input[type=radio]:checked");

	return chosen ? Number(chosen.value) : 0;
}

function card_path(card) {
	const s = card_seconds(card);

	return encodeURIComponent(card.kind.name) + (s ? `?seconds=${s}` : "");
}

/* Now, 5 s, 30 s: for a snapshot, the seconds are those of a difference. */
function card_windows(kind) {
	const choices = kind.windowed ? [5, 30] : kind.delta ? [0, 5, 30] : [];

	if (!choices.length)
		return null;
	return element("fieldset", { class: "choice" },
		element("legend", { class: "unseen" }, kind.windowed ? "How long to measure" : "What there is now, or what is added in"),
		choices.map((s, i) => element("label", {
			title: s && !kind.windowed ? `What is added in ${s} seconds` : s ? `Measure for ${s} seconds` : "What there is now" },
			element("input", { type: "radio", name: `seconds-${kind.name}`, value: s, checked: i === 0 }),
			element("span", null, s ? (kind.windowed ? `${s} s` : `+ ${s} s`) : "Now"))));
}

function card_go(card, mode) {
	location.hash = `${encodeURIComponent(card.kind.name)}/${mode}${card_seconds(card) ? `?seconds=${card_seconds(card)}` : ""}`;
}

/* The file as it comes, without a look at it. */
function card_download(card, parameter, ending) {
	const s = card_seconds(card);

	card_act(card, async () => {
		const path = parameter ? with_parameter(card_path(card), parameter) : card_path(card);
		const taken = await take(card.place, path, { seconds: s, what: kind_title(card.kind.name) });
		if (taken)
			save(taken.bytes, file_name(card.program, card.kind.name, stamp(new Date())) + ending);
	});
}

function card_buttons(card) {
	const { name, product } = card.kind;
	const go = (text, mode, main) => button(text, () => card_go(card, mode), { "data-do": mode, class: main && "primary" });
	const open = (text, view) => button(text, () => { location.hash = view; }, { "data-do": view, class: "primary" });
	const file = (text, what, parameter, ending) =>
		button(text, () => card_download(card, parameter, ending), { "data-do": what });

	if (product === "residence")
		return [open("Show", "memory"), file("Download", "download", "format=json", ".json")];
	if (product === "trace")
		return [file("For go tool trace", "download", "format=go1.22", ".trace"),
			file("For Perfetto", "perfetto", "format=perfetto", ".perfetto-trace")];
	const threads = name === "goroutine" || name === "goroutineleak";

	return [threads && open("Threads", "threads"), go("Flame graph", "flame", !threads), go("Table", "table"),
		file("Download", "download", "", ".pb.gz")];
}

/* What to type instead. */
function card_lines(card) {
	const { name, product } = card.kind, s = card_seconds(card);
	const server = folder.pathname === "/debug/pprof/" ? folder.origin : folder.href;
	const token = access.token ? ` --token-file=FILE` : "";
	const place = with_token(address_of(card_path(card)).href), for_s = s ? ` --seconds=${s}` : "";

	if (product === "residence")
		return [`componentctl memory ${server}${token}`, `curl '${place}'`];
	if (product === "trace")
		return [`curl -so trace.out '${place}' && go tool trace trace.out`,
			`componentctl trace ${server} -o trace.out${for_s}${token}`];
	return [`go tool pprof '${place}'`, `go tool pprof -http=localhost:8000 '${place}'`,
		`componentctl profile ${server} ${name}${for_s}${token}`,
		name === "goroutine" && `componentctl dump ${server}${token}`].filter(Boolean);
}

/* The token is not shown: who copies the line puts it there. */
function with_token(place) {
	return access.token ? with_parameter(place, "token=TOKEN") : place;
}

function card_make(kind, program, refresh) {
	const words = kind_words(kind);
	const card = { kind, program, refresh, update: [], place: element("div", { class: "place" }) };
	const why = element("p", { class: "why" }), count = element("span", { class: "count" });
	const lines = element("div", { class: "lines" });
	const more = element("details", { class: "more" }, element("summary", null, "Commands"), lines);

	card.update.push(() => {
		why.textContent = card.kind.why;
		why.hidden = !card.kind.why;
		count.textContent = card.kind.count ? card.kind.count.toLocaleString() : "";
		count.title = card.kind.count ? plural(card.kind.count, "entry", "entries") : "";
	});
	card.shown = element("article", { class: "card", "data-kind": kind.name, "aria-label": words.title },
		element("div", { class: "card-head" }, element("h3", null, words.title),
			words.title.toLowerCase() === kind.name ? null : element("code", { class: "quiet" }, kind.name), count),
		element("p", { class: "card-text" }, words.text), why, kind.rate ? rate_row(kind, card) : null,
		element("div", { class: "card-foot" }, card_windows(kind),
			element("div", { class: "tools" }, card_buttons(card))),
		card.place, more);
	const write = () => {
		if (more.open)
			lines.replaceChildren(...card_lines(card).map(command_line), ...(kind.rate ? [rate_form(card.kind, card)] : []));
	};
	more.addEventListener("toggle", write);
	card.shown.addEventListener("change", (event) => { if (event.target.type === "radio") write(); });
	return card;
}

/* ---- the top ---- */

/* A line of the last minute and a half; it begins at 0, so that a small change looks small. */
function trend(values) {
	const max = Math.max(...values, 1e-9) * 1.15, w = 120, h = 28;
	const points = values.map((v, i) => `${(w - (values.length - 1 - i) * w / (HISTORY - 1)).toFixed(1)} ` +
		`${(h - v / max * h).toFixed(1)}`);

	return points.length > 1 ? `M${points.join("L")}` : "";
}

function tile_make(name, help) {
	const value = element("strong", null, "…");
	const path = element("path", { class: "trend-line" });
	const shown = element("div", { class: "tile", title: help }, element("span", { class: "quiet" }, name), value,
		element("svg", { viewBox: "0 0 120 28", preserveAspectRatio: "none", "aria-hidden": "true" }, path));
	const values = [];

	return { shown, set(number, text) {
		shown.hidden = number === null;
		if (number === null)
			return;
		value.textContent = text;
		values.push(number);
		if (values.length > HISTORY)
			values.shift();
		path.setAttribute("d", trend(values));
	} };
}

function fact(name, value) {
	return value ? element("div", { class: "fact" }, element("dt", null, name), element("dd", null, value)) : null;
}

function top_make(status) {
	const uptime = element("span"), start = new Date(Number(BigInt(status.start_ns) / 1000000n));
	const tiles = {
		threads: tile_make("Threads", "Threads of the process"),
		rss: tile_make("Resident", "Memory that the kernel counts as resident"),
		heap: tile_make("Heap", "In use, as the heap profile estimates it"),
		cpu: tile_make("CPU", "Share of one processor in the last second"),
	};
	const shown = element("section", { class: "top", "aria-label": "The program" },
		element("div", { class: "title" }, element("h1", null, status.program),
			element("span", { class: "quiet" }, `libcomponent ${status.library_version}`)),
		element("div", { class: "tiles" }, Object.values(tiles).map((tile) => tile.shown)),
		element("dl", { class: "facts" },
			fact("Process", String(status.pid)), fact("Host", status.host), fact("User", status.user),
			fact("Started", start.toLocaleString()), fact("Up", uptime),
			fact("Build", status.build_id ? element("code", { title: status.build_id }, status.build_id) : ""),
			fact("Command", element("code", null, status.cmdline.join(" ")))));
	let last = null;

	return { shown, update(now) {
		const at = BigInt(now.now_ns), cpu = BigInt(now.cpu_ns);
		uptime.textContent = duration_text(Number((at - BigInt(now.start_ns)) / 1000000000n));
		tiles.threads.set(now.threads, (now.threads || 0).toLocaleString());
		tiles.rss.set(now.rss_bytes, count_text(now.rss_bytes || 0, "bytes"));
		tiles.heap.set(now.heap_bytes, count_text(now.heap_bytes || 0, "bytes"));
		if (last && at > last.at) {
			const share = Number(cpu - last.cpu) / Number(at - last.at) * 100;
			tiles.cpu.set(share, `${share.toFixed(share < 10 ? 1 : 0)} %`);
		}
		last = { at, cpu };
	} };
}

/* ---- the view ---- */

/* What is less here than it could be, and what is in force. */
async function notes_show(place, signal) {
	const notes = await (await ask("?format=json", { signal })).json();
	const told = notes.filter((note) => note.text);

	place.replaceChildren(...(told.length ? [element("h2", null, "In this process"),
		element("ul", { class: "notes" }, told.map((note) => element("li", { class: note.level === "ok" ? "" : "warn" },
			element("b", null, note.about), ` ${note.text}`)))] : []));
}

function earlier_show() {
	const all = looked_at();

	return all.length ? element("section", null, element("h2", null, "Looked at in this tab"),
		element("ul", { class: "earlier" }, all.map((one) => element("li", null, element("a", { href: one.hash }, one.title),
			element("span", { class: "quiet" }, ` ${one.about}`))))) : null;
}

/* Cards in their groups, in the order of KINDS; the program's own come last. */
function cards_make(status, refresh) {
	const order = Object.keys(KINDS), cards = new Map();
	const rank = (kind) => (order.indexOf(kind.name) + order.length + 1) % (order.length + 1);
	const kinds = status.kinds.filter((kind) => kind.product !== "page").sort((a, b) => rank(a) - rank(b));
	const sections = KIND_GROUPS.map((group) => {
		const here = kinds.filter((kind) => kind_words(kind).group === group);
		return here.length ? element("section", null, element("h2", null, group),
			element("div", { class: "cards" }, here.map((kind) => {
				const card = card_make(kind, status.program, refresh);
				cards.set(kind.name, card);
				return card.shown;
			}))) : null;
	});

	return { cards, sections };
}

/* Whether the same cards will do for it.  Its start is reckoned by two clocks, and so never the same to the nanosecond. */
function same_program(a, b) {
	const names = (status) => status.kinds.map((kind) => `${kind.name} ${kind.rate ? 1 : 0}`).join();

	return a && a.pid === b.pid && Math.abs(Number(BigInt(a.start_ns) - BigInt(b.start_ns))) < START_NS && names(a) === names(b);
}

function kinds_view(main, signal) {
	const silence = element("div", { class: "notice warn", role: "alert", hidden: true });
	const body = element("div", { class: "index" });
	const notes = element("section", null);
	let status = null, top = null, cards = new Map(), timer = 0, asked = 0, answered = Date.now();

	function build(now) {
		const made = cards_make(now, refresh);
		top = top_make(now);
		cards = made.cards;
		body.replaceChildren(top.shown, ...[earlier_show(), ...made.sections].filter(Boolean), notes, foot_make());
		document.title = `${now.program} (${now.pid})`;
		notes_show(notes, signal).catch(() => {});
	}
	async function refresh() {
		const now = await (await ask("status", { signal })).json();
		if (!same_program(status, now))
			build(now);
		status = now;
		top.update(now);
		for (const kind of now.kinds) {
			const card = cards.get(kind.name);
			if (card) {
				card.kind = kind;
				card.update.forEach((update) => update());
			}
		}
		answered = Date.now();
		silence.hidden = true;
		main.dataset.state = "shown";
	}
	async function poll() {
		clearTimeout(timer);
		if (signal.aborted || document.visibilityState !== "visible")
			return;
		try {
			await refresh();
		} catch (error) {
			if (signal.aborted)
				return;
			silence.textContent = `${error.message} No answer for ${duration_text((Date.now() - answered) / 1000)}.`;
			silence.hidden = false;
			main.dataset.state = "failed";
		}
		timer = setTimeout(poll, asked++ ? POLL_MS : SOON_MS); /* the second answer has the first share of a processor */
	}
	main.replaceChildren(silence, body);
	document.addEventListener("visibilitychange", poll, { signal });
	signal.addEventListener("abort", () => clearTimeout(timer));
	poll();
}

function foot_make() {
	return element("footer", { class: "foot quiet" },
		button("Open a file", choose_file, { "data-do": "open" }),
		element("span", null, "or drop a profile anywhere on this page. Everything stays on this machine."),
		access.token ? null : element("a", { href: "?plain=1" }, "Plain list"));
}
