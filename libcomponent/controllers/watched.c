/*
 * watched.c - what a source knows: directories by watch descriptor, files by path.
 *
 * Two trees of libc (tsearch).  A walk must not change the tree it walks, so what
 * is to be forgotten is collected first.  The files below a directory are neighbours
 * in their tree and need no walk.  A rename of a directory costs a walk over all
 * directories; it is rare, and a tree by path components would be ten times the code.
 *
 * Tests: tests/controllers/test_source.c.
 */
#include <config.h>

#include "watched.h"

#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Files remembered: about 1 GiB of paths; more are said but their going is not. */
#define FILES_MAX 4194304

struct dir {
	int      wd;
	unsigned seen; /* number of the scan that put it last */
	char    *path; /* relative, "" for the root */
};

struct file {
	unsigned seen;  /* number of the scan that saw it last */
	char     key[];
};

struct collected {
	const struct watched *watched;
	const char *below; /* directories; NULL: what the last scan missed */
	void      **items;
	size_t      count, size;
	bool        failed;
};

static int
dir_compare(const void *a, const void *b)
{
	const struct dir *x = a, *y = b;

	return (x->wd > y->wd) - (x->wd < y->wd);
}

static int
key_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* 0 for every key below the directory. */
static int
below_compare(const void *dir, const void *key)
{
	size_t n = strlen(dir);
	int    r = strncmp(dir, key, n);

	return r != 0 ? r : '/' - ((const unsigned char *)key)[n];
}

static struct file *
file_of(const void *node)
{
	char *key = *(char *const *)node;

	return (struct file *)(void *)(key - offsetof(struct file, key));
}

static void
collect(struct collected *c, void *item)
{
	if (c->count == c->size) {
		size_t size = c->size == 0 ? 64 : c->size * 2;
		void **items = realloc(c->items, size * sizeof *items);

		if (items == NULL) {
			c->failed = true;
			return;
		}
		c->items = items;
		c->size = size;
	}
	c->items[c->count++] = item;
}

/* Is path prefix itself or below it? */
static bool
is_below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static void
collect_file(const void *node, VISIT visit, void *closure)
{
	struct collected *c = closure;
	struct file *file;

	if (visit != postorder && visit != leaf)
		return;
	file = file_of(node);
	if (file->seen != c->watched->scans)
		collect(c, file);
}

static void
collect_dir(const void *node, VISIT visit, void *closure)
{
	struct collected *c = closure;
	struct dir *dir;

	if (visit != postorder && visit != leaf)
		return;
	dir = *(struct dir *const *)node;
	if (c->below != NULL ? is_below(dir->path, c->below) : dir->seen != c->watched->scans)
		collect(c, dir);
}

/* ---- directories ---- */

static struct dir *
dir_find(const struct watched *k, int wd)
{
	const struct dir key = { .wd = wd };
	void *node = tfind(&key, &k->dirs, dir_compare);

	return node == NULL ? NULL : *(struct dir **)node;
}

static void
dir_free(void *arg)
{
	struct dir *dir = arg;

	free(dir->path);
	free(dir);
}

const char *
watched_dir_path(const struct watched *k, int wd)
{
	const struct dir *dir = dir_find(k, wd);

	return dir == NULL ? NULL : dir->path;
}

int
watched_dir_put(struct watched *k, int wd, const char *path)
{
	struct dir *dir = dir_find(k, wd);
	char *copy;

	/* The root, mounted below itself once more. */
	if (dir != NULL && dir->seen == k->scans && *dir->path == '\0' && *path != '\0')
		return 0;
	copy = strdup(path);
	if (copy == NULL)
		return -ENOMEM;
	if (dir != NULL) {
		free(dir->path);
		dir->path = copy;
		dir->seen = k->scans;
		return 0;
	}
	dir = malloc(sizeof *dir);
	if (dir == NULL) {
		free(copy);
		return -ENOMEM;
	}
	*dir = (struct dir){ .wd = wd, .seen = k->scans, .path = copy };
	if (tsearch(dir, &k->dirs, dir_compare) == NULL) {
		dir_free(dir);
		return -ENOMEM;
	}
	return 0;
}

void
watched_dir_forget(struct watched *k, int wd)
{
	struct dir *dir = dir_find(k, wd);

	if (dir == NULL)
		return;
	tdelete(dir, &k->dirs, dir_compare);
	dir_free(dir);
}

int
watched_dirs_forget(struct watched *k, const char *below, void (*tell)(int wd, void *arg), void *arg)
{
	struct collected c = { .watched = k, .below = below };

	twalk_r(k->dirs, collect_dir, &c);
	for (size_t i = 0; i < c.count; i++) {
		int wd = ((struct dir *)c.items[i])->wd;

		watched_dir_forget(k, wd);
		tell(wd, arg);
	}
	free(c.items);
	return c.failed ? -ENOMEM : 0;
}

/* ---- files ---- */

void
watched_file_see(struct watched *k, const char *key)
{
	void *node = tfind(key, &k->files, key_compare);
	size_t size = strlen(key) + 1;
	struct file *file;

	if (node != NULL) {
		file_of(node)->seen = k->scans;
		return;
	}
	if (k->file_count >= FILES_MAX)
		return;
	file = malloc(sizeof *file + size);
	if (file == NULL)
		return;
	file->seen = k->scans;
	memcpy(file->key, key, size);
	if (tsearch(file->key, &k->files, key_compare) != NULL)
		k->file_count++;
	else
		free(file);
}

static void
file_forget(struct watched *k, struct file *file)
{
	tdelete(file->key, &k->files, key_compare);
	k->file_count--;
}

void
watched_file_forget(struct watched *k, const char *key)
{
	void *node = tfind(key, &k->files, key_compare);
	struct file *file = node == NULL ? NULL : file_of(node);

	if (file == NULL)
		return;
	file_forget(k, file);
	free(file);
}

static void
file_tell(struct watched *k, struct file *file, void (*tell)(const char *key, void *arg), void *arg)
{
	file_forget(k, file);
	tell(file->key, arg);
	free(file);
}

void
watched_files_forget_below(struct watched *k, const char *dir, void (*tell)(const char *key, void *arg), void *arg)
{
	void *node;

	while ((node = tfind(dir, &k->files, below_compare)) != NULL)
		file_tell(k, file_of(node), tell, arg);
}

int
watched_files_forget_missed(struct watched *k, void (*tell)(const char *key, void *arg), void *arg)
{
	struct collected c = { .watched = k };

	twalk_r(k->files, collect_file, &c);
	for (size_t i = 0; i < c.count; i++)
		file_tell(k, c.items[i], tell, arg);
	free(c.items);
	return c.failed ? -ENOMEM : 0;
}

static void
file_free(void *key)
{
	free((char *)key - offsetof(struct file, key));
}

void
watched_free(struct watched *k)
{
	tdestroy(k->dirs, dir_free);
	tdestroy(k->files, file_free);
	*k = (struct watched){ 0 };
}
