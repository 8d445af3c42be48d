/*
 * text_counts.c - debug=1 of the kinds that count events by their stack.
 *
 *     threadcreate profile: total 9          --- mutex:
 *     3 @ 0x46fdee 0x44db25                  cycles/second=1000000000
 *     #	0x46fded	main+0x1d	/src/d.c:7      sampling period=1
 *                                            1223937754344 53991 @ 0x6927c5
 *     ...                                    #	0x6927c4	worker+0x14	/src/d.c:70
 *
 * What a stranger would get wrong: the left form is sorted by count and then by the
 * text of the addresses, as Go does it; the right one by delay.  Delays are in ticks of
 * a clock that the head names: ours ticks a billion times a second.  The numbers are
 * those of the binary form, as in Go, whatever the sampling period says.
 *
 * Tests: tests/encode/test_text.c
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "frames.h"
#include "text_stack.h"

/* As the text would compare: "0x9" after "0x10". */
static int
addresses_compare(uint32_t a, uint32_t b)
{
	const uintptr_t *x, *y;
	unsigned         n, m;
	char             left[24], right[24];
	int              r = 0;

	x = frames_stack(a, &n);
	y = frames_stack(b, &m);
	for (unsigned i = 0; i < n && i < m && r == 0; i++) {
		snprintf(left, sizeof(left), "%lx ", (unsigned long)x[i] + 1);
		snprintf(right, sizeof(right), "%lx ", (unsigned long)y[i] + 1);
		r = strcmp(left, right);
	}
	return r ? r : (int)n - (int)m;
}

static bool
before_by_count(const void *arg, uint32_t a, uint32_t b)
{
	const struct profile_sample *s = ((const struct profile *)arg)->samples;
	int                          r;

	if (s[a].values[0] != s[b].values[0])
		return s[a].values[0] > s[b].values[0];
	r = addresses_compare(s[a].stack, s[b].stack);
	return r ? r < 0 : a < b;
}

static bool
before_by_delay(const void *arg, uint32_t a, uint32_t b)
{
	const struct profile_sample *s = ((const struct profile *)arg)->samples;

	if (s[a].values[1] != s[b].values[1])
		return s[a].values[1] > s[b].values[1];
	return before_by_count(arg, a, b);
}

static void
counts_head(struct lines *l, const void *profile)
{
	const struct profile *p = profile;
	int64_t               total = 0;

	for (size_t i = 0; i < p->count; i++)
		total += p->samples[i].values[0];
	lines_print(l, "%s profile: total %" PRId64 "\n", p->name, total);
}

static void
counts_numbers(struct lines *l, const void *profile, const struct profile_sample *sample)
{
	(void)profile;
	lines_print(l, "%" PRId64 " @", sample->values[0]);
}

int
encode_counts_text(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	static const struct text_form form = { before_by_count, counts_head, counts_numbers, NULL };

	return text_stacks(p, s, &form, p, write, arg);
}

static void
delay_head(struct lines *l, const void *profile)
{
	(void)profile;
	lines_print(l, "--- contention:\ncycles/second=1000000000\n");
}

static void
contention_head(struct lines *l, const void *profile)
{
	const struct profile *p = profile;

	lines_print(l, "--- %s:\ncycles/second=1000000000\nsampling period=%" PRId64 "\n", p->name, p->one_in);
}

static void
contention_numbers(struct lines *l, const void *profile, const struct profile_sample *sample)
{
	(void)profile;
	lines_print(l, "%" PRId64 " %" PRId64 " @", sample->values[1], sample->values[0]);
}

int
encode_contention_text(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	static const struct text_form form = { before_by_delay, contention_head, contention_numbers, NULL };

	return p->type_count == 2 ? text_stacks(p, s, &form, p, write, arg) : -EINVAL;
}

int
encode_delay_text(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	static const struct text_form form = { before_by_delay, delay_head, contention_numbers, NULL };

	return p->type_count == 2 ? text_stacks(p, s, &form, p, write, arg) : -EINVAL;
}
