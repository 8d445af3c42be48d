/*
 * test_memory.c - memory runs out at every single allocation, one after the
 * other: nothing crashes, nothing is half done, and it is said.
 *
 * The allocators that flags/ calls are wrapped by the linker (--wrap); those of the
 * libraries behind it are not.
 */
#include <config.h>

#include "fixture.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);

static long left = -1; /* allocations until the one that fails; -1: none does */
static bool failed;

static bool
fails(void)
{
	if (left < 0)
		return false;
	if (left-- > 0)
		return false;
	left = -1;
	failed = true;
	return true;
}

void *
__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

char *
__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

static const char *path;

/* new, add, set_default, parse with all sources, reload; what they return. */
static int
live(const char *const *words, bool reload)
{
	static const char *const env[] = { "PPROF_BIND_ADDRESS=:7", "COMPONENT_CONTROLLERS=a,b", "COMPONENT_NOPE=1", NULL };
	char *argv[WORDS_MAX] = { (char *)"backend-controller", (char *)"-c", (char *)path };
	struct component_flags *f = NULL;
	int   argc = 3, r;

	opt = fixture_defaults;
	fixture_err.text[0] = '\0';
	for (; *words; words++)
		argv[argc++] = (char *)*words;
	r = component_flags_new(&fixture_spec, &f, &fixture_err);
	if (r == 0) {
		f->environment = env;
		f->width = 80;
		r = component_flags_add(f, fixture_rows, &fixture_err);
	}
	if (r == 0)
		r = component_flags_set_default(f, "log-file", "/x", &fixture_err);
	if (r == 0)
		r = component_flags_parse(f, argc, argv, &fixture_err);
	if (r < 0)
		assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
	if (r == 0 && reload) {
		struct fixture_options before = opt;

		r = component_flags_reload(f, &fixture_err);
		if (r < 0)
			assert_memory_equal(&opt, &before, sizeof(opt));
	}
	component_flags_free(f);
	return r;
}

/* Each run fails one allocation later, until none fails. */
static void
run_out(const char *const *words, bool reload, int want)
{
	int r;

	for (long n = 0;; n++) {
		failed = false;
		left = n;
		r = live(words, reload);
		left = -1;
		if (!failed)
			break;
		/* A warning that was lost is no reason to fail; a value is. */
		if (r == -ENOMEM || r == -EINVAL)
			assert_true(fixture_err.text[0] != '\0');
		else
			assert_int_equal(r, want);
		assert_true(n < 100000);
	}
	assert_int_equal(r, want);
}

static void
parsing_survives_the_end_of_memory(void **state)
{
	(void)state;
	run_out((const char *const[]){ "--enable-pprof", "--controllers=x", "--controllers=y", "--log-file", "/y", NULL }, false, 0);
}

static void
reloading_survives_the_end_of_memory(void **state)
{
	(void)state;
	run_out((const char *const[]){ "--controllers=x", "--log-file=/y", NULL }, true, 0);
}

static void
faults_survive_the_end_of_memory(void **state)
{
	(void)state;
	run_out((const char *const[]){ "--nope", "--v=x", "extra", "--log-file", "--enable_pprof", "-q", NULL }, false, -EINVAL);
}

static void
texts_survive_the_end_of_memory(void **state)
{
	static const char *const words[][2] = {
		{ "--help", NULL }, { "--help-all", NULL }, { "--help=misc", NULL }, { "--version=json", NULL },
		{ "--dump-options", NULL }, { "--dump-options=json", NULL }, { "--generate-man", NULL }, { "--completion=bash", NULL },
		{ "--completion=zsh", NULL }, { "--check-config", NULL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(words); i++)
		run_out(words[i], false, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parsing_survives_the_end_of_memory),
		cmocka_unit_test(reloading_survives_the_end_of_memory),
		cmocka_unit_test(faults_survive_the_end_of_memory),
		cmocka_unit_test(texts_survive_the_end_of_memory),
	};
	int result;

	path = fixture_file("v: 3\nprofiling: {enabled: true}\ncontrollers: [a, b]\nlog-file: /z\nprofiling-token: t\n");
	result = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return result;
}
