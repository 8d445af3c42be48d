/*
 * test_step.c - stacks of code without frame pointers, taken at every single
 * instruction, through libc, and below a handler on a stack of its own.
 *
 * This file is compiled with -fomit-frame-pointer.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cpu_burn.h"
#include "skip.h"
#include "stack_table.h"
#include "unwind.h"
#include "unwind_window.h"
#include "recover.h"
#include "refused_call.h"

#if ARCH_HAVE_TABLES

#define MAX STACK_FRAMES_MAX

#define in(pc, name) ((pc) >= (uintptr_t)__start_text_##name && (pc) < (uintptr_t)__stop_text_##name)

static uintptr_t pcs[MAX];
static unsigned  depth;
static int       truncated;

static void
on_signal(int number, siginfo_t *info, void *context)
{
	struct unwind_regs regs;

	(void)number;
	(void)info;
	unwind_regs_from_ucontext(&regs, context);
	depth = unwind_prove(pcs, unwind_capture_guess(&regs, pcs, MAX, &truncated), &truncated);
}

static void
signal_self(void)
{
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
}

#define FIND(i, name)                                       \
	for (i = 0; i < depth && !in(pcs[i], name); i++)    \
		;                                           \
	assert_in_range(i, 0, depth - 1)

BURN_FUNCTION(innermost)
static int
innermost(const void *a, const void *b)
{
	if (depth == 0)
		signal_self();
	return *(const int *)a - *(const int *)b;
}

BURN_FUNCTION(sorts)
static void
sorts(void)
{
	int values[64];

	for (int i = 0; i < 64; i++)
		values[i] = 64 - i;
	qsort(values, 64, sizeof(values[0]), innermost);
	burn_sink = (unsigned)values[3];
}

BURN_FUNCTION(outer)
static void
outer(void)
{
	sorts();
	__asm__ volatile("" ::: "memory");
}

static void
callers_are_found_through_code_without_frame_pointers(void **state)
{
	unsigned a, b, c;

	(void)state;
	depth = 0;
	outer();
	FIND(a, innermost);
	FIND(b, sorts);
	FIND(c, outer);
	assert_true(a < b && b < c); /* qsort of libc in between */
	assert_int_equal(truncated, 0);
}

static void *
in_a_thread(void *arg)
{
	depth = 0;
	outer();
	return arg;
}

static void
the_start_of_a_thread_is_known_to_be_the_root(void **state)
{
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, in_a_thread, NULL), 0);
	pthread_join(t, NULL);
	assert_true(depth >= 6);
	assert_int_equal(truncated, 0);
}

BURN_FUNCTION(interrupted)
static void
interrupted(void)
{
	depth = 0;
	outer();
	depth = 0;
	raise(SIGUSR2);
	__asm__ volatile("" ::: "memory");
}

static uintptr_t interrupted_pc;

static void
on_outer_signal(int number, siginfo_t *info, void *context)
{
	struct unwind_regs regs;

	(void)number;
	(void)info;
	unwind_regs_from_ucontext(&regs, context);
	interrupted_pc = regs.pc;
	outer();
	__asm__ volatile("" ::: "memory");
}

