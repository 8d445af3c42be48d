/*
 * arch_perf.h - x86-64: registers of perf's samples.
 */
#ifndef ARCH_PERF_H
#define ARCH_PERF_H

#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* <asm/perf_regs.h>: ax to sp, ip, and behind flags and segments r8 to r15. */
#define ARCH_PERF_REGS  UINT64_C(0xff01ff)
#define ARCH_PERF_COUNT 17

static inline void
arch_perf_context(const uint64_t regs[ARCH_PERF_COUNT], ucontext_t *ret)
{
	static const unsigned char gregs[ARCH_PERF_COUNT] = {
		REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_RIP,
		REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};

	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < ARCH_PERF_COUNT; i++)
		ret->uc_mcontext.gregs[gregs[i]] = (greg_t)regs[i];
}

#endif
