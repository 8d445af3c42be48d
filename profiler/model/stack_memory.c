/*
 * stack_memory.c - where the entries of the stack table lie.
 *
 * Entries are cut from chunks of 256 KiB that come from mmap.  The id of an entry is
 * its place, chunk number and offset; ids inside chunk 0 stand for the pseudo
 * stacks, which take no memory.
 *
 *     id = chunk << 14 | offset in units of 16 bytes
 *     holes[units] --> freed entries of that size, reused before new memory is taken
 *
 * What a stranger would get wrong: holes are split, never joined.  Stacks of one
 * program are of few sizes and come again, and an empty table gives everything back.
 *
 * Tests: tests/model/test_stack_table.c.
 */
#include <config.h>

#include "stack_memory.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "pages.h"
#include "stack_table.h"

#define LIMIT_DEFAULT_BYTES ((size_t)32 << 20) /* --profiling-memory's default */
#define LIMIT_MAX_BYTES     ((size_t)4 << 30)  /* what an id of 32 bits can name */
#define UNIT_BYTES          16
#define CHUNK_UNIT_BITS     14
#define CHUNK_BYTES         ((size_t)UNIT_BYTES << CHUNK_UNIT_BITS)
#define CHUNKS_MAX          (LIMIT_MAX_BYTES / CHUNK_BYTES)
#define CHUNK_UNIT_MASK     ((1U << CHUNK_UNIT_BITS) - 1)

#define ENTRY_UNITS(n) ((sizeof(struct stack_entry) + (n) * sizeof(uintptr_t) + UNIT_BYTES - 1) / UNIT_BYTES)
#define UNITS_MIN      ENTRY_UNITS(1)
#define UNITS_MAX      ENTRY_UNITS(STACK_FRAMES_MAX)

static struct {
	_Atomic(struct stack_entry *) chunks[CHUNKS_MAX]; /* [0] stays NULL: pseudo stacks */
	uint32_t                      holes[UNITS_MAX + 1];
	uint32_t                      chunk_last;
	uint32_t                      chunk_used; /* units of the last chunk */
	_Atomic size_t                bytes;
} memory; /* 128 KiB: with any of it set, the library's file would carry them */

static _Atomic size_t limit = LIMIT_DEFAULT_BYTES;

struct stack_entry *
stack_memory_at(uint32_t id)
{
	struct stack_entry *chunk;

	chunk = atomic_load_explicit(&memory.chunks[id >> CHUNK_UNIT_BITS], memory_order_acquire);
	return (struct stack_entry *)((char *)chunk + (size_t)(id & CHUNK_UNIT_MASK) * UNIT_BYTES);
}

void *
stack_memory_map(size_t size)
{
	void *mem = NULL;
	int   saved = errno;

	if (atomic_load(&memory.bytes) + size <= atomic_load(&limit))
		mem = pages_map(size);
	errno = saved;
	if (!mem)
		return NULL;
	atomic_fetch_add(&memory.bytes, size);
	return mem;
}

void
stack_memory_unmap(void *mem, size_t size)
{
	int saved = errno;

	pages_unmap(mem, size);
	atomic_fetch_sub(&memory.bytes, size);
	errno = saved;
}

static void
hole_add(uint32_t id, uint32_t units)
{
	struct stack_entry *e = stack_memory_at(id);

	e->units = units;
	e->next = memory.holes[units];
	memory.holes[units] = id;
}

/* A hole of at least so many units, cut to size; 0 when there is none. */
static uint32_t
hole_take(uint32_t units)
{
	struct stack_entry *e;
	uint32_t      size, id;

	for (size = units; size <= UNITS_MAX; size++) {
		/* A rest must be able to hold an entry itself. */
		if (memory.holes[size] == 0 || (size != units && size < units + UNITS_MIN))
			continue;
		id = memory.holes[size];
		e = stack_memory_at(id);
		memory.holes[size] = e->next;
		if (size > units)
			hole_add(id + units, size - units);
		e->units = units;
		return id;
	}
	return 0;
}

/* What is left of the last chunk becomes holes before a new one is begun. */
static bool
chunk_begin(void)
{
	uint32_t left = (1U << CHUNK_UNIT_BITS) - memory.chunk_used;
	uint32_t id = memory.chunk_last << CHUNK_UNIT_BITS | memory.chunk_used;
	void    *mem;

	if (memory.chunk_last + 1 >= CHUNKS_MAX)
		return false;
	mem = stack_memory_map(CHUNK_BYTES);
	if (!mem)
		return false;
	if (memory.chunk_last > 0 && left >= UNITS_MIN)
		hole_add(id, left); /* less than was asked for, so at most UNITS_MAX */
	memory.chunk_last++;
	memory.chunk_used = 0;
	atomic_store_explicit(&memory.chunks[memory.chunk_last], mem, memory_order_release);
	return true;
}

uint32_t
stack_memory_take(unsigned pc_count)
{
	uint32_t units = ENTRY_UNITS(pc_count), id;

	id = hole_take(units);
	if (id)
		return id;
	if (memory.chunk_last == 0 || memory.chunk_used + units > 1U << CHUNK_UNIT_BITS)
		if (!chunk_begin())
			return 0;
	id = memory.chunk_last << CHUNK_UNIT_BITS | memory.chunk_used;
	memory.chunk_used += units;
	stack_memory_at(id)->units = units;
	return id;
}

size_t
stack_memory_entry_bytes(unsigned pc_count)
{
	return ENTRY_UNITS(pc_count) * UNIT_BYTES;
}

void
stack_memory_give(uint32_t id)
{
	hole_add(id, stack_memory_at(id)->units);
}

void
stack_memory_reset(void)
{
	uint32_t i;

	for (i = 1; i <= memory.chunk_last; i++) {
		stack_memory_unmap(atomic_load(&memory.chunks[i]), CHUNK_BYTES);
		atomic_store(&memory.chunks[i], NULL);
	}
	memory.chunk_last = 0;
	memory.chunk_used = 0;
	memset(memory.holes, 0, sizeof(memory.holes));
}

void
stack_memory_set_limit(size_t limit_bytes)
{
	if (limit_bytes > LIMIT_MAX_BYTES - CHUNK_BYTES)
		limit_bytes = LIMIT_MAX_BYTES - CHUNK_BYTES;
	atomic_store(&limit, limit_bytes);
}

size_t
stack_memory_limit(void)
{
	return atomic_load(&limit);
}

size_t
stack_memory_bytes(void)
{
	return atomic_load(&memory.bytes);
}
