/*
 * test_ring_writers.c - the memory of a trace's rings comes back, whatever becomes of
 * those who write into them.
 */
#include <config.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "skip.h"
#include "trace.h"
#include "events/ring.h"
#include "events/writers.h"
#include "waiting.h"

static _Atomic int writes;

static void *
write_until_cancelled(void *arg)
{
	struct trace_event e = { .type = TRACE_LOG, .value = 1, .text = "some text to copy" };

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;) {
		events_ring_add(&e);
		atomic_store_explicit(&writes, 1, memory_order_relaxed);
	}
	return arg;
}

/* It is in the middle of a record when it is cancelled, or nearly always. */
static void
one_trace_with_a_cancelled_writer(int round)
{
	pthread_t writer;

	assert_int_equal(events_ring_open(), 0);
	atomic_store(&writes, 0);
	assert_int_equal(pthread_create(&writer, NULL, write_until_cancelled, NULL), 0);
	while (!atomic_load(&writes))
		sched_yield();
	for (volatile int k = 0; k < 20000 + round * 997; k++)
		;
	pthread_cancel(writer);
	pthread_join(writer, NULL);
	events_ring_close();
}

/* Of address space. */
static size_t
bytes_mapped(void)
{
	unsigned long pages = 0;
	FILE         *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages * (size_t)getpagesize();
}

static void
rings_are_given_back_after_their_writers_are_cancelled(void **state)
{
	size_t before;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("sanitizers do not survive a thread that is cancelled asynchronously");
#endif
	one_trace_with_a_cancelled_writer(0); /* what stays after the first stays */
	before = bytes_mapped();
	for (int i = 1; i < 5 * EVENTS_RINGS_MAX; i++)
		one_trace_with_a_cancelled_writer(i);
	assert_true(bytes_mapped() < before + EVENTS_RING_BYTES);
}

static char          *text; /* in a page that cannot be read at first */
static _Atomic int    inside, go_on;

/* The writer stops here, in the middle of its record. */
static void
on_fault(int signal)
{
	(void)signal;
	atomic_store(&inside, 1);
	WAIT_FOR(atomic_load(&go_on));
	mprotect(text, (size_t)getpagesize(), PROT_READ);
}

static void *
write_once(void *arg)
{
	struct trace_event e = { .type = TRACE_LOG, .value = 1, .text = text };

	events_ring_add(&e);
	return arg;
}

static void
a_ring_stays_until_its_last_writer_has_left(void **state)
{
	struct sigaction a = { .sa_handler = on_fault }, old;
	size_t           before;
	pthread_t        t;

	(void)state;
	text = mmap(NULL, (size_t)getpagesize(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(text, MAP_FAILED);
	assert_int_equal(sigaction(SIGSEGV, &a, &old), 0);
	assert_int_equal(events_ring_open(), 0);
	assert_int_equal(pthread_create(&t, NULL, write_once, NULL), 0);
	while (!atomic_load(&inside))
		sched_yield();
	before = bytes_mapped();
	events_ring_close();
	assert_int_equal(events_ring_open(), 0); /* beside the one that it writes into */
	assert_true(bytes_mapped() >= before + EVENTS_RING_BYTES);
	atomic_store(&go_on, 1);
	pthread_join(t, NULL);
	sigaction(SIGSEGV, &old, NULL);
	events_ring_close();
	assert_true(bytes_mapped() <= before - EVENTS_RING_BYTES);
	munmap(text, (size_t)getpagesize());
}

static void *
id(void *arg)
{
	*(int32_t *)arg = trace_tid();
	return NULL;
}

static void
a_thread_has_ended_when_it_is_gone_or_its_id_is_anothers(void **state)
{
	int64_t   now = clock_ns(CLOCK_BOOTTIME);
	pthread_t t;
	int32_t   tid = 0;

	(void)state;
	assert_false(events_writers_ended(trace_tid(), 0));
	assert_false(events_writers_ended(trace_tid(), now));
	assert_true(events_writers_ended(trace_tid(), 1)); /* who was there at boot */
	assert_int_equal(pthread_create(&t, NULL, id, &tid), 0);
	pthread_join(t, NULL);
	WAIT_FOR_S(events_writers_ended(tid, 0), 60); /* joined, it may be in the kernel's table still */
	assert_true(events_writers_ended(tid, 0));
}

/* 0 to 2: what goes wrong. */
static int
child(size_t before)
{
	events_ring_forked();
	if (events_ring_open() < 0)
		return 1;
	events_ring_close();
	return bytes_mapped() < before + EVENTS_RING_BYTES ? 0 : 2;
}

static void
a_child_gives_back_its_parents_ring(void **state)
{
	size_t before = bytes_mapped();
	pid_t  pid;
	int    status;

	(void)state;
	assert_int_equal(events_ring_open(), 0);
	pid = fork();
	if (pid == 0)
		_exit(child(before));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	events_ring_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_are_given_back_after_their_writers_are_cancelled),
		cmocka_unit_test(a_ring_stays_until_its_last_writer_has_left),
		cmocka_unit_test(a_thread_has_ended_when_it_is_gone_or_its_id_is_anothers),
		cmocka_unit_test(a_child_gives_back_its_parents_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
