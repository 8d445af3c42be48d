/*
 * profile.js - a profile in memory: what it is made of, its total, and the difference of two.
 *
 * Stacks are a prefix tree in typed arrays, root first: node_parent (-1: a root; a parent stands
 * before its children) and node_frame.  A sample is a node, a set of labels and a value of each
 * type.  50,000 stacks 128 deep are millions of nodes, and no object each.
 *
 * What a stranger would get wrong: the difference of two profiles is a profile whose base has
 * negative values, as with go tool pprof -base; and a total is the sum of what values are without
 * their sign, so that a delta which gave back as much as it took has one.
 * Tests: tests/viewer/figures.t.
 */

/* Nodes of a tree by parent and key, both small numbers. */
class NodeTable {
	constructor(room) {
		let slots = 1024;

		while (slots < 2 * room)
			slots *= 2;
		this.count = 0;
		this.parent = new Int32Array(slots / 2);
		this.key = new Int32Array(slots / 2);
		this.slots = new Int32Array(slots);
	}

	slot(parent, key) {
		const mask = this.slots.length - 1;
		let h = Math.imul(parent + 1, 0x9e3779b1) ^ Math.imul(key + 1, 0x85ebca6b);

		for (h ^= h >>> 15; ; h++) {
			const node = this.slots[h & mask] - 1;

			if (node < 0 || (this.parent[node] === parent && this.key[node] === key))
				return h & mask;
		}
	}

	/* The node, made if it is new: then its number is the count of before. */
	of(parent, key) {
		const slot = this.slot(parent, key);

		if (this.slots[slot])
			return this.slots[slot] - 1;
		this.parent[this.count] = parent;
		this.key[this.count] = key;
		this.slots[slot] = ++this.count;
		if (this.count === this.parent.length)
			this.grow();
		return this.count - 1;
	}

	grow() {
		const { parent, key } = this;

		this.slots = new Int32Array(2 * this.slots.length);
		this.parent = new Int32Array(2 * parent.length);
		this.key = new Int32Array(2 * key.length);
		this.parent.set(parent);
		this.key.set(key);
		for (let i = 0; i < this.count; i++)
			this.slots[this.slot(parent[i], key[i])] = i + 1;
	}
}

/* A column of numbers that grows. */
class Column {
	constructor(Kind) {
		this.array = new Kind(1024);
		this.count = 0;
	}

	push(value) {
		if (this.count === this.array.length) {
			const less = this.array;

			this.array = new less.constructor(2 * less.length);
			this.array.set(less);
		}
		this.array[this.count++] = value;
	}

	done() {
		return this.array.slice(0, this.count);
	}
}

class ProfileBuilder {
	constructor(types) {
		this.types = types;
		this.functions = new Pool();
		this.objects = new Pool();
		this.frames = new Pool();
		this.label_sets = new Pool();
		this.label_sets.of("[]", []);
		this.nodes = new NodeTable(4096);
		this.sample_node = new Column(Int32Array);
		this.sample_labels = new Column(Int32Array);
		this.values = types.map(() => new Column(Float64Array));
	}

	frame(name, file, line, object, inlined) {
		const f = this.functions.of(name + "\0" + file, { name, file });
		const o = this.objects.of(object, object);

		return this.frames.of(f + "," + line + "," + o + "," + (inlined ? 1 : 0), [f, line, o, inlined ? 1 : 0]);
	}

	name(frame) {
		return this.functions.list[this.frames.list[frame][0]].name;
	}

	node(parent, frame) {
		return this.nodes.of(parent, frame);
	}

	sample(node, labels, values) {
		const sorted = labels.slice().sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : 1));

		this.sample_node.push(node);
		this.sample_labels.push(this.label_sets.of(JSON.stringify(sorted), sorted));
		this.values.forEach((column, i) => column.push(values[i] || 0));
	}

	done(about) {
		const column = i => Int32Array.from(this.frames.list, frame => frame[i]);

		return new Profile(Object.assign(about, {
			types: this.types,
			functions: this.functions.list, objects: this.objects.list, label_sets: this.label_sets.list,
			frame_function: column(0), frame_line: column(1), frame_object: column(2), frame_inlined: column(3),
			node_parent: this.nodes.parent.slice(0, this.nodes.count), node_frame: this.nodes.key.slice(0, this.nodes.count),
			sample_node: this.sample_node.done(), sample_labels: this.sample_labels.done(),
			values: this.values.map(values => values.done()),
		}));
	}
}

