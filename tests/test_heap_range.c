/*
 * test_heap_range.c - the allocator of sampled blocks: places, alignment, reuse,
 * and what it costs in memory.
 */
#include <config.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "heap_lock.h"
#include "heap_range.h"
#include "stack_table.h"

#define RANGE_BYTES ((size_t)256 << 20)

static struct heap_block
block_of(size_t size)
{
	static uint32_t       site;
	struct heap_lock_hold hold;
	uintptr_t             pc = 0x1000;

	if (!site) {
		assert_true(heap_lock(&hold));
		site = heap_site_of(stack_table_add(&pc, 1), 0);
		heap_unlock(&hold);
	}
	return (struct heap_block){ .size = size, .weight = 65536, .site = site };
}

static void *
take(size_t size, size_t align)
{
	struct heap_block b = block_of(size);

	return heap_range_allocate(align, false, &b);
}

static void
every_size_has_room_and_keeps_its_size(void **state)
{
	struct heap_block found;
	char             *p[3000];

	(void)state;
	for (size_t size = 0; size < 3000; size++) {
		p[size] = take(size * 7, 0);
		assert_non_null(p[size]);
		assert_int_equal((uintptr_t)p[size] % 16, 0);
		memset(p[size], (int)size, size * 7);
	}
	for (size_t size = 0; size < 3000; size++) {
		assert_true(heap_range_find(p[size], &found));
		assert_int_equal(found.size, size * 7);
		for (size_t i = 0; i < size * 7; i++)
			assert_int_equal((unsigned char)p[size][i], (unsigned char)size);
		heap_range_release(p[size]);
		assert_false(heap_range_find(p[size], &found));
	}
}

static void
alignments_up_to_64_MiB_hold(void **state)
{
	(void)state;
	for (size_t align = 16; align <= (size_t)64 << 20; align *= 2) {
		static const size_t sizes[] = { 1, 100, 5000, 70000 };
		void               *p[4];

		for (int i = 0; i < 4; i++) {
			p[i] = take(sizes[i], align);
			if (!p[i])
				continue; /* fragments of the largest alignments */
			assert_int_equal((uintptr_t)p[i] % align, 0);
			memset(p[i], 1, sizes[i]);
		}
		assert_non_null(p[0]);
		for (int i = 0; i < 4; i++)
			if (p[i])
				heap_range_release(p[i]);
	}
}

static void
freed_memory_is_used_again(void **state)
{
	size_t opened;

	(void)state;
	for (int i = 0; i < 100; i++)
		heap_range_release(take(1 << 20, 0));
	opened = heap_range_opened();
	for (int i = 0; i < 5000; i++) {
		void *a = take(1 << 20, 0), *b = take(3000, 0);

		heap_range_release(a);
		heap_range_release(b);
	}
	assert_true(heap_range_opened() <= opened + ((size_t)2 << 20));
}

static void
a_large_block_goes_back_to_the_kernel(void **state)
{
	unsigned char resident[1024];
	char         *p = take(4 << 20, 0);
	size_t        pages = 0;

	(void)state;
	memset(p, 1, 4 << 20);
	heap_range_release(p);
	assert_int_equal(mincore(p, 4 << 20, resident), 0);
	for (int i = 0; i < 1024; i++)
		pages += resident[i] & 1;
	assert_int_equal(pages, 0);
}

static void
zeroed_blocks_are_zero_whatever_was_there(void **state)
{
	static const size_t sizes[] = { 16, 100, 8192, 20000, 200000, 3 << 20 };

	(void)state;
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 6; i++) {
			struct heap_block b = block_of(sizes[i]);
			unsigned char    *p = heap_range_allocate(0, true, &b);

			assert_non_null(p);
			for (size_t k = 0; k < sizes[i]; k++)
				assert_int_equal(p[k], 0);
			memset(p, 0xff, sizes[i]);
			heap_range_release(p);
		}
}

static void
what_is_no_block_is_left_alone(void **state)
{
	struct heap_block found;
	char             *p = take(200, 0), *q = take(100000, 0);

	(void)state;
	heap_range_release(p + 16);
	heap_range_release(q + 4096);
	assert_true(heap_range_find(p, &found));
	assert_true(heap_range_find(q, &found));
	assert_false(heap_range_find(q + 4096, &found));
	heap_range_release(p);
	heap_range_release(p); /* a double free of the daemon's */
	heap_range_release(q);
	heap_range_release(q);
}

