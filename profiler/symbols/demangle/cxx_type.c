/*
 * cxx_type.c - types in C++ names.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "cxx.h"

static const char *
builtin_name(char c)
{
	static const char *const names[26] = { /* c - 'a' */
		"signed char", "bool", "char", "double", "long double", "float", "__float128", "unsigned char", "int",
		"unsigned int", NULL, "long", "unsigned long", "__int128", "unsigned __int128", NULL, NULL, NULL,
		"short", "unsigned short", NULL, "void", "wchar_t", "long long", "unsigned long long", "..."
	};

	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

/* D and a letter. */
static const char *
builtin_d_name(char c)
{
	static const struct {
		char        letter;
		const char *name;
	} names[] = { { 'a', "auto" }, { 'c', "decltype(auto)" }, { 'd', "decimal64" }, { 'e', "decimal128" },
		      { 'f', "decimal32" }, { 'h', "half" }, { 'i', "char32_t" }, { 'n', "decltype(nullptr)" },
		      { 's', "char16_t" }, { 'u', "char8_t" } };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].letter == c)
			return names[i].name;
	return NULL;
}

static unsigned
read_function_type(struct demangle_room *r, uint8_t bits)
{
	unsigned result, params, n;

	cxx_want(r, "F");
	cxx_take(r, "Y");
	result = cxx_read_type(r);
	if (cxx_take(r, "v"))
		params = 0;
	else {
		uint16_t first = 0;
		unsigned last = 0;

		while (!r->bad && cxx_peek(r, 0) != 'E' && r->at < r->end &&
		       !((cxx_peek(r, 0) == 'R' || cxx_peek(r, 0) == 'O') && cxx_peek(r, 1) == 'E')) {
			unsigned item = cxx_node(r, NODE_LIST, cxx_read_type(r), 0);

			if (last)
				r->nodes[last].b = (uint16_t)item;
			else
				first = (uint16_t)item;
			last = item;
		}
		params = first;
	}
	if (cxx_take(r, "R"))
		bits |= QUAL_LREF;
	if (cxx_take(r, "O"))
		bits |= QUAL_RREF;
	cxx_want(r, "E");
	n = cxx_node(r, NODE_SIGNATURE, result, params);
	r->nodes[n].bits = bits;
	return n;
}

static unsigned
read_dimension(struct demangle_room *r)
{
	const char *from = r->at;

	if (!cxx_is_digit(cxx_peek(r, 0)))
		return cxx_read_expression(r);
	cxx_read_decimal(r);
	return cxx_node_text(r, NODE_TEXT, from, (size_t)(r->at - from), 0);
}

static unsigned
read_array(struct demangle_room *r)
{
	unsigned size;

	cxx_want(r, "A");
	size = cxx_peek(r, 0) == '_' ? 0 : read_dimension(r);
	cxx_want(r, "_");
	return cxx_node(r, NODE_ARRAY, cxx_read_type(r), size);
}

static unsigned
read_vector(struct demangle_room *r)
{
	unsigned size = cxx_take(r, "_") ? cxx_read_expression(r) : read_dimension(r);

	cxx_want(r, "_");
	return cxx_node(r, NODE_VECTOR, cxx_read_type(r), size);
}

/* Behind D, all that is no builtin. */
static unsigned
read_type_d(struct demangle_room *r)
{
	unsigned n;

	if (cxx_take(r, "Dt") || cxx_take(r, "DT")) {
		n = cxx_node_string(r, NODE_WRAPPED, "decltype (", cxx_read_expression(r));
		cxx_want(r, "E");
		return n;
	}
	if (cxx_take(r, "Dp"))
		return cxx_node(r, NODE_EXPANSION, cxx_read_type(r), 0);
	if (cxx_take(r, "Dv"))
		return read_vector(r);
	if (cxx_take(r, "Do"))
		return read_function_type(r, QUAL_NOEXCEPT);
	if (cxx_take(r, "DF")) {
		n = cxx_node_numbered(r, NODE_AUTO, "_Float", 0, cxx_read_decimal(r));
		cxx_want(r, "_");
		return n;
	}
	return cxx_fail(r);
}

