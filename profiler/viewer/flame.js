/*
 * flame.js - one tree as an icicle: the root on top, what it calls below, each as wide as its part.
 *
 *	const flame = new Flame(host, { on_hover(flame, node, event), on_focus(flame, node), on_open(flame, node), on_zoom(node), up });
 *	flame.show(tree, label);  flame.zoom(node);  flame.find(found or null);
 *
 * It is one canvas of the size of what can be seen, in a box that scrolls: rows are laid out down
 * to what is half a pixel wide, so that work follows the width of the screen, not the number of
 * stacks; the rest of a row is one grey piece.  A frame under the mouse or the keyboard has a
 * marker laid over it, and nothing is drawn anew.
 *
 * Keys: arrows walk, Enter zooms, Escape and Backspace go back out, Home is the root.
 * Tests: tests/viewer/flame.t.
 */
const ROW = 20, LEAST = 0.5, FONT = 12;

function fg_make(tag, name, text) {
	const made = document.createElement(tag);

	if (name)
		made.className = name;
	if (text !== undefined)
		made.textContent = text;
	return made;
}

/* Widths of characters, measured once: measuring each name is most of the work otherwise. */
class Letters {
	constructor(context) {
		this.context = context;
		this.widths = new Map();
	}

	width(letter) {
		let w = this.widths.get(letter);

		if (w === undefined) {
			w = this.context.measureText(letter).width;
			this.widths.set(letter, w);
		}
		return w;
	}

	/* As much of a text as fits. */
	fit(text, room) {
		let w = 0, cut = 0;

		for (let i = 0; i < text.length; i++) {
			w += this.width(text[i]);
			if (w + this.width("…") <= room)
				cut = i + 1;
			if (w > room)
				return cut > 1 ? text.slice(0, cut) + "…" : "";
		}
		return text;
	}
}

class Flame {
	constructor(host, options) {
		this.options = options;
		this.scroll = fg_make("div", "fg-scroll");
		this.sheet = fg_make("div", "fg-sheet");
		this.canvas = fg_make("canvas", "fg-canvas");
		this.mark = fg_make("div", "fg-mark");
		this.canvas.tabIndex = 0;
		this.canvas.setAttribute("role", "application");
		this.canvas.setAttribute("aria-roledescription", "flame graph");
		this.mark.hidden = true;
		this.sheet.append(this.canvas, this.mark);
		this.scroll.append(this.sheet);
		host.append(this.scroll);
		this.context = this.canvas.getContext("2d");
		this.rows = [];
		this.listen();
	}

	listen() {
		const at = event => this.at(event.offsetX, event.offsetY);

		this.scroll.addEventListener("scroll", () => {
			this.options.on_hover(this, -1);
			this.draw_soon();
		});
		this.canvas.addEventListener("mousemove", event => this.hover(at(event), event));
		this.canvas.addEventListener("mouseleave", () => this.hover(null));
		this.canvas.addEventListener("click", event => this.click(at(event)));
		this.canvas.addEventListener("dblclick", event => this.open(at(event)));
		this.canvas.addEventListener("keydown", event => this.press(event));
		this.canvas.addEventListener("focus", () => this.focus_on(this.focus || this.spot(this.root)));
		this.canvas.addEventListener("blur", () => this.mark_on(null));
		this.sizes = new ResizeObserver(() => this.resize());
		this.sizes.observe(this.scroll);
	}

	destroy() {
		this.sizes.disconnect();
		this.scroll.remove();
	}

	/* A tree to draw; its colours are asked for when they are needed. */
	show(tree, label, root) {
		this.tree = tree;
		this.least = this.root = Math.max(0, root || 0);
		this.found = null;
		this.focus = null;
		this.colors = null;
		this.texts = tree.names.map(() => null);
		this.canvas.setAttribute("aria-label", label);
		this.scroll.scrollTop = 0;
		this.resize(true);
	}

	themed() {
		this.colors = null;
		this.draw_soon();
	}

	zoom(node) {
		this.root = node;
		this.focus = null;
		this.lay_out();
		this.focus_on(this.spot(node));
		this.draw();
		if (this.options.on_zoom)
			this.options.on_zoom(node);
	}

	find(found) {
		this.found = found;
		this.draw();
	}

	resize(anew) {
		const wide = this.scroll.clientWidth, high = this.scroll.clientHeight, ratio = window.devicePixelRatio || 1;

		if (!this.tree || !wide || (!anew && wide === this.wide && high === this.high && ratio === this.ratio))
			return;
		this.wide = wide;
		this.high = high;
		this.ratio = ratio;
		this.canvas.width = Math.round(wide * ratio);
		this.canvas.height = Math.round(high * ratio);
		this.canvas.style.width = wide + "px";
		this.canvas.style.height = high + "px";
		const focus = this.node_at(this.focus);
		this.lay_out();
		this.focus = focus < 0 ? null : this.spot(focus) || this.spot(this.root);
		this.marked = document.activeElement === this.canvas ? this.focus : null;
		if (this.options.up)
			this.scroll.scrollTop = this.scroll.scrollHeight;
		this.draw();
	}

