/*
 * test_extract.c - our options taken out of a command line that is somebody else's.
 */
#include <config.h>

#include "fixture.h"

static char *argv[WORDS_MAX];
static int   argc;

static int
extract_words(struct component_flags *f, const char *const *words)
{
	argc = 0;
	argv[argc++] = (char *)"foreignd";
	for (; *words; words++)
		argv[argc++] = (char *)*words;
	argv[argc] = NULL;
	return component_flags_extract(&argc, argv, f, &fixture_err);
}

#define EXTRACT(f, ...) extract_words(f, (const char *const[]){ __VA_ARGS__, NULL })

/* What is left, joined by blanks. */
static const char *
left(void)
{
	static char text[512];

	text[0] = '\0';
	for (int i = 1; i < argc; i++) {
		strcat(text, i > 1 ? " " : "");
		strcat(text, argv[i]);
	}
	assert_null(argv[argc]);
	assert_string_equal(argv[0], "foreignd");
	return text;
}

static struct component_flags *
accept_words(const char *const *words)
{
	struct component_flags *f = fixture_new(NULL);

	if (extract_words(f, words) != 0)
		fail_msg("%s", fixture_err.text);
	return f;
}

#define ACCEPT(...) accept_words((const char *const[]){ __VA_ARGS__, NULL })

static void
ours_are_taken_and_the_rest_keeps_its_order(void **state)
{
	struct component_flags *f = ACCEPT("-p", "11211", "--enable-pprof", "-vv", "--profiling-bind-address=:7000",
		"--threads=4", "--profile-port", "-1", "file");

	(void)state;
	assert_string_equal(left(), "-p 11211 -vv --threads=4 file");
	assert_true(opt.pprof);
	assert_string_equal(opt.address, ":7000");
	assert_int_equal(opt.port, -1);
	component_flags_free(f);
}

static void
a_value_may_be_the_next_word(void **state)
{
	struct component_flags *f = ACCEPT("-d", "--profiling-bind-address", "unix:/run/x.%p.sock", "-u", "nobody");

	(void)state;
	assert_string_equal(left(), "-d -u nobody");
	assert_string_equal(opt.address, "unix:/run/x.%p.sock");
	component_flags_free(f);
}

static void
every_form_of_a_bool_is_taken(void **state)
{
	struct component_flags *f = ACCEPT("--no-leader-elect", "--enable_pprof", "true", "x");

	(void)state;
	assert_string_equal(left(), "x");
	assert_true(opt.pprof);
	assert_false(opt.leader);
	component_flags_free(f);
	f = ACCEPT("--enable-profiling", "word");
	assert_string_equal(left(), "word");
	assert_true(opt.pprof);
	component_flags_free(f);
	f = ACCEPT("--enable-pprof", "false");
	assert_string_equal(left(), "");
	assert_false(opt.pprof);
	component_flags_free(f);
}

static void
what_stands_behind_two_dashes_is_the_daemons(void **state)
{
	struct component_flags *f = ACCEPT("-x", "--", "--enable-pprof", "-v");

	(void)state;
	assert_string_equal(left(), "-x -- --enable-pprof -v");
	assert_false(opt.pprof);
	component_flags_free(f);
}

static void
letters_help_version_and_config_are_the_daemons(void **state)
{
	struct component_flags *f = ACCEPT("-c", "my.conf", "-v", "-h", "-V", "--help", "--version", "--config", "/x",
		"--check-config", "--enable", "-");

	(void)state;
	assert_string_equal(left(), "-c my.conf -v -h -V --help --version --config /x --check-config --enable -");
	assert_int_equal(opt.v, 0);
	assert_null(component_flags_source(f, "config"));
	component_flags_free(f);
}

static void
environment_and_config_file_are_read(void **state)
{
	const char *path = fixture_file("profiling:\n  enabled: true\nheap-profile-rate: 1MiB\n");
	char        option[128];
	struct component_flags *f = fixture_new(ENVIRONMENT("BACKEND_CONTROLLER_PROFILING_BIND_ADDRESS=:7001"));

	(void)state;
	snprintf(option, sizeof(option), "--profiling-config=%s", path);
	assert_int_equal(EXTRACT(f, "-f", "theirs", option), 0);
	assert_string_equal(left(), "-f theirs");
	assert_true(opt.pprof);
	assert_int_equal(opt.rate, 1 << 20);
	assert_string_equal(opt.address, ":7001");
	unlink(path);
	component_flags_free(f);
}

