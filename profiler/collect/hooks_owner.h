/*
 * hooks_owner.h - which copy of the core the hooks of this process work for.
 */
#ifndef COLLECT_HOOKS_OWNER_H
#define COLLECT_HOOKS_OWNER_H

#include <stdbool.h>

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

#endif
