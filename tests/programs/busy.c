/*
 * busy.c - a program that does all that a profile shows: it burns, waits, allocates, holds a
 * lock that others want, starts threads.  For tests/whole/sanitizers.t, plain and under tools that
 * have a hand in each of these.
 *
 * Prints "started" and waits for a line, so that rates can be set; works until its standard
 * input ends, prints "fine" and ends with status 3, which no tool ends with of itself.  It is
 * clean: what a tool reports of it is ours.  With a word as its last argument it is not:
 * "use-after-free", "race".
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LINKED
#include <component/profiler.h>
#endif

#define HERE  __attribute__((noinline, noclone)) static
#define KEPT  4000
#define BYTES 1000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int             over;
static unsigned long   turns, wrong;
static char           *kept[2][KEPT];

static int
is_over(void)
{
	return __atomic_load_n(&over, __ATOMIC_ACQUIRE);
}

/* Little at a time, with a pause after it: tools make it up to a hundred times slower. */
HERE unsigned long
burn_here(unsigned long n)
{
	volatile unsigned long sum = 0;

	for (int i = 0; i < 100000; i++)
		sum += n ^ (unsigned long)i;
	return sum;
}

HERE void
hold_here(void)
{
	pthread_mutex_lock(&lock);
	turns += burn_here(turns) & 1;
	pthread_mutex_unlock(&lock);
}

HERE char *
keep_here(int fill)
{
	char *block = malloc(BYTES);

	memset(block, fill, BYTES);
	return block;
}

HERE void
give_back_here(int fill)
{
	char *block = calloc(1, BYTES);

	block = realloc(block, 2 * BYTES);
	block[0] = (char)fill;
	free(block);
}

static void *
worker(void *arg)
{
	int which = *(int *)arg;

	for (int i = 0; !is_over(); i++) {
		if (i < KEPT)
			kept[which][i] = keep_here(which + 1);
		give_back_here(i);
		hold_here();
		poll(NULL, 0, 1);
	}
	return NULL;
}

/* Until a descriptor that nothing comes from can be read: at its end. */
HERE void *
wait_here(void *arg)
{
	struct pollfd in = { .fd = *(int *)arg, .events = POLLIN };

	while (poll(&in, 1, -1) < 0)
		;
	return NULL;
}

static void
give_all_back(void)
{
	for (int which = 0; which < 2; which++)
		for (int i = 0; i < KEPT && kept[which][i]; i++) {
			wrong += kept[which][i][BYTES - 1] != which + 1;
			free(kept[which][i]);
		}
}

static void *
writer(void *arg)
{
	for (int i = 0; i < 1000; i++)
		++*(volatile unsigned long *)arg;
	return NULL;
}

static void
do_wrong(const char *what)
{
	pthread_t thread;
	char     *block = keep_here(1);

	if (strcmp(what, "use-after-free") == 0) {
		free(block);
		((volatile char *)block)[10] = 1;
	} else if (strcmp(what, "race") == 0) {
		pthread_create(&thread, NULL, writer, &wrong);
		writer(&wrong);
		pthread_join(thread, NULL);
	}
}

int
main(int argc, char **argv)
{
	pthread_t threads[2], waiter;
	int       in = 0, which[2] = { 0, 1 };
	char      line[100];

#ifdef LINKED
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;

	options.address = argv[1];
	if (argc > 1 && component_profiler_start_options(&options, &err) < 0)
		fprintf(stderr, "%s\n", err.text);
#endif
	puts("started");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	if (argc > 2)
		do_wrong(argv[2]);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, worker, &which[i]);
	pthread_create(&waiter, NULL, wait_here, &in);
	pthread_join(waiter, NULL);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	give_all_back();
	printf("%s\n", wrong ? "wrong" : "fine");
	return 3;
}
