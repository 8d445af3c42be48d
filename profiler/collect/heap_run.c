/*
 * heap_run.c - which pages of the range are whose.
 *
 *     range: | slab | large block          | free | slab | untouched ... (no access)
 *     owner:   7  7   12 ?  ?  ?  ?  ?  12   3  3   9
 *
 * Runs are numbers of structs that never move, so that a reader without the lock
 * may hold one.  Free runs lie in bins by length; a run that becomes free joins free
 * neighbours.  What no run fits is taken from the untouched end, which is opened
 * step by step.
 *
 * What a stranger would get wrong:
 * - Entries of pages inside a large run are old, of whatever was there before; who looks
 *   up a page must see whether it lies within.
 * - Address space that nobody touches is not for nothing: a process that limits its own
 *   (RLIMIT_AS), or locks its memory within RLIMIT_MEMLOCK, has it counted.  Who does not
 *   sample gives the untouched end back, and gets it again as far as it is still free.
 * Tests: tests/test_heap_range.c.
 */
#include <config.h>

#include "heap_run.h"

#include <errno.h>
#include <sys/mman.h>

#include "heap_range.h"

#define OPEN_BYTES ((size_t)1 << 20) /* opened at a time: few system calls, little commit */
#define CHUNK      4096              /* runs in a chunk */
#define CHUNKS     (HEAP_RANGE_MAX / HEAP_PAGE / CHUNK + 1)
#define GROW_BYTES ((size_t)64 << 20) /* less is not worth a mapping */
#define BINS       64                /* free runs of 1 .. 63 pages, larger ones in bin 0 */

struct heap_runs heap_runs;

static size_t           reserved; /* bytes, at first */
static struct heap_run *chunks[CHUNKS];
static uint32_t         count;
static uint32_t         unused; /* list by next */
static uint32_t         bins[BINS];

struct heap_run *
heap_run_at(uint32_t number)
{
	return &chunks[number / CHUNK][number % CHUNK];
}

static void *
map(size_t size)
{
	int   saved = errno;
	void *mem;

	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	errno = saved;
	return mem == MAP_FAILED ? NULL : mem;
}

static uint32_t
run_new(void)
{
	uint32_t number = unused;

	if (number) {
		unused = heap_run_at(number)->next;
		return number;
	}
	number = count + 1; /* 0 is none */
	if (!chunks[number / CHUNK])
		chunks[number / CHUNK] = map(CHUNK * sizeof(struct heap_run));
	if (!chunks[number / CHUNK])
		return 0;
	count = number;
	return number;
}

static void
run_drop(uint32_t number)
{
	heap_run_at(number)->kind = RUN_UNUSED;
	heap_run_at(number)->next = unused;
	unused = number;
}

static void
run_owns(uint32_t number, bool every_page)
{
	struct heap_run *r = heap_run_at(number);

	heap_runs.owner[r->start] = number;
	heap_runs.owner[r->start + r->pages - 1] = number;
	for (uint32_t i = 1; every_page && i + 1 < r->pages; i++)
		heap_runs.owner[r->start + i] = number;
}

void
heap_run_list_add(uint32_t *head, uint32_t number)
{
	struct heap_run *r = heap_run_at(number);

	r->prev = 0;
	r->next = *head;
	if (*head)
		heap_run_at(*head)->prev = number;
	*head = number;
}

void
heap_run_list_remove(uint32_t *head, uint32_t number)
{
	struct heap_run *r = heap_run_at(number);

	if (r->prev)
		heap_run_at(r->prev)->next = r->next;
	else
		*head = r->next;
	if (r->next)
		heap_run_at(r->next)->prev = r->prev;
}

static uint32_t *
bin_of(uint32_t pages)
{
	return &bins[pages < BINS ? pages : 0];
}

/* The free run that owns a page, or 0. */
static uint32_t
free_at(uint32_t page)
{
	uint32_t number = page < heap_runs.top ? heap_runs.owner[page] : 0;

	return number && heap_run_at(number)->kind == RUN_FREE ? number : 0;
}

/* Joins the run with free neighbours and puts it into its bin. */
void
heap_run_free(uint32_t number)
{
	struct heap_run *r = heap_run_at(number), *other;
	uint32_t    neighbour;

	neighbour = r->start > 0 ? free_at(r->start - 1) : 0;
	if (neighbour) {
		other = heap_run_at(neighbour);
		heap_run_list_remove(bin_of(other->pages), neighbour);
		r->start = other->start;
		r->pages += other->pages;
		r->clean &= other->clean;
		run_drop(neighbour);
	}
	neighbour = free_at(r->start + r->pages);
	if (neighbour) {
		other = heap_run_at(neighbour);
		heap_run_list_remove(bin_of(other->pages), neighbour);
		r->pages += other->pages;
		r->clean &= other->clean;
		run_drop(neighbour);
	}
	r->kind = RUN_FREE;
	run_owns(number, false);
	heap_run_list_add(bin_of(r->pages), number);
}

static bool
open_up_to(size_t bytes)
{
	size_t to = (bytes + OPEN_BYTES - 1) / OPEN_BYTES * OPEN_BYTES;
	int    saved = errno;

	if (bytes <= heap_runs.opened)
		return true;
	if (to > heap_runs.size)
		to = heap_runs.size;
	if (bytes > to || mprotect(heap_runs.start + heap_runs.opened, to - heap_runs.opened, PROT_READ | PROT_WRITE) < 0) {
		errno = saved;
		return false;
	}
	heap_runs.opened = to;
	return true;
}

