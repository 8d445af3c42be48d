/*
 * test_figures.c - what a queue and a controller count, under the names of client-go and controller-runtime.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exposition.h"
#include "figures.h"

/* The number behind a series; a missing one fails. */
static double
value(const char *series)
{
	struct text all = TEXT_INIT;
	const char *at;
	double      found;

	exposition_write(&all, EXPOSITION_TEXT);
	at = strstr(all.data, series);
	if (!at || at[-1] != '\n' || at[strlen(series)] != ' ')
		fail_msg("there is no %s in\n%s", series, all.data);
	found = strtod(at + strlen(series), NULL);
	text_release(&all);
	return found;
}

static double
of_queue(const char *metric, const char *name)
{
	char series[160];

	snprintf(series, sizeof(series), "workqueue_%s{name=\"%s\",controller=\"%s\"}", metric, name, name);
	return value(series);
}

static struct component_queue *
named(const char *name)
{
	struct component_queue_options o = COMPONENT_QUEUE_OPTIONS_INIT;
	struct component_queue *q;

	o.name = name;
	assert_int_equal(component_queue_new(&o, &q), 0);
	return q;
}

static void
take(struct component_queue *q)
{
	char *key;

	assert_int_equal(component_queue_get(q, &key), 0);
	free(key);
}

static void
a_queue_counts_what_is_added_waits_and_is_done(void **state)
{
	struct component_queue *q = named("counted");

	(void)state;
	component_queue_add(q, "a");
	component_queue_add(q, "a");
	component_queue_add(q, "b");
	assert_int_equal(of_queue("adds_total", "counted"), 2);
	assert_int_equal(of_queue("depth", "counted"), 2);
	take(q);
	assert_int_equal(of_queue("depth", "counted"), 1);
	assert_int_equal(of_queue("queue_duration_seconds_count", "counted"), 1);
	assert_int_equal(of_queue("work_duration_seconds_count", "counted"), 0);
	component_queue_add(q, "a"); /* again, once it is done */
	assert_int_equal(of_queue("adds_total", "counted"), 3);
	assert_int_equal(of_queue("depth", "counted"), 1);
	component_queue_done(q, "a");
	assert_int_equal(of_queue("depth", "counted"), 2);
	assert_int_equal(of_queue("work_duration_seconds_count", "counted"), 1);
	component_queue_add_rate_limited(q, "c");
	assert_int_equal(of_queue("retries_total", "counted"), 1);
	component_queue_free(q);
	assert_int_equal(of_queue("depth", "counted"), 0);
}

static void
what_workers_have_not_finished_grows_until_they_have(void **state)
{
	struct component_queue *q = named("slow");
	double first, longest;

	(void)state;
	assert_true(of_queue("unfinished_work_seconds", "slow") == 0);
	component_queue_add(q, "a");
	component_queue_add(q, "b");
	take(q);
	first = of_queue("unfinished_work_seconds", "slow");
	assert_true(first > 0);
	take(q);
	longest = of_queue("longest_running_processor_seconds", "slow");
	assert_true(longest > first);
	assert_true(of_queue("unfinished_work_seconds", "slow") > longest);
	component_queue_done(q, "a");
	component_queue_done(q, "b");
	assert_true(of_queue("unfinished_work_seconds", "slow") == 0);
	assert_true(of_queue("longest_running_processor_seconds", "slow") == 0);
	component_queue_free(q);
}

static void
two_queues_of_one_name_are_one_series(void **state)
{
	struct component_queue *one = named("twins"), *two = named("twins");

	(void)state;
	component_queue_add(one, "a");
	component_queue_add(two, "a");
	assert_int_equal(of_queue("depth", "twins"), 2);
	component_queue_free(one);
	assert_int_equal(of_queue("depth", "twins"), 1);
	component_queue_free(two);
}

static void
the_buckets_of_a_queue_are_those_of_client_go(void **state)
{
	static const char *const bounds[] = { "1e-08", "1e-07", "1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1", "10", "100",
		"1000", "+Inf" };
	struct component_queue *q = named("bounds");
	char series[160];

	(void)state;
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		snprintf(series, sizeof(series), "workqueue_queue_duration_seconds_bucket{name=\"bounds\",controller=\"bounds\",le=\"%s\"}",
			bounds[i]);
		assert_true(value(series) == 0);
	}
	component_queue_free(q);
}

static void
each_result_of_a_reconcile_has_its_series(void **state)
{
	struct reconcile_figures f;

	(void)state;
	reconcile_figures_init(&f, "shop");
	reconcile_figures_add(&f, COMPONENT_DONE, 1000);
	reconcile_figures_add(&f, COMPONENT_ERROR, 6000000);
	reconcile_figures_add(&f, COMPONENT_TERMINAL, 1000);
	reconcile_figures_add(&f, COMPONENT_AFTER, 1000);
	reconcile_figures_add(&f, (enum component_reconcile)77, 1000); /* taken for done */
	assert_int_equal(value("controller_runtime_reconcile_total{controller=\"shop\",result=\"success\"}"), 2);
	assert_int_equal(value("controller_runtime_reconcile_total{controller=\"shop\",result=\"error\"}"), 2);
	assert_int_equal(value("controller_runtime_reconcile_total{controller=\"shop\",result=\"requeue_after\"}"), 1);
	assert_int_equal(value("controller_runtime_reconcile_errors_total{controller=\"shop\"}"), 2);
	assert_int_equal(value("controller_runtime_terminal_reconcile_errors_total{controller=\"shop\"}"), 1);
	assert_int_equal(value("controller_runtime_reconcile_time_seconds_bucket{controller=\"shop\",le=\"0.005\"}"), 4);
	assert_int_equal(value("controller_runtime_reconcile_time_seconds_bucket{controller=\"shop\",le=\"0.01\"}"), 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_counts_what_is_added_waits_and_is_done),
		cmocka_unit_test(what_workers_have_not_finished_grows_until_they_have),
		cmocka_unit_test(two_queues_of_one_name_are_one_series),
		cmocka_unit_test(the_buckets_of_a_queue_are_those_of_client_go),
		cmocka_unit_test(each_result_of_a_reconcile_has_its_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
