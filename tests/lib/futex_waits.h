/*
 * futex_waits.h - how often this thread has waited, and for how long at most: what it takes the place of is
 * syscall(2), by which all of our waits are made.
 *
 * To be included by one file of a test program.
 */
#ifndef TESTS_FUTEX_WAITS_H
#define TESTS_FUTEX_WAITS_H

#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "clock.h"

static __thread unsigned futex_waits __attribute__((tls_model("initial-exec")));

/* NULL, or called before each wait that is not without end. */
static void (*volatile futex_wait_begins)(int64_t ns);

/* Six are read, however many there are. */
__attribute__((no_sanitize("address"))) long
syscall(long number, ...)
{
	static long (*next)(long, ...);
	void      (*begins)(int64_t ns) = futex_wait_begins;
	long        a[6];
	va_list     args;

	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_futex && ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT || (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)) {
		futex_waits++;
		if ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && a[3] && begins)
			begins(clock_from_timespec((const struct timespec *)a[3]));
	}
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif
