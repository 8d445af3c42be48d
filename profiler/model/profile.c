/*
 * profile.c - struct profile: samples in an array that grows by mremap.
 *
 * A collector adds samples as it finds them, merges once, and hands the profile
 * to an encoder.  Every sample owns one reference of its stack and one of its labels,
 * from profile_add() until profile_release(); merging gives the surplus ones back.
 *
 * What a stranger would get wrong: qsort() is not used because glibc's takes
 * memory from malloc, and a profile is also made while malloc is what is being
 * looked at.  Merging sorts instead of hashing for the same reason: it works in
 * place, so it cannot fail when memory is short, which is when it is wanted.
 *
 * Tests: tests/model/test_profile.c.
 */
#include <config.h>

#include "profile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "labels.h"
#include "pages.h"
#include "sort.h"
#include "stack_table.h"

/* The first mapping, in samples: one page or so; it doubles from there. */
#define PROFILE_CAPACITY_FIRST 64

void
profile_init(struct profile *p, const char *name)
{
	memset(p, 0, sizeof(*p));
	p->name = name;
	p->begun_ns = clock_ns(CLOCK_MONOTONIC);
}

static void
sample_drop(const struct profile_sample *s)
{
	stack_table_unref(s->stack);
	labels_unref(s->labels);
}

/*
 * Room for one more sample.  The old array stays as it is when there is none.
 */
static int
samples_reserve(struct profile *p)
{
	void *mem;

	if (p->count < p->capacity)
		return 0;
	mem = pages_grow(p->samples, &p->capacity, PROFILE_CAPACITY_FIRST, sizeof(*p->samples));
	if (!mem)
		return -ENOMEM;
	p->samples = mem;
	return 0;
}

int
profile_add(struct profile *p, const struct profile_sample *s)
{
	int err;

	err = samples_reserve(p);
	if (err < 0) {
		sample_drop(s);
		return err;
	}
	p->samples[p->count++] = *s;
	return 0;
}

void
profile_comment(struct profile *p, const char *format, ...)
{
	va_list args;
	size_t	used, room;
	int	len;

	used = strlen(p->comments);
	room = sizeof(p->comments) - used;
	if (used > 0) {
		if (room < 2)
			return;
		p->comments[used++] = '\n';
		p->comments[used] = '\0';
		room--;
	}
	va_start(args, format);
	len = vsnprintf(p->comments + used, room, format, args);
	va_end(args);
	/* A comment that does not fit whole is left out: half a number misleads. */
	if (len < 0 || (size_t)len >= room)
		p->comments[used > 0 ? used - 1 : 0] = '\0';
}

static bool
before_by_stack(const struct profile_sample *a, const struct profile_sample *b)
{
	if (a->stack != b->stack)
		return a->stack < b->stack;
	if (a->labels != b->labels)
		return a->labels < b->labels;
	return a->event_bytes < b->event_bytes;
}

static bool
before_by_value(const struct profile *p, const struct profile_sample *a, const struct profile_sample *b)
{
	unsigned last = p->type_count ? p->type_count - 1 : 0;

	if (a->values[last] != b->values[last])
		return a->values[last] > b->values[last];
	return before_by_stack(a, b); /* one order for equal profiles */
}

HEAP_SORT(stacks_sort, struct profile_sample, before_by_stack)
HEAP_SORT_WITH(values_sort, struct profile_sample, const struct profile *, before_by_value)

void
profile_merge(struct profile *p)
{
	struct profile_sample *s = p->samples;
	size_t		       from, to = 0;
	unsigned	       v;

	if (p->count == 0)
		return;
	stacks_sort(s, p->count);
	for (from = 1; from < p->count; from++) {
		if (s[from].stack != s[to].stack || s[from].labels != s[to].labels ||
		    s[from].event_bytes != s[to].event_bytes) {
			s[++to] = s[from];
			continue;
		}
		for (v = 0; v < PROFILE_TYPES_MAX; v++) {
			s[to].values[v] += s[from].values[v];
			s[to].counted_values[v] += s[from].counted_values[v];
		}
		sample_drop(&s[from]);
	}
	p->count = to + 1;
	values_sort(s, p->count, p);
}

/* Adds before's samples with their values negated; their references come along. */
static int
samples_take_negated(struct profile *p, struct profile *before)
{
	struct profile_sample s;
	size_t                kept = p->count;
	unsigned              v;

	for (size_t i = 0; i < before->count; i++) {
		if (samples_reserve(p) < 0) {
			p->count = kept;
			return -ENOMEM;
		}
		s = before->samples[i];
		for (v = 0; v < PROFILE_TYPES_MAX; v++) {
			s.values[v] = -s.values[v];
			s.counted_values[v] = -s.counted_values[v];
		}
		p->samples[p->count++] = s;
	}
	before->count = 0;
	return 0;
}

static bool
sample_is_zero(const struct profile_sample *s, unsigned type_count)
{
	for (unsigned v = 0; v < type_count; v++)
		if (s->values[v])
			return false;
	return true;
}

static uint64_t
grown(uint64_t after, uint64_t before)
{
	return after > before ? after - before : 0;
}

int
profile_subtract(struct profile *p, struct profile *before)
{
	size_t i, to = 0;
	int    err;

	err = samples_take_negated(p, before);
	if (err < 0)
		goto out;
	profile_merge(p);
	for (i = 0; i < p->count; i++) {
		struct profile_sample *s = &p->samples[i];

		if (sample_is_zero(s, p->type_count)) {
			sample_drop(s);
			continue;
		}
		p->samples[to++] = *s;
	}
	p->count = to;
	p->duration_ns = p->begun_ns - before->begun_ns;
	p->lost = grown(p->lost, before->lost);
	p->truncated = grown(p->truncated, before->truncated);
out:
	profile_release(before);
	return err;
}

int
profile_copy(const struct profile *p, struct profile *ret)
{
	size_t                 size = p->count * sizeof(*p->samples);
	struct profile_sample *samples = size ? pages_map(size) : NULL;

	if (size && !samples)
		return -ENOMEM;
	for (size_t i = 0; i < p->count; i++) {
		samples[i] = p->samples[i];
		stack_table_ref(samples[i].stack);
		labels_ref(samples[i].labels);
	}
	*ret = *p;
	ret->samples = samples;
	ret->capacity = p->count;
	return 0;
}

void
profile_release(struct profile *p)
{
	size_t i;

	for (i = 0; i < p->count; i++)
		sample_drop(&p->samples[i]);
	pages_unmap(p->samples, p->capacity * sizeof(*p->samples));
	memset(p, 0, sizeof(*p));
}

int
profile_done(struct profile *made, int err, struct profile *ret)
{
	if (err < 0) {
		profile_release(made);
		return err;
	}
	profile_merge(made);
	*ret = *made;
	return 0;
}
