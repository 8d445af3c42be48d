/*
 * arch.h - x86-64: registers, what the kernel saves of them, frames, system calls.
 *
 * What each name is for: arch/other/arch.h.
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#define ARCH_ELF_MACHINE EM_X86_64

/* ---- registers ---- */

#define CFI_REG_FP   6  /* rbp */
#define CFI_REG_SP   7  /* rsp */
#define CFI_REG_BASE 3  /* rbx: what the loader's trampoline finds its frame by */
#define CFI_REG_RA   16 /* rip */
#define CFI_REGS     17

static inline bool
arch_has_register(unsigned reg)
{
	return reg < CFI_REGS;
}

static inline uintptr_t
arch_register(const ucontext_t *uc, unsigned reg)
{
	static const unsigned char gregs[CFI_REGS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
		REG_R9,	 REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
	};

	return (uintptr_t)uc->uc_mcontext.gregs[gregs[reg]];
}

#define ARCH_PC(uc)   arch_register(uc, CFI_REG_RA)
#define ARCH_SP(uc)   arch_register(uc, CFI_REG_SP)
#define ARCH_LINK(uc) ((uintptr_t)0)

static inline uintptr_t
arch_pointer_strip(uintptr_t address)
{
	return address;
}

#define ARCH_TAKEN_WORDS 0

/* ---- frames ---- */

#define ARCH_HAVE_TABLES       1
#define ARCH_HAVE_FRAMES       1
#define ARCH_LIBUNWIND         1
#define ARCH_CALLER_FP         (*(uintptr_t *)__builtin_frame_address(0))
#define ARCH_FRAME_RECORD      0
#define ARCH_SIGRETURN_BY_CODE 0 /* the tables know it */
#define ARCH_SIGFRAME_UCONTEXT 0

/* ---- system calls ---- */

#define ARCH_CPU_IN_MEMORY 1

static inline long
arch_syscall(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long          ret;

	__asm__ volatile("syscall" : "=a"(ret) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return ret;
}

static inline uint64_t
arch_valgrind_request(const volatile uint64_t words[6])
{
	uint64_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
			 : "+d"(answer) : "a"(words) : "cc", "memory");
	return answer;
}

#endif
