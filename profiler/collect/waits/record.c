/*
 * record.c - what the hooks of waits ask: how long it took, and who was the cause.
 *
 *     thread A: lock ─ busy ─ publish (waits/waiters.c) ─ real lock ─ withdraw ─ block += A's stack
 *     holder B: unlock ─ somebody waits ─ mutex += B's stack, A's time ─ real unlock
 *     thread A: got it ─ mutex += B's stack, one contention and the time since
 *
 * What a stranger would get wrong:
 * - After the real unlock the lock may be gone: who got it may have destroyed it and
 *   freed its memory.  All that a holder has to do is done before.
 * - An unlock need not release: of a recursive mutex only the last one does, and of a
 *   read-write lock that has readers only the last one's.
 * - A wait counts once, and who waited counts it, when it has the lock: nobody else knows
 *   which unlock was the last one.  It counts for the stack that was charged last.
 * - Who gave up waiting, or died, did not get the lock from whom was charged last: the rest
 *   of that time is nobody's that we know.
 * - A wait may end by cancellation, by pthread_exit() or siglongjmp() from a signal handler:
 *   a cleanup handler withdraws and records.  It is one of the old kind, which glibc runs
 *   at a siglongjmp(), too; one of pthread_cleanup_push() would stay where it was, and a
 *   later pthread_exit() would jump into a frame that is no longer there.
 * - C++ exceptions pass only through once(), where nothing has to be undone.
 * - Nothing here allocates or calls a function of pthreads that waits; a handler that
 *   interrupts any line may lock, wait and unlock itself.
 * - A wait that fails at once for a wrong use (EDEADLK, EINVAL, ...) was none.
 * - Threads of our own are let through: they must not show up, nor blame anybody.  What we
 *   wait for in the daemon's threads (our_wait.h) is for traces alone.
 *
 * Why not one clock read at the unlock for all: who does not contend reads no clock.
 * Tests: tests/waits/test_waits.c, tests/waits/test_guest.c, tests/waits/test_abandoned.c,
 * tests/waits/test_blame.c.
 */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "events/ring.h"
#include "events/wait.h"
#include "hidden_frames.h"
#include "our_thread.h"
#include "our_wait.h"
#include "waits.h"
#include "stack_table.h"
#include "unwind.h"
#include "waiters.h"

/* ---- what each of the hooked calls is: by its name, by its answer, and, for an unlock, by the lock ----
 *
 * mtx_t is a pthread_mutex_t in glibc.  What is read of a lock is in <bits/struct_mutex.h> and
 * <bits/struct_rwlock.h>, which programs are compiled with, so it stays where it is.
 */

static bool
is_wrong_use(int r)
{
	return r == EINVAL || r == EDEADLK || r == EPERM || r == EAGAIN || r == ESRCH || r == ENOSYS;
}

/* Errors by errno, by number, and C11's own. */
static bool
was_wait(const struct hooks_wait *w, int r)
{
	switch (w->name) {
	case HOOKS_sem_wait:
	case HOOKS_sem_timedwait:
	case HOOKS_sem_clockwait:
		return r == 0 || !is_wrong_use(errno);
	case HOOKS_pthread_barrier_wait:
		return r == 0; /* the last to come did not wait */
	case HOOKS_mtx_lock:
	case HOOKS_mtx_timedlock:
	case HOOKS_cnd_wait:
	case HOOKS_cnd_timedwait:
	case HOOKS_thrd_join:
		return r != 2; /* thrd_error */
	default:
		return !is_wrong_use(r);
	}
}

/* What has a holder, who is to know of us. */
static bool
is_lock(uint32_t name)
{
	switch (name) {
	case HOOKS_pthread_mutex_lock:
	case HOOKS_pthread_mutex_timedlock:
	case HOOKS_pthread_mutex_clocklock:
	case HOOKS_pthread_rwlock_rdlock:
	case HOOKS_pthread_rwlock_wrlock:
	case HOOKS_pthread_rwlock_timedrdlock:
	case HOOKS_pthread_rwlock_timedwrlock:
	case HOOKS_pthread_rwlock_clockrdlock:
	case HOOKS_pthread_rwlock_clockwrlock:
	case HOOKS_mtx_lock:
	case HOOKS_mtx_timedlock:
		return true;
	default:
		return false;
	}
}

