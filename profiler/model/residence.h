/*
 * residence.h - what the process's resident memory is for: a table whose rows add up.
 *
 * Each page that smaps counts is in one row.  What a row says beyond that (in use, free) are the
 * allocator's own figures, of bytes that need not be resident: estimates.
 */
#ifndef MODEL_RESIDENCE_H
#define MODEL_RESIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "table.h"

#define RESIDENCE_MEMORY_MAX ((size_t)64 << 20) /* bytes of one table: a quarter of a million rows */
#define RESIDENCE_WORDS_MAX  8                  /* notes, and sentences of advice */

enum residence_class {
	RESIDENCE_HEAP,     /* by arena */
	RESIDENCE_MAPPINGS, /* by the stack that made them */
	RESIDENCE_STACKS,   /* by thread */
	RESIDENCE_FILES,
	RESIDENCE_SHARED,   /* memory, by name */
	RESIDENCE_OURS,     /* by purpose */
	RESIDENCE_UNEXPLAINED,
	RESIDENCE_CLASSES
};

struct residence_row {
	enum residence_class class;
	const char *name;     /* the table's, clean; "" where stack says all */
	const char *raw;      /* as it came, by which it is found again */
	uint32_t    stack;    /* a reference; 0: none */
	uint64_t    resident, mapped; /* bytes */
	int64_t     in_use, free;     /* bytes, estimates; -1: not known */
};

struct residence {
	struct arena_budget   budget;
	struct arena          arena;
	struct table          index; /* of rows, by class and name or stack */
	struct residence_row *rows;
	size_t                count, room;
	uint64_t              resident, mapped, swapped; /* bytes, of all */
	bool                  left_behind; /* the allocator has not answered */
	const char           *allocator;   /* "glibc"; "": not known.  Constant */
	const char           *notes[RESIDENCE_WORDS_MAX], *advice[RESIDENCE_WORDS_MAX]; /* up to NULL */
};

void residence_init(struct residence *r);
/* The number of the row of this name, or of this stack (then a reference is taken), made if need
 * be; -ENOMEM. */
int  residence_row(struct residence *r, enum residence_class class, const char *name, uint32_t stack);
/* A sentence; one too many, or without memory, is lost. */
void residence_note(struct residence *r, const char **list, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* "heap" */
const char *residence_class_name(enum residence_class class);
/* Sums of a class. */
struct residence_row residence_sum(const struct residence *r, enum residence_class class);
/* By class, the largest first.  Rows change their numbers. */
void residence_sort(struct residence *r);
/* References and memory. */
void residence_release(struct residence *r);

#endif
