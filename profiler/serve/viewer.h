/*
 * viewer.h - the page for browsers at /debug/pprof/: a file that is installed beside the libraries.
 *
 *   threads  viewer_reply(): the server's; the rest: any
 *   source   profiler/serve/viewer.c
 */
#ifndef SERVE_VIEWER_H
#define SERVE_VIEWER_H

#include <stdbool.h>
#include <stddef.h>

#include "answer.h"

struct serve;

/* Is it a browser that asks for the index? */
bool viewer_wanted(const struct ask *ask);
/* The page; or the index as others get it, where the file is missing. */
void viewer_reply(struct serve *s, struct answer *a);
/* Its path: by the options, or as installed; s may be NULL. */
const char *viewer_file(const struct serve *s);
/* A sentence for an error of html.h's. */
void viewer_why(const char *path, int error, char *buf, size_t size);
/* Why there is none, or "". */
void viewer_note(const struct serve *s, char *buf, size_t size);

#endif
