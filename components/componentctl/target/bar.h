/*
 * bar.h - how much of a window has passed, as a bar on stderr, if that is a terminal.
 *
 *   source   components/componentctl/target/bar.c
 */
#ifndef COMPONENTCTL_BAR_H
#define COMPONENTCTL_BAR_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct bar {
	bool            is_wanted, is_there;
	int64_t         seconds; /* of the window */
	struct timespec begin;
};

/* seconds 0: there is no window, and no bar. */
void   bar_begin(struct bar *b, int64_t seconds);
/* As often as one likes; what follows stands behind it. */
void   bar_show(struct bar *b, const char *what_follows);
void   bar_end(struct bar *b);
double bar_passed(const struct bar *b); /* seconds */

#endif
