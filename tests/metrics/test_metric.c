/*
 * test_metric.c - what can be counted, what is refused, and the text that Prometheus gets.
 */
#include <config.h>

#include "exposition.h"
#include "metric.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SPEC(...) (&(const struct component_metric_spec)COMPONENT_METRIC_SPEC(__VA_ARGS__))

static struct component_metric *
made(const struct component_metric_spec *spec)
{
	struct component_error   err = COMPONENT_ERROR_INIT;
	struct component_metric *m;

	if (component_metric_new(spec, &m, &err) != 0)
		fail_msg("%s", err.text);
	return m;
}

/* The lines that have the word, of all that is shown. */
static char *
shown(enum exposition_format format, const char *word)
{
	struct text all = TEXT_INIT, some = TEXT_INIT;

	exposition_write(&all, format);
	assert_false(all.failed);
	for (char *line = strtok(all.data, "\n"); line; line = strtok(NULL, "\n"))
		if (strstr(line, word))
			text_add(&some, "%s\n", line);
	text_release(&all);
	return some.data ? some.data : strdup("");
}

static void
assert_shown(enum exposition_format format, const char *word, const char *lines)
{
	char *text = shown(format, word);

	assert_string_equal(text, lines);
	free(text);
}

static void
a_counter_has_a_line_for_each_series_by_name(void **state)
{
	struct component_metric *m = made(SPEC(.type = COMPONENT_METRIC_COUNTER, .name = "shop_requests_total",
		.help = "Requests answered.", .labels = { "code", "method" }));

	(void)state;
	component_counter_add(component_counter_of(m, "404", "GET", NULL), 2);
	component_counter_add(component_counter_of(m, "200", "GET", NULL), 5);
	component_counter_add(component_counter_of(m, "200", "GET", NULL), UINT64_MAX - 5);
	assert_shown(EXPOSITION_TEXT, "shop_requests",
		"# HELP shop_requests_total Requests answered.\n"
		"# TYPE shop_requests_total counter\n"
		"shop_requests_total{code=\"200\",method=\"GET\"} 18446744073709551615\n"
		"shop_requests_total{code=\"404\",method=\"GET\"} 2\n");
}

static void
openmetrics_calls_a_counter_without_its_ending_and_ends(void **state)
{
	struct component_metric *m = made(SPEC(.type = COMPONENT_METRIC_COUNTER, .name = "shop_opened_total",
		.help = "Says \"open\" and \\."));
	struct text all = TEXT_INIT;

	(void)state;
	component_counter_add(component_counter_of(m, NULL), 1);
	assert_shown(EXPOSITION_OPENMETRICS, "shop_opened",
		"# HELP shop_opened Says \\\"open\\\" and \\\\.\n# TYPE shop_opened counter\nshop_opened_total 1\n");
	assert_shown(EXPOSITION_TEXT, "HELP shop_opened", "# HELP shop_opened_total Says \"open\" and \\\\.\n");
	exposition_write(&all, EXPOSITION_OPENMETRICS);
	assert_string_equal(all.data + all.size - strlen("\n# EOF\n"), "\n# EOF\n");
	text_release(&all);
}

static void
numbers_are_exact_and_written_as_go_does(void **state)
{
	static const struct {
		int64_t     value, per_unit;
		const char *text;
	} rows[] = {
		{ 0, 1000000000, "0" }, { 1, 1, "1" }, { -5, 1, "-5" }, { 1500000000, 1000000000, "1.5" },
		{ 1, 1000000000, "1e-09" }, { 10, 1000000000, "1e-08" }, { 123, 1000000000, "1.23e-07" },
		{ 100000, 1000000000, "0.0001" }, { 99999, 1000000000, "9.9999e-05" }, { 1000000000000, 1000000000, "1000" },
		{ 1795720315918224993, 1000000000, "1795720315.918224993" }, { INT64_MAX, 1, "9223372036854775807" },
		{ INT64_MIN, 1, "-9223372036854775808" }, { INT64_MIN, 1000, "-9223372036854775.808" }, { 120, 1, "120" },
		{ 5, 10, "0.5" }, { -1, 100, "-0.01" },
	};
	char name[64], expected[128];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(name, sizeof(name), "numbers_%zu_value", i);
		component_gauge_set(component_gauge_of(made(SPEC(.type = COMPONENT_METRIC_GAUGE, .name = name, .help = "x",
			.per_unit = rows[i].per_unit)), NULL), rows[i].value);
		snprintf(expected, sizeof(expected), "numbers_%zu_value %s\n", i, rows[i].text);
		strcat(name, " ");
		{
			char *text = shown(EXPOSITION_TEXT, name);

			assert_non_null(strstr(text, expected));
			free(text);
		}
	}
}

