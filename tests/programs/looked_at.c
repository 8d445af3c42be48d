/*
 * looked_at.c - a program that is looked at from outside, for tests/componentctl/outside.t: a thread
 * burns in two functions, one waits for a lock, and the first waits for its standard input to end.
 *
 * Prints "started"; at the end "fine", and ends with status 3, if no system call was interrupted: epoll_wait(2) tells of
 * a stop, too, behind which others go on.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>

#define HERE __attribute__((noinline, noclone)) static

static pthread_mutex_t        lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;

HERE void
burn_here(void)
{
	for (int i = 0; i < 2000000; i++)
		sum += (unsigned long)i;
}

HERE void
call_here(void)
{
	burn_here();
	sum++;
}

HERE void
burn_less_here(void)
{
	for (int i = 0; i < 1000000; i++)
		sum ^= (unsigned long)i;
}

static void *
work_here(void *arg)
{
	for (;;) {
		call_here();
		burn_less_here();
	}
	return arg;
}

static void *
wait_here(void *arg)
{
	pthread_mutex_lock(&lock);
	return arg;
}

int
main(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int                input = epoll_create1(EPOLL_CLOEXEC);
	pthread_t          t;
	unsigned           interrupted = 0;

	if (epoll_ctl(input, EPOLL_CTL_ADD, 0, &event) < 0)
		perror("standard input is to be a pipe");
	pthread_mutex_lock(&lock);
	pthread_create(&t, NULL, work_here, NULL);
	pthread_create(&t, NULL, wait_here, NULL);
	puts("started");
	fflush(stdout);
	for (int n = 0; n <= 0; n = epoll_wait(input, &event, 1, 1000))
		interrupted += n < 0 && errno == EINTR;
	if (interrupted)
		printf("%u calls were interrupted\n", interrupted);
	else
		puts("fine");
	return 3;
}
