/*
 * threads_blocked.c - blocks a thousand threads in five ways and takes dumps of them;
 * built twice, with and without frame pointers.  See tests/threads/thousand_blocked.t.
 *
 *     threads_blocked THREADS DUMPS           quietly, so that nobody notices
 *     threads_blocked THREADS 1 setuid        and once more without the right to read them
 *     threads_blocked THREADS 1 libunwind     the first by the tables, the last by libunwind
 *
 * Prints one "key value" a line: what the last dump said and what the threads noticed.
 * With "setuid" the first dump is taken quietly, the last by signals, and both must see
 * the same stacks.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dump/threads.h"
#include "unwind.h"

#define WAYS 6

static int          pipe_fds[2], epoll_fd;
static atomic_int   ready, interrupted, woken;
static sem_t        never;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile int zero;

static void __attribute__((noinline))
wait_epoll(void)
{
	struct epoll_event e;

	if (epoll_wait(epoll_fd, &e, 1, -1) < 0 && errno == EINTR)
		interrupted++;
	zero = 0;
}

static void __attribute__((noinline))
wait_poll(void)
{
	struct pollfd p = { pipe_fds[0], POLLIN, 0 };

	if (poll(&p, 1, -1) < 0 && errno == EINTR)
		interrupted++;
	zero = 0;
}

static void __attribute__((noinline))
wait_sleep(void)
{
	struct timespec long_time = { 3600, 0 };

	if (nanosleep(&long_time, NULL) < 0 && errno == EINTR)
		interrupted++;
	zero = 0;
}

static void __attribute__((noinline))
wait_read(void)
{
	char c;

	if (read(pipe_fds[0], &c, 1) < 0 && errno == EINTR)
		interrupted++;
	zero = 0;
}

static void __attribute__((noinline))
wait_mutex(void)
{
	pthread_mutex_lock(&held);
	zero = 0;
}

static void __attribute__((noinline))
wait_semaphore(void)
{
	sem_wait(&never);
	zero = 0;
}

static void (*const ways[WAYS])(void) = { wait_epoll, wait_poll, wait_sleep, wait_read, wait_mutex, wait_semaphore };

static void __attribute__((noinline))
deep(int n, void (*wait)(void))
{
	char room[64];

	memset(room, n, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	if (n > 0)
		deep(n - 1, wait);
	else
		wait();
	zero = room[3] & 0;
}

static int
compare(const void *a, const void *b)
{
	(void)b;
	ways[*(const int *)a]();
	return zero;
}

static void *
run(void *arg)
{
	int kind = (int)(intptr_t)arg % WAYS, how = (int)(intptr_t)arg / WAYS % 3;

	ready++;
	if (how == 0) {
		ways[kind]();
	} else if (how == 1) {
		deep((int)(intptr_t)arg % 40, ways[kind]);
	} else {
		int two[2] = { kind, kind };

		qsort(two, 2, sizeof(two[0]), compare);
	}
	woken++;
	return NULL;
}

static long
switches(pid_t tid)
{
	char  path[64], line[128];
	long  n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %ld", &n);
	if (f)
		fclose(f);
	return n;
}

/* 'S' of all that were made: they have reached their waits. */
static void
settle(int threads)
{
	struct dump     d;
	struct timespec pause = { 0, 10000000 };
	int             blocked;

	do {
		nanosleep(&pause, NULL);
		if (threads_dump(&d, true))
			exit(1);
		blocked = 0;
		for (size_t i = 0; i < d.count; i++)
			blocked += d.threads[i].how == DUMP_QUIET && d.threads[i].syscall >= 0;
		dump_release(&d);
	} while (ready < threads || blocked < threads * 8 / 10);
}

static int
drop_rights(void)
{
	if (syscall(SYS_setresgid, 65534, 65534, 65534) || syscall(SYS_setresuid, 65534, 65534, 65534))
		return -1;
	return 0;
}

/* Roots reached, and each function found: by its address range, which the tables know. */
static void
print_dump(const struct dump *d)
{
	size_t whole = 0, frames = 0;

	for (size_t i = 0; i < d->count; i++) {
		whole += d->threads[i].count > 0 && !d->threads[i].truncated;
		frames += d->threads[i].count;
	}
	printf("by_libunwind %u\n", d->by_libunwind);
	printf("threads %zu\nquiet %u\nsignalled %u\nsilent %u\nwhole %zu\nframes %zu\n", d->count, d->quiet,
		d->signalled, d->silent, whole, frames);
}

static uint64_t
hash(const struct dump *d, const struct dump_thread *t)
{
	uint64_t h = 1469598103934665603ULL;

	for (uint32_t i = 1; i < t->count; i++) /* the leaf may stand a little further in a handler */
		h = (h ^ d->pcs[t->first + i]) * 1099511628211ULL;
	return h;
}

int
main(int argc, char **argv)
{
	int             threads = argc > 1 ? atoi(argv[1]) : 10, dumps = argc > 2 ? atoi(argv[2]) : 1;
	pthread_attr_t  attr;
	pthread_t       thread;
	struct dump     d, first;
	struct timespec a, b;
	long           *before, extra = 0;
	uint32_t        longest = 0;
	size_t          other = 0, same_count = 0;
	unsigned        signalled = 0;
	bool            remote;

	if (pipe2(pipe_fds, O_CLOEXEC) || (epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0 || sem_init(&never, 0, 0))
		return 1;
	pthread_mutex_lock(&held);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread, &attr, run, (void *)(intptr_t)i))
			return 1;
	remote = argc > 3 && strcmp(argv[3], "libunwind") == 0;
	if (remote && unwind_start(UNWIND_LIBUNWIND)) {
		puts("missing 1");
		return 0;
	}
	if (!remote)
		unwind_start(UNWIND_AUTO);
	settle(threads);
	if (threads_dump(&first, true))
		return 1;
	before = calloc(first.count, sizeof(*before));
	if (!before)
		return 1;
	for (size_t i = 0; i < first.count; i++)
		before[i] = switches(first.threads[i].tid);
	if (argc > 3 && strcmp(argv[3], "setuid") == 0 && drop_rights()) {
		puts("denied 1");
		return 0;
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (int i = 0; i < dumps; i++) {
		if (threads_dump_of(&d, THREADS_OWN | THREADS_NAMES | (remote ? THREADS_REMOTE : 0)))
			return 1;
		same_count += d.count == first.count;
		signalled += d.signalled;
		for (size_t k = 0; k < d.count; k++) {
			other += k > 0 && d.count == first.count && !d.threads[k].own && d.threads[k].tid == first.threads[k].tid &&
				 hash(&d, &d.threads[k]) != hash(&first, &first.threads[k]);
			if (d.threads[k].handler_ns > longest)
				longest = d.threads[k].handler_ns;
		}
		if (i + 1 < dumps)
			dump_release(&d);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	for (size_t i = 1; i < first.count; i++)
		if (first.threads[i].how == DUMP_QUIET && !first.threads[i].own)
			extra += switches(first.threads[i].tid) != before[i];
	print_dump(&d);
	printf("same_count %zu\ndifferent_stacks %zu\nsignals %u\ninterrupted %d\nwoken %d\nextra_switches %ld\n",
		same_count, other, signalled, (int)interrupted, (int)woken, extra);
	printf("handler_longest_ns %u\ncpu_us_per_dump %ld\n", longest,
		((b.tv_sec - a.tv_sec) * 1000000L + (b.tv_nsec - a.tv_nsec) / 1000) / (dumps ? dumps : 1));
	fflush(stdout);
	_exit(0);
}
