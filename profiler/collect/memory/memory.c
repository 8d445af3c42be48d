/*
 * memory.c - where is my RSS: a table of the resident memory as a kind of its own.
 *
 * No profile, as most of what is resident has no stack.  All of it is resident/resident.c's.
 *
 * Tests: tests/memory/memory.t.
 */
#include <config.h>

#include "collector.h"
#include "proc_self.h"
#include "resident/allocator.h"
#include "resident/resident.h"

static int
collect(const struct collector *c, const struct collect_params *params, struct product *ret)
{
	(void)c;
	(void)params;
	ret->type = PRODUCT_RESIDENCE;
	return resident_read(&ret->residence);
}

static int
start(void)
{
	allocator_prepare();
	return 0;
}

const struct collector collect_memory = {
	.name = "memory",
	.description = "where the resident memory is: heap, mappings, stacks, files, shared memory, the profiler's",
	.beside = true,
	.products = PRODUCT_RESIDENCE,
	.snapshot = collect,
	.no_delta = true,
	.status_name = "resident memory",
	.status = proc_self_missing,
	.missing = proc_self_missing,
	.cannot = "Could not read the resident memory",
	.start = start,
};
