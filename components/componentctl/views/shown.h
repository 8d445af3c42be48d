/*
 * shown.h - which samples of a profile, and which of their values, a view shows.
 *
 *   source   components/componentctl/views/shown.c
 */
#ifndef COMPONENTCTL_SHOWN_H
#define COMPONENTCTL_SHOWN_H

#include "match.h"
#include "top.h"

struct shown {
	const struct pprof  *p;
	size_t               type;
	struct pprof_sample *samples; /* in the arena */
	size_t               count;
	int64_t              total; /* of all samples, shown or not, without their signs */
};

int shown_select(struct shown *ret, const struct pprof *p, const struct view *v, struct arena *a, struct text *notes,
	struct component_error *err);

/* An option's pattern; none, and m stays as it is, where it is NULL or "".  0 or -EINVAL. */
int shown_compile(struct match *m, const char *option, const char *pattern, struct component_error *err);
/* The same, before anything is measured. */
int shown_check(const char *option, const char *pattern, struct component_error *err);

#endif
