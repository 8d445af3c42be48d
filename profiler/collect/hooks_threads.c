/*
 * hooks_threads.c - a routine of ours before the daemon's, on each new thread.
 *
 *     pthread_create(routine, arg) -> begin(place) -> routine(arg) -> end
 *
 * What routine and arg were is kept in a place of a fixed table from the moment
 * of the call until the thread runs.
 *
 * What a stranger would get wrong:
 * - The end is a cleanup handler: threads also end by pthread_exit() and by being
 *   cancelled.  The one of C is used, not a destructor of a thread-specific key,
 *   which would run after some of the daemon's own and takes one of its keys.
 * - Nothing between the thread's birth and routine() is a cancellation point.
 * - A thread made while watching may end when nobody watches, and the reverse:
 *   the collectors decide again at each call.
 * - thrd_create's routine returns int; read as a pointer its upper half is noise.
 *
 * Why not malloc for routine and arg: a thread that is cancelled before it runs
 * would leak it, and pthread_create() would show up in heap profiles.
 * Tests: tests/test_hooks_threads.c.
 */
#include <config.h>

#include "hooks_threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cpu.h"
#include "hooks.h"
#include "hooks_owner.h"
#include "hooks_frames.h"
#include "labels_thread.h"
#include "own_thread.h"
#include "signal_calls.h"
#include "stack_table.h"
#include "threadcreate.h"
#include "threads_known.h"
#include "trace_ring.h"
#include "tracer.h"
#include "unwind.h"

#define PLACES 512 /* threads between pthread_create() and their first instruction */

struct place {
	_Atomic bool taken;
	void        *routine, *arg;
	uint32_t     stack; /* that made it, 0 for none */
	uint32_t     labels; /* of who made it, with a reference */
	uint32_t     trace_stack; /* the same for a trace, with a reference of its own */
	int32_t      creator;
	uint64_t     made_ns; /* 0: no trace was open */
};

static struct place          places[PLACES];
static _Atomic unsigned      turn;
static _Atomic unsigned long missed;

static struct place *
place_take(void)
{
	bool taken;

	for (unsigned i = 0; i < PLACES; i++) {
		struct place *p = &places[atomic_fetch_add(&turn, 1) % PLACES];

		taken = false;
		if (atomic_compare_exchange_strong(&p->taken, &taken, true))
			return p;
	}
	return NULL;
}

static _Atomic unsigned      readers; /* enum hooks_threads_reader */

static void
end(void *routine)
{
	tracer_thread_ending();
	threadcreate_on_end();
	cpu_thread_ending_from(routine);
	threads_known_end();
	labels_thread_ending(); /* after its last sample */
}

/* On the new thread: what it was made for, and the place is free again. */
static struct place
arrive(struct place *p)
{
	struct place copy = { .routine = p->routine, .arg = p->arg, .stack = p->stack,
		.labels = p->labels, .trace_stack = p->trace_stack, .creator = p->creator, .made_ns = p->made_ns };

	atomic_store(&p->taken, false);
	if (copy.stack)
		threadcreate_on_start(copy.stack);
	if (copy.made_ns)
		tracer_thread_started(copy.made_ns, copy.creator, copy.trace_stack, copy.routine);
	labels_thread_started(copy.labels);
	threads_known_begin();
	signal_calls_thread(); /* born of one that blocked all before anybody watched */
	cpu_thread_started();
	return copy;
}

static HOOKS_FRAME void *
begin(void *arg)
{
	struct place p = arrive(arg);
	void        *result;

	pthread_cleanup_push(end, p.routine);
	result = ((void *(*)(void *))p.routine)(p.arg);
	pthread_cleanup_pop(1);
	return result;
}

static HOOKS_FRAME int
begin_c11(void *arg)
{
	struct place p = arrive(arg);
	int          result;

	pthread_cleanup_push(end, p.routine);
	result = ((int (*)(void *))p.routine)(p.arg);
	pthread_cleanup_pop(1);
	return result;
}

/* Before the thread can run: its birth comes before all it does. */
static void
trace_made(struct place *p, const struct hooks_call *c)
{
	struct unwind_regs regs = { .pc = c->pc, .sp = c->sp, .fp = c->fp };
	uintptr_t          pcs[STACK_FRAMES_MAX];
	int                cut = 0;

	p->made_ns = p->trace_stack = 0;
	if (!tracer_is_on())
		return;
	p->made_ns = (uint64_t)trace_now_ns();
	p->creator = trace_tid();
	p->trace_stack = stack_table_add(pcs, hooks_frames_drop(pcs, unwind_capture(&regs, pcs, STACK_FRAMES_MAX, &cut)));
}

static int
on_made(struct hooks_call *c, void **routine, void **arg)
{
	struct place *p;

	if (own_thread_is())
		return 0;
	p = place_take();
	if (!p) {
		atomic_fetch_add(&missed, 1);
		return 0;
	}
	p->routine = *routine;
	p->arg = *arg;
	p->stack = threadcreate_on_made(c->pc, c->sp, c->fp);
	p->labels = labels_here();
	trace_made(p, c);
	*routine = c->name == HOOKS_thrd_create ? (void *)begin_c11 : (void *)begin;
	*arg = p;
	return 1;
}

static void
on_failed(void *arg)
{
	struct place *p = arg;

	if (p->stack)
		stack_table_unref(p->stack);
	labels_unref(p->labels);
	if (p->made_ns)
		stack_table_unref(p->trace_stack);
	atomic_store(&p->taken, false);
}

const char *
hooks_threads_status(void)
{
	if (hooks_are_others())
		return "threads are not seen being made: another copy of libcomponent in this process has the hooks";
	if (HOOKS_HAVE(thread_failed))
		return hooks_displaced(HOOKS_pthread_create) ?
			"threads are not seen being made: " HOOKS_DISPLACED("pthread_create") : "";
	if (&component_hooks && component_hooks.kind == HOOKS_STATIC_STUB)
		return "threads are not seen being made: the program is linked with -static";
	if (&component_hooks)
		return "threads are not seen being made: the hooks linked into the program are of another version";
	return "threads are not seen being made: the program is not linked with -lcomponent_hooks "
	       "(pkg-config --libs libcomponent) nor started with libcomponent-preload.so";
}

void
hooks_threads_watch(enum hooks_threads_reader reader, bool on)
{
	unsigned now;

	if (on)
		atomic_fetch_or(&readers, reader);
	else
		atomic_fetch_and(&readers, ~(unsigned)reader);
	if (*hooks_threads_status() || (on ? !hooks_claim() : !hooks_are_ours()))
		return;
	component_hooks.resolve();
	component_hooks.thread_made = on_made;
	component_hooks.thread_failed = on_failed;
	do { /* until the state is that of all readers: others may come and go beside us */
		now = atomic_load(&readers);
		__atomic_store_n(&component_hooks.thread_state, now ? HOOKS_ON : HOOKS_OFF, __ATOMIC_SEQ_CST);
	} while (atomic_load(&readers) != now);
}

unsigned long
hooks_threads_missed(void)
{
	return atomic_load(&missed);
}