static void
what_a_handler_interrupted_is_found_below_it(void **state)
{
	struct sigaction act = { .sa_sigaction = on_outer_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t          alternate = { .ss_sp = malloc(65536), .ss_size = 65536 }, old;
	unsigned         a, b, c;

	(void)state;
	assert_int_equal(sigaltstack(&alternate, &old), 0);
	sigaction(SIGUSR2, &act, NULL);
	interrupted();
	sigaltstack(&old, NULL);
	free(alternate.ss_sp);
	FIND(a, innermost);
	FIND(b, outer);
	assert_true(a < b);
	/* The handler's stack may lie above the interrupted one or below. */
	FIND(c, interrupted);
	assert_true(b < c);
	/* The interrupted instruction itself, not one before it. */
	for (a = b; a < c && pcs[a] != interrupted_pc; a++)
		;
	assert_in_range(a, b + 1, c - 1);
	assert_int_equal(truncated, 0);
}

static volatile sig_atomic_t traps, wrong;
static uintptr_t             expected;

/* In a handler: is the expected caller on the interrupted stack, and is all of that there? */
static void
caller_check(const void *context)
{
	struct unwind_regs regs;
	uintptr_t          found[MAX];
	unsigned           n, i;
	int                cut;

	unwind_regs_from_ucontext(&regs, context);
	n = unwind_prove(found, unwind_capture_guess(&regs, found, MAX, &cut), &cut);
	for (i = 0; i < n && found[i] - expected > 256; i++)
		;
	traps++;
	if (i == n || cut) {
		wrong++;
		print_message("# at %#lx: %u frames, cut %d\n", (unsigned long)regs.pc, n, cut);
	}
}

#if defined(__x86_64__)
/* Steps a function one instruction at a time: the trap flag raises SIGTRAP. */
static void
on_trap(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	caller_check(context);
}

BURN_FUNCTION(stepped_inner)
static unsigned
stepped_inner(unsigned n)
{
	return n ? stepped_inner(n - 1) * 31 + n : 1;
}

BURN_FUNCTION(stepped)
static unsigned
stepped(unsigned n)
{
	char     buf[64];
	unsigned sum = stepped_inner(n);

	snprintf(buf, sizeof(buf), "%u %s %d", sum, "abc", (int)n);
	memset(buf, 'x', n % 64);
	return sum + (unsigned)strlen(buf);
}

BURN_FUNCTION(stepping)
static void
stepping(void)
{
	__asm__ volatile("pushfq; orl $0x100,(%%rsp); popfq" ::: "memory", "cc");
	burn_sink = stepped(6);
	__asm__ volatile("pushfq; andl $~0x100,(%%rsp); popfq" ::: "memory", "cc");
}

static void
every_instruction_has_its_caller(void **state)
{
	struct sigaction act = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	(void)state;
	if (burn_in_valgrind())
		SKIP("valgrind knows no trap flag");
	/* Binds its calls: the loader's stub for that keeps its frame in rbx, a register
	 * that the tables do not follow. */
	burn_sink = stepped(6);
	sigaction(SIGTRAP, &act, NULL);
	expected = (uintptr_t)__start_text_stepping;
	traps = 0;
	wrong = 0;
	stepping();
	signal(SIGTRAP, SIG_DFL);
	print_message("# %d instructions, %d without their caller\n", (int)traps, (int)wrong);
	assert_true(traps > 500);
	assert_true(wrong <= 2); /* inside the second pushfq, of which no table tells */
}
#else
/*
 * No trap flag here: each instruction of a function in its turn becomes a breakpoint,
 * whose handler walks and puts the instruction back.
 */
#define BRK 0xd4200000U

static volatile sig_atomic_t traps, wrong;
static uintptr_t             expected;
static uint32_t             *broken, before;

static void
code_put(uint32_t *at, uint32_t instruction)
{
	*(volatile uint32_t *)at = instruction;
	__builtin___clear_cache((char *)at, (char *)(at + 1));
}

static void
on_trap(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	caller_check(context);
	code_put(broken, before);
}

BURN_FUNCTION(leaf_without_frame)
__attribute__((noipa)) static unsigned
leaf_without_frame(unsigned n)
{
	return n * 31 + (n >> 3);
}

BURN_FUNCTION(recurses)
__attribute__((noipa)) static unsigned
recurses(unsigned n)
{
	return n ? recurses(n - 1) * 31 + n : leaf_without_frame(n);
}

BURN_FUNCTION(signs_its_return)
__attribute__((noipa, target("branch-protection=pac-ret+leaf"))) static unsigned
signs_its_return(unsigned n)
{
	char buf[64];

	memset(buf, (int)n, n % 64 + 1);
	return recurses(n % 3) + (unsigned)buf[n % 2];
}

BURN_FUNCTION(signs_by_the_other_key)
__attribute__((noipa, target("branch-protection=pac-ret+leaf+b-key"))) static unsigned
signs_by_the_other_key(unsigned n)
{
	volatile char big[70000]; /* two adjustments of sp, or a probe of the stack */

	big[n] = (char)n;
	return signs_its_return(n) + (unsigned)big[n];
}

BURN_FUNCTION(stack_of_run_time_size)
__attribute__((noipa)) static unsigned
stack_of_run_time_size(unsigned n)
{
	char *some = __builtin_alloca(n * 16 + 16);

	memset(some, (int)n, n * 16);
	return signs_by_the_other_key(n) + (unsigned)some[n];
}

BURN_FUNCTION(stepping)
static void
stepping(void)
{
	burn_sink = stack_of_run_time_size(6);
	__asm__ volatile("" ::: "memory");
}

#define BREAK_IN(name) break_in((uint32_t *)(uintptr_t)__start_text_##name, (uint32_t *)(uintptr_t)__stop_text_##name)

static void
break_in(uint32_t *at, uint32_t *end)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)at & -page;
	size_t    size = ((uintptr_t)end - start + page - 1) & -page;
	int       had = traps;

	assert_int_equal(mprotect((void *)start, size, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	for (; at < end; at++) {
		broken = at;
		before = *at;
		code_put(at, BRK);
		stepping();
		code_put(at, before); /* not reached: padding, or the other way of a branch */
	}
	assert_int_equal(mprotect((void *)start, size, PROT_READ | PROT_EXEC), 0);
	assert_true(traps > had + 1);
}

static void
every_instruction_has_its_caller(void **state)
{
	struct sigaction act = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	(void)state;
	stepping();
	sigaction(SIGTRAP, &act, NULL);
	expected = (uintptr_t)__start_text_stepping;
	traps = 0;
	wrong = 0;
	BREAK_IN(leaf_without_frame);
	BREAK_IN(recurses);
	BREAK_IN(signs_its_return);
	BREAK_IN(signs_by_the_other_key);
	BREAK_IN(stack_of_run_time_size);
	signal(SIGTRAP, SIG_DFL);
	print_message("# %d instructions, %d without their caller\n", (int)traps, (int)wrong);
	assert_true(traps > 50);
	assert_int_equal(wrong, 0);
}

/* As the linker writes them; nobody describes them, and nobody runs these. */
static const uint32_t stubs[] = {
	0xd503201f, /* nop */
	0xa9bf7bf0, /* stp x16, x30, [sp, #-16]!: the one that finds the function */
	0xb0000270, 0xf947fe11, 0x913fe210, 0xd61f0220, /* adrp; ldr; add; br */
	0xd503201f, 0xd503201f,
	0xd0000270, 0xf9400211, 0x91000210, 0xd61f0220, /* a plain one */
	0xd503245f, 0xd0000270, 0xf9400211, 0x91000210, 0xd503219f, 0xd61f0220, /* bti; ...; autia1716; br */
	0xd503201f, 0xd503201f,
};

#define PUSHED_FROM  2 /* behind stp */
#define PUSHED_UNTIL 5

/* As if it had been interrupted at stubs[i], called from where it was called itself. */
static __attribute__((noipa)) void
capture_in_a_stub(size_t i, uintptr_t *ret_caller)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;

	*ret_caller = regs.pc - 1;
	regs.lr = regs.pc;
	regs.pc = (uintptr_t)&stubs[i];
	regs.exact = 1;
	if (i >= PUSHED_FROM && i <= PUSHED_UNTIL)
		regs.sp -= 16;
	depth = unwind_prove(pcs, unwind_capture_guess(&regs, pcs, MAX, &truncated), &truncated);
}

