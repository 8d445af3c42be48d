/*
 * lifecycle.c - the start of a component, and what moves it on from phase to phase.
 *
 * Everybody else only asks: component_stop(), a signal, the last release set a
 * bit and wake the loop; component_dispatch() looks at the bits and moves on.  So
 * all callbacks of parts and daemon run on one thread, one after the other, and a
 * stop may be asked for from anywhere, even a signal handler.
 *
 * What surprises: a stop that arrives while things start ends the start early and
 * is a success, with status 0.  The steps of a stop are in stop.c.
 *
 * Tests: tests/lifecycle/test_order.c.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- asking ---- */

void
component_stop(struct component *c)
{
	phase_request(c, REQUEST_STOP);
}

void
component_fail(struct component *c, const struct component_error *err)
{
	if (err)
		component_log(c, COMPONENT_LOG_ERROR, err->text, NULL);
	c->status = STATUS_FAILED;
	component_stop(c);
}

int
component_on_signal(struct component *c, enum component_signal signal, component_fn *fn, void *arg)
{
	if (signal != COMPONENT_SIGNAL_USR1)
		return -EINVAL;
	c->usr1 = fn;
	c->usr1_arg = arg;
	return 0;
}

int
component_signalled(struct component *c, enum component_signal signal)
{
	switch (signal) {
	case COMPONENT_SIGNAL_TERM:
		phase_request(c, REQUEST_STOP);
		return 0;
	case COMPONENT_SIGNAL_HUP:
		phase_request(c, REQUEST_RELOAD);
		return 0;
	case COMPONENT_SIGNAL_USR1:
		phase_request(c, REQUEST_USR1);
		return 0;
	case COMPONENT_SIGNAL_USR2:
	case COMPONENT_SIGNAL_QUIT:
	case COMPONENT_SIGNAL_PIPE:
		break;
	}
	return -EINVAL;
}

/* ---- starting ---- */

static void
on_watchdog(struct component *c, void *arg)
{
	(void)arg;
	notify_send(&c->notify, "WATCHDOG=1");
}

static void
notify_begin(struct component *c)
{
	const char *name = NULL;

	if (notify_init(&c->notify, &name) < 0)
		component_log(c, COMPONENT_LOG_WARNING, "environment variable makes no sense, ignored",
			"variable", name, NULL);
	if (c->notify.watchdog_ns > 0)
		component_timer_add(c, 0, c->notify.watchdog_ns / 2, on_watchdog, NULL,
			&c->watchdog_timer);
}

static bool
stop_asked(const struct component *c)
{
	return c->requests & REQUEST_STOP;
}

static int
parts_start(struct component *c, struct component_error *err)
{
	for (size_t i = 0; i < c->part_count && !stop_asked(c); i++) {
		struct part_slot *slot = &c->parts[i];
		int               result = 0;

		if (slot->part->start)
			result = slot->part->start(c, slot->state, err);
		if (result < 0)
			return result;
		slot->started = true;
	}
	return 0;
}

/* start() may have given up the right to write it.  The daemon runs all the same. */
static void
pid_file_write_late(struct component *c)
{
	struct component_error why = COMPONENT_ERROR_INIT;

	if (pid_file_write(&c->pid_file, c->pid_path, &why) < 0)
		component_log(c, COMPONENT_LOG_ERROR, why.text, NULL);
}

static int
start_all(struct component *c, struct component_error *err)
{
	bool pid_file_waits;
	int  result;

	result = log_open(&c->log, c->log_path, err);
	if (result < 0)
		return result;
	report_warnings(c);
	notify_begin(c);
	result = parts_start(c, err);
	if (result < 0 || stop_asked(c))
		return result;
	pid_file_waits = pid_file_is_anothers(c->pid_path);
	if (!pid_file_waits)
		result = pid_file_write(&c->pid_file, c->pid_path, err);
	if (result < 0)
		return result;
	if (c->spec.start)
		result = c->spec.start(c, err);
	if (life_in_child(c)) {
		component_error_set(err, "start() has forked and returned in the child, which has none of the "
					 "threads that were started; call daemon(3) before the component starts");
		return -EPERM;
	}
	c->spec_started = result >= 0;
	if (c->spec_started && pid_file_waits)
		pid_file_write_late(c);
	return result;
}

/* daemon(3) between parsing and starting: nothing runs yet but the loop, and
 * the child gets one of its own. */
