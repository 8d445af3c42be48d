/*
 * test_lifecycle.c - in which order things start and stop, what a failed start
 * leaves behind, what a stop waits for, and what it says when it waited too long.
 */
#include <config.h>

#include "life_fixture.h"
#include "life.h"

#include <pthread.h>
#include <sys/stat.h>

/* What happened, a word each. */
static char     events[1024];
static unsigned fail_at; /* bits: which starts fail */

static void
note(const char *who, const char *what)
{
	size_t used = strlen(events);

	snprintf(events + used, sizeof(events) - used, "%s%s.%s", used ? " " : "", who, what);
}

#define PART(letter, bit, is_last)                                                             \
	static int letter##_init(struct component *c, void **ret, struct component_error *err) \
	{                                                                                      \
		(void)c;                                                                       \
		(void)err;                                                                     \
		*ret = (void *)(uintptr_t) #letter;                                            \
		note(#letter, "init");                                                         \
		return 0;                                                                      \
	}                                                                                      \
	static int letter##_start(struct component *c, void *s, struct component_error *err)   \
	{                                                                                      \
		(void)c;                                                                       \
		assert_string_equal(s, #letter);                                               \
		note(#letter, "start");                                                        \
		if (!(fail_at & (bit)))                                                        \
			return 0;                                                              \
		component_error_set(err, "%s is broken", #letter);                             \
		return -EADDRINUSE;                                                            \
	}                                                                                      \
	static int letter##_reload(struct component *c, void *s, struct component_error *err)  \
	{                                                                                      \
		(void)c;                                                                       \
		(void)s;                                                                       \
		note(#letter, "reload");                                                       \
		if (!(fail_at & (bit)))                                                        \
			return 0;                                                              \
		component_error_set(err, "%s is broken", #letter);                             \
		return -EIO;                                                                   \
	}                                                                                      \
	static void letter##_stop(struct component *c, void *s)                                \
	{                                                                                      \
		(void)c;                                                                       \
		(void)s;                                                                       \
		note(#letter, "stop");                                                         \
	}                                                                                      \
	static void letter##_free(void *s)                                                     \
	{                                                                                      \
		note(s, "free");                                                               \
	}                                                                                      \
	static const struct component_part part_##letter = {                                   \
		sizeof(part_##letter), #letter, letter##_init, letter##_start,                 \
		letter##_reload, letter##_stop, letter##_free, NULL, is_last,                  \
	}

#define FAIL_A 1u
#define FAIL_B 2u
#define FAIL_P 4u
#define FAIL_SPEC 8u

PART(a, FAIL_A, false);
PART(b, FAIL_B, false);
PART(p, FAIL_P, true);

static void (*in_start)(struct component *c);
static void (*in_stop)(struct component *c);

static int
spec_start(struct component *c, struct component_error *err)
{
	note("spec", "start");
	if (in_start)
		in_start(c);
	if (!(fail_at & FAIL_SPEC))
		return 0;
	component_error_set(err, "spec is broken");
	return -EIO;
}

static int
spec_reload(struct component *c, struct component_error *err)
{
	(void)c;
	(void)err;
	note("spec", "reload");
	return 0;
}

static void
spec_stop(struct component *c)
{
	note("spec", "stop");
	if (in_stop)
		in_stop(c);
}

static int data;

static const struct component_spec spec = {
	.size = sizeof(spec), .name = "daemon", .summary = "A daemon.", .version = "1.2.3",
	.data = &data, .start = spec_start, .reload = spec_reload, .stop = spec_stop,
};

static struct component *
made(const char *const *options)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = NULL;

	events[0] = '\0';
	assert_int_equal(component_new(&spec, &c, &err), 0);
	assert_int_equal(component_use(c, &part_p, &err), 0);
	assert_int_equal(component_use(c, &part_a, &err), 0);
	assert_int_equal(component_use(c, &part_b, &err), 0);
	if (life_parse(c, &err, options) != 0)
		fail_msg("%s", err.text);
	return c;
}

static struct component *
started(const char *const *options)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = made(options);

	if (component_start(c, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(component_phase(c), COMPONENT_PHASE_RUNNING);
	events[0] = '\0';
	return c;
}

static int
fresh(void **state)
{
	fail_at = 0;
	in_start = NULL;
	in_stop = NULL;
	return life_setup(state);
}

static void
parts_start_in_order_and_stop_in_reverse_the_last_ones_last(void **state)
{
	struct component *c = made(NULL);

	(void)state;
	assert_int_equal(component_start(c, NULL), 0);
	assert_false(component_finished(c, NULL));
	component_stop(c);
	assert_int_equal(component_phase(c), COMPONENT_PHASE_RUNNING);
	assert_int_equal(life_run(c), 0);
	component_free(c);
	assert_string_equal(events,
		"p.init a.init b.init p.start a.start b.start spec.start "
		"spec.stop b.stop a.stop p.stop b.free a.free p.free");
}

static void
a_failed_start_undoes_what_had_started(void **state)
{
	static const struct {
		unsigned    fail;
		const char *text, *events;
	} cases[] = {
		{ FAIL_P, "p is broken", "p.init a.init b.init p.start" },
		{ FAIL_A, "a is broken", "p.init a.init b.init p.start a.start p.stop" },
		{ FAIL_B, "b is broken", "p.init a.init b.init p.start a.start b.start a.stop p.stop" },
		{ FAIL_SPEC, "spec is broken",
		  "p.init a.init b.init p.start a.start b.start spec.start b.stop a.stop p.stop" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct component_error err = COMPONENT_ERROR_INIT;
		const char            *pid_option;
		char                   option[300];
		struct component      *c;
		int                    status = -1;

		snprintf(option, sizeof(option), "--pid-file=%s", life_path("pid"));
		pid_option = option;
		c = made(OPTIONS(pid_option));
		fail_at = cases[i].fail;
		assert_true(component_start(c, &err) < 0);
		assert_string_equal(err.text, cases[i].text);
		assert_string_equal(events, cases[i].events);
		assert_true(component_finished(c, &status));
		assert_int_equal(status, 1);
		assert_non_null(strstr(life_log(), "error cannot start error="));
		assert_non_null(strstr(life_log(), cases[i].text));
		assert_int_equal(access(life_path("pid"), F_OK), -1);
		component_free(c);
		fail_at = 0;
	}
}

static void
a_phase_follows_only_the_ones_it_may_follow(void **state)
{
	/* A row for each phase: what may come next. */
	static const char *const may[] = {
		[COMPONENT_PHASE_NEW] = ".P....F",      [COMPONENT_PHASE_PARSED] = "..S...F",
		[COMPONENT_PHASE_STARTING] = "...R..F", [COMPONENT_PHASE_RUNNING] = "....D.F",
		[COMPONENT_PHASE_DELAYING] = ".....DF", [COMPONENT_PHASE_DRAINING] = "......F",
		[COMPONENT_PHASE_FINISHED] = ".......",
	};

	(void)state;
	for (int from = 0; from <= COMPONENT_PHASE_FINISHED; from++) {
		for (int to = 0; to <= COMPONENT_PHASE_FINISHED; to++) {
			struct component c = { .phase = from };
			bool             allowed = may[from][to] != '.';

			assert_int_equal(phase_set(&c, (enum component_phase)from, (enum component_phase)to),
				allowed ? 0 : -EINVAL);
			assert_int_equal(c.phase, allowed ? to : from);
			/* From a phase it is not in: never. */
			c.phase = (from + 1) % (COMPONENT_PHASE_FINISHED + 1);
			assert_int_equal(
				phase_set(&c, (enum component_phase)from, (enum component_phase)to), -EINVAL);
		}
		assert_string_not_equal(component_phase_text((enum component_phase)from), "unknown");
	}
	assert_string_equal(component_phase_text((enum component_phase)99), "unknown");
}

static void
durations_are_shown_as_people_write_them(void **state)
{
	static const struct {
		int64_t     ns;
		const char *text;
	} cases[] = {
		{ 0, "0s" },
		{ 50 * MS, "50ms" },
		{ 1500 * MS, "1.5s" },
		{ 25000 * MS, "25s" },
		{ 60000 * MS, "1m" },
		{ 90000 * MS, "1m30s" },
		{ 60250 * MS, "1m0.25s" },
		{ 3600000 * MS, "1h" },
		{ 5400000 * MS, "1h30m" },
		{ 3605000 * MS, "1h5s" },
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		life_duration_text(cases[i].ns, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

static void
calls_in_the_wrong_order_are_refused(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = NULL;

	(void)state;
	assert_int_equal(component_new(&spec, &c, &err), 0);
	assert_int_equal(component_start(c, &err), -EINVAL);
	assert_int_equal(component_reload(c, &err), -EBUSY);
	assert_int_equal(component_use(c, &part_a, &err), 0);
	assert_int_equal(component_use(c, &part_a, &err), -EEXIST);
	assert_int_equal(life_parse(c, &err, NULL), 0);
	assert_int_equal(life_parse(c, &err, NULL), -EBUSY);
	assert_int_equal(component_use(c, &part_b, &err), -EBUSY);
	assert_int_equal(component_start(c, &err), 0);
	assert_int_equal(component_start(c, &err), -EINVAL);
	component_stop(c);
	assert_int_equal(life_run(c), 0);
	assert_int_equal(component_start(c, &err), -EINVAL);
	assert_int_equal(component_reload(c, &err), -EBUSY);
	assert_int_equal(component_hold(c, "late"), -ESHUTDOWN);
	component_free(c);
	component_free(NULL);
}

static void
a_spec_without_size_or_name_is_refused(void **state)
{
	static const struct component_spec nameless = COMPONENT_SPEC(.summary = "x");
	static const struct component_spec sizeless = { .name = "x" };
	struct component_error             err = COMPONENT_ERROR_INIT;
	struct component                  *c = NULL;

	(void)state;
	assert_int_equal(component_new(&nameless, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "name"));
	assert_int_equal(component_new(&sizeless, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "size"));
	assert_null(c);
}

static void
the_getters_give_back_what_the_spec_said(void **state)
{
	struct component *c = made(NULL);

	(void)state;
	assert_ptr_equal(component_data(c), &data);
	assert_string_equal(component_name(c), "daemon");
	assert_string_equal(component_version(), PACKAGE_VERSION);
	assert_non_null(component_flags(c));
	component_free(c);
}

/* ---- stopping ---- */

static void
stop_now(struct component *c)
{
	component_stop(c);
}

static void
a_stop_during_the_start_is_a_clean_stop(void **state)
{
	struct component *c;

	(void)state;
	in_start = stop_now;
	c = made(NULL);
	assert_int_equal(component_start(c, NULL), 0);
	assert_int_equal(life_run(c), 0);
	assert_non_null(strstr(events, "spec.start spec.stop b.stop a.stop p.stop"));
	component_free(c);

	/* Before it, and nothing is started at all. */
	in_start = NULL;
	c = made(NULL);
	component_stop(c);
	assert_int_equal(component_start(c, NULL), 0);
	assert_int_equal(life_run(c), 0);
	assert_null(strstr(events, "start"));
	assert_null(strstr(events, "stop"));
	component_free(c);
}

static pthread_t thread;

static void *
work(void *arg)
{
	struct component *c = arg;

	/* Holds taken while it drains count too. */
	while (component_phase(c) != COMPONENT_PHASE_DRAINING)
		usleep(1000);
	if (component_hold(c, "more work") != 0)
		abort();
	component_release(c, "work");
	usleep(20 * 1000);
	note("work", "done");
	component_release(c, "more work");
	return NULL;
}

static void
a_stop_waits_for_all_holds_and_profiling_for_everything(void **state)
{
	struct component *c = started(NULL);

	(void)state;
	assert_int_equal(component_hold(c, "work"), 0);
	assert_int_equal(pthread_create(&thread, NULL, work, c), 0);
	component_stop(c);
	assert_int_equal(life_run(c), 0);
	pthread_join(thread, NULL);
	assert_string_equal(events, "spec.stop b.stop a.stop work.done p.stop");
	component_free(c);
}

static void
holds_not_released_in_time_are_named(void **state)
{
	struct component *c = started(OPTIONS("--graceful-shutdown-timeout=50ms", "--logging-format=logfmt"));
	int64_t           begin = now_ns();

	(void)state;
	assert_int_equal(component_hold(c, "flush"), 0);
	assert_int_equal(component_hold(c, "sync"), 0);
	assert_int_equal(component_hold(c, "sync"), 0);
	assert_int_equal(component_hold(c, "done"), 0);
	component_release(c, "done");
	component_stop(c);
	assert_int_equal(life_run(c), 1);
	assert_true(now_ns() - begin >= 50 * MS);
	assert_non_null(strstr(life_log(), "level=error msg=\"not finished within 50ms: sync (2), flush\""));
	assert_string_equal(events, "spec.stop b.stop a.stop p.stop");
	component_release(c, "flush"); /* late, harmless */
	component_free(c);
}

static void
a_graceful_time_of_0_waits_for_nothing_and_is_no_failure(void **state)
{
	struct component *c = started(OPTIONS("--graceful-shutdown-timeout=0"));

	(void)state;
	assert_int_equal(component_hold(c, "work"), 0);
	component_stop(c);
	life_turn(c, 1000);
	assert_true(component_finished(c, NULL));
	assert_int_equal(life_run(c), 0);
	assert_non_null(strstr(life_log(), "work"));
	component_free(c);
}

static void
a_negative_graceful_time_has_no_limit(void **state)
{
	struct component *c = started(OPTIONS("--graceful-shutdown-timeout=-1s"));

	(void)state;
	assert_int_equal(component_hold(c, "work"), 0);
	component_stop(c);
	for (int i = 0; i < 5; i++)
		life_turn(c, 10);
	assert_int_equal(component_phase(c), COMPONENT_PHASE_DRAINING);
	component_release(c, "work");
	assert_int_equal(life_run(c), 0);
	component_free(c);
}

static void
with_a_delay_everything_goes_on_but_it_is_not_ready(void **state)
{
	struct component *c = started(OPTIONS("--shutdown-delay=60ms"));
	int64_t           begin = now_ns();

	(void)state;
	assert_int_equal(component_checks_run(c, NULL, NULL), 0);
	component_stop(c);
	life_turn(c, 1000);
	assert_int_equal(component_phase(c), COMPONENT_PHASE_DELAYING);
	assert_int_equal(component_checks_run(c, NULL, NULL), 1);
	assert_string_equal(events, "");
	component_stop(c); /* again: nothing more */
	assert_int_equal(life_run(c), 0);
	assert_true(now_ns() - begin >= 60 * MS);
	assert_string_equal(events, "spec.stop b.stop a.stop p.stop");
	component_free(c);
}

static void
a_failure_at_run_time_stops_gracefully_with_status_1(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = started(NULL);

	(void)state;
	component_error_set(&err, "disk is gone");
	component_fail(c, &err);
	assert_int_equal(life_run(c), 1);
	assert_non_null(strstr(life_log(), "error disk is gone"));
	assert_string_equal(events, "spec.stop b.stop a.stop p.stop");
	component_free(c);
}

static void
freeing_a_running_component_stops_it_at_once(void **state)
{
	struct component *c = started(NULL);

	(void)state;
	component_free(c);
	assert_string_equal(events, "spec.stop b.stop a.stop p.stop b.free a.free p.free");
}

static void
what_is_held_when_it_is_freed_stays_until_it_is_released_and_freed_again(void **state)
{
	struct component *c = started(NULL);

	(void)state;
	assert_int_equal(component_hold(c, "work"), 0);
	component_free(c);
	assert_string_equal(events, "spec.stop b.stop a.stop p.stop");
	component_log(c, COMPONENT_LOG_INFO, "still at work", NULL);
	component_release(c, "work");
	component_free(c);
	assert_string_equal(events, "spec.stop b.stop a.stop p.stop b.free a.free p.free");
}

static void
a_release_without_a_hold_is_logged_and_harmless(void **state)
{
	struct component *c = started(NULL);

	(void)state;
	component_release(c, "nothing");
	assert_non_null(strstr(life_log(), "released what was not held hold=nothing"));
	component_stop(c);
	assert_int_equal(life_run(c), 0);
	component_free(c);
}

/* ---- reloading ---- */

static void
a_reload_tells_parts_in_order_then_the_daemon(void **state)
{
	struct component *c = started(NULL);

	(void)state;
	assert_int_equal(component_reload(c, NULL), 0);
	assert_string_equal(events, "p.reload a.reload b.reload spec.reload");
	component_free(c);
}

static void
one_failed_reload_does_not_keep_the_others_from_it(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = started(NULL);

	(void)state;
	fail_at = FAIL_A | FAIL_B;
	assert_int_equal(component_reload(c, &err), -EIO);
	assert_string_equal(err.text, "a is broken\nb is broken");
	assert_string_equal(events, "p.reload a.reload b.reload spec.reload");
	assert_int_equal(component_phase(c), COMPONENT_PHASE_RUNNING);
	component_free(c);
}

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
a_reload_reads_the_config_again_and_reopens_the_log(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	char                   option[300];
	const char            *config = option;
	struct component      *c;

	(void)state;
	snprintf(option, sizeof(option), "--config=%s", life_path("config.yaml"));
	write_file(life_path("config.yaml"), "v: 0\n");
	c = started(OPTIONS(config));
	component_log(c, COMPONENT_LOG_DEBUG, "hidden", NULL);
	assert_int_equal(rename(life_path("log"), life_path("log.1")), 0);
	write_file(life_path("config.yaml"), "v: 1\nlogging-format: json\n");
	assert_int_equal(component_reload(c, &err), 0);
	component_log(c, COMPONENT_LOG_DEBUG, "shown", "key", "value", NULL);
	assert_non_null(strstr(life_log(), "\"level\":\"debug\",\"msg\":\"shown\",\"key\":\"value\"}"));
	assert_null(strstr(life_read(life_path("log.1")), "shown"));
	assert_null(strstr(life_read(life_path("log.1")), "hidden"));

	/* A bad one changes nothing, and nobody is told. */
	events[0] = '\0';
	write_file(life_path("config.yaml"), "v: many\n");
	assert_true(component_reload(c, &err) < 0);
	assert_non_null(strstr(err.text, "many"));
	assert_string_equal(events, "");
	component_log(c, COMPONENT_LOG_DEBUG, "still shown", NULL);
	assert_non_null(strstr(life_log(), "\"msg\":\"still shown\""));
	assert_int_equal(component_phase(c), COMPONENT_PHASE_RUNNING);
	component_free(c);
}

/* ---- files ---- */

static void
the_pid_file_is_there_while_it_runs(void **state)
{
	char              option[300];
	const char       *pid_option = option;
	struct component *c;

	(void)state;
	snprintf(option, sizeof(option), "--pid-file=%s", life_path("pid"));
	write_file(life_path("pid"), "1\n"); /* a stale one is replaced */
	c = started(OPTIONS(pid_option));
	assert_int_equal(atoi(life_read(life_path("pid"))), getpid());
	component_stop(c);
	assert_int_equal(life_run(c), 0);
	assert_int_equal(access(life_path("pid"), F_OK), -1);
	component_free(c);

	/* A successor's is not ours to remove. */
	c = started(OPTIONS(pid_option));
	write_file(life_path("pid2"), "2\n");
	assert_int_equal(rename(life_path("pid2"), life_path("pid")), 0);
	component_free(c);
	assert_int_equal(atoi(life_read(life_path("pid"))), 2);
}

static void
a_file_that_cannot_be_written_fails_the_start_and_says_which(void **state)
{
	static const char *const options[] = { "--pid-file=/no/such/dir/pid", "--log-file=/no/such/dir/log" };

	(void)state;
	for (size_t i = 0; i < COUNT(options); i++) {
		struct component_error err = COMPONENT_ERROR_INIT;
		struct component      *c = made(OPTIONS(options[i]));

		assert_int_equal(component_start(c, &err), -ENOENT);
		assert_non_null(strstr(err.text, "/no/such/dir/"));
		assert_non_null(strstr(err.text, i ? "--log-file" : "--pid-file"));
		assert_null(strstr(events, "spec.start"));
		component_free(c);
	}
}

/* ---- options ---- */

static struct component_error check_error;

static int
check_values(struct component *c, struct component_error *err)
{
	(void)c;
	if (!check_error.text[0])
		return 0;
	component_error_set(err, "%s", check_error.text);
	return -EINVAL;
}

static int
parse_alone(const struct component_spec *s, struct component_error *err, const char *const *options,
	int *ret_status)
{
	struct component *c = NULL;
	int               result;

	assert_int_equal(component_new(s, &c, err), 0);
	result = life_parse(c, err, options);
	if (result != 0)
		assert_true(component_finished(c, ret_status));
	component_free(c);
	return result;
}

static void
parsing_ends_with_the_exit_status_of_its_fault(void **state)
{
	struct component_spec  s = spec;
	struct component_error err = COMPONENT_ERROR_INIT;
	int                    status = -1;

	(void)state;
	assert_int_equal(parse_alone(&s, &err, OPTIONS("--help"), &status), 1);
	assert_int_equal(status, 0);
	assert_true(parse_alone(&s, &err, OPTIONS("--no-such-option"), &status) < 0);
	assert_int_equal(status, 2);
	assert_true(parse_alone(&s, &err, OPTIONS("--config=/no/such/file"), &status) < 0);
	assert_int_equal(status, 78);

	s.check = check_values;
	assert_int_equal(parse_alone(&s, &err, OPTIONS("--check-config"), &status), 1);
	assert_int_equal(status, 0);
	component_error_set(&check_error, "one does not fit the other");
	assert_int_equal(parse_alone(&s, &err, OPTIONS("--check-config"), &status), -EINVAL);
	assert_int_equal(status, 2);
	assert_string_equal(err.text, "one does not fit the other");
	assert_int_equal(parse_alone(&s, &err, NULL, &status), -EINVAL);
	assert_int_equal(status, 2);
	check_error.text[0] = '\0';
}

static void
a_component_may_want_other_defaults_and_its_name_in_the_environment(void **state)
{
	static const struct component_default defaults[] = {
		{ "logging-format", "json" }, { NULL, NULL },
	};
	struct component_spec s = spec;
	struct component     *c = NULL;

	(void)state;
	s.defaults = defaults;
	assert_int_equal(component_new(&s, &c, NULL), 0);
	assert_int_equal(life_parse(c, NULL, NULL), 0);
	assert_int_equal(component_start(c, NULL), 0);
	component_log(c, COMPONENT_LOG_INFO, "one", NULL);
	assert_non_null(strstr(life_log(), "\"msg\":\"one\""));
	component_free(c);

	assert_int_equal(setenv("DAEMON_LOGGING_FORMAT", "logfmt", 1), 0);
	assert_int_equal(component_new(&s, &c, NULL), 0);
	assert_int_equal(life_parse(c, NULL, NULL), 0);
	assert_int_equal(component_start(c, NULL), 0);
	component_log(c, COMPONENT_LOG_INFO, "two", NULL);
	assert_non_null(strstr(life_log(), " msg=\"two\""));
	component_free(c);
	unsetenv("DAEMON_LOGGING_FORMAT");
}

static void
the_names_of_log_levels_are_verbosities(void **state)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };

	(void)state;
	for (int level = 0; level <= COMPONENT_LOG_DEBUG; level++) {
		struct component *c = NULL;
		char              want[32], above[32];

		assert_int_equal(setenv("LOG_LEVEL", names[level], 1), 0);
		assert_int_equal(component_new(&spec, &c, NULL), 0);
		assert_int_equal(life_parse(c, NULL, NULL), 0);
		assert_int_equal(component_start(c, NULL), 0);
		unlink(life_path("log"));
		assert_int_equal(component_reload(c, NULL), 0);
		for (int i = 0; i <= COMPONENT_LOG_DEBUG; i++) {
			snprintf(want, sizeof(want), "line-%d", i);
			component_log(c, (enum component_log_level)i, want, NULL);
		}
		snprintf(want, sizeof(want), "line-%d", level);
		snprintf(above, sizeof(above), "line-%d", level + 1);
		assert_non_null(strstr(life_log(), want));
		assert_null(strstr(life_log(), above));
		component_free(c);
	}
	unsetenv("LOG_LEVEL");
}

/* ---- checks ---- */

static int
failing_check(struct component *c, void *arg, struct component_error *err)
{
	(void)c;
	if (!arg)
		return -EIO;
	component_error_set(err, "%s", (const char *)arg);
	return *(const char *)arg ? -EAGAIN : 0;
}

static void
hear(void *arg, const char *name, int status, const char *text)
{
	size_t used = strlen(arg);

	snprintf((char *)arg + used, 512 - used, "[%s %d %s]", name, status, text);
}

static void
checks_are_run_in_order_and_say_what_is_wrong(void **state)
{
	struct component *c = made(NULL);
	char              heard[512] = "", want[512];
	char              good[] = "", bad[] = "cache is not filled";

	(void)state;
	assert_int_equal(component_check_add(c, "good", failing_check, good), 0);
	assert_int_equal(component_check_add(c, "bad", failing_check, bad), 0);
	assert_int_equal(component_check_add(c, "mute", failing_check, NULL), 0);
	assert_int_equal(component_check_add(c, "good", failing_check, good), -EEXIST);
	assert_int_equal(component_checks_run(c, NULL, NULL), 3);
	assert_int_equal(component_start(c, NULL), 0);
	assert_int_equal(component_checks_run(c, hear, heard), 2);
	snprintf(want, sizeof(want), "[running 0 ][good 0 ][bad %d cache is not filled][mute %d %s]", -EAGAIN,
		-EIO, strerror(EIO));
	assert_string_equal(heard, want);
	component_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, life_teardown)
		TEST(parts_start_in_order_and_stop_in_reverse_the_last_ones_last),
		TEST(a_failed_start_undoes_what_had_started),
		TEST(a_phase_follows_only_the_ones_it_may_follow),
		TEST(durations_are_shown_as_people_write_them),
		TEST(calls_in_the_wrong_order_are_refused),
		TEST(a_spec_without_size_or_name_is_refused),
		TEST(the_getters_give_back_what_the_spec_said),
		TEST(a_stop_during_the_start_is_a_clean_stop),
		TEST(a_stop_waits_for_all_holds_and_profiling_for_everything),
		TEST(holds_not_released_in_time_are_named),
		TEST(a_graceful_time_of_0_waits_for_nothing_and_is_no_failure),
		TEST(a_negative_graceful_time_has_no_limit),
		TEST(with_a_delay_everything_goes_on_but_it_is_not_ready),
		TEST(a_failure_at_run_time_stops_gracefully_with_status_1),
		TEST(freeing_a_running_component_stops_it_at_once),
		TEST(what_is_held_when_it_is_freed_stays_until_it_is_released_and_freed_again),
		TEST(a_release_without_a_hold_is_logged_and_harmless),
		TEST(a_reload_tells_parts_in_order_then_the_daemon),
		TEST(one_failed_reload_does_not_keep_the_others_from_it),
		TEST(a_reload_reads_the_config_again_and_reopens_the_log),
		TEST(the_pid_file_is_there_while_it_runs),
		TEST(a_file_that_cannot_be_written_fails_the_start_and_says_which),
		TEST(parsing_ends_with_the_exit_status_of_its_fault),
		TEST(a_component_may_want_other_defaults_and_its_name_in_the_environment),
		TEST(the_names_of_log_levels_are_verbosities),
		TEST(checks_are_run_in_order_and_say_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
