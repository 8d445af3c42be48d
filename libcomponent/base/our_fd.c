/*
 * our_fd.c - keeps our descriptors out of forked children.
 *
 *     open:   place: OPENING ── openat ── place: its number
 *     close:  place: CLOSING ── close ── place: FREE
 *     fork:   hold ── fork ── parent: release;  child: close what has a place
 *
 * A place changes under a lock that fork holds, so the child sees each as it was when
 * the descriptors were copied.  The system calls in between are not under the lock: a
 * file system may let them wait for long, perhaps for the very thread that forks.
 * So a child may find a descriptor whose number is not known yet, or not ours any more.
 * Ours are marked: nobody else opens a file for reading with O_APPEND and O_SYNC,
 * which mean nothing there.
 *
 * What a stranger would get wrong:
 * - The lock is the last one that fork takes, since threads that hold another lock of
 *   ours open files below it (FORK_DESCRIPTORS).
 * - The kernel copies descriptors before memory: without the lock a place could be
 *   free again in a child that has the descriptor.
 * - What is open for long (our_fd_keep()) may have lost its number to another one of ours: both
 *   have a place then, and only one of the two is given up.
 * - A socket cannot be marked either: it gets a place, both ends of a pair do, or there is none.
 * - What is written to is not marked (O_SYNC would cost) but opened under the lock: that
 *   is for small files of the daemon's own, when it starts.  What has no mark is told from what the daemon
 *   has under that number by now by its file (st_dev, st_ino).
 * - It is held with all signals blocked: a handler of the daemon that forks would
 *   wait for what it has interrupted.  And the bare system calls are used, as open(3)
 *   and close(3) are cancellation points.
 * - _Fork() and the bare clone call no handlers; their children get what is open.
 * - A dump of 10,000 threads opens 20,000 files: listing each would be a third of its
 *   cost.  Meanwhile one place says that some are open, and a child looks for marks.
 *
 * Where our threads have a table of their own (our_table.h), a place is of the table of the thread that opened: the other
 * has another file under that number, or none, and a child has nothing of what was in ours.
 *
 * Tests: tests/base/test_our_fd.c, tests/whole/stress.t.
 */
#include <config.h>

#include "our_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "fork.h"
#include "our_lock.h"
#include "our_table.h"

/* Every request has three at most (an object, its debug file, the one that two of those
 * share), and there are 64 requests; what does not fit is looked for by its mark. */
#define PLACES_MAX 256
#define MARK       (O_APPEND | O_SYNC)
#define UNUSED_MAX 4096 /* numbers, one after the other */

enum state { FREE, OPENING, OPEN, CLOSING, UNMARKED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	enum state state;
	int        fd;        /* but of FREE and OPENING */
	bool       own;       /* in our own table, not the program's; but of FREE */
	bool       inherited; /* of OPEN: a child keeps it, in this place */
	dev_t      device;    /* of UNMARKED, with inode: what it is open on */
	ino_t      inode;
} places[PLACES_MAX]; /* under the lock */
static unsigned without_place; /* descriptors, under the lock */

void
our_fd_hold(sigset_t *ret_mask)
{
	our_lock_take(&lock, ret_mask);
}

void
our_fd_release(const sigset_t *mask)
{
	our_lock_release(&lock, mask);
}

/* Is that in the table of the calling thread?  Once there is but one table, all is. */
static bool
is_here(bool own)
{
	return own == our_table_is_own() || !our_table_is_apart();
}

/* A place in that state and with that number in this thread's table, or -1. */
static __attribute__((noinline)) int
place_find(enum state state, int fd)
{
	for (int i = 0; i < PLACES_MAX; i++)
		if (places[i].state == state && (state == FREE || (places[i].fd == fd && is_here(places[i].own))))
			return i;
	return -1;
}

/* The bare call: from glibc 2.33 to 2.38 its own fstat(3) is newfstatat(2), which fewer seccomp filters know. */
static int
fd_stat(int fd, struct stat *ret)
{
#if defined(SYS_fstat) && __WORDSIZE == 64 /* else the kernel's structure is another one */
	return (int)syscall(SYS_fstat, fd, ret);
#else
	return fstat(fd, ret);
#endif
}

