/*
 * hooks_once.c - calls pthread_once() and says how often its routine ran, and how often a library behind
 * the hooks was called.  With -DBEHIND it is that library, which counts as a sanitizer's would look.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define CALLS 1000

#ifdef BEHIND

int once_calls;

int
pthread_once(pthread_once_t *control, void (*routine)(void))
{
	static int (*next)(pthread_once_t *, void (*)(void));

	if (!next)
		next = (int (*)(pthread_once_t *, void (*)(void)))dlsym(RTLD_NEXT, "pthread_once");
	once_calls++;
	return next(control, routine);
}

#else

static int runs;

static void
run(void)
{
	runs++;
}

int
main(void)
{
	static pthread_once_t control = PTHREAD_ONCE_INIT;
	const int            *behind = dlsym(RTLD_DEFAULT, "once_calls");
	int                   before = behind ? *behind : 0, failed = 0;

	for (int i = 0; i < CALLS; i++)
		failed += pthread_once(&control, run) != 0 || runs != 1;
	printf("ran %d, failed %d, behind %d\n", runs, failed, behind ? *behind - before : 0);
	return 0;
}

#endif
