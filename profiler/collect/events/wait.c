/*
 * wait.c - waits of threads, from the hooks to a trace.
 *
 *     begin: slot of the thread <- since, reason, stack
 *     end:   slot -> one record with both times, if it was a wait at all
 *     end of a trace: slots in use -> waits that go on
 *
 * What a stranger would get wrong:
 * - Most calls that may wait do not.  Told when they are over they are weighed first,
 *   and a daemon that reads a million times a second does not fill a trace with that.
 * - A slot is one thread's, by its id, but not surely one call's: a signal handler may
 *   call read() in the middle of a poll(), and one that leaves by siglongjmp() never ends
 *   its wait.  What lies deeper on the stack is nested, and is left out; what does
 *   not has left the other behind, and takes the slot over.  A handler that waits
 *   while the slot is written takes it, too.  The turn has gone on then, and the outer
 *   wait is written once more.
 * - Who looks at a slot from outside reads its turn before and after.
 *
 * Tests: tests/trace/test_tracer.c, tests/trace/measured_waits.t.
 */
#include <config.h>

#include "wait.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "hidden_frames.h"
#include "pages.h"
#include "stack_table.h"
#include "unwind.h"

#define PROBES_MAX 32

struct slot {
	_Atomic int32_t  tid;  /* 0: free */
	_Atomic uint32_t turn; /* odd: waits */
	uint8_t          reason;
	uint32_t         count;
	int64_t          since_ns;
	uintptr_t        sp;
	uintptr_t        pcs[STACK_FRAMES_MAX];
};

static struct slot *_Atomic slots; /* [EVENTS_WAITERS_MAX]; 0 is never given out */
static _Atomic bool         on;

#define TRIES      2 /* of a wait that a handler's has interrupted while it was written */
#define SLOTS_BYTES (EVENTS_WAITERS_MAX * sizeof(struct slot))

bool
events_wait_on(void)
{
	return atomic_load_explicit(&on, memory_order_relaxed);
}

/* The thread's, or a free one that is now; 0: none. */
static uint32_t
slot_of(struct slot *all, int32_t tid)
{
	int32_t  is;
	uint32_t free_one = 0, turn, i, n;

	for (n = 0, i = (uint32_t)tid; n < PROBES_MAX; n++, i++) {
		if (i % EVENTS_WAITERS_MAX == 0)
			continue;
		is = atomic_load(&all[i % EVENTS_WAITERS_MAX].tid);
		if (is == tid)
			return i % EVENTS_WAITERS_MAX;
		if (is == 0 && !free_one)
			free_one = i % EVENTS_WAITERS_MAX;
	}
	is = 0;
	if (!free_one || !atomic_compare_exchange_strong(&all[free_one].tid, &is, tid))
		return 0;
	/* Whoever had it may have been in a wait when it was taken away. */
	turn = atomic_load(&all[free_one].turn);
	if (turn & 1)
		atomic_store(&all[free_one].turn, turn + 1);
	return free_one;
}

void
events_wait_begin(struct events_wait *w)
{
	struct slot       *all = atomic_load(&slots), *s;
	struct unwind_regs regs = { .pc = w->pc, .sp = w->sp, .fp = w->fp };
	uint32_t           turn;
	int                cut = 0;

	w->slot = 0;
	w->on = all && events_wait_on();
	if (!w->on)
		return;
	w->slot = slot_of(all, trace_tid());
	if (w->slot == 0)
		return;
	s = &all[w->slot];
	turn = atomic_load(&s->turn);
	if (turn & 1) {
		if (w->sp < s->sp) {
			w->slot = 0;
			w->on = false;
			return;
		}
		atomic_store(&s->turn, ++turn); /* even while it is written */
	}
	for (int tries = 0; tries < TRIES && !(turn & 1); tries++) {
		s->sp = w->sp;
		s->reason = w->reason;
		s->count = hidden_frames_drop(s->pcs, unwind_capture(&regs, s->pcs, STACK_FRAMES_MAX, &cut));
		s->since_ns = w->since_ns = trace_now_ns(); /* the walk was ours */
		w->turn = turn + 1;
		if (atomic_compare_exchange_strong(&s->turn, &turn, w->turn))
			return;
	}
	w->slot = 0;
}

