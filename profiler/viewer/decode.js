/*
 * decode.js - bytes of a profile to the one form in memory: pprof, compressed or not, and the
 * JSON form of this library.
 *
 *	profile_decode(bytes, name) -> Promise of a profile, see profile.js
 *
 * What a stranger would get wrong: a location of pprof lists its lines innermost first, and a
 * sample its locations leaf first; here all stacks are root first.  What lies in a location before
 * its last line is inlined.  Frames that the profile wants dropped (drop_frames) are dropped as
 * go tool pprof does it, so that figures agree.  A file is a stranger's: each index is looked at
 * before it is used.
 * Tests: tests/viewer/figures.t.
 */
const BAD_PROFILE = "This is no profile: neither pprof nor the JSON form of one.";
const TOO_LARGE = "This file is too large to be looked at here.";
const MOST_BYTES = 1 << 30;

/* A reader of protobuf's wire form. */
class Wire {
	constructor(bytes, from, to) {
		this.bytes = bytes;
		this.at = from;
		this.end = to;
	}

	more() {
		return this.at < this.end;
	}

	/* 64 bits as a number, the upper half signed. */
	varint() {
		const bytes = this.bytes;
		let byte = bytes[this.at++], low = byte & 127, high = 0;

		for (let shift = 7; byte > 127 && shift < 70; shift += 7) {
			byte = bytes[this.at++];
			if (shift < 28) {
				low |= (byte & 127) << shift;
			} else if (shift === 28) {
				low |= (byte & 127) << 28;
				high = (byte & 127) >>> 4;
			} else {
				high |= shift < 63 ? (byte & 127) << (shift - 32) : (byte & 1) << 31;
			}
		}
		if (!(this.at <= this.end) || byte > 127)
			throw new Error(BAD_PROFILE);
		return high * 4294967296 + (low >>> 0);
	}

	/* The next field's number; its value follows: number() or part(). */
	field() {
		const tag = this.varint();

		this.kind = tag & 7;
		return Math.floor(tag / 8);
	}

	part() {
		const length = this.varint(), from = this.at;

		if (this.kind !== 2 || !(length >= 0 && from + length <= this.end))
			throw new Error(BAD_PROFILE);
		this.at = from + length;
		return new Wire(this.bytes, from, this.at);
	}

	skip() {
		if (this.kind === 0)
			this.varint();
		else if (this.kind === 2)
			this.part();
		else if (this.kind === 1 || this.kind === 5)
			this.at += this.kind === 1 ? 8 : 4;
		else
			throw new Error(BAD_PROFILE);
	}

	/* Packed or not, onto the list. */
	numbers(list) {
		if (this.kind === 0) {
			list.push(this.varint());
			return;
		}
		const part = this.part();
		while (part.more())
			list.push(part.varint());
	}

	/* A message of numbers: [, field 1, field 2, ...]; others are passed over. */
	record(most) {
		const part = this.part(), found = new Array(most + 1).fill(0);

		while (part.more()) {
			const field = part.field();

			if (field <= most && part.kind === 0)
				found[field] = part.varint();
			else
				part.skip();
		}
		return found;
	}
}

/* The tables of a pprof file, as they stand in it. */
function wire_tables(bytes) {
	const t = { types: [], samples: [], mappings: [], locations: [], functions: [], strings: [], comments: [], period: [0, 0, 0] };
	const wire = new Wire(bytes, 0, bytes.length), text = new TextDecoder();
	const single = { 7: "drop", 8: "keep", 9: "time", 10: "duration", 12: "every", 14: "usual" };

	while (wire.more()) {
		const field = wire.field();

		if (field === 1)
			t.types.push(wire.record(2));
		else if (field === 2)
			t.samples.push(wire.part());
		else if (field === 3)
			t.mappings.push(wire.record(5));
		else if (field === 4)
			t.locations.push(wire_location(wire.part()));
		else if (field === 5)
			t.functions.push(wire.record(4));
		else if (field === 6)
			t.strings.push(wire_text(wire.part(), text));
		else if (field === 11)
			t.period = wire.record(2);
		else if (field === 13)
			wire.numbers(t.comments);
		else if (single[field] && wire.kind === 0)
			t[single[field]] = wire.varint();
		else
			wire.skip();
	}
	if (!t.types.length || !t.strings.length)
		throw new Error(BAD_PROFILE);
	return t;
}

