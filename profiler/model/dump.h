/*
 * dump.h - struct dump: every thread of the process at one moment, with its stack.
 *
 * The collector of threads makes it, the text of a panic is written from it, and the
 * profile "goroutine" is its sum.  Its memory is from mmap.
 */
#ifndef MODEL_DUMP_H
#define MODEL_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUMP_NAME_BYTES  16 /* the kernel's limit, NUL included */
#define DUMP_NO_SYSCALL  (-1)

enum dump_how {
	DUMP_SELF,      /* the thread that dumps */
	DUMP_QUIET,     /* read without waking it */
	DUMP_SIGNALLED, /* it answered a signal */
	DUMP_SILENT,    /* it did not: no stack */
};

/* How long a thread has run, and what its stack begins with.  Both the same twice: it is
 * the same thread, and has not run between. */
struct dump_mark {
	int64_t   cpu_ns;
	uintptr_t sp;
	uint64_t  top;       /* a hash of so many bytes from sp on */
	uint32_t  top_bytes; /* 0: nothing was read */
};

/* What the kernel says of a thread that waits in futex(2). */
struct dump_futex {
	uintptr_t word; /* 0: it does not, or that is not known */
	uint32_t  call;  /* FUTEX_WAIT, ..., without flags */
	uint32_t  value; /* that the word is to have */
	bool      timed;
};

enum dump_lock_kind { DUMP_NO_LOCK, DUMP_MUTEX, DUMP_RWLOCK };

/* The lock that a thread waits for, dump/locks.h. */
struct dump_lock {
	uintptr_t address;
	int32_t   holder; /* 0: not known; of a read-write lock its writer */
	uint32_t  cycle;  /* from 1 on: the deadlock that this wait is a part of; 0: none */
	uint8_t   kind;   /* enum dump_lock_kind */
	bool      ended;  /* the holder's thread has ended, and has not given it up */
	char      holder_name[DUMP_NAME_BYTES]; /* "": not asked for */
};

struct dump_thread {
	int32_t  tid;
	int32_t  syscall;   /* it is blocked in, or DUMP_NO_SYSCALL */
	uint32_t first;     /* of the dump's pcs, leaf first; equal stacks may share theirs */
	uint32_t count;     /* 0 when silent */
	uint32_t creator;   /* stack table id of who made the thread; 0: not known */
	uint32_t labels;    /* label set, one reference held; 0: none */
	uint32_t minutes;   /* blocked for at least so long; 0: less, or not known */
	uint32_t handler_ns; /* in our handler */
	uint8_t  how;       /* enum dump_how */
	char     state;     /* of /proc, where it was not read quietly: 'R', 'D', 'T', ... */
	bool     filtered;  /* by seccomp, on the program's own account: not signalled */
	bool     own;       /* of the library */
	bool     truncated; /* the root is missing */
	char     name[DUMP_NAME_BYTES]; /* "": not asked for, and not needed */
	struct dump_mark mark;  /* of one that was read quietly */
	struct dump_futex futex; /* likewise */
	struct dump_lock  lock;  /* DUMP_NO_LOCK: none is known, or nobody has asked */
	int64_t  since_ns;      /* when it was first seen in this wait, by the monotonic clock; 0: never */
};

struct dump {
	struct dump_thread *threads; /* the dumping one first, then by tid; before them those of deadlocks */
	size_t              count, room;
	uintptr_t          *pcs;
	size_t              pc_count, pc_room;
	size_t              tagged; /* so many of pcs, the first ones, have their tags (generations.h) */
	unsigned            quiet, signalled, silent;
	unsigned            filtered; /* of the silent ones: not signalled for that */
	unsigned            by_libunwind; /* stacks that it has walked */
	uint32_t            cycles;       /* deadlocks */
};

/* Will it wait for ever? */
static inline bool
dump_thread_is_leaked(const struct dump_thread *t)
{
	return t->lock.cycle > 0 || t->lock.ended;
}

/* Leaves out the threads that are not. */
void dump_keep_leaked(struct dump *d);
/* Drops references and memory. */
void dump_release(struct dump *d);

#endif
