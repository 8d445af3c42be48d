/*
 * test_line.c - the command line: every way to write an option, and what is
 * said about every way not to.
 */
#include <config.h>

#include "fixture.h"

#include <getopt.h>

#include "operands.h"

/* The words are accepted. */
static struct component_flags *
accept_words(const char *const *words)
{
	struct component_flags *f = fixture_new(NULL);

	if (fixture_parse(f, words) != 0)
		fail_msg("%s", fixture_err.text);
	return f;
}

#define ACCEPT(...) accept_words((const char *const[]){ __VA_ARGS__, NULL })

/* The words are refused with these faults, no variable changed, status 2. */
static void
refuse_words(const char *faults, const char *const *words)
{
	struct component_flags *f = fixture_new(NULL);

	assert_int_equal(fixture_parse(f, words), -EINVAL);
	assert_string_equal(fixture_faults(), faults);
	assert_int_equal(component_flags_exit_status(f), 2);
	assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
	component_flags_free(f);
}

#define REFUSE(faults, ...) refuse_words(faults, (const char *const[]){ __VA_ARGS__, NULL })

static void
nothing_said_leaves_every_default(void **state)
{
	struct component_flags *f = fixture_new(NULL);

	(void)state;
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
	assert_string_equal(component_flags_source(f, "v"), "default");
	assert_false(component_flags_given(f, "v"));
	assert_null(component_flags_source(f, "no-such-row"));
	assert_null(component_flags_warning(f, 0));
	assert_string_equal(component_flags_output(f), "");
	component_flags_free(f);
}

static void
a_value_follows_behind_equals_or_as_a_word(void **state)
{
	struct component_flags *f;

	(void)state;
	f = ACCEPT("--heap-profile-rate=1MiB", "--rate-limiter-qps", "2.5", "--graceful-shutdown-timeout", "-1s",
		"--logging-format=json", "--log-file", "/x/y=z", "--profile-port=0");
	assert_int_equal(opt.rate, 1 << 20);
	assert_true(opt.qps == 2.5);
	assert_true(opt.grace == -SECONDS);
	assert_int_equal(opt.format, 2);
	assert_string_equal(opt.file, "/x/y=z");
	assert_int_equal(opt.port, 0);
	assert_string_equal(component_flags_source(f, "log-file"), "flag");
	assert_true(component_flags_given(f, "log_file"));
	component_flags_free(f);
	assert_string_equal(opt.file, "");
}

