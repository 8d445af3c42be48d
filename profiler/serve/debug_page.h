/*
 * debug_page.h - pages of the daemon's own on the debug socket.
 *
 *   threads  the server's
 *   source   profiler/serve/debug_page.c
 */
#ifndef SERVE_DEBUG_PAGE_H
#define SERVE_DEBUG_PAGE_H

#include "job.h"

/* Is it for options.debug_page; and its job if it is. */
bool debug_page_is_for(const struct serve *s, const struct ask *ask);
bool debug_page_route(struct serve *s, struct answer *a);

#endif
