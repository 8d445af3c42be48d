/*
 * maps_loader.c - lines as those of /proc/self/maps where there is no /proc.
 *
 *     _r_debug ── the loader's list ── each object's ELF header in memory ── its segments ── lines
 *
 * A daemon that has changed its root, or runs in a container without /proc, still knows its
 * objects: the loader's list says where each begins, and its program headers are mapped.
 *
 * What a stranger would get wrong:
 * - Not dl_iterate_phdr(): it takes the loader's lock, and who reads maps holds locks of ours.
 *   A plugin's constructor that forks has the loader's and waits for ours.  So the list is
 *   read as a debugger would: by memory.c, between two looks that say it stands still.
 * - The list has neither device nor inode, and its paths are those that were asked for.
 *   What was known of a place while /proc was there is said again, or every object would
 *   seem to be another one.  Else an inode is made up, which no file has on device 0:0.
 * - A plugin may have left its place to another since: four bytes in memory, as a rule of
 *   the build id, say whether it is still there.
 * - Code that was made at run time, and objects that were not loaded by the loader, are in
 *   no list.
 *
 * Tests: tests/threads/test_without_proc.c, tests/whole/restricted_process.t.
 */
#include <config.h>

#include "maps.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"
#include "pages.h"

#define LINES_MAX   8192
#define OBJECTS_MAX 4096
#define NAMES_BYTES ((size_t)1 << 20)
#define PHDRS_MAX   64
#define LOOKS       20       /* while the loader is at work, each after ... */
#define LOOK_NS     1000000L
#define LINE_BYTES  128      /* of a line without its path */
#define ADDRESS_MAX ((uintptr_t)1 << 48)

extern struct r_debug _r_debug __attribute__((weak));

/* Since glibc 2.35 there is one for each dlmopen(3). */
struct debug {
	struct r_debug base;
	struct debug  *next;
};

struct entry {
	uintptr_t start, limit;
	uint64_t  offset, device, inode;
	uint32_t  name; /* in names */
	bool      executable, deleted;
};

struct made {
	struct memory mem;
	uintptr_t     page;
	size_t        count, names_size;
	struct entry  entries[LINES_MAX];
	char          names[NAMES_BYTES];
};

/* ---- what was known ---- */

struct known {
	uintptr_t start;
	uint64_t  offset, device, inode;
	uintptr_t mark; /* where four bytes tell it from others; 0: none */
	uint32_t  mark_is;
	size_t    path; /* bytes behind all */
	bool      deleted;
};

