/*
 * hooks_cost.c - N pairs of malloc and free, or of lock and unlock; under callgrind,
 * twice, the difference tells the instructions of a pair.  Arguments: N, and the rate or
 * -; with "locks" these, with "calls" as many calls of read() that fail at once.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static void
pairs(long n)
{
	static const size_t sizes[] = { 16, 24, 40, 64, 100, 200, 333, 512, 700, 1024 };
	void *volatile p;

	for (long i = 0; i < n; i++) {
		p = malloc(sizes[i % 10]);
		free(p);
	}
}

__attribute__((noinline)) static void
lock_pairs(long n)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

	for (long i = 0; i < n; i++) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
	}
}

__attribute__((noinline)) static void
calls(long n)
{
	char byte;

	for (long i = 0; i < n; i++)
		if (read(-1, &byte, 1) != -1)
			abort();
}

/* Both profiles, at the rate given. */
static int
watch_locks(long rate)
{
	static const char *const names[] = { "component_profiler_set_mutex_fraction", "component_profiler_set_block_rate" };
	int (*set)(int64_t);

	for (int i = 0; i < 2; i++) {
		set = (int (*)(int64_t))dlsym(RTLD_DEFAULT, names[i]);
		if (!set || set(rate) < 0)
			return -1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	int (*set_rate)(uint64_t) = (int (*)(uint64_t))dlsym(RTLD_DEFAULT, "component_profiler_set_heap_rate");

	if (argc < 3)
		return 1;
	if (argc > 3 && strcmp(argv[3], "calls") == 0) {
		calls(atol(argv[1]));
		return 0;
	}
	if (argc > 3) {
		if (argv[2][0] != '-' && watch_locks(atol(argv[2])) < 0)
			return 2;
		lock_pairs(atol(argv[1]));
		return 0;
	}
	if (argv[2][0] != '-' && (!set_rate || set_rate(strtoull(argv[2], NULL, 10)) < 0))
		return 2;
	pairs(atol(argv[1]));
	return 0;
}
