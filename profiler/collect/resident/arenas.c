/*
 * arenas.c - where glibc's malloc has its memory, by what it writes there itself.
 *
 * An arena but the main one is a chain of heaps.  Each begins at a multiple of 64 MiB with
 *
 *     the arena ── the heap before it, or 0 ── bytes ── bytes that may be written
 *
 * and the first one has its arena right behind that.  A large block has a mapping of its own, which
 * begins with 0 and its size, of whole pages, with the second bit set.
 *
 * What a stranger would get wrong: this is read by the kernel, while the program runs: what is
 * read may be gone, or be another's that looks alike.  So each number is held against the mapping
 * that it is in, and what does not fit is nobody's here.  A size that the program writes itself at
 * the beginning of a page may still be taken for a block's.
 *
 * Nothing is read that is not resident already: a page that was swapped out would come back for it, and
 * one that was never touched would get a page of zeros.  An arena or a block whose first page is not
 * there is not found, and what else is resident of it counts as heap elsewhere.
 *
 * Why not by asking: no public call tells an address.
 *
 * Tests: tests/memory/memory.t.
 */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "owners.h"

#define HEAP_ALIGN  ((uintptr_t)64 << 20) /* glibc's HEAP_MAX_SIZE, as long as it is not told to take huge pages */
#define HEAD_MAX    64                    /* bytes before an arena in its first heap */
#define LOOKS_MAX   65536                 /* pages that are looked at for a block without finding one, and reads of pagemap */
#define BLOCK_IS_MAPPED 2
#define BLOCK_FLAGS 7

struct heap_head {
	uintptr_t arena, previous;
	size_t    bytes, writable;
};

static bool
is_glibc(const struct owners *o)
{
	return !strcmp(o->allocator->name, "glibc");
}

/* May a page of this be looked at?  Where it is not known which are resident, all are unless some are not. */
static bool
may_look(const struct owners *o, const struct smaps_mapping *m)
{
	return owners_is_anonymous(m) && m->resident && (o->pages >= 0 || !m->swapped);
}

/* Does a heap begin here, in this mapping? */
static bool
heap_read(struct owners *o, const struct smaps_mapping *m, uintptr_t at, struct heap_head *ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (smaps_pages(o->pages, at, at + 1) == 0 || !memory_read(&o->memory, at, ret, sizeof(*ret)))
		return false;
	if (ret->bytes == 0 || ret->bytes > ret->writable || ret->writable > HEAP_ALIGN || ret->writable % page ||
	    ret->writable > m->limit - at)
		return false;
	return ret->previous ? ret->previous % HEAP_ALIGN == 0 && ret->arena % HEAP_ALIGN <= HEAD_MAX :
			       ret->arena > at && ret->arena - at <= HEAD_MAX;
}

/* Rows bear the order of their addresses, beside glibc's numbers: those are not to be had. */
static int
heap_add(struct owners *o, const struct heap_head *h, uintptr_t at, struct ranges *ret)
{
	char name[64];
	int  r;

	snprintf(name, sizeof(name), "arena at 0x%lx", (unsigned long)(h->arena & ~(HEAP_ALIGN - 1)));
	r = residence_row(o->table, RESIDENCE_HEAP, name, 0);
	return r < 0 ? r : ranges_add(ret, at, at + h->writable, r);
}

int
owners_arenas(struct owners *o, struct ranges *ret)
{
	struct heap_head h;
	int              r = 0;

	for (size_t i = 0; i < o->smaps->count && is_glibc(o) && !r; i++) {
		const struct smaps_mapping *m = &o->smaps->all[i];
		uintptr_t                   at = (m->start + HEAP_ALIGN - 1) & ~(HEAP_ALIGN - 1);

		for (; may_look(o, m) && at >= m->start && at < m->limit && !r; at += HEAP_ALIGN)
			if (heap_read(o, m, at, &h))
				r = heap_add(o, &h, at, ret);
	}
	return r;
}

/* ---- large blocks ---- */

struct looking {
	struct owners    *owners;
	struct ranges    *to;
	struct smaps_look pages;
	size_t            left; /* LOOKS_MAX */
	int               row;
};

/* Bytes of the block that begins here; 0: none does. */
static size_t
block_read(struct looking *l, uintptr_t at, uintptr_t limit)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size;
	size_t words[2];

	l->left--;
	if (!memory_read(&l->owners->memory, at, words, sizeof(words)))
		return 0;
	size = words[1] & ~(size_t)BLOCK_FLAGS;
	if (words[0] != 0 || (words[1] & BLOCK_FLAGS) != BLOCK_IS_MAPPED || size % page || size > limit - at)
		return 0;
	return size;
}

static int
look(struct looking *l, uintptr_t at, uintptr_t limit)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size;
	int    r = 0;

	while (at < limit && l->left > l->pages.asked && !r) {
		size = smaps_is_resident(&l->pages, at) ? block_read(l, at, limit) : 0;
		if (size) {
			l->left++;
			r = ranges_add(l->to, at, at + size, l->row);
		}
		at += size ? size : page;
	}
	return r;
}

int
owners_blocks(struct owners *o, const struct ranges *known, struct ranges *ret)
{
	struct looking l = { .owners = o, .to = ret, .pages.fd = o->pages, .left = LOOKS_MAX };
	int            r = 0;

	if (!is_glibc(o) || (o->allocator->arena_count && !o->allocator->mapped))
		return 0;
	l.row = residence_row(o->table, RESIDENCE_HEAP, "large blocks, each mapped by itself", 0);
	if (l.row < 0)
		return l.row;
	for (size_t i = 0; i < o->smaps->count && !r; i++) {
		const struct smaps_mapping *m = &o->smaps->all[i];
		uintptr_t                   at = m->start;

		for (size_t k = ranges_find(known, at); may_look(o, m) && at < m->limit && !r; k++) {
			bool      there = k < known->count && known->all[k].start < m->limit;
			uintptr_t end = there ? known->all[k].start : m->limit;

			if (end > at)
				r = look(&l, at, end);
			at = there ? known->all[k].limit : m->limit;
		}
	}
	return r;
}
