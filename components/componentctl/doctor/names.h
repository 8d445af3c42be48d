/*
 * names.h - which functions of a program have names, and where those come from; and which samples have no stack.
 *
 *     names_count_profile() of a server's answers, names_look() of a process here ──▶ names_tell()
 *
 *   memory   to be released
 *   threads  one at a time
 *   source   components/componentctl/doctor/names.c
 */
#ifndef COMPONENTCTL_NAMES_H
#define COMPONENTCTL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "findings.h"
#include "read.h"

struct names_object; /* a file that is mapped */

struct names {
	struct names_object *objects;
	size_t               count, room;
	uint64_t             stacks, frames, nameless;
	uint64_t             samples, lost; /* of CPU time */
	bool                 is_measured;   /* CPU time was, if none was used, too */
	bool                 failed;
};

/* The frames of a profile; is_cpu: its samples are counted, too. */
void names_count_profile(struct names *n, const struct pprof *p, bool is_cpu);
/* After outside_begin(): objects and where their names come from; with is_outside also the stacks of its threads, and
 * those of its CPU time for so many seconds. */
void names_look(struct names *n, bool is_outside, int64_t seconds);
/* word: the target, for a command; pid: whose files they are; 0: not of this machine. */
void names_tell(const struct names *n, const char *word, pid_t pid, struct findings *f);
/* Of a program that does not run. */
void names_tell_file(const char *path, struct findings *f);
void names_release(struct names *n);

#endif
