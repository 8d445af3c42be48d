/*
 * page.js - what all views of the page share: making elements, asking the daemon, saving files, words.
 *
 * element() takes data as text nodes and attributes only, so that no name in a program can become
 * markup.  ask() sends the token, which lives in a variable here and nowhere else.  What a
 * stranger would get wrong: addresses are relative to the document's folder, for a program may
 * have mounted the routes below a prefix of its own.
 *
 * Tests: tests/viewer/.
 */
const SVG = "http://www.w3.org/2000/svg";
const folder = new URL(".", location.href);
const access = { token: "" };

/* element("a", { href: "#", class: "x", onclick: f }, "text", other): false and null are left out. */
function element(name, attributes, ...children) {
	const made = name === "svg" || name === "path" ? document.createElementNS(SVG, name) :
		document.createElement(name);

	for (const [key, value] of Object.entries(attributes || {})) {
		if (value === null || value === undefined || value === false)
			continue;
		if (key.startsWith("on"))
			made.addEventListener(key.slice(2), value);
		else
			made.setAttribute(key, value === true ? "" : value);
	}
	made.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
	return made;
}

function button(text, act, attributes) {
	return element("button", { type: "button", onclick: act, ...attributes }, text);
}

/* For those who listen: said once, shown nowhere. */
function say(text) {
	document.getElementById("said").textContent = text;
}

function address_of(path) {
	return new URL(path, folder);
}

/* A Response, or an Error with the sentence that the daemon has answered. */
async function ask(path, options) {
	const headers = access.token ? { Authorization: `Bearer ${access.token}` } : {};
	let answer;

	try {
		answer = await fetch(address_of(path), { cache: "no-store", ...options, headers });
	} catch (error) {
		if (error.name === "AbortError")
			throw error;
		throw new Error("The program does not answer. It has ended, or its address has changed.");
	}
	if (!answer.ok)
		throw await refusal(answer);
	return answer;
}

async function refusal(answer) {
	const text = (await answer.text()).trim().slice(0, 400);
	const error = new Error(text || `The program answers ${answer.status}.`);

	error.status = answer.status;
	return error;
}

function save(bytes, name, type) {
	const place = URL.createObjectURL(new Blob([bytes], { type: type || "application/octet-stream" }));
	const link = element("a", { href: place, download: name, class: "unseen" });

	document.body.append(link);
	link.click();
	link.remove();
	setTimeout(() => URL.revokeObjectURL(place), 60000);
}

/* What may stand in a file's name anywhere. */
function file_name(...parts) {
	return parts.join("-").replace(/[^A-Za-z0-9._-]+/g, "_").slice(0, 120);
}

function stamp(date) {
	const two = (n) => String(n).padStart(2, "0");

	return `${date.getFullYear()}${two(date.getMonth() + 1)}${two(date.getDate())}-` +
		`${two(date.getHours())}${two(date.getMinutes())}${two(date.getSeconds())}`;
}

/* "3 d 4 h", "12 min", "8 s" */
function duration_text(seconds) {
	const s = Math.max(0, Math.floor(seconds));
	const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
	const first = units.findIndex(([, size]) => s >= size);

	if (first < 0)
		return "0 s";
	const [name, size] = units[first], next = units[first + 1];
	const rest = next ? Math.floor(s % size / next[1]) : 0;

	return `${Math.floor(s / size)} ${name}` + (rest && s < size * 10 ? ` ${rest} ${next[0]}` : "");
}

function clock_text(date) {
	return date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

function plural(n, one, many) {
	return `${n.toLocaleString()} ${n === 1 ? one : many || one + "s"}`;
}

/* The clipboard is refused where the page came by http from another machine: then by the selection. */
async function copy(text) {
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		const area = element("textarea", { class: "unseen", "aria-hidden": "true" }, text);

		document.body.append(area);
		area.select();
		document.execCommand("copy");
		area.remove();
	}
}

/* A line to copy, with its button. */
function command_line(text) {
	const made = button("Copy", async () => {
		await copy(text);
		made.textContent = "Copied";
		say("Copied");
		setTimeout(() => { made.textContent = "Copy"; }, 1500);
	}, { class: "copy", "aria-label": `Copy: ${text}` });

	return element("div", { class: "command" }, element("code", null, text), made);
}

/* The title of a view, and the way back. */
function view_head(title, about, ...tools) {
	return element("header", { class: "view-head" },
		page_of_file ? null : element("a", { class: "back", href: "#" }, "All profiles"),
		element("div", { class: "view-title" }, element("h1", null, title), element("p", { class: "quiet" }, about)),
		element("div", { class: "tools" }, ...tools));
}

/* Whether the document holds a profile itself: nothing is asked for then. */
let page_of_file = false;
