/*
 * cxx_print.c - writes the tree of a C++ name as c++filt does.
 *
 * A type is written around what it declares: int (*)(char) begins with its left part,
 * "int (*", and ends with its right part, ")(char)".
 *
 * What a stranger would get wrong: nodes have many parents, so a tree of ten of them can
 * take a thousand million steps; each function that calls itself enters and leaves
 * struct demangle_out, which counts them.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include <string.h>

#include "room.h"

typedef const struct demangle_node node;

static void left(struct demangle_room *r, unsigned n);
static void right(struct demangle_room *r, unsigned n);

static void
put(struct demangle_room *r, const char *text)
{
	demangle_put_string(&r->out, text);
}

static void
put_text(struct demangle_room *r, node *n)
{
	if (n->text)
		demangle_put(&r->out, n->text, n->size);
}

/* All of a node. */
static void
print(struct demangle_room *r, unsigned n)
{
	left(r, n);
	right(r, n);
}

/* The item of that number; 0: there is none. */
static unsigned
list_item(struct demangle_room *r, unsigned list, unsigned number)
{
	for (; number && list; number--, r->out.steps++)
		list = r->nodes[list].b;
	return list ? r->nodes[list].a : 0;
}

/* What T_ stands for; of a pack the one that is its turn while it is expanded. */
static unsigned
real(struct demangle_room *r, unsigned n)
{
	for (unsigned hops = 0; hops < DEMANGLE_DEPTH_MAX; hops++) {
		node *at = &r->nodes[n];

		if (at->kind != NODE_PARAM || r->in_lambda)
			return n;
		n = list_item(r, r->params, at->number);
		if (!n)
			break;
		if (r->nodes[n].kind == NODE_PACK && r->packing)
			n = list_item(r, r->nodes[n].a, r->pack_index);
	}
	r->out.bad |= !n;
	return 0;
}

static unsigned
list_size(struct demangle_room *r, unsigned list)
{
	unsigned n = 0;

	for (; list && r->nodes[list].a; list = r->nodes[list].b)
		n++;
	return n;
}

static void
print_list(struct demangle_room *r, unsigned list)
{
	for (bool first = true; list && !r->out.bad && r->out.size < DEMANGLE_RESULT_MAX; list = r->nodes[list].b) {
		size_t before = r->out.size, after;

		if (!first)
			put(r, ", ");
		after = r->out.size;
		print(r, r->nodes[list].a);
		r->out.steps++;
		if (r->out.size == after)
			r->out.size = before; /* an empty pack */
		else
			first = false;
	}
}

static void
print_around(struct demangle_room *r, const char *before, unsigned n, const char *after)
{
	put(r, before);
	print(r, n);
	put(r, after);
}

/* ---- expansions ---- */

/* The first pack that is referred to below n; 0: there is none. */
static unsigned
find_pack(struct demangle_room *r, unsigned n)
{
	unsigned found = 0;
	node    *at = &r->nodes[n];

	if (at->kind == NODE_PARAM) {
		n = r->in_lambda ? 0 : list_item(r, r->params, at->number);
		return r->nodes[n].kind == NODE_PACK ? n : 0;
	}
	if (!n || at->kind == NODE_EXPANSION || at->kind == NODE_FUNCTION)
		return 0;
	if (demangle_enter(&r->out)) {
		found = find_pack(r, at->a);
		if (!found)
			found = find_pack(r, at->b);
		if (!found)
			found = find_pack(r, at->c);
	}
	demangle_leave(&r->out);
	return found;
}

static void
print_expansion(struct demangle_room *r, unsigned pattern)
{
	unsigned pack = find_pack(r, pattern), before = r->pack_index, size;
	bool     was = r->packing;

	if (!pack) {
		print(r, pattern);
		put(r, "...");
		return;
	}
	size = list_size(r, r->nodes[pack].a);
	r->packing = true;
	for (unsigned i = 0; i < size && !r->out.bad; i++) {
		r->pack_index = i;
		if (i)
			put(r, ", ");
		print(r, pattern);
	}
	r->packing = was;
	r->pack_index = before;
}

