/*
 * test_unwind.c - the two doors to a call stack, on good stacks and on bad ones.
 */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#include "unwind.h"
#include "skip.h"

#define MAX 128

/* Where calls return to, and one byte behind a jump, where none does. */
#if defined(__x86_64__)
#define CALL "call"
#define JUMP "jmp"
#else
#define CALL "bl"
#define JUMP "b"
#endif
__asm__(".text\n"
	"	nop\n	nop\n"
	"	" CALL " callee\n"
	"returned_to_a:\n"
	"	nop\n	nop\n"
	"	" CALL " callee\n"
	"returned_to_b:\n"
	"	nop\n	nop\n	nop\n"
	"	" JUMP " callee\n"
	"jumped_from:\n"
	"	nop\n"
	"callee:\n"
	"	ret\n");
/* Hidden: the address of a local label out of the GOT is that of its section on aarch64 (ld 2.40). */
__attribute__((visibility("hidden"))) extern const char returned_to_a[], returned_to_b[], jumped_from[], callee[];

static uintptr_t pcs[MAX];
static unsigned  depth;
static int       truncated;

/* A section for each function, whose ends the linker knows. */
#define FUNCTION(name)                                                 \
	extern const char __start_text_##name[], __stop_text_##name[]; \
	__attribute__((noinline, noclone, section("text_" #name)))

#define in(pc, name) ((pc) >= (uintptr_t)__start_text_##name && (pc) < (uintptr_t)__stop_text_##name)

/* As a handler does, and a thread of ours after it. */
static unsigned
capture(const struct unwind_regs *regs)
{
	return unwind_prove(pcs, unwind_capture_guess(regs, pcs, MAX, &truncated), &truncated);
}

FUNCTION(capture_here)
static void
capture_here(void)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;

	depth = capture(&regs);
}

FUNCTION(recurse)
static int
recurse(int n)
{
	volatile char big[200];

	big[0] = (char)n;
	if (n == 0)
		capture_here();
	else
		recurse(n - 1);
	return big[0];
}

FUNCTION(callers_are_found_leaf_first)
static void
callers_are_found_leaf_first(void **state)
{
	unsigned i;

	(void)state;
	recurse(10);
	assert_true(depth > 11);
	for (i = 0; i < 11; i++)
		assert_true(in(pcs[i], recurse));
	assert_true(in(pcs[11], callers_are_found_leaf_first));
	assert_int_equal(truncated, 0);
}

static void
a_stack_deeper_than_the_room_is_truncated(void **state)
{
	(void)state;
	recurse(500);
	assert_int_equal(depth, MAX);
	assert_int_equal(truncated, 1);
	assert_true(in(pcs[MAX - 1], recurse));
}

static void
on_signal(int signal_number, siginfo_t *info, void *context)
{
	struct unwind_regs regs;

	(void)signal_number;
	(void)info;
	unwind_regs_from_ucontext(&regs, context);
	depth = capture(&regs);
}

static void
handler_install(int flags)
{
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags };

	sigaction(SIGUSR1, &act, NULL);
}

FUNCTION(raise_here)
static void
raise_here(void)
{
	/* not raise(3): code without frame pointers may stand behind it */
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	__asm__ volatile("" ::: "memory");
}

FUNCTION(an_interrupted_stack_is_walked_from_an_alternate_one)
static void
an_interrupted_stack_is_walked_from_an_alternate_one(void **state)
{
	stack_t  alternate = { .ss_sp = malloc(65536), .ss_size = 65536 }, old;
	unsigned i;

	(void)state;
	handler_install(SA_ONSTACK);
	assert_int_equal(sigaltstack(&alternate, &old), 0);
	raise_here();
	assert_int_equal(sigaltstack(&old, NULL), 0);
	free(alternate.ss_sp);
	assert_true(depth >= 2);
	for (i = 0; i < depth && !in(pcs[i], an_interrupted_stack_is_walked_from_an_alternate_one); i++)
		;
	assert_in_range(i, 1, depth - 1);
}

static void
errno_stays_as_it_was(void **state)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;

	(void)state;
	regs.fp = (regs.sp & ~(uintptr_t)15) + 65536 * 8; /* most likely beyond */
	errno = 4711;
	capture(&regs);
	assert_int_equal(errno, 4711);
}

