/*
 * story.h - one consistent story out of what was seen of the threads.
 *
 * What a trace holds may have gaps and contradict itself; the readers of execution
 * traces refuse a whole file for one event out of order.  A story keeps their rules:
 *
 * - Times grow by at least a nanosecond from event to event, over all threads.
 * - A processor is started before it runs a thread, runs one at a time, and runs none
 *   when it is stopped.  All are stopped at the end.
 * - A thread is created once, before all else of it: then it is runnable.  STARTed it
 *   runs, PREEMPTed it is runnable, BLOCKed it waits until somebody UNBLOCKs it, which
 *   makes it runnable; ENDed while it runs, nothing follows.
 * - Tasks, regions and logs come from threads that run.  Regions of one thread nest; a
 *   task's number is begun once.
 *
 * A processor is a CPU where the source is the kernel's switches, and otherwise one
 * for each thread that lives.
 */
#ifndef ENCODE_TRACE_STORY_H
#define ENCODE_TRACE_STORY_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "table.h"
#include "trace.h"

#define STORY_NO_CPU UINT32_MAX

enum story_type {
	STORY_CPU_START, /* cpu, by the kernel thread of `on` */
	STORY_CPU_STOP,  /* it runs no thread now */
	STORY_CREATE,    /* other; by `on`, whose stack it is, if that runs */
	STORY_START,     /* on, on cpu */
	STORY_PREEMPT,
	STORY_BLOCK,     /* reason; stack, or STORY_OFF_CPU */
	STORY_UNBLOCK,   /* other; by `on`, whose stack it is; or by nobody that was seen: STORY_WAKEUP */
	STORY_END,
	STORY_LABEL,     /* of `on`, which runs: its label has changed; of who does not, the next START tells */
	STORY_SAMPLE,    /* on, which runs if it has a cpu; stack; as often as it stands for */
	STORY_HEAP,      /* value: bytes in use; `on` has the cpu, but runs only if its cpu says so */
	STORY_TASK_BEGIN,
	STORY_TASK_END,
	STORY_REGION_BEGIN,
	STORY_REGION_END,
	STORY_LOG,
};

/* Stacks that nobody has taken. */
enum story_made {
	STORY_TAKEN,   /* `stack` is one of the stack table; 0: none */
	STORY_OFF_CPU, /* [off CPU] on top of where the thread began */
	STORY_PREEMPTED, /* [preempted], likewise */
	STORY_WAKEUP,  /* [kernel wakeup] */
};

enum story_state {
	STORY_UNBORN, /* known, and not created yet */
	STORY_RUNNABLE,
	STORY_RUNNING,
	STORY_WAITING,
	STORY_DEAD,
};

struct story_region {
	struct story_region *around;
	uint64_t             task;
	const char          *name;
	uint64_t             number; /* for whoever listens */
};

/* Somebody who is born while the trace runs. */
struct story_later {
	struct story_later        *next;
	const struct trace_thread *info;
};

/* A kernel id; threads come and go under it. */
struct story_slot {
	struct story_thread *thread; /* the last one; NULL: none yet */
	struct story_later  *later;  /* not used yet, in the order of birth */
	uint32_t             claims; /* the CPU it was on since the start, or STORY_NO_CPU */
	uint8_t              first;  /* 1 + enum trace_type of its first record; 0: none */
	void                *writer; /* for whoever listens */
	struct story_thread *caller; /* likewise: who is in a system call there */
};

struct story_thread {
	struct story_slot         *slot;
	int32_t                    tid;
	uint32_t                   serial; /* from 1, never again */
	uint32_t                   cpu;    /* STORY_NO_CPU: it does not run */
	uint32_t                   own_cpu; /* by hooks: its processor */
	uint8_t                    state;  /* enum story_state */
	uint8_t                    reason; /* of the wait it is in, or went into last */
	bool                       waits;  /* it said that it is about to wait */
	bool                       implied; /* nobody told of its creation */
	uint32_t                   wait_stack;
	const struct trace_thread *info; /* NULL: nobody told of it */
	uintptr_t                  routine; /* 0: not known */
	const char                *name, *label; /* "" of none; label: its labels */
	struct story_region       *regions; /* the innermost first */
	uint32_t                   region_count;
	uint64_t                   sequence, label_number; /* for whoever listens */
	const char                *label_told; /* NULL: nothing yet, and there is a name */
};

struct story_event {
	uint64_t             time; /* ns since shortly before the trace's start, from 1 */
	enum story_type      type;
	uint32_t             cpu;
	struct story_thread *on; /* its kernel thread has the cpu; never NULL */
	struct story_thread *other;
	uint8_t              reason; /* enum trace_reason */
	uint8_t              made;   /* enum story_made */
	uint32_t             stack;
	uint64_t             value, parent; /* as in struct trace_record */
	const char          *name, *text;   /* never NULL where they mean something */
};

/* 0, or a negative errno which ends the story. */
typedef int story_event_fn(void *arg, const struct story_event *e);

struct story {
	const struct trace   *trace;
	struct arena          arena;
	story_event_fn       *event;
	void                 *arg;
	int                   error;
	uint64_t              last, clock; /* times: of the last event, of the record */
	uint64_t              base;        /* where the trace's start is */
	struct table          slots, tasks;
	struct story_thread  *main;
	const char           *common;      /* the name that says nothing: of the main thread */
	struct story_thread **cpus;        /* who runs there */
	uint32_t             *free_cpus;
	size_t                cpu_count, cpu_room, free_count;
	uint32_t              serial;
	struct story_region  *free_regions;
	const char *const    *notes; /* logged at the start; NULL at the end */
	uint64_t              dropped, repaired; /* what did not fit, and what was made up for it */
};

/*
 * story_tell - the whole story, event by event
 *
 * The same trace gives the same story, but for the notes.  What event() is given lives
 * until story_end().  notes may be NULL.
 *
 *   returns  0, -ENOMEM, or what event() answered
 */
int  story_tell(struct story *s, const struct trace *t, struct arena_budget *budget,
	const char *const *notes, story_event_fn *event, void *arg);
void story_end(struct story *s);

#endif
