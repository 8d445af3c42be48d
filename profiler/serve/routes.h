/*
 * routes.h - from what is asked to whoever answers, by the paths of Go's net/http/pprof.
 *
 *   threads  the server's
 *   source   profiler/serve/routes.c
 */
#ifndef SERVE_ROUTES_H
#define SERVE_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "answer.h"

struct serve;
struct text;

/* For struct httpd_options, and for other doors; serve is a struct serve. */
void   routes_on_request(struct answer *a, void *serve);
/* Is it a path of ours, on whatever server?  Any thread. */
bool   routes_has(const char *path);
size_t routes_body_max(const struct ask *ask, void *serve);

/* Who answers, each in the file of its name. */
void   index_reply(struct serve *s, struct answer *a);
/* The list that all get but browsers, and its headers. */
extern const struct answer_header index_headers[];
void   index_write(struct serve *s, struct text *page);
void   cmdline_reply(struct serve *s, struct answer *a);
void   status_reply(struct serve *s, struct answer *a);
void   stop_reply(struct serve *s, struct answer *a);
void   symbol_reply(struct serve *s, struct answer *a);
/* Is it one of options.pages, with a body that is wanted; and its answer if it is one. */
bool   page_takes_body(const struct serve *s, const struct ask *ask);
bool   page_reply(struct serve *s, struct answer *a);

/* This process' command line as a GET gives it: malloc'd memory, with a NUL behind it.  NULL and errno: ENOENT where /proc does
 * not tell it. */
char  *cmdline_text(const char *const *redact, size_t *ret_size);
/* raw: NUL-terminated words of size bytes; redact: names of options whose values are withheld, up to NULL, or NULL.
 * Answers malloc'd memory and its size. */
char  *cmdline_redact(const char *raw, size_t size, const char *const *redact, size_t *ret_size);
/* One word of what is asked of symbol; 0 for what is no number. */
uint64_t symbol_number(const char *word, size_t size);

#endif
