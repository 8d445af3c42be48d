/*
 * cpu.c - the CPU profile: any number of windows on one stream of samples.
 *
 *     thread's CPU timer --> handler --> ring --> component-cpu --> every open window
 *     cpu/timers.c     cpu/signal.c  cpu/ring.c       here      cpu/window.c
 *
 * The life of a window is windows.h's subject.  While there is one:
 *
 *     start   handler, ring, a timer for each thread, and the thread component-cpu
 *     look    every 50 ms, by and by 200 where nothing happens, or a second where the hooks tell
 *             of threads: the ring is emptied into the windows, new threads get their timers
 *     stop    all of it goes but the handler
 *
 * What a stranger would get wrong:
 * - A signal comes at a tick of the kernel's that finds its thread running, so on a busy
 *   machine the last of a window come after its end.  How many is in its comments.
 * - Periods that no signal told of (the ring was full, the thread blocks the signal, or
 *   came and went between two looks, or works in step with the tick, which never meets it) are
 *   in the profile as [lost samples]: a thin profile must not look like a quiet program.
 * - A daemon may take our signal for itself at any time: the hooks tell, and each look sees to that.
 * - With thousands of threads a look takes long, so there are fewer; the ring is emptied between them.
 * - Around fork() all signals are blocked (our_fd.c), since the kernel restarts a fork that a
 *   signal interrupts, for ever if the address space is large enough; and `lock`
 *   is held, so that the child can give back what the windows hold.
 * - Threads that come through the pthread_create hook take `lock` with all signals
 *   blocked: a handler of the daemon that forks must not find it held below it.  While a thread forks
 *   they do without: a fork handler may be waiting for them (fork.h).
 * - Where the program has put itself under a seccomp filter they do nothing: timers and clocks
 *   are system calls.  The next look arms those threads, and finds them gone, as those that begin or end in a fork.
 * - A handler may not have ended when all stops: then ring and slots stay for it.  It is
 *   waited for without the lock, which every fork of the program takes.
 *
 * Tests: tests/cpu/test_cpu.c, tests/cpu/test_guest.c, tests/cpu/test_limits.c, tests/cpu/test_threads.c.
 */
#include <config.h>

#include "cpu.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <component/profiler.h>

#include "clock.h"
#include "collector.h"
#include "window.h"
#include "fork.h"
#include "hidden_frames.h"
#include "labels/thread.h"
#include "our_mask.h"
#include "our_thread.h"
#include "proc_self.h"
#include "ring.h"
#include "seccomp.h"
#include "signal.h"
#include "signal_masks.h"
#include "slots.h"
#include "stack_table.h"
#include "thread_events.h"
#include "timers.h"
#include "unwind.h"
#include "windows.h"

#define BLOCKED_LOOKS  512  /* threads looked at for one answer: some milliseconds */
#define STATUS_S       60   /* after it a reason of the last window is told no more; scrapers ask more often */
#define LOOK_MS        50   /* short threads should be seen once; the ring holds far more */
#define LOOK_CALM_MS   200  /* a wake-up costs more than the look: fewer where threads do not come and go ... */
#define LOOK_TOLD_MS   1000 /* ... fewer still, and from the start, where the hooks tell of new ones ... */
#define LOOKS_TO_CALM  6    /* ... for so many looks, each time that the pause grows */
#define CALM_AS_TOLD   (3 * LOOKS_TO_CALM) /* looks in a row before that; a window begins as if after them */
#define LOOK_COST_PART 100  /* with many threads a look takes at most 1/100 of a processor */
#define SWEEP_MS       2000 /* clocks are compared so often, and when a window ends */
#define LOCK_LOOK_NS   CLOCK_NS_PER_MS /* a thread of the program that wants the lock looks so often whether one forks ... */
#define TAKEN_LOOKS    5    /* ... and a handler that wants it may have interrupted who has it */

