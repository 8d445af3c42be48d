/*
 * threads_dump.c - the memory of a dump: its threads, and their stacks, equal ones once.
 *
 *     stack --hash--> seen before in this dump? the same words : behind the others
 *
 * Thousands of threads wait at few places, so most stacks are there already.
 *
 * What a stranger would get wrong: what was seen is one static table, under the lock of
 * dumps; a dump that is done needs it no more.
 *
 * Tests: tests/test_threads.c, tests/threads.t.
 */
#include <config.h>

#include "threads.h"

#include <errno.h>
#include <string.h>

#include "labels.h"
#include "pages.h"
#include "parts.h"

#define THREADS_FIRST ((size_t)256)
#define PCS_FIRST     ((size_t)4096)
#define SEEN          4096 /* a power of two: distinct stacks that are told apart */

static struct {
	uint32_t first, count; /* count 0: none */
} seen[SEEN];

void
threads_dump_begin(void)
{
	memset(seen, 0, sizeof(seen));
}

int
threads_dump_add(struct dump *d, int32_t tid)
{
	void *p;

	if (d->count == THREADS_MAX)
		return 0;
	if (d->count == d->room) {
		p = pages_grow(d->threads, &d->room, THREADS_FIRST, sizeof(*d->threads));
		if (!p)
			return -ENOMEM;
		d->threads = p;
	}
	d->threads[d->count++] = (struct dump_thread){
		.tid = tid, .syscall = DUMP_NO_SYSCALL, .how = DUMP_SILENT };
	return 0;
}

int
threads_dump_append(struct dump *d, const uintptr_t *pcs, uint32_t count, uint32_t *ret_first)
{
	void *p;

	while (d->pc_room - d->pc_count < count) {
		p = pages_grow(d->pcs, &d->pc_room, PCS_FIRST, sizeof(*d->pcs));
		if (!p)
			return -ENOMEM;
		d->pcs = p;
	}
	*ret_first = (uint32_t)d->pc_count;
	memcpy(d->pcs + d->pc_count, pcs, count * sizeof(*pcs));
	d->pc_count += count;
	return 0;
}

static size_t
stack_hash(const uintptr_t *pcs, unsigned count)
{
	uint64_t h = count;

	for (unsigned i = 0; i < count; i++)
		h = (h ^ pcs[i]) * 0x9e3779b97f4a7c15ULL;
	return (size_t)(h >> 40) % SEEN;
}

int
threads_dump_stack(struct dump *d, struct dump_thread *t, const uintptr_t *pcs)
{
	size_t slot = stack_hash(pcs, t->count);
	int    err;

	if (t->count > 0 && seen[slot].count == t->count &&
	    memcmp(d->pcs + seen[slot].first, pcs, t->count * sizeof(*pcs)) == 0) {
		t->first = seen[slot].first;
		return 0;
	}
	err = threads_dump_append(d, pcs, t->count, &t->first);
	if (err) {
		t->count = 0;
		return err;
	}
	seen[slot].first = t->first;
	seen[slot].count = t->count;
	return 0;
}
