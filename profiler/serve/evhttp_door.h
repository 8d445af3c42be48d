/*
 * evhttp_door.h - one request on a program's own evhttp, answered by our server's thread.
 *
 *   threads  that of the request's loop
 *   fork     a child does not go on with what its parent was asked
 *   source   profiler/serve/evhttp_door.c
 */
#ifndef SERVE_EVHTTP_DOOR_H
#define SERVE_EVHTTP_DOOR_H

#include <event2/http.h>

/* Takes the request over.  path: as the routes know it; prefix: what stood before it. */
void evhttp_door_ask(struct evhttp_request *request, const char *path, const char *prefix);
/* In a child. */
void evhttp_door_forked(void);

#endif
