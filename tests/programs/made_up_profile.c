/*
 * made_up_profile.c - a program that writes a made-up profile of itself to its
 * standard output, for tests/encode/pprof.t to read with other people's readers.
 *
 *     made_up_profile pprof|text|top cpu|heap|empty|odd|big
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "encode.h"
#include "named_function.h"
#include "stack_table.h"
#include "view.h"

#define LIMIT     ((size_t)64 << 20)
#define BIG_COUNT 100000
#define BIG_DEPTH 30

FUNCTION(crunch)
FUNCTION(prepare)
FUNCTION(handle_request)
FUNCTION(serve_forever)

static uintptr_t
inside(int (*f)(int))
{
	return (uintptr_t)f + 8;
}

static void
add(struct profile *p, const uintptr_t *pcs, unsigned n, int64_t bytes, const int64_t *values)
{
	struct profile_sample s = { .stack = stack_table_add(pcs, n), .event_bytes = bytes };

	memcpy(s.values, values, sizeof(s.values));
	memcpy(s.counted_values, values, sizeof(s.counted_values));
	if (profile_add(p, &s) < 0)
		abort();
}

static void
make_cpu(struct profile *p)
{
	const uintptr_t a[] = { inside(crunch), inside(handle_request), inside(serve_forever) };
	const uintptr_t b[] = { inside(prepare), inside(handle_request), inside(handle_request), inside(serve_forever) };

	p->types[0] = (struct profile_type){ "samples", "count" };
	p->types[1] = (struct profile_type){ "cpu", "nanoseconds" };
	p->type_count = 2;
	p->period_type = p->types[1];
	p->period = 10000000;
	p->time_ns = 1700000000000000000;
	p->duration_ns = 5000000000;
	add(p, a, 3, 0, (int64_t[4]){ 60, 600000000 });
	add(p, b, 4, 0, (int64_t[4]){ 40, 400000000 });
}

static void
make_heap(struct profile *p)
{
	const uintptr_t a[] = { inside(prepare), inside(serve_forever) };
	const uintptr_t b[] = { inside(crunch), inside(serve_forever) };

	profile_init(p, "heap");
	p->types[0] = (struct profile_type){ "alloc_objects", "count" };
	p->types[1] = (struct profile_type){ "alloc_space", "bytes" };
	p->types[2] = (struct profile_type){ "inuse_objects", "count" };
	p->types[3] = (struct profile_type){ "inuse_space", "bytes" };
	p->type_count = 4;
	p->period_type = (struct profile_type){ "space", "bytes" };
	p->period = 524288;
	p->time_ns = 1700000000000000000;
	add(p, a, 2, 4096, (int64_t[4]){ 100, 409600, 10, 40960 });
	add(p, b, 2, 1048576, (int64_t[4]){ 7, 7340032, 3, 3145728 });
	add(p, b, 2, 0, (int64_t[4]){ 0, 0, 0, 0 });
}

/* Everything that is not plain code in a plain file. */
static void
make_odd(struct profile *p)
{
	const uintptr_t a[] = { STACK_PSEUDO_TRUNCATED }, b[] = { 0x1234567, inside(serve_forever) };
	const uintptr_t c[] = { inside(crunch), 0x7654321, STACK_PSEUDO_TRUNCATED };

	make_cpu(p);
	p->lost = 5;
	profile_comment(p, "a comment with \xff and \xc3\xa4");
	profile_comment(p, "second");
	add(p, a, 1, 0, (int64_t[4]){ 1, 10000000 });
	add(p, b, 2, 0, (int64_t[4]){ 2, 20000000 });
	add(p, c, 3, 0, (int64_t[4]){ 3, 30000000 });
}

/* 10,000 addresses, stacks that share their root side. */
static void
make_big(struct profile *p)
{
	uintptr_t pcs[BIG_DEPTH];
	uint32_t  seed = 1;
	uintptr_t text = (uintptr_t)strtoul; /* libc has enough code */

	make_cpu(p);
	for (unsigned i = 0; i < BIG_DEPTH; i++)
		pcs[i] = text + i * 64;
	for (unsigned i = 0; i < BIG_COUNT; i++) {
		unsigned depth = (seed = seed * 1103515245 + 12345) >> 16 & 15;

		for (unsigned k = 0; k <= depth; k++)
			pcs[k] = text + ((seed = seed * 1103515245 + 12345) >> 16) % 10000 * 50;
		add(p, pcs, BIG_DEPTH, 0, (int64_t[4]){ 1, 10000000 });
	}
}

static int
write_out(void *arg, const void *data, size_t size)
{
	(void)arg;
	return fwrite(data, 1, size, stdout) == size ? 0 : -1;
}

static double
cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int
main(int argc, char **argv)
{
	struct profile  p;
	struct symbols *s;
	struct rusage   before, after;
	double          ms;
	int             r;

	if (argc != 3)
		return 2;
	stack_table_set_limit(LIMIT);
	profile_init(&p, "profile");
	if (!strcmp(argv[2], "cpu"))
		make_cpu(&p);
	else if (!strcmp(argv[2], "heap"))
		make_heap(&p);
	else if (!strcmp(argv[2], "odd"))
		make_odd(&p);
	else if (!strcmp(argv[2], "big"))
		make_big(&p);
	else
		make_cpu(&p), p.count = 0;
	getrusage(RUSAGE_SELF, &before);
	ms = cpu_ms();
	if (symbols_open(LIMIT, &s) < 0)
		return 1;
	if (!strcmp(argv[1], "text"))
		r = encode_heap_text(&p, s, write_out, NULL);
	else if (!strcmp(argv[1], "top"))
		r = encode_top(&p, &(struct view){ .rows = 0 }, s, write_out, NULL);
	else
		r = encode_pprof(&p, s, write_out, NULL);
	symbols_close(s);
	ms = cpu_ms() - ms;
	getrusage(RUSAGE_SELF, &after);
	if (!strcmp(argv[2], "big"))
		fprintf(stderr, "cpu_ms=%.1f rss_kb=%ld\n", ms, after.ru_maxrss - before.ru_maxrss);
	profile_release(&p);
	return r < 0;
}
