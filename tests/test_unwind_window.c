/*
 * test_unwind_window.c - what a walk remembers of a thread's stack, and what it must
 * not remember.
 *
 * A filter makes the kernel hand the walk's questions to a handler of ours, which counts
 * them.  Stacks that go away, are replaced by smaller ones or lie side by side with a
 * thread's must still be asked about: a wrong memory is a crash here.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "skip.h"
#include "unwind.h"

#define MAX        128
#define STACK_SIZE ((size_t)256 << 10)

static uintptr_t     pcs[MAX];
static unsigned      depth;
static int           truncated;
static volatile long questions;

typedef unsigned capture_fn(const struct unwind_regs *, uintptr_t *, unsigned, int *);

/* Both ways to walk keep the same rules. */
static capture_fn *const captures[] = { unwind_capture_guess, unwind_capture_cold };
static capture_fn       *capture = unwind_capture_guess;

#define FOR_BOTH_CAPTURES                                                 \
	for (unsigned way = 0; way < 2 && (capture = captures[way]); way++)

static __attribute__((noinline)) unsigned
walk_here(void)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;

	depth = capture(&regs, pcs, MAX, &truncated);
	return depth;
}

static __attribute__((noinline)) unsigned
walk_deep(unsigned n)
{
	volatile char room[900];
	unsigned      d;

	room[0] = (char)n;
	d = n ? walk_deep(n - 1) : walk_here();
	return d + (unsigned)(room[0] != (char)n);
}

static void
in_thread(void *(*run)(void *), pthread_attr_t *attr)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, attr, run, NULL), 0);
	pthread_join(t, NULL);
}

/* ---- how often the kernel is asked ---- */

/* The question, asked of the kernel in a way that the filter lets pass. */
static void
on_question(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)number;
	(void)info;
	questions++;
#if defined(__x86_64__)
	uc->uc_mcontext.gregs[REG_RAX] = -EINVAL;
#elif defined(__aarch64__)
	uc->uc_mcontext.regs[0] = (unsigned long long)-EINVAL;
#endif
}

