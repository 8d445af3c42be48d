/*
 * pprof_sample.h - one Sample of profile.proto as bytes.
 */
#ifndef ENCODE_PPROF_SAMPLE_H
#define ENCODE_PPROF_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "labels.h"
#include "profile.h"
#include "stack_table.h"

#define PPROF_SAMPLE_IDS_MAX  (STACK_FRAMES_MAX * 10) /* bytes: a number takes ten at most */
#define PPROF_SAMPLE_HEAD_MAX 16                      /* two tags and two lengths */
#define PPROF_SAMPLE_LABELS   (LABELS_MAX + 1)        /* the thread's, and a heap's size of block */
#define PPROF_SAMPLE_TAIL_MAX (PROFILE_TYPES_MAX * 10 + 16 + PPROF_SAMPLE_LABELS * 32)

/* Strings by their number in the string table. */
struct pprof_sample_label {
	uint64_t key, text; /* text 0: a number instead */
	int64_t  number;
};

/* All zero at first. */
struct pprof_sample {
	uintptr_t pcs[STACK_FRAMES_MAX]; /* of the last one, the root first */
	uint16_t  at[STACK_FRAMES_MAX];  /* where each one's number begins */
	unsigned  count;
	uint8_t   bytes[PPROF_SAMPLE_HEAD_MAX + PPROF_SAMPLE_IDS_MAX + PPROF_SAMPLE_TAIL_MAX];
};

/* The id of an address: 0 or a negative errno. */
typedef int pprof_sample_id_fn(void *arg, uintptr_t pc, uint64_t *ret);

/* The whole field, its tag in Profile included; borrowed until the next.  At most
 * PPROF_SAMPLE_LABELS labels.  0 or what id answered. */
int pprof_sample_pack(struct pprof_sample *p, const uintptr_t *pcs, unsigned count, pprof_sample_id_fn *id, void *arg,
	const int64_t *values, unsigned value_count, const struct pprof_sample_label *labels, unsigned label_count,
	const uint8_t **ret, size_t *ret_size);

#endif
