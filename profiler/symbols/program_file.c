/*
 * program_file.c - the program's own file, held open for the time when it has no name.
 *
 * A daemon that changes its root sees neither /proc/self/exe nor its own path any more, and
 * most names of a program are in no table that is mapped.  Those of libraries are: they export
 * what they have.
 *
 * What a stranger would get wrong:
 * - Not a folder of /proc held open: with it a process could leave its new root.  A file
 *   leads nowhere.
 * - It stays open after a stop where it could not be had again: profiling may be switched on
 *   once more.
 * - A child has none of our descriptors, and so no names where it could not open the file either: then
 *   it does keep this one.  Nothing that looks may be called around a fork (docs/operating.md has the
 *   list of system calls), so that is decided when the file is held.
 * - The daemon may close every descriptor it finds and get the number for a file of its own:
 *   our_fd_is_kept() is asked before each use.
 *
 * Tests: tests/whole/restricted_process.t, tests/components/adopted.t, tests/symbols/test_symbols.c.
 */
#include <config.h>

#include "program_file.h"

#include <errno.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "fork.h"
#include "our_fd.h"

static struct {
	pthread_mutex_t    lock;
	struct our_fd_kept file;
	bool               certain;
} held = { .lock = PTHREAD_MUTEX_INITIALIZER, .file.fd = -1 };

static bool
is_here(void)
{
	return access("/proc/self/exe", R_OK) == 0;
}

/* With the lock held. */
static void
hold(void)
{
	const char *path = (const char *)getauxval(AT_EXECFN);
	struct stat st;
	int         fd;

	if (our_fd_is_kept(&held.file, NULL))
		return;
	our_fd_kept_close(&held.file); /* gives up the place of the one that is lost */
	fd = file_open("/proc/self/exe");
	held.certain = fd >= 0;
	if (fd < 0 && path)
		fd = file_open(path);
	our_fd_keep(&held.file, fd);
	if (our_fd_is_kept(&held.file, &st) && !S_ISREG(st.st_mode))
		our_fd_kept_close(&held.file);
}

void
program_file_hold(void)
{
	pthread_mutex_lock(&held.lock);
	hold();
	our_fd_inherit(&held.file, !is_here());
	pthread_mutex_unlock(&held.lock);
}

void
program_file_hold_early(void)
{
	pthread_mutex_lock(&held.lock);
	hold();
	our_fd_inherit(&held.file, true);
	pthread_mutex_unlock(&held.lock);
}

void
program_file_release(void)
{
	pthread_mutex_lock(&held.lock);
	if (!our_fd_is_kept(&held.file, NULL) || is_here())
		our_fd_kept_close(&held.file);
	pthread_mutex_unlock(&held.lock);
}

bool
program_file_is_held(void)
{
	bool is;

	pthread_mutex_lock(&held.lock);
	is = our_fd_is_kept(&held.file, NULL);
	pthread_mutex_unlock(&held.lock);
	return is;
}

int
program_file_open(bool *ret_certain)
{
	int fd;

	pthread_mutex_lock(&held.lock);
	fd = our_fd_is_kept(&held.file, NULL) ? our_fd_dup(held.file.fd) : -ENOENT;
	*ret_certain = held.certain;
	pthread_mutex_unlock(&held.lock);
	return fd;
}

static void
forked(void)
{
	pthread_mutex_init(&held.lock, NULL);
	if (!our_fd_is_kept(&held.file, NULL))
		held.file.fd = -1; /* closed by FORK_DESCRIPTORS, or lost before: its place was given up */
}

FORK_SLOT(FORK_PROGRAM, NULL, NULL, forked);
