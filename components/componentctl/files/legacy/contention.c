/*
 * contention.c - gperftools' profile of contention: a head of attributes, then a line for each stack.
 *
 * Cycles become time by the head's cycles/second, and both values are scaled by its sampling period.
 *
 * Tests: tests/componentctl/legacy.t, test_read.c
 */
#include <config.h>

#include "draft.h"

#include <string.h>

static const char drop_contention[] =
	"(base::)?(RecordLockProfileData|SubmitMutexProfileData|SubmitSpinLockProfileData).*|"
	"((base::)?Mutex::)?(AwaitCommon|Unlock|UnlockSlow|ReaderUnlock).*|((base::)?MutexLock::)?~MutexLock.*|"
	"(SpinLock::)?(Unlock|SlowUnlock).*|(SpinLockHolder::)?~SpinLockHolder.*";

/* "cycles/second = 1000".  0; 1: that is no such line. */
static int
read_attribute(struct legacy *l, struct line line, int64_t *hz)
{
	const char *names[] = { "cycles/second", "sampling period", "ms since reset", "discarded samples" };
	int64_t     values[4];

	if (!memchr(line.at, '=', (size_t)(line.end - line.at)))
		return 1;
	for (int i = 0; i < 4; i++) {
		if (!legacy_take(&line, names[i]))
			continue;
		if (!legacy_take(&line, "=") || (!legacy_take_number(&line, &values[i]) && i < 3))
			break;
		if (i == 0)
			*hz = values[i];
		else if (i == 1)
			l->period = values[i];
		else if (i == 2)
			l->p->duration_ns = (int64_t)((uint64_t)values[i] * 1000000);
		return 0;
	}
	return legacy_refuse(l, "is a profile of contention with a line that is not known");
}

static int
add_contention(struct legacy *l, struct line *line, int64_t hz)
{
	struct draft d = { .block_size = -1 };
	int64_t      cycles, times;

	if (!legacy_take_number(line, &cycles) || !legacy_take_number(line, &times) || !legacy_take(line, "@"))
		return legacy_refuse(l, "is damaged, or cut off: a line has not 'CYCLES N @ ADDRESSES'");
	if (l->period > 0 && hz > 0)
		cycles = legacy_whole((double)cycles * (double)l->period / ((double)hz / 1e9));
	if (l->period > 0)
		times = (int64_t)((uint64_t)times * (uint64_t)l->period);
	d.values[0] = times;
	d.values[1] = cycles;
	return legacy_add_stack(l, line, &d);
}

static int
parse_contention(struct legacy *l)
{
	static const struct pprof_type types[] = { { "contentions", "count" }, { "delay", "nanoseconds" } };
	struct line                    line;
	int64_t                        hz = 0;
	bool                           in_head = true;
	int                            r = legacy_set_types(l, types, 2, types[0]);

	l->period = 1;
	l->p->drop_frames = drop_contention;
	if (!r)
		r = legacy_make_room_for_lines(l);
	legacy_next_line(l, &line);
	while (!r && legacy_next_line(l, &line) && !legacy_is_map(&line)) {
		if (line.at == line.end || *line.at == '#')
			continue;
		if (legacy_begins(&line, "---"))
			break;
		r = in_head ? read_attribute(l, line, &hz) : 1;
		if (r <= 0)
			continue;
		in_head = false;
		r = add_contention(l, &line, hz);
	}
	return r ? r : legacy_read_map(l, &line);
}

static bool
is_contention(const char *data, size_t size)
{
	const struct line line = { data, data + size };

	return legacy_begins(&line, "--- contentionz ") || legacy_begins(&line, "--- mutex:") ||
		legacy_begins(&line, "--- contention:");
}

const struct legacy_format legacy_contention = { .is = is_contention, .parse = parse_contention };
