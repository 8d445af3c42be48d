/*
 * test_fork.c - a child forked at any moment finds the component whole: it can log,
 * ask, be refused and free it, whatever the parent's threads were doing.
 */
#include <config.h>

#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define THREADS 3
#define FORKS 150
#define WAITS 60 /* of a second each at most */

/* A child that hangs in a lock is ended by its own alarm, and seen. */
#define CHILD_SECONDS 600

static const struct component_spec spec = { .size = sizeof(spec), .name = "daemon", .summary = "A daemon." };

static _Atomic bool stop_threads;

static void
nothing(struct component *c, void *arg)
{
	(void)c;
	(void)arg;
}

static void *
keep_busy(void *arg)
{
	struct component *c = arg;

	while (!stop_threads) {
		if (component_post(c, nothing, NULL) < 0 || component_hold(c, "work") < 0)
			abort();
		component_log(c, COMPONENT_LOG_INFO, "busy", "with", "work", NULL);
		component_release(c, "work");
		rest_ns(100000);
	}
	return NULL;
}

static int
live_in_child(struct component *c)
{
	alarm(CHILD_SECONDS);
	component_log(c, COMPONENT_LOG_INFO, "child", NULL);
	if (component_dispatch(c) != -EPERM || component_post(c, nothing, NULL) != -EPERM)
		return 1;
	if (component_hold(c, "child's") < 0)
		return 2;
	component_release(c, "child's");
	component_stop(c);
	component_free(c);
	return 0;
}

static void
children_of_a_busy_parent_never_hang_and_never_disturb_it(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = NULL;
	pthread_t              threads[THREADS];

	(void)state;
	assert_int_equal(component_new(&spec, &c, &err), 0);
	assert_int_equal(life_parse(c, &err, NULL), 0);
	assert_int_equal(component_start(c, &err), 0);
	stop_threads = false;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, c), 0);
	for (int i = 0; i < FORKS; i++) {
		int   status = -1;
		pid_t pid = fork();

		if (pid == 0)
			_exit(live_in_child(c));
		life_turn(c, 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(component_phase(c), COMPONENT_PHASE_RUNNING);
	}
	stop_threads = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	component_stop(c);
	assert_int_equal(life_run(c), 0);
	component_free(c);
}

static void
turn(struct component *c, void *arg)
{
	(void)c;
	++*(int *)arg;
}

static void
read_one(struct component *c, int fd, uint32_t events, void *arg)
{
	char byte;

	(void)events;
	if (read(fd, &byte, 1) == 1)
		turn(c, arg);
}

static void
a_child_without_fork_handlers_frees_it_and_the_parents_loop_goes_on(void **state)
{
	struct component       *c = NULL;
	struct component_timer *timer;
	struct component_watch *watch;
	int                     turns = 0, before, pipes[2], status = -1;
	pid_t                   pid;

	(void)state;
	assert_int_equal(component_new(&spec, &c, NULL), 0);
	assert_int_equal(life_parse(c, NULL, NULL), 0);
	assert_int_equal(component_start(c, NULL), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(component_timer_add(c, 1000000, 1000000, turn, &turns, &timer), 0);
	assert_int_equal(component_watch_add(c, pipes[0], EPOLLIN, read_one, &turns, &watch), 0);
	life_turn(c, 0);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		component_free(c);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	before = turns;
	for (int waits = 0; turns < before + 3 && waits < WAITS; waits++)
		life_turn(c, 1000);
	assert_true(turns >= before + 3);
	component_timer_remove(timer);
	turns = 0;
	assert_int_equal(write(pipes[1], "x", 1), 1);
	for (int waits = 0; turns == 0 && waits < WAITS; waits++)
		life_turn(c, 1000);
	assert_int_equal(turns, 1);
	component_free(c);
	close(pipes[0]);
	close(pipes[1]);
}

static int
count_fds(void)
{
	int count = 0;

	for (int fd = 3; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void
components_come_and_go_without_a_descriptor_left(void **state)
{
	int before = count_fds();

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct component *c = NULL, *other = NULL;

		assert_int_equal(component_new(&spec, &c, NULL), 0);
		assert_int_equal(component_new(&spec, &other, NULL), 0);
		assert_int_equal(life_parse(c, NULL, NULL), 0);
		assert_int_equal(component_signals_install(c, NULL), 0);
		assert_int_equal(component_signals_install(other, NULL), -EBUSY);
		assert_int_equal(component_start(c, NULL), 0);
		component_free(other);
		component_free(c);
	}
	assert_int_equal(count_fds(), before);
}

static void
without_descriptors_a_component_is_refused_and_says_why(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = NULL;
	struct rlimit          before, few;
	int                    fds[64], count = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = COUNT(fds);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((fds[count] = dup(2)) >= 0)
		count++;
	/* With 0 to 2 left, so that each of them is the one that is missing. */
	for (int left = 0; left < 3; left++) {
		assert_int_equal(component_new(&spec, &c, &err), -EMFILE);
		assert_non_null(strstr(err.text, "cannot make the event loop"));
		assert_null(c);
		close(fds[--count]);
	}
	while (count)
		close(fds[--count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(component_new(&spec, &c, &err), 0);
	component_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, life_setup, life_teardown)
		TEST(children_of_a_busy_parent_never_hang_and_never_disturb_it),
		TEST(a_child_without_fork_handlers_frees_it_and_the_parents_loop_goes_on),
		TEST(components_come_and_go_without_a_descriptor_left),
		TEST(without_descriptors_a_component_is_refused_and_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
