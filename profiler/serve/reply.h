/*
 * reply.h - answers that are made at once: a text, a page, an error.
 *
 * Each ends the answer.  name, value: one more header, whose name may be NULL.
 *
 *   threads  that of the answer
 *   source   profiler/serve/reply.c
 */
#ifndef SERVE_REPLY_H
#define SERVE_REPLY_H

#include "answer.h"

#define SERVE_HTML   "text/html; charset=utf-8"
#define SERVE_JSON   "application/json"
#define SERVE_BINARY "application/octet-stream"

void reply_text(struct answer *a, int status, const char *type, const void *body, size_t size);
void reply_with(struct answer *a, int status, const char *type, const void *body, size_t size, const char *name,
	const char *value);
/* The same, as gzip where the client takes that. */
void reply_packed(struct answer *a, const char *type, const void *body, size_t size);
/* Text, nosniff and X-Go-Pprof, which makes go tool pprof show the text.  Adds a newline. */
void reply_error(struct answer *a, int status, const char *text);
void reply_error_with(struct answer *a, int status, const char *text, const char *name, const char *value);

#endif