/* In this thread: rt_sigprocmask(-1, ...) traps. */
static bool
questions_trap(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	struct sigaction  act = { .sa_sigaction = on_question, .sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &act, NULL);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

static long first_walk, second_walk, shallow_walk, deeper_walk;
static bool filtered;

static void *
counts(void *arg)
{
	filtered = questions_trap();
	if (!filtered)
		return arg;
	questions = 0;
	walk_deep(20);
	first_walk = questions;
	walk_deep(20);
	second_walk = questions - first_walk;
	walk_deep(2);
	shallow_walk = questions - first_walk - second_walk;
	questions = 0;
	walk_deep(30);
	deeper_walk = questions;
	return arg;
}

static void
a_thread_is_asked_about_once(void **state)
{
	(void)state;
	in_thread(counts, NULL);
	if (!filtered)
		SKIP("this kernel has no seccomp");
	print_message("# questions: %ld, then %ld, %ld, and %ld for what is deeper\n", first_walk, second_walk,
		      shallow_walk, deeper_walk);
	assert_in_range(first_walk, 4, 40);
	assert_int_equal(second_walk, 0);
	assert_int_equal(shallow_walk, 0);
	assert_in_range(deeper_walk, 1, 30);
	/* another thread, most likely on the same stack */
	in_thread(counts, NULL);
	assert_in_range(first_walk, 4, 40);
	assert_int_equal(second_walk, 0);
}

/* The last test: the filter stays. */
static void
the_first_thread_is_asked_about_once_too(void **state)
{
	(void)state;
	capture = unwind_capture_guess;
	counts(NULL);
	if (!filtered)
		SKIP("this kernel has no seccomp");
	print_message("# questions: %ld, then %ld, %ld, and %ld for what is deeper\n", first_walk, second_walk,
		      shallow_walk, deeper_walk);
	assert_in_range(first_walk, 4, 60);
	assert_int_equal(second_walk, 0);
	assert_int_equal(shallow_walk, 0);
}

/* ---- stacks that go ---- */

static ucontext_t fiber_main, fiber;
static uintptr_t  fiber_sp;

static void
fiber_run(void)
{
	char here;

	fiber_sp = (uintptr_t)&here & ~(uintptr_t)15;
	walk_deep(10);
	swapcontext(&fiber, &fiber_main);
}

static void
on_fiber(char *mem, size_t size)
{
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = mem;
	fiber.uc_stack.ss_size = size;
	fiber.uc_link = NULL;
	makecontext(&fiber, fiber_run, 0);
	swapcontext(&fiber_main, &fiber);
}

/* Walks from every word of [from, to) as if the thread stood there. */
static void
walks_from(uintptr_t from, uintptr_t to)
{
	struct unwind_regs regs = { .pc = (uintptr_t)walk_deep + 1 };
	uintptr_t          at;

	for (at = from; at < to; at += 64) {
		regs.sp = at;
		regs.fp = at + 256;
		capture(&regs, pcs, MAX, &truncated);
	}
}

static char *arena; /* a fiber's stack, and right above it a thread's */

static void *
beside_a_fiber(void *arg)
{
	char *low = arena, *own = arena + STACK_SIZE;

	walk_deep(20); /* its own stack is known now */
	on_fiber(low, STACK_SIZE);
	assert_true(depth > 10);
	walk_deep(20);
	/* The upper half of the fiber's stack goes, a smaller one comes. */
	assert_int_equal(munmap(low + STACK_SIZE / 2, STACK_SIZE / 2), 0);
	on_fiber(low, STACK_SIZE / 2);
	walks_from(fiber_sp, (uintptr_t)low + STACK_SIZE / 2);
	walks_from((uintptr_t)low + STACK_SIZE / 2 - 4096, (uintptr_t)own);
	assert_int_equal(munmap(low, STACK_SIZE / 2), 0);
	walks_from((uintptr_t)low, (uintptr_t)own);
	walk_deep(20);
	assert_true(depth > 20);
	return arg;
}

static void
a_fiber_beside_a_thread_is_not_taken_for_its_stack(void **state)
{
	pthread_attr_t attr;

	(void)state;
	FOR_BOTH_CAPTURES {
		arena = mmap(NULL, 2 * STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(arena != MAP_FAILED);
		pthread_attr_init(&attr);
		assert_int_equal(pthread_attr_setstack(&attr, arena + STACK_SIZE, STACK_SIZE), 0);
		in_thread(beside_a_fiber, &attr);
		pthread_attr_destroy(&attr);
		munmap(arena + STACK_SIZE, STACK_SIZE);
	}
}

static void *
closes_below(void *arg)
{
	uintptr_t here = (uintptr_t)&arg & ~(uintptr_t)4095;

	walk_deep(60); /* some 15 pages are known now, all but the last ones below here */
	assert_int_equal(mprotect((void *)(here - 12 * 4096), 4 * 4096, PROT_NONE), 0);
	walk_deep(5);
	assert_true(depth > 5);
	assert_int_equal(mprotect((void *)(here - 12 * 4096), 4 * 4096, PROT_READ | PROT_WRITE), 0);
	return arg;
}

static void
pages_closed_below_the_stack_in_use_do_no_harm(void **state)
{
	(void)state;
	FOR_BOTH_CAPTURES
		in_thread(closes_below, NULL);
}

/* ---- other stacks of the thread ---- */

static void
on_signal(int number, siginfo_t *info, void *context)
{
	struct unwind_regs regs;

	(void)number;
	(void)info;
	unwind_regs_from_ucontext(&regs, context);
	depth = unwind_prove(pcs, capture(&regs, pcs, MAX, &truncated), &truncated);
}

static void
on_outer_signal(int number)
{
	(void)number;
	raise(SIGUSR1);
	__asm__ volatile("" ::: "memory");
}

static void *
on_alternate_stacks(void *arg)
{
	stack_t          ss = { .ss_size = STACK_SIZE };
	struct sigaction inner = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct sigaction outer = { .sa_handler = on_outer_signal, .sa_flags = SA_ONSTACK };
	unsigned         plain = walk_deep(3);

	sigaction(SIGUSR1, &inner, NULL);
	sigaction(SIGUSR2, &outer, NULL);
	for (int i = 0; i < 20; i++) {
		ss.ss_sp = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ss.ss_flags = 0;
		assert_int_equal(sigaltstack(&ss, NULL), 0);
		raise(SIGUSR2);
		assert_true(depth >= 8); /* two raises, the handler, this function, the thread's start */
		assert_int_equal(truncated, 0);
		ss.ss_flags = SS_DISABLE;
		sigaltstack(&ss, NULL);
		munmap(ss.ss_sp, STACK_SIZE);
		assert_int_equal(walk_deep(3), plain);
		walks_from((uintptr_t)ss.ss_sp, (uintptr_t)ss.ss_sp + STACK_SIZE);
	}
	return arg;
}

static void
alternate_stacks_come_and_go(void **state)
{
	(void)state;
	FOR_BOTH_CAPTURES
		in_thread(on_alternate_stacks, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_is_asked_about_once),
		cmocka_unit_test(a_fiber_beside_a_thread_is_not_taken_for_its_stack),
		cmocka_unit_test(pages_closed_below_the_stack_in_use_do_no_harm),
		cmocka_unit_test(alternate_stacks_come_and_go),
		cmocka_unit_test(the_first_thread_is_asked_about_once_too),
	};

	if (unwind_start(UNWIND_TABLES) < 0)
		return 1;
	/* Where threads begin is learnt by a thread. */
	for (int i = 0; i < 2000 && !unwind_roots_known(); i++)
		usleep(1000);
	return cmocka_run_group_tests_name("unwind_window", tests, NULL, NULL);
}
