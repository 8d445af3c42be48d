/*
 * root.c - files that are never half-written, below a root that is never left.
 *
 * A path is walked name by name, each opened with O_NOFOLLOW relative to the one
 * before: neither ".." nor a symbolic link, planted at any moment, leads outside.
 *
 * A file comes into being under a temporary name beside its final one, is synced,
 * then renamed over it.  Readers see the old file or the new one, after a power
 * failure too; a kill -9 leaves at most the temporary one.  Its name holds a number
 * that no other process has, so that two writers of one file cannot mix their bytes,
 * and the program's name, so that its successor can sweep it up
 * (gitops_partials_sweep()).  The directory is not synced: a rename that a power
 * failure takes back is drift, which the next look repairs, and the syncs would take
 * most of the time there is.
 *
 * Why not O_TMPFILE and linkat: it cannot replace a file.  Why not openat2 with
 * RESOLVE_BENEATH: it needs Linux 5.6.
 *
 * Tests: tests/examples/test_gitops.c, tests/examples/controllers.t.
 */
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OWNER_SIZE 64

static char owner[OWNER_SIZE] = "gitops";
static _Atomic uint64_t process; /* 0: not drawn yet */
static atomic_uint file_count;

/* Of any file of ours, those being written too. */
static const char *
path_fault(const char *path)
{
	const char *p = path, *wrong = NULL;

	if (*path == '\0')
		wrong = "it is empty";
	else if (*path == '/')
		wrong = "it starts with '/'; write it relative to its directory";
	else if (strlen(path) >= GITOPS_PATH_MAX)
		wrong = "it is longer than 1023 bytes";
	for (; wrong == NULL && *p != '\0'; p += *p == '/') {
		size_t n = strcspn(p, "/");

		if (n == 0 || (p[n] == '/' && p[n + 1] == '\0'))
			wrong = "it holds an empty name";
		else if ((n == 1 && *p == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			wrong = "it holds '.' or '..'; write the path itself";
		else if (n >= GITOPS_NAME_SIZE)
			wrong = "a name in it is longer than 255 bytes";
		p += n;
	}
	return wrong;
}

int
gitops_path_check(const char *path, struct component_error *err)
{
	const char *wrong = path_fault(path);

	if (wrong == NULL &&
	    (strncmp(path, PARTIAL, sizeof PARTIAL - 1) == 0 || strstr(path, "/" PARTIAL) != NULL))
		wrong = "names that start with '" PARTIAL "' are used for files being written";
	if (wrong == NULL)
		return 0;
	component_error_set(err, "path '%.100s': %s", path, wrong);
	return -EINVAL;
}

int
gitops_path_join(char ret[GITOPS_PATH_MAX], const char *path, const char *below,
	struct component_error *err)
{
	if (snprintf(ret, GITOPS_PATH_MAX, "%s/%s", path, below) < GITOPS_PATH_MAX)
		return 0;
	component_error_set(err, "path '%.100s...' is longer than 1023 bytes", ret);
	return -ENAMETOOLONG;
}

bool
gitops_path_below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

int
gitops_open_dir(const char *root, const char *path, bool create)
{
	int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), next;
	char name[GITOPS_NAME_SIZE];

	if (dir < 0)
		return -errno;
	while (*path != '\0') {
		size_t n = strcspn(path, "/");

		if (n == 0 || n >= sizeof name ||
		    (*path == '.' && (n == 1 || (n == 2 && path[1] == '.')))) {
			close(dir);
			return -EINVAL;
		}
		memcpy(name, path, n);
		name[n] = '\0';
		if (create)
			mkdirat(dir, name, 0755); /* if it fails, so does what comes next */
		next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			next = -errno;
		close(dir);
		if (next < 0)
			return next;
		dir = next;
		path += n + (path[n] == '/');
	}
	return dir;
}

int
gitops_open_parent(const char *root, const char *path, bool create, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char parent[GITOPS_PATH_MAX] = "";

	if (path_fault(path) != NULL)
		return -EINVAL;
	if (slash != NULL)
		memcpy(parent, path, (size_t)(slash - path));
	*ret_name = slash == NULL ? path : slash + 1;
	return gitops_open_dir(root, parent, create);
}

void
gitops_partials_own(const char *program)
{
	snprintf(owner, sizeof owner, "%s", program);
}

/* Racing first calls agree on the number of one of them. */
static uint64_t
process_number(void)
{
	struct timespec now;
	uint64_t drawn, none = 0;

	if (atomic_load(&process) == 0) {
		clock_gettime(CLOCK_REALTIME, &now);
		if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn || drawn == 0)
			drawn = (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec << 8 ^
				(uint64_t)getpid();
		atomic_compare_exchange_strong(&process, &none, drawn | 1);
	}
	return atomic_load(&process);
}

void
gitops_partials_prefix(char ret[GITOPS_NAME_SIZE])
{
	snprintf(ret, GITOPS_NAME_SIZE, PARTIAL "%s.", owner);
}

void
gitops_partial_name(char ret[GITOPS_NAME_SIZE])
{
	snprintf(ret, GITOPS_NAME_SIZE, PARTIAL "%s.%016llx-%ld.%u", owner,
		(unsigned long long)process_number(), (long)getpid(), atomic_fetch_add(&file_count, 1));
}

bool
gitops_is_partial(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash == NULL ? path : slash + 1, PARTIAL, sizeof PARTIAL - 1) == 0;
}

