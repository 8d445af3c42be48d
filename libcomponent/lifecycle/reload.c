/*
 * reload.c - options and the log file again, while everything runs.
 *
 * A fault in what a person wrote changes nothing, and nobody is told: all checks are run
 * first, those of parts and daemon too.  A reload() may still find that it cannot have what
 * it is told; it keeps what it had then, the options are put back, and those that had been
 * well are called once more, to go back with them.  Nothing here can end the daemon.
 *
 * A log file that cannot be opened again keeps nothing from being reloaded, the level of the
 * log among it: the old one goes on, and has a line about it.
 *
 * Tests: tests/lifecycle/test_config.c, tests/lifecycle/signals.t.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

/* One more line when status is negative; *result keeps the first such status. */
static void
fault_add(int status, const struct component_error *one, int *result, struct component_error *all)
{
	if (status >= 0)
		return;
	component_error_add(all, "%s", one->text[0] ? one->text : strerror(-status));
	if (*result == 0)
		*result = status;
}

static int
reload_part(struct component *c, struct part_slot *slot, struct component_error *err)
{
	int result = 0;

	if (slot->started && slot->part->reload)
		result = slot->part->reload(c, slot->state, err);
	slot->reloaded = result >= 0;
	return result;
}

/* Those of one sort; all of them, for all their faults to be told. */
static void
reload_parts(struct component *c, bool last_to_stop, int *result, struct component_error *err)
{
	for (size_t i = 0; i < c->part_count; i++) {
		struct component_error one = COMPONENT_ERROR_INIT;

		if (c->parts[i].part->last_to_stop == last_to_stop)
			fault_add(reload_part(c, &c->parts[i], &one), &one, result, err);
	}
}

static void
apply_options(struct component *c)
{
	report_apply_options(c);
	report_warnings(c);
}

/* Back to the values of before, with which each reload() was well once. */
static void
undo(struct component *c, bool daemon, int64_t verbosity)
{
	struct component_error err = COMPONENT_ERROR_INIT, one = COMPONENT_ERROR_INIT;
	int                    result = 0;

	component_flags_undo(c->flags);
	c->options.verbosity = verbosity;
	report_apply_options(c);
	if (daemon && c->spec.reload)
		fault_add(c->spec.reload(c, &one), &one, &result, &err);
	for (size_t i = c->part_count; i-- > 0;) {
		one = (struct component_error)COMPONENT_ERROR_INIT;
		if (c->parts[i].reloaded)
			fault_add(reload_part(c, &c->parts[i], &one), &one, &result, &err);
	}
	if (result < 0)
		report_fault(c, "cannot go back to what was before the reload", &err);
}

/*
 * Profiling, which is last to stop, is last to be told: nothing that can be refused comes after it, so no window is
 * ended for nothing.
 */
static int
reload_all(struct component *c, struct component_error *err)
{
	struct component_error one = COMPONENT_ERROR_INIT;
	int64_t                verbosity = c->options.verbosity; /* perhaps component_set_verbosity()'s */
	int                    result, daemon;

	result = component_flags_reload(c->flags, err);
	if (result < 0) {
		c->options.verbosity = verbosity;
		return result;
	}
	for (size_t i = 0; i < c->part_count; i++)
		c->parts[i].reloaded = false;
	apply_options(c);
	reload_parts(c, false, &result, err);
	daemon = c->spec.reload ? c->spec.reload(c, &one) : 0;
	fault_add(daemon, &one, &result, err);
	if (result >= 0)
		reload_parts(c, true, &result, err);
	if (result < 0)
		undo(c, daemon >= 0, verbosity);
	return result;
}

/* Prometheus' own names, but for the prefix. */
void
reload_figures_init(struct component *c)
{
	static const struct component_metric_spec well = COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE,
		.name = "component_config_last_reload_successful",
		.help = "1 if the options were well when they were read last, else 0.");
	static const struct component_metric_spec when = COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE,
		.name = "component_config_last_reload_success_timestamp_seconds",
		.help = "When options were read that were well, in seconds since 1970.", .per_unit = CLOCK_NS_PER_S);
	struct component_metric *m;

	component_metric_new(&well, &m, NULL);
	c->reload_well = component_gauge_of(m, NULL);
	component_metric_new(&when, &m, NULL);
	c->reload_time = component_gauge_of(m, NULL);
}

void
reload_figures_set(struct component *c, bool well)
{
	component_gauge_set(c->reload_well, well);
	if (well)
		component_gauge_set(c->reload_time, clock_ns(CLOCK_REALTIME));
}

void
reload_log(struct component *c)
{
	struct component_error err = COMPONENT_ERROR_INIT;

	if (log_reopen(&c->log, &err) < 0)
		component_log(c, COMPONENT_LOG_ERROR, err.text, NULL);
}

int
component_reload(struct component *c, struct component_error *err)
{
	struct component_error own = COMPONENT_ERROR_INIT;
	char                   text[64];
	int                    result;

	if (life_in_child(c))
		return -EPERM;
	if (component_phase(c) != COMPONENT_PHASE_RUNNING || c->reloading) {
		component_error_set(err, "not reloaded: %s",
			c->reloading ? "reloading already" : component_phase_text(component_phase(c)));
		return -EBUSY;
	}
	if (!err)
		err = &own;
	err->text[0] = '\0';
	c->reloading = true;
	/* Before READY there is nothing to go back to: it comes by itself. */
	if (c->told_ready) {
		snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_ns(CLOCK_MONOTONIC) / 1000);
		notify_send(&c->notify, text);
	}
	reload_log(c);
	result = reload_all(c, err);
	if (c->told_ready && notify_send(&c->notify, result < 0 ? "READY=1\nSTATUS=reload failed, going on as before"
								: "READY=1\nSTATUS=running") == -EAGAIN) {
		c->told_ready = false; /* the manager waits for it */
		ready_watch(c);
	}
	c->reloading = false;
	reload_figures_set(c, result >= 0);
	return result < 0 ? result : 0;
}

void
reload_and_log(struct component *c)
{
	struct component_error err = COMPONENT_ERROR_INIT;

	if (component_reload(c, &err) < 0)
		report_fault(c, "reload failed, going on with what was before", &err);
	else
		component_log(c, COMPONENT_LOG_INFO, "reloaded", NULL);
}
