/*
 * color.js - what colour a frame has: calm, one hue for each object, red and blue in a difference.
 *
 * The objects with most of the profile get hues that are far apart; C's library and the kernel are
 * grey, so that what is the program's own stands out.  A name moves the lightness a little, so that
 * neighbours can be told apart.  In a difference red grew, blue shrank, and grey stayed.
 * Tests: tests/viewer/flame.t.
 */
const HUES = [28, 205, 145, 265, 350, 175, 60, 310, 95, 235];
const GREY_OBJECTS = /^(libc[.-]|libpthread|ld-linux|ld-musl|\[|linux-vdso|$)/;

function is_dark() {
	return typeof matchMedia === "function" && matchMedia("(prefers-color-scheme: dark)").matches;
}

function text_hash(text) {
	let h = 0;

	for (let i = 0; i < text.length && i < 200; i++)
		h = Math.imul(h, 31) + text.charCodeAt(i) | 0;
	return (h ^ h >>> 13) >>> 0;
}

/* The hue of each object of a profile, -1: grey. */
function object_hues(tree) {
	const { profile } = tree, sums = tree_sums(tree), share = new Map();

	tree.example.forEach((frame, key) => {
		const object = profile.frame_object[frame];

		share.set(object, (share.get(object) || 0) + Math.abs(sums.self[key]) + Math.abs(sums.total[key]) / 100);
	});
	const ranked = [...share.keys()].sort((a, b) => share.get(b) - share.get(a)), hues = new Map();
	let next = 0;
	for (const object of ranked) {
		const name = base_name(profile.objects[object]), own = name === profile.program;

		hues.set(object, GREY_OBJECTS.test(name) ? -1 : own ? HUES[0] : HUES[1 + next++ % (HUES.length - 1)]);
	}
	return hues;
}

/* The colour of each key. */
function key_colors(tree, dark) {
	const hues = object_hues(tree), { profile } = tree;

	return tree.names.map((name, key) => {
		const frame = tree.example[key], hue = frame === undefined ? -1 : hues.get(profile.frame_object[frame]);
		const move = text_hash(name) % 9, grey = hue < 0 || name.startsWith("[");

		return dark ? `hsl(${grey ? 215 : hue + move - 4} ${grey ? 8 : 34}% ${30 + move}%)`
			: `hsl(${grey ? 215 : hue + move - 4} ${grey ? 14 : 62}% ${75 + move}%)`;
	});
}

/* -1: all of it has gone; 1: all of it is new. */
function change_color(part, dark) {
	const step = Math.round(10 * Math.min(1, Math.sqrt(Math.abs(part)))), hue = part > 0 ? 6 : 214;

	if (!step)
		return dark ? "hsl(215 6% 32%)" : "hsl(215 16% 91%)";
	return dark ? `hsl(${hue} ${20 + 4 * step}% ${33 + step}%)` : `hsl(${hue} ${38 + 4 * step}% ${91 - 2.1 * step}%)`;
}
