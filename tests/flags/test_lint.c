/*
 * test_lint.c - faults of a table: each is found, all of them at once, and the
 * tables of the fixture have none.
 */
#include <config.h>

#include "fixture.h"

#include <math.h>

static bool                  a_bool, another_bool;
static int64_t               an_int, another_int;
static uint64_t              a_size;
static double                a_number;
static const char           *a_string;
static struct component_list a_list;
static int                   a_choice;

static const char *const no_choices[] = { NULL };
static const char *const twice[] = { "a", "b", "a", NULL };

/* A row with help and section, and whatever else. */
#define BOOL(name, ...) COMPONENT_FLAG_BOOL(name, &a_bool, "Help.", .section = "S", __VA_ARGS__)
#define INT(name, ...) COMPONENT_FLAG_INT(name, &an_int, "Help.", .section = "S", __VA_ARGS__)
#define GOOD .letter = 0

/* clang-format off */
static const struct {
	struct component_flag rows[3];
	const char           *fault;
} cases[] = {
	{ { INT("", GOOD) }, "option '': a name is made of a-z, 0-9 and '-', at most 64 bytes" },
	{ { INT("Upper", GOOD) }, "option 'Upper': a name is made of" },
	{ { INT("under_score", GOOD) }, "option 'under_score': a name is made of" },
	{ { INT("-x", GOOD) }, "option '-x': a name is made of" },
	{ { INT("x-", GOOD) }, "option 'x-': a name is made of" },
	{ { INT("x=y", GOOD) }, "option 'x=y': a name is made of" },
	{ { INT(NULL, GOOD) }, "option '(none)': a name is made of" },
	{ { COMPONENT_FLAG_INT("x", &an_int, NULL, .section = "S") }, "option --x: no help" },
	{ { COMPONENT_FLAG_INT("x", &an_int, "Help.", .min = 0) }, "option --x: no section" },
	{ { { .name = "x", .type = COMPONENT_FLAG_TYPE_INT, .help = "Help.", .section = "S" } }, "option --x: no variable" },
	{ { { .name = "x", .type = (enum component_flag_type)77, .help = "Help.", .section = "S", .value = { .any = &an_int } } },
		"option --x: unknown type 77" },
	{ { INT("help", GOOD) }, "option --help: name 'help' belongs to --help already" },
	{ { INT("x", GOOD), COMPONENT_FLAG_INT("x", &another_int, "Help.", .section = "S") },
		"option --x: name 'x' belongs to --x already" },
	{ { INT("x", GOOD), COMPONENT_FLAG_INT("y", &another_int, "Help.", .section = "S", .alias = "z x") },
		"option --y: name 'x' belongs to --x already" },
	{ { INT("x", .deprecated = "old"), COMPONENT_FLAG_INT("y", &another_int, "Help.", .section = "S", .alias = "old") },
		"option --y: name 'old' belongs to --x already" },
	{ { BOOL("x", GOOD), COMPONENT_FLAG_INT("no-x", &another_int, "Help.", .section = "S") },
		"option --no-x: name 'no-x' belongs to --x already" },
	{ { INT("x", .letter = 'h') }, "option --x: letter '-h' belongs to --help already" },
	{ { INT("x", .letter = '-') }, "option --x: a letter is one of a-z, A-Z, 0-9" },
	{ { INT("x", .letter = 'x', .bits = COMPONENT_FLAG_SECRET) }, "option --x: a secret has no letter" },
	{ { INT("x", .bits = COMPONENT_FLAG_BOOL_WORD) }, "option --x: BOOL_WORD belongs to a bool" },
	{ { BOOL("x", .bits = COMPONENT_FLAG_OPTIONAL) }, "option --x: OPTIONAL belongs to no bool, to no enum and beside no letter" },
	{ { INT("x", .letter = 'x', .bits = COMPONENT_FLAG_OPTIONAL) }, "option --x: OPTIONAL belongs to no bool" },
	{ { INT("x", .alias = "ok Bad") }, "option --x: 'Bad' is no option name (alias)" },
	{ { INT("x", .deprecated = "b=d") }, "option --x: 'b=d' is no option name (deprecated)" },
	{ { INT("x", .env = "GOOD 1BAD") }, "option --x: '1BAD' is no variable (env)" },
	{ { INT("x", .env = "A=B") }, "option --x: 'A=B' is no variable (env)" },
	{ { INT("x", .key = "a..b") }, "option --x: 'a..b' is no key of a config file" },
	{ { INT("x", .key = "a.") }, "option --x: 'a.' is no key of a config file" },
	{ { INT("x", .key = "a.b"), COMPONENT_FLAG_INT("y", &another_int, "Help.", .section = "S", .key = "a.b") },
		"option --y: key 'a.b' belongs to --x already" },
	{ { INT("x", .env = "SAME"), COMPONENT_FLAG_INT("y", &another_int, "Help.", .section = "S", .env = "SAME") },
		"option --y: environment variable 'SAME' belongs to --x already" },
	{ { INT("x", .env = "COMPONENT_Y"), COMPONENT_FLAG_INT("y", &another_int, "Help.", .section = "S") },
		"option --y: environment variable 'COMPONENT_Y' belongs to --x already" },
	{ { INT("x", GOOD), INT("y", GOOD) }, "option --y: its variable belongs to --x already" },
	{ { INT("x", .enables = "x", .env = "X") }, "option --x: enables names 'x', which is no bool option" },
	{ { INT("x", .enables = "nope", .env = "X") }, "option --x: enables names 'nope', which is no bool option" },
	{ { BOOL("b", GOOD), INT("x", .enables = "b") }, "option --x: enables wants alias variables in env" },
	{ { INT("x", .needs = "nope") }, "option --x: needs names 'nope', which is no bool option" },
	{ { BOOL("b", GOOD), INT("x", .needs = "b nope") }, "option --x: needs names 'nope', which is no option" },
	{ { INT("x", .min = 5, .max = 1) }, "option --x: min is above max" },
	{ { INT("x", .min = 5, .max = 9) }, "option --x: default '0': out of range; write a value from 5 to 9" },
	{ { INT("x", .choices = twice) }, "option --x: choices belong to an enum" },
	{ { INT("x", .words = "a=1 b") }, "option --x: 'b' in words is not NAME=VALUE" },
	{ { INT("x", .words = "a=b") }, "option --x: 'a=b' in words is not NAME=VALUE" },
	{ { INT("x", .words = "a=") }, "option --x: 'a=' in words is not NAME=VALUE" },
	{ { INT("x", .min = 5) }, "option --x: default '0': out of range; write a value of at least 5" },
	{ { INT("x", .max = -3) }, "option --x: default '0': out of range; write a value of at most -3" },
	{ { BOOL("x", .min = 1, .max = 2) }, "option --x: min and max belong to numbers" },
	{ { COMPONENT_FLAG_SIZE("x", &a_size, "Help.", .section = "S", .min = -1, .max = 4) },
		"option --x: a size is never below 0, min is" },
	{ { COMPONENT_FLAG_ENUM("x", &a_choice, "Help.", .section = "S") }, "option --x: an enum wants choices" },
	{ { COMPONENT_FLAG_ENUM("x", &a_choice, "Help.", .section = "S", .choices = no_choices) },
		"option --x: an enum wants choices" },
	{ { COMPONENT_FLAG_ENUM("x", &a_choice, "Help.", .section = "S", .choices = twice) },
		"option --x: choice 'a' is empty or there twice" },
};
/* clang-format on */

