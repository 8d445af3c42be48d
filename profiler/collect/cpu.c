/*
 * cpu.c - the CPU profile: any number of windows on one stream of samples.
 *
 *     thread's CPU timer --> handler --> ring --> drain() --> every open window
 *     cpu_timers.c     cpu_signal.c  cpu_ring.c   here        cpu_window.c
 *
 * The first window starts all of it: handler, ring, a timer for each thread, and
 * the thread component-cpu, which empties the ring and looks for new threads every
 * 50 ms, or 100 where nothing happens.  The last one ends all of it but the handler.
 *
 * Two locks.  `life` is held while the engine starts and stops, joining the thread
 * included; `lock` covers windows, timers and the reading end of the ring.  Always
 * in that order; handlers take neither.
 *
 * What a stranger would get wrong:
 * - Before a window is opened or closed the ring is emptied into the others, so
 *   that a sample belongs to exactly the windows that were open when it was taken.
 * - Around fork() the signal is blocked, since the kernel restarts a fork that a
 *   signal interrupts, for ever if the address space is large enough; and `lock`
 *   is held, so that the child can give back what the windows hold.
 * - Threads that come through the pthread_create hook take `lock` with all signals
 *   blocked: a handler of the daemon that forks must not find it held below it.
 * - Periods that no signal told of (the ring was full, the thread blocks the signal, or
 *   came and went between two looks) are in the profile as [lost samples]: a thin profile
 *   must not look like a quiet program.
 *
 * Tests: tests/test_cpu.c, tests/test_cpu_guest.c, tests/test_cpu_limits.c, tests/test_cpu_threads.c.
 */
#include <config.h>

#include "cpu.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cpu_ring.h"
#include "cpu_signal.h"
#include "cpu_timers.h"
#include "cpu_window.h"
#include "hooks_threads.h"
#include "labels_thread.h"
#include "own_thread.h"
#include "stack_table.h"
#include "unwind.h"
#include "unwind_remote.h"

#define LOOK_MS        50  /* short threads should be seen once; the ring holds far more */
#define LOOK_CALM_MS   200 /* a wake-up costs more than the look: fewer, by and by, where threads do not come and go ... */
#define LOOKS_TO_CALM  6   /* ... for so many looks, each time that the pause is doubled */
#define LOOK_COST_PART 100 /* with many threads a look takes at most 1/100 of a processor */
#define SWEEP_LOOKS    20  /* clocks are compared every one to four seconds, and when a window ends */

static struct {
	pthread_mutex_t         life, lock;
	struct cpu_window      *windows;
	_Atomic bool            running;
	bool                    started;   /* life: thread exists */
	_Atomic uint32_t        stop;      /* futex of component-cpu */
	pthread_t               thread;
	int                     signal_number;
	int                     fork_blocked; /* the signal that fork_prepare blocked, or 0 */
	struct cpu_timers_state state;
	_Atomic unsigned        hz;        /* of the next start */
	int64_t                 period_ns; /* lock: of this one */
	_Atomic(const char *)   status;
} cpu = { .life = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .hz = CPU_HZ, .status = "" };

static const char status_limit[] =
	"RLIMIT_SIGPENDING leaves no timers for some threads: raise it (ulimit -i, LimitSIGPENDING=)";
static const char status_refused[] = "timer_create() is refused to this process (seccomp?)";

/* What a window could not be had for; constant text for the index. */
static const char *
status_of_start(int err)
{
	switch (-err) {
	case EBUSY:
		return "the program uses SIGPROF and every real-time signal";
	case ENOMEM:
		return "there is no memory for samples (RLIMIT_AS, RLIMIT_MEMLOCK)";
	case EMFILE:
	case ENFILE:
		return "threads cannot be listed: no descriptor is free (RLIMIT_NOFILE)";
	case EXDEV:
		return "threads cannot be listed: /proc is that of another pid namespace";
	case EAGAIN:
		return "no thread can be started (RLIMIT_NPROC, pids.max)";
	default:
		return "threads cannot be listed: /proc is not mounted or not readable";
	}
}

static const char *
status_of_state(const struct cpu_timers_state *state)
{
	if (state->no_slot == 0)
		return "";
	return state->why == EAGAIN ? status_limit : status_refused;
}

static int64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* ---- windows ---- */

static void
windows_lost(void *arg, uint64_t periods)
{
	struct cpu_window *w;

	(void)arg;
	for (w = cpu.windows; w; w = w->next)
		w->lost += periods;
}

/* ---- from the ring to the windows ---- */