static void
a_locale_with_a_comma_changes_no_number(void **state)
{
	static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "da_DK.UTF-8" };
	bool found = false;

	(void)state;
	component_gauge_set(component_gauge_of(made(SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "local_seconds", .help = "x",
		.per_unit = 1000)), NULL), 1500);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found; i++)
		found = setlocale(LC_NUMERIC, names[i]) != NULL;
	assert_shown(EXPOSITION_TEXT, "local_seconds ", "# HELP local_seconds x\n# TYPE local_seconds gauge\nlocal_seconds 1.5\n");
	setlocale(LC_NUMERIC, "C");
	if (!found)
		print_message("# no locale with a comma is installed\n");
}

static void
a_histogram_counts_what_is_at_most_each_bound(void **state)
{
	static const int64_t bounds[] = { 10, 100, 1000 };
	struct component_histogram *h = component_histogram_of(made(SPEC(.type = COMPONENT_METRIC_HISTOGRAM,
		.name = "shop_wait_seconds", .help = "Waits.", .per_unit = 1000, .buckets = bounds, .bucket_count = 3,
		.labels = { "of" })), "a", NULL);

	(void)state;
	component_histogram_observe(h, -1);
	component_histogram_observe(h, 10);
	component_histogram_observe(h, 11);
	component_histogram_observe(h, 1000);
	component_histogram_observe(h, 1001);
	assert_shown(EXPOSITION_TEXT, "shop_wait_seconds",
		"# HELP shop_wait_seconds Waits.\n# TYPE shop_wait_seconds histogram\n"
		"shop_wait_seconds_bucket{of=\"a\",le=\"0.01\"} 2\n"
		"shop_wait_seconds_bucket{of=\"a\",le=\"0.1\"} 3\n"
		"shop_wait_seconds_bucket{of=\"a\",le=\"1\"} 4\n"
		"shop_wait_seconds_bucket{of=\"a\",le=\"+Inf\"} 5\n"
		"shop_wait_seconds_sum{of=\"a\"} 2.021\n"
		"shop_wait_seconds_count{of=\"a\"} 5\n");
	assert_shown(EXPOSITION_OPENMETRICS, "le=\"1.0\"", "shop_wait_seconds_bucket{of=\"a\",le=\"1.0\"} 4\n");
}

static void
bounds_of_buckets_have_the_text_that_go_gives_them(void **state)
{
	static const int64_t bounds[] = { -2500000, 1, 999999, 1000000, 1048576, 2500000, 123456789, 1000000000000000000 };
	char                *text;

	(void)state;
	component_histogram_of(made(SPEC(.type = COMPONENT_METRIC_HISTOGRAM, .name = "shop_sent_bytes", .help = "Sent.",
		.buckets = bounds, .bucket_count = sizeof(bounds) / sizeof(bounds[0]))), NULL);
	assert_shown(EXPOSITION_TEXT, "shop_sent_bytes_bucket",
		"shop_sent_bytes_bucket{le=\"-2.5e+06\"} 0\n"
		"shop_sent_bytes_bucket{le=\"1\"} 0\n"
		"shop_sent_bytes_bucket{le=\"999999\"} 0\n"
		"shop_sent_bytes_bucket{le=\"1e+06\"} 0\n"
		"shop_sent_bytes_bucket{le=\"1.048576e+06\"} 0\n"
		"shop_sent_bytes_bucket{le=\"2.5e+06\"} 0\n"
		"shop_sent_bytes_bucket{le=\"1.23456789e+08\"} 0\n"
		"shop_sent_bytes_bucket{le=\"1e+18\"} 0\n"
		"shop_sent_bytes_bucket{le=\"+Inf\"} 0\n");
	text = shown(EXPOSITION_OPENMETRICS, "le=\"1e+06\"");
	assert_string_equal(text, "shop_sent_bytes_bucket{le=\"1e+06\"} 0\n");
	free(text);
}

static void
values_of_labels_are_escaped_cut_and_made_utf8(void **state)
{
	struct component_metric *m = made(SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "odd_things", .help = "x",
		.labels = { "of" }));
	char  longer[COMPONENT_METRIC_VALUE_MAX + 10], *text;

	(void)state;
	component_gauge_of(m, "a\"b\\c\nd", NULL);
	component_gauge_of(m, "\xff\xc3\xa9", NULL);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	component_gauge_of(m, longer, NULL);
	text = shown(EXPOSITION_TEXT, "odd_things{");
	assert_non_null(strstr(text, "odd_things{of=\"a\\\"b\\\\c\\nd\"} 0\n"));
	assert_non_null(strstr(text, "odd_things{of=\"?\xc3\xa9\"} 0\n"));
	longer[COMPONENT_METRIC_VALUE_MAX] = '\0';
	assert_non_null(strstr(text, longer));
	longer[COMPONENT_METRIC_VALUE_MAX] = 'x';
	assert_null(strstr(text, longer));
	free(text);
}