class Profile {
	constructor(parts) {
		Object.assign(this, parts);
		if (!(this.default >= 0 && this.default < this.types.length))
			this.default = this.types.length - 1;
	}

	total(type) {
		return this.values[type].reduce((sum, value) => sum + Math.abs(value), 0);
	}

	type_of(name) {
		const i = this.types.findIndex(type => type[0] === name);

		return i < 0 ? this.default : i;
	}

	/* The name of a frame whose function is unknown is its object, as pprof has it. */
	frame_name(frame) {
		const object = this.objects[this.frame_object[frame]];

		return this.functions[this.frame_function[frame]].name || (object ? "[" + base_name(object) + "]" : "<unknown>");
	}

	frame_place(frame) {
		const { file } = this.functions[this.frame_function[frame]], line = this.frame_line[frame];

		return file && line ? file + ":" + line : file;
	}

	/* [key, [[value, sum], ...] largest first] of each label that some sample has. */
	labels(type) {
		const sums = new Map(), values = this.values[type];

		this.sample_labels.forEach((set, i) => {
			for (const [key, value] of this.label_sets[set]) {
				const of = sums.get(key) || new Map();

				sums.set(key, of.set(value, (of.get(value) || 0) + values[i]));
			}
		});
		return [...sums].sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([key, of]) =>
			[key, [...of].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]) || (a[0] < b[0] ? -1 : 1))]);
	}
}

/* Adds a profile's samples, times sign; only its types that the builder knows by name and unit. */
function profile_add(builder, profile, sign) {
	const columns = builder.types.map(([name, unit]) =>
		profile.values[profile.types.findIndex(type => type[0] === name && type[1] === unit)]);
	const frames = Array.from(profile.frame_function, (f, i) => {
		const { name, file } = profile.functions[f];

		return builder.frame(name, file, profile.frame_line[i], profile.objects[profile.frame_object[i]], profile.frame_inlined[i]);
	});
	const nodes = new Int32Array(profile.node_parent.length);

	for (let i = 0; i < nodes.length; i++)
		nodes[i] = builder.node(profile.node_parent[i] < 0 ? -1 : nodes[profile.node_parent[i]], frames[profile.node_frame[i]]);
	for (let i = 0; i < profile.sample_node.length; i++)
		builder.sample(profile.sample_node[i] < 0 ? -1 : nodes[profile.sample_node[i]],
			profile.label_sets[profile.sample_labels[i]], columns.map(values => sign * values[i]));
}

/* What has come since base, and what has gone: values of both kinds, in the types that both have. */
function profile_difference(now, base) {
	const types = now.types.filter(type => base.types.some(other => other[0] === type[0] && other[1] === type[1]));

	if (!types.length)
		throw new Error("These two have nothing in common to be compared: " + now.types.map(type => type[0]).join(", ") +
			" and " + base.types.map(type => type[0]).join(", ") + ".");
	const builder = new ProfileBuilder(types), usual = now.types[now.default][0];

	profile_add(builder, now, 1);
	profile_add(builder, base, -1);
	return builder.done({
		name: now.name, program: now.program, comments: now.comments, time_ns: now.time_ns, duration_ns: now.duration_ns,
		default: types.findIndex(type => type[0] === usual), lost: now.lost + base.lost, truncated: now.truncated + base.truncated,
		difference: { now, base },
	});
}

/*
 * What shares are of: all of a profile; of a difference, all that the base had, as -diff_base has it,
 * also where a tool has written the difference into a file.
 */
function profile_whole(profile, type) {
	const name = profile.types[type][0], { difference, label_sets } = profile;
	const based = label_sets.map(set => set.some(([key, value]) => key === "pprof::base" && value === "true"));
	const base = difference ? difference.base.total(difference.base.type_of(name))
		: profile.values[type].reduce((sum, value, i) => sum + (based[profile.sample_labels[i]] ? Math.abs(value) : 0), 0);

	return base || profile.total(type);
}
