/*
 * test_window.c - what a walk remembers of a thread's stack, and what it must
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
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "skip.h"
#include "unwind.h"
#include "waiting.h"

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

static void (*fiber_entry)(void) = fiber_run;

static void
on_fiber(char *mem, size_t size)
{
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = mem;
	fiber.uc_stack.ss_size = size;
	fiber.uc_link = NULL;
	makecontext(&fiber, fiber_entry, 0);
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

/* ---- memory that is no stack of the thread ---- */

/* Its frame is by its frame pointer: calls run(arg) on another stack, as runtimes do that grow theirs. */
void     call_on_stack(uintptr_t top, void (*run)(void));
void     by_frame_pointer(void); /* is never called: only where it would stand is used */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl call_on_stack, by_frame_pointer\n"
	".type call_on_stack, @function\n"
	".type by_frame_pointer, @function\n"
	"call_on_stack:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"mov %rsp, %rbp\n"
	".cfi_def_cfa_register %rbp\n"
	"mov %rdi, %rsp\n"
	"call *%rsi\n"
	"mov %rbp, %rsp\n"
	"pop %rbp\n"
	".cfi_def_cfa %rsp, 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size call_on_stack, . - call_on_stack\n"
	"by_frame_pointer:\n"
	".cfi_startproc\n"
	".cfi_def_cfa %rbp, 16\n"
	".cfi_offset %rbp, -16\n"
	"nop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nud2\n"
	".cfi_endproc\n"
	".size by_frame_pointer, . - by_frame_pointer\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl call_on_stack, by_frame_pointer\n"
	".type call_on_stack, %function\n"
	".type by_frame_pointer, %function\n"
	"call_on_stack:\n"
	".cfi_startproc\n"
	"stp x29, x30, [sp, #-16]!\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset x29, -16\n"
	".cfi_offset x30, -8\n"
	"mov x29, sp\n"
	".cfi_def_cfa_register x29\n"
	"mov sp, x0\n"
	"blr x1\n"
	"mov sp, x29\n"
	".cfi_def_cfa_register sp\n"
	"ldp x29, x30, [sp], #16\n"
	".cfi_def_cfa_offset 0\n"
	".cfi_restore x29\n"
	".cfi_restore x30\n"
	"ret\n"
	".cfi_endproc\n"
	".size call_on_stack, . - call_on_stack\n"
	"by_frame_pointer:\n"
	".cfi_startproc\n"
	".cfi_def_cfa x29, 16\n"
	".cfi_offset x29, -16\n"
	".cfi_offset x30, -8\n"
	"nop\nnop\nnop\nnop\nudf #0\n"
	".cfi_endproc\n"
	".size by_frame_pointer, . - by_frame_pointer\n");
#endif

#define FAR_BYTES ((size_t)8 << 20)

/* A frame of by_frame_pointer() there, whose caller is the same function, and the last one. */
static uintptr_t
frame_put(char *at)
{
	uintptr_t frame[2] = { 0, (uintptr_t)by_frame_pointer + 4 };

	memcpy(at, frame, sizeof(frame));
	return (uintptr_t)at;
}

static void
far_above_another_stack(char *mem)
{
	struct unwind_regs regs = { .pc = (uintptr_t)by_frame_pointer + 4, .sp = (uintptr_t)mem + 64 };

	regs.fp = frame_put(mem + 128);
	assert_int_equal(capture(&regs, pcs, MAX, &truncated), 2);
	regs.fp = frame_put(mem + FAR_BYTES);
	assert_int_equal(capture(&regs, pcs, MAX, &truncated), 1);
	assert_int_equal(truncated, 1);
}