/* Sizes as a profile at 4 KiB sees them: mostly a few KiB, some large. */
static void
memory_costs_less_than_twice_what_is_asked_for(void **state)
{
	size_t   before = heap_range_opened(), asked = 0, n = 0;
	void   **kept = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t x = 88172645463325252ULL;

	(void)state;
	while (asked < (size_t)48 << 20) {
		size_t size;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		size = (size_t)64 << (x % 11);
		size += (x >> 20) % size;
		asked += size;
		kept[n] = take(size, 0);
		assert_non_null(kept[n++]);
	}
	assert_true(heap_range_opened() < before + asked * 3 / 2);
	while (n > 0)
		heap_range_release(kept[--n]);
	munmap(kept, 1 << 20);
}

static void *
churn(void *arg)
{
	uint64_t x = (uintptr_t)arg * 88172645463325252ULL + 1;
	char    *p[64] = { NULL };
	size_t   size[64];

	for (int i = 0; i < 40000; i++) {
		int k;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		k = (int)(x % 64);
		if (p[k]) {
			if (p[k][0] != (char)k || p[k][size[k] - 1] != (char)k)
				return (void *)1;
			heap_range_release(p[k]);
			p[k] = NULL;
			continue;
		}
		size[k] = 1 + (size_t)(x >> 32) % (i % 50 ? 3000 : 300000);
		p[k] = take(size[k], 0);
		if (!p[k])
			return (void *)2;
		p[k][0] = p[k][size[k] - 1] = (char)k;
	}
	for (int k = 0; k < 64; k++)
		if (p[k])
			heap_range_release(p[k]);
	return NULL;
}

/* What the one site of these tests has counted. */
static struct heap_counts
counted(void)
{
	struct heap_lock_hold hold;
	struct heap_counts    c;
	uint32_t              stack, labels;

	assert_true(heap_lock(&hold));
	assert_int_equal(heap_site_read(0, false, &stack, &labels, &c), 1);
	heap_unlock(&hold);
	return c;
}

static void
threads_do_not_get_each_others_blocks(void **state)
{
	struct heap_counts before = counted(), after;
	pthread_t          t[4];
	void              *result;

	(void)state;
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &result);
		assert_null(result);
	}
	/* Nor do they lose a count at the site they share. */
	after = counted();
	assert_true(after.alloc_objects - before.alloc_objects > 4 * 40000 / 2);
	assert_int_equal(after.free_objects - before.free_objects, after.alloc_objects - before.alloc_objects);
	assert_int_equal(after.free_bytes - before.free_bytes, after.alloc_bytes - before.alloc_bytes);
	assert_int_equal(after.free_weight - before.free_weight, after.alloc_weight - before.alloc_weight);
	assert_int_equal(after.free_scaled - before.free_scaled, after.alloc_scaled - before.alloc_scaled);
}

/* A program may free twice what it was given once. */
static void
a_double_free_is_counted_once_and_gives_nobody_the_same_block(void **state)
{
	struct heap_counts before = counted(), after;
	char              *p[20];

	(void)state;
	p[0] = take(5000, 0);
	heap_range_release(p[0]);
	heap_range_release(p[0]);
	after = counted();
	assert_int_equal(after.alloc_objects - before.alloc_objects, 1);
	assert_int_equal(after.free_objects - before.free_objects, 1);
	for (int i = 0; i < 20; i++) {
		p[i] = take(5000, 0);
		for (int k = 0; k < i; k++)
			assert_ptr_not_equal(p[i], p[k]);
	}
	for (int i = 0; i < 20; i++)
		heap_range_release(p[i]);
}

static sigjmp_buf       jump_to;
static _Atomic bool     can_jump;
static _Atomic uint32_t jumps;

static void
jump(int signal)
{
	(void)signal;
	siglongjmp(jump_to, 1);
}

static void *
be_interrupted(void *arg)
{
	(void)arg;
	if (sigsetjmp(jump_to, 1))
		jumps++;
	can_jump = true;
	while (jumps < 5000)
		heap_range_release(take(100, 0));
	return NULL;
}

