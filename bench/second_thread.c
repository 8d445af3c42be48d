/*
 * second_thread.c - to preload: a thread that does nothing, for bench/programs.
 *
 * From the second thread on, glibc takes locks and watches for cancellation, and the kernel counts
 * who uses a descriptor.  A program without threads pays that for any profiler that serves.  A forked child
 * has such a thread, too.
 */
#include <pthread.h>
#include <unistd.h>

static void *
wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void
thread_make(void)
{
	pthread_t t;

	pthread_create(&t, NULL, wait_for_ever, NULL);
}

__attribute__((constructor)) static void
begin(void)
{
	thread_make();
	pthread_atfork(NULL, NULL, thread_make);
}
