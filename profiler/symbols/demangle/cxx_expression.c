/*
 * cxx_expression.c - expressions in C++ names, as arguments and in decltype.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "cxx.h"

#include "operators.h"

#define AGAIN_MAX 16 /* pieces of one name that are read twice */

static unsigned
read_literal(struct demangle_room *r)
{
	unsigned    type;
	const char *from;

	cxx_want(r, "L");
	if (cxx_take(r, "_Z") || cxx_take(r, "Z")) {
		type = cxx_read_encoding(r, true);
		cxx_want(r, "E");
		return type;
	}
	type = cxx_read_type(r);
	from = r->at;
	while (r->at < r->end && *r->at != 'E')
		r->at++;
	if (r->bad)
		return 0;
	type = cxx_node_text(r, NODE_LITERAL, from, (size_t)(r->at - from), type);
	cxx_want(r, "E");
	return type;
}

/* Lists of expressions to E. */
static unsigned
read_expressions(struct demangle_room *r)
{
	return cxx_read_list(r, cxx_read_expression, 'E');
}

/* fp_, fL0p_, fpT */
static unsigned
read_function_param(struct demangle_room *r)
{
	if (cxx_take(r, "fpT"))
		return cxx_node_string(r, NODE_TEXT, "this", 0);
	if (cxx_take(r, "fL")) {
		cxx_read_decimal(r);
		cxx_want(r, "p");
	} else
		cxx_want(r, "fp");
	cxx_read_qualifiers(r);
	return cxx_node_numbered(r, NODE_NUMBERED, "parm", 0, cxx_read_sequence(r, 10) + 1);
}

/* A name as an expression has it: foo, foo<int>, operator+ */
static unsigned
read_simple_name(struct demangle_room *r)
{
	unsigned n;

	if (cxx_take(r, "dn")) {
		n = cxx_is_digit(cxx_peek(r, 0)) ? read_simple_name(r) : cxx_read_type(r);
		return cxx_node_string(r, NODE_UNARY, "~", n);
	}
	cxx_take(r, "on");
	n = cxx_read_unqualified(r, NULL);
	return cxx_peek(r, 0) == 'I' ? cxx_with_arguments(r, n, false) : n;
}

/*
 * sr: a name in a type that depends on arguments.  GCC writes a type and a name; clang, if
 * there is no namespace N...E, pieces, E and a name: std is_signed<T> E value.  Which one
 * it is the end tells, so GCC's is read twice: that is done a few times, and no more.
 */
static unsigned
read_scoped(struct demangle_room *r)
{
	const char *at;
	unsigned    nodes = r->node_count, subs = r->sub_count, n, count = 1;
	uint16_t    params = r->params;

	cxx_want(r, "sr");
	at = r->at;
	if (cxx_is_digit(cxx_peek(r, 0))) {
		n = read_simple_name(r);
		for (; !r->bad && cxx_peek(r, 0) != 'E'; count++)
			n = cxx_node(r, NODE_NESTED, n, read_simple_name(r));
		if (count == 1 || cxx_is_digit(cxx_peek(r, 1))) {
			cxx_want(r, "E");
			return cxx_node(r, NODE_NESTED, n, read_simple_name(r));
		}
		if (r->bad || r->again++ == AGAIN_MAX)
			return cxx_fail(r);
		r->at = at;
		r->node_count = nodes;
		r->sub_count = subs;
		r->params = params;
	}
	n = cxx_read_type(r);
	return cxx_node(r, NODE_NESTED, n, read_simple_name(r));
}

static unsigned
read_conversion(struct demangle_room *r)
{
	unsigned type = cxx_read_type(r), n;

	if (cxx_take(r, "_"))
		return cxx_node(r, NODE_CALL, type, read_expressions(r));
	n = cxx_node(r, NODE_CAST, type, cxx_read_expression(r));
	if (n)
		r->nodes[n].text = "";
	return n;
}

