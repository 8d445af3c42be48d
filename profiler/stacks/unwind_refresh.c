/*
 * unwind_refresh.c - keeps the tables those of the objects that are loaded now.
 *
 * Nobody tells us of a dlopen or dlclose: wrapping them would change whose RUNPATH
 * they use, and the loader's list cannot be read without its lock.  So a walk that
 * meets an unknown pc wakes a small thread of ours, which compares the executable
 * mappings with those the tables were made from, and reads them anew if they differ.
 * It also looks once a second, for an object that took another's place at the same
 * addresses: no pc is unknown then, but its rules are wrong.  Each look is one of
 * generations.c, too, so the thread runs with frame pointers as well.
 *
 * What a stranger would get wrong: the waker may be a signal handler, so waking is
 * one futex call and only the first of many does it; and code made at run time is
 * unknown for good, so the thread rests between two looks whatever happens.
 *
 * Tests: tests/test_unwind_refresh.c.
 */
#include <config.h>

#include "unwind.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "generations.h"
#include "own_thread.h"
#include "tables.h"
#include "unwind_remote.h"
#include "unwind_tables.h"

#define LOOK_EVERY_NS 1000000000L /* costs one read of /proc/self/maps */
#define ROOT_DEPTH    32          /* frames below a thread's own function: two or three */
#define REST_NS       100000000L  /* at least so long between two looks */

enum { IDLE, WANTED, STOPPING };

static struct {
	pthread_mutex_t lock; /* start and stop */
	bool            running;
	bool            lent;    /* tables without the thread, for a dump */
	pthread_t       thread;
	atomic_uint     state; /* a futex */
	atomic_bool     by_tables, owed; /* owed: a build was refused, as a reader is stuck */
} refresh = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
state_wait(unsigned while_it_is, long ns)
{
	struct timespec left = { ns / 1000000000L, ns % 1000000000L };

	syscall(SYS_futex, &refresh.state, FUTEX_WAIT_PRIVATE, while_it_is, &left, NULL, 0);
}

static void
state_wake(void)
{
	syscall(SYS_futex, &refresh.state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void
unwind_refresh_want(void)
{
	unsigned idle = IDLE;
	int      saved = errno;

	if (atomic_compare_exchange_strong(&refresh.state, &idle, WANTED))
		state_wake();
	errno = saved;
}

void
unwind_refresh(void)
{
	bool changed = generations_look() > 0;

	if (!atomic_load(&refresh.by_tables))
		return;
	/* A file that was replaced may have the old one's inode: maps alone do not tell. */
	if (tables_stale() || changed || atomic_load(&refresh.owed))
		atomic_store(&refresh.owed, tables_build() == -EBUSY);
}

/* Where threads begin, seen from one that has just begun. */
static void
roots_note(const struct unwind_regs *regs)
{
	uintptr_t            pcs[ROOT_DEPTH];
	struct unwind_reader reader;
	int                  n, truncated = 1;

	unwind_window_open(&reader, regs->sp);
	n = unwind_tables_walk(&reader, regs, pcs, ROOT_DEPTH, &truncated);
	if (n > 0 && !truncated)
		unwind_window_roots(pcs[n - 1], reader.root);
}

static void *
run(void *arg)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	unsigned           wanted;

	(void)arg;
	roots_note(&regs);
	while (atomic_load(&refresh.state) != STOPPING) {
		state_wait(IDLE, LOOK_EVERY_NS);
		if (atomic_load(&refresh.state) == STOPPING)
			break;
		unwind_refresh();
		/* WANTED stays during the rest, so that nobody wakes us for it. */
		state_wait(WANTED, REST_NS);
		wanted = WANTED;
		atomic_compare_exchange_strong(&refresh.state, &wanted, IDLE);
	}
	return NULL;
}

/* With the lock held. */
static void
stop(void)
{
	unwind_use_tables(false);
	unwind_remote_use(false);
	if (refresh.running) {
		atomic_store(&refresh.state, STOPPING);
		state_wake();
		pthread_join(refresh.thread, NULL);
		refresh.running = false;
	}
	tables_drop();
}

/* With the lock held. */
static int
thread_start(void)
{
	int err;

	if (refresh.running)
		return 0;
	atomic_store(&refresh.state, IDLE);
	err = own_thread_start("component-cfi", run, NULL, &refresh.thread);
	refresh.running = err == 0;
	return err;
}

int
unwind_start(enum unwind_mode mode)
{
	int err = 0;

	pthread_mutex_lock(&refresh.lock);
	unwind_remote_use(false);
	if (mode == UNWIND_LIBUNWIND) {
		err = unwind_remote_open();
		if (err)
			goto out;
	}
	if (mode == UNWIND_FRAME_POINTER)
		stop();
	generations_start();
	atomic_store(&refresh.by_tables, mode != UNWIND_FRAME_POINTER);
	if (mode != UNWIND_FRAME_POINTER) {
		tables_stale(); /* what is built next is what later looks compare with */
		err = tables_build();
	}
	if (!err)
		err = thread_start();
	if (err)
		stop();
	else
		unwind_use_tables(mode != UNWIND_FRAME_POINTER);
	if (mode == UNWIND_AUTO)
		err = 0;
	unwind_remote_use(mode == UNWIND_LIBUNWIND && !err);
out:
	pthread_mutex_unlock(&refresh.lock);
	return err;
}

void
unwind_lend(void)
{
	/* Whoever has it starts or stops the tables now, or hangs: go on with what there is. */
	if (pthread_mutex_trylock(&refresh.lock))
		return;
	if (!refresh.running && !refresh.lent) {
		refresh.lent = tables_build() == 0;
		if (refresh.lent)
			unwind_use_tables(true);
	}
	pthread_mutex_unlock(&refresh.lock);
}

void
unwind_lend_end(void)
{
	if (pthread_mutex_trylock(&refresh.lock))
		return; /* given back after the next dump, or by unwind_stop() */
	if (refresh.lent && !refresh.running)
		stop();
	refresh.lent = false;
	pthread_mutex_unlock(&refresh.lock);
}

void
unwind_stop(void)
{
	pthread_mutex_lock(&refresh.lock);
	stop();
	generations_stop();
	pthread_mutex_unlock(&refresh.lock);
}

void
unwind_forked(void)
{
	pthread_mutex_init(&refresh.lock, NULL);
	refresh.running = false;
	refresh.lent = false;
	atomic_store(&refresh.state, IDLE);
	generations_forked();
	tables_forked();
	unwind_remote_forked();
}
