/*
 * operators.c - which operators new are counted by themselves.
 *
 * One that stands behind ours in the next allocator's own object does not call malloc, so
 * the hook of the operator counts it.  Some do after all: jemalloc's with an alignment
 * call aligned_alloc() by its public name, which is ours, and were counted twice.  Each is
 * called once to see which it is.
 *
 * What a stranger would get wrong: these throw when there is no memory.  They are called
 * where malloc() has just given some, and for one byte.
 *
 * Tests: tests/hooks/allocators.t.
 */
#include <config.h>

#include "operators.h"

#include <stddef.h>

#define ALIGN 64

typedef void *new_fn(size_t size);
typedef void *new_nothrow_fn(size_t size, const void *nothrow);
typedef void *new_align_fn(size_t size, size_t align);
typedef void *new_align_nothrow_fn(size_t size, size_t align, const void *nothrow);
typedef void  delete_fn(void *block);
typedef void  delete_align_fn(void *block, size_t align);

static void *
call_new(int name)
{
	void *next = component_hooks.next[name];
	char  nothrow = 0; /* a type without members: only its address is passed */

	switch (name) {
	case HOOKS__Znwm:
	case HOOKS__Znam:
		return ((new_fn *)next)(1);
	case HOOKS__ZnwmRKSt9nothrow_t:
	case HOOKS__ZnamRKSt9nothrow_t:
		return ((new_nothrow_fn *)next)(1, &nothrow);
	case HOOKS__ZnwmSt11align_val_t:
	case HOOKS__ZnamSt11align_val_t:
		return ((new_align_fn *)next)(1, ALIGN);
	default:
		return ((new_align_nothrow_fn *)next)(1, ALIGN, &nothrow);
	}
}

static void
call_delete(int name, void *block)
{
	int array = name == HOOKS__Znam || name == HOOKS__ZnamRKSt9nothrow_t || name == HOOKS__ZnamSt11align_val_t ||
		name == HOOKS__ZnamSt11align_val_tRKSt9nothrow_t;

	if (!block)
		return;
	if (name >= HOOKS__ZnwmSt11align_val_t)
		((delete_align_fn *)component_hooks.next[array ? HOOKS__ZdaPvSt11align_val_t : HOOKS__ZdlPvSt11align_val_t])(
			block, ALIGN);
	else
		((delete_fn *)component_hooks.next[array ? HOOKS__ZdaPv : HOOKS__ZdlPv])(block);
}

void
heap_operators_probe(struct hooks_thread *t)
{
	uint32_t before;
	void    *block;

	if (!HOOKS_HAVE(operators_by_name))
		return;
	for (int name = HOOKS__Znwm; name <= HOOKS__ZnamSt11align_val_tRKSt9nothrow_t; name++) {
		uint32_t *kind = &component_hooks.operators_by_name[name - HOOKS__Znwm];

		if (*kind != HOOKS_OPERATORS_OWN)
			continue;
		before = t->unused;
		t->left = -1;
		block = call_new(name);
		if (t->unused != before)
			__atomic_store_n(kind, HOOKS_OPERATORS_PASS, __ATOMIC_RELAXED);
		call_delete(name, block);
	}
}
