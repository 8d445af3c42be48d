/*
 * stop.c - a graceful stop, step by step, on the loop.
 *
 *     stop_begin --> [--shutdown-delay] --> drain --> [holds] --> stop_finish
 *
 * The order: not ready, spec.stop, the parts in reverse, all holds released, then
 * the parts that are last_to_stop (health and profiling: a hang at the end can
 * still be looked into), their holds, the pid file.  The logs stay until component_free().
 *
 * What surprises: the graceful time starts after the delay.  When it is 0 nothing
 * is waited for, and that is no failure; when it is over, it is one.  What the parts
 * that are last to stop hold has LAST_NS: profiles end within less by themselves.
 *
 * Tests: tests/lifecycle/test_order.c; for a loop that hangs, signals.c.
 */
#include <config.h>

#include "life.h"

#include <stdio.h>
#include <time.h>

#include "clock.h"

/* Bytes of the text that names what was not finished. */
#define HOLDS_TEXT_MAX 1024
/* For what the parts that are last to stop hold. */
#define LAST_NS 8000000000LL

void
stop_parts(struct component *c, bool last_to_stop)
{
	for (size_t i = c->part_count; i-- > 0;) {
		struct part_slot *slot = &c->parts[i];

		if (!slot->started || slot->part->last_to_stop != last_to_stop)
			continue;
		slot->started = false;
		if (slot->part->stop)
			slot->part->stop(c, slot->state);
	}
}

static void
spec_stop(struct component *c)
{
	if (!c->spec_started)
		return;
	c->spec_started = false;
	if (c->spec.stop)
		c->spec.stop(c);
}

void
stop_timers(struct component *c)
{
	component_timer_remove(c->delay_timer);
	component_timer_remove(c->grace_timer);
	component_timer_remove(c->watchdog_timer);
	component_timer_remove(c->ready_timer);
	c->delay_timer = c->grace_timer = c->watchdog_timer = c->ready_timer = NULL;
}

static void on_grace_over(struct component *c, void *arg);

/* Of what is held by now.  0 or less: waits without end, or not at all. */
static void
grace_begin(struct component *c, int64_t ns)
{
	if (ns > 0 && ns <= INT64_MAX / 4)
		c->grace_end_ns = clock_ns(CLOCK_MONOTONIC) + ns;
	if (ns > 0 && component_timer_add(c, ns, 0, on_grace_over, NULL, &c->grace_timer) < 0) {
		/* No memory for the limit: better no grace than no end. */
		on_grace_over(c, NULL);
	}
}

/* Profiles may be on their way to slow clients: the loop runs on meanwhile. */
static bool
lingers(struct component *c, bool waits)
{
	if (c->lingers)
		return waits && held_work_any(c);
	c->lingers = true;
	component_timer_remove(c->grace_timer);
	c->grace_timer = NULL;
	if (waits)
		held_work_open(c);
	stop_parts(c, true);
	held_work_close(c, true);
	if (!waits || !held_work_any(c))
		return false;
	grace_begin(c, c->options.graceful_ns > 0 ? LAST_NS : 0);
	return true;
}

void
stop_finish(struct component *c, bool waits)
{
	if (lingers(c, waits))
		return;
	pid_file_remove(&c->pid_file);
	stop_timers(c);
	component_log(c, COMPONENT_LOG_INFO, "stopped", NULL);
	phase_set(c, component_phase(c), COMPONENT_PHASE_FINISHED);
}

static void
on_grace_over(struct component *c, void *arg)
{
	char names[HOLDS_TEXT_MAX], limit[32], text[HOLDS_TEXT_MAX + 64];

	(void)arg;
	if (component_phase(c) != COMPONENT_PHASE_DRAINING)
		return;
	held_work_text(c, names, sizeof(names));
	life_duration_text(c->lingers ? LAST_NS : c->options.graceful_ns, limit, sizeof(limit));
	snprintf(text, sizeof(text), "not finished within %s: %s", limit, names);
	component_log(c, COMPONENT_LOG_ERROR, text, NULL);
	c->status = STATUS_FAILED;
	held_work_close(c, true);
	stop_finish(c, false);
}

static void
tell_stopping(struct component *c)
{
	char names[HOLDS_TEXT_MAX], text[HOLDS_TEXT_MAX + 64];

	if (!held_work_text(c, names, sizeof(names)))
		return;
	component_log(c, COMPONENT_LOG_INFO, "waiting for work to finish", "work", names, NULL);
	snprintf(text, sizeof(text), "STATUS=stopping: waiting for %s", names);
	notify_send(&c->notify, text);
}

/* What is held is waited for no longer. */
static void
leave_work(struct component *c)
{
	char names[HOLDS_TEXT_MAX];

	if (held_work_text(c, names, sizeof(names)))
		component_log(c, COMPONENT_LOG_WARNING, "stopping at once, work is not finished", "work", names, NULL);
	held_work_close(c, true);
	stop_finish(c, false);
}

static void
drain(struct component *c)
{
	phase_set(c, COMPONENT_PHASE_DELAYING, COMPONENT_PHASE_DRAINING);
	spec_stop(c);
	stop_parts(c, false);
	if (held_work_close(c, false)) {
		stop_finish(c, c->options.graceful_ns != 0);
		return;
	}
	if (c->options.graceful_ns == 0) {
		leave_work(c);
		return;
	}
	tell_stopping(c);
	grace_begin(c, c->options.graceful_ns);
}

static void
on_delay_over(struct component *c, void *arg)
{
	(void)arg;
	if (component_phase(c) == COMPONENT_PHASE_DELAYING)
		drain(c);
}

void
stop_begin(struct component *c)
{
	char delay[32];

	phase_set(c, COMPONENT_PHASE_RUNNING, COMPONENT_PHASE_DELAYING);
	component_log(c, COMPONENT_LOG_INFO, "stopping", NULL);
	notify_send(&c->notify, "STOPPING=1\nSTATUS=stopping");
	if (c->options.delay_ns > 0 &&
		component_timer_add(c, c->options.delay_ns, 0, on_delay_over, NULL,
			&c->delay_timer) == 0) {
		life_duration_text(c->options.delay_ns, delay, sizeof(delay));
		component_log(c, COMPONENT_LOG_INFO, "not ready any more, stopping after a delay", "delay",
			delay, NULL);
		return;
	}
	drain(c);
}

void
stop_hurry(struct component *c)
{
	c->options.delay_ns = c->options.graceful_ns = 0;
	if (component_phase(c) == COMPONENT_PHASE_DELAYING)
		drain(c);
	else if (component_phase(c) == COMPONENT_PHASE_DRAINING)
		leave_work(c);
}

void
stop_at_once(struct component *c)
{
	enum component_phase phase = component_phase(c);

	if (life_in_child(c) || phase < COMPONENT_PHASE_STARTING ||
		phase == COMPONENT_PHASE_FINISHED)
		return;
	spec_stop(c);
	stop_parts(c, false);
	held_work_close(c, true);
	stop_finish(c, false);
}
