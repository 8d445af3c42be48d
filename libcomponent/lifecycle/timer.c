/*
 * timer.c - timers of a loop: a heap, soonest first, behind one timerfd.
 *
 * What surprises: while timers run, the time stands still, so one that a callback
 * adds is not due before the next dispatch, and the timerfd is set once, at the
 * end.  A timer that fires once and was asked for by handle stays allocated until
 * it is removed, because only the caller knows when he will not remove it any
 * more; one without a handle frees itself.
 *
 * Tests: tests/lifecycle/test_loop.c.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>

#include "clock.h"

#define NOT_IN_HEAP SIZE_MAX

struct component_timer {
	struct loop            *loop;
	struct component_timer *next;
	struct component_timer **link; /* what points at us */
	component_fn           *fn;
	void                   *arg;
	int64_t                 due_ns;
	int64_t                 every_ns; /* 0: once */
	size_t                  at;       /* in the heap */
	bool                    unowned;  /* no handle was given out */
};

/* a + b for times: as late as can be rather than overflowing. */
static int64_t
add_ns(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void
heap_put(struct loop *l, size_t at, struct component_timer *t)
{
	l->heap[at] = t;
	t->at = at;
}

static void
heap_up(struct loop *l, struct component_timer *t)
{
	size_t at = t->at;

	while (at > 0 && l->heap[(at - 1) / 2]->due_ns > t->due_ns) {
		heap_put(l, at, l->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_put(l, at, t);
}

static void
heap_down(struct loop *l, struct component_timer *t)
{
	size_t at = t->at;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= l->heap_count)
			break;
		if (child + 1 < l->heap_count && l->heap[child + 1]->due_ns < l->heap[child]->due_ns)
			child++;
		if (l->heap[child]->due_ns >= t->due_ns)
			break;
		heap_put(l, at, l->heap[child]);
		at = child;
	}
	heap_put(l, at, t);
}

static void
heap_remove(struct loop *l, struct component_timer *t)
{
	struct component_timer *last;
	size_t                  at = t->at;

	if (at == NOT_IN_HEAP)
		return;
	t->at = NOT_IN_HEAP;
	last = l->heap[--l->heap_count];
	if (last == t)
		return;
	heap_put(l, at, last);
	heap_up(l, last);
	heap_down(l, last);
}

void
loop_timers_arm(struct loop *l)
{
	int64_t           due = l->heap_count ? l->heap[0]->due_ns : 0;
	struct itimerspec when = { { 0, 0 }, { 0, 0 } };

	if (l->now_ns || due == l->armed_ns || l->timer_fd < 0)
		return;
	when.it_value = clock_timespec(due);
	timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
	l->armed_ns = due;
}

static void
timer_free(struct component_timer *t)
{
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	free(t);
}

int
component_timer_add(struct component *c, int64_t first_ns, int64_t every_ns, component_fn *fn, void *arg,
	struct component_timer **ret)
{
	struct loop            *l = &c->loop;
	struct component_timer *t;

	if (first_ns < 0 || every_ns < 0 || !fn)
		return -EINVAL;
	if (l->heap_count == l->heap_slots) {
		size_t                   slots = l->heap_slots ? 2 * l->heap_slots : 8;
		struct component_timer **grown = realloc(l->heap, slots * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->heap = grown;
		l->heap_slots = slots;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->loop = l;
	t->fn = fn;
	t->arg = arg;
	t->every_ns = every_ns;
	t->unowned = !ret && !every_ns;
	t->due_ns = add_ns(clock_ns(CLOCK_MONOTONIC), first_ns);
	if (t->due_ns <= l->now_ns)
		t->due_ns = l->now_ns + 1; /* not in the dispatch that added it */
	t->next = l->timers;
	t->link = &l->timers;
	if (t->next)
		t->next->link = &t->next;
	l->timers = t;
	t->at = l->heap_count++;
	heap_up(l, t);
	loop_timers_arm(l);
	if (ret)
		*ret = t;
	return 0;
}

void
component_timer_remove(struct component_timer *t)
{
	struct loop *l;

	if (!t)
		return;
	l = t->loop;
	heap_remove(l, t);
	timer_free(t);
	loop_timers_arm(l);
}

/* The next multiple of the period that is still to come: missed ones are one. */
static int64_t
next_due(const struct component_timer *t, int64_t now)
{
	int64_t due = add_ns(t->due_ns, t->every_ns);

	if (due <= now)
		due = add_ns(due, ((now - due) / t->every_ns + 1) * t->every_ns);
	return due;
}

void
loop_timers_run(struct loop *l)
{
	l->now_ns = clock_ns(CLOCK_MONOTONIC);
	while (l->heap_count && l->heap[0]->due_ns <= l->now_ns) {
		struct component_timer *t = l->heap[0];
		struct component_timer  call = *t;

		if (t->every_ns) {
			t->due_ns = next_due(t, l->now_ns);
			heap_down(l, t);
		} else {
			heap_remove(l, t);
			if (t->unowned)
				timer_free(t);
		}
		call.fn(l->owner, call.arg); /* may have freed t */
	}
	l->now_ns = 0;
	loop_timers_arm(l);
}

void
loop_timers_free(struct loop *l)
{
	while (l->timers)
		component_timer_remove(l->timers);
	free(l->heap);
	l->heap = NULL;
	l->heap_slots = 0;
}