function wire_text(part, decoder) {
	return decoder.decode(part.bytes.subarray(part.at, part.end));
}

function wire_location(part) {
	const location = { id: 0, mapping: 0, lines: [] };

	while (part.more()) {
		const field = part.field();

		if (field === 1)
			location.id = part.varint();
		else if (field === 2)
			location.mapping = part.varint();
		else if (field === 4)
			location.lines.push(part.record(2));
		else
			part.skip();
	}
	return location;
}

/* Equal things once: their index. */
class Pool {
	constructor() {
		this.index = new Map();
		this.list = [];
	}

	of(key, thing) {
		let i = this.index.get(key);

		if (i === undefined) {
			i = this.list.length;
			this.index.set(key, i);
			this.list.push(thing);
		}
		return i;
	}
}

/* The frames of each location, root first, by the location's id. */
function wire_frames(t, builder) {
	const string = i => t.strings[i] || "";
	const objects = new Map(t.mappings.map(m => [m[1], string(m[5])]));
	const functions = new Map(t.functions.map(f => [f[1], [string(f[2]) || string(f[3]), string(f[4])]]));
	const frames = new Map();

	for (const { id, mapping, lines } of t.locations) {
		const object = objects.get(mapping) || "";
		const list = lines.length ? lines : [[0, 0, 0]];

		frames.set(id, list.map(([, f, line], i) => {
			const [name, file] = functions.get(f) || ["", ""];

			return builder.frame(name, file, line, object, i < list.length - 1);
		}).reverse());
	}
	return frames;
}

