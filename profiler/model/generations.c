/*
 * generations.c - the objects of this process, those of the past among them.
 *
 *     look: /proc/self/maps --> is it known? by place and build id --> loaded again
 *                                                 new --> a record, and a tag for it
 *           not seen this time --> gone, but remembered
 *
 * A record is never removed, as stacks hold its tag; one that comes back to its place
 * is the same record, so a plugin that is loaded and unloaded for ever costs one.  The
 * tag of a new one is 0 where nobody was before, else the number that hooks have given
 * out for "not seen yet" since the last look (generations_ranges.c).
 *
 * Hooks read ranges made of the records (generations_ranges.c).
 *
 * Looks are made by refresh.c, when a stack meets something unknown, or once a second
 * has shown that an object is not where it was; and when a profile is written.
 *
 * What a stranger would get wrong:
 * - Code made at run time (anonymous, or without an ELF header) needs a record only
 *   where an object was; it is tag 0 elsewhere, or a busy compiler would fill the list.
 * - mprotect() cuts a mapping in pieces, and an upgrade marks its file as deleted:
 *   neither makes another object of it.
 * - A look takes time: what maps say of a place, and what stands there a moment later, may
 *   be two objects'.  A record that is new is believed when maps say the same once more.
 *
 * What cannot be told: an object that came, was sampled, and was gone before a look saw
 * it.  Its addresses go to the next one there, if that comes before a look does or if no other
 * was there before; else to nobody, or to code made at run time that was there.
 * Two that take each other's places twice during one look.
 *
 * Tests: tests/model/test_generations.c, tests/model/unloaded_plugins.t.
 */
#include <config.h>

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "build_id.h"
#include "generations_ranges.h"
#include "maps.h"
#include "memory.h"
#include "our_fd.h"
#include "pages.h"
#include "stack_table.h"

#define QUERY_LATER INT_MIN
#define LOOK_TRIES 4 /* while objects take each other's places */
#define PHDRS_MAX  64
#define NOTES_MAX  4096 /* bytes of one note segment looked at */
#define LIST_SPARE 256 /* ranges that may be added before the next look */
#define MAPS_BYTES ((size_t)64 << 20) /* transient: the text of /proc/self/maps */

static struct {
	pthread_mutex_t     lock;
	bool                on;
	struct arena_budget budget;
	struct arena        arena;
	struct generation  *all;    /* GENERATIONS_MAX of them; touched as they come */
	size_t              count;
	uint16_t            next_tag;
	bool                changed; /* and not published yet */
	unsigned            forgotten;
	uint64_t            others, others_before; /* hashes of the code that has no record */
	struct generations_other *list; /* that code */
	size_t              list_count, list_bytes;
} known = { .lock = PTHREAD_MUTEX_INITIALIZER, .next_tag = 1 };

/* A run of executable lines of one file, and where its header is. */
struct piece {
	struct maps_line line;
	uintptr_t        header;
	size_t           header_size;
};

static bool
overlaps(const struct generation *g, const struct maps_line *l)
{
	return g->start < l->limit && l->start < g->limit;
}

static bool
same_place(const struct generation *g, const struct maps_line *l)
{
	return overlaps(g, l) && g->start - g->offset == l->start - l->offset;
}

/* The one that was there at the last look, if its mark says it still is. */
static struct generation *
find_unchanged(const struct maps_line *l)
{
	for (size_t i = 0; i < known.count; i++) {
		struct generation *g = &known.all[i];

		if (g->loaded && same_place(g, l) && g->device == l->device && g->inode == l->inode &&
		    (!g->mark || mark_look(g->mark, g->mark_is) == MARK_SAME))
			return g;
	}
	return NULL;
}

static struct generation *
find_same(const struct generation *like, const struct maps_line *l)
{
	for (size_t i = 0; i < known.count; i++) {
		struct generation *g = &known.all[i];

		if (g->seen || strcmp(g->path, l->path) != 0 || strcmp(g->build_id, like->build_id) != 0)
			continue;
		if (!*l->path ? overlaps(g, l) : same_place(g, l) && (*g->build_id ||
		    (g->device == l->device && g->inode == l->inode)))
			return g;
	}
	return NULL;
}

static bool
any_overlap(const struct maps_line *l)
{
	for (size_t i = 0; i < known.count; i++)
		if (overlaps(&known.all[i], l))
			return true;
	return false;
}

