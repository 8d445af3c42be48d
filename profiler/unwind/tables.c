/*
 * tables.c - from .eh_frame to tables that a signal handler can search.
 *
 *     generation --> objects by address --> pages[(pc - start) / 256] --> rows
 *          |                                row: 4 bytes of pc, 4 of code
 *          |                                code --> palette, if it is not all itself
 *          +--> all executable mappings (tables_code.c)
 *
 * An object's rows never change, so a new generation takes over what is still mapped
 * (tables_object.c); the palette only grows (tables_palette.c).
 *
 * Readers and the builder.  A reader counts itself in one of two phases, in a slot
 * picked by its thread, then loads the pointer to the generation.  The builder swaps
 * the pointer, turns the phase, and frees the old generation only after every slot
 * of the phase before has been seen empty; where a reader is stuck (a stopped thread, or
 * one that left a hook by siglongjmp()) the old one stays in limbo until a later build.
 * Who is stuck is waited for once.  With LIMBO_MAX generations in limbo nothing more is
 * built: code that came since is unknown, and memory does not grow.  Code made at run time
 * takes half of them at most: it comes all the time, and a plugin, which comes once, has rows.
 *
 * What a stranger would get wrong: the cache of a generation is written by readers,
 * several at once; an entry is one word that holds all of a pc, so it is right or it
 * is not that pc's.
 *
 * Why not dl_iterate_phdr: it takes the loader's lock, which a thread that hangs in a
 * constructor holds for good.
 *
 * Tests: tests/unwind/test_tables.c, tests/unwind/test_refresh.c.
 */
#include <config.h>

#include "tables.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "maps.h"
#include "memory.h"
#include "pages.h"
#include "table.h"
#include "tables_lookup.h"

#define OBJECTS_MAX      4096
#define BUDGET_BYTES     ((size_t)512 << 20) /* transient: copies of maps */
#define SECTIONS_BYTES   ((size_t)4 << 30)   /* of all objects together, that one build reads */
#define ROWS_BYTES       ((size_t)1 << 30)   /* with so much of rows no object gets any more */
#define SLOTS            16
#define DRAIN_NS         200000000L          /* longest wait for readers of an old generation */
#define LIMBO_MAX        16                  /* generations that a stuck reader may keep; each has the rows of what has gone */
#define LIMBO_RANGES     (LIMBO_MAX / 2)     /* ... that differ only in code made at run time */

struct slot {
	_Alignas(64) atomic_uint readers[2];
};

static struct {
	_Atomic(struct tables *) current;
	atomic_uint              phase, builds;
	atomic_uint              forks; /* up to this process; each has set the readers' counts to 0 */
	struct slot              slots[SLOTS];
	pthread_mutex_t          lock; /* builders */
	struct tables           *limbo;
	unsigned                 limbo_count;
	bool                     stuck; /* a reader was given up, and has not left since */
	uint64_t                 maps_identity;
} global = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- a generation ---- */

static struct tables_object *
object_find(const struct tables *t, uintptr_t pc)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (pc < t->objects[middle]->at.start)
			high = middle;
		else if (pc >= t->objects[middle]->at.end)
			low = middle + 1;
		else
			return t->objects[middle];
	}
	return NULL;
}

static void
tables_free(struct tables *t)
{
	for (size_t i = 0; i < t->count; i++)
		tables_object_release(t->objects[i]);
	pages_unmap(t->ranges, t->ranges_bytes);
	pages_unmap(t, t->map_bytes);
}

static uint64_t
identity_add(uint64_t h, const struct maps_line *l)
{
	const uint64_t words[] = { h, l->start, l->limit, l->inode, l->device };

	return table_hash(0, words, sizeof(words));
}

static uint64_t
maps_identity(struct maps *m)
{
	struct maps_line line;
	uint64_t         h = 0;

	while (maps_next(m, &line)) {
		if (line.executable)
			h = identity_add(h, &line);
	}
	return h;
}