static struct component_flags *
with_rows(const struct component_flag *rows)
{
	struct component_flags *f = NULL;
	struct component_flag   table[4];

	memset(table, 0, sizeof(table));
	memcpy(table, rows, 3 * sizeof(*rows));
	assert_int_equal(component_flags_new(&fixture_spec, &f, NULL), 0);
	assert_int_equal(component_flags_add(f, table, NULL), 0);
	return f;
}

static void
each_fault_of_a_table_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct component_flags *f = with_rows(cases[i].rows);

		/* Whatever the command line says, help too. */
		assert_int_equal(PARSE(f, "--help"), -EINVAL);
		if (!strstr(fixture_err.text, cases[i].fault))
			fail_msg("case %zu wants '%s', has\n%s", i, cases[i].fault, fixture_err.text);
		assert_null(strstr(fixture_err.text, "Try '"));
		assert_int_equal(component_flags_exit_status(f), 1);
		component_flags_free(f);
	}
}

static void
a_fault_is_told_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct component_flags *f = with_rows(cases[i].rows);
		const char             *first;

		assert_int_equal(PARSE_NOTHING(f), -EINVAL);
		first = strstr(fixture_err.text, cases[i].fault);
		assert_non_null(first);
		assert_null(strstr(first + 1, cases[i].fault));
		component_flags_free(f);
	}
}

