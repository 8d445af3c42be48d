/*
 * stress.c - a program that does all at once what profilers have died of, and checks
 * itself while it is profiled: tests/whole/stress.t.
 *
 *     stress ADDRESS SECONDS DIRECTORY [UNWINDER]
 *
 * STRESS_LOAD is the per cent of its time for which each worker works, 100 if it is not
 * set, and STRESS_CROWD how many threads come at once.
 *
 * Prints the profiler's URL, then a line for each thing that went wrong, then "ending";
 * when its stdin has ended, what each worker has done and "fine" or "wrong N".  Linked with -DLINKED it starts the
 * profiler itself; else that is the preloaded agent's part.
 *
 * What a stranger would get wrong: nothing may be "wrong" only because the machine
 * is slow.  The one thing with a time is the watchdog: a worker that shows no life for
 * HANG_SECONDS is named, and the process stays for gdb.
 */
#include "stress.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef LINKED
#include <component/profiler.h>
#endif

/* Of the agent, which nobody finds by a name alone; NULL, which is RTLD_DEFAULT: there is none. */
#define AGENT_CORE dlopen("libcomponent-preload-core.so", RTLD_LAZY | RTLD_NOLOAD)

#define HANG_SECONDS 90
#define REST_MAX_US  10000000
#define HEAP_RATE    4096
#define CPU_HZ       1000

struct worker {
	const char      *name;
	stress_round_fn *round;
	atomic_ulong     rounds;
	atomic_ulong     life; /* moves on with rounds, and in them */
	unsigned long    seen;
	time_t           seen_at;
	pthread_t        thread;
};

const char         *stress_dir;
atomic_bool         stress_stop;
pthread_rwlock_t    stress_loading = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_mutex_t turns = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  turn_over = PTHREAD_COND_INITIALIZER;
static unsigned long   turn, turns_given;
static atomic_ulong wrongs;
static _Thread_local struct worker *self;

static struct worker workers[] = {
	{ .name = "blocks", .round = stress_blocks },
	{ .name = "blocks", .round = stress_blocks },
	{ .name = "hand-over", .round = stress_hand_over },
	{ .name = "hand-over", .round = stress_hand_over },
	{ .name = "throw", .round = stress_throw },
	{ .name = "operators", .round = stress_operators },
	{ .name = "fork", .round = stress_fork },
	{ .name = "fork-raw", .round = stress_fork_raw },
	{ .name = "vfork", .round = stress_vfork },
	{ .name = "spawn", .round = stress_spawn },
#ifndef STRESS_TSAN /* hands signals on in calls only, and cannot be left by a jump there */
	{ .name = "jump", .round = stress_jump },
#endif
	{ .name = "alternate", .round = stress_alternate },
	{ .name = "restart", .round = stress_restart },
	{ .name = "short-threads", .round = stress_short_threads },
	{ .name = "cancel", .round = stress_cancel },
	{ .name = "plugins", .round = stress_plugins },
	{ .name = "plugins", .round = stress_plugins },
	{ .name = "locks", .round = stress_locks },
	{ .name = "locks", .round = stress_locks },
#ifndef STRESS_SANITIZED /* these need to know every stack, and much of it */
	{ .name = "contexts", .round = stress_contexts },
	{ .name = "small-stacks", .round = stress_small_stacks },
	{ .name = "clone", .round = stress_clone },
	{ .name = "crowd", .round = stress_crowd },
	{ .name = "identity", .round = stress_identity },
#endif
};
#define WORKERS (sizeof(workers) / sizeof(workers[0]))

void
stress_wrong_raw(const char *text)
{
	char line[512];
	int  n = snprintf(line, sizeof(line), "wrong: %s\n", text);

	atomic_fetch_add(&wrongs, 1);
	if (write(STDOUT_FILENO, line, (size_t)n) < 0)
		_exit(3);
}

void
stress_wrong(const char *format, ...)
{
	char    line[480];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	stress_wrong_raw(line);
}

void
stress_alive(void)
{
	if (self)
		atomic_fetch_add(&self->life, 1);
}

uint64_t
stress_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static int64_t
clock_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

void
stress_burn_us(int us)
{
	int64_t           end = clock_us(CLOCK_THREAD_CPUTIME_ID) + us;
	volatile unsigned spin = 0;

	errno = 4711;
	do {
		for (int i = 0; i < 2000; i++)
			spin += (unsigned)i;
	} while (clock_us(CLOCK_THREAD_CPUTIME_ID) < end);
	if (errno != 4711)
		stress_wrong("errno became %d while nothing but a profiler ran", errno);
}

/* As long as makes a round of so long its share of the time; never so long that it is taken for hung. */
static void
rest(int64_t worked_us, int load)
{
	int64_t left = worked_us * (100 - load) / load;

	for (left = left < REST_MAX_US ? left : REST_MAX_US; left > 0 && !atomic_load(&stress_stop); left -= 50000)
		poll(NULL, 0, left < 50000 ? (int)(left / 1000) : 50);
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	uint64_t       random = 88172645463325252ULL * (uint64_t)(w - workers + 1);
	const char    *text = getenv("STRESS_LOAD");
	int            load = text && atoi(text) > 0 ? atoi(text) : 100;

	self = w;
	while (!atomic_load(&stress_stop)) {
		int64_t begin = clock_us(CLOCK_MONOTONIC);

		w->round(&random);
		atomic_fetch_add(&w->rounds, 1);
		stress_alive();
		rest(clock_us(CLOCK_MONOTONIC) - begin, load);
	}
	return NULL;
}

