/*
 * pattern.js - the regular expressions of drop_frames and keep_frames, in time that is at most a name's length times the pattern's.
 *
 *	const drop = pattern_of("malloc|operator new.*");  drop("malloc") -> true
 *
 * Each piece is a function from the places in a name where it may begin to all those where it may end, so that nothing is
 * tried twice.  Not RegExp, which goes back and tries again: a stranger's pattern of thirty letters would keep it busy for years.
 *
 * What a stranger would get wrong: a pattern that is not understood drops nothing.  Of what Go understands that is: flags,
 * counts ({2}), and what repeats something that repeats.
 * Tests: tests/viewer/figures.t.
 */
const PATTERN_MOST = 2000;

class Pattern {
	constructor(text) {
		this.text = text;
		this.at = 0;
		this.loops = 0; /* so far */
		this.places = this.either();
		if (this.at < text.length)
			throw new Error("a ) too many");
	}

	/* What the expression finds here, which is taken; or "". */
	take(expression) {
		expression.lastIndex = this.at;
		const [found] = expression.exec(this.text) || [""];
		this.at += found.length;
		return found;
	}

	either() {
		const rows = [];

		do
			rows.push(this.row());
		while (this.take(/\|/y));
		return rows.length === 1 ? rows[0] : (name, from) => new Set(rows.flatMap(row => [...row(name, from)]));
	}

	row() {
		const pieces = [];

		while (this.at < this.text.length && !"|)".includes(this.text[this.at]))
			pieces.push(this.repeated());
		return (name, from) => pieces.reduce((places, piece) => (places.size ? piece(name, places) : places), from);
	}

	repeated() {
		const before = this.loops, piece = this.piece(), how = this.take(/[*+?]\??/y)[0];

		if (!how)
			return piece;
		if (how === "?")
			return (name, from) => new Set([...from, ...piece(name, from)]);
		if (this.loops++ !== before)
			throw new Error("a repetition of one");
		return (name, from) => {
			const all = new Set(how === "*" ? from : []);

			for (let last = from; last.size; last.forEach(place => all.add(place)))
				last = new Set([...piece(name, last)].filter(place => !all.has(place)));
			return all;
		};
	}

	piece() {
		const letter = is => (name, from) => new Set([...from].filter(place => place < name.length && is(name[place])).map(place => place + 1));

		if (this.take(/\((\?:)?(?!\?)/y)) {
			const inside = this.either();

			if (!this.take(/\)/y))
				throw new Error("no )");
			return inside;
		}
		const some = this.take(/\.|\\[dswDSW]|\[\^?(?:\\[^A-Za-z]|\\[dswDSW]|[^\]\\[])+\]/y);
		if (some) {
			const one = new RegExp(`^${some}$`);
			return letter(found => one.test(found));
		}
		const [is, end] = this.take(/\\[^A-Za-z0-9]|[^\\()[{*+?|]/y);
		if (!is)
			throw new Error("not understood");
		if (!end && "^$".includes(is))
			return (name, from) => new Set([...from].filter(place => place === (is === "^" ? 0 : name.length)));
		return letter(found => found === (end || is));
	}
}

/* Whether all of a name is meant; null: nothing is. */
function pattern_of(text) {
	if (!text || text.length > PATTERN_MOST)
		return null;
	try {
		const { places } = new Pattern(text);

		return name => places(name, new Set([0])).has(name.length);
	} catch (e) {
		return null;
	}
}
