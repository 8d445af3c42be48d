/*
 * test_posted_calls.c - the server's thread is woken, and a daemon that has one of our numbers by then
 * is none the wiser.
 *
 * fstat() stands here in the place of libc's: between our look at a number and what follows, the
 * daemon has it for its own.  So does gettimeofday(), which is counted.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "posted_calls.h"
#include "server.h"
#include "waiting.h"

static _Atomic int     looked_at = -1; /* becomes instead, after the next look of who is meant */
static _Atomic int     instead = -1;
static _Atomic bool    by_the_server;
static __thread bool   is_the_test; /* 's thread */
static _Atomic int     epolls_asked;
static _Atomic int     clocks_asked; /* the one of libevent's timers */

int
fstat(int fd, struct stat *ret)
{
	int r = fstatat(fd, "", ret, AT_EMPTY_PATH), expected = fd;

	if (fd >= 0 && is_the_test != by_the_server && atomic_compare_exchange_strong(&looked_at, &expected, -1))
		dup2(instead, fd);
	return r;
}

int
epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
	epolls_asked++;
	return (int)syscall(SYS_epoll_ctl, epoll, what, fd, event);
}

int
gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clocks_asked++;
	clock_gettime(CLOCK_REALTIME, &now);
	*ret = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
	return 0;
}

/* What libevent has allocated stays behind when its descriptors are lost: see loop.c. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *
__lsan_default_suppressions(void)
{
	return "leak:libevent\n";
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed = PTHREAD_COND_INITIALIZER;
static int             calls; /* under the lock */

static void
on_call(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	calls++;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

static void
wait_for_calls(int count)
{
	pthread_mutex_lock(&lock);
	while (calls < count)
		pthread_cond_wait(&changed, &lock);
	calls = 0;
	pthread_mutex_unlock(&lock);
}

static struct httpd *
started(void)
{
	struct httpd_options options = { .on_request = NULL };
	struct httpd *_Atomic h = NULL;

	assert_int_equal(httpd_start(&options, &h, NULL), 0);
	return h;
}

static int
count_of(int fd)
{
	int n = -1;

	assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
	return n;
}

/* ---- writing ---- */

/* What the daemon has in the place of a number: fds[0]; and where it would be seen, fds[1]. */
static void
open_file(int fds[2])
{
	fds[0] = fds[1] = memfd_create("theirs", MFD_CLOEXEC);
}

static bool
file_is_untouched(const int fds[2])
{
	return lseek(fds[1], 0, SEEK_END) == 0;
}

static void
open_pipe(int fds[2])
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	fds[0] = ends[1];
	fds[1] = ends[0];
}

static void
open_stream(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
}

static bool
nothing_came(const int fds[2])
{
	return count_of(fds[1]) == 0;
}

static void
open_eventfd(int fds[2])
{
	fds[0] = fds[1] = eventfd(0, EFD_NONBLOCK);
}

static bool
event_is_unsignalled(const int fds[2])
{
	uint64_t n;

	return read(fds[1], &n, sizeof(n)) < 0 && errno == EAGAIN;
}

static void
open_dead_stream(int fds[2])
{
	open_stream(fds);
	close(fds[1]);
	fds[1] = fds[0];
}

static bool
no_signal_is_left(const int fds[2])
{
	sigset_t pending;

	(void)fds;
	return sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE);
}

static void
what_gets_the_number_just_before_the_write_is_not_written_to(void **state)
{
	static const struct {
		void (*open)(int fds[2]);
		bool (*untouched)(const int fds[2]);
	} theirs[] = {
		{ open_file, file_is_untouched },
		{ open_pipe, nothing_came },
		{ open_stream, nothing_came },
		{ open_eventfd, event_is_unsignalled },
		{ open_dead_stream, no_signal_is_left },
	};
	struct httpd *h = started();

	(void)state;
	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++) {
		int fds[2], number = h->fds[HTTPD_FD_WAKER].fd;

		theirs[i].open(fds);
		instead = fds[0];
		looked_at = number;
		assert_int_equal(httpd_post(h, on_call, NULL), 0);
		wait_for_calls(1); /* when the loop has found out */
		assert_true(theirs[i].untouched(fds));
		close(number);
		close(fds[0]);
		if (fds[1] != fds[0])
			close(fds[1]);
	}
	httpd_stop(h, 0);
}

