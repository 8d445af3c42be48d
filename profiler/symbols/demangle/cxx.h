/*
 * cxx.h - what the readers of C++ names share: the grammar's productions, nodes of
 * the tree, and the next characters.
 */
#ifndef SYMBOLS_DEMANGLE_CXX_H
#define SYMBOLS_DEMANGLE_CXX_H

#include <string.h>

#include "room.h"

struct cxx_state {
	bool    is_template, no_return; /* ends with arguments; is a constructor or conversion */
	uint8_t bits;                   /* qualifiers of a member function */
};

/* ---- cxx_read.c ---- */

/* Sets bad, and goes to the end, so that all readers stop.  0. */
unsigned cxx_fail(struct demangle_room *r);
/* Around each reader that calls itself. */
bool     cxx_enter(struct demangle_room *r);
unsigned cxx_leave(struct demangle_room *r, unsigned node);
unsigned cxx_node(struct demangle_room *r, enum demangle_kind kind, unsigned a, unsigned b);
unsigned cxx_node_text(struct demangle_room *r, enum demangle_kind kind, const char *text, size_t size, unsigned a);
unsigned cxx_node_string(struct demangle_room *r, enum demangle_kind kind, const char *text, unsigned a);
unsigned cxx_node_numbered(struct demangle_room *r, enum demangle_kind kind, const char *text, unsigned b,
			   size_t number);
void     cxx_add_sub(struct demangle_room *r, unsigned n);
/* The list of what read() reads until end. */
unsigned cxx_read_list(struct demangle_room *r, unsigned (*read)(struct demangle_room *), char end);
size_t   cxx_read_decimal(struct demangle_room *r);
/* "_" is 0, "0_" is 1 and so on; in base 10 or 36. */
size_t   cxx_read_sequence(struct demangle_room *r, unsigned base);

/* ---- cxx_name.c ---- */

/* state: of what is encoded; NULL: of a type. */
unsigned cxx_read_name(struct demangle_room *r, struct cxx_state *state);
unsigned cxx_read_unqualified(struct demangle_room *r, struct cxx_state *state);
unsigned cxx_read_source_name(struct demangle_room *r);
unsigned cxx_read_substitution(struct demangle_room *r);
unsigned cxx_read_param(struct demangle_room *r);
unsigned cxx_read_argument(struct demangle_room *r);
/* name<...>.  are_params: T_ means these from now on. */
unsigned cxx_with_arguments(struct demangle_room *r, unsigned name, bool are_params);
uint8_t  cxx_read_qualifiers(struct demangle_room *r);

/* ---- cxx_type.c, cxx_expression.c, cxx.c ---- */

unsigned cxx_read_type(struct demangle_room *r);
unsigned cxx_read_expression(struct demangle_room *r);
unsigned cxx_read_encoding(struct demangle_room *r, bool top);

/* ---- the next characters ---- */

static inline char
cxx_peek(const struct demangle_room *r, size_t i)
{
	return (size_t)(r->end - r->at) > i ? r->at[i] : '\0';
}

static inline bool
cxx_take(struct demangle_room *r, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0)
		return false;
	r->at += n;
	return true;
}

static inline void
cxx_want(struct demangle_room *r, const char *text)
{
	if (!cxx_take(r, text))
		cxx_fail(r);
}

static inline bool
cxx_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

#endif
