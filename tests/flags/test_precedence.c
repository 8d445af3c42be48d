/*
 * test_precedence.c - which level wins, what is known of it, and rules about
 * several options.
 */
#include <config.h>

#include "fixture.h"

static void
the_highest_level_that_gives_a_value_wins(void **state)
{
	/* A bit for each level that gives --v: line 8, environment 4, file 2, component 1. */
	static const struct { int levels; int64_t want; const char *source; } cases[] = {
		{ 0, 0, "default" }, { 1, 1, "component default" }, { 2, 2, "file:" }, { 3, 2, "file:" },
		{ 4, 3, "env:COMPONENT_V" }, { 5, 3, "env:COMPONENT_V" }, { 6, 3, "env:COMPONENT_V" }, { 7, 3, "env:COMPONENT_V" },
		{ 8, 4, "flag" }, { 9, 4, "flag" }, { 10, 4, "flag" }, { 11, 4, "flag" }, { 12, 4, "flag" }, { 13, 4, "flag" },
		{ 14, 4, "flag" }, { 15, 4, "flag" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		int levels = cases[i].levels;
		const char *env[] = { levels & 4 ? "COMPONENT_V=3" : "COMPONENT_V=", NULL };
		const char *path = fixture_file(levels & 2 ? "v: 2\n" : "v:\n");
		struct component_flags *f = fixture_new(env);

		if (levels & 1)
			assert_int_equal(component_flags_set_default(f, "v", "1", &fixture_err), 0);
		assert_int_equal(PARSE(f, "-c", path, levels & 8 ? "--v=4" : "--v="), 0);
		unlink(path);
		assert_int_equal(opt.v, cases[i].want);
		assert_memory_equal(component_flags_source(f, "v"), cases[i].source, strlen(cases[i].source));
		assert_int_equal(component_flags_given(f, "v"), levels >= 2);
		component_flags_free(f);
	}
}

static void
a_list_of_a_higher_level_replaces_the_lower_one(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("COMPONENT_CONTROLLERS=e,f"));
	const char             *path = fixture_file("controllers: [a, b, c]\n");

	(void)state;
	assert_int_equal(PARSE(f, "-c", path), 0);
	assert_int_equal(opt.controllers.count, 2);
	assert_string_equal(opt.controllers.items[0], "e");
	component_flags_free(f);
	f = fixture_new(ENVIRONMENT("COMPONENT_CONTROLLERS=e,f"));
	assert_int_equal(PARSE(f, "-c", path, "--controllers=x"), 0);
	assert_int_equal(opt.controllers.count, 1);
	assert_string_equal(opt.controllers.items[0], "x");
	component_flags_free(f);
	unlink(path);
}

static void
the_config_file_can_be_named_by_the_environment(void **state)
{
	const char *path = fixture_file("v: 5\n");
	char        variable[128];
	struct component_flags *f;

	(void)state;
	snprintf(variable, sizeof(variable), "BACKEND_CONTROLLER_CONFIG=%s", path);
	f = fixture_new(ENVIRONMENT(variable));
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_int_equal(opt.v, 5);
	component_flags_free(f);
	/* The command line names another one. */
	f = fixture_new(ENVIRONMENT(variable));
	assert_int_equal(PARSE(f, "--config=/dev/null"), 0);
	assert_int_equal(opt.v, 0);
	component_flags_free(f);
	unlink(path);
}

