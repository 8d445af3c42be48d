/*
 * unfiltered.h - work for a thread that the program has put under a seccomp filter.
 */
#ifndef SERVE_UNFILTERED_H
#define SERVE_UNFILTERED_H

#include <stdbool.h>

#include "httpd.h"

/* Is the calling thread under a filter that was not there when the server was started?  Then fn runs on
 * a thread of ours that is not, this one waits for its end by futex(2), and the answer is true.  False: fn was
 * not called.  One caller at a time, who may end h in fn. */
bool unfiltered_run(struct httpd *h, void (*fn)(void));

#endif
