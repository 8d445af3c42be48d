/*
 * lock.c - one process of a program works below a root; the next one waits or is refused.
 *
 *     locks/cluster-agent.lock -- flock --+--> free: write pid, host, time; sweep; begin
 *                                         +--> taken: who has it, and an error or a wait
 *                                         +--> no locks there: an error
 *
 * Two of a program would each write what the other just wrote, and remove what the other
 * has just put there.  Different programs share a root: each has a lock of its own.
 *
 * What a stranger would get wrong:
 * - The kernel gives the lock back when the process ends, a kill -9 included.  What is
 *   written in the file only tells people who has it; nobody relies on it.
 * - The file is never removed: somebody may be waiting for it, and a third would lock a
 *   new one.  If a hand removes it, who locks the old one notices and looks again.
 * - A process that is stopped (SIGSTOP, a debugger) still has the lock, as it should.
 * - The descriptor stays open until the process ends, since workers may outlive the
 *   component.  It is closed on exec; a forked child would keep the lock.
 *
 * Why not fcntl(F_SETLK): closing any other descriptor of the file gives that lock back.
 * Tests: tests/examples/test_gitops_lock.c, tests/examples/controllers.t.
 */
#define _GNU_SOURCE /* asprintf */
#include "gitops.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WAIT_NS COMPONENT_MILLISECONDS(500) /* between two attempts */

/* One root a process. */
static struct {
	struct gitops_directories *dirs;
	int (*begin)(struct component *c, struct component_error *err);
	struct component_timer *timer;
	char file[NAME_MAX];
	bool taken; /* by us */
	struct component_error reason; /* why not, for who asks whether we are ready */
} lock;

/* Is it still the file of that name? */
static bool
is_current(int dir, int fd)
{
	struct stat now, ours;

	return fstat(fd, &ours) == 0 && fstatat(dir, lock.file, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_dev == now.st_dev && ours.st_ino == now.st_ino;
}

static int
no_locks(int error, struct component_error *err)
{
	component_error_set(err, "option '--locks-dir': '%s/%s' cannot be locked: %s; without a lock two processes could "
		"spoil each other's files: name a directory on a file system with locks", lock.dirs->locks, lock.file,
		strerror(error));
	return -error;
}

static int
is_taken(struct component_error *err)
{
	struct gitops_document holder = { 0 };
	bool known = gitops_document_read(lock.dirs->locks, lock.file, &holder, NULL) == 0 && holder.count > 0;

	component_error_set(err, "'%s/%s': another process works there%s%s%s%s%s%s; stop it, name another --root, or wait for "
		"it with --wait-for-root", lock.dirs->locks, lock.file, known ? ": pid " : "",
		gitops_document_get(&holder, "pid"), known ? " on " : "", gitops_document_get(&holder, "host"),
		known ? " since " : "", gitops_document_get(&holder, "since"));
	gitops_document_free(&holder);
	return -EBUSY;
}

/* Into the file that is locked, in place: another one under its name would not be locked. */
static void
say_who(int fd)
{
	char text[512], host[HOST_NAME_MAX + 1] = "", since[32] = "";
	time_t now = time(NULL);
	struct tm tm;
	int n;

	gethostname(host, sizeof host - 1);
	if (gmtime_r(&now, &tm) != NULL)
		strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &tm);
	n = snprintf(text, sizeof text, "pid: %ld\nhost: \"%s\"\nsince: \"%s\"\n", (long)getpid(), host, since);
	if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n)
		return;
	/* A full disk: the lock holds all the same, and who is refused is not told by whom. */
}

static int
try_lock(struct component_error *err)
{
	int dir = gitops_open_dir(lock.dirs->locks, "", false), fd = -1, r = 0;

	if (dir < 0)
		return no_locks(-dir, err);
	while (r == 0 && fd < 0) {
		fd = openat(dir, lock.file, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
			r = errno == EWOULDBLOCK ? is_taken(err) : no_locks(errno, err);
		if (fd >= 0 && (r != 0 || !is_current(dir, fd))) {
			close(fd);
			fd = -1;
		}
	}
	close(dir);
	if (r == 0)
		say_who(fd);
	lock.taken = r == 0;
	return r;
}

/* What a predecessor left unfinished: nobody else writes under these names. */
static void
sweep(const struct gitops_directories *d)
{
	const char *const all[] = { d->applications, d->sources, d->operations, d->targets, d->managed, d->status };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i] != NULL)
			gitops_partials_sweep(all[i]);
}

static int
is_ready(struct component *c, void *arg, struct component_error *err)
{
	(void)c;
	(void)arg;
	if (lock.taken)
		return 0;
	*err = lock.reason;
	return -EBUSY;
}

static void
on_timer(struct component *c, void *arg)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	int r;

	(void)arg;
	if (component_phase(c) != COMPONENT_PHASE_RUNNING)
		return; /* stopping: nothing begins any more */
	r = try_lock(&lock.reason);
	if (r == -EBUSY)
		return;
	component_timer_remove(lock.timer);
	lock.timer = NULL;
	err = lock.reason;
	if (r == 0) {
		component_log(c, COMPONENT_LOG_INFO, "the root is free", COMPONENT_KV("lock", lock.file));
		sweep(lock.dirs);
		r = lock.begin(c, &err);
	}
	if (r != 0)
		component_fail(c, &err);
}

static int
wait(struct component *c, struct component_error *err)
{
	int r = component_check_add(c, "root", is_ready, NULL);

	if (r == 0)
		r = component_timer_add(c, WAIT_NS, WAIT_NS, on_timer, NULL, &lock.timer);
	if (r != 0) {
		component_error_set(err, "cannot wait for the root: %s", strerror(-r));
		return r;
	}
	component_log(c, COMPONENT_LOG_INFO, "waiting for the root", COMPONENT_KV("reason", lock.reason.text));
	return 0;
}

int
gitops_begin(struct component *c, struct gitops_directories *d,
	int (*begin)(struct component *c, struct component_error *err), struct component_error *err)
{
	int r = gitops_directories_find(d, err);

	if (r != 0)
		return r;
	lock.dirs = d;
	lock.begin = begin;
	snprintf(lock.file, sizeof lock.file, "%s.lock", component_name(c));
	gitops_partials_own(component_name(c));
	r = try_lock(&lock.reason);
	if (r == -EBUSY && d->wait)
		return wait(c, err);
	if (r != 0) {
		*err = lock.reason;
		return r;
	}
	sweep(d);
	return begin(c, err);
}
