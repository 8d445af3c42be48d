/*
 * tables_code.c - where code is, whether or not a table describes it.
 *
 * A generation has all executable mappings, those without an object among them: code
 * made at run time, objects without unwind tables.  A step by the frame pointer is a guess
 * until the word it found is an address that a call returns to:
 *
 *     in an executable mapping, behind a call instruction, or the return from a handler
 *
 * What a stranger would get wrong:
 * - To be in executable memory is not enough: structures on the stack are full of the
 *   addresses of functions, and nobody returns to the first byte of one.
 * - A mapping may be gone since it was listed, and may go at any time, so a walk never looks
 *   at the bytes: a thread of ours does (verdict.c).
 * - Without a generation (nobody has started one, or /proc cannot be read) the bytes alone
 *   must do.  So they must for a plugin that has just been loaded, until the next look: where
 *   a described frame says that its caller is, or beside code that is running.
 *
 * Tests: tests/unwind/test_unwind.c, tests/unwind/test_generated_code.c.
 */
#include <config.h>

#include "tables.h"

#include <errno.h>

#include "pages.h"
#include "tables_lookup.h"
#include "verdict.h"

/* ---- the list ---- */

int
tables_ranges_room(struct tables *t, size_t count)
{
	size_t bytes = (count + 1) * sizeof(*t->ranges);

	t->ranges = pages_map(bytes);
	if (!t->ranges)
		return -ENOMEM;
	t->ranges_bytes = bytes;
	t->range_count = 0;
	return 0;
}

void
tables_ranges_put(struct tables *t, uintptr_t start, uintptr_t limit)
{
	struct tables_range *last = t->range_count ? &t->ranges[t->range_count - 1] : NULL;

	if (last && last->limit >= start) {
		if (last->limit < limit)
			last->limit = limit;
		return;
	}
	if ((t->range_count + 1) * sizeof(*last) <= t->ranges_bytes)
		t->ranges[t->range_count++] = (struct tables_range){ start, limit };
}

bool
tables_is_code(const struct tables *t, uintptr_t pc)
{
	size_t low = 0, high = t->range_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (pc < t->ranges[middle].start)
			high = middle;
		else if (pc >= t->ranges[middle].limit)
			low = middle + 1;
		else
			return true;
	}
	return false;
}

/* ---- return addresses ---- */

enum tables_answer
tables_looks_return(uintptr_t pc)
{
	unsigned verdict = unwind_verdict(pc);

	if (!verdict)
		return TABLES_UNSURE;
	return verdict & UNWIND_VERDICT_RETURN ? TABLES_YES : TABLES_NO;
}

enum tables_answer
tables_is_return(const struct tables *t, uintptr_t pc)
{
	return t && !tables_is_code(t, pc - 1) ? TABLES_NO : tables_looks_return(pc);
}
