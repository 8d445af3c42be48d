/*
 * cxx_read.c - nodes of the tree of a C++ name, numbers and lists in the name.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "cxx.h"

unsigned
cxx_fail(struct demangle_room *r)
{
	r->bad = true;
	r->at = r->end;
	return 0;
}

bool
cxx_enter(struct demangle_room *r)
{
	if (++r->depth > DEMANGLE_DEPTH_MAX)
		cxx_fail(r);
	return !r->bad;
}

unsigned
cxx_leave(struct demangle_room *r, unsigned node)
{
	r->depth--;
	return node || r->bad ? node : cxx_fail(r);
}

unsigned
cxx_node(struct demangle_room *r, enum demangle_kind kind, unsigned a, unsigned b)
{
	struct demangle_node *n = &r->nodes[r->node_count];

	if (r->bad || r->node_count == DEMANGLE_NODES_MAX)
		return cxx_fail(r);
	*n = (struct demangle_node){ .kind = (uint8_t)kind, .a = (uint16_t)a, .b = (uint16_t)b };
	return r->node_count++;
}

unsigned
cxx_node_text(struct demangle_room *r, enum demangle_kind kind, const char *text, size_t size, unsigned a)
{
	unsigned n = cxx_node(r, kind, a, 0);

	if (n) {
		r->nodes[n].text = text;
		r->nodes[n].size = (uint32_t)size;
	}
	return n;
}

unsigned
cxx_node_string(struct demangle_room *r, enum demangle_kind kind, const char *text, unsigned a)
{
	return cxx_node_text(r, kind, text, strlen(text), a);
}

unsigned
cxx_node_numbered(struct demangle_room *r, enum demangle_kind kind, const char *text, unsigned b, size_t number)
{
	unsigned n = cxx_node_string(r, kind, text, 0);

	if (n) {
		r->nodes[n].b = (uint16_t)b;
		r->nodes[n].number = (uint32_t)number;
	}
	return n;
}

void
cxx_add_sub(struct demangle_room *r, unsigned n)
{
	if (!n || r->sub_count == DEMANGLE_SUBS_MAX)
		cxx_fail(r);
	else
		r->subs[r->sub_count++] = (uint16_t)n;
}

/* The list of what read() reads until end. */
unsigned
cxx_read_list(struct demangle_room *r, unsigned (*read)(struct demangle_room *), char end)
{
	unsigned first = 0, last = 0;

	while (!r->bad && cxx_peek(r, 0) != end && r->at < r->end) {
		unsigned item = read(r), n = cxx_node(r, NODE_LIST, item, 0);

		if (last)
			r->nodes[last].b = (uint16_t)n;
		else
			first = n;
		last = n;
	}
	cxx_want(r, (char[]){ end, '\0' });
	return first;
}

size_t
cxx_read_decimal(struct demangle_room *r)
{
	size_t n = 0;

	if (!cxx_is_digit(cxx_peek(r, 0)))
		cxx_fail(r);
	while (cxx_is_digit(cxx_peek(r, 0)) && n < 100000000)
		n = n * 10 + (size_t)(*r->at++ - '0');
	return n;
}

/* "_" is 0, "0_" is 1 and so on; in base 10 or 36. */
size_t
cxx_read_sequence(struct demangle_room *r, unsigned base)
{
	size_t n = 0;

	if (cxx_take(r, "_"))
		return 0;
	for (; r->at < r->end && *r->at != '_' && n < 100000; r->at++) {
		unsigned digit = cxx_is_digit(*r->at) ? (unsigned)(*r->at - '0') : (unsigned)(*r->at - 'A') + 10;

		if (digit >= base)
			cxx_fail(r);
		n = n * base + digit;
		if (r->bad)
			return 0;
	}
	cxx_want(r, "_");
	return n + 1;
}
