/*
 * test_previous_dump.c - what a dump knows from the one before it: who has not moved, and for
 * how long.
 *
 * A thread is blocked in read(2) and goes through one read for each byte; the clock that
 * minutes are told by is the test's own.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "encode.h"
#include "stack_table.h"
#include "symbols.h"
#include "dump/snapshot.h"
#include "dump/threads.h"
#include "unwind.h"
#include "waiting.h"

#define MINUTE_NS    60000000000LL
#define SYMBOL_BYTES ((size_t)16 << 20)
#define KEEP         (THREADS_OWN | THREADS_NAMES | THREADS_KEEP)

static int        pipe_fds[2];
static atomic_int reader_tid, reads;
static int64_t    now = 1000 * MINUTE_NS;
static pthread_t  reader;
/* On the reader's stack, just above its read. */
static volatile char *volatile local;

static int64_t
clock_of_test(void)
{
	return now;
}

static void *
read_bytes(void *arg)
{
	char          c;
	volatile char own = 0;

	local = &own;
	reader_tid = (int)syscall(SYS_gettid);
	pthread_setname_np(pthread_self(), "reader");
	do
		reads++;
	while (syscall(SYS_read, pipe_fds[0], &c, 1) == 1 && c != 'q'); /* past a sanitizer's read() */
	return arg;
}

/* The reader in a dump that has it quietly; the dump stays for the caller. */
static struct dump_thread *
reader_of(struct dump *d, unsigned want)
{
	for (int tries = 0; tries < 5000; tries++) {
		assert_int_equal(threads_dump_of(d, want), 0);
		for (size_t i = 0; i < d->count; i++)
			if (d->threads[i].tid == reader_tid && d->threads[i].how == DUMP_QUIET && d->threads[i].syscall == SYS_read)
				return &d->threads[i];
		dump_release(d);
		rest_ns(2000000);
	}
	fail_msg("the thread does not come to its read");
	return NULL;
}

static unsigned
minutes(unsigned want)
{
	struct dump d;
	unsigned    m = reader_of(&d, want)->minutes;

	dump_release(&d);
	return m;
}

/* Through one read to the next. */
static void
wake(void)
{
	int before = reads;

	assert_int_equal(write(pipe_fds[1], "x", 1), 1);
	WAIT_FOR(reads != before);
}

static int
begin(void **state)
{
	(void)state;
	unwind_start(UNWIND_AUTO);
	threads_clock_ns = clock_of_test;
	if (pipe(pipe_fds))
		return -1;
	return pthread_create(&reader, NULL, read_bytes, NULL);
}

static int
end(void **state)
{
	(void)state;
	if (write(pipe_fds[1], "q", 1) != 1)
		return -1;
	pthread_join(reader, NULL);
	threads_forget();
	unwind_stop();
	return 0;
}

static void
a_thread_has_waited_since_the_first_dump_that_saw_it_where_it_is(void **state)
{
	(void)state;
	wake();
	assert_int_equal(minutes(KEEP), 0);
	now += MINUTE_NS - 1;
	assert_int_equal(minutes(KEEP), 0);
	now += 1;
	assert_int_equal(minutes(KEEP), 1);
	now += 11 * MINUTE_NS;
	assert_int_equal(minutes(KEEP), 12);
	assert_int_equal(minutes(THREADS_OWN | THREADS_KEEP), 12);
}

static void
a_thread_that_ran_for_a_moment_begins_anew_though_it_waits_in_the_same_place(void **state)
{
	(void)state;
	minutes(KEEP);
	now += 5 * MINUTE_NS;
	wake();
	assert_int_equal(minutes(KEEP), 0);
	now += 2 * MINUTE_NS;
	assert_int_equal(minutes(KEEP), 2);
}

static void
a_thread_with_other_words_on_its_stack_is_another_one_though_both_ran_for_as_long(void **state)
{
	(void)state;
	wake();
	minutes(KEEP);
	now += 3 * MINUTE_NS;
	assert_int_equal(minutes(KEEP), 3);
	*local += 1;
	assert_int_equal(minutes(KEEP), 0);
	now += 2 * MINUTE_NS;
	assert_int_equal(minutes(KEEP), 2);
}

