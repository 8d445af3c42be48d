/*
 * fgprof_load.c - a program whose wall time is known, for tests/wall/fgprof.t.
 *
 *     fgprof_load PORT_FILE BLOCKED SPINNING
 *
 * BLOCKED threads wait for ever in epoll_wait(), poll() and nanosleep(), a third of them
 * each, and SPINNING ones never do; one more works and sleeps by turns and keeps account
 * of both.  A line on standard input asks for
 *
 *     "threads WORKED_NS SLEPT_NS INTERRUPTED"
 *
 * where INTERRUPTED counts waits that ended with EINTR.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <component/profiler.h>

#include "waiting.h"

#define STACK_BYTES ((size_t)64 << 10)
#define TURN_NS     7000000LL

static atomic_ulong     interrupted;
static sem_t            begun; /* one post of each thread */
static _Atomic int64_t  worked, slept;
static volatile unsigned long spun;

static void
count(int r)
{
	if (r < 0 && errno == EINTR)
		interrupted++;
	else
		abort(); /* these waits do not end */
}

__attribute__((noinline)) static void
blocked_in_epoll(int fd)
{
	struct epoll_event e;

	count(epoll_wait(fd, &e, 1, -1));
}

__attribute__((noinline)) static void
blocked_in_poll(void)
{
	count(poll(NULL, 0, -1));
}

__attribute__((noinline)) static void
blocked_in_nanosleep(void)
{
	struct timespec ts = { 100000, 0 };

	count(nanosleep(&ts, NULL));
}

static void *
waiter(void *arg)
{
	static _Atomic int epoll = -1;
	int                fd = epoll;

	if (fd < 0)
		epoll = fd = epoll_create1(EPOLL_CLOEXEC);
	sem_post(&begun);
	for (;;) {
		switch ((uintptr_t)arg % 3) {
		case 0: blocked_in_epoll(fd); break;
		case 1: blocked_in_poll(); break;
		default: blocked_in_nanosleep();
		}
	}
	return arg;
}

__attribute__((noinline)) static void
spin(int64_t until)
{
	while (now_ns() < until)
		for (int i = 0; i < 10000; i++)
			spun += (unsigned long)i;
}

static void *
spinner(void *arg)
{
	spin(INT64_MAX);
	return arg;
}

__attribute__((noinline)) static void
turn_works(int64_t until)
{
	spin(until);
}

__attribute__((noinline)) static void
turn_sleeps(void)
{
	struct timespec ts = { 0, TURN_NS };

	nanosleep(&ts, NULL);
}

/* Nanoseconds that this thread was ready to run and had no processor. */
static int64_t
ready_ns(int fd)
{
	char      text[128];
	long long ready = 0;
	ssize_t   n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	sscanf(text, "%*s %lld", &ready);
	return ready;
}

/* Who is ready does not sleep any more, though it stands there still. */
static void *
by_turns(void *arg)
{
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

	for (;;) {
		int64_t begin = now_ns(), middle, ready;

		turn_works(begin + TURN_NS);
		middle = now_ns();
		ready = ready_ns(fd);
		turn_sleeps();
		ready = ready_ns(fd) - ready;
		worked += middle - begin + ready;
		slept += now_ns() - middle - ready;
	}
	return arg;
}

static int
start(void *(*run)(void *), int n)
{
	pthread_attr_t attr;
	pthread_t      t;
	int            r = 0, i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (i = 0; i < n && !r; i++)
		r = pthread_create(&t, &attr, run, (void *)(uintptr_t)i);
	pthread_attr_destroy(&attr);
	return r ? i - 1 : i;
}

int
main(int argc, char **argv)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            err = COMPONENT_ERROR_INIT;
	int                               made;
	char                              line[16];

	if (argc != 4)
		return 2;
	sem_init(&begun, 0, 0);
	made = start(waiter, atoi(argv[2]));
	if (made < atoi(argv[2])) {
		printf("%d\n", made); /* limits are lower */
		return 0;
	}
	start(spinner, atoi(argv[3]));
	start(by_turns, 1);
	while (made > 0)
		made -= sem_wait(&begun) == 0;
	o.address = "127.0.0.1:0";
	o.port_file = argv[1];
	if (component_profiler_start_options(&o, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		printf("threads %lld %lld %lu\n", (long long)worked, (long long)slept, interrupted);
		fflush(stdout);
	}
	component_profiler_stop();
	return 0;
}
