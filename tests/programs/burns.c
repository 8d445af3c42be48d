/*
 * burns.c - burns processor time until its standard input ends, for tests/whole/other_profilers.t.
 */
#include <poll.h>
#include <stdio.h>
#include <time.h>

#ifdef LINKED
#include <component/profiler.h>
#endif

/*
 * What ITIMER_PROF counts by: ticks charged to this process as user and system time.
 * CLOCK_PROCESS_CPUTIME_ID counts run time instead; on a virtual machine that is
 * denied its processor a tick is charged whole, and the two go apart.
 */
#define CLOCK_OF_ITIMER_PROF ((clockid_t)(~0u << 3))

__attribute__((noinline, noclone)) static void
burn_here(void)
{
	static volatile unsigned long sum;

	for (int i = 0; i < 10000000; i++)
		sum += (unsigned long)i;
}

int
main(int argc, char **argv)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	struct timespec used;

#ifdef LINKED
	if (argc > 1 && component_profiler_start(argv[1]) < 0)
		return 1;
#endif
	(void)argc;
	(void)argv;
	puts("started");
	fflush(stdout);
	while (poll(&in, 1, 0) <= 0) /* a dump may end it with EINTR */
		burn_here();
	if (clock_gettime(CLOCK_OF_ITIMER_PROF, &used) < 0)
		return 1;
	printf("used %f\n", (double)used.tv_sec + (double)used.tv_nsec / 1e9);
	return 0;
}
