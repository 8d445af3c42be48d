/*
 * test_ring.c - samples of many writers arrive whole, or are counted as lost.
 */
#include <config.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <cmocka.h>

#include "cpu/ring.h"
#include "stack_table.h"
#include "waiting.h"

enum { WRITERS = 4, EACH = 100000 };

static uint64_t    next_of[WRITERS]; /* number of the sample expected from a writer */
static uint64_t    weights;
static unsigned    torn;
static atomic_bool stop;

static void
add(unsigned writer, uint64_t number)
{
	uintptr_t         pcs[STACK_FRAMES_MAX];
	struct cpu_sample s = { .slot = writer, .weight = 1 + number % 3, .pcs = pcs };
	unsigned          i;

	s.count = (unsigned)(number * 7 + writer) % (STACK_FRAMES_MAX + 1);
	s.truncated = number % 5 == 0;
	for (i = 0; i < s.count; i++)
		pcs[i] = (uintptr_t)number << 8 | i;
	cpu_ring_add(&s);
}

static void
look(void *arg, const struct cpu_sample *s)
{
	uint64_t number;
	unsigned i;

	(void)arg;
	weights += s->weight;
	if (s->count == 0)
		return;
	number = s->pcs[0] >> 8;
	torn += s->slot >= WRITERS || number < next_of[s->slot % WRITERS];
	torn += s->count != (number * 7 + s->slot) % (STACK_FRAMES_MAX + 1);
	torn += s->truncated != (number % 5 == 0);
	for (i = 0; i < s->count; i++)
		torn += s->pcs[i] != ((uintptr_t)number << 8 | i);
	next_of[s->slot % WRITERS] = number + 1;
}

static void *
write_many(void *arg)
{
	uint64_t i;

	for (i = 0; i < EACH; i++)
		add((unsigned)(uintptr_t)arg, i);
	return NULL;
}

static void *
read_all(void *arg)
{
	while (!stop)
		cpu_ring_drain(look, NULL);
	return arg;
}