static __attribute__((noinline)) void
tell_afresh(struct trace_event *e, const struct events_wait *w)
{
	struct unwind_regs regs = { .pc = w->pc, .sp = w->sp, .fp = w->fp };
	uintptr_t          pcs[STACK_FRAMES_MAX];
	int                cut = 0;

	e->count = hidden_frames_drop(pcs, unwind_capture(&regs, pcs, STACK_FRAMES_MAX, &cut));
	e->pcs = pcs;
	events_ring_add(e);
}

void
events_wait_end(struct events_wait *w, int64_t now_ns, int64_t least_ns)
{
	struct trace_event e = { .type = TRACE_EVENT_WAITED, .time_ns = (uint64_t)w->since_ns, .value = (uint64_t)now_ns,
		.reason = w->reason, .cpu = TRACE_CPU_NONE };
	struct slot       *all = atomic_load(&slots), *s;
	bool               ours;

	if (!w->on || !all)
		return;
	s = &all[w->slot];
	ours = w->slot && atomic_load(&s->tid) == trace_tid() && atomic_load(&s->turn) == w->turn;
	if (events_wait_on() && now_ns - w->since_ns >= least_ns) {
		e.tid = trace_tid();
		if (ours) {
			e.pcs = s->pcs;
			e.count = s->count;
			events_ring_add(&e);
		} else {
			tell_afresh(&e, w);
		}
	}
	if (ours)
		atomic_store(&s->turn, w->turn + 1);
}

void
events_wait_wake(int32_t tid, uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
	struct events_wait  here = { .pc = pc, .sp = sp, .fp = fp };
	struct trace_event e = { .type = TRACE_WAKE, .time_ns = (uint64_t)trace_now_ns(), .tid = trace_tid(), .other = tid,
		.cpu = TRACE_CPU_NONE };

	tell_afresh(&e, &here);
}

int
events_wait_open(void)
{
	void *mem;

	if (!atomic_load(&slots)) {
		mem = pages_map_sparse(SLOTS_BYTES);
		if (!mem)
			return -ENOMEM;
		atomic_store(&slots, mem);
	}
	atomic_store(&on, true);
	return 0;
}

/* Threads may wait as long as they like, and write into their slot afterwards: what they
 * touched goes, the addresses stay. */
void
events_wait_close(void)
{
	struct slot *all = atomic_load(&slots);

	atomic_store(&on, false);
	if (all)
		madvise(all, SLOTS_BYTES, MADV_DONTNEED);
}

void
events_wait_look(events_ring_fn *fn, void *arg)
{
	struct slot       *all = atomic_load(&slots);
	struct trace_event e = { .type = TRACE_WAIT, .cpu = TRACE_CPU_NONE };
	uintptr_t          pcs[STACK_FRAMES_MAX];
	uint32_t           turn;

	for (uint32_t i = 1; all && i < EVENTS_WAITERS_MAX; i++) {
		struct slot *s = &all[i];

		e.tid = atomic_load(&s->tid);
		turn = atomic_load(&s->turn);
		if (e.tid == 0 || !(turn & 1))
			continue;
		e.time_ns = (uint64_t)s->since_ns;
		e.reason = s->reason;
		e.count = s->count <= STACK_FRAMES_MAX ? s->count : 0;
		for (unsigned k = 0; k < e.count; k++)
			pcs[k] = ((volatile uintptr_t *)s->pcs)[k];
		e.pcs = pcs;
		if (atomic_load(&s->turn) == turn)
			fn(arg, &e);
	}
}

static struct slot *
slot_find(struct slot *all, int32_t tid)
{
	for (uint32_t n = 0, i = (uint32_t)tid; all && n < PROBES_MAX; n++, i++)
		if (i % EVENTS_WAITERS_MAX && atomic_load(&all[i % EVENTS_WAITERS_MAX].tid) == tid)
			return &all[i % EVENTS_WAITERS_MAX];
	return NULL;
}

void
events_wait_gone(int32_t tid, int64_t now_ns)
{
	struct slot *s = slot_find(atomic_load(&slots), tid);
	uint32_t     turn;

	if (!s)
		return;
	turn = atomic_load(&s->turn);
	if (turn & 1) {
		struct trace_event e = { .type = TRACE_EVENT_WAITED, .time_ns = (uint64_t)s->since_ns,
			.value = (uint64_t)now_ns, .tid = tid, .reason = s->reason, .cpu = TRACE_CPU_NONE,
			.pcs = s->pcs, .count = s->count };

		events_ring_add(&e);
		atomic_store(&s->turn, turn + 1);
	}
	atomic_store(&s->tid, 0);
}
