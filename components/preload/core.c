/*
 * core.c - what the agent's core has besides the profiler: it is a stranger in the process.
 *
 * libcomponent-preload-core.so is the profiling server with libevent, zlib and protobuf-c in it, all
 * hidden: a program may bring other ones, or functions of these names.  They come from the archives
 * that configure has found, most of which were compiled for programs: such code reads libc's
 * "stderr" at an address that is fixed when it is linked.  The linker (--wrap) leads it here.
 *
 * What a stranger would get wrong: nothing else of libc's data is read that way, or the link would
 * fail (-z text); configure tries.
 *
 * Tests: tests/components/agent.t, tests/project/exports.t.
 */
#include <config.h>

#include <stdio.h>

extern FILE *__real_stderr;
FILE        *__wrap_stderr;

/* Before the server starts, as nothing of the core has run. */
__attribute__((constructor(101))) static void
core_begin(void)
{
	__wrap_stderr = __real_stderr;
}