static void
what_cannot_be_is_refused_with_a_reason(void **state)
{
	static const int64_t falling[] = { 2, 1 };
	const struct {
		struct component_metric_spec spec;
		const char *word;
		int         r;
	} rows[] = {
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_COUNTER, .name = "shop_requests", .help = "x"), "_total", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "shop_x_total", .help = "x"), "ending", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "shop_x_bucket", .help = "x"), "ending", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "shop-x", .help = "x"), "name", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "9x", .help = "x"), "name", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "", .help = "x"), "name", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "shop_x"), "help", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "shop_x", .help = "x", .labels = { "a-b" }), "label",
			-EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "shop_x", .help = "x", .labels = { "__a" }), "label",
			-EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "shop_x", .help = "x", .labels = { "a", "a" }),
			"two labels", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_HISTOGRAM, .name = "shop_x", .help = "x", .labels = { "le" },
			.per_unit = 1000000000), "'le'", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_HISTOGRAM, .name = "shop_x", .help = "x"), "buckets", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_HISTOGRAM, .name = "shop_x", .help = "x", .buckets = falling,
			.bucket_count = 2), "above", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "shop_x", .help = "x", .per_unit = 60), "per_unit",
			-EINVAL },
		{ { .name = "shop_x" }, "COMPONENT_METRIC_SPEC", -EINVAL },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "taken", .help = "other"), "another", -EEXIST },
		{ COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_COUNTER, .name = "taken_total", .help = "x"), "another", -EEXIST },
	};

	(void)state;
	made(SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "taken", .help = "x"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct component_error   err = COMPONENT_ERROR_INIT;
		struct component_metric *m = (void *)&err;

		assert_int_equal(component_metric_new(&rows[i].spec, &m, &err), rows[i].r);
		assert_null(m);
		if (!strstr(err.text, rows[i].word))
			fail_msg("row %zu: %s", i, err.text);
	}
}

static void
the_same_spec_again_is_the_same_metric(void **state)
{
	const struct component_metric_spec *spec = SPEC(.type = COMPONENT_METRIC_COUNTER, .name = "twice_total", .help = "x",
		.labels = { "a" });
	struct component_metric *m = made(spec);

	(void)state;
	assert_ptr_equal(made(spec), m);
	assert_ptr_equal(component_counter_of(m, "1", NULL), component_counter_of(m, "1", NULL));
	assert_ptr_not_equal(component_counter_of(m, "1", NULL), component_counter_of(m, "2", NULL));
}

static void
more_series_than_the_limit_are_counted_as_dropped(void **state)
{
	struct component_metric *m = made(SPEC(.type = COMPONENT_METRIC_COUNTER, .name = "few_total", .help = "x",
		.labels = { "a" }, .series_max = 2));

	(void)state;
	component_counter_add(component_counter_of(m, "1", NULL), 1);
	component_counter_add(component_counter_of(m, "2", NULL), 1);
	component_counter_add(component_counter_of(m, "3", NULL), 7);
	component_counter_add(component_counter_of(m, "4", NULL), 7);
	component_counter_add(component_counter_of(m, "1", NULL), 1);
	assert_shown(EXPOSITION_TEXT, "few_total{", "few_total{a=\"1\"} 2\nfew_total{a=\"2\"} 1\n");
	assert_shown(EXPOSITION_TEXT, "\"few_total\"", "component_metrics_dropped_series_total{metric=\"few_total\"} 2\n");
}

static void
a_handle_is_never_null(void **state)
{
	struct component_metric *m = made(SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "other_type", .help = "x",
		.labels = { "a" }));

	(void)state;
	component_counter_add(component_counter_of(NULL, NULL), 1);
	component_counter_add(component_counter_of(m, "1", NULL), 1);
	component_histogram_observe(component_histogram_of(m, "1", NULL), 1);
	component_histogram_observe(component_histogram_of(NULL, NULL), -1);
	component_gauge_set(component_gauge_of(m, NULL), 3);
	component_gauge_set(component_gauge_of(m, "1", "2", NULL), 3);
	assert_shown(EXPOSITION_TEXT, "other_type{", "");
	assert_shown(EXPOSITION_TEXT, "\"other_type\"", "component_metrics_dropped_series_total{metric=\"other_type\"} 4\n");
}

