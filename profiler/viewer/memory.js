/*
 * memory.js - where the resident memory is: the table of `memory?format=json`, as a bar and by class.
 *
 * Each resident page is in one row, so rows add up to their class and classes to the whole.  What a
 * stranger would get wrong: the allocator's "in use" and "free" are estimates of bytes that need
 * not be resident, and so add up to nothing else here.
 *
 * Tests: tests/viewer/.
 */
const MEMORY_ROWS = 100; /* of a class, until the rest is asked for */
const MEMORY_CLASSES = {
	heap: "What malloc() has, by arena", mappings: "The program's own, by who called mmap()",
	stacks: "Of threads, as far as they were touched", files: "Programs, libraries and mapped files",
	"shared memory": "Shared with other processes", profiler: "What the profiler takes itself",
	unexplained: "Anonymous memory that nobody knows of",
};

function share_text(part, whole) {
	return whole ? `${(part / whole * 100).toFixed(1)} %` : "";
}

/* The class's name is of theirs, so what follows the colon of it goes. */
function class_name(row) {
	return row.class.split(":")[0];
}

function memory_bar(table) {
	const shown = element("div", { class: "stack-bar", role: "img", "aria-label": table.classes.map((row) =>
		`${class_name(row)} ${share_text(row.resident, table.resident)}`).join(", ") });

	table.classes.forEach((row, i) => {
		if (!row.resident)
			return;
		const part = element("span", { class: `part part-${i % 7}`,
			title: `${class_name(row)}: ${count_text(row.resident, "bytes")}, ${share_text(row.resident, table.resident)}` });
		part.style.flexGrow = String(row.resident);
		shown.append(part);
	});
	return shown;
}

function memory_cells(row, whole) {
	const text = (value) => value === undefined ? "" : count_text(value, "bytes");

	return [element("td", null, text(row.resident)), element("td", { class: "wide" }, share_text(row.resident, whole)),
		element("td", { class: "wide" }, text(row.mapped)), element("td", { class: "wide" }, text(row.in_use)),
		element("td", { class: "wide" }, text(row.free))];
}

/* A mapping's name is its stack, leaf first. */
function memory_row_name(row) {
	if (!row.stack)
		return row.name;
	if (row.stack.length < 2)
		return row.stack[0] || row.name;
	return element("details", null, element("summary", null, row.stack[0]),
		element("ol", { class: "frames" }, row.stack.slice(1).map((name) => element("li", null, name))));
}

function memory_rows(body, rows, whole, from) {
	const upto = from + MEMORY_ROWS;

	for (const row of rows.slice(from, upto))
		body.append(element("tr", null, element("th", { scope: "row" }, memory_row_name(row)), memory_cells(row, whole)));
	if (rows.length <= upto)
		return;
	const more = element("tr", null, element("td", { colspan: 6 },
		button(`${plural(rows.length - upto, "more row")}`, () => {
			more.remove();
			memory_rows(body, rows, whole, upto);
		})));
	body.append(more);
}

/* A class is a body of the table, its rows one of their own that opens. */
function memory_class(row, i, whole) {
	const rows = element("tbody", { id: `class-${i}`, hidden: true });
	const open = element("button", { type: "button", class: "opener", "aria-expanded": "false", "aria-controls": rows.id,
		disabled: !row.rows.length }, element("span", { class: `part part-${i % 7}`, "aria-hidden": "true" }), class_name(row));

	open.addEventListener("click", () => {
		if (!rows.childElementCount)
			memory_rows(rows, row.rows, whole, 0);
		rows.hidden = !rows.hidden;
		open.setAttribute("aria-expanded", String(!rows.hidden));
	});
	return [element("tbody", { class: "class" }, element("tr", null, element("th", { scope: "row" }, open,
		element("span", { class: "quiet wide" }, MEMORY_CLASSES[class_name(row)] || "")), memory_cells(row, whole))), rows];
}

function memory_table(table) {
	const head = (text, help, wide) => element("th", { scope: "col", title: help, class: wide && "wide" }, text);

	return element("table", { class: "figures" }, element("caption", { class: "unseen" }, "Resident memory by class"),
		element("thead", null, element("tr", null, element("th", { scope: "col" }, "What"), head("Resident", "In memory now"),
			head("Share", "Of all that is resident", true), head("Mapped", "Address space", true),
			head("In use", "The allocator's estimate", true), head("Free", "The allocator's estimate", true))),
		table.classes.map((row, i) => memory_class(row, i, table.resident)));
}

function memory_show(main, bytes, again) {
	const table = JSON.parse(new TextDecoder().decode(bytes));
	const keep = () => save(bytes, file_name("memory", stamp(new Date())) + ".json", "application/json");
	const notices = (texts, type) => texts.map((text) => element("p", { class: `notice ${type}` }, text));

	main.replaceChildren(view_head("Resident memory", `${count_text(table.resident, "bytes")} resident, ` +
		`${count_text(table.mapped, "bytes")} mapped, ${count_text(table.swapped, "bytes")} swapped out; ` +
		`allocator: ${table.allocator || "not known"}; ${clock_text(new Date())}`,
	button("Again", again, { "data-do": "again" }), button("Download", keep, { "data-do": "download" })),
	memory_bar(table), ...notices(table.advice, "advice"), ...notices(table.notes, "warn"), memory_table(table));
	say(`Resident memory: ${count_text(table.resident, "bytes")}`);
}

/* Both this and the threads: what is asked for once, and then shown. */
async function fetched_view(main, signal, title, path, show) {
	const place = element("div", { class: "place" });
	const again = () => fetched_view(main, signal, title, path, show);

	main.dataset.state = "taking";
	main.replaceChildren(view_head(title, ""), place);
	document.title = title;
	try {
		const taken = await take(place, path, { what: title }, signal);
		if (signal.aborted)
			return;
		if (!taken) {
			location.hash = "";
			return;
		}
		show(main, taken.bytes, again);
		main.dataset.state = "shown";
	} catch (error) {
		main.dataset.state = "failed";
		place.replaceChildren(failure(error, again));
	}
}

function memory_view(main, signal) {
	return fetched_view(main, signal, "Resident memory", "memory?format=json", memory_show);
}
