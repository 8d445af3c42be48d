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

#include <string.h>

#include "room.h"

/* A name as it is read.  What cannot be read makes it bad, and is the end of it: who reads need not look. */
struct rust {
	struct demangle_out *out;
	const char          *start, *at, *end; /* places of references count from start */
	bool                 is_silent;        /* what is read is not shown */
	bool                 is_short;         /* without generic arguments */
	uint64_t             lifetimes;        /* bound by for<> around here */
};

struct rust_identifier {
	const char *text;
	size_t      size;
	uint64_t    number;
	bool        is_punycode;
};

/* ---- letters, numbers and identifiers ---- */

static void
fail(struct rust *r)
{
	r->out->bad = true;
	r->at = r->end;
}

/* 0 at the end, which is no failure. */
static char
peek(const struct rust *r)
{
	return r->at < r->end ? *r->at : '\0';
}

static bool
take(struct rust *r, char c)
{
	if (peek(r) != c || !c)
		return false;
	r->at++;
	return true;
}

static char
next(struct rust *r)
{
	if (r->at < r->end)
		return *r->at++;
	fail(r);
	return '\0';
}

static uint64_t
read_decimal(struct rust *r)
{
	uint64_t n = 0;

	if (peek(r) < '0' || peek(r) > '9')
		fail(r);
	if (take(r, '0'))
		return 0;
	while (peek(r) >= '0' && peek(r) <= '9' && n < UINT32_MAX)
		n = n * 10 + (uint64_t)(*r->at++ - '0');
	return n;
}

/* "_" is 0, "0_" is 1 ... */
static uint64_t
read_base62(struct rust *r)
{
	uint64_t n = 0;
	char     c;

	if (take(r, '_'))
		return 0;
	while ((c = next(r)) != '_' && !r->out->bad) {
		unsigned digit = demangle_digit(c);

		if (digit == DEMANGLE_DIGITS || __builtin_mul_overflow(n, DEMANGLE_DIGITS, &n) ||
		    __builtin_add_overflow(n, digit, &n))
			fail(r);
	}
	return n + 1;
}

/* One more than that behind a tag; 0 without one. */
static uint64_t
read_optional(struct rust *r, char tag)
{
	return take(r, tag) ? read_base62(r) + 1 : 0;
}

/* Behind a B: goes to the place that it names.  Where to come back to; NULL: it names none. */
static const char *
go_back(struct rust *r)
{
	const char *here = r->at - 1, *back;
	uint64_t    place = read_base62(r);

	back = r->at;
	if (r->out->bad || place >= (uint64_t)(here - r->start)) {
		fail(r);
		return NULL;
	}
	r->at = r->start + place;
	return back;
}

static struct rust_identifier
read_identifier(struct rust *r)
{
	struct rust_identifier id = { .number = read_optional(r, 's') };

	id.is_punycode = take(r, 'u');
	id.size = read_decimal(r);
	take(r, '_');
	if (r->out->bad || id.size > (size_t)(r->end - r->at)) {
		fail(r);
		id.size = 0;
	}
	id.text = r->at;
	r->at += id.size;
	return id;
}

/* Digits to '_'; *ret_text are they, *ret_size without the '_'. */
static uint64_t
read_hexadecimal(struct rust *r, const char **ret_text, size_t *ret_size)
{
	uint64_t n = 0;
	char     c;

	*ret_text = r->at;
	while ((c = next(r)) != '_' && !r->out->bad) {
		unsigned digit = demangle_digit(c);

		if (digit >= 16)
			fail(r);
		n = n << 4 | (digit & 15);
	}
	*ret_size = r->out->bad ? 0 : (size_t)(r->at - *ret_text) - 1;
	return n;
}

/* ---- what is written while it is read ---- */

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
		fail(r);
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
		fail(r);
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
	uint64_t before = r->lifetimes, more = read_optional(r, 'G');

	if (more > 64 || r->out->bad) {
		fail(r);
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
	if (take(r, 'L'))
		put_lifetime(r, read_base62(r));
	else if (take(r, 'K'))
		constant(r);
	else
		type(r);
}

