/*
 * status_pages.h - what a component says of itself, beside its profiles and by their rules.
 */
#ifndef COMPONENTS_STATUS_PAGES_H
#define COMPONENTS_STATUS_PAGES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <component/component.h>
#include <component/profiler.h>

#include "text.h"

/* One question at a time goes to the loop; all under lock but c.  While asked, the question does not change, and the loop reads it
 * without the lock. */
struct status_pages {
	struct component *c;
	pthread_mutex_t   lock;
	pthread_cond_t    changed;
	bool              asked;   /* posted, and the loop is not done with it */
	bool              waiting; /* somebody wants the answer */
	bool              answered;
	const struct status_page *page; /* what is asked for */
	const char       *version; /* of the JSON form; NULL: text */
	int64_t           verbosity; /* to be set, if the method is PUT */
	bool              put;
	struct text       answer;
};

/* For struct component_profiler_options. */
extern const char *const status_pages_list[];

void status_pages_init(struct status_pages *p, struct component *c);
void status_pages_release(struct status_pages *p);
/* A component_profiler_page_fn; arg is a struct status_pages. */
void status_pages_answer(void *arg, struct component_profiler_page *page);

#endif
