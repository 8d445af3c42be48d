/*
 * arch_recover.h - any other architecture: functions that keep a frame pointer, and calls of them,
 * by their code.  None is known, so recover.c finds nothing.
 */
#ifndef ARCH_RECOVER_H
#define ARCH_RECOVER_H

#include "tables.h"
#include "recover.h"

/* Where the function begins that pc is in; 0: it does not begin as frames do. */
static inline uintptr_t
arch_function_begin(const struct tables *t, struct unwind_code *c, uintptr_t pc)
{
	(void)t;
	(void)c;
	(void)pc;
	return 0;
}

/* Bytes between the frame pointer and sp, as the function's beginning makes them; below 0: not to
 * be told. */
static inline intptr_t
arch_frame_bytes(struct unwind_code *c, uintptr_t begin)
{
	(void)c;
	(void)begin;
	return -1;
}

/* What the call is of that returns to ra. */
static inline enum unwind_call
arch_call_before(const struct tables *t, struct unwind_code *c, uintptr_t ra, uintptr_t function)
{
	(void)t;
	(void)c;
	(void)ra;
	(void)function;
	return UNWIND_CALL_NONE;
}

#endif
