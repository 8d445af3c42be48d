/*
 * shown.h - which samples of a profile, and which of their values, a view shows.
 *
 *   source   components/componentctl/shown.c
 */
#ifndef COMPONENTCTL_SHOWN_H
#define COMPONENTCTL_SHOWN_H

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

#endif
