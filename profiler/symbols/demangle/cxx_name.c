/*
 * cxx_name.c - names in C++ names: plain, nested, local, with arguments.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "cxx.h"

#include "operators.h"

unsigned
cxx_read_source_name(struct demangle_room *r)
{
	static const char anonymous[] = "_GLOBAL__N";
	size_t            size = cxx_read_decimal(r);
	const char       *text = r->at;

	if (r->bad || size == 0 || size > (size_t)(r->end - r->at))
		return cxx_fail(r);
	r->at += size;
	if (size >= sizeof(anonymous) - 1 && !memcmp(text, "_GLOBAL_", 8) && strchr("._$", text[8]) && text[9] == 'N')
		return cxx_node_string(r, NODE_TEXT, "(anonymous namespace)", 0);
	return cxx_node_text(r, NODE_TEXT, text, size, 0);
}

static unsigned
read_tags(struct demangle_room *r, unsigned name)
{
	while (!r->bad && cxx_take(r, "B")) {
		unsigned tag = cxx_read_source_name(r);

		if (tag)
			name = cxx_node_text(r, NODE_TAGGED, r->nodes[tag].text, r->nodes[tag].size, name);
	}
	return name;
}

static unsigned
read_operator(struct demangle_room *r, struct cxx_state *state)
{
	const struct demangle_operator *op;
	unsigned                        type;

	if (cxx_take(r, "cv")) {
		bool before = r->in_conversion;

		r->in_conversion = state != NULL;
		type = cxx_read_type(r);
		r->in_conversion = before;
		if (state)
			state->no_return = true;
		return cxx_node(r, NODE_CONVERSION, type, 0);
	}
	if (cxx_take(r, "li")) {
		type = cxx_read_source_name(r);
		return type ? cxx_node_text(r, NODE_OPERATOR, r->nodes[type].text, r->nodes[type].size, type) : 0;
	}
	op = demangle_operator_find(cxx_peek(r, 0), cxx_peek(r, 1));
	if (!op || !op->arity)
		return cxx_fail(r);
	r->at += 2;
	return cxx_node_string(r, NODE_OPERATOR, op->name, 0);
}

static unsigned
read_unnamed(struct demangle_room *r)
{
	unsigned params;

	if (cxx_take(r, "Ut"))
		return cxx_node_numbered(r, NODE_NUMBERED, "unnamed type", 0, cxx_read_sequence(r, 10) + 1);
	cxx_want(r, "Ul");
	params = cxx_take(r, "vE") ? 0 : cxx_read_list(r, cxx_read_type, 'E');
	return cxx_node_numbered(r, NODE_LAMBDA, "", params, cxx_read_sequence(r, 10) + 1);
}

unsigned
cxx_read_unqualified(struct demangle_room *r, struct cxx_state *state)
{
	char     c = cxx_peek(r, 0);
	unsigned n;

	if (cxx_is_digit(c))
		n = cxx_read_source_name(r);
	else if (c == 'U')
		n = read_unnamed(r);
	else if (cxx_take(r, "DC"))
		n = cxx_node(r, NODE_BINDING, cxx_read_list(r, cxx_read_source_name, 'E'), 0);
	else
		n = read_operator(r, state);
	return read_tags(r, n);
}

/* Of the class that has been read so far. */
static unsigned
read_constructor(struct demangle_room *r, unsigned of, struct cxx_state *state)
{
	bool     is_destructor = *r->at++ == 'D', is_inherited;
	unsigned n;

	is_inherited = !is_destructor && cxx_take(r, "I");
	if (r->at < r->end)
		r->at++; /* which one of them: complete, base, deleting */
	if (is_inherited)
		cxx_read_type(r);
	if (r->bad || !of)
		return cxx_fail(r);
	if (state)
		state->no_return = true;
	/* A standard abbreviation is written out before its constructor. */
	if (r->nodes[of].kind == NODE_STD) {
		n = cxx_node_string(r, NODE_STD, r->nodes[of].whole, 0);
		if (n) {
			r->nodes[n].other = r->nodes[n].whole = r->nodes[of].other;
			r->nodes[n].whole = r->nodes[of].whole;
		}
		of = n;
	}
	n = cxx_node_string(r, NODE_CONSTRUCTOR, is_destructor ? "~" : "", of);
	return cxx_node(r, NODE_NESTED, of, read_tags(r, n));
}

