/*
 * test_gitops_lock.c - one process of a program a root, and what a predecessor left.
 *
 * The component is played here: its timer is called by hand.
 */
#include <config.h>

#include "gitops_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOCK "locks/cluster-agent.lock"

static struct component_error failed;
static struct gitops_directories dirs;
static int begun, begin_answer, flock_error;
static component_fn *on_timer;
static component_check_fn *ready;
static bool timer_runs;

/* ---- the component ---- */

const char *
component_name(const struct component *c)
{
	(void)c;
	return "cluster-agent";
}

enum component_phase
component_phase(const struct component *c)
{
	(void)c;
	return COMPONENT_PHASE_RUNNING;
}

void
component_log_values(struct component *c, enum component_log_level level, const struct component_log_value *values,
	size_t count)
{
	(void)c, (void)level, (void)values, (void)count;
}

void
component_fail(struct component *c, const struct component_error *e)
{
	(void)c;
	failed = *e;
}

int
component_check_add(struct component *c, const char *name, component_check_fn *fn, void *arg)
{
	(void)c, (void)name, (void)arg;
	ready = fn;
	return 0;
}

int
component_timer_add(struct component *c, int64_t first_ns, int64_t every_ns, component_fn *fn, void *arg,
	struct component_timer **ret)
{
	(void)c, (void)first_ns, (void)every_ns, (void)arg, (void)ret;
	on_timer = fn;
	timer_runs = true;
	return 0;
}

void
component_timer_remove(struct component_timer *t)
{
	(void)t;
	timer_runs = false;
}

void
component_controller_enqueue(struct component_controller *k, const char *key)
{
	(void)k, (void)key;
}

/* A file system without locks. */
int
flock(int fd, int operation)
{
	if (flock_error == 0)
		return (int)syscall(SYS_flock, fd, operation);
	errno = flock_error;
	return -1;
}

static int
begin(struct component *c, struct component_error *e)
{
	(void)c, (void)e;
	begun++;
	return begin_answer;
}

/* ---- */

static int
setup(void **state)
{
	(void)state;
	dirs = (struct gitops_directories){ .root = root, .targets = "", .status = "", .locks = "" };
	begun = begin_answer = flock_error = 0;
	timer_runs = false;
	*failed.text = '\0';
	return root_make(state);
}

static int
teardown(void **state)
{
	const char *made[] = { dirs.targets, dirs.status, dirs.locks };

	(void)state;
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		if (*made[i] != '\0') /* a program keeps it until it ends */
			free((char *)(uintptr_t)made[i]);
	return root_remove(state);
}

/* Another process has the lock. */
static int
other_locks(void)
{
	int fd;

	mkdir(at("locks"), 0755);
	fd = open(at(LOCK), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(syscall(SYS_flock, fd, LOCK_EX), 0);
	assert_true(dprintf(fd, "pid: 4711\nhost: \"elsewhere\"\nsince: \"2026-01-02T03:04:05Z\"\n") > 0);
	return fd;
}

static void
who_comes_first_begins_and_says_who_it_is(void **state)
{
	char *text, pid[32];

	(void)state;
	assert_int_equal(gitops_begin(NULL, &dirs, begin, &err), 0);
	assert_int_equal(begun, 1);
	assert_int_equal(gitops_file_read(root, LOCK, 4096, &text, &err), 0);
	snprintf(pid, sizeof pid, "pid: %ld\n", (long)getpid());
	assert_non_null(strstr(text, pid));
	free(text);
}

static void
who_comes_second_is_told_who_has_it_and_does_not_begin(void **state)
{
	int other = other_locks();

	(void)state;
	assert_int_equal(gitops_begin(NULL, &dirs, begin, &err), -EBUSY);
	assert_int_equal(begun, 0);
	assert_non_null(strstr(err.text, "pid 4711 on elsewhere since 2026-01-02T03:04:05Z"));
	assert_non_null(strstr(err.text, "--wait-for-root"));
	close(other);
}

static void
who_waits_is_not_ready_until_the_other_one_ends(void **state)
{
	int other = other_locks();

	(void)state;
	dirs.wait = true;
	assert_int_equal(gitops_begin(NULL, &dirs, begin, &err), 0);
	assert_true(timer_runs);
	on_timer(NULL, NULL);
	assert_int_equal(begun, 0);
	assert_int_equal(ready(NULL, NULL, &err), -EBUSY);
	assert_non_null(strstr(err.text, "pid 4711"));
	close(other);
	on_timer(NULL, NULL);
	assert_int_equal(begun, 1);
	assert_false(timer_runs);
	assert_int_equal(ready(NULL, NULL, &err), 0);
}

static void
a_failure_after_waiting_ends_the_component(void **state)
{
	int other = other_locks();

	(void)state;
	dirs.wait = true;
	assert_int_equal(gitops_begin(NULL, &dirs, begin, &err), 0);
	close(other);
	flock_error = ENOLCK;
	on_timer(NULL, NULL);
	assert_int_equal(begun, 0);
	assert_false(timer_runs);
	assert_non_null(strstr(failed.text, "--locks-dir"));
}

static void
without_locks_nothing_begins(void **state)
{
	static const int errors[] = { ENOLCK, EOPNOTSUPP, ENOSYS };

	(void)state;
	for (size_t n = 0; n < sizeof errors / sizeof *errors; n++) {
		flock_error = errors[n];
		assert_int_equal(gitops_begin(NULL, &dirs, begin, &err), -errors[n]);
		assert_non_null(strstr(err.text, "--locks-dir"));
		assert_non_null(strstr(err.text, strerror(errors[n])));
	}
	assert_int_equal(begun, 0);
}

static void
a_lock_file_that_was_removed_meanwhile_is_not_the_lock(void **state)
{
	int other = other_locks();

	(void)state;
	dirs.wait = true;
	assert_int_equal(gitops_begin(NULL, &dirs, begin, &err), 0);
	assert_int_equal(unlink(at(LOCK)), 0);
	on_timer(NULL, NULL); /* a new file: this one can be had */
	assert_int_equal(begun, 1);
	assert_int_equal(access(at(LOCK), F_OK), 0);
	close(other);
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
		CASE(who_comes_first_begins_and_says_who_it_is),
		CASE(who_comes_second_is_told_who_has_it_and_does_not_begin),
		CASE(who_waits_is_not_ready_until_the_other_one_ends),
		CASE(a_failure_after_waiting_ends_the_component),
		CASE(without_locks_nothing_begins),
		CASE(a_lock_file_that_was_removed_meanwhile_is_not_the_lock),
		CASE(what_a_predecessor_left_is_swept_and_nothing_else),
		CASE(two_writers_of_one_file_never_tear_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