static void
a_dump_that_keeps_nothing_knows_nothing_and_leaves_what_others_have_kept(void **state)
{
	(void)state;
	wake();
	minutes(KEEP);
	now += 3 * MINUTE_NS;
	assert_int_equal(minutes(THREADS_OWN), 0);
	assert_int_equal(minutes(KEEP), 3);
	threads_forget();
	assert_int_equal(minutes(KEEP), 0);
}

static void
a_stack_that_was_kept_is_the_one_that_is_read(void **state)
{
	struct dump               fresh, kept;
	const struct dump_thread *a, *b;

	(void)state;
	minutes(KEEP);
	a = reader_of(&fresh, THREADS_OWN | THREADS_NAMES);
	b = reader_of(&kept, KEEP);
	assert_true(b->count > 2 && !b->truncated);
	assert_int_equal(a->count, b->count);
	assert_memory_equal(fresh.pcs + a->first, kept.pcs + b->first, a->count * sizeof(*fresh.pcs));
	assert_string_equal(a->name, "reader");
	assert_string_equal(b->name, "reader");
	dump_release(&fresh);
	dump_release(&kept);
}

struct text {
	char   bytes[65536];
	size_t size;
};

static int
append(void *arg, const void *data, size_t size)
{
	struct text *t = arg;

	assert_true(t->size + size < sizeof(t->bytes));
	memcpy(t->bytes + t->size, data, size);
	t->size += size;
	t->bytes[t->size] = '\0';
	return 0;
}

static void
the_text_says_minutes_as_gos_does_and_only_from_one_on(void **state)
{
	static struct text text;
	struct symbols    *symbols;
	struct dump        d;

	(void)state;
	wake();
	minutes(KEEP);
	for (int i = 0; i < 2; i++) {
		text.size = 0;
		assert_int_equal(symbols_open(SYMBOL_BYTES, &symbols), 0);
		reader_of(&d, KEEP);
		assert_int_equal(encode_panic(&d, symbols, append, &text), 0);
		symbols_close(symbols);
		dump_release(&d);
		assert_non_null(strstr(text.bytes, i ? "[read, 7 minutes, thread: reader]:\n" : "[read, thread: reader]:\n"));
		now += 7 * MINUTE_NS;
	}
}

static void
names_are_read_only_where_they_are_asked_for_or_decide(void **state)
{
	struct dump d;

	(void)state;
	assert_string_equal(reader_of(&d, THREADS_OWN)->name, "");
	dump_release(&d);
	reader_of(&d, 0);
	for (size_t i = 0; i < d.count; i++)
		assert_int_not_equal(strncmp(d.threads[i].name, "component-", 10), 0);
	dump_release(&d);
}

/* By who has the table already, so that it cannot be had once more. */
static void
tag_within(void *d)
{
	dump_tag(d);
}

static void
an_address_stays_itself_where_the_table_of_stacks_cannot_be_had(void **state)
{
	uintptr_t          pc = (uintptr_t)read_bytes;
	struct dump_thread t = { .count = 1 };
	struct dump        d = { .threads = &t, .count = 1, .pcs = &pc, .pc_count = 1 };

	(void)state;
	assert_true(stack_table_exclusively(tag_within, &d));
	assert_true(pc == (uintptr_t)read_bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_has_waited_since_the_first_dump_that_saw_it_where_it_is),
		cmocka_unit_test(a_thread_that_ran_for_a_moment_begins_anew_though_it_waits_in_the_same_place),
		cmocka_unit_test(a_thread_with_other_words_on_its_stack_is_another_one_though_both_ran_for_as_long),
		cmocka_unit_test(a_dump_that_keeps_nothing_knows_nothing_and_leaves_what_others_have_kept),
		cmocka_unit_test(a_stack_that_was_kept_is_the_one_that_is_read),
		cmocka_unit_test(the_text_says_minutes_as_gos_does_and_only_from_one_on),
		cmocka_unit_test(names_are_read_only_where_they_are_asked_for_or_decide),
		cmocka_unit_test(an_address_stays_itself_where_the_table_of_stacks_cannot_be_had),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