static void
place_set(int i, enum state state, int fd)
{
	struct stat st = { .st_ino = 0 };

	if (i < 0)
		return;
	if (state == UNMARKED)
		fd_stat(fd, &st);
	places[i].device = st.st_dev;
	places[i].inode = st.st_ino;
	places[i].fd = fd;
	places[i].state = state;
	places[i].own = our_table_is_own();
	places[i].inherited = false;
}

static int
place_take(enum state state, int fd)
{
	int i = place_find(FREE, 0);

	place_set(i, state, fd);
	if (i < 0)
		without_place++;
	return i;
}

/* The place of what has no mark, that number and that file; -1: none.  What the daemon has closed keeps its place, so two may have
 * one number. */
static int
place_of_file(int fd, dev_t device, ino_t inode)
{
	for (int i = 0; i < PLACES_MAX; i++)
		if (places[i].state == UNMARKED && places[i].fd == fd && is_here(places[i].own) && places[i].device == device &&
		    places[i].inode == inode)
			return i;
	return -1;
}

/* The place of what is open as fd, and has no mark. */
static int
place_unmarked(int fd)
{
	struct stat st;

	return fd_stat(fd, &st) ? -1 : place_of_file(fd, st.st_dev, st.st_ino);
}

/* A descriptor that is none of 0, 1, 2. */
static int
open_above(int dir, const char *path, int flags, mode_t mode)
{
	int fd;

	do {
		fd = (int)syscall(SYS_openat, dir, path, flags | O_CLOEXEC, mode);
	} while (fd < 0 && errno == EINTR);
	return fd_keep(fd);
}

static int
open_marked(int dir, const char *path, int flags)
{
	sigset_t mask;
	int      i, fd;

	our_fd_hold(&mask);
	i = place_take(OPENING, -1);
	our_fd_release(&mask);
	fd = open_above(dir, path, flags | MARK, 0);
	our_fd_hold(&mask);
	place_set(i, fd < 0 ? FREE : OPEN, fd);
	if (i < 0 && fd < 0)
		without_place--;
	our_fd_release(&mask);
	return fd;
}

int
our_fd_openat(int dir, const char *path, int flags, mode_t mode)
{
	sigset_t mask;
	int      fd;

	if ((flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_PATH)))
		return open_marked(dir, path, flags);
	our_fd_hold(&mask);
	/* Without a place a child would not find it, as it has no mark. */
	fd = place_find(FREE, 0) < 0 ? -EMFILE : open_above(dir, path, flags, mode);
	if (fd >= 0)
		place_take(UNMARKED, fd);
	our_fd_release(&mask);
	return fd;
}

int
our_fd_open(const char *path, int flags, mode_t mode)
{
	return our_fd_openat(AT_FDCWD, path, flags, mode);
}

int
our_fd_socketpair(int ret_fds[2])
{
	sigset_t mask;
	int      fds[2], r = 0;

	our_fd_hold(&mask);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds)) {
		r = -errno;
		goto out;
	}
	for (int i = 0; i < 2; i++) {
		fds[i] = fd_keep(fds[i]);
		if (fds[i] < 0 || place_find(FREE, 0) < 0)
			r = -EMFILE;
		else
			place_take(UNMARKED, fds[i]);
	}
	for (int i = 0; i < 2; i++) {
		if (r == 0) {
			ret_fds[i] = fds[i];
		} else if (fds[i] >= 0) {
			our_fd_forget(fds[i]);
			syscall(SYS_close, fds[i]);
		}
	}
out:
	our_fd_release(&mask);
	return r;
}

void
our_fd_forget(int fd)
{
	int i = place_unmarked(fd);

	place_set(i < 0 ? place_find(UNMARKED, fd) : i, FREE, 0);
}

void
our_fd_moved(int fd)
{
	for (int i = 0; i < PLACES_MAX; i++)
		if (places[i].state != FREE && places[i].own && places[i].fd == fd)
			places[i].own = false;
}

void
our_fd_lost(void)
{
	for (int i = 0; i < PLACES_MAX; i++)
		if (places[i].own)
			place_set(i, FREE, 0);
}

int
our_fd_note(int fd)
{
	if (place_find(FREE, 0) < 0)
		return -EMFILE;
	place_take(UNMARKED, fd);
	return fd;
}

/* What was just made gets a place, or is closed. */
static int
note_or_close(int fd)
{
	int r = fd < 0 ? fd : our_fd_note(fd);

	if (r < 0 && fd >= 0)
		syscall(SYS_close, fd);
	return r;
}

