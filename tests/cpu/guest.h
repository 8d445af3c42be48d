/*
 * guest.h - what tests of the CPU profile as a guest share: a window, work for it,
 * and a child to run in.
 */
#ifndef TESTS_CPU_GUEST_H
#define TESTS_CPU_GUEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cpu/cpu.h"
#include "cpu_burn.h"

#define MS 1000000LL

BURN_FUNCTION(burn_here)
static void
burn_here(int64_t ns)
{
	burn_ns(ns);
	__asm__ volatile("" ::: "memory");
}

static inline struct cpu_window *
window_open(void)
{
	struct cpu_window *w = NULL;

	assert_int_equal(cpu_window_open(&w), 0);
	return w;
}

/*
 * Runs in a child: handlers and limits of one test are not those of the next.
 * A failed check ends it with the line's number.
 */
#define CHECK(condition)                                                             \
	do {                                                                         \
		if (!(condition)) {                                                  \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #condition);    \
			_exit(1);                                                    \
		}                                                                    \
	} while (0)

static inline int
status_in_child(void (*run)(void))
{
	int   status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(600);
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static inline void
in_child(void (*run)(void))
{
	assert_int_equal(status_in_child(run), 0);
}

#endif
