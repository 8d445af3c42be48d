/*
 * quiet.h - a blocked thread's stack, read without waking it.
 */
#ifndef COLLECT_DUMP_QUIET_H
#define COLLECT_DUMP_QUIET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory.h"
#include "dump.h"
#include "recover.h"

#define THREADS_STACK_MAX ((size_t)256 << 10) /* bytes of one stack that are copied at most */

enum quiet_result {
	QUIET_READ,    /* the stack, from its leaf to its root */
	QUIET_RUNNING, /* it is not blocked */
	QUIET_MOVED,   /* it is, or was just now, but not for long enough to be read */
	QUIET_UNKNOWN, /* it is blocked, but the walk of its stack was not complete */
	QUIET_DENIED,  /* its state or its memory cannot be read */
	QUIET_GONE,    /* there is no such thread any more */
	QUIET_KERNEL,  /* it never runs the program's code: one of io_uring's, say */
	QUIET_UNMOVED, /* it is where it was: known is still its own mark */
};

/* A copy of a stack, and what is known of code. */
struct quiet_room {
	_Alignas(8) char   stack[THREADS_STACK_MAX];
	struct unwind_code code;
};

/* Descriptors and room of one reading; a child that is forked meanwhile gets none. */
struct quiet {
	int   task;  /* /proc/self/task; negative: there is none */
	bool  by_call; /* process_vm_readv(2) is not refused */
	struct memory memory; /* where it is */
	int   swift; /* of our_fd_swift_begin() */
	struct quiet_room *room;
	size_t             usual; /* bytes of stacks that were enough of late */
	bool               blind; /* this machine's clocks are too coarse to see a thread run */
	/* After a walk: what it began with, and the bytes of the stack in room. */
	struct {
		uintptr_t pc, sp, fp; /* fp 0: not known, and not needed by the tables */
		size_t    size;
	} walked;
};

/* 0 or a negative errno.  It opens without /proc, too: then stacks are QUIET_DENIED. */
int  quiet_open(struct quiet *q);
void quiet_close(struct quiet *q);
/*
 * quiet_read - the stack of a blocked thread
 *
 * Leaf first into pcs; sets syscall, futex, count, truncated and mark of t.  Of one that is not
 * blocked syscall and futex say so.  known: the mark when its stack was read last, NULL: it
 * never was.  A thread that has not run since costs a quarter, and stands in the very same
 * place: QUIET_UNMOVED, and only mark is to be used.
 */
enum quiet_result quiet_read(struct quiet *q, struct dump_thread *t, const struct dump_mark *known, uintptr_t *pcs,
			     unsigned max);
/* The same thread, which has not run between. */
bool quiet_same(const struct dump_mark *a, const struct dump_mark *b);
/* What it waits in now, with a word of 0 if that is no futex; false: that cannot be read. */
bool quiet_futex(struct quiet *q, int32_t tid, struct dump_futex *ret);
/* "component-job"; false: it is gone.  "?" without /proc. */
bool quiet_name(struct quiet *q, struct dump_thread *t);
/* The state of /proc: 'R', 'S', 'D'...; 0: it is gone, or on its way out, or the kernel's own. */
char quiet_state(struct quiet *q, int32_t tid);
/* Certainly ended, and still numbered: the first thread of a process is, until the last one ends. */
bool quiet_is_zombie(struct quiet *q, int32_t tid);

#endif