/* As a daemon's handler may leave malloc: whatever it leaves behind there. */
static void
a_thread_that_jumps_out_of_it_stops_nobody(void **state)
{
	struct sigaction   action = { .sa_handler = jump };
	struct heap_counts before = counted(), after;
	struct heap_lock_hold hold;
	uint32_t           stack, labels, seen;
	pthread_t          t;

	(void)state;
	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(pthread_create(&t, NULL, be_interrupted, NULL), 0);
	while (!can_jump)
		sched_yield();
	while ((seen = jumps) < 5000) {
		pthread_kill(t, SIGUSR1);
		while (jumps == seen)
			sched_yield();
	}
	pthread_join(t, NULL);
	for (int i = 0; i < 1000; i++) {
		char *p = take(100, 0);

		assert_non_null(p);
		heap_range_release(p);
	}
	assert_true(heap_lock(&hold));
	assert_int_equal(heap_site_read(0, true, &stack, &labels, &after), 1);
	assert_int_equal(heap_site_read(0, false, &stack, &labels, &after), 1); /* it is known by now */
	heap_unlock(&hold);
	assert_true(after.alloc_objects - before.alloc_objects >= 1000);
	assert_in_range((after.alloc_objects - before.alloc_objects) - (after.free_objects - before.free_objects), 0, 5000);
}

static size_t
faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (size_t)u.ru_minflt;
}

/* Up in steps with a neighbour in the way half of the time, and down again. */
static void
a_growing_array_is_not_copied(void **state)
{
	struct heap_block found;
	size_t            size = 5 << 20, before, step;
	unsigned char    *p = take(size, 0), *q;
	void             *in_the_way[16];
	int               n = 0;

	(void)state;
	memset(p, 1, size);
	before = faults();
	while (size < (size_t)60 << 20) {
		struct heap_block b = block_of(size + (5 << 20));

		if (n % 2 == 0)
			in_the_way[n / 2] = take(10000, 0);
		n++;
		q = heap_range_resize(p, &b);
		assert_non_null(q);
		p = q;
		for (step = 0; step < size; step += 4096)
			assert_int_equal(p[step], 1 + step / (5 << 20));
		memset(p + size, (int)(1 + size / (5 << 20)), 5 << 20);
		size = b.size;
		assert_true(heap_range_find(p, &found));
		assert_int_equal(found.size, size);
	}
	/* Each page was touched for the first time once; a copy would do it again.
	 * Huge pages make it fewer. */
	assert_true(faults() - before < 3 * (size / 4096) / 2);
	for (size = 50 << 20; size > 20000; size /= 3) {
		struct heap_block b = block_of(size);

		assert_ptr_equal(heap_range_resize(p, &b), p);
		assert_int_equal(p[0], 1);
	}
	heap_range_release(p);
	for (int i = 0; i < (n + 1) / 2; i++)
		heap_range_release(in_the_way[i]);
}

static void
a_full_range_says_so(void **state)
{
	void *p[300];
	int   n = 0;

	(void)state;
	assert_null(take(RANGE_BYTES + 1, 0));
	assert_null(take(SIZE_MAX / 2, 0));
	while (n < 300 && (p[n] = take(1 << 20, 0)) != NULL)
		n++;
	assert_in_range(n, 100, 256);
	while (n > 0)
		heap_range_release(p[--n]);
	p[0] = take(64 << 20, 0);
	assert_non_null(p[0]);
	heap_range_release(p[0]);
}

static int
set_up(void **state)
{
	(void)state;
	return heap_lock_init() < 0 || heap_range_reserve(RANGE_BYTES) < 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_has_room_and_keeps_its_size),
		cmocka_unit_test(alignments_up_to_64_MiB_hold),
		cmocka_unit_test(freed_memory_is_used_again),
		cmocka_unit_test(a_large_block_goes_back_to_the_kernel),
		cmocka_unit_test(zeroed_blocks_are_zero_whatever_was_there),
		cmocka_unit_test(what_is_no_block_is_left_alone),
		cmocka_unit_test(memory_costs_less_than_twice_what_is_asked_for),
		cmocka_unit_test(threads_do_not_get_each_others_blocks),
		cmocka_unit_test(a_double_free_is_counted_once_and_gives_nobody_the_same_block),
		cmocka_unit_test(a_growing_array_is_not_copied),
		cmocka_unit_test(a_full_range_says_so),
		cmocka_unit_test(a_thread_that_jumps_out_of_it_stops_nobody),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
