/*
 * which_core.h - which copy of the core the hooks of this process work for.
 */
#ifndef HOOKS_WHICH_CORE_H
#define HOOKS_WHICH_CORE_H

#include <stdbool.h>

#include "abi.h"

/* Where there are none to link in: arch_hooks.h. */
#define HOOKS_UNKNOWN "there are no hooks for this architecture"

/* What to do where a name of ours is another's. */
#define HOOKS_DISPLACED(name) \
	name "() is the program's own, as of a sanitizer that is linked in statically; " \
	"link its shared runtime (-shared-libasan), or start it with libcomponent-preload.so"

/*
 * hooks_claim - takes the hooks for this copy, for good
 *
 *   returns  true: they are ours, perhaps since long; false: another copy's, or there are none
 *   threads  any
 */
bool hooks_claim(void);

/* Has this copy, or has another one, taken them? */
bool hooks_are_ours(void);
bool hooks_are_others(void);

/* With hooks there: does the object they are linked into have another function of that name,
 * which is called in place of ours?  Of pthread_create, pthread_mutex_lock and those of mappings only: they were
 * looked up when this copy was loaded; here nothing is. */
bool hooks_displaced(enum hooks_name name);

#endif
