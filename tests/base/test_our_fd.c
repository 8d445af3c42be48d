/*
 * test_our_fd.c - a forked child has none of the descriptors that we had open for a
 * moment, and all of the daemon's.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "our_fd.h"
#include "skip.h"

#define FORKS   300
#define FDS_MAX 512 /* no test has more */

static atomic_bool stop;

static void
read_by_libc(void)
{
	FILE *f = our_fd_fopen("/proc/self/maps");
	DIR  *d = our_fd_opendir("/proc/self/map_files");
	char  line[300];

	if (!f || !fgets(line, sizeof(line), f))
		abort();
	our_fd_fclose(f);
	if (d)
		our_fd_closedir(d);
}

static void
read_swiftly(void)
{
	int  begun = our_fd_swift_begin(), fd;
	char c;

	for (int i = 0; i < 3; i++) {
		fd = our_fd_swift_open(AT_FDCWD, "/proc/self/comm");
		if (fd < 0 || pread(fd, &c, 1, 0) != 1)
			abort();
		our_fd_swift_close(fd, i == 0);
	}
	our_fd_swift_end(begun);
}

/* Descriptors of ours and of the daemon's take each other's numbers. */
static void *
open_and_close(void *arg)
{
	int *theirs = arg, fd;

	while (!stop) {
		fd = our_fd_open("/proc/self/maps", O_RDONLY, 0);
		if (fd < 0)
			abort();
		read_by_libc();
		our_fd_close(fd);
		read_swiftly();
		if (theirs) {
			fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
			close(fd);
		}
	}
	return NULL;
}

/* Descriptors that are open on a file of that name, in this process.  Allocates nothing: a
 * sanitizer's allocator may be locked in a forked child. */
static int
count_open(const char *name)
{
	char    path[64], link[300];
	int     count = 0;
	ssize_t n;

	for (int fd = 0; fd < FDS_MAX; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = '\0';
		count += strstr(link, name) != NULL;
	}
	return count;
}

