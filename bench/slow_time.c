/*
 * slow_time.c - to preload beside the agent under callgrind: CPU time passes as slowly as the server works.
 *
 * Under callgrind a request takes 35 (redis) to 70 times (PostgreSQL) as long, and the kernel's clocks
 * know nothing of that.  A CPU window would have as many times too many samples in each request.  So a
 * CPU clock that is read here is SLOWER times slower.  A timer that is set by syscall(2), as the agent's
 * are, is as many times longer.  A window still looks once a second, which is SLOWER times too often.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

#define SLOWER   50
#define NS_PER_S 1000000000LL

static long (*next_syscall)(long number, ...);
static int  (*next_clock)(clockid_t clock, struct timespec *ret);

__attribute__((constructor)) static void
begin(void)
{
	next_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	next_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

static long long
ns(struct timespec t)
{
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static struct timespec
time_of(long long ns)
{
	return (struct timespec){ ns / NS_PER_S, ns % NS_PER_S };
}

int
clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r;

	if (!next_clock)
		begin();
	r = next_clock(clock, ret);
	if (r == 0 && (clock < 0 || clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID))
		*ret = time_of(ns(*ret) / SLOWER);
	return r;
}

long
syscall(long number, ...)
{
	long              a[6];
	struct itimerspec timer;
	va_list           args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (!next_syscall)
		begin();
	if (number == SYS_timer_settime && a[2]) {
		timer = *(struct itimerspec *)a[2];
		timer.it_value = time_of(ns(timer.it_value) * SLOWER);
		timer.it_interval = time_of(ns(timer.it_interval) * SLOWER);
		a[2] = (long)&timer;
	}
	return next_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
