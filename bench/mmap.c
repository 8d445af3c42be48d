/*
 * mmap.c - what a mapping takes, with and without somebody who counts it.
 *
 *     mmap plain|off|on pairs PAIRS [count]
 *
 * Built twice from the same object, as heap.c is: bench/mmap_plain knows nothing of us, bench/mmap_linked
 * has our hooks.  on: the profiler runs, and each mmap() has its stack walked and counted.
 *
 * What a stranger would get wrong: the page is not touched, so that what is measured is two system calls
 * and the hooks, and no page fault.
 */
#include <dlfcn.h>
#include <sys/mman.h>

#include "bench.h"

#define BATCHES 11
#define BYTES   65536

__attribute__((noinline, aligned(64))) static void
pairs(long n)
{
	for (long i = 0; i < n; i++) {
		void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || munmap(p, BYTES))
			bench_die("no mapping");
	}
}

static void
start(void)
{
	int (*profiler_start)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "component_profiler_start");

	if (!profiler_start || profiler_start("127.0.0.1:0") != 0)
		bench_die("the profiler does not start");
}

int
main(int argc, char **argv)
{
	double  taken[BATCHES];
	int64_t begin;
	long    n;

	if (argc < 4 || (n = atol(argv[3])) < BATCHES)
		bench_die("mmap plain|off|on pairs PAIRS [count]");
	if (strcmp(argv[1], "on") == 0)
		start();
	if (argc > 4) {
		pairs(n);
		return 0;
	}
	pairs(n / BATCHES);
	for (int i = 0; i < BATCHES; i++) {
		begin = bench_ns(CLOCK_THREAD_CPUTIME_ID);
		pairs(n / BATCHES);
		taken[i] = (double)(bench_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / (double)(n / BATCHES);
	}
	bench_print("mmap_ns", bench_median(taken, BATCHES), "ns");
	return 0;
}
