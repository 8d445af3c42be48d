/*
 * test_gitops_lock.c - one process of a program a root, and what a predecessor left.
 *
 * The component is played here, and leads at once; the lock is tests/controllers/test_leader.c's.
 */
#include <config.h>

#include "gitops_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct gitops_directories dirs;
static struct component_lead_spec led;
static int begun;

/* ---- the component ---- */

const char *
component_name(const struct component *c)
{
	(void)c;
	return "cluster-agent";
}

/* This process leads at once. */
int
component_lead(struct component *c, const struct component_lead_spec *spec, struct component_error *e)
{
	led = *spec;
	return spec->begin(c, e);
}

void
component_controller_enqueue(struct component_controller *k, const char *key)
{
	(void)k, (void)key;
}

static int
begin(struct component *c, struct component_error *e)
{
	(void)c, (void)e;
	begun++;
	return 0;
}

/* ---- */

static int
setup(void **state)
{
	(void)state;
	dirs = (struct gitops_directories){ .root = root, .targets = "", .status = "", .locks = "" };
	begun = 0;
	return root_make(state);
}

/* What was found in place of "". */
static int
teardown(void **state)
{
	const char *const found[] = { dirs.targets, dirs.status, dirs.locks };

	for (size_t n = 0; n < sizeof found / sizeof *found; n++)
		if (*found[n] != '\0')
			free((char *)(uintptr_t)found[n]);
	return root_remove(state);
}

static void
one_process_works_below_a_root_whether_it_was_elected_or_not(void **state)
{
	(void)state;
	dirs.wait = true;
	assert_int_equal(gitops_begin(NULL, &dirs, begin, &err), 0);
	assert_int_equal(begun, 1);
	assert_string_equal(led.directory, at("locks"));
	assert_true(led.always);
	assert_true(led.wait);
	assert_non_null(strstr(led.advice, "--wait-for-root"));
}

static void
what_a_predecessor_left_is_swept_and_nothing_else(void **state)
{
	static const char *const left[] = { "targets/a/.gitops-partial.cluster-agent.0123456789abcdef-1.0",
		"status/.gitops-partial.cluster-agent.0123456789abcdef-1.7" };
	static const char *const others[] = { "targets/a/.gitops-partial.backend-controller.0123456789abcdef-1.0",
		"targets/a/file", "status/x.gitops-partial.cluster-agent.1" };

	(void)state;
	mkdir(at("targets"), 0755);
	mkdir(at("targets/a"), 0755);
	mkdir(at("targets/a/.gitops-partial.cluster-agent.0123456789abcdef-1.1"), 0755);
	mkdir(at("status"), 0755);
	for (size_t n = 0; n < sizeof left / sizeof *left; n++)
		assert_true(creat(at(left[n]), 0644) >= 0);
	assert_true(creat(at("targets/a/.gitops-partial.cluster-agent.0123456789abcdef-1.1/f"), 0644) >= 0);
	for (size_t n = 0; n < sizeof others / sizeof *others; n++)
		assert_true(creat(at(others[n]), 0644) >= 0);
	assert_int_equal(gitops_begin(NULL, &dirs, begin, &err), 0);
	for (size_t n = 0; n < sizeof left / sizeof *left; n++)
		assert_int_equal(access(at(left[n]), F_OK), -1);
	assert_int_equal(access(at("targets/a/.gitops-partial.cluster-agent.0123456789abcdef-1.1"), F_OK), -1);
	for (size_t n = 0; n < sizeof others / sizeof *others; n++)
		assert_int_equal(access(at(others[n]), F_OK), 0);
}

#define TORN_BYTES (256 * 1024)

/* Copies one of two sources onto the same file, again and again. */
static void
copy_for_ever(char byte)
{
	struct gitops_file want = { 0 };
	char name[2] = { byte, '\0' };

	if (gitops_file_look(root, name, &want) != 0)
		_exit(1);
	for (;;)
		if (gitops_file_copy(root, name, root, "t", &want, NULL) != 0)
			_exit(1);
}

static void
two_writers_of_one_file_never_tear_it(void **state)
{
	char *text = malloc(TORN_BYTES + 1);
	pid_t writers[2];

	(void)state;
	for (int n = 0; n < 2; n++) {
		memset(text, 'a' + n, TORN_BYTES);
		text[TORN_BYTES] = '\0';
		assert_int_equal(gitops_file_write(root, n == 0 ? "a" : "b", text, false, &err), 0);
	}
	assert_int_equal(gitops_file_write(root, "t", text, false, &err), 0);
	free(text);
	for (int n = 0; n < 2; n++) {
		writers[n] = fork();
		if (writers[n] == 0)
			copy_for_ever((char)('a' + n));
	}
	for (int looks = 0; looks < 200; looks++) {
		assert_int_equal(gitops_file_read(root, "t", 1 << 20, &text, &err), 0);
		assert_int_equal(strlen(text), TORN_BYTES);
		assert_int_equal(strspn(text, (const char[]){ *text, '\0' }), TORN_BYTES);
		free(text);
	}
	for (int n = 0; n < 2; n++) {
		assert_int_equal(waitpid(writers[n], NULL, WNOHANG), 0);
		kill(writers[n], SIGKILL);
		waitpid(writers[n], NULL, 0);
	}
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(one_process_works_below_a_root_whether_it_was_elected_or_not),
		CASE(what_a_predecessor_left_is_swept_and_nothing_else),
		CASE(two_writers_of_one_file_never_tear_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
