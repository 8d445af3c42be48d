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
 * The end is Go's "# runtime.MemStats" block: every key in Go's order, since readers of that
 * text know it by place.  What C has: the sampler's estimates (unsampled, so they are near what
 * malloc gave out, not equal), and what the kernel says of the process.  The rest is 0, and a
 * line in front names it.  mallinfo2() is not asked, although it is exact: it takes the locks of
 * glibc's malloc, which a stuck daemon may hold, and knows nothing of other allocators.
 *
 * Tests: tests/encode/test_text.c, tests/serve/delta.t
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "order.h"
#include "our_fd.h"
#include "proc_status.h"
#include "stack_table.h"
#include "text_stack.h"

#define PAUSES 256 /* numbers in PauseNs and in PauseEnd */

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

/* ---- the end ---- */

/* Estimates of the whole process: objects, bytes. */
struct memstats {
	int64_t alloc_objects, alloc_space, inuse_objects, inuse_space;
};

/* "	  1234 kB" in bytes; 0 where it cannot be read. */
static int64_t
status_bytes(const struct proc_status_line *l)
{
	return strtoll(l->value, NULL, 10) * 1024;
}

static void
print_zeros(struct lines *l, const char *key)
{
	lines_print(l, "# %s = [", key);
	for (int i = 0; i < PAUSES; i++)
		lines_print(l, i ? " 0" : "0");
	lines_print(l, "]\n");
}

static void
print_one(struct lines *l, const char *key, int64_t value)
{
	lines_print(l, "# %s = %" PRId64 "\n", key, value);
}

static void
memstats_print(struct lines *l, const struct memstats *m)
{
	struct proc_status_line status[] = { { .key = "\nVmData:" }, { .key = "\nVmStk:" } };
	struct rusage           usage;
	int64_t                 stack, data;
	int                     fd = proc_status_open();

	proc_status_read(fd, status, 2);
	our_fd_close(fd);
	data = status_bytes(&status[0]);
	stack = status_bytes(&status[1]);
	getrusage(RUSAGE_SELF, &usage);
	lines_print(l, "\n# estimated from samples: Alloc TotalAlloc Mallocs Frees HeapAlloc HeapInuse HeapObjects\n"
		"# nothing to say in a C process, always 0: Lookups HeapIdle HeapReleased MSpan MCache GCSys OtherSys "
		"NextGC LastGC PauseNs PauseEnd NumGC NumForcedGC GCCPUFraction DebugGC\n"
		"# runtime.MemStats\n");
	print_one(l, "Alloc", m->inuse_space);
	print_one(l, "TotalAlloc", m->alloc_space);
	print_one(l, "Sys", data + stack);
	print_one(l, "Lookups", 0);
	print_one(l, "Mallocs", m->alloc_objects);
	print_one(l, "Frees", m->alloc_objects - m->inuse_objects);
	print_one(l, "HeapAlloc", m->inuse_space);
	print_one(l, "HeapSys", data);
	print_one(l, "HeapIdle", 0);
	print_one(l, "HeapInuse", m->inuse_space);
	print_one(l, "HeapReleased", 0);
	print_one(l, "HeapObjects", m->inuse_objects);
	lines_print(l, "# Stack = %" PRId64 " / %" PRId64 "\n", stack, stack);
	lines_print(l, "# MSpan = 0 / 0\n# MCache = 0 / 0\n");
	print_one(l, "BuckHashSys", (int64_t)stack_table_bytes());
	print_one(l, "GCSys", 0);
	print_one(l, "OtherSys", 0);
	print_one(l, "NextGC", 0);
	print_one(l, "LastGC", 0);
	print_zeros(l, "PauseNs");
	print_zeros(l, "PauseEnd");
	print_one(l, "NumGC", 0);
	print_one(l, "NumForcedGC", 0);
	print_one(l, "GCCPUFraction", 0);
	lines_print(l, "# DebugGC = false\n");
	print_one(l, "MaxRSS", (int64_t)usage.ru_maxrss * 1024);
}

/* ---- all ---- */

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