/* A run from the untouched end of the heap_runs. */
static uint32_t
run_from_top(uint32_t pages)
{
	uint32_t number;

	if (pages > heap_runs.size / HEAP_PAGE - heap_runs.top || !open_up_to(((size_t)heap_runs.top + pages) * HEAP_PAGE))
		return 0;
	number = run_new();
	if (!number)
		return 0;
	*heap_run_at(number) = (struct heap_run){ .start = heap_runs.top, .pages = pages, .clean = 1 };
	heap_runs.top += pages;
	return number;
}

void
heap_run_trim(uint32_t number, uint32_t pages)
{
	struct heap_run *r = heap_run_at(number);
	uint32_t    rest = r->pages > pages ? run_new() : 0;

	if (!rest)
		return;
	*heap_run_at(rest) = (struct heap_run){ .start = r->start + pages, .pages = r->pages - pages, .clean = r->clean };
	r->pages = pages;
	run_owns(number, false); /* so that the rest does not join it */
	heap_run_free(rest);
}

static uint32_t
run_from_bins(uint32_t pages)
{
	uint32_t number = 0, at, best = UINT32_MAX;

	for (uint32_t p = pages; p < BINS && !number; p++)
		number = p ? bins[p] : 0;
	for (at = number ? 0 : bins[0]; at; at = heap_run_at(at)->next)
		if (heap_run_at(at)->pages >= pages && heap_run_at(at)->pages < best) {
			number = at;
			best = heap_run_at(at)->pages;
		}
	if (number)
		heap_run_list_remove(bin_of(heap_run_at(number)->pages), number);
	return number;
}

/* Gives back so many pages of its beginning; false without memory. */
static bool
run_behead(uint32_t number, uint32_t pages)
{
	struct heap_run *r = heap_run_at(number);
	uint32_t         head = pages ? run_new() : 0;

	if (!head)
		return pages == 0;
	*heap_run_at(head) = (struct heap_run){ .start = r->start, .pages = pages, .clean = r->clean };
	r->start += pages;
	r->pages -= pages;
	run_owns(number, false); /* so that the head does not join it */
	heap_run_free(head);
	return true;
}

uint32_t
heap_run_allocate(uint32_t pages, uint32_t align, enum heap_run_kind kind)
{
	uint32_t  extra = align > 1 ? align - 1 : 0, number;
	uintptr_t at;

	if (pages > heap_runs.size / HEAP_PAGE || extra > heap_runs.size / HEAP_PAGE)
		return 0;
	number = run_from_bins(pages + extra);
	if (!number)
		number = run_from_top(pages + extra);
	if (!number)
		return 0;
	heap_run_at(number)->kind = kind;
	at = (uintptr_t)heap_run_memory(heap_run_at(number)) / HEAP_PAGE;
	if (extra && !run_behead(number, (uint32_t)(-at & extra))) {
		heap_run_free(number);
		return 0;
	}
	heap_run_trim(number, pages);
	run_owns(number, kind == RUN_SLAB);
	return number;
}

bool
heap_run_extend(uint32_t number, uint32_t pages)
{
	struct heap_run *r = heap_run_at(number), *other;
	uint32_t    more = pages - r->pages, behind = free_at(r->start + r->pages);

	if (behind && heap_run_at(behind)->pages >= more) {
		other = heap_run_at(behind);
		heap_run_list_remove(bin_of(other->pages), behind);
	} else if (r->start + r->pages == heap_runs.top) {
		behind = run_from_top(more);
		if (!behind)
			return false;
		other = heap_run_at(behind);
	} else {
		return false;
	}
	r->pages += other->pages;
	r->clean = 0;
	run_drop(behind);
	heap_run_trim(number, pages);
	run_owns(number, false);
	return true;
}

char *
heap_run_memory(const struct heap_run *r)
{
	return heap_runs.start + (size_t)r->start * HEAP_PAGE;
}

int
heap_runs_reserve(size_t bytes)
{
	void *mem, *owner;
	int   err;

	bytes = bytes / HEAP_PAGE * HEAP_PAGE;
	owner = map(bytes / HEAP_PAGE * sizeof(*heap_runs.owner));
	if (!owner)
		return -ENOMEM;
	mem = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED) {
		err = -errno;
		munmap(owner, bytes / HEAP_PAGE * sizeof(*heap_runs.owner));
		return err;
	}
	heap_runs.owner = owner;
	heap_runs.size = reserved = bytes;
	heap_runs.start = mem;
	return 0;
}

void
heap_runs_shrink(void)
{
	size_t opened = heap_runs.opened, rest = heap_runs.size - opened;
	int    saved = errno;

	heap_runs.size = opened; /* should the kernel refuse, it lies there unused */
	if (rest > 0)
		munmap(heap_runs.start + opened, rest);
	errno = saved;
}

void
heap_runs_grow(void)
{
	int saved = errno;

	for (size_t more = reserved - heap_runs.size; more >= GROW_BYTES; more = more / 2 / OPEN_BYTES * OPEN_BYTES) {
		char *at = heap_runs.start + heap_runs.size;
		void *mem = mmap(at, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
			-1, 0);

		if (mem == at) {
			heap_runs.size += more;
			break;
		}
		if (mem != MAP_FAILED) /* a kernel that does not know the flag */
			munmap(mem, more);
	}
	errno = saved;
}
