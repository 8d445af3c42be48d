/*
 * test_remote.c - libunwind over copies of stacks, against the tables.
 *
 * A timer interrupts threads that sort, compress, print and take signals on an
 * alternate stack.  The handler walks by the tables and copies registers and stack; the
 * copies are walked by libunwind when the threads are gone, and must tell the same.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "unwind.h"
#include "waiting.h"

#define SAMPLES 600
#define DEPTH   100

struct sample {
	uintptr_t words[UNWIND_WORDS];
	uintptr_t stack[UNWIND_COPY_BYTES / sizeof(uintptr_t)];
	size_t    size;
	uintptr_t pcs[DEPTH];
	unsigned  count;
	int       truncated;
};

static struct sample *samples;
static atomic_uint    taken;
static atomic_bool    stop;

static void __attribute__((no_sanitize("address", "undefined")))
words_copy(uintptr_t *to, uintptr_t from, size_t size)
{
	for (size_t i = 0; i < size / sizeof(*to); i++)
		to[i] = ((const volatile uintptr_t *)from)[i];
}

static void
on_prof(int number, siginfo_t *info, void *context)
{
	unsigned           i = atomic_fetch_add(&taken, 1);
	struct unwind_regs regs;
	struct sample     *s = &samples[i];
	int                saved = errno;

	(void)number;
	(void)info;
	if (i >= SAMPLES)
		return;
	unwind_regs_from_ucontext(&regs, context);
	s->count = unwind_capture(&regs, s->pcs, DEPTH, &s->truncated);
	s->size = unwind_take(context, s->words);
	words_copy(s->stack, s->words[CFI_REG_SP], s->size);
	errno = saved;
}

static int
by_text(const void *a, const void *b)
{
	char one[32], two[32];

	snprintf(one, sizeof(one), "%08d", *(const int *)a);
	snprintf(two, sizeof(two), "%08d", *(const int *)b);
	return strcmp(one, two);
}

static void
on_user(int number)
{
	int numbers[40];

	for (int i = 0; i < 40; i++)
		numbers[i] = i * 7919 % (1009 + number);
	qsort(numbers, 40, sizeof(numbers[0]), by_text);
}

static void *
work(void *arg)
{
	stack_t           ss = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigevent   ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	struct itimerspec every = { { 0, 300000 }, { 0, 300000 } };
	unsigned char     in[4096], out[8192];
	timer_t           timer;

	sigaltstack(&ss, NULL);
	ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &ev, &timer), 0);
	timer_settime(timer, 0, &every, NULL);
	while (!stop) {
		uLongf size = sizeof(out);

		for (size_t i = 0; i < sizeof(in); i++)
			in[i] = (unsigned char)(i * i >> 3);
		compress2(out, &size, in, sizeof(in), 6);
		on_user(0);
		pthread_kill(pthread_self(), SIGUSR1);
	}
	timer_delete(timer);
	ss.ss_flags = SS_DISABLE;
	sigaltstack(&ss, NULL);
	free(ss.ss_sp);
	return arg;
}

static void
samples_take(void)
{
	struct sigaction prof = { .sa_sigaction = on_prof, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction user = { .sa_handler = on_user, .sa_flags = SA_RESTART | SA_ONSTACK };
	pthread_t        threads[2];

	sigfillset(&prof.sa_mask);
	sigaction(SIGPROF, &prof, NULL);
	sigaction(SIGUSR1, &user, NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
	WAIT_FOR_S(taken >= SAMPLES, 60);
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_true(taken >= SAMPLES);
}

static void
copies_walked_later_are_the_stacks_of_the_tables(void **state)
{
	unsigned same = 0, shorter = 0, other = 0, i, k, n;
	int      truncated;

	(void)state;
	samples_take();
	for (i = 0; i < SAMPLES; i++) {
		const struct sample *s = &samples[i];
		uintptr_t            pcs[DEPTH];

		n = unwind_taken(&(struct unwind_taken){ .words = s->words, .stack = s->stack, .size = s->size }, pcs, DEPTH, &truncated);
		for (k = 0; k < n && k < s->count && pcs[k] == s->pcs[k]; k++) {}
		if (k == n && k == s->count && truncated == s->truncated)
			same++;
		else if (k == n)
			shorter++;
		else if (++other <= 3)
			for (k = 0; k < n || k < s->count; k++)
				print_message("# %u.%u %#lx %#lx\n", i, k, k < n ? pcs[k] : 0, k < s->count ? s->pcs[k] : 0);
	}
	print_message("# %u the same, %u shorter, %u others\n", same, shorter, other);
	assert_int_equal(other, 0);
	/* below an alternate stack lies memory that is not in the copy */
	assert_true(same >= SAMPLES / 3);
}

static void
a_copy_that_ends_early_is_truncated_and_nothing_else_is_read(void **state)
{
	unsigned  i, k, n, checked = 0;
	uintptr_t pcs[DEPTH];
	int       truncated;

	(void)state;
	for (i = 0; i < SAMPLES; i++) {
		const struct sample *s = &samples[i];

		if (s->truncated || s->count < 6)
			continue;
		n = unwind_taken(&(struct unwind_taken){ .words = s->words, .stack = s->stack, .size = s->size > 64 ? 64 : 0 },
			pcs, DEPTH, &truncated);
		for (k = 0; k < n && k < s->count && pcs[k] == s->pcs[k]; k++) {}
		assert_true(n >= 1 && n < s->count);
		assert_true(truncated || n < s->count);
		checked++;
	}
	assert_true(checked > 0);
}

static void
absurd_registers_and_stacks_end_the_walk(void **state)
{
	uintptr_t words[UNWIND_WORDS], stack[256], pcs[DEPTH], seed = 4711;
	int       truncated;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		for (unsigned i = 0; i < 256; i++) {
			seed = seed * 6364136223846793005U + 1442695040888963407U;
			stack[i] = i % 3 ? samples[seed % SAMPLES].pcs[seed >> 40 & 7] : seed >> (seed & 63);
		}
		for (unsigned i = 0; i < UNWIND_WORDS; i++)
			words[i] = stack[i];
		words[CFI_REGS] = samples[round % SAMPLES].pcs[round & 3];
		words[CFI_REG_SP] = 0x7000 + (round & 15);
		assert_in_range(unwind_taken(&(struct unwind_taken){ .words = words, .stack = stack, .size = sizeof(stack) },
			pcs, DEPTH, &truncated), 1, DEPTH);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_walked_later_are_the_stacks_of_the_tables),
		cmocka_unit_test(a_copy_that_ends_early_is_truncated_and_nothing_else_is_read),
		cmocka_unit_test(absurd_registers_and_stacks_end_the_walk),
	};

	if (!ARCH_LIBUNWIND) {
		printf("1..0 # SKIP libunwind is not used here\n");
		return 0;
	}
	samples = mmap(NULL, SAMPLES * sizeof(*samples), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (samples == MAP_FAILED || unwind_start(UNWIND_LIBUNWIND) < 0) {
		fprintf(stderr, "libunwind-x86_64.so.8 cannot be loaded: install the Debian package libunwind8\n");
		return 1;
	}
	return cmocka_run_group_tests_name("unwind_remote", tests, NULL, NULL);
}
