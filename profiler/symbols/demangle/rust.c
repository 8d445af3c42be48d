/*
 * rust.c - Rust's names, as RFC 2603 has them.
 *
 *     _RNvNtCs1234_7mycrate3foo3bar ──▶ mycrate::foo::bar
 *
 * They are written while they are read: a back reference is a place in the name that is
 * read once more.
 *
 * What a stranger would get wrong: a reference can lead to another one that leads to two, so
 * steps are counted, and only places before the reference are gone to.  Hashes and numbers
 * that tell crates of one name apart are left out, as c++filt does.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "rust.h"

#include <string.h>

static void path(struct rust *r, bool in_value);
static void type(struct rust *r);
static void constant(struct rust *r);

static void
put_bytes(struct rust *r, const char *text, size_t size)
{
	if (!r->is_silent)
		demangle_put(r->out, text, size);
}

static void
put(struct rust *r, const char *text)
{
	put_bytes(r, text, strlen(text));
}

static void
put_number(struct rust *r, uint64_t n)
{
	if (!r->is_silent)
		demangle_put_number(r->out, n);
}

static void
put_character(struct rust *r, uint32_t c)
{
	if (!r->is_silent)
		demangle_put_character(r->out, c);
}

static void
put_identifier(struct rust *r, const struct rust_identifier *id)
{
	uint32_t chars[DEMANGLE_PUNYCODE_MAX];
	size_t   count;

	if (!id->is_punycode || r->is_silent) {
		put_bytes(r, id->text, id->size);
		return;
	}
	count = demangle_punycode(id->text, id->size, chars);
	if (!count)
		rust_fail(r);
	for (size_t i = 0; i < count; i++)
		put_character(r, chars[i]);
}

/* ---- paths ---- */

static void
put_lifetime(struct rust *r, uint64_t index)
{
	uint64_t depth;

	put(r, "'");
	if (!index) {
		put(r, "_");
		return;
	}
	if (index > r->lifetimes) {
		rust_fail(r);
		return;
	}
	depth = r->lifetimes - index;
	if (depth < 26)
		put_bytes(r, &"abcdefghijklmnopqrstuvwxyz"[depth], 1);
	else {
		put(r, "_");
		put_number(r, depth);
	}
}

/* for<'a, 'b>; returns what is to be given to binder_end(). */
static uint64_t
binder(struct rust *r)
{
	uint64_t before = r->lifetimes, more = rust_read_optional(r, 'G');

	if (more > 64 || r->out->bad) {
		rust_fail(r);
		return before;
	}
	if (more)
		put(r, "for<");
	for (uint64_t i = 0; i < more; i++) {
		put(r, i ? ", " : "");
		r->lifetimes++;
		put_lifetime(r, 1);
	}
	put(r, more ? "> " : "");
	return before;
}

static void
generic_argument(struct rust *r)
{
	if (rust_take(r, 'L'))
		put_lifetime(r, rust_read_base62(r));
	else if (rust_take(r, 'K'))
		constant(r);
	else
		type(r);
}

/* Does a list go on?  Where the result is full the rest is not read, so no E comes. */
static bool
goes_on(struct rust *r)
{
	return !r->out->bad && (r->at < r->end || r->out->size < DEMANGLE_RESULT_MAX) && !rust_take(r, 'E');
}

/* Each up to E, with commas; returns how many. */
static unsigned
list(struct rust *r, void (*item)(struct rust *))
{
	unsigned n = 0;

	while (goes_on(r)) {
		put(r, n++ ? ", " : "");
		item(r);
	}
	return n;
}

static void
nested_path(struct rust *r, bool in_value)
{
	char              space = rust_next(r);
	struct rust_identifier id;

	path(r, in_value);
	id = rust_read_identifier(r);
	if (space >= 'A' && space <= 'Z') {
		put(r, "::{");
		if (space == 'C')
			put(r, "closure");
		else if (space == 'S')
			put(r, "shim");
		else
			put_bytes(r, &space, 1);
		put(r, id.size ? ":" : "");
		put_identifier(r, &id);
		put(r, "#");
		put_number(r, id.number);
		put(r, "}");
	} else if (id.size) {
		put(r, "::");
		put_identifier(r, &id);
	}
}

