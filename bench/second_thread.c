/*
 * second_thread.c - to preload: a thread that does nothing, for bench/programs.
 *
 * From the second thread on, glibc takes locks and watches for cancellation, and the kernel counts
 * who uses a descriptor.  A program without threads pays that for any profiler that serves.  A forked child
 * has such a thread, too.
 *
 * It blocks every signal, as a profiler's threads do.  Otherwise the kernel hands it the program's, and the program's
 * handlers run beside its only thread: a postmaster then forked while that handler held a lock of setlocale(), and the
 * child hung.
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
