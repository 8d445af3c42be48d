/*
 * dump.c - what a dump of all threads takes of the thread that makes it.
 *
 *     dump stacks THREADS     stacks alone, of threads that have run since the last dump
 *     dump debug2 THREADS     stacks, names, lines and the text of goroutine?debug=2
 *     dump again THREADS      stacks of threads that have not run since the last dump
 *     dump handler THREADS    all of them asked by a signal: the time inside the handler
 *     dump eu-stack THREADS   eu-stack --raw on this process, between two dumps
 *
 * The threads are blocked in five ways below 10 to 40 frames.  CPU time, the median of
 * some dumps; the first one, which has tables and files to read, is not among them, but
 * is printed.
 *
 * What a stranger would get wrong:
 * - A thread's first signal may be the first to reach a page of its stack, and a page fault
 *   takes longer than the handler: that round is printed, too, and not among the others.
 * - A dump that remembers the one before it takes a quarter, so what is measured as
 *   "stacks" and "debug2" remembers nothing.
 * - eu-stack stops the process that waits for it: its time is its own CPU time.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "deep.h"
#include "encode.h"
#include "symbols.h"
#include "dump/signal.h"
#include "dump/snapshot.h"
#include "dump/threads.h"
#include "unwind.h"

#define WAYS         5
#define ROUNDS       5
#define SYMBOL_BYTES ((size_t)64 << 20)
#define STACK_BYTES  65536

extern char **environ;

static int        pipe_fds[2], epoll_fd, threads;
static atomic_int ready;
static sem_t      never;

static void
wait_epoll(void)
{
	struct epoll_event e;

	ready++;
	while (epoll_wait(epoll_fd, &e, 1, -1) < 0 && errno == EINTR)
		;
}

static void
wait_poll(void)
{
	struct pollfd p = { pipe_fds[0], POLLIN, 0 };

	ready++;
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

static void
wait_sleep(void)
{
	struct timespec left = { 3600, 0 };

	ready++;
	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static void
wait_read(void)
{
	char c;

	ready++;
	while (read(pipe_fds[0], &c, 1) < 0 && errno == EINTR)
		;
}

static void
wait_semaphore(void)
{
	ready++;
	while (sem_wait(&never) < 0 && errno == EINTR)
		;
}

static void *
run(void *arg)
{
	static void (*const ways[WAYS])(void) = { wait_epoll, wait_poll, wait_sleep, wait_read, wait_semaphore };
	unsigned            n = (unsigned)(uintptr_t)arg;

	deep_call(10 + n % 31, ways[n % WAYS]);
	return NULL;
}

static void
take(struct dump *d, unsigned want)
{
	int r = threads_dump_of(d, want);

	if (r < 0)
		bench_die(strerror(-r));
	if (d->count < (size_t)threads)
		bench_die("a dump without all threads");
}

/* Until all of them are blocked where they are meant to be. */
static void
make_threads(void)
{
	pthread_attr_t attr;
	pthread_t      thread;
	struct dump    d;
	unsigned       quiet = 0;

	if (pipe(pipe_fds) || (epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0 || sem_init(&never, 0, 0))
		bench_die("no descriptors");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread, &attr, run, (void *)(uintptr_t)i)) {
			fprintf(stderr, "a limit of this machine keeps %d threads from being made\n", threads);
			exit(BENCH_SKIPPED);
		}
	do {
		usleep(20000);
		if (ready < threads)
			continue;
		take(&d, THREADS_OWN);
		quiet = d.quiet;
		dump_release(&d);
	} while (ready < threads || quiet < (unsigned)threads);
}

static int
drop(void *arg, const void *data, size_t size)
{
	(void)data;
	*(size_t *)arg += size;
	return 0;
}

static void
write_text(struct dump *d)
{
	struct symbols *s;
	size_t          size = 0;

	dump_tag(d);
	if (symbols_open(SYMBOL_BYTES, &s) < 0 || encode_panic(d, s, drop, &size) < 0)
		bench_die("no text");
	symbols_close(s);
	if (size < (size_t)threads * 100)
		bench_die("that text does not have all threads");
}

