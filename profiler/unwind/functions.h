/*
 * functions.h - where a function begins and ends, and which ones it goes on in.
 */
#ifndef UNWIND_FUNCTIONS_H
#define UNWIND_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"

#define FUNCTIONS_CODE_MAX ((size_t)4096) /* bytes of one function whose jumps are looked for */

struct functions_range {
	uintptr_t begin, end; /* end: where the next one begins, or the object's code ends */
};

/*
 * functions_around - the function around an address, as the object's .eh_frame_hdr has it
 *
 *   returns  false: the address is in no object that the tables know, or before its first function
 *   threads  any; not from a handler
 */
bool functions_around(const struct memory *m, uintptr_t pc, struct functions_range *ret);
/* Functions that f jumps to, which then are on the stack in its place; how many, at most max. */
size_t functions_jumped_to(const struct memory *m, const struct functions_range *f, struct functions_range *ret,
			   size_t max);

#endif