static void *
below_its_thread_pointer(void *arg)
{
	char *mem = mmap(NULL, 2 * FAR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(mem != MAP_FAILED);
	far_above_another_stack(mem); /* as the mappings of others may follow on each other */
	munmap(mem + STACK_SIZE, STACK_SIZE);
	far_above_another_stack(mem);
	munmap(mem, 2 * FAR_BYTES);
	return arg;
}

static void
what_lies_between_another_stack_and_the_thread_pointer_is_not_loaded(void **state)
{
	(void)state;
	FOR_BOTH_CAPTURES {
		in_thread(below_its_thread_pointer, NULL);
		below_its_thread_pointer(NULL);
	}
}

static __attribute__((noinline)) void *
with_large_frames(void *arg)
{
	volatile char room[3 << 20];

	room[0] = 0;
	walk_deep(3);
	assert_int_equal(truncated, 0);
	room[sizeof(room) - 1] = room[0];
	walk_deep(3);
	assert_int_equal(truncated, 0);
	return arg;
}

static void
a_frame_of_megabytes_on_the_own_stack_is_passed(void **state)
{
	(void)state;
	FOR_BOTH_CAPTURES
		in_thread(with_large_frames, NULL);
}

static unsigned deep;

static void
walk_deep_there(void)
{
	deep = walk_deep(3);
}

static __attribute__((noinline)) unsigned
on_another_stack(unsigned n, char *mem)
{
	volatile char room[4096];

	room[0] = (char)n;
	if (n > 0)
		deep = on_another_stack(n - 1, mem);
	else
		call_on_stack((uintptr_t)mem + STACK_SIZE, walk_deep_there);
	return deep + (unsigned)(room[0] != (char)n);
}

/* In a child, where nothing of the first thread's stack is remembered after it as before. */
static void
the_first_thread_has_whole_stacks_on_another_stack(void **state)
{
	char *mem = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;
	int   status = 0;

	(void)state;
	assert_true(mem != MAP_FAILED);
	if ((uintptr_t)mem > (uintptr_t)&status)
		SKIP("the first thread's stack is not the highest mapping");
	FOR_BOTH_CAPTURES {
		child = fork();
		assert_true(child >= 0);
		/* and deeper each time than what is remembered */
		for (unsigned n = 0; child == 0 && n < 40; n += 10) {
			on_another_stack(n, mem);
			if (truncated || depth < 8 + n)
				_exit(1);
		}
		if (child == 0)
			_exit(0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	munmap(mem, STACK_SIZE);
}

/* ---- signal frames ---- */

#if defined(__aarch64__)
#define UC_BYTES (offsetof(ucontext_t, uc_mcontext.__reserved) + 16)
#else
#define UC_BYTES offsetof(ucontext_t, uc_sigmask) /* the kernel's is shorter than the C library's */
#endif

static ucontext_t interrupted; /* as the kernel wrote it down */
static uintptr_t  returns_to;

static void
on_signal_to_copy(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	memcpy(&interrupted, context, UC_BYTES);
	returns_to = (uintptr_t)__builtin_return_address(0);
}

static void
signal_frame_to(uintptr_t sp, uintptr_t fp)
{
#if defined(__x86_64__)
	interrupted.uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
	interrupted.uc_mcontext.gregs[REG_RBP] = (greg_t)fp;
	interrupted.uc_mcontext.gregs[REG_RIP] = (greg_t)((uintptr_t)by_frame_pointer + 4);
#elif defined(__aarch64__)
	interrupted.uc_mcontext.sp = sp;
	interrupted.uc_mcontext.regs[29] = fp;
	interrupted.uc_mcontext.pc = (uintptr_t)by_frame_pointer + 4;
#endif
}

/* The depth from a signal frame at mem that says that `there` was interrupted. */
static unsigned
past_signal_frame(char *mem, char *there)
{
	struct unwind_regs regs = { .pc = returns_to, .sp = (uintptr_t)mem, .exact = 1 };

	signal_frame_to((uintptr_t)there, frame_put(there + 64));
	memcpy(mem + ARCH_SIGFRAME_UCONTEXT, &interrupted, UC_BYTES);
	return capture(&regs, pcs, MAX, &truncated);
}

static void
a_signal_frame_that_was_left_over_is_not_believed(void **state)
{
	struct sigaction act = { .sa_sigaction = on_signal_to_copy, .sa_flags = SA_SIGINFO };
	char            *mem = mmap(NULL, 3 * STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char            *there = mem + 2 * STACK_SIZE;

	(void)state;
	assert_true(mem != MAP_FAILED);
	munmap(mem + STACK_SIZE, STACK_SIZE);
	sigaction(SIGUSR1, &act, NULL);
	raise(SIGUSR1);
	FOR_BOTH_CAPTURES {
		interrupted.uc_stack = (stack_t){ .ss_flags = SS_DISABLE };
		assert_int_equal(past_signal_frame(mem, mem + 32768), 3); /* on the same stack */
		assert_int_equal(past_signal_frame(mem, there), 2);
		assert_int_equal(past_signal_frame(there, mem), 2);
		interrupted.uc_stack = (stack_t){ .ss_sp = mem, .ss_size = STACK_SIZE };
		assert_int_equal(past_signal_frame(mem, there), 3);
		assert_int_equal(past_signal_frame(there, mem), 2);
	}
	munmap(mem, STACK_SIZE);
	munmap(there, STACK_SIZE);
}

static void
interrupted_fiber_run(void)
{
	raise(SIGUSR2);
	swapcontext(&fiber, &fiber_main);
}

/* A handler with a stack of its own interrupts a fiber. */
static void *
in_a_fiber(void *arg)
{
	struct sigaction inner = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct sigaction outer = { .sa_handler = on_outer_signal, .sa_flags = SA_ONSTACK };
	char             room[STACK_SIZE];
	stack_t          ss = { .ss_size = STACK_SIZE, .ss_sp = room };
	char            *mem = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(mem != MAP_FAILED);
	sigaction(SIGUSR1, &inner, NULL);
	sigaction(SIGUSR2, &outer, NULL);
	assert_int_equal(sigaltstack(&ss, NULL), 0);
	fiber_entry = interrupted_fiber_run;
	on_fiber(mem, STACK_SIZE);
	fiber_entry = fiber_run;
	assert_in_range(depth, 8, 30); /* two raises, the handler, the fiber's function and its start */
	assert_int_equal(truncated, 0);
	ss.ss_flags = SS_DISABLE;
	sigaltstack(&ss, NULL);
	munmap(mem, STACK_SIZE);
	return arg;
}

static void
what_a_handler_interrupted_in_a_fiber_is_found(void **state)
{
	(void)state;
	FOR_BOTH_CAPTURES
		in_thread(in_a_fiber, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_thread_has_whole_stacks_on_another_stack),
		cmocka_unit_test(a_thread_is_asked_about_once),
		cmocka_unit_test(a_fiber_beside_a_thread_is_not_taken_for_its_stack),
		cmocka_unit_test(pages_closed_below_the_stack_in_use_do_no_harm),
		cmocka_unit_test(alternate_stacks_come_and_go),
		cmocka_unit_test(what_lies_between_another_stack_and_the_thread_pointer_is_not_loaded),
		cmocka_unit_test(a_frame_of_megabytes_on_the_own_stack_is_passed),
		cmocka_unit_test(a_signal_frame_that_was_left_over_is_not_believed),
		cmocka_unit_test(what_a_handler_interrupted_in_a_fiber_is_found),
		cmocka_unit_test(the_first_thread_is_asked_about_once_too),
	};

	if (unwind_start(UNWIND_TABLES) < 0)
		return 1;
	/* Where threads begin is learnt by a thread. */
	WAIT_FOR_S(unwind_roots_known(), 60);
	return cmocka_run_group_tests_name("unwind_window", tests, NULL, NULL);
}
