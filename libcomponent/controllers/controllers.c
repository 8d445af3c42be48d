/*
 * controllers.c - the section "Controllers": its options, and which ones run.
 *
 * The part holds the options and the controllers that component_controllers_start()
 * made; it stops them with the component and frees them after.
 *
 * What a stranger would get wrong: the part starts before the daemon does, so it
 * cannot know the controllers' names then.  They come with the specs, and
 * component_controllers_check() looks at --controllers before anything starts.
 *
 * Which ones run is told as in Kubernetes' controller managers: the first mention
 * of a name counts, NAME or -NAME; a name not mentioned runs if there is a "*" and
 * it is not off by default.
 *
 * Tests: tests/controllers/test_controller.c.
 */
#include <config.h>

#include "controllers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leader.h"
#include "life.h"

/* Threads of one controller; more than cores only helps where reconcile waits. */
#define WORKERS_MAX 1000
#define SECTION "Controllers"

struct controllers {
	struct component_list names;
	struct controller_options options;
	struct component *c;
	struct leader    *leader;
	int  (*begin)(struct component *c, struct component_error *err); /* of component_lead(), or NULL */
	struct component_controller **running;
	size_t count;
	bool   started, runs;
};

static const char *const every[] = { "*" };

static int
rows_add(struct component *c, struct controllers *s, struct component_error *err)
{
	const struct component_flag rows[] = {
		{ .name = "controllers", .type = COMPONENT_FLAG_TYPE_LIST, .value.list = &s->names, .section = SECTION,
		  .help = "Controllers to run: * for the usual ones, name to add, -name to drop; "
			  "the first mention of a name counts." },
		{ .name = "concurrent-syncs", .type = COMPONENT_FLAG_TYPE_INT, .value.integer = &s->options.workers,
		  .section = SECTION, .min = 1, .max = WORKERS_MAX, .help = "Workers per controller." },
		{ .name = "resync-period", .type = COMPONENT_FLAG_TYPE_DURATION, .value.integer = &s->options.resync_ns,
		  .section = SECTION, .min = 0, .max = INT64_MAX, .bits = COMPONENT_FLAG_RELOADABLE,
		  .help = "Time between full passes; 0 is never." },
		{ .name = "rate-limiter-base-delay", .type = COMPONENT_FLAG_TYPE_DURATION,
		  .value.integer = &s->options.queue.base_delay_ns, .section = SECTION, .min = 0, .max = INT64_MAX,
		  .bits = COMPONENT_FLAG_RELOADABLE, .help = "Wait before the first retry of a key; doubles each time." },
		{ .name = "rate-limiter-max-delay", .type = COMPONENT_FLAG_TYPE_DURATION,
		  .value.integer = &s->options.queue.max_delay_ns, .section = SECTION, .min = 0, .max = INT64_MAX,
		  .bits = COMPONENT_FLAG_RELOADABLE, .help = "Longest wait before a retry of a key." },
		{ .name = "rate-limiter-qps", .type = COMPONENT_FLAG_TYPE_NUMBER, .value.number = &s->options.queue.qps,
		  .section = SECTION, .bits = COMPONENT_FLAG_RELOADABLE, .help = "Retries per second, all keys together." },
		{ .name = "rate-limiter-bucket-size", .type = COMPONENT_FLAG_TYPE_INT,
		  .value.integer = &s->options.queue.burst, .section = SECTION, .bits = COMPONENT_FLAG_RELOADABLE,
		  .help = "Retries that may come at once." },
		{ .name = NULL },
	};

	return component_flags_add(component_flags(c), rows, err);
}

static int
controllers_init(struct component *c, void **ret_state, struct component_error *err)
{
	struct controllers *s = calloc(1, sizeof *s);
	int r;

	if (s == NULL) {
		component_error_set(err, "out of memory");
		return -ENOMEM;
	}
	s->names = (struct component_list){ every, 1 };
	s->options = (struct controller_options){ .workers = 1, .queue = COMPONENT_QUEUE_OPTIONS_INIT };
	s->c = c;
	r = rows_add(c, s, err);
	if (r == 0)
		r = leader_new(c, &s->leader, err);
	if (r != 0) {
		free(s);
		return r;
	}
	*ret_state = s;
	return 0;
}

