/*
 * waits_cold.c - a wait that may be recorded, an unlock that may let somebody go on,
 * and calls that come before we know the real functions.
 *
 * As in cold.c each function is jumped to from the hook of its name, so the stack
 * begins at the daemon's own call.  The core makes the call itself: it alone knows what
 * to undo when a waiting thread is cancelled.
 *
 * What a stranger would get wrong: the real functions are called with four arguments
 * whatever they take; on all machines we support the rest stays unread in registers.
 */
#include "object.h"

#include <errno.h>

#define WAIT(called, ...)                                                            \
	{                                                                            \
		.name = HOOKS_##called, .args = { __VA_ARGS__ },                     \
		.pc = (uintptr_t)__builtin_return_address(0),                        \
		.sp = (uintptr_t)__builtin_dwarf_cfa(),                              \
		.fp = *(uintptr_t *)__builtin_frame_address(0),                      \
	}

/* Inlined, so that the call of the core is made in a function with a frame of its own: a
 * jump from here would leave "call go" behind, which is no proof for recover.c. */
static inline __attribute__((always_inline)) int
go(struct hooks_wait *w, int unlock)
{
	if (STATE(wait_state) != HOOKS_ON)
		return ((hooks_wait_fn *)hooks_self.next[w->name])(w->args[0], w->args[1], w->args[2], w->args[3]);
	__atomic_add_fetch(&hooks_self.calls[w->name], 1, __ATOMIC_RELAXED);
	return unlock ? hooks_self.unlock(w) : hooks_self.wait(w);
}

/* Unlocks are among those of one argument. */
#define IS_UNLOCK(name)                                                                          \
	(HOOKS_##name == HOOKS_pthread_mutex_unlock || HOOKS_##name == HOOKS_pthread_rwlock_unlock || \
		HOOKS_##name == HOOKS_mtx_unlock)

#define COLD(name, parameters, ...)                                                      \
	FRAMES int cold_##name parameters                                                \
	{                                                                                \
		struct hooks_wait w = WAIT(name, __VA_ARGS__);                           \
                                                                                         \
		return go(&w, IS_UNLOCK(name));                                          \
	}
#define COLD_1(name) COLD(name, (uintptr_t a), a)
#define COLD_2(name) COLD(name, (uintptr_t a, uintptr_t b), a, b)
#define COLD_3(name) COLD(name, (uintptr_t a, uintptr_t b, uintptr_t c), a, b, c)
#define COLD_4(name) COLD(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d), a, b, c, d)

HOOKS_WAIT_ARGUMENTS(COLD_1, COLD_2, COLD_3, COLD_4)
HOOKS_OLD_ARGUMENTS(COLD_2, COLD_3)

/* ---- before we know what is behind us ---- */

static int
is_sem(uint32_t name)
{
	return name == HOOKS_sem_wait || name == HOOKS_sem_timedwait || name == HOOKS_sem_clockwait;
}

static int
early(uint32_t name, void *self, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
	hooks_wait_fn *next = (hooks_wait_fn *)next_early(name, self);

	if (next)
		return next(a, b, c, d);
	return is_sem(name) ? -1 : ENOSYS;
}

#define EARLY(name)                                                                \
	int early_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)       \
	{                                                                          \
		return early(HOOKS_##name, (void *)early_##name, a, b, c, d);      \
	}

HOOKS_WAIT_NAMES(EARLY)
HOOKS_OLD_NAMES(EARLY)
