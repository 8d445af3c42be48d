/*
 * waits_parts.h - what waits.c counts and waits_profile.c shows.
 */
#ifndef COLLECT_WAITS_PARTS_H
#define COLLECT_WAITS_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sites.h"

extern struct sites     waits_mutex_sites, waits_block_sites;
extern _Atomic uint64_t waits_truncated; /* stacks that end early */

/* What a wait counts for. */
struct waits_weight {
	uint64_t count; /* in 1/SITES_ONE */
	uint64_t delay_ns;
};

/* Is a wait of this length recorded at this rate?  random: below 2^63. */
bool waits_weigh(int64_t delay_ns, int64_t rate_ns, uint64_t random, struct waits_weight *ret);

#endif
