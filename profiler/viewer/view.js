/*
 * view.js - all there is to look at a profile: bar, flame graph, table, callers, tooltip, files
 * that are dropped.
 *
 *	const view = profile_view(container, { mode, type, on_change(state), on_file(file), drop });
 *	view.show(profile, base);  view.mode(name);  view.type(name);  view.destroy();
 *
 * on_file: a profile that was dropped to be looked at by itself; without it the view shows it in its place.
 * What was shown in this tab is remembered, the last 12, to be compared with.  What the page says
 * of a profile is set as text, never as markup.  For tests the element .fg-view has fg_view, this
 * object: state, flames(), rectangles().
 * Tests: tests/viewer/flame.t.
 */
const SEEN_MOST = 12, LABELS_MOST = 40;
const fg_seen = [];
const MODES = [["flame", "Flame graph"], ["both", "Both"], ["table", "Table"], ["callers", "Callers"]];
const GROUPS = [["function", "Function"], ["line", "Line"], ["object", "Object"], ["thread", "Thread"]];

function fg_button(text, press, name) {
	const made = fg_make("button", name || "fg-button", text);

	made.type = "button";
	made.addEventListener("click", press);
	return made;
}

function fg_field(text, field) {
	const label = fg_make("label", "fg-field");

	label.append(fg_make("span", "", text), field);
	return label;
}

function fg_options(select, list, chosen) {
	select.replaceChildren(...list.map(([value, text, off]) => {
		const option = fg_make("option", "", text);

		option.value = value;
		option.disabled = !!off;
		return option;
	}));
	select.value = chosen;
}

/* The time first: a long text is cut. */
function fg_seen_text({ profile, at }) {
	return new Date(at).toLocaleTimeString() + ", " + shown_text(profile.name || "profile", 60).replace(/\.(pb|pprof|json)?(\.gz)?$/, "");
}

function fg_empty_text(profile, filters) {
	const others = profile.types.filter((type, i) => profile.total(i)).map(([name]) => name.replace(/_/g, " "));

	return filters.length ? "The filters leave nothing."
		: "Nothing has been counted here." + (others.length ? " There is something in: " + shown_text(others.join(", "), 200) + "." : "");
}

class ProfileView {
	constructor(container, options) {
		this.options = options;
		this.state = { mode: options.mode || "flame", type: options.type || "", group: "function", label: "", upside_down: false,
			search: "", filters: [], key: "" };
		this.box = fg_make("section", "fg-view");
		this.box.fg_view = this;
		this.make_bar();
		this.chips = fg_make("div", "fg-chips");
		this.about = fg_make("div", "fg-about");
		this.tree = this.turned = null;
		this.body = fg_make("div", "fg-body");
		this.tip = fg_make("div", "fg-tip");
		this.tip.setAttribute("role", "tooltip");
		this.tip.hidden = true;
		this.live = fg_make("div", "fg-live");
		this.live.setAttribute("aria-live", "polite");
		this.box.append(this.bar, this.labels, this.chips, this.about, this.body, this.tip, this.live);
		container.append(this.box);
		this.listeners = [];
		this.listen(window, "resize", () => this.fit());
		this.listen(document, "keydown", event => this.press(event));
		this.listen(matchMedia("(prefers-color-scheme: dark)"), "change", () => this.flames().forEach(flame => flame.themed()));
		if (options.drop !== false)
			this.watch_files();
	}

	listen(target, what, call) {
		target.addEventListener(what, call);
		this.listeners.push(() => target.removeEventListener(what, call));
	}

	destroy() {
		this.listeners.forEach(stop => stop());
		this.clear();
		this.box.remove();
	}