/* ---- names ---- */

/* The last part of a class's name, without arguments: what its constructor is called. */
static void
print_last(struct demangle_room *r, unsigned n)
{
	for (unsigned hops = 0; hops < DEMANGLE_DEPTH_MAX; hops++) {
		node *at = &r->nodes[n = real(r, n)];

		switch (at->kind) {
		case NODE_NESTED:
		case NODE_LOCAL: n = at->b; break;
		case NODE_TAGGED:
		case NODE_TEMPLATE: n = at->a; break;
		case NODE_STD: put(r, at->other); return;
		default: print(r, n); return;
		}
	}
}

static void
print_std(struct demangle_room *r, node *at)
{
	const char *arguments = r->is_short ? memchr(at->text, '<', at->size) : NULL;

	demangle_put(&r->out, at->text, arguments ? (size_t)(arguments - at->text) : at->size);
}

static void
print_template(struct demangle_room *r, node *at)
{
	print(r, at->a);
	if (r->is_short)
		return;
	if (demangle_last(&r->out) == '<')
		put(r, " ");
	put(r, "<");
	print_list(r, at->b);
	if (demangle_last(&r->out) == '>')
		put(r, " ");
	put(r, ">");
}

static void
print_operator(struct demangle_room *r, node *at)
{
	size_t size = at->size;

	if (at->a) {
		put(r, "operator\"\" ");
		put_text(r, at);
		return;
	}
	put(r, "operator");
	if (at->text[0] >= 'a' && at->text[0] <= 'z')
		put(r, " ");
	if (size && at->text[size - 1] == ' ')
		size--;
	demangle_put(&r->out, at->text, size);
}

static void
print_bits(struct demangle_room *r, unsigned bits)
{
	static const char *const texts[] = { " const", " volatile", " __restrict", " &", " &&", " noexcept" };

	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (bits >> i & 1)
			put(r, texts[i]);
}

static void
print_lambda(struct demangle_room *r, node *at)
{
	bool before = r->in_lambda;

	put(r, "{lambda(");
	r->in_lambda = true;
	print_list(r, at->b);
	r->in_lambda = before;
	put(r, ")#");
	demangle_put_number(&r->out, at->number);
	put(r, "}");
}

static void
print_special(struct demangle_room *r, node *at)
{
	put_text(r, at);
	if (at->number) {
		demangle_put_number(&r->out, at->number - 1);
		put(r, " for ");
	}
	print(r, at->a);
	if (at->b) {
		put(r, "-in-");
		print(r, at->b);
	}
}

/* ---- types ---- */

enum shape { PLAIN, FUNCTION, ARRAY };

static enum shape
shape_of(struct demangle_room *r, unsigned n)
{
	for (unsigned hops = 0; hops < DEMANGLE_DEPTH_MAX; hops++) {
		node *at = &r->nodes[n = real(r, n)];

		if (at->kind == NODE_SIGNATURE)
			return FUNCTION;
		if (at->kind == NODE_ARRAY)
			return ARRAY;
		if (at->kind != NODE_QUALIFIED)
			return PLAIN;
		n = at->a;
	}
	return PLAIN;
}

/* Has it a right part? */
static bool
has_right(struct demangle_room *r, unsigned n)
{
	for (unsigned hops = 0; hops < DEMANGLE_DEPTH_MAX; hops++) {
		node *at = &r->nodes[n = real(r, n)];

		if (at->kind == NODE_SIGNATURE || at->kind == NODE_ARRAY)
			return true;
		if (at->kind != NODE_QUALIFIED && at->kind != NODE_POINTER && at->kind != NODE_MEMBER)
			return false;
		n = at->kind == NODE_MEMBER ? at->b : at->a;
	}
	return false;
}

/* Of a reference const says nothing. */
static unsigned
real_target(struct demangle_room *r, unsigned n)
{
	unsigned to = real(r, n), behind = r->nodes[to].kind == NODE_QUALIFIED ? real(r, r->nodes[to].a) : 0;

	return r->nodes[behind].kind == NODE_POINTER && r->nodes[behind].text[0] == '&' ? behind : to;
}

