/*
 * options.c - a deep copy of what component_profiler_start_options() is given, so
 * that the caller's strings may go, and a forked child can start from it again.
 *
 * options.def says what is to be copied and what may change.  The struct carries its size:
 * a program built against an older header hands over a shorter one, and what it does not
 * know keeps its default.
 *
 * Tests: tests/serve/test_options.c.
 */
#include <config.h>

#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(a)  (sizeof(a) / sizeof((a)[0]))
#define SIZE_LEAST offsetof(struct component_profiler_options, debug_socket_path)

enum kind { BOOL, COUNT, INT, SIZE, STRING, ADDRESS, LIST, ENUM, ASIS };
enum life { START, CHANGE, RELOAD };

/* The types that kinds stand for; the compiler refuses another one. */
#define TYPE_COUNT   int64_t
#define TYPE_INT     int64_t
#define TYPE_SIZE    uint64_t
#define TYPE_STRING  const char *
#define TYPE_ADDRESS const char *
#define TYPE_LIST    const char *const *
#define TYPE_BOOL    bool
#define TYPE_ENUM    default
#define TYPE_ASIS    default

static const struct member {
	const char *name;
	size_t      at;
	enum kind   kind;
	enum life   life;
} members[] = {
#define FLAG(member, ...)
#define OPTION(member, kind, life, ...) MEMBER(member, kind, life)
#define MEMBER(member, kind, life)                                                                       \
	{ #member, offsetof(struct component_profiler_options, member),                                  \
		_Generic(((struct component_profiler_options *)NULL)->member, TYPE_##kind: kind), life },
#include "options.def"
#undef MEMBER
};

/* Each has 8 bytes of its own: one in the padding of another would be of no known value in a
 * struct from an older program, and of the same size. */
_Static_assert(sizeof(void *) != 8 || (LENGTH(members) + 1) * 8 == sizeof(struct component_profiler_options),
	"each member of struct component_profiler_options but size has a row in options.def, and 8 bytes");

/* A member, whatever its type. */
typedef void *__attribute__((may_alias))   pointer;
typedef uint64_t __attribute__((may_alias)) word;

static void *
place(const struct component_profiler_options *o, const struct member *m)
{
	return (char *)(uintptr_t)o + m->at;
}

static int
string_copy(const char **s)
{
	if (*s && !(*s = strdup(*s)))
		return -ENOMEM;
	return 0;
}

static int
list_copy(const char *const **list)
{
	const char *const *from = *list;
	const char       **to;
	size_t             n = 0;

	*list = NULL;
	if (!from)
		return 0;
	while (from[n])
		n++;
	to = calloc(n + 1, sizeof(*to));
	if (!to)
		return -ENOMEM;
	*list = to;
	for (size_t i = 0; i < n; i++) {
		to[i] = strdup(from[i]);
		if (!to[i])
			return -ENOMEM;
	}
	return 0;
}

static void
list_release(const char *const *list)
{
	for (size_t i = 0; list && list[i]; i++)
		free((char *)(uintptr_t)list[i]);
	free((char **)(uintptr_t)list);
}

/* To something that is copied. */
static bool
is_pointer(const struct member *m)
{
	return m->kind == STRING || m->kind == ADDRESS || m->kind == LIST;
}

static int
check(const struct component_profiler_options *o, struct component_error *err)
{
	for (size_t i = 0; i < LENGTH(members); i++) {
		const int64_t *n = place(o, &members[i]);

		if (members[i].kind != COUNT || *n > 0)
			continue;
		component_error_set(err, "%s: %lld is not above 0", members[i].name, (long long)*n);
		return -EINVAL;
	}
	return 0;
}

int
options_copy(struct component_profiler_options *to, const struct component_profiler_options *from,
	struct component_error *err)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	int                               r;

	if (from->size < SIZE_LEAST || from->size > 16 * sizeof(o)) {
		component_error_set(err, "struct component_profiler_options: size %zu; "
			"start with COMPONENT_PROFILER_OPTIONS_INIT", from->size);
		return -EINVAL;
	}
	memcpy(&o, from, from->size < sizeof(o) ? from->size : sizeof(o));
	o.size = sizeof(o);
	r = check(&o, err);
	if (r)
		return r;
	for (size_t i = 0; i < LENGTH(members); i++) {
		const struct member *m = &members[i];

		if (!is_pointer(m))
			continue;
		if (r)
			*(pointer *)place(&o, m) = NULL; /* the caller's */
		else
			r = m->kind == LIST ? list_copy(place(&o, m)) : string_copy(place(&o, m));
	}
	if (r) {
		options_release(&o);
		return r;
	}
	*to = o;
	return 0;
}

void
options_change(struct component_profiler_options *now, struct component_profiler_options *fresh)
{
	for (size_t i = 0; i < LENGTH(members); i++) {
		void *a = place(now, &members[i]), *b = place(fresh, &members[i]);

		if (members[i].life == START)
			continue;
		if (is_pointer(&members[i])) {
			pointer was = *(pointer *)a;

			*(pointer *)a = *(pointer *)b;
			*(pointer *)b = was;
		} else {
			__atomic_store_n((word *)a, *(word *)b, __ATOMIC_RELAXED);
		}
	}
}

void
options_release(struct component_profiler_options *o)
{
	for (size_t i = 0; i < LENGTH(members); i++) {
		if (members[i].kind == LIST)
			list_release(*(const char *const **)place(o, &members[i]));
		else if (is_pointer(&members[i]))
			free(*(pointer *)place(o, &members[i]));
	}
	memset(o, 0, sizeof(*o));
}