/* Does a list go on?  Where the result is full the rest is not read, so no E comes. */
static bool
goes_on(struct rust *r)
{
	return !r->out->bad && (r->at < r->end || r->out->size < DEMANGLE_RESULT_MAX) && !take(r, 'E');
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
generic_arguments(struct rust *r)
{
	bool before = r->is_silent;

	r->is_silent |= r->is_short;
	list(r, generic_argument);
	r->is_silent = before;
}

static void
nested_path(struct rust *r, bool in_value)
{
	char              space = next(r);
	struct rust_identifier id;

	path(r, in_value);
	id = read_identifier(r);
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

	read_optional(r, 's');
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
	switch (c = next(r)) {
	case 'C':
		id = read_identifier(r);
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
		generic_arguments(r);
		is_open = leave_open;
		put(r, leave_open ? "" : ">");
		break;
	case 'B':
		back = go_back(r);
		if (back && !r->is_silent)
			is_open = path_open(r, in_value, leave_open);
		if (back)
			r->at = back;
		break;
	default: fail(r);
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

	put(r, take(r, 'U') ? "unsafe " : "");
	if (take(r, 'K')) {
		put(r, "extern \"");
		if (take(r, 'C'))
			put(r, "C");
		else {
			struct rust_identifier abi = read_identifier(r);

			for (size_t i = 0; i < abi.size; i++)
				put_bytes(r, abi.text[i] == '_' ? "-" : &abi.text[i], 1);
		}
		put(r, "\" ");
	}
	put(r, "fn(");
	list(r, type);
	put(r, ")");
	if (!take(r, 'u')) {
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
		while (take(r, 'p')) {
			struct rust_identifier id = read_identifier(r);

			put(r, is_open ? ", " : "<");
			is_open = true;
			put_identifier(r, &id);
			put(r, " = ");
			type(r);
		}
		put(r, is_open ? ">" : "");
	}
	r->lifetimes = before;
	if (!take(r, 'L'))
		fail(r);
	else {
		uint64_t lifetime = read_base62(r);

		put(r, lifetime ? " + " : "");
		if (lifetime)
			put_lifetime(r, lifetime);
	}
}

static void
reference(struct rust *r, const char *text)
{
	put(r, "&");
	if (take(r, 'L')) {
		uint64_t lifetime = read_base62(r);

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
	const char *back = go_back(r);

	if (back && !r->is_silent)
		read(r);
	if (back)
		r->at = back;
}

static void
composed_type(struct rust *r)
{
	char c = next(r);

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
	const char *basic = basic_type(peek(r));

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
		fail(r);
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
		put(r, take(r, 'n') ? "-" : "");
	n = read_hexadecimal(r, &text, &size);
	if (kind == 'b' && n <= 1)
		put(r, n ? "true" : "false");
	else if (kind == 'c')
		character(r, n);
	else if (kind == 'b')
		fail(r);
	else if (size > 16) {
		put(r, "0x");
		put_bytes(r, text, size);
	} else
		put_number(r, n);
}

static void
constant(struct rust *r)
{
	char c = next(r);

	if (demangle_enter(r->out)) {
		if (c == 'B')
			back_reference(r, constant);
		else if (c == 'p')
			put(r, "_");
		else if (c && strchr("abchijlmnostxy", c))
			number(r, c);
		else
			fail(r); /* structures: nobody has seen one in a symbol table */
	} else
		r->at = r->end;
	demangle_leave(r->out);
}

bool
demangle_rust(struct demangle_room *room, const char *name, const char *end)
{
	struct rust r = { .out = &room->out, .start = name + 2, .at = name + 2, .end = end,
		.is_short = room->is_short };

	demangle_out_start(r.out);
	if (end - name < 3 || name[0] != '_' || name[1] != 'R' || name[2] < 'A' || name[2] > 'Z')
		return false;
	path(&r, true);
	/* Which crate has made it. */
	r.is_silent = true;
	if (peek(&r) >= 'A' && peek(&r) <= 'Z')
		path(&r, false);
	return r.out->size == DEMANGLE_RESULT_MAX || (!r.out->bad && r.out->size > 0 && r.at == end);
}
