/*
 * resolve.c - what debug information says about addresses, kept by address.
 *
 * Files are opened, read and closed again within one call; what stays until the end of
 * the request are the answers, a few dozen bytes for an address.
 *
 * Tests: tests/symbols/lines.t
 */
#include <config.h>

#include "resolve.h"

#include <errno.h>
#include <unistd.h>

#include "debug_file.h"
#include "file.h"
#include "our_fd.h"

struct answers {
	struct resolver         *v;
	const struct resolve_pc *pcs;
};

void
resolver_init(struct resolver *v, struct arena *a)
{
	v->arena = a;
	strings_init(&v->texts, a);
	table_init(&v->pcs, a->budget);
}

void
resolver_release(struct resolver *v)
{
	strings_release(&v->texts);
	table_release(&v->pcs);
}

const struct resolved *
resolver_find(const struct resolver *v, uintptr_t pc)
{
	return (const struct resolved *)(uintptr_t)table_get(&v->pcs, pc);
}

static int
on_found(void *arg, size_t id, const struct dwarf_frame *frames, unsigned count)
{
	struct answers  *a = arg;
	struct resolved *r = arena_alloc(a->v->arena, sizeof(*r) + count * sizeof(*frames));

	if (!r)
		return -ENOMEM;
	r->count = count;
	for (unsigned i = 0; i < count; i++)
		r->frames[i] = frames[i];
	return table_put(&a->v->pcs, a->pcs[id].pc, (uintptr_t)r);
}

static int
read_files(struct resolver *v, const struct object *o, const struct debug_file *f,
	const struct resolve_pc *pcs, size_t count)
{
	struct dwarf_files files = { &f->debug, f->has_alt ? &f->alt : NULL, &o->image };
	struct answers     answers = { v, pcs };
	struct arena       scratch;
	struct dwarf_want *wants;
	int                r = -ENOMEM;

	arena_init(&scratch, v->arena->budget);
	wants = arena_array(&scratch, count, sizeof(*wants));
	if (wants) {
		for (size_t i = 0; i < count; i++) {
			wants[i].vaddr = pcs[i].vaddr;
			wants[i].id = i;
		}
		r = dwarf_lookup(&files, v->arena->budget, &v->texts, wants, count, on_found, &answers);
	}
	arena_release(&scratch);
	return r;
}

int
resolver_read(struct resolver *v, const struct object *o, const struct resolve_pc *pcs, size_t count)
{
	struct debug_file f;
	struct image      own;
	int               fd = object_open_again(o, &own), r;

	if (fd < 0)
		return fd;
	r = debug_file_open(&own, o->path, o->build_id, v->arena->budget, &f);
	if (!r) {
		r = read_files(v, o, &f, pcs, count);
		debug_file_close(&f);
	}
	our_fd_close(fd);
	return r;
}
