/*
 * listen_dead.c - sockets that processes have left which are no more.
 *
 * Each process that serves at "unix:/run/x.%p.sock" has a file of its own, so nobody comes
 * back to the file of one that was killed: who binds the next one looks for them.
 *
 *     /run/x.812.sock    a socket, no process 812, and nobody answers --> goes
 *     /run/x.813.sock    a process, whatever it is                    --> stays
 *
 * What a stranger would get wrong: that nobody answers does not say that it is left over.
 * Between bind(2) and listen(2) a socket refuses as a dead one does; but its process lives then.
 * Nor does it say so alone that there is no such process: with the folder shared by containers
 * that number may be of another one, which answers.  And the number may be given again meanwhile, to
 * one that binds there: so a young file stays, it must be the same after the question, and whether
 * there is the process is asked last.
 *
 * Why not a number that is tried first and a lock: the number is what a person looks for.
 *
 * Tests: tests/base/test_listen.c.
 */
#include <config.h>

#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "our_fd.h"

#define ENTRIES_MAX 65536 /* of the folder, that are looked at: /tmp may hold millions */

/* The process that a file called name is of; 0: it is of no such name. */
static pid_t
process_of(const char *name, const char *head, size_t head_size, const char *tail)
{
	unsigned long pid;
	char         *end;

	if (strncmp(name, head, head_size) != 0 || name[head_size] < '1' || name[head_size] > '9')
		return 0;
	errno = 0;
	pid = strtoul(name + head_size, &end, 10);
	return errno || pid > INT_MAX || strcmp(end, tail) != 0 ? 0 : (pid_t)pid;
}

static bool
is_old_socket(int folder, const char *name, struct stat *ret)
{
	return fstatat(folder, name, ret, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(ret->st_mode) &&
	       time(NULL) - ret->st_mtime >= LISTEN_YOUNG_SECONDS;
}

static bool
is_dead(int folder, const char *name, pid_t pid, const char *path)
{
	struct stat before, after;

	return is_old_socket(folder, name, &before) && listen_unix_is_dead(path) && is_old_socket(folder, name, &after) &&
	       listen_file_is_same(&before, &after) && kill(pid, 0) < 0 && errno == ESRCH;
}

void
listen_remove_dead(const char *pattern)
{
	const char    *number = strstr(pattern, "%p"), *name;
	char           folder[ADDRESS_HOST_MAX], path[PATH_MAX];
	struct dirent *e;
	DIR           *d;

	if (*pattern != '/' || !number)
		return; /* an abstract name leaves no file */
	name = strrchr(pattern, '/') + 1;
	if (number < name || strstr(number + 2, "%p"))
		return; /* no name tells of whom it is */
	snprintf(folder, sizeof(folder), "%.*s", (int)(name - pattern), pattern);
	d = our_fd_opendir(folder);
	for (int seen = 0; d && seen < ENTRIES_MAX && (e = readdir(d)) != NULL; seen++) {
		pid_t pid = process_of(e->d_name, name, (size_t)(number - name), number + 2);

		if (!pid)
			continue;
		snprintf(path, sizeof(path), "%s%s", folder, e->d_name);
		if (is_dead(dirfd(d), e->d_name, pid, path))
			unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d)
		our_fd_closedir(d);
}
