/*
 * pages.c - memory from mmap(), and a list of what it is for.
 *
 *     note: start ── bytes ── file       found by the address, among NEAR neighbours
 *
 * What a stranger would get wrong: nobody waits here, as a mapping may be made in a handler or
 * inside malloc.  A place is taken by one compare-and-swap; who finds none has his memory all the
 * same, and it is nobody's in the table of resident memory.
 *
 * Tests: tests/base/test_pages.c.
 */
#include <config.h>

#include "pages.h"

#include <stdatomic.h>

#define NEAR  64 /* places that an address may be noted at */
#define TAKEN 1  /* a start while its note is written; no page is there */

static struct {
	_Atomic uintptr_t start; /* 0: free */
	size_t            bytes;
	const char       *file;
} notes[PAGES_KEPT];

__thread int pages_ours __attribute__((tls_model("initial-exec")));

static unsigned
place_of(uintptr_t start, unsigned i)
{
	return ((uint32_t)(start >> 12) * 0x9e3779b1U >> 20) + i;
}

static void
note(const char *file, void *p, size_t bytes)
{
	uintptr_t none;

	for (unsigned i = 0; i < NEAR; i++) {
		unsigned at = place_of((uintptr_t)p, i) % PAGES_KEPT;

		none = 0;
		if (!atomic_compare_exchange_strong(&notes[at].start, &none, TAKEN))
			continue;
		notes[at].bytes = bytes;
		notes[at].file = file;
		atomic_store_explicit(&notes[at].start, (uintptr_t)p, memory_order_release);
		return;
	}
}

static void
forget(void *p)
{
	uintptr_t start;

	for (unsigned i = 0; i < NEAR; i++) {
		start = (uintptr_t)p;
		if (atomic_compare_exchange_strong(&notes[place_of(start, i) % PAGES_KEPT].start, &start, 0))
			return;
	}
}

size_t
pages_noted(unsigned i, uintptr_t *ret_start, const char **ret_file)
{
	uintptr_t start = atomic_load_explicit(&notes[i].start, memory_order_acquire);
	size_t    bytes = notes[i].bytes;

	*ret_start = start;
	*ret_file = notes[i].file;
	atomic_thread_fence(memory_order_acquire);
	return start > TAKEN && atomic_load_explicit(&notes[i].start, memory_order_relaxed) == start ? bytes : 0;
}

void *
pages_map_for(const char *file, size_t bytes, int flags)
{
	void *p;

	pages_ours++;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, (flags & MAP_SHARED ? 0 : MAP_PRIVATE) | MAP_ANONYMOUS | flags, -1, 0);
	pages_ours--;
	if (p == MAP_FAILED)
		return NULL;
	note(file, p, bytes);
	return p;
}

void
pages_unmap(void *p, size_t bytes)
{
	if (!p)
		return;
	forget(p); /* before the address can be another's */
	pages_ours++;
	munmap(p, bytes);
	pages_ours--;
}

void *
pages_resize_for(const char *file, void *array, size_t room, size_t more, size_t item)
{
	size_t bytes;
	void  *p;

	if (__builtin_mul_overflow(more, item, &bytes))
		return NULL;
	if (!room)
		return pages_map_for(file, bytes, 0);
	forget(array);
	pages_ours++;
	p = mremap(array, room * item, bytes, MREMAP_MAYMOVE);
	pages_ours--;
	if (p == MAP_FAILED)
		note(file, array, room * item);
	else
		note(file, p, bytes);
	return p == MAP_FAILED ? NULL : p;
}

void *
pages_grow_for(const char *file, void *array, size_t *room, size_t first, size_t item)
{
	size_t more = *room ? *room * 2 : first;
	void  *p = pages_resize_for(file, array, *room, more, item);

	if (p)
		*room = more;
	return p;
}
