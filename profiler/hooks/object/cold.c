/*
 * cold.c - a call that may be a sample: asks the core, and does what it says.
 *
 * Each function here is jumped to from the hook of the same name, so its return
 * address and the saved frame pointer are those of the daemon's own call: the
 * stack begins there, and no frame of ours is in any profile.  Those that make threads are
 * FRAMES besides: what is sampled while the C library makes one has them on its stack.
 *
 * What a stranger would get wrong: this file is compiled with frame pointers, and
 * CALL() must stand in the cold function itself, not in a helper it calls.
 */
#include "object.h"

#include <errno.h>
#include <unistd.h>

/* All members by name, also those that are 0: for the others GCC fills the whole struct first, by a slow loop. */
#define CALL(called, bytes, alignment)                                             \
	{                                                                          \
		.thread = &hooks_thread, .name = HOOKS_##called, .size = (bytes),  \
		.align = (alignment), .pc = (uintptr_t)__builtin_return_address(0), \
		.sp = (uintptr_t)__builtin_dwarf_cfa(),                            \
		.fp = *(uintptr_t *)__builtin_frame_address(0),                    \
		.stack = 0, .old = NULL, .result = NULL, .weight = 0, .reserved = { 0, 0 }, \
	}

/* Two threads at once may count as one: that is not worth a locked instruction. */
static void
count(uint32_t name)
{
	uint64_t calls = __atomic_load_n(&hooks_self.calls[name], __ATOMIC_RELAXED);

	__atomic_store_n(&hooks_self.calls[name], calls + 1, __ATOMIC_RELAXED);
}

static int
begin(struct hooks_call *c)
{
	int answer;

	if (STATE(heap_state) == HOOKS_EARLY)
		next_resolve();
	if (STATE(heap_state) != HOOKS_ON)
		return HOOKS_PASS;
	answer = __atomic_load_n(&hooks_self.begin, __ATOMIC_ACQUIRE)(c); /* with it record */
	if (answer != HOOKS_PASS)
		count(c->name);
	return answer;
}

static void *
record(struct hooks_call *c, void *block)
{
	c->result = block;
	hooks_self.record(c);
	return block;
}

/* What all that allocate do; they differ in the next call. */
#define ASK(c, next_call)                              \
	do {                                           \
		int answer_ = begin(&(c));             \
		if (answer_ == HOOKS_DONE)             \
			return (c).result;             \
		if (answer_ == HOOKS_RECORD)           \
			return record(&(c), next_call); \
		return next_call;                      \
	} while (0)

void *
cold_malloc(size_t size)
{
	struct hooks_call c = CALL(malloc, size, 0);

	ASK(c, NEXT(malloc)(size));
}

void *
cold_calloc(size_t n, size_t size)
{
	struct hooks_call c = CALL(calloc, 0, 0);

	if (__builtin_mul_overflow(n, size, &c.size))
		c.size = SIZE_MAX; /* no sample is that large: the next one says no */
	ASK(c, NEXT(calloc)(n, size));
}

void *
cold_aligned_alloc(size_t align, size_t size)
{
	struct hooks_call c = CALL(aligned_alloc, size, align);

	ASK(c, NEXT(aligned_alloc)(align, size));
}

void *
cold_memalign(size_t align, size_t size)
{
	struct hooks_call c = CALL(memalign, size, align);

	ASK(c, NEXT(memalign)(align, size));
}

void *
cold_valloc(size_t size)
{
	struct hooks_call c = CALL(valloc, size, (size_t)getpagesize());

	ASK(c, NEXT(valloc)(size));
}

void *
cold_pvalloc(size_t size)
{
	size_t            page = (size_t)getpagesize();
	struct hooks_call c = CALL(pvalloc, (size + page - 1) & ~(page - 1), page);

	if (c.size < size)
		c.size = SIZE_MAX;
	ASK(c, NEXT(pvalloc)(size));
}

int
cold_posix_memalign(void **ret, size_t align, size_t size)
{
	struct hooks_call c = CALL(posix_memalign, size, align);
	void             *block = NULL;
	int               answer = HOOKS_PASS, r = 0;

	if (align >= sizeof(void *) || STATE(heap_state) == HOOKS_EARLY)
		answer = begin(&c);
	if (answer == HOOKS_DONE && c.result) {
		*ret = c.result;
		return 0;
	}
	if (answer == HOOKS_DONE)
		return ENOMEM;
	r = NEXT(posix_memalign)(answer == HOOKS_RECORD ? &block : ret, align, size);
	if (answer == HOOKS_RECORD) {
		record(&c, r ? NULL : block);
		if (r == 0)
			*ret = block;
	}
	return r;
}

static void *
change(struct hooks_call *c)
{
	if (STATE(heap_state) == HOOKS_EARLY)
		next_resolve();
	if (hooks_self.reallocate && hooks_self.reallocate(c) == HOOKS_DONE) {
		count(c->name);
		return c->result;
	}
	return c->name == HOOKS_realloc ? NEXT(realloc)(c->old, c->size) : MAKER(realloc)(c->old, c->size);
}

