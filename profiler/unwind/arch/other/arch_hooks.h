/*
 * arch_hooks.h - any other architecture: names that glibc has in two versions, and how it picks
 * functions.
 *
 * What a stranger would get wrong: a name of two versions is nothing that the compiler reports.
 * A hook without the right version takes calls that were meant for the older function, so nobody
 * hooks where nobody has looked ("readelf -sW --dyn-syms libc.so.6").
 */
#ifndef ARCH_HOOKS_H
#define ARCH_HOOKS_H

#include <stdint.h>

/* Is what follows true, so that hooks can be linked into programs? */
#define ARCH_HAVE_HOOKS 0

/* HOOKS_COND_VERSION and HOOKS_COND_OLD_VERSION: the versions of pthread_cond_wait and
 * pthread_cond_timedwait; not defined where there is one.  Their older ones among the hooks: */
#define HOOKS_OLD_NAMES(X)
#define HOOKS_OLD_ARGUMENTS(two, three)
#define HOOKS_OLD_LOOKUPS(X) /* X(name, the real name, its version) */

/* Asks an indirect function which one is to be called on this processor. */
static inline void *
arch_resolve(uintptr_t resolver)
{
	return ((void *(*)(void))resolver)();
}

#endif
