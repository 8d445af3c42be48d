/*
 * first_tables.h - the first tables of a process are put off until somebody needs them.
 */
#ifndef UNWIND_FIRST_TABLES_H
#define UNWIND_FIRST_TABLES_H

#include <stdatomic.h>
#include <stdbool.h>

/* Not 0: tables are wanted and not made yet; a futex. */
extern atomic_uint unwind_first_owed;

static inline bool
unwind_first_is_owed(void)
{
	return atomic_load_explicit(&unwind_first_owed, memory_order_relaxed) != 0;
}

/* From now on they are owed. */
void unwind_first_owe(void);
/* Makes them now if they are owed, else 0; or a negative errno, then walks are by frame
 * pointers.  Whoever waits goes on.  From a thread of ours, or before a window or a dump. */
int  unwind_first_make(void);
/* Nobody makes them any more, and nobody waits. */
void unwind_first_forget(void);
/* Has them made, and waits for it, at most WAIT_NS: from a hook, which has a sample and needs
 * its stack.  Not from a handler: whoever has one run calls unwind_ready() before. */
void unwind_first_wait(void);

#endif
