/*
 * degraded.h - what is less in this process than it could be, and why.
 */
#ifndef SERVE_DEGRADED_H
#define SERVE_DEGRADED_H

typedef void degraded_fn(void *arg, const char *what, const char *why);

/* Asked anew each time, some system calls.  why is the callee's until fn returns. */
void degraded_each(degraded_fn *fn, void *arg);

#endif
