/* Which ranges are mapped and by whom: profiler/collect/mmap/live.c. */
#include <config.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "futex_waits.h"
#include "mmap/live.h"
#include "pages.h"

#define BASE ((uintptr_t)1 << 46) /* nothing is mapped there, a sanitizer's shadow neither */
#define AT(page) (BASE + (uintptr_t)(page) * 4096)
#define PAGES(n) ((size_t)(n) * 4096)

static void
are(size_t n, const uintptr_t (*want)[3])
{
	size_t             count, bytes;
	struct live_range *all = live_copy(&count, &bytes);

	assert_int_equal(count, n);
	assert_int_equal(live_count(), n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(all[i].start, AT(want[i][0]));
		assert_int_equal(all[i].limit, AT(want[i][1]));
		assert_int_equal(all[i].place, want[i][2]);
	}
	pages_unmap(all, bytes);
}

/* With what nobody has taken in yet. */
static size_t
counted(void)
{
	size_t             count, bytes;
	struct live_range *all = live_copy(&count, &bytes);

	pages_unmap(all, bytes);
	return count;
}

static int
open_it(void **state)
{
	(void)state;
	return live_open();
}

static int
close_it(void **state)
{
	(void)state;
	live_close();
	return 0;
}

static void
a_range_is_there_until_it_is_taken(void **state)
{
	(void)state;
	live_add(AT(10), PAGES(10) - 5, 7);
	are(1, (const uintptr_t[][3]){ { 10, 20, 7 } });
	live_drop(live_take(AT(10), PAGES(10)));
	are(0, NULL);
}

static void
what_is_taken_from_the_middle_leaves_two(void **state)
{
	(void)state;
	live_add(AT(10), PAGES(10), 7);
	live_drop(live_take(AT(12), PAGES(3)));
	are(2, (const uintptr_t[][3]){ { 10, 12, 7 }, { 15, 20, 7 } });
	live_drop(live_take(AT(0), PAGES(11)));
	live_drop(live_take(AT(19), PAGES(100)));
	are(2, (const uintptr_t[][3]){ { 11, 12, 7 }, { 15, 19, 7 } });
}

static void
several_are_taken_at_once(void **state)
{
	(void)state;
	live_add(AT(10), PAGES(5), 1);
	live_add(AT(20), PAGES(5), 2);
	live_add(AT(30), PAGES(5), 3);
	live_drop(live_take(AT(12), PAGES(20)));
	are(2, (const uintptr_t[][3]){ { 10, 12, 1 }, { 32, 35, 3 } });
}

static void
what_could_not_be_unmapped_is_put_back(void **state)
{
	uint32_t taken;

	(void)state;
	live_add(AT(10), PAGES(5), 1);
	live_add(AT(15), PAGES(5), 2);
	taken = live_take(AT(12), PAGES(6));
	are(2, (const uintptr_t[][3]){ { 10, 12, 1 }, { 18, 20, 2 } });
	live_put(taken, AT(12), PAGES(6), PAGES(6));
	are(2, (const uintptr_t[][3]){ { 10, 15, 1 }, { 15, 20, 2 } });
	taken = live_take(AT(12), PAGES(2));
	live_put(taken, AT(12), PAGES(2), PAGES(2));
	are(2, (const uintptr_t[][3]){ { 10, 15, 1 }, { 15, 20, 2 } });
}

static void
neighbours_of_one_maker_stay_two_when_one_is_put_back(void **state)
{
	(void)state;
	live_add(AT(10), PAGES(5), 1);
	live_add(AT(15), PAGES(5), 1);
	live_put(live_take(AT(15), PAGES(5)), AT(15), PAGES(5), PAGES(5));
	are(2, (const uintptr_t[][3]){ { 10, 15, 1 }, { 15, 20, 1 } });
}

static void
what_the_kernel_refuses_takes_nothing(void **state)
{
	(void)state;
	live_add(AT(10), PAGES(10), 7);
	live_drop(live_take(AT(12), 0));
	live_drop(live_take(AT(12) + 1, PAGES(1)));
	live_drop(live_take(AT(12), SIZE_MAX));
	live_drop(live_take(AT(12), SIZE_MAX - 8191));
	are(1, (const uintptr_t[][3]){ { 10, 20, 7 } });
}

