/*
 * test_bad_registers.c - walks from registers and over stacks that make no sense.
 *
 * Registers and stack words are drawn from what hurts most: real code of every loaded
 * object, so that every kind of rule is met, addresses in and around the stack, holes,
 * and plain noise.  Nothing is expected of the result but that it stays within bounds
 * and that we are still alive.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "unwind.h"
#include "waiting.h"

#define MAX        64
#define PAGES      24
#define PAGE       ((size_t)4096)
#define RANGES_MAX 64
#define ROUNDS     60
#define WALKS      2000 /* for each round's memory */

static struct {
	uintptr_t start, end;
} code[RANGES_MAX];
static unsigned  code_count;
static uint64_t  seed;
static char     *mem; /* PAGES, some of them holes, and a closed page on either side: what
			  lies beyond comes and goes with the thread of the tables */
static uintptr_t own_low, own_high;

static uint64_t
draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void
code_find(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char  line[512], mode[8];

	assert_non_null(f);
	while (code_count < RANGES_MAX && fgets(line, sizeof(line), f)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) == 3 && mode[2] == 'x') {
			code[code_count].start = start;
			code[code_count++].end = end;
		}
	}
	fclose(f);
	assert_true(code_count >= 2);
}

static uintptr_t
draw_code(void)
{
	unsigned i = (unsigned)(draw() % code_count);

	return code[i].start + draw() % (code[i].end - code[i].start);
}

static uintptr_t
draw_word(void)
{
	switch (draw() % 8) {
	case 0:
	case 1:
	case 2: return draw_code();
	case 3:
	case 4: return (uintptr_t)mem + draw() % ((PAGES + 2) * PAGE) - PAGE;
	case 5: return ((uintptr_t)mem + draw() % (PAGES * PAGE)) & ~(uintptr_t)15;
	case 6: return own_low + draw() % (own_high - own_low + PAGE);
	default: return (uintptr_t)draw() >> (draw() % 64);
	}
}

static void
registers_draw(struct unwind_regs *regs, ucontext_t *uc)
{
	memset(uc, 0, sizeof(*uc));
#if defined(__x86_64__)
	for (unsigned i = 0; i < 17; i++)
		uc->uc_mcontext.gregs[i] = (greg_t)draw_word();
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)draw_code();
#elif defined(__aarch64__)
	for (unsigned i = 0; i < 31; i++)
		uc->uc_mcontext.regs[i] = draw_word();
	uc->uc_mcontext.pc = draw_code();
	uc->uc_mcontext.sp = draw_word();
#endif
	unwind_regs_from_ucontext(regs, uc);
	regs->exact = draw() % 2;
	if (draw() % 4 == 0)
		regs->ucontext = NULL;
	if (draw() % 4 != 0)
		regs->sp = ((uintptr_t)mem + draw() % (PAGES * PAGE)) & ~(uintptr_t)7;
}

static void
memory_draw(void)
{
	assert_int_equal(mprotect(mem, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	for (size_t i = 0; i < PAGES * PAGE / sizeof(uintptr_t); i++)
		((uintptr_t *)(void *)mem)[i] = draw_word();
	for (unsigned i = 0; i < 4; i++)
		mprotect(mem + draw() % PAGES * PAGE, PAGE, PROT_NONE);
}

static __attribute__((noinline)) unsigned
walk_here(void)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	uintptr_t          pcs[MAX];
	int                truncated;

	return unwind_capture(&regs, pcs, MAX, &truncated);
}

static unsigned longest;

static void *
walks(void *arg)
{
	struct unwind_regs regs;
	ucontext_t         uc;
	uintptr_t          pcs[MAX + 1], copy[512];
	unsigned           n;
	int                truncated;

	(void)arg;
	own_low = (uintptr_t)&regs & ~(PAGE - 1);
	own_high = own_low + 2 * PAGE;
	walk_here(); /* this thread's own stack is known, and may be walked into */
	for (unsigned round = 0; round < ROUNDS; round++) {
		memory_draw();
		for (unsigned i = 0; i < 512; i++)
			copy[i] = draw_word();
		for (unsigned i = 0; i < WALKS; i++) {
			registers_draw(&regs, &uc);
			pcs[MAX] = 4711;
			n = unwind_capture(&regs, pcs, MAX, &truncated);
			assert_in_range(n, 0, MAX);
			longest = n > longest ? n : longest;
			/* a copy of any size and place, aligned or not */
			regs.sp = draw_word();
			n = unwind_copy(&regs, (char *)copy + draw() % 16, draw() % (sizeof(copy) - 16),
					regs.sp - draw() % 64, pcs, MAX, &truncated);
			assert_in_range(n, 0, MAX);
			assert_int_equal(pcs[MAX], 4711);
		}
	}
	/* Where code is judged by a thread of ours, the noise may have kept it from this walk's. */
	WAIT_FOR_S(walk_here() >= 2, 60);
	assert_true(walk_here() >= 2);
	return NULL;
}

static void
no_registers_and_no_stack_can_make_it_crash(void **state)
{
	pthread_t t;

	(void)state;
	code_find();
	seed = (uint64_t)time(NULL) * 2654435761U | 1;
	print_message("# seed %llu\n", (unsigned long long)seed);
	mem = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(mem != MAP_FAILED);
	mem += PAGE;
	assert_int_equal(pthread_create(&t, NULL, walks, NULL), 0);
	pthread_join(t, NULL);
	print_message("# longest: %u\n", longest);
	assert_true(longest >= 4); /* the noise does look like stacks */
}

static void
the_same_by_frame_pointers(void **state)
{
	pthread_t t;

	(void)state;
	unwind_start(UNWIND_FRAME_POINTER);
	assert_int_equal(pthread_create(&t, NULL, walks, NULL), 0);
	pthread_join(t, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_registers_and_no_stack_can_make_it_crash),
		cmocka_unit_test(the_same_by_frame_pointers),
	};

	if (unwind_start(UNWIND_TABLES) < 0)
		return 1;
	WAIT_FOR_S(unwind_roots_known(), 60);
	return cmocka_run_group_tests_name("unwind_absurd", tests, NULL, NULL);
}
