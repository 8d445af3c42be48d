/*
 * tree.js - the trees that are drawn: a profile's stacks of one type, by function, line, object or
 * label, filtered, upside down, or around one function; and the sums of a table.
 *
 *	tree_of(profile, {type, group, label, filters}) -> Tree
 *	tree_upside_down(tree), tree_callers(tree, key), tree_callees(tree, key) -> Tree
 *	tree_sums(tree) -> what each key has itself and in total
 *	tree_found(tree, matches) -> the nodes that match, and their part of all
 *
 * Each node has what it has itself and in total, twice: what came (plus) and what went (minus), of
 * which only a difference or a delta has both.  Its width is the larger of the two, summed over
 * what lies below, so that what has gone keeps a place and children never are wider than their
 * parent.
 *
 * What a stranger would get wrong: a function that calls itself counts once in its total, and what
 * is found counts once for each stack: the outermost counts.
 * Tests: tests/viewer/figures.t.
 */
class Tree {
	constructor(names, room) {
		this.names = names; /* of the keys */
		this.table = new NodeTable(room);
		this.frame = new Column(Int32Array);
		this.state = new Column(Uint8Array);
		this.plus = new Column(Float64Array);
		this.minus = new Column(Float64Array);
		this.node(-1, 0, -1, 0); /* the root: all of it */
	}

	/* The child of a node by its key; frame: one of those that it stands for. */
	node(parent, key, frame, inlined) {
		const node = this.table.of(parent, key);

		if (node === this.frame.count) {
			this.frame.push(frame);
			this.state.push(inlined ? INLINED : 0);
			this.plus.push(0);
			this.minus.push(0);
		} else {
			if (!inlined)
				this.state.array[node] &= ~INLINED;
			if (this.frame.array[node] !== frame)
				this.state.array[node] |= SEVERAL;
		}
		return node;
	}

	add(node, value) {
		if (value < 0)
			this.minus.array[node] -= value;
		else
			this.plus.array[node] += value;
	}

	/* Sums, once all is added. */
	done() {
		const n = this.count = this.table.count;

		this.parent = this.table.parent.subarray(0, n);
		this.key = this.table.key.subarray(0, n);
		this.table.slots = null;
		this.self_plus = this.plus.done();
		this.self_minus = this.minus.done();
		this.plus = this.self_plus.slice();
		this.minus = this.self_minus.slice();
		this.width = new Float64Array(n);
		this.first = new Int32Array(n).fill(-1);
		this.next = new Int32Array(n).fill(-1);
		for (let i = n - 1; i >= 0; i--) {
			const up = this.parent[i];

			this.width[i] += Math.max(this.self_plus[i], this.self_minus[i]);
			if (up < 0)
				continue;
			this.width[up] += this.width[i];
			this.plus[up] += this.plus[i];
			this.minus[up] += this.minus[i];
			this.next[i] = this.first[up];
			this.first[up] = i;
		}
		this.frame = this.frame.done();
		this.state = this.state.done();
		return this;
	}

	total(node) {
		return this.plus[node] - this.minus[node];
	}

	self(node) {
		return this.self_plus[node] - this.self_minus[node];
	}

	name(node) {
		return node ? this.names[this.key[node]] : "all";
	}

	/* The children that are at least so wide, widest first, and how wide the others are together. */
	children(node, least) {
		const wide = [];
		let rest = 0;

		for (let i = this.first[node]; i >= 0; i = this.next[i]) {
			if (this.width[i] >= least && this.width[i] > 0)
				wide.push(i);
			else
				rest += this.width[i];
		}
		wide.sort((a, b) => this.width[b] - this.width[a] || (this.name(a) < this.name(b) ? -1 : 1));
		return { wide, rest };
	}
}
const INLINED = 1, SEVERAL = 2;

/* How frames are told apart: the key of each frame, the names of the keys, and an example of each. */
function tree_keys(profile, group) {
	const names = new Pool(), example = [], alike = new Map();

	for (const object of profile.objects)
		alike.set(base_name(object), (alike.get(base_name(object)) || 0) + 1);
	const key = Int32Array.from(profile.frame_function, (f, frame) => {
		const object = profile.objects[profile.frame_object[frame]], line = profile.frame_line[frame];
		const { name, file } = profile.functions[f];
		let text = profile.frame_name(frame);

		if (group === "object")
			text = object || "<unknown>";
		else if (group === "line" && name && (file || line))
			text += " " + (line ? file + ":" + line : file);
		/* Two objects of one name are told apart by their folders. */
		const k = names.of(text, group === "object" && alike.get(base_name(text)) === 1 ? base_name(text) : text);
		if (k === example.length)
			example.push(frame);
		return k;
	});

	return { key, names: names.list, example };
}

