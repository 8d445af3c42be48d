/*
 * fixture.h - what tests of the encoders share: functions to be seen in stacks,
 * profiles of them, and an encoder's output in memory.
 */
#ifndef TESTS_ENCODE_FIXTURE_H
#define TESTS_ENCODE_FIXTURE_H

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "debug_file.h"
#include "encode.h"
#include "named_function.h"
#include "stack_table.h"
#include "view.h"

#define LIMIT ((size_t)64 << 20)
#define STACK ((size_t)256 << 10) /* what the library's own threads have */
#define ROOM  ((size_t)64 << 20)

FUNCTION(leaf_one)
FUNCTION(leaf_two)
FUNCTION(middle)
FUNCTION(root)

#define IN(f) ((uintptr_t)(f) + 4)

/* A sanitizer has a malloc of its own and more memory than what it looks at. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

struct sink {
	unsigned char *data;
	size_t         size, pieces, largest;
	size_t         fail_at;   /* this piece fails; 0: none */
	int64_t        heap_used; /* the most that malloc held at any piece */
};

static struct sink sink;

static inline int64_t
heap_used(void)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	struct mallinfo m = mallinfo();
#pragma GCC diagnostic pop

	return (int64_t)(unsigned)m.uordblks + (unsigned)m.hblkhd;
}

static inline int
into_sink(void *arg, const void *data, size_t size)
{
	struct sink *s = arg;

	if (++s->pieces == s->fail_at)
		return -EPIPE;
	if (size > s->largest)
		s->largest = size;
	if (heap_used() > s->heap_used)
		s->heap_used = heap_used();
	assert_true(size > 0 && s->size + size <= ROOM);
	memcpy(s->data + s->size, data, size);
	s->size += size;
	s->data[s->size] = '\0';
	return 0;
}

static inline int
reset(void **state)
{
	unsigned char *data = sink.data ? sink.data : malloc(ROOM + 1);

	(void)state;
	if (!data)
		return -1;
	sink = (struct sink){ .data = data };
	data[0] = '\0';
	stack_table_set_limit(LIMIT);
	return 0;
}

static inline void
add(struct profile *p, const uintptr_t *pcs, unsigned n, int64_t bytes, const int64_t *values)
{
	struct profile_sample s = { .stack = stack_table_add(pcs, n), .event_bytes = bytes };

	for (unsigned i = 0; i < PROFILE_TYPES_MAX; i++) {
		s.values[i] = values[i];
		s.counted_values[i] = values[i] / 2;
	}
	assert_int_equal(profile_add(p, &s), 0);
}

static inline void
init_cpu(struct profile *p)
{
	profile_init(p, "profile");
	p->types[0] = (struct profile_type){ "samples", "count" };
	p->types[1] = (struct profile_type){ "cpu", "nanoseconds" };
	p->type_count = 2;
	p->period_type = p->types[1];
	p->period = 10000000;
	p->time_ns = 1700000000123456789;
	p->duration_ns = 5000000000;
}

static inline void
init_heap(struct profile *p)
{
	profile_init(p, "heap");
	p->types[0] = (struct profile_type){ "alloc_objects", "count" };
	p->types[1] = (struct profile_type){ "alloc_space", "bytes" };
	p->types[2] = (struct profile_type){ "inuse_objects", "count" };
	p->types[3] = (struct profile_type){ "inuse_space", "bytes" };
	p->type_count = 4;
	p->period_type = (struct profile_type){ "space", "bytes" };
	p->period = 524288;
	p->time_ns = 1700000000123456789;
}

static struct view view;

/* What view has of it. */
static inline int
encode_viewed_top(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	return encode_top(p, &view, s, write, arg);
}

static inline int
encode_viewed_folded(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	return encode_folded(p, &view, s, write, arg);
}

static inline int
encode_viewed_svg(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	return encode_svg(p, &view, s, write, arg);
}

struct encoding {
	const struct profile *profile;
	int (*encode)(const struct profile *, struct symbols *, encode_write_fn *, void *);
	int result;
};

static inline void *
run(void *arg)
{
	struct encoding *e = arg;
	struct symbols  *s;

	e->result = symbols_open(LIMIT, &s);
	if (e->result < 0)
		return NULL;
	e->result = e->encode(e->profile, s, into_sink, &sink);
	symbols_close(s);
	return NULL;
}

/* On a thread with the stack that the library's own have. */
static inline int
encode(const struct profile *p, int (*fn)(const struct profile *, struct symbols *, encode_write_fn *, void *))
{
	struct encoding e = { p, fn, 1 };
	pthread_attr_t  attr;
	pthread_t       thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	assert_int_equal(pthread_create(&thread, &attr, run, &e), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	return e.result;
}

/* "FILE:LINE" of an address: of this header, if the compiler said so. */
static inline void
place_of(uintptr_t pc, char *buf, size_t size)
{
	struct symbols     *s;
	struct symbol_frame f[1];

	assert_int_equal(symbols_open(LIMIT, &s), 0);
	symbols_resolve(s, &pc, 1);
	assert_int_equal(symbols_frames(s, pc, f, 1), 1);
	if (f[0].file) {
		assert_non_null(strstr(f[0].file, "fixture.h"));
		assert_true(f[0].line > 10 && f[0].line < 100);
	}
	snprintf(buf, size, "%s:%d", f[0].file ? f[0].file : f[0].object, f[0].line);
	symbols_close(s);
}

#endif
