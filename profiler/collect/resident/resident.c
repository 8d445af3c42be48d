/*
 * resident.c - what the resident memory of this process is for: one table, each page once.
 *
 *     smaps: mapping ── bytes ──┬─ has a path, is shared, [heap], [stack]: it is what it is called
 *                               └─ anonymous: cut up by the ranges of those who know (owners.h)
 *                                    ours > mapped by a stack > arenas > stacks > objects > blocks
 *     what nobody knows ── up to what the allocator says it has ──▶ heap, else unexplained
 *
 * A mapping that is one owner's has what smaps says.  One that was cut is counted by its pages
 * (/proc/self/pagemap), of which some are pages of zeros that smaps does not count: then each part
 * gets its share.
 *
 * What a stranger would get wrong: the kernel joins neighbours that look alike, so that one line of
 * smaps may be a stack, a buffer of ours and an arena.
 *
 * Tests: tests/memory/memory.t, tests/memory/test_ranges.c.
 */
#include <config.h>

#include "resident.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"
#include "our_fd.h"
#include "our_thread.h"
#include "owners.h"
#include "stack_table.h"

#define PAGED_MAX   ((uintptr_t)64 << 30) /* bytes of a mapping that is counted page by page: a quarter of a second */
#define ADVICE_MIN  ((uint64_t)1 << 20)   /* bytes that are worth a word */

const struct resident_maker *_Atomic resident_maker;

struct reading {
	struct owners owners;
	struct smaps  smaps;
	struct ranges known;
};

/* ---- who knows ---- */

static int
lay_under(struct reading *rd, int (*who)(struct owners *o, struct ranges *ret))
{
	struct ranges ranges = { NULL, 0, 0 };
	int           r = who(&rd->owners, &ranges);

	ranges_sort(&ranges);
	if (!r)
		return ranges_lay_under(&rd->known, &ranges);
	ranges_release(&ranges);
	return r;
}

static int
know(struct reading *rd)
{
	static int (*const all[])(struct owners *o, struct ranges *ret) = { owners_ours, owners_makers, owners_arenas,
		owners_stacks, owners_objects, owners_kept_stacks };
	struct ranges blocks = { NULL, 0, 0 };
	int           r = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !r; i++)
		r = lay_under(rd, all[i]);
	if (!r)
		r = owners_blocks(&rd->owners, &rd->known, &blocks);
	ranges_sort(&blocks);
	if (!r)
		return ranges_lay_under(&rd->known, &blocks);
	ranges_release(&blocks);
	return r;
}

/* ---- one mapping ---- */

static bool
begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool
is_shared_memory(const struct smaps_mapping *m)
{
	const char *p = m->path;

	return begins(p, "/dev/shm/") || begins(p, "/memfd:") || begins(p, "/SYSV") || begins(p, "/dev/zero") ||
	       begins(p, "[anon_shmem:") || begins(p, "/anon_hugepage") || (m->shared && !*p);
}

/* What brk() has given. */
static const char *
heap_name(const struct residence *t)
{
	if (!*t->allocator)
		return "brk()";
	return strcmp(t->allocator, "glibc") ? t->allocator : "main arena";
}

/* The row of one that is not to be cut up. */
static int
row_by_name(struct residence *t, const struct smaps_mapping *m)
{
	const char *p = m->path;

	if (is_shared_memory(m))
		return residence_row(t, RESIDENCE_SHARED, begins(p, "/dev/zero") || !*p ? "anonymous" : p, 0);
	if (begins(p, "[heap]"))
		return residence_row(t, RESIDENCE_HEAP, heap_name(t), 0);
	if (begins(p, "[stack"))
		return residence_row(t, RESIDENCE_STACKS, "the first thread", 0);
	if (begins(p, "anon_inode:[perf_event]"))
		return residence_row(t, RESIDENCE_OURS, "traces", 0);
	if (begins(p, "[anon:"))
		return residence_row(t, RESIDENCE_MAPPINGS, p, 0);
	return residence_row(t, RESIDENCE_FILES, p, 0);
}