static struct generation *
record_add(const struct generation *like, const struct maps_line *l)
{
	struct generation *g = known.count < GENERATIONS_MAX ? &known.all[known.count] : NULL;
	const char        *path = g ? g->path : NULL; /* left by a record that was not confirmed */
	bool               reused = any_overlap(l);

	if (g && (!path || strcmp(path, l->path) != 0))
		path = arena_strndup(&known.arena, l->path, strlen(l->path));
	if (!path || (reused && known.next_tag == GENERATIONS_TAG_MAX)) {
		known.forgotten++;
		return NULL;
	}
	*g = *like;
	g->start = l->start;
	g->limit = l->limit;
	g->offset = l->offset;
	g->path = path;
	g->tag = reused ? known.next_tag : 0;
	known.count++;
	return g;
}

static void
others_note(const struct maps_line *l)
{
	known.others = (known.others ^ l->start) * 0x9e3779b97f4a7c15u;
	known.others = (known.others ^ l->limit) * 0x9e3779b97f4a7c15u;
}

/* The build id among the notes at address. */
static bool
notes_read(const struct memory *mem, uintptr_t address, size_t size, struct generation *g)
{
	unsigned char notes[NOTES_MAX];
	size_t        at;

	if (size > sizeof(notes))
		size = sizeof(notes);
	if (!memory_read(mem, address, notes, size))
		return false;
	at = build_id_find(notes, size, 4, g->build_id);
	if (!at || strlen(g->build_id) < 2 * sizeof(g->mark_is)) {
		g->build_id[0] = '\0'; /* none, or too short for a mark */
		return false;
	}
	memcpy(&g->mark_is, notes + at, sizeof(g->mark_is));
	g->mark = address + at;
	return true;
}

/*
 * What tells the object whose first bytes are mapped at `header` from others: its build id, found
 * through the notes its program headers name.  Four bytes of it are the mark which hooks compare,
 * where it lies in memory.  One without a build id is marked by its ELF header's e_shoff, which tells
 * files of different length apart.  All is read by memory.c, as the object may be unloaded meanwhile.
 * False: it is no ELF object.
 */
static bool
identify(const struct memory *mem, uintptr_t header, size_t header_size, struct generation *g)
{
	ElfW(Ehdr) eh;
	ElfW(Phdr) ph[PHDRS_MAX];

	g->build_id[0] = '\0';
	g->mark = 0;
	if (!memory_read(mem, header, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_phentsize != sizeof(ph[0]) || eh.e_phnum > PHDRS_MAX || eh.e_phoff > header_size ||
	    eh.e_phnum * sizeof(ph[0]) > header_size - eh.e_phoff ||
	    !memory_read(mem, header + eh.e_phoff, ph, eh.e_phnum * sizeof(ph[0])))
		return false;
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		if (ph[i].p_type != PT_NOTE || ph[i].p_offset > header_size || ph[i].p_filesz > header_size - ph[i].p_offset)
			continue;
		if (notes_read(mem, header + ph[i].p_offset, ph[i].p_filesz, g))
			return true;
	}
	g->mark = header + offsetof(ElfW(Ehdr), e_shoff);
	memcpy(&g->mark_is, &eh.e_shoff, sizeof(g->mark_is));
	return true;
}

/* False: it needs no record, or there is no room for one. */
static bool
piece_take(const struct memory *mem, const struct piece *p)
{
	const struct maps_line *l = &p->line;
	struct generation       like = { .device = l->device, .inode = l->inode }, *g;

	g = find_unchanged(l);
	if (!g) {
		if ((p->header && identify(mem, p->header, p->header_size, &like)) || any_overlap(l)) {
			known.changed = true;
			g = find_same(&like, l);
			if (!g)
				g = record_add(&like, l);
		}
		if (!g) {
			others_note(l);
			return false;
		}
		g->device = l->device;
		g->inode = l->inode;
		g->mark = like.mark;
		g->mark_is = like.mark_is;
	}
	/* A piece that mprotect() has cut out, or joined.  What is made at run time has no other pieces: it may shrink. */
	if (l->start < g->start || !*g->path) {
		known.changed |= l->start != g->start;
		g->start = l->start;
		g->offset = l->offset;
	}
	if (l->limit > g->limit || !*g->path) {
		known.changed |= l->limit != g->limit;
		g->limit = l->limit;
	}
	g->deleted = l->deleted;
	g->loaded = g->seen = true;
	return true;
}

