/*
 * profile.c - the mutex and block profiles of what waits/record.c has counted.
 *
 * Tests: tests/test_waits.c.
 */
#include <config.h>

#include "waits.h"

#include <time.h>

#include <component/profiler.h>

#include "clock.h"
#include "collector.h"
#include "events/ring.h"
#include "parts.h"
#include "waiters.h"

static int
snapshot(struct profile *ret, const char *name, struct stack_counts *sites, const char *off)
{
	struct profile p;
	int            r;

	profile_init(&p, name);
	p.types[0] = p.period_type = (struct profile_type){ "contentions", "count" };
	p.types[1] = (struct profile_type){ "delay", "nanoseconds" };
	p.type_count = 2;
	p.period = 1;
	p.one_in = waits_mutex_fraction();
	p.time_ns = clock_ns(CLOCK_REALTIME);
	p.truncated = atomic_load(&waits_truncated);
	if (*waits_status())
		profile_comment(&p, "%s: %s", name, waits_status());
	else if (*off)
		profile_comment(&p, "%s", off);
	if (waiters_crowded())
		profile_comment(&p, "mutex: %llu waiters found no place, and were charged to nobody",
			(unsigned long long)waiters_crowded());
	r = stack_counts_profile(sites, &p);
	if (r < 0) {
		profile_release(&p);
		return r;
	}
	profile_merge(&p);
	*ret = p;
	return 0;
}

int
waits_snapshot_mutex(struct profile *ret)
{
	if (waits_mutex_fraction())
		waiters_sweep(trace_now_ns());
	if (waits_mutex_fraction())
		waiters_rest(trace_now_ns());
	return snapshot(ret, "mutex", &waits_mutex_sites,
		waits_mutex_fraction() ? "" : "mutex: off; --mutex-profile-fraction=1 samples all contentions");
}

int
waits_snapshot_block(struct profile *ret)
{
	return snapshot(ret, "block", &waits_block_sites,
		waits_block_rate() ? "" : "block: off; --block-profile-rate=10us samples waits of this length and longer");
}

size_t
waits_mutex_stacks(void)
{
	return stack_counts_count(&waits_mutex_sites);
}

size_t
waits_block_stacks(void)
{
	return stack_counts_count(&waits_block_sites);
}

/* ---- as collectors ---- */

static int
collect(const struct collector *c, const struct collect_params *params, struct product *ret)
{
	(void)params;
	ret->type = PRODUCT_PROFILE;
	return c == &collect_mutex ? waits_snapshot_mutex(&ret->profile) : waits_snapshot_block(&ret->profile);
}

static size_t
collect_count(const struct collector *c)
{
	return c == &collect_mutex ? waits_mutex_stacks() : waits_block_stacks();
}

static const char *
mutex_missing(void)
{
	if (waits_mutex_fraction() > 0 || waits_mutex_stacks() > 0)
		return "";
	return *waits_status() ? waits_status() :
				 "locks are not sampled; component_profiler_set_mutex_fraction() switches that on";
}

static const char *
block_missing(void)
{
	if (waits_block_rate() > 0 || waits_block_stacks() > 0)
		return "";
	return *waits_status() ? waits_status() :
				 "waits are not sampled; component_profiler_set_block_rate() switches that on";
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

const struct collector collect_mutex = {
	.name = "mutex",
	.description = "Stack traces of holders of contended mutexes",
	.products = PRODUCT_PROFILE,
	.text = PRODUCT_TEXT_CONTENTIONS,
	.snapshot = collect,
	.count = collect_count,
	.status_name = "mutex and block",
	.status = waits_status,
	.missing = mutex_missing,
	.tell_waits = waits_trace,
	.rate = &mutex_rate,
	.forked = waits_forked,
};

const struct collector collect_block = {
	.name = "block",
	.description = "Stack traces that led to blocking on synchronization primitives",
	.products = PRODUCT_PROFILE,
	.text = PRODUCT_TEXT_DELAYS,
	.snapshot = collect,
	.count = collect_count,
	.status_name = "",
	.status = waits_status,
	.missing = block_missing,
	.rate = &block_rate,
};