static unsigned
read_type_param(struct demangle_room *r)
{
	unsigned n = cxx_read_param(r);

	if (cxx_peek(r, 0) != 'I' || r->in_conversion)
		return n;
	cxx_add_sub(r, n);
	return cxx_with_arguments(r, n, false);
}

/* S, without the t behind it: done says that it is in the table already. */
static unsigned
read_type_sub(struct demangle_room *r, bool *ret_known)
{
	unsigned n = cxx_read_substitution(r);

	*ret_known = cxx_peek(r, 0) != 'I';
	return *ret_known ? n : cxx_with_arguments(r, n, false);
}

static unsigned
read_pointer(struct demangle_room *r, const char *text)
{
	r->at++;
	return cxx_node_string(r, NODE_POINTER, text, cxx_read_type(r));
}

static unsigned
read_suffixed(struct demangle_room *r, const char *text)
{
	unsigned type;

	r->at++;
	type = cxx_read_type(r);
	return cxx_node(r, NODE_SUFFIXED, type, cxx_node_string(r, NODE_TEXT, text, 0));
}

static unsigned
read_qualified(struct demangle_room *r)
{
	uint8_t  bits = cxx_read_qualifiers(r);
	unsigned n;

	if (cxx_peek(r, 0) == 'F')
		return read_function_type(r, bits);
	if (cxx_take(r, "Do"))
		return read_function_type(r, bits | QUAL_NOEXCEPT);
	n = cxx_node(r, NODE_QUALIFIED, cxx_read_type(r), 0);
	r->nodes[n].bits = bits;
	return n;
}

/* Behind U: what a vendor says of a type. */
static unsigned
read_vendor_qualified(struct demangle_room *r)
{
	unsigned name;

	r->at++;
	name = cxx_read_source_name(r);
	if (cxx_peek(r, 0) == 'I')
		name = cxx_with_arguments(r, name, false);
	return cxx_node(r, NODE_SUFFIXED, cxx_read_type(r), name);
}

/* Those that can be referred to; *ret_known: it was referred to. */
static unsigned
read_type_composed(struct demangle_room *r, bool *ret_known)
{
	unsigned n;

	switch (cxx_peek(r, 0)) {
	case 'r':
	case 'V':
	case 'K': return read_qualified(r);
	case 'P': return read_pointer(r, "*");
	case 'R': return read_pointer(r, "&");
	case 'O': return read_pointer(r, "&&");
	case 'C': return read_suffixed(r, "_Complex");
	case 'G': return read_suffixed(r, "_Imaginary");
	case 'A': return read_array(r);
	case 'F': return read_function_type(r, 0);
	case 'M':
		r->at++;
		n = cxx_read_type(r);
		return cxx_node(r, NODE_MEMBER, n, cxx_read_type(r));
	case 'U':
		if (cxx_peek(r, 1) == 't' || cxx_peek(r, 1) == 'l')
			return cxx_read_name(r, NULL);
		return read_vendor_qualified(r);
	case 'u': r->at++; return cxx_read_source_name(r);
	case 'D': return read_type_d(r);
	case 'T':
		if (cxx_take(r, "Ts") || cxx_take(r, "Tu") || cxx_take(r, "Te"))
			return cxx_read_name(r, NULL);
		return read_type_param(r);
	case 'S':
		if (cxx_peek(r, 1) != 't')
			return read_type_sub(r, ret_known);
		return cxx_read_name(r, NULL);
	default: return cxx_read_name(r, NULL);
	}
}

unsigned
cxx_read_type(struct demangle_room *r)
{
	const char *builtin = builtin_name(cxx_peek(r, 0));
	bool        is_known = false;
	unsigned    n;

	if (!cxx_enter(r))
		return 0;
	if (builtin) {
		r->at++;
		return cxx_leave(r, cxx_node_string(r, NODE_TEXT, builtin, 0));
	}
	builtin = cxx_peek(r, 0) == 'D' ? builtin_d_name(cxx_peek(r, 1)) : NULL;
	if (builtin) {
		r->at += 2;
		return cxx_leave(r, cxx_node_string(r, NODE_TEXT, builtin, 0));
	}
	is_known = cxx_peek(r, 0) == 'D' && cxx_peek(r, 1) == 'F';
	n = read_type_composed(r, &is_known);
	if (!is_known)
		cxx_add_sub(r, n);
	return cxx_leave(r, n);
}
