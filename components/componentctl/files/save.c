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
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "our_fd.h"
#include "replacement.h"

#define NUMBERS  100000 /* of files with one name in a folder */
#define KIND_MAX 64

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
		/* A terminal or a pipe that others share may be so. */
		if (n < 0 && errno == EAGAIN && poll(&(struct pollfd){ fd, POLLOUT, 0 }, 1, -1) >= 0)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* As far as it goes: root alone gives files away, and some file systems have no modes. */
static void
become_like(int fd, const struct stat *like)
{
	int r = fchown(fd, like->st_uid, like->st_gid);

	r |= fchmod(fd, like->st_mode & 0777);
	(void)r;
}

/* ret_beside: where.  like: the file that it is to replace, or NULL. */
static int
write_beside(const char *path, const struct stat *like, const void *data, size_t size, char ret_beside[SAVE_PATH_MAX])
{
	char *name;
	int   fd = replacement_create(path, 0666, &name), r;

	if (fd < 0)
		return fd;
	if (like)
		become_like(fd, like); /* before there is anything to read in it */
	r = snprintf(ret_beside, SAVE_PATH_MAX, "%s", name) < SAVE_PATH_MAX ? write_all(fd, data, size) : -ENAMETOOLONG;
	if (!r && fsync(fd) < 0 && errno != EINVAL)
		r = -errno; /* what a network's file system says at the end */
	our_fd_close(fd);
	if (r < 0)
		unlink(name);
	free(name);
	return r;
}

static int
try_beside(const char *path)
{
	char beside[SAVE_PATH_MAX];
	int  r = write_beside(path, NULL, "", 0, beside);

	if (!r)
		unlink(beside);
	return r;
}

/* What is there at path. */
struct place {
	int         fd;       /* to write to; -1: none */
	bool        is_pipe;  /* or a device, or what another process writes to (/proc/PID/fd/N): that is written to, and not replaced */
	bool        is_there;
	struct stat st;
	char        file[PATH_MAX]; /* path, or what it is a link to */
};

/* Is it another user's file, in a folder such as /tmp?  He may have made it to read what comes.  As with the kernel's
 * fs.protected_regular the folder's owner is trusted; but only root may replace a file of his. */
static bool
is_of_others(const struct place *p)
{
	char        folder[PATH_MAX], *slash;
	struct stat st;

	snprintf(folder, sizeof(folder), "%s", p->file);
	slash = strrchr(folder, '/');
	snprintf(slash ? slash + 1 : folder, 2, "%s", slash ? "" : ".");
	return p->st.st_uid != geteuid() && !stat(folder, &st) && st.st_mode & S_ISVTX && st.st_mode & (S_IWGRP | S_IWOTH) &&
	       (p->st.st_uid != st.st_uid || (geteuid() && !p->is_pipe));
}

/* 0, or why nothing may be put there. */
static int
place_look(struct place *p, const char *path)
{
	struct stat link;
	bool        is_proc = !strncmp(path, "/proc/", 6);
	int         r;

	*p = (struct place){ .fd = replacement_fd_of(path) };
	p->is_there = stat(path, &p->st) == 0;
	r = p->is_there ? 0 : -errno;
	p->is_pipe = p->is_there && !S_ISDIR(p->st.st_mode) && (!S_ISREG(p->st.st_mode) || is_proc);
	if (!p->is_there || is_proc || !realpath(path, p->file))
		snprintf(p->file, sizeof(p->file), "%s", path);
	if (p->fd >= 0)
		return 0;
	if (p->is_there)
		return is_of_others(p) ? -EPERM : 0;
	/* A link that leads nowhere would be replaced itself. */
	return !lstat(path, &link) && S_ISLNK(link.st_mode) ? r : 0;
}

int
save_as(const char *path, const char *option, const void *data, size_t size, struct component_error *err)
{
	char         beside[SAVE_PATH_MAX];
	struct place p;
	int          fd, r = place_look(&p, path);

	if (r < 0)
		return fail(err, path, option, r);
	if (p.fd >= 0 || p.is_pipe) {
		fd = p.fd >= 0 ? p.fd : open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		r = fd < 0 ? -errno : write_all(fd, data, size);
		if (fd >= 0 && p.fd < 0)
			close(fd);
		return r < 0 ? fail(err, path, option, r) : 0;
	}
	r = write_beside(p.file, p.is_there ? &p.st : NULL, data, size, beside);
	if (!r && rename(beside, p.file) < 0) {
		r = -errno;
		unlink(beside);
	}
	return r < 0 ? fail(err, path, option, r) : 0;
}

int
save_check(const char *path, const char *option, struct component_error *err)
{
	struct place p;
	int          r = place_look(&p, path);

	if (r < 0)
		return fail(err, path, option, r);
	if (p.fd >= 0)
		r = (fcntl(p.fd, F_GETFL) & O_ACCMODE) == O_RDONLY || fcntl(p.fd, F_GETFD) < 0 ? -EBADF : 0;
	else if (p.is_pipe)
		r = access(path, W_OK) < 0 ? -errno : 0;
	else if (p.is_there && S_ISDIR(p.st.st_mode))
		r = -EISDIR;
	else
		r = try_beside(p.file);
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

/* Without its number. */
static void
numbered_path(const char *name, const char *kind, char ret[SAVE_PATH_MAX], char ret_word[KIND_MAX])
{
	snprintf(ret_word, KIND_MAX, "%s", kind);
	for (char *c = ret_word; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_", *c))
			*c = '-';
	snprintf(ret, SAVE_PATH_MAX, "%s.%s.pb.gz", name, ret_word);
}

int
save_numbered_check(const char *name, const char *kind, struct component_error *err)
{
	char path[SAVE_PATH_MAX], word[KIND_MAX];
	int  r;

	numbered_path(name, kind, path, word);
	r = try_beside(path);
	return r < 0 ? fail(err, path, SAVE_OPTION, r) : 0;
}

int
save_numbered(const char *name, const char *kind, const void *data, size_t size, char ret_path[SAVE_PATH_MAX],
	struct component_error *err)
{
	char beside[SAVE_PATH_MAX], word[KIND_MAX];
	int  r;

	numbered_path(name, kind, ret_path, word);
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
