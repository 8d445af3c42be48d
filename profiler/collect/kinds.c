/*
 * kinds.c - the kinds of profile as a table, from profiler/kinds.def.
 *
 * A new kind is one row there; index, routes, docs and tests follow.
 */
#include <config.h>

#include "kinds.h"

#include <string.h>

#include "heap.h"
#include "threadcreate.h"
#include "threads.h"
#include "waits.h"

const struct kind kinds[] = {
#define X(kind_name, kind_description, kind_snapshot, kind_count_function, kind_windowed) \
	{ .name = #kind_name, .description = kind_description, .snapshot = kind_snapshot, \
	  .count = kind_count_function, .windowed = kind_windowed },
#include "kinds.def"
#undef X
};

const size_t kind_count = sizeof(kinds) / sizeof(kinds[0]);

const struct kind *
kind_find(const char *name)
{
	for (size_t i = 0; i < kind_count; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

int
kind_snapshot(const struct kind *k, struct profile *ret)
{
	return k->custom_snapshot ? k->custom_snapshot(k, ret) : k->snapshot(ret);
}

size_t
kind_entries(const struct kind *k)
{
	return k->custom_count ? k->custom_count(k) : k->count ? k->count() : 0;
}
