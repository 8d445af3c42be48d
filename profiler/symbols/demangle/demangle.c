/*
 * demangle.c - C++ and Rust names as people write them.
 *
 *     name ──▶ _R...            rust.c ────────────────────────────▶ out.c
 *              _ZN...17h<hash>E rust_legacy.c ─────────────────────▶
 *              _Z...            cxx.c ──▶ a tree ──▶ cxx_print.c ──▶
 *
 * What compilers and we add behind a name is no part of it: ".constprop.0" becomes
 * " [clone .constprop.0]", as c++filt has it; our "@plt" stays.
 *
 * Why not __cxa_demangle(), which is where the C++ library is: a C daemon that loads C++
 * libraries as plugins has none of its own, and Rust's programs have none at all; it calls
 * malloc, needs 340 bytes of stack for each byte of the name, and unfolds 250 bytes into
 * 500 MB.  Of 235,000 C++ names of a distribution's libraries, 25 differ from what it says,
 * but for blanks, and none is left mangled that it knows.
 *
 * Tests: tests/symbols/test_demangle.c, tests/symbols/names.t
 */
#include <config.h>

#include "demangle.h"

#include <string.h>

#include "room.h"
#include "utf8.h"

#define LENGTH_MAX ((size_t)8192) /* bytes of mangled name */

static const char stub[] = "@plt";

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* One of ".constprop.0", ".cold", ".part.0.isra.1": a word, then numbers; 0: none. */
static size_t
clone_size(const char *at, const char *end)
{
	const char *from = at;

	if (end - at < 2 || *at != '.' || !(is_letter(at[1]) || (at[1] >= '0' && at[1] <= '9')))
		return 0;
	for (at++; at < end && is_letter(*at); at++)
		;
	if (at == from + 1)
		at = from;
	while (end - at > 1 && *at == '.' && at[1] >= '0' && at[1] <= '9')
		for (at++; at < end && *at >= '0' && *at <= '9'; at++)
			;
	return (size_t)(at - from);
}

/* " [clone .constprop.0]" for each; what is none stays as it is. */
static void
put_clones(struct demangle_out *o, const char *at, const char *end)
{
	size_t n;

	for (; (n = clone_size(at, end)); at += n) {
		demangle_put_string(o, " [clone ");
		demangle_put(o, at, n);
		demangle_put_string(o, "]");
	}
	demangle_put(o, at, (size_t)(end - at));
}

/* What is behind the name itself: a dot is in no name of C++, but in Rust's older ones. */
static const char *
suffix_of(const char *name, const char *end)
{
	const char *dot = memchr(name, '.', (size_t)(end - name)), *hash = NULL;

	for (const char *at = name; dot && (at = memchr(at, '1', (size_t)(end - at))); at++)
		if (end - at >= 20 && !memcmp(at, "17h", 3) && at[19] == 'E')
			hash = at + 20;
	if (hash)
		return hash;
	return dot ? dot : end;
}

static bool
take_apart(struct demangle_room *room, const char *name, const char *suffix, const char *end)
{
	if (name[1] == 'R')
		return demangle_rust(room, name, suffix);
	return demangle_rust_legacy(room, name, suffix) || demangle_cxx(room, name, room->is_short ? end : suffix);
}

static const char *
words_of(const char *name, bool is_short, struct demangle_room **room, struct arena *a)
{
	size_t      n = strnlen(name, LENGTH_MAX + sizeof(stub));
	const char *end = name + n, *is_stub, *suffix;

	if (n < 4 || n > LENGTH_MAX || name[0] != '_' || (name[1] != 'Z' && name[1] != 'R'))
		return NULL;
	if (!*room)
		*room = arena_alloc(a, sizeof(**room));
	if (!*room)
		return NULL;
	(*room)->is_short = is_short;
	is_stub = n >= sizeof(stub) && !memcmp(end - (sizeof(stub) - 1), stub, sizeof(stub)) ? stub : "";
	end -= strlen(is_stub);
	suffix = suffix_of(name, end);
	if (!take_apart(*room, name, suffix, end))
		return NULL;
	if (!is_short) {
		put_clones(&(*room)->out, suffix, end);
		demangle_put_string(&(*room)->out, is_stub);
	}
	return utf8_clean(a, (*room)->out.text, (*room)->out.size);
}

const char *
demangle(const char *name, struct demangle_room **room, struct arena *a)
{
	return words_of(name, false, room, a);
}

const char *
demangle_short(const char *name, struct demangle_room **room, struct arena *a)
{
	return words_of(name, true, room, a);
}
