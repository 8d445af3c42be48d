/*
 * threads_quiet.h - a blocked thread's stack, read without waking it.
 */
#ifndef COLLECT_THREADS_QUIET_H
#define COLLECT_THREADS_QUIET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dump.h"

#define THREADS_STACK_MAX ((size_t)256 << 10) /* bytes of one stack that are copied at most */

enum quiet_result {
	QUIET_READ,    /* the stack, from its leaf to its root */
	QUIET_RUNNING, /* it is not blocked, or was not for long enough */
	QUIET_UNKNOWN, /* it is blocked, but the walk of its stack was not complete */
	QUIET_DENIED,  /* its state or its memory cannot be read */
	QUIET_GONE,    /* there is no such thread any more */
};

/* Descriptors of one reading; in a forked child quiet_forked() closes them. */
struct quiet {
	int   task;  /* /proc/self/task */
	char *stack; /* THREADS_STACK_MAX bytes */
};

/* 0 or a negative errno. */
int  quiet_open(struct quiet *q);
void quiet_close(struct quiet *q);
/* Leaf first into pcs; sets how, syscall, count and truncated of t. */
enum quiet_result quiet_read(struct quiet *q, struct dump_thread *t, uintptr_t *pcs, unsigned max);
/* "component-job"; false: it is gone. */
bool quiet_name(struct quiet *q, struct dump_thread *t);
/* The state of /proc: 'R', 'S', 'D'...; 0: it is gone, or on its way out. */
char quiet_state(struct quiet *q, int32_t tid);

#endif
