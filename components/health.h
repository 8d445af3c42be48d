/*
 * health.h - from results of checks to the text a probe gets; no sockets here.
 *
 * The answers are those of Kubernetes' own components, which operators know how to
 * read: "ok", or with ?verbose and on failure a line a check; ?exclude=NAME leaves
 * one out; /readyz/NAME asks for one alone.
 */
#ifndef COMPONENTS_HEALTH_H
#define COMPONENTS_HEALTH_H

#include <stdbool.h>
#include <stddef.h>

struct health_result {
	char *name;
	char *text; /* a reason, or a remark of a check that passed; "" if none */
	int   status;
};

/* Start with zeros; the loop itself is no row, it is told by stuck. */
struct health_results {
	struct health_result *items;
	size_t                count;
	bool                  stuck;  /* the loop did not answer: nothing is known of the checks */
	bool                  failed; /* no memory for a row: nothing may be called well */
};

struct health_answer {
	int    status; /* 200, 404, 500 */
	char  *body;   /* the caller's, free() */
	size_t size;
};

void health_results_add(struct health_results *r, const char *name, int status, const char *text);
void health_results_clear(struct health_results *r);
/* "name: reason; ..." of all that failed, "" if none; free() it; NULL: no memory. */
char *health_results_failing(const struct health_results *r);

/* /healthz, /livez, /readyz, or one of them and a name behind it. */
bool health_path_known(const char *path);
/* query may be NULL.  0 or -ENOMEM. */
int health_answer(const char *path, const char *query, const struct health_results *r, struct health_answer *ret);

#endif
