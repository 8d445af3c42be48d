/*
 * generations_ranges.c - what hooks read of the objects: the part of generations that runs inside malloc.
 *
 * What the last look has found is published as an array.  An address is looked up in
 * it, and the mark of its object, four bytes of its build id, is compared with what is
 * there now: no list of the loader's need be read, and an object that came in another's
 * place since the last look is noticed by the first stack that runs through it.
 *
 *     loaded, mark is the same                --> its tag
 *     mark is another, or was never loaded
 *        an object that is gone, mark is same --> that one's tag: it has come back
 *        a place that code without a mark had --> that one's: a new tag each time would use all of them up
 *        a place never used                   --> 0
 *        a place used before                  --> the next tag, and a look is wanted
 *
 * What a stranger would get wrong:
 * - The four bytes are never loaded.  FUTEX_CMP_REQUEUE with nothing to wake or to move
 *   compares them in the kernel, says EAGAIN or EFAULT, and is allowed wherever threads
 *   are.  So a wrong frame of a damaged stack cannot make us touch an object that
 *   another thread is just unloading.
 * - A stack of the CPU sampler comes here some milliseconds after it was taken.  Where
 *   nothing is mapped any more, the last one who lived there is meant.
 *
 * What cannot be told: a CPU sample of an object that was unloaded and replaced between
 * the sample and its way here is given to the successor; two objects without build ids
 * whose files are equally long are told apart by the next look only, within a second.
 *
 * The array has the ranges of loaded objects first and by address.  It is made anew when objects
 * have come or gone, and exchanged for the last one under the stack table's lock, which who
 * gives tags holds.  The one before is kept and used again.
 *
 * Why not _dl_find_object(): it says where an object is, not which; the next one of the
 * same size is at the same place, often under the same struct link_map.
 *
 * Tests: tests/model/test_generations.c, tests/model/unloaded_plugins.t.
 */
#include <config.h>

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "generations_ranges.h"
#include "pages.h"
#include "process.h"
#include "stack_table.h"
#include "under_valgrind.h"

#define PUBLISHED_SPARE 64 /* objects that may come before more room is mapped */

/* What hooks need of an object; those that are loaded come first, by address. */
struct generations_range {
	uintptr_t start, limit, mark;
	uint32_t  mark_is;
	uint16_t  tag;
	bool      stays; /* is never unloaded */
	bool      fixed; /* the same, or it has no mark to look at */
};

struct generations_published {
	size_t   map_bytes, room;
	size_t   loaded, count;
	uint16_t next_tag;  /* of an object that nobody has seen yet, in a place used before */
	atomic_bool suspected; /* next_tag has been given */
	struct generations_range ranges[];
};

static struct generations_published *published; /* under the stack table's lock */
static const struct generations_follower *_Atomic follower;

void
generations_follow(const struct generations_follower *f)
{
	atomic_store(&follower, f);
}

static void
moved(void)
{
	const struct generations_follower *f = atomic_load(&follower);

	if (f)
		f->moved();
}

static void
unknown(uintptr_t pc)
{
	const struct generations_follower *f = atomic_load(&follower);

	if (f)
		f->unknown(pc);
}

enum mark
mark_look(uintptr_t at, uint32_t is)
{
	int      saved = errno, e;
	uint32_t word;
	long     r;

	if (under_memcheck) /* which would report the question */
		return !under_memcheck_copy(&word, at, sizeof(word)) ? MARK_UNMAPPED : word == is ? MARK_SAME : MARK_OTHER;
	r = syscall(SYS_futex, at, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0UL, at, is);
	e = errno;
	errno = saved;
	/* Refused altogether (ENOSYS, EPERM): the looks alone must do. */
	return r >= 0 ? MARK_SAME : e == EAGAIN ? MARK_OTHER : e == EFAULT ? MARK_UNMAPPED : MARK_SAME;
}

static const struct generations_range *
loaded_at(const struct generations_published *p, uintptr_t pc)
{
	size_t low = 0, high = p->loaded;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pc < p->ranges[middle].start)
			high = middle;
		else if (pc >= p->ranges[middle].limit)
			low = middle + 1;
		else
			return &p->ranges[middle];
	}
	return NULL;
}

/* Not what the last look has seen there, or nothing was seen. */
static uint16_t
tag_suspect(struct generations_published *p, uintptr_t pc, const struct generations_range *loaded)
{
	bool mapped = mark_look(pc & ~(uintptr_t)3, 0) != MARK_UNMAPPED;
	int  last = loaded ? loaded->tag : -1, unmarked = -1;

	if (loaded && !mapped)
		return loaded->tag;
	for (size_t i = p->loaded; i < p->count; i++) {
		const struct generations_range *r = &p->ranges[i];

		if (pc < r->start || pc >= r->limit)
			continue;
		if (mapped && r->mark && mark_look(r->mark, r->mark_is) == MARK_SAME) {
			moved();
			return r->tag;
		}
		if (r->tag > last)
			last = r->tag;
		if (!r->mark)
			unmarked = r->tag;
	}
	if (last < 0) {
		unknown(pc);
		return 0;
	}
	moved();
	if (!mapped || unmarked >= 0)
		return (uint16_t)(mapped ? unmarked : last);
	p->suspected = true;
	return p->next_tag;
}

