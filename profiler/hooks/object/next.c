/*
 * next.c - which functions stand behind ours: glibc's, jemalloc's, a sanitizer's.
 *
 * Runs once, at the first call of a hook that allocates, mostly out of the loader before
 * main() and before there is a second thread.  A wait that comes earlier looks up its own.
 * It takes no lock, allocates nothing and calls nobody (lookup.c), so that call is made
 * like any other.  Should two threads come here at once, both find and write the same.
 *
 * What a stranger would get wrong:
 * - Allocators lack some of the family (jemalloc has no pvalloc and no
 *   reallocarray).  Found in another object, a name must not be used: glibc's
 *   pvalloc would return a block that jemalloc's free cannot take.  Such names
 *   are made of those that are there.
 * - glibc's names say nothing: mimalloc and tcmalloc export __libc_malloc as well.  What
 *   counts is whose object the next malloc is in.
 * - Another object's malloc may come before ours, and that object may be an allocator or
 *   only watch (heaptrack, libmemusage): then it calls us, whom it found by RTLD_NEXT, and
 *   must not be called back.  So what it has itself leads on behind us; what it lacks of
 *   the family is called by the program, and is made of what it has (hooks_maker).
 * - A second copy of the hooks (linked, and preloaded as well) is passed over.
 */
#include "object.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "lookup.h"

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
	int   err = MAKER(posix_memalign)(&block, align < sizeof(void *) ? sizeof(void *) : align, size);

	if (!err)
		return block;
	errno = err; /* which posix_memalign() leaves alone */
	return NULL;
}

