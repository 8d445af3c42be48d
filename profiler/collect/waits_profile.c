/*
 * waits_profile.c - the mutex and block profiles of what waits_hooks.c has counted.
 *
 * Tests: tests/test_waits.c.
 */
#include <config.h>

#include "waits.h"

#include <time.h>

#include "clock.h"
#include "trace_ring.h"
#include "waits_parts.h"
#include "waits_table.h"

static int
snapshot(struct profile *ret, const char *name, struct sites *sites, const char *off)
{
	struct profile p;
	int            r;

	profile_init(&p, name);
	p.types[0] = p.period_type = (struct profile_type){ "contentions", "count" };
	p.types[1] = (struct profile_type){ "delay", "nanoseconds" };
	p.type_count = 2;
	p.period = 1;
	p.fraction = waits_mutex_fraction();
	p.time_ns = clock_ns(CLOCK_REALTIME);
	p.truncated = atomic_load(&waits_truncated);
	if (*waits_status())
		profile_comment(&p, "%s: %s", name, waits_status());
	else if (*off)
		profile_comment(&p, "%s", off);
	if (waits_table_crowded())
		profile_comment(&p, "mutex: %llu waiters found no place, and were charged to nobody",
			(unsigned long long)waits_table_crowded());
	r = sites_profile(sites, &p);
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
		waits_table_sweep(trace_now_ns());
	if (waits_mutex_fraction())
		waits_table_rest(trace_now_ns());
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
	return sites_count(&waits_mutex_sites);
}

size_t
waits_block_stacks(void)
{
	return sites_count(&waits_block_sites);
}
