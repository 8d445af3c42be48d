/*
 * replacement.h - a new file beside the place that it is to take.
 */
#ifndef BASE_REPLACEMENT_H
#define BASE_REPLACEMENT_H

#include <sys/types.h>

/*
 * replacement_create - make and open "PATH.xxxxxxxxxxxxxxxx", a name that nobody can foretell
 *
 *   mode     less the umask
 *   returns  a descriptor from our_fd_open(), *ret_name from malloc(); or a negative errno
 */
int replacement_create(const char *path, mode_t mode, char **ret_name);

#endif
