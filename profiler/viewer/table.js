/*
 * table.js - functions (or lines, or objects) with what they have themselves and in total.
 *
 *	const table = new Table(host, { on_pick(key) });
 *	table.show(tree, unit, matches or null);
 *
 * Sorted by a click on a heading; 200 rows are made, and more when somebody asks: a table of a
 * hundred thousand elements would stop the tab.
 * Tests: tests/viewer/flame.t.
 */
const ROWS = 200;

class Table {
	constructor(host, options) {
		this.options = options;
		this.sort = { by: "self", down: true };
		this.box = fg_make("div", "fg-table");
		host.append(this.box);
	}

	destroy() {
		this.box.remove();
	}

	show(tree, unit, matches) {
		const sums = tree_sums(tree);

		this.tree = tree;
		this.unit = unit;
		this.keys = [];
		for (let key = 0; key < tree.names.length; key++)
			if (sums.there[key] && tree.example[key] !== undefined && (!matches || matches[key]))
				this.keys.push(key);
		this.most = ROWS;
		this.draw();
	}

	order() {
		const { tree, sort } = this, sums = tree_sums(tree), sign = sort.down ? -1 : 1;
		const by_name = (a, b) => (tree.names[a] < tree.names[b] ? -1 : 1);
		const size = key => Math.abs(sums[sort.by][key]);

		this.keys.sort(sort.by === "name" ? (a, b) => -sign * by_name(a, b)
			: (a, b) => sign * (size(a) - size(b)) || sign * (Math.abs(sums.total[a]) - Math.abs(sums.total[b])) || by_name(a, b));
	}

	heading(by, text) {
		const cell = fg_make("th"), press = fg_make("button", "fg-sort", text), now = this.sort.by === by;

		cell.scope = "col";
		cell.classList.toggle("fg-number", by !== "name");
		cell.setAttribute("aria-sort", now ? (this.sort.down === (by !== "name") ? "descending" : "ascending") : "none");
		press.type = "button";
		press.addEventListener("click", () => {
			this.sort = { by, down: now ? !this.sort.down : true };
			this.draw();
			this.box.querySelector("th[aria-sort$=ending] button").focus();
		});
		cell.append(press);
		return cell;
	}

	number(value, name) {
		const signed = this.tree.profile.difference || this.tree.minus[0] > 0;
		const cell = fg_make("td", "fg-number"), text = fg_make("span", "", signed ? signed_text(value, this.unit) : count_text(value, this.unit));

		cell.dataset[name] = value;
		cell.append(text, fg_make("span", "fg-share", percent_text(value, this.tree.whole)));
		cell.classList.toggle("fg-quiet", !value);
		if (signed && value)
			text.className = value > 0 ? "fg-grew" : "fg-shrank";
		return cell;
	}

	row(key) {
		const { tree } = this, { self, total } = tree_sums(tree), row = fg_make("tr"), cell = fg_make("th");
		const pick = fg_make("button", "fg-name", shown_text(tree.names[key], 300)), { profile } = tree;
		const object = profile.objects[profile.frame_object[tree.example[key]]];

		cell.scope = "row";
		pick.type = "button";
		pick.addEventListener("click", () => this.options.on_pick(key));
		cell.append(pick);
		row.append(this.number(self[key], "self"), this.number(total[key], "total"), cell,
			fg_make("td", "fg-quiet fg-object", shown_text(base_name(object || ""), 60)));
		return row;
	}

	draw() {
		const table = fg_make("table"), head = fg_make("thead"), top = fg_make("tr"), body = fg_make("tbody");
		const where = fg_make("th", "fg-object", "Object"), left = this.keys.length - this.most;

		this.order();
		where.scope = "col";
		top.append(this.heading("self", "Self"), this.heading("total", "Total"), this.heading("name", "Name"), where);
		head.append(top);
		body.append(...this.keys.slice(0, this.most).map(key => this.row(key)));
		table.append(head, body);
		this.box.replaceChildren(table);
		if (!this.keys.length)
			this.box.append(fg_make("p", "fg-none", "Nothing is left to be shown."));
		if (left > 0) {
			const more = fg_make("button", "fg-button", `Show ${count_text(Math.min(left, 1000), "count")} more of ${count_text(left, "count")}`);

			more.type = "button";
			more.addEventListener("click", () => {
				this.most += 1000;
				this.draw();
			});
			this.box.append(more);
		}
	}
}
