/*
 * test_our_table.c - threads of ours have a table of descriptors of their own: the program's has the copies
 * that it shall have, a number is never taken for the other table's, and in the end there is one table.
 *
 * A process goes apart once: each test is a child of its own.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "our_fd.h"
#include "our_table.h"
#include "our_thread.h"
#include "skip.h"

#define FDS_MAX 300
#define NO_TABLE 77

/* In a child, where cmocka's would go on with the next test. */
#define MUST(holds)                                                                \
	do {                                                                       \
		if (!(holds)) {                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds); \
			_exit(1);                                                  \
		}                                                                  \
	} while (0)

static void
in_a_child(void (*test)(void))
{
	int   status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_TABLE)
		SKIP("the kernel has no close_range(), or this process is under a seccomp filter");
	assert_int_equal(status, 0);
}

static size_t
begun(our_table_fn *fn, void *arg, int copies[OUR_TABLE_SHOWN_MAX])
{
	size_t count;
	int    r = our_table_begin(fn, arg, copies, &count);

	if (r == -ENOSYS || r == -EPERM)
		_exit(NO_TABLE);
	MUST(r == 0);
	return count;
}

/* How many above 2 are open in the calling thread's table. */
static int
count_open(void)
{
	int n = 0;

	for (int fd = 3; fd < FDS_MAX; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static bool
is_dev_null(int fd)
{
	struct stat st, null;

	return fstat(fd, &st) == 0 && stat("/dev/null", &null) == 0 && st.st_rdev == null.st_rdev;
}

/* ---- the begin ---- */

static void *
look_again(void *arg)
{
	MUST(our_table_is_own());
	MUST(fcntl(*(int *)arg, F_GETFD) < 0);
	return NULL;
}

static size_t
look_around(void *arg, int fds[OUR_TABLE_SHOWN_MAX])
{
	int       fd;
	pthread_t t;

	(void)fds;
	MUST(our_table_is_own() && our_table_is_apart());
	MUST(count_open() == 0);
	for (int i = 0; i < 3; i++)
		MUST(is_dev_null(i));
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	MUST(fd > 2 && our_thread_start("component-test", look_again, arg, &t) == 0);
	pthread_join(t, NULL);
	return 0;
}

static void
look(void)
{
	int before, copies[OUR_TABLE_SHOWN_MAX], theirs = open("/dev/full", O_WRONLY | O_CLOEXEC), again;
	size_t count;

	dup2(theirs, 250);
	before = count_open();
	MUST(!our_table_is_own() && !our_table_is_apart());
	again = 250;
	MUST(begun(look_around, &again, copies) == 0);
	MUST(count_open() == before);
	MUST(!our_table_is_own() && our_table_is_apart());
	MUST(our_table_begin(look_around, &again, copies, &count) == -EBUSY);
}

static void
a_thread_begins_with_nothing_of_the_programs_and_so_do_those_that_it_starts(void **state)
{
	(void)state;
	in_a_child(look);
}

static size_t
open_three(void *arg, int fds[OUR_TABLE_SHOWN_MAX])
{
	(void)arg;
	fds[0] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	fds[1] = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	fds[2] = eventfd(7, EFD_CLOEXEC);
	return 3;
}

static void
copy(void)
{
	int      copies[OUR_TABLE_SHOWN_MAX], before = count_open();
	char     c;
	uint64_t seven;

	MUST(begun(open_three, NULL, copies) == 3);
	MUST(count_open() == before + 3);
	MUST(read(copies[0], &c, 1) == 1 && c == '\0');
	MUST(read(copies[1], &c, 1) == 1 && c != '\0');
	MUST(read(copies[2], &seven, 8) == 8 && seven == 7);
	for (int i = 0; i < 3; i++)
		MUST(fcntl(copies[i], F_GETFD) & FD_CLOEXEC);
}

static void
the_program_has_copies_of_what_it_shall_have_in_their_order(void **state)
{
	(void)state;
	in_a_child(copy);
}

static size_t
come_to_nothing(void *arg, int fds[OUR_TABLE_SHOWN_MAX])
{
	(void)arg;
	(void)fds;
	our_table_fail();
	return 0;
}

static void
begin_after_a_failure(void)
{
	int copies[OUR_TABLE_SHOWN_MAX], again = 250;

	dup2(0, 250);
	begun(come_to_nothing, NULL, copies);
	MUST(!our_table_is_apart());
	begun(look_around, &again, copies);
	MUST(our_table_is_apart());
}

static void
what_could_not_be_begun_is_begun_again(void **state)
{
	(void)state;
	in_a_child(begin_after_a_failure);
}

/* ---- while threads of ours live ---- */

static struct our_fd_kept kept;
static pthread_mutex_t    ends = PTHREAD_MUTEX_INITIALIZER; /* the program's thread holds it */

static void *
hold_on(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&ends);
	MUST(our_fd_is_kept(&kept, NULL));
	MUST(our_fd_kept_close(&kept));
	pthread_mutex_unlock(&ends);
	return NULL;
}

static pthread_t holder;

static size_t
keep_one(void *arg, int fds[OUR_TABLE_SHOWN_MAX])
{
	int pair[2];

	(void)arg;
	(void)fds;
	our_fd_keep(&kept, our_fd_open("/proc/self/maps", O_RDONLY, 0));
	MUST(our_fd_socketpair(pair) == 0);
	MUST(our_thread_start("component-test", hold_on, NULL, &holder) == 0);
	return 0;
}

/* A pipe's reader waits for the last writer. */
static void
close_all(void)
{
	int  fds[2], copies[OUR_TABLE_SHOWN_MAX];
	char c;

	MUST(pipe(fds) == 0 && dup2(fds[1], 1) == 1 && dup2(fds[1], 2) == 2);
	pthread_mutex_lock(&ends);
	begun(keep_one, NULL, copies); /* whose thread lives on */
	close(fds[1]);
	close(1);
	close(2);
	_exit(read(fds[0], &c, 1) != 0);
}

static void
whoever_reads_the_programs_output_sees_its_end(void **state)
{
	(void)state;
	in_a_child(close_all);
}

static void
share_numbers(void)
{
	int   copies[OUR_TABLE_SHOWN_MAX], status, first;
	pid_t pid;

	pthread_mutex_lock(&ends);
	begun(keep_one, NULL, copies);
	first = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	while (open("/dev/zero", O_RDONLY | O_CLOEXEC) < 50)
		; /* also the number of the pair */
	MUST(!our_fd_is_kept(&kept, NULL));
	MUST(fcntl(kept.fd, F_GETFD) >= 0);
	pid = fork();
	if (pid == 0) {
		for (int fd = first; fd <= 50; fd++)
			MUST(fcntl(fd, F_GETFD) >= 0);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	our_fd_close(kept.fd); /* nothing of ours here, and so nobody's */
	MUST(fcntl(kept.fd, F_GETFD) >= 0);
	pthread_mutex_unlock(&ends);
	pthread_join(holder, NULL);
	for (int fd = first; fd <= 50; fd++)
		MUST(fcntl(fd, F_GETFD) >= 0);
}

static void
what_the_program_opens_under_a_number_of_ours_stays_its_own_also_in_a_child(void **state)
{
	(void)state;
	in_a_child(share_numbers);
}

static void
fork_and_begin(void)
{
	int   copies[OUR_TABLE_SHOWN_MAX], status, again = 250;
	pid_t pid;

	begun(open_three, NULL, copies);
	dup2(0, 250);
	pid = fork();
	if (pid == 0) {
		MUST(!our_table_is_own());
		for (int fd = 3; fd < FDS_MAX; fd++)
			close(fd);
		MUST(begun(look_around, &again, copies) == 0);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void
a_child_can_have_one_of_its_own(void **state)
{
	(void)state;
	in_a_child(fork_and_begin);
}

/* ---- the end ---- */

static int                epoll, mark, lost, placed[2]; /* the last are in the list by their numbers alone */
static struct our_fd_kept from, through; /* the program's */

static void *
send_all(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&ends);
	our_table_send(&through);
	pthread_mutex_unlock(&ends);
	return NULL;
}

static size_t
open_much(void *arg, int fds[OUR_TABLE_SHOWN_MAX])
{
	struct epoll_event e = { .events = EPOLLIN };

	(void)arg;
	for (int i = 0; i < 20; i++)
		MUST(dup(0) >= 0); /* numbers that the pair of the end has */
	MUST(our_fd_socketpair(placed) == 0);
	epoll = fcntl(epoll_create1(EPOLL_CLOEXEC), F_DUPFD_CLOEXEC, 100);
	mark = fcntl(eventfd(1, EFD_CLOEXEC), F_DUPFD_CLOEXEC, 101);
	lost = fcntl(open("/dev/zero", O_RDONLY | O_CLOEXEC), F_DUPFD_CLOEXEC, 200);
	our_fd_keep(&kept, fcntl(our_fd_open("/proc/self/maps", O_RDONLY, 0), F_DUPFD_CLOEXEC, 102));
	e.data.fd = mark;
	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, mark, &e) == 0);
	for (int i = 0; i < 600; i++)
		MUST(dup(mark) >= 0); /* more than go at once */
	MUST(our_thread_start("component-test", send_all, NULL, &holder) == 0);
	(void)fds;
	return 0;
}

static void
pair_make(void)
{
	int pair[2];

	MUST(our_fd_socketpair(pair) == 0);
	our_fd_keep_listed(&from, pair[0]);
	our_fd_keep_listed(&through, pair[1]);
}

static void
merge(void)
{
	int                copies[OUR_TABLE_SHOWN_MAX], theirs = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct epoll_event e;
	struct stat        st, full;
	uint64_t           one;
	size_t             count;
	int                status;
	pid_t              pid;

	pthread_mutex_lock(&ends);
	MUST(begun(open_much, NULL, copies) == 0);
	pair_make();
	dup2(theirs, 200);
	pthread_mutex_unlock(&ends);
	pthread_join(holder, NULL);
	MUST(our_table_merge(&from));
	MUST(!our_table_is_apart() && !our_table_is_own());
	MUST(our_fd_is_kept(&kept, NULL) && (fcntl(kept.fd, F_GETFD) & FD_CLOEXEC));
	MUST(fstat(200, &st) == 0 && fstat(theirs, &full) == 0 && st.st_rdev == full.st_rdev);
	MUST(epoll_wait(epoll, &e, 1, 0) == 1 && e.data.fd == mark);
	MUST(epoll_ctl(epoll, EPOLL_CTL_DEL, mark, NULL) == 0);
	MUST(read(mark, &one, 8) == 8 && one == 1);
	MUST(our_fd_kept_close(&kept));
	pid = fork();
	if (pid == 0)
		_exit(fcntl(placed[0], F_GETFD) >= 0 || fcntl(placed[1], F_GETFD) >= 0);
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	MUST(fcntl(placed[0], F_GETFD) >= 0 && fcntl(placed[1], F_GETFD) >= 0);
	MUST(our_table_begin(open_much, NULL, copies, &count) == -EBUSY); /* threads of ours may share the program's */
}

static void
in_the_end_all_is_the_programs_under_the_same_numbers_but_those_that_it_has(void **state)
{
	(void)state;
	in_a_child(merge);
}

static void
merge_nothing(void)
{
	int copies[OUR_TABLE_SHOWN_MAX];

	pthread_mutex_lock(&ends);
	begun(keep_one, NULL, copies);
	our_fd_keep(&from, -1);
	MUST(!our_table_merge(&from));
	MUST(!our_table_is_apart() && !our_fd_is_kept(&kept, NULL));
	_exit(0); /* the thread there has its table still */
}

static void
what_was_not_sent_is_lost_as_if_it_had_been_closed(void **state)
{
	(void)state;
	in_a_child(merge_nothing);
}

static void
merge_below_the_programs_own(void)
{
	int   copies[OUR_TABLE_SHOWN_MAX], status;
	pid_t pid;

	pthread_mutex_lock(&ends);
	begun(open_much, NULL, copies);
	pair_make();
	while (open("/dev/zero", O_RDONLY | O_CLOEXEC) < 250)
		; /* ours begin at 3 */
	pthread_mutex_unlock(&ends);
	pthread_join(holder, NULL);
	our_table_merge(&from);
	MUST(!our_fd_is_kept(&kept, NULL));
	pid = fork();
	if (pid == 0) {
		for (int fd = 3; fd <= 250; fd++)
			MUST(fcntl(fd, F_GETFD) >= 0 || fd == from.fd || fd == through.fd);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void
what_cannot_have_its_number_again_is_no_longer_ours_in_a_child(void **state)
{
	(void)state;
	in_a_child(merge_below_the_programs_own);
}

/* As if the program had closed all, and opened a socket of its own. */
static void
merge_through_a_strangers_socket(void)
{
	int  copies[OUR_TABLE_SHOWN_MAX], theirs[2];
	char c;

	pthread_mutex_lock(&ends);
	begun(open_much, NULL, copies);
	pair_make();
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, theirs) == 0);
	MUST(dup3(theirs[0], from.fd, O_CLOEXEC) >= 0 && dup3(theirs[1], through.fd, O_CLOEXEC) >= 0);
	MUST(write(theirs[1], "x", 1) == 1);
	pthread_mutex_unlock(&ends);
	pthread_join(holder, NULL);
	MUST(!our_table_merge(&from));
	MUST(read(theirs[0], &c, 1) == 1 && c == 'x');
	MUST(read(theirs[0], &c, 1) < 0 && errno == EAGAIN);
	our_fd_kept_close(&from);
	our_fd_kept_close(&through);
	for (int i = 0; i < 2; i++)
		MUST(fcntl(theirs[i], F_GETFD) >= 0);
}

static void
nothing_is_sent_to_or_taken_from_a_socket_of_the_programs(void **state)
{
	(void)state;
	in_a_child(merge_through_a_strangers_socket);
}

/* ---- where it cannot be had ---- */

static size_t
never(void *arg, int fds[OUR_TABLE_SHOWN_MAX])
{
	(void)arg;
	(void)fds;
	_exit(1);
}

static void
try_under_a_filter(void)
{
	struct sock_filter all[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog  filter = { 1, all };
	int                copies[OUR_TABLE_SHOWN_MAX];
	size_t             count;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(NO_TABLE);
	MUST(our_table_begin(never, NULL, copies, &count) == -EPERM && count == 0);
	MUST(!our_table_is_apart());
}

static void
under_a_filter_nothing_is_tried(void **state)
{
	(void)state;
	in_a_child(try_under_a_filter);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_begins_with_nothing_of_the_programs_and_so_do_those_that_it_starts),
		cmocka_unit_test(the_program_has_copies_of_what_it_shall_have_in_their_order),
		cmocka_unit_test(what_could_not_be_begun_is_begun_again),
		cmocka_unit_test(whoever_reads_the_programs_output_sees_its_end),
		cmocka_unit_test(what_the_program_opens_under_a_number_of_ours_stays_its_own_also_in_a_child),
		cmocka_unit_test(a_child_can_have_one_of_its_own),
		cmocka_unit_test(in_the_end_all_is_the_programs_under_the_same_numbers_but_those_that_it_has),
		cmocka_unit_test(what_was_not_sent_is_lost_as_if_it_had_been_closed),
		cmocka_unit_test(what_cannot_have_its_number_again_is_no_longer_ours_in_a_child),
		cmocka_unit_test(nothing_is_sent_to_or_taken_from_a_socket_of_the_programs),
		cmocka_unit_test(under_a_filter_nothing_is_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
