/*
 * first_thread.c - pthread_exit() of the first thread: a program whose threads have all ended so ends, too.
 *
 *     pthread_exit() in main() ──▶ hook ──▶ at_exit.c: a thread that waits until no other of the program's is left
 *
 * glibc ends a process by exit(0) when its last thread has ended.  Ours would keep it for ever.
 *
 * Tests: tests/componentctl/ends_meanwhile.t.
 */
#include <config.h>

#include "first_thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <threads.h>

#include "abi.h"
#include "at_exit.h"

#define EXPORT __attribute__((visibility("default")))

static __typeof__(component_profiler_first_ends) *first_ends;
static pthread_t                                  first;

void
first_thread_begin(void *core)
{
	first_ends = (__typeof__(first_ends))dlsym(core, "component_profiler_first_ends");
	if (!first_ends)
		dlerror(); /* its memory: a program's own core has no such function */
	first = pthread_self();
}

EXPORT void
pthread_exit(void *value)
{
	static void (*real)(void *) __attribute__((noreturn));

	if (!real)
		real = (__typeof__(real))(HOOKS_HAVE(behind) ? component_hooks.behind("pthread_exit") : dlsym(RTLD_NEXT, "pthread_exit"));
	if (first_ends && pthread_equal(pthread_self(), first))
		first_ends();
	real(value);
}

/* glibc's does not come by the one above. */
EXPORT void
thrd_exit(int result)
{
	pthread_exit((void *)(uintptr_t)(unsigned)result);
}
