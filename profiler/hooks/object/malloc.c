/*
 * malloc.c - the replaceable allocation functions: what every call runs through.
 *
 * malloc counts its size down in a word of its thread.  free asks a filter for the block's address, on
 * or off.  Whatever else there is to do happens in cold.c, where these functions jump,
 * so that the stack there still looks as if the caller had called the cold function itself.
 *
 *     malloc ── bytes left ─────────> next malloc
 *           └── none left ── off ───> next malloc
 *                        └── on ────> cold_malloc ──> core
 *     free ──── not in the filter ──> next free
 *         └──── perhaps a sample ───> cold_free ────> core ──> next free
 *
 * What a stranger would get wrong:
 * - A size above PTRDIFF_MAX makes the countdown go up, by what it is less than 2^64: malloc(-1) by
 *   one byte, malloc(INT32_MIN) by 2 GiB, of which this thread takes no sample then.  That call fails
 *   anyway, and no check for it is worth an instruction in all others.
 * - calloc() multiplies without looking at overflow: only the countdown sees that
 *   product.  cold.c and the next calloc look.
 * - Every call to the next function is a tail call: nothing may follow it, not
 *   even a look at its result.
 * - free() cannot ask heap_state: a block sampled while on is freed while off.
 * - Until the next allocator is known, next[] leads to cold.c, as the program's malloc_entry does.
 * - Hooks that are linked in are there whether the program is ever profiled or not: malloc is one jump while
 *   off, and two while on.  The agent is there to sample: its malloc is one jump while on, which saves redis
 *   0.3 % (bench/README.md), and eight instructions more while off.  Its free() asks for NULL first (below).
 *
 * Why not a thread-local function table or a patched GOT: the first costs a load
 * more, the second misses calls from objects loaded later.  Why not a range of addresses for
 * sampled blocks, which free() knows by one comparison: it took three instructions less, and
 * an allocator of our own, whose blocks behaved like nobody else's.
 * Tests: tests/hooks/interposition.t counts the calls of each name, tests/hooks/cost.t the
 * instructions.
 */
#include "object.h"

#include <errno.h>

#ifdef HOOKS_PROGRAM

static void *(*malloc_entry)(size_t size) = cold_malloc;

void *
hook_malloc(size_t size)
{
	return malloc_entry(size);
}

static void *
malloc_counting(size_t size)
{
	if (COUNTED_DOWN(size))
		return cold_malloc(size);
	return NEXT(malloc)(size);
}

void
malloc_set_state(uint32_t state)
{
	__atomic_store_n(&malloc_entry, state == HOOKS_ON ? malloc_counting : NEXT(malloc), __ATOMIC_RELEASE);
}

#else

/* What runs out while off is no sample's: the next gap is the first one again. */
void *
hook_malloc(size_t size)
{
	if (COUNTED_DOWN(size)) {
		if (hooks_self.heap_state != HOOKS_OFF)
			return cold_malloc(size);
		hooks_thread.rate = 0;
	}
	return NEXT(malloc)(size);
}

void
malloc_set_state(uint32_t state)
{
	(void)state;
}

#endif

void *
hook_calloc(size_t count, size_t size)
{
	if (SAMPLED(count * size))
		return cold_calloc(count, size);
	return NEXT(calloc)(count, size);
}

void *
hook_realloc(void *block, size_t size)
{
	if (SAMPLED(size) || OURS(block))
		return cold_realloc(block, size);
	return NEXT(realloc)(block, size);
}

/* Not the next one's: many allocators have none, and glibc's would call us. */
void *
hook_reallocarray(void *block, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	if (SAMPLED(bytes) || OURS(block))
		return cold_reallocarray(block, bytes);
	return MAKER(realloc)(block, bytes);
}

/* Programs free NULL often: a query to PostgreSQL does so 96 times.  The agent asks for it before the filter:
 * other blocks pay one instruction, and such a query takes 0.3 % less (bench/README.md).  Where hooks are
 * linked in, the filter says yes of NULL (abi.h), and other blocks pay nothing. */
void
hook_free(void *block)
{
	size_t low = hooks_filter_low(block);

#ifndef HOOKS_PROGRAM
	if (UNLIKELY(low == 0)) {
		__asm__(""); /* Without this, GCC joins both questions: three instructions where one does. */
		if (!block)
			return;
	}
#endif
	if (UNLIKELY(hooks_filter.low[low])) {
		if (LIKELY(!block))
			return;
		if (hooks_filter.hashed[HOOKS_FILTER_HASH(block)]) {
			cold_free(block);
			return;
		}
	}
	NEXT(free)(block);
}

void
hook_cfree(void *block)
{
	if (OURS(block))
		cold_cfree(block);
	else
		MAKER(free)(block);
}

void
hook_free_sized(void *block, size_t size)
{
	(void)size;
	if (OURS(block))
		cold_free_sized(block);
	else
		MAKER(free)(block);
}

void
hook_free_aligned_sized(void *block, size_t align, size_t size)
{
	(void)align;
	(void)size;
	if (OURS(block))
		cold_free_aligned_sized(block);
	else
		MAKER(free)(block);
}

int
hook_posix_memalign(void **ret, size_t align, size_t size)
{
	if (SAMPLED(size))
		return cold_posix_memalign(ret, align, size);
	return NEXT(posix_memalign)(ret, align, size);
}

void *
hook_aligned_alloc(size_t align, size_t size)
{
	if (SAMPLED(size))
		return cold_aligned_alloc(align, size);
	return NEXT(aligned_alloc)(align, size);
}

void *
hook_memalign(size_t align, size_t size)
{
	if (SAMPLED(size))
		return cold_memalign(align, size);
	return NEXT(memalign)(align, size);
}

void *
hook_valloc(size_t size)
{
	if (SAMPLED(size))
		return cold_valloc(size);
	return NEXT(valloc)(size);
}

void *
hook_pvalloc(size_t size)
{
	if (SAMPLED(size))
		return cold_pvalloc(size);
	return NEXT(pvalloc)(size);
}

size_t
hook_malloc_usable_size(void *block)
{
	if (OURS(block))
		return cold_malloc_usable_size(block);
	return NEXT(malloc_usable_size)(block);
}

EXPORT(malloc);
EXPORT(calloc);
EXPORT(realloc);
EXPORT(reallocarray);
EXPORT(free);
EXPORT(cfree);
EXPORT(posix_memalign);
EXPORT(aligned_alloc);
EXPORT(memalign);
EXPORT(valloc);
EXPORT(pvalloc);
#ifdef HOOKS_PROGRAM
/* An older core may own the blocks that it has sampled.  The agent's core is never older: each block is
 * the next allocator's, and redis asks for every block's size several times. */
EXPORT(malloc_usable_size);
#endif
EXPORT(free_sized);
EXPORT(free_aligned_sized);
