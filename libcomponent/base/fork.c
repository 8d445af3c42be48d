/*
 * fork.c - calls the slots of fork.h around each fork.
 *
 * The linker lays the slots side by side in a section: nobody registers, so none is missing
 * when a thread forks while the library is being loaded.
 *
 * Why not a pthread_atfork() in each file: their order is that in which constructors and first
 * calls happen to run, and locks would follow from it.
 *
 * Tests: tests/base/test_fork_slots.c.
 */
#include <config.h>

#include "fork.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

extern const struct fork_slot *const __start_component_fork[] __attribute__((visibility("hidden")));
extern const struct fork_slot *const __stop_component_fork[] __attribute__((visibility("hidden")));

const char fork_linked;

static const struct fork_slot *by_rank[FORK_RANKS];

static void
on_prepare(void)
{
	int saved = errno;

	for (int i = 0; i < FORK_RANKS; i++)
		if (by_rank[i] && by_rank[i]->prepare)
			by_rank[i]->prepare();
	errno = saved;
}

static void
on_parent(void)
{
	int saved = errno;

	for (int i = FORK_RANKS; i-- > 0;)
		if (by_rank[i] && by_rank[i]->parent)
			by_rank[i]->parent();
	errno = saved;
}

static void
on_child(void)
{
	int saved = errno;

	for (int i = FORK_RANKS; i-- > 0;)
		if (by_rank[i] && by_rank[i]->child)
			by_rank[i]->child();
	errno = saved;
}

/* Before the program's own constructors, which may register handlers of theirs; a library's may have run already. */
__attribute__((constructor(101))) static void
fork_watch(void)
{
	for (const struct fork_slot *const *s = __start_component_fork; s < __stop_component_fork; s++)
		by_rank[(*s)->rank] = *s;
	pthread_atfork(on_prepare, on_parent, on_child);
}