/* ---- the look ---- */

/* Next line, joined with those that follow it in the file and in memory. */
static bool
piece_next(struct maps *m, struct maps_line *ahead, bool *have, struct piece *head, struct piece *ret)
{
	struct maps_line l;
	bool             any = false;

	while (*have || maps_next(m, &l)) {
		if (*have)
			l = *ahead;
		*have = false;
		if (any && l.executable && l.start == ret->line.limit && l.inode == ret->line.inode &&
		    l.device == ret->line.device && (!l.inode || l.offset == ret->line.offset + (l.start - ret->line.start))) {
			ret->line.limit = l.limit;
			continue;
		}
		if (any) {
			*ahead = l;
			*have = true;
			return true;
		}
		if (l.path[0] && !l.offset)
			*head = (struct piece){ l, l.start, l.limit - l.start };
		if (!l.executable || l.start > GENERATIONS_PC_MASK)
			continue;
		*ret = (struct piece){ .line = l };
		if (head->header && head->line.device == l.device && head->line.inode == l.inode &&
		    !strcmp(head->line.path, l.path))
			*ret = (struct piece){ l, head->header, head->header_size };
		any = true;
	}
	return any;
}

static void
look_at(struct maps *maps, const struct memory *mem, struct generations_other *others, size_t room, size_t *ret_count)
{
	struct piece     p = { .header = 0 }, head = { .header = 0 };
	struct maps_line ahead = { .path = NULL };
	bool             have = false;
	size_t           n = 0;

	known.others = 0;
	for (size_t i = 0; i < known.count; i++)
		known.all[i].seen = false;
	while (piece_next(maps, &ahead, &have, &head, &p))
		if (!piece_take(mem, &p) && n < room)
			others[n++] = (struct generations_other){ p.line.start, p.line.limit };
	for (size_t i = 0; i < known.count; i++) {
		known.changed |= known.all[i].loaded != known.all[i].seen;
		known.all[i].loaded = known.all[i].seen;
	}
	known.changed |= known.others != known.others_before;
	known.others_before = known.others;
	*ret_count = n;
}

/* Do maps still have this record's file in its place, and memory its mark? */
static bool
is_there(const struct generation *g, const struct maps_line *l)
{
	if (strcmp(g->path, l->path) != 0)
		return false;
	if (!*g->path) /* made at run time: it may have grown */
		return overlaps(g, l);
	return same_place(g, l) && g->device == l->device && g->inode == l->inode &&
	       (!g->mark || mark_look(g->mark, g->mark_is) == MARK_SAME);
}

/*
 * A record that is new since `before` has its file from maps and its build id from memory, a
 * moment later: between the two another object may have taken its place.  True: maps that
 * were read after both say the same of all of them.
 */
static bool
are_confirmed(struct maps *maps, size_t before)
{
	struct maps_line l;

	for (size_t i = before; i < known.count; i++)
		known.all[i].seen = false;
	while (maps_next(maps, &l))
		for (size_t i = before; l.executable && i < known.count; i++)
			known.all[i].seen |= is_there(&known.all[i], &l);
	for (size_t i = before; i < known.count; i++)
		if (!known.all[i].seen)
			return false;
	return true;
}

