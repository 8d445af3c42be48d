/*
 * want.h - addresses that walks did not know, until refresh.c has asked.
 */
#ifndef UNWIND_WANT_H
#define UNWIND_WANT_H

#include <stdbool.h>
#include <stdint.h>

/* A walk met a pc that is no code as far as is known: signal-safe, wakes the thread of
 * refresh.c at most once. */
void unwind_want(uintptr_t pc);
/* Signal-safe: notes the address; false: it was noted lately, and found to be nothing. */
bool unwind_want_note(uintptr_t pc);
/* ---- for the one thread of refresh.c ---- */

/* Asks about all that are noted; query is maps_query_open()'s, or negative.  True: a look at
 * all mappings is needed. */
bool unwind_want_settle(int query);
/* After it: what is still unknown is nothing, for a while. */
void unwind_want_looked(void);
/* Is any noted? */
bool unwind_want_any(void);
/* All that was found to be nothing may be something by now. */
void unwind_want_forget(void);

#endif
