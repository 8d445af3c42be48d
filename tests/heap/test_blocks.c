/*
 * test_blocks.c - a sampled block behaves as it would unsampled: it is where the next
 * allocator puts it, grows as that lets it grow, and ends as that ends it.
 *
 * The kernel of this program has pages of 64 KiB, as far as madvise() gives memory back: lengths
 * are rounded up to whole ones, and an address within one is refused.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "heap/lock.h"
#include "skip.h"

#define LARGE_PAGE ((size_t)65536)
#define MIB        ((size_t)1 << 20)

int
madvise(void *start, size_t length, int advice)
{
	if (advice != MADV_DONTNEED && advice != MADV_FREE)
		return (int)syscall(SYS_madvise, start, length, advice); /* of pages that mmap() has made, smaller ones */
	if ((uintptr_t)start % LARGE_PAGE) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_madvise, start, (length + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1), advice);
}

/* Switched on and off once, so that what follows finds everything in its place. */
static void
warm_up(void)
{
	assert_int_equal(heap_set_rate(1), 0);
	for (int i = 0; i < 100; i++)
		free(malloc((size_t)i * 1000));
	heap_set_rate(0);
}

static uint32_t
draw(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* A hash of the addresses and sizes that a mixture of calls leads to. */
static uint64_t
addresses(void)
{
	enum { LIVE = 500 };
	static char *live[LIVE];
	uint32_t     seed = 2463534242u;
	uint64_t     hash = 0;

	for (int i = 0; i < 20000; i++) {
		uint32_t r = draw(&seed), k = r % LIVE;
		size_t   size = draw(&seed) % (16u << r % 14) + 1;

		if (r >> 30 == 0) {
			free(live[k]);
			live[k] = NULL;
		} else if (r >> 30 == 1) {
			free(live[k]);
			live[k] = memalign(64, size);
		} else {
			live[k] = realloc(live[k], size);
		}
		hash = (hash ^ (uintptr_t)live[k] ^ malloc_usable_size(live[k])) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
	}
	return hash;
}

static uint64_t
addresses_in_a_child(uint64_t rate)
{
	uint64_t hash = 0;
	int      fds[2], status;
	pid_t    pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (heap_set_rate(rate) < 0)
			_exit(1);
		hash = addresses();
		_exit(write(fds[1], &hash, sizeof(hash)) != sizeof(hash));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(fds[0], &hash, sizeof(hash)), sizeof(hash));
	close(fds[0]);
	close(fds[1]);
	return hash;
}

static void
a_sampled_block_is_where_it_would_be_unsampled(void **state)
{
	uint64_t off;

	(void)state;
#ifdef SANITIZED
	SKIP("a sanitizer's allocator is not glibc's");
#endif
	warm_up();
	off = addresses_in_a_child(0);
	assert_true(addresses_in_a_child(0) == off);
	assert_true(addresses_in_a_child(4096) == off);
	assert_true(addresses_in_a_child(1) == off);
}

static size_t
resident(void)
{
	unsigned long total, pages = 0;
	FILE         *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &total, &pages), 2);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Whose pages were never touched: a copy would make them real. */
static void
a_large_block_grows_without_being_copied(void **state)
{
	static const int rates[][2] = { { 0, 0 }, { 0, 1 }, { 1, 1 }, { 1, 0 }, { 524288, 1 }, { 1, 524288 } };

	(void)state;
#ifdef SANITIZED
	SKIP("a sanitizer's allocator is not glibc's");
#endif
	warm_up();
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		size_t before;
		char  *p;

		assert_int_equal(heap_set_rate((uint64_t)rates[i][0]), 0);
		p = malloc(512 * MIB);
		assert_non_null(p);
		p[0] = p[512 * MIB - 1] = 1;
		assert_int_equal(heap_set_rate((uint64_t)rates[i][1]), 0);
		before = resident();
		p = realloc(p, 528 * MIB);
		assert_non_null(p);
		assert_int_equal(p[0] + p[512 * MIB - 1], 2);
		assert_true(resident() < before + 8 * MIB);
		assert_int_equal(is_sample(p), rates[i][1] != 0); /* so large that none is missed */
		p = realloc(p, 400 * MIB);
		assert_int_equal(p[0], 1);
		assert_true(resident() < before + 8 * MIB);
		free(p);
	}
	heap_set_rate(0);
}

