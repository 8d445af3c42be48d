/*
 * test_generated_code.c - stacks through code that no table describes: made at run time,
 * or assembled without .cfi directives.
 */
#include <config.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#include "maps.h"
#include "our_fd.h"
#include "skip.h"
#include "unwind.h"
#include "waiting.h"
#include "want.h"

#if ARCH_HAVE_TABLES

#define MAX        64
#define CODE_BYTES 65536
#define LEVELS     3

static uintptr_t pcs[MAX];
static unsigned  depth;
static int       truncated;
static bool      remotely; /* by libunwind, from a copy */

/* A section for each function, whose ends the linker knows. */
#define FUNCTION(name)                                                 \
	extern const char __start_text_##name[], __stop_text_##name[]; \
	__attribute__((noinline, noclone, section("text_" #name)))

#define in(pc, name) ((pc) >= (uintptr_t)__start_text_##name && (pc) < (uintptr_t)__stop_text_##name)

/* Word by word: the frames of others lie there, and between them what a sanitizer guards. */
static void __attribute__((no_sanitize("address", "undefined")))
copy_words(uintptr_t *to, uintptr_t from, size_t bytes)
{
	const volatile uintptr_t *words = (const volatile uintptr_t *)from;

	for (size_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] = words[i];
}

static void
on_signal(int number, siginfo_t *info, void *context)
{
	static uintptr_t   words[UNWIND_WORDS], stack[UNWIND_COPY_BYTES / sizeof(uintptr_t)];
	struct unwind_regs regs;

	(void)number;
	(void)info;
	unwind_regs_from_ucontext(&regs, context);
	if (remotely) {
		size_t bytes = unwind_take(context, words);

		copy_words(stack, words[CFI_REG_SP], bytes);
		depth = unwind_taken(&(struct unwind_taken){ .words = words, .stack = stack, .size = bytes }, pcs, MAX,
			&truncated);
	} else {
		depth = unwind_prove(pcs, unwind_capture_guess(&regs, pcs, MAX, &truncated), &truncated);
	}
}

FUNCTION(capture_here)
static void
capture_here(void)
{
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	__asm__ volatile("" ::: "memory");
}

/* ---- code made at run time ---- */

static unsigned char *code, *code_end;

/* A function with a frame that calls callee. */
static void *
function_make(void *callee)
{
	void *start = code_end;
#if defined(__x86_64__)
	static const unsigned char head[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8 }; /* push, mov, movabs */
	static const unsigned char tail[] = { 0xff, 0xd0, 0x5d, 0xc3 };             /* call *%rax; pop; ret */

	memcpy(code_end, head, sizeof(head));
	memcpy(code_end + sizeof(head), &callee, sizeof(callee));
	memcpy(code_end + sizeof(head) + sizeof(callee), tail, sizeof(tail));
#else
	/* stp x29, x30, [sp, #-64]!; mov x29, sp; ldr x16, .+16; blr x16; ldp x29, x30, [sp], #64; ret */
	static const uint32_t insns[] = { 0xa9bc7bfd, 0x910003fd, 0x58000090, 0xd63f0200, 0xa8c47bfd, 0xd65f03c0 };

	memcpy(code_end, insns, sizeof(insns));
	memcpy(code_end + sizeof(insns), &callee, sizeof(callee));
#endif
	code_end += 64;
	__builtin___clear_cache(start, (char *)code_end);
	return start;
}

static void (*code_make(void *callee))(void)
{
	void (*f)(void);

	code = code_end = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return NULL;
	for (int i = 0; i < LEVELS; i++)
		callee = function_make(callee);
	memcpy(&f, &callee, sizeof(f));
	return f;
}

FUNCTION(run_generated)
static void
run_generated(void (*f)(void))
{
	f();
	__asm__ volatile("" ::: "memory");
}

static bool
is_generated(uintptr_t pc)
{
	return pc - (uintptr_t)code < CODE_BYTES;
}

/* capture_here, which frame pointers miss below libc, the levels, run_generated, and on. */
static bool
is_whole(void)
{
	unsigned i = 0, k = 0;

	while (i < depth && !is_generated(pcs[i]))
		i++;
	while (i + k < depth && is_generated(pcs[i + k]))
		k++;
	return k == LEVELS && i + k + 1 < depth && in(pcs[i + k], run_generated) && !truncated;
}

static bool
is_nothing_made_up(void)
{
	Dl_info info;

	for (unsigned i = 0; i < depth; i++)
		if (!is_generated(pcs[i]) && !dladdr((void *)pcs[i], &info))
			return false;
	return true;
}

static bool
whole_after_a_while(void (*f)(void))
{
	for (int i = 0; i < 4000; i++) {
		run_generated(f);
		assert_true(is_nothing_made_up());
		if (is_whole())
			return true;
		rest_ns(5000000);
	}
	return false;
}

static void *
capture_address(void)
{
	void *p;
	void (*f)(void) = capture_here;

	memcpy(&p, &f, sizeof(p));
	return p;
}

static void
generated_frames_are_all_shown_and_their_caller_too(void **state)
{
	void (*f)(void) = code_make(capture_address());

	(void)state;
	if (!f) {
		SKIP("no memory may be writable and executable");
	}
	assert_true(whole_after_a_while(f));
	munmap(code, CODE_BYTES);
}

static void
generated_code_is_found_where_the_kernel_answers_no_questions(void **state)
{
	maps_query_refuse(true);
	generated_frames_are_all_shown_and_their_caller_too(state);
	maps_query_refuse(false);
}

/* ---- a leaf without a table ---- */

#if defined(__x86_64__)
/* bare_leaf(fp, pid, tid, signal): sends the signal, with fp in the frame pointer. */
__asm__(".pushsection text_bare, \"ax\"\n"
	"bare_leaf:\n"
	"	push %rbp\n"
	"	mov %rdi,%rbp\n"
	"	mov %rsi,%rdi\n"
	"	mov %rdx,%rsi\n"
	"	mov %rcx,%rdx\n"
	"	mov $234,%eax\n"
	"	syscall\n"
	"	pop %rbp\n"
	"	ret\n"
	"bare_end:\n"
	"	jmp bare_leaf\n"
	"behind_jump:\n"
	"	nop\n"
	".popsection\n");
extern void       bare_leaf(const void *fp, long pid, long tid, long signal_number);
extern const char bare_end[], behind_jump[];

static void
bare_call(const void *fp)
{
	depth = 0;
	bare_leaf(fp, getpid(), syscall(SYS_gettid), SIGUSR1);
	assert_true(depth >= 1);
	assert_true(pcs[0] >= (uintptr_t)bare_leaf && pcs[0] < (uintptr_t)bare_end);
}

static void
a_frame_pointer_that_is_none_makes_no_caller(void **state)
{
	uintptr_t frame[4] = { 0 };
	unsigned  seed = 1;

	(void)state;
	const uintptr_t bad[] = { 0, 1, 4096, (uintptr_t)frame, (uintptr_t)bare_leaf, (uintptr_t)capture_here,
				  (uintptr_t)behind_jump, (uintptr_t)&depth, 0x500000000000, UINTPTR_MAX };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]) + 1000; i++) {
		seed = seed * 1103515245 + 12345;
		frame[0] = i % 2 ? (uintptr_t)(frame + 2) : 0;
		frame[1] = i < sizeof(bad) / sizeof(bad[0]) ? bad[i] : (uintptr_t)seed << seed % 33;
		bare_call(frame);
		if (depth != 1 || !truncated)
			fail_msg("%#lx became a caller", (unsigned long)frame[1]);
	}
	/* nor where nothing is, below the stack pointer, or at odd addresses */
	bare_call(NULL);
	assert_int_equal(depth, 1);
	bare_call((void *)8192);
	assert_int_equal(depth, 1);
	bare_call((char *)frame + 1);
	assert_int_equal(depth, 1);
	assert_int_equal(truncated, 1);
}

