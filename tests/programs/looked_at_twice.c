/* looked_at_twice.c - a program that becomes another one, or that has many threads (tests/componentctl/outside_changes.t).
 *
 *     looked_at_twice exec|exec-from-thread|threads NEXT|COUNT
 *
 * BURNS is its function, at the same address in each build.  "exec": after a line of input NEXT runs in its place.
 * "threads": COUNT threads, of which one runs and the others wait. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAITING_STACK ((size_t)64 << 10)

static atomic_bool ends;

__attribute__((noinline)) static void
BURNS(void)
{
	volatile unsigned n = 0;

	while (!atomic_load_explicit(&ends, memory_order_relaxed))
		n = n + 1;
}

static void *
burn_in_thread(void *arg)
{
	BURNS();
	return arg;
}

static void *
become(void *next)
{
	char line[8];

	if (read(STDIN_FILENO, line, sizeof(line)) > 0)
		execl(next, next, "threads", "1", (char *)NULL);
	_exit(1);
}

static void *
wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static pthread_t
thread(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t      t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, WAITING_STACK);
	if (pthread_create(&t, &attr, fn, arg))
		_exit(1);
	return t;
}

int
main(int argc, char **argv)
{
	if (argc < 3)
		return 1;
	if (strcmp(argv[1], "threads") == 0) {
		for (long i = strtol(argv[2], NULL, 10); i > 1; i--)
			thread(wait_for_ever, NULL);
		puts("started");
		fflush(stdout);
		BURNS();
	}
	puts("started");
	fflush(stdout);
	if (strcmp(argv[1], "exec") == 0) {
		thread(burn_in_thread, NULL);
		become(argv[2]);
	}
	thread(become, argv[2]);
	BURNS();
	return 0;
}
