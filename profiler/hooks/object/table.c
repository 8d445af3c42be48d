/*
 * table.c - component_hooks itself, as it is before anything has run.
 *
 * The first call of a hook may come from the loader, before any constructor; so
 * everything it looks at is set up here by the linker: the state sends it to
 * cold.c, which looks up the next allocator, and so does next[] where a call gets past
 * the state.
 */
#include "object.h"

#define OWN(name) [HOOKS_##name] = (void *)&hook_##name,
#define NAME(name) [HOOKS_##name] = #name,

static struct hooks_thread *thread_of_caller(void);

#define EARLY(name) [HOOKS_##name] = (void *)&early_##name,
#define COLD(name) [HOOKS_##name] = (void *)&cold_##name,

uint64_t hooks_waiting[HOOKS_WAITING];

__thread struct hooks_thread hooks_thread __attribute__((aligned(64))) = { .left = -1 }; /* one line */

void *hooks_maker[HOOKS_MALLOC_COUNT] = {
	[HOOKS_malloc] = (void *)&cold_malloc,
	[HOOKS_memalign] = (void *)&cold_memalign,
	[HOOKS_posix_memalign] = (void *)&cold_posix_memalign,
	[HOOKS_free] = (void *)&cold_cfree,
	[HOOKS_realloc] = (void *)&cold_reallocarray,
};

struct hooks_filter hooks_filter;

extern const char hooks_frames_start[] HIDDEN, hooks_frames_end[] HIDDEN; /* frames.c */

struct component_hooks component_hooks __attribute__((visibility("default"))) = {
	.version = HOOKS_VERSION,
	.size = sizeof(struct component_hooks),
	.kind = HOOKS_REAL,
	.name_count = HOOKS_NAME_COUNT,
	.heap_state = HOOKS_EARLY,
	.thread_state = HOOKS_EARLY,
	.range_start = UINTPTR_MAX,
	.next = {
		HOOKS_NEW_NAMES(COLD)
		HOOKS_DELETE_NAMES(COLD) /* of NULL, say, which may be the first call of all */
		COLD(malloc)
		COLD(calloc)
		COLD(realloc)
		COLD(free)
		COLD(malloc_usable_size)
		COLD(aligned_alloc)
		COLD(memalign)
		COLD(valloc)
		COLD(pvalloc)
		COLD(posix_memalign)
		HOOKS_WAIT_NAMES(EARLY)
		HOOKS_OLD_NAMES(EARLY)
		HOOKS_CALL_NAMES(EARLY)
		HOOKS_SIGNAL_NAMES(EARLY)
		HOOKS_MAP_NAMES(EARLY)
	},
	.own = { HOOKS_NAMES(OWN) HOOKS_OLD_NAMES(OWN) HOOKS_CALL_NAMES(OWN) HOOKS_SIGNAL_NAMES(OWN)
		HOOKS_MAP_NAMES(OWN) },
	.names = { HOOKS_NAMES(NAME) HOOKS_OLD_NAMES(NAME) HOOKS_CALL_NAMES(NAME) HOOKS_SIGNAL_NAMES(NAME)
		HOOKS_MAP_NAMES(NAME) },
	.wait_state = HOOKS_OFF,
	.wait_any = HOOKS_OFF,
	.call_state = HOOKS_OFF,
	.signal_state = HOOKS_OFF,
	.map_state = HOOKS_OFF,
	.waiting = hooks_waiting,
	.thread = thread_of_caller,
	.resolve = next_resolve,
	.set_heap_state = table_set_state,
	.frames_start = hooks_frames_start,
	.frames_end = hooks_frames_end,
	.filter = &hooks_filter,
	.behind = next_behind,
};

extern struct component_hooks hooks_self __attribute__((alias("component_hooks"), visibility("hidden")));

static struct hooks_thread *
thread_of_caller(void)
{
	return &hooks_thread;
}

/* A core of before counts in no filter, and means a range: every block is looked at. */
static void
filter_fill(void)
{
	for (size_t i = 0; i < sizeof(hooks_filter.low); i++)
		hooks_filter.low[i] = UINT8_MAX;
	for (size_t i = 0; i < sizeof(hooks_filter.hashed); i++)
		hooks_filter.hashed[i] = UINT8_MAX;
}

void
table_set_state(uint32_t state)
{
	if (hooks_filter.low[hooks_filter_low(NULL)] != UINT8_MAX) /* a child of fork has the page already */
		hooks_filter.low[hooks_filter_low(NULL)] = UINT8_MAX;
	if (state == HOOKS_ON && !hooks_self.counts)
		filter_fill();
	__atomic_store_n(&hooks_self.heap_state, state, __ATOMIC_RELEASE);
	malloc_set_state(state);
}
