/*
 * arch.h - any architecture that has no folder of its own, in plain C; and what each name means.
 *
 * Without its registers' numbers there are no tables, and nobody knows where frame pointers
 * lead.  So CPU samples and blocked threads' stacks are walked by libunwind from copies; it finds
 * the registers itself.  Stacks that are wanted at once end at their leaf: of regions in a
 * trace, of the program's own profiles.  A handler does not even know that, so a thread that
 * runs while a dump is taken has no frames.  Nothing is hooked (arch_hooks.h).
 *
 * What a stranger would get wrong: all of these headers are compiled for one architecture
 * alone, which configure chooses by host_cpu; there is no #if in them.
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* Of the objects whose symbols are read; EM_NONE: any. */
#define ARCH_ELF_MACHINE EM_NONE

/* ---- registers, by DWARF's numbers ---- */

#define CFI_REG_FP   0
#define CFI_REG_SP   1
#define CFI_REG_BASE 3 /* one more that frames are found by: see cfi.h */
#define CFI_REG_RA   2 /* the return address, or the register that calls leave it in */
#define CFI_REGS     4 /* how many are followed */

/* Is this one of those that are beside each other in a ucontext_t? */
static inline bool
arch_has_register(unsigned reg)
{
	(void)reg;
	return false;
}

/* Its value. */
static inline uintptr_t
arch_register(const ucontext_t *uc, unsigned reg)
{
	(void)uc;
	(void)reg;
	return 0;
}

#define ARCH_PC(uc)   arch_register(uc, CFI_REG_RA)
#define ARCH_SP(uc)   ((void)(uc), (uintptr_t)__builtin_frame_address(0)) /* or an address below, not far */
#define ARCH_LINK(uc) ((uintptr_t)0) /* the register that calls leave the return address in; 0: it is on the stack */

/* A code address without its signature. */
static inline uintptr_t
arch_pointer_strip(uintptr_t address)
{
	return address;
}

/* Words of a ucontext_t that unwind_take() takes as they are, for libunwind to find registers in. */
#define ARCH_TAKEN_WORDS (sizeof(ucontext_t) / sizeof(uintptr_t))

/* ---- frames ---- */

/* Are the numbers above true, so that .eh_frame can be read? */
#define ARCH_HAVE_TABLES       0
/* Is libunwind good for anything here? */
#define ARCH_LIBUNWIND         1
/* Does a frame pointer lead to the caller's, and to the return address in the word above? */
#define ARCH_HAVE_FRAMES       0
/* The frame pointer of the caller of the function that it is used in. */
#define ARCH_CALLER_FP         ((uintptr_t)0)
/* 0: the return address lies below the CFA, the caller's frame pointer below that.  1: both lie
 * beside each other anywhere in the frame (AAPCS64's frame record). */
#define ARCH_FRAME_RECORD      0
/* Is the return from a handler known by its code (arch_code.h, arch_frames.h), not by tables? */
#define ARCH_SIGRETURN_BY_CODE 0
/* Where the kernel's ucontext_t is when a handler has returned, in bytes above sp. */
#define ARCH_SIGFRAME_UCONTEXT 0

/* ---- system calls ---- */

/* Does sched_getcpu() make none? */
#define ARCH_CPU_IN_MEMORY 0

/* Its answer, or a negative errno; errno stays. */
static inline long
arch_syscall(long number, long a, long b, long c, long d)
{
	int  saved = errno;
	long ret = syscall(number, a, b, c, d);

	ret = ret < 0 ? -errno : ret;
	errno = saved;
	return ret;
}

/* Valgrind's answer to one of its client requests; 0 where there is no valgrind. */
static inline uint64_t
arch_valgrind_request(const volatile uint64_t words[6])
{
	return words[0] & 0;
}

#endif
