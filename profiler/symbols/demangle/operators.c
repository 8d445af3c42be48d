/*
 * operators.c - the operators of C++, by the two letters that stand for each.
 *
 * From the Itanium C++ ABI, 5.1.3 and 5.1.6.  What a stranger would get wrong: some are
 * names of functions alone (operator new), some only stand in expressions (sizeof).
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "operators.h"

#include <stddef.h>

static const struct demangle_operator operators[] = {
	{ "aN", 2, FORM_BINARY, "&=" },
	{ "aS", 2, FORM_BINARY, "=" },
	{ "aa", 2, FORM_BINARY, "&&" },
	{ "ad", 1, FORM_UNARY, "&" },
	{ "an", 2, FORM_BINARY, "&" },
	{ "at", 0, FORM_TYPE, "alignof " },
	{ "aw", 1, FORM_UNARY, "co_await " },
	{ "az", 0, FORM_UNARY, "alignof " },
	{ "cc", 0, FORM_CAST, "const_cast" },
	{ "cl", 2, FORM_NONE, "()" },
	{ "cm", 2, FORM_BINARY, "," },
	{ "co", 1, FORM_UNARY, "~" },
	{ "dV", 2, FORM_BINARY, "/=" },
	{ "da", 1, FORM_UNARY, "delete[] " },
	{ "dc", 0, FORM_CAST, "dynamic_cast" },
	{ "de", 1, FORM_UNARY, "*" },
	{ "dl", 1, FORM_UNARY, "delete " },
	{ "ds", 0, FORM_BINARY, ".*" },
	{ "dt", 0, FORM_MEMBER, "." },
	{ "dv", 2, FORM_BINARY, "/" },
	{ "eO", 2, FORM_BINARY, "^=" },
	{ "eo", 2, FORM_BINARY, "^" },
	{ "eq", 2, FORM_BINARY, "==" },
	{ "ge", 2, FORM_BINARY, ">=" },
	{ "gs", 0, FORM_UNARY, "::" },
	{ "gt", 2, FORM_BINARY, ">" },
	{ "ix", 2, FORM_NONE, "[]" },
	{ "lS", 2, FORM_BINARY, "<<=" },
	{ "le", 2, FORM_BINARY, "<=" },
	{ "ls", 2, FORM_BINARY, "<<" },
	{ "lt", 2, FORM_BINARY, "<" },
	{ "mI", 2, FORM_BINARY, "-=" },
	{ "mL", 2, FORM_BINARY, "*=" },
	{ "mi", 2, FORM_BINARY, "-" },
	{ "ml", 2, FORM_BINARY, "*" },
	{ "mm", 1, FORM_UNARY, "--" },
	{ "na", 3, FORM_NONE, "new[]" },
	{ "ne", 2, FORM_BINARY, "!=" },
	{ "ng", 1, FORM_UNARY, "-" },
	{ "nt", 1, FORM_UNARY, "!" },
	{ "nw", 3, FORM_NONE, "new" },
	{ "nx", 0, FORM_UNARY, "noexcept" },
	{ "oR", 2, FORM_BINARY, "|=" },
	{ "oo", 2, FORM_BINARY, "||" },
	{ "or", 2, FORM_BINARY, "|" },
	{ "pL", 2, FORM_BINARY, "+=" },
	{ "pl", 2, FORM_BINARY, "+" },
	{ "pm", 2, FORM_BINARY, "->*" },
	{ "pp", 1, FORM_UNARY, "++" },
	{ "ps", 1, FORM_UNARY, "+" },
	{ "pt", 2, FORM_MEMBER, "->" },
	{ "qu", 3, FORM_NONE, "?" },
	{ "rM", 2, FORM_BINARY, "%=" },
	{ "rS", 2, FORM_BINARY, ">>=" },
	{ "rc", 0, FORM_CAST, "reinterpret_cast" },
	{ "rm", 2, FORM_BINARY, "%" },
	{ "rs", 2, FORM_BINARY, ">>" },
	{ "sc", 0, FORM_CAST, "static_cast" },
	{ "ss", 2, FORM_BINARY, "<=>" },
	{ "st", 0, FORM_TYPE, "sizeof " },
	{ "sz", 0, FORM_UNARY, "sizeof " },
	{ "te", 0, FORM_UNARY, "typeid " },
	{ "ti", 0, FORM_TYPE, "typeid " },
	{ "tw", 0, FORM_UNARY, "throw " },
};

const struct demangle_operator *
demangle_operator_find(char first, char second)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
		if (operators[i].code[0] == first && operators[i].code[1] == second)
			return &operators[i];
	return NULL;
}