/* Nothing is taken, no variable changed, and the sentence ends with the way to the manual. */
static void
refuse_words(const char *fault, const char *const *words)
{
	struct component_flags *f = fixture_new(NULL);
	int                     count = 1;
	char                    want[512];

	assert_int_equal(extract_words(f, words), -EINVAL);
	snprintf(want, sizeof(want), "backend-controller: %s\nTry 'backend-controller --profiling-help' for more information.", fault);
	assert_string_equal(fixture_err.text, want);
	for (; words[count - 1]; count++)
		assert_string_equal(argv[count], words[count - 1]);
	assert_int_equal(argc, count);
	assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
	assert_int_equal(component_flags_exit_status(f), 2);
	component_flags_free(f);
}

#define REFUSE(fault, ...) refuse_words(fault, (const char *const[]){ __VA_ARGS__, NULL })

static void
a_fault_is_told_and_changes_nothing(void **state)
{
	(void)state;
	REFUSE("option '--profiling-bind-address': '6060': missing host part; write ':6060' or '127.0.0.1:6060'",
		"-p", "1", "--profiling-bind-address=6060", "--enable-pprof");
	REFUSE("option '--profiling-bind-address': wants a value; write it after '='", "--profiling-bind-address", "-p", "1");
	REFUSE("option '--profiling-bind-address': wants a value; write it after '='", "--profiling-bind-address");
	REFUSE("option '--profiling-bind-address': wants a value; write it after '='", "--profiling-bind-address", "--", "x");
	REFUSE("option '--profiling-bind-address': wants a value, but another option follows; write the value with '=' if that is it",
		"--profiling-bind-address", "--enable-pprof", "-p", "1");
}

static void
help_shows_the_names_that_work_here(void **state)
{
	struct component_flags *f = fixture_new(NULL);
	const char             *text;

	(void)state;
	assert_int_equal(EXTRACT(f, "-p", "1", "--profiling-help"), 1);
	text = component_flags_output(f);
	assert_non_null(strstr(text, "--profiling-bind-address"));
	assert_non_null(strstr(text, "--profiling-config=FILE"));
	assert_null(strstr(text, "--version"));
	assert_null(strstr(text, "-c,"));
	assert_int_equal(argc, 4);
	component_flags_free(f);
	f = fixture_new(NULL);
	assert_int_equal(EXTRACT(f, "--profiling-dump-options", "--enable-pprof"), 1);
	assert_non_null(strstr(component_flags_output(f), "enable-pprof: true"));
	component_flags_free(f);
}

static void
it_wants_the_arguments_of_main_once(void **state)
{
	struct component_flags *f = fixture_new(NULL);
	char                   *words[] = { (char *)"x", (char *)"y" };
	int                     one = 1, none = 0;

	(void)state;
	assert_int_equal(component_flags_extract(&one, words, f, &fixture_err), -EINVAL);
	assert_int_equal(component_flags_extract(&none, words, f, &fixture_err), -EINVAL);
	assert_int_equal(component_flags_extract(NULL, words, f, &fixture_err), -EINVAL);
	assert_int_equal(EXTRACT(f, "a"), 0);
	assert_int_equal(EXTRACT(f, "a"), -EALREADY);
	assert_string_equal(left(), "a");
	component_flags_free(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ours_are_taken_and_the_rest_keeps_its_order),
		cmocka_unit_test(a_value_may_be_the_next_word),
		cmocka_unit_test(every_form_of_a_bool_is_taken),
		cmocka_unit_test(what_stands_behind_two_dashes_is_the_daemons),
		cmocka_unit_test(letters_help_version_and_config_are_the_daemons),
		cmocka_unit_test(environment_and_config_file_are_read),
		cmocka_unit_test(a_fault_is_told_and_changes_nothing),
		cmocka_unit_test(help_shows_the_names_that_work_here),
		cmocka_unit_test(it_wants_the_arguments_of_main_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