static void
a_bool_is_written_in_many_ways(void **state)
{
	static const struct { const char *words[3]; bool want; } cases[] = {
		{ { "--enable-pprof" }, true }, { { "--enable-pprof=true" }, true }, { { "--enable-pprof=1" }, true },
		{ { "--enable-pprof=Yes" }, true }, { { "--enable-pprof=off" }, false }, { { "--no-enable-pprof" }, false },
		{ { "--enable-pprof", "--no-enable-pprof" }, false }, { { "--no-enable-pprof", "--enable-pprof" }, true },
		{ { "--enable-pprof", "true" }, true }, { { "--enable-pprof", "false" }, false },
		{ { "--enable_pprof" }, true }, { { "--no_enable_pprof" }, false }, { { "--enable-profiling" }, true },
		{ { "--enable-profiling", "false" }, false }, { { "--no-enable-profiling" }, false },
		{ { "--enable_profiling=t" }, true }, { { "--enable-pprof=" }, false },
		{ { "--enable-pprof=", "--enable-pprof" }, true }, { { "--enable-pprof", "--enable-pprof=" }, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct component_flags *f = accept_words(cases[i].words);

		assert_int_equal(opt.pprof, cases[i].want);
		component_flags_free(f);
	}
}

static void
only_the_exact_words_true_and_false_are_taken_along(void **state)
{
	(void)state;
	REFUSE("backend-controller: extra operand 'TRUE'; write '--enable-pprof=TRUE'", "--enable-pprof", "TRUE");
	REFUSE("backend-controller: extra operand '1'; write '--enable-pprof=1'", "--enable-pprof", "1");
	REFUSE("backend-controller: extra operand 'python'", "--enable-pprof", "python");
	REFUSE("backend-controller: extra operand 'true'", "--enable-pprof=true", "true");
	REFUSE("backend-controller: extra operand 'true'", "--no-enable-pprof", "true");
	REFUSE("backend-controller: extra operand 'true'", "--enable-pprof", "--", "true");
	/* A row without BOOL_WORD. */
	REFUSE("backend-controller: extra operand 'false'; write '--leader-elect=false'", "--leader-elect", "false");
}

static void
letters_stand_alone_or_share_a_word(void **state)
{
	struct component_flags *f;

	(void)state;
	f = ACCEPT("-v", "3");
	assert_int_equal(opt.v, 3);
	component_flags_free(f);
	f = ACCEPT("-v3");
	assert_int_equal(opt.v, 3);
	component_flags_free(f);
	f = ACCEPT("-vdebug", "--v=5");
	assert_int_equal(opt.v, 5);
	component_flags_free(f);
	REFUSE("backend-controller: unknown option '-x'\nbackend-controller: unknown option '-y'", "-xy");
	REFUSE("backend-controller: option '-v': wants a value; write it behind the letter", "-v");
	f = ACCEPT("-v=3");
	assert_int_equal(opt.v, 3);
	component_flags_free(f);
	REFUSE("backend-controller: option '-v': '=3': not a whole number; write digits, such as 42, without blanks, "
		"sign '+' or leading zeros; or one of 'error', 'info', 'debug'", "-v", "=3");
}

static void
a_letter_of_a_bool_takes_its_value_behind_equals(void **state)
{
	static bool dry;
	static const struct component_flag rows[] = {
		COMPONENT_FLAG_BOOL("dry-run", &dry, "Change nothing.", .section = "X", .letter = 'n'),
		COMPONENT_FLAG_END
	};
	static const struct {
		const char *word;
		bool        is;
	} cases[] = { { "-n", true }, { "-n=true", true }, { "-n=false", false }, { "-n=0", false } };
	struct component_flags *f;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		dry = !cases[i].is;
		f = fixture_new(NULL);
		assert_int_equal(component_flags_add(f, rows, NULL), 0);
		assert_int_equal(PARSE(f, cases[i].word), 0);
		assert_int_equal(dry, cases[i].is);
		component_flags_free(f);
	}
	f = fixture_new(NULL);
	assert_int_equal(component_flags_add(f, rows, NULL), 0);
	assert_int_equal(PARSE(f, "-n=perhaps"), -EINVAL);
	assert_non_null(strstr(fixture_err.text, "option '--dry-run': 'perhaps': "));
	component_flags_free(f);
}

static void
an_abbreviation_is_unknown(void **state)
{
	(void)state;
	REFUSE("backend-controller: unknown option '--enable-p'; did you mean '--enable-pprof'?", "--enable-p");
	REFUSE("backend-controller: unknown option '--profiling-bind'; did you mean '--profiling-bind-address'?",
		"--profiling-bind", ":1");
	REFUSE("backend-controller: unknown option '--log'; did you mean '--logging-format'?", "--log=json");
}

static void
an_unknown_option_suggests_the_nearest(void **state)
{
	(void)state;
	REFUSE("backend-controller: unknown option '--enable-pporf'; did you mean '--enable-pprof'?", "--enable-pporf");
	REFUSE("backend-controller: unknown option '--no-profile-port'; '--profile-port' wants a value and has no '--no-'",
		"--no-profile-port");
	REFUSE("backend-controller: unknown option '--no-log-fiel'; did you mean '--log-file'?", "--no-log-fiel");
	REFUSE("backend-controller: unknown option '--no-enable-pporf'; did you mean '--no-enable-pprof'?",
		"--no-enable-pporf");
	REFUSE("backend-controller: unknown option '--bind-address'", "--bind-address=:1");
	REFUSE("backend-controller: unknown option '--zzz'", "--zzz");
	REFUSE("backend-controller: unknown option '--=3'", "--=3");
	REFUSE("backend-controller: unknown option '--Enable-pprof'; did you mean '--enable-pprof'?", "--Enable-pprof");
	/* Hidden rows are not advertised. */
	REFUSE("backend-controller: unknown option '--profile-pot'", "--profile-pot=1");
}