static int
controllers_check(struct component *c, void *state, struct component_error *err)
{
	const struct controllers *s = state;
	const struct component_queue_options *o = &s->options.queue;
	char max[32];
	int r = 0;

	if (!(o->qps > 0 && o->qps <= 1e9))
		r = component_flags_fault(component_flags(c), "rate-limiter-qps", err, "write a number above 0, at most 1e9");
	if (o->burst <= 0)
		r = component_flags_fault(component_flags(c), "rate-limiter-bucket-size", err, "write 1 or more");
	if (o->base_delay_ns > o->max_delay_ns) {
		life_duration_text(o->max_delay_ns, max, sizeof max);
		r = component_flags_fault(component_flags(c), "rate-limiter-base-delay", err,
			"it is above --rate-limiter-max-delay '%s'; lower it or raise the other", max);
	}
	return leader_check(s->leader, err) < 0 ? -EINVAL : r;
}

static int
controllers_reload(struct component *c, void *state, struct component_error *err)
{
	struct controllers *s = state;

	(void)c;
	(void)err;
	for (size_t n = 0; n < s->count; n++)
		controller_set(s->running[n], &s->options);
	return 0;
}

static void
stop_all(void *state)
{
	struct controllers *s = state;

	for (size_t n = 0; n < s->count; n++)
		controller_stop(s->running[n]);
}

static void
controllers_stop(struct component *c, void *state)
{
	struct controllers *s = state;

	(void)c;
	stop_all(s);
	leader_leave(s->leader);
}

static void
controllers_free(void *state)
{
	struct controllers *s = state;

	for (size_t n = 0; n < s->count; n++)
		controller_free(s->running[n]);
	leader_free(s->leader);
	free(s->running);
	free(s);
}

const struct component_part *
component_controllers(void)
{
	static const struct component_part part = {
		.size = sizeof part,
		.name = "controllers",
		.init = controllers_init,
		.check = controllers_check,
		.reload = controllers_reload,
		.stop = controllers_stop,
		.free = controllers_free,
	};

	return &part;
}

static struct controllers *
controllers_of(struct component *c, struct component_error *err)
{
	for (size_t n = 0; n < c->part_count; n++)
		if (c->parts[n].part == component_controllers())
			return c->parts[n].state;
	component_error_set(err, "component '%s' does not use component_controllers(); name it in spec.parts",
		component_name(c));
	return NULL;
}

static bool
is_known(const char *name, const struct component_controller_spec *const *specs, size_t count)
{
	name += *name == '-';
	for (size_t n = 0; n < count; n++)
		if (strcmp(name, specs[n]->name) == 0)
			return true;
	return false;
}

static bool
is_wanted(const struct controllers *s, const struct component_controller_spec *spec)
{
	bool star = false;

	for (size_t n = 0; n < s->names.count; n++) {
		const char *name = s->names.items[n];

		if (strcmp(name, spec->name) == 0)
			return true;
		if (*name == '-' && strcmp(name + 1, spec->name) == 0)
			return false;
		star |= strcmp(name, "*") == 0;
	}
	return star && !spec->off_by_default;
}

int
component_controllers_check(struct component *c, const struct component_controller_spec *const *specs,
	size_t count, struct component_error *err)
{
	struct controllers *s = controllers_of(c, err);
	char known[512];
	size_t used = 0;
	int r = 0;

	if (s == NULL)
		return -EINVAL;
	known[0] = '\0';
	for (size_t n = 0; n < count && used < sizeof known; n++)
		used += (size_t)snprintf(known + used, sizeof known - used, ", %s", specs[n]->name);
	for (size_t n = 0; n < s->names.count; n++) {
		const char *name = s->names.items[n];

		if (strcmp(name, "*") == 0 || is_known(name, specs, count))
			continue;
		r = component_flags_fault(component_flags(c), "controllers", err, "'%s': no such controller; there are *%s",
			name, known);
	}
	return r;
}

static int
spec_check(const struct component_controller_spec *spec, struct component_error *err)
{
	const char *fault =
		spec->size < sizeof *spec ? "size is not set" :
		spec->name == NULL || *spec->name == '\0' ? "name is missing" :
		spec->directory == NULL ? "directory is missing" :
		spec->reconcile == NULL ? "reconcile is missing" : NULL;

	if (fault == NULL)
		return 0;
	component_error_set(err, "struct component_controller_spec: %s", fault);
	return -EINVAL;
}

