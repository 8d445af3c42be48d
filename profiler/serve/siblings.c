/*
 * siblings.c - where the other processes of this program serve.
 *
 * A daemon with workers has a server in each of them, at a socket or a port of its own.  The index of
 * each names all, so that a person who has found one finds the worker that is hot.
 *
 *     master: first start --> a page that forks share:  [ 812 url | 813 url | 0 | ... ]
 *     worker: component_after_fork_worker() --> takes a place         |
 *     any index  <---------------------------------------------+
 *
 * What a stranger would get wrong:
 * - Nobody can be trusted to give his place up, since workers are killed.  A place belongs to the
 *   process whose number it has; when there is none of that number, or it began at another time,
 *   the place is free.
 * - Nor may a reader wait for a writer, who may have been killed in the middle: `turn` is odd while
 *   the text is being written, and the reader leaves that one out.
 * - Each of the processes can write to the page, also one that somebody has taken over.  So a text
 *   is copied first and looked at then, and what is no address of ours is left out.
 * - A filter may end the process for kill(2): it is asked last, and not at all under a filter.
 *
 * Why not a folder of files: a worker may have another root, another user and no folder that it may
 * write to, and what serves on a TCP port has no file.  Why not a pipe to the master: it has a loop
 * of its own and does not know us.
 *
 * The page stays when a server stops: workers that serve on look there, and so does the next start.
 * A program that never forks has one page of it, and a look touches the places that were ever taken.
 *
 * Tests: tests/components/adopted.t, tests/serve/test_siblings.c.
 */
#include <config.h>

#include "siblings.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pages.h"
#include "proc_status.h"
#include "process_start.h"

#define SIBLINGS_MAX 512 /* processes; who comes later serves, and is in no list */

struct place {
	_Atomic int32_t  pid;   /* 0: free; negative: taken, and url is not his yet */
	_Atomic uint32_t turn;  /* odd: url and start are being written */
	_Atomic int64_t  start; /* of the process, in ticks since the machine's; 0 or below: not known */
	char             url[SIBLING_URL_MAX];
};

struct shared {
	_Atomic uint32_t used; /* places that were ever taken lie before it */
	struct place     places[SIBLINGS_MAX];
};

static struct shared *_Atomic shared; /* with those that fork from here */
static struct place          *own;

static int64_t
own_start(void)
{
	return process_start("/proc/self/stat", (int32_t)getpid());
}

/* This thread, who would ask; not known: it is. */
static bool
is_filtered(void)
{
	char value[PROC_STATUS_BYTES];

	return !proc_status_find(proc_status_open(), "\nSeccomp:", value) || atoi(value) != 0;
}

/* start: as its place says it; 0 or below: not known. */
static bool
is_gone(int32_t pid, int64_t start)
{
	char    path[32];
	int64_t now;

	if (pid == (int32_t)getpid())
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	now = own_start() > 0 ? process_start(path, pid) : -EXDEV;
	if (now > 0)
		return start > 0 && now != start;
	if (is_filtered())
		return now == -ENOENT || now == -ESRCH;
	/* A /proc that hides other users' processes has none of theirs. */
	return kill(pid, 0) < 0 && errno == ESRCH;
}

static struct shared *
shared_pages(void)
{
	if (!shared)
		shared = pages_map_shared(sizeof(struct shared));
	return shared;
}

/* What the page says, and no more than there are. */
static size_t
places_used(const struct shared *s)
{
	uint32_t used = s->used;

	return used < SIBLINGS_MAX ? used : SIBLINGS_MAX;
}

enum wanted { WANT_OWN_NUMBER, WANT_FREE, WANT_DEAD, WANTS };

static bool
is_wanted(const struct place *p, int32_t pid, enum wanted w)
{
	int32_t self = (int32_t)getpid(), number = pid == INT32_MIN ? 0 : abs(pid);

	if (w == WANT_OWN_NUMBER)
		return number == self;
	return w == WANT_FREE ? number == 0 : number && is_gone(number, pid > 0 ? p->start : 0);
}

/* One that a process of our number has left, or is free, or whose process is gone; only then a fresh one. */
static struct place *
take_place(struct shared *s)
{
	size_t used = places_used(s);

	for (int w = 0; w < WANTS; w++)
		for (size_t i = 0; i < used; i++) {
			int32_t pid = s->places[i].pid;

			if (is_wanted(&s->places[i], pid, (enum wanted)w) &&
			    atomic_compare_exchange_strong(&s->places[i].pid, &pid, -(int32_t)getpid()))
				return &s->places[i];
		}
	for (size_t i = used; i < SIBLINGS_MAX; i++) {
		int32_t  nobody = 0;
		uint32_t was = s->used;

		if (!atomic_compare_exchange_strong(&s->places[i].pid, &nobody, -(int32_t)getpid()))
			continue;
		while (was <= i && !atomic_compare_exchange_weak(&s->used, &was, (uint32_t)i + 1))
			;
		return &s->places[i];
	}
	return NULL;
}

void
siblings_join(const char *url)
{
	struct shared *s = shared_pages();
	uint32_t       odd;

	if (!own && s)
		own = take_place(s);
	if (!own)
		return;
	odd = own->turn | 1;
	own->turn = odd;
	atomic_thread_fence(memory_order_release);
	own->start = own_start();
	strncpy(own->url, url, sizeof(own->url) - 1);
	atomic_store_explicit(&own->turn, odd + 1, memory_order_release);
	own->pid = (int32_t)getpid();
}

void
siblings_leave(void)
{
	int32_t self = (int32_t)getpid();

	if (own)
		atomic_compare_exchange_strong(&own->pid, &self, 0);
	own = NULL;
}

void
siblings_forked(void)
{
	own = NULL; /* it is the parent's */
}

/* As listeners have them. */
static bool
is_address(const char *url)
{
	return strncmp(url, SIBLING_TCP, strlen(SIBLING_TCP)) == 0 || strncmp(url, SIBLING_UNIX, strlen(SIBLING_UNIX)) == 0;
}

static bool
read_place(struct place *p, struct sibling *ret)
{
	uint32_t turn = atomic_load_explicit(&p->turn, memory_order_acquire);
	int64_t  start = p->start;

	ret->pid = p->pid;
	if (ret->pid <= 0 || turn % 2)
		return false;
	memcpy(ret->url, p->url, sizeof(ret->url));
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&p->turn, memory_order_relaxed) != turn || p->pid != ret->pid)
		return false;
	ret->url[sizeof(ret->url) - 1] = '\0';
	ret->is_self = ret->pid == getpid();
	return is_address(ret->url) && !is_gone(ret->pid, start);
}

bool
siblings_next(size_t *at, struct sibling *ret)
{
	struct shared *s = shared;
	size_t         used = s ? places_used(s) : 0;

	while (*at < used)
		if (read_place(&s->places[(*at)++], ret))
			return true;
	return false;
}
