/*
 * stress_signals.c - handlers of the program: left by siglongjmp(), run on alternate
 * stacks, interrupting calls that must be restarted; and stacks of our own making.
 *
 * What a stranger would get wrong: a handler may only be left by a jump from code
 * that is safe in signal handlers, so the thread that jumps blocks its signal
 * while it allocates.
 */
#include "stress.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/auxv.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define JUMP_SIGNAL      SIGUSR1
#define ALTERNATE_SIGNAL SIGUSR2
#define RESTART_SIGNAL   SIGURG
#define JUMPS            20
#define CONTEXT_BYTES    (16 << 10)
#define CONTEXTS         8
#define SWITCHES         200
#define PAINT            0x5a

static __thread sigjmp_buf           jump_to;
static __thread volatile sig_atomic_t may_jump, handled;

static void
on_jump(int number)
{
	(void)number;
	if (may_jump) {
		may_jump = 0;
		siglongjmp(jump_to, 1);
	}
}

static void
on_alternate(int number)
{
	int               saved = errno;
	volatile unsigned spin = 0;

	(void)number;
	for (int i = 0; i < 200000; i++)
		spin += (unsigned)i;
	if (errno != saved)
		stress_wrong_raw("errno changed in a handler on an alternate stack");
	handled++;
}

static void
on_restart(int number)
{
	(void)number;
	handled++;
}

void
stress_signals_begin(void)
{
	struct sigaction act;

	memset(&act, 0, sizeof(act));
	act.sa_flags = SA_RESTART;
	act.sa_handler = on_jump;
	sigaction(JUMP_SIGNAL, &act, NULL);
	act.sa_handler = on_restart;
	sigaction(RESTART_SIGNAL, &act, NULL);
	act.sa_flags = SA_RESTART | SA_ONSTACK;
	act.sa_handler = on_alternate;
	sigaction(ALTERNATE_SIGNAL, &act, NULL);
}

/* ---- jumps out of handlers ---- */

static void
timer_begin(int number, timer_t *ret, long ns)
{
	struct sigevent   event;
	struct itimerspec when = { { 0, ns }, { 0, ns } };

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = number;
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
	event.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, ret) < 0 || timer_settime(*ret, 0, &when, NULL) < 0) {
		stress_wrong("a timer: %s", strerror(errno));
		abort();
	}
}

/* Deep, so that a jump passes frames that the next sample must not be confused by. */
static __attribute__((noinline)) unsigned
spin_deep(int depth)
{
	volatile unsigned spin = 0;
	volatile char     local[200];

	local[depth % 200] = 1;
	if (depth > 0)
		return spin_deep(depth - 1) + (unsigned)local[depth % 200];
	for (;;)
		spin++;
}

void
stress_jump(uint64_t *random)
{
	timer_t      timer;
	sigset_t     one;
	volatile int jumps = 0;

	sigemptyset(&one);
	sigaddset(&one, JUMP_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &one, NULL);
	stress_alone_begin();
	timer_begin(JUMP_SIGNAL, &timer, 700000);
	while (jumps < JUMPS) {
		if (sigsetjmp(jump_to, 1) == 0) {
			may_jump = 1;
			pthread_sigmask(SIG_UNBLOCK, &one, NULL);
			spin_deep((int)(jumps * 3));
		}
		jumps++;
		stress_blocks_few(random);
	}
	timer_delete(timer);
	stress_alone_end();
}

/* ---- alternate stacks ---- */

