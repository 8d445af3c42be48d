/*
 * reload.c - options and the log file again, while everything runs.
 *
 * A fault in what a person wrote changes nothing, and nobody is told.  After that
 * each reload() is on its own: one that fails keeps what it had, and the others
 * still run.  Nothing here can end the daemon.
 *
 * Tests: tests/test_life_config.c, tests/signals.t.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static int
reload_all(struct component *c, struct component_error *err)
{
	int result, status;

	result = component_flags_reload(c->flags, err);
	if (result < 0)
		return result;
	life_apply_log_options(c);
	life_log_warnings(c);
	for (size_t i = 0; i <= c->part_count; i++) {
		struct component_error one = COMPONENT_ERROR_INIT;

		status = 0;
		if (i < c->part_count && c->parts[i].started && c->parts[i].part->reload)
			status = c->parts[i].part->reload(c, c->parts[i].state, &one);
		else if (i == c->part_count && c->spec.reload)
			status = c->spec.reload(c, &one);
		life_add_fault(status, &one, &result, err);
	}
	return result;
}

int
component_reload(struct component *c, struct component_error *err)
{
	struct component_error own = COMPONENT_ERROR_INIT;
	struct component_error log_error = COMPONENT_ERROR_INIT;
	char                   text[64];
	int                    result, reopened;

	if (life_in_child(c, getpid()))
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
		snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64, loop_clock_ns() / 1000);
		notify_send(&c->notify, text);
	}
	reopened = log_reopen(&c->log, &log_error);
	result = reload_all(c, err);
	if (reopened < 0) {
		component_error_add(err, "%s", log_error.text);
		if (result >= 0)
			result = reopened;
	}
	if (c->told_ready)
		notify_send(&c->notify, result < 0 ? "READY=1\nSTATUS=reload failed, going on as before"
						   : "READY=1\nSTATUS=running");
	c->reloading = false;
	return result < 0 ? result : 0;
}

void
reload_and_log(struct component *c)
{
	struct component_error err = COMPONENT_ERROR_INIT;

	if (component_reload(c, &err) < 0)
		component_log(c, COMPONENT_LOG_ERROR, "reload failed, going on with what was before", "error",
			err.text, NULL);
	else
		component_log(c, COMPONENT_LOG_INFO, "reloaded", NULL);
}
