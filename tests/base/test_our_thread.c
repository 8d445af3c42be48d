/*
 * test_our_thread.c - a thread of the library is a guest: no signal reaches it,
 * its name says whose it is, and the collectors can tell it from the daemon's.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "our_thread.h"
#include "thread_id.h"

/* As big as a daemon's that keeps buffers in TLS: more than our whole stack. */
static __thread char big[1024 * 1024];

struct seen {
	char     name[16];
	sigset_t mask;
	int      policy;
	bool     own;
};

static void *
look(void *arg)
{
	struct seen       *s = arg;
	struct sched_param param;

	memset(big, 1, sizeof(big));
	prctl(PR_GET_NAME, s->name, 0, 0, 0);
	pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
	pthread_getschedparam(pthread_self(), &s->policy, &param);
	s->own = our_thread_is();
	return arg;
}

static void *
deep(void *arg)
{
	volatile char buf[128 * 1024];

	for (size_t i = 0; i < sizeof(buf); i += 1024)
		buf[i] = (char)i;
	(void)buf[0];
	return arg;
}

static void
it_is_named_and_marked_and_takes_no_signal(void **state)
{
	struct seen s = { .own = false };
	sigset_t    before, after;
	pthread_t   t;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(our_thread_start("component-test", look, &s, &t), 0);
	pthread_join(t, NULL);
	assert_string_equal(s.name, "component-test");
	assert_true(s.own);
	assert_int_equal(s.policy, SCHED_OTHER);
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			assert_int_equal(sigismember(&s.mask, sig), 1);
	assert_false(our_thread_is());
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < 32; sig++)
		assert_int_equal(sigismember(&after, sig), sigismember(&before, sig));
}

static void
static_tls_of_the_daemon_does_not_eat_its_stack(void **state)
{
	pthread_t t;
	void     *r;

	(void)state;
	assert_int_equal(our_thread_start("component-deep", deep, &t, &t), 0);
	pthread_join(t, &r);
	assert_ptr_equal(r, &t);
}

static void
a_thread_of_the_daemon_is_not_marked(void **state)
{
	struct seen s = { .own = true };
	pthread_t   t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, look, &s), 0);
	pthread_join(t, NULL);
	assert_false(s.own);
}

static pid_t ended;

static void *
know_oneself(void *arg)
{
	*(bool *)arg = our_thread_has((pid_t)syscall(SYS_gettid)) && our_thread_count() == 1 &&
		thread_id_self() == (pid_t)syscall(SYS_gettid);
	ended = thread_id_self();
	return arg;
}

static void
its_id_is_known_while_it_runs_and_not_in_a_child(void **state)
{
	pid_t     self = (pid_t)syscall(SYS_gettid), child;
	pthread_t t;
	bool      known = false;
	int       status;

	(void)state;
	assert_int_equal(our_thread_start("component-test", know_oneself, &known, &t), 0);
	pthread_join(t, NULL);
	assert_true(known);
	assert_int_equal(our_thread_count(), 0);
	assert_false(our_thread_has(self));
	assert_false(our_thread_has(ended));
	assert_true(our_thread_had(ended));
	assert_false(our_thread_had(self));
	assert_int_equal(thread_id_self(), self);
	child = fork();
	if (child == 0)
		_exit(our_thread_count() != 0 || our_thread_had(ended) || thread_id_self() != (pid_t)syscall(SYS_gettid));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void *
wait_for_the_end(void *arg)
{
	sem_wait(arg);
	return NULL;
}

static void
all_are_waited_for_until_they_have_begun_and_until_the_kernel_knows_none(void **state)
{
	pthread_t threads[8];
	pid_t     ids[8];
	sem_t     end;

	(void)state;
	assert_int_equal(sem_init(&end, 0, 0), 0);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(our_thread_start("component-test", wait_for_the_end, &end, &threads[i]), 0);
	assert_true(our_thread_all_here(INT64_C(60) * 1000000000));
	assert_int_equal(our_thread_ids(ids, 8), 8);
	assert_int_equal(our_thread_ids(ids, 3), 3);
	assert_false(our_thread_all_gone(0));
	for (size_t i = 0; i < 8; i++)
		sem_post(&end);
	assert_true(our_thread_all_gone(INT64_C(60) * 1000000000));
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(syscall(SYS_tgkill, getpid(), ids[i], 0), -1);
		pthread_join(threads[i], NULL);
	}
	sem_destroy(&end);
}

static void
a_name_the_kernel_would_cut_is_refused(void **state)
{
	pthread_t t;

	(void)state;
	assert_int_equal(our_thread_start("component-too-long", look, NULL, &t), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_named_and_marked_and_takes_no_signal),
		cmocka_unit_test(static_tls_of_the_daemon_does_not_eat_its_stack),
		cmocka_unit_test(a_thread_of_the_daemon_is_not_marked),
		cmocka_unit_test(its_id_is_known_while_it_runs_and_not_in_a_child),
		cmocka_unit_test(all_are_waited_for_until_they_have_begun_and_until_the_kernel_knows_none),
		cmocka_unit_test(a_name_the_kernel_would_cut_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
