/*
 * heap_load.c - a program that allocates in all ways from several threads, forks,
 * and prints the profiling server's index page.
 *
 * Arguments: address, rate, and words: lock (mlockall before), lock-after,
 * use-after-free, leave (keeps blocks at exit).
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define main index_main
#include "hooks_index.c"
#undef main

static int
has(int argc, char **argv, const char *word)
{
	for (int i = 3; i < argc; i++)
		if (!strcmp(argv[i], word))
			return 1;
	return 0;
}

static void *
load(void *arg)
{
	uint64_t x = (uintptr_t)arg * 88172645463325252ULL + 1;
	char    *p[200] = { NULL };
	size_t   size[200];

	for (int i = 0; i < 20000; i++) {
		int    k;
		size_t n;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		k = (int)(x % 200);
		n = 1 + (x >> 20) % (x % 500 == 0 ? 500000 : 3000);
		if (p[k] && (p[k][0] != (char)k || p[k][size[k] - 1] != (char)k))
			return (void *)1;
		switch ((x >> 40) % 5) {
		case 0:
			free(p[k]);
			p[k] = malloc(n);
			break;
		case 1:
			free(p[k]);
			p[k] = calloc(1, n);
			if (p[k] && p[k][n / 2])
				return (void *)2;
			break;
		case 2:
			p[k] = realloc(p[k], n);
			break;
		case 3:
			free(p[k]);
			p[k] = memalign(64, n);
			break;
		default:
			free(p[k]);
			p[k] = strdup("a string");
			n = 9;
		}
		if (!p[k])
			return (void *)3;
		size[k] = n;
		p[k][0] = p[k][n - 1] = (char)k;
	}
	for (int k = 0; k < 200; k++)
		free(p[k]);
	return NULL;
}

static int
load_on_threads(int n)
{
	pthread_t t[8];
	void     *r;
	int       bad = 0;

	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, load, (void *)(uintptr_t)(i + 1)))
			return 1;
	for (int i = 0; i < n; i++) {
		pthread_join(t[i], &r);
		if (r)
			bad = (int)(uintptr_t)r;
	}
	return bad;
}

int
main(int argc, char **argv)
{
	int (*set_rate)(uint64_t) = (int (*)(uint64_t))dlsym(RTLD_DEFAULT, "component_profiler_set_heap_rate");
	char *volatile p = malloc(100);
	int   status = 0, bad;
	pid_t pid;

	if (has(argc, argv, "lock") && mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		return 3;
	bad = argc > 2 ? index_main(2, argv) : 4;
	if (bad == 0 && set_rate)
		set_rate(strtoull(argv[2], NULL, 10));
	if (has(argc, argv, "lock-after") && mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		return 3;
	if (bad == 0)
		bad = load_on_threads(3) * 10;
	pid = fork();
	if (pid == 0)
		_exit(load((void *)9) != NULL);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (bad == 0)
		bad = status || pid < 0 ? 5 : 0;
	free(p);
	if (has(argc, argv, "use-after-free")) {
		p = malloc(1000);
		free(p);
		printf("%c", p[10]);
	}
	printf("%s %d\n", bad ? "wrong" : "fine", bad);
	return bad;
}