/* Where a thread begins, below what the C library has there. */
const BELOW_THREADS = /^(_?start|_?_?clone3?|start_thread|__libc_start_(main|call_main).*|\[.*\]|<unknown>)$/;

function tree_thread(profile, node, set) {
	const label = profile.label_sets[set].find(([key]) => /^thread([_ ]?name)?$/.test(key));
	let name = "";

	if (label)
		return label[1];
	for (; node >= 0; node = profile.node_parent[node]) {
		const of = profile.frame_name(profile.node_frame[node]);

		if (!BELOW_THREADS.test(of) || !name)
			name = of;
	}
	return name || "<unknown>";
}

/* Of each sample whether the filters leave it: {what: "function"|"object"|"label", key, value, only}. */
function tree_wanted(profile, filters) {
	const wanted = new Uint8Array(profile.sample_node.length).fill(1);

	for (const filter of filters) {
		const has = filter.what === "label" ? label_filter(profile, filter) : node_filter(profile, filter);

		for (let i = 0; i < wanted.length; i++)
			if (!has(i) === filter.only)
				wanted[i] = 0;
	}
	return wanted;
}

function label_filter(profile, { key, value }) {
	const sets = profile.label_sets.map(set => set.some(label => label[0] === key && label[1] === value));

	return i => sets[profile.sample_labels[i]];
}

function node_filter(profile, { what, value }) {
	const meant = Array.from(profile.frame_function, (f, frame) => (what === "object"
		? profile.objects[profile.frame_object[frame]] === value : profile.frame_name(frame) === value));
	const below = new Uint8Array(profile.node_parent.length);

	for (let i = 0; i < below.length; i++)
		below[i] = meant[profile.node_frame[i]] || (profile.node_parent[i] >= 0 && below[profile.node_parent[i]]) ? 1 : 0;
	return i => profile.sample_node[i] >= 0 && below[profile.sample_node[i]] === 1;
}

/* Each node of the profile to one of the tree; where a sample's labels decide, only below its group. */
function tree_nodes(tree, profile, keys, root, group) {
	const nodes = new Int32Array(profile.node_parent.length);
	const { node_parent: parent, node_frame: frame, frame_inlined: inlined } = profile;

	for (let i = 0; i < nodes.length; i++) {
		const up = parent[i] < 0 ? root : nodes[parent[i]], key = keys.key[frame[i]];

		nodes[i] = group === "object" && up && tree.table.key[up] === key ? up : tree.node(up, key, frame[i], inlined[frame[i]]);
	}
	return nodes;
}

/* The stack of one sample below root. */
function tree_stack(tree, profile, keys, root, sample, path) {
	let depth = 0, node = root;

	for (let i = profile.sample_node[sample]; i >= 0; i = profile.node_parent[i])
		path[depth++] = profile.node_frame[i];
	while (depth--)
		node = tree.node(node, keys.key[path[depth]], path[depth], profile.frame_inlined[path[depth]]);
	return node;
}

function tree_of(profile, { type, group, label, filters }) {
	const keys = tree_keys(profile, group), names = keys.names.slice();
	const tree = new Tree(names, group === "thread" || group === "label" ? 4096 : profile.node_parent.length);
	const wanted = tree_wanted(profile, filters), values = profile.values[type], groups = new Map(), path = [];
	const above = group === "thread" || group === "label";
	const nodes = above ? null : tree_nodes(tree, profile, keys, 0, group);
	const group_of = i => {
		const set = profile.sample_labels[i], found = profile.label_sets[set].filter(of => of[0] === label);
		const name = group === "thread" ? tree_thread(profile, profile.sample_node[i], set)
			: found.length ? label + "=" + found.map(of => of[1]).join(",") : "without " + label;

		if (!groups.has(name)) {
			groups.set(name, tree.node(0, names.length, -1, 0));
			names.push(name);
		}
		return groups.get(name);
	};

	for (let i = 0; i < wanted.length; i++)
		if (wanted[i] && values[i] && profile.sample_node[i] >= 0)
			tree.add(above ? tree_stack(tree, profile, keys, group_of(i), i, path) : nodes[profile.sample_node[i]], values[i]);
	tree.done();
	tree.profile = profile;
	tree.example = keys.example;
	tree.whole = profile_whole(profile, type);
	return tree;
}

