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

/*
 * replacement_open - the same for what a person named, who may mean a device or a descriptor
 *
 *   returns  as above; *ret_name NULL: what is there is to be written to, and to stay when all ends
 */
int replacement_open(const char *path, mode_t mode, char **ret_name);

/* A descriptor of ours, by a name that opened anew would begin at 0 again; -1: it is none. */
int replacement_fd_of(const char *path);

#endif