/* A reference to a reference is one; && gives way to &. */
static const char *
collapse(struct demangle_room *r, node *at, unsigned *ret_to)
{
	const char *text = at->text;

	*ret_to = real_target(r, at->a);
	for (unsigned hops = 0; text[0] == '&' && hops < DEMANGLE_DEPTH_MAX; hops++) {
		node *to = &r->nodes[*ret_to];

		if (to->kind != NODE_POINTER || to->text[0] != '&')
			break;
		if (to->text[1] == '\0')
			text = to->text;
		*ret_to = real_target(r, to->a);
	}
	return text;
}

static void
left_pointer(struct demangle_room *r, node *at)
{
	unsigned    to;
	const char *text = collapse(r, at, &to);
	enum shape  shape = shape_of(r, to);

	left(r, to);
	put(r, shape == FUNCTION ? "(" : shape == ARRAY ? " (" : "");
	put(r, text);
}

static void
right_pointer(struct demangle_room *r, node *at)
{
	unsigned to;

	collapse(r, at, &to);
	put(r, shape_of(r, to) != PLAIN ? ")" : "");
	right(r, to);
}

static void
left_member(struct demangle_room *r, node *at)
{
	enum shape shape = shape_of(r, at->b);

	left(r, at->b);
	put(r, shape == FUNCTION ? "(" : shape == ARRAY ? " (" : " ");
	print(r, at->a);
	put(r, "::*");
}

static void
left_signature(struct demangle_room *r, node *at)
{
	if (!at->a)
		return;
	left(r, at->a);
	if (!has_right(r, at->a))
		put(r, " ");
}

static void
right_signature(struct demangle_room *r, node *at)
{
	put(r, "(");
	print_list(r, at->b);
	put(r, ")");
	if (at->a)
		right(r, at->a);
	print_bits(r, at->bits);
}

static void
right_array(struct demangle_room *r, node *at)
{
	put(r, demangle_last(&r->out) == ']' ? "[" : " [");
	print(r, at->b);
	put(r, "]");
	right(r, at->a);
}

static void
left_qualified(struct demangle_room *r, node *at)
{
	unsigned to = real(r, at->a), bits = at->bits;

	left(r, to);
	if (r->nodes[to].kind == NODE_QUALIFIED)
		bits &= ~(unsigned)r->nodes[to].bits;
	if (r->nodes[to].kind == NODE_SIGNATURE || (r->nodes[to].kind == NODE_POINTER && r->nodes[to].text[0] == '&'))
		return;
	print_bits(r, bits);
}

/* ---- all of them ---- */

/* ---- expressions ---- */

static bool
is_type(node *type, const char *text)
{
	return type->kind == NODE_TEXT && type->size == strlen(text) && !memcmp(type->text, text, type->size);
}

static void
print_literal(struct demangle_room *r, node *at)
{
	static const char *const suffixes[][2] = { { "int", "" }, { "unsigned int", "u" }, { "long", "l" },
						    { "unsigned long", "ul" }, { "long long", "ll" },
						    { "unsigned long long", "ull" } };
	node                    *type = &r->nodes[real(r, at->a)];
	const char              *text = at->text, *suffix = NULL;
	size_t                   size = at->size;

	if (is_type(type, "bool") && size == 1 && (*text == '0' || *text == '1')) {
		put(r, *text == '1' ? "true" : "false");
		return;
	}
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (is_type(type, suffixes[i][0]))
			suffix = suffixes[i][1];
	if (!suffix) {
		put(r, "(");
		print(r, at->a);
		put(r, ")");
	}
	if (size && *text == 'n') {
		put(r, "-");
		text++;
		size--;
	}
	demangle_put(&r->out, text, size);
	put(r, suffix ? suffix : "");
}

/* An operand: in parentheses if it is more than a name. */
static void
print_operand(struct demangle_room *r, unsigned n)
{
	node *at = &r->nodes[n = real(r, n)];
	bool  is_simple = at->kind == NODE_TEXT || at->kind == NODE_NESTED || at->kind == NODE_BRACES ||
			  at->kind == NODE_NUMBERED;

	put(r, is_simple ? "" : "(");
	print(r, n);
	put(r, is_simple ? "" : ")");
}

