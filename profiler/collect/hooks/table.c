/*
 * table.c - component_hooks itself, as it is before anything has run.
 *
 * The first call of a hook may come from the loader, before any constructor; so
 * everything it looks at is set up here by the linker: the state sends it to
 * cold.c, which looks up the next allocator, and so does next[] where a call gets past
 * the state.
 */
#include "hook.h"

#define OWN(name) [HOOKS_##name] = (void *)&hook_##name,
#define NAME(name) [HOOKS_##name] = #name,

static struct hooks_thread *thread_of_caller(void);

#define EARLY(name) [HOOKS_##name] = (void *)&early_##name,
#define COLD(name) [HOOKS_##name] = (void *)&cold_##name,

uint64_t hooks_waiting[HOOKS_WAITING];

__thread struct hooks_thread hooks_thread = { .left = -1, .idle = INT64_MAX };

#if HOOKS_COUNTDOWN
/* From the first call on, before anything has run: of `left`, which is the first member. */
__asm__(".pushsection .data\n"
	".p2align 2\n"
	".globl hooks_countdown\n"
	".hidden hooks_countdown\n"
	".type hooks_countdown, @object\n"
	".size hooks_countdown, 4\n"
	"hooks_countdown: .long hooks_thread@tpoff\n"
	".popsection\n");
_Static_assert(offsetof(struct hooks_thread, left) == 0, "hooks_countdown begins with it");
#endif

void *hooks_maker[HOOKS_MALLOC_COUNT];

extern const char hooks_frames_start[] HIDDEN, hooks_frames_end[] HIDDEN; /* frames.c */

struct component_hooks component_hooks __attribute__((visibility("default"))) = {
	.version = HOOKS_VERSION,
	.size = sizeof(struct component_hooks),
	.kind = HOOKS_REAL,
	.name_count = HOOKS_NAME_COUNT,
	.heap_state = HOOKS_EARLY,
	.thread_state = HOOKS_EARLY,
	.range_start = 0, /* free(NULL) may be the first call of all */
	.range_size = UINTPTR_MAX,
	.next = {
		HOOKS_NEW_NAMES(COLD)
		COLD(malloc)
		COLD(calloc)
		COLD(aligned_alloc)
		COLD(memalign)
		COLD(valloc)
		COLD(pvalloc)
		COLD(posix_memalign)
		HOOKS_WAIT_NAMES(EARLY)
		HOOKS_OLD_NAMES(EARLY)
		HOOKS_CALL_NAMES(EARLY)
	},
	.own = { HOOKS_NAMES(OWN) HOOKS_OLD_NAMES(OWN) HOOKS_CALL_NAMES(OWN) },
	.names = { HOOKS_NAMES(NAME) HOOKS_OLD_NAMES(NAME) HOOKS_CALL_NAMES(NAME) },
	.wait_state = HOOKS_OFF,
	.wait_any = HOOKS_OFF,
	.call_state = HOOKS_OFF,
	.waiting = hooks_waiting,
	.thread = thread_of_caller,
	.resolve = next_resolve,
	.set_heap_state = table_set_state,
	.frames_start = hooks_frames_start,
	.frames_end = hooks_frames_end,
};

extern struct component_hooks hooks_self __attribute__((alias("component_hooks"), visibility("hidden")));

static struct hooks_thread *
thread_of_caller(void)
{
	return &hooks_thread;
}

void
table_set_state(uint32_t state)
{
	__atomic_store_n(&hooks_self.heap_state, state, __ATOMIC_RELEASE);
#if HOOKS_COUNTDOWN
	/* The same distance in every thread: that is what initial-exec means. */
	const void *word = state == HOOKS_OFF ? &hooks_thread.idle : &hooks_thread.left;

	__atomic_store_n(&hooks_countdown, (int32_t)((const char *)word - (const char *)__builtin_thread_pointer()),
		__ATOMIC_RELEASE);
#endif
}
