/*
 * limitations.h - what is less in this process than it could be, and why.
 */
#ifndef SERVE_LIMITATIONS_H
#define SERVE_LIMITATIONS_H

typedef void limitations_fn(void *arg, const char *what, const char *why);

/* Asked anew each time, some system calls.  why is the callee's until fn returns. */
void limitations_each(limitations_fn *fn, void *arg);

#endif