static __attribute__((noipa)) unsigned
capture_here(uintptr_t *ret)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;

	return unwind_prove(ret, unwind_capture_guess(&regs, ret, MAX, &truncated), &truncated);
}

static void
callers_of_stubs_are_found(enum unwind_mode mode)
{
	uintptr_t here[MAX], caller = 0;
	unsigned  n, found = 0;

	assert_int_equal(unwind_start(mode), 0);
	for (size_t i = 0; i < sizeof(stubs) / sizeof(*stubs); i++) {
		n = capture_here(here);
		capture_in_a_stub(i, &caller);
		assert_true(depth >= 2);
		assert_int_equal(pcs[0], &stubs[i]);
		if (stubs[i] == 0xd503201f) { /* whatever that is */
			assert_int_not_equal(pcs[1], caller);
			continue;
		}
		assert_int_equal(pcs[1], caller);
		assert_int_equal(depth, n + 1);
		assert_memory_equal(pcs + 2, here + 1, (n - 1) * sizeof(*pcs));
		found++;
	}
	assert_int_equal(found, 15);
	assert_int_equal(unwind_start(UNWIND_TABLES), 0);
}

static void
every_instruction_of_a_stub_has_its_caller(void **state)
{
	(void)state;
	callers_of_stubs_are_found(UNWIND_TABLES);
	callers_of_stubs_are_found(UNWIND_FRAME_POINTER);
}
#endif

