/*
 * test_remote_dump.c - a dump by a thread of ours has libunwind walk each thread of the program, the first one, too.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/syscall.h>
#include <unistd.h>

#include "dump/threads.h"
#include "our_thread.h"
#include "skip.h"
#include "unwind.h"
#include "waiting.h"

static int         pipe_fds[2];
static struct dump dump;

/* Where the first thread, which is all that the program has, has been read blocked. */
static bool
read_blocked(void)
{
	dump_release(&dump);
	return threads_dump_of(&dump, THREADS_REMOTE) == 0 && dump.count == 1 && dump.threads[0].how == DUMP_QUIET;
}

static void *
dump_and_wake(void *arg)
{
	WAIT_FOR_S(read_blocked(), 60);
	return write(pipe_fds[1], "x", 1) == 1 ? arg : NULL;
}

static void
the_first_thread_of_the_program_is_walked_by_libunwind(void **state)
{
	pthread_t t;
	char      c;

	(void)state;
	if (unwind_start(UNWIND_LIBUNWIND) < 0)
		SKIP("libunwind is not installed, or of no use on this machine");
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(our_thread_start("component-dump", dump_and_wake, NULL, &t), 0);
	assert_int_equal(syscall(SYS_read, pipe_fds[0], &c, 1), 1); /* past a sanitizer's read() */
	pthread_join(t, NULL);
	assert_int_equal(dump.count, 1);
	assert_int_equal(dump.threads[0].tid, getpid());
	assert_int_equal(dump.by_libunwind, 1);
	dump_release(&dump);
	unwind_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_thread_of_the_program_is_walked_by_libunwind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
