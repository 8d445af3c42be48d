/*
 * collectors.c - the table of collectors, from collectors.def.
 */
#include <config.h>

#include "collector.h"

#include <stdlib.h>
#include <string.h>

const struct collector *const collectors[] = {
#define ROW(name) &collect_##name,
#define FAMILY(name)
#include "collectors.def"
#undef ROW
#undef FAMILY
};

static const struct collector_family *const families[] = {
#define ROW(name)
#define FAMILY(name) &collect_##name,
#include "collectors.def"
#undef ROW
#undef FAMILY
	NULL
};

/* Go's index lists it among the profiles.  It is a page of the server: nothing is collected. */
const struct collector collect_cmdline = {
	.name = "cmdline",
	.description = "The command line invocation of the current program",
};

_Static_assert(sizeof(collectors) / sizeof(collectors[0]) <= COLLECTORS_MAX, "COLLECTORS_MAX");

const size_t collector_count = sizeof(collectors) / sizeof(collectors[0]);

const struct collector *
collector_find(const char *name)
{
	for (size_t i = 0; i < collector_count; i++)
		if (strcmp(collectors[i]->name, name) == 0 ||
		    (collectors[i]->alias && strcmp(collectors[i]->alias, name) == 0))
			return collectors[i];
	for (const struct collector_family *const *f = families; *f; f++) {
		const struct collector *c = (*f)->find(name);

		if (c)
			return c;
	}
	return NULL;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp((*(const struct collector *const *)a)->name, (*(const struct collector *const *)b)->name);
}

size_t
collector_list(const struct collector *ret[COLLECTORS_ALL_MAX])
{
	size_t n = collector_count;

	memcpy(ret, collectors, n * sizeof(*ret));
	for (const struct collector_family *const *f = families; *f; f++)
		n += (*f)->list(ret + n, COLLECTORS_ALL_MAX - n);
	qsort(ret, n, sizeof(*ret), by_name);
	return n;
}