/* ---- as a dump sees blocked threads: sp and pc alone, and a copy of the stack ---- */

/* Of a stack, with what a sanitizer calls nobody's. */
static void UNWIND_NO_SANITIZE
words_copy(void *ret, uintptr_t from, size_t size)
{
	for (size_t i = 0; i < size / sizeof(uintptr_t); i++)
		((volatile uintptr_t *)ret)[i] = unwind_word(from + i * sizeof(uintptr_t));
}

static const struct memory *by_memory; /* instead of process_vm_readv() */

/* at: where it stands, 0: in this function. */
static __attribute__((noinline)) unsigned
walk_as_if_blocked(uintptr_t at, uintptr_t *ret, int *ret_cut)
{
	static struct unwind_code code;
	static uintptr_t          copy[8192];
	struct unwind_regs        live = { .exact = 1 }, blocked;
	ucontext_t                here;
	size_t                    size;

	getcontext(&here);
	live.pc = ARCH_PC(&here);
	live.sp = ARCH_SP(&here);
	live.fp = arch_register(&here, CFI_REG_FP);
	depth = unwind_prove(pcs, unwind_capture_guess(&live, pcs, MAX, &truncated), &truncated);
	blocked = live;
	blocked.fp = 0;
	blocked.fp_unknown = 1;
	blocked.code = &code;
	memset(&code, 0, sizeof(code));
	code.memory = by_memory;
	if (at)
		blocked.pc = at;
	size = unwind_window_extent(live.sp, sizeof(copy));
	words_copy(copy, live.sp, size);
	return unwind_copy(&blocked, copy, size, live.sp, ret, MAX, ret_cut);
}

static void
sp_and_pc_are_enough_where_the_frame_holds_the_rest(void **state)
{
	uintptr_t found[MAX];
	int       cut;
	unsigned  n = walk_as_if_blocked(0, found, &cut);

	(void)state;
	assert_int_equal(truncated, 0);
	assert_int_equal(cut, 0);
	assert_int_equal(n, depth);
	assert_true(n >= 4);
	assert_memory_equal(found, pcs, n * sizeof(*pcs));
}

/* Status 1: another stack; 2: there is no filter to be had. */
static void
walk_under_a_filter(void)
{
	struct memory m;
	uintptr_t     found[MAX];
	unsigned      n;
	int           cut;

	if (refuse_call(SYS_process_vm_readv) < 0 || !memory_call_refused() || memory_open(&m) < 0)
		_exit(2);
	by_memory = &m;
	n = walk_as_if_blocked(0, found, &cut);
	_exit(cut || n != depth || memcmp(found, pcs, n * sizeof(*pcs)) != 0);
}

static void
also_where_process_vm_readv_is_refused(void **state)
{
	pid_t child = fork();
	int   status;

	(void)state;
	if (child == 0)
		walk_under_a_filter();
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status == 2 << 8)
		SKIP("no filter can be set");
	assert_int_equal(status, 0);
}

#if defined(__aarch64__)
static void
without_x30_a_function_without_a_frame_has_no_caller_instead_of_a_wrong_one(void **state)
{
	uintptr_t found[MAX];
	int       cut;

	(void)state;
	assert_int_equal(walk_as_if_blocked((uintptr_t)leaf_without_frame, found, &cut), 1);
	assert_int_equal(found[0], (uintptr_t)leaf_without_frame);
	assert_int_equal(cut, 1);
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_are_found_through_code_without_frame_pointers),
		cmocka_unit_test(the_start_of_a_thread_is_known_to_be_the_root),
		cmocka_unit_test(what_a_handler_interrupted_is_found_below_it),
		cmocka_unit_test(every_instruction_has_its_caller),
		cmocka_unit_test(sp_and_pc_are_enough_where_the_frame_holds_the_rest),
		cmocka_unit_test(also_where_process_vm_readv_is_refused),
#if defined(__aarch64__)
		cmocka_unit_test(every_instruction_of_a_stub_has_its_caller),
		cmocka_unit_test(without_x30_a_function_without_a_frame_has_no_caller_instead_of_a_wrong_one),
#endif
	};
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigaction(SIGUSR1, &act, NULL);
	if (unwind_start(UNWIND_TABLES) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int
main(void)
{
	printf("1..0 # SKIP no instruction of this processor can be stopped at\n");
	return 0;
}

#endif
