/*
 * signal.c - asks threads for their stacks by a signal, all at once.
 *
 *     request: slots by ascending tid --tgkill--> handler finds its slot, walks, answers
 *
 * The handler takes no lock, allocates nothing, calls nothing of the loader and touches
 * no errno.  It finds its slot by its thread id, so that it needs nothing from the
 * signal's value, which the kernel drops when the user's queue is full.
 *
 * The signal is SIGURG where it is at its default, else a free real-time one.  What
 * a stranger would get wrong:
 * - Not SIGPROF: the CPU timers' signal is one at a time for a thread, and ours would
 *   be lost behind it; and a signal that a thread blocks may outlive the process
 *   image by execve(2), where SIGPROF kills and SIGURG is ignored.
 * - The handler is never removed, since a thread may unblock the signal much later.
 *   With no request it returns at once.
 * - A request is unmapped only after every handler at work has left; one whose thread
 *   got no processor for long keeps it in limbo until the next.
 * - Who blocks the signal is not sent one: it would stay pending, and come out of a
 *   signalfd() or sigwait() of the program.
 * - Who blocks it from then on would cost the whole deadline: after a moment those are
 *   given up.
 * - A process may be stopped meanwhile, by SIGSTOP, by its container's freezer, or with its machine.  No thread could
 *   answer then, so a look counts for no more than its own length, however late it ends.
 *
 * Tests: tests/threads/thousand_blocked.t, tests/threads/test_running_threads.c.
 */
#include <config.h>

#include "signal.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch.h"
#include "clock.h"
#include "free_signal.h"
#include "futex.h"
#include "labels/thread.h"
#include "our_mask.h"
#include "pages.h"
#include "proc_self.h"
#include "thread_id.h"
#include "unwind.h"

#define DEADLINE_NS  CLOCK_NS_PER_S /* for all of them together */
#define LOOK_NS      50000000L    /* of one look at who has not answered */
#define LEAVE_STEPS  500          /* how long handlers at work are waited for, of ... */
#define LEAVE_NS     1000000L
#define STACK_BYTES  3072 /* of a handler with all that it calls: 2 KiB, and a margin */

struct threads_request {
	size_t                  count, size;
	struct threads_request *limbo_next;
	_Atomic uint32_t        left; /* futex: still to answer, and 1 while sending */
	int32_t                *tids; /* of slots: close together, for a handler looks for its own */
	struct threads_slot     slots[];
};

static struct {
	_Atomic(struct threads_request *) request;
	_Atomic int                       at_work;
	int                               number; /* 0: no handler yet */
	struct threads_request           *limbo;
	bool                              stuck; /* a handler was waited for in vain, and has not left since */
} asking;

/* ---- in the handler ---- */

