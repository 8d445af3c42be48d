/*
 * our_table.c - a table of descriptors of our own: our_table.h.
 *
 *     the program's thread:  pair of sockets ── starts ──> close_range(.., CLOSE_RANGE_UNSHARE) ── fn ── sends copies
 *                            takes them  <───────────────────────────────────────────────────────────────┘
 *
 * What a stranger would get wrong:
 * - unshare(CLONE_FILES) copies the whole table: for an instant we would keep open what the program closes meanwhile, and
 *   close it once more, for which a file system may wait.  close_range() of all copies nothing.
 * - Nor may 0, 1 and 2 be the program's: who reads from its output would wait for us.  They are /dev/null, or
 *   anything that is nobody's.
 * - Other threads of the program may close the sockets meanwhile and open files of theirs under these numbers: what
 *   a number is open on is looked at first.
 * - A seccomp filter may end the process for a call that it does not know: nothing is tried under one.
 * - Where a filter comes later, nothing of this runs any more.
 * - A copy of a locked file (flock(2)) is locked, too; a lock of fcntl(2) belongs to a table.  We have the former alone.
 *
 * Tests: tests/base/test_our_table.c, tests/components/own_table.t.
 */
#include <config.h>

#include "our_table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "our_fd.h"
#include "our_thread.h"

#ifndef SYS_pidfd_open /* the numbers of every architecture */
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#define UNSHARE    (1U << 1)  /* CLOSE_RANGE_UNSHARE */
#define SENT_MAX   253        /* SCM_MAX_FD */
#define UNUSED_MAX 4096       /* numbers, one after the other: behind them there is none */

static __thread bool own __attribute__((tls_model("initial-exec")));
static atomic_bool   apart;  /* this process, or the one that forked it */
static atomic_bool   begun;  /* this one */
static atomic_bool   merged; /* it has ended in this one, or in one that forked it: it is not begun again */

bool
our_table_is_own(void)
{
	return own && !atomic_load_explicit(&merged, memory_order_relaxed);
}

bool
our_table_is_apart(void)
{
	return atomic_load_explicit(&apart, memory_order_relaxed) && !atomic_load_explicit(&merged, memory_order_relaxed);
}

void
our_table_inherit(bool from)
{
	own = from;
}

void
our_table_forked(void)
{
	atomic_store(&begun, false);
}

/* ---- descriptors through a socket ---- */

/* With their numbers.  Nobody waits. */
static bool
send_some(int through, const int *fds, size_t count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * SENT_MAX)] = { 0 };
	struct iovec    numbers = { (void *)(uintptr_t)fds, count * sizeof(*fds) };
	struct msghdr   m = { .msg_iov = &numbers, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = CMSG_SPACE(count * sizeof(*fds)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(*fds));
	memcpy(CMSG_DATA(c), fds, count * sizeof(*fds));
	return syscall(SYS_sendmsg, through, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

/* How many; ret_numbers, which may be NULL: those that they had.  Not more than SENT_MAX. */
static size_t
take_some(const struct our_fd_kept *from, int *ret, int *ret_numbers)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * SENT_MAX)];
	int             sent[SENT_MAX];
	struct iovec    numbers = { sent, sizeof(sent) };
	struct msghdr   m = { .msg_iov = &numbers, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t         n = -1;
	size_t          count = 0;

	if (our_fd_is_kept(from, NULL))
		n = syscall(SYS_recvmsg, from->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return 0;
	count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); /* fewer than were sent where the limit is reached */
	memcpy(ret, CMSG_DATA(c), count * sizeof(int));
	if (ret_numbers)
		memcpy(ret_numbers, sent, count * sizeof(int));
	return count;
}

/* A copy of one in the program's table, in ours; or -1. */
static int
copy_theirs(const struct our_fd_kept *k)
{
	int         process = (int)syscall(SYS_pidfd_open, getpid(), 0), fd = -1;
	struct stat st;

	if (process >= 0) {
		fd = (int)syscall(SYS_pidfd_getfd, process, (int)k->fd, 0);
		syscall(SYS_close, process);
	}
	if (fd >= 0 && (fstat(fd, &st) || st.st_dev != k->device || st.st_ino != k->inode)) {
		syscall(SYS_close, fd);
		fd = -1;
	}
	return fd;
}

/* ---- the begin ---- */

struct begin {
	our_table_fn      *fn;
	void              *arg;
	struct our_fd_kept ends[2]; /* of a pair of sockets; ours is the second */
	int                r;
};

