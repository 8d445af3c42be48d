/*
 * test_heap.c - every function of the family on sampled and unsampled blocks, and
 * what the profile makes of it.
 */
#include <config.h>

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "our_thread.h"

extern void cfree(void *block);
extern void free_sized(void *block, size_t size);
extern void free_aligned_sized(void *block, size_t align, size_t size);

/* ---- every way to get a block, every way to give it back ---- */

enum { MALLOC, CALLOC, REALLOC, REALLOCARRAY, POSIX_MEMALIGN, ALIGNED_ALLOC, MEMALIGN, VALLOC, PVALLOC, WAYS };

static size_t
way_align(int way)
{
	if (way == VALLOC || way == PVALLOC)
		return (size_t)sysconf(_SC_PAGESIZE);
	return way == POSIX_MEMALIGN || way == ALIGNED_ALLOC || way == MEMALIGN ? 256 : 16;
}

static void *
way_allocate(int way, size_t size)
{
	void *p = NULL;

	switch (way) {
	case MALLOC:
		return malloc(size);
	case CALLOC:
		return calloc(size, 1);
	case REALLOC:
		return realloc(NULL, size);
	case REALLOCARRAY:
		return reallocarray(NULL, 1, size);
	case POSIX_MEMALIGN:
		return posix_memalign(&p, 256, size) ? NULL : p;
	case ALIGNED_ALLOC:
		return aligned_alloc(256, (size + 255) / 256 * 256);
	case MEMALIGN:
		return memalign(256, size);
	case VALLOC:
		return valloc(size);
	default:
		return pvalloc(size);
	}
}

static void
way_free(int way, void *p, size_t size)
{
	switch (way % 5) {
	case 0:
		free(p);
		break;
	case 1:
		cfree(p);
		break;
	case 2:
		free_sized(p, size);
		break;
	case 3:
		free_aligned_sized(p, 256, size);
		break;
	default:
		assert_null(realloc(p, 0));
	}
}

static void
all_functions_agree_with_each_other(uint64_t rate)
{
	static const size_t sizes[] = { 1, 15, 16, 17, 100, 1000, 4096, 10000, 200000, 3000000 };

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (int way = 0; way < WAYS; way++)
			for (int back = 0; back < 5; back++) {
				unsigned char *p;

				assert_int_equal(heap_set_rate(rate), 0);
				p = way_allocate(way, sizes[s]);
				assert_non_null(p);
				assert_int_equal(is_sample(p), rate == 1);
				assert_int_equal((uintptr_t)p % way_align(way), 0);
				assert_true(malloc_usable_size(p) >= sizes[s]);
				if (way == CALLOC)
					for (size_t i = 0; i < sizes[s]; i++)
						assert_int_equal(p[i], 0);
				memset(p, 0xa5, sizes[s]);
				/* Whoever frees does not know whether sampling is on. */
				assert_int_equal(heap_set_rate((back + way) & 1 ? 1 : 0), 0);
				way_free(back, p, sizes[s]);
				assert_false(is_sample(p));
			}
	heap_set_rate(0);
}

/* To the last byte that it says there is. */
static void
what_is_usable_of_a_block_is_no_other_blocks(void **state)
{
	enum { BLOCKS = 64 };
	unsigned char *p[BLOCKS];
	size_t         usable[BLOCKS];

	(void)state;
	assert_int_equal(heap_set_rate(1), 0);
	for (size_t size = 16; size <= 8192; size *= 2) {
		for (int i = 0; i < BLOCKS; i++) {
			p[i] = malloc(size);
			assert_non_null(p[i]);
			usable[i] = malloc_usable_size(p[i]);
			assert_true(usable[i] >= size);
			memset(p[i], i, usable[i]);
		}
		for (int i = 0; i < BLOCKS; i++) {
			for (size_t k = 0; k < usable[i]; k++)
				assert_int_equal(p[i][k], i);
			free(p[i]);
		}
	}
	heap_set_rate(0);
}

static void
every_function_works_on_sampled_blocks(void **state)
{
	(void)state;
	all_functions_agree_with_each_other(1);
}

static void
every_function_works_on_unsampled_blocks(void **state)
{
	(void)state;
	all_functions_agree_with_each_other(0);
}

/* ---- realloc ---- */

