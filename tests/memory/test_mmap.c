/* A hook of mmap(), munmap() or mremap() waits for nobody, and what it has mapped is in use by its stack
 * all the same: profiler/collect/mmap/mmap.c, later.c. */
#include <config.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "collector.h"
#include "futex_waits.h"
#include "mmap/later.h"
#include "mmap/live.h"
#include "stack_table.h"
#include "unwind.h"
#include "waiting.h"
#include "wake.h"

#define SITE_BYTES 4096
#define SITE __attribute__((noinline, aligned(SITE_BYTES), section("sites")))
#define BYTES ((size_t)1 << 20)

/* ---- what is called ---- */

SITE static void *
map_leaf(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

SITE static void *
map_here(size_t bytes)
{
	void *p = map_leaf(bytes);

	assert_true(p != MAP_FAILED);
	return p;
}

/* ---- what the profile says ---- */

struct said {
	int64_t made, made_bytes, in_use, in_use_bytes;
	bool    caller; /* and from where it was called */
};

static bool
has(const uintptr_t *pcs, unsigned n, const void *function)
{
	for (unsigned i = 0; i < n; i++)
		if (pcs[i] - (uintptr_t)function < SITE_BYTES)
			return true;
	return false;
}

static struct said
said_of(const void *function)
{
	struct product made;
	struct said    sum = { .caller = true };

	assert_int_equal(collect_mmap.snapshot(&collect_mmap, &(struct collect_params){ 0 }, &made), 0);
	for (size_t i = 0; i < made.profile.count; i++) {
		const struct profile_sample *s = &made.profile.samples[i];
		unsigned                     n;
		const uintptr_t             *pcs = stack_table_pcs(s->stack, &n);

		if (!has(pcs, n, function))
			continue;
		sum.made += s->values[0];
		sum.made_bytes += s->values[1];
		sum.in_use += s->values[2];
		sum.in_use_bytes += s->values[3];
		sum.caller = sum.caller && has(pcs, n, (const void *)map_here);
	}
	profile_release(&made.profile);
	return sum;
}

static void
says(const void *function, int64_t in_use, size_t bytes)
{
	struct said s = said_of(function);

	assert_int_equal(s.in_use, in_use);
	assert_int_equal(s.in_use_bytes, bytes);
	assert_true(s.made_bytes >= s.in_use_bytes);
	assert_true(s.caller);
}

/* ---- the mappings are seen ---- */

static unsigned
rounds(void)
{
	struct unwind_spent spent;

	unwind_spent(&spent);
	return spent.rounds;
}

/* The thread that makes tables does so no more once it goes its rounds. */
static int
switch_on(void **state)
{
	unsigned before = rounds();

	(void)state;
	if (unwind_start(UNWIND_TABLES))
		return -1;
	unwind_wake_to_look();
	WAIT_FOR(rounds() > before);
	return collect_mmap.rate->set(1);
}

static int
switch_off(void **state)
{
	(void)state;
	unwind_stop();
	return collect_mmap.rate->set(0);
}

static void
a_mapping_is_in_use_by_its_stack(void **state)
{
	void *p = map_here(BYTES);

	(void)state;
	says((const void *)map_leaf, 1, BYTES);
	munmap(p, BYTES);
	says((const void *)map_leaf, 0, 0);
}

static void
no_hook_waits_for_tables_that_are_not_made(void **state)
{
	unsigned before = futex_waits;
	void    *p;

	(void)state;
	unwind_first_owe();
	p = map_here(BYTES);
	assert_int_equal(futex_waits, before);
	assert_true(unwind_first_is_owed());
	says((const void *)map_leaf, 1, BYTES);
	assert_false(unwind_first_is_owed()); /* the reader has had them made */
	munmap(p, BYTES);
	says((const void *)map_leaf, 0, 0);
}

/* ---- somebody has the table of stacks ---- */

static atomic_bool kept, go_on;

static void
keep(void *arg)
{
	(void)arg;
	atomic_store(&kept, true);
	while (!atomic_load(&go_on))
		sched_yield();
}

static void *
keeper(void *arg)
{
	assert_true(stack_table_exclusively(keep, arg));
	return arg;
}

static void
no_hook_waits_for_who_has_the_table_of_stacks(void **state)
{
	unsigned  before;
	pthread_t t;
	char     *p, *q;

	(void)state;
	atomic_store(&kept, false);
	atomic_store(&go_on, false);
	assert_int_equal(pthread_create(&t, NULL, keeper, NULL), 0);
	while (!atomic_load(&kept))
		sched_yield();
	before = futex_waits;
	p = map_here(BYTES); /* which is given back by him who waits for this */
	q = mremap(p, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
	assert_true(q != MAP_FAILED);
	assert_int_equal(munmap(q + BYTES / 2, BYTES / 2), 0);
	assert_int_equal(futex_waits, before);
	atomic_store(&go_on, true);
	pthread_join(t, NULL);
	says((const void *)map_leaf, 2, 2 * BYTES - BYTES / 2);
	munmap(q, 2 * BYTES);
	says((const void *)map_leaf, 0, 0);
}

static void
no_more_is_in_use_than_was_made(void **state)
{
	char       *p = map_here(BYTES - 5), *q;
	struct said s;

	(void)state;
	q = mremap(p, BYTES, 3 * BYTES, MREMAP_MAYMOVE);
	assert_true(q != MAP_FAILED);
	s = said_of((const void *)map_leaf);
	assert_int_equal(s.in_use_bytes, 3 * BYTES);
	munmap(q, 3 * BYTES);
	p = map_here(BYTES);
	unwind_first_owe();
	q = map_here(BYTES); /* is kept, and grows before anybody reads */
	q = mremap(q, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
	assert_true(q != MAP_FAILED);
	assert_int_equal(said_of((const void *)map_leaf).made_bytes - s.made_bytes, 3 * BYTES);
	munmap(p, BYTES);
	munmap(q, 2 * BYTES);
}

/* ---- what is kept ---- */

static void
a_child_has_what_its_parent_has_kept_and_has_made_none_of_it(void **state)
{
	struct said s;
	pid_t       child;
	int         status;
	void       *p;

	(void)state;
	unwind_first_owe();
	p = map_here(BYTES);
	child = fork();
	if (child == 0) {
		collect_mmap.forked(); /* as the server has it called */
		if (collect_mmap.rate->set(1))
			_exit(1);
		s = said_of((const void *)map_leaf);
		_exit(s.in_use == 1 && s.in_use_bytes == (int64_t)BYTES && s.made == 0 ? 0 : 2);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	says((const void *)map_leaf, 1, BYTES);
	munmap(p, BYTES);
}

/* No hook tells it that they go. */
static void
a_child_in_which_mappings_are_not_seen_shows_none_of_its_parents(void **state)
{
	pid_t child;
	int   status;
	void *p = map_here(BYTES);

	(void)state;
	child = fork();
	if (child == 0) {
		collect_mmap.forked();
		munmap(p, BYTES);
		_exit(*collect_mmap.missing() && collect_mmap.count(&collect_mmap) == 0 &&
			said_of((const void *)map_leaf).in_use == 0 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	munmap(p, BYTES);
}

/* Each is in use, by its leaf alone where there was no room for more. */
static void
what_cannot_be_kept_has_its_first_function(void **state)
{
	static void *p[2 * LATER_COPIES];
	unsigned     before = futex_waits;
	uint64_t     not_kept;
	struct said  s;

	(void)state;
	unwind_first_owe();
	for (unsigned i = 0; i < 2 * LATER_COPIES; i++)
		p[i] = map_here(BYTES);
	assert_int_equal(futex_waits, before);
	assert_true(later_not_kept() >= LATER_COPIES);
	s = said_of((const void *)map_leaf);
	assert_int_equal(s.in_use, 2 * LATER_COPIES);
	assert_int_equal(s.in_use_bytes, 2 * LATER_COPIES * BYTES);
	for (unsigned i = 0; i < 2 * LATER_COPIES; i++)
		munmap(p[i], BYTES);
	assert_int_equal(said_of((const void *)map_leaf).in_use, 0);
	/* Since somebody has read there is room again. */
	not_kept = later_not_kept();
	unwind_first_owe();
	munmap(map_here(BYTES), BYTES);
	assert_true(later_not_kept() == not_kept);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, switch_on, switch_off)
	const struct CMUnitTest tests[] = {
		TEST(a_mapping_is_in_use_by_its_stack),
		TEST(no_hook_waits_for_tables_that_are_not_made),
		TEST(no_hook_waits_for_who_has_the_table_of_stacks),
		TEST(no_more_is_in_use_than_was_made),
		TEST(a_child_has_what_its_parent_has_kept_and_has_made_none_of_it),
		TEST(a_child_in_which_mappings_are_not_seen_shows_none_of_its_parents),
		TEST(what_cannot_be_kept_has_its_first_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