static struct tables *
generation_new(size_t ranges)
{
	size_t         bytes = sizeof(struct tables) + OBJECTS_MAX * sizeof(struct tables_object *);
	struct tables *t = pages_map(bytes);

	if (!t)
		return NULL;
	t->map_bytes = bytes;
	if (tables_ranges_room(t, ranges) < 0) {
		pages_unmap(t, bytes);
		return NULL;
	}
	return t;
}

static size_t
maps_lines(const struct maps *m)
{
	size_t lines = 0;

	for (size_t i = 0; i < m->size; i++)
		lines += m->text[i] == '\n';
	return lines;
}

static int
generation_make(const struct tables *old, bool rows, struct tables **ret)
{
	struct arena_budget budget = { .limit = BUDGET_BYTES };
	struct maps         maps = { 0 };
	struct maps_line    line;
	struct tables_copies copies = { .left = SECTIONS_BYTES };
	size_t              bytes = 0;
	struct tables      *t = NULL;
	uintptr_t           base = 0;
	uint64_t            device = 0, inode = 0;
	struct memory       mem;
	int                 err;

	err = memory_open(&mem);
	if (err < 0)
		return err;
	err = maps_read(&maps, &budget);
	if (err)
		goto out;
	t = generation_new(maps_lines(&maps));
	err = t ? 0 : -ENOMEM;
	while (t && maps_next(&maps, &line)) {
		/* The ELF header is in the mapping of offset 0 that precedes the code. */
		if (line.offset == 0 && (line.inode != 0 || line.path[0] == '[')) {
			base = line.start;
			device = line.device;
			inode = line.inode;
		}
		if (line.executable)
			tables_ranges_put(t, line.start, line.limit);
		if (line.executable && line.inode != 0)
			t->files = identity_add(t->files, &line);
		if (!line.executable || !rows || t->count == OBJECTS_MAX || !base || line.device != device ||
		    line.inode != inode)
			continue;
		struct tables_object **o = &t->objects[t->count];
		int made = bytes > ROWS_BYTES ? -ENOENT :
			   tables_object_make(&mem, old ? object_find(old, line.start) : NULL, base, &line, &copies, o);

		if (made == 0) { /* its own identity too: another file may have the old one's inode */
			const uint64_t both[] = { t->files, (*o)->identity };

			t->files = table_hash(0, both, sizeof(both));
			bytes += (*o)->map_bytes + (*o)->made.size;
			t->count++;
		} else if (made == -ENOENT && t->without++ == 0)
			strncpy(t->without_path, line.path, sizeof(t->without_path) - 1);
	}
	if (t)
		*ret = t;
out:
	tables_copy_release(&copies.header);
	tables_copy_release(&copies.frames);
	maps_release(&maps);
	memory_close(&mem);
	return err;
}

/* ---- readers against the builder ---- */

const struct tables *
tables_enter(struct tables_reader *r)
{
	uintptr_t thread = (uintptr_t)__builtin_thread_pointer();

	r->slot = (uint16_t)((unsigned)((thread >> 12) ^ (thread >> 20)) % SLOTS);
	r->forks = atomic_load_explicit(&global.forks, memory_order_relaxed);
	r->phase = (uint16_t)(atomic_load(&global.phase) & 1);
	atomic_fetch_add(&global.slots[r->slot].readers[r->phase], 1);
	r->tables = atomic_load(&global.current);
	return r->tables;
}

void
tables_leave(struct tables_reader *r)
{
	/* Not in the child of a handler that has forked in here. */
	if (r->forks == atomic_load_explicit(&global.forks, memory_order_relaxed))
		atomic_fetch_sub_explicit(&global.slots[r->slot].readers[r->phase], 1, memory_order_release);
}

static bool
phase_empty(unsigned phase)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		if (atomic_load(&global.slots[i].readers[phase]) != 0)
			return false;
	}
	return true;
}