/* One row for each mapping, as there is no more to say of it. */
static int
row_unknown(struct residence *t, const struct smaps_mapping *m)
{
	char name[64];

	snprintf(name, sizeof(name), "anonymous memory at 0x%lx", (unsigned long)m->start);
	return residence_row(t, RESIDENCE_UNEXPLAINED, name, 0);
}

static void
row_add(struct residence *t, int row, uint64_t resident, uint64_t mapped)
{
	t->rows[row].resident += resident;
	t->rows[row].mapped += mapped;
}

/* ---- one that is several owners' ---- */

struct cutting {
	struct reading             *rd;
	const struct smaps_mapping *m;
	uint64_t                    counted; /* bytes that are present, of all parts */
	bool                        by_pages;
	uint64_t                    left;    /* of the mapping's, to be given away */
};

static uint64_t
present(const struct cutting *c, uintptr_t start, uintptr_t limit)
{
	int64_t n = c->by_pages ? smaps_pages(c->rd->owners.pages, start, limit) : -1;

	return n >= 0 ? (uint64_t)n : limit - start;
}

/* A part's share; where nobody knows more, of its size. */
static int
part(struct cutting *c, uintptr_t start, uintptr_t limit, int row)
{
	uint64_t bytes = present(c, start, limit);

	if (row < 0)
		row = row_unknown(c->rd->owners.table, c->m);
	if (row < 0)
		return row;
	if (c->counted > c->m->resident)
		bytes = (uint64_t)((double)bytes * (double)c->m->resident / (double)c->counted);
	if (bytes > c->left)
		bytes = c->left;
	c->left -= bytes;
	row_add(c->rd->owners.table, row, bytes, limit - start);
	return row;
}

static int
cut(struct reading *rd, const struct smaps_mapping *m, size_t at)
{
	struct cutting c = { .rd = rd, .m = m, .left = m->resident };
	uintptr_t      from = m->start;
	int            r = 0;

	c.by_pages = m->resident && m->limit - m->start <= PAGED_MAX &&
		     smaps_pages(rd->owners.pages, m->start, m->start + 1) >= 0;
	c.counted = present(&c, m->start, m->limit);
	for (; from < m->limit && r >= 0; at++) {
		bool                there = at < rd->known.count && rd->known.all[at].start < m->limit;
		const struct range *k = there ? &rd->known.all[at] : NULL;
		uintptr_t           start = !k ? m->limit : k->start > from ? k->start : from;
		uintptr_t           limit = !k ? m->limit : k->limit < m->limit ? k->limit : m->limit;

		if (start > from)
			r = part(&c, from, start, -1);
		if (start < limit && r >= 0)
			r = part(&c, start, limit, k->row);
		from = limit;
	}
	if (r >= 0 && c.left) /* pages that have come meanwhile */
		rd->owners.table->rows[r].resident += c.left;
	return r < 0 ? r : 0;
}

static int
mapping_add(struct reading *rd, const struct smaps_mapping *m)
{
	struct residence *t = rd->owners.table;
	size_t            at = ranges_find(&rd->known, m->start);
	bool              some = at < rd->known.count && rd->known.all[at].start < m->limit;
	bool              anonymous = !*m->path && !m->shared;
	int               r;

	t->resident += m->resident;
	t->mapped += m->limit - m->start;
	t->swapped += m->swapped;
	if (anonymous && some)
		return cut(rd, m, at);
	r = anonymous ? row_unknown(t, m) : row_by_name(t, m);
	if (r >= 0)
		row_add(t, r, m->resident, m->limit - m->start);
	return r < 0 ? r : 0;
}

/* ---- what the allocator says ---- */

static struct residence_row *
row_named(struct residence *t, const char *name)
{
	int r = residence_row(t, RESIDENCE_HEAP, name, 0);

	return r < 0 ? NULL : &t->rows[r];
}

