/*
 * stack_memory.h - where the entries of the stack table lie.
 *
 * Under the table's lock, but for stack_memory_at(), _limit() and _bytes().
 */
#ifndef MODEL_STACK_MEMORY_H
#define MODEL_STACK_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct stack_entry {
	_Atomic uint32_t state; /* references << 1 | ENTRY_DEAD_LISTED */
	uint32_t         hash;
	uint32_t         next;  /* id; in its bucket, or among the holes */
	uint32_t         dead_next;
	uint16_t         count; /* of pcs */
	uint16_t         units; /* of 16 bytes, header included */
	uint16_t         labels; /* not a stack but a label set, see labels.h */
	uint16_t         kept;   /* see stack_table_keep() */
	uintptr_t        pcs[];
};

/* Borrowed while a reference is held. */
struct stack_entry *stack_memory_at(uint32_t id);
/* Room for an entry of so many pcs: its id, above all pseudo stacks', or 0. */
uint32_t stack_memory_take(unsigned pc_count);
/* What one of so many pcs takes. */
size_t   stack_memory_entry_bytes(unsigned pc_count);
/* Room to be used again. */
void     stack_memory_give(uint32_t id);
/* No entry lives: all chunks go back to the kernel. */
void     stack_memory_reset(void);
/* Mappings that count towards the limit, too; NULL beyond it. */
void    *stack_memory_map(size_t size);
void     stack_memory_unmap(void *mem, size_t size);
void     stack_memory_set_limit(size_t limit_bytes);
size_t   stack_memory_limit(void);
size_t   stack_memory_bytes(void);

#endif
