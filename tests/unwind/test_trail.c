/*
 * test_trail.c - a trail fits where a walk would find the same stack, and nowhere else.
 *
 * Compiled without frame pointers, which a function with alloca() has all the same; and once more with them.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stack_table.h"
#include "trail.h"
#include "under_valgrind.h"
#include "unwind.h"
#include "waiting.h"

#if ARCH_HAVE_TABLES && !ARCH_FRAME_RECORD

#define MAX       STACK_FRAMES_MAX
#define TRAILS    256
#define CALLS_MAX 6
#define ROUNDS    200000

struct made {
	struct trail trail;
	uintptr_t    pc, pcs[MAX];
	unsigned     count;
};

static struct made made[TRAILS];
static unsigned    made_count, fitted, others;

static void
keep(const struct unwind_regs *regs, const uintptr_t *pcs, unsigned n)
{
	struct made *m = &made[made_count];

	if (made_count == TRAILS || !trail_make(&m->trail, regs, pcs, n))
		return;
	m->pc = regs->pc;
	m->count = n;
	memcpy(m->pcs, pcs, n * sizeof(*pcs));
	made_count++;
}

/* Compares the walk from here with what each trail says. */
static __attribute__((noinline)) void
compare(void)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	uintptr_t          pcs[MAX];
	int                cut = 0;
	unsigned           n = unwind_capture(&regs, pcs, MAX, &cut), fits = 0;
	size_t             room = trail_room(regs.sp);

	assert_false(cut);
	assert_true(room > 0);
	for (unsigned i = 0; i < made_count; i++) {
		const struct made *m = &made[i];
		bool               same = m->count == n && !memcmp(m->pcs, pcs, n * sizeof(*pcs));

		if (m->pc != regs.pc)
			continue;
		if (trail_fits(&m->trail, &regs, room)) {
			assert_true(same);
			fits++;
		}
		others += !same;
	}
	fitted += fits > 0;
	if (!fits)
		keep(&regs, pcs, n);
}

/* ---- calls by all ways ---- */

typedef void call_fn(const uint8_t *how);

static void go_on(const uint8_t *how);
static volatile uintptr_t sink;

#define AFTER(word) (sink += (uintptr_t)(word)) /* so that no call is a jump */

static __attribute__((noinline)) void
small_frame(const uint8_t *how)
{
	go_on(how);
	AFTER(how);
}

/* Two calls: return addresses that differ, at the same place. */
static __attribute__((noinline)) void
either_call(const uint8_t *how)
{
	if (*how & 8) {
		go_on(how);
		AFTER(how);
	} else {
		go_on(how);
		AFTER(1);
	}
}

static __attribute__((noinline)) void
large_frame(const uint8_t *how)
{
	volatile char room[200];

	room[*how] = 1;
	go_on(how);
	AFTER(room[3]);
}

static __attribute__((noinline)) void
any_frame(const uint8_t *how)
{
	volatile char *room = __builtin_alloca(16 + 16 * (*how & 3));

	room[0] = 1;
	go_on(how);
	AFTER(room[0]);
}

/* Has the saved frame pointer of an any_frame() below it, or not. */
static __attribute__((noinline)) void
many_registers(const uint8_t *how)
{
	uintptr_t a = sink, b = a * 3, c = b ^ a, d = c + 5, e = d * 7;

	go_on(how);
	AFTER(a + b + c + d + e);
}

static call_fn *const calls[] = { small_frame, either_call, large_frame, any_frame, many_registers };

static __attribute__((noinline)) void
go_on(const uint8_t *how)
{
	if (how[1] == UINT8_MAX)
		compare();
	else
		calls[how[1] >> 4](how + 1);
	AFTER(how);
}

