/*
 * debug_pages.h - what the debug socket serves besides profiles.
 */
#ifndef COMPONENTS_DEBUG_PAGES_H
#define COMPONENTS_DEBUG_PAGES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <component/component.h>

/* One question at a time goes to the loop; all under lock but c. */
struct debug_pages {
	struct component *c;
	pthread_mutex_t   lock;
	pthread_cond_t    changed;
	bool              asked;   /* posted, and the loop has not come to it */
	bool              waiting; /* somebody wants the answer */
	bool              answered;
	bool              set_verbosity; /* else the options are wanted */
	int64_t           verbosity;
	char             *answer;
};

void debug_pages_init(struct debug_pages *p, struct component *c);
void debug_pages_release(struct debug_pages *p);
/* A component_profiler_page_fn; arg is a struct debug_pages. */
int  debug_pages_answer(void *arg, const char *method, const char *path, const char *body, char **ret_text);

#endif
