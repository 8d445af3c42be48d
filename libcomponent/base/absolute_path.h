/*
 * absolute_path.h - a file that is to be found again by its name: the daemon may change its
 * directory, as daemon(3) does.
 */
#ifndef BASE_ABSOLUTE_PATH_H
#define BASE_ABSOLUTE_PATH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* malloc'd; NULL: no memory.  Where nobody knows the directory it is the path that was
 * given, and errno says why. */
static inline char *
absolute_path(const char *path)
{
	char *here = path[0] == '/' ? NULL : getcwd(NULL, 0), *absolute;

	if (path[0] != '/' && !here && errno == ENOMEM)
		return NULL;
	if (asprintf(&absolute, "%s%s%s", here ? here : "", here ? "/" : "", path) < 0)
		absolute = NULL;
	free(here);
	return absolute;
}

#endif
