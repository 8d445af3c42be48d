/*
 * rust.h - a name of Rust's, as it is read.
 *
 * What cannot be read makes the name bad, and is the end of it: who reads need not look.
 */
#ifndef SYMBOLS_DEMANGLE_RUST_H
#define SYMBOLS_DEMANGLE_RUST_H

#include "room.h"

struct rust {
	struct demangle_out *out;
	const char          *start, *at, *end; /* places of references count from start */
	bool                 is_silent;        /* what is read is not shown */
	uint64_t             lifetimes;        /* bound by for<> around here */
};

struct rust_identifier {
	const char *text;
	size_t      size;
	uint64_t    number;
	bool        is_punycode;
};

void rust_fail(struct rust *r);
char rust_peek(const struct rust *r); /* 0 at the end, which is no failure */
bool rust_take(struct rust *r, char c);
char rust_next(struct rust *r);
uint64_t rust_read_decimal(struct rust *r);
/* "_" is 0, "0_" is 1 ... */
uint64_t rust_read_base62(struct rust *r);
/* One more than that behind a tag; 0 without one. */
uint64_t rust_read_optional(struct rust *r, char tag);
/* Digits to '_'; *ret_text are they, *ret_size without the '_'. */
uint64_t rust_read_hexadecimal(struct rust *r, const char **ret_text, size_t *ret_size);
struct rust_identifier rust_read_identifier(struct rust *r);
/* Behind a B: goes to the place that it names.  Where to come back to; NULL: it names none. */
const char *rust_go_back(struct rust *r);

#endif
