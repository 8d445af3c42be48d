/*
 * rust_legacy.c - Rust's older names.
 *
 *     _ZN4core3ptr4drop17h0123456789abcdefE ──▶ core::ptr::drop
 *
 * They are nested names of C++ whose last part is a hash; what C++ has no letters for
 * stands between dollar signs.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "room.h"

#include <string.h>

/* $LT$ is '<'; returns how long it is, 0: it is none. */
static size_t
escape(struct demangle_out *o, const char *at, const char *end)
{
	static const struct {
		char name[4], is[2];
	} escapes[] = { { "SP", "@" }, { "BP", "*" }, { "RF", "&" }, { "LT", "<" },
			{ "GT", ">" }, { "LP", "(" }, { "RP", ")" }, { "C", "," } };
	const char *last = memchr(at + 1, '$', (size_t)(end - at) - 1);
	size_t      size = last ? (size_t)(last - at) - 1 : 0;
	uint32_t    c = 0;

	if (!size)
		return 0;
	for (size_t i = 0; i < sizeof(escapes) / sizeof(*escapes); i++)
		if (strlen(escapes[i].name) == size && !memcmp(escapes[i].name, at + 1, size)) {
			demangle_put_string(o, escapes[i].is);
			return size + 2;
		}
	if (at[1] != 'u' || size < 2 || size > 7)
		return 0;
	for (const char *d = at + 2; d < last; d++) {
		if (demangle_digit(*d) >= 16)
			return 0;
		c = c << 4 | demangle_digit(*d);
	}
	demangle_put_character(o, c);
	return size + 2;
}

static void
put_piece(struct demangle_out *o, const char *at, const char *end)
{
	size_t n;

	if (end - at > 1 && at[0] == '_' && at[1] == '$')
		at++;
	while (at < end && !o->bad) {
		n = *at == '$' ? escape(o, at, end) : 0;
		if (n)
			at += n;
		else if (end - at > 1 && at[0] == '.' && at[1] == '.') {
			demangle_put_string(o, "::");
			at += 2;
		} else
			demangle_put(o, at++, 1);
	}
}

/* h and 16 digits. */
static bool
is_hash(const char *text, size_t size)
{
	if (size != 17 || text[0] != 'h')
		return false;
	for (size_t i = 1; i < size; i++)
		if (demangle_digit(text[i]) >= 16)
			return false;
	return true;
}

bool
demangle_rust_legacy(struct demangle_room *room, const char *name, const char *end)
{
	struct demangle_out *o = &room->out;
	const char          *at = name + 3;

	demangle_out_start(o);
	if (end - name < 24 || memcmp(name, "_ZN", 3) != 0 || end[-1] != 'E' || memcmp(end - 20, "17h", 3) != 0)
		return false;
	for (bool first = true; !o->bad; first = false) {
		size_t size = 0;

		while (at < end && *at >= '0' && *at <= '9' && size < 10000)
			size = size * 10 + (size_t)(*at++ - '0');
		if (!size || size >= (size_t)(end - at))
			return false;
		if (at + size == end - 1)
			return o->size > 0 && is_hash(at, size);
		demangle_put_string(o, first ? "" : "::");
		put_piece(o, at, at + size);
		at += size;
	}
	return false;
}
