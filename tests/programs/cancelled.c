/*
 * cancelled.c - threads that are cancelled while their stack is being taken, for cancelled_threads.t.
 *
 * Each asks for asynchronous cancellation and computes, deep in calls, so that the walk of
 * its stack is where it is found mostly.  Meanwhile a window of 1 kHz is open.  Prints
 * how many there were; the window is written to `during`, one that comes after it all to `after`.
 */
#define _GNU_SOURCE
#include <component/profiler.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { AT_ONCE = 3, DEPTH = 100 };

static volatile unsigned long sink;
static atomic_int             computing;

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static __attribute__((noinline)) void
deep(int n)
{
	volatile char room[64];

	memset((char *)room, n, sizeof(room));
	if (n > 0) {
		deep(n - 1);
	} else {
		computing++;
		for (;;)
			sink++;
	}
	sink += (unsigned long)room[3];
}

static void *
compute(void *arg)
{
	int old;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	deep(DEPTH);
	return arg;
}

static void
profile_to(const char *path, int seconds)
{
	struct component_profile_write_options o = COMPONENT_PROFILE_WRITE_OPTIONS_INIT;
	int                                    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	o.seconds = seconds;
	if (component_profile_write("profile", fd, &o) < 0)
		abort();
	close(fd);
}

static void *
watch(void *arg)
{
	profile_to("during", *(int *)arg);
	return NULL;
}

int
main(int argc, char **argv)
{
	int             seconds = argc > 1 ? atoi(argv[1]) : 2;
	unsigned        seed = 1, count = 0;
	struct timespec pause = { 0, 0 };
	pthread_t       threads[AT_ONCE], watcher;
	double          end = now() + seconds;

	component_profiler_set_cpu_rate(1000);
	if (component_profiler_start("127.0.0.1:0") < 0)
		return 1;
	pthread_create(&watcher, NULL, watch, &seconds);
	for (; now() < end; count += AT_ONCE) {
		computing = 0;
		for (int i = 0; i < AT_ONCE; i++)
			pthread_create(&threads[i], NULL, compute, NULL);
		while (computing < AT_ONCE)
			usleep(100);
		pause.tv_nsec = 1000000 + rand_r(&seed) % 3000000;
		nanosleep(&pause, NULL);
		for (int i = 0; i < AT_ONCE; i++)
			pthread_cancel(threads[i]);
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(threads[i], NULL);
	}
	pthread_join(watcher, NULL);
	printf("cancelled %u\n", count);
	pthread_create(&threads[0], NULL, compute, NULL);
	profile_to("after", 1);
	pthread_cancel(threads[0]);
	pthread_join(threads[0], NULL);
	return 0;
}