/* ---- reading ---- */

static void
what_gets_the_number_just_before_it_is_read_keeps_what_it_has(void **state)
{
	struct httpd *h = started();
	int           fds[2], number = h->fds[HTTPD_FD_WAKE].fd, kept = dup(number); /* the epoll goes on telling of it */

	(void)state;
	open_pipe(fds);
	assert_int_equal(write(fds[0], "x", 1), 1);
	instead = fds[1];
	by_the_server = true;
	looked_at = number;
	assert_int_equal(httpd_post(h, on_call, NULL), 0);
	wait_for_calls(1);
	by_the_server = false;
	assert_int_equal(count_of(fds[1]), 1);
	httpd_stop(h, 0);
	close(number);
	close(kept);
	close(fds[0]);
	close(fds[1]);
}

/* ---- many ---- */

#define POSTS 2000
#define TURNS 200 /* of the loop */

static void *
post_many(void *arg)
{
	for (int i = 0; i < POSTS; i++)
		assert_int_equal(httpd_post(arg, on_call, NULL), 0);
	return NULL;
}

static void
every_call_of_every_thread_is_run_and_none_waits_for_the_next_look(void **state)
{
	struct httpd *h = started();
	pthread_t     t[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, post_many, h);
	wait_for_calls(4 * POSTS);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	httpd_stop(h, 0);
}

static void
the_timers_are_asked_when_one_may_be_due_and_not_at_every_turn(void **state)
{
	struct httpd *h = started();
	int64_t       begin = now_ns();
	int           before = clocks_asked;

	(void)state;
	for (int i = 0; i < TURNS; i++) {
		assert_int_equal(httpd_post(h, on_call, NULL), 0);
		wait_for_calls(1);
	}
	/* Once a second by us, and now and then by libevent. */
	assert_true(clocks_asked - before <= 5 + 2 * (now_ns() - begin) / CLOCK_NS_PER_S);
	httpd_stop(h, 0);
}

/* ---- forks ---- */

static int
status_of_child(struct httpd *h, int taken, bool (*good)(const struct httpd *h, int epoll))
{
	int   status = -1, epoll = h->fds[HTTPD_FD_EPOLL].fd;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int null = open("/dev/null", O_RDONLY);

		if (taken >= 0)
			dup2(null, taken);
		epolls_asked = 0;
		httpd_forked(h);
		_exit(!good(h, epoll) || epolls_asked);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static bool
epoll_is_closed(const struct httpd *h, int epoll)
{
	(void)h;
	return fcntl(epoll, F_GETFD) < 0;
}

static bool
epoll_is_left_open(const struct httpd *h, int epoll)
{
	return fcntl(epoll, F_GETFD) >= 0 && h->fds[HTTPD_FD_EPOLL].fd == epoll;
}

static void
a_child_asks_no_epoll_whose_it_is_and_closes_it_when_nothing_of_ours_was_lost(void **state)
{
	struct httpd *h = started();

	(void)state;
	assert_int_equal(status_of_child(h, -1, epoll_is_closed), 0);
	assert_int_equal(status_of_child(h, h->fds[HTTPD_FD_WAKE].fd, epoll_is_left_open), 0);
	assert_int_equal(status_of_child(h, h->fds[HTTPD_FD_EPOLL + 1].fd, epoll_is_left_open), 0);
	httpd_stop(h, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_gets_the_number_just_before_the_write_is_not_written_to),
		cmocka_unit_test(what_gets_the_number_just_before_it_is_read_keeps_what_it_has),
		cmocka_unit_test(the_timers_are_asked_when_one_may_be_due_and_not_at_every_turn),
		cmocka_unit_test(every_call_of_every_thread_is_run_and_none_waits_for_the_next_look),
		cmocka_unit_test(a_child_asks_no_epoll_whose_it_is_and_closes_it_when_nothing_of_ours_was_lost),
	};

	is_the_test = true;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