	/* Rows of {node, x, w}, from the root of the tree; what lies above the zoomed node is as wide as all. */
	lay_out() {
		const { tree, wide } = this, path = [];

		for (let node = this.root; node >= this.least; node = tree.parent[node])
			path.unshift(node);
		this.rows = path.map(node => [{ node, x: 0, w: wide }]);
		const scale = tree.width[this.root] > 0 ? wide / tree.width[this.root] : 0;
		for (let row = scale ? this.rows[this.rows.length - 1] : []; row.length; ) {
			const below = [];

			for (const { node, x } of row)
				if (node >= 0 && tree.first[node] >= 0)
					this.lay_children(below, node, x, scale);
			if (below.length)
				this.rows.push(below);
			row = below;
		}
		this.sheet.style.height = Math.max(this.rows.length * ROW, this.high) + "px";
	}

	lay_children(below, parent, x, scale) {
		const { wide, rest } = this.tree.children(parent, LEAST / scale);

		for (const node of wide) {
			const w = this.tree.width[node] * scale;

			below.push({ node, x, w });
			x += w;
		}
		if (rest * scale >= LEAST)
			below.push({ node: -1, x, w: rest * scale });
	}

	top_of(row) {
		return this.options.up ? Math.max(this.rows.length * ROW, this.high) - (row + 1) * ROW : row * ROW;
	}

	draw_soon() {
		if (!this.waiting)
			this.waiting = requestAnimationFrame(() => this.draw());
	}

	draw() {
		const { context, scroll } = this, dark = is_dark();

		cancelAnimationFrame(this.waiting);
		this.waiting = 0;
		if (!this.tree || !this.wide)
			return;
		if (!this.colors || this.dark !== dark)
			this.choose(dark);
		context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		context.clearRect(0, 0, this.wide, this.high);
		context.textBaseline = "middle";
		for (let row = 0; row < this.rows.length; row++) {
			const y = this.top_of(row) - scroll.scrollTop;

			if (y > -ROW && y < this.high)
				this.draw_row(this.rows[row], y);
		}
		this.mark_on(this.marked);
	}

	choose(dark) {
		const css = getComputedStyle(this.canvas);

		this.dark = dark;
		this.signed = this.tree.profile.difference || this.tree.minus[0] > 0;
		this.colors = key_colors(this.tree, dark);
		this.ink = css.getPropertyValue("--fg-ink");
		this.faint = css.getPropertyValue("--fg-faint");
		this.found_color = css.getPropertyValue("--fg-found");
		this.plain = FONT + "px " + css.fontFamily;
		this.slanted = "italic " + this.plain;
		this.context.font = this.plain;
		this.letters = new Letters(this.context);
	}

	color(node) {
		const { tree } = this;

		if (node < 0)
			return this.faint;
		if (this.signed)
			return change_color(tree.width[node] ? tree.total(node) / tree.width[node] : 0, this.dark);
		return node ? this.colors[tree.key[node]] : this.faint;
	}

	draw_row(row, y) {
		const { context, tree, found } = this;

		for (const { node, x, w } of row) {
			const hit = found && node >= 0 && found.hit[node], faded = found && !hit;

			context.globalAlpha = faded ? 0.35 : 1;
			context.fillStyle = hit && !this.signed ? this.found_color : this.color(node);
			context.fillRect(x, y, w > 3 ? w - 1 : w, ROW - 1);
			if (node > 0 && w > 6 && tree.state[node] & INLINED)
				this.draw_inlined(x, y, w);
			if (w > 20 && node >= 0)
				this.draw_name(node, x, y, w, faded);
		}
		context.globalAlpha = 1;
	}

	/* A dotted edge towards the caller whose code it is part of. */
	draw_inlined(x, y, w) {
		const { context } = this;

		context.fillStyle = this.ink;
		context.globalAlpha *= 0.45;
		for (let dot = x + 1; dot < x + w - 3; dot += 5)
			context.fillRect(dot, this.options.up ? y + ROW - 3 : y, 2, 1.5);
		context.globalAlpha /= 0.45;
	}

