/*
 * waits.c - the mutex and block profiles, on and off.
 *
 * Two rates and the trace share one switch; the hooks then call waits/record.c.
 *
 * Tests: tests/waits/test_waits.c, tests/waits/test_guest.c, tests/waits/test_abandoned.c.
 */
#include <config.h>

#include "waits.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include <component/profiler.h>

#include "clock.h"
#include "collector.h"
#include "events/ring.h"
#include "plain_mutex.h"
#include "waiters.h"
#include "which_core.h"

struct stack_counts waits_mutex_sites, waits_block_sites;
_Atomic uint64_t    waits_truncated;
struct waits_state  waits_state;

static _Atomic bool no_memory[3]; /* for mutex, block and traces, when each was switched on last */

static const char *
hooks_status(void)
{
	if (!ARCH_HAVE_HOOKS)
		return "waits are not seen: " HOOKS_UNKNOWN;
	if (hooks_are_others())
		return "waits are not seen: another copy of libcomponent in this process has the hooks";
	if (HOOKS_HAVE(unlock))
		return hooks_displaced(HOOKS_pthread_mutex_lock) ? "waits are not seen: " HOOKS_DISPLACED("pthread_mutex_lock") : "";
	if (&component_hooks && component_hooks.kind == HOOKS_STATIC_STUB)
		return "waits are not seen: the program is linked with -static, where locks cannot be hooked";
	if (&component_hooks)
		return "waits are not seen: the hooks linked into the program are of another version";
	return "waits are not seen: the program is not linked with -lcomponent_hooks "
	       "(pkg-config --libs libcomponent) nor started with libcomponent-preload.so";
}

const char *
waits_status(void)
{
	for (int i = 0; i < 3; i++)
		if (atomic_load(&no_memory[i]) && *hooks_status() == '\0')
			return "some waits are not seen: no memory for their tables";
	return hooks_status();
}

static bool
tries_are_there(void)
{
	for (int i = 0; i < HOOKS_TRY_COUNT; i++)
		if (!component_hooks.tries[i])
			return false;
	return true;
}

/* Are waiters to be found by their lock? */
static bool
waiters_are_wanted(void)
{
	return atomic_load(&waits_state.mutex_fraction) > 0 || atomic_load(&waits_state.tracing);
}

/* One switch for all that want to know of waits. */
static void
switch_over(void)
{
	bool published, block;

	do { /* until it is as all want it: others may switch beside us */
		published = waiters_are_wanted();
		block = atomic_load(&waits_state.block_rate) > 0;
		__atomic_store_n(&component_hooks.wait_state, published || block ? HOOKS_ON : HOOKS_OFF, __ATOMIC_SEQ_CST);
		waiters_watch(published);
	} while (waiters_are_wanted() != published || (atomic_load(&waits_state.block_rate) > 0) != block);
}

static int
watch(void)
{
	if (!hooks_claim())
		return -ENOTSUP;
	component_hooks.resolve();
	if (!tries_are_there())
		return -ENOTSUP;
	if (waiters_open(component_hooks.waiting) < 0)
		return -ENOMEM;
	plain_mutex_begin();
	component_hooks.unlock = waits_on_unlock;
	component_hooks.wait = waits_on_wait;
	return 0;
}

/* Whether waits and wake-ups are told to events/wait.h; beside the profiles, which it
 * does not change.  0, -ENOTSUP, -ENOMEM. */
static int
waits_trace(bool on)
{
	int r = 0;

	if (*hooks_status())
		return on ? -ENOTSUP : 0;
	if (on)
		r = watch();
	atomic_store(&no_memory[2], r == -ENOMEM);
	if (r == 0) {
		atomic_store(&waits_state.tracing, on);
		switch_over();
	}
	return r;
}

/* The rate, and then the switch. */
static int
set(_Atomic int64_t *rate, int64_t value, struct stack_counts *sites)
{
	int r = 0;

	if (value < 0)
		value = 0;
	if (*hooks_status())
		return value ? -ENOTSUP : 0;
	if (value > 0)
		r = stack_counts_open(sites) < 0 ? -ENOMEM : watch();
	atomic_store(&no_memory[sites == &waits_block_sites], r == -ENOMEM);
	if (r < 0)
		return r;
	atomic_store(rate, value);
	switch_over();
	return 0;
}

int
waits_set_mutex_fraction(int64_t fraction)
{
	if (fraction > WAITS_FRACTION_MAX)
		fraction = WAITS_FRACTION_MAX;
	return set(&waits_state.mutex_fraction, fraction, &waits_mutex_sites);
}

int
waits_set_block_rate(int64_t rate_ns)
{
	return set(&waits_state.block_rate, rate_ns, &waits_block_sites);
}

int64_t
waits_mutex_fraction(void)
{
	return atomic_load(&waits_state.mutex_fraction);
}

static int64_t
waits_block_rate(void)
{
	return atomic_load(&waits_state.block_rate);
}

void
waits_forked(void)
{
	atomic_store(&waits_state.mutex_fraction, 0);
	atomic_store(&waits_state.block_rate, 0);
	atomic_store(&waits_state.onces, 0);
	atomic_store(&waits_state.tracing, false);
	atomic_store(&waits_truncated, 0);
	if (*hooks_status() == '\0')
		__atomic_store_n(&component_hooks.wait_state, HOOKS_OFF, __ATOMIC_RELEASE);
	plain_mutex_forked();
	waiters_forked();
	stack_counts_forked(&waits_mutex_sites);
	stack_counts_forked(&waits_block_sites);
}