#define CASE(name) case HOOKS_##name:

/* What gives up a mutex, its second argument, while it waits. */
static bool
is_cond(uint32_t name)
{
	switch (name) {
	case HOOKS_pthread_cond_wait:
	case HOOKS_pthread_cond_timedwait:
	case HOOKS_pthread_cond_clockwait:
	case HOOKS_cnd_wait:
	case HOOKS_cnd_timedwait:
	HOOKS_OLD_NAMES(CASE)
		return true;
	default:
		return false;
	}
}

#define READERS_SHIFT  3 /* below are the phases */
#define KIND_ROBUST    16
#define KIND_INHERIT   32
#define OWNER_DIED     INT_MAX /* as owner, until pthread_mutex_consistent() */

static bool
mutex_is_released(uintptr_t mutex, int32_t tid)
{
	const pthread_mutex_t *m = (const pthread_mutex_t *)mutex;
	int                    kind = __atomic_load_n(&m->__data.__kind, __ATOMIC_RELAXED), type = kind & 3;
	int                    owner = __atomic_load_n(&m->__data.__owner, __ATOMIC_RELAXED);

	if (type != PTHREAD_MUTEX_RECURSIVE && type != PTHREAD_MUTEX_ERRORCHECK && !(kind & (KIND_ROBUST | KIND_INHERIT)))
		return true;
	if (owner != tid && owner != OWNER_DIED)
		return false;
	return type != PTHREAD_MUTEX_RECURSIVE || __atomic_load_n(&m->__data.__count, __ATOMIC_RELAXED) <= 1;
}

static bool
rwlock_is_released(uintptr_t rwlock, int32_t tid, int32_t leaving)
{
	const pthread_rwlock_t *l = (const pthread_rwlock_t *)rwlock;

	if (__atomic_load_n(&l->__data.__cur_writer, __ATOMIC_RELAXED) == tid)
		return true;
	return __atomic_load_n(&l->__data.__readers, __ATOMIC_RELAXED) >> READERS_SHIFT <= (unsigned)leaving;
}

/* ---- recording ---- */

static __thread uint64_t random_state __attribute__((tls_model("initial-exec")));

/* ---- small parts ---- */

static uint64_t
random_next(void)
{
	uint64_t x = random_state;

	if (x == 0)
		x = ((uint64_t)(uintptr_t)&random_state ^ (uint64_t)trace_now_ns()) * 0x9e3779b97f4a7c15ULL | 1;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	random_state = x;
	return x * 0x2545f4914f6cdd1dULL >> 1;
}

/* A sum may be large, but never jumps back. */
static uint64_t
times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

struct stack {
	uintptr_t pcs[STACK_FRAMES_MAX];
	unsigned  count;
};

static void
stack_take(struct stack *s, const struct hooks_wait *w)
{
	struct unwind_regs regs = { .pc = w->pc, .sp = w->sp, .fp = w->fp };
	int                cut = 0;

	s->count = hidden_frames_drop(s->pcs, unwind_capture(&regs, s->pcs, STACK_FRAMES_MAX, &cut));
	if (cut)
		atomic_fetch_add_explicit(&waits_truncated, 1, memory_order_relaxed);
}

static HOOKS_FRAME int
call(const struct hooks_wait *w)
{
	return ((hooks_wait_fn *)component_hooks.next[w->name])(w->args[0], w->args[1], w->args[2], w->args[3]);
}

/* ---- the holder's part ---- */

/* Before the unlock: the last time that the lock may be looked for. */
static void __attribute__((noinline))
blame(const struct hooks_wait *w, uintptr_t lock, int64_t fraction)
{
	int64_t      now = waiters_due(lock, trace_now_ns);
	uint32_t     site;
	struct stack s;

	if (now == 0)
		return;
	if (fraction > 1 && random_next() % (uint64_t)fraction != 0) {
		waiters_charge(lock, now, WAITS_UNSAMPLED, 0);
		return;
	}
	stack_take(&s, w);
	site = stack_counts_add(&waits_mutex_sites, stack_table_add(s.pcs, s.count), 0, 0);
	stack_counts_more(&waits_mutex_sites, site, 0,
		times((uint64_t)fraction, waiters_charge(lock, now, site, (int32_t)fraction)));
}

