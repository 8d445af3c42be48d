/*
 * generations_ranges.h - what hooks read of the objects, as it is made and exchanged.
 */
#ifndef MODEL_GENERATIONS_RANGES_H
#define MODEL_GENERATIONS_RANGES_H

#include "generations.h"

enum mark { MARK_SAME, MARK_OTHER, MARK_UNMAPPED };
enum mark mark_look(uintptr_t at, uint32_t is);

/* Code that has no record, as much as joins. */
struct generations_other {
	uintptr_t start, limit;
};

/* All under the lock of generations.c.  Of the records and the code that has none; NULL: no memory. */
struct generations_published *generations_ranges_make(const struct generation *all, size_t count,
						       const struct generations_other *others, size_t other_count,
						       uint16_t next_tag);
/* These two under the stack table's lock as well; arg: a pointer to what was made, which hooks read
 * from now on, or to where what they have read goes, of which they read no more. */
void generations_ranges_show(void *arg);
void generations_ranges_hide(void *arg);
bool generations_ranges_shown(void);
/* Has next_tag been given since? */
bool generations_ranges_given(void);
/* Room for so many, so that the next one to be shown need not be mapped. */
void generations_ranges_reserve(size_t count);
/* Gives back what was hidden, and what is kept to be used again. */
void generations_ranges_release(struct generations_published *old);

#endif