static void
no_frame_pointer_can_make_it_crash(void **state)
{
	size_t             page = (size_t)sysconf(_SC_PAGESIZE);
	char              *mem = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct unwind_regs regs = UNWIND_REGS_HERE;
	uintptr_t         *top, bad;
	unsigned           seed = 1, i;

	(void)state;
	/* A hole in the middle: the third page must not be reached through it. */
	assert_int_equal(mprotect(mem + page, page, PROT_NONE), 0);
	regs.pc = (uintptr_t)no_frame_pointer_can_make_it_crash;
	regs.sp = (uintptr_t)mem;

	/* into the hole, across its edge, past its end */
	for (bad = (uintptr_t)mem + page - 64; bad < (uintptr_t)mem + page + 64; bad++) {
		regs.fp = bad;
		assert_in_range(capture(&regs), 1, 3);
	}
	/* a frame whose caller's frame lies in the hole */
	top = (uintptr_t *)mem;
	top[0] = (uintptr_t)mem + page + 128;
	top[1] = (uintptr_t)returned_to_a;
	regs.fp = (uintptr_t)mem;
	assert_int_equal(capture(&regs), 2);
	/* a frame that is its own caller, and one that leads back */
	top[0] = (uintptr_t)mem;
	assert_int_equal(capture(&regs), 2);
	/* return addresses that are none: no addresses, data, a function, code behind a jump */
	const uintptr_t none[] = { 4095, UINTPTR_MAX - 8, (uintptr_t)top, (uintptr_t)mem + page, (uintptr_t)&depth,
				   (uintptr_t)recurse, (uintptr_t)callee, (uintptr_t)jumped_from };
	top[0] = (uintptr_t)(top + 4);
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		top[1] = none[i];
		assert_int_equal(capture(&regs), 1);
		assert_int_equal(truncated, 1);
	}
	/* and anything at all */
	for (i = 0; i < 20000; i++) {
		seed = seed * 1103515245 + 12345;
		regs.fp = (uintptr_t)mem + seed % (3 * page + 4096);
		regs.sp = regs.fp - (seed >> 8) % 8192;
		if (i % 3 == 0)
			regs.fp = (uintptr_t)seed << (seed % 33);
		if (i % 7 == 0)
			regs.pc = regs.fp ^ seed;
		regs.exact = i & 1;
		capture(&regs);
		regs.pc = (uintptr_t)recurse;
	}
	regs.fp = UINTPTR_MAX & ~(uintptr_t)7;
	regs.sp = regs.fp - 64;
	capture(&regs);
	munmap(mem, 3 * page);
}

static void
a_copy_of_a_stack_gives_the_same_callers(void **state)
{
	struct {
		uintptr_t words[8];
	} copy = { { 0 } };
	const uintptr_t    base = 0x7fff0000; /* nothing need be there */
	const uintptr_t    here = (uintptr_t)recurse, a = (uintptr_t)returned_to_a, b = (uintptr_t)returned_to_b;
	struct unwind_regs regs = { .pc = here, .sp = base, .fp = base + 16, .exact = 1 };
	unsigned           n;

	(void)state;
	copy.words[2] = base + 32; /* frame at 16 */
	copy.words[3] = a;
	copy.words[4] = 0; /* frame at 32: the last */
	copy.words[5] = b;
	n = unwind_copy(&regs, &copy, sizeof(copy), base, pcs, MAX, &truncated);
	assert_int_equal(n, 3);
	assert_int_equal(pcs[0], here);
	assert_int_equal(pcs[1], a - 1);
	assert_int_equal(pcs[2], b - 1);
	assert_int_equal(truncated, 0);
	/* a copy that ends too early */
	n = unwind_copy(&regs, &copy, 40, base, pcs, MAX, &truncated);
	assert_int_equal(n, 2);
	/* a chain that leaves the copy */
	copy.words[4] = base + 64;
	n = unwind_copy(&regs, &copy, sizeof(copy), base, pcs, MAX, &truncated);
	assert_int_equal(n, 3);
	regs.fp = base - 8;
	n = unwind_copy(&regs, &copy, sizeof(copy), base, pcs, MAX, &truncated);
	assert_int_equal(n, 1);
	assert_int_equal(truncated, 1);
}

#if defined(__x86_64__)
/* caller(): a frame; leaf(): asm with exactly known instructions. */
__asm__(".text\n"
	"leaf_plain:\n"
	"	push %rbp\n"
	"	mov %rsp,%rbp\n"
	"	nop\n"
	"	pop %rbp\n"
	"	ret\n");
