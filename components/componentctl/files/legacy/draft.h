/*
 * draft.h - a profile of gperftools or jemalloc while it is read, and what its formats have in common.
 *
 * Functions that return an int: 0, or a negative errno value with a sentence in l->err, without its subject.
 *
 *   memory   all of it is the profile's arena's
 *   threads  one at a time for one struct legacy
 *   source   components/componentctl/files/legacy/draft.c
 */
#ifndef COMPONENTCTL_LEGACY_DRAFT_H
#define COMPONENTCTL_LEGACY_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read.h"

#define LEGACY_VALUES_MAX 4

/* A sample, whose stack is addresses. */
struct draft {
	size_t   first; /* of the addresses */
	uint32_t count;
	int64_t  values[LEGACY_VALUES_MAX];
	int64_t  block_size; /* -1: not known */
};

struct legacy {
	struct pprof           *p;
	struct component_error *err;
	const char             *at, *end; /* what is still to be read */
	struct draft           *drafts;
	size_t                  count, room;
	uint64_t               *addresses, *distinct;
	size_t                  address_count, address_room;
	int64_t                 period;
	bool                    is_sampled, has_all; /* has_all: what was allocated since the start as well */
};

/* A format is one of these: how it is known, how it is read, and what is left to do once it has names. */
struct legacy_format {
	bool (*is)(const char *data, size_t size);
	int (*parse)(struct legacy *l);
	void (*finish)(struct pprof *p); /* NULL: nothing */
};
extern const struct legacy_format legacy_cpu, legacy_heap, legacy_jemalloc, legacy_contention;

int legacy_refuse(struct legacy *l, const char *why); /* -EINVAL */
int legacy_no_memory(struct legacy *l);               /* -ENOMEM */
/* Room for so many, which the file cannot have more of. */
int legacy_make_room(struct legacy *l, size_t samples, size_t addresses);
/* Room for each line and each address that there is. */
int legacy_make_room_for_lines(struct legacy *l);
int legacy_set_types(struct legacy *l, const struct pprof_type *types, size_t count, struct pprof_type period_type);

struct line {
	const char *at, *end;
};
/* Without blanks around it.  False: there is none. */
bool legacy_next_line(struct legacy *l, struct line *ret);
bool legacy_begins(const struct line *line, const char *word);
/* Passes over blanks and a word; over "-12"; over "N: BYTES [N: BYTES]". */
bool legacy_take(struct line *line, const char *word);
bool legacy_take_number(struct line *line, int64_t *ret);
bool legacy_take_amounts(struct line *line, int64_t ret[4]);
/* Do the mappings begin behind this line? */
bool legacy_is_map(const struct line *line);
/* A sample with d's values and the addresses that the line has. */
int  legacy_add_stack(struct legacy *l, struct line *line, struct draft *d);
/* What is left behind the samples. */
int  legacy_read_map(struct legacy *l, struct line *line);
/* The nearest number there is. */
int64_t legacy_whole(double value);

/* The profile's locations, an address each, and its samples. */
int legacy_make_locations(struct legacy *l);
int legacy_make_samples(struct legacy *l);

#endif
