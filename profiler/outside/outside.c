/*
 * outside.c - begins to look at a process; a tool does so until it ends.
 *
 * Tests: tests/componentctl/outside.t.
 */
#include <config.h>

#include "outside.h"

#include <errno.h>

#include "memory.h"
#include "process.h"
#include "refused.h"
#include "stack_table.h"
#include "unwind.h"

#define STACKS_BYTES ((size_t)256 << 20) /* of different stacks; the tool's own memory, and not a daemon's */

int
outside_begin(pid_t pid, struct component_error *err)
{
	struct memory m;
	int           r = process_look_at(pid);

	if (!r)
		r = memory_open(&m);
	if (r)
		return refused_process(pid, r, err);
	memory_close(&m);
	stack_table_set_limit(STACKS_BYTES);
	unwind_lend();
	return 0;
}
