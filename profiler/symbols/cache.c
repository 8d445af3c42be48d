/*
 * cache.c - what was found out about addresses, from one request to the next.
 *
 *     build id, offset in the file --> names, file, lines, of all inlined frames
 *
 * Who scrapes every few seconds asks for the same addresses each time.  The sorted
 * tables they came from are megabytes and go back after a request; the answers are a
 * hundred bytes an address, and stay, by build id: for a plugin in another place, too,
 * and for one whose file is gone by now.
 *
 * What a stranger would get wrong:
 * - Nothing is ever taken out of a set of answers, so pointers into it are good for as
 *   long as somebody holds it.  It is replaced as a whole: when it is old, or when it
 *   is full and the last request found less than half of what it asked for.
 * - A stripped object's functions are called by the object's name, so the name is part
 *   of the key.
 * - Answers of an object that could not be read in full are not kept: the next request
 *   may have more luck.
 *
 * Why not the sorted tables: libLLVM's is 3 MB, and what a profile asks of it 20 KB.
 *
 * Tests: tests/symbols/test_kept_answers.c, tests/symbols/names.t
 */
#include <config.h>

#include "cache.h"

#include <pthread.h>
#include <string.h>

#include "clock.h"
#include "fork.h"
#include "our_lock.h"
#include "pages.h"
#include "strings.h"

#define OBJECTS_MAX  4096
#define LINES        ((uint64_t)1 << 63) /* in a key: asked with lines */
#define OFFSET_BITS  44

struct answers {
	unsigned            count;
	struct symbol_frame frames[]; /* without .object */
};

