/*
 * test_profile_write.c - component_profile_write() and component_dump_threads(), and what can
 * go wrong with the descriptor and the thread that calls them.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <component/profiler.h>

#include "waiting.h"

static int
write_options(const char *name, int fd, double seconds, struct component_error *err)
{
	struct component_profile_write_options o = COMPONENT_PROFILE_WRITE_OPTIONS_INIT;

	o.seconds = seconds;
	o.err = err;
	return component_profile_write(name, fd, &o);
}

static bool
is_pending(int number)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigismember(&pending, number);
}

static void
a_reader_that_is_gone_is_an_error_and_no_signal(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	int                    fd[2];

	(void)state;
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	close(fd[0]);
	assert_int_equal(write_options("goroutine", fd[1], 0, &err), -EPIPE); /* SIGPIPE would have ended us */
	assert_string_equal(err.text, strerror(EPIPE));
	assert_false(is_pending(SIGPIPE));
	close(fd[1]);
}

static void
dump_to_nobody(void)
{
	int fd[2];

	signal(SIGPIPE, SIG_DFL);
	if (pipe2(fd, O_CLOEXEC) || close(fd[0]))
		_exit(1);
	_exit(component_dump_threads(fd[1]) != -EPIPE ? 2 : is_pending(SIGPIPE) ? 3 : 0);
}

static void
dump_to_a_file_that_may_not_grow(void)
{
	struct rlimit none = { 0, 0 };
	int           fd = memfd_create("dump", MFD_CLOEXEC);

	signal(SIGXFSZ, SIG_DFL);
	if (fd < 0 || setrlimit(RLIMIT_FSIZE, &none))
		_exit(1);
	_exit(component_dump_threads(fd) != -EFBIG ? 2 : is_pending(SIGXFSZ) ? 3 : 0);
}

static void
a_dump_that_cannot_be_written_is_an_error_and_no_signal(void **state)
{
	static void (*const bodies[])(void) = { dump_to_nobody, dump_to_a_file_that_may_not_grow };
	int                 status;
	pid_t               child;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		child = fork();
		if (child == 0)
			bodies[i]();
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

struct reader {
	int    fd;
	size_t bytes;
	char   first[2];
};

/* Slowly, by single bytes and then in bulk. */
static void *
read_all(void *arg)
{
	struct reader *r = arg;
	char           buf[4096];
	ssize_t        n;

	while ((n = read(r->fd, buf, r->bytes < 1000 ? 1 : sizeof(buf))) > 0) {
		if (r->bytes < 2)
			r->first[r->bytes] = buf[0];
		r->bytes += (size_t)n;
	}
	return NULL;
}

static void
a_pipe_that_would_block_is_waited_for(void **state)
{
	struct reader r = { 0 };
	pthread_t     t;
	int           fd[2];

	(void)state;
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fd[1], F_SETFL, O_NONBLOCK), 0);
	fcntl(fd[1], F_SETPIPE_SZ, 4096);
	r.fd = fd[0];
	assert_int_equal(pthread_create(&t, NULL, read_all, &r), 0);
	errno = 77;
	assert_int_equal(component_profile_write("goroutine", fd[1], NULL), 0);
	assert_int_equal(errno, 77);
	close(fd[1]);
	pthread_join(t, NULL);
	assert_true(r.bytes > 500);
	assert_memory_equal(r.first, "\x1f\x8b", 2);
	close(fd[0]);
}

static void
a_descriptor_that_takes_nothing_is_told_before_a_window(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	int                    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(write_options("profile", fd, 3600, &err), -EBADF);
	assert_string_equal(err.text, "the descriptor is not open for writing");
	assert_int_equal(write_options("profile", -1, 3600, NULL), -EBADF);
	close(fd);
	fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(write_options("goroutine", fd, 0, &err), -ENOSPC);
	close(fd);
}

static void
a_difference_of_what_shows_one_moment_is_refused_at_once(void **state)
{
	struct component_profile_write_options o = COMPONENT_PROFILE_WRITE_OPTIONS_INIT;
	struct component_error                 err = COMPONENT_ERROR_INIT;
	int                                    fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	o.seconds = 1;
	o.format = "dump";
	o.err = &err;
	assert_int_equal(component_profile_write("goroutine", fd, &o), -EINVAL);
	assert_string_equal(err.text,
		"\"seconds\" asks for a difference, and format=dump shows one moment; leave one of the two out");
	o.seconds = 0;
	assert_int_equal(component_profile_write("goroutine", fd, &o), 0);
	close(fd);
}

