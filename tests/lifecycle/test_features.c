/*
 * test_features.c - what --feature-gates switches, and what it refuses.
 */
#include <config.h>

#include <component/component.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool fast, wide, safe, old;

static const struct component_feature features[] = {
	{ .name = "FastSync", .variable = &fast, .stage = COMPONENT_FEATURE_ALPHA, .help = "skips what has not changed" },
	{ .name = "WideRows", .variable = &wide, .stage = COMPONENT_FEATURE_ALPHA },
	{ .name = "SafeWrites", .variable = &safe, .stage = COMPONENT_FEATURE_BETA },
	{ .name = "OldWays", .variable = &old, .stage = COMPONENT_FEATURE_FINAL },
	{ .name = "Unseen", .stage = COMPONENT_FEATURE_ALPHA },
	{ .name = NULL },
};

/* A component that has read its options; err: what it said. */
static struct component *
parsed(const char *gates, int *ret, struct component_error *err)
{
	struct component_spec spec = COMPONENT_SPEC(.name = "test", .features = features);
	struct component *c;
	char  option[256] = "--feature-gates=", name[] = "test";
	char *argv[] = { name, option, NULL };

	fast = wide = false;
	safe = old = true;
	strcat(option, gates);
	assert_int_equal(component_new(&spec, &c, err), 0);
	*ret = component_parse(c, *gates ? 2 : 1, argv, err);
	return c;
}

static void
each_is_as_the_words_say(void **state)
{
	static const struct {
		const char *gates;
		bool        fast, wide, safe, old, unseen;
	} rows[] = {
		{ "", false, false, true, true, false },
		{ "FastSync=true", true, false, true, true, false },
		{ "FastSync=true,SafeWrites=false", true, false, false, true, false },
		{ "AllAlpha=true", true, true, true, true, true },
		{ "FastSync=false,AllAlpha=true", false, true, true, true, true },
		{ "AllAlpha=true,FastSync=false", false, true, true, true, true },
		{ "AllBeta=false", false, false, false, true, false },
		{ "AllAlpha=TRUE,AllBeta=0", true, true, false, true, true },
		{ "FastSync=true,FastSync=false", false, false, true, true, false },
		{ "OldWays=true,Unseen=1", false, false, true, true, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct component_error err = COMPONENT_ERROR_INIT;
		int r;
		struct component *c = parsed(rows[i].gates, &r, &err);

		if (r != 0)
			fail_msg("%s: %s", rows[i].gates, err.text);
		if (fast != rows[i].fast || wide != rows[i].wide || safe != rows[i].safe || old != rows[i].old ||
		    component_feature_enabled(c, "Unseen") != rows[i].unseen)
			fail_msg("%s", rows[i].gates);
		assert_true(component_feature_enabled(c, "FastSync") == fast);
		assert_false(component_feature_enabled(c, "Fast"));
		component_free(c);
	}
}

static void
what_is_wrong_is_refused_and_nothing_is_set(void **state)
{
	static const char *const rows[][2] = {
		{ "FastSync=true,Nosuch=true", "'Nosuch': there is no such feature" },
		{ "FastSync", "'FastSync': write NAME=true or NAME=false" },
		{ "FastSync=maybe", "'FastSync=maybe': write NAME=true or NAME=false" },
		{ "FastSync=true,OldWays=false", "'OldWays': it is final" },
		{ "fastsync=true", "'fastsync': there is no such feature" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct component_error err = COMPONENT_ERROR_INIT;
		int r, status;
		struct component *c = parsed(rows[i][0], &r, &err);

		assert_int_equal(r, -EINVAL);
		if (!strstr(err.text, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], err.text);
		assert_true(component_finished(c, &status));
		assert_int_equal(status, 2);
		assert_false(fast);
		assert_true(old);
		component_free(c);
	}
}

static void
help_names_each_with_its_stage(void **state)
{
	struct component_spec spec = COMPONENT_SPEC(.name = "test", .features = features);
	struct component_error err = COMPONENT_ERROR_INIT;
	char  name[] = "test", all[] = "--help-all";
	char *argv[] = { name, all, NULL };
	struct component *c;
	char   text[65536] = "";
	size_t used = 0;

	(void)state;
	fast = false;
	safe = true;
	assert_int_equal(component_new(&spec, &c, &err), 0);
	assert_int_equal(component_parse(c, 2, argv, &err), 1);
	/* However it is wrapped. */
	for (const char *at = component_flags_output(component_flags(c)); *at; at += strspn(at, " \n")) {
		size_t n = strcspn(at, " \n");

		if (used + n + 2 < sizeof(text)) {
			memcpy(text + used, at, n);
			used += n;
			text[used++] = ' ';
		}
		at += n;
	}
	assert_non_null(strstr(text, "FastSync (alpha, off: skips"));
	assert_non_null(strstr(text, "SafeWrites (beta, on)"));
	component_free(c);
}

static void
features_that_cannot_be_are_a_fault_of_the_program(void **state)
{
	static const struct component_feature twice[] = { { .name = "A" }, { .name = "A" }, { .name = NULL } };
	static const struct component_feature taken[] = { { .name = "AllBeta" }, { .name = NULL } };
	static const struct component_feature odd[] = { { .name = "a-b" }, { .name = NULL } };
	const struct component_feature *const rows[] = { twice, taken, odd };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct component_spec spec = COMPONENT_SPEC(.name = "test", .features = rows[i]);
		struct component_error err = COMPONENT_ERROR_INIT;
		struct component *c;

		assert_int_equal(component_new(&spec, &c, &err), -EINVAL);
		assert_non_null(strstr(err.text, "struct component_feature"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_as_the_words_say),
		cmocka_unit_test(what_is_wrong_is_refused_and_nothing_is_set),
		cmocka_unit_test(help_names_each_with_its_stage),
		cmocka_unit_test(features_that_cannot_be_are_a_fault_of_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