/* A plain file for reading; never waits for a pipe's other end. */
static int
open_plain(int dir, const char *name, struct stat *ret)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, ret) == 0 && S_ISREG(ret->st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

static int
write_all(int fd, const void *data, size_t size)
{
	const char *p = data;
	ssize_t n;

	for (; size > 0; p += n, size -= (size_t)n) {
		n = write(fd, p, size);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0)
			n = 0;
	}
	return 0;
}

/* Hashes from one descriptor, and copies to another unless that is -1. */
static int
hash_and_copy(int from, int to, struct gitops_file *ret)
{
	unsigned char buffer[64 * 1024];
	struct gitops_hash h;
	ssize_t n;
	int r;

	if (!gitops_go_on(0))
		return -ECANCELED;
	gitops_hash_begin(&h);
	while ((n = read(from, buffer, sizeof buffer)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!gitops_go_on((size_t)n))
			return -ECANCELED;
		gitops_hash_add(&h, buffer, (size_t)n);
		r = to < 0 ? 0 : write_all(to, buffer, (size_t)n);
		if (r != 0)
			return r;
	}
	ret->size = h.bytes;
	gitops_hash_end(&h, ret->hash);
	return 0;
}

int
gitops_look_at(int dir, const char *name, struct gitops_file *ret)
{
	struct stat st;
	int fd = open_plain(dir, name, &st), r;

	if (fd < 0)
		return fd;
	ret->mode = st.st_mode & 0777;
	ret->intended = false;
	r = hash_and_copy(fd, -1, ret);
	close(fd);
	return r;
}

int
gitops_file_look(const char *root, const char *path, struct gitops_file *ret)
{
	const char *name;
	int dir = gitops_open_parent(root, path, false, &name), r;

	if (dir < 0)
		return dir;
	r = gitops_look_at(dir, name, ret);
	close(dir);
	return r;
}

