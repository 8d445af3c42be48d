/*
 * component.c - a component before it lives: made, given parts and options.
 *
 *     component_new --> component_use ... --> component_parse --> lifecycle.c
 *
 * The rows of Lifecycle and Logging live inside the object, since their variables
 * do; a process may have several components.
 *
 * What surprises: the defaults a spec wants otherwise are set at the end, in
 * component_parse(), because they may name rows of parts.  A --check-config runs
 * the checks of parts too, although the parser has already called it done.
 *
 * Tests: tests/lifecycle/test_order.c, tests/lifecycle/test_config.c.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "absolute_path.h"
#include "clock.h"

#define GRACEFUL_DEFAULT_NS (25 * CLOCK_NS_PER_S) /* below the 30 s of Kubernetes */

static const char *const format_choices[] = { "text", "logfmt", "json", NULL };

static int
rows_add(struct component *c, struct component_error *err)
{
	struct life_options *o = &c->options;

	*o = (struct life_options) { .graceful_ns = GRACEFUL_DEFAULT_NS, .log_file = "", .pid_file = "" };

	const struct component_flag rows[] = {
		COMPONENT_FLAG_DURATION("graceful-shutdown-timeout", &o->graceful_ns,
			"How long to finish work after a stop signal; 0 stops at once, negative waits "
			"without limit.",
			.section = "Lifecycle"),
		COMPONENT_FLAG_DURATION("shutdown-delay", &o->delay_ns,
			"Report not ready this long before stopping.",
			.section = "Lifecycle", .min = 0, .max = INT64_MAX),
		COMPONENT_FLAG_STRING("pid-file", &o->pid_file, "Write the process id here.",
			.section = "Lifecycle", .argument = "FILE"),
		COMPONENT_FLAG_INT("v", &o->verbosity, "Verbosity; higher prints more.",
			.section = "Logging", .min = VERBOSITY_ERROR, .max = INT32_MAX,
			.words = "fatal=-2 error=-2 warning=-1 warn=-1 info=0 debug=1 trace=2", .env = "LOG_LEVEL",
			.letter = 'v', .bits = COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_ENUM("logging-format", &o->log_format, "Shape of log lines.",
			.section = "Logging", .choices = format_choices, .env = "LOG_FORMAT",
			.bits = COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_STRING("log-file", &o->log_file,
			"Append logs to this file instead of stderr; reopened on SIGHUP.",
			.section = "Logging", .argument = "FILE"),
		COMPONENT_FLAG_END,
	};

	return component_flags_add(c->flags, rows, err);
}

static int
spec_check(const struct component_spec *spec, struct component_error *err)
{
	if (!spec || spec->size < offsetof(struct component_spec, parts)) {
		component_error_set(err, "struct component_spec: size is not set; write COMPONENT_SPEC(...)");
		return -EINVAL;
	}
	if (!spec->name || !*spec->name) {
		component_error_set(err, "struct component_spec: name is missing");
		return -EINVAL;
	}
	return 0;
}

/* A program built against an older header has a shorter spec; newer members
 * are zero then. */
static void
spec_copy(struct component_spec *to, const struct component_spec *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	to->size = sizeof(*to);
}

static int
flags_make(struct component *c, struct component_error *err)
{
	struct component_flags_spec spec = COMPONENT_FLAGS_SPEC(.name = c->spec.name,
		.summary = c->spec.summary, .version = c->spec.version ? c->spec.version : PACKAGE_VERSION);
	int result;

	result = component_flags_new(&spec, &c->flags, err);
	if (result < 0)
		return result;
	if (c->spec.flags)
		result = component_flags_add(c->flags, c->spec.flags, err);
	if (result >= 0)
		result = rows_add(c, err);
	return result < 0 ? result : features_init(c, err);
}

int
component_new(const struct component_spec *spec, struct component **ret, struct component_error *err)
{
	struct component *c = NULL;
	bool              has_loop = false;
	int               result;

	result = spec_check(spec, err);
	if (result < 0)
		goto out;
	c = calloc(1, sizeof(*c));
	if (!c) {
		component_error_set(err, "out of memory");
		result = -ENOMEM;
		goto out;
	}
	spec_copy(&c->spec, spec);
	c->pid = getpid();
	log_init(&c->log);
	reload_figures_init(c);
	pthread_mutex_init(&c->hold_lock, NULL);
	result = loop_init(&c->loop, c);
	if (result < 0) {
		component_error_set(err, "cannot make the event loop: %s", strerror(-result));
		goto out;
	}
	has_loop = true;
	result = flags_make(c, err);
	if (result < 0)
		goto out;
	fork_add(c);
	*ret = c;
	c = NULL; /* the caller has it now */
out:
	if (c) {
		if (has_loop)
			loop_close(&c->loop);
		component_flags_free(c->flags);
		features_free(c);
		free(c);
	}
	return result;
}

int
component_use(struct component *c, const struct component_part *part, struct component_error *err)
{
	struct part_slot *grown;
	struct part_slot *slot;
	int               result = 0;

	if (!part || part->size < sizeof(*part) || !part->name) {
		component_error_set(err, "struct component_part: size or name is not set");
		return -EINVAL;
	}
	if (component_phase(c) != COMPONENT_PHASE_NEW) {
		component_error_set(err, "part '%s': used after component_parse()", part->name);
		return -EBUSY;
	}
	for (size_t i = 0; i < c->part_count; i++) {
		if (!strcmp(c->parts[i].part->name, part->name)) {
			component_error_set(err, "part '%s' is used twice", part->name);
			return -EEXIST;
		}
	}
	grown = realloc(c->parts, (c->part_count + 1) * sizeof(*grown));
	if (!grown) {
		component_error_set(err, "out of memory");
		return -ENOMEM;
	}
	c->parts = grown;
	slot = &grown[c->part_count];
	*slot = (struct part_slot) { .c = c, .part = part };
	if (part->init)
		result = part->init(c, &slot->state, err);
	if (result < 0)
		return result;
	c->part_count++;
	return 0;
}

/* ---- parsing ---- */

static int
set_defaults(struct component *c, struct component_error *err)
{
	const struct component_default *d = c->spec.defaults;
	int                             result = 0;

	for (; d && d->flag && result >= 0; d++)
		result = component_flags_set_default(c->flags, d->flag, d->value, err);
	return result;
}

/* A dump shows values that do not fit each other, too: how else would one see them. */
static bool
is_unchecked(const struct component *c)
{
	return component_flags_given(c->flags, "dump-options");
}

static int
check_part(struct component_flags *f, void *arg, struct component_error *err)
{
	struct part_slot *slot = arg;

	(void)f;
	return is_unchecked(slot->c) ? 0 : slot->part->check(slot->c, slot->state, err);
}

static int
check_daemon(struct component_flags *f, void *arg, struct component_error *err)
{
	struct component *c = arg;

	(void)f;
	return is_unchecked(c) ? 0 : c->spec.check(c, err);
}

/* Among the checks of the options, so that a person sees all faults at once, at a reload before anything has changed. */
static int
add_checks(struct component *c)
{
	int result = 0;

	for (size_t i = 0; i < c->part_count && result >= 0; i++)
		if (c->parts[i].part->check)
			result = component_flags_add_check(c->flags, check_part, &c->parts[i]);
	if (result >= 0 && c->spec.check)
		result = component_flags_add_check(c->flags, check_daemon, c);
	return result;
}

int64_t
component_verbosity(const struct component *c)
{
	return c->options.verbosity;
}

int
component_set_verbosity(struct component *c, int64_t verbosity)
{
	if (verbosity < VERBOSITY_ERROR || verbosity > INT32_MAX)
		return -ERANGE;
	c->options.verbosity = verbosity;
	report_apply_options(c);
	return 0;
}

static int
parsed(struct component *c, int result, int status)
{
	if (result == 0) {
		phase_set(c, COMPONENT_PHASE_NEW, COMPONENT_PHASE_PARSED);
	} else {
		c->status = status;
		phase_set(c, COMPONENT_PHASE_NEW, COMPONENT_PHASE_FINISHED);
	}
	return result;
}

/* daemon(3), which may come next, changes the directory.  -ENOMEM. */
static int
keep_paths(struct component *c)
{
	const struct life_options *o = &c->options;

	c->log_path = *o->log_file ? absolute_path(o->log_file) : NULL;
	c->pid_path = *o->pid_file ? absolute_path(o->pid_file) : NULL;
	return (*o->log_file && !c->log_path) || (*o->pid_file && !c->pid_path) ? -ENOMEM : 0;
}

int
component_parse(struct component *c, int argc, char **argv, struct component_error *err)
{
	struct component_error own = COMPONENT_ERROR_INIT;
	int                    result;

	if (component_phase(c) != COMPONENT_PHASE_NEW) {
		component_error_set(err, "component_parse() was called before");
		return -EBUSY;
	}
	if (!err)
		err = &own;
	err->text[0] = '\0';
	result = set_defaults(c, err);
	if (result >= 0)
		result = add_checks(c);
	if (result < 0)
		return parsed(c, result, STATUS_USAGE);
	result = component_flags_parse(c->flags, argc, argv, err);
	if (result < 0)
		return parsed(c, result, component_flags_exit_status(c->flags));
	if (keep_paths(c) < 0) {
		component_error_set(err, "out of memory");
		return parsed(c, -ENOMEM, STATUS_FAILED);
	}
	report_apply_options(c);
	reload_figures_set(c, true);
	return parsed(c, result, STATUS_OK);
}

/* ---- the end ---- */

void
component_free(struct component *c)
{
	if (!c)
		return;
	/* Threads that still work use it until they are done: stopped, not freed.
	 * It stays in fork.c's list. */
	if (!life_in_child(c) && held_work_any(c)) {
		stop_at_once(c);
		signals_remove(c);
		return;
	}
	fork_remove(c);
	if (life_in_child(c))
		loop_leave(&c->loop); /* fork.c does it, but no handler of fork may have run */
	stop_at_once(c);
	signals_remove(c);
	/* Before the parts: it gives their variables the defaults back. */
	component_flags_free(c->flags);
	for (size_t i = c->part_count; i-- > 0;)
		if (c->parts[i].part->free)
			c->parts[i].part->free(c->parts[i].state);
	loop_close(&c->loop);
	ready_free(c);
	features_free(c);
	sections_free(c);
	held_work_free(c);
	log_close(&c->log);
	free(c->pid_file.path);
	free(c->log_path);
	free(c->pid_path);
	free(c->parts);
	free(c);
}

/* ---- getters and thin doors ---- */

void *
component_data(const struct component *c)
{
	return c->spec.data;
}

const char *
component_name(const struct component *c)
{
	return c->spec.name;
}

const struct component_spec *
component_spec(const struct component *c)
{
	return &c->spec;
}

struct component_flags *
component_flags(struct component *c)
{
	return c->flags;
}

int
component_fd(const struct component *c)
{
	return c->loop.epoll_fd;
}

const char *
component_version(void)
{
	return PACKAGE_VERSION;
}

void
component_log_write(void *c, enum component_log_level level, const char *message,
	const struct component_log_field *fields, size_t field_count)
{
	log_write_soon(&((struct component *)c)->log, level, message, fields, field_count);
}