static void
a_realloc_chain_keeps_its_contents_across_the_border(void **state)
{
	static const size_t sizes[] = { 10, 100, 5000, 40, 300000, 299000, 2000000, 7, 8192, 8193, 1, 60000 };
	size_t              n = sizeof(sizes) / sizeof(sizes[0]);

	(void)state;
	/* Each bit of the pattern says whether that step is sampled. */
	for (unsigned pattern = 0; pattern < 1U << n; pattern += 7) {
		unsigned char *p = NULL;
		size_t         had = 0;

		for (size_t i = 0; i < n; i++) {
			heap_set_rate(pattern >> i & 1);
			p = realloc(p, sizes[i]);
			assert_non_null(p);
			assert_int_equal(is_sample(p), pattern >> i & 1);
			for (size_t k = 0; k < had && k < sizes[i]; k += 97)
				assert_int_equal(p[k], (unsigned char)(k * 31));
			for (size_t k = 0; k < sizes[i]; k++)
				p[k] = (unsigned char)(k * 31);
			had = sizes[i];
		}
		free(p);
	}
	heap_set_rate(0);
}

static void
calls_that_must_fail_fail_and_change_nothing(void **state)
{
	/* Volatile: compilers know these calls, and warn of them. */
	volatile size_t         most = SIZE_MAX, too_much = (size_t)PTRDIFF_MAX + 1, half = SIZE_MAX / 2;
	void                   *kept = (void *)1;
	unsigned char *volatile p;

	(void)state;
	heap_set_rate(1);
	p = malloc(100);
	memset(p, 7, 100);
	errno = 0;
	assert_null(malloc(most - 4096));
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(malloc(too_much));
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(calloc(half, 4));
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(reallocarray(p, half, 4));
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(realloc(p, too_much));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(posix_memalign(&kept, 24, 100), EINVAL);
	assert_int_equal(posix_memalign(&kept, 4, 100), EINVAL);
	assert_int_equal(posix_memalign(&kept, 64, most - 100), ENOMEM);
	assert_ptr_equal(kept, (void *)1);
	assert_true(is_sample(p));
	for (int i = 0; i < 100; i++)
		assert_int_equal(p[i], 7);
	free(p);
	p = malloc(10); /* nonsense sizes have not stopped the countdown */
	assert_true(is_sample(p));
	free(p);
	free(NULL);
	assert_int_equal(malloc_usable_size(NULL), 0);
	heap_set_rate(0);
}

static void
errno_is_left_alone_by_success(void **state)
{
	(void)state;
	heap_set_rate(1);
	for (int i = 0; i < 200; i++) {
		void *p;

		errno = 77;
		p = malloc((size_t)i * 5000);
		p = realloc(p, (size_t)i * 9000 + 1);
		free(p);
		assert_int_equal(errno, 77);
	}
	heap_set_rate(0);
}

/* ---- blocks that libc makes for us ---- */

static void
what_libc_allocates_can_be_freed_across_the_border(void **state)
{
	(void)state;
	for (unsigned pattern = 0; pattern < 4; pattern++) {
		char  *copy, *text = NULL, *line = NULL;
		size_t room = 0;
		FILE  *f = tmpfile();

		assert_non_null(f);
		for (int i = 0; i < 3000; i++)
			fprintf(f, "%0*d\n", i, 7);
		rewind(f);
		heap_set_rate(pattern & 1);
		copy = strdup("a string of some length");
		assert_true(asprintf(&text, "%s and %d more", copy, 12) > 0);
		for (int i = 0; getline(&line, &room, f) > 0; i++)
			heap_set_rate((unsigned)i & 1);
		assert_int_equal(strlen(line), 3000);
		heap_set_rate(pattern >> 1);
		assert_string_equal(text, "a string of some length and 12 more");
		free(copy);
		free(text);
		free(line);
		fclose(f);
	}
	heap_set_rate(0);
}

/* ---- what the profile says ---- */

SITE static void *
site_plain(size_t size)
{
	return malloc(size);
}

SITE static void *
site_grow(void *p, size_t size)
{
	return realloc(p, size);
}

static void
blocks_are_counted_where_they_were_asked_for(void **state)
{
	struct site_sum before = site_sum((void *)site_plain), s;
	void           *p[10];

	(void)state;
	heap_set_rate(1);
	for (int i = 0; i < 10; i++)
		p[i] = site_plain(1000);
	for (int i = 0; i < 4; i++)
		free(p[i]);
	heap_set_rate(0);
	s = site_sum((void *)site_plain);
	assert_int_equal(s.raw[0] - before.raw[0], 10);
	assert_int_equal(s.values[1] - before.values[1], 10000);
	assert_int_equal(s.values[2] - before.values[2], 6);
	assert_int_equal(s.values[3] - before.values[3], 6000);
	assert_true(s.leaves > 0);
	for (int i = 4; i < 10; i++)
		free(p[i]); /* off, and still seen */
	s = site_sum((void *)site_plain);
	assert_int_equal(s.values[2], before.values[2]);
	assert_int_equal(s.values[3], before.values[3]);
}

