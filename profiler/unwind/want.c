/*
 * want.c - addresses that walks did not know, until they are asked about.
 *
 *     walk --> slot --> one question of the kernel --> nothing, or data: ignored for a while
 *                                                      code made at run time: a range more
 *                                                      a file: a look at all mappings
 *
 * What a stranger would get wrong:
 * - A walk through a damaged stack, or one that guesses, meets numbers that are nothing, in
 *   each sample anew: they must not cost a question each, still less a look.
 * - Where the kernel answers no questions every unknown address takes a look, so what a look
 *   has not found is ignored too.  What it has found is not: there may be another plugin's
 *   code soon.
 * - A slot may be overwritten before it is read.  The address comes again, or is not needed.
 *
 * Tests: tests/unwind/test_refresh.c, tests/unwind/test_generated_code.c.
 */
#include <config.h>

#include "want.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "generations.h"
#include "maps.h"
#include "tables.h"
#include "unwind_window.h"
#include "wake.h"

#define SLOTS   8
#define IGNORED 64 /* pages */

static struct {
	atomic_uintptr_t slots[SLOTS];
	atomic_uintptr_t ignored[IGNORED]; /* page numbers */
	uintptr_t        asked[SLOTS];     /* that the look under way is for */
} want;

static atomic_uintptr_t *
ignored_at(uintptr_t pc)
{
	uintptr_t page = pc / UNWIND_PAGE_BYTES;

	return &want.ignored[(page ^ page >> 6) % IGNORED];
}

static void
ignore(uintptr_t pc)
{
	atomic_store_explicit(ignored_at(pc), pc / UNWIND_PAGE_BYTES, memory_order_relaxed);
}

bool
unwind_want_note(uintptr_t pc)
{
	if (atomic_load_explicit(ignored_at(pc), memory_order_relaxed) == pc / UNWIND_PAGE_BYTES)
		return false;
	atomic_store_explicit(&want.slots[pc / UNWIND_PAGE_BYTES % SLOTS], pc, memory_order_relaxed);
	return true;
}

void
unwind_want(uintptr_t pc)
{
	if (unwind_want_note(pc))
		unwind_wake();
}

/* Does it take a look at all mappings? */
static bool
settle(int query, uintptr_t pc)
{
	struct maps_place p;
	int               err;

	if (query < 0)
		return true;
	err = maps_query(query, pc, &p);
	if (err == 0 && p.executable && p.inode == 0) {
		if (generations_note(p.start, p.limit) < 0)
			return true;
		err = tables_has_code(pc) ? 0 : tables_add_range(p.start, p.limit);
		if (err == -EBUSY) {
			ignore(pc); /* for a while: a reader is stuck, and a look would find no room either */
			return false;
		}
		return err != 0;
	}
	if (err == -ENOENT || (err == 0 && !p.executable)) {
		ignore(pc);
		return false;
	}
	return true;
}

bool
unwind_want_settle(int query)
{
	bool look = false;

	for (size_t i = 0; i < SLOTS; i++) {
		want.asked[i] = atomic_exchange(&want.slots[i], 0);
		if (want.asked[i] && settle(query, want.asked[i]))
			look = true;
		else
			want.asked[i] = 0;
	}
	return look;
}

void
unwind_want_looked(void)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (want.asked[i] && !tables_has_code(want.asked[i]))
			ignore(want.asked[i]);
}

void
unwind_want_forget(void)
{
	for (size_t i = 0; i < IGNORED; i++)
		atomic_store_explicit(&want.ignored[i], 0, memory_order_relaxed);
}

bool
unwind_want_any(void)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (atomic_load_explicit(&want.slots[i], memory_order_relaxed))
			return true;
	return false;
}