	draw_name(node, x, y, w, faded) {
		const { context, tree } = this, key = tree.key[node];
		const name = node ? (this.texts[key] = this.texts[key] || shown_text(tree.names[key], 300)) : "all";
		const text = this.letters.fit(name, Math.min(w, this.wide - x) - 8);

		if (!text)
			return;
		context.font = tree.state[node] & INLINED && node ? this.slanted : this.plain;
		context.globalAlpha = faded ? 0.6 : 1;
		context.fillStyle = this.ink;
		context.fillText(text, x + 4, y + ROW / 2);
	}

	/* What lies at a point of the canvas: {row, index}. */
	at(x, y) {
		const top = y + this.scroll.scrollTop;
		const row = this.options.up ? Math.floor((Math.max(this.rows.length * ROW, this.high) - top) / ROW) : Math.floor(top / ROW);
		const index = (this.rows[row] || []).findIndex(r => r.node >= 0 && x >= r.x && x < r.x + r.w);

		return index < 0 ? null : { row, index };
	}

	rect(spot) {
		return spot && this.rows[spot.row] ? this.rows[spot.row][spot.index] : undefined;
	}

	node_at(spot) {
		const rect = this.rect(spot);

		return rect ? rect.node : -1;
	}

	spot(node) {
		for (let row = 0; row < this.rows.length; row++) {
			const index = this.rows[row].findIndex(r => r.node === node);

			if (index >= 0)
				return { row, index };
		}
		return null;
	}

	mark_on(spot) {
		const rect = this.rect(spot);

		this.marked = rect ? spot : null;
		this.mark.hidden = !rect;
		if (!rect)
			return;
		this.mark.style.transform = `translate(${rect.x}px, ${this.top_of(spot.row)}px)`;
		this.mark.style.width = Math.max(2, rect.w - 1) + "px";
	}

	hover(spot, event) {
		this.mark_on(spot || (document.activeElement === this.canvas ? this.focus : null));
		this.canvas.classList.toggle("fg-over", !!spot);
		this.options.on_hover(this, this.node_at(spot), event);
	}

	click(spot) {
		const node = this.node_at(spot);

		if (node >= 0)
			this.zoom(node);
	}

	open(spot) {
		const node = this.node_at(spot);

		if (node > 0)
			this.options.on_open(this, node);
	}

	focus_on(spot) {
		if (!this.rect(spot))
			return;
		this.focus = spot;
		const top = this.top_of(spot.row);
		if (top < this.scroll.scrollTop)
			this.scroll.scrollTop = top;
		else if (top + ROW > this.scroll.scrollTop + this.high)
			this.scroll.scrollTop = top + ROW - this.high;
		this.mark_on(spot);
		this.options.on_focus(this, this.node_at(spot));
	}

	/* The neighbour of what has the focus: along the row, to the caller, to the widest below. */
	neighbour(key) {
		const { row, index } = this.focus, { node } = this.rect(this.focus);
		const along = { ArrowLeft: -1, ArrowRight: 1 }[key], inward = key === (this.options.up ? "ArrowUp" : "ArrowDown");
		const caller = this.tree.parent[node];

		if (along) {
			for (let i = index + along; this.rows[row][i]; i += along)
				if (this.rows[row][i].node >= 0)
					return { row, index: i };
			return this.focus;
		}
		if (!inward)
			return caller >= this.least ? this.spot(caller) : this.focus;
		const below = (this.rows[row + 1] || []).findIndex(r => r.node >= 0 && this.tree.parent[r.node] === node);
		return below < 0 ? this.focus : { row: row + 1, index: below };
	}

	press(event) {
		const { key } = event;

		if (event.ctrlKey || event.altKey || event.metaKey || !this.rect(this.focus))
			return;
		if (/^Arrow/.test(key))
			this.focus_on(this.neighbour(key));
		else if (key === "Enter" || key === " ")
			this.zoom(this.node_at(this.focus));
		else if ((key === "Escape" || key === "Backspace") && this.root > this.least)
			this.zoom(this.tree.parent[this.root]);
		else if (key === "Home")
			this.zoom(this.least);
		else if (key === "o" && this.node_at(this.focus) > 0)
			this.options.on_open(this, this.node_at(this.focus));
		else
			return;
		event.preventDefault();
	}

	/* What is drawn, for those who cannot look: tests, and other programs. */
	rectangles() {
		const { tree } = this, box = this.canvas.getBoundingClientRect(), list = [];

		this.rows.forEach((row, r) => row.forEach(({ node, x, w }) => {
			if (node >= 0)
				list.push({ name: tree.name(node), x: box.left + x, y: box.top + this.top_of(r) - this.scroll.scrollTop,
					w, h: ROW - 1, row: r, self: tree.turned ? undefined : tree.self(node), total: tree.total(node),
					inlined: !!(node && tree.state[node] & INLINED), found: !!(this.found && this.found.hit[node]), color: this.color(node) });
		}));
		return list;
	}
}