/* Somebody waits for a lock of this bucket, and this unlock releases its own. */
static void
let_go(const struct hooks_wait *w, uintptr_t lock)
{
	int64_t fraction = atomic_load_explicit(&waits_state.mutex_fraction, memory_order_relaxed);
	int32_t first = 0;

	if (atomic_load_explicit(&waits_state.tracing, memory_order_relaxed))
		first = waiters_first(lock);
	if (first > 0)
		events_wait_wake(first, w->pc, w->sp, w->fp);
	if (fraction > 0)
		blame(w, lock, fraction);
}

HOOKS_FRAME int
waits_on_unlock(struct hooks_wait *w)
{
	bool is_rwlock = w->name == HOOKS_pthread_rwlock_unlock;
	int  r, saved = errno;

	if (our_thread_is())
		return call(w);
	if (is_rwlock ? rwlock_is_released(w->args[0], trace_tid(), waiters_leaving(w->args[0], 1)) :
		mutex_is_released(w->args[0], trace_tid()))
		let_go(w, w->args[0]);
	errno = saved;
	r = call(w);
	if (is_rwlock)
		waiters_leaving(w->args[0], -1); /* a hash of the address; the lock may be gone */
	return r;
}

/* ---- the waiter's part ---- */

struct wait {
	struct hooks_wait *call;
	int64_t            since_ns;
	struct waits_place place;
	bool               published;
	struct events_wait  trace;
};

bool
waits_weigh(int64_t delay_ns, int64_t rate_ns, uint64_t random, struct waits_weight *ret)
{
	if (delay_ns <= 0)
		delay_ns = 1;
	if (rate_ns <= 0 || (rate_ns > delay_ns && (int64_t)(random % (uint64_t)rate_ns) >= delay_ns))
		return false;
	ret->count = SITES_ONE;
	ret->delay_ns = (uint64_t)delay_ns;
	if (delay_ns < rate_ns) { /* it stands for those that were not taken */
		ret->count = (uint64_t)((double)SITES_ONE * (double)rate_ns / (double)delay_ns);
		ret->delay_ns = (uint64_t)rate_ns;
	}
	return true;
}

static void __attribute__((noinline))
block_record(const struct hooks_wait *w, int64_t delay_ns)
{
	struct waits_weight weight;
	struct stack        s;

	if (our_waits > 0)
		return;
	if (!waits_weigh(delay_ns, atomic_load_explicit(&waits_state.block_rate, memory_order_relaxed), random_next(), &weight))
		return;
	stack_take(&s, w);
	stack_counts_add(&waits_block_sites, stack_table_add(s.pcs, s.count), weight.count, weight.delay_ns);
}

/* got: it has the lock now, from who unlocked it last. */
static void
wait_blame(struct wait *v, int64_t now, bool got)
{
	struct waits_charged c = waiters_withdraw(v->place);
	uint64_t             weight = (uint64_t)c.weight;

	waiters_rest(now);
	if (c.stack != 0 && c.stack != WAITS_UNSAMPLED)
		stack_counts_more(&waits_mutex_sites, c.stack, times(weight, SITES_ONE),
			got && now > c.since_ns ? times(weight, (uint64_t)(now - c.since_ns)) : 0);
}

static void
wait_end(struct wait *v, bool got)
{
	int64_t now = trace_now_ns();

	if (v->published)
		wait_blame(v, now, got);
	events_wait_end(&v->trace, now, 0);
	block_record(v->call, now - v->since_ns);
}

static void
wait_left(void *arg)
{
	wait_end(arg, false);
}