static int
adopt(struct component *c, struct component_error *err)
{
	int result;

	if (component_phase(c) != COMPONENT_PHASE_PARSED) {
		component_error_set(err, "started in another process, which fork() has parted from this one");
		return -EPERM;
	}
	result = loop_remake(&c->loop);
	if (result < 0) {
		component_error_set(err, "cannot make the event loop again after fork(): %s", strerror(-result));
		return result;
	}
	c->pid = getpid();
	return c->has_signals ? component_signals_install(c, err) : 0;
}

/* A failed start leaves nothing; in a child there is nothing of ours to undo. */
static void
undo_start(struct component *c)
{
	c->status = STATUS_FAILED;
	if (!life_in_child(c)) {
		stop_parts(c, false);
		held_work_close(c, true); /* the loop does not run any more: nobody would see it released */
		stop_parts(c, true);
		pid_file_remove(&c->pid_file);
		stop_timers(c);
	}
	phase_set(c, COMPONENT_PHASE_STARTING, COMPONENT_PHASE_FINISHED);
}

/* A supervisor that kills sooner than this is misconfigured: let it be seen. */
static void
log_limits(struct component *c)
{
	char delay[32], graceful[32] = "unlimited";

	life_duration_text(c->options.delay_ns, delay, sizeof(delay));
	if (c->options.graceful_ns >= 0)
		life_duration_text(c->options.graceful_ns, graceful, sizeof(graceful));
	component_log(c, COMPONENT_LOG_DEBUG, "running", "version", c->spec.version ? c->spec.version : "",
		"shutdown_delay", delay, "graceful_shutdown_timeout", graceful, NULL);
}

int
component_start(struct component *c, struct component_error *err)
{
	struct component_error own = COMPONENT_ERROR_INIT;
	int                    result;

	if (life_in_child(c)) {
		result = adopt(c, err);
		if (result < 0)
			return result;
	}
	if (phase_set(c, COMPONENT_PHASE_PARSED, COMPONENT_PHASE_STARTING) < 0) {
		component_error_set(err, "component_start(): options are not parsed, or it was called before");
		return -EINVAL;
	}
	if (!err)
		err = &own;
	err->text[0] = '\0';
	result = start_all(c, err);
	if (result < 0) {
		if (!err->text[0])
			component_error_set(err, "cannot start: %s", strerror(-result));
		/* Whoever reads the file may never see the stderr of a daemon(3). */
		if (c->log.path)
			report_fault(c, "cannot start", err);
		undo_start(c);
		return result;
	}
	phase_set(c, COMPONENT_PHASE_STARTING, COMPONENT_PHASE_RUNNING);
	log_limits(c);
	if (stop_asked(c))
		loop_wake(&c->loop);
	else
		ready_watch(c);
	return 0;
}

/* ---- moving on ---- */

static void
on_usr1(struct component *c)
{
	if (c->usr1)
		c->usr1(c, c->usr1_arg);
	else
		component_log(c, COMPONENT_LOG_INFO, "nothing is set to be done on this signal", "signal",
			"SIGUSR1", NULL);
}

/* Does what was asked for; a request made meanwhile is for the next time. */
static void
step(struct component *c)
{
	unsigned requests = atomic_exchange(&c->requests, 0);

	if (requests & REQUEST_RELOAD && (requests & REQUEST_STOP || component_phase(c) != COMPONENT_PHASE_RUNNING))
		reload_log(c); /* what is logged until the end belongs into the new file */
	else if (requests & REQUEST_RELOAD)
		reload_and_log(c);
	if (requests & REQUEST_USR1 && component_phase(c) == COMPONENT_PHASE_RUNNING)
		on_usr1(c);
	if (requests & REQUEST_STOP && component_phase(c) == COMPONENT_PHASE_RUNNING)
		stop_begin(c);
	if (component_phase(c) == COMPONENT_PHASE_DRAINING && (c->lingers ? !held_work_any(c) : held_work_close(c, false)))
		stop_finish(c, true);
}

int
component_dispatch(struct component *c)
{
	int result;

	if (life_in_child(c))
		return -EPERM;
	if (c->in_step)
		return -EBUSY;
	result = loop_dispatch(&c->loop);
	if (result < 0)
		return result;
	/* Until it runs, requests wait: a stop before component_start() is
	 * seen by it. */
	if (component_phase(c) < COMPONENT_PHASE_RUNNING)
		return 0;
	c->in_step = true;
	step(c);
	c->in_step = false;
	return 0;
}
