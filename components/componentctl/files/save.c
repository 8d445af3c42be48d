/*
 * save.c - a file that is there as a whole or not at all.
 *
 * Written beside, then renamed.  A number is free if no file has it at the moment of the rename, so that two who
 * save at once get two.
 *
 * Tests: tests/componentctl/profile.t
 */
#include <config.h>

#include "save.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NUMBERS 100000 /* of files with one name in a folder */

static int
fail(struct component_error *err, const char *path, const char *option, int r)
{
	component_error_set(err, "'%s': %s; write another file with %s", path, strerror(-r), option);
	return r;
}

static int
write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* ret_beside: where.  like: the file that it is to replace, or NULL. */
static int
write_beside(const char *path, const struct stat *like, const void *data, size_t size, char ret_beside[SAVE_PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	int         folder = slash ? (int)(slash - path + 1) : 0, fd, r;

	if (snprintf(ret_beside, SAVE_PATH_MAX, "%.*s.%s.%d", folder, path, path + folder, (int)getpid()) >= SAVE_PATH_MAX)
		return -ENAMETOOLONG;
	fd = open(ret_beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	r = write_all(fd, data, size);
	/* Who may not give files away keeps his own. */
	if (like && fchown(fd, like->st_uid, like->st_gid) < 0 && errno != EPERM && !r)
		r = -errno;
	if (like && fchmod(fd, like->st_mode & 0777) < 0 && !r)
		r = -errno;
	if (close(fd) < 0 && !r)
		r = -errno;
	if (r < 0)
		unlink(ret_beside);
	return r;
}

/* Pipes, /dev/null, and /dev/stdout, which may be a link to a file: these are written to, and not replaced. */
static bool
is_written_to(const char *path, const struct stat *st)
{
	return (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)) || !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
}

static int
write_to(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC), r = fd < 0 ? -errno : write_all(fd, data, size);

	if (fd >= 0)
		close(fd);
	return r;
}

int
save_as(const char *path, const char *option, const void *data, size_t size, struct component_error *err)
{
	char        beside[SAVE_PATH_MAX], target[PATH_MAX];
	struct stat st;
	bool        there = stat(path, &st) == 0;
	const char *file = there && realpath(path, target) ? target : path; /* a link stays */
	int         r;

	if (there && is_written_to(path, &st))
		r = write_to(path, data, size);
	else
		r = write_beside(file, there ? &st : NULL, data, size, beside);
	if (!r && !(there && is_written_to(path, &st)) && rename(beside, file) < 0) {
		r = -errno;
		unlink(beside);
	}
	return r < 0 ? fail(err, path, option, r) : 0;
}

int
save_check(const char *path, const char *option, struct component_error *err)
{
	char        beside[SAVE_PATH_MAX], target[PATH_MAX];
	struct stat st;
	bool        there = stat(path, &st) == 0;
	int         r;

	if (there && S_ISDIR(st.st_mode))
		r = -EISDIR;
	else if (there && is_written_to(path, &st))
		r = access(path, W_OK) < 0 ? -errno : 0;
	else
		r = write_beside(there && realpath(path, target) ? target : path, NULL, "", 0, beside);
	if (!r && !(there && is_written_to(path, &st)))
		unlink(beside);
	return r < 0 ? fail(err, path, option, r) : 0;
}

/* 0, or -EEXIST. */
static int
rename_to_free(const char *from, const char *to)
{
	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system that cannot: another one's file could be lost between these two. */
	if (!access(to, F_OK))
		return -EEXIST;
	return rename(from, to) < 0 ? -errno : 0;
}

int
save_numbered(const char *name, const char *kind, const void *data, size_t size, char ret_path[SAVE_PATH_MAX],
	struct component_error *err)
{
	char beside[SAVE_PATH_MAX], word[64];
	int  r;

	snprintf(word, sizeof(word), "%s", kind);
	for (char *c = word; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_", *c))
			*c = '-';
	snprintf(ret_path, SAVE_PATH_MAX, "%s.%s.pb.gz", name, word);
	r = write_beside(ret_path, NULL, data, size, beside);
	if (r < 0)
		return fail(err, ret_path, SAVE_OPTION, r);
	r = -EEXIST;
	for (unsigned number = 1; number < NUMBERS && r == -EEXIST; number++) {
		snprintf(ret_path, SAVE_PATH_MAX, "%s.%s.%03u.pb.gz", name, word, number);
		r = rename_to_free(beside, ret_path);
	}
	if (r < 0) {
		unlink(beside);
		return fail(err, ret_path, SAVE_OPTION, r);
	}
	return 0;
}
