/*
 * calls_cold.c - a system call while a trace is open or mappings are looked at, and one that comes before we know
 * the real functions.
 *
 * As in waits_cold.c each function is jumped to from the hook of its name, so the stack
 * begins at the daemon's own call, and the core makes the call itself.
 *
 * What a stranger would get wrong: the real functions are called with seven arguments
 * whatever they take; what they do not take stays unread, in registers and on the stack.
 */
#include "object.h"

static FRAMES long
go(struct hooks_wait *w)
{
	if (STATE(call_state) != HOOKS_ON)
		return ((hooks_call_fn *)hooks_self.next[w->name])(w->args[0], w->args[1], w->args[2], w->args[3],
			w->more[0], w->more[1], w->more[2]);
	__atomic_add_fetch(&hooks_self.calls[w->name], 1, __ATOMIC_RELAXED);
	return hooks_self.call(w);
}

static FRAMES long
go_map(struct hooks_wait *w)
{
	if (STATE(map_state) != HOOKS_ON)
		return ((hooks_call_fn *)hooks_self.next[w->name])(w->args[0], w->args[1], w->args[2], w->args[3],
			w->more[0], w->more[1], 0);
	__atomic_add_fetch(&hooks_self.calls[w->name], 1, __ATOMIC_RELAXED);
	return hooks_self.map(w);
}

#define GO go

#define COLD(called, parameters, a, b, c, d, e, f, g)                                \
	FRAMES long cold_##called parameters                                         \
	{                                                                            \
		struct hooks_wait w = {                                              \
			.name = HOOKS_##called, .args = { a, b, c, d }, .more = { e, f, g }, \
			.pc = (uintptr_t)__builtin_return_address(0),                \
			.sp = (uintptr_t)__builtin_dwarf_cfa(),                      \
			.fp = *(uintptr_t *)__builtin_frame_address(0),              \
		};                                                                   \
                                                                                     \
		return GO(&w);                                                       \
	}
#define COLD_1(name) COLD(name, (uintptr_t a), a, 0, 0, 0, 0, 0, 0)
#define COLD_2(name) COLD(name, (uintptr_t a, uintptr_t b), a, b, 0, 0, 0, 0, 0)
#define COLD_3(name) COLD(name, (uintptr_t a, uintptr_t b, uintptr_t c), a, b, c, 0, 0, 0, 0)
#define COLD_4(name) COLD(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d), a, b, c, d, 0, 0, 0)
#define COLD_5(name) \
	COLD(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e), a, b, c, d, e, 0, 0)
#define COLD_6(name)                                                                                        \
	COLD(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f), a, b, c, d, e, f, 0)
#define COLD_7(name)                                                                                              \
	COLD(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g), a, \
		b, c, d, e, f, g)

HOOKS_CALL_ARGUMENTS(COLD_1, COLD_2, COLD_3, COLD_4, COLD_5, COLD_6, COLD_7)

#undef GO
#define GO go_map

HOOKS_MAP_ARGUMENTS(COLD_2, COLD_5, COLD_6)

/* ---- before we know what is behind us ---- */

#define EARLY(name)                                                                                            \
	long early_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g) \
	{                                                                                                      \
		hooks_call_fn *next = (hooks_call_fn *)next_early(HOOKS_##name, (void *)early_##name);         \
                                                                                                               \
		return next ? next(a, b, c, d, e, f, g) : -1;                                                  \
	}

HOOKS_CALL_NAMES(EARLY)
HOOKS_MAP_NAMES(EARLY)