static void
standard_streams_make(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (int i = 0; i < FD_LOWEST; i++)
		if (fd >= 0 && fd != i)
			dup3(fd, i, O_CLOEXEC);
	if (fd >= FD_LOWEST)
		syscall(SYS_close, fd);
}

static void *
run(void *arg)
{
	struct begin *b = arg;
	int           fds[OUR_TABLE_SHOWN_MAX], through;
	size_t        count;

	if (syscall(SYS_close_range, 0U, ~0U, UNSHARE)) {
		b->r = -errno;
		return NULL;
	}
	own = true;
	standard_streams_make();
	atomic_store(&begun, true);
	atomic_store(&apart, true);
	count = b->fn(b->arg, fds);
	through = count > 0 ? copy_theirs(&b->ends[1]) : -1;
	if (through >= 0) {
		send_some(through, fds, count);
		syscall(SYS_close, through);
	}
	return NULL;
}

/* Those that are sent: in the list of what a child does not get, and none of 0 to 2. */
static size_t
copies_take(const struct our_fd_kept *from, int ret[OUR_TABLE_SHOWN_MAX])
{
	int      fds[SENT_MAX], fd;
	size_t   count = 0, all;
	sigset_t mask;

	our_fd_hold(&mask);
	all = take_some(from, fds, NULL);
	for (size_t i = 0; i < all; i++) {
		fd = count < OUR_TABLE_SHOWN_MAX ? fd_keep(fds[i]) : fds[i];
		if (fd >= 0 && (count == OUR_TABLE_SHOWN_MAX || our_fd_note(fd) < 0))
			syscall(SYS_close, fd);
		else if (fd >= 0)
			ret[count++] = fd;
	}
	our_fd_release(&mask);
	return count;
}

void
our_table_fail(void)
{
	atomic_store(&apart, false);
	atomic_store(&begun, false);
}

int
our_table_begin(our_table_fn *fn, void *arg, int ret[OUR_TABLE_SHOWN_MAX], size_t *ret_count)
{
	struct begin b = { .fn = fn, .arg = arg };
	int          pair[2], r;
	pthread_t    thread;

	*ret_count = 0;
	if (atomic_load(&merged) || atomic_load(&begun))
		return -EBUSY;
	atomic_store(&apart, false); /* what a parent had is not here */
	if (prctl(PR_GET_SECCOMP) != 0)
		return -EPERM;
	r = our_fd_socketpair(pair);
	if (r)
		return r;
	for (int i = 0; i < 2; i++)
		our_fd_keep_listed(&b.ends[i], pair[i]);
	r = our_thread_start("component-table", run, &b, &thread);
	if (!r) {
		pthread_join(thread, NULL);
		r = b.r;
	}
	if (!r)
		*ret_count = copies_take(&b.ends[0], ret);
	for (int i = 0; i < 2; i++)
		our_fd_kept_close(&b.ends[i]);
	return r;
}

/* ---- the end ---- */

void
our_table_send(const struct our_fd_kept *there)
{
	int    fds[SENT_MAX], through = our_table_is_own() && there->fd >= 0 ? copy_theirs(there) : -1;
	size_t count = 0;

	if (through < 0)
		return;
	for (int fd = FD_LOWEST, unused = 0; unused < UNUSED_MAX; fd++) {
		if (fcntl(fd, F_GETFD) < 0) {
			unused++;
			continue;
		}
		unused = 0;
		if (fd == through) /* it would keep itself open, and all that it carries */
			continue;
		fds[count++] = fd;
		if (count == SENT_MAX) {
			send_some(through, fds, count);
			count = 0;
		}
	}
	if (count > 0)
		send_some(through, fds, count);
	syscall(SYS_close, through);
}

/* Under that number, if nobody has it: no other thread of the program is in its way. */
static void
restore(int fd, int number)
{
	int there = fd == number ? fd : fcntl(fd, F_DUPFD_CLOEXEC, number);

	if (there == number)
		our_fd_moved(number);
	else if (there >= 0)
		syscall(SYS_close, there);
	if (fd != number)
		syscall(SYS_close, fd);
}

bool
our_table_merge(const struct our_fd_kept *from)
{
	int      fds[SENT_MAX], numbers[SENT_MAX];
	size_t   count;
	bool     any = false;
	sigset_t mask;

	our_fd_hold(&mask); /* a child must know them, or not have them */
	while ((count = take_some(from, fds, numbers)) > 0) {
		any = true;
		for (size_t i = 0; i < count; i++)
			restore(fds[i], numbers[i]);
	}
	our_fd_lost();
	atomic_store(&merged, true);
	our_fd_release(&mask);
	return any;
}
