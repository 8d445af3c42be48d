/*
 * by_libunwind.c - stacks walked by libunwind's remote interface, from copies.
 *
 * The library is loaded when it is asked for, and only as the one with the remote
 * functions: libunwind.so itself exports _Unwind_* and backtrace, which must not take
 * the place of libgcc's and libc's, so it stays out of the program's scope.
 *
 *     words, stack ──▶ access_reg, access_mem ─┐
 *     tables' objects: .eh_frame_hdr ──────────┴─ _Ux86_64_step ──▶ pcs
 *
 * What a stranger would get wrong:
 * - The thread ran on since, so that nothing of its stack but the copy may be read.
 *   Code and unwind sections are read by memory.c: dlclose may take them away.
 * - libunwind remembers what it learnt of a pc.  It is told to forget when the tables
 *   have been built anew, for another object may stand there.
 * - The function that searches .eh_frame_hdr's table is exported, but in no header.
 * - It guesses where it knows nothing, so a caller must be code (caller_at()).
 * - It takes memory from malloc.  Our threads' is never sampled, and dumps of hanging
 *   programs do not come here.
 * - Of a blocked thread most registers are not known, and must be refused, not be 0: a
 *   frame by a made-up register is worse than none.
 *
 * Tests: tests/unwind/test_remote.c.
 */
#include <config.h>

#include "unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#if defined(__has_include)
#if ARCH_LIBUNWIND && __has_include(<libunwind.h>)
#define HAVE_REMOTE 1
#endif
#endif

#include "clock.h"
#include "memory.h"
#include "tables_lookup.h"
#include "frame.h"
#include "verdict.h"
#include "want.h"

#define LIBUNWIND_PACKAGE "libunwind8"

#ifdef HAVE_REMOTE

#include <libunwind.h>

#define TEXT_OF(name) #name
#define TEXT(macro)   TEXT_OF(macro)
#define LIBRARY       "libunwind-" TEXT(UNW_TARGET) ".so.8"
#define PREFIX        "_U" TEXT(UNW_TARGET) "_"

#define BLOCK_BYTES 4096
#define FORK_WAIT_NS 500000000LL /* for a walk, which takes microseconds */
#define BLOCKS      16 /* of code and sections, read anew for each stack */

typedef int search_fn(unw_addr_space_t, unw_word_t, unw_dyn_info_t *, unw_proc_info_t *, int,
		      void *);

static struct {
	pthread_mutex_t  lock; /* opening */
	unw_addr_space_t space;
	unw_addr_space_t (*create)(unw_accessors_t *, int);
	int (*init)(unw_cursor_t *, unw_addr_space_t, void *);
	int (*init_local)(unw_cursor_t *, unw_context_t *, int);
	int (*step)(unw_cursor_t *);
	int (*get_reg)(unw_cursor_t *, unw_regnum_t, unw_word_t *);
	int (*is_signal)(unw_cursor_t *);
	int (*caching)(unw_addr_space_t, unw_caching_policy_t);
	void (*flush)(unw_addr_space_t, unw_word_t, unw_word_t);
	search_fn *search;
	unsigned   generation; /* of the tables, when it last forgot */
	bool       lost;       /* in a child: locks of the library's own are taken for good */
} lib = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct remote_walk {
	uintptr_t        regs[UNW_REG_LAST + 1]; /* by libunwind's numbers, which are DWARF's */
	bool             known[UNW_REG_LAST + 1];
	uintptr_t        base; /* of the copy */
	const uintptr_t *stack;
	size_t           size;
	struct memory    mem;
	struct tables_section section; /* of the last pc looked up */
	uintptr_t        blocks[BLOCKS]; /* addresses; 0: empty */
};

static pthread_mutex_t walking = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(8) unsigned char block_bytes[BLOCKS][BLOCK_BYTES]; /* under it */

