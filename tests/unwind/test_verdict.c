/*
 * test_verdict.c - guessed return addresses are judged by a thread of ours, and no walk
 * loads what they lead to.
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
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "our_thread.h"
#include "skip.h"
#include "unwind.h"
#include "verdict.h"

#if ARCH_HAVE_FRAMES

#define CODE_BYTES 4096
#define PLACE_BYTES 64
#define WALKS      20000
#define TURNS      1000
#define TRIES      500 /* of 10 ms at most */
#define DEEP       200 /* frames */
#define PARTS      8  /* of all verdicts, one of which is judged anew in a round */
#define AGES       16 /* more than an entry lives unused */

static unsigned char *code;
static uintptr_t      called_from; /* behind a call in it */
static unsigned       place; /* of that call: another one for each test, as verdicts stay */

static bool
code_put(int flags)
{
#if defined(__x86_64__)
	static const unsigned char call[] = { 0xe8, 0, 0, 0, 0 };
#else
	static const unsigned char call[] = { 0, 0, 0, 0x94 };
#endif

	code = mmap(code, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	if (code == MAP_FAILED) {
		code = NULL;
		return false;
	}
	memcpy(code + place, call, sizeof(call));
	called_from = (uintptr_t)code + place + sizeof(call);
	return true;
}

static int
code_new(void **state)
{
	(void)state;
	place += PLACE_BYTES;
	return code_put(0) ? 0 : -1;
}

static int
code_end(void **state)
{
	(void)state;
	unwind_stop();
	munmap(code, CODE_BYTES);
	code = NULL;
	return 0;
}

static int
code_new_with_known_mappings(void **state)
{
	return code_new(state) == 0 ? unwind_start(UNWIND_FRAME_POINTER) : -1;
}

static unsigned (*capture)(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated) = unwind_capture;

/* The depth of a stack with one caller, in that code. */
static unsigned
walk(void)
{
	uintptr_t          frame[2] = { 0, called_from }, pcs[4];
	struct unwind_regs regs = { .pc = (uintptr_t)walk + 1, .sp = (uintptr_t)frame, .fp = (uintptr_t)frame };
	int                truncated;
	unsigned           n = capture(&regs, pcs, 4, &truncated);

	assert_int_equal(truncated, n == 1);
	if (n == 2)
		assert_int_equal(pcs[1], called_from - 1);
	return n;
}

/* As a handler does, and a thread of ours for it. */
static unsigned
capture_and_prove(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	return unwind_prove(pcs, unwind_capture_guess(r, pcs, max, ret_truncated), ret_truncated);
}

static unsigned
walk_of_handler(void)
{
	unsigned n;

	capture = capture_and_prove;
	n = walk();
	capture = unwind_capture;
	return n;
}

static void
a_handler_has_whole_stacks_at_once(void **state)
{
	(void)state;
	assert_int_equal(walk_of_handler(), 2);
	called_from++; /* behind no call */
	assert_int_equal(walk_of_handler(), 1);
}

static void
what_is_gone_before_it_was_proven_is_no_caller(void **state)
{
	uintptr_t          frame[2] = { 0, called_from }, pcs[4];
	struct unwind_regs regs = { .pc = (uintptr_t)walk + 1, .sp = (uintptr_t)frame, .fp = (uintptr_t)frame };
	int                truncated;
	unsigned           n = unwind_capture_guess(&regs, pcs, 4, &truncated);

	(void)state;
	assert_int_equal(n, 2);
	munmap(code, CODE_BYTES);
	assert_int_equal(unwind_prove(pcs, n, &truncated), 1);
	assert_true(truncated);
	assert_true(code_put(MAP_FIXED));
}

static bool
code_fresh(void)
{
	munmap(code, CODE_BYTES);
	place = (place + PLACE_BYTES) % CODE_BYTES;
	return code_put(0);
}

/* It waits a little for the thread that judges, which a busy machine may not let run in time:
 * then the next one has its turn. */
static void
a_hook_has_whole_stacks_at_once(void **state)
{
	(void)state;
	for (unsigned i = 0; walk() != 2; i++) {
		assert_in_range(i, 0, TRIES);
		unwind_refresh(); /* whoever has waited in vain waits again */
		assert_true(code_fresh());
	}
}

static void
around_a_fork_no_hook_waits(void **state)
{
	int64_t until = 0;

	(void)state;
	unwind_verdicts_settle(UNWIND_VERDICTS_ALL);
	unwind_verdicts_fork(true);
	assert_int_equal(walk(), 1);
	assert_false(unwind_verdicts_await(unwind_verdicts_settled(), &until));
	assert_true(until == 0); /* it was not for lack of time */
	unwind_verdicts_fork(false);
	a_hook_has_whole_stacks_at_once(state);
}

static void
more_guesses_than_can_be_marked_are_a_truncated_stack(void **state)
{
	uintptr_t          own[DEEP][2], pcs[DEEP];
	struct unwind_regs regs = { .pc = (uintptr_t)walk + 1, .sp = (uintptr_t)own, .fp = (uintptr_t)own };
	int                truncated = 0;
	unsigned           n;

	(void)state;
	for (unsigned i = 0; i < DEEP; i++) {
		own[i][0] = i + 1 < DEEP ? (uintptr_t)own[i + 1] : 0;
		own[i][1] = called_from;
	}
	n = unwind_capture_guess(&regs, pcs, DEEP, &truncated);
	assert_in_range(n, 2, DEEP - 1);
	assert_true(truncated);
	n = unwind_capture_guess(&regs, pcs, n, &truncated);
	assert_true(truncated);
	assert_int_equal(unwind_prove(pcs, n, &truncated), n);
	assert_true(truncated);
}

static void
a_hook_that_nobody_answers_goes_on(void **state)
{
	(void)state;
	assert_int_equal(walk(), 1);
	assert_int_equal(walk_of_handler(), 2);
	assert_int_equal(walk(), 2);
}

static atomic_bool done;
static atomic_uint turns;

/* What the caller's address leads to, and what its frame pointer does. */
struct coming {
	unsigned char *at;
	int            prot;
};

static void *
come_and_go(void *arg)
{
	const struct coming *c = arg;

	for (; !atomic_load(&done); atomic_fetch_add(&turns, 1)) {
		munmap(c->at, CODE_BYTES);
		mmap(c->at, CODE_BYTES, c->prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	return NULL;
}

static void
walk_beside(unsigned char *at, int prot)
{
	struct coming c = { at, prot };
	unsigned      walks = getenv("TEST_STRESS") ? 20 * WALKS : WALKS;
	pthread_t     thread;

	atomic_store(&done, false);
	atomic_store(&turns, 0);
	assert_int_equal(pthread_create(&thread, NULL, come_and_go, &c), 0);
	for (unsigned i = 0; i < walks || atomic_load(&turns) < TURNS; i++) {
		assert_in_range(walk(), 1, 2);
		assert_in_range(walk_of_handler(), 1, 2);
		if (i % 100 == 0) /* nothing is known: what is looked up is looked at */
			unwind_verdicts_settle(UNWIND_VERDICTS_ALL);
	}
	atomic_store(&done, true);
	pthread_join(thread, NULL);
}

static void
code_that_comes_and_goes_kills_no_walk(void **state)
{
	(void)state;
	walk_beside(code, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void
data_that_comes_and_goes_kills_no_walk(void **state)
{
	(void)state;
	walk_beside(code, PROT_READ | PROT_WRITE);
}

/* Its page is there, those beside may be somebody else's. */
static void
a_leaf_at_the_edge_of_its_page_has_its_caller(void **state)
{
#if defined(__x86_64__)
	static const unsigned at[] = { 0, CODE_BYTES - 7, CODE_BYTES - 1 };
#else
	static const unsigned at[] = { 0, 20, CODE_BYTES - 24, CODE_BYTES - 4 };
#endif
	uintptr_t frame[2] = { 0, called_from }, pcs[4];
	int       truncated;

	(void)state;
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct unwind_regs regs = { .pc = (uintptr_t)code + at[i], .sp = (uintptr_t)frame, .fp = (uintptr_t)frame,
					    .exact = 1 };

		assert_int_equal(capture_and_prove(&regs, pcs, 4, &truncated), 2);
		assert_int_equal(pcs[1], called_from - 1);
	}
}

/* Far from the stack, or near above it. */
static void
a_frame_that_comes_and_goes_kills_no_walk(void **state)
{
	struct coming      c;
	unsigned char     *stack = mmap(NULL, 3 * CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t          pcs[4];
	struct unwind_regs regs = { .pc = (uintptr_t)walk + 1, .sp = (uintptr_t)stack + 64 };
	pthread_t          thread;
	int                truncated;

	(void)state;
	assert_true(stack != MAP_FAILED);
	munmap(stack + CODE_BYTES, CODE_BYTES); /* the gap behind a stack */
	c = (struct coming){ stack + 2 * CODE_BYTES, PROT_READ | PROT_WRITE };
	regs.fp = (uintptr_t)c.at + 64;
	atomic_store(&done, false);
	atomic_store(&turns, 0);
	assert_int_equal(pthread_create(&thread, NULL, come_and_go, &c), 0);
	for (unsigned i = 0; i < WALKS || atomic_load(&turns) < TURNS; i++)
		assert_int_equal(unwind_capture_guess(&regs, pcs, 4, &truncated), 1);
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	munmap(stack, 3 * CODE_BYTES);
}

static void
other_code_at_the_same_address_is_judged_anew(void **state)
{
	(void)state;
	assert_int_equal(walk_of_handler(), 2);
	assert_int_equal(walk(), 2);
	memset(code, 0, CODE_BYTES);
	for (int i = 0; i < PARTS; i++)
		unwind_verdicts_settle(UNWIND_VERDICTS_SOME);
	assert_int_equal(walk(), 1);
	assert_true(code_put(MAP_FIXED));
	unwind_refresh();
	assert_int_equal(walk(), 2);
}

static void
verdicts_that_nobody_uses_are_dropped(void **state)
{
	(void)state;
	walk();
	for (int i = 0; i < PARTS; i++) {
		unwind_verdicts_settle(UNWIND_VERDICTS_SOME);
		assert_int_equal(walk(), 2);
	}
	for (int i = 0; i < AGES * PARTS; i++)
		unwind_verdicts_settle(UNWIND_VERDICTS_SOME);
	assert_int_equal(walk(), 1);
}

static void *
walk_at_once(void *arg)
{
	*(unsigned *)arg = walk();
	return NULL;
}

static void
threads_of_ours_judge_at_once(void **state)
{
	pthread_t thread;
	unsigned  depth = 0;

	(void)state;
	assert_int_equal(our_thread_start("component-test", walk_at_once, &depth, &thread), 0);
	pthread_join(thread, NULL);
	assert_int_equal(depth, 2);
	assert_int_equal(walk(), 2);
}

/* Far more guesses than there is room for. */
static void
guesses_that_lead_nowhere_do_not_keep_callers_out(void **state)
{
	uintptr_t real = called_from;

	(void)state;
	for (unsigned i = 0; i < 50000; i++) {
		called_from = 0x10000 + i * 4096UL;
		assert_int_equal(walk(), 1);
	}
	called_from = real;
	walk();
	unwind_refresh();
	assert_int_equal(walk(), 2);
}

#define FRESH(f) cmocka_unit_test_setup_teardown(f, code_new, code_end)
#define KNOWN(f) { #f "_with_known_mappings", f, code_new_with_known_mappings, code_end, NULL }

int
main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(a_handler_has_whole_stacks_at_once),
		KNOWN(a_handler_has_whole_stacks_at_once),
		FRESH(what_is_gone_before_it_was_proven_is_no_caller),
		KNOWN(a_hook_has_whole_stacks_at_once),
		KNOWN(around_a_fork_no_hook_waits),
		FRESH(more_guesses_than_can_be_marked_are_a_truncated_stack),
		FRESH(a_hook_that_nobody_answers_goes_on),
		FRESH(code_that_comes_and_goes_kills_no_walk),
		KNOWN(code_that_comes_and_goes_kills_no_walk),
		FRESH(data_that_comes_and_goes_kills_no_walk),
		KNOWN(data_that_comes_and_goes_kills_no_walk),
		FRESH(a_leaf_at_the_edge_of_its_page_has_its_caller),
		KNOWN(a_leaf_at_the_edge_of_its_page_has_its_caller),
		FRESH(a_frame_that_comes_and_goes_kills_no_walk),
		FRESH(other_code_at_the_same_address_is_judged_anew),
		FRESH(verdicts_that_nobody_uses_are_dropped),
		FRESH(threads_of_ours_judge_at_once),
		FRESH(guesses_that_lead_nowhere_do_not_keep_callers_out),
	};

	if (!code_put(0))
		return 77; /* no memory may be writable and executable */
	munmap(code, CODE_BYTES);
	code = NULL;
	return cmocka_run_group_tests_name("unwind_verdict", tests, NULL, NULL);
}

#else

int
main(void)
{
	return 77;
}

#endif
