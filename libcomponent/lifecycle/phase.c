/*
 * phase.c - the phases of a component, and what it has been asked for.
 *
 *     NEW -> PARSED -> STARTING -> RUNNING -> DELAYING -> DRAINING -> FINISHED
 *
 * Tests: tests/lifecycle/test_order.c.
 */
#include <config.h>

#include "life.h"

#include <errno.h>

static const char *const phase_texts[] = {
	[COMPONENT_PHASE_NEW] = "new",           [COMPONENT_PHASE_PARSED] = "not started",
	[COMPONENT_PHASE_STARTING] = "starting", [COMPONENT_PHASE_RUNNING] = "running",
	[COMPONENT_PHASE_DELAYING] = "stopping", [COMPONENT_PHASE_DRAINING] = "stopping",
	[COMPONENT_PHASE_FINISHED] = "stopped",
};

/* What may follow what: a bit for each phase. */
#define TO(phase) (1u << COMPONENT_PHASE_##phase)
static const unsigned phase_table[] = {
	[COMPONENT_PHASE_NEW] = TO(PARSED) | TO(FINISHED),
	[COMPONENT_PHASE_PARSED] = TO(STARTING) | TO(FINISHED),
	[COMPONENT_PHASE_STARTING] = TO(RUNNING) | TO(FINISHED),
	[COMPONENT_PHASE_RUNNING] = TO(DELAYING) | TO(FINISHED),
	[COMPONENT_PHASE_DELAYING] = TO(DRAINING) | TO(FINISHED),
	[COMPONENT_PHASE_DRAINING] = TO(FINISHED),
	[COMPONENT_PHASE_FINISHED] = 0,
};

int
phase_set(struct component *c, enum component_phase from, enum component_phase to)
{
	int expected = (int)from;

	if (!(phase_table[from] & 1u << to))
		return -EINVAL;
	if (!atomic_compare_exchange_strong(&c->phase, &expected, (int)to))
		return -EINVAL;
	return 0;
}

enum component_phase
component_phase(const struct component *c)
{
	return (enum component_phase)c->phase;
}

const char *
component_phase_text(enum component_phase phase)
{
	if ((unsigned)phase > COMPONENT_PHASE_FINISHED)
		return "unknown";
	return phase_texts[phase];
}

bool
component_finished(const struct component *c, int *ret_status)
{
	if (!c || component_phase(c) != COMPONENT_PHASE_FINISHED)
		return false;
	if (ret_status)
		*ret_status = c->status;
	return true;
}

void
phase_request(struct component *c, unsigned requests)
{
	atomic_fetch_or(&c->requests, requests);
	loop_wake(&c->loop);
}