FUNCTION(keeps_a_frame)
static void
keeps_a_frame(void)
{
	bare_call(__builtin_frame_address(0));
	__asm__ volatile("" ::: "memory");
}

static void
a_true_frame_pointer_leads_to_the_next_caller_that_is_described(void **state)
{
	(void)state;
	keeps_a_frame();
	assert_true(depth > 2);
	assert_true(is_nothing_made_up());
	assert_int_equal(truncated, 0);
}
#endif

/* ---- where no call leads to ---- */

static ucontext_t fiber_main, fiber;
static char       fiber_stack[65536];

static void
fiber_run(void)
{
	capture_here();
	swapcontext(&fiber, &fiber_main);
}

static void
a_coroutine_begins_at_its_own_first_byte(void **state)
{
	(void)state;
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = fiber_stack;
	fiber.uc_stack.ss_size = sizeof(fiber_stack);
	fiber.uc_link = &fiber_main;
	makecontext(&fiber, fiber_run, 0);
	uintptr_t start = ARCH_LINK(&fiber) ? ARCH_LINK(&fiber) : *(uintptr_t *)ARCH_SP(&fiber);
	swapcontext(&fiber_main, &fiber);
	assert_int_equal(truncated, 0);
	assert_int_equal(pcs[depth - 1], start);
}

static uintptr_t restorer;

static void
on_outer_signal(int number)
{
	(void)number;
	restorer = (uintptr_t)__builtin_return_address(0);
	capture_here();
}

static void
a_handler_returns_to_the_first_byte_of_the_way_back(void **state)
{
	unsigned i;

	(void)state;
	signal(SIGUSR2, on_outer_signal);
	raise(SIGUSR2);
	for (i = 0; i < depth && pcs[i] != restorer; i++)
		;
	assert_in_range(i, 1, depth - 2);
	assert_int_equal(truncated, 0);
}

/* ---- what following it costs ---- */

