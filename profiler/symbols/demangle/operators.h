/*
 * operators.h - the operators of C++, by the two letters that stand for each.
 */
#ifndef SYMBOLS_DEMANGLE_OPERATORS_H
#define SYMBOLS_DEMANGLE_OPERATORS_H

enum demangle_form { FORM_NONE, FORM_UNARY, FORM_BINARY, FORM_MEMBER, FORM_TYPE, FORM_CAST };

struct demangle_operator {
	char        code[3];
	char        arity; /* 0: only in expressions, no function's name */
	char        form;  /* enum demangle_form: of an expression; NONE: it is read by itself or not at all */
	const char *name;
};

const struct demangle_operator *demangle_operator_find(char first, char second);

#endif