static void
an_unknown_options_operand_is_not_a_second_fault(void **state)
{
	(void)state;
	REFUSE("backend-controller: unknown option '--zzz'", "--zzz", "value");
	REFUSE("backend-controller: unknown option '--zzz'\nbackend-controller: extra operand 'b'", "--zzz", "a", "b");
	REFUSE("backend-controller: unknown option '--zzz'\nbackend-controller: extra operand 'a'", "--zzz=1", "a");
}

static void
an_operand_is_a_fault_wherever_it_stands(void **state)
{
	(void)state;
	REFUSE("backend-controller: extra operand 'a'\nbackend-controller: extra operand '-'\n"
		"backend-controller: extra operand '--v'", "a", "-v1", "-", "--", "--v");
	REFUSE("backend-controller: extra operand 'enable-pprof=true'; did you mean '--enable-pprof'?", "enable-pprof=true");
	REFUSE("backend-controller: extra operand ''", "");
}

static void
a_missing_value_is_told_apart_from_a_strange_one(void **state)
{
	(void)state;
	REFUSE("backend-controller: option '--log-file': wants a value; write it after '='", "--log-file");
	REFUSE("backend-controller: option '--log-file': wants a value, but another option follows; "
		"write the value with '=' if that is it", "--log-file", "--enable-pprof");
	REFUSE("backend-controller: option '--no-enable-pprof': takes no value; leave it out", "--no-enable-pprof=yes");
}

static void
a_value_that_looks_like_an_option_can_be_written_with_equals(void **state)
{
	struct component_flags *f;

	(void)state;
	f = ACCEPT("--log-file=--enable-pprof");
	assert_string_equal(opt.file, "--enable-pprof");
	assert_false(opt.pprof);
	component_flags_free(f);
	f = ACCEPT("--controllers", "-a,b");
	assert_string_equal(opt.controllers.items[0], "-a");
	component_flags_free(f);
}

static void
the_last_one_wins_and_lists_add_up(void **state)
{
	struct component_flags *f;

	(void)state;
	f = ACCEPT("--v=1", "-v2", "--controllers=a,b", "--v=3", "--controllers", "c", "--controllers=");
	assert_int_equal(opt.v, 3);
	assert_int_equal(opt.controllers.count, 3);
	assert_string_equal(opt.controllers.items[0], "a");
	assert_string_equal(opt.controllers.items[2], "c");
	assert_null(opt.controllers.items[3]);
	component_flags_free(f);
	assert_int_equal(opt.controllers.count, 1);
	assert_ptr_equal(opt.controllers.items, fixture_star);
}

static void
an_empty_value_is_not_given(void **state)
{
	struct component_flags *f;

	(void)state;
	f = ACCEPT("--log-file=", "--v=", "--profiling-bind-address", "", "--controllers=", "--logging-format=",
		"--config=", "-v", "", "--dump-options=", "--version=");
	assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
	for (size_t i = 0; fixture_rows[i].name; i++)
		assert_string_equal(component_flags_source(f, fixture_rows[i].name), "default");
	component_flags_free(f);
}