static void
sample_count(void *arg, const struct cpu_sample *s)
{
	uintptr_t          pcs[STACK_FRAMES_MAX];
	unsigned           count = s->count;
	struct cpu_window *w;
	pid_t              tid = cpu_timers_tid(s->slot);
	uint32_t           stack, weight = cpu_timers_uncharge(s->slot, s->weight);
	int                truncated = s->truncated;

	(void)arg;
	if (weight == 0)
		goto out;
	if (s->copy)
		count = unwind_remote_walk(s->pcs, s->pcs + UNWIND_REMOTE_WORDS,
					   (count - UNWIND_REMOTE_WORDS) * sizeof(*pcs), pcs, STACK_FRAMES_MAX,
					   &truncated);
	else
		memcpy(pcs, s->pcs, count * sizeof(*pcs));
	if (truncated) {
		/* The missing side of the stack gets a name. */
		count -= count == STACK_FRAMES_MAX;
		pcs[count++] = STACK_PSEUDO_TRUNCATED;
	}
	stack = stack_table_add(pcs, count);
	if (stack == STACK_PSEUDO_LOST) {
		windows_lost(NULL, weight);
		goto out;
	}
	for (w = cpu.windows; w; w = w->next) {
		cpu_window_count(w, (uint32_t)tid, stack, s->labels, weight);
		if (truncated)
			w->truncated += weight;
	}
	stack_table_unref(stack);
out:
	labels_unref(s->labels);
}

static void
drain(void)
{
	cpu_ring_drain(sample_count, NULL);
}

/* What windows remember of the threads that are missing. */
static void
state_note(void)
{
	struct cpu_window *w;

	for (w = cpu.windows; w; w = w->next) {
		if (w->no_slot_max < cpu.state.no_slot)
			w->no_slot_max = cpu.state.no_slot;
		if (w->blocking_max < cpu.state.blocking)
			w->blocking_max = cpu.state.blocking;
	}
	atomic_store(&cpu.status, status_of_state(&cpu.state));
}

/* The daemon has taken our signal for itself: the timers use another one. */
static void
signal_check(void)
{
	int number;

	if (cpu_signal_ours(cpu.signal_number))
		return;
	cpu_timers_silence();
	if (cpu_signal_install(&number) < 0) {
		cpu.signal_number = 0;
		atomic_store(&cpu.status, "the program has taken every signal for itself");
		return;
	}
	cpu.signal_number = number;
	cpu_timers_signal(number);
}

/* Everything told so far goes to the windows of now. */
static void
settle(void)
{
	drain();
	cpu_timers_sweep(windows_lost, NULL, &cpu.state);
	state_note();
}

/* The n-th; true: nothing new. */
static bool
look(unsigned n)
{
	bool calm = cpu_ring_used() < CPU_RING_BYTES / 4;

	drain();
	signal_check();
	if (cpu.signal_number == 0)
		return false;
	calm &= cpu_timers_look(&cpu.state) == 0;
	if (n % SWEEP_LOOKS == 0) {
		cpu_timers_sweep(windows_lost, NULL, &cpu.state);
		cpu_timers_scan(false, &cpu.state);
	}
	state_note();
	return calm;
}

static void *
run(void *arg)
{
	int64_t         wait_ns = LOOK_MS * 1000000LL, least, begin;
	struct timespec ts;
	unsigned        n, calm = 0;

	for (n = 1;; n++) {
		ts.tv_sec = wait_ns / 1000000000LL;
		ts.tv_nsec = wait_ns % 1000000000LL;
		syscall(SYS_futex, &cpu.stop, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
		if (atomic_load(&cpu.stop))
			break;
		begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		pthread_mutex_lock(&cpu.lock);
		calm = look(n) ? calm + 1 : 0;
		pthread_mutex_unlock(&cpu.lock);
		wait_ns = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) * LOOK_COST_PART;
		least = calm < LOOKS_TO_CALM ? LOOK_MS : calm < 2 * LOOKS_TO_CALM ? 2 * LOOK_MS : LOOK_CALM_MS;
		least *= 1000000LL;
		if (wait_ns < least)
			wait_ns = least;
	}
	return arg;
}

/* ---- start and stop ---- */

