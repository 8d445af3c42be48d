/*
 * arch_perf.h - aarch64: registers of perf's samples.
 */
#ifndef ARCH_PERF_H
#define ARCH_PERF_H

#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* <asm/perf_regs.h>: x0 to x30, sp, pc. */
#define ARCH_PERF_REGS  UINT64_C(0x1ffffffff)
#define ARCH_PERF_COUNT 33

static inline void
arch_perf_context(const uint64_t regs[ARCH_PERF_COUNT], ucontext_t *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < 31; i++)
		ret->uc_mcontext.regs[i] = regs[i];
	ret->uc_mcontext.sp = regs[31];
	ret->uc_mcontext.pc = regs[32];
}

#endif
