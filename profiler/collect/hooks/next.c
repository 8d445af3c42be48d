/*
 * next.c - which functions stand behind ours: glibc's, jemalloc's, a sanitizer's.
 *
 * Runs once, at the first call of a hook that allocates, mostly out of the loader before
 * main() and before there is a second thread.  A wait that comes earlier looks up its own.
 *
 * What a stranger would get wrong:
 * - dlsym(RTLD_NEXT) finds out who is asking from its return address.  Turned
 *   into a jump it would start from whoever called us: this file must be compiled
 *   with -fno-optimize-sibling-calls.
 * - Allocators lack some of the family (jemalloc has no pvalloc and no
 *   reallocarray).  Found in another object, a name must not be used: glibc's
 *   pvalloc would return a block that jemalloc's free cannot take.  Such names
 *   are made of those that are there.
 * - A lookup that fails leaves a message for dlerror(), which the daemon would
 *   find: it is taken away.
 * - Another object's malloc may come before ours, and that object may be an allocator or
 *   only watch (heaptrack, libmemusage): then it calls us, whom it found by RTLD_NEXT, and
 *   must not be called back.  So what it has itself leads on behind us; what it lacks of
 *   the family is called by the program, and is made of what it has (hooks_maker).
 * - In a program that is not position independent and takes malloc's address, that
 *   address is the program's own PLT entry, and dlsym() finds that entry first.  It
 *   leads to whoever defines malloc, perhaps us: jumping there would never end.
 * - A second copy of the hooks (linked, and preloaded as well) is jumped over.
 */
#include "hook.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <unistd.h>

#include "hooks_object.h"
#include "libc.h"

static int resolving;

int
next_resolving(void)
{
	return resolving;
}

/* The first object's that defines it, in the order in which calls are bound. */
static void *
first_symbol(const char *name)
{
	void            *symbol = dlsym(RTLD_DEFAULT, name), *handle;
	struct link_map *map;

	if (!hooks_is_plt_entry(symbol))
		return symbol;
	for (map = _r_debug.r_map; map; map = map->l_next) {
		if (!map->l_name || !*map->l_name)
			continue;
		handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
		if (!handle)
			continue;
		symbol = dlsym(handle, name);
		dlclose(handle);
		if (hooks_object_of(symbol) == map && !hooks_is_plt_entry(symbol))
			return symbol;
	}
	return NULL;
}

void *
next_symbol(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* Preloaded before us, or the program's own: our malloc is called by that one or by nobody,
 * but what it lacks of the family is ours, and must then lead to it. */
static uint32_t
is_outranked(void)
{
	void                   *first = first_symbol("malloc");
	struct component_hooks *copy = dlsym(RTLD_DEFAULT, "component_hooks");

	if (!first || first == hooks_self.own[HOOKS_malloc])
		return 0;
	/* By another copy of us: that one lacks nothing. */
	return !copy || copy == &hooks_self || copy->own[HOOKS_malloc] != first;
}

static void *
next_valloc(size_t size)
{
	return MAKER(memalign)((size_t)getpagesize(), size);
}

static void *
next_pvalloc(size_t size)
{
	size_t page = (size_t)getpagesize(), rounded = (size + page - 1) & ~(page - 1);

	return MAKER(memalign)(page, rounded < size ? size : rounded);
}

static void *
next_memalign(size_t align, size_t size)
{
	void *block;

	return MAKER(posix_memalign)(&block, align < sizeof(void *) ? sizeof(void *) : align, size) ? NULL : block;
}

/* The functions that ours are made of: the next ones, or those of who comes before us. */
static void
take_makers(void)
{
	static const int names[] = { HOOKS_malloc, HOOKS_realloc, HOOKS_free, HOOKS_posix_memalign, HOOKS_memalign };
	const struct link_map *first = hooks_self.outranked ? hooks_object_of(first_symbol("malloc")) : NULL;
	void                  *symbol;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		symbol = first ? first_symbol(hooks_self.names[names[i]]) : NULL;
		hooks_maker[names[i]] = symbol && hooks_object_of(symbol) == first ? symbol : hooks_self.next[names[i]];
	}
}

/* Has the allocator that the program calls no such function? */
static int
is_lacking(int name)
{
	const struct link_map *allocator = hooks_object_of(hooks_maker[HOOKS_malloc]);

	return hooks_object_of(hooks_self.outranked ? first_symbol(hooks_self.names[name]) : hooks_self.next[name]) != allocator;
}

/* What an allocator lacks, made of what it has. */
static void
fill_in(void)
{
	if (is_lacking(HOOKS_memalign))
		hooks_self.next[HOOKS_memalign] = hooks_maker[HOOKS_memalign] = (void *)next_memalign;
	if (is_lacking(HOOKS_aligned_alloc))
		hooks_self.next[HOOKS_aligned_alloc] = hooks_maker[HOOKS_memalign];
	hooks_self.next[HOOKS_valloc] = (void *)next_valloc;
	hooks_self.next[HOOKS_pvalloc] = (void *)next_pvalloc;
}

