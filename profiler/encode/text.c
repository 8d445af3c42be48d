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
 * malloc gave out, not equal), what the allocator says of its heap and the kernel of the process.  The rest
 * is 0, and a line in front names it.  So it does where the allocator has not answered.
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

#include "our_fd.h"
#include "proc_status.h"
#include "stack_table.h"
#include "text_stack.h"

#define PAUSES 256 /* numbers in PauseNs and in PauseEnd */

enum column { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, COLUMNS };

struct heap {
	const struct profile *profile;
	unsigned              at[COLUMNS]; /* where a number stands in the values */
};

static int
find_columns(struct heap *h)
{
	static const char *const names[COLUMNS] = { "alloc_objects", "alloc_space", "inuse_objects", "inuse_space" };

	for (int c = 0; c < COLUMNS; c++) {
		unsigned i = 0;

		while (i < h->profile->type_count && strcmp(h->profile->types[i].type, names[c]))
			i++;
		if (i == h->profile->type_count)
			return -EINVAL;
		h->at[c] = i;
	}
	return 0;
}

static bool
before(const void *heap, uint32_t a, uint32_t b)
{
	const struct heap *h = heap;
	const int64_t     *x = h->profile->samples[a].counted_values, *y = h->profile->samples[b].counted_values;

	if (x[h->at[INUSE_SPACE]] != y[h->at[INUSE_SPACE]])
		return x[h->at[INUSE_SPACE]] > y[h->at[INUSE_SPACE]];
	if (x[h->at[ALLOC_SPACE]] != y[h->at[ALLOC_SPACE]])
		return x[h->at[ALLOC_SPACE]] > y[h->at[ALLOC_SPACE]];
	return a < b;
}

static void
print_numbers(struct lines *l, const struct heap *h, const int64_t *v, int64_t one_more)
{
	lines_print(l, "%" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64 "] @", v[h->at[INUSE_OBJECTS]],
		v[h->at[INUSE_SPACE]], v[h->at[ALLOC_OBJECTS]], v[h->at[ALLOC_SPACE]] + one_more);
}

static void
numbers(struct lines *l, const void *heap, const struct profile_sample *sample)
{
	print_numbers(l, heap, sample->counted_values, 0);
}

static void
head(struct lines *l, const void *heap)
{
	const struct heap *h = heap;
	int64_t            total[PROFILE_TYPES_MAX] = { 0 };

	for (size_t i = 0; i < h->profile->count; i++)
		for (unsigned k = 0; k < h->profile->type_count; k++)
			total[k] += h->profile->samples[i].counted_values[k];
	lines_print(l, "heap profile: ");
	print_numbers(l, h, total, total[h->at[INUSE_SPACE]] == total[h->at[ALLOC_SPACE]]);
	lines_print(l, " heap/%" PRId64 "\n", 2 * h->profile->period);
}

/* ---- the end ---- */

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
memstats(struct lines *l, const void *heap)
{
	const struct heap      *h = heap;
	struct proc_status_line status[] = { { .key = "\nVmData:" }, { .key = "\nVmStk:" } };
	struct rusage           usage;
	const struct profile_process *process = &h->profile->process;
	int64_t                 stack, data, sum[COLUMNS] = { 0 }; /* estimates of the whole process */
	int                     fd = proc_status_open();

	proc_status_read(fd, status, 2);
	our_fd_close(fd);
	data = status_bytes(&status[0]);
	stack = status_bytes(&status[1]);
	getrusage(RUSAGE_SELF, &usage);
	for (size_t i = 0; i < h->profile->count; i++)
		for (int c = 0; c < COLUMNS; c++)
			sum[c] += h->profile->samples[i].values[h->at[c]];
	lines_print(l, "\n# estimated from samples: Alloc TotalAlloc Mallocs Frees HeapAlloc HeapInuse HeapObjects\n"
		"# always 0 in a C process: Lookups MSpan MCache GCSys OtherSys NextGC LastGC PauseNs PauseEnd NumGC "
		"NumForcedGC GCCPUFraction DebugGC\n%s# runtime.MemStats\n",
		process->known ? "" : "# not known now, as the allocator has not answered: HeapSys HeapIdle HeapReleased\n");
	print_one(l, "Alloc", sum[INUSE_SPACE]);
	print_one(l, "TotalAlloc", sum[ALLOC_SPACE]);
	print_one(l, "Sys", data + stack);
	print_one(l, "Lookups", 0);
	print_one(l, "Mallocs", sum[ALLOC_OBJECTS]);
	print_one(l, "Frees", sum[ALLOC_OBJECTS] - sum[INUSE_OBJECTS]);
	print_one(l, "HeapAlloc", sum[INUSE_SPACE]);
	print_one(l, "HeapSys", process->heap);
	print_one(l, "HeapIdle", process->heap_free);
	print_one(l, "HeapInuse", sum[INUSE_SPACE]);
	print_one(l, "HeapReleased", process->heap_released);
	print_one(l, "HeapObjects", sum[INUSE_OBJECTS]);
	lines_print(l, "# Stack = %" PRId64 " / %" PRId64 "\n# MSpan = 0 / 0\n# MCache = 0 / 0\n",
		process->stacks, process->stacks_mapped);
	print_one(l, "BuckHashSys", (int64_t)stack_table_bytes());
	lines_print(l, "# GCSys = 0\n# OtherSys = 0\n# NextGC = 0\n# LastGC = 0\n");
	print_zeros(l, "PauseNs");
	print_zeros(l, "PauseEnd");
	lines_print(l, "# NumGC = 0\n# NumForcedGC = 0\n# GCCPUFraction = 0\n# DebugGC = false\n");
	print_one(l, "MaxRSS", (int64_t)usage.ru_maxrss * 1024);
}

/* ---- all ---- */

int
encode_heap_text(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	const struct text_form form = { before, head, numbers, p->alone ? NULL : memstats };
	struct heap            h = { .profile = p };
	int                    r = find_columns(&h);

	return r < 0 ? r : text_stacks(p, s, &form, &h, write, arg);
}