static void
a_trail_fits_the_same_stack_and_no_other(void **state)
{
	uint8_t  how[CALLS_MAX + 2] = { 0 };
	unsigned seed = 1, had, fitted_at_once = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		unsigned depth = 1 + (unsigned)rand_r(&seed) % CALLS_MAX;

		for (unsigned k = 1; k <= depth; k++)
			how[k] = (uint8_t)(rand_r(&seed) % 5 << 4 | rand_r(&seed) % 16);
		how[depth + 1] = UINT8_MAX;
		had = made_count;
		for (volatile int again = 0; again < 2; again++) /* one call, not two */
			go_on(how);
		assert_in_range(made_count, had, had + 1); /* the second time it fits */
		fitted_at_once += made_count > had;
	}
	assert_int_equal(made_count, TRAILS);
	assert_int_equal(fitted_at_once, TRAILS);
	assert_in_range(fitted, 2 * TRAILS, 2 * ROUNDS);
	assert_in_range(others, ROUNDS, UINT_MAX);
}

/* ---- what has no trail ---- */

static int answers[2];

static __attribute__((noinline)) void
try_here(int which)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	struct trail       t;
	uintptr_t          pcs[MAX];
	int                cut = 0;
	unsigned           n = unwind_capture(&regs, pcs, MAX, &cut);

	answers[which] = trail_room(regs.sp) > 0 && trail_make(&t, &regs, pcs, n);
}

static void
on_signal(int number)
{
	try_here(number == SIGUSR1);
}

static void
a_stack_with_a_handler_on_it_has_none(void **state)
{
	(void)state;
	answers[0] = answers[1] = -1;
	try_here(0);
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	assert_int_equal(answers[0], 1);
	assert_int_equal(answers[1], 0);
}

static __attribute__((noinline)) void
deep(int n)
{
	volatile char room[8];

	room[0] = 1;
	if (n)
		deep(n - 1);
	else
		try_here(1);
	AFTER(room[0]);
}

static void
a_stack_of_more_frames_than_words_has_none(void **state)
{
	(void)state;
	answers[1] = -1;
	deep(TRAIL_WORDS / 4); /* frame pointers are words, too */
	assert_int_equal(answers[1], 1);
	deep(TRAIL_WORDS);
	assert_int_equal(answers[1], 0);
}

static void
a_part_of_a_walk_has_none(void **state)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	struct trail       t;
	uintptr_t          pcs[MAX], last;
	int                cut = 0;
	unsigned           n = unwind_capture(&regs, pcs, MAX, &cut);

	(void)state;
	assert_true(trail_make(&t, &regs, pcs, n));
	assert_false(trail_make(&t, &regs, pcs, n - 1));
	last = pcs[n - 2];
	pcs[n - 2] = pcs[n - 1]; /* as if a frame were hidden */
	assert_false(trail_make(&t, &regs, pcs, n - 1));
	pcs[n - 2] = last;
	assert_false(trail_make(&t, &regs, pcs, 1));
}

/* Another thread may have written a trail of a deeper stack meanwhile. */
static void
nothing_beyond_the_room_is_read(void **state)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	struct trail       t;
	uintptr_t          pcs[MAX];
	int                cut = 0;
	unsigned           n = unwind_capture(&regs, pcs, MAX, &cut);
	size_t             room = trail_room(regs.sp), enough = 0;

	(void)state;
	assert_true(trail_make(&t, &regs, pcs, n));
	assert_true(trail_fits(&t, &regs, room));
	while (!trail_fits(&t, &regs, enough))
		enough += sizeof(uintptr_t);
	assert_in_range(enough, 8 * n, room); /* a word for each frame at least */
}

static int
set_up(void **state)
{
	(void)state;
	if (unwind_start(UNWIND_TABLES) < 0)
		return -1;
	WAIT_FOR_S(unwind_roots_known(), 60);
	try_here(0); /* the end of this stack is known from then on */
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trail_fits_the_same_stack_and_no_other),
		cmocka_unit_test(a_stack_with_a_handler_on_it_has_none),
		cmocka_unit_test(a_stack_of_more_frames_than_words_has_none),
		cmocka_unit_test(a_part_of_a_walk_has_none),
		cmocka_unit_test(nothing_beyond_the_room_is_read),
	};

	if (under_memcheck) {
		printf("1..0 # SKIP there are no trails under valgrind\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, set_up, NULL);
}

#else

int
main(void)
{
	printf("1..0 # SKIP there are no trails on this processor\n");
	return 0;
}

#endif
