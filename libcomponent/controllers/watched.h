/*
 * watched.h - what a source knows: directories by watch descriptor, files by path.
 */
#ifndef CONTROLLERS_WATCHED_H
#define CONTROLLERS_WATCHED_H

#include <stddef.h>

/* All zero: nothing is known. */
struct watched {
	void    *dirs;  /* tsearch tree of struct dir, by wd */
	void    *files; /* tsearch tree of file->key */
	size_t   file_count;
	unsigned scans; /* number of the last scan; its owner counts it up */
};

/* The directory's path, NULL when there is none; borrowed until it is put again. */
const char *watched_dir_path(const struct watched *k, int wd);
/* The watch has this path from now on, but the root's keeps its own.  -ENOMEM. */
int  watched_dir_put(struct watched *k, int wd, const char *path);
void watched_dir_forget(struct watched *k, int wd);
/* Forgets path "below" and all below it, or with NULL all that the last scan has not put,
 * telling each.  -ENOMEM: only some of them. */
int  watched_dirs_forget(struct watched *k, const char *below, void (*tell)(int wd, void *arg), void *arg);

/* A scan or an event has seen it. */
void watched_file_see(struct watched *k, const char *key);
void watched_file_forget(struct watched *k, const char *key);
/* Forgets all below a directory. */
void watched_files_forget_below(struct watched *k, const char *dir, void (*tell)(const char *key, void *arg), void *arg);
/* Forgets all that the last scan has not seen.  -ENOMEM: only some of them. */
int  watched_files_forget_missed(struct watched *k, void (*tell)(const char *key, void *arg), void *arg);
void watched_free(struct watched *k);

#endif
