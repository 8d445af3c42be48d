/*
 * heap_run.h - the pages of the range, in runs: a slab, a large block, or free.
 *
 * For heap_range.c alone, under heap_lock(), but for what it says itself.
 */
#ifndef COLLECT_HEAP_RUN_H
#define COLLECT_HEAP_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap_site.h"

#define HEAP_PAGE 4096 /* bytes; the unit of runs, whatever the kernel's page is */

enum heap_run_kind { RUN_UNUSED, RUN_FREE, RUN_SLAB, RUN_LARGE, RUN_LEAVING };

struct heap_run {
	uint32_t start, pages;
	uint32_t kind;
	uint32_t clean;      /* free or large: was all zero when taken */
	uint32_t next, prev; /* in a bin, or among its class's slabs with room */
	uint32_t class;
	uint32_t slots, used, untouched, free; /* of a slab; untouched: first never used */
	struct heap_block block; /* of a large one */
};

struct heap_runs {
	char          *start;
	_Atomic size_t size;   /* bytes ours, from the start */
	_Atomic size_t opened; /* bytes readable and writable */
	uint32_t       top;    /* first page never used */
	uint32_t      *owner;  /* run of each page: every page of a slab, first and last of others */
};

extern struct heap_runs heap_runs;

/* Once; 0 or a negative errno. */
int              heap_runs_reserve(size_t bytes);
/* Gives back what was never opened; takes it again, or less.  Under heap_lock(), or in a child. */
void             heap_runs_shrink(void);
void             heap_runs_grow(void);
struct heap_run *heap_run_at(uint32_t number);
char            *heap_run_memory(const struct heap_run *r);

/* A run's number, 0 without room.  It begins at a multiple of align pages. */
uint32_t heap_run_allocate(uint32_t pages, uint32_t align, enum heap_run_kind kind);
void     heap_run_free(uint32_t number);
/* Makes a run longer by what is free behind it; false if that is too little. */
bool     heap_run_extend(uint32_t number, uint32_t pages);
/* Cuts pages off its end; without memory for that they stay. */
void     heap_run_trim(uint32_t number, uint32_t pages);

void     heap_run_list_add(uint32_t *head, uint32_t number);
void     heap_run_list_remove(uint32_t *head, uint32_t number);

#endif
