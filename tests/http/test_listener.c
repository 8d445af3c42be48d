/*
 * test_listener.c - what becomes of a listener that cannot accept.
 *
 * accept4() stands here in the place of libc's, and fails as it is told.
 */
#include <config.h>

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "httpd.h"
#include "waiting.h"

#define TURNS 500 /* of the loop */

static atomic_int fails_with; /* 0: it does not */
static atomic_int asked, rested, answered, turns;

int
accept4(int fd, struct sockaddr *peer, socklen_t *size, int flags)
{
	int error = fails_with;

	asked++;
	if (!error)
		return (int)syscall(SYS_accept4, fd, peer, size, flags);
	if (error == ECONNABORTED)
		fails_with = 0;
	errno = error;
	return -1;
}

static void
on_log(void *arg, enum component_log_level level, const char *message, const struct component_log_field *fields, size_t count)
{
	(void)arg;
	(void)level;
	(void)fields;
	(void)count;
	rested += strstr(message, "cannot accept") != NULL;
}

static void
on_request(struct answer *a, void *arg)
{
	(void)arg;
	answer_whole(a, 200, (const struct answer_header[]){ { NULL, NULL } }, "", 0);
	answered++;
}

static void
on_turn(void *arg)
{
	(void)arg;
	turns++;
}

static struct httpd *
listening(struct sockaddr *at, socklen_t size)
{
	struct httpd_options options = { .on_request = on_request, .log = on_log };
	struct httpd *_Atomic h = NULL;
	struct address        a;
	struct listen_set     set;

	asked = rested = answered = turns = 0;
	assert_int_equal(address_parse("127.0.0.1:0", &a, NULL, 0), 0);
	assert_int_equal(listen_open(&a, &set, NULL), 0);
	assert_int_equal(getsockname(set.sockets[0].fd, at, &size), 0);
	assert_int_equal(httpd_start(&options, &h, NULL), 0);
	assert_int_equal(httpd_listen(h, &set, NULL), 0);
	return h;
}

static int
client(const struct sockaddr *at, socklen_t size)
{
	static const char request[] = "GET / HTTP/1.0\r\n\r\n";
	int               fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, at, size), 0);
	assert_int_equal(write(fd, request, strlen(request)), strlen(request));
	return fd;
}

static void
a_listener_that_may_not_accept_rests_whatever_the_error_and_goes_on_when_it_may(void **state)
{
	static const int errors[] = { EPERM, EACCES, ENOSYS, EMFILE };

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct sockaddr_storage at;
		struct httpd           *h = listening((struct sockaddr *)&at, sizeof(at));
		int64_t                 begin = now_ns();
		int                     fd;

		fails_with = errors[i];
		fd = client((struct sockaddr *)&at, sizeof(struct sockaddr_in));
		WAIT_FOR(asked > 0);
		for (int n = 0; n < TURNS; n++) {
			assert_int_equal(httpd_post(h, on_turn, NULL), 0);
			WAIT_FOR(turns > n);
		}
		/* Once at first, and after each rest. */
		assert_true(asked <= 2 + (now_ns() - begin) / (HTTPD_REST_MS * INT64_C(1000000)));
		assert_int_equal(rested, 1);
		fails_with = 0;
		WAIT_FOR(answered == 1);
		close(fd);
		httpd_stop(h, 0);
	}
}

static void
a_connection_that_is_gone_before_it_is_accepted_makes_nobody_wait(void **state)
{
	struct sockaddr_storage at;
	struct httpd           *h = listening((struct sockaddr *)&at, sizeof(at));
	int                     fd;

	(void)state;
	fails_with = ECONNABORTED;
	fd = client((struct sockaddr *)&at, sizeof(struct sockaddr_in));
	WAIT_FOR(answered == 1);
	assert_int_equal(rested, 0);
	close(fd);
	httpd_stop(h, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listener_that_may_not_accept_rests_whatever_the_error_and_goes_on_when_it_may),
		cmocka_unit_test(a_connection_that_is_gone_before_it_is_accepted_makes_nobody_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