static void
collect_two(struct component_metric_samples *to, void *arg)
{
	component_metric_sample(to, 1500, "a", NULL);
	component_metric_sample(to, *(int64_t *)arg, "b", NULL);
	component_metric_sample(to, 1, NULL); /* without its label: not shown */
}

static void
a_metric_can_be_found_out_when_somebody_asks(void **state)
{
	static int64_t value = 10;

	(void)state;
	made(SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "asked_seconds", .help = "x", .labels = { "of" }, .per_unit = 1000,
		.collect = collect_two, .arg = &value));
	assert_shown(EXPOSITION_TEXT, "asked_seconds{", "asked_seconds{of=\"a\"} 1.5\nasked_seconds{of=\"b\"} 0.01\n");
	value = 2000;
	assert_shown(EXPOSITION_TEXT, "asked_seconds{", "asked_seconds{of=\"a\"} 1.5\nasked_seconds{of=\"b\"} 2\n");
}

#define THREADS 8
#define EACH    20000

static void *
count_and_make(void *arg)
{
	struct component_metric *m = arg;
	char name[24];

	for (int i = 0; i < EACH; i++) {
		if (i % 100 == 0) {
			snprintf(name, sizeof(name), "%d", i % 1000);
			component_counter_add(component_counter_of(m, name, NULL), 0);
		}
		component_counter_add(component_counter_of(m, "all", NULL), 1);
	}
	return NULL;
}

static void *
read_all(void *stop)
{
	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED)) {
		struct text all = TEXT_INIT;

		exposition_write(&all, EXPOSITION_TEXT);
		text_release(&all);
	}
	return NULL;
}

static void
nothing_is_lost_where_threads_count_make_and_read_at_once(void **state)
{
	struct component_metric *m = made(SPEC(.type = COMPONENT_METRIC_COUNTER, .name = "crowd_total", .help = "x",
		.labels = { "a" }));
	pthread_t threads[THREADS], reader;
	bool      stop = false;
	char      expected[64];

	(void)state;
	assert_int_equal(pthread_create(&reader, NULL, read_all, &stop), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_and_make, m), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(reader, NULL);
	snprintf(expected, sizeof(expected), "crowd_total{a=\"all\"} %d\n", THREADS * EACH);
	assert_shown(EXPOSITION_TEXT, "a=\"all\"", expected);
}

static void *
make_series(void *arg)
{
	struct component_metric *m = arg;
	char name[24];

	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "%d", i);
		component_counter_of(m, name, NULL);
	}
	return NULL;
}

static void
a_child_of_fork_has_the_values_and_can_make_more(void **state)
{
	struct component_metric *m = made(SPEC(.type = COMPONENT_METRIC_COUNTER, .name = "forked_total", .help = "x",
		.labels = { "a" }));
	pthread_t maker;
	int       status;

	(void)state;
	component_counter_add(component_counter_of(m, "x", NULL), 41);
	assert_int_equal(pthread_create(&maker, NULL, make_series, m), 0); /* holds the lock now and then */
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0) {
			struct component_counter *c = component_counter_of(m, "x", NULL);

			component_counter_add(c, 1);
			component_counter_of(m, "child", NULL);
			_exit(c->value == 42 ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	pthread_join(maker, NULL);
	assert_shown(EXPOSITION_TEXT, "a=\"x\"", "forked_total{a=\"x\"} 41\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_counter_has_a_line_for_each_series_by_name),
		cmocka_unit_test(openmetrics_calls_a_counter_without_its_ending_and_ends),
		cmocka_unit_test(numbers_are_exact_and_written_as_go_does),
		cmocka_unit_test(a_locale_with_a_comma_changes_no_number),
		cmocka_unit_test(a_histogram_counts_what_is_at_most_each_bound),
		cmocka_unit_test(bounds_of_buckets_have_the_text_that_go_gives_them),
		cmocka_unit_test(values_of_labels_are_escaped_cut_and_made_utf8),
		cmocka_unit_test(what_cannot_be_is_refused_with_a_reason),
		cmocka_unit_test(the_same_spec_again_is_the_same_metric),
		cmocka_unit_test(more_series_than_the_limit_are_counted_as_dropped),
		cmocka_unit_test(a_handle_is_never_null),
		cmocka_unit_test(a_metric_can_be_found_out_when_somebody_asks),
		cmocka_unit_test(nothing_is_lost_where_threads_count_make_and_read_at_once),
		cmocka_unit_test(a_child_of_fork_has_the_values_and_can_make_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
