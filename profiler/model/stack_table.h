/*
 * stack_table.h - every stack once, shared by all profiles, counted references.
 *
 * A stack is an array of call addresses, leaf first: the exact pc for a leaf that
 * was interrupted, return address - 1 for every caller.  Addresses below
 * STACK_PSEUDO_MAX are not code but our own words, see stack_pseudo_name().  What
 * comes out of the table has tags, see generations.h; symbols.h understands them.
 */
#ifndef MODEL_STACK_TABLE_H
#define MODEL_STACK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_FRAMES_MAX 128 /* deeper stacks keep their leaf side and are counted */

enum stack_pseudo {
	STACK_PSEUDO_LOST = 1,   /* [lost samples] */
	STACK_PSEUDO_FULL,       /* [stack table full] */
	STACK_PSEUDO_TRUNCATED,  /* [truncated] */
	STACK_PSEUDO_SILENT,     /* [no answer], of a thread that is dumped */
	STACK_PSEUDO_RUNNING,    /* [running], on a processor or waiting for one, where is not known */
	STACK_PSEUDO_ENDED,      /* [end of thread], of what was told when it ended: its last place is not known */
	STACK_PSEUDO_MAX
};

const char *stack_pseudo_name(uintptr_t pc); /* NULL for real code */

/* limit_bytes: --profiling-memory.  May be called again to change the limit. */
void stack_table_set_limit(size_t limit_bytes);
/* Interns, taking one reference; a full table answers the id of [stack table
 * full].  Never 0.  Any thread, from malloc hooks too: no malloc inside, a lock
 * that is never held while anything of the daemon runs; NOT from signal handlers. */
uint32_t stack_table_add(const uintptr_t *pcs, unsigned count);
/* The same, with another limit to the wait for that lock (stack_lock.h); STACK_PSEUDO_LOST where that is
 * over. */
uint32_t stack_table_add_within(const uintptr_t *pcs, unsigned count, long wait_ns);
void     stack_table_ref(uint32_t id);
void     stack_table_unref(uint32_t id);
/* The reference of a stack or label set is to be held for ever.  Its bytes go to *kept, once for each; false: that
 * would be more than max.  For one collector alone, under a lock of its own. */
bool     stack_table_keep(uint32_t id, size_t *kept, size_t max);
/* Borrowed while a reference is held. */
const uintptr_t *stack_table_pcs(uint32_t id, unsigned *ret_count);
size_t   stack_table_bytes(void);

/*
 * Label sets (labels.h) are words like any other: they lie among the stacks, and are
 * counted, given back and borrowed as these are.
 *
 * They may take bytes_max in all; with 0 there are none.  Returns 0 where there is no room,
 * STACK_PSEUDO_LOST where the lock could not be had, for this thread has it already, or not
 * within STACK_LOCK_PATIENT_NS.
 * Not from handlers, nor within malloc.
 */
uint32_t stack_table_add_labels(const uintptr_t *words, unsigned count, size_t bytes_max);
size_t   stack_table_labels_bytes(void);
size_t   stack_table_limit(void);

/* Calls fn while no stack is being added; false: the lock could not be had. */
bool     stack_table_exclusively(void (*fn)(void *arg), void *arg);

#endif
