/*
 * previous.c - what the last dump has read, for the next one.
 *
 * Most threads of a daemon wait, and have not run since somebody looked last: their
 * stacks are what they were, and they have waited at least since then.  So a dump costs
 * a quarter, and can say "12 minutes", without anything being noted while threads wait.
 *
 *     thread, mark, stack ──▶ kept ──▶ same mark in the next dump? same stack, same since
 *
 * What a stranger would get wrong:
 * - A number of a thread is given to another one when the thread has ended.  That one
 *   would need to have run for the same nanoseconds, and to stand at the same address with
 *   the same words on its stack: then it has the same stack, too.
 * - "since" is when a dump saw it first, not when the wait began: at least so long.
 * - Only whole stacks are kept: of another the next dump may find more, when objects
 *   that have come are in the tables.
 * - It is one copy in memory of ours with a limit, not references to the stack table: a
 *   dump of a process that hangs comes here, too.
 *
 * Tests: tests/threads/test_previous_dump.c.
 */
#include <config.h>

#include "previous.h"

#include <stdbool.h>
#include <string.h>

#include "pages.h"

static struct {
	struct kept *threads; /* by tid */
	size_t       count;
	uintptr_t   *pcs;
	size_t       bytes, pc_bytes;
} kept;

const struct kept *
dump_previous_find(int32_t tid)
{
	size_t low = 0, high = kept.count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (kept.threads[middle].tid == tid)
			return &kept.threads[middle];
		if (kept.threads[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const uintptr_t *
dump_previous_pcs(const struct kept *k)
{
	return kept.pcs + k->first;
}

void
dump_previous_drop(void)
{
	void  *threads = kept.threads, *pcs = kept.pcs;
	size_t bytes = kept.bytes, pc_bytes = kept.pc_bytes;

	memset(&kept, 0, sizeof(kept)); /* first: a child may be forked in the midst of munmap() */
	if (bytes)
		pages_unmap(threads, bytes);
	if (pc_bytes)
		pages_unmap(pcs, pc_bytes);
}

void
dump_previous_forked(void)
{
	memset(&kept, 0, sizeof(kept));
}

static bool
is_kept(const struct dump_thread *t)
{
	return t->how == DUMP_QUIET && t->count > 0 && !t->truncated && t->mark.top_bytes > 0 && t->since_ns > 0;
}

void
dump_previous_take(const struct dump *d)
{
	size_t count = 0, to = 0;

	dump_previous_drop();
	for (size_t i = 0; i < d->count; i++)
		count += is_kept(&d->threads[i]);
	if (count == 0 || count > THREADS_KEPT_MAX || d->pc_count > THREADS_KEPT_PCS_MAX)
		return;
	kept.threads = pages_map(count * sizeof(*kept.threads));
	kept.bytes = kept.threads ? count * sizeof(*kept.threads) : 0;
	kept.pcs = pages_map(d->pc_count * sizeof(*kept.pcs));
	kept.pc_bytes = kept.pcs ? d->pc_count * sizeof(*kept.pcs) : 0;
	if (!kept.threads || !kept.pcs) {
		dump_previous_drop();
		return;
	}
	memcpy(kept.pcs, d->pcs, kept.pc_bytes);
	for (size_t i = 0; i < d->count; i++) {
		const struct dump_thread *t = &d->threads[i];

		if (is_kept(t))
			kept.threads[to++] = (struct kept){ t->tid, t->syscall, t->first, t->count, t->mark,
				t->futex, t->since_ns };
	}
	kept.count = to;
}
