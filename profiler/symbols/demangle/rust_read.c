/*
 * rust_read.c - the letters, numbers and identifiers of Rust's names.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "rust.h"

void
rust_fail(struct rust *r)
{
	r->out->bad = true;
	r->at = r->end;
}

char
rust_peek(const struct rust *r)
{
	return r->at < r->end ? *r->at : '\0';
}

bool
rust_take(struct rust *r, char c)
{
	if (rust_peek(r) != c || !c)
		return false;
	r->at++;
	return true;
}

char
rust_next(struct rust *r)
{
	if (r->at < r->end)
		return *r->at++;
	rust_fail(r);
	return '\0';
}

uint64_t
rust_read_decimal(struct rust *r)
{
	uint64_t n = 0;

	if (rust_peek(r) < '0' || rust_peek(r) > '9')
		rust_fail(r);
	if (rust_take(r, '0'))
		return 0;
	while (rust_peek(r) >= '0' && rust_peek(r) <= '9' && n < UINT32_MAX)
		n = n * 10 + (uint64_t)(*r->at++ - '0');
	return n;
}

uint64_t
rust_read_base62(struct rust *r)
{
	uint64_t n = 0;
	char     c;

	if (rust_take(r, '_'))
		return 0;
	while ((c = rust_next(r)) != '_' && !r->out->bad) {
		unsigned digit = demangle_digit(c);

		if (digit == DEMANGLE_DIGITS || __builtin_mul_overflow(n, DEMANGLE_DIGITS, &n) ||
		    __builtin_add_overflow(n, digit, &n))
			rust_fail(r);
	}
	return n + 1;
}

uint64_t
rust_read_optional(struct rust *r, char tag)
{
	return rust_take(r, tag) ? rust_read_base62(r) + 1 : 0;
}

const char *
rust_go_back(struct rust *r)
{
	const char *here = r->at - 1, *back;
	uint64_t    place = rust_read_base62(r);

	back = r->at;
	if (r->out->bad || place >= (uint64_t)(here - r->start)) {
		rust_fail(r);
		return NULL;
	}
	r->at = r->start + place;
	return back;
}

struct rust_identifier
rust_read_identifier(struct rust *r)
{
	struct rust_identifier id = { .number = rust_read_optional(r, 's') };

	id.is_punycode = rust_take(r, 'u');
	id.size = rust_read_decimal(r);
	rust_take(r, '_');
	if (r->out->bad || id.size > (size_t)(r->end - r->at)) {
		rust_fail(r);
		id.size = 0;
	}
	id.text = r->at;
	r->at += id.size;
	return id;
}

uint64_t
rust_read_hexadecimal(struct rust *r, const char **ret_text, size_t *ret_size)
{
	uint64_t n = 0;
	char     c;

	*ret_text = r->at;
	while ((c = rust_next(r)) != '_' && !r->out->bad) {
		unsigned digit = demangle_digit(c);

		if (digit >= 16)
			rust_fail(r);
		n = n << 4 | (digit & 15);
	}
	*ret_size = r->out->bad ? 0 : (size_t)(r->at - *ret_text) - 1;
	return n;
}
