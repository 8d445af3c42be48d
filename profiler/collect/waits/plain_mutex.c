/*
 * plain_mutex.c - may the hooks lock plain mutexes themselves?
 *
 * They do it as glibc does, and so only where glibc does it and nobody else wants to see it:
 *
 * - The functions behind the hooks are glibc's own, not those of a sanitizer or of another watcher.
 * - Neither helgrind nor drd runs the program: they see locks by glibc's functions.
 * - glibc has just done to a mutex what the hooks would do, to the byte.  With lock elision it does not.
 *
 * What a stranger would get wrong: a child of _Fork() or of a bare clone() has another id, of which nobody tells
 * the hooks, and writes its parent's.  glibc writes it into plain mutexes for debuggers alone.
 *
 * Tests: tests/waits/test_waits.c, tests/hooks/interposition.t, tests/hooks/cost.t.
 */
#include <config.h>

#include "plain_mutex.h"

#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "abi.h"
#include "thread_id.h"
#include "under_valgrind.h"

#define MEMBER(theirs, ours) \
	_Static_assert(offsetof(pthread_mutex_t, __data.theirs) == offsetof(struct hooks_plain_mutex, ours) && \
		sizeof(((pthread_mutex_t *)0)->__data.theirs) == sizeof(((struct hooks_plain_mutex *)0)->ours), #theirs)
MEMBER(__lock, lock);
MEMBER(__count, count);
MEMBER(__owner, owner);
MEMBER(__nusers, users);
MEMBER(__kind, kind);

typedef int mutex_fn(pthread_mutex_t *m);

static int
watches_locks(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	return strstr(info->dlpi_name, "/vgpreload_helgrind") != NULL || strstr(info->dlpi_name, "/vgpreload_drd") != NULL;
}

/* Does glibc do to one what the hooks do to the other? */
static bool
are_locked_alike(mutex_fn *try, mutex_fn *unlock)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_t              theirs = fresh, ours = fresh;
	bool                         alike;

	alike = try(&theirs) == 0 && hooks_plain_mutex_try((struct hooks_plain_mutex *)&ours, thread_id_self()) &&
		memcmp(&theirs, &ours, sizeof(ours)) == 0 && try(&ours) != 0 &&
		!hooks_plain_mutex_try((struct hooks_plain_mutex *)&theirs, thread_id_self());
	unlock(&theirs);
	unlock(&ours);
	return alike && memcmp(&theirs, &fresh, sizeof(fresh)) == 0 && memcmp(&ours, &fresh, sizeof(fresh)) == 0;
}

static bool
may_lock(void)
{
	mutex_fn *try = (mutex_fn *)component_hooks.tries[HOOKS_TRY_pthread_mutex_trylock];
	mutex_fn *unlock = (mutex_fn *)component_hooks.next[HOOKS_pthread_mutex_unlock];

	return component_hooks.mutexes_are_libcs && !(under_valgrind && dl_iterate_phdr(watches_locks, NULL)) &&
	       are_locked_alike(try, unlock);
}

static int
thread_id(void)
{
	return thread_id_self();
}

void
plain_mutex_begin(void)
{
	static bool looked;

	if (looked || !HOOKS_HAVE(mutexes_are_libcs))
		return;
	looked = true;
	component_hooks.thread_id = thread_id;
	__atomic_store_n(&component_hooks.plain_mutexes, may_lock(), __ATOMIC_RELEASE);
}

void
plain_mutex_forked(void)
{
	if (HOOKS_HAVE(mutexes_are_libcs) && component_hooks.plain_mutexes)
		component_hooks.plain_mutexes++;
}
