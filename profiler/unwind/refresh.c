/*
 * refresh.c - keeps the tables those of the objects that are loaded now.
 *
 * Nobody tells us of a dlopen or dlclose: wrapping them would change whose RUNPATH
 * they use, and the loader's list cannot be read without its lock.  So a walk that
 * meets an unknown pc wakes a small thread of ours, which asks the kernel about it
 * (want.c).  Once a second it asks whether each object is still where it was, for
 * one may have taken another's place at the same addresses: no pc is unknown then, but
 * its rules are wrong.  Only where an object has come or gone, or where one has no build id and the kernel
 * answers no questions, are all mappings looked at, and read anew if they differ.  Each
 * look is one of generations.c, too, so the thread runs with frame pointers as well.  In each
 * round it judges the code that walks were led to (verdict.c).
 *
 * What a stranger would get wrong:
 * - A look takes as long as there are mappings, 60,000 in some programs.  So the thread
 *   has a purse of CPU time: it may spend a thousandth of the wall clock's, a fiftieth while
 *   CPU time is sampled, and what it has saved up to some twenty milliseconds.  When the
 *   purse is empty it rests.
 *
 * Tests: tests/unwind/test_refresh.c.
 */
#include <config.h>

#include "unwind.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "clock.h"
#include "futex.h"
#include "generations.h"
#include "maps.h"
#include "our_fd.h"
#include "our_thread.h"
#include "tables.h"
#include "verdict.h"
#include "wake.h"
#include "want.h"

#define FIRST_NS      50000000L /* a process that has lived so long is worth its tables */
#define LOOK_EVERY_NS CLOCK_NS_PER_S
#define ROOT_DEPTH    32          /* frames below a thread's own function: two or three */
#define REST_NS       100000000L  /* at least so long between two rounds */
#define SHARE_BUSY    50          /* while CPU time is sampled, instead of UNWIND_SPEND_SHARE */
#define FORGET_ROUNDS 10          /* until what was nothing is asked about again */

static struct {
	pthread_mutex_t lock; /* start and stop */
	bool            paused;  /* the thread is to be started again */
	bool            lent;    /* tables without the thread, for a dump */
	pthread_t       thread;
	atomic_bool     by_tables, owed; /* owed: a build was refused, as a reader is stuck */
	atomic_bool     busy;
	_Atomic int64_t cpu_ns, longest_ns; /* of all rounds, and of one with a rest before */
	atomic_uint     rounds, looks;
} refresh = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const struct generations_follower follower = { unwind_want, unwind_wake_to_look };

void
unwind_busy(bool busy)
{
	atomic_store(&refresh.busy, busy);
	futex_wake(&unwind_thread.state, 1); /* it may rest for longer than it needs to now */
}

/* The first tables, if they are owed, else 0; or a negative errno, then walks are by frame pointers.
 * From a thread of ours, or before a window or a dump. */
static int
first_make(void)
{
	int err;

	if (!unwind_first_is_owed())
		return 0;
	tables_stale(); /* what is built next is what later looks compare with */
	err = tables_build();
	if (err)
		unwinder_choose(NULL);
	unwind_first_settle();
	return err;
}

static int
build(void)
{
	return atomic_load(&refresh.by_tables) ? tables_build() : tables_build_ranges();
}

void
unwind_refresh(void)
{
	bool changed = generations_look() > 0;

	/* A file that was replaced may have the old one's inode: maps alone do not tell. */
	if (tables_stale() || changed || atomic_load(&refresh.owed))
		atomic_store(&refresh.owed, build() != 0);
	unwind_verdicts_settle(UNWIND_VERDICTS_ALL);
}

/* ---- the thread ---- */

struct purse {
	int64_t left_ns, wall_ns, cpu_ns;
	int64_t judged_ns; /* when verdicts were last settled between rounds */
};

static int
share(void)
{
	return atomic_load(&refresh.busy) ? SHARE_BUSY : UNWIND_SPEND_SHARE;
}

static void
purse_settle(struct purse *p)
{
	int64_t wall = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	atomic_fetch_add(&refresh.cpu_ns, cpu - p->cpu_ns);
	if (cpu - p->cpu_ns > atomic_load(&refresh.longest_ns))
		atomic_store(&refresh.longest_ns, cpu - p->cpu_ns);
	p->left_ns += (wall - p->wall_ns) / share() - (cpu - p->cpu_ns);
	if (p->left_ns > UNWIND_SPEND_NS)
		p->left_ns = UNWIND_SPEND_NS;
	p->wall_ns = wall;
	p->cpu_ns = cpu;
	atomic_store(&unwind_thread.spent, p->left_ns < 0);
}