static unsigned
read_fold(struct demangle_room *r)
{
	char                            form = cxx_peek(r, 1);
	const struct demangle_operator *op = demangle_operator_find(cxx_peek(r, 2), cxx_peek(r, 3));
	unsigned                        first, second, dots, n;

	if (!op || r->end - r->at < 4)
		return cxx_fail(r);
	r->at += 4;
	first = cxx_read_expression(r);
	dots = cxx_node_string(r, NODE_TEXT, "...", 0);
	if (form == 'l' || form == 'r')
		n = cxx_node_string(r, NODE_FOLD, op->name, form == 'l' ? dots : first);
	else
		n = cxx_node_string(r, NODE_FOLD, op->name, first);
	if (form == 'l' || form == 'r')
		second = form == 'l' ? first : dots;
	else
		second = cxx_read_expression(r);
	if (!n)
		return 0;
	r->nodes[n].b = (uint16_t)second;
	r->nodes[n].c = (uint16_t)(form == 'L' || form == 'R' ? dots : 0);
	return n;
}

static unsigned
read_operation(struct demangle_room *r)
{
	const struct demangle_operator *op = demangle_operator_find(cxx_peek(r, 0), cxx_peek(r, 1));
	unsigned                        a, b, n;
	bool                            is_named;

	if (!op)
		return cxx_fail(r);
	r->at += 2;
	switch (op->form) {
	case FORM_TYPE: return cxx_node_string(r, NODE_TYPED, op->name, cxx_read_type(r));
	case FORM_UNARY:
		cxx_take(r, "_"); /* ++x, not x++ */
		return cxx_node_string(r, NODE_UNARY, op->name, cxx_read_expression(r));
	case FORM_BINARY:
		a = cxx_read_expression(r);
		n = cxx_node_string(r, NODE_BINARY, op->name, a);
		break;
	case FORM_MEMBER:
		a = cxx_read_expression(r);
		n = cxx_node_string(r, NODE_BINARY, op->name, a);
		is_named = cxx_is_digit(cxx_peek(r, 0)) || cxx_peek(r, 0) == 'o' || cxx_peek(r, 0) == 'd';
		b = is_named ? read_simple_name(r) : cxx_read_expression(r);
		if (n)
			r->nodes[n].b = (uint16_t)b;
		return n;
	case FORM_CAST:
		a = cxx_read_type(r);
		n = cxx_node_string(r, NODE_CAST, op->name, a);
		break;
	default: return cxx_fail(r);
	}
	b = cxx_read_expression(r);
	if (n)
		r->nodes[n].b = (uint16_t)b;
	return n;
}

static unsigned
read_expression_inner(struct demangle_room *r)
{
	unsigned a, b, n;

	switch (cxx_peek(r, 0)) {
	case 'L': return read_literal(r);
	case 'T': return cxx_read_param(r);
	case 'f':
		if (cxx_peek(r, 1) == 'p' || (cxx_peek(r, 1) == 'L' && cxx_is_digit(cxx_peek(r, 2))))
			return read_function_param(r);
		return read_fold(r);
	case 'o': if (cxx_peek(r, 1) == 'n') return read_simple_name(r); break;
	default: if (cxx_is_digit(cxx_peek(r, 0))) return read_simple_name(r);
	}
	if (cxx_peek(r, 0) == 's' && cxx_peek(r, 1) == 'r')
		return read_scoped(r);
	if (cxx_take(r, "cl")) {
		a = cxx_read_expression(r);
		return cxx_node(r, NODE_CALL, a, read_expressions(r));
	}
	if (cxx_take(r, "cv"))
		return read_conversion(r);
	if (cxx_take(r, "tl")) {
		a = cxx_read_type(r);
		return cxx_node(r, NODE_BRACES, a, read_expressions(r));
	}
	if (cxx_take(r, "il"))
		return cxx_node(r, NODE_BRACES, 0, read_expressions(r));
	if (cxx_take(r, "qu")) {
		a = cxx_read_expression(r);
		b = cxx_read_expression(r);
		n = cxx_node(r, NODE_TERNARY, a, b);
		a = cxx_read_expression(r);
		r->nodes[n].c = (uint16_t)a;
		return n;
	}
	if (cxx_take(r, "sZ"))
		return cxx_node(r, NODE_COUNT, cxx_peek(r, 0) == 'T' ? cxx_read_param(r) : cxx_read_expression(r), 0);
	if (cxx_take(r, "sp"))
		return cxx_node(r, NODE_EXPANSION, cxx_read_expression(r), 0);
	return read_operation(r);
}

unsigned
cxx_read_expression(struct demangle_room *r)
{
	return cxx_enter(r) ? cxx_leave(r, read_expression_inner(r)) : 0;
}