static double
dump_ms(unsigned want, int text)
{
	struct dump d;
	int64_t     begin = bench_ns(CLOCK_THREAD_CPUTIME_ID);

	take(&d, want);
	if (text)
		write_text(&d);
	dump_release(&d);
	return (double)(bench_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e6;
}

static double
dump_median_ms(unsigned want, int text)
{
	double taken[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		taken[i] = dump_ms(want, text);
	return bench_median(taken, ROUNDS);
}

static void
measure_dump(const char *form, unsigned want, int text)
{
	char   name[64];
	double first = dump_ms(want, text);

	snprintf(name, sizeof(name), "dump_%dk%s_cpu_ms", threads / 1000, form);
	bench_print(name, dump_median_ms(want, text), "ms");
	printf("# the first one took %.1f ms\n", first);
}

/* Each blocked thread asked by a signal; the time inside its handler, in us, to taken. */
static size_t
ask_all(double *taken)
{
	struct threads_request *q;
	struct threads_slot    *slots;
	struct dump             d;
	size_t                  n = 0, asked = 0;

	take(&d, THREADS_NAMES);
	if (threads_request_new((size_t)threads, &q) < 0)
		bench_die("no memory");
	slots = threads_request_slots(q);
	for (size_t i = 0; i < d.count && asked < (size_t)threads; i++)
		if (d.threads[i].how == DUMP_QUIET)
			slots[asked++].tid = d.threads[i].tid;
	dump_release(&d);
	if (asked < (size_t)threads || threads_request_run(q) < 0)
		bench_die("the threads cannot be asked");
	for (size_t i = 0; i < asked; i++)
		if (slots[i].answer == THREADS_ANSWERED)
			taken[n++] = slots[i].took_ns / 1e3;
	threads_request_free(q);
	return n;
}

static double
p99(double *taken, size_t n)
{
	qsort(taken, n, sizeof(*taken), bench_compare);
	return taken[n * 99 / 100];
}

static void
measure_handler(void)
{
	double *taken = malloc(sizeof(*taken) * (size_t)threads * ROUNDS), first;
	size_t  n;

	if (!taken)
		bench_die("no memory");
	n = ask_all(taken);
	if (n == 0)
		bench_die("no thread gave an answer");
	first = p99(taken, n);
	n = 0;
	for (int round = 0; round < ROUNDS; round++)
		n += ask_all(taken + n);
	if (n < (size_t)threads * (ROUNDS - 1))
		bench_die("too many threads gave no answer");
	bench_print("dump_handler_p99_us", p99(taken, n), "us");
	printf("# half of %zu handlers took less than %.2f us\n", n, taken[n / 2]);
	printf("# the first time, on pages of stacks that nobody had touched: %.2f us\n", first);
}

/* Lines "TID 4711:". */
static int
threads_in(int fd)
{
	FILE *f = fdopen(dup(fd), "r");
	char  line[256];
	int   n = 0;

	if (!f)
		return 0;
	rewind(f);
	while (fgets(line, sizeof(line), f))
		n += strncmp(line, "TID ", 4) == 0;
	fclose(f);
	return n;
}

/* The CPU time of eu-stack on us. */
static double
eu_stack_ms(void)
{
	char                       pid[16], name[] = "eu-stack", raw[] = "--raw", on[] = "-p";
	char                      *argv[] = { name, raw, on, pid, NULL };
	posix_spawn_file_actions_t files;
	struct rusage              used;
	pid_t                      child;
	int                        status, out = memfd_create("stacks", MFD_CLOEXEC);

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	if (posix_spawnp(&child, name, &files, NULL, argv, environ) != 0)
		bench_skip("eu-stack is not here");
	while (wait4(child, &status, 0, &used) < 0 && errno == EINTR)
		;
	/* It says 1 where it could not follow some stack to its end. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1 || threads_in(out) < threads)
		bench_skip("eu-stack may not look at this process");
	close(out);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
}

static void
measure_eu_stack(void)
{
	double ours[2], theirs;

	ours[0] = dump_median_ms(THREADS_OWN, 0);
	theirs = eu_stack_ms();
	ours[1] = dump_median_ms(THREADS_OWN, 0);
	bench_print("dump_vs_eustack_ratio", 2 * theirs / (ours[0] + ours[1]), "ratio");
	printf("# eu-stack took %.0f ms, ours %.1f ms\n", theirs, (ours[0] + ours[1]) / 2);
}

int
main(int argc, char **argv)
{
	if (argc != 3 || (threads = atoi(argv[2])) < 1)
		bench_die("dump stacks|debug2|again|handler|eu-stack THREADS");
	unwind_start(UNWIND_TABLES);
	make_threads();
	if (strcmp(argv[1], "stacks") == 0)
		measure_dump("", THREADS_OWN, 0);
	else if (strcmp(argv[1], "debug2") == 0)
		measure_dump("_debug2", THREADS_OWN | THREADS_NAMES, 1);
	else if (strcmp(argv[1], "again") == 0)
		measure_dump("_again", THREADS_OWN | THREADS_KEEP, 0);
	else if (strcmp(argv[1], "handler") == 0)
		measure_handler();
	else if (strcmp(argv[1], "eu-stack") == 0)
		measure_eu_stack();
	else
		bench_die(argv[1]);
	fflush(stdout);
	_exit(0);
}