static void
children_forked_meanwhile_have_none_of_ours_and_all_of_the_daemons(void **state)
{
	int       theirs = open("/dev/zero", O_RDONLY | O_CLOEXEC), status, i;
	pthread_t t[2];
	pid_t     pid;

	(void)state;
	stop = false;
	assert_int_equal(pthread_create(&t[0], NULL, open_and_close, NULL), 0);
	assert_int_equal(pthread_create(&t[1], NULL, open_and_close, &theirs), 0);
	for (i = 0; i < FORKS; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			_exit(count_open("/map") * 2 + (fcntl(theirs, F_GETFD) < 0));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	stop = true;
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	close(theirs);
	assert_int_equal(count_open("/map"), 0);
}

static void
a_child_can_open_and_fork_again(void **state)
{
	int   kept = our_fd_open("/proc/self/maps", O_RDONLY, 0), status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		int fd = our_fd_open("/proc/self/maps", O_RDONLY, 0);

		pid = fork();
		if (pid == 0)
			_exit(count_open("/map"));
		if (waitpid(pid, &status, 0) != pid || status != 0 || count_open("/map") != 1)
			_exit(1);
		our_fd_close(fd);
		_exit(count_open("/map"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(count_open("/map"), 1);
	our_fd_close(kept);
}

static void
standard_descriptors_are_left_free_and_errno_and_mask_as_they_were(void **state)
{
	sigset_t before, after;
	int      saved = dup(0), fd;

	(void)state;
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	close(0);
	fd = our_fd_open("/dev/null", O_RDONLY, 0);
	assert_true(fd > 2);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	errno = 4711;
	our_fd_close(fd);
	our_fd_close(-ENOENT);
	assert_int_equal(errno, 4711);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	assert_int_equal(our_fd_open("/nowhere/at/all", O_RDONLY, 0), -ENOENT);
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	assert_int_equal(sigismember(&before, SIGPROF), sigismember(&after, SIGPROF));
	assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
	dup2(saved, 0);
	close(saved);
}

static void *
open_and_wait(void *arg)
{
	int fd = our_fd_open(arg, O_RDONLY, 0);

	our_fd_close(fd);
	return (void *)(intptr_t)fd;
}

/* open(2) waits for the lease of another to end, as it may for a server's answer. */
static void
a_fork_does_not_wait_for_a_file_that_is_slow_to_open(void **state)
{
	char      path[] = "/tmp/component-test-XXXXXX";
	int       leased = mkstemp(path), status;
	pthread_t t;
	pid_t     pid;
	void     *opened;

	(void)state;
	assert_true(leased >= 0);
	signal(SIGIO, SIG_IGN); /* what tells of the wish */
	if (fcntl(leased, F_SETLEASE, F_WRLCK) < 0) {
		unlink(path);
		close(leased);
		SKIP("this file system has no leases");
	}
	assert_int_equal(pthread_create(&t, NULL, open_and_wait, path), 0);
	while (fcntl(leased, F_GETLEASE) == F_WRLCK)
		; /* until it waits */
	alarm(35); /* the kernel lets it wait for 45 s */
	pid = fork();
	if (pid == 0)
		_exit(count_open(path) != 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	alarm(0);
	assert_int_equal(status, 0);
	assert_int_equal(fcntl(leased, F_SETLEASE, F_UNLCK), 0);
	assert_int_equal(pthread_join(t, &opened), 0);
	assert_true((intptr_t)opened > 2);
	close(leased);
	unlink(path);
}

static void
a_number_that_the_daemon_has_taken_is_not_closed(void **state)
{
	int   fd = our_fd_open("/proc/self/maps", O_RDONLY, 0), pair[2], status;
	int   theirs = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	pid_t pid;

	(void)state;
	assert_int_equal(our_fd_socketpair(pair), 0); /* which has no mark */
	assert_int_equal(dup3(theirs, fd, O_CLOEXEC), fd);
	assert_int_equal(dup3(theirs, pair[0], O_CLOEXEC), pair[0]);
	pid = fork();
	if (pid == 0)
		_exit(fcntl(fd, F_GETFD) < 0 || fcntl(pair[0], F_GETFD) < 0 || fcntl(pair[1], F_GETFD) >= 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	our_fd_close(fd);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	our_fd_close(pair[0]);
	assert_true(fcntl(pair[0], F_GETFD) >= 0);
	close(pair[0]);
	our_fd_close(pair[1]);
	close(theirs);
}

static void
nor_is_it_where_libc_would_close_it(void **state)
{
	static DIR  *dir; /* what is kept of both is no leak */
	static FILE *file;
	int          theirs = open("/dev/zero", O_RDONLY | O_CLOEXEC), fds[2];

	(void)state;
	dir = our_fd_opendir("/proc/self");
	file = our_fd_fopen("/proc/self/maps");
	assert_true(dir && file);
	fds[0] = dirfd(dir);
	fds[1] = fileno(file);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dup3(theirs, fds[i], O_CLOEXEC), fds[i]);
	our_fd_closedir(dir);
	our_fd_fclose(file);
	for (int i = 0; i < 2; i++)
		assert_int_equal(close(fds[i]), 0);
	close(theirs);
}

/* As if a daemon had closed all descriptors there are, and opened its own. */
static void
one_for_long_that_is_lost_gives_up_its_place_and_closes_nobodys(void **state)
{
	int                theirs = open("/dev/zero", O_RDONLY | O_CLOEXEC), pair[2], fd, status;
	struct our_fd_kept k;
	pid_t              pid;

	(void)state;
	for (int i = 0; i < 300; i++) {
		fd = our_fd_open("/proc/self/maps", O_RDONLY, 0);
		our_fd_keep(&k, fd);
		assert_true(our_fd_is_kept(&k, NULL));
		assert_int_equal(dup3(theirs, fd, O_CLOEXEC), fd);
		assert_false(our_fd_is_kept(&k, NULL));
		our_fd_kept_close(&k);
		assert_int_equal(k.fd, -1);
		assert_int_equal(close(fd), 0);
	}
	assert_int_equal(our_fd_socketpair(pair), 0); /* for which there must be places */
	our_fd_close(pair[0]);
	our_fd_close(pair[1]);

	/* Another of ours has that number now. */
	our_fd_keep(&k, our_fd_open("/proc/self/maps", O_RDONLY, 0));
	fd = k.fd;
	close(fd);
	assert_int_equal(our_fd_open("/proc/self/status", O_RDONLY, 0), fd);
	our_fd_kept_close(&k);
	assert_int_equal(count_open("/status"), 1);
	pid = fork();
	if (pid == 0)
		_exit(count_open("/status"));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	our_fd_close(fd);
	assert_int_equal(count_open("/status"), 0);
	our_fd_kept_close(&k);
	close(theirs);
}

static void
one_of_ours_that_has_the_number_of_one_that_was_lost_is_closed(void **state)
{
	struct our_fd_kept lost;
	int                fd = our_fd_open("/dev/null", O_WRONLY, 0), again, pair[2];

	(void)state;
	our_fd_keep_listed(&lost, fd);
	close(fd); /* the daemon */
	again = our_fd_socket(AF_UNIX, SOCK_STREAM);
	assert_int_equal(again, fd);
	our_fd_close(again);
	assert_int_equal(fcntl(again, F_GETFD), -1);
	assert_false(our_fd_kept_close(&lost));
	for (int i = 0; i < 300; i++) { /* for which there must be places */
		assert_int_equal(our_fd_socketpair(pair), 0);
		our_fd_close(pair[0]);
		our_fd_close(pair[1]);
		our_fd_keep_listed(&lost, fd = our_fd_open("/dev/null", O_WRONLY, 0));
		close(fd);
		assert_false(our_fd_kept_close(&lost));
	}
}

/* As if a daemon had closed a connection, and a pair of ours had its number. */
static void
one_that_has_no_place_gives_up_nobodys(void **state)
{
	int                pair[2], fd = open("/dev/zero", O_RDONLY | O_CLOEXEC), status;
	struct our_fd_kept k;
	pid_t              pid;

	(void)state;
	our_fd_keep(&k, fd);
	close(fd);
	assert_int_equal(our_fd_socketpair(pair), 0);
	assert_int_equal(pair[0], fd);
	assert_false(our_fd_kept_close(&k));
	pid = fork();
	if (pid == 0)
		_exit(fcntl(pair[0], F_GETFD) >= 0 || fcntl(pair[1], F_GETFD) >= 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);

	/* The pair's own does. */
	our_fd_keep_listed(&k, pair[0]);
	assert_true(our_fd_kept_close(&k));
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd, pair[0]);
	pid = fork();
	if (pid == 0)
		_exit(fcntl(fd, F_GETFD) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
	our_fd_close(pair[1]);
}

static void
more_than_have_a_place_are_closed_all_the_same(void **state)
{
	enum { MANY = 300 };
	int   fds[MANY], status, theirs;
	pid_t pid;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		fds[i] = our_fd_open("/proc/self/maps", O_RDONLY, 0);
		assert_true(fds[i] > 2);
	}
	pid = fork();
	if (pid == 0)
		_exit(count_open("/map") != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* What is written to has no mark by which a child could find it. */
	assert_int_equal(our_fd_open("/dev/null", O_WRONLY, 0), -EMFILE);
	/* Nor is the last one's number closed once it is the daemon's. */
	theirs = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_int_equal(dup3(theirs, fds[MANY - 1], O_CLOEXEC), fds[MANY - 1]);
	for (int i = MANY; i > 0; i--)
		our_fd_close(fds[i - 1]);
	assert_int_equal(close(fds[MANY - 1]), 0);
	close(theirs);
	assert_int_equal(count_open("/map"), 0);
	assert_true((theirs = our_fd_open("/dev/null", O_WRONLY, 0)) > 2);
	our_fd_close(theirs);
}

/* Also when the child looks for others by their mark. */
static void
one_that_children_shall_have_is_theirs_until_they_shall_not(void **state)
{
	struct our_fd_kept kept;
	int                begun, status;
	pid_t              pid;

	(void)state;
	our_fd_keep(&kept, our_fd_open("/proc/self/maps", O_RDONLY, 0));
	for (int shall = 1; shall >= 0; shall--) {
		our_fd_inherit(&kept, shall);
		begun = our_fd_swift_begin();
		pid = fork();
		if (pid == 0)
			_exit(count_open("/maps") * 2 + our_fd_is_kept(&kept, NULL));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(WEXITSTATUS(status), shall ? 3 : 0);
		our_fd_swift_end(begun);
	}
	assert_true(our_fd_kept_close(&kept));
	assert_int_equal(count_open("/maps"), 0);
}

static void
also_in_a_root_without_proc(void **state)
{
	enum { MANY = 300, NO_CHROOT = 77 };
	int   fds[MANY], status;
	pid_t pid = fork(), child;

	(void)state;
	if (pid == 0) {
		for (int i = 0; i < MANY; i++)
			if ((fds[i] = our_fd_open("/dev/null", O_RDONLY, 0)) < 0)
				_exit(5);
		if (geteuid() != 0 && unshare(CLONE_NEWUSER))
			_exit(NO_CHROOT);
		if (chroot("/usr"))
			_exit(NO_CHROOT);
		child = fork();
		for (int i = 0; child == 0 && i < MANY; i++)
			if (fcntl(fds[i], F_GETFD) >= 0)
				_exit(1);
		if (child == 0)
			_exit(0);
		_exit(waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_CHROOT)
		SKIP("no right to change the root, nor a user namespace to have it in");
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_forked_meanwhile_have_none_of_ours_and_all_of_the_daemons),
		cmocka_unit_test(a_child_can_open_and_fork_again),
		cmocka_unit_test(a_fork_does_not_wait_for_a_file_that_is_slow_to_open),
		cmocka_unit_test(a_number_that_the_daemon_has_taken_is_not_closed),
		cmocka_unit_test(nor_is_it_where_libc_would_close_it),
		cmocka_unit_test(one_for_long_that_is_lost_gives_up_its_place_and_closes_nobodys),
		cmocka_unit_test(one_of_ours_that_has_the_number_of_one_that_was_lost_is_closed),
		cmocka_unit_test(one_that_has_no_place_gives_up_nobodys),
		cmocka_unit_test(more_than_have_a_place_are_closed_all_the_same),
		cmocka_unit_test(one_that_children_shall_have_is_theirs_until_they_shall_not),
		cmocka_unit_test(also_in_a_root_without_proc),
		cmocka_unit_test(standard_descriptors_are_left_free_and_errno_and_mask_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
