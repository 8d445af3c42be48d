/*
 * look.c - threads that have ended without coming by a hook: those made by the bare
 * system call, or before anybody watched.
 *
 * Two lists of /proc/self/task, this one and the last, side by side.
 *
 * Tests: tests/trace/test_tracer.c.
 */
#include <config.h>

#include "look.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include "clock.h"
#include "events/ring.h"
#include "pages.h"
#include "proc_self.h"

#define TIDS_FIRST 1024

struct list {
	int32_t *tids; /* ascending */
	size_t   count, room;
};

static struct list last;

static void
list_free(struct list *l)
{
	struct list old = *l;

	*l = (struct list){ .tids = NULL };
	atomic_signal_fence(memory_order_seq_cst); /* a child that is forked here must not unmap what is another's by now */
	pages_unmap(old.tids, old.room * sizeof(*old.tids));
}

/* The kernel lists by age, which is nearly in order. */
static void
on_thread(void *arg, pid_t tid)
{
	struct list *l = arg;
	int32_t     *grown = l->count < l->room ? l->tids : pages_grow(l->tids, &l->room, TIDS_FIRST, sizeof(*l->tids));
	size_t       i;

	if (!grown)
		return;
	l->tids = grown;
	for (i = l->count++; i > 0 && l->tids[i - 1] > tid; i--)
		l->tids[i] = l->tids[i - 1];
	l->tids[i] = tid;
}

void
trace_look(trace_look_fn *vanished, void *arg)
{
	struct list now = { .tids = NULL };
	int64_t     now_ns;
	size_t      k = 0;

	if (proc_self_threads(on_thread, &now) < 0) {
		list_free(&now);
		return;
	}
	now_ns = trace_now_ns();
	for (size_t i = 0; i < last.count; i++) {
		while (k < now.count && now.tids[k] < last.tids[i])
			k++;
		if (k < now.count && now.tids[k] == last.tids[i])
			continue;
		/* The kernel's list may skip a thread where another one ends meanwhile. */
		if (thread_clock_ns(last.tids[i]) < 0)
			vanished(arg, last.tids[i], now_ns);
		else
			on_thread(&now, last.tids[i]);
	}
	list_free(&last);
	last = now;
}

void
trace_look_end(void)
{
	list_free(&last);
}
