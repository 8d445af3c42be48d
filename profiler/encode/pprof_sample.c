/*
 * pprof_sample.c - one Sample of profile.proto as bytes, the most frequent message.
 *
 * Stacks of a program share their roots, and a Sample has the leaf first.  So the
 * numbers are written from the root to the left, and what the next stack shares with
 * this one stays where it is:
 *
 *     | head | ... leaf  caller  caller  root | values, labels |
 *            ^ grows to the left    ^ kept
 *
 * Why not protobuf-c, as for all other messages: it goes over each number twice, and
 * takes twice the time of all the rest.
 *
 * Tests: tests/encode/test_pprof.c, tests/encode/pprof.t
 */
#include <config.h>

#include "pprof_sample.h"

#include <string.h>

#include "varint.h"

#define IDS_END (PPROF_SAMPLE_HEAD_MAX + PPROF_SAMPLE_IDS_MAX)

/* Tags of one byte: the number of the field, and 2 for a length or 0 for a number. */
#define TAG_SAMPLE (2 << 3 | 2)
#define TAG_IDS    (1 << 3 | 2)
#define TAG_VALUES (2 << 3 | 2)
#define TAG_LABEL  (3 << 3 | 2)
#define TAG_KEY    (1 << 3 | 0)
#define TAG_TEXT   (2 << 3 | 0)
#define TAG_NUMBER (3 << 3 | 0)

/* Where the numbers begin, in *ret. */
static int
ids_pack(struct pprof_sample *p, const uintptr_t *pcs, unsigned count, pprof_sample_id_fn *id, void *arg, size_t *ret)
{
	unsigned depth = 0;
	size_t   at = IDS_END;

	while (depth < count && depth < p->count && p->pcs[depth] == pcs[count - 1 - depth])
		depth++;
	p->count = depth; /* so much is right, whatever comes */
	if (depth)
		at = p->at[depth - 1];
	for (; depth < count; depth++) {
		uint64_t number;
		int      r = id(arg, pcs[count - 1 - depth], &number);

		if (r < 0)
			return r;
		at -= varint_size(number);
		varint_write(p->bytes + at, number);
		p->at[depth] = (uint16_t)at;
		p->pcs[depth] = pcs[count - 1 - depth];
		p->count = depth + 1;
	}
	*ret = at;
	return 0;
}

static size_t
label_pack(uint8_t *p, const struct pprof_sample_label *l)
{
	uint8_t body[2 * 11];
	size_t  size, n = 0;

	body[0] = TAG_KEY;
	size = 1 + varint_write(body + 1, l->key);
	body[size++] = l->text ? TAG_TEXT : TAG_NUMBER;
	size += varint_write(body + size, l->text ? l->text : (uint64_t)l->number);
	p[n++] = TAG_LABEL;
	n += varint_write(p + n, size);
	memcpy(p + n, body, size);
	return n + size;
}

/* Behind the numbers; how many bytes. */
static size_t
tail_pack(uint8_t *p, const int64_t *values, unsigned count, const struct pprof_sample_label *labels,
	unsigned label_count)
{
	uint8_t body[PROFILE_TYPES_MAX * 10];
	size_t  size = 0, n = 0;

	for (unsigned i = 0; i < count; i++)
		size += varint_write(body + size, (uint64_t)values[i]);
	if (size) {
		p[n++] = TAG_VALUES;
		n += varint_write(p + n, size);
		memcpy(p + n, body, size);
		n += size;
	}
	for (unsigned i = 0; i < label_count; i++)
		n += label_pack(p + n, &labels[i]);
	return n;
}

int
pprof_sample_pack(struct pprof_sample *p, const uintptr_t *pcs, unsigned count, pprof_sample_id_fn *id, void *arg,
	const int64_t *values, unsigned value_count, const struct pprof_sample_label *labels, unsigned label_count,
	const uint8_t **ret, size_t *ret_size)
{
	size_t at, end, size;
	int    r = ids_pack(p, pcs, count, id, arg, &at);

	if (r < 0)
		return r;
	end = IDS_END + tail_pack(p->bytes + IDS_END, values, value_count, labels, label_count);
	if (at < IDS_END) {
		size = IDS_END - at;
		at -= varint_size(size);
		varint_write(p->bytes + at, size);
		p->bytes[--at] = TAG_IDS;
	}
	size = end - at;
	at -= varint_size(size);
	varint_write(p->bytes + at, size);
	p->bytes[--at] = TAG_SAMPLE;
	*ret = p->bytes + at;
	*ret_size = end - at;
	return 0;
}
