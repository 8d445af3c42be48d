/*
 * stub.c - what -lcomponent_hooks is in a program linked with -static.
 *
 * libc.a has a malloc of its own and nobody is left to ask for the next one, so
 * nothing can be hooked.  This satisfies -u component_hooks and lets the core say
 * in the index why there is no heap profile.
 */
#include "abi.h"

struct component_hooks component_hooks __attribute__((visibility("default"))) = {
	.version = HOOKS_VERSION,
	.size = sizeof(struct component_hooks),
	.kind = HOOKS_STATIC_STUB,
	.heap_state = HOOKS_OFF,
	.thread_state = HOOKS_OFF,
	.wait_state = HOOKS_OFF,
	.range_start = UINTPTR_MAX,
};