void
stress_alone_begin(void)
{
	unsigned long mine;

	pthread_mutex_lock(&turns);
	mine = turns_given++;
	while (turn != mine)
		pthread_cond_wait(&turn_over, &turns);
	pthread_mutex_unlock(&turns);
}

void
stress_alone_end(void)
{
	pthread_mutex_lock(&turns);
	turn++;
	pthread_cond_broadcast(&turn_over);
	pthread_mutex_unlock(&turns);
}

/* Names the workers that stand still; false if there are none. */
static bool
hung(time_t now)
{
	bool any = false;

	for (size_t i = 0; i < WORKERS; i++) {
		struct worker *w = &workers[i];

		if (w->seen_at == 0 || atomic_load(&w->life) != w->seen) {
			w->seen = atomic_load(&w->life);
			w->seen_at = now;
		} else if (now - w->seen_at > HANG_SECONDS) {
			stress_wrong("%s has hung since its round %lu", w->name, atomic_load(&w->rounds));
			any = true;
		}
	}
	return any;
}

/* However slow the machine is, each worker has its turn. */
static bool
all_have_begun(void)
{
	for (size_t i = 0; i < WORKERS; i++)
		if (atomic_load(&workers[i].rounds) == 0)
			return false;
	return true;
}

/* Until the time is over or something hangs. */
static void
watch(int seconds)
{
	time_t now, end = time(NULL) + seconds;

	while (((now = time(NULL)) < end || !all_have_begun()) && !hung(now) && atomic_load(&wrongs) == 0)
		poll(NULL, 0, 100);
	atomic_store(&stress_stop, true);
	for (size_t i = 0; i < WORKERS; i++)
		workers[i].seen_at = now;
	for (size_t i = 0; i < WORKERS; i++) {
		while (pthread_tryjoin_np(workers[i].thread, NULL) == EBUSY) {
			if (time(NULL) - now > HANG_SECONDS) {
				stress_wrong("%s hangs at the end, after %lu rounds", workers[i].name,
					atomic_load(&workers[i].rounds));
				printf("hung\n");
				fflush(stdout);
				pause(); /* for whoever wants to look; the test kills us */
			}
			poll(NULL, 0, 10);
		}
	}
}

static void
profiler_begin(const char *address, const char *unwinder)
{
	int (*set_heap)(uint64_t) = (int (*)(uint64_t))dlsym(AGENT_CORE, "component_profiler_set_heap_rate");
	int (*set_cpu)(unsigned) = (int (*)(unsigned))dlsym(AGENT_CORE, "component_profiler_set_cpu_rate");
	int (*set_mutex)(int64_t) = (int (*)(int64_t))dlsym(AGENT_CORE, "component_profiler_set_mutex_fraction");
	int (*set_block)(int64_t) = (int (*)(int64_t))dlsym(AGENT_CORE, "component_profiler_set_block_rate");
	void (*url)(char *, size_t) = (void (*)(char *, size_t))dlsym(AGENT_CORE, "component_profiler_url");
	char text[600] = "";

#ifdef LINKED
	struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            err = COMPONENT_ERROR_INIT;

	options.address = address;
	if (unwinder && strcmp(unwinder, "frame-pointer") == 0)
		options.unwinder = COMPONENT_UNWINDER_FRAME_POINTER;
	if (component_profiler_start_options(&options, &err) < 0)
		stress_wrong("not started: %s", err.text);
#else
	(void)address;
	(void)unwinder;
#endif
	if (!url || !set_heap || !set_cpu) {
		stress_wrong("there is no profiler in this process");
		return;
	}
	if (set_mutex && set_block) {
		set_mutex(1);
		set_block(1);
	}
	set_heap(HEAP_RATE); /* the sanitizers' malloc may be out of reach: the index says so */
	STRESS_CHECK(set_cpu(CPU_HZ) == 0);
	url(text, sizeof(text));
	printf("url %s\n", text);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	char byte;

	if (argc < 4)
		return 2;
	stress_dir = argv[3];
	stress_signals_begin();
	profiler_begin(argv[1], argc > 4 ? argv[4] : NULL);
	for (size_t i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 2;
	watch(atoi(argv[2]));
	stress_blocks_end();
	printf("ending\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0) /* until nobody asks any more */
		;
	for (size_t i = 0; i < WORKERS; i++)
		printf("%s %lu\n", workers[i].name, atomic_load(&workers[i].rounds));
	fflush(stdout);
	if (atomic_load(&wrongs))
		printf("wrong %lu\n", atomic_load(&wrongs));
	else
		printf("fine\n");
	return atomic_load(&wrongs) != 0;
}