/* Under life.  Nobody samples any more; all but the handler goes. */
static void
engine_stop(void)
{
	bool quiet;

	if (cpu.started) {
		atomic_store(&cpu.stop, 1);
		syscall(SYS_futex, &cpu.stop, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		pthread_join(cpu.thread, NULL);
		cpu.started = false;
	}
	pthread_mutex_lock(&cpu.lock);
	hooks_threads_watch(HOOKS_THREADS_CPU, false);
	atomic_store(&cpu.running, false);
	cpu_timers_close();
	quiet = cpu_signal_disable();
	drain();
	if (quiet) {
		cpu_ring_close();
		cpu_timers_free();
	}
	pthread_mutex_unlock(&cpu.lock);
}

static int
engine_arm(void)
{
	int err;

	cpu.period_ns = 1000000000LL / atomic_load(&cpu.hz);
	err = cpu_signal_install(&cpu.signal_number);
	if (err == 0)
		err = cpu_ring_open();
	if (err == 0)
		err = cpu_timers_open(cpu.signal_number, cpu.period_ns);
	if (err < 0)
		return err;
	memset(&cpu.state, 0, sizeof(cpu.state));
	cpu_signal_enable();
	atomic_store(&cpu.running, true);
	hooks_threads_watch(HOOKS_THREADS_CPU, true);
	return cpu_timers_scan(true, &cpu.state);
}

/* Under life. */
static int
engine_start(void)
{
	const char *why = NULL;
	int         err;

	pthread_mutex_lock(&cpu.lock);
	err = engine_arm();
	if (err == 0 && cpu.state.threads > 0 && cpu.state.threads == cpu.state.no_slot) {
		err = -cpu.state.why;
		why = status_of_state(&cpu.state);
	}
	pthread_mutex_unlock(&cpu.lock);
	if (err == 0) {
		atomic_store(&cpu.stop, 0);
		err = own_thread_start("component-cpu", run, NULL, &cpu.thread);
		cpu.started = err == 0;
	}
	if (err < 0) {
		atomic_store(&cpu.status, why ? why : status_of_start(err));
		engine_stop();
	}
	return err;
}

int
cpu_set_hz(unsigned hz)
{
	if (hz > CPU_HZ_MAX)
		return -EINVAL;
	atomic_store(&cpu.hz, hz ? hz : CPU_HZ);
	return 0;
}

static int
window_open(struct cpu_window **ret, bool by_thread)
{
	struct cpu_window *w = NULL;
	int                err = 0;

	w = cpu_window_new();
	if (!w) {
		if (!atomic_load(&cpu.running))
			atomic_store(&cpu.status, status_of_start(-ENOMEM));
		return -ENOMEM;
	}
	w->by_thread = by_thread;
	pthread_mutex_lock(&cpu.life);
	if (!cpu.windows)
		err = engine_start();
	if (err == 0) {
		pthread_mutex_lock(&cpu.lock);
		settle();
		w->ring_lost_before = cpu_ring_lost();
		w->unseen_before_ns = cpu_timers_unseen(true);
		w->period_ns = cpu.period_ns;
		w->time_ns = clock_ns(CLOCK_REALTIME);
		w->begin_ns = clock_ns(CLOCK_MONOTONIC);
		w->next = cpu.windows;
		cpu.windows = w;
		state_note();
		pthread_mutex_unlock(&cpu.lock);
		*ret = w;
		w = NULL; /* the caller's now */
	}
	pthread_mutex_unlock(&cpu.life);
	if (w)
		cpu_window_free(w);
	return err;
}

int
cpu_window_open(struct cpu_window **ret)
{
	return window_open(ret, false);
}

int
cpu_window_open_by_thread(struct cpu_window **ret)
{
	return window_open(ret, true);
}

/* ---- the end of a window ---- */

/* Takes the window out; the last one stops the engine. */
static void
window_end(struct cpu_window *w, struct cpu_facts *ret)
{
	struct cpu_window **link;
	int64_t             unseen_ns;

	pthread_mutex_lock(&cpu.life);
	pthread_mutex_lock(&cpu.lock);
	settle();
	unseen_ns = cpu_timers_unseen(false) - w->unseen_before_ns;
	w->unseen = unseen_ns > 0 ? (uint64_t)(unseen_ns / cpu.period_ns) : 0;
	w->lost += w->unseen;
	w->lost += cpu_ring_lost() - w->ring_lost_before;
	for (link = &cpu.windows; *link != w;)
		link = &(*link)->next;
	*link = w->next;
	ret->signal_number = cpu.signal_number;
	ret->no_slot_why = cpu.state.why == EAGAIN ? "RLIMIT_SIGPENDING leaves no timers for them" : status_refused;
	pthread_mutex_unlock(&cpu.lock);
	if (!cpu.windows)
		engine_stop();
	pthread_mutex_unlock(&cpu.life);
}

int
cpu_window_close(struct cpu_window *w, struct profile *ret)
{
	int64_t          end_ns = clock_ns(CLOCK_MONOTONIC);
	struct cpu_facts facts;
	int              err;

	window_end(w, &facts);
	err = cpu_window_profile(w, end_ns, &facts, ret);
	cpu_window_free(w);
	return err;
}

void
cpu_window_end(struct cpu_window *w)
{
	struct cpu_facts facts;

	window_end(w, &facts);
}

void
cpu_window_cancel(struct cpu_window *w)
{
	cpu_window_end(w);
	cpu_window_free(w);
}

const char *
cpu_status(void)
{
	const char *status = atomic_load(&cpu.status);
	int         room;

	if (atomic_load(&cpu.running) || (*status && status != status_limit))
		return status;
	pthread_mutex_lock(&cpu.lock);
	room = cpu_timers_room();
	pthread_mutex_unlock(&cpu.lock);
	return room == 0 ? "" : room == -EAGAIN ? status_limit : status_of_start(room);
}

/* ---- threads that come and go, seen by the hook ---- */

struct quiet {
	sigset_t mask;
	int      cancel; /* what the daemon's thread has it at */
};

/* Arming reads a file, where a thread that was cancelled would end with the lock. */
static void
lock_quietly(struct quiet *ret)
{
	sigset_t all;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ret->cancel);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &ret->mask);
	pthread_mutex_lock(&cpu.lock);
}