static void
off_and_on_begins_with_none(void **state)
{
	(void)state;
	live_close();
	live_add(AT(10), PAGES(10), 7); /* a call that was under way */
	assert_int_equal(live_open(), 0);
	are(0, NULL);
}

static void
what_moves_keeps_its_maker_and_its_end_grows(void **state)
{
	uint32_t taken;

	(void)state;
	live_add(AT(10), PAGES(2), 1);
	live_add(AT(12), PAGES(2), 2);
	taken = live_take(AT(10), PAGES(4));
	live_put(taken, AT(100), PAGES(10), PAGES(4));
	are(2, (const uintptr_t[][3]){ { 100, 102, 1 }, { 102, 110, 2 } });
	taken = live_take(AT(100), PAGES(10));
	live_put(taken, AT(100), PAGES(1), PAGES(10));
	are(1, (const uintptr_t[][3]){ { 100, 101, 1 } });
}

static void
a_new_range_replaces_what_was_there(void **state)
{
	(void)state;
	live_add(AT(10), PAGES(10), 1);
	live_add(AT(14), PAGES(2), 2);
	are(3, (const uintptr_t[][3]){ { 10, 14, 1 }, { 14, 16, 2 }, { 16, 20, 1 } });
}

static void
a_full_table_counts_what_it_has_no_room_for(void **state)
{
	uint64_t lost = live_lost();

	(void)state;
	for (uintptr_t i = 0; i < LIVE_MAX + 10; i++)
		live_add(AT(2 * i), PAGES(1), 1);
	assert_int_equal(live_count(), LIVE_MAX);
	assert_int_equal(live_lost(), lost + 10);
	live_drop(live_take(AT(0), PAGES(2 * LIVE_MAX + 20)));
	assert_int_equal(live_count(), 0);
}

/* Each thread has addresses of its own; all of them are right in the end.  What eight of them tell finds
 * room, should one of them not run in the midst of it. */
static void *
come_and_go(void *arg)
{
	uintptr_t own = (uintptr_t)arg * 10000;

	for (uintptr_t i = 0; i < 5000; i++) {
		live_add(AT(own + i % 100 * 10), PAGES(5), (uint32_t)(uintptr_t)arg);
		if (i % 100 != 99)
			live_drop(live_take(AT(own + i % 100 * 10), PAGES(5)));
	}
	return NULL;
}

static void
threads_do_not_disturb_each_other(void **state)
{
	pthread_t threads[8];

	(void)state;
	for (uintptr_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, (void *)(i + 1)), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(live_lost(), 0);
	assert_int_equal(counted(), 8);
	assert_int_equal(live_lost(), 0);
}

/* ---- a reader that stands still with the lock ---- */

static atomic_bool stand, stands;

/* Which a reader calls for its copy. */
void *
mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	if (atomic_exchange(&stand, false)) {
		atomic_store(&stands, true);
		while (atomic_load(&stands))
			sched_yield();
	}
	return (void *)syscall(SYS_mmap, at, bytes, prot, flags, fd, offset);
}

static void *
read_all(void *arg)
{
	counted();
	return arg;
}

static pthread_t
reader_begin(void)
{
	pthread_t reader;

	assert_int_equal(pthread_create(&reader, NULL, read_all, NULL), 0);
	while (!atomic_load(&stands))
		sched_yield();
	return reader;
}

static void
reader_end(pthread_t reader)
{
	atomic_store(&stands, false);
	pthread_join(reader, NULL);
}

#define MANY 40000 /* more than the ring holds, in less than the spill */