static void
a_realloc_is_a_new_block_and_the_end_of_the_old(void **state)
{
	struct site_sum before, s;
	void           *p;

	(void)state;
	heap_set_rate(1);
	p = site_plain(100);
	before = site_sum((void *)site_grow);
	p = site_grow(p, 200);
	p = site_grow(p, 50);
	s = site_sum((void *)site_grow);
	assert_int_equal(s.values[0] - before.values[0], 2);
	assert_int_equal(s.values[1] - before.values[1], 250);
	assert_int_equal(s.values[3] - before.values[3], 50);
	heap_set_rate(0);
	p = site_grow(p, 60); /* no longer a sample */
	s = site_sum((void *)site_grow);
	assert_int_equal(s.values[3], before.values[3]);
	free(p);
	assert_int_equal(site_sum((void *)site_plain).values[3], 0);
}

static void
a_realloc_that_fails_is_counted_as_nothing(void **state)
{
	volatile size_t too_much = (size_t)PTRDIFF_MAX + 1; /* as above */
	struct site_sum before, s;
	void           *p, *again;

	(void)state;
	heap_set_rate(1);
	p = site_plain(100);
	before = site_sum((void *)site_plain);
	for (int i = 0; i < 10; i++) {
		again = realloc(p, too_much);
		assert_null(again);
	}
	s = site_sum((void *)site_plain);
	for (int i = 0; i < 4; i++)
		assert_int_equal(s.values[i], before.values[i]);
	free(p);
	s = site_sum((void *)site_plain);
	assert_int_equal(before.values[2] - s.values[2], 1);
	heap_set_rate(0);
}

static void
both_profiles_are_as_go_makes_them(void **state)
{
	static const char *const types[] = { "alloc_objects", "alloc_space", "inuse_objects", "inuse_space" };
	static const char *const units[] = { "count", "bytes", "count", "bytes" };
	struct profile           heap, allocs;
	void                    *p;

	(void)state;
	heap_set_rate(1);
	p = site_plain(123);
	assert_int_equal(heap_snapshot(&heap, false), 0);
	assert_int_equal(heap_snapshot(&allocs, true), 0);
	heap_set_rate(0);
	free(p);
	assert_int_equal(heap.type_count, 4);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(heap.types[i].type, types[i]);
		assert_string_equal(heap.types[i].unit, units[i]);
	}
	assert_string_equal(heap.period_type.type, "space");
	assert_string_equal(heap.period_type.unit, "bytes");
	assert_int_equal(heap.period, 1);
	assert_null(heap.default_type);
	assert_string_equal(allocs.default_type, "alloc_space");
	assert_true(heap.time_ns > 0);
	assert_int_equal(heap.duration_ns, 0);
	assert_non_null(strstr(heap.comments, "since 20"));
	assert_string_equal(heap_status(), "heap sampling is off: its rate is 0");
	for (size_t i = 0; i < heap.count; i++)
		if (heap.samples[i].counted_values[0])
			assert_in_range(heap.samples[i].event_bytes,
				heap.samples[i].counted_values[1] / heap.samples[i].counted_values[0],
				heap.samples[i].counted_values[1] / heap.samples[i].counted_values[0] * 2);
	profile_release(&heap);
	profile_release(&allocs);
}

static void
since(char *ret, size_t size)
{
	struct profile p;
	const char    *comment;

	assert_int_equal(heap_snapshot(&p, false), 0);
	comment = strstr(p.comments, "heap: allocations since ");
	assert_non_null(comment);
	snprintf(ret, size, "%.*s", (int)strcspn(comment, "\n"), comment);
	profile_release(&p);
}

static void
a_profile_tells_since_when_it_counts_and_that_it_did_not_always(void **state)
{
	time_t second = time(NULL);
	char   before[100], after[100];
	size_t same = strlen("heap: allocations since 2026-11-30T00:00:00Z");

	(void)state;
	heap_set_rate(1);
	heap_set_rate(0);
	since(before, sizeof(before));
	while (time(NULL) <= second)
		;
	heap_set_rate(1);
	since(after, sizeof(after));
	heap_set_rate(0);
	assert_memory_equal(after, before, same);
	assert_string_equal(after + same, "; sampling was off for a time");
	assert_non_null(strstr(before, "; sampling is off now"));
}

SITE static void *
site_rates(size_t size)
{
	return malloc(size);
}

