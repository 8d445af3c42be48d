/*
 * read.h - a pprof file in memory, or one of gperftools or jemalloc (legacy.h), whoever has written it.
 *
 *     read_profile(data, size, &p, &err);
 *     ... p.samples[i].stack[0]->functions[0]->name ...
 *     read_release(&p);
 *
 * A file may have been made to harm its reader.  Every id and index in it is checked here: pointers below
 * are never NULL, unless it says so, and lead into p.
 *
 *   limits   READ_BYTES_MAX of a file once unpacked, READ_MEMORY_MAX for all of it, READ_FRAMES_MAX, READ_NAMES_MAX
 *   threads  one at a time for one struct pprof
 *   source   components/componentctl/files/read.c
 */
#ifndef COMPONENTCTL_READ_H
#define COMPONENTCTL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/error.h>

#include "arena.h"
#include "demangle/demangle.h"

#define READ_BYTES_MAX  ((size_t)256 << 20) /* bytes, unpacked */
#define READ_MEMORY_MAX ((size_t)1 << 30) /* bytes; a message in memory is several times the one in the file */
#define READ_FRAMES_MAX ((uint64_t)1 << 28) /* functions on all stacks together: minutes of work */
#define READ_NAMES_MAX  ((uint64_t)8 << 30) /* bytes of names, counted for each function, line and so on that has them: the same */

struct pprof_function {
	const char *name, *file; /* "": not known */
	const char *system_name;
	int64_t     start_line;
};

struct pprof_mapping {
	uint64_t    start, limit, offset;
	const char *file, *build_id; /* "": not known */
	bool        has_functions, has_files, has_lines, has_inlined; /* of all its addresses, as far as there are any */
};

struct pprof_line {
	int64_t line, column;
};

/* An address, with what was inlined there first. */
struct pprof_location {
	const char                   *object; /* the file mapped there; "": none */
	uint32_t                      count;  /* of functions; 0: no name is known */
	const struct pprof_function **functions;
	const struct pprof_line      *lines;  /* of each function */
	const struct pprof_mapping   *mapping; /* NULL: none */
	uint64_t                      address;
	bool                          is_folded;
	bool                          is_dropped, has_dropped; /* by the file's drop_frames */
};

struct pprof_sample {
	uint32_t                      count;
	const struct pprof_location **stack; /* the leaf first */
	const int64_t                *values; /* type_count */
	const char                   *labels; /* bytes that are equal where the labels are: read_label() */
	size_t                        labels_size;
	bool                          is_base; /* what a difference was taken from, by -diff_base */
};

struct pprof_label {
	const char *key, *text, *unit;
	int64_t     number;
};

struct pprof_type {
	const char *type, *unit;
};

struct pprof {
	struct arena_budget    budget;
	struct arena           arena;
	struct pprof_type     *types;
	size_t                 type_count; /* at least 1 */
	size_t                 usual;      /* the type that is shown if nobody says which */
	const char            *usual_type; /* what the file says of it, which may be a type that it has not; NULL or "": nothing */
	struct pprof_sample   *samples;
	size_t                 sample_count;
	struct pprof_location *locations;
	size_t                 location_count;
	struct pprof_function *functions;
	size_t                 function_count;
	struct pprof_mapping  *mappings;
	size_t                 mapping_count;
	const char           **comments;
	size_t                 comment_count;
	const char            *object, *build_id; /* of the program; "": not known */
	int64_t                time_ns, duration_ns;
	struct pprof_type      period_type; /* "": none */
	int64_t                period;
	const char            *drop_frames, *keep_frames; /* regular expressions; "": none */
};

/* 0; -EINVAL: it is no whole profile, -ENOMEM, -EFBIG: and err is a sentence without its subject: "is cut
 * off".  p is to be released then, too. */
int  read_profile(const void *data, size_t size, struct pprof *ret, struct component_error *err);
/* A function's name as pprof shows it, of what the file says of both: demangled and short.  NULL without memory. */
const char *read_name(struct pprof *p, struct demangle_room **room, const char *name, const char *system_name);
/* Cuts what the file's own drop_frames mean off the stacks: once, before the first view, and after a merge.  0, -ENOMEM or
 * -EFBIG, as read_profile(). */
int  read_drop_frames(struct pprof *p, struct component_error *err);
/* The label at *at, at first 0, which moves on to the next one.  False: there are no more. */
bool read_label(const struct pprof_sample *s, size_t *at, struct pprof_label *ret);
/* One more, in its place.  0 or -ENOMEM. */
int  read_label_add(struct pprof *p, struct pprof_sample *s, const char *key, const char *text);
void read_release(struct pprof *p);

#endif