#ifdef __GLIBC__
/* In the ABI since 2.0; the struct is in <pthread.h>, the functions no longer. */
extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *b, void (*routine)(void *), void *arg);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *b, int execute);
#define LEFT_PUSH(routine, arg)                      \
	do {                                         \
		struct _pthread_cleanup_buffer left; \
                                                     \
		_pthread_cleanup_push(&left, routine, arg)
#define LEFT_POP                                \
		_pthread_cleanup_pop(&left, 0); \
	} while (0)
#else
#define LEFT_PUSH(routine, arg) pthread_cleanup_push(routine, arg)
#define LEFT_POP                pthread_cleanup_pop(0)
#endif

/* Both profiles and traces want the waiter to be found by its lock. */
static bool
is_published(uint32_t name)
{
	return our_waits == 0 && is_lock(name) && (atomic_load_explicit(&waits_state.mutex_fraction, memory_order_relaxed) > 0 ||
				 atomic_load_explicit(&waits_state.tracing, memory_order_relaxed));
}

static HOOKS_FRAME int
wait_timed(struct hooks_wait *w)
{
	struct wait v = { .call = w, .trace = { .pc = w->pc, .sp = w->sp, .fp = w->fp,
		.reason = is_cond(w->name) ? TRACE_COND : TRACE_SYNC } };
	int         r, saved;

	v.since_ns = v.trace.since_ns = trace_now_ns();
	v.published = is_published(w->name);
	if (v.published)
		v.place = waiters_publish(w->args[0], v.since_ns, trace_tid(), w->name);
	events_wait_begin(&v.trace);
	v.since_ns = v.trace.since_ns; /* a trace has walked the stack */
	LEFT_PUSH(wait_left, &v);
	r = call(w);
	LEFT_POP;
	saved = errno;
	if (was_wait(w, r)) {
		wait_end(&v, r == 0);
	} else {
		if (v.published)
			waiters_withdraw(v.place);
		events_wait_end(&v.trace, 0, INT64_MAX);
	}
	errno = saved;
	return r;
}

/* ---- once ---- */

/* The routine that the next once_routine() on this thread is to call, and whether it did. */
static __thread void (*once_next)(void) __attribute__((tls_model("initial-exec")));
static __thread bool once_ran __attribute__((tls_model("initial-exec")));

static HOOKS_FRAME void
once_routine(void)
{
	void  (*routine)(void) = once_next;
	int64_t running;

	once_ran = true;
	atomic_fetch_add(&waits_state.onces, 1);
	routine();
	/* In a child that the routine has forked it is not counted any more. */
	for (running = atomic_load(&waits_state.onces); running > 0;)
		if (atomic_compare_exchange_weak(&waits_state.onces, &running, running - 1))
			break;
}

/*
 * Who runs the routine does not wait, and nobody waits while none runs.  A routine that
 * is left by an exception or cancelled stays in the count of those that run: then each
 * once reads the clock twice for nothing, and no more than that.
 */
static HOOKS_FRAME int
wait_once(struct hooks_wait *w)
{
	void (*next_before)(void) = once_next;
	bool    ran_before = once_ran, ran;
	int64_t since = atomic_load(&waits_state.onces) > 0 ? trace_now_ns() : 0;
	int64_t now;
	int     r, saved;

	once_next = (void (*)(void))w->args[1];
	once_ran = false;
	w->args[1] = (uintptr_t)once_routine;
	r = call(w);
	saved = errno;
	ran = once_ran;
	once_next = next_before;
	once_ran = ran_before;
	if (since && !ran) {
		struct events_wait t = { .since_ns = since, .pc = w->pc, .sp = w->sp, .fp = w->fp, .reason = TRACE_SYNC,
			.on = events_wait_on() };

		now = trace_now_ns();
		events_wait_end(&t, now, 0); /* walks the stack */
		block_record(w, now - since);
	}
	errno = saved;
	return r;
}

HOOKS_FRAME int
waits_on_wait(struct hooks_wait *w)
{
	int saved = errno;

	if (our_thread_is())
		return call(w);
	if (w->name == HOOKS_pthread_once || w->name == HOOKS_call_once)
		return wait_once(w);
	if (is_cond(w->name) && mutex_is_released(w->args[1], trace_tid()))
		let_go(w, w->args[1]);
	errno = saved;
	return wait_timed(w);
}
