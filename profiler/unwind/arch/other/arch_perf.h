/*
 * arch_perf.h - any other architecture: registers of perf's samples.  None is known, so no process is
 * sampled from outside.
 */
#ifndef ARCH_PERF_H
#define ARCH_PERF_H

#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#define ARCH_PERF_REGS  UINT64_C(0) /* bits of <asm/perf_regs.h>; 0: there is no such profile */
#define ARCH_PERF_COUNT 1           /* how many bits are set, or 1 */

/* Those of a sample, in the order of the bits, where unwind_regs_from_ucontext() finds them. */
static inline void
arch_perf_context(const uint64_t regs[ARCH_PERF_COUNT], ucontext_t *ret)
{
	(void)regs;
	memset(ret, 0, sizeof(*ret));
}

#endif
