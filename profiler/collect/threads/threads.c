/*
 * threads.c - goroutine: where each thread stands.
 *
 * Tests: tests/threads/goroutine.t.
 */
#include <config.h>

#include "dump/snapshot.h"
#include "dump/threads.h"

static int
collect(const struct collector *c, const struct collect_params *params, struct product *ret)
{
	return dump_snapshot(c, params, false, ret);
}

static size_t
collect_count(const struct collector *c)
{
	(void)c;
	return threads_count();
}

const struct collector collect_goroutine = {
	.name = "goroutine",
	.alias = "threads",
	.alias_text = "as goroutine, by its honest name",
	.description = "Stack traces of all current threads. Use debug=2 as a query parameter to export in the same format "
		"as an unrecovered panic of Go.",
	.products = PRODUCT_PROFILE | PRODUCT_DUMP,
	.types = { { "goroutine", "count" } },
	.snapshot = collect,
	.takes_own = true,
	.cannot = "threads cannot be listed",
	.count = collect_count,
	.forget = threads_forget,
};
