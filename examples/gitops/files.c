/*
 * files.c - a sorted list of files with their hashes.
 *
 * Its revision is a hash over path, mode and content hash of each, in order: two
 * trees have the same revision when they are the same, wherever they are.
 *
 * Tests: tests/examples/test_gitops.c.
 */
#include "gitops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
gitops_files_add(struct gitops_files *f, const struct gitops_file *file)
{
	char *path;

	if (f->count >= GITOPS_FILES_MAX)
		return -ENOBUFS;
	if (f->count == f->room) {
		size_t room = f->room == 0 ? 64 : f->room * 2;
		struct gitops_file *items = realloc(f->items, room * sizeof *items);

		if (items == NULL)
			return -ENOMEM;
		f->items = items;
		f->room = room;
	}
	path = strdup(file->path);
	if (path == NULL)
		return -ENOMEM;
	f->items[f->count] = *file;
	f->items[f->count++].path = path;
	return 0;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(((const struct gitops_file *)a)->path, ((const struct gitops_file *)b)->path);
}

void
gitops_files_sort(struct gitops_files *f)
{
	if (f->count > 1)
		qsort(f->items, f->count, sizeof *f->items, compare);
}

struct gitops_file *
gitops_files_find(const struct gitops_files *f, const char *path)
{
	const struct gitops_file key = { .path = (char *)(uintptr_t)path };

	return f->count == 0 ? NULL : bsearch(&key, f->items, f->count, sizeof *f->items, compare);
}

void
gitops_files_revision(const struct gitops_files *f, char ret_hex[GITOPS_HASH_SIZE])
{
	struct gitops_hash h;
	char mode[16];

	gitops_hash_begin(&h);
	for (size_t i = 0; i < f->count; i++) {
		snprintf(mode, sizeof mode, "%04o", f->items[i].mode);
		gitops_hash_add(&h, f->items[i].hash, GITOPS_HASH_SIZE);
		gitops_hash_add(&h, mode, strlen(mode) + 1);
		gitops_hash_add(&h, f->items[i].path, strlen(f->items[i].path) + 1);
	}
	gitops_hash_end(&h, ret_hex);
}

void
gitops_files_free(struct gitops_files *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->items[i].path);
	free(f->items);
	*f = (struct gitops_files){ 0 };
}
