/*
 * front.h - the HTTP server of what a component answers itself: probes, metrics.
 *
 * Parts that are told the same address share one server, and so does profiling, which is
 * handed what is for it.  See front.c.
 *
 *   threads  the component's, but for what struct front_page says
 *   source   components/front.c
 */
#ifndef COMPONENTS_FRONT_H
#define COMPONENTS_FRONT_H

#include <stdbool.h>

#include <component/component.h>

#include "address.h"
#include "answer.h"
#include "httpd.h"

/* What a part answers, and where. */
struct front_page {
	struct component *c;
	const char *const *address; /* the option's value, which parsing changes */
	const char *what;    /* "health", for messages */
	const char *serving; /* "serving health", for the log */
	const char *const *paths; /* "/healthz", ... NULL, for who asks for another one */
	const char *option; /* "health-probe-bind-address" */
	bool      (*has)(const char *path);
	/* GET or HEAD of a path that it has.  On the server's thread; must answer. */
	void      (*answer)(struct answer *a, void *arg);
	void       *arg;
	struct front_page *next; /* front.c's */
};

struct front;

/* From a part's init() to its free(): it is looked at by the checks of the others. */
void front_page_add(struct front_page *page);
void front_page_remove(struct front_page *page);
/* A component_flags_check_fn, of a struct front_page: its address and that of another page, or of profiles, must not
 * be a part of each other. */
int  front_check(struct component_flags *f, void *page, struct component_error *err);

/* Its address is not 0: front_join() will serve it. */
bool front_is_wanted(const struct front_page *page);
/* Serves it where its address says: *ret stays NULL where that is 0.  The page is borrowed until
 * front_leave(), and *ret set before anybody can ask: that may be before front_join() returns.
 * A negative errno with err filled. */
int  front_join(const struct front_page *page, struct front **ret, struct component_error *err);
/* Not asked any more.  Who is last ends the server: answers that are still owed then end with their
 * on_gone().  f may be NULL. */
void front_leave(struct front *f, const struct front_page *page);
/* The server; NULL after a fork, in the child. */
struct httpd *front_httpd(struct front *f);

/* extra: a header besides; its name may be NULL. */
void front_answer_plain(struct answer *a, int status, const char *text, struct answer_header extra);

#endif
