/*
 * thread_events.c - a routine of ours before the daemon's, on each new thread.
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
 * Why slots that the linker lays side by side: none can fail to register, or comes too late
 * for a thread that is just being made.
 * Tests: tests/hooks/test_thread_start.c.
 */
#include <config.h>

#include "thread_events.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "abi.h"
#include "fork.h"
#include "hidden_frames.h"
#include "our_mask.h"
#include "our_thread.h"
#include "unwind.h"
#include "which_core.h"

#define PLACES 512 /* threads between pthread_create() and their first instruction */

struct place {
	_Atomic bool              taken;
	bool                      in_fork; /* made by a library's fork handler, while we block all signals (fork.h) */
	uint64_t                  mask;    /* then: what the thread is to have blocked */
	void                     *routine, *arg;
	struct thread_events_note notes[THREAD_EVENTS_NOTES];
};

extern const struct thread_events_slot *const __start_component_threads[] __attribute__((visibility("hidden"), weak));
extern const struct thread_events_slot *const __stop_component_threads[] __attribute__((visibility("hidden"), weak));

static struct thread_events_slot slots[THREAD_EVENTS_RANKS];
static struct place          places[PLACES];
static _Atomic unsigned      turn;
static _Atomic unsigned long missed;
static _Atomic unsigned      readers; /* a bit for each rank */

/* Before the program's own constructors, which may make threads. */
__attribute__((constructor(101))) static void
slots_find(void)
{
	for (const struct thread_events_slot *const *s = __start_component_threads; s < __stop_component_threads; s++)
		slots[(*s)->rank] = **s;
}

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

static void
end(void *routine)
{
	for (int i = THREAD_EVENTS_RANKS; i-- > 0;)
		if (slots[i].end)
			slots[i].end();
		else if (slots[i].end_from)
			slots[i].end_from(routine);
}

/* On the new thread: what it was made for, and the place is free again. */
static void
arrive(struct place *p, void **ret_routine, void **ret_arg)
{
	struct thread_events_note notes[THREAD_EVENTS_NOTES];
	bool                      in_fork = p->in_fork;
	uint64_t                  mask = p->mask;

	*ret_routine = p->routine;
	*ret_arg = p->arg;
	memcpy(notes, p->notes, sizeof(notes));
	atomic_store(&p->taken, false);
	if (in_fork)
		our_mask_change(SIG_SETMASK, &mask, NULL);
	for (int i = 0; i < THREAD_EVENTS_NOTES; i++)
		if (slots[i].started)
			slots[i].started(&notes[i], *ret_routine);
	for (int i = THREAD_EVENTS_NOTES; i < THREAD_EVENTS_RANKS; i++)
		if (slots[i].begin)
			slots[i].begin();
}

static HOOKS_FRAME void *
begin(void *arg)
{
	void *routine, *result;

	arrive(arg, &routine, &arg);
	pthread_cleanup_push(end, routine);
	result = ((void *(*)(void *))routine)(arg);
	pthread_cleanup_pop(1);
	return result;
}

static HOOKS_FRAME int
begin_c11(void *arg)
{
	void *routine;
	int   result;

	arrive(arg, &routine, &arg);
	pthread_cleanup_push(end, routine);
	result = ((int (*)(void *))routine)(arg);
	pthread_cleanup_pop(1);
	return result;
}

static int
on_made(struct hooks_call *c, void **routine, void **arg)
{
	struct unwind_regs from = { .pc = c->pc, .sp = c->sp, .fp = c->fp };
	struct place      *p;

	if (our_thread_is())
		return 0;
	p = place_take();
	if (!p) {
		atomic_fetch_add(&missed, 1);
		return 0;
	}
	p->routine = *routine;
	p->arg = *arg;
	p->in_fork = fork_signals_mask(&p->mask);
	memset(p->notes, 0, sizeof(p->notes));
	for (int i = 0; i < THREAD_EVENTS_NOTES; i++)
		if (slots[i].made)
			slots[i].made(&p->notes[i], &from);
	*routine = c->name == HOOKS_thrd_create ? (void *)begin_c11 : (void *)begin;
	*arg = p;
	return 1;
}

static void
on_failed(void *arg)
{
	struct place *p = arg;

	for (int i = 0; i < THREAD_EVENTS_NOTES; i++)
		if (slots[i].failed)
			slots[i].failed(p->notes[i].id);
	atomic_store(&p->taken, false);
}

const char *
thread_events_status(void)
{
	if (!ARCH_HAVE_HOOKS)
		return "threads are not seen being made: " HOOKS_UNKNOWN;
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
thread_events_watch(enum thread_events_rank reader, bool on)
{
	unsigned now;

	if (on)
		atomic_fetch_or(&readers, 1u << reader);
	else
		atomic_fetch_and(&readers, ~(1u << reader));
	if (*thread_events_status() || (on ? !hooks_claim() : !hooks_are_ours()))
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
thread_events_missed(void)
{
	return atomic_load(&missed);
}