static void
all_faults_are_told_at_once(void **state)
{
	struct component_flags *f = fixture_new(ENVIRONMENT("COMPONENT_V=loud", "PPROF_BIND_ADDRESS=6060"));
	char config[80];

	(void)state;
	snprintf(config, sizeof(config), "--config=%s", fixture_file("heap-profile-rate: many\nnope: 1\n"));
	assert_int_equal(PARSE(f, config, "--rate-limiter-qps=1001", "--zzz", "--graceful-shutdown-timeout=30"), -EINVAL);
	assert_non_null(strstr(fixture_err.text, "option '--rate-limiter-qps': '1001': out of range; write a value from 0 to 1000\n"));
	assert_non_null(strstr(fixture_err.text, "unknown option '--zzz'\n"));
	assert_non_null(strstr(fixture_err.text, "option '--graceful-shutdown-timeout': '30': has no unit; write '30s', or '30ms'"));
	assert_non_null(strstr(fixture_err.text, "environment variable COMPONENT_V: 'loud': not a whole number"));
	assert_non_null(strstr(fixture_err.text, "environment variable PPROF_BIND_ADDRESS: '6060': missing host part"));
	assert_non_null(strstr(fixture_err.text, ":1: key 'heap-profile-rate': 'many': not a size"));
	assert_non_null(strstr(fixture_err.text, ":2: key 'nope': belongs to no option"));
	assert_non_null(strstr(fixture_err.text, "\nTry 'backend-controller --help' for more information."));
	assert_int_equal(component_flags_exit_status(f), 2);
	unlink(strchr(config, '=') + 1);
	component_flags_free(f);
}

static void
more_faults_than_fit_are_counted(void **state)
{
	struct component_flags *f = fixture_new(NULL);
	static char *argv[1001];
	const char  *end;

	(void)state;
	argv[0] = (char *)"backend-controller";
	for (int i = 1; i <= 1000; i++)
		argv[i] = (char *)"--zzzzzzzzzzzzzzzzzzzzzzzzzz";
	assert_int_equal(component_flags_parse(f, 1001, argv, &fixture_err), -EINVAL);
	assert_non_null(strstr(fixture_err.text, " more faults are not shown\nTry '"));
	end = strrchr(fixture_err.text, '\n');
	assert_string_equal(end, "\nTry 'backend-controller --help' for more information.");
	component_flags_free(f);
}

static void
values_in_messages_are_cut_and_made_visible(void **state)
{
	struct component_flags *f = fixture_new(NULL);
	char                    word[3000];

	(void)state;
	REFUSE("backend-controller: option '--v': '\\x1b[2J\\x0aroot: pwned\\xff': not a whole number; write digits, such as 42, "
		"without blanks, sign '+' or leading zeros; or one of 'error', 'info', 'debug'", "--v=\x1b[2J\nroot: pwned\xff");
	memset(word, 'a', sizeof(word));
	memcpy(word, "--v=", 4);
	word[sizeof(word) - 1] = '\0';
	assert_int_equal(PARSE(f, word), -EINVAL);
	assert_true(strlen(fixture_err.text) < 400);
	assert_non_null(strstr(fixture_err.text, "aaa...': not a whole number"));
	component_flags_free(f);
}

static void
a_secret_is_not_repeated_in_a_fault(void **state)
{
	static const char *secret;
	static const struct component_flag rows[] = {
		COMPONENT_FLAG_ADDRESS("secret-place", &secret, "Where.", .section = "X", .bits = COMPONENT_FLAG_SECRET),
		COMPONENT_FLAG_END
	};
	struct component_flags *f = fixture_new(NULL);

	(void)state;
	assert_int_equal(component_flags_add(f, rows, NULL), 0);
	assert_int_equal(PARSE(f, "--secret-place=hunter2"), -EINVAL);
	assert_null(strstr(fixture_err.text, "hunter2"));
	assert_non_null(strstr(fixture_err.text, "option '--secret-place': the value: "));
	component_flags_free(f);
}

