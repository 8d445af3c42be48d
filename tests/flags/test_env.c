/*
 * test_env.c - options from the environment: which variable wins, what an alias
 * variable switches on, and when nothing of it is read.
 */
#include <config.h>

#include "fixture.h"

static void
the_own_prefix_beats_the_shared_one_and_that_beats_aliases(void **state)
{
	static const struct { const char *env[4]; bool want; const char *source; } cases[] = {
		{ { "BACKEND_CONTROLLER_ENABLE_PPROF=1", "COMPONENT_ENABLE_PPROF=0", "ENABLE_PROFILING=0" }, true,
			"env:BACKEND_CONTROLLER_ENABLE_PPROF" },
		{ { "COMPONENT_ENABLE_PPROF=yes", "ENABLE_PROFILING=0" }, true, "env:COMPONENT_ENABLE_PPROF" },
		{ { "ENABLE_PROFILING=TRUE" }, true, "env:ENABLE_PROFILING" },
		{ { "BACKEND_CONTROLLER_ENABLE_PROFILING=on", "COMPONENT_ENABLE_PPROF=0" }, true,
			"env:BACKEND_CONTROLLER_ENABLE_PROFILING" },
		{ { "COMPONENT_ENABLE_PROFILING=on" }, true, "env:COMPONENT_ENABLE_PROFILING" },
		{ { "BACKEND_CONTROLLER_ENABLE_PPROF=", "COMPONENT_ENABLE_PPROF=", "ENABLE_PROFILING=1" }, true,
			"env:ENABLE_PROFILING" },
		{ { "BACKEND_CONTROLLER_ENABLE_PPROF=off", "ENABLE_PROFILING=1" }, false,
			"env:BACKEND_CONTROLLER_ENABLE_PPROF" },
		{ { "ENABLE_PPROF=1", "PPROF=1", "enable_pprof=1" }, false, "default" },
		{ { "ENABLE_PROFILING=" }, false, "default" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct component_flags *f = fixture_new(cases[i].env);

		assert_int_equal(PARSE_NOTHING(f), 0);
		assert_int_equal(opt.pprof, cases[i].want);
		assert_string_equal(component_flags_source(f, "enable-pprof"), cases[i].source);
		assert_null(component_flags_warning(f, 0));
		component_flags_free(f);
	}
}

static void
every_type_can_come_from_the_environment(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("COMPONENT_HEAP_PROFILE_RATE=4KiB", "COMPONENT_CONTROLLERS=a,b",
		"COMPONENT_RATE_LIMITER_QPS=0.5", "COMPONENT_GRACEFUL_SHUTDOWN_TIMEOUT=1m", "LOG_LEVEL=Debug", "LOG_FORMAT=json",
		"COMPONENT_LOG_FILE=/x", "COMPONENT_PROFILE_PORT=7777", "COMPONENT_LEADER_ELECT=no"));

	(void)state;
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_int_equal(opt.rate, 4096);
	assert_int_equal(opt.controllers.count, 2);
	assert_true(opt.qps == 0.5);
	assert_true(opt.grace == 60 * SECONDS);
	assert_int_equal(opt.v, 4);
	assert_int_equal(opt.format, 2);
	assert_string_equal(opt.file, "/x");
	assert_int_equal(opt.port, 7777);
	assert_false(opt.leader);
	component_flags_free(f);
}

static void
a_bad_variable_is_named_with_its_value_and_status_2(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("ENABLE_PROFILING=maybe", "COMPONENT_CONTROLLERS=a,,b"));

	(void)state;
	assert_int_equal(PARSE_NOTHING(f), -EINVAL);
	assert_string_equal(fixture_faults(),
		"backend-controller: environment variable ENABLE_PROFILING: 'maybe': neither true nor false; write 'true' or 'false'\n"
		"backend-controller: environment variable COMPONENT_CONTROLLERS: 'a,,b': has an empty item or a blank around one; "
		"write items with commas alone between them, such as a,b,c");
	assert_int_equal(component_flags_exit_status(f), 2);
	assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
	component_flags_free(f);
}

