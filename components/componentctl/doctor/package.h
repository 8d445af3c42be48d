/*
 * package.h - the command that gets a file's debug symbols from its distribution.
 *
 *   source   components/componentctl/doctor/package.c
 */
#ifndef COMPONENTCTL_PACKAGE_H
#define COMPONENTCTL_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PACKAGE_COMMAND_MAX 512 /* bytes with NUL */

/* pid: whose root the path is below; 0: ours.  False, and "": no package is known to have the file. */
bool package_command(pid_t pid, const char *path, char ret[PACKAGE_COMMAND_MAX]);

#endif
