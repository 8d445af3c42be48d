/*
 * arch.h - aarch64: registers, what the kernel saves of them, frames, system calls.
 *
 * What each name is for: arch/other/arch.h.
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <ucontext.h>

#define ARCH_ELF_MACHINE EM_AARCH64

/* ---- registers ---- */

#define CFI_REG_FP   29 /* x29 */
#define CFI_REG_SP   31
#define CFI_REG_BASE 19
#define CFI_REG_RA   30 /* x30 */
#define CFI_REGS     32

static inline bool
arch_has_register(unsigned reg)
{
	return reg < CFI_REG_SP;
}

static inline uintptr_t
arch_register(const ucontext_t *uc, unsigned reg)
{
	return uc->uc_mcontext.regs[reg];
}

#define ARCH_PC(uc)   ((uintptr_t)(uc)->uc_mcontext.pc)
#define ARCH_SP(uc)   ((uintptr_t)(uc)->uc_mcontext.sp)
#define ARCH_LINK(uc) arch_register(uc, CFI_REG_RA)

/* xpaclri, as a hint: does nothing where the processor signs nothing. */
static inline uintptr_t
arch_pointer_strip(uintptr_t address)
{
	register uintptr_t x30 __asm__("x30") = address;

	__asm__("hint #7" : "+r"(x30));
	return x30;
}

#define ARCH_TAKEN_WORDS 0

/* ---- frames ---- */

#define ARCH_HAVE_TABLES       1
#define ARCH_HAVE_FRAMES       1
#define ARCH_LIBUNWIND         0 /* 1.6 loses the caller of a function without a frame, and goes on past the root; the tables do neither */
#define ARCH_CALLER_FP         (*(uintptr_t *)__builtin_frame_address(0))
#define ARCH_FRAME_RECORD      1
#define ARCH_SIGRETURN_BY_CODE 1 /* Linux 5.8 had wrong rules for it, others have none */
#define ARCH_SIGFRAME_UCONTEXT sizeof(siginfo_t)

/* ---- system calls ---- */

#define ARCH_CPU_IN_MEMORY __GLIBC_PREREQ(2, 35)

static inline long
arch_syscall(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}

static inline uint64_t
arch_valgrind_request(const volatile uint64_t words[6])
{
	register uint64_t                 answer __asm__("x3") = 0;
	register const volatile uint64_t *x4 __asm__("x4") = words;

	__asm__ volatile("ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\torr x10, x10, x10"
			 : "+r"(answer) : "r"(x4) : "cc", "memory");
	return answer;
}

#endif
