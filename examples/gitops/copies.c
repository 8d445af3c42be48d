/*
 * copies.c - copies of whole trees that are there entirely or not at all.
 *
 * A copy is built beside its final place under a temporary name, each file checked
 * against its hash, then renamed.  What a kill -9 leaves is swept up at the next start
 * (gitops_partials_sweep()), or when the copies are tidied.
 *
 * Tests: tests/examples/controllers.t.
 */
#include "gitops.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "promoted/shop/9f86" becomes "promoted/shop/" and "9f86". */
static int
split(const char *path, char parent[GITOPS_PATH_MAX], const char **ret_name)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL || gitops_path_check(path, NULL) != 0)
		return -EINVAL;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	*ret_name = slash + 1;
	return 0;
}

static int
rename_whole(const char *root, const char *parent, const char *from, const char *to)
{
	int dir = gitops_open_dir(root, parent, false), r;

	if (dir < 0)
		return dir;
	r = renameat(dir, from, dir, to) == 0 ? 0 : -errno;
	close(dir);
	return r;
}

/* It was whole when it was renamed, but somebody's hand may have been there since. */
static int
compare(const char *root, const char *path, const struct gitops_files *files, struct component_error *err)
{
	struct gitops_files there = { 0 };
	char want[GITOPS_HASH_SIZE], have[GITOPS_HASH_SIZE];
	int r = gitops_tree_look(root, path, &there, err);

	gitops_files_revision(files, want);
	gitops_files_revision(&there, have);
	if (r == 0 && strcmp(want, have) != 0) {
		component_error_set(err, "'%s' has been changed by hand; remove it to have it made anew", path);
		r = -EEXIST;
	}
	gitops_files_free(&there);
	return r;
}

int
gitops_copy_make(const char *from, const char *from_path, const struct gitops_files *files,
	const char *to, const char *to_path, struct component_error *err)
{
	char parent[GITOPS_PATH_MAX], partial[GITOPS_PATH_MAX], temporary[GITOPS_NAME_SIZE];
	char source[GITOPS_PATH_MAX], target[GITOPS_PATH_MAX];
	const char *name;
	int dir = gitops_open_dir(to, to_path, false), r;

	if (dir >= 0) {
		close(dir);
		return compare(to, to_path, files, err);
	}
	r = split(to_path, parent, &name);
	if (r != 0)
		return r;
	gitops_partial_name(temporary);
	r = gitops_path_join(partial, parent, temporary, err);
	for (size_t i = 0; r == 0 && i < files->count; i++) {
		r = gitops_path_join(source, from_path, files->items[i].path, err);
		if (r == 0)
			r = gitops_path_join(target, partial, files->items[i].path, err);
		if (r == 0)
			r = gitops_file_copy(from, source, to, target, &files->items[i], err);
	}
	if (r == 0)
		r = rename_whole(to, parent, temporary, name);
	if (r != 0 && r != -ECANCELED) /* then the next start sweeps it up */
		gitops_tree_remove(to, partial);
	return r;
}

void
gitops_copies_tidy(const char *root, const char *path, bool (*in_use)(const char *copy, void *arg), void *arg)
{
	int fd = gitops_open_dir(root, path, false);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char copy[GITOPS_PATH_MAX];
	struct dirent *e;

	if (d == NULL && fd >= 0)
		close(fd);
	while (d != NULL && gitops_go_on(0) && (e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
				gitops_path_join(copy, path, e->d_name, NULL) == 0 && !in_use(copy, arg))
			gitops_tree_remove(root, copy);
	if (d != NULL)
		closedir(d);
}
