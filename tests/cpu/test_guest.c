/*
 * test_guest.c - the CPU profile as a guest: the interrupted code, odd stacks, forks.
 * Whatever the program does, it lives on.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "collector.h"
#include "guest.h"
#include "skip.h"
#include "unwind.h"

static int64_t
window_close_here(struct cpu_window *w)
{
	struct profile p;
	int64_t        seen;

	assert_int_equal(cpu_window_close(w, &p), 0);
	seen = burn_samples(&p, burn_here);
	profile_release(&p);
	return seen;
}

/* ---- the interrupted code ---- */

static void
errno_is_kept_in_the_interrupted_code(void **state)
{
	struct cpu_window *w = window_open();
	int64_t            end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 300 * MS;
	volatile unsigned  spin, wrong = 0;

	(void)state;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		errno = 12345;
		for (spin = 0; spin < 200000; spin++)
			;
		wrong += errno != 12345;
	}
	cpu_window_cancel(w);
	assert_int_equal(wrong, 0);
}

static atomic_int interrupted;

static void *
sleeper(void *arg)
{
	int i;

	for (i = 0; i < 10; i++)
		if (poll(NULL, 0, 30) < 0 && errno == EINTR)
			interrupted++;
	return arg;
}

static void
sleeping_threads_are_left_alone(void **state)
{
	struct cpu_window *w = window_open();
	pthread_t          t[8];
	int                i;

	(void)state;
	for (i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, sleeper, NULL);
	burn_here(200 * MS);
	for (i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	cpu_window_cancel(w);
	assert_int_equal(interrupted, 0);
}

static void *
on_an_alternate_stack(void *arg)
{
	stack_t alternate = { .ss_sp = malloc(32768), .ss_size = 32768 }, off = { .ss_flags = SS_DISABLE };

	sigaltstack(&alternate, NULL);
	burn_here(300 * MS);
	sigaltstack(&off, NULL);
	free(alternate.ss_sp);
	return arg;
}

static void
threads_with_an_alternate_signal_stack_are_sampled(void **state)
{
	struct cpu_window *w = window_open();
	pthread_t          t;
	int64_t            begin = burn_clock(), seen;

	(void)state;
	pthread_create(&t, NULL, on_an_alternate_stack, NULL);
	pthread_join(t, NULL);
	seen = window_close_here(w);
	assert_in_range(seen, 20, burn_most(begin));
}

/* Compilers that instrument, or do not optimize, may use more. */
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HANDLER_STACK_BYTES_MAX 16384
#else
#define HANDLER_STACK_BYTES_MAX 2048
#endif
#define ALTERNATE_BYTES         65536

static void
burn_deep(unsigned n)
{
	if (n > 0)
		burn_deep(n - 1);
	else
		burn_ns(200 * MS);
	__asm__ volatile("" ::: "memory");
}

#if defined(__x86_64__)
/* Spins where the CFA and a saved register are expressions: nothing needs more stack to walk. */
void spin_by_expressions(uint64_t rounds);
__asm__(".text\n"
	".globl spin_by_expressions\n"
	".type spin_by_expressions,@function\n"
	"spin_by_expressions:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_escape 0x0f, 4, 0x77, 0, 0x40, 0x22\n" /* rsp, 16, plus */
	"	.cfi_escape 0x10, 3, 2, 0x40, 0x1c\n"	  /* rbx: CFA, 16, minus */
	"1:	dec %rdi\n"
	"	jnz 1b\n"
	"	pop %rbx\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size spin_by_expressions,.-spin_by_expressions\n");

static void
burn_by_expressions(void)
{
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 200 * MS;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		spin_by_expressions(1000000);
}
#else
static void
burn_by_expressions(void)
{
}
#endif

static void
on_nothing(int number)
{
	(void)number;
}

/* How much of a painted alternate stack is not as it was: with a handler that does
 * nothing, or with ours. */
static size_t
stack_used(bool ours, enum unwind_mode mode)
{
	unsigned char     *mem = malloc(ALTERNATE_BYTES);
	stack_t            alternate = { .ss_sp = mem, .ss_size = ALTERNATE_BYTES }, old;
	struct sigaction   act = { .sa_handler = on_nothing, .sa_flags = SA_ONSTACK };
	struct cpu_window *w;
	size_t             i = 0;

	memset(mem, 0x5a, ALTERNATE_BYTES);
	assert_int_equal(sigaltstack(&alternate, &old), 0);
	if (ours) {
		assert_int_equal(unwind_start(mode), 0);
		w = window_open();
		burn_deep(200);
		burn_by_expressions();
		cpu_window_cancel(w);
		unwind_stop();
	} else {
		sigaction(SIGUSR1, &act, NULL);
		raise(SIGUSR1);
	}
	assert_int_equal(sigaltstack(&old, NULL), 0);
	while (i < ALTERNATE_BYTES && mem[i] == 0x5a)
		i++;
	free(mem);
	return ALTERNATE_BYTES - i;
}

static void
a_handler_uses_little_stack(void **state)
{
	size_t kernel, used;

	(void)state;
	kernel = stack_used(false, UNWIND_AUTO);
	used = stack_used(true, UNWIND_FRAME_POINTER);
	print_message("# %zu bytes by frame pointers\n", used - kernel);
	assert_in_range(used, kernel + 1024, kernel + HANDLER_STACK_BYTES_MAX);
	used = stack_used(true, UNWIND_AUTO);
	print_message("# %zu bytes by tables\n", used - kernel);
	assert_in_range(used, kernel + 1024, kernel + HANDLER_STACK_BYTES_MAX);
}

#if defined(__x86_64__)
/* Spins with its frame pointer register set to something else. */
void spin_with_rbp(uintptr_t rbp, uint64_t rounds);
__asm__(".text\n"
	".globl spin_with_rbp\n"
	".type spin_with_rbp,@function\n"
	"spin_with_rbp:\n"
	"	push %rbp\n"
	"	mov %rdi,%rbp\n"
	"1:	dec %rsi\n"
	"	jnz 1b\n"
	"	pop %rbp\n"
	"	ret\n"
	".size spin_with_rbp,.-spin_with_rbp\n");

static void
registers_that_hold_no_frame_pointer_are_survived(void **state)
{
	char              *mem = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t          here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t          values[] = { 0,
					1,
					8,
					4095,
					UINTPTR_MAX,
					UINTPTR_MAX - 7,
					(uintptr_t)1 << 47,
					(uintptr_t)0xffff800000000000,
					(uintptr_t)mem,
					(uintptr_t)mem + 4096,
					here + 3,
					here + (1 << 20) - 8,
					here - 64,
					here + 65536 * 16,
					(uintptr_t)&values,
					(uintptr_t)registers_that_hold_no_frame_pointer_are_survived };
	struct cpu_window *w = window_open();
	struct profile     p;
	size_t             i;
	int64_t            end;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		for (end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 40 * MS;
		     clock_ns(CLOCK_THREAD_CPUTIME_ID) < end;)
			spin_with_rbp(values[i], 1000000);
	assert_int_equal(cpu_window_close(w, &p), 0);
	munmap(mem, 3 * 4096);
	assert_true(burn_total(&p) >= 50);
	assert_true(p.truncated >= 20); /* most of these leave the leaf alone */
	profile_release(&p);
}
#endif

static atomic_int theirs;

static void
on_alarm(int number)
{
	void *p = malloc(1000);

	(void)number;
	burn_ns(MS);
	free(p);
	theirs++;
}

static void
handlers_body(void)
{
	struct sigaction   act = { .sa_handler = on_alarm };
	struct itimerval   often = { { 0, 3000 }, { 0, 3000 } }, never = { 0 };
	struct cpu_window *w;
	struct profile     p;

	sigaction(SIGALRM, &act, NULL);
	CHECK(cpu_window_open(&w) == 0);
	setitimer(ITIMER_REAL, &often, NULL);
	burn_here(500 * MS);
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(theirs > 10);
	CHECK(burn_total(&p) >= 40);
	profile_release(&p);
}

static void
handlers_of_the_program_that_work_and_allocate_are_sampled_too(void **state)
{
	(void)state;
	in_child(handlers_body);
}

/* ---- fork ---- */

static bool
masks_equal(const sigset_t *a, const sigset_t *b)
{
	int i;

	for (i = 1; i <= SIGRTMAX; i++)
		if (sigismember(a, i) != sigismember(b, i))
			return false;
	return true;
}

static void
a_child_forked_in_a_window_is_alive_and_has_no_timer(void **state)
{
	struct cpu_window *w = window_open(), *own;
	struct profile     p;
	sigset_t           before, after;
	int64_t            seen;
	int                i, status;
	pid_t              pid;

	(void)state;
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	for (i = 0; i < 20; i++) {
		burn_here(15 * MS);
		pid = fork();
		assert_true(pid >= 0);
		pthread_sigmask(SIG_BLOCK, NULL, &after);
		if (pid == 0) {
			alarm(600);
			CHECK(masks_equal(&before, &after));
			CHECK(timers_of_process() == 0);
			CHECK(stack_table_bytes() == 0);
			CHECK(strcmp(cpu_status(), "") == 0);
			raise(SIGPROF);
			do { /* until it has samples, or the alarm */
				CHECK(cpu_window_open(&own) == 0);
				burn_here(50 * MS);
				CHECK(cpu_window_close(own, &p) == 0);
				seen = burn_samples(&p, burn_here);
				profile_release(&p);
			} while (seen == 0);
			_exit(0);
		}
		assert_true(masks_equal(&before, &after));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	/* some of them in fork() itself, around which the signal is blocked */
	assert_int_equal(cpu_window_close(w, &p), 0);
	assert_true(burn_total(&p) >= 25);
	profile_release(&p);
}

static int blocked; /* in fork(): -1 not looked at */

static void
look_at_mask(void)
{
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	blocked = sigismember(&now, SIGPROF);
}

/* Before the library's own, so that it runs after it. */
__attribute__((constructor(101))) static void
watch_forks(void)
{
	pthread_atfork(look_at_mask, NULL, NULL);
}

/* The kernel begins a fork again that a signal has come to: of a large process, for good. */
static void
the_signal_is_blocked_while_the_process_forks(void **state)
{
	struct cpu_window *w = window_open();
	int                status;
	pid_t              pid;

	(void)state;
	blocked = -1;
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(blocked, 1);
	cpu_window_cancel(w);
}

static atomic_bool stop;

static void *
churn_windows(void *arg)
{
	const struct collect_params params = { 0 };
	struct cpu_window          *w;
	struct product              so_far;

	while (!stop)
		if (cpu_window_open(&w) == 0) {
			if (collect_profile.so_far(w, &params, &so_far) == 0)
				product_release(&so_far);
			cpu_window_cancel(w);
		}
	return arg;
}

static void
forks_while_windows_come_and_go_leave_a_working_child(void **state)
{
	struct cpu_window *own;
	pthread_t          t;
	int                i, status;
	pid_t              pid;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer's allocator may be locked in a child, for good");
#endif
	stop = false;
	pthread_create(&t, NULL, churn_windows, NULL);
	for (i = 0; i < 100; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			alarm(600);
			CHECK(cpu_window_open(&own) == 0);
			cpu_window_cancel(own);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	stop = true;
	pthread_join(t, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errno_is_kept_in_the_interrupted_code),
		cmocka_unit_test(sleeping_threads_are_left_alone),
		cmocka_unit_test(threads_with_an_alternate_signal_stack_are_sampled),
		cmocka_unit_test(a_handler_uses_little_stack),
#if defined(__x86_64__)
		cmocka_unit_test(registers_that_hold_no_frame_pointer_are_survived),
#endif
		cmocka_unit_test(handlers_of_the_program_that_work_and_allocate_are_sampled_too),
		cmocka_unit_test(a_child_forked_in_a_window_is_alive_and_has_no_timer),
		cmocka_unit_test(the_signal_is_blocked_while_the_process_forks),
		cmocka_unit_test(forks_while_windows_come_and_go_leave_a_working_child),
	};

	if (burn_skip_all())
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
