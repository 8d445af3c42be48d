/*
 * loadable.h - can the agent be loaded into a program, before it is started?
 *
 *     word ── PATH ──▶ file ── "#!" ──▶ interpreter ... ──▶ ELF: this machine's, dynamic, glibc's, no privileges
 */
#ifndef COMPONENTCTL_LOADABLE_H
#define COMPONENTCTL_LOADABLE_H

#include <limits.h>

#include <component/error.h>

#define LOADABLE_AGENT "libcomponent-preload.so"

/*
 * loadable_find - what execvp(3) would start
 *
 *   ret      its path
 *   returns  0; -ENOENT: "Failed to find command X"; another negative errno, with a sentence
 */
int loadable_find(const char *word, char ret[PATH_MAX], struct component_error *err);

/* 0; -ENOTSUP: no, but it can be looked at from outside; -ENOEXEC: nor that; with a sentence that says why not, and what
 * to do instead. */
int loadable_check(const char *path, struct component_error *err);

/*
 * loadable_past_env - what env would run for the script at path, as "#!/usr/bin/env WORD" and "... env -S WORD..." have it
 *
 *   path     becomes that program's
 *   words    of the script; not empty
 *   returns  the program's words, to be freed, words beyond the first in them; NULL: nothing is to be changed
 */
char **loadable_past_env(char path[PATH_MAX], char **words);

/* Where the agent is: of a build tree beside this program, or installed.  0; -ENOENT: it cannot be read; with a sentence. */
int loadable_agent(char ret[PATH_MAX], struct component_error *err);

#endif
