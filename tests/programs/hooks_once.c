/*
 * hooks_once.c - calls pthread_once() and says how often its routine ran, and how many of the calls the
 * hooks passed on.  With -DBEHIND it is a library that has a pthread_once() of its own, as a sanitizer has.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "abi.h"

#define CALLS 1000

typedef int once_fn(pthread_once_t *control, void (*routine)(void));

static once_fn *next;

#ifdef BEHIND

int
pthread_once(pthread_once_t *control, void (*routine)(void))
{
	if (!next)
		next = (once_fn *)dlsym(RTLD_NEXT, "pthread_once");
	return next(control, routine);
}

#else

static int runs, passed_on;

static void
run(void)
{
	runs++;
}

static int
count(pthread_once_t *control, void (*routine)(void))
{
	passed_on++;
	return next(control, routine);
}

/* Between the hooks and what is behind them. */
static void
count_from_now_on(void)
{
	struct component_hooks *h = dlsym(RTLD_DEFAULT, "component_hooks");

	for (uint32_t i = 0; i < h->name_count; i++) {
		if (strcmp(h->names[i], "pthread_once") != 0)
			continue;
		next = (once_fn *)h->next[i];
		h->next[i] = (void *)count;
	}
}

int
main(void)
{
	static pthread_once_t control = PTHREAD_ONCE_INIT;
	int                   failed = 0;

	count_from_now_on();
	for (int i = 0; i < CALLS; i++)
		failed += pthread_once(&control, run) != 0 || runs != 1;
	printf("ran %d, failed %d, passed on %d\n", runs, failed, passed_on);
	return 0;
}

#endif
