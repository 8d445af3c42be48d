/*
 * threads.c - the threads of the process in a random order, and a look at some.
 *
 *     /proc/self/task --> shuffled --> the next few --> quiet_read(): has it run since?
 *                            ^                            no:  it stands where it stood
 *                            +---- all had their turn ---  yes: its stack, or that it runs
 *
 * Everybody has his turn once before anybody has it twice, in an order that is drawn
 * anew each time: so each look falls on each thread with the same chance, and with the
 * least scatter that a part of them can have.
 *
 * What a stranger would get wrong:
 * - A thread that has not run since the last look has the stack it had.  That is most of
 *   them in most programs, and costs a quarter of reading it.
 * - What runs is only said to run.  Its registers cannot be had without interrupting it,
 *   and between seeing it run and a signal it may have blocked, which would be EINTR.
 * - Listing thousands of threads costs as much as looking at hundreds.  How many there
 *   are is told by the number of links, which is asked before each tick.
 * - The folder of threads stays open: a program that closes every descriptor closes it, too, and
 *   may have its number for a file of its own.  It is opened anew.
 * - The first thread may have ended by pthread_exit(3); it stands in /proc to the end and
 *   seems to run.  io_uring's threads never run the program's code.  Both are no more to
 *   be looked at: zombies.
 *
 * Tests: tests/wall/fgprof.t, tests/wall/test_wall.c.
 */
#include <config.h>

#include "threads.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dump/threads.h"
#include "hidden_frames.h"
#include "labels/thread.h"
#include "our_thread.h"
#include "pages.h"
#include "proc_self.h"
#include "table.h"

#define THREADS_FIRST ((size_t)256)
#define READ_TRIES    3 /* of one that moves meanwhile */

struct wall_thread {
	int32_t           tid;
	uint32_t          stack; /* a reference held; 0: not read */
	uint32_t          labels; /* likewise; it has to run to change them */
	struct dump_mark  mark;  /* when it was read, or seen to run */
	bool              own;
	bool              gone;
	bool              zombie;
};

double
wall_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (double)(*state >> 11) / (double)(1ULL << 53);
}

static size_t
random_below(struct wall_threads *t, size_t n)
{
	return (size_t)(wall_random(&t->random) * (double)n);
}

static void
swap(struct wall_threads *t, size_t a, size_t b)
{
	struct wall_thread held = t->all[a];

	t->all[a] = t->all[b];
	t->all[b] = held;
}

static void
shuffle(struct wall_threads *t)
{
	for (size_t i = t->count; i > 1; i--)
		swap(t, i - 1, random_below(t, i));
	t->next = 0;
}

/* ---- who is there ---- */

static size_t
threads_of_process(const struct wall_threads *t)
{
	struct stat st;

	return our_fd_is_kept(&t->task, &st) && st.st_nlink > 2 ? st.st_nlink - 2 : 0;
}

size_t
wall_threads_now(struct wall_threads *t)
{
	size_t n = threads_of_process(t), own;

	if (n != t->listed)
		t->stale = true;
	if (n == 0) { /* not a kernel that counts: each list is made anew */
		t->stale = true;
		return t->count;
	}
	own = our_thread_count() + t->zombies;
	return n > own ? n - own : 0;
}

static void
on_thread(void *arg, pid_t tid)
{
	struct wall_threads *t = arg;
	void                *p;

	if (t->count == THREADS_MAX || our_thread_has(tid))
		return;
	if (t->count == t->room) {
		p = pages_grow(t->all, &t->room, THREADS_FIRST, sizeof(*t->all));
		if (!p)
			return;
		t->all = p;
	}
	t->all[t->count++] = (struct wall_thread){ .tid = tid };
}

static void
what_was_seen_release(struct wall_thread *r)
{
	stack_table_unref(r->stack);
	labels_unref(r->labels);
	r->stack = r->labels = 0;
}

static void
all_release(struct wall_thread *all, size_t count, size_t room)
{
	for (size_t i = 0; i < count; i++)
		what_was_seen_release(&all[i]);
	if (room)
		pages_unmap(all, room * sizeof(*all));
}

/* What is known of those that were there before. */
static void
remember(struct wall_threads *t, struct wall_thread *before, size_t count)
{
	struct table by_tid = { 0 };

	for (size_t i = 0; i < count; i++)
		if (table_put(&by_tid, (uint32_t)before[i].tid, (uintptr_t)&before[i]) < 0)
			break;
	for (size_t i = 0; i < t->count; i++) {
		/* Each once: a folder that changes may name one twice. */
		struct wall_thread *same = (struct wall_thread *)(uintptr_t)table_remove(&by_tid, (uint32_t)t->all[i].tid);

		if (!same || same->gone)
			continue;
		t->all[i] = *same;
		same->stack = same->labels = 0;
	}
	table_release(&by_tid);
}

void
wall_threads_list(struct wall_threads *t)
{
	struct wall_thread *before = t->all;
	size_t              count = t->count, room = t->room;

	t->all = NULL;
	t->count = t->zombies = t->room = 0;
	t->listed = threads_of_process(t);
	t->stale = false;
	proc_self_threads(on_thread, t);
	remember(t, before, count);
	all_release(before, count, room);
	shuffle(t);
}

