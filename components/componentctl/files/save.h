/*
 * save.h - a file that is there as a whole or not at all.
 *
 *   source   components/componentctl/files/save.c
 */
#ifndef COMPONENTCTL_SAVE_H
#define COMPONENTCTL_SAVE_H

#include <stddef.h>

#include <component/error.h>

#define SAVE_PATH_MAX 4096 /* bytes with NUL */
#define SAVE_OPTION   "-o FILE"

/* As path, in place of what is there, whose owner and mode it gets.  option: what names another one, for messages. */
int save_as(const char *path, const char *option, const void *data, size_t size, struct component_error *err);
/* Could it be?  For before something is measured for long. */
int save_check(const char *path, const char *option, struct component_error *err);
/* As NAME.KIND.001.pb.gz in this folder, or the first number that is free; ret_path: which. */
int save_numbered(const char *name, const char *kind, const void *data, size_t size, char ret_path[SAVE_PATH_MAX],
	struct component_error *err);
int save_numbered_check(const char *name, const char *kind, struct component_error *err);

#endif
