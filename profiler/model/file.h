/*
 * file.h - opening a file inside somebody else's process.
 */
#ifndef MODEL_FILE_H
#define MODEL_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"

/* For reading, close-on-exec, never descriptor 0 to 2, never waiting for a fifo;
 * a child that is forked meanwhile does not have it.
 * A descriptor for our_fd_close(), or a negative errno. */
int  file_open(const char *path);
/* The same for a path from somebody who may mean harm, and we may be root: a device or a fifo is not even opened; -ENOENT.
 * Without /proc one is that takes a regular file's place in that moment, and is closed at once. */
int  file_open_regular(const char *path);
#define FILE_LINK_MAX PROCESS_PATH_MAX

/*
 * file_of_mapping - the names under which a mapped file may be found, one by one
 *
 * The first are the kernel's own links, which lead to the file itself, whatever became of
 * its path since; path comes last, and may lead to another file, or be "".
 *
 *   i        0, 1, ... until it returns NULL
 *   main     of the program itself
 *   link     room for the name
 *   returns  path, or link, or NULL: there are no more
 */
const char *file_of_mapping(unsigned i, uintptr_t start, uintptr_t limit, bool main, const char *path,
			    char link[FILE_LINK_MAX]);

#endif