static void
who_tells_of_a_change_never_waits_for_a_reader(void **state)
{
	unsigned  before = futex_waits;
	pthread_t reader;
	uint32_t  taken = 0;

	(void)state;
	live_add(AT(0), PAGES(1), 9);
	atomic_store(&stand, true);
	reader = reader_begin();
	for (uintptr_t i = 1; i <= MANY; i++) {
		live_add(AT(i), PAGES(1), 1);
		taken = live_take(AT(i), PAGES(1));
		if (i % 100)
			live_drop(taken);
		else
			live_put(taken, AT(2 * MANY + i), PAGES(1), PAGES(1));
		if (i == MANY / 2)
			live_drop(live_take(AT(0), PAGES(1)));
	}
	assert_int_equal(futex_waits, before);
	reader_end(reader);
	assert_int_equal(counted(), MANY / 100);
	assert_int_equal(live_lost(), 0);
	assert_false(live_is_broken());
}

static void
what_the_spill_has_no_room_for_is_counted_and_all_goes_on(void **state)
{
	unsigned  before = futex_waits;
	pthread_t reader;

	(void)state;
	atomic_store(&stand, true);
	reader = reader_begin();
	for (uintptr_t i = 0; i < 4 * MANY; i++)
		live_drop(live_take(AT(1), PAGES(1)));
	assert_int_equal(futex_waits, before);
	reader_end(reader);
	assert_true(live_lost() > 0);
	assert_false(live_is_broken());
	live_add(AT(10), PAGES(10), 7);
	are(1, (const uintptr_t[][3]){ { 10, 20, 7 } });
}

/* The parent goes on changing them while it forks. */
static void
a_child_has_what_is_mapped_still_and_goes_on(void **state)
{
	pthread_t          thread;
	size_t             size = PAGES(16);
	char              *there = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int                status;
	pid_t              child;

	(void)state;
	live_add((uintptr_t)there, size, 5);
	live_add(AT(1), PAGES(1), 6); /* not mapped at all */
	for (int i = 0; i < 50; i++) {
		pthread_create(&thread, NULL, come_and_go, (void *)3);
		child = fork();
		if (child == 0)
			_exit(live_open() || live_count() > 1 ? 1 : (live_add(AT(50), PAGES(2), 9), counted() != 2));
		waitpid(child, &status, 0);
		assert_int_equal(status, 0);
		pthread_join(thread, NULL);
	}
	munmap(there, size);
}

static void
on_alarm(int number)
{
	(void)number;
	live_drop(live_take(AT(1), PAGES(1)));
	live_add(AT(1), PAGES(1), 1);
}

/* A handler comes in the midst of all that, also around a fork. */
static void
handlers_and_forks_come_in_between(void **state)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
	pthread_t              threads[8];
	int                    status;

	(void)state;
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int round = 0; round < 10; round++) {
		for (uintptr_t i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, come_and_go, (void *)(i + 1));
		for (int i = 0; i < 10; i++) {
			pid_t child = fork();

			if (child == 0)
				_exit(0);
			while (waitpid(child, &status, 0) < 0)
				;
			assert_int_equal(status, 0);
		}
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
		counted();
	}
	setitimer(ITIMER_REAL, &never, NULL);
	assert_false(live_is_broken());
	assert_int_equal(counted(), 9);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_it, close_it)
	const struct CMUnitTest tests[] = {
		TEST(a_range_is_there_until_it_is_taken),
		TEST(what_is_taken_from_the_middle_leaves_two),
		TEST(several_are_taken_at_once),
		TEST(what_could_not_be_unmapped_is_put_back),
		TEST(neighbours_of_one_maker_stay_two_when_one_is_put_back),
		TEST(what_the_kernel_refuses_takes_nothing),
		TEST(off_and_on_begins_with_none),
		TEST(what_moves_keeps_its_maker_and_its_end_grows),
		TEST(a_new_range_replaces_what_was_there),
		TEST(a_full_table_counts_what_it_has_no_room_for),
		TEST(threads_do_not_disturb_each_other),
		TEST(who_tells_of_a_change_never_waits_for_a_reader),
		TEST(what_the_spill_has_no_room_for_is_counted_and_all_goes_on),
		TEST(handlers_and_forks_come_in_between),
		TEST(a_child_has_what_is_mapped_still_and_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
