/*
 * trace.h - struct trace, the currency of execution traces: the collector makes it
 * (collect/trace/tracer.c), the encoders read it (encode/trace/go.c, encode/trace/perfetto.c).
 *
 * A trace is what was seen, in the order of time, and not more than that: records may be
 * lost, and what several sources saw of one thread may contradict each other by some
 * microseconds.  Making a consistent story of it is the encoders' business (the
 * converter in encode/), so that each source stays simple.
 *
 * What a stranger would get wrong:
 * - Threads are named by kernel id, and the kernel uses ids again: between TRACE_EXIT
 *   and the next TRACE_CREATE of an id nothing of it counts, and `threads` may hold an
 *   id several times, each with the time when it was born.
 * - The kernel tells of no last OUT of a thread that exits, and of no IN of a thread
 *   that ran when the trace began.
 *
 * Memory is from mmap; stacks are references into the stack table.  One thread at a time
 * for one trace; not from hooks and handlers.
 */
#ifndef MODEL_TRACE_H
#define MODEL_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_COMMENTS_MAX 1024 /* bytes, newline-separated */
#define TRACE_FEW          1024 /* records */
#define TRACE_COPY_RECORDS 8192 /* at once, 450 KB ... */
#define TRACE_COPY_TEXTS   ((size_t)512 << 10) /* ... and bytes: some 100 us each */
#define TRACE_NAME_MAX     16   /* of a thread, with its zero */

enum trace_type {
	TRACE_IN,           /* the thread runs from now on, on `cpu` */
	TRACE_OUT,          /* it ran on `cpu` until now; `flags` */
	TRACE_WAIT,         /* it is about to wait: reason, stack */
	TRACE_WAIT_END,     /* that wait is over, whether it slept or not */
	TRACE_WAKE,         /* it let thread `other` go on, which waits: stack of the waker */
	TRACE_CREATE,       /* it was born: other is its creator, stack the creator's,
	                       value the address of its start routine, 0 if unknown */
	TRACE_EXIT,
	TRACE_SAMPLE,       /* a CPU sample: stack; value: how many it stands for */
	TRACE_LABELS,       /* its labels from now on, as they are to be shown; text; 0: none */
	TRACE_HEAP,         /* value: bytes in use; no thread */
	TRACE_TASK_BEGIN,   /* value: task; parent: the task around it or 0; name; stack */
	TRACE_TASK_END,     /* value: task; stack */
	TRACE_REGION_BEGIN, /* value: task or 0; name; stack */
	TRACE_REGION_END,   /* the same as the beginning */
	TRACE_LOG,          /* value: task or 0; name: category; text: the message; stack */
	TRACE_TYPE_COUNT
};

enum trace_reason {
	TRACE_OTHER,   /* files, page faults, whatever is not known better */
	TRACE_SYNC,    /* mutex, rwlock, semaphore, barrier, join */
	TRACE_COND,    /* condition variable */
	TRACE_NETWORK, /* read and write of sockets and pipes, accept, connect, poll, epoll, select */
	TRACE_SLEEP,
};

#define TRACE_PREEMPTED 1 /* flags of TRACE_OUT: it could have run on */

struct trace_record {
	uint64_t time_ns; /* CLOCK_MONOTONIC; records are sorted by it */
	int32_t  tid;
	int32_t  other;
	uint8_t  type, reason, flags, unused;
	uint16_t cpu;     /* TRACE_IN, OUT, SAMPLE; TRACE_CPU_NONE: not known */
	uint16_t unused2;
	uint32_t stack;   /* stack_table id, one reference held; 0: none */
	uint32_t name, text; /* offsets into `texts`; 0: "" */
	uint32_t unused3;
	uint64_t value, parent;
};

#define TRACE_CPU_NONE UINT16_MAX

enum trace_state {
	TRACE_STATE_UNKNOWN,
	TRACE_STATE_RUNNING,
	TRACE_STATE_WAITING, /* reason and stack say where */
};

struct trace_thread {
	int32_t   tid;
	uint8_t   state;  /* at the start: enum trace_state; of one born later UNKNOWN */
	uint8_t   reason; /* enum trace_reason */
	bool      own;    /* one of ours */
	bool      main;
	uint64_t  born_ns; /* 0: before the trace */
	uint32_t  stack;  /* at the start, one reference held; 0: none */
	uintptr_t routine; /* its start routine; 0: not known */
	char      name[TRACE_NAME_MAX];
};

enum trace_source {
	TRACE_BY_SWITCHES, /* the kernel's context switches: IN and OUT with CPUs */
	TRACE_BY_HOOKS,    /* waits alone: no IN, no OUT; a thread runs when it does not wait */
};

struct trace {
	uint64_t             start_ns, end_ns; /* CLOCK_MONOTONIC */
	int64_t              time_ns;          /* UTC at the start */
	int                  source;           /* enum trace_source */
	unsigned             cpus;             /* highest CPU number + 1; of BY_HOOKS 0 */
	uint64_t             lost;             /* records that found no room, of all sources */
	char                 comments[TRACE_COMMENTS_MAX]; /* the source by name, limits that were met */
	struct trace_record *records;
	size_t               count, capacity;
	size_t               copied; /* trace_copy_some() */
	struct trace_thread *threads;
	size_t               thread_count, thread_capacity;
	char                *texts; /* zero-terminated strings one after the other; texts[0] is 0 */
	size_t               text_bytes, text_capacity;
};

void     trace_init(struct trace *t);
/* Both take over one reference of the stack.  0 or -ENOMEM (the reference is then dropped). */
int      trace_add(struct trace *t, const struct trace_record *r);
int      trace_add_thread(struct trace *t, const struct trace_thread *thread);
/* The offset of the text, equal ones once where they come one after the other; 0 if there
 * is no memory.  Cut at `max` bytes on a character's boundary. */
uint32_t trace_text(struct trace *t, const char *text, size_t max);
/* The text at an offset, "" of 0; borrowed until the next trace_text(). */
const char *trace_string(const struct trace *t, uint32_t offset);
void     trace_comment(struct trace *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A copy of one that grows still, some of it at a time, so that nobody waits long for its lock: to becomes what from is, but
 * without records and texts.  0 or -ENOMEM, and then to is empty. */
int      trace_copy_begin(const struct trace *from, struct trace *to);
/* Then again and again, as 1 says: the next of so many records and bytes of texts that there were, which have not changed.
 * 0 when they are there; -ENOMEM. */
int      trace_copy_some(const struct trace *from, size_t records, size_t text_bytes, struct trace *to);
/* By time, records of one time in the order they were added.  0 or -ENOMEM. */
int      trace_sort(struct trace *t);
/* Drops references and memory; a released trace may be initialised again. */
void     trace_release(struct trace *t);
/* In a child of fork(), which is not to wait: of more than TRACE_FEW records the memory alone.  To give back a reference copies
 * the page that has its count; the stacks stay in the child's table instead. */
void     trace_forget(struct trace *t);

#endif