static struct {
	pthread_mutex_t lock; /* the last of all */
	struct known   *all;
	size_t          count, bytes; /* bytes: of all, with the paths behind */
	size_t          paths_at; /* where the next path goes */
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Twice as much, so that plugins that come and go take no other place each time. */
static int
known_grow(size_t bytes)
{
	void  *p = pages_map(bytes * 2), *old = known.all;
	size_t old_bytes = known.bytes;

	if (!p)
		return -ENOMEM; /* what was kept before is as good as it can be */
	known.count = 0; /* a child of fork() reads without the lock: never more than is there */
	known.all = p;
	known.bytes = bytes * 2;
	atomic_signal_fence(memory_order_seq_cst);
	pages_unmap(old, old_bytes);
	return 0;
}

int
maps_keep_begin(size_t count, size_t path_bytes)
{
	size_t bytes = count * sizeof(*known.all) + path_bytes, old_bytes;
	void  *old;
	int    r = 0;

	pthread_mutex_lock(&known.lock);
	if (!bytes && known.all) {
		old = known.all;
		old_bytes = known.bytes;
		known.count = known.bytes = 0;
		known.all = NULL;
		atomic_signal_fence(memory_order_seq_cst);
		pages_unmap(old, old_bytes); /* last: a child forked in between must not find what is gone */
	} else if (bytes > known.bytes) {
		r = known_grow(bytes);
	}
	if (!r) {
		known.count = 0;
		known.paths_at = count * sizeof(*known.all);
	}
	pthread_mutex_unlock(&known.lock);
	return r;
}

void
maps_keep(const struct maps_line *l, uintptr_t mark, uint32_t mark_is)
{
	size_t        n = strlen(l->path) + 1;
	struct known *k;

	pthread_mutex_lock(&known.lock);
	k = &known.all[known.count];
	if ((char *)(k + 1) <= (char *)known.all + known.bytes && known.paths_at + n <= known.bytes) {
		*k = (struct known){ l->start, l->offset, l->device, l->inode, mark, mark_is, known.paths_at, l->deleted };
		memcpy((char *)known.all + known.paths_at, l->path, n);
		known.paths_at += n;
		known.count++;
	}
	pthread_mutex_unlock(&known.lock);
}

void
maps_forked(void)
{
	pthread_mutex_init(&known.lock, NULL);
}

/* ---- objects ---- */

/* The name's place; 0, where "" is: no room for it. */
static uint32_t
name_add(struct made *m, const char *name)
{
	size_t   n = strlen(name) + 1;
	uint32_t at = (uint32_t)m->names_size;

	if (NAMES_BYTES - m->names_size < n)
		return 0;
	memcpy(m->names + at, name, n);
	m->names_size += n;
	return at;
}

static void
entry_add(struct made *m, const struct entry *e)
{
	size_t i;

	if (m->count == LINES_MAX || e->start >= e->limit || e->limit > ADDRESS_MAX)
		return;
	for (i = m->count++; i > 0 && m->entries[i - 1].start > e->start; i--)
		m->entries[i] = m->entries[i - 1];
	m->entries[i] = *e;
}

/* With the lock held. */
static bool
known_is_there(const struct made *m, const struct known *k)
{
	uint32_t is;

	return !k->mark || (memory_read(&m->mem, k->mark, &is, sizeof(is)) && is == k->mark_is);
}

/* Whose it is: as it was known, else by its name. */
static void
entry_name(struct made *m, struct entry *e, const char *name)
{
	e->inode = 14695981039346656037ULL ^ e->start;
	for (const char *p = name; *p; p++)
		e->inode = (e->inode ^ (unsigned char)*p) * 1099511628211ULL;
	e->inode >>= 1;
	pthread_mutex_lock(&known.lock);
	for (size_t i = 0; i < known.count; i++) {
		const struct known *k = &known.all[i];

		if (k->start != e->start || k->offset != e->offset || !known_is_there(m, k))
			continue;
		e->device = k->device;
		e->inode = k->inode;
		e->deleted = k->deleted;
		name = (const char *)known.all + k->path;
		break;
	}
	e->name = name_add(m, name);
	pthread_mutex_unlock(&known.lock);
}

/* A line for each segment with code, and one for the file's first bytes. */
static void
object_add(struct made *m, uintptr_t header, const char *name)
{
	ElfW(Ehdr)   eh;
	ElfW(Phdr)   ph[PHDRS_MAX];
	struct entry e, who = { .name = 0 };
	uintptr_t    bias = 0, mask = ~(m->page - 1);
	bool         any = false;

	if (!memory_read(&m->mem, header, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_phentsize != sizeof(ph[0]) || eh.e_phnum > PHDRS_MAX ||
	    !memory_read(&m->mem, header + eh.e_phoff, ph, eh.e_phnum * sizeof(ph[0])))
		return;
	for (int named = 0; named < 2; named++) /* first whose it is, by its code */
		for (unsigned i = 0; i < eh.e_phnum; i++) {
			if (ph[i].p_type != PT_LOAD)
				continue;
			if (!any && ph[i].p_offset == 0)
				bias = header - ph[i].p_vaddr;
			else if (!any)
				return;
			any = true;
			e = who;
			e.start = (bias + ph[i].p_vaddr) & mask;
			e.limit = (bias + ph[i].p_vaddr + ph[i].p_filesz + m->page - 1) & mask;
			e.offset = ph[i].p_offset & mask;
			e.executable = ph[i].p_flags & PF_X;
			if (!named && e.executable && !who.name) {
				entry_name(m, &e, name);
				who = e;
			} else if (named && who.name && (e.executable || !e.offset)) {
				entry_add(m, &e);
			}
		}
}

/* ---- the loader's list ---- */

static bool
name_read(struct made *m, const char *from, char name[PATH_MAX])
{
	size_t n = from ? memory_read_some(&m->mem, (uintptr_t)from, name, PATH_MAX) : 0;

	return n > 0 && memchr(name, '\0', n);
}

static void
list_add(struct made *m, const struct link_map *l)
{
	const struct link_map *first = l;
	struct link_map        object;
	char                   name[PATH_MAX];

	for (unsigned n = 0; l && n < OBJECTS_MAX; l = object.l_next, n++) {
		if (!memory_read(&m->mem, (uintptr_t)l, &object, sizeof(object)))
			return;
		/* The program itself and the vDSO are added by what the kernel said of them. */
		if ((l == first && l == _r_debug.r_map) || object.l_addr == getauxval(AT_SYSINFO_EHDR))
			continue;
		if (name_read(m, object.l_name, name) && *name)
			object_add(m, object.l_addr, name);
	}
}

static bool
loader_rests(void)
{
	const volatile int *state = (const volatile int *)(&_r_debug ? &_r_debug.r_state : NULL);

	return !state || *state == RT_CONSISTENT;
}

static void
all_add(struct made *m)
{
	uintptr_t     phdr = getauxval(AT_PHDR), vdso = getauxval(AT_SYSINFO_EHDR), at = (uintptr_t)&_r_debug;
	const char   *name = (const char *)getauxval(AT_EXECFN);
	struct debug  d;

	m->count = 0;
	m->names_size = 1;
	if (phdr)
		object_add(m, phdr & ~(m->page - 1), name && *name ? name : program_invocation_name);
	if (vdso)
		object_add(m, vdso, "[vdso]");
	for (unsigned n = 0; at && n < OBJECTS_MAX && memory_read(&m->mem, at, &d, sizeof(d)); n++) {
		list_add(m, d.base.r_map);
		at = d.base.r_version >= 2 ? (uintptr_t)d.next : 0;
	}
}

/* ---- lines ---- */

static size_t
text_write(const struct made *m, char *text, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct entry *e = &m->entries[i];
		const char         *name = m->names + e->name;
		bool                memory = *name == '[';

		if (room - n < LINE_BYTES + 4 * strlen(name))
			break;
		n += (size_t)sprintf(text + n, "%lx-%lx r-%cp %08llx %02x:%02x %llu ", (unsigned long)e->start,
				     (unsigned long)e->limit, e->executable ? 'x' : '-', (unsigned long long)e->offset,
				     major(e->device), minor(e->device), memory ? 0 : (unsigned long long)e->inode);
		for (; *name; name++)
			n += (size_t)sprintf(text + n, *name == '\n' ? "\\012" : "%c", *name);
		n += (size_t)sprintf(text + n, e->deleted ? " (deleted)\n" : "\n");
	}
	return n;
}

int
maps_of_loader(struct maps *ret)
{
	const struct timespec pause = { 0, LOOK_NS };
	struct made          *m = arena_map(ret->budget, sizeof(*m));
	bool                  rested = false;
	int                   r;

	if (!m)
		return -ENOMEM;
	m->page = (uintptr_t)getpagesize();
	r = memory_open(&m->mem);
	for (int i = 0; !r && i < LOOKS && !rested; i++) {
		rested = loader_rests();
		if (rested)
			all_add(m);
		rested = rested && loader_rests();
		if (!rested)
			nanosleep(&pause, NULL);
	}
	if (!r)
		memory_close(&m->mem);
	if (!r && (!rested || !m->count))
		r = -EAGAIN;
	if (!r) {
		ret->room = m->count * LINE_BYTES + 4 * NAMES_BYTES;
		ret->text = arena_map(ret->budget, ret->room);
		r = ret->text ? 0 : -ENOMEM;
	}
	if (!r)
		ret->size = text_write(m, ret->text, ret->room - 1);
	arena_unmap(ret->budget, m, sizeof(*m));
	return r;
}
