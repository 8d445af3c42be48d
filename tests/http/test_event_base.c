/*
 * test_event_base.c - the descriptors that libevent opens are told from those the
 * daemon opens at the same time: what is closed in a forked child is ours.
 */
#include <config.h>

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "event_base.h"

static _Atomic int stop;

static void
link_of(int fd, char *buf, size_t size)
{
	char    path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
}

/* Epoll, and two ends of one pipe; all above 2. */
static void
check_are_libevents(const int fds[HTTPD_BASE_FDS])
{
	char one[64], two[64];

	for (int i = 0; i < 3; i++)
		assert_true(fds[i] > 2);
	link_of(fds[0], one, sizeof(one));
	assert_string_equal(one, "anon_inode:[eventpoll]");
	link_of(fds[1], one, sizeof(one));
	link_of(fds[2], two, sizeof(two));
	assert_int_equal(strncmp(one, "pipe:", 5), 0);
	assert_string_equal(one, two);
}

static void
all_three_are_found_and_gone_with_the_base(void **state)
{
	int                fds[HTTPD_BASE_FDS];
	struct event_base *base = NULL;

	(void)state;
	assert_int_equal(httpd_base_new(&base, fds), 0);
	check_are_libevents(fds);
	event_base_free(base);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), -1);
}

static void
standard_descriptors_are_left_alone_even_when_closed(void **state)
{
	int                fds[HTTPD_BASE_FDS];
	struct event_base *base = NULL;
	int                keep = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10), closed;

	(void)state;
	close(STDIN_FILENO);
	assert_int_equal(httpd_base_new(&base, fds), 0);
	closed = fcntl(STDIN_FILENO, F_GETFD);
	if (keep >= 0) {
		dup2(keep, STDIN_FILENO);
		close(keep);
	}
	assert_int_equal(closed, -1);
	check_are_libevents(fds);
	event_base_free(base);
}

/* A daemon's thread that opens and closes the very things libevent opens. */
static void *
disturb(void *arg)
{
	int ends[2], fd;

	while (!stop) {
		fd = epoll_create1(EPOLL_CLOEXEC);
		if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0) {
			close(ends[0]);
			close(ends[1]);
		}
		close(fd);
	}
	return arg;
}

static void
a_daemon_that_opens_the_same_at_the_same_time_is_never_taken_for_us(void **state)
{
	pthread_t threads[2];
	unsigned  found = 0;

	(void)state;
	stop = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, disturb, NULL), 0);
	for (int round = 0; round < 100; round++) {
		int                fds[HTTPD_BASE_FDS];
		struct event_base *base = NULL;

		assert_int_equal(httpd_base_new(&base, fds), 0);
		/* What was told to be ours must be the base's: gone with it, and still
		 * there before, however often the others have changed meanwhile. */
		for (int i = 0; i < 3; i++)
			if (fds[i] >= 0)
				assert_true(fcntl(fds[i], F_GETFD) >= 0);
		if (fds[0] >= 0 && fds[1] >= 0) {
			check_are_libevents(fds);
			found++;
		}
		event_base_free(base);
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_true(found > 50);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_three_are_found_and_gone_with_the_base),
		cmocka_unit_test(standard_descriptors_are_left_alone_even_when_closed),
		cmocka_unit_test(a_daemon_that_opens_the_same_at_the_same_time_is_never_taken_for_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