static void
print_unary(struct demangle_room *r, node *at)
{
	unsigned a = real(r, at->a);

	put_text(r, at);
	if (at->size == 1 && at->text[0] == '&' && r->nodes[a].kind == NODE_FUNCTION &&
	    r->nodes[r->nodes[a].a].kind == NODE_NESTED)
		a = r->nodes[a].a; /* of a function: its name is enough */
	if ((at->size == 2 && at->text[0] == ':') ||
	    (at->size == 1 && at->text[0] == '~' && r->nodes[a].kind == NODE_TEXT))
		print(r, a);
	else
		print_operand(r, a);
}

static void
print_binary(struct demangle_room *r, node *at)
{
	bool is_greater = at->size == 1 && at->text[0] == '>'; /* would end a template's arguments */

	put(r, is_greater ? "(" : "");
	print_operand(r, at->a);
	put_text(r, at);
	print_operand(r, at->b);
	put(r, is_greater ? ")" : "");
}

static void
print_fold(struct demangle_room *r, node *at)
{
	unsigned parts[] = { at->a, at->c ? at->c : at->b, at->c ? at->b : 0 };

	put(r, "(");
	for (unsigned i = 0; i < 3 && parts[i]; i++) {
		node *part = &r->nodes[parts[i]];

		if (i)
			put_text(r, at);
		if (part->kind == NODE_TEXT && part->size == 3 && part->text[0] == '.')
			put(r, "...");
		else
			print_operand(r, parts[i]);
	}
	put(r, ")");
}

static void
print_call(struct demangle_room *r, node *at)
{
	unsigned callee = real(r, at->a);

	if (r->nodes[callee].kind == NODE_FUNCTION)
		callee = r->nodes[callee].a;
	print_operand(r, callee);
	put(r, "(");
	print_list(r, at->b);
	put(r, ")");
}

static void
print_cast(struct demangle_room *r, node *at)
{
	bool is_named = at->size > 0;

	put_text(r, at);
	put(r, is_named ? "<" : "(");
	print(r, at->a);
	put(r, is_named ? ">(" : ")");
	if (is_named)
		print(r, at->b);
	else
		print_operand(r, at->b);
	put(r, is_named ? ")" : "");
}

static void
print_ternary(struct demangle_room *r, node *at)
{
	print_operand(r, at->a);
	put(r, "?");
	print_operand(r, at->b);
	put(r, " : ");
	print_operand(r, at->c);
}

static void
print_count(struct demangle_room *r, node *at)
{
	unsigned pack = find_pack(r, at->a);

	if (pack) {
		demangle_put_number(&r->out, list_size(r, r->nodes[pack].a));
		return;
	}
	put(r, "sizeof...(");
	print(r, at->a);
	put(r, ")");
}

static void
left_expression(struct demangle_room *r, node *at)
{
	switch (at->kind) {
	case NODE_LITERAL: print_literal(r, at); break;
	case NODE_UNARY: print_unary(r, at); break;
	case NODE_BINARY: print_binary(r, at); break;
	case NODE_TERNARY: print_ternary(r, at); break;
	case NODE_CALL: print_call(r, at); break;
	case NODE_CAST: print_cast(r, at); break;
	case NODE_FOLD: print_fold(r, at); break;
	case NODE_COUNT: print_count(r, at); break;
	case NODE_BRACES:
		print(r, at->a);
		put(r, "{");
		print_list(r, at->b);
		put(r, "}");
		break;
	case NODE_WRAPPED:
		put_text(r, at);
		print_around(r, "", at->a, ")");
		break;
	case NODE_TYPED:
		put_text(r, at);
		print_around(r, "(", at->a, ")");
		break;
	default: break;
	}
}

/* ---- all ---- */

static void print_function(struct demangle_room *r, node *at, bool with_arguments);

/* The function that something is in. */
static void
print_enclosing(struct demangle_room *r, unsigned n)
{
	node *at = &r->nodes[n];

	if (r->is_short && at->kind == NODE_FUNCTION)
		print_function(r, at, false);
	else
		print(r, n);
}

