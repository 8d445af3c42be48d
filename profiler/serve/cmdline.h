/*
 * cmdline.h - the command line of this process, without secrets.
 *
 *   threads  the server's
 *   source   profiler/serve/cmdline.c
 */
#ifndef SERVE_CMDLINE_H
#define SERVE_CMDLINE_H

#include <stddef.h>

#include "answer.h"

/* redact: names of options whose values are withheld, up to NULL; nullable. */
void cmdline_reply(struct answer *a, const char *const *redact);
/* raw: NUL-terminated words of size bytes; answers malloc'd memory and its size. */
char *cmdline_redact(const char *raw, size_t size, const char *const *redact, size_t *ret_size);

#endif
