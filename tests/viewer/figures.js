/*
 * figures.js - what the viewer's own code makes of profiles, for tests/viewer/figures.t: no browser.
 *
 *	node figures.js DIR < jobs	[{paths: [profile, base or none], group, filters, search, broken}]
 *
 * Writes a list of answers: rows of each type as {name: [self, total]}, the whole, and of trees
 * upside down and around a function, what must agree with these.  What cannot be read is {error}.
 */
"use strict";
const fs = require("fs"), path = require("path");
const PARTS = ["number", "pattern", "decode", "profile", "tree", "color"];
const code = PARTS.map(name => fs.readFileSync(path.join(process.argv[2], name + ".js"), "utf8")).join("\n");
const viewer = new Function(code + "; return { profile_decode, profile_difference, tree_of, tree_sums, tree_upside_down, " +
	"tree_callers, tree_callees, tree_found, key_colors, count_text, signed_text, percent_text, shown_text };")();

/* The widths of children are within their parent's, and its totals are its own and theirs. */
function check_tree(tree, what) {
	for (let node = 0; node < tree.count; node++) {
		let total = tree.self(node), width = 0;

		for (let child = tree.first[node]; child >= 0; child = tree.next[child]) {
			total += tree.total(child);
			width += tree.width[child];
		}
		const near = 1e-9 * (tree.plus[0] + tree.minus[0]);
		if (Math.abs(total - tree.total(node)) > near || width > tree.width[node] + near)
			throw new Error(what + ": node " + node + " of " + tree.name(node));
	}
}

/* Each row once more, from the trees around it; names whose figures differ. */
function check_around(tree, rows) {
	const turned = viewer.tree_upside_down(tree), wrong = [];

	check_tree(tree, "tree");
	check_tree(turned, "upside down");
	for (const name of Object.keys(rows)) {
		const key = tree.names.indexOf(name), [callers, callees] = [viewer.tree_callers(tree, key), viewer.tree_callees(tree, key)];
		const total = rows[name][1], found = viewer.tree_found(tree, tree.names.map(n => (n === name ? 1 : 0)));
		const near = 1e-9 * (tree.plus[0] + tree.minus[0]);

		check_tree(callers, "callers of " + name);
		check_tree(callees, "callees of " + name);
		if ([callers.total(0), callees.total(0), found.plus - found.minus].some(n => Math.abs(n - total) > near))
			wrong.push(name);
	}
	return wrong;
}

async function answer({ paths, group, label, filters, around }) {
	const profiles = [];

	for (const file of paths)
		profiles.push(await viewer.profile_decode(fs.readFileSync(file), path.basename(file)));
	const profile = profiles[1] ? viewer.profile_difference(profiles[0], profiles[1]) : profiles[0];
	const types = {};
	profile.types.forEach(([name], type) => {
		const tree = viewer.tree_of(profile, { type, group: group || "function", label, filters: filters || [] });
		const { self, total, there } = viewer.tree_sums(tree), rows = {};

		tree.names.forEach((row, key) => {
			if (there[key])
				rows[row] = [self[key], total[key]];
		});
		viewer.key_colors(tree, false);
		types[name] = { rows, whole: tree.whole, wrong: around ? check_around(tree, rows) : [] };
	});
	return { types, usual: profile.types[profile.default][0], samples: profile.sample_node.length, lost: profile.lost,
		labels: profile.labels(profile.default) };
}

async function main() {
	const { jobs, texts } = JSON.parse(fs.readFileSync(0, "utf8")), answers = [];

	for (const job of jobs)
		answers.push(await answer(job).catch(e => ({ error: e.message, kind: e.name })));
	console.log(JSON.stringify({ answers, texts: (texts || []).map(([name, ...values]) => viewer[name](...values)) }));
}

main();