/* The same names and whole.  turned: its stacks begin with the callee, so what a node has itself is the outermost caller's. */
function tree_like(tree, turned) {
	const other = new Tree(tree.names, 4096);

	return Object.assign(other, { profile: tree.profile, example: tree.example, whole: tree.whole, turned });
}

/* The stack of a node onto another tree's root, innermost first. */
function tree_climb(to, tree, from, plus, minus) {
	let node = 0;

	for (let i = from; i > 0; i = tree.parent[i]) {
		node = to.node(node, tree.key[i], tree.frame[i], tree.state[i] & INLINED);
		to.state.array[node] |= tree.state[i] & SEVERAL;
	}
	to.add(node, plus);
	to.add(node, -minus);
}

function tree_upside_down(tree) {
	const to = tree_like(tree, true);

	for (let i = 1; i < tree.count; i++)
		if (tree.self_plus[i] || tree.self_minus[i])
			tree_climb(to, tree, i, tree.self_plus[i], tree.self_minus[i]);
	return to.done();
}

/* 1 for each node which no other of the same key lies above. */
function tree_outermost(tree) {
	if (tree.outermost)
		return tree.outermost;
	const outermost = new Uint8Array(tree.count), open = new Uint8Array(tree.names.length);
	let node = tree.first[0];

	while (node > 0) {
		if (!open[tree.key[node]])
			outermost[node] = open[tree.key[node]] = 1;
		if (tree.first[node] >= 0) {
			node = tree.first[node];
			continue;
		}
		for (;;) {
			if (outermost[node])
				open[tree.key[node]] = 0;
			if (tree.next[node] >= 0 || tree.parent[node] <= 0)
				break;
			node = tree.parent[node];
		}
		node = tree.next[node];
	}
	return (tree.outermost = outermost);
}

/* Those who call what has the key: its stacks from it outwards. */
function tree_callers(tree, key) {
	const outermost = tree_outermost(tree), to = tree_like(tree, true);

	for (let i = 1; i < tree.count; i++)
		if (tree.key[i] === key && outermost[i])
			tree_climb(to, tree, i, tree.plus[i], tree.minus[i]);
	return to.done();
}

/* What it calls: all that lies below it, together. */
function tree_callees(tree, key) {
	const outermost = tree_outermost(tree), to = tree_like(tree, false), place = new Int32Array(tree.count);

	for (let i = 1; i < tree.count; i++) {
		const up = place[tree.parent[i]];

		if (!up && !(tree.key[i] === key && outermost[i]))
			continue;
		place[i] = to.node(up, tree.key[i], tree.frame[i], tree.state[i] & INLINED);
		to.state.array[place[i]] |= tree.state[i] & SEVERAL;
		to.add(place[i], tree.self_plus[i]);
		to.add(place[i], -tree.self_minus[i]);
	}
	return to.done();
}

/* What each key has: itself, and in total, with its sign. */
function tree_sums(tree) {
	if (tree.sums)
		return tree.sums;
	const outermost = tree_outermost(tree), self = new Float64Array(tree.names.length), total = new Float64Array(tree.names.length);
	const there = new Uint8Array(tree.names.length);

	for (let i = 1; i < tree.count; i++) {
		self[tree.key[i]] += tree.self(i);
		if (outermost[i])
			total[tree.key[i]] += tree.total(i);
		if (tree.width[i] > 0)
			there[tree.key[i]] = 1;
	}
	return (tree.sums = { self, total, there });
}

/* matches: 1 for each key that is meant.  hit: 1 for a node that is. */
function tree_found(tree, matches) {
	const hit = new Uint8Array(tree.count), inside = new Uint8Array(tree.count);
	let plus = 0, minus = 0, width = 0, count = 0;

	for (let i = 1; i < tree.count; i++) {
		inside[i] = inside[tree.parent[i]];
		if (!matches[tree.key[i]])
			continue;
		hit[i] = 1;
		count++;
		if (!inside[i]) {
			inside[i] = 1;
			plus += tree.plus[i];
			minus += tree.minus[i];
			width += tree.width[i];
		}
	}
	return { hit, count, plus, minus, width };
}