/* Has every reader that may hold a generation swapped out by now left it? */
static bool
readers_drained(void)
{
	struct timespec nap = { 0, 100000 };
	long            waited = global.stuck ? DRAIN_NS : 0;

	/* Twice: a reader may have read the phase before one turn and counted itself after. */
	for (int turn = 0; turn < 2; turn++) {
		unsigned old = atomic_fetch_add(&global.phase, 1) & 1;

		while (!phase_empty(old)) {
			if (waited >= DRAIN_NS)
				return false;
			nanosleep(&nap, NULL);
			waited += nap.tv_nsec;
		}
	}
	return true;
}

static void
generation_retire(struct tables *t)
{
	if (t) {
		t->limbo_next = global.limbo;
		global.limbo = t;
		global.limbo_count++;
	}
	if (!global.limbo)
		return;
	global.stuck = !readers_drained();
	if (global.stuck)
		return;
	global.limbo_count = 0;
	while (global.limbo) {
		t = global.limbo;
		global.limbo = t->limbo_next;
		tables_free(t);
	}
}

static bool
limbo_has_room(unsigned max)
{
	if (global.limbo_count >= max)
		generation_retire(NULL);
	return global.limbo_count < max;
}

/* In the place of the one there is, unless that has the same files and a stuck reader is to
 * be spared. */
static int
generation_show(struct tables *t)
{
	const struct tables *old = atomic_load(&global.current);

	if (old && old->files == t->files && !limbo_has_room(LIMBO_RANGES)) {
		tables_free(t);
		return -EBUSY;
	}
	generation_retire(atomic_exchange(&global.current, t));
	return 0;
}

static int
build(bool rows)
{
	struct tables *t = NULL;
	int            err, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&global.lock);
	err = limbo_has_room(LIMBO_MAX) ? tables_palette_start() : -EBUSY;
	if (!err)
		err = generation_make(atomic_load(&global.current), rows, &t);
	if (!err)
		err = generation_show(t);
	atomic_fetch_add(&global.builds, 1);
	pthread_mutex_unlock(&global.lock);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

int
tables_build(void)
{
	return build(true);
}

int
tables_build_ranges(void)
{
	return build(false);
}

/* The generation there is, with one range more. */
static struct tables *
generation_with(const struct tables *old, uintptr_t start, uintptr_t limit)
{
	struct tables *t = generation_new(old->range_count + 1);
	size_t         i = 0;

	if (!t)
		return NULL;
	for (; i < old->range_count && old->ranges[i].start < start; i++)
		tables_ranges_put(t, old->ranges[i].start, old->ranges[i].limit);
	tables_ranges_put(t, start, limit);
	for (; i < old->range_count; i++)
		tables_ranges_put(t, old->ranges[i].start, old->ranges[i].limit);
	memcpy(t->objects, old->objects, old->count * sizeof(old->objects[0]));
	t->count = old->count;
	t->without = old->without;
	memcpy(t->without_path, old->without_path, sizeof(t->without_path));
	t->files = old->files;
	for (i = 0; i < t->count; i++)
		t->objects[i]->users++;
	return t;
}

int
tables_add_range(uintptr_t start, uintptr_t limit)
{
	struct tables *old, *t;
	int            cancel, err = -EBUSY;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&global.lock);
	old = atomic_load(&global.current);
	if (!old || limbo_has_room(LIMBO_RANGES)) {
		t = old ? generation_with(old, start, limit) : NULL;
		err = t ? generation_show(t) : -ENOMEM;
	}
	pthread_mutex_unlock(&global.lock);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

bool
tables_stale(void)
{
	struct arena_budget budget = { .limit = BUDGET_BYTES };
	struct maps         maps = { 0 };
	uint64_t            identity = 0;
	bool                stale = false;

	pthread_mutex_lock(&global.lock);
	if (maps_read(&maps, &budget) == 0) {
		identity = maps_identity(&maps);
		stale = identity != global.maps_identity;
		global.maps_identity = identity;
	}
	maps_release(&maps);
	pthread_mutex_unlock(&global.lock);
	return stale;
}

void
tables_forked(void)
{
	pthread_mutex_init(&global.lock, NULL);
	memset(global.slots, 0, sizeof(global.slots));
	atomic_fetch_add(&global.forks, 1);
	global.stuck = false;
}