static void
what_a_block_was_advised_ends_with_it(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 64 * MIB;
	int    status;
	pid_t  pid;
	char  *p;

	(void)state;
	assert_int_equal(heap_set_rate(1), 0);
	assert_int_equal(posix_memalign((void **)&p, page, size), 0);
	memset(p, 1, size);
	assert_int_equal(syscall(SYS_madvise, p, size, MADV_DONTFORK), 0);
	free(p);
	p = malloc(size);
	memset(p, 2, size);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(p[size / 2]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 2);
	free(p);
	heap_set_rate(0);
}

/* A part of it is a mapping of its own then, which some kernels do not move. */
static void
a_block_of_which_a_part_was_advised_grows(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 16 * MIB;
	char  *p, *part;

	(void)state;
	assert_int_equal(heap_set_rate(1), 0);
	p = malloc(size);
	memset(p, 7, size);
	part = (char *)(((uintptr_t)p + 10 * page) & ~(page - 1));
	assert_int_equal(syscall(SYS_madvise, part, 4 * MIB, MADV_DONTDUMP), 0);
	p = realloc(p, 4 * size);
	for (size_t i = 0; i < size; i += 1000)
		assert_int_equal(p[i], 7);
	free(p);
	heap_set_rate(0);
}

static void
pages_of_64_kib_hold_what_was_written(void **state)
{
	enum { BLOCKS = 40, ROUNDS = 120 };
	const size_t size = MIB + 3 * 4096;
	static char *block[BLOCKS];
	uint32_t     seed = 1;

	(void)state;
	assert_int_equal(heap_set_rate(1), 0);
	for (int round = 0; round < ROUNDS + BLOCKS; round++) {
		uint32_t i = round < BLOCKS ? (uint32_t)round : draw(&seed) % BLOCKS;

		for (size_t k = 0; block[i] && k < size; k += 512)
			assert_int_equal(block[i][k], (char)(i + 1));
		free(block[i]);
		block[i] = malloc(size);
		memset(block[i], (int)i + 1, size);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	heap_set_rate(0);
}

/* ---- nobody waits ---- */

SITE static void *
site_while_locked(size_t size)
{
	return malloc(size);
}

static void *kept[100];

static void *
allocate_all_ways(void *arg)
{
	for (size_t i = 0; i < 100; i++)
		kept[i] = site_while_locked(i + 1000); /* sites that are not known yet */
	for (int i = 0; i < 50; i++)
		free(kept[i]);
	return arg;
}

/* It may have a real-time priority, and whoever has the lock none. */
static void
a_thread_that_allocates_never_waits_for_a_lock_of_ours(void **state)
{
	struct heap_lock_hold hold;
	struct site_sum       before = site_sum((void *)site_while_locked), sum;
	pthread_t             t;
	uint64_t              lost = heap_lost();

	(void)state;
	assert_int_equal(heap_set_rate(1), 0);
	assert_true(heap_lock(&hold));
	assert_int_equal(pthread_create(&t, NULL, allocate_all_ways, NULL), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	heap_unlock(&hold);
	heap_set_rate(0);
	sum = site_sum((void *)site_while_locked);
	assert_int_equal(sum.raw[0] - before.raw[0], 100);
	assert_int_equal(sum.raw[2] - before.raw[2], 50);
	assert_int_equal(heap_lost(), lost);
	for (int i = 50; i < 100; i++)
		free(kept[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sampled_block_is_where_it_would_be_unsampled),
		cmocka_unit_test(a_large_block_grows_without_being_copied),
		cmocka_unit_test(what_a_block_was_advised_ends_with_it),
		cmocka_unit_test(a_block_of_which_a_part_was_advised_grows),
		cmocka_unit_test(pages_of_64_kib_hold_what_was_written),
		cmocka_unit_test(a_thread_that_allocates_never_waits_for_a_lock_of_ours),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