/* ---- as collectors ---- */

static int
collect(const struct collector *c, const struct collect_params *params, struct product *ret)
{
	bool           mutex = c == &collect_mutex;
	int64_t        rate = mutex ? waits_mutex_fraction() : waits_block_rate();
	struct profile p;

	(void)params;
	if (mutex && rate) {
		waiters_sweep(trace_now_ns());
		waiters_rest(trace_now_ns());
	}
	collector_profile(c, &p);
	p.period_type = p.types[0];
	p.period = 1;
	p.one_in = waits_mutex_fraction();
	p.time_ns = clock_ns(CLOCK_REALTIME);
	p.truncated = atomic_load(&waits_truncated);
	if (*waits_status())
		profile_comment(&p, "%s: %s", c->name, waits_status());
	else if (!rate)
		profile_comment(&p, "%s", mutex ? "mutex: off; --mutex-profile-fraction=1 samples all contentions" :
			"block: off; --block-profile-rate=10us samples waits of this length and longer");
	if (mutex && waiters_crowded())
		profile_comment(&p, "mutex: %llu waiters found no place, and were charged to nobody",
			(unsigned long long)waiters_crowded());
	ret->type = PRODUCT_PROFILE;
	return profile_done(&p, stack_counts_profile(mutex ? &waits_mutex_sites : &waits_block_sites, &p), &ret->profile);
}

static size_t
count(const struct collector *c)
{
	return stack_counts_count(c == &collect_mutex ? &waits_mutex_sites : &waits_block_sites);
}

static const char *
mutex_missing(void)
{
	if (waits_mutex_fraction() > 0 || count(&collect_mutex) > 0)
		return "";
	return *waits_status() ? waits_status() :
				 "locks are not sampled; component_profiler_set_mutex_fraction() switches that on";
}

static const char *
block_missing(void)
{
	if (waits_block_rate() > 0 || count(&collect_block) > 0)
		return "";
	return *waits_status() ? waits_status() :
				 "waits are not sampled; component_profiler_set_block_rate() switches that on";
}

struct each {
	void (*found)(void *arg, pid_t tid, const struct dump_lock *lock, bool timed);
	void  *arg;
};

static void
on_waiter(void *arg, int32_t tid, uintptr_t lock, uint32_t name)
{
	const struct each *e = arg;
	bool               timed, rwlock = true;

	switch (name) {
	case HOOKS_pthread_rwlock_rdlock:
	case HOOKS_pthread_rwlock_wrlock:
		timed = false;
		break;
	case HOOKS_pthread_mutex_lock:
	case HOOKS_mtx_lock:
		timed = rwlock = false;
		break;
	case HOOKS_pthread_mutex_timedlock:
	case HOOKS_pthread_mutex_clocklock:
	case HOOKS_mtx_timedlock:
		timed = true;
		rwlock = false;
		break;
	default:
		timed = true;
	}
	e->found(e->arg, tid, &(struct dump_lock){ .address = lock, .kind = rwlock ? DUMP_RWLOCK : DUMP_MUTEX }, timed);
}

static void
each_waiter(void (*found)(void *arg, pid_t tid, const struct dump_lock *lock, bool timed), void *arg)
{
	struct each e = { found, arg };

	waiters_each(on_waiter, &e);
}

static const struct collector_rate mutex_rate = {
	.option = "mutex-profile-fraction",
	.help = "Sample one of N unlocks that other threads waited for, for the mutex profile; 0 is off.",
	.max = WAITS_FRACTION_MAX,
	.get = waits_mutex_fraction,
	.set = waits_set_mutex_fraction,
	.option_at = offsetof(struct component_profiler_options, mutex_fraction),
};

static const struct collector_rate block_rate = {
	.option = "block-profile-rate",
	.help = "Sample waits of this length and longer, and shorter ones in proportion, for the block profile; 0 is off.",
	.unit = COLLECTOR_NS,
	.max = INT64_MAX,
	.get = waits_block_rate,
	.set = waits_set_block_rate,
	.option_at = offsetof(struct component_profiler_options, block_rate_ns),
};

#define WAITS_TYPES { { "contentions", "count" }, { "delay", "nanoseconds" } }

const struct collector collect_mutex = {
	.name = "mutex",
	.description = "Stack traces of holders of contended mutexes",
	.products = PRODUCT_PROFILE,
	.types = WAITS_TYPES,
	.text = PRODUCT_TEXT_CONTENTIONS,
	.snapshot = collect,
	.count = count,
	.status_name = "mutex and block",
	.status = waits_status,
	.missing = mutex_missing,
	.tell_waits = waits_trace,
	.each_waiter = each_waiter,
	.rate = &mutex_rate,
	.forked = waits_forked,
};

const struct collector collect_block = {
	.name = "block",
	.description = "Stack traces that led to blocking on synchronization primitives",
	.products = PRODUCT_PROFILE,
	.types = WAITS_TYPES,
	.text = PRODUCT_TEXT_DELAYS,
	.snapshot = collect,
	.count = count,
	.status_name = "",
	.status = waits_status,
	.missing = block_missing,
	.rate = &block_rate,
};