unsigned
cxx_read_substitution(struct demangle_room *r)
{
	static const struct {
		char        letter[3];
		const char *name, *last, *whole;
	} standard[] = {
#define STREAM(s) "std::basic_" s "<char, std::char_traits<char> >"
		{ "Sa", "std::allocator", "allocator", "std::allocator" },
		{ "Sb", "std::basic_string", "basic_string", "std::basic_string" },
		{ "Ss", "std::string", "basic_string",
		  "std::basic_string<char, std::char_traits<char>, std::allocator<char> >" },
		{ "Si", "std::istream", "basic_istream", STREAM("istream") },
		{ "So", "std::ostream", "basic_ostream", STREAM("ostream") },
		{ "Sd", "std::iostream", "basic_iostream", STREAM("iostream") },
	};
	size_t number;

	for (size_t i = 0; i < sizeof(standard) / sizeof(*standard); i++)
		if (cxx_take(r, standard[i].letter)) {
			unsigned n = cxx_node_string(r, NODE_STD, standard[i].name, 0), tagged;

			if (!n)
				return 0;
			r->nodes[n].other = standard[i].last;
			r->nodes[n].whole = standard[i].whole;
			tagged = read_tags(r, n);
			if (tagged != n)
				cxx_add_sub(r, tagged);
			return tagged;
		}
	cxx_want(r, "S");
	number = cxx_read_sequence(r, 36);
	return r->bad || number >= r->sub_count ? cxx_fail(r) : r->subs[number];
}

/* T_, T0_ ... */
unsigned
cxx_read_param(struct demangle_room *r)
{
	size_t   number;
	unsigned n;

	cxx_want(r, "T");
	number = cxx_read_sequence(r, 10);
	if (r->bad)
		return 0;
	n = cxx_node(r, NODE_PARAM, 0, 0);
	r->nodes[n].number = (uint32_t)number;
	return n;
}

/* ---- template arguments ---- */

unsigned
cxx_read_argument(struct demangle_room *r)
{
	unsigned n;

	if (cxx_take(r, "J") || cxx_take(r, "I")) { /* the latter: older GCCs */
		if (!cxx_enter(r))
			return 0;
		return cxx_leave(r, cxx_node(r, NODE_PACK, cxx_read_list(r, cxx_read_argument, 'E'), 0));
	}
	if (cxx_take(r, "X")) {
		n = cxx_read_expression(r);
		cxx_want(r, "E");
		return n;
	}
	return cxx_peek(r, 0) == 'L' ? cxx_read_expression(r) : cxx_read_type(r);
}

/* are_params: T_ means these from now on. */
static unsigned
read_arguments(struct demangle_room *r, bool are_params)
{
	unsigned n;

	if (!cxx_enter(r))
		return 0;
	cxx_want(r, "I");
	n = cxx_read_list(r, cxx_read_argument, 'E');
	if (!n)
		n = cxx_node(r, NODE_LIST, 0, 0); /* an empty list is a list */
	if (are_params)
		r->params = (uint16_t)n;
	return cxx_leave(r, n);
}

unsigned
cxx_with_arguments(struct demangle_room *r, unsigned name, bool are_params)
{
	return cxx_node(r, NODE_TEMPLATE, name, read_arguments(r, are_params));
}

/* ---- names with scopes ---- */

uint8_t
cxx_read_qualifiers(struct demangle_room *r)
{
	uint8_t bits = 0;

	if (cxx_take(r, "r"))
		bits |= QUAL_RESTRICT;
	if (cxx_take(r, "V"))
		bits |= QUAL_VOLATILE;
	if (cxx_take(r, "K"))
		bits |= QUAL_CONST;
	return bits;
}