static void
a_warning_is_told_although_there_is_a_fault(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("COMPONENT_NOPE=1"));

	(void)state;
	assert_int_equal(PARSE(f, "--v=x"), -EINVAL);
	assert_string_equal(component_flags_warning(f, 0),
		"environment variable 'COMPONENT_NOPE' belongs to no option and is ignored");
	/* Parsed once more, after a fault: only what holds now. */
	assert_int_equal(PARSE(f, "--v=y", "--elect"), -EINVAL);
	assert_string_equal(component_flags_warning(f, 0), "option '--elect' is deprecated; use '--leader-elect'");
	assert_non_null(component_flags_warning(f, 1));
	assert_null(component_flags_warning(f, 2));
	assert_int_equal(PARSE(f, "--v=1"), 0);
	assert_int_equal(opt.v, 1);
	component_flags_free(f);
}

static void
a_bad_variable_is_a_fault_although_the_command_line_wins(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("COMPONENT_V=x"));

	(void)state;
	assert_int_equal(PARSE(f, "--v=1"), -EINVAL);
	component_flags_free(f);
	/* But one that a stronger variable hides is somebody else's. */
	f = fixture_new(ENVIRONMENT("COMPONENT_V=2", "LOG_LEVEL=trace"));
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_int_equal(opt.v, 2);
	component_flags_free(f);
}

/* The enabling matrix: switch on the command line, ENABLE_PROFILING, PPROF_BIND_ADDRESS. */
static void
the_enabling_matrix_holds_row_by_row(void **state)
{
	static const struct {
		const char *words[4], *env[4];
		bool        on;
		const char *address, *warning;
	} cases[] = {
		{ { NULL }, { NULL }, false, "127.0.0.1:6060", NULL },
		{ { "--enable-pprof" }, { NULL }, true, "127.0.0.1:6060", NULL },
		{ { "--enable-pprof" }, { "ENABLE_PROFILING=false" }, true, "127.0.0.1:6060", NULL },
		{ { "--enable-pprof", "--profiling-bind-address=:7" }, { NULL }, true, ":7", NULL },
		{ { NULL }, { "ENABLE_PROFILING=true" }, true, "127.0.0.1:6060", NULL },
		{ { NULL }, { "COMPONENT_ENABLE_PPROF=true" }, true, "127.0.0.1:6060", NULL },
		{ { NULL }, { "PPROF_BIND_ADDRESS=:6060" }, true, ":6060", NULL },
		{ { NULL }, { "PPROF_BIND_ADDRESS=0" }, false, "0", NULL },
		{ { NULL }, { "PPROF_BIND_ADDRESS=" }, false, "127.0.0.1:6060", NULL },
		{ { NULL }, { "ENABLE_PROFILING=false", "PPROF_BIND_ADDRESS=:6060" }, false, ":6060",
			"environment variable PPROF_BIND_ADDRESS has no effect: --enable-pprof is switched off by ENABLE_PROFILING" },
		{ { NULL }, { "ENABLE_PROFILING=", "PPROF_BIND_ADDRESS=:6060" }, true, ":6060", NULL },
		{ { "--enable-pprof=false" }, { "ENABLE_PROFILING=true" }, false, "127.0.0.1:6060", NULL },
		{ { "--no-enable-pprof" }, { "PPROF_BIND_ADDRESS=:6060" }, false, ":6060",
			"environment variable PPROF_BIND_ADDRESS has no effect: --enable-pprof is switched off by the command line" },
		{ { "--enable-pprof=" }, { "PPROF_BIND_ADDRESS=:6060" }, true, ":6060", NULL },
		{ { "--enable-pprof", "--profiling-bind-address=:7" }, { "PPROF_BIND_ADDRESS=:6060" }, true, ":7", NULL },
		{ { "--profiling-bind-address=:7" }, { "PPROF_BIND_ADDRESS=:6060" }, true, ":7", NULL },
		{ { "--profiling-bind-address=:7" }, { NULL }, false, ":7",
			"--profiling-bind-address (flag) has no effect without --enable-pprof" },
		{ { NULL }, { "COMPONENT_PROFILING_BIND_ADDRESS=:7" }, false, ":7",
			"--profiling-bind-address (env:COMPONENT_PROFILING_BIND_ADDRESS) has no effect without --enable-pprof" },
		{ { NULL }, { "COMPONENT_PROFILING_BIND_ADDRESS=:7", "PPROF_BIND_ADDRESS=:6060" }, true, ":7", NULL },
		{ { "--profiling-bind-address=0" }, { NULL }, false, "0", NULL },
		{ { "--no-enable-pprof", "--profiling-bind-address=:7" }, { NULL }, false, ":7", NULL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct component_flags *f = fixture_new(cases[i].env);
		const char             *warning;

		assert_int_equal(fixture_parse(f, cases[i].words), 0);
		warning = component_flags_warning(f, 0);
		if (opt.pprof != cases[i].on || strcmp(opt.address, cases[i].address) != 0 ||
		    strcmp(warning ? warning : "", cases[i].warning ? cases[i].warning : "") != 0)
			fail_msg("row %zu: pprof %d, address %s, warning %s", i, opt.pprof, opt.address, warning ? warning : "none");
		component_flags_free(f);
	}
}

static void
an_explicit_no_in_the_config_file_beats_the_enabling_variable(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("PPROF_BIND_ADDRESS=:6060"));
	const char             *path = fixture_file("profiling: {enabled: no}\n");

	(void)state;
	assert_int_equal(PARSE(f, "-c", path), 0);
	assert_false(opt.pprof);
	assert_string_equal(component_flags_warning(f, 0),
		"environment variable PPROF_BIND_ADDRESS has no effect: --enable-pprof is switched off by the config file");
	unlink(path);
	component_flags_free(f);
}