/* The words are accepted; their one operand, or "". */
static const char *
optional_row(int64_t *ret, const char *first, const char *second)
{
	static int64_t count;
	static const struct component_flag rows[] = {
		COMPONENT_FLAG_INT("count", &count, "How many.", .section = "X", .bits = COMPONENT_FLAG_OPTIONAL),
		COMPONENT_FLAG_END
	};
	static char             operand[16];
	struct component_flags *f;

	count = 10;
	f = fixture_new(NULL);
	assert_int_equal(component_flags_add(f, rows, NULL), 0);
	flags_operands(f, "program", "[WORD]", 0, 1, false);
	if (fixture_parse(f, (const char *const[]){ first, second, NULL }))
		fail_msg("%s", fixture_err.text);
	*ret = count;
	snprintf(operand, sizeof(operand), "%s", *flags_operand_words(f) ? *flags_operand_words(f) : "");
	component_flags_free(f);
	return operand;
}

static void
an_optional_value_stands_behind_equals_alone(void **state)
{
	int64_t count;

	(void)state;
	assert_string_equal(optional_row(&count, "--count=3", "heap"), "heap");
	assert_int_equal(count, 3);
	assert_string_equal(optional_row(&count, "--count", "heap"), "heap");
	assert_int_equal(count, 10);
	assert_string_equal(optional_row(&count, "--count", "3"), "3");
	assert_int_equal(count, 10);
	assert_string_equal(optional_row(&count, "heap", "--count"), "heap");
	assert_int_equal(count, 10);
}

static void
a_former_name_works_and_warns(void **state)
{
	struct component_flags *f;

	(void)state;
	f = ACCEPT("--elect=false");
	assert_false(opt.leader);
	assert_string_equal(component_flags_warning(f, 0), "option '--elect' is deprecated; use '--leader-elect'");
	assert_null(component_flags_warning(f, 1));
	component_flags_free(f);
}

static void
getopts_own_state_is_put_back(void **state)
{
	struct component_flags *f;
	char *own[] = { (char *)"prog", (char *)"-a", (char *)"x", (char *)"-b", NULL };
	char  mark[] = "mark";

	(void)state;
	optind = 1;
	opterr = 1;
	optopt = 'q';
	optarg = mark;
	f = ACCEPT("-v3", "--enable-pprof");
	assert_int_equal(optind, 0); /* from the beginning */
	assert_int_equal(opterr, 1);
	assert_int_equal(optopt, 'q');
	assert_ptr_equal(optarg, mark);
	component_flags_free(f);
	/* And a daemon's own getopt() still works behind ours. */
	assert_int_equal(getopt(4, own, "a:b"), 'a');
	assert_string_equal(optarg, "x");
	assert_int_equal(getopt(4, own, "a:b"), 'b');
	assert_int_equal(getopt(4, own, "a:b"), -1);
	optind = 1;
}

static void
a_daemons_own_getopt_has_its_operands_last_or_first_as_it_wants(void **state)
{
	char *behind[] = { (char *)"prog", (char *)"x", (char *)"-b", NULL };
	char *first[] = { (char *)"prog", (char *)"x", (char *)"-b", NULL };

	(void)state;
	optind = 1;
	component_flags_free(ACCEPT("-v3"));
	assert_int_equal(getopt(3, behind, "b"), 'b');
	assert_int_equal(getopt(3, behind, "b"), -1);
	assert_string_equal(behind[optind], "x");
	optind = 1;
	component_flags_free(ACCEPT("-v3"));
	assert_int_equal(getopt(3, first, "+b"), -1);
	assert_string_equal(first[optind], "x");
	optind = 1;
	component_flags_free(ACCEPT("-v3"));
	optind = 1; /* as some daemons have it, to be sure */
	assert_int_equal(getopt(3, behind, "b"), 'b');
	optind = 1;
}

static void
the_words_of_main_are_left_alone(void **state)
{
	char words[][32] = { "backend-controller", "--enable_pprof", "true", "--v", "3" };
	char before[COUNT(words)][32];
	char *argv[] = { words[0], words[1], words[2], words[3], words[4], NULL };
	struct component_flags *f = fixture_new(NULL);

	(void)state;
	memcpy(before, words, sizeof(words));
	assert_int_equal(component_flags_parse(f, 5, argv, &fixture_err), 0);
	assert_memory_equal(words, before, sizeof(words));
	for (size_t i = 0; i < COUNT(words); i++)
		assert_ptr_equal(argv[i], words[i]);
	component_flags_free(f);
}

