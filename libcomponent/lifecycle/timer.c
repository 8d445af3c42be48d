/*
 * timer.c - timers of a loop: a heap, the soonest first, behind one timerfd.
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

struct component_timer {
	struct due              due; /* first: it is the timer in the heap */
	struct loop            *loop;
	struct component_timer *next;
	struct component_timer **link; /* what points at us */
	component_fn           *fn;
	void                   *arg;
	int64_t                 every_ns; /* 0: once */
	bool                    unowned;  /* no handle was given out */
};

/* a + b for times: as late as can be rather than overflowing. */
static int64_t
add_ns(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void
loop_timers_arm(struct loop *l)
{
	const struct due *first = due_heap_first(&l->due);
	int64_t           due = first ? first->at_ns : 0;
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
component_timer_add(struct component *c, int64_t first_ns, int64_t every_ns, component_fn *fn,
	void *arg, struct component_timer **ret)
{
	struct loop            *l = &c->loop;
	struct component_timer *t;
	int64_t                 due_ns;

	if (first_ns < 0 || every_ns < 0 || !fn)
		return -EINVAL;
	due_ns = add_ns(clock_ns(CLOCK_MONOTONIC), first_ns);
	if (due_ns <= l->now_ns)
		due_ns = l->now_ns + 1; /* not in the dispatch that added it */
	t = calloc(1, sizeof(*t));
	if (!t || due_heap_add(&l->due, &t->due, due_ns)) {
		free(t);
		return -ENOMEM;
	}
	t->loop = l;
	t->fn = fn;
	t->arg = arg;
	t->every_ns = every_ns;
	t->unowned = !ret && !every_ns;
	t->next = l->timers;
	t->link = &l->timers;
	if (t->next)
		t->next->link = &t->next;
	l->timers = t;
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
	due_heap_remove(&l->due, &t->due);
	timer_free(t);
	loop_timers_arm(l);
}

/* The next multiple of the period that is still to come: missed ones are one. */
static int64_t
next_due(const struct component_timer *t, int64_t now)
{
	int64_t due = add_ns(t->due.at_ns, t->every_ns);

	if (due <= now)
		due = add_ns(due, ((now - due) / t->every_ns + 1) * t->every_ns);
	return due;
}

void
loop_timers_run(struct loop *l)
{
	struct due *first;

	l->now_ns = clock_ns(CLOCK_MONOTONIC);
	while ((first = due_heap_first(&l->due)) && first->at_ns <= l->now_ns) {
		struct component_timer *t = (struct component_timer *)first;
		struct component_timer  call = *t;

		if (t->every_ns) {
			due_heap_add(&l->due, first, next_due(t, l->now_ns));
		} else {
			due_heap_remove(&l->due, first);
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
	free(l->due.items);
	l->due = (struct due_heap){ NULL, 0, 0 };
}
