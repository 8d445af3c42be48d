/*
 * owners.c - what is known without looking: our own mappings, those of the program's calls, and
 * the part of objects that no file has.
 *
 * Tests: tests/memory/memory.t.
 */
#include <config.h>

#include "owners.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "generations.h"
#include "pages.h"
#include "resident.h"
#include "stack_table.h"

#define HEADERS_MAX 32 /* program headers that are looked at; linkers write about a dozen */

/* ---- ours ---- */

/* By the folder of the file that has mapped it. */
static const struct purpose {
	const char *folder, *name;
} purposes[] = {
	{ "profiler/unwind/", "tables to walk stacks by" },
	{ "profiler/symbols/", "names of functions" },
	{ "profiler/model/stack", "stacks and labels" },
	{ "profiler/model/", "objects and profiles in the making" },
	{ "profiler/collect/heap/", "heap samples" },
	{ "profiler/collect/cpu/", "CPU samples" },
	{ "profiler/collect/wall/", "wall-clock samples" },
	{ "profiler/collect/waits/", "waits" },
	{ "profiler/collect/trace/", "traces" },
	{ "profiler/collect/events/", "traces" },
	{ "profiler/collect/mmap/", "mappings" },
	{ "profiler/collect/resident/", "this table" },
	{ "profiler/collect/", "counts by stack" },
	{ "profiler/serve/", "requests" },
	{ "libcomponent/http/", "HTTP server" },
	{ "libcomponent/base/", "answers in the making" },
};

static const char *
purpose_of(const char *file)
{
	for (size_t i = 0; i < sizeof(purposes) / sizeof(purposes[0]); i++)
		if (strstr(file, purposes[i].folder))
			return purposes[i].name;
	return "other";
}

int
owners_ours(struct owners *o, struct ranges *ret)
{
	uintptr_t   start, page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const char *file;
	int         r = 0;

	for (unsigned i = 0; i < PAGES_KEPT && r >= 0; i++) {
		size_t bytes = pages_noted(i, &start, &file);

		if (!bytes)
			continue;
		r = residence_row(o->table, RESIDENCE_OURS, purpose_of(file), 0);
		if (r >= 0)
			r = ranges_add(ret, start, (start + bytes + page - 1) & ~(page - 1), r);
	}
	return r < 0 ? r : 0;
}

/* ---- by the stack that made them ---- */

struct making {
	struct owners *owners;
	struct ranges *to;
};

/* Was it the allocator that mapped it?  One that is linked into the program cannot be told from that. */
static bool
is_allocators(const struct owners *o, uint32_t stack)
{
	const struct smaps_mapping *code = smaps_find(o->smaps, (uintptr_t)allocator_code()), *leaf;
	const struct smaps_mapping *program = smaps_find(o->smaps, getauxval(AT_PHDR));
	const uintptr_t            *pcs;
	unsigned                    n;

	if (!code || !*code->path || !program || !strcmp(code->path, program->path))
		return false;
	pcs = stack_table_pcs(stack, &n);
	leaf = pcs && n ? smaps_find(o->smaps, pcs[0] & GENERATIONS_PC_MASK) : NULL;
	return leaf && !strcmp(leaf->path, code->path);
}

static int
add_made(void *making, uintptr_t start, uintptr_t limit, uint32_t stack)
{
	struct making *m = making;
	bool           heap = is_allocators(m->owners, stack);
	int            r = heap ? residence_row(m->owners->table, RESIDENCE_HEAP, m->owners->allocator->name, 0) :
			      residence_row(m->owners->table, RESIDENCE_MAPPINGS, "", stack);

	return r < 0 ? r : ranges_add(m->to, start, limit, r);
}

int
owners_makers(struct owners *o, struct ranges *ret)
{
	const struct resident_maker *maker = resident_maker;
	struct making                m = { o, ret };

	return maker ? maker->list(add_made, &m) : 0;
}

/* ---- objects ---- */

/* The last addresses of each segment are behind what its file has. */
static int
add_segments(struct owners *o, const struct smaps_mapping *m, const ElfW(Phdr) *headers, size_t count,
	     struct ranges *ret)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), base = m->start, start, limit;
	int       r = residence_row(o->table, RESIDENCE_FILES, m->path, 0);

	for (size_t i = 0; i < count; i++)
		if (headers[i].p_type == PT_LOAD && headers[i].p_offset == 0)
			base = m->start - (headers[i].p_vaddr & ~(page - 1));
	for (size_t i = 0; i < count && r >= 0; i++) {
		if (headers[i].p_type != PT_LOAD || headers[i].p_memsz <= headers[i].p_filesz)
			continue;
		start = base + headers[i].p_vaddr + headers[i].p_filesz;
		limit = base + headers[i].p_vaddr + headers[i].p_memsz;
		if (ranges_add(ret, (start + page - 1) & ~(page - 1), (limit + page - 1) & ~(page - 1), r))
			return -ENOMEM;
	}
	return r;
}

static int
add_object(struct owners *o, const struct smaps_mapping *m, struct ranges *ret)
{
	ElfW(Phdr) headers[HEADERS_MAX];
	ElfW(Ehdr) head;
	size_t     count;

	if (!memory_read(&o->memory, m->start, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_phentsize != sizeof(headers[0]))
		return 0;
	count = head.e_phnum < HEADERS_MAX ? head.e_phnum : HEADERS_MAX;
	if (!memory_read(&o->memory, m->start + head.e_phoff, headers, count * sizeof(headers[0])))
		return 0;
	return add_segments(o, m, headers, count, ret);
}

int
owners_objects(struct owners *o, struct ranges *ret)
{
	int r = 0;

	for (size_t i = 0; i < o->smaps->count && r >= 0; i++) {
		const struct smaps_mapping *m = &o->smaps->all[i];

		if (*m->path == '/' && m->offset == 0 && m->readable && !m->shared)
			r = add_object(o, m, ret);
	}
	return r < 0 ? r : 0;
}
