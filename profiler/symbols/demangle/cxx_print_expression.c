/*
 * cxx_print_expression.c - writes the expressions in a C++ name.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "cxx_print.h"

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
	node                    *type = &r->nodes[cxx_real(r, at->a)];
	const char              *text = at->text, *suffix = NULL;
	size_t                   size = at->size;

	if (is_type(type, "bool") && size == 1 && (*text == '0' || *text == '1')) {
		cxx_put(r, *text == '1' ? "true" : "false");
		return;
	}
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (is_type(type, suffixes[i][0]))
			suffix = suffixes[i][1];
	if (!suffix) {
		cxx_put(r, "(");
		cxx_print(r, at->a);
		cxx_put(r, ")");
	}
	if (size && *text == 'n') {
		cxx_put(r, "-");
		text++;
		size--;
	}
	demangle_put(&r->out, text, size);
	cxx_put(r, suffix ? suffix : "");
}

/* An operand: in parentheses if it is more than a name. */
static void
print_operand(struct demangle_room *r, unsigned n)
{
	node *at = &r->nodes[n = cxx_real(r, n)];
	bool  is_simple = at->kind == NODE_TEXT || at->kind == NODE_NESTED || at->kind == NODE_BRACES ||
			  at->kind == NODE_NUMBERED;

	cxx_put(r, is_simple ? "" : "(");
	cxx_print(r, n);
	cxx_put(r, is_simple ? "" : ")");
}

static void
print_unary(struct demangle_room *r, node *at)
{
	unsigned a = cxx_real(r, at->a);

	cxx_put_text(r, at);
	if (at->size == 1 && at->text[0] == '&' && r->nodes[a].kind == NODE_FUNCTION &&
	    r->nodes[r->nodes[a].a].kind == NODE_NESTED)
		a = r->nodes[a].a; /* of a function: its name is enough */
	if ((at->size == 2 && at->text[0] == ':') ||
	    (at->size == 1 && at->text[0] == '~' && r->nodes[a].kind == NODE_TEXT))
		cxx_print(r, a);
	else
		print_operand(r, a);
}

static void
print_binary(struct demangle_room *r, node *at)
{
	bool is_greater = at->size == 1 && at->text[0] == '>'; /* would end a template's arguments */

	cxx_put(r, is_greater ? "(" : "");
	print_operand(r, at->a);
	cxx_put_text(r, at);
	print_operand(r, at->b);
	cxx_put(r, is_greater ? ")" : "");
}

static void
print_fold(struct demangle_room *r, node *at)
{
	unsigned parts[] = { at->a, at->c ? at->c : at->b, at->c ? at->b : 0 };

	cxx_put(r, "(");
	for (unsigned i = 0; i < 3 && parts[i]; i++) {
		node *part = &r->nodes[parts[i]];

		if (i)
			cxx_put_text(r, at);
		if (part->kind == NODE_TEXT && part->size == 3 && part->text[0] == '.')
			cxx_put(r, "...");
		else
			print_operand(r, parts[i]);
	}
	cxx_put(r, ")");
}

static void
print_call(struct demangle_room *r, node *at)
{
	unsigned callee = cxx_real(r, at->a);

	if (r->nodes[callee].kind == NODE_FUNCTION)
		callee = r->nodes[callee].a;
	print_operand(r, callee);
	cxx_put(r, "(");
	cxx_print_list(r, at->b);
	cxx_put(r, ")");
}

static void
print_cast(struct demangle_room *r, node *at)
{
	bool is_named = at->size > 0;

	cxx_put_text(r, at);
	cxx_put(r, is_named ? "<" : "(");
	cxx_print(r, at->a);
	cxx_put(r, is_named ? ">(" : ")");
	if (is_named)
		cxx_print(r, at->b);
	else
		print_operand(r, at->b);
	cxx_put(r, is_named ? ")" : "");
}

static void
print_ternary(struct demangle_room *r, node *at)
{
	print_operand(r, at->a);
	cxx_put(r, "?");
	print_operand(r, at->b);
	cxx_put(r, " : ");
	print_operand(r, at->c);
}

static void
print_count(struct demangle_room *r, node *at)
{
	unsigned pack = cxx_find_pack(r, at->a);

	if (pack) {
		demangle_put_number(&r->out, cxx_list_size(r, r->nodes[pack].a));
		return;
	}
	cxx_put(r, "sizeof...(");
	cxx_print(r, at->a);
	cxx_put(r, ")");
}

void
cxx_left_expression(struct demangle_room *r, node *at)
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
		cxx_print(r, at->a);
		cxx_put(r, "{");
		cxx_print_list(r, at->b);
		cxx_put(r, "}");
		break;
	case NODE_WRAPPED:
		cxx_put_text(r, at);
		cxx_print_around(r, "", at->a, ")");
		break;
	case NODE_TYPED:
		cxx_put_text(r, at);
		cxx_print_around(r, "(", at->a, ")");
		break;
	default: break;
	}
}
