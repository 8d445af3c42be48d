/*
 * arch_hooks.h - x86-64: names that glibc has in two versions, and how it picks functions.
 *
 * What each name is for: arch/other/arch_hooks.h.
 */
#ifndef ARCH_HOOKS_H
#define ARCH_HOOKS_H

#include <stdint.h>

#define ARCH_HAVE_HOOKS 1

/* Condition variables were made anew in glibc 2.3.2, and a library from before is still bound to
 * the old ones. */
#define HOOKS_COND_VERSION     "GLIBC_2.3.2"
#define HOOKS_COND_OLD_VERSION "GLIBC_2.2.5"
#define HOOKS_OLD_NAMES(X)     X(pthread_cond_wait_2_2_5) X(pthread_cond_timedwait_2_2_5)
#define HOOKS_OLD_ARGUMENTS(two, three) two(pthread_cond_wait_2_2_5) three(pthread_cond_timedwait_2_2_5)
#define HOOKS_OLD_LOOKUPS(X)                                                        \
	X(pthread_cond_wait_2_2_5, "pthread_cond_wait", HOOKS_COND_OLD_VERSION)           \
	X(pthread_cond_timedwait_2_2_5, "pthread_cond_timedwait", HOOKS_COND_OLD_VERSION)

static inline void *
arch_resolve(uintptr_t resolver)
{
	return ((void *(*)(void))resolver)();
}

#endif
