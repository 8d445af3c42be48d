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
 * - The daemon may close every descriptor it finds and get the number for a file of its own:
 *   device and inode are looked at before each use.
 *
 * Tests: tests/confined.t.
 */
#include <config.h>

#include "program_file.h"

#include <errno.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "own_fd.h"

static struct {
	pthread_mutex_t lock;
	int             fd; /* -1: none */
	bool            certain;
	dev_t           device;
	ino_t           inode;
} held = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* With the lock held. */
static bool
is_ours(void)
{
	struct stat st;

	return held.fd >= 0 && fstat(held.fd, &st) == 0 && st.st_dev == held.device && st.st_ino == held.inode;
}

void
program_file_hold(void)
{
	const char *path = (const char *)getauxval(AT_EXECFN);
	struct stat st;

	pthread_mutex_lock(&held.lock);
	if (is_ours())
		goto out;
	held.fd = file_open("/proc/self/exe");
	held.certain = held.fd >= 0;
	if (held.fd < 0 && path)
		held.fd = file_open(path);
	if (held.fd < 0)
		goto out;
	if (fstat(held.fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		file_close(held.fd);
		held.fd = -1;
		goto out;
	}
	held.device = st.st_dev;
	held.inode = st.st_ino;
out:
	pthread_mutex_unlock(&held.lock);
}

void
program_file_release(void)
{
	pthread_mutex_lock(&held.lock);
	if (!is_ours() || access("/proc/self/exe", R_OK) == 0) {
		file_close(held.fd); /* which leaves the daemon's alone */
		held.fd = -1;
	}
	pthread_mutex_unlock(&held.lock);
}

bool
program_file_is_held(void)
{
	bool is;

	pthread_mutex_lock(&held.lock);
	is = is_ours();
	pthread_mutex_unlock(&held.lock);
	return is;
}

int
program_file_open(bool *ret_certain)
{
	int fd;

	pthread_mutex_lock(&held.lock);
	fd = is_ours() ? own_fd_dup(held.fd) : -ENOENT;
	*ret_certain = held.certain;
	pthread_mutex_unlock(&held.lock);
	return fd;
}

static void
forked(void)
{
	pthread_mutex_init(&held.lock, NULL);
	held.fd = -1; /* closed by own_fd.c */
}

__attribute__((constructor)) static void
fork_watch(void)
{
	pthread_atfork(NULL, NULL, forked);
}