/* glibc counts its arenas and says no address: the one with as many bytes is meant.  Arenas of one
 * size are alike, too, in what they have free. */
static void
arena_figures(struct residence *t, struct allocator *a)
{
	for (size_t i = 0; i < t->count; i++) {
		struct residence_row *row = &t->rows[i];
		unsigned              best = 0;
		uint64_t              off, least = UINT64_MAX;

		if (row->class != RESIDENCE_HEAP || !begins(row->name, "arena at"))
			continue;
		for (unsigned k = 1; k < a->arena_count; k++) {
			uint64_t has = a->arenas[k].system;

			off = has > row->mapped ? has - row->mapped : row->mapped - has;
			if (has && off < least) {
				least = off;
				best = k;
			}
		}
		if (!best)
			continue;
		row->free = (int64_t)a->arenas[best].free;
		row->in_use = (int64_t)allocator_arena_in_use(&a->arenas[best]);
		a->arenas[best].system = 0; /* taken */
	}
}

/* Of those that nobody has found. */
static void
arenas_elsewhere(struct residence *t, const struct allocator *a)
{
	struct residence_row *row;
	uint64_t              in_use = 0, free = 0;

	for (unsigned k = 1; k < a->arena_count; k++) {
		if (!a->arenas[k].system)
			continue;
		in_use += allocator_arena_in_use(&a->arenas[k]);
		free += a->arenas[k].free;
	}
	row = in_use || free ? row_named(t, "elsewhere") : NULL;
	if (row) {
		row->in_use = (int64_t)in_use;
		row->free = (int64_t)free;
	}
}

static void
heap_figures(struct residence *t, struct allocator *a)
{
	struct residence_row *row;

	if (!a->arena_count) {
		row = row_named(t, a->name);
		if (row && a->in_use + a->free) {
			row->in_use = (int64_t)a->in_use;
			row->free = (int64_t)a->free;
		}
		return;
	}
	row = row_named(t, "main arena");
	if (row) {
		row->free = (int64_t)a->arenas[0].free;
		row->in_use = (int64_t)allocator_arena_in_use(&a->arenas[0]);
	}
	row = a->mapped ? row_named(t, "large blocks, each mapped by itself") : NULL;
	if (row) {
		row->free = 0;
		row->in_use = (int64_t)a->mapped;
	}
	arena_figures(t, a);
	arenas_elsewhere(t, a);
}

/* What it has and nobody has found is somewhere in what nobody knows. */
static void
heap_unfound(struct residence *t, const struct allocator *a)
{
	uint64_t              has = a->resident, found = 0, moved;
	struct residence_row *to;

	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].class == RESIDENCE_HEAP)
			found += a->arena_count ? t->rows[i].mapped : t->rows[i].resident;
	for (unsigned i = 0; i < a->arena_count; i++)
		has += a->arenas[i].system;
	has += a->mapped;
	if (has <= found || !*a->name || !(to = row_named(t, a->arena_count ? "elsewhere" : a->name)))
		return;
	for (size_t i = 0; i < t->count && has > found; i++) {
		struct residence_row *row = &t->rows[i];

		if (row->class != RESIDENCE_UNEXPLAINED)
			continue;
		moved = row->resident < has - found ? row->resident : has - found;
		row->resident -= moved;
		to->resident += moved;
		found += moved;
	}
}