static struct cpu_engine {
	struct windows          windows;
	_Atomic bool            running, taken; /* taken: the signal, and perhaps given back */
	_Atomic unsigned        forking;        /* forks under way */
	pid_t                   pid;            /* of the process that is running */
	int                     signal_number;  /* lock, as what follows */
	struct cpu_timers_state state;
	uint64_t                under_way; /* when settled last: periods that have passed and will be told later */
	int64_t                 period_ns;
	bool                    told;         /* the hooks tell of new threads */
	unsigned                threads_most; /* the pause is short enough for so many */
	_Atomic unsigned        hz;           /* of the next start */
	_Atomic(const char *)   status;
	_Atomic int64_t         status_ns; /* when it was set, CLOCK_MONOTONIC */
} cpu_engine;

/* ---- why windows cannot be had or miss threads, in words for the index ---- */

/* Limits change, so whether there is room for timers is asked anew as long as no window is open.  What else the last window
 * met is told for a while: to who asked for it, and to who looks afterwards.  Then it may well be gone, but for a filter. */

static const char status_limit[] =
	"RLIMIT_SIGPENDING leaves no timers for some threads: raise it (ulimit -i, LimitSIGPENDING=)";
static const char status_refused[] = "timer_create() is refused to this process (seccomp?)";

static void
status_set(const char *status)
{
	atomic_store(&cpu_engine.status_ns, clock_ns(CLOCK_MONOTONIC));
	atomic_store(&cpu_engine.status, status);
}

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
	case EAGAIN:
		return "no thread can be started (RLIMIT_NPROC, pids.max)";
	default:
		return "threads cannot be listed: /proc cannot be read";
	}
}

static const char *
status_of_state(const struct cpu_timers_state *state)
{
	if (state->no_slot == 0)
		return "";
	return state->why == EAGAIN ? status_limit : status_refused;
}

/* ---- threads that block the signal ---- */

struct blocked {
	int      signal_number;
	unsigned looked, count;
	pid_t    first;
};

static void
on_thread(void *arg, pid_t tid)
{
	struct blocked *b = arg;
	uint64_t        blocked;

	if (b->looked == BLOCKED_LOOKS || our_thread_has(tid))
		return;
	b->looked++;
	blocked = proc_self_blocked_now(tid);
	if (blocked & PROC_SELF_SHUT || !(blocked >> (b->signal_number - 1) & 1))
		return;
	if (b->count++ == 0)
		b->first = tid;
}

/* "" or how many threads block the signal, with the name of one: they have no samples. */
static void
cpu_status_blocked(char *buf, size_t size)
{
	int            ours = cpu_timers_signal_number();
	struct blocked b = { .signal_number = ours > 0 ? ours : SIGPROF };
	char           name[PROC_SELF_NAME_BYTES], number[32];

	*buf = '\0';
	if (proc_self_threads(on_thread, &b) < 0 || b.count == 0)
		return;
	proc_self_name(b.first, name);
	cpu_signal_name(b.signal_number, number, sizeof(number));
	snprintf(buf, size, "threads that block %s, since before profiling began or unseen by the hooks: %u%s, thread %d \"%s\" among "
		"them; their CPU time is [lost samples]", number, b.count, b.looked == BLOCKED_LOOKS ? " or more" : "",
		(int)b.first, name);
}

const char *
cpu_status(void)
{
	const char *status = atomic_load(&cpu_engine.status);
	int         room;

	if (atomic_load(&cpu_engine.running) || status == status_refused || (*status && status != status_limit &&
	    clock_ns(CLOCK_MONOTONIC) < atomic_load(&cpu_engine.status_ns) + STATUS_S * CLOCK_NS_PER_S))
		return status;
	pthread_mutex_lock(&cpu_engine.windows.lock);
	room = cpu_timers_room();
	pthread_mutex_unlock(&cpu_engine.windows.lock);
	return room == 0 ? "" : room == -EAGAIN ? status_limit : status_of_start(room);
}

/* ---- from the ring to the windows ---- */

/* Of threads that block the signal. */
static void
windows_blocked(void *arg, uint64_t periods)
{
	(void)arg;
	for WINDOWS_EACH(struct cpu_window, w, &cpu_engine.windows)
		w->blocked += periods;
}