/* A name as drop_frames means it: without parameters. */
function simple_name(name) {
	for (const [i, bracket] of [...name.matchAll(/\(anonymous namespace\)|operator\(\)|\(/g)].map(m => [m.index, m[0]]))
		if (bracket === "(")
			return name.slice(0, i).replace(/^\./, "");
	return name.replace(/^\./, "");
}

/*
 * What drop_frames leaves of a location's frames: all of them where none is meant, else those
 * outside of the outermost that is.
 */
function kept_frames(t, frames, builder) {
	const drop = pattern_of(t.strings[t.drop]), keep = pattern_of(t.strings[t.keep]), kept = new Map(), known = new Map();
	const meant = frame => {
		const name = simple_name(builder.name(frame));

		if (!known.has(name))
			known.set(name, name && drop(name) && !(keep && keep(name)));
		return known.get(name);
	};

	if (drop)
		for (const [id, list] of frames) {
			const first = list.findIndex(meant);

			if (first >= 0)
				kept.set(id, list.slice(0, first));
		}
	return kept;
}

function wire_label(t, part) {
	const [, key, string, number, unit] = part.record(4);
	const name = t.strings[key] || "", of = t.strings[unit] || "";

	return [name, string ? t.strings[string] || "" : String(number) + (of && of !== name ? " " + of : "")];
}

function wire_sample(t, part, frames, kept, builder) {
	const ids = [], values = [], labels = [];
	let node = -1, user = false;

	while (part.more()) {
		const field = part.field();

		if (field === 1)
			part.numbers(ids);
		else if (field === 2)
			part.numbers(values);
		else if (field === 3)
			labels.push(wire_label(t, part));
		else
			part.skip();
	}
	for (let i = ids.length - 1; i >= 0; i--) {
		const less = kept.get(ids[i]), list = less && (user || less.length) ? less : frames.get(ids[i]);

		if (!list)
			throw new Error(BAD_PROFILE);
		for (const frame of list)
			node = builder.node(node, frame);
		if (user && less)
			break;
		user = user || !less;
	}
	builder.sample(node, labels, values);
}

function profile_from_pprof(bytes, name) {
	const t = wire_tables(bytes), string = i => t.strings[i] || "";
	const types = t.types.map(([, type, unit]) => [string(type), string(unit)]);
	const builder = new ProfileBuilder(types);
	const frames = wire_frames(t, builder), kept = kept_frames(t, frames, builder);
	const usual = types.findIndex(type => type[0] === string(t.usual));
	const comments = t.comments.map(string);
	const number_in = begin => Number((comments.find(c => c.startsWith(begin)) || "").slice(begin.length)) || 0;

	for (const part of t.samples)
		wire_sample(t, part, frames, kept, builder);
	return builder.done({
		name, program: base_name(string(t.mappings.length ? t.mappings[0][5] : 0)), comments,
		time_ns: t.time || 0, duration_ns: t.duration || 0, default: usual < 0 ? types.length - 1 : usual,
		lost: number_in("lost samples: "), truncated: number_in("truncated stacks: "),
	});
}

function index_in(list, i) {
	if (!(Number.isInteger(i) && i >= 0 && i < list.length))
		throw new Error(BAD_PROFILE);
	return list[i];
}

function profile_from_json(json, name) {
	if (!json || json.version !== 1 || !Array.isArray(json.types) || !json.types.length || !Array.isArray(json.samples))
		throw new Error(BAD_PROFILE);
	const string = i => String(index_in(json.strings, i)), width = 2 + json.types.length;
	const builder = new ProfileBuilder(json.types.map(([type, unit]) => [String(type), String(unit)]));
	const functions = json.functions.map(([f, file]) => [string(f), string(file)]);
	const labels = json.labels.map(set => set.map(([key, value]) => [string(key), string(value)]));
	const frames = [], nodes = [];

	for (let i = 0; i < json.frames.length; i += 4) {
		const [f, line, object, inlined] = json.frames.slice(i, i + 4);
		const [of, file] = f < 0 ? ["", ""] : index_in(functions, f);

		frames.push(builder.frame(of, file, line, object < 0 ? "" : string(index_in(json.objects, object)), !!inlined));
	}
	for (let i = 0; i < json.nodes.length; i += 2) {
		const parent = json.nodes[i];

		nodes.push(builder.node(parent < 0 ? -1 : index_in(nodes, parent), index_in(frames, json.nodes[i + 1])));
	}
	for (let i = 0; i < json.samples.length; i += width) {
		const values = json.samples.slice(i + 2, i + width).map(Number), node = json.samples[i];

		builder.sample(node < 0 ? -1 : index_in(nodes, node), index_in(labels, json.samples[i + 1]), values);
	}
	return builder.done({
		name: String(name || json.name || ""), program: base_name(String(json.program || "")), comments: (json.comments || []).map(String),
		time_ns: Number(json.time_ns) || 0, duration_ns: Number(json.duration_ns) || 0, default: Number(json.default) || 0,
		lost: Number(json.lost) || 0, truncated: Number(json.truncated) || 0,
	});
}

/* Unpacked by the browser; a file that unpacks to more than a gigabyte is refused. */
async function gunzip(bytes) {
	const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader(), parts = [];
	let size = 0;

	for (;;) {
		const { done, value } = await reader.read();

		if (done)
			break;
		size += value.length;
		if (size > MOST_BYTES)
			throw new Error(TOO_LARGE);
		parts.push(value);
	}
	const all = new Uint8Array(size);
	size = 0;
	for (const part of parts) {
		all.set(part, size);
		size += part.length;
	}
	return all;
}

async function profile_decode(data, name) {
	let bytes = data instanceof Uint8Array ? data : new Uint8Array(data);

	try {
		/* Twice at most: there are files that unpack to themselves. */
		for (let times = 0; times < 2 && bytes[0] === 0x1f && bytes[1] === 0x8b; times++)
			bytes = await gunzip(bytes);
		return bytes[0] === 0x7b ? profile_from_json(JSON.parse(new TextDecoder().decode(bytes)), name)
			: profile_from_pprof(bytes, name);
	} catch (e) {
		/* Cut off, or something else altogether. */
		throw [TOO_LARGE, BAD_PROFILE].includes(e.message) ? e : new Error(BAD_PROFILE);
	}
}

function bytes_of_base64(text) {
	const plain = atob(text.replace(/\s+/g, "")), bytes = new Uint8Array(plain.length);

	for (let i = 0; i < plain.length; i++)
		bytes[i] = plain.charCodeAt(i);
	return bytes;
}