struct cache {
	unsigned            users; /* requests, and 1 for being the one of now */
	struct arena_budget budget;
	struct arena        arena;
	struct strings      texts;
	struct table        addresses;
	const char        **objects; /* build id and name */
	uint32_t            object_count;
	int64_t             born_ns; /* CLOCK_MONOTONIC */
	bool                full;
	uint64_t            hits, misses; /* since it is full */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cache    *now;
static size_t          limit;

/* ---- sets ---- */

static struct cache *
set_new(void)
{
	struct cache *k = pages_map(sizeof(*k));

	if (!k)
		return NULL;
	k->users = 1;
	k->budget.limit = limit;
	k->born_ns = clock_ns(CLOCK_MONOTONIC);
	arena_init(&k->arena, &k->budget);
	strings_init(&k->texts, &k->arena);
	table_init(&k->addresses, &k->budget);
	k->objects = arena_array(&k->arena, OBJECTS_MAX, sizeof(*k->objects));
	k->full = !k->objects;
	return k;
}

/* With the lock held. */
static void
set_leave(struct cache *k)
{
	if (!k || --k->users)
		return;
	strings_release(&k->texts);
	table_release(&k->addresses);
	arena_release(&k->arena);
	pages_unmap(k, sizeof(*k));
}

void
symbols_keep(size_t limit_bytes)
{
	sigset_t mask;

	our_lock_take(&lock, &mask);
	limit = limit_bytes / CACHE_PART < CACHE_BYTES_MAX ? limit_bytes / CACHE_PART : CACHE_BYTES_MAX;
	set_leave(now);
	now = NULL;
	our_lock_release(&lock, &mask);
}

struct cache *
cache_open(void)
{
	sigset_t      mask;
	struct cache *k;

	our_lock_take(&lock, &mask);
	if (now && (clock_ns(CLOCK_MONOTONIC) - now->born_ns >= CACHE_AGE_MAX_S * CLOCK_NS_PER_S ||
		    (now->full && now->misses > now->hits))) {
		set_leave(now);
		now = NULL;
	}
	if (!now && limit)
		now = set_new();
	k = now;
	if (k) {
		k->users++;
		k->hits = k->misses = 0;
	}
	our_lock_release(&lock, &mask);
	return k;
}

void
cache_close(struct cache *k)
{
	sigset_t mask;

	our_lock_take(&lock, &mask);
	set_leave(k);
	our_lock_release(&lock, &mask);
}

/* ---- answers ---- */

uint32_t
cache_object(struct cache *k, const char *build_id, const char *base)
{
	sigset_t    mask;
	char        text[512];
	size_t      id = strlen(build_id), name = strlen(base);
	uint32_t    found = CACHE_NONE;
	const char *unique;

	if (!id || id + name > sizeof(text))
		return CACHE_NONE;
	memcpy(text, build_id, id);
	memcpy(text + id, base, name);
	our_lock_take(&lock, &mask);
	unique = k->objects ? strings_clean(&k->texts, text, id + name) : NULL;
	for (uint32_t i = 0; unique && i < k->object_count && found == CACHE_NONE; i++)
		if (k->objects[i] == unique)
			found = i;
	if (unique && found == CACHE_NONE && k->object_count < OBJECTS_MAX) {
		found = k->object_count++;
		k->objects[found] = unique;
	}
	our_lock_release(&lock, &mask);
	return found;
}

static uint64_t
key_of(uint32_t object, uint64_t offset, bool lines)
{
	return (uint64_t)object << OFFSET_BITS | offset | (lines ? LINES : 0);
}

unsigned
cache_find(struct cache *k, uint32_t object, uint64_t offset, bool lines, struct symbol_frame *frames, unsigned max)
{
	sigset_t              mask;
	const struct answers *a;
	unsigned              count;

	if (object == CACHE_NONE || offset >> OFFSET_BITS)
		return 0;
	our_lock_take(&lock, &mask);
	a = (const struct answers *)(uintptr_t)table_get(&k->addresses, key_of(object, offset, true));
	if (!a && !lines)
		a = (const struct answers *)(uintptr_t)table_get(&k->addresses, key_of(object, offset, false));
	*(a ? &k->hits : &k->misses) += 1;
	our_lock_release(&lock, &mask);
	count = !a ? 0 : a->count < max ? a->count : max;
	for (unsigned i = 0; i < count; i++)
		frames[i] = a->frames[i];
	return count;
}

static const char *
keep_text(struct cache *k, const char *s)
{
	return strings_clean(&k->texts, s, strlen(s));
}

/* With the lock held. */
static bool
add(struct cache *k, uint64_t key, const struct symbol_frame *frames, unsigned count)
{
	struct answers *a;

	if (table_get(&k->addresses, key))
		return true; /* another request was faster */
	a = arena_alloc(&k->arena, sizeof(*a) + count * sizeof(a->frames[0]));
	if (!a)
		return false;
	a->count = count;
	for (unsigned i = 0; i < count; i++) {
		const struct symbol_frame *f = &frames[i];
		struct symbol_frame       *to = &a->frames[i];

		*to = *f;
		to->object = NULL;
		to->name = keep_text(k, f->name);
		to->system_name = f->system_name == f->name ? to->name : keep_text(k, f->system_name);
		to->file = f->file ? keep_text(k, f->file) : NULL;
		if (!to->name || !to->system_name || (f->file && !to->file))
			return false;
	}
	return table_put(&k->addresses, key, (uintptr_t)a) == 0;
}

void
cache_add(struct cache *k, uint32_t object, uint64_t offset, bool lines, const struct symbol_frame *frames,
	unsigned count)
{
	sigset_t mask;

	if (object == CACHE_NONE || offset >> OFFSET_BITS || !count)
		return;
	our_lock_take(&lock, &mask);
	if (!k->full)
		k->full = !add(k, key_of(object, offset, lines), frames, count);
	our_lock_release(&lock, &mask);
}

/* ---- fork ---- */

static void
fork_prepare(void)
{
	pthread_mutex_lock(&lock); /* held for microseconds, and never around anything */
}

static void
fork_over(void)
{
	pthread_mutex_unlock(&lock);
}

FORK_SLOT(FORK_NAMES, fork_prepare, fork_over, fork_over);
