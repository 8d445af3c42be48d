/*
 * thread_dump.c - who prints all threads' stacks when a signal asks for it.
 *
 * Tests: tests/threads/hanging_daemon.t.
 */
#include <config.h>

#include "thread_dump.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(thread_dump_fn *) dump;

void
thread_dump_set(thread_dump_fn *fn)
{
	atomic_store(&dump, fn);
}

thread_dump_fn *
thread_dump_get(void)
{
	return atomic_load(&dump);
}
