/*
 * evhttp_ask.h - what is asked on a program's own evhttp, copied.
 *
 *   threads  copy: that of the request's loop; free: any
 *   source   profiler/serve/evhttp_ask.c
 */
#ifndef SERVE_EVHTTP_ASK_H
#define SERVE_EVHTTP_ASK_H

#include <event2/http.h>

#include "httpd.h"

struct evhttp_ask {
	struct ask ask;     /* its body is not there if it is longer than HTTPD_BODY_BYTES_MAX */
	int        refused; /* the status that our port would refuse it with; 0: none */
	char      *path;
	char       peer[ASK_PEER_BYTES];
	char       text[];
};

/* path: as the routes know it, escaped; prefix: what stood before it.  NULL: no memory. */
struct evhttp_ask *evhttp_ask_copy(struct evhttp_request *request, const char *path, const char *prefix);
void evhttp_ask_free(struct evhttp_ask *a);

#endif
