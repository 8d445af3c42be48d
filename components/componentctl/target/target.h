/*
 * target.h - what is to be looked into: a server, or a file with a profile.
 *
 *     localhost:6060   :6060   http://host:6060/debug/pprof/   unix:/run/x.sock   cpu.pb.gz   an ID or PID of list
 *     the PID of any other process
 *
 *   threads  any
 *   source   components/componentctl/target/target.c
 */
#ifndef COMPONENTCTL_TARGET_H
#define COMPONENTCTL_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <component/error.h>

#include "record.h"

#define TARGET_MAX 4096 /* bytes with NUL */

struct target {
	char word[TARGET_MAX];   /* as it was written, for messages */
	bool is_file;
	pid_t process;           /* its number, of one of this machine; 0: not known */
	bool has_switch;         /* its record says that it can be switched on and off while it runs */
	pid_t pid;               /* of a process that has no record, and so is looked at from outside; 0: none */
	char file[TARGET_MAX];
	char url[TARGET_MAX];    /* "http://localhost:6060/debug/pprof", without the last slash */
	char socket[TARGET_MAX]; /* a path or @name; "": none */
	char name[64];           /* for files that are made of it: letters, digits, '.', '-' and '_' */
};

/* 0; -EINVAL: it can mean nothing; -ENOENT: no such file and no such process; -ECONNREFUSED: of process the profiling is
 * off; with a sentence. */
int target_find(struct target *ret, const char *word, struct component_error *err);
/* What has that record; word is what it is called.  -ECONNREFUSED: its profiling is off, but ret has a name. */
int target_of_record(struct target *ret, const char *word, const struct record *r, struct component_error *err);

/* By Ctrl-Z or STOP: its port takes connections all the same, and a request would wait for minutes.  False where its
 * process is not known. */
bool target_is_stopped(const struct target *t);

#endif
