/*
 * top.h - what of a profile is shown, as go tool pprof -top, -tree, -peek and -list have it; or as folded stacks.
 *
 *   limits   TOP_MEMORY_MAX
 *   threads  one at a time for one profile
 *   source   components/componentctl/views/top.c, graph.c, folded.c, listing.c
 */
#ifndef COMPONENTCTL_TOP_H
#define COMPONENTCTL_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/error.h>

#include "read.h"
#include "text.h"

#define TOP_MEMORY_MAX ((size_t)1 << 30) /* bytes of the tables made for one output */

struct view {
	const char *focus, *ignore; /* regular expressions; NULL or "": none */
	const char *peek;           /* a tree of functions alone that it finds, none left out; NULL or "": all */
	const char *list;           /* of listing_print(): the functions */
	const char *source_path, *trim_path; /* folders with ':' between them; NULL or "": this one, and what is usual */
	const char *sample_index;   /* a type's name or number; NULL or "": the usual one */
	int64_t     rows;           /* at most; 0: all */
	bool        cum;            /* sorted by it */
	bool        brief;          /* without what is the same for each window of a program, as its file */
	bool        tree;           /* with who calls whom */
};

/* They add to the text.  0; -EINVAL and a sentence: the view asks for what is not there; -E2BIG and a sentence: it would
 * be too long; -ENOMEM.  Notes, such as that focus has found nothing, are added to the other text, a line each. */
int top_printed(const struct text *out, struct component_error *err); /* 0, or that -E2BIG */
int top_print(const struct pprof *p, const struct view *v, struct text *out, struct text *notes, struct component_error *err);
int folded_print(const struct pprof *p, const struct view *v, struct text *out, struct text *notes, struct component_error *err);
/* As a picture of a flame graph, SVG; name: what it is called there. */
int picture_print(const struct pprof *p, const char *name, const struct view *v, struct text *out, struct text *notes,
	struct component_error *err);
int listing_print(const struct pprof *p, const struct view *v, struct text *out, struct text *notes, struct component_error *err);

#endif
