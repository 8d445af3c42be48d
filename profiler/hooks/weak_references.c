/*
 * weak_references.c - a weak reference to every name that may be hooked.
 *
 * Nothing here runs.  The references make the linker put the names into the
 * dynamic symbol table of a program that defines them, which is how the calls of
 * shared libraries find their way to the hooks linked into it.
 */
#include <config.h>

#include "abi.h"

#define X(name) extern char hooks_reference_##name __asm__(#name) __attribute__((weak));
HOOKS_NAMES(X)
HOOKS_CALL_NAMES(X)
HOOKS_SIGNAL_NAMES(X)
HOOKS_SYSV_NAMES(X)
HOOKS_MAP_NAMES(X)
#undef X

extern const void *const hooks_references[];

const void *const hooks_references[] = {
	&component_hooks,
#define X(name) &hooks_reference_##name,
	HOOKS_NAMES(X)
	HOOKS_CALL_NAMES(X)
	HOOKS_SIGNAL_NAMES(X)
	HOOKS_SYSV_NAMES(X)
	HOOKS_MAP_NAMES(X)
#undef X
};