/* ---- a look ---- */

static uint32_t
stack_of(struct wall_threads *t, const struct dump_thread *d)
{
	unsigned n = hidden_frames_drop(t->pcs, d->count);

	if (d->truncated) {
		n -= n == STACK_FRAMES_MAX;
		t->pcs[n++] = STACK_PSEUDO_TRUNCATED;
	}
	return stack_table_add(t->pcs, n);
}

/* Its state cannot be read: of root's since a setuid inside the process, perhaps. */
static bool
look_denied(struct wall_threads *t, struct wall_thread *r)
{
	char state = quiet_state(&t->quiet, r->tid);

	if (state == 0)
		r->gone = true;
	else if (state != 'R')
		r->stack = STACK_PSEUDO_SILENT;
	return state != 0;
}

/* Running, or so it seems: of a zombie nothing ever changes. */
static bool
look_running(struct wall_threads *t, struct wall_thread *r, const struct dump_mark *now)
{
	bool same = now->cpu_ns == r->mark.cpu_ns || r->mark.cpu_ns == 0;

	r->mark = *now;
	r->zombie = same && !quiet_state(&t->quiet, r->tid);
	return !r->zombie;
}

/* True: the look counts.  False: there is no such thread, or it is none to look at. */
static bool
look_at(struct wall_threads *t, struct wall_thread *r)
{
	struct dump_thread d = { .tid = r->tid };
	enum quiet_result  result = QUIET_MOVED;

	if (our_thread_has(r->tid)) { /* it had only just begun when it was listed */
		r->own = true;
		return false;
	}
	for (int i = 0; i < READ_TRIES && result == QUIET_MOVED; i++)
		result = quiet_read(&t->quiet, &d, r->stack >= STACK_PSEUDO_MAX ? &r->mark : NULL, t->pcs,
				    STACK_FRAMES_MAX);
	if (result == QUIET_UNMOVED)
		return true;
	what_was_seen_release(r);
	if (result != QUIET_GONE)
		r->labels = labels_of(r->tid);
	switch (result) {
	case QUIET_READ:
	case QUIET_UNKNOWN:
		r->stack = stack_of(t, &d);
		r->mark = d.mark;
		return true;
	case QUIET_DENIED:
		return look_denied(t, r);
	case QUIET_GONE:
		r->gone = true;
		return false;
	case QUIET_KERNEL:
		r->zombie = true;
		return false;
	default:
		return look_running(t, r, &d.mark);
	}
}

/* It has no more turns, until it is listed again. */
static void
leave_out(struct wall_threads *t, struct wall_thread *r)
{
	what_was_seen_release(r);
	*r = t->all[--t->count];
}

static void
folder_check(struct wall_threads *t)
{
	if (our_fd_is_kept(&t->task, NULL))
		return;
	our_fd_kept_close(&t->task);
	t->quiet.task = proc_self_tasks();
	our_fd_keep(&t->task, t->quiet.task);
}

size_t
wall_threads_look(struct wall_threads *t, struct wall_look *looks, size_t max)
{
	size_t n = 0, end;

	folder_check(t);
	/* Code may have been unloaded since the last tick. */
	memset(&t->quiet.room->code, 0, sizeof(t->quiet.room->code));
	if (t->next >= t->count)
		shuffle(t);
	/* Not beyond the end: nobody twice in one tick. */
	for (end = t->count; n < max && t->next < end;) {
		struct wall_thread *r = &t->all[t->next];

		if (look_at(t, r)) {
			stack_table_ref(r->stack);
			labels_ref(r->labels);
			looks[n++] = (struct wall_look){ r->stack, r->tid, 0, r->labels };
			t->next++;
		} else if (r->zombie || r->own) {
			t->zombies += r->zombie;
			leave_out(t, r);
			end = t->count;
		} else {
			t->stale = true; /* it goes with the next list */
			t->next++;
		}
	}
	return n;
}

/* ---- begin and end ---- */

int
wall_threads_open(struct wall_threads *t)
{
	uint64_t seed = (uintptr_t)t;
	int      err;

	memset(t, 0, sizeof(*t));
	err = quiet_open(&t->quiet);
	if (err)
		return err;
	our_fd_keep(&t->task, t->quiet.task);
	/* Any: two runs shall not look alike. */
	syscall(SYS_getrandom, &seed, sizeof(seed), 1 /* GRND_NONBLOCK */);
	t->random = seed | 1;
	t->stale = true;
	return 0;
}

void
wall_threads_close(struct wall_threads *t)
{
	our_fd_kept_close(&t->task);
	t->quiet.task = -1;
	quiet_close(&t->quiet);
	all_release(t->all, t->count, t->room);
	memset(t, 0, sizeof(*t));
}

void
wall_threads_forget(struct wall_threads *t)
{
	pages_unmap(t->quiet.room, sizeof(*t->quiet.room));
	all_release(t->all, t->count, t->room);
	memset(t, 0, sizeof(*t));
}