void *
cold_realloc(void *block, size_t size)
{
	struct hooks_call c = CALL(realloc, size, 0);

	c.old = block;
	return change(&c);
}

void *
cold_reallocarray(void *block, size_t size)
{
	struct hooks_call c = CALL(reallocarray, size, 0);

	c.old = block;
	return change(&c);
}

/* A core of before takes every block that it is asked about for its own. */
static int
in_range(const void *block)
{
	return (uintptr_t)block - hooks_self.range_start < hooks_self.range_size;
}

/* Did the core take it? */
int
cold_release(uint32_t name, void *block)
{
	int answer;

	if (STATE(heap_state) == HOOKS_EARLY)
		next_resolve();
	if (!block)
		return 0;
	answer = hooks_self.release && in_range(block) ? hooks_self.release(block) : HOOKS_PASS;
	if (answer != HOOKS_PASS)
		count(name);
	return answer == HOOKS_DONE;
}

void
cold_free(void *block)
{
	if (!cold_release(HOOKS_free, block))
		NEXT(free)(block);
}

void
cold_cfree(void *block)
{
	if (!cold_release(HOOKS_cfree, block))
		MAKER(free)(block);
}

void
cold_free_sized(void *block)
{
	if (!cold_release(HOOKS_free_sized, block))
		MAKER(free)(block);
}

void
cold_free_aligned_sized(void *block)
{
	if (!cold_release(HOOKS_free_aligned_sized, block))
		MAKER(free)(block);
}

size_t
cold_malloc_usable_size(void *block)
{
	size_t size;
	int    answer;

	if (STATE(heap_state) == HOOKS_EARLY)
		next_resolve();
	answer = block && hooks_self.usable && in_range(block) ? hooks_self.usable(block, &size) : HOOKS_PASS;
	if (answer != HOOKS_PASS)
		count(HOOKS_malloc_usable_size);
	if (answer == HOOKS_DONE)
		return size;
	return NEXT(malloc_usable_size)(block);
}

/* operator new in its four shapes, for the eight names.  One made of malloc has to
 * know who called, as this frame stands in between. */
#define NEW_ASK(c, next_call)                           \
	do {                                            \
		int answer_ = begin(&(c));              \
		if (answer_ == HOOKS_DONE)              \
			return (c).result;              \
		hooks_thread.caller = (c).pc;           \
		if (answer_ == HOOKS_RECORD)            \
			return record(&(c), next_call); \
		return next_call;                       \
	} while (0)
#define NEW(name)                                        \
	void *cold_##name(size_t size)                   \
	{                                                \
		struct hooks_call c = CALL(name, size, 0); \
		NEW_ASK(c, NEXT(name)(size));                \
	}
#define NEW_NOTHROW(name)                                           \
	void *cold_##name(size_t size, const void *nothrow)         \
	{                                                           \
		struct hooks_call c = CALL(name, size, 0);          \
		NEW_ASK(c, NEXT(name)(size, nothrow));                  \
	}
#define NEW_ALIGN(name)                                             \
	void *cold_##name(size_t size, size_t align)                \
	{                                                           \
		struct hooks_call c = CALL(name, size, align);      \
		NEW_ASK(c, NEXT(name)(size, align));                    \
	}
#define NEW_ALIGN_NOTHROW(name)                                                \
	void *cold_##name(size_t size, size_t align, const void *nothrow)      \
	{                                                                      \
		struct hooks_call c = CALL(name, size, align);                 \
		NEW_ASK(c, NEXT(name)(size, align, nothrow));                      \
	}

HOOKS_NEW_SHAPES(NEW, NEW_NOTHROW, NEW_ALIGN, NEW_ALIGN_NOTHROW)

/* Does the core want to know of this thread? */
static int
wants_thread(struct hooks_call *c, void **routine, void **arg)
{
	if (STATE(thread_state) == HOOKS_EARLY)
		next_resolve();
	if (STATE(thread_state) != HOOKS_ON || !hooks_self.thread_made(c, routine, arg))
		return 0;
	count(c->name);
	return 1;
}

FRAMES int
cold_pthread_create(void *thread, const void *attributes, void *routine, void *arg)
{
	struct hooks_call c = CALL(pthread_create, 0, 0);
	int               wanted = wants_thread(&c, &routine, &arg);
	int               r = NEXT(pthread_create)(thread, attributes, routine, arg);

	if (r && wanted)
		hooks_self.thread_failed(arg);
	return r;
}

FRAMES int
cold_thrd_create(void *thread, void *routine, void *arg)
{
	struct hooks_call c = CALL(thrd_create, 0, 0);
	int               wanted = wants_thread(&c, &routine, &arg);
	int               r = NEXT(thrd_create)(thread, routine, arg);

	if (r && wanted)
		hooks_self.thread_failed(arg);
	return r;
}