static void
unlock_quietly(const struct quiet *q)
{
	pthread_mutex_unlock(&cpu.lock);
	pthread_sigmask(SIG_SETMASK, &q->mask, NULL);
	pthread_setcancelstate(q->cancel, NULL);
}

void
cpu_thread_started(void)
{
	struct quiet quiet;
	int          saved = errno;

	if (!atomic_load_explicit(&cpu.running, memory_order_relaxed))
		return;
	lock_quietly(&quiet);
	if (atomic_load(&cpu.running) && cpu.signal_number)
		cpu_timers_self_add();
	unlock_quietly(&quiet);
	errno = saved;
}

void
cpu_thread_ending_from(const void *start_routine)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	uintptr_t          pcs[STACK_FRAMES_MAX];
	struct cpu_sample  s = { .pcs = pcs };
	struct quiet       quiet;
	int                saved = errno, truncated;

	if (!atomic_load_explicit(&cpu.running, memory_order_relaxed))
		return;
	lock_quietly(&quiet);
	if (atomic_load(&cpu.running) && (s.weight = cpu_timers_self_remove(&s.slot)) > 0) {
		/* Where it was when those periods passed is not known; where it
		 * began is. */
		if (start_routine)
			pcs[s.count++] = (uintptr_t)start_routine;
		else
			s.count = unwind_capture(&regs, pcs, STACK_FRAMES_MAX, &truncated);
		s.slot = 0;
		s.labels = labels_here();
		if (!cpu_ring_add(&s))
			labels_unref(s.labels);
	}
	unlock_quietly(&quiet);
	errno = saved;
}

void
cpu_thread_ending(void)
{
	cpu_thread_ending_from(NULL);
}

/* ---- fork ---- */

static void
signal_mask(int how, int number)
{
	sigset_t one;

	if (number == 0)
		return;
	sigemptyset(&one);
	sigaddset(&one, number);
	pthread_sigmask(how, &one, NULL);
}

static void
fork_prepare(void)
{
	sigset_t now;

	pthread_mutex_lock(&cpu.lock);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	cpu.fork_blocked = 0;
	if (atomic_load(&cpu.running) && cpu.signal_number && !sigismember(&now, cpu.signal_number))
		cpu.fork_blocked = cpu.signal_number;
	signal_mask(SIG_BLOCK, cpu.fork_blocked);
}

static void
fork_parent(void)
{
	int number = cpu.fork_blocked; /* another's as soon as unlocked */

	pthread_mutex_unlock(&cpu.lock);
	signal_mask(SIG_UNBLOCK, number);
}

static void
fork_child(void)
{
	int number = cpu.fork_blocked;

	cpu_forked();
	signal_mask(SIG_UNBLOCK, number);
}

__attribute__((constructor)) static void
fork_watch(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* In a child: nobody will count it. */
static void
sample_forget(void *arg, const struct cpu_sample *s)
{
	(void)arg;
	labels_unref(s->labels);
}

void
cpu_forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	struct cpu_window           *w;

	hooks_threads_watch(HOOKS_THREADS_CPU, false);
	atomic_store(&cpu.running, false);
	cpu_signal_forked();
	cpu_timers_forked();
	cpu_ring_drain(sample_forget, NULL);
	cpu_ring_close();
	while ((w = cpu.windows)) {
		cpu.windows = w->next;
		cpu_window_free(w);
	}
	atomic_store(&cpu.status, "");
	cpu.started = false;
	cpu.life = fresh;
	cpu.lock = fresh;
}