/* Looks until what is new is certain; what is not, is left to the next look. */
static int
look_at_certainly(struct maps *maps, const struct memory *mem, struct arena *scratch, struct arena_budget *budget,
		  struct generations_other **ret_others, size_t *ret_count)
{
	for (int tries = 0; tries < LOOK_TRIES; tries++) {
		size_t before = known.count, lines = 0;
		int    r;

		for (size_t i = 0; i < maps->size; i++)
			lines += maps->text[i] == '\n';
		*ret_others = arena_array(scratch, lines + 1, sizeof(**ret_others));
		if (!*ret_others)
			return -ENOMEM;
		look_at(maps, mem, *ret_others, lines + 1, ret_count);
		if (known.count == before)
			return 0;
		maps_release(maps);
		r = maps_read(maps, budget);
		if (r < 0) {
			known.count = before;
			return r;
		}
		if (are_confirmed(maps, before))
			return 0;
		known.count = before;
		maps_release(maps);
		r = maps_read(maps, budget);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool
tag_was_given(void)
{
	for (size_t i = known.count; i-- > 0;)
		if (known.all[i].tag == known.next_tag)
			return true;
	return generations_ranges_given();
}

/* Room for what is found until the next look. */
static int
list_keep(const struct generations_other *others, size_t count)
{
	size_t bytes = (2 * count + LIST_SPARE) * sizeof(*others);
	void  *p = known.list, *old;
	size_t old_bytes;

	if (bytes > known.list_bytes) {
		p = pages_map(bytes);
		if (!p)
			return -ENOMEM;
		old = known.list; /* detached first: a child may be forked in the midst of munmap() */
		old_bytes = known.list_bytes;
		known.list = p;
		known.list_bytes = bytes;
		pages_unmap(old, old_bytes);
	}
	memcpy(p, others, count * sizeof(*others));
	known.list_count = count;
	return 0;
}

/* To hooks. */
static int
show(const struct generations_other *others, size_t count)
{
	struct generations_published *p = generations_ranges_make(known.all, known.count, others, count, known.next_tag);

	if (!p)
		return -ENOMEM;
	return stack_table_exclusively(generations_ranges_show, &p) ? 0 : -EBUSY;
}

/* What is loaded of them, for the time when there is no /proc (maps.h). */
static void
keep(void)
{
	size_t lines = 0, bytes = 0;

	for (size_t i = 0; i < known.count; i++)
		if (known.all[i].loaded && known.all[i].path[0] == '/') {
			lines++;
			bytes += strlen(known.all[i].path) + 1;
		}
	if (maps_keep_begin(lines, bytes) < 0)
		return;
	for (size_t i = 0; i < known.count; i++) {
		const struct generation *g = &known.all[i];
		struct maps_line         l = { .start = g->start, .offset = g->offset, .device = g->device,
					       .inode = g->inode, .path = (char *)(uintptr_t)g->path, .deleted = g->deleted };

		if (g->loaded && g->path[0] == '/')
			maps_keep(&l, g->mark, g->mark_is);
	}
}

static int
look(void)
{
	struct arena_budget budget = { 0, MAPS_BYTES };
	struct arena        scratch;
	struct generations_other *others;
	struct maps         maps = { 0 };
	size_t              count = 0;
	struct memory       mem;
	int                 r;

	r = memory_open(&mem);
	if (r < 0)
		return r;
	arena_init(&scratch, &budget);
	r = maps_read(&maps, &budget);
	if (r < 0)
		goto out;
	r = look_at_certainly(&maps, &mem, &scratch, &budget, &others, &count);
	maps_release(&maps);
	if (!r && known.changed)
		keep();
	if (!r && (known.changed || !generations_ranges_shown() || generations_ranges_given())) {
		if (tag_was_given() && known.next_tag < GENERATIONS_TAG_MAX)
			known.next_tag++;
		r = list_keep(others, count);
		if (!r)
			r = show(others, count);
		if (!r) {
			r = known.changed;
			known.changed = false;
		}
	}
out:
	arena_release(&scratch);
	memory_close(&mem);
	return r;
}

int
generations_look(void)
{
	int r = 0, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&known.lock);
	if (known.on)
		r = look();
	pthread_mutex_unlock(&known.lock);
	pthread_setcancelstate(cancel, NULL);
	return r;
}

/* ---- between two looks ---- */

/* Where the kernel refuses the comparison, marks are always the same. */
static bool
marks_tell(void)
{
	static const uint32_t one = 1;

	return mark_look((uintptr_t)&one, 0) == MARK_OTHER;
}

/* A build id is one file's.  Of an object without one, the kernel says which file is there, if it can. */
static bool
has_moved(const struct generation *g, bool by_mark, int *query)
{
	struct maps_place p;

	if (g->mark && mark_look(g->mark, g->mark_is) != MARK_SAME)
		return true;
	if (by_mark && *g->build_id)
		return false;
	if (*query == QUERY_LATER)
		*query = maps_query_open();
	return *query < 0 || maps_query(*query, g->start, &p) < 0 || p.inode != g->inode || p.device != g->device;
}

bool
generations_moved(void)
{
	bool moved = false, by_mark = marks_tell();
	int  query = QUERY_LATER;

	pthread_mutex_lock(&known.lock);
	for (size_t i = 0; known.on && i < known.count && !moved; i++)
		moved = known.all[i].loaded && has_moved(&known.all[i], by_mark, &query);
	pthread_mutex_unlock(&known.lock);
	our_fd_close(query);
	return moved;
}

/* Joined with what it has grown from. */
static int
list_add(uintptr_t start, uintptr_t limit)
{
	for (size_t i = 0; i < known.list_count; i++) {
		struct generations_other *o = &known.list[i];

		if (o->start > limit || o->limit < start)
			continue;
		if (o->start > start)
			o->start = start;
		if (o->limit < limit)
			o->limit = limit;
		return 0;
	}
	if ((known.list_count + 1) * sizeof(*known.list) > known.list_bytes)
		return -ENOSPC;
	known.list[known.list_count++] = (struct generations_other){ start, limit };
	return 0;
}

int
generations_note(uintptr_t start, uintptr_t limit)
{
	struct maps_line place = { .start = start, .limit = limit };
	int              r = 0, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&known.lock);
	if (known.on) {
		r = any_overlap(&place) ? -EEXIST : list_add(start, limit);
		if (!r)
			r = show(known.list, known.list_count);
	}
	pthread_mutex_unlock(&known.lock);
	pthread_setcancelstate(cancel, NULL);
	return r;
}

