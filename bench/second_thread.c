/*
 * second_thread.c - to preload: a thread that does nothing, for bench/programs.
 *
 * From the second thread on, glibc takes locks and watches for cancellation, and the kernel counts
 * who uses a descriptor.  A program without threads pays that for any profiler that serves.  A forked child
 * has such a thread, too.
 *
 * It blocks every signal, as a profiler's threads do.  Otherwise the kernel may hand it the program's, and a
 * handler of the program runs beside its only thread.  While it did not, a backend of PostgreSQL hung in
 * setlocale(): it was forked with a lock that no thread of it held.
 */
#include <pthread.h>
#include <signal.h>
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
	sigset_t  all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&t, NULL, wait_for_ever, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

__attribute__((constructor)) static void
begin(void)
{
	thread_make();
	pthread_atfork(NULL, NULL, thread_make);
}
