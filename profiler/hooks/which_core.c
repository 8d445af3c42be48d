/*
 * which_core.c - which copy of the core the hooks of this process work for.
 *
 * A program may be linked with libcomponent.so and load a plugin that has libcomponent.a in
 * it, hidden.  Then there are two cores and one table of hooks.  Whoever switches anything on
 * first has them; the other one works without, and says so.
 *
 * What a stranger would get wrong: they are never given back.  Blocks from the range of the
 * first one live on when it is off, and each free() still asks it.
 *
 * A name may also be lost when the program is linked: ours are weak, and the runtime of a
 * sanitizer that is linked in statically (clang's) has most of them, so nothing calls ours.
 * The loader is asked when this copy is loaded and never later: a fork child, or a caller that
 * holds a lock of ours, must not enter it, as another thread may stand in dlopen().
 *
 * Tests: tests/hooks/interposition.t, tests/whole/sanitizers.t.
 */
#include <config.h>

#include "which_core.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "abi.h"
#include "our_object.h"

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
	our_object_keep(); /* they call us as long as the process lives */
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

static atomic_bool displaced[HOOKS_NAMES_ROOM];

static bool
is_displaced(enum hooks_name name)
{
	void   *own = component_hooks.own[name], *first = dlsym(RTLD_DEFAULT, component_hooks.names[name]);
	Dl_info theirs, ours;

	return first && first != own && dladdr(first, &theirs) && dladdr(own, &ours) &&
	       theirs.dli_fbase == ours.dli_fbase;
}

/* Before the program's own constructors, which may start profiling.  The names are the C
 * library's too, so neither look-up fails: nothing is allocated. */
__attribute__((constructor(200))) static void
displaced_find(void)
{
	static const enum hooks_name asked[] = { HOOKS_pthread_create, HOOKS_pthread_mutex_lock, HOOKS_mmap, HOOKS_mmap64,
		HOOKS_munmap, HOOKS_mremap };

	if (!HOOKS_HAVE(names) || !HOOKS_HAVE(own))
		return;
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++)
		if ((uint32_t)asked[i] < component_hooks.name_count) /* hooks of before have fewer */
			atomic_store(&displaced[asked[i]], is_displaced(asked[i]));
}

bool
hooks_displaced(enum hooks_name name)
{
	return atomic_load(&displaced[name]);
}