	make_bar() {
		const select = call => {
			const made = fg_make("select");

			made.addEventListener("change", () => call(made.value));
			return made;
		};

		this.bar = fg_make("div", "fg-bar");
		this.tabs = fg_make("div", "fg-tabs");
		this.tabs.setAttribute("role", "group");
		this.tabs.setAttribute("aria-label", "View");
		for (const [mode, text] of MODES) {
			const tab = fg_button(text, () => this.mode(mode), "fg-tab");

			tab.dataset.mode = mode;
			this.tabs.append(tab);
		}
		this.types = select(name => this.type(name));
		this.groups = select(value => this.group(value));
		this.against = select(value => this.compare(value));
		this.turn = fg_button("Upside down", () => this.change({ upside_down: !this.state.upside_down }));
		this.labels = fg_make("div", "fg-labels");
		this.labels.hidden = true;
		this.more = fg_button("Labels", () => this.show_labels(this.labels.hidden));
		this.search = fg_make("input", "fg-search");
		this.search.type = "search";
		this.search.placeholder = "Search, or /pattern/";
		this.search.setAttribute("aria-label", "Search for functions");
		this.search.addEventListener("input", () => this.find(this.search.value));
		this.matches = fg_make("output", "fg-matches");
		this.bar.append(this.tabs, fg_field("Value", this.types), fg_field("By", this.groups), fg_field("Against", this.against),
			this.more, this.turn, this.search, this.matches);
	}

	/* Draws a profile, as it is or against a base. */
	show(profile, base) {
		for (const one of [base, profile])
			if (one && !fg_seen.some(seen => seen.profile === one))
				fg_seen.unshift({ profile: one, at: Date.now() });
		fg_seen.length = Math.min(fg_seen.length, SEEN_MOST);
		this.plain = profile;
		this.base = base || null;
		try {
			this.profile = base ? profile_difference(profile, base) : profile;
		} catch (e) {
			this.base = null;
			this.profile = profile;
			this.complaint = e.message;
		}
		this.state.filters = [];
		this.state.key = "";
		this.state.type = this.profile.types[this.profile.type_of(this.state.type)][0];
		this.fill_bar();
		this.update();
	}

	fill_bar() {
		const type = this.type_index(), keys = this.profile.labels(type).map(([key]) => key), plain = this.plain;
		const others = fg_seen.map((seen, i) => [String(i), fg_seen_text(seen), seen.profile]).filter(([, , other]) =>
			other !== plain && other.types.some(t => plain.types.some(of => of[0] === t[0] && of[1] === t[1])));

		if (this.state.group === "label" && !keys.includes(this.state.label))
			this.state.group = "function";
		fg_options(this.types, this.profile.types.map(([name]) => [name, name.replace(/_/g, " ")]), this.state.type);
		fg_options(this.groups, [...GROUPS, ...keys.map(key => ["label " + key, "Label " + shown_text(key, 30)])],
			this.state.group === "label" ? "label " + this.state.label : this.state.group);
		const now = this.base ? String(fg_seen.findIndex(seen => seen.profile === this.base)) : "";
		fg_options(this.against, [["", "nothing"], ...others.map(([i, text]) => [i, text]), ["file", "a file …"]], now);
		this.more.hidden = !keys.length;
		this.labels.hidden = true;
	}

	type_index() {
		return this.profile.type_of(this.state.type);
	}

	unit() {
		return this.profile.types[this.type_index()][1];
	}

	change(what) {
		Object.assign(this.state, what);
		this.update();
		if (this.options.on_change)
			this.options.on_change({ mode: this.state.mode, type: this.state.type });
	}

	mode(mode) {
		this.change({ mode: MODES.some(([name]) => name === mode) ? mode : "flame" });
	}

	type(name) {
		this.change({ type: this.profile.types[this.profile.type_of(name)][0] });
		this.types.value = this.state.type;
		if (!this.labels.hidden)
			this.show_labels(true);
	}

	group(value) {
		const label = value.startsWith("label ");

		this.groups.value = value;
		this.change({ group: label ? "label" : value, label: label ? value.slice(6) : "", key: "" });
	}