static void
left_name(struct demangle_room *r, node *at)
{
	switch (at->kind) {
	case NODE_TEXT: put_text(r, at); break;
	case NODE_STD: print_std(r, at); break;
	case NODE_LOCAL:
		print_enclosing(r, at->a);
		put(r, "::");
		print(r, at->b);
		break;
	case NODE_NESTED:
		print_around(r, "", at->a, "::");
		print(r, at->b);
		break;
	case NODE_TEMPLATE: print_template(r, at); break;
	case NODE_PACK: print_list(r, at->a); break;
	case NODE_LIST: break; /* of no arguments */
	case NODE_EXPANSION: print_expansion(r, at->a); break;
	case NODE_SPECIAL: print_special(r, at); break;
	case NODE_CONSTRUCTOR:
		put_text(r, at);
		print_last(r, at->a);
		break;
	case NODE_CONVERSION: print_around(r, "operator ", at->a, ""); break;
	case NODE_OPERATOR: print_operator(r, at); break;
	case NODE_TAGGED:
		print_around(r, "", at->a, "[abi:");
		put_text(r, at);
		put(r, "]");
		break;
	case NODE_BINDING:
		put(r, "[");
		print_list(r, at->a);
		put(r, "]");
		break;
	case NODE_LAMBDA: print_lambda(r, at); break;
	case NODE_PARAM:
		put(r, "auto:");
		demangle_put_number(&r->out, at->number + 1);
		break;
	case NODE_NUMBERED:
		put(r, "{");
		put_text(r, at);
		put(r, "#");
		demangle_put_number(&r->out, at->number);
		put(r, "}");
		break;
	case NODE_AUTO:
		put_text(r, at);
		demangle_put_number(&r->out, at->number);
		break;
	default: left_expression(r, at);
	}
}

static void
print_function(struct demangle_room *r, node *at, bool with_arguments)
{
	struct demangle_node signature = r->nodes[at->b];
	uint16_t             before = r->params;
	bool                 in_lambda = r->in_lambda;

	if (!with_arguments)
		signature.a = signature.b = 0;
	r->in_lambda = false;
	if (at->c)
		r->params = at->c;
	left_signature(r, &signature);
	print(r, at->a);
	right_signature(r, &signature);
	r->params = before;
	r->in_lambda = in_lambda;
}

static void
left(struct demangle_room *r, unsigned n)
{
	node *at = &r->nodes[real(r, n)];

	if (demangle_enter(&r->out))
		switch (at->kind) {
		case NODE_POINTER: left_pointer(r, at); break;
		case NODE_QUALIFIED: left_qualified(r, at); break;
		case NODE_MEMBER: left_member(r, at); break;
		case NODE_SIGNATURE: left_signature(r, at); break;
		case NODE_ARRAY: left(r, at->a); break;
		case NODE_VECTOR:
			print(r, at->a);
			print_around(r, " __vector(", at->b, ")");
			break;
		case NODE_SUFFIXED:
			print_around(r, "", at->a, " ");
			print(r, at->b);
			break;
		case NODE_FUNCTION: print_function(r, at, true); break;
		default: left_name(r, at);
		}
	demangle_leave(&r->out);
}

static void
right(struct demangle_room *r, unsigned n)
{
	node *at = &r->nodes[real(r, n)];

	if (demangle_enter(&r->out))
		switch (at->kind) {
		case NODE_POINTER: right_pointer(r, at); break;
		case NODE_QUALIFIED: right(r, at->a); break;
		case NODE_MEMBER:
			put(r, shape_of(r, at->b) != PLAIN ? ")" : "");
			right(r, at->b);
			break;
		case NODE_SIGNATURE: right_signature(r, at); break;
		case NODE_ARRAY: right_array(r, at); break;
		default: break;
		}
	demangle_leave(&r->out);
}

void
demangle_cxx_print(struct demangle_room *r, unsigned n)
{
	r->packing = r->in_lambda = false;
	r->pack_index = 0;
	print(r, n);
}