static struct threads_slot *
slot_find(struct threads_request *q, int32_t tid)
{
	size_t low = 0, high = q->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (q->tids[middle] == tid)
			return &q->slots[middle];
		if (q->tids[middle] < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void
slot_answer(struct threads_request *q, const void *context)
{
	int64_t              begin = clock_ns(CLOCK_MONOTONIC);
	struct threads_slot *s;
	uint32_t             asked = THREADS_ASKED;
	struct unwind_regs   regs;
	int                  truncated = 0;

	unwind_regs_from_ucontext(&regs, context);
	s = slot_find(q, thread_id_self());
	if (!s || !atomic_compare_exchange_strong(&s->answer, &asked, THREADS_WRITING))
		return;
	if (free_signal_short_of_stack(context, STACK_BYTES)) {
		s->pcs[0] = regs.pc;
		s->count = regs.pc != 0;
		truncated = 1;
	} else {
		s->count = unwind_capture_cold(&regs, s->pcs, STACK_FRAMES_MAX, &truncated);
	}
	s->truncated = (uint32_t)truncated;
	s->labels = labels_here();
	s->took_ns = (uint32_t)(clock_ns(CLOCK_MONOTONIC) - begin);
	atomic_store(&s->answer, THREADS_ANSWERED);
	if (atomic_fetch_sub(&q->left, 1) == 1)
		arch_syscall(SYS_futex, (long)&q->left, FUTEX_WAKE_PRIVATE, INT_MAX, 0);
}

static void
on_signal(int number, siginfo_t *info, void *context)
{
	struct threads_request *q;

	(void)number;
	(void)info;
	atomic_fetch_add(&asking.at_work, 1);
	q = atomic_load(&asking.request);
	if (q)
		slot_answer(q, context);
	atomic_fetch_sub(&asking.at_work, 1);
}

/* One that the program does not wait for. */
static int
signal_get(uint64_t wanted)
{
	int number = asking.number;

	if (free_signal_is(number, on_signal) && !(wanted & OUR_MASK_BIT(number)))
		return number;
	number = free_signal_take(SIGURG, wanted, on_signal);
	if (number > 0)
		asking.number = number;
	return number;
}

/* ---- a request ---- */

int
threads_request_new(size_t count, struct threads_request **ret)
{
	struct threads_request *q;
	size_t                  size = sizeof(*q) + count * (sizeof(q->slots[0]) + sizeof(*q->tids));

	/* Now, and not by page faults in the handlers. */
	q = pages_map_for(__FILE__, size, MAP_POPULATE);
	if (!q)
		return -ENOMEM;
	q->count = count;
	q->size = size;
	q->tids = (int32_t *)(void *)&q->slots[count];
	*ret = q;
	return 0;
}

void
threads_request_cut(struct threads_request *q, size_t count)
{
	q->count = count;
}

struct threads_slot *
threads_request_slots(struct threads_request *q)
{
	return q->slots;
}

/* Nobody will answer for this one any more. */
static void
slot_give_up(struct threads_request *q, struct threads_slot *s)
{
	uint32_t asked = THREADS_ASKED;

	if (atomic_compare_exchange_strong(&s->answer, &asked, THREADS_GIVEN_UP))
		atomic_fetch_sub(&q->left, 1);
}

static void
send_all(struct threads_request *q, int number)
{
	pid_t pid = getpid();

	for (size_t i = 0; i < q->count; i++)
		q->tids[i] = q->slots[i].tid;
	atomic_store(&q->left, (uint32_t)q->count + 1);
	atomic_store(&asking.request, q);
	for (size_t i = 0; i < q->count; i++)
		if (proc_self_blocks(q->slots[i].tid, number) || syscall(SYS_tgkill, pid, q->slots[i].tid, number) < 0)
			slot_give_up(q, &q->slots[i]);
	atomic_fetch_sub(&q->left, 1);
}

/* Those that block the signal will not answer, nor those that are gone. */
static void
hopeless_give_up(struct threads_request *q, int number)
{
	pid_t pid = getpid();

	for (size_t i = 0; i < q->count; i++) {
		struct threads_slot *s = &q->slots[i];

		if (atomic_load(&s->answer) == THREADS_ASKED &&
		    (syscall(SYS_tgkill, pid, s->tid, 0) < 0 || proc_self_blocks(s->tid, number)))
			slot_give_up(q, s);
	}
}

static void
wait_all(struct threads_request *q, int number)
{
	int64_t  waited = 0, before = clock_ns(CLOCK_MONOTONIC), now;
	uint32_t left;
	bool     looked = false, over;

	while ((left = atomic_load(&q->left)) > 0 && waited < DEADLINE_NS) {
		over = !futex_wait(&q->left, left, LOOK_NS);
		now = clock_ns(CLOCK_MONOTONIC);
		waited += now - before < LOOK_NS ? now - before : LOOK_NS;
		before = now;
		if (over && !looked)
			hopeless_give_up(q, number);
		looked |= over;
	}
	for (size_t i = 0; i < q->count; i++)
		slot_give_up(q, &q->slots[i]);
}

/* Until no handler can be at a request any more; false: one still may. */
static bool
handlers_left(void)
{
	const struct timespec step = { 0, LEAVE_NS };

	int                   steps = asking.stuck ? 0 : LEAVE_STEPS; /* once for each */

	for (int i = 0; i < steps && atomic_load(&asking.at_work) > 0; i++)
		nanosleep(&step, NULL);
	asking.stuck = atomic_load(&asking.at_work) > 0;
	return !asking.stuck;
}

/* What the handler calls of others is called once here: a lazy binding would be done in it. */
static void
rehearse(struct threads_request *q)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	uintptr_t          pcs[STACK_FRAMES_MAX];
	int                truncated;

	slot_find(q, thread_id_self());
	clock_ns(CLOCK_MONOTONIC);
	unwind_capture_cold(&regs, pcs, STACK_FRAMES_MAX, &truncated);
}

int
threads_request_run(struct threads_request *q)
{
	uint64_t wanted = proc_self_wants(getpid());
	int      number;

	for (size_t i = 0; i < q->count; i++)
		wanted |= proc_self_wants(q->slots[i].tid);
	number = signal_get(wanted);
	if (number < 0)
		return number;
	rehearse(q);
	send_all(q, number);
	wait_all(q, number);
	atomic_store(&asking.request, NULL);
	handlers_left();
	for (size_t i = 0; i < q->count; i++) {
		uint32_t writing = THREADS_WRITING;

		/* It lost its processor in the middle of the walk. */
		atomic_compare_exchange_strong(&q->slots[i].answer, &writing, THREADS_GIVEN_UP);
	}
	return 0;
}

void
threads_request_free(struct threads_request *q)
{
	q->limbo_next = asking.limbo;
	asking.limbo = q;
	if (!handlers_left())
		return;
	while ((q = asking.limbo)) {
		asking.limbo = q->limbo_next;
		for (size_t i = 0; i < q->count; i++)
			labels_unref(q->slots[i].labels);
		pages_unmap(q, q->size);
	}
}

void
threads_signal_forked(void)
{
	atomic_store(&asking.request, NULL);
	atomic_store(&asking.at_work, 0);
	asking.stuck = false;
	asking.limbo = NULL;
}
