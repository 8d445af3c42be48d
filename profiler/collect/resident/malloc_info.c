/*
 * malloc_info.c - what glibc's malloc says of each of its arenas, by malloc_info(3).
 *
 *     <heap nr="0"> <size from="1025" to="8192" total="81920" count="10"/> ...
 *     <total type="fast" .../> <total type="rest" count="3" size="98304"/>
 *     <system type="current" size="135168"/> </heap>
 *     ... <total type="mmap" count="2" size="405504"/>
 *
 * Why not mallinfo2(3), which returns a struct: it has the sums of all arenas and no arena, and
 * nothing that tells what malloc_trim() would give back.  Both read the same numbers under the
 * same locks, and a test holds their sums against each other.
 *
 * What a stranger would get wrong:
 * - The text is written to a stream, and a stream is malloc'd.  It is made once, where the server
 *   is started, for a thread that is asked later must make no arena of its own for it.
 * - fflush(NULL) in another thread may write it, with the stream's lock; exit(3) does so without.  Then
 *   the lines are nonsense for a moment that nobody sees, and stay in their bounds.
 * - The text is written when an arena's lock is given back, so the stream is never held where this
 *   waits.
 * - malloc_trim() gives back the whole pages inside of each free block: a block of n bytes
 *   has at least n less two pages and a header of them.
 *
 * Tests: tests/memory/memory.t.
 */
#include <config.h>

#include "allocator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES   256 /* of a line; glibc's are shorter than 100 */
#define STREAM_BYTES 4096
#define BLOCK_HEAD   64 /* more than what glibc keeps in a free block */

int malloc_info(int options, FILE *stream) __attribute__((weak));

bool
malloc_info_is_there(void)
{
	return malloc_info;
}

static struct {
	FILE             *stream;
	char              buffer[STREAM_BYTES];
	char              line[LINE_BYTES];
	size_t            used;
	struct allocator *to;
	/* Of the arena that is being told of. */
	unsigned          at;
	bool              inside;
	uint64_t          binned;
} info;


/* The number behind key="; 0: none. */
static uint64_t
value_of(const char *line, const char *key)
{
	const char *p = strstr(line, key);

	return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* Free blocks of sizes from.. to..; fast and small ones have no whole page. */
static void
blocks(struct allocator_arena *a, const char *line)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), lost = value_of(line, "count=\"") * (2 * page + BLOCK_HEAD);
	uint64_t total = value_of(line, "total=\"");

	info.binned += total;
	if (total > lost)
		a->loose += total - lost;
}

static void
arena_end(struct allocator *to, struct allocator_arena *a)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), top = a->free > info.binned ? a->free - info.binned : 0;

	/* What lies at the end of the heap only the main arena gives back. */
	if (info.at == 0 && top > 2 * page)
		a->loose += top - 2 * page;
	to->free += a->free;
	to->in_use += allocator_arena_in_use(a);
	info.inside = false;
}

static void
arena_line(struct allocator *to, const char *line)
{
	struct allocator_arena *a = &to->arenas[info.at];

	if (!strncmp(line, "<size ", 6) || !strncmp(line, "<unsorted ", 10))
		blocks(a, line);
	else if (!strncmp(line, "<total type=\"fast\"", 18) || !strncmp(line, "<total type=\"rest\"", 18))
		a->free += value_of(line, " size=\"");
	else if (!strncmp(line, "<system type=\"current\"", 22))
		a->system = value_of(line, " size=\"");
	else if (!strncmp(line, "</heap>", 7))
		arena_end(to, a);
}

static void
line_done(const char *line)
{
	struct allocator *to = info.to;

	if (!to)
		return;
	line += strspn(line, " ");
	if (info.inside) {
		arena_line(to, line);
	} else if (!strncmp(line, "<heap nr=", 9) && to->arena_count < ALLOCATOR_ARENAS_MAX) {
		info.at = to->arena_count++;
		info.inside = true;
		info.binned = 0;
	} else if (!strncmp(line, "<total type=\"mmap\"", 18)) {
		to->mapped = value_of(line, " size=\"");
		to->in_use += to->mapped;
	}
}

static ssize_t
on_write(void *cookie, const char *text, size_t size)
{
	(void)cookie;
	for (size_t i = 0; info.to && i < size; i++) {
		size_t used = info.used;

		if (text[i] != '\n') {
			if (used + 1 < LINE_BYTES) {
				info.line[used] = text[i];
				info.used = used + 1;
			}
			continue;
		}
		info.line[used] = '\0';
		info.used = 0;
		line_done(info.line);
	}
	return (ssize_t)size;
}

void
malloc_info_prepare(void)
{
	const cookie_io_functions_t functions = { .write = on_write };

	if (info.stream || !malloc_info)
		return;
	info.stream = fopencookie(NULL, "w", functions);
	if (info.stream)
		setvbuf(info.stream, info.buffer, _IOFBF, sizeof(info.buffer));
}

bool
malloc_info_ask(struct allocator *ret)
{
	malloc_info_prepare();
	if (!info.stream)
		return false;
	info.to = NULL; /* a parent may have been in the midst of it, ... */
	fflush(info.stream); /* ... and what it has left here is of nobody now */
	info.to = ret;
	info.used = 0;
	info.inside = false;
	malloc_info(0, info.stream);
	fflush(info.stream);
	info.to = NULL;
	return ret->arena_count > 0;
}
