/*
 * known.h - what a source knows: directories by watch descriptor, files by path.
 */
#ifndef LIFE_KNOWN_H
#define LIFE_KNOWN_H

#include <stddef.h>

/* All zero: nothing is known. */
struct known {
	void    *dirs;  /* tsearch tree of struct dir, by wd */
	void    *files; /* tsearch tree of file->key */
	size_t   file_count;
	unsigned scans; /* number of the scan under way; its owner counts it up */
};

/* The directory's path, NULL when there is none; borrowed until it is put again. */
const char *known_dir_path(const struct known *k, int wd);
/* The watch has this path from now on.  -ENOMEM. */
int  known_dir_put(struct known *k, int wd, const char *path);
void known_dir_forget(struct known *k, int wd);
/* Forgets path "below" and all below it ("": all), telling each. */
int  known_dirs_forget(struct known *k, const char *below, void (*tell)(int wd, void *arg), void *arg);

/* The scan under way, or an event, has seen it. */
void known_file_see(struct known *k, const char *key);
void known_file_forget(struct known *k, const char *key);
/* Forgets all below, or with NULL all that the last scan has not seen.  -ENOMEM:
 * only some of them. */
int  known_files_forget(struct known *k, const char *below, void (*tell)(const char *key, void *arg), void *arg);
void known_free(struct known *k);

#endif
