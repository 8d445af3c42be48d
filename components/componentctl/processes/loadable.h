/*
 * loadable.h - can the agent be loaded into a program, before it is started?
 *
 *     word ── PATH ──▶ file ── "#!" ──▶ interpreter ... ──▶ ELF: this machine's, dynamic, glibc's, no privileges
 */
#ifndef COMPONENTCTL_LOADABLE_H
#define COMPONENTCTL_LOADABLE_H

#include <limits.h>

#include <component/error.h>

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

/* Where the agent is: of a build tree beside this program, or installed.  0; -ENOENT: it cannot be read; with a sentence. */
int loadable_agent(char ret[PATH_MAX], struct component_error *err);

#endif
