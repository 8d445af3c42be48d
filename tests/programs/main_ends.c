/* main_ends.c - a program whose first thread ends by pthread_exit() (tests/componentctl/ends_meanwhile.t).  With an
 * argument it has another thread, which ends when standard input does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void at_end(void) { printf(" at the end"); }

static void *work(void *arg)
{
	char byte;

	printf("worked");
	while (read(0, &byte, 1) > 0)
		;
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	atexit(at_end);
	if (argc > 1 && pthread_create(&t, NULL, work, argv))
		return 1;
	pthread_exit(NULL);
}
