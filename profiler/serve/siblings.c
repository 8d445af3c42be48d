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
 * What a stranger would get wrong: nobody can be trusted to give his place up, since workers are
 * killed.  A place belongs to the process whose number it has; when there is none of that number
 * the place is free.  Nor may a reader wait for a writer, who may have been killed in the middle:
 * `turn` is odd while the text is being written, and the reader leaves that one out.
 *
 * Why not a folder of files: a worker may have another root, another user and no folder that it may
 * write to, and what serves on a TCP port has no file.  Why not a pipe to the master: it has a loop
 * of its own and does not know us.
 *
 * The page stays when a server stops: workers that serve on look there, and so does the next start.
 * A program that never forks has one page of it.
 *
 * Tests: tests/components/adopted.t.
 */
#include <config.h>

#include "siblings.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIBLINGS_MAX 512 /* processes; who comes later serves, and is in no list */

struct place {
	_Atomic int32_t  pid;  /* 0: free; negative: taken, and url is not his yet */
	_Atomic uint32_t turn; /* odd: url is being written */
	char             url[SIBLING_URL_MAX];
};

static struct place *_Atomic places; /* shared with those that fork from here */
static struct place         *own;

static bool
is_gone(int32_t pid)
{
	return kill(abs(pid), 0) < 0 && errno == ESRCH;
}

static struct place *
all_places(void)
{
	struct place *p = places;
	void         *fresh;

	if (p)
		return p;
	fresh = mmap(NULL, SIBLINGS_MAX * sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fresh != MAP_FAILED)
		places = fresh;
	return places;
}

/* One that is free, or whose process is gone, or NULL. */
static struct place *
take_place(struct place *all)
{
	for (int dead = 0; dead < 2; dead++)
		for (size_t i = 0; i < SIBLINGS_MAX; i++) {
			int32_t pid = all[i].pid;

			if (pid && (!dead || (!is_gone(pid) && abs(pid) != (int32_t)getpid())))
				continue;
			if (atomic_compare_exchange_strong(&all[i].pid, &pid, -(int32_t)getpid()))
				return &all[i];
		}
	return NULL;
}

void
siblings_join(const char *url)
{
	struct place *all = all_places();
	uint32_t      odd;

	if (!own && all)
		own = take_place(all);
	if (!own)
		return;
	odd = own->turn | 1;
	own->turn = odd;
	atomic_thread_fence(memory_order_release);
	strncpy(own->url, url, sizeof(own->url) - 1);
	atomic_store_explicit(&own->turn, odd + 1, memory_order_release);
	own->pid = (int32_t)getpid();
}

void
siblings_leave(void)
{
	if (own)
		own->pid = 0;
	own = NULL;
}

void
siblings_forked(void)
{
	own = NULL; /* it is the parent's */
}

static bool
read_place(struct place *p, struct sibling *ret)
{
	uint32_t turn = atomic_load_explicit(&p->turn, memory_order_acquire);

	ret->pid = p->pid;
	if (ret->pid <= 0 || turn % 2)
		return false;
	memcpy(ret->url, p->url, sizeof(ret->url));
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&p->turn, memory_order_relaxed) != turn || p->pid != ret->pid || is_gone(ret->pid))
		return false;
	ret->url[sizeof(ret->url) - 1] = '\0';
	ret->is_self = ret->pid == getpid();
	return *ret->url != '\0';
}

bool
siblings_next(size_t *at, struct sibling *ret)
{
	struct place *all = places;

	while (all && *at < SIBLINGS_MAX)
		if (read_place(&all[(*at)++], ret))
			return true;
	return false;
}
