/*
 * profile.h - struct profile, the currency: collectors make it, encoders read it.
 *
 * Samples name stacks by their id in the stack table and hold a reference each, and
 * label sets (labels.h) likewise.
 * Memory is from mmap, so that making one never enters the daemon's malloc.
 */
#ifndef MODEL_PROFILE_H
#define MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROFILE_TYPES_MAX    4
#define PROFILE_COMMENTS_MAX 2048 /* bytes, newline-separated */

struct profile_type {
	const char *type; /* "inuse_space", constant */
	const char *unit; /* "bytes" */
};

struct profile_sample {
	uint32_t stack; /* stack_table id, one reference held */
	uint32_t labels; /* label set, one reference held; 0: none */
	int64_t  event_bytes; /* size of one block, of one write; tells samples apart, as labels do; 0: none */
	int64_t  values[PROFILE_TYPES_MAX];
	int64_t  counted_values[PROFILE_TYPES_MAX]; /* as sampled, where values are scaled up: for texts; else 0 */
};

/* What a text of heap samples says of the whole process, in bytes. */
struct profile_process {
	bool    known;
	int64_t heap, heap_free, heap_released; /* from the kernel; free inside; of that not resident */
	int64_t stacks, stacks_mapped;          /* touched; in all */
};

struct profile {
	const char         *name; /* "heap"; constant */
	struct profile_type types[PROFILE_TYPES_MAX];
	unsigned            type_count;
	struct profile_type period_type;
	int64_t             period;
	const char         *default_type; /* NULL: unset, readers take the last */
	int64_t             time_ns;      /* UTC: snapshot now, CPU start */
	int64_t             begun_ns;     /* CLOCK_MONOTONIC: when it was initialised */
	int64_t             duration_ns;  /* 0 for snapshots */
	int64_t             one_in;       /* one event in so many was sampled, 0: not said */
	uint64_t            lost;         /* samples that found no room */
	bool                lost_told;    /* one of the samples has them, under [lost samples] */
	uint64_t            truncated;    /* stacks that end early */
	bool                alone; /* its text says nothing of the process */
	struct profile_process process;
	char                comments[PROFILE_COMMENTS_MAX];
	struct profile_sample *samples;
	size_t              count, capacity;
};

void profile_init(struct profile *p, const char *name);
/* Takes over one reference of the stack and one of the labels.  0 or -ENOMEM (they are then dropped). */
int  profile_add(struct profile *p, const struct profile_sample *s);
void profile_comment(struct profile *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Merges samples of equal stack, labels and event_bytes; sorts by the last value, largest first. */
void profile_merge(struct profile *p);
/*
 * profile_subtract - makes p what has been added since before, a delta
 *
 * Samples of one stack, label set and event_bytes become one; values may be negative, and a sample
 * whose values are all zero is left out.  The duration is the distance of the two, whatever the
 * clock was set to meanwhile.  before is released.
 *
 *   returns  0, or -ENOMEM: then p is as it was
 */
int  profile_subtract(struct profile *p, struct profile *before);
/* The same samples once more.  0 or -ENOMEM. */
int  profile_copy(const struct profile *p, struct profile *ret);
/* What was made becomes *ret, merged; after an error it is released, and *ret stays as it is.
 * Returns 0, or err, which is 0 or negative. */
int  profile_done(struct profile *made, int err, struct profile *ret);
/* Drops references and memory; a released profile may be initialised again. */
void profile_release(struct profile *p);

#endif
