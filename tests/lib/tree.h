/*
 * tree.h - a folder of a test's own: paths below it, and its end.
 */
#ifndef TESTS_TREE_H
#define TESTS_TREE_H

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

/* Good for four calls. */
static inline const char *
tree_path(const char *root, const char *name)
{
	static char     paths[4][4096];
	static unsigned next;
	char           *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
	return path;
}

static inline int
tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

/* With all that is below it; links are not followed. */
static inline int
tree_remove(const char *root)
{
	return nftw(root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