	filter(filter) {
		this.labels.hidden = true;
		this.change({ filters: [...this.state.filters, filter], key: "" });
	}

	compare(value) {
		if (value === "file")
			this.choose_base();
		else
			this.show(this.plain, value === "" ? null : fg_seen[Number(value)].profile);
	}

	choose_base() {
		const input = fg_make("input");

		input.type = "file";
		input.addEventListener("change", () => input.files[0] && this.take(input.files[0], true));
		input.click();
		this.fill_bar();
	}

	/* A file that somebody chose or dropped. */
	async take(file, as_base) {
		try {
			const profile = await profile_decode(await file.arrayBuffer(), file.name);

			if (as_base)
				this.show(this.plain, profile);
			else if (this.options.on_file)
				this.options.on_file(file);
			else
				this.show(profile);
		} catch (e) {
			this.complain(shown_text(file.name, 80) + ": " + e.message);
		}
	}

	complain(text) {
		const line = fg_make("p", "fg-complaint", text);

		line.setAttribute("role", "alert");
		this.about.replaceChildren(line);
	}

	watch_files() {
		const zones = fg_make("div", "fg-drop"), has_files = event => [...event.dataTransfer.types].includes("Files");
		const zone = (text, as_base) => {
			const made = fg_make("div", "fg-zone", text);

			made.addEventListener("drop", event => event.dataTransfer.files[0] && this.take(event.dataTransfer.files[0], as_base));
			return made;
		};

		zones.hidden = true;
		zones.append(zone("Drop it here to look at it", false), zone("Drop it here to compare: as what was before", true));
		this.box.append(zones);
		this.listen(document, "dragenter", event => {
			zones.hidden = zones.hidden && !has_files(event);
		});
		this.listen(document, "dragover", event => has_files(event) && event.preventDefault());
		this.listen(document, "dragleave", event => {
			zones.hidden = zones.hidden || !event.relatedTarget;
		});
		this.listen(document, "drop", event => {
			zones.hidden = true;
			if (has_files(event))
				event.preventDefault();
		});
	}

	clear() {
		for (const part of this.parts || [])
			part.destroy();
		this.parts = [];
		this.flame = this.table = this.sandwich = null;
		this.body.replaceChildren();
		this.tip.hidden = true;
	}

	/* The trees anew, and what is drawn of them. */
	update() {
		const { state } = this;

		this.grow_tree({ type: this.type_index(), group: state.group, label: state.label, filters: state.filters });
		this.clear();
		for (const tab of this.tabs.children)
			tab.setAttribute("aria-pressed", String(tab.dataset.mode === state.mode));
		this.turn.setAttribute("aria-pressed", String(state.upside_down));
		this.turn.disabled = state.mode === "table" || state.mode === "callers";
		this.body.className = "fg-body fg-" + state.mode;
		this.fill_chips();
		this.say_all();
		this.fill_body(state.mode);
		this.fit();
		this.find(state.search);
		if (this.complaint)
			this.complain(this.complaint);
		this.complaint = "";
	}

	/* The tree of these, which is kept for as long as they stay: it may have millions of nodes. */
	grow_tree(what) {
		const same = JSON.stringify(what);

		if (this.tree && this.tree.profile === this.profile && this.tree_is === same)
			return;
		this.tree = this.turned = null; /* the memory is needed now */
		this.tree = tree_of(this.profile, what);
		this.tree_is = same;
	}

	drawn_tree() {
		if (!this.state.upside_down)
			return this.tree;
		return (this.turned = this.turned || tree_upside_down(this.tree));
	}