/* One more piece of a nested name, behind what has been read so far. */
static unsigned
read_piece(struct demangle_room *r, unsigned so_far, struct cxx_state *state, bool *ret_is_template)
{
	char     c = cxx_peek(r, 0), next = cxx_peek(r, 1);
	unsigned n;

	*ret_is_template = false;
	if (c == 'I' && so_far) {
		*ret_is_template = true;
		return cxx_with_arguments(r, so_far, state != NULL);
	}
	if (c == 'T' && !so_far)
		return cxx_read_param(r);
	if (c == 'D' && (next == 't' || next == 'T'))
		return cxx_read_type(r);
	if (cxx_take(r, "St"))
		so_far = cxx_node_string(r, NODE_TEXT, "std", 0);
	if (so_far && (c == 'C' || (c == 'D' && (cxx_is_digit(next) || next == 'I'))))
		return read_constructor(r, so_far, state);
	cxx_take(r, "L");
	n = cxx_read_unqualified(r, state);
	return so_far ? cxx_node(r, NODE_NESTED, so_far, n) : n;
}

static unsigned
read_nested(struct demangle_room *r, struct cxx_state *state)
{
	unsigned so_far = 0;
	uint8_t  bits;
	bool     is_template = false, is_sub = false;

	cxx_want(r, "N");
	bits = cxx_read_qualifiers(r);
	if (cxx_take(r, "O"))
		bits |= QUAL_RREF;
	if (cxx_take(r, "R"))
		bits |= QUAL_LREF;
	while (!r->bad && !cxx_take(r, "E")) {
		if (cxx_take(r, "M")) /* of a member's initializer */
			continue;
		is_sub = !so_far && cxx_peek(r, 0) == 'S' && cxx_peek(r, 1) != 't';
		is_template = false;
		if (is_sub)
			so_far = cxx_read_substitution(r);
		else
			so_far = read_piece(r, so_far, state, &is_template);
		if (!is_sub && cxx_peek(r, 0) != 'E')
			cxx_add_sub(r, so_far);
	}
	if (state) {
		state->bits = bits;
		state->is_template = is_template;
	}
	return so_far;
}

static void
skip_discriminator(struct demangle_room *r)
{
	bool is_long = cxx_take(r, "__");

	if (!is_long && !(cxx_peek(r, 0) == '_' && cxx_is_digit(cxx_peek(r, 1))))
		return;
	if (!is_long)
		r->at += 2;
	else {
		cxx_read_decimal(r);
		cxx_want(r, "_");
	}
}

static unsigned
read_local(struct demangle_room *r, struct cxx_state *state)
{
	uint16_t before = r->params;
	unsigned function, n;
	size_t   number;

	cxx_want(r, "Z");
	function = cxx_read_encoding(r, false);
	cxx_want(r, "E");
	if (before)
		r->params = before;
	if (cxx_take(r, "s"))
		n = cxx_node_string(r, NODE_TEXT, "string literal", 0);
	else if (cxx_take(r, "d")) {
		number = cxx_read_sequence(r, 10);
		n = cxx_node_numbered(r, NODE_NUMBERED, "default arg", 0, number + 1);
		n = cxx_node(r, NODE_NESTED, n, cxx_read_name(r, state));
	} else
		n = cxx_read_name(r, state);
	skip_discriminator(r);
	return cxx_node(r, NODE_LOCAL, function, n);
}

/* state: of what is encoded; NULL: of a type. */
unsigned
cxx_read_name(struct demangle_room *r, struct cxx_state *state)
{
	unsigned n;
	bool     is_sub = false;

	if (!cxx_enter(r))
		return 0;
	if (cxx_peek(r, 0) == 'N')
		return cxx_leave(r, read_nested(r, state));
	if (cxx_peek(r, 0) == 'Z')
		return cxx_leave(r, read_local(r, state));
	if (cxx_take(r, "St")) {
		n = cxx_node_string(r, NODE_TEXT, "std", 0);
		cxx_take(r, "L");
		n = cxx_node(r, NODE_NESTED, n, cxx_read_unqualified(r, state));
	} else if (cxx_peek(r, 0) == 'S') {
		n = cxx_read_substitution(r);
		is_sub = true;
	} else {
		cxx_take(r, "L");
		n = cxx_read_unqualified(r, state);
	}
	if (cxx_peek(r, 0) == 'I') {
		if (!is_sub)
			cxx_add_sub(r, n);
		n = cxx_with_arguments(r, n, state != NULL);
		if (state)
			state->is_template = true;
	}
	return cxx_leave(r, n);
}
