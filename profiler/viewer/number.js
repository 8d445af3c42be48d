/*
 * number.js - figures as people read them: "1.5 MiB", "2.30 s", "12,345", "+4.1 %".
 *
 * One place, so that the same figure reads alike in a graph, a table and a list.  Bytes are in
 * powers of 1024, times in powers of 1000 up to a second, then minutes and hours.
 * Tests: tests/viewer/figures.t.
 */
const BYTE_STEPS = [[1024 ** 5, "PiB"], [1024 ** 4, "TiB"], [1024 ** 3, "GiB"], [1024 ** 2, "MiB"], [1024, "KiB"], [1, "B"]];
const TIME_STEPS = [[3600e9, "h"], [60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const UNITS = {
	bytes: [BYTE_STEPS, 1], byte: [BYTE_STEPS, 1], b: [BYTE_STEPS, 1], kb: [BYTE_STEPS, 1024], kilobytes: [BYTE_STEPS, 1024],
	mb: [BYTE_STEPS, 1048576], megabytes: [BYTE_STEPS, 1048576], nanoseconds: [TIME_STEPS, 1], ns: [TIME_STEPS, 1],
	microseconds: [TIME_STEPS, 1e3], us: [TIME_STEPS, 1e3], milliseconds: [TIME_STEPS, 1e6], ms: [TIME_STEPS, 1e6],
	seconds: [TIME_STEPS, 1e9], s: [TIME_STEPS, 1e9], minutes: [TIME_STEPS, 60e9], hours: [TIME_STEPS, 3600e9],
};

/* Three digits that matter, none behind the point that are all 0. */
function digits_text(n) {
	const size = Math.abs(n);

	if (Number.isInteger(n))
		return n.toLocaleString("en-US");
	return size >= 100 ? Math.round(n).toLocaleString("en-US") : n.toFixed(size >= 10 ? 1 : 2);
}

function count_text(value, unit) {
	const name_of = String(unit || "").toLowerCase(), known = Object.prototype.hasOwnProperty.call(UNITS, name_of) && UNITS[name_of];

	if (!known)
		return digits_text(value) + (!unit || unit === "count" ? "" : " " + shown_text(unit, 30));
	const [steps, scale] = known, n = value * scale;
	const [size, name] = steps.find(step => Math.abs(n) >= step[0]) || steps[steps.length - 1];
	return digits_text(n / size) + " " + name;
}

function signed_text(value, unit) {
	return (value > 0 ? "+" : "") + count_text(value, unit);
}

function percent_text(part, whole) {
	const percent = whole ? 100 * part / whole : 0, size = Math.abs(percent);

	if (!size)
		return "0 %";
	return (size < 0.01 ? (percent < 0 ? "> -0.01" : "< 0.01") : percent.toFixed(size >= 99.95 ? 0 : size < 1 ? 2 : 1)) + " %";
}

/* What a stranger's file calls itself, fit to be shown: no control character turns the line around. */
function shown_text(text, most) {
	const all = String(text);
	const cut = all.length > most ? all.slice(0, most) + "…" : all;

	return cut.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");
}

function base_name(path) {
	const bare = path.replace(/(.)\/+$/, "$1");

	return bare.slice(bare.lastIndexOf("/") + 1) || bare;
}
