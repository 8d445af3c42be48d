/*
 * cpu.c - gperftools' CPU profile: words of 32 or 64 bits, then the mappings as text.
 *
 *     0 3 0 PERIOD 0 | HITS DEPTH ADDRESS... | ... | 0 1 0 | /proc/PID/maps
 *
 * What a stranger would get wrong:
 *  - the first address of a stack is what ran, and no return address.
 *  - gperftools' handler leaves a frame of its own, the second, in nearly all stacks: it goes.
 *
 * Tests: tests/componentctl/legacy.t, test_read.c
 */
#include <config.h>

#include "draft.h"

#include <string.h>

#include "legacy_map.h"

#define CPU_WORDS 5 /* of the head: 0, 3, 0, the period, 0 */
#define CPU_MAGIC 3
#define SIMILAR   32 /* of so many stacks one may lack the handler's frame */

/* Functions that measure, and are not what is measured: names as pprof knows them. */
static const char drop_cpu[] = "(ProfileData|CpuProfiler)::(Add|prof_handler)|__pthread_sighandler|__restore";

struct words {
	unsigned size; /* bytes of one */
	bool     is_big; /* the highest byte comes first */
};

static uint64_t
word(const struct words *w, const char *at)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < w->size; i++)
		value = value << 8 | (unsigned char)at[w->is_big ? i : w->size - 1 - i];
	return value;
}

/* Which words these are; false: it is no CPU profile. */
static bool
find_words(const char *data, size_t size, struct words *ret)
{
	for (unsigned i = 0; i < 4; i++) {
		*ret = (struct words){ i < 2 ? 4 : 8, i % 2 };
		if (size >= CPU_WORDS * ret->size && !word(ret, data) && word(ret, data + ret->size) == CPU_MAGIC &&
			word(ret, data + 2 * ret->size) <= 1 && word(ret, data + 3 * ret->size) &&
			!word(ret, data + 4 * ret->size))
			return true;
	}
	return false;
}

/* 1: that was the end. */
static int
parse_stack(struct legacy *l, const struct words *w)
{
	size_t        left = (size_t)(l->end - l->at) / w->size;
	uint64_t      hits = left >= 2 ? word(w, l->at) : 0, depth = left >= 2 ? word(w, l->at + w->size) : 0;
	struct draft *d = &l->drafts[l->count];

	if (left < 2 || depth > left - 2)
		return legacy_refuse(l, "is cut off");
	l->at += 2 * w->size;
	if (!hits && depth == 1 && !word(w, l->at)) {
		l->at += w->size;
		return 1;
	}
	*d = (struct draft){ l->address_count, (uint32_t)depth, { (int64_t)hits, (int64_t)(hits * (uint64_t)l->period) }, -1 };
	for (uint64_t i = 0; i < depth; i++, l->at += w->size)
		l->addresses[l->address_count++] = word(w, l->at) - (i > 0);
	l->count++;
	return 0;
}

static void
cut_second(const struct legacy *l, struct draft *d)
{
	uint64_t *stack = l->addresses + d->first;

	memmove(stack + 1, stack + 2, (d->count - 2) * sizeof(*stack));
	d->count--;
}

/* The second frame that nearly all stacks have. */
static void
cut_handler(const struct legacy *l)
{
	uint64_t likely = 0;
	size_t   votes = 0, have = 0;

	for (size_t i = 0; i < l->count; i++) {
		uint64_t second = l->drafts[i].count > 1 ? l->addresses[l->drafts[i].first + 1] : 0;

		if (l->drafts[i].count < 2)
			continue;
		if (!votes)
			likely = second;
		votes = likely == second ? votes + 1 : votes - 1;
	}
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < l->count; i++) {
			struct draft *d = &l->drafts[i];

			if (d->count < 2 || l->addresses[d->first + 1] != likely)
				continue;
			if (!pass)
				have++;
			else if (have >= l->count - l->count / SIMILAR)
				cut_second(l, d);
		}
}

static int
parse_cpu(struct legacy *l)
{
	static const struct pprof_type types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
	struct words                   words, *w = &words;
	size_t                         left;
	int                            r;

	find_words(l->at, (size_t)(l->end - l->at), w);
	left = (size_t)(l->end - l->at) / w->size;
	if (word(w, l->at + 2 * w->size))
		return legacy_refuse(l, "is a CPU profile of Java in gperftools' format, which nothing here reads");
	l->period = (int64_t)(word(w, l->at + 3 * w->size) * 1000);
	l->at += CPU_WORDS * w->size;
	r = legacy_set_types(l, types, 2, types[1]);
	if (!r)
		r = legacy_make_room(l, left / 2, left);
	while (!r && l->at < l->end)
		r = parse_stack(l, w);
	if (r < 0)
		return r;
	for (int i = 0; i < 2; i++)
		cut_handler(l);
	/* The leaf, twice: by the registers and by the stack. */
	for (size_t i = 0; i < l->count; i++)
		if (l->drafts[i].count > 1 && l->addresses[l->drafts[i].first] == l->addresses[l->drafts[i].first + 1] + 1)
			cut_second(l, &l->drafts[i]);
	l->p->drop_frames = drop_cpu;
	return legacy_map_read(l->at, (size_t)(l->end - l->at), l->p, l->err);
}

static bool
is_cpu(const char *data, size_t size)
{
	struct words w;

	return find_words(data, size, &w);
}

const struct legacy_format legacy_cpu = { .is = is_cpu, .parse = parse_cpu };
