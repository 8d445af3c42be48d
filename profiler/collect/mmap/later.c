/*
 * later.c - copies of stacks that a hook could not walk at once.
 *
 *     hook: mmap() ── tables not made yet, or a lock is taken ──▶ copy of registers and stack ── a place
 *     a reader: ── waits for tables and lock, walks the copy, counts it ──▶ the place is that of a stack
 *
 * The caller of mmap() may be an allocator with its locks held, and what a hook would wait for may
 * wait for those: so it waits for nothing.
 *
 * What a stranger would get wrong:
 * - A call is kept once and never forgotten, as a live range bears its number.  The copy goes back to
 *   the kernel when it has been walked; two words stay.
 * - Several may read at once.  Each walks what it finds, and the first to end counts it.  Another one
 *   may find the copy empty then, and its walk comes to nothing.
 * - In a child a call may stand half written, by a thread that is not there: it stays so, and its
 *   place is nobody's.
 *
 * Tests: tests/memory/test_mmap.c.
 */
#include <config.h>

#include "later.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hidden_frames.h"
#include "pages.h"
#include "stack_table.h"

struct kept {
	_Atomic uint32_t place;       /* of its stack; 0: not walked */
	_Atomic uint32_t size;        /* bytes of its copy; 0: not written yet */
	uintptr_t        pc, sp, fp;
	_Atomic size_t   bytes;       /* that it has mapped, and are not counted yet */
};

static struct {
	struct kept *_Atomic calls; /* NULL: not open */
	char                *stacks;
	_Atomic uint32_t     count;
	_Atomic uint32_t     walked; /* all before it are */
	_Atomic uint32_t     parents; /* all before it are a parent's */
	_Atomic uint64_t     not_kept;
} later;

#define CALLS_BYTES  (LATER_MAX * sizeof(struct kept))
#define STACKS_BYTES ((size_t)LATER_MAX * LATER_STACK_BYTES)

int
later_open(void)
{
	struct kept *calls;

	if (atomic_load(&later.calls))
		return 0;
	calls = pages_map_sparse(CALLS_BYTES);
	later.stacks = calls ? pages_map_sparse(STACKS_BYTES) : NULL;
	if (!later.stacks) {
		pages_unmap(calls, CALLS_BYTES);
		return -ENOMEM;
	}
	atomic_store(&later.calls, calls);
	return 0;
}

uint32_t
later_keep(const struct unwind_regs *regs, size_t bytes)
{
	struct kept *calls = atomic_load(&later.calls), *k;
	uint32_t     walked = atomic_load(&later.walked), nth = calls ? atomic_load(&later.count) : LATER_MAX;
	uint32_t     end = walked + LATER_COPIES < LATER_MAX ? walked + LATER_COPIES : LATER_MAX;

	while (nth < end && !atomic_compare_exchange_weak(&later.count, &nth, nth + 1))
		;
	if (nth >= end) {
		atomic_fetch_add(&later.not_kept, 1);
		return 0;
	}
	k = &calls[nth];
	k->pc = regs->pc;
	k->sp = regs->sp;
	k->fp = regs->fp;
	k->bytes = bytes;
	atomic_store(&k->size, (uint32_t)unwind_take_stack(regs->sp,
		(uintptr_t *)(later.stacks + (size_t)nth * LATER_STACK_BYTES), LATER_STACK_BYTES) | 1);
	return LATER_PLACE | nth;
}

static void
walk(uint32_t nth, struct kept *k, struct stack_counts *made)
{
	char              *stack = later.stacks + (size_t)nth * LATER_STACK_BYTES;
	struct unwind_regs regs = { .pc = k->pc, .sp = k->sp, .fp = k->fp };
	uintptr_t          pcs[STACK_FRAMES_MAX];
	int                cut = 0;
	unsigned           n = unwind_copy(&regs, stack, k->size & ~1U, k->sp, pcs, STACK_FRAMES_MAX, &cut);
	uint32_t           id = stack_table_add(pcs, hidden_frames_drop(pcs, n)), none = 0;

	id = stack_counts_add(made, id, 0, 0);
	if (!atomic_compare_exchange_strong(&k->place, &none, id))
		return;
	if (nth >= atomic_load(&later.parents))
		stack_counts_more(made, id, SITES_ONE, atomic_exchange(&k->bytes, 0));
	if (sysconf(_SC_PAGESIZE) <= LATER_STACK_BYTES)
		madvise(stack, LATER_STACK_BYTES, MADV_DONTNEED);
}

void
later_walk(struct stack_counts *made)
{
	struct kept *calls = atomic_load(&later.calls);
	uint32_t     count = atomic_load(&later.count);
	bool         all = true;

	if (!calls || atomic_load(&later.walked) >= count)
		return;
	unwind_ready();
	for (uint32_t i = atomic_load(&later.walked); i < count; i++) {
		if (atomic_load(&calls[i].size) && !atomic_load(&calls[i].place))
			walk(i, &calls[i], made);
		all = all && atomic_load(&calls[i].place);
		if (all)
			atomic_store(&later.walked, i + 1);
	}
}

size_t
later_grown(uint32_t place, size_t bytes)
{
	struct kept *k = place & LATER_PLACE ? &atomic_load(&later.calls)[place & ~LATER_PLACE] : NULL;

	if (!k || atomic_load(&k->place))
		return bytes;
	atomic_fetch_add(&k->bytes, bytes);
	return atomic_load(&k->place) ? atomic_exchange(&k->bytes, 0) : 0; /* who has walked it may have taken none of it */
}

uint32_t
later_place(uint32_t place)
{
	return place & LATER_PLACE ? atomic_load(&atomic_load(&later.calls)[place & ~LATER_PLACE].place) : place;
}

uint64_t
later_not_kept(void)
{
	return atomic_load(&later.not_kept);
}

void
later_forked(void)
{
	atomic_store(&later.parents, atomic_load(&later.count));
	atomic_store(&later.not_kept, 0);
}