#define MAPPINGS 20000
#define WATCH_NS 3000000000LL

static size_t mappings_made;
static char  *mappings[MAPPINGS / 2];

static void
mappings_make(void)
{
	while (mappings_made < MAPPINGS / 2) {
		char *p = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || mprotect(p, 4096, mappings_made & 1 ? PROT_READ : PROT_READ | PROT_WRITE) < 0)
			break;
		mappings[mappings_made++] = p;
	}
}

static void
mappings_end(void)
{
	while (mappings_made > 0)
		munmap(mappings[--mappings_made], 8192);
}

/* Unknown addresses all the time, among many mappings. */
static void
spend(struct unwind_spent *ret_before, struct unwind_spent *ret_after, int64_t *ret_ns)
{
	int64_t         begin = now_ns();
	uintptr_t       at = (uintptr_t)1 << 40;

	unwind_spent(ret_before);
	do {
		unwind_want(at += 65536);
		rest_ns(10000000);
		*ret_ns = now_ns() - begin;
	} while (*ret_ns < WATCH_NS);
	unwind_spent(ret_after);
}

static void
following_costs_a_thousandth_whatever_is_mapped_and_unknown(void **state)
{
	struct unwind_spent before, after;
	int64_t             ns, most;

	(void)state;
	mappings_make();
	for (int refused = 0; refused < 2; refused++) {
		maps_query_refuse(refused);
		spend(&before, &after, &ns);
		maps_query_refuse(false);
		most = ns / UNWIND_SPEND_SHARE + UNWIND_SPEND_NS + after.longest_ns;
		print_message("# %s: %.3f ms in %.0f ms, %u rounds, %u looks\n", refused ? "all mappings read" : "questions",
			      (double)(after.cpu_ns - before.cpu_ns) / 1e6, (double)ns / 1e6, after.rounds - before.rounds,
			      after.looks - before.looks);
		assert_true(after.cpu_ns - before.cpu_ns <= most);
		if (!refused)
			assert_true(after.rounds > before.rounds);
	}
	mappings_end();
}

static void
questions_spare_the_looks_at_all_mappings(void **state)
{
	struct unwind_spent before, after;
	int64_t             ns;
	int                 query = maps_query_open();

	(void)state;
	our_fd_close(query);
	if (query < 0) {
		SKIP("the kernel has no PROCMAP_QUERY");
	}
	unwind_refresh();
	spend(&before, &after, &ns);
	/* One that was under way. */
	assert_in_range(after.looks - before.looks, 0, 1);
}

/* ---- the modes ---- */

static int
by_tables(void **state)
{
	(void)state;
	return unwind_start(UNWIND_TABLES);
}

static int
by_frame_pointers(void **state)
{
	(void)state;
	return unwind_start(UNWIND_FRAME_POINTER);
}

#if ARCH_LIBUNWIND
static int
by_libunwind(void **state)
{
	(void)state;
	remotely = unwind_start(UNWIND_LIBUNWIND) == 0;
	return 0;
}
#endif

static int
by_nothing(void **state)
{
	(void)state;
	remotely = false;
	unwind_stop();
	return 0;
}

#define BY(mode, f) { #f "_by_" #mode, f, by_##mode, by_nothing, NULL }
#if ARCH_LIBUNWIND
#define BY_LIBUNWIND(f) BY(libunwind, f),
#else
#define BY_LIBUNWIND(f) /* not on offer: by_libunwind.c */
#endif

int
main(void)
{
	struct sigaction        act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	const struct CMUnitTest tests[] = {
		BY(tables, generated_frames_are_all_shown_and_their_caller_too),
		BY(frame_pointers, generated_frames_are_all_shown_and_their_caller_too),
		BY_LIBUNWIND(generated_frames_are_all_shown_and_their_caller_too)
		BY(tables, generated_code_is_found_where_the_kernel_answers_no_questions),
#if defined(__x86_64__)
		BY(tables, a_frame_pointer_that_is_none_makes_no_caller),
		BY(frame_pointers, a_frame_pointer_that_is_none_makes_no_caller),
		BY_LIBUNWIND(a_frame_pointer_that_is_none_makes_no_caller)
		BY(tables, a_true_frame_pointer_leads_to_the_next_caller_that_is_described),
#endif
		BY(tables, a_coroutine_begins_at_its_own_first_byte),
		BY_LIBUNWIND(a_coroutine_begins_at_its_own_first_byte)
		BY(tables, a_handler_returns_to_the_first_byte_of_the_way_back),
		BY_LIBUNWIND(a_handler_returns_to_the_first_byte_of_the_way_back)
		BY(tables, following_costs_a_thousandth_whatever_is_mapped_and_unknown),
		BY(tables, questions_spare_the_looks_at_all_mappings),
	};

	sigaction(SIGUSR1, &act, NULL);
	return cmocka_run_group_tests_name("unwind_generated", tests, NULL, NULL);
}

#else

int
main(void)
{
	return 77;
}

#endif