/* Hooks wait for them: at once, if there is anything to spend; else ten times a second, as
 * stacks are cut until then. */
static void
verdicts_answer(struct purse *p)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!unwind_verdicts_wanted() || (p->left_ns < 0 && now - p->judged_ns < REST_NS))
		return;
	unwind_verdicts_settle(UNWIND_VERDICTS_WANTED);
	p->judged_ns = now;
	purse_settle(p);
}

/* Until the next round. */
static void
idle(struct purse *p)
{
	int64_t until = clock_ns(CLOCK_MONOTONIC) + LOOK_EVERY_NS, left;

	while (atomic_load(&unwind_thread.state) == UNWIND_IDLE && (left = until - clock_ns(CLOCK_MONOTONIC)) > 0) {
		futex_wait(&unwind_thread.state, UNWIND_IDLE, left);
		verdicts_answer(p);
	}
}

/* Nobody wakes us meanwhile, but to stop, for verdicts or because there is more to spend. */
static void
rest(struct purse *p)
{
	unsigned idle = UNWIND_IDLE, wanted = UNWIND_WANTED;
	int64_t  until, left;

	purse_settle(p);
	until = p->wall_ns + REST_NS;
	/* Woken by nobody, it comes back in a second anyway. */
	if (p->left_ns >= 0 && atomic_load(&unwind_thread.state) == UNWIND_IDLE)
		return;
	atomic_compare_exchange_strong(&unwind_thread.state, &idle, UNWIND_WANTED);
	for (;;) {
		purse_settle(p);
		left = until - p->wall_ns;
		if (p->left_ns < 0 && -p->left_ns * share() > left)
			left = -p->left_ns * share();
		if (left <= 0 || atomic_load(&unwind_thread.state) == UNWIND_STOPPING)
			break;
		futex_wait(&unwind_thread.state, UNWIND_WANTED, left < REST_NS ? left : REST_NS);
		verdicts_answer(p);
	}
	/* What was wanted meanwhile is due now. */
	if (!unwind_want_any() && !atomic_load(&unwind_thread.look))
		atomic_compare_exchange_strong(&unwind_thread.state, &wanted, UNWIND_IDLE);
}

static void
look_round(unsigned round)
{
	bool look = atomic_exchange(&unwind_thread.look, false);
	int  query;

	if (round % FORGET_ROUNDS == 0)
		unwind_want_forget();
	if (unwind_want_any()) {
		query = maps_query_open();
		look |= unwind_want_settle(query);
		our_fd_close(query);
	}
	if (look || generations_moved()) {
		unwind_refresh();
		unwind_want_looked();
		atomic_fetch_add(&refresh.looks, 1);
	} else {
		unwind_verdicts_settle(UNWIND_VERDICTS_SOME);
	}
	atomic_fetch_add(&refresh.rounds, 1);
}

void
unwind_spent(struct unwind_spent *ret)
{
	*ret = (struct unwind_spent){ atomic_load(&refresh.cpu_ns), atomic_load(&refresh.longest_ns),
				      atomic_load(&refresh.rounds), atomic_load(&refresh.looks) };
}

/* Where threads begin, seen from one that has just begun. */
static void
roots_note(const struct unwind_regs *regs)
{
	uintptr_t              pcs[ROOT_DEPTH];
	struct unwind_reader   reader;
	const struct unwinder *u = unwinder_of(UNWIND_TABLES);
	int                    n, truncated = 1;

	unwind_window_open(&reader, regs->sp);
	reader.here = false;
	n = u->capture ? u->capture(&reader, regs, pcs, ROOT_DEPTH, &truncated) : 0;
	if (n > 0 && !truncated && !reader.unsure)
		unwind_window_roots(pcs[n - 1], reader.root);
}