int
our_fd_socket(int family, int type)
{
	sigset_t mask;
	int      fd;

	our_fd_hold(&mask);
	fd = note_or_close(fd_keep(socket(family, type | SOCK_CLOEXEC, 0)));
	our_fd_release(&mask);
	return fd;
}

int
our_fd_copy(int fd)
{
	sigset_t mask;
	int      copy;

	our_fd_hold(&mask);
	copy = note_or_close(fd_keep(fcntl(fd, F_DUPFD_CLOEXEC, FD_LOWEST)));
	our_fd_release(&mask);
	return copy;
}

int
our_fd_keep_inotify(struct our_fd_kept *k)
{
	sigset_t mask;
	int      fd;

	our_fd_hold(&mask);
	fd = note_or_close(fd_keep(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)));
	if (fd >= 0)
		our_fd_keep_listed(k, fd);
	our_fd_release(&mask);
	return fd < 0 ? fd : 0;
}

static bool
is_marked(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & (O_ACCMODE | MARK)) == (O_RDONLY | MARK) && (fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

int
our_fd_dup(int fd)
{
	sigset_t mask;
	int      again = -EBADF;

	our_fd_hold(&mask);
	if (is_marked(fd)) {
		again = fcntl(fd, F_DUPFD_CLOEXEC, FD_LOWEST);
		if (again < 0)
			again = -errno;
		else
			place_take(OPEN, again);
	}
	our_fd_release(&mask);
	return again;
}

static void
place_end(int i)
{
	sigset_t mask;

	our_fd_hold(&mask);
	place_set(i, FREE, 0);
	if (i < 0 && without_place > 0)
		without_place--;
	our_fd_release(&mask);
}

void
our_fd_close(int fd)
{
	sigset_t mask;
	int      saved = errno, i;
	bool     marked, ours;

	if (fd < 0)
		return;
	our_fd_hold(&mask);
	marked = is_marked(fd);
	i = place_find(OPEN, fd);
	if (marked) {
		place_set(i, CLOSING, fd);
	} else if (i >= 0) {
		place_set(i, FREE, 0); /* closed by the daemon; the number may be its own by now */
	} else {
		i = place_unmarked(fd);
		ours = i >= 0;
		if (i < 0)
			i = place_find(UNMARKED, fd); /* its number is the daemon's by now */
		if (i >= 0)
			place_set(i, FREE, 0);
		else if (without_place > 0)
			without_place--; /* it had a mark */
		else
			ours = is_here(true); /* who knows what that is in the program's table */
		if (ours)
			syscall(SYS_close, fd);
	}
	our_fd_release(&mask);
	if (marked) {
		syscall(SYS_close, fd);
		place_end(i);
	}
	errno = saved;
}

/* ---- one for long ---- */

void
our_fd_keep(struct our_fd_kept *k, int fd)
{
	struct stat st = { .st_ino = 0 };

	if (fd >= 0)
		fd_stat(fd, &st);
	k->listed = k->marked = fd >= 0 && is_marked(fd);
	k->device = st.st_dev;
	k->inode = st.st_ino;
	k->own = our_table_is_own();
	k->fd = fd < 0 ? -1 : fd;
}

void
our_fd_keep_listed(struct our_fd_kept *k, int fd)
{
	our_fd_keep(k, fd);
	k->listed = true;
}

void
our_fd_inherit(const struct our_fd_kept *k, bool inherit)
{
	sigset_t mask;
	int      i;

	our_fd_hold(&mask);
	i = our_fd_is_kept(k, NULL) && k->marked ? place_find(OPEN, k->fd) : -1;
	if (i >= 0)
		places[i].inherited = inherit;
	our_fd_release(&mask);
}

bool
our_fd_is_kept(const struct our_fd_kept *k, struct stat *ret_st)
{
	struct stat own, *st = ret_st ? ret_st : &own;

	return k->fd >= 0 && is_here(k->own) && fd_stat(k->fd, st) == 0 && st->st_dev == k->device && st->st_ino == k->inode &&
	       (!k->marked || is_marked(k->fd));
}

bool
our_fd_kept_close(struct our_fd_kept *k)
{
	int      saved = errno, fd = k->fd, i = -1;
	bool     ours = our_fd_is_kept(k, NULL);
	sigset_t mask;

	if (fd < 0)
		return true;
	if (ours && k->marked) {
		k->fd = -1;
		our_fd_close(fd);
	} else {
		our_fd_hold(&mask);
		if (k->listed && is_here(k->own))
			i = k->marked ? place_find(OPEN, fd) : place_of_file(fd, k->device, k->inode);
		place_set(i, FREE, 0);
		if (i < 0 && k->marked && without_place > 0)
			without_place--;
		if (ours)
			syscall(SYS_close, fd);
		k->fd = -1;
		our_fd_release(&mask);
	}
	errno = saved;
	return ours;
}

/* True: who calls closes it next, and then says place_end(*ret).  False: its number is the daemon's by now. */
static bool
place_closing(int fd, int *ret)
{
	sigset_t mask;
	bool     ours;

	our_fd_hold(&mask);
	ours = is_marked(fd);
	*ret = place_find(OPEN, fd);
	place_set(*ret, CLOSING, fd);
	our_fd_release(&mask);
	if (!ours)
		place_end(*ret);
	return ours;
}

/* ---- many, each for an instant ---- */

/* One place that says "perhaps" for all of them. */
int
our_fd_swift_begin(void)
{
	sigset_t mask;
	int      i;

	our_fd_hold(&mask);
	i = place_take(OPENING, -1);
	our_fd_release(&mask);
	return i;
}

int
our_fd_swift_open(int dir, const char *path)
{
	return open_above(dir, path, O_RDONLY | MARK, 0);
}

/* The daemon may have closed it, and have that number for itself: the mark tells. */
void
our_fd_swift_close(int fd, bool proven)
{
	int saved = errno, flags = MARK;

	if (fd >= 0 && !proven)
		flags = (int)syscall(SYS_fcntl, fd, F_GETFL);
	if (fd >= 0 && flags >= 0 && (flags & MARK) == MARK)
		syscall(SYS_close, fd);
	errno = saved;
}

void
our_fd_swift_end(int begun)
{
	place_end(begun);
}

DIR *
our_fd_opendir(const char *path)
{
	int  fd = our_fd_open(path, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir;

	errno = fd < 0 ? -fd : 0;
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		our_fd_close(fd);
	return dir;
}

void
our_fd_closedir(DIR *dir)
{
	int i;

	if (!place_closing(dirfd(dir), &i))
		return; /* its memory is kept: only closedir() frees it */
	closedir(dir);
	place_end(i);
}

FILE *
our_fd_fopen(const char *path)
{
	int   fd = our_fd_open(path, O_RDONLY, 0);
	FILE *f;

	errno = fd < 0 ? -fd : 0;
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f)
		our_fd_close(fd);
	return f;
}

void
our_fd_fclose(FILE *f)
{
	int i;

	if (!place_closing(fileno(f), &i))
		return;
	fclose(f);
	place_end(i);
}

/* ---- fork ---- */

/* With all signals blocked by FORK_SIGNALS. */
static void
fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void
fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* Closes every descriptor that bears our mark and has no place any more.  It asks each number in turn, since /proc may be
 * missing or hidden.  The kernel gives out the lowest free number, so a descriptor that was opened
 * a moment ago lies below UNUSED_MAX free ones, and the search ends there. */
static void
close_marked(void)
{
	for (int fd = FD_LOWEST, unused = 0; unused < UNUSED_MAX; fd++)
		if (fcntl(fd, F_GETFD) < 0) {
			unused++;
		} else {
			unused = 0;
			if (is_marked(fd) && place_find(OPEN, fd) < 0)
				syscall(SYS_close, fd);
		}
}

static void
fork_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	bool                         look = without_place > 0;
	int                          saved = errno;

	for (int i = 0; i < PLACES_MAX; i++) {
		bool numbered = places[i].state == OPEN || places[i].state == CLOSING;

		if (!is_here(places[i].own)) {
			place_set(i, FREE, 0);
			continue;
		}
		if (places[i].inherited && is_marked(places[i].fd))
			continue;
		if ((places[i].state == UNMARKED && place_unmarked(places[i].fd) >= 0) || (numbered && is_marked(places[i].fd)))
			syscall(SYS_close, places[i].fd);
		look = look || places[i].state == OPENING;
		place_set(i, FREE, 0);
	}
	without_place = 0;
	our_table_forked();
	if (look)
		close_marked();
	lock = fresh;
	errno = saved;
}

FORK_SLOT(FORK_DESCRIPTORS, fork_prepare, fork_parent, fork_child);
