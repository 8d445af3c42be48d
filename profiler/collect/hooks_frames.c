/*
 * hooks_frames.c - functions of ours, left out of stacks.
 *
 * They are told by the section that they are in: one of the hooks object, wherever that
 * is linked, and one of the core.
 *
 * What a stranger would get wrong: a daemon's frame that the compiler made a jump of is
 * not there either; so the names above prove nothing, and only addresses are compared.
 *
 * Tests: tests/serve_threads.t, tests/test_waits.c.
 */
#include <config.h>

#include "hooks_frames.h"

#include <stdbool.h>

#include "hooks.h"

extern const char __start_component_frames[] __attribute__((visibility("hidden")));
extern const char __stop_component_frames[] __attribute__((visibility("hidden")));

static bool
is_between(uintptr_t pc, const char *start, const char *end)
{
	return pc - (uintptr_t)start < (uintptr_t)end - (uintptr_t)start;
}

unsigned
hooks_frames_drop(uintptr_t *pcs, unsigned count)
{
	const char *start = NULL, *end = NULL;
	unsigned    to = count > 0;

	if (HOOKS_HAVE(frames_end)) {
		start = component_hooks.frames_start;
		end = component_hooks.frames_end;
	}
	for (unsigned i = 1; i < count; i++)
		if (!is_between(pcs[i], start, end) && !is_between(pcs[i], __start_component_frames, __stop_component_frames))
			pcs[to++] = pcs[i];
	return to;
}