static void
parsing_twice_or_adding_late_is_refused(void **state)
{
	struct component_flags *f;

	(void)state;
	f = ACCEPT("--v=2");
	assert_int_equal(PARSE(f, "--v=3"), -EALREADY);
	assert_int_equal(component_flags_add(f, fixture_rows, &fixture_err), -EBUSY);
	assert_int_equal(component_flags_set_default(f, "v", "7", &fixture_err), -EBUSY);
	assert_int_equal(opt.v, 2);
	component_flags_free(f);
	component_flags_free(NULL);
}

static void
no_words_at_all_are_fine(void **state)
{
	struct component_flags *f = fixture_new(NULL);

	(void)state;
	assert_int_equal(component_flags_parse(f, 0, NULL, &fixture_err), 0);
	component_flags_free(f);
}

static void
random_words_never_do_more_than_fail(void **state)
{
	static const char *const pieces[] = {
		"--", "-", "enable-pprof", "no-", "v", "c", "=", "true", "false", "--config", "help", "_", "x", "3", "",
		"--controllers", ",", "a", ":", "0", "--version", "=json", "--dump-options", "-h", "\xff",
	};
	uint64_t seed = 0x9e3779b97f4a7c15u;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct component_flags *f = fixture_new(NULL);
		char  words[6][64];
		char *argv[8] = { (char *)"backend-controller" };
		int   argc = 1, r;

		for (int w = 0; w < 6; w++) {
			words[w][0] = '\0';
			for (int k = 0; k < 3; k++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				strcat(words[w], pieces[(seed >> 33) % COUNT(pieces)]);
			}
			argv[argc++] = words[w];
		}
		r = component_flags_parse(f, argc, argv, &fixture_err);
		assert_true(r == 0 || r == 1 || r == -EINVAL);
		if (r < 0)
			assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
		component_flags_free(f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_said_leaves_every_default),
		cmocka_unit_test(a_value_follows_behind_equals_or_as_a_word),
		cmocka_unit_test(a_bool_is_written_in_many_ways),
		cmocka_unit_test(only_the_exact_words_true_and_false_are_taken_along),
		cmocka_unit_test(letters_stand_alone_or_share_a_word),
		cmocka_unit_test(a_letter_of_a_bool_takes_its_value_behind_equals),
		cmocka_unit_test(an_abbreviation_is_unknown),
		cmocka_unit_test(an_unknown_option_suggests_the_nearest),
		cmocka_unit_test(an_unknown_options_operand_is_not_a_second_fault),
		cmocka_unit_test(an_operand_is_a_fault_wherever_it_stands),
		cmocka_unit_test(a_missing_value_is_told_apart_from_a_strange_one),
		cmocka_unit_test(a_value_that_looks_like_an_option_can_be_written_with_equals),
		cmocka_unit_test(the_last_one_wins_and_lists_add_up),
		cmocka_unit_test(an_empty_value_is_not_given),
		cmocka_unit_test(all_faults_are_told_at_once),
		cmocka_unit_test(more_faults_than_fit_are_counted),
		cmocka_unit_test(values_in_messages_are_cut_and_made_visible),
		cmocka_unit_test(a_secret_is_not_repeated_in_a_fault),
		cmocka_unit_test(an_optional_value_stands_behind_equals_alone),
		cmocka_unit_test(a_former_name_works_and_warns),
		cmocka_unit_test(getopts_own_state_is_put_back),
		cmocka_unit_test(a_daemons_own_getopt_has_its_operands_last_or_first_as_it_wants),
		cmocka_unit_test(the_words_of_main_are_left_alone),
		cmocka_unit_test(parsing_twice_or_adding_late_is_refused),
		cmocka_unit_test(no_words_at_all_are_fine),
		cmocka_unit_test(random_words_never_do_more_than_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