	fill_body(mode) {
		const options = {
			on_hover: (flame, node, event) => this.hover(flame, node, event),
			on_focus: (flame, node) => this.say(flame.tree, node),
			on_open: (flame, node) => this.open(flame.tree, node),
		};

		if (!this.tree.width[0]) {
			this.body.append(fg_make("p", "fg-none", fg_empty_text(this.profile, this.state.filters)));
			return;
		}
		if (mode === "table" || mode === "both" || mode === "callers") {
			this.table = new Table(this.body, { on_pick: key => this.pick(key) });
			this.table.sort.by = mode === "callers" ? "total" : "self";
			this.table.show(this.tree, this.unit(), null);
			this.parts.push(this.table);
		}
		if (mode === "flame" || mode === "both") {
			this.flame = new Flame(this.body, options);
			this.flame.show(this.drawn_tree(), this.graph_text());
			this.parts.push(this.flame);
		}
		if (mode === "callers") {
			this.sandwich = new Sandwich(this.body, options);
			this.parts.push(this.sandwich);
			this.show_callers();
		}
	}

	graph_text() {
		return "Flame graph of " + this.state.type.replace(/_/g, " ") + ". Arrow keys walk, Enter zooms, Escape goes back, o shows callers.";
	}

	/* The function in the middle: the one that was picked, else the one with most itself. */
	show_callers() {
		const { tree } = this, { self, there } = tree_sums(tree);
		let key = tree.names.indexOf(this.state.key);

		if (key < 0 || !there[key])
			key = self.reduce((most, value, i) => (there[i] && tree.example[i] !== undefined &&
				(most < 0 || Math.abs(value) > Math.abs(self[most])) ? i : most), -1);
		this.sandwich.box.hidden = key < 0;
		if (key >= 0) {
			this.sandwich.show(tree, key);
			this.say(tree, -1, key);
		}
	}

	pick(key) {
		const name = this.tree.names[key];

		if (this.state.mode === "both") {
			this.find(name, true);
		} else if (this.state.mode === "callers") {
			this.state.key = name; /* the table stays where it is */
			this.show_callers();
			this.mark_found();
			this.sandwich.box.scrollIntoView({ block: "nearest" });
		} else {
			this.change({ mode: "callers", key: name });
		}
	}

	open(tree, node) {
		this.change({ mode: "callers", key: tree.name(node) });
	}

	flames() {
		return this.flame ? [this.flame] : this.sandwich ? this.sandwich.flames() : [];
	}

	rectangles() {
		return this.flames().flatMap(flame => flame.rectangles());
	}

	/* Keys that match: part of a name, whatever its case, or a pattern between slashes. */
	matcher(text, exact) {
		const pattern = /^\/(.+)\/$/.exec(text), small = text.toLowerCase();

		if (exact)
			return name => name === text;
		try {
			const found = pattern && new RegExp(pattern[1], "i");

			return found ? name => found.test(name) : name => name.toLowerCase().includes(small);
		} catch (e) {
			return () => false;
		}
	}

	find(text, exact) {
		const match = text && this.matcher(text, exact), { tree } = this;
		const matches = match ? Uint8Array.from(tree.names, name => (match(name) ? 1 : 0)) : null;

		this.matching = matches;
		this.state.search = text;
		if (this.search.value !== text)
			this.search.value = text;
		this.mark_found();
		if (this.table && !exact)
			this.table.show(tree, this.unit(), matches);
		this.matches.textContent = "";
		if (!matches)
			return;
		const found = tree_found(tree, matches), { there } = tree_sums(tree);
		const count = matches.reduce((sum, one, key) => sum + (one && there[key]), 0);
		const of = tree.width[0] ? found.width : 0;
		this.matches.textContent = found.count ? `${percent_text(of, tree.width[0])} in ${count_text(count, "count")}` : "not found";
		this.matches.title = count_text(found.plus - found.minus, this.unit());
	}

	mark_found() {
		for (const flame of this.flames())
			flame.find(this.matching && tree_found(flame.tree, this.matching));
	}

	/* A line: its value, and its share of all. */
	value_text(value) {
		const { tree } = this, signed = this.profile.difference || tree.minus[0] > 0;

		return (signed ? signed_text(value, this.unit()) : count_text(value, this.unit())) + " (" + percent_text(value, tree.whole) + ")";
	}