static uint16_t
tag_of(struct generations_published *p, uintptr_t pc, const struct generations_range **cache)
{
	const struct generations_range *r = loaded_at(p, pc);

	if (!r || (!r->fixed && mark_look(r->mark, r->mark_is) != MARK_SAME))
		return tag_suspect(p, pc, r);
	*cache = r;
	return r->tag;
}

bool
generations_tag(const uintptr_t *pcs, unsigned count, uint16_t *tags)
{
	const struct generations_range *cache = NULL;
	struct generations_published   *p = published;
	unsigned                        any = 0;

	if (!p)
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (pcs[i] < STACK_PSEUDO_MAX || pcs[i] > GENERATIONS_PC_MASK)
			tags[i] = 0;
		else if (cache && pcs[i] >= cache->start && pcs[i] < cache->limit)
			tags[i] = cache->tag;
		else
			tags[i] = tag_of(p, pcs[i], &cache);
		any |= tags[i];
	}
	return any != 0;
}

bool
generations_settled(const uintptr_t *pcs, unsigned count)
{
	const struct generations_range *r = NULL;

	for (unsigned i = 0; i < count; i++) {
		if (!published || pcs[i] < STACK_PSEUDO_MAX || pcs[i] > GENERATIONS_PC_MASK)
			return false;
		if (!r || pcs[i] < r->start || pcs[i] >= r->limit)
			r = loaded_at(published, pcs[i]);
		if (!r || !r->stays || r->tag)
			return false;
	}
	return true;
}

/* ---- what is published, under the lock of generations.c ---- */

static struct generations_published *spare;

/* These can never be unloaded, so no stack need look at their marks. */
static bool
is_permanent(const struct generation *g)
{
	const uintptr_t at[] = { process_auxv(AT_ENTRY), process_auxv(AT_SYSINFO_EHDR), (uintptr_t)getauxval,
				 (uintptr_t)generations_look, (uintptr_t)pthread_mutex_lock };

	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		if (at[i] >= g->start && at[i] < g->limit)
			return true;
	return g->start - g->offset == process_auxv(AT_BASE);
}

static void
range_put(struct generations_published *p, const struct generation *g)
{
	size_t at = p->count;
	bool   stays = is_permanent(g);

	if (g->loaded) {
		/* By address; few, and mostly in order already. */
		while (at > 0 && p->ranges[at - 1].start > g->start) {
			p->ranges[at] = p->ranges[at - 1];
			at--;
		}
		p->loaded++;
	}
	p->ranges[at] = (struct generations_range){ g->start, g->limit, g->mark, g->mark_is, g->tag, stays,
						    stays || !g->mark };
	p->count++;
}

void
generations_ranges_show(void *arg)
{
	struct generations_published **p = arg, *old;

	spare = NULL; /* first: a child that is forked between the two must not use one for both */
	old = published;
	published = *p;
	if (old && *p && old->suspected && old->next_tag == (*p)->next_tag)
		(*p)->suspected = true; /* since we looked: that tag is given */
	spare = old;
}

/* The one before the last, if it is large enough: a look that maps nothing new leaves
 * the places of objects that have just gone to the next ones. */
static struct generations_published *
published_new(size_t need, uint16_t next_tag)
{
	size_t                        room = need * 2 + PUBLISHED_SPARE;
	size_t                        bytes = sizeof(struct generations_published) + room * sizeof(struct generations_range);
	struct generations_published *p = spare, *old = spare;

	if (!p || p->room < need) {
		p = pages_map(bytes);
		if (!p)
			return NULL;
		p->map_bytes = bytes;
		p->room = room;
		spare = p; /* first: a child may be forked in the midst of munmap() */
		if (old)
			pages_unmap(old, old->map_bytes);
	}
	p->loaded = p->count = 0;
	p->suspected = false;
	p->next_tag = next_tag;
	return p;
}

void
generations_ranges_reserve(size_t count)
{
	published_new(count, 0);
}

void
generations_ranges_hide(void *arg)
{
	struct generations_published **p = arg;

	*p = published;
	published = NULL;
}

void
generations_ranges_release(struct generations_published *old)
{
	struct generations_published *unused = spare;

	spare = NULL; /* first, as above */
	pages_unmap(old, old->map_bytes);
	if (unused)
		pages_unmap(unused, unused->map_bytes);
}

bool
generations_ranges_shown(void)
{
	return published != NULL;
}

bool
generations_ranges_given(void)
{
	return published && published->suspected;
}

struct generations_published *
generations_ranges_make(const struct generation *all, size_t count, const struct generations_other *others,
			size_t other_count, uint16_t next_tag)
{
	struct generations_published *p = published_new(count + other_count, next_tag);

	if (!p)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (all[i].loaded)
			range_put(p, &all[i]);
	for (size_t i = 0; i < other_count; i++)
		range_put(p, &(struct generation){ .start = others[i].start, .limit = others[i].limit, .loaded = true });
	for (size_t i = 0; i < count; i++)
		if (!all[i].loaded)
			range_put(p, &all[i]);
	return p;
}