void
tables_drop(void)
{
	pthread_mutex_lock(&global.lock);
	generation_retire(atomic_exchange(&global.current, NULL));
	if (!global.limbo)
		tables_palette_drop();
	pthread_mutex_unlock(&global.lock);
}

void
tables_stats(struct tables_stats *ret)
{
	const struct tables *t;

	*ret = (struct tables_stats){ 0 };
	pthread_mutex_lock(&global.lock);
	t = atomic_load(&global.current);
	for (size_t i = 0; t && i < t->count; i++) {
		ret->objects++;
		ret->rows += t->objects[i]->count;
		ret->bad += t->objects[i]->bad;
		ret->bytes += t->objects[i]->map_bytes + t->objects[i]->made.size;
		ret->frames_bytes += t->objects[i]->frames_bytes;
	}
	if (t) {
		ret->without = t->without;
		memcpy(ret->without_path, t->without_path, sizeof(ret->without_path));
	}
	ret->rules = tables_palette_count();
	ret->limbo = global.limbo_count;
	ret->bytes += tables_palette_bytes() + (t ? sizeof(*t) : 0);
	pthread_mutex_unlock(&global.lock);
}

/* ---- looking up ---- */

bool
tables_section_of(uintptr_t pc, struct tables_section *ret)
{
	struct tables_reader        reader;
	const struct tables        *t = tables_enter(&reader);
	const struct tables_object *o = t ? object_find(t, pc) : NULL;

	if (o)
		*ret = o->at;
	tables_leave(&reader);
	return o != NULL;
}

bool
tables_has_code(uintptr_t pc)
{
	struct tables_reader reader;
	const struct tables *t = tables_enter(&reader);
	bool                 has = t && tables_is_code(t, pc);

	tables_leave(&reader);
	return has;
}

unsigned
tables_generation(void)
{
	return atomic_load(&global.builds);
}

/* One past the last row at or before pc. */
static inline uint32_t
object_row(const struct tables_object *o, uintptr_t pc)
{
	uint32_t at = (uint32_t)(pc - o->at.start), page = at >> TABLES_PAGE_SHIFT;
	uint32_t low = o->pages[page], high = o->pages[page + 1];

	/* the last row at or before `at`: one of [low - 1, high) */
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (o->rows[middle].pc <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t
object_code(const struct tables_object *o, uintptr_t pc)
{
	uint32_t row = object_row(o, pc);

	return row > 0 ? o->rows[row - 1].code : TABLES_CODE_NONE;
}

uintptr_t
tables_row_begin(const struct tables *t, uintptr_t pc)
{
	const struct tables_object *o = object_find(t, pc);
	uint32_t                    row = o ? object_row(o, pc) : 0;

	return row > 0 ? o->at.start + o->rows[row - 1].pc : 0;
}

enum tables_answer
tables_is_entered(const struct tables *t, uintptr_t pc)
{
	enum tables_answer is;

	if (tables_row_begin(t, pc) != pc || tables_code(t, pc) == TABLES_CODE_NONE)
		return TABLES_NO;
	is = tables_is_return(t, pc);
	return is == TABLES_UNSURE ? is : is == TABLES_NO ? TABLES_YES : TABLES_NO;
}

bool
tables_is_signal_frame(const struct tables *t, uintptr_t pc)
{
	uint32_t code = tables_code(t, pc);

	return TABLES_CODE_KIND(code) == TABLES_CODE_PALETTE && tables_palette_row(TABLES_CODE_ROW(code))->signal_frame;
}

uint32_t
tables_code_find(const struct tables *t, uintptr_t pc)
{
	const struct tables_object *o = object_find(t, pc);
	uint64_t                    key = pc >> TABLES_CACHE_BITS;
	uint32_t                    code = o ? object_code(o, pc) : TABLES_CODE_NONE;

	if (o && key < (uint64_t)1 << (64 - TABLES_CODE_BITS))
		atomic_store_explicit(&((struct tables *)(uintptr_t)t)->cache[tables_cache_at(pc)],
				      key << TABLES_CODE_BITS | code, memory_order_relaxed);
	return code;
}