static void
samples_of_many_writers_arrive_whole_and_in_order(void **state)
{
	pthread_t writers[WRITERS], reader;
	uint64_t  sent = 0;
	unsigned  i;

	(void)state;
	weights = 0;
	torn = 0;
	assert_int_equal(cpu_ring_open(), 0);
	pthread_create(&reader, NULL, read_all, NULL);
	for (i = 0; i < WRITERS; i++)
		pthread_create(&writers[i], NULL, write_many, (void *)(uintptr_t)i);
	for (i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	stop = true;
	pthread_join(reader, NULL);
	cpu_ring_drain(look, NULL);
	for (i = 0; i < EACH; i++)
		sent += WRITERS * (1 + i % 3);
	assert_int_equal(torn, 0);
	assert_int_equal(weights + cpu_ring_lost(), sent);
	assert_true(weights > 0);
	cpu_ring_close();
}

static void
a_full_ring_counts_what_it_loses_and_works_again_when_emptied(void **state)
{
	uint64_t i, sent = 0, lost;

	(void)state;
	for (i = 0; i < WRITERS; i++)
		next_of[i] = 0;
	weights = 0;
	assert_int_equal(cpu_ring_open(), 0);
	for (i = 0; i < 20000; i++) {
		add(0, i);
		sent += 1 + i % 3;
	}
	lost = cpu_ring_lost();
	assert_true(lost > 0);
	cpu_ring_drain(look, NULL);
	assert_int_equal(weights + lost, sent);
	add(0, 20000);
	cpu_ring_drain(look, NULL);
	assert_int_equal(cpu_ring_lost(), lost);
	assert_int_equal(weights + lost, sent + 1 + 20000 % 3);
	assert_int_equal(torn, 0);
	cpu_ring_close();
}

static unsigned calls;

/* A writer who is as fast as the reader. */
static void
look_and_add(void *arg, const struct cpu_sample *s)
{
	(void)arg;
	(void)s;
	if (++calls < 1000)
		add(0, calls);
}

static void
a_reader_takes_what_was_there_when_it_came_and_ends(void **state)
{
	(void)state;
	assert_int_equal(cpu_ring_open(), 0);
	add(0, 0);
	cpu_ring_drain(look_and_add, NULL);
	assert_int_equal(calls, 1);
	cpu_ring_drain(look_and_add, NULL);
	assert_int_equal(calls, 2);
	cpu_ring_close();
}

static sigjmp_buf out_of_writer;

static void
leave_writer(int number)
{
	siglongjmp(out_of_writer, number);
}

/* Takes room in the ring and never completes it. */
static void
add_half(const uintptr_t *unreadable, uint32_t weight)
{
	struct sigaction  action = { .sa_handler = leave_writer }, before;
	struct cpu_sample s = { .weight = weight, .pcs = unreadable, .count = 1 };

	sigaction(SIGSEGV, &action, &before);
	if (sigsetjmp(out_of_writer, 1) == 0) {
		cpu_ring_add(&s);
		fail_msg("the writer was not interrupted");
	}
	sigaction(SIGSEGV, &before, NULL);
}

/* Until the reader has given the ring up: what it held is lost then. */
static void
drain_until_lost(uint64_t lost)
{
	WAIT_FOR_S((cpu_ring_drain(look, NULL), cpu_ring_lost() >= lost), 60);
	assert_int_equal(cpu_ring_lost(), lost);
}

static void
what_it_is_said_to_hold_it_holds(void **state)
{
	uintptr_t         pcs[STACK_FRAMES_MAX] = { 0 };
	struct cpu_sample s = { .weight = 1, .pcs = pcs, .count = STACK_FRAMES_MAX };
	int64_t           samples = cpu_ring_holds_ns(10) * 10 / 1000000000;

	(void)state;
	assert_int_equal(cpu_ring_open(), 0);
	assert_in_range(samples, 500, 1000); /* of 1,048 bytes */
	for (int64_t i = 0; i < samples; i++)
		assert_true(cpu_ring_add(&s));
	assert_in_range(cpu_ring_holds_ns(1000) * 100, cpu_ring_holds_ns(10) - 100, cpu_ring_holds_ns(10));
	cpu_ring_close();
}

static void
a_writer_that_never_ends_costs_a_ring_and_what_is_lost_is_counted(void **state)
{
	uintptr_t *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t   lost = 0;

	(void)state;
	next_of[0] = 0;
	weights = 0;
	assert_int_equal(cpu_ring_open(), 0);
	for (int i = 0; i < 4; i++) { /* as many as there are */
		add_half(unreadable, 5);
		add(0, 6 * (uint64_t)i + 3); /* weighs 1 */
		lost += 6;
		drain_until_lost(lost);
		assert_int_equal(weights, (uint64_t)i);
		add(0, 6 * (uint64_t)i + 6); /* and so does this */
		if (i < 3)
			cpu_ring_drain(look, NULL);
	}
	assert_int_equal(weights, 3);
	assert_int_equal(cpu_ring_lost(), lost + 1); /* no ring was left for the last one */
	cpu_ring_close();
	assert_int_equal(cpu_ring_open(), 0);
	next_of[0] = 0;
	add(0, 0);
	cpu_ring_drain(look, NULL);
	assert_int_equal(weights, 4);
	assert_int_equal(torn, 0);
	cpu_ring_close();
	munmap(unreadable, 4096);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_of_many_writers_arrive_whole_and_in_order),
		cmocka_unit_test(a_full_ring_counts_what_it_loses_and_works_again_when_emptied),
		cmocka_unit_test(a_reader_takes_what_was_there_when_it_came_and_ends),
		cmocka_unit_test(what_it_is_said_to_hold_it_holds),
		cmocka_unit_test(a_writer_that_never_ends_costs_a_ring_and_what_is_lost_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