static void
take_allocator(void)
{
	static const int names[] = { HOOKS_malloc, HOOKS_calloc, HOOKS_realloc, HOOKS_free,
		HOOKS_posix_memalign, HOOKS_aligned_alloc, HOOKS_memalign, HOOKS_malloc_usable_size };
	void *symbol;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		symbol = next_symbol(hooks_self.names[names[i]]);
		if (symbol)
			hooks_self.next[names[i]] = symbol;
	}
}

/* ---- waits ---- */

#if defined(__x86_64__)
/* Plain dlsym() finds the oldest of several versions; asked for one by name, only the
 * libc's, not what a thread sanitizer puts before it without a version. */
static void *
next_version(const char *name, const char *version)
{
	void *symbol = dlvsym(RTLD_NEXT, name, version), *any = dlsym(RTLD_NEXT, name);

	return any && hooks_object_of(any) != hooks_object_of(symbol) ? any : symbol;
}
#endif

static void *
next_wait(uint32_t name)
{
#if defined(__x86_64__)
	switch (name) {
	case HOOKS_pthread_cond_wait:
		return next_version("pthread_cond_wait", "GLIBC_2.3.2");
	case HOOKS_pthread_cond_timedwait:
		return next_version("pthread_cond_timedwait", "GLIBC_2.3.2");
	case HOOKS_pthread_cond_wait_2_2_5:
		return dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.2.5");
	case HOOKS_pthread_cond_timedwait_2_2_5:
		return dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.2.5");
	default:
		break;
	}
#endif
	return dlsym(RTLD_NEXT, hooks_self.names[name]);
}

/* What is not there yet (libpthread, where it is a library of its own) is looked for
 * again at its first call. */
static void
take_waits(void)
{
	static const char *const tries[] = {
#define X(name) #name,
		HOOKS_TRY_NAMES(X)
#undef X
	};
	static const uint16_t waits[] = {
#define X(name) HOOKS_##name,
		HOOKS_WAIT_NAMES(X) HOOKS_OLD_NAMES(X) HOOKS_CALL_NAMES(X)
#undef X
	};
	void *symbol;

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		symbol = next_wait(waits[i]);
		if (symbol)
			__atomic_store_n(&hooks_self.next[waits[i]], symbol, __ATOMIC_RELAXED);
	}
	for (size_t i = 0; i < HOOKS_TRY_COUNT; i++)
		hooks_self.tries[i] = dlsym(RTLD_NEXT, tries[i]);
}

/* Another copy of this object behind us: its functions only lead on. */
static void
skip_second_copy(void)
{
	struct component_hooks *other = next_symbol("component_hooks");

	if (!other || other->kind != HOOKS_REAL || other->version < HOOKS_VERSION)
		return;
	if (hooks_self.next[HOOKS_malloc] != other->own[HOOKS_malloc])
		return;
	other->resolve();
	for (int i = 0; i < HOOKS_NAME_COUNT; i++)
		if (hooks_self.next[i] && hooks_self.next[i] == other->own[i])
			hooks_self.next[i] = other->next[i];
	if (other->operators == HOOKS_OPERATORS_NONE)
		operators_forget();
	hooks_self.second_copy = 1;
}

int
next_resolve(void)
{

	if (resolving || hooks_self.resolved)
		return 0;
	resolving = 1;
	take_waits(); /* first: what follows may lock */
	hooks_self.next[HOOKS_pthread_create] = next_symbol("pthread_create");
	hooks_self.next[HOOKS_thrd_create] = next_symbol("thrd_create");
	hooks_self.outranked = is_outranked();
	take_allocator();
	operators_find();
	skip_second_copy();
	hooks_self.next_is_libc = hooks_self.next[HOOKS_malloc] == (void *)&__libc_malloc;
	take_makers();
	fill_in();
	operators_resolve(hooks_object_of(hooks_self.next[HOOKS_malloc]));
	dlerror(); /* takes the message away, */
	dlerror(); /* and gives back the memory of its record */
	if (hooks_self.early_blocks == 0) {
		hooks_self.range_start = UINTPTR_MAX;
		hooks_self.range_size = 0;
	}
	hooks_self.thread_state = HOOKS_OFF;
	__atomic_store_n(&hooks_self.resolved, 1, __ATOMIC_RELEASE);
	table_set_state(HOOKS_OFF);
	resolving = 0;
	return 0;
}

/* Where no malloc has come this way, as another object's comes before ours. */
__attribute__((constructor)) static void
resolve_at_last(void)
{
	next_resolve();
}

/* Only this one is looked up: the caller may be an allocator that comes before us, in the
 * middle of its start and with a lock of its own held, and a lookup that fails allocates. */
void *
next_early(uint32_t name, const void *early)
{
	void *next;

	next = __atomic_load_n(&hooks_self.next[name], __ATOMIC_RELAXED);
	if (next == early)
		next = next_wait(name);
	if (next)
		__atomic_store_n(&hooks_self.next[name], next, __ATOMIC_RELAXED);
	else
		errno = ENOSYS;
	return next;
}