/* Whose implementation it is stands in the name, too, and is not shown. */
static void
implementation(struct rust *r)
{
	bool before = r->is_silent;

	rust_read_optional(r, 's');
	r->is_silent = true;
	path(r, false);
	r->is_silent = before;
}

/* Leaves the '>' of a path<...> to the caller if leave_open; returns whether it did. */
static bool
path_open(struct rust *r, bool in_value, bool leave_open)
{
	struct rust_identifier id;
	const char       *back;
	bool              is_open = false;
	char              c;

	if (!demangle_enter(r->out)) {
		demangle_leave(r->out);
		r->at = r->end;
		return false;
	}
	switch (c = rust_next(r)) {
	case 'C':
		id = rust_read_identifier(r);
		put_identifier(r, &id);
		break;
	case 'N': nested_path(r, in_value); break;
	case 'M':
	case 'X':
	case 'Y':
		if (c != 'Y')
			implementation(r);
		put(r, "<");
		type(r);
		if (c != 'M') {
			put(r, " as ");
			path(r, false);
		}
		put(r, ">");
		break;
	case 'I':
		path(r, in_value);
		put(r, in_value ? "::<" : "<");
		list(r, generic_argument);
		is_open = leave_open;
		put(r, leave_open ? "" : ">");
		break;
	case 'B':
		back = rust_go_back(r);
		if (back && !r->is_silent)
			is_open = path_open(r, in_value, leave_open);
		if (back)
			r->at = back;
		break;
	default: rust_fail(r);
	}
	demangle_leave(r->out);
	return is_open;
}

static void
path(struct rust *r, bool in_value)
{
	path_open(r, in_value, false);
}

/* ---- types ---- */