/* The one way a file comes into being: fill(fd) under another name, sync, rename. */
static int
replace(const char *root, const char *path, unsigned mode, bool sync, int (*fill)(int fd, void *arg),
	void *arg)
{
	const char *name;
	int dir = gitops_open_parent(root, path, true, &name), fd = -1, r;
	char partial[GITOPS_NAME_SIZE];

	if (dir < 0)
		return dir;
	gitops_partial_name(partial);
	fd = openat(dir, partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : fill(fd, arg);
	if (r == 0 && (fchmod(fd, mode) != 0 || (sync && fsync(fd) != 0)))
		r = -errno;
	if (fd >= 0)
		close(fd);
	if (r == 0 && renameat(dir, partial, dir, name) != 0)
		r = -errno;
	if (r != 0)
		unlinkat(dir, partial, 0);
	close(dir);
	return r;
}

struct copy {
	int from;
	const struct gitops_file *want;
};

static int
fill_copy(int fd, void *arg)
{
	const struct copy *c = arg;
	struct gitops_file got;
	int r = hash_and_copy(c->from, fd, &got);

	return r != 0 ? r : strcmp(got.hash, c->want->hash) == 0 ? 0 : -ESTALE;
}

int
gitops_file_copy(const char *from, const char *path, const char *to, const char *to_path,
	const struct gitops_file *want, struct component_error *err)
{
	struct copy c = { -1, want };
	const char *name;
	struct stat st;
	int dir = gitops_open_parent(from, path, false, &name), r;

	c.from = dir < 0 ? dir : open_plain(dir, name, &st);
	if (dir >= 0)
		close(dir);
	if (c.from == -ENOENT || (dir >= 0 && c.from == -EINVAL)) /* no plain file for now, as gitops_tree_look() has it */
		c.from = -ESTALE;
	r = c.from < 0 ? c.from : replace(to, to_path, want->mode, true, fill_copy, &c);
	if (c.from >= 0)
		close(c.from);
	if (r == -ESTALE)
		component_error_set(err, "'%s' has changed since; it will be looked at again",
			path);
	else if (c.from < 0)
		component_error_set(err, "cannot read '%s': %s", path, strerror(-r));
	else if (r == -ENOTDIR || r == -ELOOP || r == -EISDIR)
		component_error_set(err, "cannot write '%s': a link, file or directory is in the way; "
			"remove it", to_path);
	else if (r != 0)
		component_error_set(err, "cannot write '%s': %s", to_path, strerror(-r));
	return r;
}

static int
fill_text(int fd, void *arg)
{
	return write_all(fd, arg, strlen(arg));
}

int
gitops_file_write(const char *root, const char *path, const char *text, bool sync,
	struct component_error *err)
{
	char *old = NULL;
	int r = gitops_path_check(path, err);

	if (r != 0)
		return r;
	if (gitops_file_read(root, path, GITOPS_DOCUMENT_MAX, &old, NULL) != 0 ||
	    strcmp(old, text) != 0)
		r = replace(root, path, 0644, sync, fill_text, (void *)(uintptr_t)text);
	if (r != 0)
		component_error_set(err, "cannot write '%s/%s': %s", root, path, strerror(-r));
	free(old);
	return r;
}

static int
read_all(int fd, size_t size, char **ret)
{
	char *text = malloc(size + 1);
	size_t have = 0;
	ssize_t n = 1;

	if (text == NULL)
		return -ENOMEM;
	while (have < size && n != 0) {
		n = read(fd, text + have, size - have);
		if (n < 0 && errno != EINTR) {
			free(text);
			return -errno;
		}
		have += n < 0 ? 0 : (size_t)n;
	}
	text[have] = '\0';
	if (strlen(text) != have)
		text[strlen(text)] = 1; /* a NUL inside: a character that all readers refuse */
	*ret = text;
	return 0;
}

int
gitops_file_read(const char *root, const char *path, size_t max, char **ret,
	struct component_error *err)
{
	const char *name;
	struct stat st;
	int dir = gitops_open_dir(root, "", false), fd = -1, r;

	if (dir >= 0) {
		close(dir);
		dir = gitops_open_parent(root, path, false, &name);
	} else if (dir == -ENOENT) {
		dir = -ENOTDIR; /* the root: this says nothing about the file */
	}
	if (dir >= 0)
		fd = open_plain(dir, name, &st);
	r = dir < 0 ? dir : fd;
	if (fd >= 0)
		r = (uint64_t)st.st_size > max ? -EFBIG : read_all(fd, (size_t)st.st_size, ret);
	if (fd >= 0)
		close(fd);
	if (dir >= 0)
		close(dir);
	if (r != 0)
		component_error_set(err, "cannot read '%s/%s': %s", root, path, strerror(-r));
	return r;
}

int
gitops_file_remove(const char *root, const char *path)
{
	char parent[GITOPS_PATH_MAX], *slash;
	const char *name;
	int dir = gitops_open_parent(root, path, false, &name), r;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	r = unlinkat(dir, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
	close(dir);
	snprintf(parent, sizeof parent, "%s", path);
	while (r == 0 && (slash = strrchr(parent, '/')) != NULL) {
		*slash = '\0';
		dir = gitops_open_parent(root, parent, false, &name);
		if (dir < 0)
			break;
		if (unlinkat(dir, name, AT_REMOVEDIR) != 0)
			*parent = '\0'; /* still in use */
		close(dir);
	}
	return r;
}
