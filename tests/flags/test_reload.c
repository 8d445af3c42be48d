/*
 * test_reload.c - environment and config file once more, while the program runs:
 * all or nothing, and only what may change.
 */
#include <config.h>

#include "fixture.h"

static const char *path;

static struct component_flags *
start(const char *text)
{
	struct component_flags *f = fixture_new(NULL);

	path = fixture_file(text);
	assert_int_equal(PARSE(f, "-c", path, "--logging-format=json"), 0);
	return f;
}

static void
end(struct component_flags *f)
{
	unlink(path);
	component_flags_free(f);
}

static void
a_reload_takes_new_values_of_reloadable_rows(void **state)
{
	struct component_flags *f = start("v: 1\nheap-profile-rate: 4KiB\n");
	struct text             source = TEXT_INIT;

	(void)state;
	fixture_rewrite(path, "\nv: 2\ncontrollers: [a, b]\nprofiling-token: abc\n");
	assert_int_equal(component_flags_reload(f, &fixture_err), 0);
	assert_int_equal(opt.v, 2);
	text_add(&source, "file:%s:2", path);
	assert_string_equal(component_flags_source(f, "v"), source.data);
	assert_int_equal(opt.controllers.count, 2);
	assert_string_equal(opt.token, "abc");
	/* What is not given any more falls back to its default. */
	assert_int_equal(opt.rate, 512 * 1024);
	assert_string_equal(component_flags_source(f, "heap-profile-rate"), "default");
	assert_null(component_flags_warning(f, 0));
	text_release(&source);
	end(f);
}

static void
the_command_line_stays(void **state)
{
	struct component_flags *f = start("v: 1\n");

	(void)state;
	fixture_rewrite(path, "logging-format: logfmt\n");
	assert_int_equal(component_flags_reload(f, &fixture_err), 0);
	assert_int_equal(opt.format, 2);
	assert_string_equal(component_flags_source(f, "logging-format"), "flag");
	end(f);
}

static void
a_row_that_needs_a_restart_stays_and_is_named(void **state)
{
	struct component_flags *f = start("log-file: /a\ngraceful-shutdown-timeout: 1s\n");
	char                    warning[128];

	(void)state;
	fixture_rewrite(path, "log-file: /b\ngraceful-shutdown-timeout: 1000ms\nv: 3\n");
	assert_int_equal(component_flags_reload(f, &fixture_err), 0);
	assert_string_equal(opt.file, "/a");
	assert_int_equal(opt.v, 3);
	snprintf(warning, sizeof(warning), "--log-file (file:%s:1) cannot change while the program runs; restart it", path);
	assert_string_equal(component_flags_warning(f, 0), warning);
	assert_null(component_flags_warning(f, 1));
	end(f);
}

static void
one_fault_anywhere_changes_nothing(void **state)
{
	static const char *const texts[] = {
		"v: 7\nrate-limiter-qps: 2\nnope: 1\n", "v: 7\nlog-file: [1]\n", "v: 7\n--- x\n", "v: 7\nrate-limiter-qps: 1e9\n",
		"v: 7\nlogging-format: xml\n", "v: 7\n\"", "v: 7\ngraceful-shutdown-timeout: 30\n",
	};
	struct component_flags *f = start("v: 1\nrate-limiter-qps: 3\n");
	const char             *source = strdup(component_flags_source(f, "v"));

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct fixture_options before = opt;

		fixture_rewrite(path, texts[i]);
		assert_int_equal(component_flags_reload(f, &fixture_err), -EINVAL);
		assert_memory_equal(&opt, &before, sizeof(opt));
		assert_string_equal(component_flags_source(f, "v"), source);
	}
	unlink(path);
	assert_int_equal(component_flags_reload(f, &fixture_err), -EINVAL);
	assert_int_equal(opt.v, 1);
	assert_int_equal(component_flags_exit_status(f), 0);
	free((void *)source);
	component_flags_free(f);
}

static const char *seen; /* by the check, or by another thread at that moment */

static int
not_above_five(struct component_flags *f, void *arg, struct component_error *err)
{
	(void)arg;
	seen = opt.token;
	if (opt.v <= 5)
		return 0;
	component_error_set(err, "--v (%s) is above 5", component_flags_source(f, "v"));
	return -ERANGE;
}

static void
a_check_that_fails_takes_everything_back(void **state)
{
	struct component_flags *f = fixture_new(NULL);
	struct fixture_options  before;
	char                    want[128];

	(void)state;
	path = fixture_file("v: 1\nprofiling-token: old\ncontrollers: [a]\n");
	assert_int_equal(component_flags_add_check(f, not_above_five, NULL), 0);
	assert_int_equal(PARSE(f, "-c", path), 0);
	before = opt;
	fixture_rewrite(path, "controllers: [b]\nprofiling-token: new\nv: 6\n");
	assert_int_equal(component_flags_reload(f, &fixture_err), -EINVAL);
	snprintf(want, sizeof(want), "backend-controller: --v (file:%s:3) is above 5", path);
	assert_string_equal(fixture_faults(), want);
	assert_memory_equal(&opt, &before, sizeof(opt));
	assert_string_equal(opt.token, "old");
	assert_string_equal(seen, "new");
	assert_string_equal(opt.controllers.items[0], "a");
	fixture_rewrite(path, "v: 5\n");
	assert_int_equal(component_flags_reload(f, &fixture_err), 0);
	assert_int_equal(opt.v, 5);
	end(f);
}

