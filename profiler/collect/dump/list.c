/*
 * list.c - who is there: the threads of a dump, each once, by ascending id.
 *
 * What a stranger would get wrong:
 * - Listing a folder of /proc whose entries vanish may skip others: the number of links
 *   says how many there should be.
 * - One of ours that has no name yet would be taken for the daemon's: it is waited for.
 *
 * Tests: tests/threads.t, tests/serve_threads.t.
 */
#include <config.h>

#include "threads.h"

#include <sys/stat.h>
#include <time.h>

#include "heap_sort.h"
#include "own_fd.h"
#include "own_thread.h"
#include "parts.h"
#include "proc_self.h"

#define LIST_TRIES     3
#define NAMED_TRIES    500 /* looks whether all of ours have their names, each after ... */
#define NAMED_PAUSE_NS 1000000L

struct listing {
	struct dump *dump;
	int          err;
};

static void
on_thread(void *arg, pid_t tid)
{
	struct listing *l = arg;

	if (!l->err)
		l->err = threads_dump_add(l->dump, tid);
}

static void
on_count(void *arg, pid_t tid)
{
	(void)tid;
	++*(size_t *)arg;
}

size_t
threads_count(void)
{
	struct stat st;
	size_t      n = 0;
	int         fd = proc_self_tasks();

	if (fd < 0)
		proc_self_threads(on_count, &n);
	else if (fstat(fd, &st) == 0 && st.st_nlink > 2)
		n = st.st_nlink - 2;
	own_fd_close(fd);
	return n;
}

/* The kernel lists by age, and its numbers wrap. */
static bool
list_is_before(const struct dump_thread *a, const struct dump_thread *b)
{
	return a->tid < b->tid;
}

HEAP_SORT(list_sort, struct dump_thread, list_is_before)

/* Each thread once. */
static void
list_unique(struct dump *d)
{
	size_t to = 0;

	for (size_t i = 0; i < d->count; i++)
		if (to == 0 || d->threads[to - 1].tid != d->threads[i].tid)
			d->threads[to++] = d->threads[i];
	d->count = to;
}

static int
list(struct dump *d)
{
	struct listing l = { .dump = d };
	int            err = 0;

	for (int i = 0; i < LIST_TRIES; i++) {
		d->count = 0;
		err = proc_self_threads(on_thread, &l);
		if (err || l.err || d->count >= threads_count())
			break;
	}
	list_sort(d->threads, d->count);
	list_unique(d);
	return err ? err : l.err;
}

/* Once all threads of ours have their names.  Under a load that gives them no CPU for so
 * long, a dump with one too many is better than none. */
int
threads_list(struct dump *d)
{
	const struct timespec pause = { 0, NAMED_PAUSE_NS };

	for (int i = 0; i < NAMED_TRIES; i++) {
		unsigned made = own_threads_made();
		int      err;

		if (own_threads_named() == made) {
			err = list(d);
			if (err || own_threads_made() == made)
				return err;
		}
		nanosleep(&pause, NULL);
	}
	return list(d);
}