static bool
section_has(const struct tables_section *s, uintptr_t address)
{
	return (address >= s->start && address < s->end) || address - s->header < s->header_size ||
	       address - s->frames < s->frames_size;
}

/* One word of code or of an unwind section; never of a stack. */
static int
word_read(struct remote_walk *w, uintptr_t address, uintptr_t *ret)
{
	uintptr_t block = address & ~(uintptr_t)(BLOCK_BYTES - 1);
	unsigned  i = (unsigned)(block / BLOCK_BYTES % BLOCKS);

	if (!section_has(&w->section, address))
		return -UNW_EINVAL;
	if (address - block > BLOCK_BYTES - sizeof(*ret)) /* across two blocks */
		return memory_read(&w->mem, address, ret, sizeof(*ret)) ? 0 : -UNW_EINVAL;
	if (w->blocks[i] != block) {
		w->blocks[i] = 0;
		if (!memory_read(&w->mem, block, block_bytes[i], BLOCK_BYTES))
			return memory_read(&w->mem, address, ret, sizeof(*ret)) ? 0 : -UNW_EINVAL;
		w->blocks[i] = block;
	}
	memcpy(ret, block_bytes[i] + (address - block), sizeof(*ret));
	return 0;
}

static int
access_mem(unw_addr_space_t as, unw_word_t address, unw_word_t *value, int write, void *arg)
{
	struct remote_walk *w = arg;
	uintptr_t           base = w->base, word;
	int                 err;

	(void)as;
	if (write)
		return -UNW_EINVAL;
	if (address >= base && address - base < w->size && w->size - (address - base) >= sizeof(word)) {
		memcpy(value, (const char *)w->stack + (address - base), sizeof(word));
		return 0;
	}
	err = word_read(w, address, &word);
	if (err == 0)
		*value = word;
	return err;
}

static int
access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write, void *arg)
{
	const struct remote_walk *w = arg;

	(void)as;
	if (write || reg < 0 || reg > UNW_REG_LAST || !w->known[reg])
		return -UNW_EBADREG;
	*value = w->regs[reg];
	return 0;
}

static int
access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
	(void)as;
	(void)reg;
	(void)value;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static int
find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need_info, void *arg)
{
	struct remote_walk    *w = arg;
	struct tables_section *s = &w->section;
	unw_dyn_info_t         di;
	uintptr_t              count;

	/* version and three encodings, the pointer to .eh_frame, then count and table */
	if (!tables_section_of(ip, s) || word_read(w, s->header + 8, &count) != 0)
		return -UNW_ENOINFO;
	memset(&di, 0, sizeof(di));
	di.start_ip = s->start;
	di.end_ip = s->end;
	di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	di.u.rti.segbase = s->header_base;
	di.u.rti.table_data = s->header + 12;
	di.u.rti.table_len = (uint32_t)count;
	return lib.search(as, ip, &di, pi, need_info, arg);
}

static void
put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	/* What search() made is in libunwind's own pool, and is put back there by it. */
	(void)as;
	(void)pi;
	(void)arg;
}

static int
no_dyn_info(unw_addr_space_t as, unw_word_t *list, void *arg)
{
	(void)as;
	(void)list;
	(void)arg;
	return -UNW_ENOINFO;
}

static int
no_resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
	(void)as;
	(void)cursor;
	(void)arg;
	return -UNW_EINVAL;
}

static int
no_name(unw_addr_space_t as, unw_word_t ip, char *buf, size_t size, unw_word_t *offset, void *arg)
{
	(void)as;
	(void)ip;
	(void)buf;
	(void)size;
	(void)offset;
	(void)arg;
	return -UNW_ENOINFO;
}

