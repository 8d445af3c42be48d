/*
 * stack_table.c - memory of 100,000 distinct stacks of 30 frames, indexes included.
 *
 *     stack_table ours
 *
 * Neighbours share most of their callers, as the stacks of a program do.  Counted is
 * what the process has got, not what the table says of itself.
 */
#include <config.h>

#include "bench.h"
#include "stack_table.h"

#define STACKS 100000
#define FRAMES 30

/* Private dirty memory, in KiB: the table maps its own. */
static double
dirty_kb(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char  line[256];
	long  kb = -1;

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "Private_Dirty: %ld", &kb) != 1)
		;
	if (f)
		fclose(f);
	if (kb < 0)
		bench_skip("there is no /proc/self/smaps_rollup");
	return (double)kb;
}

/* The leaf's bits choose the callers: 2 ways at each of 17 levels, then one way down. */
static void
make(uintptr_t *pcs, unsigned number)
{
	for (unsigned i = 0; i < FRAMES; i++)
		pcs[i] = 0x400000 + i * 0x1000 + (i < 17 ? (number >> i & 1) * 0x200 : 0);
}

int
main(void)
{
	uintptr_t pcs[FRAMES];
	uint32_t  first = 0, id;
	double    before, after;

	stack_table_set_limit((size_t)1 << 30);
	make(pcs, 0);
	before = dirty_kb();
	for (unsigned i = 0; i < STACKS; i++) {
		make(pcs, i);
		id = stack_table_add(pcs, FRAMES);
		if (id < STACK_PSEUDO_MAX)
			bench_die("a stack found no room");
		if (i == 0)
			first = id;
	}
	after = dirty_kb();
	make(pcs, 0);
	if (stack_table_add(pcs, FRAMES) != first)
		bench_die("a stack is in it twice");
	bench_print("stack_table_bytes", (after - before) * 1024 / STACKS, "bytes");
	printf("# by its own account %.1f bytes a stack\n", (double)stack_table_bytes() / STACKS);
	return 0;
}
