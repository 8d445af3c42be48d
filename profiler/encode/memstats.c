/*
 * memstats.c - the "# runtime.MemStats" block that ends a heap's text in Go.
 *
 * Every key in Go's order, since readers of that text know it by place.  What C
 * has: the sampler's estimates (unsampled, so they are near what malloc gave out,
 * not equal), and what the kernel says of the process.  The rest is 0, and a line
 * in front names it.
 *
 * What a stranger would get wrong: mallinfo2() is not asked, although it is exact.
 * It takes the locks of glibc's malloc, which a stuck daemon may hold, and knows
 * nothing of other allocators.
 *
 * Tests: tests/encode/test_text.c, tests/serve/delta.t
 */
#include <config.h>

#include "memstats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "our_fd.h"
#include "proc_status.h"
#include "stack_table.h"

#define PAUSES 256 /* numbers in PauseNs and in PauseEnd */

/* "	  1234 kB" in bytes; 0 where it cannot be read. */
static int64_t
status_bytes(const struct proc_status_line *l)
{
	return strtoll(l->value, NULL, 10) * 1024;
}

static void
print_zeros(struct lines *l, const char *key)
{
	lines_print(l, "# %s = [", key);
	for (int i = 0; i < PAUSES; i++)
		lines_print(l, i ? " 0" : "0");
	lines_print(l, "]\n");
}

static void
print_one(struct lines *l, const char *key, int64_t value)
{
	lines_print(l, "# %s = %" PRId64 "\n", key, value);
}

void
memstats_print(struct lines *l, const struct memstats *m)
{
	struct proc_status_line status[] = { { .key = "\nVmData:" }, { .key = "\nVmStk:" } };
	struct rusage           usage;
	int64_t                 stack, data;
	int                     fd = proc_status_open();

	proc_status_read(fd, status, 2);
	our_fd_close(fd);
	data = status_bytes(&status[0]);
	stack = status_bytes(&status[1]);
	getrusage(RUSAGE_SELF, &usage);
	lines_print(l, "\n# estimated from samples: Alloc TotalAlloc Mallocs Frees HeapAlloc HeapInuse HeapObjects\n"
		"# nothing to say in a C process, always 0: Lookups HeapIdle HeapReleased MSpan MCache GCSys OtherSys "
		"NextGC LastGC PauseNs PauseEnd NumGC NumForcedGC GCCPUFraction DebugGC\n"
		"# runtime.MemStats\n");
	print_one(l, "Alloc", m->inuse_space);
	print_one(l, "TotalAlloc", m->alloc_space);
	print_one(l, "Sys", data + stack);
	print_one(l, "Lookups", 0);
	print_one(l, "Mallocs", m->alloc_objects);
	print_one(l, "Frees", m->alloc_objects - m->inuse_objects);
	print_one(l, "HeapAlloc", m->inuse_space);
	print_one(l, "HeapSys", data);
	print_one(l, "HeapIdle", 0);
	print_one(l, "HeapInuse", m->inuse_space);
	print_one(l, "HeapReleased", 0);
	print_one(l, "HeapObjects", m->inuse_objects);
	lines_print(l, "# Stack = %" PRId64 " / %" PRId64 "\n", stack, stack);
	lines_print(l, "# MSpan = 0 / 0\n# MCache = 0 / 0\n");
	print_one(l, "BuckHashSys", (int64_t)stack_table_bytes());
	print_one(l, "GCSys", 0);
	print_one(l, "OtherSys", 0);
	print_one(l, "NextGC", 0);
	print_one(l, "LastGC", 0);
	print_zeros(l, "PauseNs");
	print_zeros(l, "PauseEnd");
	print_one(l, "NumGC", 0);
	print_one(l, "NumForcedGC", 0);
	print_one(l, "GCCPUFraction", 0);
	lines_print(l, "# DebugGC = false\n");
	print_one(l, "MaxRSS", (int64_t)usage.ru_maxrss * 1024);
}