static const char *
basic_type(char c)
{
	static const char *const names[26] = { /* c - 'a' */
		"i8", "bool", "char", "f64", "str", "f32", NULL, "u8", "isize", "usize", NULL, "i32", "u32",
		"i128", "u128", "_", NULL, NULL, "i16", "u16", "()", "...", NULL, "i64", "u64", "!"
	};

	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void
function_type(struct rust *r)
{
	uint64_t before = binder(r);

	put(r, rust_take(r, 'U') ? "unsafe " : "");
	if (rust_take(r, 'K')) {
		put(r, "extern \"");
		if (rust_take(r, 'C'))
			put(r, "C");
		else {
			struct rust_identifier abi = rust_read_identifier(r);

			for (size_t i = 0; i < abi.size; i++)
				put_bytes(r, abi.text[i] == '_' ? "-" : &abi.text[i], 1);
		}
		put(r, "\" ");
	}
	put(r, "fn(");
	list(r, type);
	put(r, ")");
	if (!rust_take(r, 'u')) {
		put(r, " -> ");
		type(r);
	}
	r->lifetimes = before;
}

/* Trait<T, Item = U> + Send */
static void
bounds(struct rust *r)
{
	uint64_t before;
	bool     first = true;

	put(r, "dyn ");
	before = binder(r);
	while (goes_on(r)) {
		bool is_open;

		put(r, first ? "" : " + ");
		first = false;
		is_open = path_open(r, false, true);
		while (rust_take(r, 'p')) {
			struct rust_identifier id = rust_read_identifier(r);

			put(r, is_open ? ", " : "<");
			is_open = true;
			put_identifier(r, &id);
			put(r, " = ");
			type(r);
		}
		put(r, is_open ? ">" : "");
	}
	r->lifetimes = before;
	if (!rust_take(r, 'L'))
		rust_fail(r);
	else {
		uint64_t lifetime = rust_read_base62(r);

		put(r, lifetime ? " + " : "");
		if (lifetime)
			put_lifetime(r, lifetime);
	}
}

static void
reference(struct rust *r, const char *text)
{
	put(r, "&");
	if (rust_take(r, 'L')) {
		uint64_t lifetime = rust_read_base62(r);

		if (lifetime) {
			put_lifetime(r, lifetime);
			put(r, " ");
		}
	}
	put(r, text);
	type(r);
}

static void
back_reference(struct rust *r, void (*read)(struct rust *))
{
	const char *back = rust_go_back(r);

	if (back && !r->is_silent)
		read(r);
	if (back)
		r->at = back;
}

static void
composed_type(struct rust *r)
{
	char c = rust_next(r);

	switch (c) {
	case 'A':
	case 'S':
		put(r, "[");
		type(r);
		if (c == 'A') {
			put(r, "; ");
			constant(r);
		}
		put(r, "]");
		break;
	case 'T':
		put(r, "(");
		put(r, list(r, type) == 1 ? ",)" : ")");
		break;
	case 'R': reference(r, ""); break;
	case 'Q': reference(r, "mut "); break;
	case 'P': put(r, "*const "); type(r); break;
	case 'O': put(r, "*mut "); type(r); break;
	case 'F': function_type(r); break;
	case 'D': bounds(r); break;
	case 'B': back_reference(r, type); break;
	default:
		if (r->at > r->start && !r->out->bad)
			r->at--;
		path(r, false);
	}
}

static void
type(struct rust *r)
{
	const char *basic = basic_type(rust_peek(r));

	if (basic) {
		r->at++;
		put(r, basic);
		return;
	}
	if (demangle_enter(r->out))
		composed_type(r);
	else
		r->at = r->end;
	demangle_leave(r->out);
}

/* ---- constants ---- */

static void
character(struct rust *r, uint64_t c)
{
	static const char escapes[][2] = { { '\t', 't' }, { '\r', 'r' }, { '\n', 'n' }, { '\'', '\'' },
					   { '\\', '\\' } };

	put(r, "'");
	for (size_t i = 0; i < sizeof(escapes) / sizeof(*escapes); i++)
		if (c == (unsigned char)escapes[i][0]) {
			put(r, "\\");
			put_bytes(r, &escapes[i][1], 1);
			put(r, "'");
			return;
		}
	if (c < 0x20 || c == 0x7f || c > 0x10ffff)
		rust_fail(r);
	else
		put_character(r, (uint32_t)c);
	put(r, "'");
}

static void
number(struct rust *r, char kind)
{
	const char *text;
	size_t      size;
	uint64_t    n;

	if (strchr("ailnsx", kind)) /* signed */
		put(r, rust_take(r, 'n') ? "-" : "");
	n = rust_read_hexadecimal(r, &text, &size);
	if (kind == 'b' && n <= 1)
		put(r, n ? "true" : "false");
	else if (kind == 'c')
		character(r, n);
	else if (kind == 'b')
		rust_fail(r);
	else if (size > 16) {
		put(r, "0x");
		put_bytes(r, text, size);
	} else
		put_number(r, n);
}

static void
constant(struct rust *r)
{
	char c = rust_next(r);

	if (demangle_enter(r->out)) {
		if (c == 'B')
			back_reference(r, constant);
		else if (c == 'p')
			put(r, "_");
		else if (c && strchr("abchijlmnostxy", c))
			number(r, c);
		else
			rust_fail(r); /* structures: nobody has seen one in a symbol table */
	} else
		r->at = r->end;
	demangle_leave(r->out);
}

bool
demangle_rust(struct demangle_room *room, const char *name, const char *end)
{
	struct rust r = { .out = &room->out, .start = name + 2, .at = name + 2, .end = end };

	demangle_out_start(r.out);
	if (end - name < 3 || name[0] != '_' || name[1] != 'R' || name[2] < 'A' || name[2] > 'Z')
		return false;
	path(&r, true);
	/* Which crate has made it. */
	r.is_silent = true;
	if (rust_peek(&r) >= 'A' && rust_peek(&r) <= 'Z')
		path(&r, false);
	return r.out->size == DEMANGLE_RESULT_MAX || (!r.out->bad && r.out->size > 0 && r.at == end);
}