static void
what_switched_it_on_is_told(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("PPROF_BIND_ADDRESS=:6060"));

	(void)state;
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_string_equal(component_flags_source(f, "enable-pprof"), "env:PPROF_BIND_ADDRESS");
	assert_true(component_flags_given(f, "enable-pprof"));
	component_flags_free(f);
}

static void
an_unknown_variable_of_ours_is_a_warning(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("BACKEND_CONTROLLER_ENABLE_PPORF=1", "COMPONENT_NOPE=x",
		"BACKEND_CONTROLLER_HELP=1", "BACKEND_CONTROLLERS_X=1", "BACKEND_CONTROLLER_=1", "COMPONENT_EMPTY=", "XCOMPONENT_V=3"));

	(void)state;
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_string_equal(component_flags_warning(f, 0), "environment variable 'BACKEND_CONTROLLER_ENABLE_PPORF' belongs to "
		"no option and is ignored; did you mean 'BACKEND_CONTROLLER_ENABLE_PPROF'?");
	assert_string_equal(component_flags_warning(f, 1),
		"environment variable 'COMPONENT_NOPE' belongs to no option and is ignored");
	assert_string_equal(component_flags_warning(f, 2),
		"environment variable 'BACKEND_CONTROLLER_HELP' belongs to no option and is ignored");
	assert_null(component_flags_warning(f, 3));
	assert_false(opt.pprof);
	component_flags_free(f);
}

static void
the_variables_of_a_kubernetes_service_raise_no_warning(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("BACKEND_CONTROLLER_SERVICE_HOST=10.0.0.1",
		"BACKEND_CONTROLLER_SERVICE_PORT=6060", "BACKEND_CONTROLLER_SERVICE_PORT_PPROF=6060",
		"BACKEND_CONTROLLER_PORT=tcp://10.0.0.1:6060", "BACKEND_CONTROLLER_PORT_6060_TCP_ADDR=10.0.0.1",
		"BACKEND_CONTROLLER_METRICS_SERVICE_HOST=10.0.0.1", "COMPONENT_SHOP_PORT=tcp://10.0.0.1:80",
		"COMPONENT_SHOP_PORT_80_TCP=tcp://10.0.0.1:80", "COMPONENT_SHOP_SERVICE_PORT_HTTP=80"));

	(void)state;
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_null(component_flags_warning(f, 0));
	component_flags_free(f);
	f = fixture_new(ENVIRONMENT("BACKEND_CONTROLLER_PORT_FILE=/x", "BACKEND_CONTROLLER_PORT=80", "COMPONENT_SERVICE_HOSTS=x"));
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_non_null(component_flags_warning(f, 2));
	assert_null(component_flags_warning(f, 3));
	component_flags_free(f);
}