/* Plain names and, where two versions of a function are hooked, the older one's too. */
static struct lookup
wanted(uint32_t name)
{
	struct lookup l = { .name = hooks_self.names[name] };

#define OLD(old, real, of)        \
	if (name == HOOKS_##old)  \
		l = (struct lookup){ .name = (real), .version = (of) };
	HOOKS_OLD_LOOKUPS(OLD)
	return l;
}

/* ---- the allocator ---- */

static struct lookup
first(const char *name)
{
	struct lookup l = { .name = name };

	lookup_first(&l, 1);
	return l;
}

/* Preloaded before us, or the program's own: our malloc is called by that one or by nobody,
 * but what it lacks of the family is ours, and must then lead to it. */
static uint32_t
is_outranked(const struct lookup *malloc)
{
	struct component_hooks *copy = first("component_hooks").address;

	if (!malloc->address || malloc->address == hooks_self.own[HOOKS_malloc])
		return 0;
	/* By another copy of us: that one lacks nothing. */
	return !copy || copy == &hooks_self || copy->own[HOOKS_malloc] != malloc->address;
}

#define MAKERS 5
static const int maker_names[MAKERS] = { HOOKS_memalign, HOOKS_malloc, HOOKS_realloc, HOOKS_free, HOOKS_posix_memalign };
#define MAKER_MEMALIGN 0

/* The functions that ours are made of: the next ones, or those of who comes before us. */
static void
take_makers(void **makers, const struct lookup *behind, const struct link_map *outranking)
{
	for (size_t i = 0; i < MAKERS; i++) {
		struct lookup l = outranking ? first(hooks_self.names[maker_names[i]]) : (struct lookup){ 0 };

		makers[i] = l.address && l.object == outranking ? l.address : behind[maker_names[i]].address;
	}
}

/* What the allocator that the program calls lacks, made of what it has. */
static void
fill_in(void **makers, struct lookup *behind, const struct link_map *outranking)
{
	const struct link_map *allocator = outranking ? outranking : behind[HOOKS_malloc].object;
	struct lookup          memalign = outranking ? first("memalign") : behind[HOOKS_memalign];
	struct lookup          aligned = outranking ? first("aligned_alloc") : behind[HOOKS_aligned_alloc];

	if (memalign.object != allocator)
		behind[HOOKS_memalign].address = makers[MAKER_MEMALIGN] = (void *)next_memalign;
	if (aligned.object != allocator)
		behind[HOOKS_aligned_alloc].address = makers[MAKER_MEMALIGN];
	behind[HOOKS_valloc].address = (void *)next_valloc;
	behind[HOOKS_pvalloc].address = (void *)next_pvalloc;
}

static void
take_allocator(struct lookup *behind)
{
	struct lookup          malloc = first("malloc");
	const struct link_map *outranking;
	void                  *makers[MAKERS];

	hooks_self.outranked = is_outranked(&malloc);
	outranking = hooks_self.outranked ? malloc.object : NULL;
	take_makers(makers, behind, outranking);
	fill_in(makers, behind, outranking);
	/* Each once and whole: another thread may be on its way through one. */
	for (size_t i = 0; i < MAKERS; i++)
		if (makers[i])
			__atomic_store_n(&hooks_maker[maker_names[i]], makers[i], __ATOMIC_RELAXED);
}

/* ---- all of it ---- */

void *
next_behind(const char *name)
{
	struct lookup l = { .name = name };

	lookup_behind(&l, 1);
	return l.address;
}

/* Glibc's before 2.34. */
static bool
is_libpthread(const char *path)
{
	static const char name[] = "/libpthread.so.";
	size_t            n = 0;

	for (; *path; path++) /* not strstr(), as libc may not be ready */
		for (n = 0; path[n] == name[n];)
			if (!name[++n])
				return true;
	return false;
}

/* Set by next_resolve(). */
static bool once_is_libcs;

static bool
is_libcs(const struct link_map *object, const struct link_map *libc)
{
	return object && (object == libc || is_libpthread(object->l_name));
}

/* The same without waiting: looked up, not stood in for.  Returns whose pthread_mutex_trylock() is. */
static const struct link_map *
take_tries(void)
{
	static const char *const names[] = {
#define X(name) #name,
		HOOKS_TRY_NAMES(X)
#undef X
	};
	struct lookup tries[HOOKS_TRY_COUNT];

	for (size_t i = 0; i < HOOKS_TRY_COUNT; i++)
		tries[i] = (struct lookup){ .name = names[i] };
	lookup_behind(tries, HOOKS_TRY_COUNT);
	for (size_t i = 0; i < HOOKS_TRY_COUNT; i++)
		hooks_self.tries[i] = tries[i].address;
	return tries[HOOKS_TRY_pthread_mutex_trylock].object;
}

int
next_resolve(void)
{
	static int    finished;
	struct lookup behind[HOOKS_NAME_COUNT];
	const struct link_map *libc, *mutexes;

	if (__atomic_load_n(&hooks_self.resolved, __ATOMIC_ACQUIRE))
		return 0;
	for (uint32_t i = 0; i < HOOKS_NAME_COUNT; i++)
		behind[i] = wanted(i);
	hooks_self.second_copy = lookup_behind(behind, HOOKS_NAME_COUNT) != 0;
	libc = first("gnu_get_libc_version").object;
	hooks_self.next_is_libc = behind[HOOKS_malloc].object == libc;
	take_allocator(behind);
	operators_fill_in(behind);
	mutexes = take_tries();
	once_is_libcs = is_libcs(behind[HOOKS_pthread_once].object, libc) && is_libcs(behind[HOOKS_call_once].object, libc);
	hooks_self.mutexes_are_libcs = is_libcs(mutexes, libc) &&
		behind[HOOKS_pthread_mutex_lock].object == mutexes && behind[HOOKS_pthread_mutex_unlock].object == mutexes;
	for (size_t i = 0; i < HOOKS_NAME_COUNT; i++)
		if (behind[i].address) /* behind the makers, which some of these call */
			__atomic_store_n(&hooks_self.next[i], behind[i].address, __ATOMIC_RELEASE);
	if (__atomic_exchange_n(&finished, 1, __ATOMIC_ACQ_REL))
		return 0; /* another thread was first, and the core may have gone on from there */
	operators_classify(behind);
	__atomic_store_n(&hooks_self.thread_state, HOOKS_OFF, __ATOMIC_RELEASE);
	__atomic_store_n(&hooks_self.resolved, 1, __ATOMIC_RELEASE);
	table_set_state(HOOKS_OFF);
	return 0;
}

static void
nothing(void)
{
}

/* Where no malloc has come this way, as another object's comes before ours.  pthread_once() is called
 * here and not by next_resolve(): a sanitizer's is not ready before constructors run. */
__attribute__((constructor)) static void
resolve_at_last(void)
{
	int control = 0; /* PTHREAD_ONCE_INIT */

	next_resolve();
	if (NEXT(pthread_once)((uintptr_t)&control, (uintptr_t)nothing) == 0)
		*(once_is_libcs ? &hooks_once_done : &hooks_once_passed) = control;
}

/* Only this one is looked up: the caller may be an allocator that comes before us, in the
 * middle of its start. */
void *
next_early(uint32_t name, const void *early)
{
	/* In this order: what is resolved is there when it is read after. */
	int   resolved = (int)__atomic_load_n(&hooks_self.resolved, __ATOMIC_ACQUIRE);
	void *next = __atomic_load_n(&hooks_self.next[name], __ATOMIC_RELAXED);

	if (next == early && !resolved) {
		struct lookup l = wanted(name);

		lookup_behind(&l, 1);
		next = l.address;
	}
	if (next && next != early) {
		__atomic_store_n(&hooks_self.next[name], next, __ATOMIC_RELAXED);
		return next;
	}
	errno = ENOSYS;
	return NULL;
}
