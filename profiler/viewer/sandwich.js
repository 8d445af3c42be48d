/*
 * sandwich.js - one function between those who call it, above, and what it calls, below.
 *
 *	const sandwich = new Sandwich(host, flame_options);
 *	sandwich.show(tree, key);
 *
 * Both halves are flame graphs of their own trees: all stacks with the function, put together from
 * it outwards and inwards.  A stack counts once, however often the function is in it.
 * Tests: tests/viewer/flame.t.
 */
class Sandwich {
	constructor(host, options) {
		this.box = fg_make("div", "fg-sandwich");
		this.above = fg_make("p", "fg-half");
		this.below = fg_make("p", "fg-half");
		this.box.append(this.above);
		this.callers = new Flame(this.box, Object.assign({}, options, { up: true }));
		this.box.append(this.below);
		this.callees = new Flame(this.box, options);
		host.append(this.box);
	}

	destroy() {
		this.callers.destroy();
		this.callees.destroy();
		this.box.remove();
	}

	show(tree, key) {
		const name = shown_text(tree.names[key], 120), callers = tree_callers(tree, key), callees = tree_callees(tree, key);

		this.above.textContent = "Who calls " + name;
		this.below.textContent = "What " + name + " calls";
		this.callers.show(callers, "Callers of " + name, callers.first[0]);
		this.callees.show(callees, "What " + name + " calls", callees.first[0]);
		/* Each half by what it has to show. */
		const [up, down] = this.flames().map(flame => `minmax(6em, ${flame.rows.length + 1}fr)`);
		this.box.style.gridTemplateRows = `auto ${up} auto ${down}`;
	}

	flames() {
		return [this.callers, this.callees];
	}
}