static void
windows_no_room(uint64_t periods)
{
	for WINDOWS_EACH(struct cpu_window, w, &cpu_engine.windows)
		w->no_room += periods;
}

static void
sample_count(void *arg, const struct cpu_sample *s)
{
	uintptr_t          pcs[STACK_FRAMES_MAX];
	unsigned           count = s->count;
	pid_t              tid = cpu_slot_tid(s->slot);
	uint32_t           stack, weight = cpu_slot_uncharge(s->slot, s->weight);
	int                truncated = s->truncated;

	(void)arg;
	if (weight == 0)
		goto out;
	if (s->copy)
		count = unwind_taken(&(struct unwind_taken){ .words = s->pcs, .stack = s->pcs + UNWIND_WORDS,
							     .size = (count - UNWIND_WORDS) * sizeof(*pcs) },
				     pcs, STACK_FRAMES_MAX, &truncated);
	else
		memcpy(pcs, s->pcs, count * sizeof(*pcs));
	count = hidden_frames_drop(pcs, unwind_prove(pcs, count, &truncated));
	if (truncated) {
		/* The missing side of the stack gets a name. */
		count -= count == STACK_FRAMES_MAX;
		pcs[count++] = STACK_PSEUDO_TRUNCATED;
	}
	stack = stack_table_add(pcs, count);
	if (stack == STACK_PSEUDO_LOST) {
		windows_no_room(weight);
		goto out;
	}
	for WINDOWS_EACH(struct cpu_window, w, &cpu_engine.windows) {
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
note(void)
{
	for WINDOWS_EACH(struct cpu_window, w, &cpu_engine.windows) {
		if (w->no_slot_max < cpu_engine.state.no_slot)
			w->no_slot_max = cpu_engine.state.no_slot;
		if (w->blocking_max < cpu_engine.state.blocking)
			w->blocking_max = cpu_engine.state.blocking;
	}
	status_set(status_of_state(&cpu_engine.state));
}

/* The daemon has taken our signal for itself: the timers use another one.  Or the same, where it has given that back. */
static void
signal_check(void)
{
	int number;

	if (!atomic_exchange(&cpu_engine.taken, false) && cpu_signal_ours(cpu_engine.signal_number))
		return;
	cpu_timers_silence();
	number = cpu_signal_install();
	cpu_engine.signal_number = number > 0 ? number : 0;
	if (number > 0)
		cpu_timers_signal(number);
	else
		status_set("the program has taken every signal for itself");
}

static void
settle(void)
{
	drain();
	cpu_engine.under_way = cpu_timers_sweep(windows_blocked, NULL, &cpu_engine.state);
	note();
}

/* True: nothing new. */
static bool
look(bool sweep)
{
	bool calm;

	signal_check();
	if (cpu_engine.signal_number == 0) {
		seccomp_look();
		return false;
	}
	calm = cpu_timers_look(&cpu_engine.state) == 0; /* sees filters, too */
	if (sweep) {
		cpu_timers_sweep(windows_blocked, NULL, &cpu_engine.state);
		cpu_timers_scan(false, &cpu_engine.state);
	}
	note();
	return calm;
}

/* How long the ring may be left alone, after so many looks that found nothing.  A pause of more than LOOK_CALM_MS
 * is short enough for the samples of twice as many threads; when there are more, cpu_thread_started() ends it. */
static int64_t
pause_ns(unsigned calm)
{
	unsigned twice = 2 * cpu_engine.state.threads;
	int64_t  ns = CLOCK_NS_PER_MS *
		      (calm < LOOKS_TO_CALM ? LOOK_MS : calm < 2 * LOOKS_TO_CALM ? 2 * LOOK_MS : LOOK_CALM_MS);
	int64_t  held = cpu_ring_holds_ns(twice * (uint64_t)CLOCK_NS_PER_S / (uint64_t)cpu_engine.period_ns);

	cpu_engine.threads_most = UINT_MAX;
	if (!cpu_engine.told || calm < CALM_AS_TOLD || held <= ns)
		return ns;
	cpu_engine.threads_most = twice;
	return held < LOOK_TOLD_MS * CLOCK_NS_PER_MS ? held : LOOK_TOLD_MS * CLOCK_NS_PER_MS;
}

/* At the start, and where threads have ended a pause, nobody knows how full the ring gets.  Where it might not hold for long
 * the shortest pauses tell. */
static unsigned
calm_at_most(void)
{
	return pause_ns(CALM_AS_TOLD) > LOOK_CALM_MS * CLOCK_NS_PER_MS ? CALM_AS_TOLD : 0;
}

/* Times of CLOCK_MONOTONIC. */
struct looks {
	unsigned calm;
	int64_t  next_ns, swept_ns;
};

static void
look_and_note(struct looks *l, int64_t now)
{
	int64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	bool    sweep = now - l->swept_ns >= SWEEP_MS * CLOCK_NS_PER_MS;

	if (sweep)
		l->swept_ns = now;
	l->calm = look(sweep) ? l->calm + 1 : 0;
	l->next_ns = now + (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) * LOOK_COST_PART;
}

/* The ring is emptied after each pause: what it costs to look decides how often that is done, and not how full the ring gets. */
static void *
run(void *arg)
{
	int64_t      pause, begin = clock_ns(CLOCK_MONOTONIC), now;
	struct looks l = { .next_ns = begin, .swept_ns = begin };
	bool         hurried;

	pthread_mutex_lock(&cpu_engine.windows.lock);
	l.calm = calm_at_most();
	pause = pause_ns(l.calm);
	pthread_mutex_unlock(&cpu_engine.windows.lock);
	while (our_loop_wait(&cpu_engine.windows.loop, pause)) {
		now = clock_ns(CLOCK_MONOTONIC);
		pthread_mutex_lock(&cpu_engine.windows.lock);
		hurried = now < begin + pause;
		if (cpu_ring_used() >= CPU_RING_BYTES / 4)
			l.calm = 0;
		drain();
		/* To be hurried is lost where the pause was over just then: so what is asked then is looked at. */
		if (now >= l.next_ns || hurried || atomic_load(&cpu_engine.taken))
			look_and_note(&l, now);
		if (hurried && calm_at_most() == 0)
			l.calm = 0;
		pause = pause_ns(l.calm);
		pthread_mutex_unlock(&cpu_engine.windows.lock);
		begin = clock_ns(CLOCK_MONOTONIC);
	}
	return arg;
}

/* ---- start and stop ---- */

static int
engine_arm(void)
{
	int number = cpu_signal_install(), err = number > 0 ? cpu_ring_open() : number;

	memset(&cpu_engine.state, 0, sizeof(cpu_engine.state));
	cpu_engine.period_ns = CLOCK_NS_PER_S / atomic_load(&cpu_engine.hz);
	if (err == 0)
		err = cpu_timers_open(number, cpu_engine.period_ns);
	if (err < 0)
		return err;
	cpu_engine.signal_number = number;
	cpu_signal_enable();
	cpu_engine.pid = (pid_t)syscall(SYS_getpid);
	atomic_store(&cpu_engine.running, true);
	thread_events_watch(THREAD_EVENTS_CPU, true);
	cpu_engine.told = !*thread_events_status();
	cpu_engine.threads_most = UINT_MAX;
	return cpu_timers_scan(true, &cpu_engine.state);
}

/* There are threads, and none of them could be given a timer. */
static bool
has_no_timers(void)
{
	return cpu_engine.state.threads > 0 && cpu_engine.state.threads == cpu_engine.state.no_slot;
}

static int
start(void)
{
	int err;

	seccomp_look();
	unwind_busy(true);
	unwind_ready(); /* a handler cannot wait for them */
	pthread_mutex_lock(&cpu_engine.windows.lock);
	err = engine_arm();
	if (err == 0 && has_no_timers())
		err = -cpu_engine.state.why;
	pthread_mutex_unlock(&cpu_engine.windows.lock);
	return err;
}

/* All but the handler goes. */
static void
stop(int err)
{
	bool quiet;

	unwind_busy(false);
	pthread_mutex_lock(&cpu_engine.windows.lock);
	if (err < 0)
		status_set(has_no_timers() ? status_of_state(&cpu_engine.state) : status_of_start(err));
	thread_events_watch(THREAD_EVENTS_CPU, false);
	atomic_store(&cpu_engine.running, false);
	cpu_timers_close();
	cpu_scan_close();
	pthread_mutex_unlock(&cpu_engine.windows.lock);
	quiet = cpu_signal_disable();
	pthread_mutex_lock(&cpu_engine.windows.lock);
	drain();
	if (quiet) {
		cpu_ring_close();
		cpu_timers_free();
	}
	pthread_mutex_unlock(&cpu_engine.windows.lock);
}

/* ---- windows ---- */

static void
begin(struct window *window)
{
	struct cpu_window *w = (struct cpu_window *)window;

	w->unseen_before_ns = cpu_timers_unseen(true);
	w->overdue_before = cpu_engine.state.overdue;
	w->period_ns = cpu_engine.period_ns;
	w->no_slot_max = cpu_engine.state.no_slot;
	w->blocking_max = cpu_engine.state.blocking;
}

static void
end(struct window *window)
{
	struct cpu_window *w = (struct cpu_window *)window;
	int64_t            unseen_ns = cpu_timers_unseen(false) - w->unseen_before_ns;
	uint64_t           overdue = cpu_engine.state.overdue, before = w->overdue_before;

	w->under_way = cpu_engine.under_way - overdue;
	if (overdue > before)
		w->overdue = overdue - before;
	else /* what was charged since, and had passed before it began */
		w->blocked -= before - overdue < w->blocked ? before - overdue : w->blocked;
	w->unseen = unseen_ns > 0 ? (uint64_t)(unseen_ns / cpu_engine.period_ns) : 0;
	w->signal_number = cpu_engine.signal_number;
	w->no_slot_why = cpu_engine.state.why == EAGAIN ? "RLIMIT_SIGPENDING leaves no timers for them" : status_refused;
}

static int
copy(const struct window *w, struct window *to)
{
	return cpu_window_copy((const struct cpu_window *)w, (struct cpu_window *)to);
}

static void
forget(struct window *w)
{
	cpu_window_forget((struct cpu_window *)w);
}

static struct cpu_engine cpu_engine = {
	.windows = { .name = "component-cpu", .run = run, .start = start, .stop = stop, .settle = settle,
		     .lost = cpu_ring_lost, .begin = begin, .end = end, .copy = copy, .forget = forget, WINDOWS_INIT },
	.hz = CPU_HZ, .status = "",
};

int
component_profiler_set_cpu_rate(unsigned hz)
{
	if (hz > CPU_HZ_MAX)
		return -EINVAL;
	atomic_store(&cpu_engine.hz, hz ? hz : CPU_HZ);
	return 0;
}

static int
window_open(struct cpu_window **ret, bool by_thread)
{
	struct cpu_window *w = cpu_window_new();
	int                err;

	if (!w) {
		if (!atomic_load(&cpu_engine.running))
			status_set(status_of_start(-ENOMEM));
		return -ENOMEM;
	}
	w->by_thread = by_thread;
	err = windows_open(&cpu_engine.windows, &w->window);
	if (err < 0)
		cpu_window_free(w);
	else
		*ret = w;
	return err;
}

int
cpu_window_open(struct cpu_window **ret)
{
	return window_open(ret, false);
}

/* Ends the window, which is then the caller's to read and to free, see cpu_sampler.h. */
static void
cpu_window_end(struct cpu_window *w)
{
	windows_end(&cpu_engine.windows, &w->window);
}

static int
window_so_far(const struct cpu_window *w, struct cpu_window **ret)
{
	struct cpu_window *now = cpu_window_new();
	int                err = now ? windows_so_far(&cpu_engine.windows, &w->window, &now->window) : -ENOMEM;

	if (!err)
		*ret = now;
	else if (now)
		cpu_window_free(now);
	return err;
}

int
cpu_window_close(struct cpu_window *w, struct profile *ret)
{
	int err;

	cpu_window_end(w);
	err = cpu_window_profile(w, ret);
	cpu_window_free(w);
	return err;
}

void
cpu_window_cancel(struct cpu_window *w)
{
	cpu_window_end(w);
	cpu_window_free(w);
}

/* ---- threads that come and go, seen by the hook ---- */

struct quiet {
	sigset_t mask;
	int      cancel; /* what the daemon's thread has it at */
};

static void
quiet_end(const struct quiet *q)
{
	our_mask_restore(&q->mask);
	pthread_setcancelstate(q->cancel, NULL);
}

/* Arming reads a file, where a thread that was cancelled would end with the lock.  False: a thread forks, which may
 * wait for this one, or it was taken at so many looks. */
static bool
lock_quietly(struct quiet *ret, int looks)
{
	struct timespec until;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ret->cancel);
	our_mask_block(&ret->mask);
	for (int i = 0; i < looks && !atomic_load(&cpu_engine.forking); i++) {
		until = clock_timespec(clock_ns(CLOCK_MONOTONIC) + LOCK_LOOK_NS);
		if (OUR_WAIT(pthread_mutex_clocklock(&cpu_engine.windows.lock, CLOCK_MONOTONIC, &until)) == 0)
			return true;
	}
	quiet_end(ret);
	return false;
}

static void
unlock_quietly(const struct quiet *q)
{
	pthread_mutex_unlock(&cpu_engine.windows.lock);
	quiet_end(q);
}

void
cpu_thread_started(void)
{
	struct quiet quiet;
	int          saved = errno;

	if (!atomic_load_explicit(&cpu_engine.running, memory_order_relaxed) || seccomp_on())
		return;
	if (!lock_quietly(&quiet, INT_MAX))
		goto out;
	/* Not with a signal that the program is just taking: the next look arms it with another. */
	if (atomic_load(&cpu_engine.running) && cpu_engine.signal_number && !atomic_load(&cpu_engine.taken))
		cpu_timers_self_add();
	if (cpu_timers_armed() > cpu_engine.threads_most) {
		cpu_engine.threads_most = UINT_MAX;
		our_loop_hurry(&cpu_engine.windows.loop);
	}
	unlock_quietly(&quiet);
out:
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

	if (!atomic_load_explicit(&cpu_engine.running, memory_order_relaxed) || seccomp_on())
		return;
	if (!lock_quietly(&quiet, INT_MAX))
		goto out;
	if (atomic_load(&cpu_engine.running) && (s.weight = cpu_timers_self_remove(&s.slot)) > 0) {
		/* Where it was when those periods passed is not known; where it
		 * began is, and is nobody's own cost. */
		pcs[s.count++] = STACK_PSEUDO_ENDED;
		if (start_routine)
			pcs[s.count++] = (uintptr_t)start_routine;
		else
			s.count += unwind_capture_guess(&regs, pcs + 1, STACK_FRAMES_MAX - 1, &truncated);
		s.slot = 0;
		s.labels = labels_here();
		if (!cpu_ring_add(&s))
			labels_unref(s.labels);
	}
	unlock_quietly(&quiet);
out:
	errno = saved;
}

THREAD_EVENTS_SLOT(THREAD_EVENTS_CPU, .begin = cpu_thread_started, .end_from = cpu_thread_ending_from);

/* ---- a signal that the program takes, seen by the hook ---- */

/* Timers are silenced before it is done and after, so that a few signals at most are on their way; where the lock is not to
 * be had the look does it, which comes right afterwards and gives them another signal.  They are not the timers of a
 * child of vfork(), which has our memory. */
static void
signal_taken(int number, bool done)
{
	struct quiet quiet;
	int          saved = errno;

	if (!atomic_load(&cpu_engine.running) || number != cpu_timers_signal_number() || seccomp_on() ||
	    (pid_t)syscall(SYS_getpid) != cpu_engine.pid)
		return;
	atomic_store(&cpu_engine.taken, true);
	if (lock_quietly(&quiet, TAKEN_LOOKS)) {
		if (atomic_load(&cpu_engine.running) && number == cpu_engine.signal_number)
			cpu_timers_silence();
		unlock_quietly(&quiet);
	}
	if (done)
		our_loop_hurry(&cpu_engine.windows.loop);
	errno = saved;
}

/* ---- fork ---- */

/* In a child: nobody will count it. */
static void
sample_forget(void *arg, const struct cpu_sample *s)
{
	(void)arg;
	labels_unref(s->labels);
}

/* In a forked child: forget everything. */
static void
cpu_forked(void)
{
	thread_events_watch(THREAD_EVENTS_CPU, false);
	atomic_store(&cpu_engine.running, false);
	cpu_signal_forked();
	cpu_scan_forked();
	cpu_timers_free(); /* a child inherits no timer */
	cpu_ring_drain(sample_forget, NULL);
	cpu_ring_close();
	atomic_store(&cpu_engine.status, "");
	windows_forked(&cpu_engine.windows);
	atomic_store(&cpu_engine.forking, 0);
}

static void
fork_prepare(void)
{
	atomic_fetch_add(&cpu_engine.forking, 1);
	pthread_mutex_lock(&cpu_engine.windows.lock);
}

static void
fork_parent(void)
{
	pthread_mutex_unlock(&cpu_engine.windows.lock);
	atomic_fetch_sub(&cpu_engine.forking, 1);
}

FORK_SLOT(FORK_CPU, fork_prepare, fork_parent, cpu_forked);

/* ---- as a collector ---- */

static int
collect_open(void **ret_window)
{
	struct cpu_window *w;
	int                r = cpu_window_open(&w);

	if (!r)
		*ret_window = w;
	return r;
}

static int
collect_close(void *window, const struct collect_params *params, struct product *ret)
{
	(void)params;
	ret->type = PRODUCT_PROFILE;
	return cpu_window_close(window, &ret->profile);
}

static int
collect_so_far(void *window, const struct collect_params *params, struct product *ret)
{
	struct cpu_window *now;
	int                err = window_so_far(window, &now);

	(void)params;
	if (err)
		return err;
	ret->type = PRODUCT_PROFILE;
	err = cpu_window_profile(now, &ret->profile);
	cpu_window_free(now);
	return err;
}

static void
collect_cancel(void *window)
{
	cpu_window_cancel(window);
}

/* From now on, for good, where the program has hooks: who blocks every signal lets ours through. */
static int
collect_start(void)
{
	signal_masks_watch(cpu_signal_reserve, signal_taken);
	return 0;
}

static const struct cpu_sampler sampler = {
	.open = window_open,
	.end = cpu_window_end,
	.so_far = window_so_far,
	.free = cpu_window_free,
	.cancel = cpu_window_cancel,
	.watch = cpu_signal_watch,
	.status = cpu_status,
};

static void
cpu_figures(struct collector_figures *ret)
{
	ret->samples = cpu_signal_all(&ret->handler_ns);
	ret->lost = cpu_ring_lost_ever();
}

const struct collector collect_profile = {
	.name = "profile",
	.description = "CPU profile. You can specify the duration in the seconds GET parameter. After you get the profile "
		"file, use the go tool pprof command to investigate the profile.",
	.products = PRODUCT_PROFILE,
	.types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
	.open = collect_open,
	.close = collect_close,
	.so_far = collect_so_far,
	.cancel = collect_cancel,
	.seconds = 30,
	.cannot = "Could not enable CPU profiling",
	.status = cpu_status,
	.less = cpu_status_blocked,
	.cpu = &sampler,
	.figures = cpu_figures,
	.start = collect_start,
	.forked = cpu_forked,
};
