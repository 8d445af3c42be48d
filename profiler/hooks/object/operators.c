/*
 * operators.c - operator new and delete of C++, by their mangled names, in C.
 *
 * Most of them need nothing: libstdc++'s call malloc, which is counted there, so
 * the hook leads straight on.  They count themselves in two cases:
 *   - the next operators belong to the next allocator (jemalloc, a sanitizer):
 *     those never come through malloc;
 *   - there are none behind us.  A C program may load a C++ plugin later, with
 *     RTLD_LOCAL: the plugin, and the libstdc++ it brings, then bind to ours, and
 *     RTLD_NEXT cannot see theirs.  Ours then are made of malloc and free.
 *
 * What a stranger would get wrong:
 * - C cannot throw std::bad_alloc.  When memory runs out and there is none behind
 *   us, the runtime that the caller brought is looked up and jumped to: its
 *   operator tries again, calls the new-handler and throws, with none of our
 *   frames on the stack.
 * - Exceptions do pass cold.c when the next operator throws there; it is compiled
 *   with unwind tables, and the core is told nothing, as nothing was allocated.
 * - They are weak: a program's own operator new replaces them at link time.
 */
#include "object.h"

#include <link.h>
#include <string.h>

#include "lookup.h"

#define COUNTS(name) \
	UNLIKELY(hooks_self.operators_by_name[HOOKS_##name - HOOKS__Znwm] != HOOKS_OPERATORS_PASS)

#define NEW(name)                                        \
	void *hook_##name(size_t size)                   \
	{                                                \
		if (COUNTS(name) && SAMPLED(size))             \
			return cold_##name(size);        \
		return NEXT(name)(size);                 \
	}                                                \
	EXPORT(name);
#define NEW_NOTHROW(name)                                        \
	void *hook_##name(size_t size, const void *nothrow)      \
	{                                                        \
		if (COUNTS(name) && SAMPLED(size))                     \
			return cold_##name(size, nothrow);       \
		return NEXT(name)(size, nothrow);                \
	}                                                        \
	EXPORT(name);
#define NEW_ALIGN(name)                                          \
	void *hook_##name(size_t size, size_t align)             \
	{                                                        \
		if (COUNTS(name) && SAMPLED(size))                     \
			return cold_##name(size, align);         \
		return NEXT(name)(size, align);                  \
	}                                                        \
	EXPORT(name);
#define NEW_ALIGN_NOTHROW(name)                                             \
	void *hook_##name(size_t size, size_t align, const void *nothrow)   \
	{                                                                   \
		if (COUNTS(name) && SAMPLED(size))                                \
			return cold_##name(size, align, nothrow);           \
		return NEXT(name)(size, align, nothrow);                    \
	}                                                                   \
	EXPORT(name);

HOOKS_NEW_SHAPES(NEW, NEW_NOTHROW, NEW_ALIGN, NEW_ALIGN_NOTHROW)

/* delete: up to two more arguments, of the size of a register each, which only
 * the next one looks at. */
#define DELETE(name)                                             \
	void hook_##name(void *block, size_t a, size_t b)        \
	{                                                        \
		if (OURS(block))                                 \
			cold_##name(block, a, b);                \
		else                                             \
			NEXT(name)(block, a, b);                 \
	}                                                        \
	void cold_##name(void *block, size_t a, size_t b)        \
	{                                                        \
		if (!cold_release(HOOKS_##name, block))          \
			NEXT(name)(block, a, b);                 \
	}                                                        \
	EXPORT(name);

HOOKS_DELETE_NAMES(DELETE)

/* ---- when there are none behind us ---- */

/* What the object looks like that has the operator for a plugin. */
struct runtime {
	const char *name;   /* of the operator */
	void       *ours;   /* that it is not */
	uintptr_t   caller; /* in the plugin: it may have its runtime linked into it */
	void       *found;
};

static int
has_address(const struct dl_phdr_info *object, uintptr_t address)
{
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && address - (object->dlpi_addr + p->p_vaddr) < p->p_memsz)
			return 1;
	}
	return 0;
}

static int
is_runtime(const char *path)
{
	static const char *const runtimes[] = { "libstdc++.so.6", "libc++abi.so.1", "libc++.so.1" };
	const char *name = path;

	for (const char *at = path; *at; at++)
		if (*at == '/')
			name = at + 1;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (strcmp(name, runtimes[i]) == 0)
			return 1;
	return 0;
}

static int
look_for_runtime(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct runtime *r = arg;

	(void)size;
	if (!is_runtime(object->dlpi_name) && !has_address(object, r->caller))
		return 0;
	for (size_t i = 0; i < object->dlpi_phnum && !r->found; i++)
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			r->found = lookup_in(object->dlpi_addr,
				(const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr), r->name);
	if (r->found == r->ours)
		r->found = NULL;
	return r->found != NULL;
}

/* The operator of the runtime that the calling plugin brought.  This takes the loader's lock,
 * as what follows does anyway where the unwinder asks it for tables. */
static void *
runtime_symbol(const char *name, void *ours, const void *caller)
{
	struct runtime r = { .name = name, .ours = ours, .caller = (uintptr_t)caller };

	dl_iterate_phdr(look_for_runtime, &r);
	return r.found;
}

/* Whoever called our operator: cold.c has noted it, or there is no frame between. */
#define CALLER(ret)                                                                             \
	do {                                                                                    \
		(ret) = hooks_thread.caller ? (void *)hooks_thread.caller : __builtin_return_address(0); \
		hooks_thread.caller = 0;                                                        \
	} while (0)

static void *
none_new(size_t size)
{
	void *block = MAKER(malloc)(size ? size : 1);
	void *(*theirs)(size_t);
	void *caller;

	CALLER(caller);
	if (LIKELY(block != NULL))
		return block;
	theirs = (void *(*)(size_t))runtime_symbol("_Znwm", (void *)hook__Znwm, caller);
	if (!theirs)
		return NULL;
	return theirs(size);
}

static void *
none_new_nothrow(size_t size, const void *nothrow)
{
	(void)nothrow;
	hooks_thread.caller = 0;
	return MAKER(malloc)(size ? size : 1);
}

static void *
none_new_align(size_t size, size_t align)
{
	void *block = MAKER(memalign)(align, size ? size : 1);
	void *(*theirs)(size_t, size_t);
	void *caller;

	CALLER(caller);
	if (LIKELY(block != NULL))
		return block;
	theirs = (void *(*)(size_t, size_t))runtime_symbol("_ZnwmSt11align_val_t",
		(void *)hook__ZnwmSt11align_val_t, caller);
	if (!theirs)
		return NULL;
	return theirs(size, align);
}

static void *
none_new_align_nothrow(size_t size, size_t align, const void *nothrow)
{
	(void)nothrow;
	hooks_thread.caller = 0;
	return MAKER(memalign)(align, size ? size : 1);
}

static void
none_delete(void *block, size_t a, size_t b)
{
	(void)a;
	(void)b;
	MAKER(free)(block);
}

static void
fill(struct lookup *l, void *made)
{
	if (!l->address)
		l->address = made;
}

#define FILL_NEW(name) fill(&behind[HOOKS_##name], (void *)none_new);
#define FILL_NEW_NOTHROW(name) fill(&behind[HOOKS_##name], (void *)none_new_nothrow);
#define FILL_NEW_ALIGN(name) fill(&behind[HOOKS_##name], (void *)none_new_align);
#define FILL_NEW_ALIGN_NOTHROW(name) fill(&behind[HOOKS_##name], (void *)none_new_align_nothrow);
#define FILL_DELETE(name) fill(&behind[HOOKS_##name], (void *)none_delete);

void
operators_fill_in(struct lookup *behind)
{
	HOOKS_NEW_SHAPES(FILL_NEW, FILL_NEW_NOTHROW, FILL_NEW_ALIGN, FILL_NEW_ALIGN_NOTHROW)
	HOOKS_DELETE_NAMES(FILL_DELETE)
}

/* Each for itself: jemalloc has the plain ones, and those with an alignment are libstdc++'s. */
void
operators_classify(const struct lookup *behind)
{
	static const int names[] = {
#define X(name) HOOKS_##name,
		HOOKS_NEW_NAMES(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct lookup *l = &behind[names[i]];
		uint32_t             kind = HOOKS_OPERATORS_PASS;

		if (!l->object)
			kind = HOOKS_OPERATORS_NONE;
		else if (l->object == behind[HOOKS_malloc].object && !hooks_self.next_is_libc)
			kind = HOOKS_OPERATORS_OWN;
		__atomic_store_n(&hooks_self.operators_by_name[names[i] - HOOKS__Znwm], kind, __ATOMIC_RELAXED);
	}
}