/* 1, off, 512 KiB, off, 4 KiB: what was allocated while on is what is shown. */
static void
the_rate_changes_at_run_time_and_sums_stay_true(void **state)
{
	static const uint64_t rates[] = { 1, 0, 16384, 0, 1024, 65536 };
	double                truth = 0;
	struct site_sum       before = site_sum((void *)site_rates), s;
	double                live;
	static void          *kept[6][4000];

	(void)state;
	heap_set_seed(4711);
	for (int k = 0; k < 6; k++) {
		heap_set_rate(rates[k]);
		assert_int_equal(heap_rate(), rates[k]);
		for (int i = 0; i < 100000; i++) {
			void *p = site_rates(1000);

			if (i % 25 == 0)
				kept[k][i / 25] = p;
			else
				free(p);
		}
		truth += rates[k] ? 100000.0 * 1000 : 0;
	}
	heap_set_rate(0);
	s = site_sum((void *)site_rates);
	live = (double)(s.values[3] - before.values[3]);
	assert_true(fabs((double)(s.values[1] - before.values[1]) / truth - 1) < 0.05);
	assert_true(fabs(live / (truth / 25) - 1) < 0.15);
	for (int k = 0; k < 6; k++)
		for (int i = 0; i < 4000; i++)
			free(kept[k][i]);
	assert_int_equal(site_sum((void *)site_rates).values[3], 0);
}

#define ROUNDS 1000

static pthread_barrier_t turn;

SITE static void *
site_late(size_t size)
{
	return malloc(size);
}

static void *
allocate_off_and_on(void *arg)
{
	for (int k = 0; k < ROUNDS; k++) {
		pthread_barrier_wait(&turn); /* off */
		for (int i = 0; i < 300; i++)
			free(site_late(1000));
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn); /* on */
		for (int i = 0; i < 200; i++)
			free(site_late(1000));
		pthread_barrier_wait(&turn);
	}
	return arg;
}

/* What it allocated while off is in no sum, and it is in one from then on. */
static void
a_thread_is_counted_from_the_moment_of_switching_on(void **state)
{
	struct site_sum before = site_sum((void *)site_late), s;
	pthread_t       t;

	(void)state;
	heap_set_rate(0);
	assert_int_equal(pthread_barrier_init(&turn, NULL, 2), 0);
	assert_int_equal(pthread_create(&t, NULL, allocate_off_and_on, NULL), 0);
	for (int k = 0; k < ROUNDS; k++) {
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
		heap_set_rate(4096);
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
		heap_set_rate(0);
	}
	pthread_join(t, NULL);
	pthread_barrier_destroy(&turn);
	s = site_sum((void *)site_late);
	assert_true(fabs((double)(s.values[1] - before.values[1]) / (ROUNDS * 200.0 * 1000) - 1) < 0.02); /* sigma: 0.3 % */
	assert_int_equal(s.values[3] - before.values[3], 0);
}

SITE static void *
site_own(void *arg)
{
	void *p = malloc(1000);

	if (is_sample(p))
		*(int *)arg = 1;
	free(p);
	return NULL;
}

static void
threads_of_our_own_are_never_sampled(void **state)
{
	pthread_t t;
	int       sampled = 0;

	(void)state;
	heap_set_rate(1);
	assert_int_equal(our_thread_start("component-test", site_own, &sampled, &t), 0);
	pthread_join(t, NULL);
	assert_int_equal(sampled, 0);
	assert_int_equal(pthread_create(&t, NULL, site_own, &sampled), 0);
	pthread_join(t, NULL);
	assert_int_equal(sampled, 1);
	heap_set_rate(0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_function_works_on_sampled_blocks),
		cmocka_unit_test(every_function_works_on_unsampled_blocks),
		cmocka_unit_test(what_is_usable_of_a_block_is_no_other_blocks),
		cmocka_unit_test(a_realloc_chain_keeps_its_contents_across_the_border),
		cmocka_unit_test(calls_that_must_fail_fail_and_change_nothing),
		cmocka_unit_test(errno_is_left_alone_by_success),
		cmocka_unit_test(what_libc_allocates_can_be_freed_across_the_border),
		cmocka_unit_test(blocks_are_counted_where_they_were_asked_for),
		cmocka_unit_test(a_realloc_is_a_new_block_and_the_end_of_the_old),
		cmocka_unit_test(a_realloc_that_fails_is_counted_as_nothing),
		cmocka_unit_test(both_profiles_are_as_go_makes_them),
		cmocka_unit_test(the_rate_changes_at_run_time_and_sums_stay_true),
		cmocka_unit_test(a_profile_tells_since_when_it_counts_and_that_it_did_not_always),
		cmocka_unit_test(a_thread_is_counted_from_the_moment_of_switching_on),
		cmocka_unit_test(threads_of_our_own_are_never_sampled),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