static void
a_string_of_before_is_readable_until_the_next_reload(void **state)
{
	struct component_flags *f = start("profiling-token: one\ncontrollers: [a]\n");
	const char             *old = opt.token, *again;
	struct component_list   list = opt.controllers;

	(void)state;
	fixture_rewrite(path, "profiling-token: two\ncontrollers: [b]\n");
	assert_int_equal(component_flags_reload(f, &fixture_err), 0);
	assert_string_equal(opt.token, "two");
	assert_string_equal(old, "one");
	assert_string_equal(list.items[0], "a");
	/* What does not change keeps its place. */
	again = opt.token;
	assert_int_equal(component_flags_reload(f, &fixture_err), 0);
	assert_ptr_equal(opt.token, again);
	assert_int_equal(component_flags_reload(f, &fixture_err), 0);
	assert_ptr_equal(opt.token, again);
	end(f);
}

static void
the_file_is_found_again_after_chdir(void **state)
{
	struct component_flags *f = fixture_new(NULL);
	char                    here[4096];

	(void)state;
	assert_non_null(getcwd(here, sizeof(here)));
	path = fixture_file("v: 1\n");
	assert_int_equal(chdir("/tmp"), 0);
	assert_int_equal(PARSE(f, "-c", path + strlen("/tmp/")), 0);
	assert_int_equal(chdir("/"), 0);
	fixture_rewrite(path, "v: 2\n");
	assert_int_equal(component_flags_reload(f, &fixture_err), 0);
	assert_int_equal(opt.v, 2);
	assert_int_equal(chdir(here), 0);
	end(f);
}

static void
another_config_file_wants_a_restart(void **state)
{
	const char *env[] = { NULL, NULL };
	char        variable[128];
	struct component_flags *f;

	(void)state;
	path = fixture_file("v: 1\n");
	snprintf(variable, sizeof(variable), "COMPONENT_CONFIG=%s", path);
	env[0] = variable;
	f = fixture_new(env);
	assert_int_equal(PARSE_NOTHING(f), 0);
	env[0] = "COMPONENT_CONFIG=/dev/null";
	assert_int_equal(component_flags_reload(f, &fixture_err), 0);
	assert_int_equal(opt.v, 1);
	assert_string_equal(component_flags_warning(f, 0),
		"--config (env:COMPONENT_CONFIG) cannot change while the program runs; restart it");
	end(f);
}

static void
an_enabling_variable_works_on_reload_too(void **state)
{
	const char *env[] = { NULL, NULL };
	struct component_flags *f = fixture_new(env);

	(void)state;
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_false(opt.pprof);
	env[0] = "PPROF_BIND_ADDRESS=:7";
	assert_int_equal(component_flags_reload(f, &fixture_err), 0);
	assert_true(opt.pprof);
	assert_string_equal(opt.address, ":7");
	env[0] = NULL;
	assert_int_equal(component_flags_reload(f, &fixture_err), 0);
	assert_false(opt.pprof);
	assert_string_equal(opt.address, "127.0.0.1:6060");
	component_flags_free(f);
}

static void
reloading_before_parsing_is_refused(void **state)
{
	struct component_flags *f = fixture_new(NULL);

	(void)state;
	assert_int_equal(component_flags_reload(f, &fixture_err), -EINVAL);
	assert_int_equal(PARSE(f, "--help"), 1);
	assert_int_equal(component_flags_reload(f, &fixture_err), -EINVAL);
	component_flags_free(f);
}

static void
a_hundred_reloads_hold_no_more_than_one(void **state)
{
	struct component_flags *f = start("v: 1\n");
	char                    text[256];

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "v: %d\nprofiling-token: token%d\ncontrollers: [a%d]\nnope%s\n", i, i, i,
			i % 3 ? "" : ": 1");
		if (i % 3)
			*strstr(text, "nope") = '#';
		fixture_rewrite(path, text);
		assert_int_equal(component_flags_reload(f, &fixture_err), i % 3 ? 0 : -EINVAL);
		if (i % 3)
			assert_int_equal(opt.v, i);
	}
	end(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reload_takes_new_values_of_reloadable_rows),
		cmocka_unit_test(the_command_line_stays),
		cmocka_unit_test(a_row_that_needs_a_restart_stays_and_is_named),
		cmocka_unit_test(one_fault_anywhere_changes_nothing),
		cmocka_unit_test(a_check_that_fails_takes_everything_back),
		cmocka_unit_test(a_string_of_before_is_readable_until_the_next_reload),
		cmocka_unit_test(the_file_is_found_again_after_chdir),
		cmocka_unit_test(another_config_file_wants_a_restart),
		cmocka_unit_test(an_enabling_variable_works_on_reload_too),
		cmocka_unit_test(reloading_before_parsing_is_refused),
		cmocka_unit_test(a_hundred_reloads_hold_no_more_than_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
