/*
 * demangle.c - C++ names as people write them.
 *
 * A daemon with C++ in it has a demangler: __cxa_demangle of its own C++ library,
 * found by a weak reference, so that a C daemon needs none and gets none.
 *
 * What a stranger would get wrong: that function is safe for names a compiler makes,
 * not for names somebody has crafted.  Its stack grows with the name (340 bytes for
 * each byte, measured with libstdc++ 12), so that a name of 1 KiB is too much for a
 * small thread; and a back reference (S1_, T0_) repeats what it refers to, so that 250
 * bytes can stand for 500 MB.  Two limits come first: the length, and how much the
 * references can unfold into, which is most when each level has three of them.  Of
 * 197,000 names in a distribution's libraries, 12 are over a limit; they stay mangled.
 *
 * It also calls malloc: names are looked up when a profile is written, on a thread of
 * our own that is never sampled, so this is allowed here and nowhere else.
 *
 * Tests: tests/test_symbols.c, tests/symbols.t
 */
#include <config.h>

#include "demangle.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

#define LENGTH_MAX ((size_t)512)      /* bytes of mangled name: 175 KiB of stack at worst */
#define UNFOLD_MAX ((size_t)16 << 20) /* bytes its references may stand for, at worst */
#define RESULT_MAX ((size_t)4096)     /* bytes of the readable name; the rest is cut */

extern char *__cxa_demangle(const char *name, char *buf, size_t *size, int *status) __attribute__((weak));

/* S or T, a number in base 36, an underscore. */
static bool
is_reference(const char *s)
{
	if (*s != 'S' && *s != 'T')
		return false;
	do {
		s++;
	} while ((*s >= '0' && *s <= '9') || (*s >= 'A' && *s <= 'Z'));
	return *s == '_';
}

static bool
is_reasonable(const char *name)
{
	size_t n = strnlen(name, LENGTH_MAX + 1), unfolded = n, references = 0;

	if (n > LENGTH_MAX)
		return false;
	for (; *name; name++)
		if (is_reference(name) && ++references % 3 == 0) {
			unfolded *= 3;
			if (unfolded > UNFOLD_MAX)
				return false;
		}
	return true;
}

const char *
demangle(const char *name, struct arena *a)
{
	static const char stub[] = "@plt";
	size_t            n = strnlen(name, LENGTH_MAX + sizeof(stub));
	const char       *copy = NULL;
	char              bare[LENGTH_MAX + 1], *result, *whole;
	bool              is_stub;
	int               status = -1;

	if (strncmp(name, "_Z", 2) || !__cxa_demangle)
		return NULL;
	/* Ours, for the stub of a function: it is not mangled with the name. */
	is_stub = n >= sizeof(stub) && n < LENGTH_MAX + sizeof(stub) && !strcmp(name + n - (sizeof(stub) - 1), stub);
	if (is_stub) {
		n -= sizeof(stub) - 1;
		memcpy(bare, name, n);
		bare[n] = '\0';
		name = bare;
	}
	if (!is_reasonable(name))
		return NULL;
	result = __cxa_demangle(name, NULL, NULL, &status);
	if (!status && result && *result && is_stub) {
		n = strnlen(result, RESULT_MAX);
		whole = realloc(result, n + sizeof(stub));
		if (whole) {
			memcpy(whole + n, stub, sizeof(stub));
			result = whole;
		}
	}
	if (!status && result && *result)
		copy = utf8_clean(a, result, strnlen(result, RESULT_MAX + sizeof(stub)));
	free(result);
	return copy;
}
