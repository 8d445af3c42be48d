/*
 * locks.c - what a mutex takes, with and without somebody who watches it.
 *
 *     locks plain|thread|on|off pairs OPERATIONS [count]
 *     locks thread|on waits OPERATIONS
 *
 * Built twice from the same object, as heap.c is: bench/locks_plain knows nothing of us,
 * bench/locks_linked has our hooks.  on: the profiler runs, every contention is blamed and
 * every wait recorded, with its stack.  thread: nobody watches, but a second thread
 * sleeps, as the server's does with on.
 *
 *   pairs   lock and unlock again, nobody waits
 *   waits   two threads wait for each other in pthread_cond_wait, in turns: CPU time of the
 *           process for each wait, the switch to the other thread included
 *
 * What a stranger would get wrong: the two are kept on one processor, or what is measured
 * is how long a sleeping one takes to wake.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "bench.h"

#define BATCHES 11

/* Compared are builds whose loops lie elsewhere: aligned, that makes less difference. */
#define LOOP __attribute__((noinline, aligned(64))) static void

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  turned = PTHREAD_COND_INITIALIZER;
static long            turn, turns;

LOOP
pairs(long n)
{
	for (long i = 0; i < n; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

/* Until all turns are taken: mine are those that leave this rest. */
static void
take_turns(long mine)
{
	pthread_mutex_lock(&mutex);
	while (turn < turns) {
		if (turn % 2 != mine) {
			pthread_cond_wait(&turned, &mutex);
			continue;
		}
		turn++;
		pthread_cond_signal(&turned);
	}
	pthread_mutex_unlock(&mutex);
}

static void *
other_run(void *arg)
{
	take_turns(1);
	return arg;
}

static void
waits(long n)
{
	pthread_t other;

	turn = 0;
	turns = n;
	if (pthread_create(&other, NULL, other_run, NULL))
		bench_die("no second thread");
	take_turns(0);
	pthread_join(other, NULL);
}

static void
start(void)
{
	int (*profiler_start)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "component_profiler_start");
	int (*fraction)(int64_t) = (int (*)(int64_t))dlsym(RTLD_DEFAULT, "component_profiler_set_mutex_fraction");
	int (*rate)(int64_t) = (int (*)(int64_t))dlsym(RTLD_DEFAULT, "component_profiler_set_block_rate");

	if (!profiler_start || profiler_start("127.0.0.1:0") != 0 || fraction(1) != 0 || rate(1) != 0)
		bench_die("the profiler does not start");
}

static void
one_processor(void)
{
	cpu_set_t set;
	int       cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

int
main(int argc, char **argv)
{
	void (*run)(long);
	double    taken[BATCHES];
	clockid_t clock;
	int64_t   begin;
	long      n;

	if (argc < 4 || (n = atol(argv[3])) < BATCHES)
		bench_die("locks plain|thread|on|off pairs|waits OPERATIONS [count]");
	run = strcmp(argv[2], "waits") == 0 ? waits : pairs;
	clock = run == waits ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_THREAD_CPUTIME_ID;
	if (strcmp(argv[1], "on") == 0)
		start();
	else if (strcmp(argv[1], "thread") == 0)
		bench_second_thread();
	if (argc > 4) {
		run(n);
		return 0;
	}
	if (run == waits)
		one_processor();
	run(n / BATCHES);
	for (int i = 0; i < BATCHES; i++) {
		begin = bench_ns(clock);
		run(n / BATCHES);
		taken[i] = (double)(bench_ns(clock) - begin) / (double)(n / BATCHES);
	}
	bench_print(run == waits ? "wait_ns" : "mutex_ns", bench_median(taken, BATCHES), "ns");
	return 0;
}