/* What is certain: free pages that are resident whichever they are. */
static void
advise(struct residence *t, const struct allocator *a, unsigned threads)
{
	struct residence_row heap = residence_sum(t, RESIDENCE_HEAP);
	uint64_t             loose = 0, away = heap.mapped > heap.resident ? heap.mapped - heap.resident : 0;

	for (unsigned i = 0; i < a->arena_count; i++)
		loose += a->arenas[i].loose;
	if (loose > away + ADVICE_MIN)
		residence_note(t, t->advice, "malloc_trim() would give back %.0f MB at least: that much is free inside "
			"of the heap, in whole pages that are resident", (double)(loose - away) / 1e6);
	/* 0: they were not counted. */
	if (threads && a->arena_count > threads + our_thread_count() && heap.free > (int64_t)ADVICE_MIN)
		residence_note(t, t->advice, "%u arenas for %u thread%s: what is free in one is not used by threads of "
			"another; mallopt(M_ARENA_MAX) or MALLOC_ARENA_MAX bounds their number", a->arena_count, threads,
			threads == 1 ? "" : "s");
}

static void
allocator_figures(struct residence *t, struct allocator *a, int asked, unsigned threads)
{
	t->left_behind = asked == -EBUSY;
	if (t->left_behind)
		residence_note(t, t->notes, "the allocator has not answered within %d s, as when a thread holds the lock "
			"of an arena: what the heap has in use and free is not known, nor its arenas", ALLOCATOR_WAIT_S);
	else if (asked)
		residence_note(t, t->notes, "the allocator was not asked: no thread can be made");
	else if (!*a->name)
		residence_note(t, t->notes, "nothing is known of this program's allocator");
	if (asked || !*a->name)
		return;
	heap_unfound(t, a);
	heap_figures(t, a);
	advise(t, a, threads);
}

/* ---- all ---- */

/* Rows without a page say nothing. */
static void
drop_empty(struct residence *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].resident || t->rows[i].in_use > 0 || t->rows[i].free > 0)
			t->rows[n++] = t->rows[i];
		else if (t->rows[i].stack)
			stack_table_unref(t->rows[i].stack);
	t->count = n;
}

static int
read_all(struct reading *rd)
{
	int r = smaps_read(&rd->smaps, &rd->owners.table->arena);

	if (r)
		return r;
	r = know(rd);
	for (size_t i = 0; i < rd->smaps.count && !r; i++)
		r = mapping_add(rd, &rd->smaps.all[i]);
	return r;
}

int
resident_read(struct residence *ret)
{
	struct reading    rd = { .known = { NULL, 0, 0 } };
	struct allocator *a;
	int               r = -ENOMEM, asked;

	residence_init(ret); /* in its place: the arena knows it */
	a = arena_alloc(&ret->arena, sizeof(*a));
	if (!a)
		goto out;
	asked = allocator_ask(a);
	ret->allocator = a->name;
	rd.owners = (struct owners){ .table = ret, .smaps = &rd.smaps, .allocator = a };
	r = memory_open(&rd.owners.memory);
	if (r)
		goto out;
	rd.owners.pages = smaps_pages_open();
	r = read_all(&rd);
	if (rd.owners.pages >= 0)
		our_fd_close(rd.owners.pages);
	memory_close(&rd.owners.memory);
	if (!r) {
		allocator_figures(ret, a, asked, rd.owners.threads);
		drop_empty(ret);
		residence_sort(ret);
	}
out:
	ranges_release(&rd.known);
	smaps_release(&rd.smaps);
	if (r)
		residence_release(ret);
	return r;
}

void
resident_process(struct profile_process *ret)
{
	struct residence     t;
	struct residence_row heap, stacks;

	if (resident_read(&t))
		return;
	heap = residence_sum(&t, RESIDENCE_HEAP);
	stacks = residence_sum(&t, RESIDENCE_STACKS);
	ret->known = heap.in_use >= 0;
	ret->heap_free = heap.free > 0 ? heap.free : 0;
	ret->heap = (heap.in_use > 0 ? heap.in_use : 0) + ret->heap_free;
	if (ret->heap > (int64_t)heap.resident)
		ret->heap_released = ret->heap - (int64_t)heap.resident;
	if (ret->heap_released > ret->heap_free)
		ret->heap_released = ret->heap_free;
	ret->stacks = (int64_t)stacks.resident;
	ret->stacks_mapped = (int64_t)stacks.mapped;
	residence_release(&t);
}
