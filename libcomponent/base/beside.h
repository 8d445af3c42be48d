/*
 * beside.h - a new file beside the place that it is to take.
 */
#ifndef BASE_BESIDE_H
#define BASE_BESIDE_H

#include <sys/types.h>

/*
 * beside_create - make and open "PATH.xxxxxxxxxxxxxxxx", a name that nobody can foretell
 *
 *   mode     less the umask
 *   returns  a descriptor from own_fd_open(), *ret_name from malloc(); or a negative errno
 */
int beside_create(const char *path, mode_t mode, char **ret_name);

#endif
