/*
 * heap.c - what malloc and free take, with and without somebody who watches them.
 *
 *     heap plain|thread|on|off pairs|mixed|request OPERATIONS [count]
 *
 * Built twice from the same object: bench/heap_plain knows nothing of us, and is what
 * the agent and the peers' allocators are preloaded into; bench/heap_linked has our
 * hooks.  on: the profiler is started as one-call.c does it, at its default rate.
 * thread: nobody watches, but a second thread sleeps, as the server's does with on:
 * glibc takes its locks only once there is one, and that is not what is measured.
 * With a fourth argument all operations are one loop, for counting instructions.
 *
 *   pairs    malloc and free again, 16 to 1024 bytes
 *   mixed    4096 live blocks of 16 bytes to some KiB, a random one is replaced
 *   request  64 blocks are allocated and written, then all are freed
 */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "bench.h"

#define BATCHES 11
#define LIVE    4096
#define REQUEST 64

/* Compared are builds whose loops lie elsewhere: aligned, that makes less difference. */
#define LOOP __attribute__((noinline, aligned(64))) static void

typedef void workload_fn(long n);

static void *volatile block;
static void *live[LIVE];
static char  body[4096];
static uint32_t seed = 2463534242u;

static inline uint32_t
draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

LOOP
pairs(long n)
{
	static const size_t sizes[] = { 16, 24, 40, 64, 100, 200, 333, 512, 700, 1024 };

	for (long i = 0, k = 0; i < n; i++, k = k == 9 ? 0 : k + 1) {
		block = malloc(sizes[k]);
		free(block);
	}
}

LOOP
mixed(long n)
{
	uint32_t r;

	for (long i = 0; i < n; i++) {
		r = draw();
		free(live[r % LIVE]);
		/* Mostly small: the size halves as often as the draw's bits say. */
		live[r % LIVE] = block = malloc(16 + (r >> 12) % (8192u >> ((r >> 28) / 2)));
	}
}

LOOP
request(long n)
{
	void  *blocks[REQUEST];
	size_t size;

	for (long i = 0; i < n; i += REQUEST) {
		for (int k = 0; k < REQUEST; k++) {
			size = 64 + draw() % 2048;
			blocks[k] = block = malloc(size);
			memcpy(blocks[k], body, size);
		}
		for (int k = 0; k < REQUEST; k++)
			free(blocks[k]);
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
	workload_fn *run;
	double       taken[BATCHES];
	char         name[64];
	int64_t      begin;
	long         n;

	if (argc < 4)
		bench_die("heap plain|thread|on|off pairs|mixed|request OPERATIONS [count]");
	run = *argv[2] == 'p' ? pairs : *argv[2] == 'm' ? mixed : request;
	n = atol(argv[3]);
	if (strcmp(argv[1], "on") == 0)
		start();
	if (strcmp(argv[1], "thread") == 0)
		bench_second_thread();
	if (argc > 4) {
		run(n);
		return 0;
	}
	run(run == mixed ? 4 * LIVE : n / BATCHES); /* warm */
	for (int i = 0; i < BATCHES; i++) {
		begin = bench_ns(CLOCK_THREAD_CPUTIME_ID);
		run(n / BATCHES);
		taken[i] = (double)(bench_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / (double)(n / BATCHES);
	}
	snprintf(name, sizeof(name), "heap_%s_ns", argv[2]);
	bench_print(name, bench_median(taken, BATCHES), "ns");
	return 0;
}
