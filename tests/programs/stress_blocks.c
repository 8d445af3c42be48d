/*
 * stress_blocks.c - blocks from every function of malloc's family, filled to the
 * last byte and checked before they go, by the thread that made them or another.
 */
#include "stress.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS        64
#define OPERATIONS   400
#define EXCHANGE     128
#define LARGE_ONE_IN 200
#define LARGE_BYTES  700000 /* above glibc's mmap threshold */
#define SMALL_BYTES  3000

struct block {
	size_t        size;
	unsigned char fill;
	unsigned char bytes[];
};
#define HEAD offsetof(struct block, bytes)

static _Atomic(struct block *) exchange[EXCHANGE];

static void
check(const struct block *b, size_t size, const char *when)
{
	for (size_t i = 0; i < size; i++)
		if (b->bytes[i] != b->fill) {
			stress_wrong("%s: byte %zu of %zu in %p is %#x, not %#x", when, i, b->size, (const void *)b,
				b->bytes[i], b->fill);
			return;
		}
}

static struct block *
fill(struct block *b, size_t size, uint64_t *random)
{
	if (!b) {
		stress_wrong("no memory for %zu bytes", size);
		abort();
	}
	if (malloc_usable_size(b) < HEAD + size)
		stress_wrong("a block of %zu bytes has %zu", HEAD + size, malloc_usable_size(b));
	b->size = size;
	b->fill = (unsigned char)stress_random(random);
	memset(b->bytes, b->fill, size);
	return b;
}

static struct block *
zeroed(size_t size)
{
	struct block *b = calloc(1, HEAD + size);

	for (size_t i = 0; b && i < HEAD + size; i++)
		if (((unsigned char *)b)[i]) {
			stress_wrong("calloc of %zu: byte %zu is not 0", HEAD + size, i);
			break;
		}
	return b;
}

static struct block *
aligned(size_t size, uint64_t *random)
{
	size_t align = (size_t)16 << stress_random(random) % 9;
	void  *b = NULL;

	switch (stress_random(random) % 4) {
	case 0: b = memalign(align, HEAD + size); break;
	case 1: b = aligned_alloc(align, (HEAD + size + align - 1) & ~(align - 1)); break;
	case 2: b = valloc(HEAD + size); align = 4096; break;
	default:
		if (posix_memalign(&b, align, HEAD + size))
			b = NULL;
	}
	if ((uintptr_t)b % align)
		stress_wrong("%p is not aligned to %zu", b, align);
	return b;
}

static size_t
size_draw(uint64_t *random)
{
	return 1 + stress_random(random) % (stress_random(random) % LARGE_ONE_IN == 0 ? LARGE_BYTES : SMALL_BYTES);
}

static struct block *
make(uint64_t *random)
{
	size_t size = size_draw(random);

	switch (stress_random(random) % 3) {
	case 0: return fill(malloc(HEAD + size), size, random);
	case 1: return fill(zeroed(size), size, random);
	default: return fill(aligned(size, random), size, random);
	}
}

static void
drop(struct block *b)
{
	if (!b)
		return;
	check(b, b->size, "free");
	memset(b->bytes, 0xee, b->size);
	free(b);
}

/* Grown or shrunk by either of the two; what both sizes have in common stays. */
static struct block *
resize(struct block *b, uint64_t *random)
{
	size_t        size = size_draw(random), common = b->size < size ? b->size : size, old = b->size;
	struct block *moved;

	moved = stress_random(random) % 2 ? realloc(b, HEAD + size) : reallocarray(b, 1, HEAD + size);
	if (!moved || moved->size != old) {
		stress_wrong("realloc from %zu to %zu lost the block", old, size);
		abort();
	}
	check(moved, common, "realloc");
	return fill(moved, size, random);
}

void
stress_blocks(uint64_t *random)
{
	struct block *b[SLOTS] = { NULL };

	for (int i = 0; i < OPERATIONS; i++) {
		unsigned k = stress_random(random) % SLOTS;

		if (b[k] && stress_random(random) % 3 == 0) {
			b[k] = resize(b[k], random);
		} else {
			drop(b[k]);
			b[k] = make(random);
		}
	}
	for (int k = 0; k < SLOTS; k++)
		drop(b[k]);
}

void
stress_blocks_few(uint64_t *random)
{
	struct block *b[4];

	for (int i = 0; i < 4; i++)
		b[i] = make(random);
	b[0] = resize(b[0], random);
	for (int i = 0; i < 4; i++)
		drop(b[i]);
}

/* What one thread made another one ends. */
void
stress_hand_over(uint64_t *random)
{
	struct block *b;

	for (int i = 0; i < OPERATIONS; i++) {
		b = atomic_exchange(&exchange[stress_random(random) % EXCHANGE], make(random));
		if (b && stress_random(random) % 4 == 0)
			b = resize(b, random);
		drop(b);
	}
}

void
stress_blocks_end(void)
{
	for (int i = 0; i < EXCHANGE; i++)
		drop(atomic_exchange(&exchange[i], NULL));
}