static bool
symbols_find(void *handle)
{
	static const char *const names[] = {
		"create_addr_space", "init_remote", "init_local2", "step", "get_reg", "is_signal_frame",
		"set_caching_policy", "flush_cache", "dwarf_search_unwind_table" };
	void *const to[] = {
		&lib.create, &lib.init, &lib.init_local, &lib.step, &lib.get_reg, &lib.is_signal,
		&lib.caching, &lib.flush, &lib.search };
	char        name[64];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *symbol;

		strcpy(name, PREFIX);
		strcat(name, names[i]);
		symbol = dlsym(handle, name);
		if (!symbol)
			return false;
		memcpy(to[i], &symbol, sizeof(symbol));
	}
	return true;
}

static int
open_library(void)
{
	static unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = no_dyn_info,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = no_resume,
		.get_proc_name = no_name,
	};
	void *handle;
	int   err = 0;

	pthread_mutex_lock(&lib.lock);
	if (lib.space)
		goto out;
	err = -EDEADLK;
	if (lib.lost)
		goto out;
	handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	err = -ENOENT;
	if (!handle)
		goto out;
	err = -ENOSYS;
	if (!symbols_find(handle))
		goto out;
	lib.space = lib.create(&accessors, 0);
	err = lib.space ? 0 : -ENOMEM;
	if (lib.space)
		lib.caching(lib.space, UNW_CACHE_GLOBAL);
out:
	pthread_mutex_unlock(&lib.lock);
	return err;
}

/*
 * The address to be shown of the caller that libunwind has found; 0: it is none.  Where it
 * finds no description it guesses by the frame pointer: then only what a call returns to is
 * a caller.  *ret_root: it has none.
 */
static uintptr_t
caller_at(uintptr_t callee, uintptr_t pc, bool exact, bool *ret_root)
{
	struct tables_reader reader;
	const struct tables *t = tables_enter(&reader);
	uintptr_t            at = exact ? pc : pc - 1;
	bool                 described = t && tables_code(t, callee) != TABLES_CODE_NONE;
	bool                 is;

	unwind_verdict_now(pc); /* so that nothing below is unsure */
	is = exact || described || tables_is_return(t, pc) == TABLES_YES;
	*ret_root = described && !exact && tables_is_entered(t, pc) == TABLES_YES;
	if (*ret_root || (t && !exact && tables_is_signal_frame(t, at))) {
		is = true;
		at = pc;
	}
	if (t && tables_code(t, at) == TABLES_CODE_NONE && !tables_is_code(t, at)) {
		unwind_want(at);
		is = exact || (described && tables_looks_return(pc) == TABLES_YES);
	}
	tables_leave(&reader);
	return is ? at : 0;
}

/* Where libunwind has only guessed that there is no caller, there may be one. */
static bool
is_described(uintptr_t at)
{
	struct tables_reader reader;
	const struct tables *t = tables_enter(&reader);
	bool                 is = t && tables_code(t, at) != TABLES_CODE_NONE;

	tables_leave(&reader);
	return is;
}

static unsigned
remote_steps(struct remote_walk *w, unw_word_t leaf, uintptr_t *pcs, unsigned max,
	     int *ret_truncated)
{
	unw_cursor_t cursor;
	unw_word_t   pc;
	unsigned     n = 0;
	int          step = 1, exact = 1;
	bool         root = false;

	if (max == 0 || lib.init(&cursor, lib.space, w) < 0 ||
	    (!leaf && lib.get_reg(&cursor, UNW_REG_IP, &leaf) < 0))
		return 0;
	pcs[n++] = leaf;
	while ((step = lib.step(&cursor)) > 0) {
		pc = 0;
		if (lib.get_reg(&cursor, UNW_REG_IP, &pc) < 0 || pc == 0)
			break;
		if (n == max)
			return n; /* there is one more */
		exact = lib.is_signal(&cursor) > 0;
		pc = caller_at(pcs[n - 1], arch_pointer_strip(pc), exact, &root);
		if (pc == 0)
			return n;
		pcs[n++] = pc;
		if (root)
			break;
	}
	*ret_truncated = !root && (step < 0 || (ARCH_HAVE_TABLES && !is_described(pcs[n - 1])));
	return n;
}

