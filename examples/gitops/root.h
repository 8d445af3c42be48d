/*
 * root.h - what root.c lends to tree.c: names relative to a directory that is open.
 */
#ifndef GITOPS_ROOT_H
#define GITOPS_ROOT_H

#include "gitops.h"

#define PARTIAL ".gitops-partial." /* then whose, a number of the process, and one of the file */

/* The directory a path is in, and the rest of the path. */
int  gitops_open_parent(const char *root, const char *path, bool create, const char **ret_name);
/* gitops_file_look() of a name in a directory. */
int  gitops_look_at(int dir, const char *name, struct gitops_file *ret);
/* What all our gitops_partial_name()s start with. */
void gitops_partials_prefix(char ret[GITOPS_NAME_SIZE]);

#endif
