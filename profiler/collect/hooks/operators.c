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
#include "hook.h"

#include <dlfcn.h>

#include "hooks_object.h"

#define COUNTS (UNLIKELY(hooks_self.operators != HOOKS_OPERATORS_PASS))

#define NEW(name)                                        \
	void *hook_##name(size_t size)                   \
	{                                                \
		if (COUNTS && SAMPLED(size))             \
			return cold_##name(size);        \
		return NEXT(name)(size);                 \
	}                                                \
	EXPORT(name);
#define NEW_NOTHROW(name)                                        \
	void *hook_##name(size_t size, const void *nothrow)      \
	{                                                        \
		if (COUNTS && SAMPLED(size))                     \
			return cold_##name(size, nothrow);       \
		return NEXT(name)(size, nothrow);                \
	}                                                        \
	EXPORT(name);
#define NEW_ALIGN(name)                                          \
	void *hook_##name(size_t size, size_t align)             \
	{                                                        \
		if (COUNTS && SAMPLED(size))                     \
			return cold_##name(size, align);         \
		return NEXT(name)(size, align);                  \
	}                                                        \
	EXPORT(name);
#define NEW_ALIGN_NOTHROW(name)                                             \
	void *hook_##name(size_t size, size_t align, const void *nothrow)   \
	{                                                                   \
		if (COUNTS && SAMPLED(size))                                \
			return cold_##name(size, align, nothrow);           \
		return NEXT(name)(size, align, nothrow);                    \
	}                                                                   \
	EXPORT(name);

HOOKS_NEW_SHAPES(NEW, NEW_NOTHROW, NEW_ALIGN, NEW_ALIGN_NOTHROW)

/* delete: up to two more arguments, of the size of a register each, which only
 * the next one looks at. */
#define DELETE(name)                                                   \
	void hook_##name(void *block, size_t a, size_t b)              \
	{                                                              \
		if (OURS(block) && cold_release(HOOKS_##name, block))  \
			return;                                        \
		NEXT(name)(block, a, b);                               \
	}                                                              \
	EXPORT(name);

HOOKS_DELETE_NAMES(DELETE)

/* ---- when there are none behind us ---- */

/* The operator of the runtime that the calling plugin brought. */
static void *
runtime_symbol(const char *name, const void *caller)
{
	static const char *const runtimes[] = { "libstdc++.so.6", "libc++abi.so.1", "libc++.so.1" };
	Dl_info info;
	void   *handle, *symbol = NULL;

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]) && !symbol; i++) {
		handle = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
		if (!handle)
			continue;
		symbol = dlsym(handle, name);
		dlclose(handle);
	}
	if (!symbol && dladdr(caller, &info)) { /* linked into the plugin itself */
		handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
		symbol = handle ? dlsym(handle, name) : NULL;
		if (handle)
			dlclose(handle);
	}
	return symbol;
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
	theirs = (void *(*)(size_t))runtime_symbol("_Znwm", caller);
	if (!theirs || theirs == hook__Znwm)
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
	theirs = (void *(*)(size_t, size_t))runtime_symbol("_ZnwmSt11align_val_t", caller);
	if (!theirs || theirs == hook__ZnwmSt11align_val_t)
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

/* Before a second copy of the hooks is skipped, which looks at all of next[]. */
void
operators_find(void)
{
#define X(name) hooks_self.next[HOOKS_##name] = next_symbol(#name);
	HOOKS_NEW_NAMES(X)
	HOOKS_DELETE_NAMES(X)
#undef X
}

/* What was found is another copy's way to do without: ours does as well. */
void
operators_forget(void)
{
#define X(name) hooks_self.next[HOOKS_##name] = NULL;
	HOOKS_NEW_NAMES(X)
	HOOKS_DELETE_NAMES(X)
#undef X
}

static void
fill(int name, void *made)
{
	if (!hooks_self.next[name])
		hooks_self.next[name] = made;
}

#define FILL_NEW(name) fill(HOOKS_##name, (void *)none_new);
#define FILL_NEW_NOTHROW(name) fill(HOOKS_##name, (void *)none_new_nothrow);
#define FILL_NEW_ALIGN(name) fill(HOOKS_##name, (void *)none_new_align);
#define FILL_NEW_ALIGN_NOTHROW(name) fill(HOOKS_##name, (void *)none_new_align_nothrow);
#define FILL_DELETE(name) fill(HOOKS_##name, (void *)none_delete);

void
operators_resolve(const struct link_map *allocator)
{
	void *plain = hooks_self.next[HOOKS__Znwm];

	if (plain && (hooks_self.next_is_libc || hooks_object_of(plain) != allocator))
		hooks_self.operators = HOOKS_OPERATORS_PASS;
	else
		hooks_self.operators = plain ? HOOKS_OPERATORS_OWN : HOOKS_OPERATORS_NONE;
	HOOKS_NEW_SHAPES(FILL_NEW, FILL_NEW_NOTHROW, FILL_NEW_ALIGN, FILL_NEW_ALIGN_NOTHROW)
	HOOKS_DELETE_NAMES(FILL_DELETE)
}