static bool fork_holds; /* who forks has walking */

/* No other thread is in the middle of a walk then, with locks of the library's that nobody gives back in a child. */
static void
fork_prepare(void)
{
	struct timespec until = clock_timespec(clock_ns(CLOCK_MONOTONIC) + FORK_WAIT_NS);

	fork_holds = lib.space && OUR_WAIT(pthread_mutex_clocklock(&walking, CLOCK_MONOTONIC, &until)) == 0;
}

static void
fork_parent(void)
{
	if (fork_holds)
		pthread_mutex_unlock(&walking);
}

static void
forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	if ((!fork_holds && pthread_mutex_trylock(&walking) != 0) || pthread_mutex_trylock(&lib.lock) != 0) {
		lib.lost = true;
		lib.space = NULL;
	}
	fork_holds = false;
	walking = fresh;
	lib.lock = fresh;
}

static void
reg_set(struct remote_walk *w, unsigned reg, uintptr_t value)
{
	w->regs[reg] = value;
	w->known[reg] = true;
}

/* Those of an interrupted thread, where nobody but libunwind knows the places of a ucontext_t. */
static void
regs_find(struct remote_walk *w, const uintptr_t *taken)
{
	unw_context_t context;
	unw_cursor_t  cursor;
	unw_word_t    value;

	_Static_assert(ARCH_TAKEN_WORDS == 0 || sizeof(context) >= sizeof(ucontext_t),
		       "a ucontext_t is libunwind's context");
	memcpy(&context, taken, ARCH_TAKEN_WORDS * sizeof(*taken));
	if (lib.init_local(&cursor, &context, UNW_INIT_SIGNAL_FRAME) < 0)
		return;
	for (unsigned i = 0; i <= UNW_REG_LAST; i++)
		if (lib.get_reg(&cursor, (unw_regnum_t)i, &value) == 0)
			reg_set(w, i, value);
}

static void
regs_fill(struct remote_walk *w, const struct unwind_taken *t)
{
	w->base = t->words ? t->words[UNWIND_WORD_SP] : t->sp;
	for (unsigned i = 0; t->words && !ARCH_TAKEN_WORDS && i < CFI_REGS; i++)
		reg_set(w, i, t->words[i]);
	if (t->words && ARCH_TAKEN_WORDS && lib.space)
		regs_find(w, t->words + UNWIND_WORD_PC + 1);
	if (t->words)
		return;
	reg_set(w, UNW_REG_IP, t->pc);
	reg_set(w, UNW_REG_SP, t->sp);
	if (t->fp)
		reg_set(w, CFI_REG_FP, t->fp);
}

static unsigned
walk_taken(const struct unwind_taken *t, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	struct remote_walk w = { .stack = t->stack, .size = t->size };
	unsigned           n = 0, generation = tables_generation();

	*ret_truncated = 1;
	regs_fill(&w, t);
	pthread_mutex_lock(&walking);
	if (!lib.space || memory_open(&w.mem) < 0)
		goto out;
	if (generation != lib.generation)
		lib.flush(lib.space, 0, 0);
	lib.generation = generation;
	n = remote_steps(&w, t->words ? t->words[UNWIND_WORD_PC] : t->pc, pcs, max, ret_truncated);
	memory_close(&w.mem);
out:
	pthread_mutex_unlock(&walking);
	return n;
}

const struct unwinder unwind_by_libunwind = {
	.name = "libunwind", .package = LIBUNWIND_PACKAGE, .open = open_library,
	.tables = true, /* for their sections */ .taken = walk_taken,
	.fork_prepare = fork_prepare, .fork_parent = fork_parent, .forked = forked };

#else

static int
open_library(void)
{
	return -ENOSYS;
}

const struct unwinder unwind_by_libunwind = {
	.name = "libunwind", .open = open_library, .package = LIBUNWIND_PACKAGE };

#endif
