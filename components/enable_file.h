/*
 * enable_file.h - the file that switches profiling while the daemon runs: a pod's annotations.
 */
#ifndef COMPONENTS_ENABLE_FILE_H
#define COMPONENTS_ENABLE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include <component/component.h>

#include "our_fd.h"

/* What the file says. */
enum enable_word {
	ENABLE_NONE, /* nothing: there is no such key, or no file */
	ENABLE_ON,
	ENABLE_OFF,
};

struct enable_file {
	struct component       *c;
	component_fn           *fn; /* on the loop, after word has changed */
	void                   *arg;
	char                   *option; /* as it was written; NULL: none is followed */
	char                   *path;   /* the same from the root on */
	char                   *folder;
	const char             *name;   /* in the folder */
	enum enable_word        word;
	const char             *key;    /* of word, but of ENABLE_NONE; a constant */
	int                     told;    /* why it could not be read, a negative errno; 0: it could */
	int                     refused; /* why its folder is not watched, likewise */
	struct component_timer *timer;
	struct component_watch *watch;
	struct our_fd_kept      notify;
	int                     folder_watch; /* of inotify_add_watch(); -1: none */
	pid_t                   pid;          /* who opened notify: a child has it not */
};

/* What such a file says, and *ret_key: which key decides, a constant; untouched where none does.
 * 0, or a negative errno with err, and nothing touched; -ENOENT, -ENOTDIR: there is no file. */
int  enable_file_read(const char *path, enum enable_word *ret_word, const char **ret_key, struct component_error *err);

/* All on the component's thread.  f starts as zeros. */
void enable_file_init(struct enable_file *f, struct component *c, component_fn *fn, void *arg);
/* Looks into that file now, which sets word and calls nobody, and watches it from now on; NULL or "": none. */
void enable_file_follow(struct enable_file *f, const char *path);
void enable_file_end(struct enable_file *f);

#endif
