/*
 * cpu_burn.h - work whose place and amount are known, and finding it in a profile.
 */
#ifndef TESTS_CPU_BURN_H
#define TESTS_CPU_BURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile.h"
#include "stack_table.h"
#include "waiting.h"

/* Goes before a function's definition; gives it a section of its own, whose ends
 * the linker knows whatever the compiler adds to it. */
#define BURN_FUNCTION(name)                                     \
	extern const char __start_text_##name[], __stop_text_##name[]; \
	__attribute__((noinline, noclone, section("text_" #name)))

#define burn_samples(p, name) burn_samples_between(p, __start_text_##name, __stop_text_##name)

static volatile unsigned burn_sink;

/* Uses so much of the calling thread's CPU time. */
static inline __attribute__((always_inline)) void
burn_ns(int64_t ns)
{
	int64_t  end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	unsigned i;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (i = 0; i < 20000; i++)
			burn_sink = burn_sink * 31 + i;
}

/* CPU time of the process. */
static inline int64_t
burn_clock(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* The most samples, at 100 Hz, since burn_clock() was at begin, but for those under way.  Where a virtual
 * machine is denied its processor, the clock jumps and the samples are as many more than the work. */
static inline int64_t
burn_most(int64_t begin)
{
	return (burn_clock() - begin) / 10000000 + 12;
}

/* Samples whose stack holds a pc from begin to end: of one BURN_FUNCTION. */
static inline int64_t
burn_samples_between(const struct profile *p, const char *begin, const char *end)
{
	const uintptr_t *pcs;
	int64_t          sum = 0;
	unsigned         count, i;
	size_t           s;

	for (s = 0; s < p->count; s++) {
		pcs = stack_table_pcs(p->samples[s].stack, &count);
		for (i = 0; i < count && !(pcs[i] >= (uintptr_t)begin && pcs[i] < (uintptr_t)end); i++)
			;
		if (i < count)
			sum += p->samples[s].values[0];
	}
	return sum;
}

/* Samples of one of our own words, as leaf or root. */
static inline int64_t
burn_pseudo(const struct profile *p, enum stack_pseudo word)
{
	const uintptr_t *pcs;
	int64_t          sum = 0;
	unsigned         count;
	size_t           s;

	for (s = 0; s < p->count; s++) {
		pcs = stack_table_pcs(p->samples[s].stack, &count);
		if (count > 0 && (pcs[0] == word || pcs[count - 1] == word))
			sum += p->samples[s].values[0];
	}
	return sum;
}

static inline int64_t
burn_total(const struct profile *p)
{
	int64_t sum = 0;
	size_t  s;

	for (s = 0; s < p->count; s++)
		sum += p->samples[s].values[0];
	return sum;
}

static inline bool
burn_in_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

/* Valgrind runs one thread at a time, on a clock of its own: says so in TAP. */
static inline bool
burn_skip_all(void)
{
	if (!burn_in_valgrind())
		return false;
	printf("1..0 # SKIP under valgrind CPU time is not what it was\n");
	return true;
}

static inline int
timers_of_process(void)
{
	char  line[256];
	int   n = 0;
	FILE *f = fopen("/proc/self/timers", "r");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		n += strncmp(line, "ID:", 3) == 0;
	fclose(f);
	return n;
}

#endif
