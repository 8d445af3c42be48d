/*
 * hooks_owner.c - which copy of the core the hooks of this process work for.
 *
 * A program may be linked with libcomponent.so and load a plugin that has libcomponent.a in
 * it, hidden.  Then there are two cores and one table of hooks.  Whoever switches anything on
 * first has them; the other one works without, and says so.
 *
 * What a stranger would get wrong: they are never given back.  Blocks from the range of the
 * first one live on when it is off, and each free() still asks it.
 *
 * Tests: tests/hooks.t.
 */
#include <config.h>

#include "hooks_owner.h"

#include <stddef.h>

#include "hooks.h"
#include "own_object.h"

static const char self; /* its address is this copy's name */

static const void *
owner(void)
{
	if (HOOKS_HAVE(owner))
		return __atomic_load_n(&component_hooks.owner, __ATOMIC_SEQ_CST);
	return HOOKS_HAVE(resolve) ? &self : NULL; /* of before: nobody else knows of them */
}

bool
hooks_claim(void)
{
	const void *nobody = NULL;

	if (!HOOKS_HAVE(owner))
		return hooks_are_ours();
	own_object_keep(); /* they call us as long as the process lives */
	return __atomic_compare_exchange_n(&component_hooks.owner, &nobody, &self, false, __ATOMIC_SEQ_CST,
		__ATOMIC_SEQ_CST) || nobody == &self;
}

bool
hooks_are_ours(void)
{
	return owner() == &self;
}

bool
hooks_are_others(void)
{
	return owner() && owner() != &self;
}
