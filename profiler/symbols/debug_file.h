/*
 * debug_file.h - the file that has the debug information of an object.
 */
#ifndef SYMBOLS_DEBUG_FILE_H
#define SYMBOLS_DEBUG_FILE_H

#include "arena.h"
#include "image.h"

#define DEBUG_FILE_PATH_MAX 4096 /* bytes of a path, its NUL included */

struct debug_file {
	struct image debug, alt;
	int          debug_fd, alt_fd; /* -1: none */
	bool         has_alt;
};

/* Where distributions keep debug files; tests have another place. */
extern const char *debug_file_root;

/* own: the object's file, which must stay open while ret is; path and build_id (or
 * "") are the object's.  0; -ENOENT: there is none; or another negative errno. */
int  debug_file_open(const struct image *own, const char *path, const char *build_id,
	 struct arena_budget *budget, struct debug_file *ret);
/* Of the same files the one that has the symbol table: a descriptor for our_fd_close(), or a
 * negative errno as above. */
int  debug_file_open_table(const struct image *own, const char *path, const char *build_id,
	 struct arena_budget *budget, struct image *ret);
void debug_file_close(struct debug_file *f);

#endif