static void
a_component_default_is_checked_like_any_value(void **state)
{
	struct component_flags *f = fixture_new(NULL);

	(void)state;
	assert_int_equal(component_flags_set_default(f, "v", "x", &fixture_err), -EINVAL);
	assert_non_null(strstr(fixture_err.text, "default of --v: 'x': not a whole number"));
	assert_int_equal(component_flags_set_default(f, "rate-limiter-qps", "1001", &fixture_err), -ERANGE);
	assert_int_equal(component_flags_set_default(f, "nope", "1", &fixture_err), -ENOENT);
	assert_string_equal(fixture_err.text, "no option --nope to set a default for");
	assert_int_equal(component_flags_set_default(f, "v", "", &fixture_err), -EINVAL);
	assert_int_equal(component_flags_set_default(f, "v", NULL, NULL), -EINVAL);
	assert_int_equal(component_flags_set_default(f, "v", "3", &fixture_err), 0);
	assert_int_equal(component_flags_set_default(f, "v", "5", &fixture_err), 0);
	assert_int_equal(component_flags_set_default(f, "profiling-bind-address", "127.0.0.1:6061", &fixture_err), 0);
	assert_int_equal(opt.v, 0);
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_int_equal(opt.v, 5);
	assert_string_equal(opt.address, "127.0.0.1:6061");
	component_flags_free(f);
	assert_string_equal(opt.address, "127.0.0.1:6060");
}

/* --profile-port and --profiling-bind-address say the same thing. */
static int
port_or_address(struct component_flags *f, void *arg, struct component_error *err)
{
	int *calls = arg;

	++*calls;
	if (!component_flags_given(f, "profile-port") || !component_flags_given(f, "profiling-bind-address"))
		return 0;
	component_error_set(err, "--profile-port %lld and --profiling-bind-address %s exclude each other; give one",
		(long long)opt.port, opt.address);
	return -EINVAL;
}

static int
always_wrong(struct component_flags *f, void *arg, struct component_error *err)
{
	(void)arg;
	component_flags_warn(f, "careful: %d", 7);
	component_error_set(err, "one");
	component_error_add(err, "two");
	return -EINVAL;
}

static int
only_a_warning(struct component_flags *f, void *arg, struct component_error *err)
{
	(void)arg;
	(void)err;
	component_flags_warn(f, "%s", "mind the gap");
	return 0;
}

static int
silently_wrong(struct component_flags *f, void *arg, struct component_error *err)
{
	(void)f;
	(void)arg;
	(void)err;
	return -EPERM;
}

static void
a_check_sees_the_new_values_and_its_fault_joins_the_others(void **state)
{
	struct component_flags *f = fixture_new(NULL);
	int                     calls = 0;

	(void)state;
	assert_int_equal(component_flags_add_check(f, port_or_address, &calls), 0);
	assert_int_equal(component_flags_add_check(f, always_wrong, NULL), 0);
	assert_int_equal(component_flags_add_check(f, silently_wrong, NULL), 0);
	assert_int_equal(component_flags_set_default(f, "v", "9", NULL), 0);
	assert_int_equal(PARSE(f, "--profile-port=7", "--profiling-bind-address=:8", "--controllers=a"), -EINVAL);
	assert_string_equal(fixture_faults(),
		"backend-controller: --profile-port 7 and --profiling-bind-address :8 exclude each other; give one\n"
		"backend-controller: one\nbackend-controller: two\n"
		"backend-controller: a check of the options failed without saying why");
	assert_int_equal(calls, 1);
	assert_int_equal(component_flags_exit_status(f), 2);
	/* Not one variable has changed. */
	assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
	component_flags_free(f);
	assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
}

static void
a_check_does_not_run_on_values_that_are_wrong_alone(void **state)
{
	struct component_flags *f = fixture_new(NULL);
	int                     calls = 0;

	(void)state;
	assert_int_equal(component_flags_add_check(f, port_or_address, &calls), 0);
	assert_int_equal(PARSE(f, "--v=x"), -EINVAL);
	assert_int_equal(calls, 0);
	component_flags_free(f);
}

static void
a_check_may_warn(void **state)
{
	struct component_flags *f = fixture_new(NULL);

	(void)state;
	assert_int_equal(component_flags_add_check(f, only_a_warning, NULL), 0);
	assert_int_equal(component_flags_add_check(f, NULL, NULL), -EINVAL);
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_string_equal(component_flags_warning(f, 0), "mind the gap");
	assert_null(component_flags_warning(f, 1));
	component_flags_free(f);
}