static void
faults_of_all_tables_come_at_once(void **state)
{
	static const struct component_flag one[] = { INT("x", .letter = '?'), COMPONENT_FLAG_END };
	static const struct component_flag two[] = {
		COMPONENT_FLAG_INT("x", &another_int, "", .section = "S"), COMPONENT_FLAG_BOOL("ok", &another_bool, "Help.", .section = "S"),
		COMPONENT_FLAG_END
	};
	struct component_flags *f = NULL;

	(void)state;
	assert_int_equal(component_flags_new(&fixture_spec, &f, NULL), 0);
	assert_int_equal(component_flags_add(f, one, NULL), 0);
	assert_int_equal(component_flags_add(f, two, NULL), 0);
	assert_int_equal(PARSE_NOTHING(f), -EINVAL);
	assert_string_equal(fixture_err.text,
		"backend-controller: option --x: a letter is one of a-z, A-Z, 0-9\n"
		"backend-controller: option --x: no help\n"
		"backend-controller: option --x: name 'x' belongs to --x already\n"
		"backend-controller: option --x: key 'x' belongs to --x already\n"
		"backend-controller: option --x: environment variable 'BACKEND_CONTROLLER_X' belongs to --x already\n"
		"backend-controller: option --x: environment variable 'COMPONENT_X' belongs to --x already");
	component_flags_free(f);
}

static void
a_default_that_nobody_could_write_is_a_fault(void **state)
{
	static const struct component_flag number[3] = { COMPONENT_FLAG_NUMBER("x", &a_number, "Help.", .section = "S") };
	static const struct component_flag address[3] = { COMPONENT_FLAG_ADDRESS("x", &a_string, "Help.", .section = "S") };
	static const struct component_flag list[3] = { COMPONENT_FLAG_LIST("x", &a_list, "Help.", .section = "S") };
	static const char *const formats[] = { "a", NULL };
	static const struct component_flag choice[3] = {
		COMPONENT_FLAG_ENUM("x", &a_choice, "Help.", .section = "S", .choices = formats) };
	static const char *const empty[] = { "a", "" };
	struct component_flags *f;

	(void)state;
	a_number = NAN;
	f = with_rows(number);
	assert_int_equal(PARSE_NOTHING(f), -EINVAL);
	component_flags_free(f);
	a_string = "6060";
	f = with_rows(address);
	assert_int_equal(PARSE_NOTHING(f), -EINVAL);
	assert_non_null(strstr(fixture_err.text, "option --x: default '6060': missing host part"));
	component_flags_free(f);
	a_string = NULL;
	f = with_rows(address);
	assert_int_equal(PARSE_NOTHING(f), 0);
	component_flags_free(f);
	a_list = (struct component_list){ empty, 2 };
	f = with_rows(list);
	assert_int_equal(PARSE_NOTHING(f), -EINVAL);
	assert_non_null(strstr(fixture_err.text, "the default list has an empty item"));
	component_flags_free(f);
	a_choice = 1;
	f = with_rows(choice);
	assert_int_equal(PARSE_NOTHING(f), -EINVAL);
	assert_non_null(strstr(fixture_err.text, "default 1 is none of the 1 choices"));
	assert_int_equal(component_flags_set_default(f, "x", "a", &fixture_err), -EINVAL);
	component_flags_free(f);
	a_choice = 0;
}

static void
a_good_table_has_no_fault(void **state)
{
	struct component_flags *f = fixture_new(NULL);
	struct lines            faults = { NULL, 0, false };

	(void)state;
	assert_int_equal(flags_lint(f, &faults), 0);
	component_flags_free(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fault_of_a_table_is_found),
		cmocka_unit_test(a_fault_is_told_once),
		cmocka_unit_test(faults_of_all_tables_come_at_once),
		cmocka_unit_test(a_default_that_nobody_could_write_is_a_fault),
		cmocka_unit_test(a_good_table_has_no_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