static void
options_of_another_size_are_read_or_refused(void **state)
{
	struct {
		struct component_profile_write_options o;
		char                                   newer[64];
	} big = { COMPONENT_PROFILE_WRITE_OPTIONS_INIT, { 1 } };
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	big.o.size = sizeof(big);
	assert_int_equal(component_profile_write("goroutine", fd, &big.o), 0);
	big.o.size = offsetof(struct component_profile_write_options, debug);
	big.o.err = (void *)1; /* an older program has none */
	assert_int_equal(component_profile_write("nosuch", fd, &big.o), -ENOENT);
	big.o.size = 0;
	assert_int_equal(component_profile_write("goroutine", fd, &big.o), -EINVAL);
	close(fd);
}

struct cancelled {
	int           fd;
	_Atomic int   state; /* 1: in it, 2: behind it */
	int           result;
};

static void *
write_and_be_cancelled(void *arg)
{
	struct cancelled *c = arg;

	c->state = 1;
	c->result = write_options("profile", c->fd, 1, NULL);
	c->state = 2;
	pthread_testcancel();
	c->state = 3;
	return NULL;
}

static void
a_cancellation_waits_for_the_end(void **state)
{
	char             path[] = "/tmp/component-test-XXXXXX";
	struct cancelled c = { .fd = mkstemp(path) };
	struct stat      st;
	pthread_t        t;
	void            *result;

	(void)state;
	unlink(path);
	assert_int_equal(pthread_create(&t, NULL, write_and_be_cancelled, &c), 0);
	WAIT_FOR(c.state != 0);
	pthread_cancel(t);
	pthread_join(t, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(c.state, 2);
	assert_int_equal(c.result, 0);
	assert_int_equal(fstat(c.fd, &st), 0);
	assert_true(st.st_size > 100);
	close(c.fd);
	/* No lock was kept. */
	assert_int_equal(component_profiler_stop(), 0);
}

/* Each door.  Apart from where the cancellation takes effect: it leaves frames in a way
 * that address sanitizer does not see. */
__attribute__((noinline)) static void
enter_the_doors(struct component_profiler_options *o, int fd)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	char                   url[600];

	if (component_profiler_start_options(o, &err) == 0) {
		component_profiler_reload(NULL);
		component_profiler_url(url, sizeof(url));
		component_profiler_set_heap_rate(0);
		component_profile_write("goroutine", fd, NULL);
		component_profiler_stop();
		o->size = 0; /* came to the end */
	}
}

static int null_fd;

static void *
be_cancelled_and_enter(void *arg)
{
	pthread_cancel(pthread_self());
	enter_the_doors(arg, null_fd);
	pthread_testcancel();
	return NULL;
}

static void
no_door_is_a_cancellation_point_and_no_lock_is_lost(void **state)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT, again = o;
	char                              path[] = "/tmp/component-test-XXXXXX";
	int                               fd = mkstemp(path);
	pthread_t                         t;
	void                             *result;

	(void)state;
	assert_int_equal(write(fd, "secret\n", 7), 7);
	o.address = again.address = "127.0.0.1:0";
	o.token_file = path;
	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_int_equal(pthread_create(&t, NULL, be_cancelled_and_enter, &o), 0);
	pthread_join(t, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(o.size, 0);
	assert_false(component_profiler_running());
	assert_int_equal(component_profiler_start_options(&again, NULL), 0);
	assert_int_equal(component_profiler_stop(), 0);
	close(null_fd);
	close(fd);
	unlink(path);
}

static void *
write_one(void *arg)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	*(int *)arg = write_options("fgprof", fd, 1, NULL);
	close(fd);
	return NULL;
}

/* Not under a sanitizer: its allocator may be locked in a child, for good. */
static void
a_child_writes_one(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	pid_t child = fork();
	int   status, fd;

	if (child == 0) {
		fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
		_exit(component_profile_write("goroutine", fd, NULL) != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
#endif
}

static void
several_at_once_a_server_that_comes_and_goes_and_a_child_meanwhile(void **state)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	pthread_t                         t[3];
	int                               result[3] = { 1, 1, 1 };

	(void)state;
	o.address = "127.0.0.1:0";
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, write_one, &result[i]), 0);
	assert_int_equal(component_profiler_start_options(&o, NULL), 0);
	assert_int_equal(component_profiler_stop(), 0);
	a_child_writes_one();
	for (int i = 0; i < 3; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(result[i], 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_that_is_gone_is_an_error_and_no_signal),
		cmocka_unit_test(a_dump_that_cannot_be_written_is_an_error_and_no_signal),
		cmocka_unit_test(a_pipe_that_would_block_is_waited_for),
		cmocka_unit_test(a_descriptor_that_takes_nothing_is_told_before_a_window),
		cmocka_unit_test(a_difference_of_what_shows_one_moment_is_refused_at_once),
		cmocka_unit_test(options_of_another_size_are_read_or_refused),
		cmocka_unit_test(a_cancellation_waits_for_the_end),
		cmocka_unit_test(no_door_is_a_cancellation_point_and_no_lock_is_lost),
		cmocka_unit_test(several_at_once_a_server_that_comes_and_goes_and_a_child_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