	/* What is known of a node, as [what, text] pairs. */
	facts(tree, node) {
		const { profile } = this, frame = tree.frame[node], unit = this.unit(), facts = [];

		if (node && frame >= 0) {
			const several = tree.state[node] & SEVERAL, object = profile.objects[profile.frame_object[frame]];
			const place = profile.frame_place(frame);

			if (place && this.state.group !== "object")
				facts.push(["Line", (place.length > 120 ? "…" : "") + shown_text(place.slice(-120), 120) + (several ? " and others" : "")]);
			if (object)
				facts.push(["Object", shown_text(object, 200)]);
		}
		if (!tree.turned)
			facts.push(["Self", this.value_text(tree.self(node))]);
		facts.push(["Total", this.value_text(tree.total(node))]);
		if (tree.minus[0] > 0)
			facts.push([this.base ? "Now" : "Came", count_text(tree.plus[node], unit)], [this.base ? "Before" : "Went", count_text(tree.minus[node], unit)]);
		if (node && tree.state[node] & INLINED)
			facts.push(["", "inlined into its caller"]);
		return facts;
	}

	hover(flame, node, event) {
		this.tip.hidden = node < 0;
		if (node < 0)
			return;
		const list = fg_make("dl");
		for (const [what, text] of this.facts(flame.tree, node))
			list.append(fg_make("dt", "", what), fg_make("dd", "", text));
		this.tip.replaceChildren(fg_make("b", "", shown_text(flame.tree.name(node), 500)), list);
		const box = this.tip.getBoundingClientRect(), right = document.documentElement.clientWidth, below = window.innerHeight;
		const x = Math.max(4, Math.min(event.clientX + 14, right - box.width - 8));
		const y = event.clientY + 18 + box.height > below ? event.clientY - box.height - 10 : event.clientY + 18;
		this.tip.style.transform = `translate(${x}px, ${Math.max(4, y)}px)`;
	}

	/* The line above the graph, and what a screen reader says. */
	say(tree, node, key) {
		const name = node < 0 ? tree.names[key] : tree.name(node), sums = tree_sums(this.tree);
		const facts = node < 0 ? [["Self", this.value_text(sums.self[key])], ["Total", this.value_text(sums.total[key])]]
			: this.facts(tree, node);
		const text = fg_make("p", "fg-facts");

		if (!node) {
			this.say_all();
		} else {
			text.append(fg_make("b", "", shown_text(name, 160)));
			for (const [what, value] of facts)
				text.append(fg_make("span", "", what === "Object" ? base_name(value) : what === "Line" ? value : (what + " " + value).trim()));
			const actions = fg_make("div", "fg-actions");

			actions.append(...this.actions(tree, node, name, key));
			this.about.replaceChildren(text, actions);
		}
		this.live.textContent = shown_text(name, 160) + ", " + facts.map(([what, value]) => what + " " + value).join(", ");
	}

	actions(tree, node, name, key) {
		const made = [], { group } = this.state, frame = node < 0 ? tree.example[key] : tree.frame[node];
		const zoomed = this.flame && this.flame.root > 0;

		if (frame >= 0 && node !== 0) {
			if (this.state.mode !== "callers")
				made.push(fg_button("Callers", () => this.change({ mode: "callers", key: name })));
			const what = group === "object" ? "object" : "function";
			const value = group === "object" ? this.profile.objects[this.profile.frame_object[frame]] : this.profile.frame_name(frame);
			made.push(fg_button("Only this", () => this.filter({ what, value, only: true })),
				fg_button("Without", () => this.filter({ what, value, only: false })));
		}
		if (zoomed)
			made.push(fg_button("Zoom out", () => this.flame.zoom(0)));
		return made;
	}