/* ---- what profiles read ---- */

int
generations_copy(struct arena *a, struct generation **ret, size_t *ret_count)
{
	struct generation *copy = NULL;
	bool               wanted = false;
	size_t             count;
	int                r = 0;

	pthread_mutex_lock(&known.lock);
	count = known.count;
	for (size_t i = 0; i < count; i++)
		wanted |= !known.all[i].loaded || known.all[i].tag;
	if (!wanted)
		count = 0;
	if (count)
		copy = arena_array(a, count, sizeof(*copy));
	for (size_t i = 0; copy && i < count && !r; i++) {
		copy[i] = known.all[i];
		copy[i].path = arena_strndup(a, copy[i].path, strlen(copy[i].path));
		r = copy[i].path ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&known.lock);
	if (r < 0 || (count > 0 && !copy))
		return -ENOMEM;
	*ret = copy;
	*ret_count = count;
	return 0;
}

const struct generation *
generations_find(const struct generation *all, size_t count, uintptr_t tagged)
{
	uintptr_t                pc = tagged & GENERATIONS_PC_MASK;
	uint16_t                 tag = (uint16_t)(tagged >> GENERATIONS_PC_BITS);
	const struct generation *first = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct generation *g = &all[i];

		if (pc < g->start || pc >= g->limit)
			continue;
		if (g->tag == tag)
			return g;
		if (!first || g->tag < first->tag)
			first = g;
	}
	return tag ? NULL : first;
}

unsigned
generations_forgotten(void)
{
	return known.forgotten;
}

/* ---- on and off ---- */

void
generations_start(void)
{
	void *mem;

	pthread_mutex_lock(&known.lock);
	if (!known.all) {
		mem = pages_map(GENERATIONS_MAX * sizeof(*known.all));
		if (mem)
			known.all = mem;
		known.budget = (struct arena_budget){ 0, GENERATIONS_BYTES };
		arena_init(&known.arena, &known.budget);
	}
	known.on = known.all != NULL;
	if (known.on) {
		look();
		generations_ranges_reserve(known.count); /* both are there now */
	}
	pthread_mutex_unlock(&known.lock);
}

/* Under the stack table's lock: without stacks there are no tags. */
static void
hide(void *old)
{
	if (!stack_table_bytes())
		generations_ranges_hide(old);
}

/* All is detached before any of it is unmapped: a child may be forked in the midst of munmap(). */
static void
forget(struct generations_published *old)
{
	void  *all = known.all, *list = known.list;
	size_t list_bytes = known.list_bytes;

	known.all = NULL;
	known.count = 0;
	known.list = NULL;
	known.list_count = known.list_bytes = 0;
	maps_keep_begin(0, 0);
	known.next_tag = 1;
	known.forgotten = 0;
	generations_ranges_release(old);
	pages_unmap(all, GENERATIONS_MAX * sizeof(*known.all));
	arena_release(&known.arena);
	pages_unmap(list, list_bytes);
}

void
generations_stop(void)
{
	struct generations_published *old = NULL;

	pthread_mutex_lock(&known.lock);
	known.on = false;
	if (stack_table_exclusively(hide, &old) && old)
		forget(old);
	pthread_mutex_unlock(&known.lock);
}

void
generations_forked(void)
{
	pthread_mutex_init(&known.lock, NULL);
	maps_forked();
}
