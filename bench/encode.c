/*
 * encode.c - writing a heap profile of 100,000 stacks of 30 frames.
 *
 *     encode ours [TIMES]
 *
 * The stacks are those of encode/main.go, whose own profile Go writes: 17 levels
 * where one of two calls was made, and 13 without a choice.  As there, they are of the
 * program itself, so that its own debug information is read.  The output is counted
 * and dropped.  The median of some, as of Go's; the first one is printed apart.  With TIMES so often,
 * for counting instructions.
 */
#include <config.h>

#include "bench.h"
#include "deep.h"
#include "encode.h"
#include "stack_table.h"

#define STACKS 100000
#define FRAMES 30
#define WAYS   17
#define LIMIT  ((size_t)64 << 20)
#define ROUNDS 9

static size_t written;

static int
drop(void *arg, const void *data, size_t size)
{
	(void)arg;
	(void)data;
	written += size;
	return 0;
}

static long
status_kb(const char *field)
{
	FILE *f = fopen("/proc/self/status", "re");
	char  line[256];
	long  kb = -1;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			kb = atol(line + strlen(field));
	if (f)
		fclose(f);
	if (kb < 0)
		bench_skip("there is no /proc/self/status");
	return kb;
}

/* The peak counts from now on. */
static void
forget_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "we");

	if (!f || fputs("5", f) < 0 || fclose(f) != 0)
		bench_skip("the peak of memory cannot be reset: /proc/self/clear_refs");
}

static void
make(struct profile *p)
{
	struct profile_sample s = { 0 };
	uintptr_t             pcs[FRAMES];

	profile_init(p, "heap");
	p->types[0] = (struct profile_type){ "alloc_objects", "count" };
	p->types[1] = (struct profile_type){ "alloc_space", "bytes" };
	p->types[2] = (struct profile_type){ "inuse_objects", "count" };
	p->types[3] = (struct profile_type){ "inuse_space", "bytes" };
	p->type_count = 4;
	p->period_type = (struct profile_type){ "space", "bytes" };
	p->period = 524288;
	stack_table_set_limit((size_t)1 << 30);
	for (unsigned i = 0; i < STACKS; i++) {
		for (unsigned k = 0; k < FRAMES; k++)
			pcs[k] = (uintptr_t)deep_levels[k] + 5 + (k < WAYS ? (i >> k & 1) * 20 : 0);
		s.stack = stack_table_add(pcs, FRAMES);
		s.event_bytes = 64;
		s.values[0] = s.values[2] = s.counted_values[0] = s.counted_values[2] = 1;
		s.values[1] = s.values[3] = s.counted_values[1] = s.counted_values[3] = 64;
		if (profile_add(p, &s) < 0)
			bench_die("no memory");
	}
}

static double
encode_ms(const struct profile *p)
{
	int64_t         begin = bench_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct symbols *s;

	written = 0;
	if (symbols_open(LIMIT, &s) < 0 || encode_pprof(p, s, drop, NULL) < 0)
		bench_die("encode_pprof");
	symbols_close(s);
	return (double)(bench_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / 1e6;
}

int
main(int argc, char **argv)
{
	struct profile p;
	double         first, taken[ROUNDS];
	long           before;

	make(&p);
	if (argc > 2) {
		for (int i = atoi(argv[2]); i > 0; i--)
			encode_ms(&p);
		return 0;
	}
	forget_peak();
	before = status_kb("VmRSS:");
	first = encode_ms(&p);
	for (int i = 0; i < ROUNDS; i++)
		taken[i] = encode_ms(&p);
	bench_print("encode_100k_ms", bench_median(taken, ROUNDS), "ms");
	bench_print("encode_extra_rss_mb", (double)(status_kb("VmHWM:") - before) / 1024, "MB");
	printf("# ours: %zu KiB; the first one, which reads the names, took %.1f ms\n", written / 1024, first);
	profile_release(&p);
	return 0;
}
