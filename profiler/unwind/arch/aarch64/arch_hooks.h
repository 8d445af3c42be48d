/*
 * arch_hooks.h - aarch64: names that glibc has in two versions, and how it picks functions.
 *
 * What each name is for: arch/other/arch_hooks.h.
 */
#ifndef ARCH_HOOKS_H
#define ARCH_HOOKS_H

#include <stdint.h>
#include <sys/auxv.h>
#include <sys/ifunc.h>

#define ARCH_HAVE_HOOKS 1

#define HOOKS_OLD_NAMES(X)
#define HOOKS_OLD_ARGUMENTS(two, three)
#define HOOKS_OLD_LOOKUPS(X)

static inline void *
arch_resolve(uintptr_t resolver)
{
	__ifunc_arg_t arg = { sizeof(arg), getauxval(AT_HWCAP), getauxval(AT_HWCAP2) };

	return ((void *(*)(uint64_t, const __ifunc_arg_t *))resolver)(arg._hwcap | _IFUNC_ARG_HWCAP, &arg);
}

#endif
