/*
 * index.h - the page at /debug/pprof/.
 *
 *   threads  the server's
 *   source   profiler/serve/index.c
 */
#ifndef SERVE_INDEX_H
#define SERVE_INDEX_H

#include "answer.h"

void index_reply(struct answer *a);

#endif