/* Makes one, if wanted, and keeps it for stop and free. */
static int
make_one(struct component *c, struct controllers *s, const struct component_controller_spec *spec,
	struct component_controller **ret, struct component_error *err)
{
	struct component_controller *k = NULL;
	int r;

	if (!is_wanted(s, spec)) {
		component_log(c, COMPONENT_LOG_INFO, "controller is left out by --controllers", "controller", spec->name, NULL);
	} else {
		r = controller_new(c, spec, &s->options, s->leader, &k, err);
		if (r != 0)
			return r;
		s->running[s->count++] = k;
	}
	if (ret != NULL)
		*ret = k;
	return 0;
}

static int
start_check(struct component *c, struct controllers *s, const struct component_controller_spec *const *specs,
	size_t count, struct component_error *err)
{
	int r = 0;

	if (s == NULL)
		return -EINVAL;
	if (s->started) {
		component_error_set(err, "controllers of component '%s' are started twice", component_name(c));
		return -EALREADY;
	}
	for (size_t n = 0; r == 0 && n < count; n++)
		r = spec_check(specs[n], err);
	return r != 0 ? r : component_controllers_check(c, specs, count, err);
}

/* Files are queued when all workers are there, so a start that fails has called no reconcile().  A standby's queue
 * may hold events already. */
static int
run_all(struct controllers *s, struct component_error *err)
{
	int r = 0;

	s->runs = true;
	for (size_t n = 0; r == 0 && n < s->count; n++)
		r = controller_run(s->running[n], err);
	for (size_t n = 0; r == 0 && n < s->count; n++)
		controller_look(s->running[n]);
	return r;
}

/* This process leads, or there is nothing to lead. */
static int
lead(void *arg, struct component_error *err)
{
	struct controllers *s = arg;
	int r = s->begin != NULL ? s->begin(s->c, err) : 0;

	if (r == 0 && s->started && !s->runs)
		r = run_all(s, err);
	return r;
}

static int
begin(struct controllers *s, const struct component_lead_spec *spec, struct component_error *err)
{
	const struct leader_events events = { lead, stop_all, s };

	return leader_begin(s->leader, spec, &events, err);
}

int
component_lead(struct component *c, const struct component_lead_spec *spec, struct component_error *err)
{
	struct controllers *s = controllers_of(c, err);

	if (s == NULL)
		return -EINVAL;
	if (spec->size < sizeof *spec) {
		component_error_set(err, "struct component_lead_spec: size is not set");
		return -EINVAL;
	}
	s->begin = spec->begin;
	return begin(s, spec, err);
}

/* All are made before the first runs: a reconcile may enqueue to any of them. */
int
component_controllers_start(struct component *c, const struct component_controller_spec *const *specs,
	size_t count, struct component_controller **ret, struct component_error *err)
{
	struct controllers *s = controllers_of(c, err);
	int r = start_check(c, s, specs, count, err);

	if (r != 0)
		return r;
	s->running = calloc(count + 1, sizeof(struct component_controller *));
	if (s->running == NULL) {
		component_error_set(err, "out of memory");
		return -ENOMEM;
	}
	s->started = true;
	for (size_t n = 0; r == 0 && n < count; n++)
		r = make_one(c, s, specs[n], ret == NULL ? NULL : &ret[n], err);
	if (r == 0 && !leader_has_begun(s->leader))
		r = begin(s, NULL, err);
	else if (r == 0 && leader_leads(s->leader))
		r = run_all(s, err);
	if (r != 0)
		stop_all(s);
	return r;
}

bool
leader_status(struct component *c, struct leader_status *ret)
{
	struct component_error err;
	struct controllers *s = life_in_child(c) ? NULL : controllers_of(c, &err);

	*ret = (struct leader_status){ .enabled = false };
	if (s != NULL)
		leader_status_of(s->leader, ret);
	return s != NULL;
}

int
component_controller_start(struct component *c, const struct component_controller_spec *spec,
	struct component_controller **ret, struct component_error *err)
{
	return component_controllers_start(c, &spec, 1, ret, err);
}
