/*
 * test_siblings.c - which processes are listed, and what they can make the list say.
 */
#include <config.h>

#include <errno.h>
#include <linux/sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "siblings.h"

#define OWN "http://127.0.0.1:1"

/* A worker that says each of the addresses, as a fresh process would, and stays. */
static pid_t
worker(const char *first, const char *second)
{
	int   told[2];
	char  byte;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		siblings_forked();
		siblings_join(first);
		if (second) {
			siblings_forked();
			siblings_join(second);
		}
		close(told[0]);
		close(told[1]);
		for (;;)
			pause();
	}
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 0);
	close(told[0]);
	return pid;
}

static void
end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* How often pid is listed, and its last address. */
static int
listed(pid_t pid, char url[SIBLING_URL_MAX])
{
	struct sibling s;
	size_t         at = 0;
	int            n = 0;

	while (siblings_next(&at, &s))
		if (s.pid == pid) {
			n++;
			memcpy(url, s.url, SIBLING_URL_MAX);
		}
	return n;
}

static void
what_is_no_address_of_ours_is_not_listed(void **state)
{
	static const char *const bad[] = { "javascript:alert(1)//", "https://evil.example", "Http://x", " http://x", "unix:/x",
		"data:text/html,x", "http:/x", "http+unixx:/x", "" };
	static const char *const good[] = { "http://127.0.0.1:2", "http://[::1]:2", "http+unix:/run/x.sock", "http+unix:@x" };
	char                     url[SIBLING_URL_MAX];
	pid_t                    pid;

	(void)state;
	siblings_join(OWN);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		pid = worker(bad[i], NULL);
		if (listed(pid, url))
			fail_msg("'%s' is listed", bad[i]);
		end(pid);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		pid = worker(good[i], NULL);
		assert_int_equal(listed(pid, url), 1);
		assert_string_equal(url, good[i]);
		end(pid);
		assert_int_equal(listed(pid, url), 0);
	}
	assert_int_equal(listed(getpid(), url), 1);
	assert_string_equal(url, OWN);
	siblings_leave();
	assert_int_equal(listed(getpid(), url), 0);
}

static void
a_process_takes_the_place_that_another_of_its_number_has_left(void **state)
{
	char  url[SIBLING_URL_MAX];
	pid_t pid;

	(void)state;
	siblings_join(OWN);
	pid = worker("http://127.0.0.1:3", "http://127.0.0.1:4");
	assert_int_equal(listed(pid, url), 1);
	assert_string_equal(url, "http://127.0.0.1:4");
	end(pid);
	siblings_leave();
}

static void
another_process_of_the_same_number_is_not_listed(void **state)
{
	struct clone_args how = { .exit_signal = SIGCHLD, .set_tid_size = 1 };
	struct timespec   two_ticks = { .tv_nsec = 20000000 };
	char              url[SIBLING_URL_MAX];
	pid_t             pid, again;

	(void)state;
	siblings_join(OWN);
	pid = worker("http://127.0.0.1:5", NULL);
	assert_int_equal(listed(pid, url), 1);
	end(pid);
	nanosleep(&two_ticks, NULL); /* its start is another one then */
	how.set_tid = (uint64_t)(uintptr_t)&pid;
	again = (pid_t)syscall(SYS_clone3, &how, sizeof(how));
	if (again == 0)
		for (;;)
			pause();
	if (again < 0) {
		siblings_leave();
		print_message("no process with a chosen number: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(again, pid);
	assert_int_equal(listed(pid, url), 0);
	end(again);
	siblings_leave();
}

/* More of them, one after the other, than there are places: each is listed still. */
static void
places_of_the_dead_are_taken_again(void **state)
{
	char   url[SIBLING_URL_MAX];
	size_t at = 0;

	(void)state;
	siblings_join(OWN);
	for (int i = 0; i < 600; i++) {
		pid_t pid = worker("http://127.0.0.1:6", NULL);

		assert_int_equal(listed(pid, url), 1);
		end(pid);
	}
	assert_int_equal(listed(getpid(), url), 1);
	siblings_leave();
	while (siblings_next(&at, &(struct sibling){ 0 }))
		;
	assert_true(at < 16); /* what a look has touched */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_address_of_ours_is_not_listed),
		cmocka_unit_test(a_process_takes_the_place_that_another_of_its_number_has_left),
		cmocka_unit_test(another_process_of_the_same_number_is_not_listed),
		cmocka_unit_test(places_of_the_dead_are_taken_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
