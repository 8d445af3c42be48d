/*
 * generations_ranges.c - what hooks read of the objects: their ranges and tags.
 *
 * A list of ranges, those of loaded objects first and by address, is made anew when
 * objects have come or gone, and exchanged for the last one under the stack table's lock,
 * which who gives tags holds (generations_tag.c).  The one before is kept and used again.
 *
 * All here is called under the lock of generations.c.
 *
 * Tests: tests/model/test_generations.c, tests/model/unloaded_plugins.t.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "generations_parts.h"
#include "pages.h"
#include "stack_table.h"

#define PUBLISHED_SPARE 64 /* objects that may come before more room is mapped */

static struct generations_published *spare;

/* These can never be unloaded, so no stack need look at their marks. */
static bool
is_permanent(const struct generation *g)
{
	const uintptr_t at[] = { getauxval(AT_ENTRY), getauxval(AT_SYSINFO_EHDR), (uintptr_t)getauxval,
				 (uintptr_t)generations_look, (uintptr_t)pthread_mutex_lock };

	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		if (at[i] >= g->start && at[i] < g->limit)
			return true;
	return g->start - g->offset == getauxval(AT_BASE);
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

/* Under the stack table's lock. */
static void
exchange(void *arg)
{
	struct generations_published **p = arg, *old;

	spare = NULL; /* first: a child that is forked between the two must not use one for both */
	old = generations_publish(*p);
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
			munmap(old, old->map_bytes);
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
generations_ranges_release(void)
{
	struct generations_published *old = spare;

	spare = NULL; /* first, as above */
	if (old)
		munmap(old, old->map_bytes);
}

int
generations_ranges_show(const struct generation *all, size_t count, const struct generations_other *others,
			size_t other_count, uint16_t next_tag)
{
	struct generations_published *p = published_new(count + other_count, next_tag);

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (all[i].loaded)
			range_put(p, &all[i]);
	for (size_t i = 0; i < other_count; i++)
		range_put(p, &(struct generation){ .start = others[i].start, .limit = others[i].limit, .loaded = true });
	for (size_t i = 0; i < count; i++)
		if (!all[i].loaded)
			range_put(p, &all[i]);
	if (!stack_table_exclusively(exchange, &p))
		return -EBUSY;
	return 0;
}