	say_all() {
		const { tree, profile } = this, { name, duration_ns, lost, truncated, difference } = profile, type = this.type_index();
		const text = fg_make("p", "fg-facts"), unit = this.unit();
		const say = line => text.append(fg_make("span", "", line));

		text.append(fg_make("b", "", shown_text(name || "profile", 80)));
		if (difference) {
			const sum = p => p.values[p.type_of(this.state.type)].reduce((all, value) => all + value, 0);
			const now = sum(difference.now), before = sum(difference.base);

			say(`${count_text(now, unit)} now`);
			say(`${count_text(before, unit)} before`);
			say(signed_text(now - before, unit) + (before > 0 ? ` (${percent_text(now - before, before)})` : ""));
		} else {
			say(tree.minus[0] > 0 ? this.value_text(tree.total(0)) : count_text(profile.total(type), unit) + " in total");
		}
		if (Math.abs(tree.plus[0] + tree.minus[0] - profile.total(type)) > 0.001 * profile.total(type))
			say(this.value_text(tree.total(0)) + " shown");
		if (duration_ns)
			say("in " + count_text(duration_ns, "nanoseconds"));
		if (lost)
			say(count_text(lost, "count") + " samples lost");
		if (truncated)
			say(count_text(truncated, "count") + " stacks cut off");
		if (difference || tree.minus[0] > 0) {
			text.append(fg_make("span", "fg-key fg-key-grew", "grew"), fg_make("span", "fg-key fg-key-shrank", "shrank"));
		}
		this.about.replaceChildren(text);
	}

	fill_chips() {
		const { filters } = this.state;

		this.chips.hidden = !filters.length;
		this.chips.replaceChildren(...filters.map((filter, i) => {
			const what = filter.what === "label" ? filter.key + " = " + filter.value : filter.value;
			const text = (filter.only ? "only " : "without ") + shown_text(what, 80);
			const chip = fg_button(text + " ×", () => this.change({ filters: filters.filter((f, j) => j !== i) }), "fg-chip");

			chip.setAttribute("aria-label", "Take the filter away: " + text);
			return chip;
		}));
	}

	/* Labels and their shares, each to be the only one or to be left out. */
	show_labels(open) {
		this.labels.hidden = !open;
		this.more.setAttribute("aria-expanded", String(open));
		if (!open)
			return;
		this.labels.replaceChildren(...this.profile.labels(this.type_index()).map(([key, values]) => {
			const part = fg_make("div", "fg-label"), list = fg_make("ul");

			part.append(fg_make("h3", "", shown_text(key, 80)), list);
			for (const [value, sum] of values.slice(0, LABELS_MOST)) {
				const item = fg_make("li"), filter = only => () => this.filter({ what: "label", key, value, only });
				const [one, none] = [fg_button("only", filter(true)), fg_button("without", filter(false))];

				one.setAttribute("aria-label", "Only " + shown_text(value, 80));
				none.setAttribute("aria-label", "Without " + shown_text(value, 80));
				item.append(fg_make("span", "fg-value", shown_text(value, 120)), fg_make("span", "fg-quiet", this.value_text(sum)), one, none);
				list.append(item);
			}
			if (values.length > LABELS_MOST)
				list.append(fg_make("li", "fg-quiet", `and ${count_text(values.length - LABELS_MOST, "count")} more`));
			return part;
		}));
	}

	/* The height that the window has left. */
	fit() {
		const top = this.body.getBoundingClientRect().top + window.scrollY;

		this.body.style.setProperty("--fg-height", Math.max(320, window.innerHeight - top - 16) + "px");
		this.flames().forEach(flame => flame.resize());
	}

	press(event) {
		const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName || "");

		if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
			this.search.focus();
			event.preventDefault();
		} else if (event.key === "Escape" && event.target === this.search) {
			this.find("");
		}
	}
}

function profile_view(container, options) {
	return new ProfileView(container, options || {});
}
