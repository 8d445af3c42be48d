/*
 * text.c - heap and allocs with debug=1, in the form of Go's text.
 *
 *     heap profile: 57: 466944 [1942: 110867152] @ heap/1048576
 *     57: 466944 [1687: 13819904] @ 0x6925c9 0x692e38
 *     #	0x6925c8	leaky+0x28	/src/daemon.c:23
 *     #	0x692e37	main+0x17	/src/daemon.c:70
 *
 * In use first, allocated in brackets; largest in use first; a blank line after each
 * record.  What a stranger would get wrong: the numbers are those that were sampled,
 * not unsampled as in the binary form, and the rate is twice the mean distance of
 * samples, because pprof, which unsamples this text, halves it.  pprof takes equal
 * totals for a profile that knows no allocated numbers; a byte more says it does.
 *
 * Go's heap knows no labels; where there are some they are said as in its goroutines.
 *
 * The end is Go's MemStats block, see memstats.c.
 *
 * Tests: tests/encode/test_text.c
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "memstats.h"
#include "order.h"
#include "text_stack.h"

/* Where the four numbers stand in the values. */
struct columns {
	unsigned alloc_objects, alloc_space, inuse_objects, inuse_space;
};

struct sorting {
	const struct profile *profile;
	struct columns        columns;
};

static int
column(const struct profile *p, const char *type, unsigned *ret)
{
	for (unsigned i = 0; i < p->type_count; i++)
		if (!strcmp(p->types[i].type, type)) {
			*ret = i;
			return 0;
		}
	return -EINVAL;
}

static bool
before(const void *arg, uint32_t a, uint32_t b)
{
	const struct sorting *s = arg;
	const int64_t        *x = s->profile->samples[a].counted_values;
	const int64_t        *y = s->profile->samples[b].counted_values;

	if (x[s->columns.inuse_space] != y[s->columns.inuse_space])
		return x[s->columns.inuse_space] > y[s->columns.inuse_space];
	if (x[s->columns.alloc_space] != y[s->columns.alloc_space])
		return x[s->columns.alloc_space] > y[s->columns.alloc_space];
	return a < b;
}

static void
print_numbers(struct lines *l, const struct columns *c, const int64_t *v, int64_t one_more)
{
	lines_print(l, "%" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64 "] @", v[c->inuse_objects],
		v[c->inuse_space], v[c->alloc_objects], v[c->alloc_space] + one_more);
}

static void
print_record(struct lines *l, const struct columns *c, const struct profile_sample *sample,
	struct symbols *s, struct frames *frames)
{
	unsigned         n;
	const uintptr_t *pcs = frames_stack(sample->stack, &n);

	print_numbers(l, c, sample->counted_values, 0);
	text_addresses(l, pcs, n, s);
	text_labels(l, sample->labels);
	text_frames(l, pcs, n, s, frames);
}

static int
find_columns(const struct profile *p, struct columns *ret)
{
	if (column(p, "alloc_objects", &ret->alloc_objects) < 0 ||
	    column(p, "alloc_space", &ret->alloc_space) < 0 ||
	    column(p, "inuse_objects", &ret->inuse_objects) < 0 ||
	    column(p, "inuse_space", &ret->inuse_space) < 0 || p->count > UINT32_MAX)
		return -EINVAL;
	return 0;
}

int
encode_heap_text(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { 0, ENCODE_MEMORY_MAX };
	struct sorting      sorting = { .profile = p };
	struct columns     *c = &sorting.columns;
	struct arena        arena;
	struct lines        lines;
	struct frames      *frames;
	uint32_t           *order;
	int64_t             total[PROFILE_TYPES_MAX] = { 0 }, scaled[PROFILE_TYPES_MAX] = { 0 };
	struct memstats     stats;
	int                 r = find_columns(p, c);

	if (r < 0)
		return r;
	arena_init(&arena, &budget);
	order = arena_array(&arena, p->count + 1, sizeof(*order));
	frames = arena_alloc(&arena, sizeof(*frames));
	r = order && frames ? lines_open(&lines, &arena, write, arg) : -ENOMEM;
	if (r < 0)
		goto out;
	for (size_t i = 0; i < p->count; i++) {
		order[i] = (uint32_t)i;
		for (unsigned k = 0; k < p->type_count; k++) {
			total[k] += p->samples[i].counted_values[k];
			scaled[k] += p->samples[i].values[k];
		}
	}
	order_sort(order, p->count, before, &sorting);
	frames_resolve(p, s);
	lines_print(&lines, "heap profile: ");
	print_numbers(&lines, c, total, total[c->inuse_space] == total[c->alloc_space]);
	lines_print(&lines, " heap/%" PRId64 "\n", 2 * p->period);
	for (size_t i = 0; i < p->count && !lines.error; i++)
		print_record(&lines, c, &p->samples[order[i]], s, frames);
	stats = (struct memstats){ scaled[c->alloc_objects], scaled[c->alloc_space], scaled[c->inuse_objects],
		scaled[c->inuse_space] };
	memstats_print(&lines, &stats);
	r = lines_close(&lines);
out:
	arena_release(&arena);
	return r;
}
