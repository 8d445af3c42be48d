/*
 * early.c - blocks for the short time in which the next allocator is looked up.
 *
 * dlsym() allocates when a name is not there.  That call arrives here in the
 * middle of next_resolve(); it gets a piece of a static buffer, which free() and
 * realloc() recognise: until the lookup is over every block is looked at.  Should
 * one from here outlive the lookup, that stays so (early_blocks), which costs time
 * but is correct.
 */
#include "hook.h"

#define EARLY_BYTES 16384 /* dlerror's results and strings: below 1 KiB each */

struct early_block {
	size_t size;
	size_t unused; /* keeps the block aligned to 16 */
	char   data[];
};

static char   buffer[EARLY_BYTES] __attribute__((aligned(4096)));
static size_t used;

int
early_owns(const void *block)
{
	return (uintptr_t)block - (uintptr_t)buffer < sizeof(buffer);
}

/* Zeroed: nothing is ever given out twice. */
void *
early_malloc(size_t size, size_t align)
{
	struct early_block *b;
	size_t              at;

	if (align < 16)
		align = 16;
	at = (used + sizeof(*b) + align - 1) / align * align;
	if (size > sizeof(buffer) || at + size > sizeof(buffer))
		return NULL;
	used = at + size;
	b = (struct early_block *)(buffer + at - sizeof(*b));
	b->size = size;
	__atomic_add_fetch(&hooks_self.early_blocks, 1, __ATOMIC_RELAXED);
	return b->data;
}

size_t
early_size(const void *block)
{
	return ((const struct early_block *)((const char *)block - sizeof(struct early_block)))->size;
}

void
early_free(void *block)
{
	(void)block;
	if (__atomic_sub_fetch(&hooks_self.early_blocks, 1, __ATOMIC_RELAXED) == 0 && hooks_self.resolved &&
		!hooks_self.release) {
		hooks_self.range_start = UINTPTR_MAX; /* nothing to look for any more */
		hooks_self.range_size = 0;
	}
}
