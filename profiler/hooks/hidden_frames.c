/*
 * hidden_frames.c - functions of ours, left out of stacks.
 *
 * They are told by the section that they are in: one of the hooks object, wherever that
 * is linked, and one of the core.
 *
 * What a stranger would get wrong: a daemon's frame that the compiler made a jump of is
 * not there either; so the names above prove nothing, and only addresses are compared.
 *
 * Tests: tests/threads/goroutine.t, tests/waits/test_waits.c.
 */
#include <config.h>

#include "hidden_frames.h"

#include <stdbool.h>

#include "abi.h"

extern const char __start_component_frames[] __attribute__((visibility("hidden")));
extern const char __stop_component_frames[] __attribute__((visibility("hidden")));

struct section {
	uintptr_t start, size;
};

static bool
has(const struct section *s, uintptr_t pc)
{
	return pc - s->start < s->size;
}

unsigned
hidden_frames_drop(uintptr_t *pcs, unsigned count)
{
	struct section hooks = { 0, 0 };
	struct section core = { (uintptr_t)__start_component_frames,
		(uintptr_t)(__stop_component_frames - __start_component_frames) };
	unsigned       i, to;

	if (HOOKS_HAVE(frames_end))
		hooks = (struct section){ (uintptr_t)component_hooks.frames_start,
			(uintptr_t)(component_hooks.frames_end - component_hooks.frames_start) };
	for (i = 1; i < count && !has(&hooks, pcs[i]) && !has(&core, pcs[i]); i++)
		; /* mostly there is none */
	for (to = i < count ? i : count; i < count; i++)
		if (!has(&hooks, pcs[i]) && !has(&core, pcs[i]))
			pcs[to++] = pcs[i];
	return to;
}
