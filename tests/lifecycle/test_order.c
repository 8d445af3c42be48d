/*
 * test_order.c - in which order things start and stop, what a failed start
 * leaves behind, what a stop waits for, and what it says when it waited too long.
 */
#include <config.h>

#include "order_fixture.h"
#include "life.h"

#include <pthread.h>
#include <stdatomic.h>

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
	WAIT_FOR(component_phase(c) == COMPONENT_PHASE_DRAINING);
	if (component_hold(c, "more work") != 0)
		abort();
	component_release(c, "work");
	rest_ns(20000000);
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

static int own_hold, other_hold;

static void *
hold_late(void *c)
{
	other_hold = component_hold(c, "late");
	return NULL;
}

static void
hold_at_last(struct component *c)
{
	own_hold = component_hold(c, "last");
	assert_int_equal(pthread_create(&thread, NULL, hold_late, c), 0);
	pthread_join(thread, NULL);
}

static void
at_the_end_the_parts_that_stop_last_may_hold_it_and_nobody_else(void **state)
{
	struct component *c = started(NULL);

	(void)state;
	in_last_stop = hold_at_last;
	component_stop(c);
	while (!strstr(events, "p.stop"))
		life_turn(c, 1000);
	in_last_stop = NULL;
	assert_int_equal(own_hold, 0);
	assert_int_equal(other_hold, -ESHUTDOWN);
	assert_int_equal(component_hold(c, "later"), -ESHUTDOWN);
	assert_false(component_finished(c, NULL));
	component_release(c, "last");
	assert_int_equal(life_run(c), 0);
	component_free(c);
}

static void
what_the_parts_that_stop_last_hold_is_not_waited_for_without_end(void **state)
{
	struct component *c = started(OPTIONS("--graceful-shutdown-timeout=50ms"));

	(void)state;
	in_last_stop = hold_at_last;
	component_stop(c);
	while (!strstr(events, "p.stop"))
		life_turn(c, 1000);
	in_last_stop = NULL;
	assert_non_null(c->grace_timer);
	assert_int_equal(life_run(c), 1);
	assert_non_null(strstr(life_log(), "not finished within 8s: last"));
	component_release(c, "last");
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
a_name_that_nobody_holds_is_forgotten(void **state)
{
	struct component *c = started(NULL);

	(void)state;
	assert_int_equal(component_hold(c, "a"), 0);
	assert_int_equal(component_hold(c, "b"), 0);
	assert_int_equal(component_hold(c, "b"), 0);
	component_release(c, "a");
	component_release(c, "b");
	assert_non_null(c->holds);
	assert_null(c->holds->next);
	component_release(c, "b");
	assert_null(c->holds);
	component_free(c);
}

static void *
release(void *c)
{
	component_release(c, "work");
	return NULL;
}

static void
nothing(struct component *c, void *arg)
{
	(void)c;
	(void)arg;
}

static atomic_int poster;

static void *
post(void *c)
{
	poster = gettid();
	assert_int_equal(component_post(c, nothing, NULL), 0);
	return NULL;
}

static bool
is_asleep(pid_t tid)
{
	char        path[64];
	const char *name_end;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	name_end = strrchr(life_read(path), ')');
	return tid && name_end && !strncmp(name_end, ") S", 3);
}

/* To the last byte. */
static void
fill(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (write(fd, "", 1) > 0)
		;
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
}

/* The loop is woken by a pipe that is full: whoever wakes it waits, with or without the lock. */
static void
who_releases_or_posts_at_last_is_done_with_it_when_that_is_seen(void **state)
{
	struct component *c = started(NULL);
	int               wake_fd = c->loop.wake_fd, ends[2];
	char              room[65536];

	(void)state;
	assert_int_equal(component_hold(c, "work"), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fill(ends[1]);
	c->loop.wake_fd = ends[1];
	assert_int_equal(pthread_create(&thread, NULL, release, c), 0);
	WAIT_FOR(c->requests & REQUEST_RELEASED);
	assert_int_equal(pthread_mutex_trylock(&c->hold_lock), EBUSY);
	assert_true(read(ends[0], room, sizeof(room)) > 0);
	pthread_join(thread, NULL);

	fill(ends[1]);
	assert_int_equal(pthread_create(&thread, NULL, post, c), 0);
	WAIT_FOR(c->loop.posts && is_asleep(poster));
	assert_int_equal(pthread_mutex_trylock(&c->loop.post_lock), EBUSY);
	assert_true(read(ends[0], room, sizeof(room)) > 0);
	pthread_join(thread, NULL);
	c->loop.wake_fd = wake_fd;
	close(ends[0]);
	close(ends[1]);
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
		TEST(at_the_end_the_parts_that_stop_last_may_hold_it_and_nobody_else),
		TEST(what_the_parts_that_stop_last_hold_is_not_waited_for_without_end),
		TEST(holds_not_released_in_time_are_named),
		TEST(a_name_that_nobody_holds_is_forgotten),
		TEST(who_releases_or_posts_at_last_is_done_with_it_when_that_is_seen),
		TEST(a_graceful_time_of_0_waits_for_nothing_and_is_no_failure),
		TEST(a_negative_graceful_time_has_no_limit),
		TEST(with_a_delay_everything_goes_on_but_it_is_not_ready),
		TEST(a_failure_at_run_time_stops_gracefully_with_status_1),
		TEST(freeing_a_running_component_stops_it_at_once),
		TEST(what_is_held_when_it_is_freed_stays_until_it_is_released_and_freed_again),
		TEST(a_release_without_a_hold_is_logged_and_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
