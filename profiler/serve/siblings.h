/*
 * siblings.h - where the other processes of this program serve, which have forked from it or it from them.
 *
 *   threads  join, leave: who holds the lock of profiler.c; the others: any
 *   source   profiler/serve/siblings.c
 */
#ifndef SERVE_SIBLINGS_H
#define SERVE_SIBLINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SIBLING_URL_MAX 368 /* bytes with NUL; a listener's has fewer */
#define SIBLING_TCP     "http://"
#define SIBLING_UNIX    "http+unix:"

struct sibling {
	pid_t pid;
	bool  is_self;
	/* "http://127.0.0.1:6060", "http+unix:/run/x.812.sock"; begins as one of the two, and the rest
	 * is as that process says: it may mean ill. */
	char  url[SIBLING_URL_MAX];
};

/* This process serves there; again: it serves there now.  "": nowhere that has a name. */
void siblings_join(const char *url);
void siblings_leave(void);
void siblings_forked(void); /* in a child: it serves nowhere */
/* The next that lives after *at, which starts as 0; false: no more. */
bool siblings_next(size_t *at, struct sibling *ret);

#endif
