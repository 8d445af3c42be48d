/*
 * collectors.c - the table of collectors, from collectors.def.
 */
#include <config.h>

#include "collector.h"

#include <string.h>

const struct collector *const collectors[] = {
#define X(name) &collect_##name,
#include "collectors.def"
#undef X
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
	return NULL;
}
