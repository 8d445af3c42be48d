/*
 * calls.c - system calls that may wait: read, poll, nanosleep and their kin; and those that map memory.
 *
 * While no trace is open a call costs one predicted branch and the jump to the real
 * function: no register, no errno and no cancellation point is any different, in a
 * signal handler and in the child of a vfork as well.  While one is open calls_cold.c
 * asks the core to time it.  Those that map have a state of their own: on while the program's
 * mappings are looked at (profiler/collect/mmap/).
 *
 * What a stranger would get wrong:
 * - sleep() and usleep() are here beside nanosleep(), and __read_chk() beside read(): the
 *   C library calls its own by names that nobody can stand in for.
 * - What malloc, pthread_create and the loader map does not come this way either.
 * - Arguments and results are words, whatever they are declared as: on all machines we
 *   support what is narrower lies in the lower half, and passes through untouched.
 *
 * Tests: tests/hooks/interposition.t, tests/hooks/cost.t, tests/trace/measured_waits.t.
 */
#include "object.h"

#define OFF LIKELY(hooks_self.call_state == HOOKS_OFF)

#define CALL(name, parameters, ...)                                                   \
	long hook_##name parameters                                                   \
	{                                                                             \
		return OFF ? NEXT(name)(__VA_ARGS__) : cold_##name(__VA_ARGS__);      \
	}                                                                             \
	EXPORT(name);

#define CALL_1(name) CALL(name, (uintptr_t a), a)
#define CALL_2(name) CALL(name, (uintptr_t a, uintptr_t b), a, b)
#define CALL_3(name) CALL(name, (uintptr_t a, uintptr_t b, uintptr_t c), a, b, c)
#define CALL_4(name) CALL(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d), a, b, c, d)
#define CALL_5(name) CALL(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e), a, b, c, d, e)
#define CALL_6(name)                                                                                    \
	CALL(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f), a, b, c, d, e, f)
#define CALL_7(name)                                                                                              \
	CALL(name, (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g), a, \
		b, c, d, e, f, g)

HOOKS_CALL_ARGUMENTS(CALL_1, CALL_2, CALL_3, CALL_4, CALL_5, CALL_6, CALL_7)

#undef OFF
#define OFF LIKELY(hooks_self.map_state == HOOKS_OFF)

HOOKS_MAP_ARGUMENTS(CALL_2, CALL_5, CALL_6)
