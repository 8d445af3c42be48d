/*
 * tree.c - whole trees below a root: looked at, compared, removed, swept.
 *
 * They are walked depth first and by descriptors: no link is followed.
 *
 * What a stranger would get wrong: a tree that is removed gets the name of one that is
 * being written first.  So nobody takes the half that a kill -9 leaves for the whole, and
 * the next start sweeps it up.
 *
 * Tests: tests/examples/test_gitops.c, tests/examples/test_gitops_lock.c, tests/examples/controllers.t.
 */
#include "root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 32 /* directories below one another; each holds a descriptor */

struct walk {
	struct gitops_files    *files;
	struct component_error *err;
	bool                    hashes; /* are wanted; false: a list of what can be seen */
	char                    path[GITOPS_PATH_MAX];
};

static int walk_dir(struct walk *w, int dir, size_t length, int depth);

/* What was there a moment ago and is not now: somebody changes the tree.  All else lasts. */
static int
walk_fault(struct walk *w, int error)
{
	if (error == ENOENT || error == ENOTDIR || error == ELOOP)
		return w->hashes ? -ESTALE : 0;
	if (error == EACCES && !w->hashes)
		return 0; /* such as lost+found; who needs what is in it will say so */
	component_error_set(w->err, "cannot read '%s': %s", *w->path == '\0' ? "." : w->path, strerror(error));
	return -error;
}

static int
walk_entry(struct walk *w, int dir, const char *name, size_t length, int depth)
{
	struct gitops_file file = { .path = w->path };
	struct stat st;
	int fd, r;

	if (!gitops_go_on(0))
		return -ECANCELED;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return walk_fault(w, errno);
	if (S_ISDIR(st.st_mode)) {
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		return fd < 0 ? walk_fault(w, errno) : walk_dir(w, fd, length, depth + 1);
	}
	if (!S_ISREG(st.st_mode) && !w->hashes)
		return 0;
	r = gitops_path_check(w->path, w->err);
	if (r != 0)
		return r;
	if (!S_ISREG(st.st_mode)) {
		component_error_set(w->err, "'%s' is a %s; only plain files are kept in sync", w->path,
			S_ISLNK(st.st_mode) ? "symbolic link" : "special file");
		return -EINVAL;
	}
	r = !w->hashes ? 0 : gitops_look_at(dir, name, &file);
	if (r == -EINVAL)
		return -ESTALE; /* a plain file a moment ago */
	return r != 0 ? walk_fault(w, -r) : gitops_files_add(w->files, &file);
}

/* Closes dir; w->path is its path, LENGTH bytes long. */
static int
walk_dir(struct walk *w, int dir, size_t length, int depth)
{
	DIR *d = fdopendir(dir);
	struct dirent *e;
	int n, r = 0;

	if (d == NULL) {
		close(dir);
		return -ENOMEM;
	}
	if (depth > DEPTH_MAX) {
		component_error_set(w->err, "'%s': more than %d directories below one another", w->path, DEPTH_MAX);
		r = -ELOOP;
	}
	for (errno = 0; r == 0 && (e = readdir(d)) != NULL; errno = 0) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || gitops_is_partial(e->d_name))
			continue;
		n = snprintf(w->path + length, sizeof w->path - length, "%s%s", length == 0 ? "" : "/", e->d_name);
		if ((size_t)n >= sizeof w->path - length) {
			component_error_set(w->err, "path '%.100s...' is longer than 1023 bytes", w->path);
			r = -ENAMETOOLONG;
		} else {
			r = walk_entry(w, dir, e->d_name, length + (size_t)n, depth);
		}
		w->path[length] = '\0';
	}
	if (r == 0 && errno != 0) /* not its end: the files behind are not to be pruned */
		r = walk_fault(w, errno);
	closedir(d);
	return r;
}

static int
walk(const char *root, const char *path, bool hashes, struct gitops_files *ret, struct component_error *err)
{
	struct walk w = { .files = ret, .err = err, .hashes = hashes };
	int dir = gitops_open_dir(root, path, false), r;

	if (dir < 0) {
		component_error_set(err, "directory '%s': %s", path, dir == -ENOTDIR || dir == -ELOOP ?
			"links are not followed" : strerror(-dir));
		return dir;
	}
	r = walk_dir(&w, dir, 0, 0);
	if (r == -ESTALE)
		component_error_set(err, "'%s' changed while it was read", path);
	if (r == -ENOMEM || r == -ENOBUFS)
		component_error_set(err, "'%s': %s", path, r == -ENOMEM ? "out of memory" : "more than 100000 files");
	gitops_files_sort(ret);
	return r;
}

int
gitops_tree_look(const char *root, const char *path, struct gitops_files *ret, struct component_error *err)
{
	return walk(root, path, true, ret, err);
}

int
gitops_tree_list(const char *root, const char *path, struct gitops_files *ret, struct component_error *err)
{
	return walk(root, path, false, ret, err);
}

int
gitops_tree_compare(const char *root, const char *path, const struct gitops_files *want, bool *wrong,
	size_t *ret_count, struct component_error *err)
{
	char full[GITOPS_PATH_MAX];
	size_t count = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < want->count; i++) {
		const struct gitops_file *file = &want->items[i];
		struct gitops_file now = { 0 };

		r = gitops_path_join(full, path, file->path, err);
		if (r == 0 && gitops_file_look(root, full, &now) == -ECANCELED)
			r = -ECANCELED;
		wrong[i] = r != 0 || now.mode != file->mode || strcmp(now.hash, file->hash) != 0;
		count += wrong[i];
	}
	*ret_count = count;
	return r;
}

static void
remove_below(int dir, int depth)
{
	DIR *d = fdopendir(dir);
	struct dirent *e;
	int fd;

	if (d == NULL) {
		close(dir);
		return;
	}
	while (gitops_go_on(0) && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(dir, e->d_name, 0) == 0 || (errno != EISDIR && errno != EPERM) || depth > DEPTH_MAX)
			continue;
		fd = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			remove_below(fd, depth + 1);
		unlinkat(dir, e->d_name, AT_REMOVEDIR);
	}
	closedir(d);
}

static void
sweep_below(int dir, const char *prefix, int depth)
{
	DIR *d = fdopendir(dir);
	struct dirent *e;
	int fd;

	if (d == NULL) {
		close(dir);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		bool left = strncmp(e->d_name, prefix, strlen(prefix)) == 0;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || depth > DEPTH_MAX)
			continue;
		if (left && unlinkat(dir, e->d_name, 0) == 0)
			continue;
		if (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN)
			continue;
		fd = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (left)
			remove_below(fd, depth + 1);
		else
			sweep_below(fd, prefix, depth + 1);
		if (left)
			unlinkat(dir, e->d_name, AT_REMOVEDIR);
	}
	closedir(d);
}

void
gitops_partials_sweep(const char *root)
{
	char prefix[GITOPS_NAME_SIZE];
	int dir = gitops_open_dir(root, "", false);

	gitops_partials_prefix(prefix);
	if (dir >= 0)
		sweep_below(dir, prefix, 0);
}

void
gitops_tree_remove(const char *root, const char *path)
{
	char partial[GITOPS_NAME_SIZE];
	const char *name;
	int dir = gitops_open_parent(root, path, false, &name), fd;

	if (dir < 0)
		return;
	gitops_partial_name(partial);
	if (renameat(dir, name, dir, partial) == 0)
		name = partial;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		remove_below(fd, 0);
	unlinkat(dir, name, AT_REMOVEDIR);
	close(dir);
}