static void
the_variable_of_a_kubernetes_service_is_no_option_of_its_name(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("BACKEND_CONTROLLER_PROFILE_PORT=tcp://10.0.0.1:6060",
		"COMPONENT_PROFILE_PORT=7777"));

	(void)state;
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_int_equal(opt.port, 7777);
	assert_string_equal(component_flags_warning(f, 0), "environment variable BACKEND_CONTROLLER_PROFILE_PORT is ignored: "
		"it tells of a service of Kubernetes");
	assert_null(component_flags_warning(f, 1));
	component_flags_free(f);
	/* An option may have an address of another kind. */
	f = fixture_new(ENVIRONMENT("BACKEND_CONTROLLER_LOG_FILE=file://x"));
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_string_equal(opt.file, "file://x");
	component_flags_free(f);
}

static void
a_privileged_start_reads_no_variable_and_says_so(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("PATH=/bin", "COMPONENT_V=x", "PPROF_BIND_ADDRESS=:6060",
		"COMPONENT_CONFIG=/nonexistent", "COMPONENT_NOPE=1", "ENABLE_PROFILING=1"));

	(void)state;
	f->secure = true;
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
	assert_string_equal(component_flags_warning(f, 0), "environment variables are ignored, COMPONENT_V among them: "
		"the program was started with other privileges than its caller's");
	assert_null(component_flags_warning(f, 1));
	component_flags_free(f);
	f = fixture_new(ENVIRONMENT("PATH=/bin", "HOME=/"));
	f->secure = true;
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_null(component_flags_warning(f, 0));
	component_flags_free(f);
}

static void
a_start_is_privileged_when_the_kernel_says_so(void **state)
{
	struct component_flags *f = NULL;

	(void)state;
	assert_int_equal(component_flags_new(&fixture_spec, &f, NULL), 0);
	assert_false(f->secure);
	assert_null(f->environment);
	component_flags_free(f);
}

static void
the_environment_of_the_process_is_read(void **state)
{
	struct component_flags *f = fixture_new(NULL);

	(void)state;
	f->environment = NULL;
	setenv("BACKEND_CONTROLLER_V", "6", 1);
	assert_int_equal(PARSE_NOTHING(f), 0);
	unsetenv("BACKEND_CONTROLLER_V");
	assert_int_equal(opt.v, 6);
	component_flags_free(f);
}

static void
a_program_named_component_reads_each_variable_once(void **state)
{
	static const struct component_flags_spec spec = COMPONENT_FLAGS_SPEC(.name = "component", .version = "1");
	static const char *const env[] = { "COMPONENT_CONTROLLERS=a", NULL };
	struct component_flags *f = NULL;

	(void)state;
	opt = fixture_defaults;
	assert_int_equal(component_flags_new(&spec, &f, NULL), 0);
	assert_int_equal(component_flags_add(f, fixture_rows, NULL), 0);
	f->environment = env;
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_int_equal(opt.controllers.count, 1);
	component_flags_free(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_own_prefix_beats_the_shared_one_and_that_beats_aliases),
		cmocka_unit_test(every_type_can_come_from_the_environment),
		cmocka_unit_test(a_bad_variable_is_named_with_its_value_and_status_2),
		cmocka_unit_test(a_warning_is_told_although_there_is_a_fault),
		cmocka_unit_test(a_bad_variable_is_a_fault_although_the_command_line_wins),
		cmocka_unit_test(the_enabling_matrix_holds_row_by_row),
		cmocka_unit_test(an_explicit_no_in_the_config_file_beats_the_enabling_variable),
		cmocka_unit_test(what_switched_it_on_is_told),
		cmocka_unit_test(an_unknown_variable_of_ours_is_a_warning),
		cmocka_unit_test(the_variables_of_a_kubernetes_service_raise_no_warning),
		cmocka_unit_test(the_variable_of_a_kubernetes_service_is_no_option_of_its_name),
		cmocka_unit_test(a_privileged_start_reads_no_variable_and_says_so),
		cmocka_unit_test(a_start_is_privileged_when_the_kernel_says_so),
		cmocka_unit_test(the_environment_of_the_process_is_read),
		cmocka_unit_test(a_program_named_component_reads_each_variable_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