static void *
run(void *arg)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	unsigned           wanted = UNWIND_WANTED;
	struct purse       purse;

	(void)arg;
	if (unwind_first_is_owed())
		futex_wait(&unwind_thread.state, UNWIND_IDLE, FIRST_NS);
	if (atomic_load(&unwind_thread.state) != UNWIND_STOPPING && first_make())
		atomic_store(&refresh.by_tables, false);
	atomic_store(&unwind_thread.look, false);
	atomic_compare_exchange_strong(&unwind_thread.state, &wanted, UNWIND_IDLE);
	purse = (struct purse){ UNWIND_SPEND_NS, clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID), 0 };
	roots_note(&regs);
	for (unsigned round = 1;; round++) {
		idle(&purse);
		if (atomic_load(&unwind_thread.state) == UNWIND_STOPPING)
			break;
		look_round(round);
		rest(&purse);
	}
	return NULL;
}

/* With the lock held. */
static void
thread_stop(void)
{
	if (!unwind_thread.running)
		return;
	atomic_store(&unwind_thread.state, UNWIND_STOPPING);
	futex_wake(&unwind_thread.state, 1);
	pthread_join(refresh.thread, NULL);
	unwind_thread.running = false;
}

/* With the lock held. */
static void
stop(void)
{
	unwinder_choose(NULL);
	unwind_first_settle();
	thread_stop();
	tables_drop();
}

/* With the lock held. */
static int
thread_start(void)
{
	int err;

	if (unwind_thread.running)
		return 0;
	atomic_store(&unwind_thread.state, UNWIND_IDLE);
	atomic_store(&unwind_thread.spent, false);
	unwind_verdicts_fork(false);
	err = our_thread_start("component-cfi", run, NULL, &refresh.thread);
	unwind_thread.running = err == 0;
	return err;
}

int
unwind_start(enum unwind_mode mode)
{
	const struct unwinder *u;
	int                    err;

	pthread_mutex_lock(&refresh.lock);
	u = unwinder_open(mode, &err);
	if (err)
		goto out;
	if (!u->tables)
		stop();
	generations_follow(&follower);
	generations_start();
	atomic_store(&refresh.by_tables, u->tables);
	if (mode == UNWIND_AUTO && u->tables && !unwind_thread.running) {
		unwind_first_owe(); /* the thread makes them */
	} else {
		tables_stale(); /* what is built next is what later looks compare with */
		err = build();
		unwind_first_settle();
	}
	if (!u->tables)
		err = 0; /* then it goes by the bytes before return addresses alone */
	if (!err)
		err = thread_start();
	if (err)
		stop();
	else
		unwinder_choose(u);
	if (mode == UNWIND_AUTO)
		err = 0;
out:
	pthread_mutex_unlock(&refresh.lock);
	return err;
}

bool
unwind_pause(void)
{
	if (pthread_mutex_trylock(&refresh.lock))
		return false;
	refresh.paused = unwind_thread.running;
	thread_stop();
	pthread_mutex_unlock(&refresh.lock);
	return true;
}

void
unwind_resume(void)
{
	pthread_mutex_lock(&refresh.lock);
	if (refresh.paused)
		thread_start();
	refresh.paused = false;
	pthread_mutex_unlock(&refresh.lock);
}

void
unwind_lend(void)
{
	const struct unwinder *u = unwinder_of(UNWIND_TABLES);

	/* Whoever has it starts or stops the tables now, or hangs: go on with what there is. */
	if (pthread_mutex_trylock(&refresh.lock))
		return;
	if (unwind_thread.running)
		first_make();
	if (!unwind_thread.running && !refresh.lent) {
		refresh.lent = u->open && u->open() == 0 && tables_build() == 0;
		atomic_store(&refresh.by_tables, refresh.lent);
		if (refresh.lent)
			unwinder_choose(u);
	}
	pthread_mutex_unlock(&refresh.lock);
}

void
unwind_lend_end(void)
{
	if (pthread_mutex_trylock(&refresh.lock))
		return; /* given back after the next dump, or by unwind_stop() */
	if (refresh.lent && !unwind_thread.running)
		stop();
	refresh.lent = false;
	pthread_mutex_unlock(&refresh.lock);
}

void
unwind_ready(void)
{
	if (!unwind_first_is_owed())
		return;
	pthread_mutex_lock(&refresh.lock);
	first_make();
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
	unwind_thread.running = false;
	refresh.lent = refresh.paused = false;
	atomic_store(&unwind_thread.state, UNWIND_IDLE);
	atomic_store(&refresh.busy, false);
	unwind_first_settle();
	generations_forked();
	tables_forked();
	unwind_verdicts_forked();
	unwinders_forked();
}
