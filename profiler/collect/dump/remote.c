/*
 * remote.c - stacks of a dump, walked once more by libunwind.
 *
 *     under the lock of dumps: copies of blocked threads' stacks ──▶ lock given back
 *     ──▶ libunwind walks each ──▶ its stack in the place of the tables' one
 *
 * What a stranger would get wrong:
 * - libunwind takes memory from malloc, whose lock somebody may hold for ever.  So the walk
 *   comes after the dump's own lock: the dump that SIGQUIT prints never waits for this one.
 * - Of a blocked thread only pc and sp are known.  A frame pointer that the tables' walk had
 *   to find on the stack is given to libunwind, which has no way to find it.
 * - A stack that libunwind cannot follow as far as the tables keeps theirs.
 * - Threads that run answer a signal, and a handler does not call libunwind: theirs are the
 *   tables', too.
 *
 * Tests: tests/threads/thousand_blocked.t, tests/threads/test_remote_dump.c.
 */
#include <config.h>

#include "remote.h"

#include <string.h>

#include "hidden_frames.h"
#include "pages.h"
#include "stack_table.h"
#include "threads.h"
#include "unwind.h"

/* Its stack follows, to the next multiple of 8. */
struct copy {
	int32_t   tid;
	uintptr_t pc, sp, fp;
	size_t    size;
};

void
threads_copies_open(struct threads_copies *c)
{
	c->bytes = unwind_takes() ? pages_map_sparse(THREADS_COPIES_BYTES) : NULL;
	c->used = c->count = 0;
}

static size_t
copy_bytes(size_t size)
{
	return sizeof(struct copy) + (size + 7) / 8 * 8;
}

void
threads_copies_add(struct threads_copies *c, const struct quiet *q, int32_t tid)
{
	struct copy k = { tid, q->walked.pc, q->walked.sp, q->walked.fp, q->walked.size };

	if (!c->bytes || THREADS_COPIES_BYTES - c->used < copy_bytes(k.size))
		return;
	memcpy(c->bytes + c->used, &k, sizeof(k));
	memcpy(c->bytes + c->used + sizeof(k), q->room->stack, k.size);
	c->used += copy_bytes(k.size);
	c->count++;
}

/* In the place of the tables' walk; equal ones, which is nearly all, stay. */
static void
stack_put(struct dump *d, struct dump_thread *t, uintptr_t *pcs, unsigned count, int truncated)
{
	count = hidden_frames_drop(pcs, count);
	if (truncated && (!t->truncated || count <= t->count))
		return;
	d->by_libunwind++;
	t->truncated = truncated;
	if (count == t->count && memcmp(d->pcs + t->first, pcs, count * sizeof(*pcs)) == 0)
		return;
	if (threads_dump_append(d, pcs, count, &t->first) == 0)
		t->count = count;
}

void
threads_copies_walk(struct threads_copies *c, struct dump *d)
{
	uintptr_t pcs[STACK_FRAMES_MAX];
	size_t    at = 0, first = d->count && d->threads[0].how == DUMP_SELF; /* that one, whatever its number */

	for (size_t i = 0; i < c->count; i++) {
		const struct copy  *k = (const struct copy *)(const void *)(c->bytes + at);
		struct dump_thread *t = threads_find(d, first, k->tid);
		int                 truncated = 1;
		unsigned            n;

		at += copy_bytes(k->size);
		if (!t || t->how != DUMP_QUIET)
			continue;
		n = unwind_taken(&(struct unwind_taken){ .pc = k->pc, .sp = k->sp, .fp = k->fp, .size = k->size,
							 .stack = (const uintptr_t *)(const void *)(k + 1) },
				 pcs, STACK_FRAMES_MAX, &truncated);
		stack_put(d, t, pcs, n, truncated);
	}
	pages_unmap(c->bytes, THREADS_COPIES_BYTES);
	c->bytes = NULL;
}