static void *
on_alternate_thread(void *arg)
{
	size_t   size = getauxval(AT_MINSIGSTKSZ);
	char    *mem, *low;
	stack_t  ours, off;
	timer_t  timer;
	uint64_t random = (uintptr_t)arg | 1;

	/* What the kernel asks for, our 2 KiB, the handler's own. */
	size = (size > MINSIGSTKSZ ? size : (size_t)MINSIGSTKSZ) + 2048 + 1024;
#ifdef STRESS_SANITIZED
	size += 64 << 10;
#endif
	mem = mmap(NULL, 65536 + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(mem, PAINT, 65536);
	memset(&ours, 0, sizeof(ours));
	ours.ss_sp = mem + 65536;
	ours.ss_size = size;
	sigaltstack(&ours, NULL);
	handled = 0;
	timer_begin(ALTERNATE_SIGNAL, &timer, 1500000);
	while (handled < 20 && !atomic_load(&stress_stop)) {
		stress_burn_us(400);
		stress_blocks_few(&random);
	}
	timer_delete(timer);
	memset(&off, 0, sizeof(off));
	off.ss_flags = SS_DISABLE;
	sigaltstack(&off, NULL);
	for (low = mem; low < mem + 65536; low++)
		if (*low != PAINT) {
			stress_wrong("something wrote %td bytes below an alternate stack", mem + 65536 - low);
			break;
		}
	munmap(mem, 65536 + size);
	return NULL;
}

void
stress_alternate(uint64_t *random)
{
	pthread_t t;

	if (pthread_create(&t, NULL, on_alternate_thread, (void *)(uintptr_t)stress_random(random)) == 0)
		pthread_join(t, NULL);
}

/* ---- ucontext ---- */

struct fiber {
	ucontext_t context, *back;
	char      *stack;
	uint64_t   random;
	int        turns;
};

static void
fiber_run(unsigned high, unsigned low)
{
	struct fiber *f = (struct fiber *)((uintptr_t)high << 32 | low);

	for (;;) {
		stress_burn_us(50);
		if (f->turns++ % 8 == 0)
			stress_blocks_few(&f->random);
		swapcontext(&f->context, f->back);
	}
}

/* A stack between two pages that nobody may touch. */
static char *
fiber_stack(void)
{
	char *mem = mmap(NULL, CONTEXT_BYTES + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(mem + 4096, CONTEXT_BYTES, PROT_READ | PROT_WRITE);
	return mem;
}

void
stress_contexts(uint64_t *random)
{
	struct fiber fibers[CONTEXTS];
	ucontext_t   here;
	int          turns = 0;

	for (int i = 0; i < CONTEXTS; i++) {
		struct fiber *f = &fibers[i];

		memset(f, 0, sizeof(*f));
		f->stack = fiber_stack();
		f->back = &here;
		f->random = stress_random(random);
		getcontext(&f->context);
		f->context.uc_stack.ss_sp = f->stack + 4096;
		f->context.uc_stack.ss_size = CONTEXT_BYTES;
		makecontext(&f->context, (void (*)(void))fiber_run, 2, (unsigned)((uintptr_t)f >> 32), (unsigned)(uintptr_t)f);
	}
	for (int i = 0; i < SWITCHES; i++)
		swapcontext(&here, &fibers[stress_random(random) % CONTEXTS].context);
	for (int i = 0; i < CONTEXTS; i++) {
		turns += fibers[i].turns;
		munmap(fibers[i].stack, CONTEXT_BYTES + 8192);
	}
	STRESS_CHECK(turns == SWITCHES);
}

/* ---- calls that SA_RESTART covers ---- */

struct talk {
	int   ask[2], answer[2];
	sem_t sem;
};

static void *
answerer(void *arg)
{
	struct talk *t = arg;
	char         byte;

	while (read(t->ask[0], &byte, 1) == 1) {
		stress_burn_us(200);
		if (write(t->answer[1], &byte, 1) != 1)
			stress_wrong("write: %s", strerror(errno));
		sem_post(&t->sem);
	}
	return NULL;
}

void
stress_restart(uint64_t *random)
{
	struct talk t;
	pthread_t   thread;
	timer_t     timer;
	char        byte = 'x';

	if (pipe(t.ask) < 0 || pipe(t.answer) < 0)
		return;
	sem_init(&t.sem, 0, 0);
	if (pthread_create(&thread, NULL, answerer, &t))
		return;
	timer_begin(RESTART_SIGNAL, &timer, 900000);
	for (int i = 0; i < 50; i++) {
		stress_burn_us(100);
		errno = 0;
		if (write(t.ask[1], &byte, 1) != 1)
			stress_wrong("write: %s", strerror(errno));
		if (read(t.answer[0], &byte, 1) != 1)
			stress_wrong("read: %s, which SA_RESTART covers", strerror(errno));
		if (sem_wait(&t.sem) < 0)
			stress_wrong("sem_wait: %s, which SA_RESTART covers", strerror(errno));
		stress_alive();
	}
	timer_delete(timer);
	close(t.ask[1]);
	pthread_join(thread, NULL);
	close(t.ask[0]);
	close(t.answer[0]);
	close(t.answer[1]);
	sem_destroy(&t.sem);
	stress_blocks_few(random);
}
