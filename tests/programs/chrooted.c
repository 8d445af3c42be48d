/*
 * chrooted.c - a daemon that knows nothing of us and leaves its root in main's first lines:
 * tests/whole/restricted_process.t.
 *
 * Prints "ready", works until its stdin ends, and then "fine".
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_bool stop;

static __attribute__((noinline)) unsigned
burn_in_the_new_root(unsigned n)
{
	volatile unsigned spin = n;

	for (unsigned i = 0; i < 100000; i++)
		spin += i;
	return spin;
}

static void *
work(void *arg)
{
	unsigned n = 0;

	while (!atomic_load(&stop))
		n += burn_in_the_new_root(n);
	return arg;
}

int
main(void)
{
	char      empty[] = "/tmp/component-chrooted-XXXXXX", byte;
	pthread_t t;

	if (!mkdtemp(empty) || chdir(empty) || rmdir(empty) || chroot(".")) {
		perror("cannot change the root");
		return 77;
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	pthread_create(&t, NULL, work, NULL);
	printf("ready\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	printf("fine\n");
	return 0;
}