static void
check_config_and_help_answer_instead_of_going_on(void **state)
{
	struct component_flags *f = fixture_new(NULL);
	const char             *path = fixture_file("v: 3\n");

	(void)state;
	assert_int_equal(PARSE(f, "--check-config", "-c", path), 1);
	assert_string_equal(component_flags_output(f), "configuration OK\n");
	assert_int_equal(component_flags_exit_status(f), 0);
	component_flags_free(f);
	f = fixture_new(NULL);
	assert_int_equal(PARSE(f, "--check-config=false", "-c", path), 0);
	component_flags_free(f);
	fixture_rewrite(path, "v: x\n");
	f = fixture_new(NULL);
	assert_int_equal(PARSE(f, "--check-config", "-c", path), -EINVAL);
	assert_int_equal(component_flags_exit_status(f), 78);
	assert_string_equal(component_flags_output(f), "");
	component_flags_free(f);
	/* Help wins over every fault. */
	f = fixture_new(ENVIRONMENT("COMPONENT_V=x"));
	assert_int_equal(PARSE(f, "--nope", "-c", path, "extra", "--help", "--v=y"), 1);
	assert_memory_equal(component_flags_output(f), "Usage: ", 7);
	assert_int_equal(component_flags_exit_status(f), 0);
	assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
	component_flags_free(f);
	unlink(path);
}

static void
secrets_are_listed_by_every_name(void **state)
{
	static const char *other;
	static const struct component_flag rows[] = {
		COMPONENT_FLAG_STRING("other-secret", &other, "Another.", .section = "X", .alias = "os other",
			.deprecated = "old-secret", .bits = COMPONENT_FLAG_SECRET),
		COMPONENT_FLAG_END
	};
	static const char *const want[] = { "profiling-token", "other-secret", "os", "other", "old-secret", NULL };
	struct component_flags  *f = fixture_new(NULL);
	const char *const       *secrets;

	(void)state;
	assert_int_equal(component_flags_add(f, rows, NULL), 0);
	assert_null(component_flags_secrets(f)[0]);
	assert_int_equal(PARSE_NOTHING(f), 0);
	secrets = component_flags_secrets(f);
	for (size_t i = 0; i < COUNT(want); i++)
		if (want[i])
			assert_string_equal(secrets[i], want[i]);
		else
			assert_null(secrets[i]);
	component_flags_free(f);
	assert_null(component_flags_secrets(NULL)[0]);
}

static void
a_spec_that_is_not_one_is_refused(void **state)
{
	static const char *const names[] = { NULL, "", "a b", "a/b", "-a", "a;b", "..", "\xc3\xa9",
		"0123456789012345678901234567890123456789012345678901234567890123456789" };
	struct component_flags_spec spec = COMPONENT_FLAGS_SPEC(.name = "x");
	struct component_flags     *f = (void *)&spec;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		spec.name = names[i];
		assert_int_equal(component_flags_new(&spec, &f, &fixture_err), -EINVAL);
		assert_ptr_equal(f, &spec);
	}
	spec.name = "x";
	spec.size = 8;
	assert_int_equal(component_flags_new(&spec, &f, NULL), -EINVAL);
	assert_int_equal(component_flags_new(NULL, &f, NULL), -EINVAL);
	assert_int_equal(component_flags_add(NULL, fixture_rows, NULL), -EINVAL);
	assert_int_equal(component_flags_parse(NULL, 0, NULL, NULL), -EINVAL);
	assert_int_equal(component_flags_reload(NULL, NULL), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_highest_level_that_gives_a_value_wins),
		cmocka_unit_test(a_list_of_a_higher_level_replaces_the_lower_one),
		cmocka_unit_test(the_config_file_can_be_named_by_the_environment),
		cmocka_unit_test(a_component_default_is_checked_like_any_value),
		cmocka_unit_test(a_check_sees_the_new_values_and_its_fault_joins_the_others),
		cmocka_unit_test(a_check_does_not_run_on_values_that_are_wrong_alone),
		cmocka_unit_test(a_check_may_warn),
		cmocka_unit_test(check_config_and_help_answer_instead_of_going_on),
		cmocka_unit_test(secrets_are_listed_by_every_name),
		cmocka_unit_test(a_spec_that_is_not_one_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
