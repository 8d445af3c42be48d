/*
 * unwind.c - what one stack costs, taken in a signal handler of a thread.
 *
 *     unwind ours|libunwind|glibc warm|cold|first FRAMES
 *     unwind ours|libunwind warm|first FRAMES N      N stacks, for counting instructions
 *
 * warm: many in a row.  cold: before each one as much memory is touched as the
 * processor's caches hold.  first: the first one of a new thread, on pages
 * of its stack that are there already.
 *
 * What a stranger would get wrong: single stacks are timed by the monotonic clock
 * and not by the thread's CPU clock, which is a system call as long as the stack; of
 * many, the median does not see the few that lost the processor.  The clock is read
 * once more before it counts, so that its own cold caches are not in the figure.
 */
#include <config.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "bench.h"
#include "deep.h"
#include "unwind.h"

#define PCS          128
#define WARM_BATCHES 11
#define WARM_STACKS  1000
#define COLD_STACKS  41
#define COLD_BYTES   (64 << 20)
#define FIRST_STACKS 101
#define STACK_TOUCHED 16384 /* more than any of them takes */

typedef int backtrace_fn(void **pcs, int max);

static backtrace_fn  *theirs; /* NULL: ours */
static const char    *mode;
static unsigned       frames;
static long           counted; /* 0: timed */
static unsigned char *evict;
static double         taken[FIRST_STACKS];
static unsigned       taken_count, depth;

/* What callgrind is told to count. */
__attribute__((noinline)) static unsigned
measured(void *ucontext)
{
	uintptr_t          pcs[PCS];
	struct unwind_regs regs;
	int                truncated;

	if (theirs)
		return (unsigned)theirs((void **)pcs, PCS);
	unwind_regs_from_ucontext(&regs, ucontext);
	return unwind_capture(&regs, pcs, PCS, &truncated);
}

/* A new thread has never been so deep, and a page fault takes twice as long as our walk. */
__attribute__((noinline)) static void
stack_touch(void)
{
	volatile char room[STACK_TOUCHED];

	for (size_t i = 0; i < sizeof(room); i += 512)
		room[i] = 0;
	(void)room[0];
}

static void
measure_one(void *ucontext)
{
	int64_t begin;

	stack_touch();
	bench_ns(CLOCK_MONOTONIC);
	begin = bench_ns(CLOCK_MONOTONIC);
	depth = measured(ucontext);
	taken[taken_count++] = (double)(bench_ns(CLOCK_MONOTONIC) - begin);
}

static void
measure_warm(void *ucontext)
{
	int64_t begin;

	measured(ucontext);
	for (int i = 0; i < WARM_BATCHES; i++) {
		begin = bench_ns(CLOCK_THREAD_CPUTIME_ID);
		for (int k = 0; k < WARM_STACKS; k++)
			depth = measured(ucontext);
		taken[taken_count++] = (double)(bench_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / WARM_STACKS;
	}
}

static void
measure_cold(void *ucontext)
{
	measured(ucontext);
	for (int i = 0; i < COLD_STACKS; i++) {
		for (size_t k = 0; k < COLD_BYTES; k += 64)
			evict[k]++;
		measure_one(ucontext);
	}
}

static void
on_signal(int number, siginfo_t *info, void *ucontext)
{
	(void)number;
	(void)info;
	if (*mode == 'f')
		measure_one(ucontext);
	else if (counted)
		for (long i = 0; i < counted; i++)
			depth = measured(ucontext);
	else if (*mode == 'w')
		measure_warm(ucontext);
	else
		measure_cold(ucontext);
}

static void
arrive(void)
{
	raise(SIGPROF);
}

static void *
run(void *arg)
{
	deep_call(frames, arrive);
	return arg;
}

static void
thread_once(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, NULL) != 0)
		bench_die("no thread");
	pthread_join(t, NULL);
}

static void
choose(const char *variant)
{
	const char *library = strcmp(variant, "glibc") == 0 ? "libc.so.6" : "libunwind.so.8";
	void       *handle;

	if (strcmp(variant, "ours") == 0) {
		if (unwind_start(UNWIND_TABLES) < 0)
			bench_die("unwind_start");
		/* Until then no thread's stack is remembered, however many are taken. */
		for (int i = 0; i < 5000 && !unwind_roots_known(); i++)
			usleep(1000);
		return;
	}
	/* libunwind has a backtrace() of its own: by handle, not by name. */
	handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	theirs = handle ? (backtrace_fn *)dlsym(handle, *library == 'l' && library[3] == 'c' ? "backtrace" : "unw_backtrace") : NULL;
	if (!theirs)
		bench_skip("libunwind.so.8 is not here");
}

int
main(int argc, char **argv)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	char             name[64];
	long             n;

	if (argc < 4)
		bench_die("unwind ours|libunwind|glibc warm|cold|first FRAMES [N]");
	mode = argv[2];
	frames = (unsigned)atoi(argv[3]);
	counted = argc > 4 ? atol(argv[4]) : 0;
	if (frames == 0 || frames > DEEP_MAX || counted > FIRST_STACKS * (*mode == 'f' ? 1 : 1000000))
		bench_die("no such FRAMES or N");
	choose(argv[1]);
	if (*mode == 'c' && !(evict = calloc(1, COLD_BYTES)))
		bench_die("no memory");
	sigfillset(&sa.sa_mask);
	sigaction(SIGPROF, &sa, NULL);
	n = *mode != 'f' ? 1 : counted ? counted : FIRST_STACKS;
	for (long i = 0; i < n; i++)
		thread_once();
	/* Ours begins where the signal came; theirs in the handler. */
	if (depth < frames + 2 || depth > frames + 10)
		bench_die("that is not the stack");
	printf("# %s: %u frames\n", argv[1], depth);
	if (counted)
		return 0;
	snprintf(name, sizeof(name), "unwind_%s_%u_ns", mode, frames);
	bench_print(name, bench_median(taken, taken_count), "ns");
	return 0;
}