extern char leaf_plain[];

static void
a_leaf_before_and_after_its_frame_still_has_its_caller(void **state)
{
	uintptr_t          stack[8] = { 0 };
	struct unwind_regs regs = { .exact = 1 };

	(void)state;
	/* the caller's frame is at stack[4], called before returned_to_a, return address pushed at [2] */
	stack[2] = (uintptr_t)returned_to_a;
	stack[4] = 0;
	stack[5] = (uintptr_t)returned_to_b;
	regs.fp = (uintptr_t)&stack[4];

	regs.pc = (uintptr_t)leaf_plain; /* before push */
	regs.sp = (uintptr_t)&stack[2];
	assert_int_equal(capture(&regs), 3);
	assert_int_equal(pcs[1], (uintptr_t)returned_to_a - 1);
	assert_int_equal(pcs[2], (uintptr_t)returned_to_b - 1);

	regs.pc = (uintptr_t)leaf_plain + 1; /* before mov */
	regs.sp = (uintptr_t)&stack[1];
	stack[1] = regs.fp;
	assert_int_equal(capture(&regs), 3);
	assert_int_equal(pcs[1], (uintptr_t)returned_to_a - 1);

	regs.pc = (uintptr_t)leaf_plain + 6; /* before ret */
	regs.sp = (uintptr_t)&stack[2];
	assert_int_equal(capture(&regs), 3);
	assert_int_equal(pcs[1], (uintptr_t)returned_to_a - 1);

	regs.pc = (uintptr_t)leaf_plain + 4; /* in its body: its own frame */
	regs.fp = (uintptr_t)&stack[1];
	stack[1] = (uintptr_t)&stack[4];
	regs.sp = (uintptr_t)&stack[1];
	assert_int_equal(capture(&regs), 3);
	assert_int_equal(pcs[1], (uintptr_t)returned_to_a - 1);
}
#endif

/* A fiber: walked on its own stack, which is then gone. */
static ucontext_t fiber_main, fiber;

FUNCTION(fiber_run)
static void
fiber_run(void)
{
	recurse(3);
	swapcontext(&fiber, &fiber_main);
}

FUNCTION(fibers_whose_stacks_come_and_go_are_walked)
static void
fibers_whose_stacks_come_and_go_are_walked(void **state)
{
	size_t size = 65536;
	char  *mem;
	int    i;

	(void)state;
	for (i = 0; i < 20; i++) {
		mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(mem != MAP_FAILED);
		getcontext(&fiber);
		fiber.uc_stack.ss_sp = mem;
		fiber.uc_stack.ss_size = size;
		fiber.uc_link = NULL;
		makecontext(&fiber, fiber_run, 0);
		swapcontext(&fiber_main, &fiber);
		munmap(mem, size);
		assert_true(depth >= 5);
		assert_true(in(pcs[4], fiber_run));
		recurse(1);
		assert_true(in(pcs[2], fibers_whose_stacks_come_and_go_are_walked));
	}
}

static int
mappings_are_known(void **state)
{
	(void)state;
	return unwind_start(UNWIND_FRAME_POINTER);
}

static int
mappings_are_forgotten(void **state)
{
	(void)state;
	unwind_stop();
	return 0;
}

/* By the bytes before return addresses alone, and with the list of mappings. */
#define BOTH_WAYS(f) \
	cmocka_unit_test(f), { #f "_with_known_mappings", f, mappings_are_known, mappings_are_forgotten, NULL }

int
main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(callers_are_found_leaf_first),
		BOTH_WAYS(a_stack_deeper_than_the_room_is_truncated),
		BOTH_WAYS(an_interrupted_stack_is_walked_from_an_alternate_one),
		BOTH_WAYS(errno_stays_as_it_was),
		BOTH_WAYS(no_frame_pointer_can_make_it_crash),
		BOTH_WAYS(a_copy_of_a_stack_gives_the_same_callers),
#if defined(__x86_64__)
		BOTH_WAYS(a_leaf_before_and_after_its_frame_still_has_its_caller),
#endif
		BOTH_WAYS(fibers_whose_stacks_come_and_go_are_walked),
	};

	return cmocka_run_group_tests_name("unwind", tests, NULL, NULL);
}
