/*
 * bar.c - how much of a window has passed.
 *
 * Tests: tests/componentctl/profile.t
 */
#include <config.h>

#include "bar.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define COLUMNS 40
#define FIRST   0.2 /* seconds: what is over at once needs none */

void
bar_begin(struct bar *b, int64_t seconds)
{
	*b = (struct bar){ .is_wanted = seconds > 0 && isatty(STDERR_FILENO), .seconds = seconds };
	clock_gettime(CLOCK_MONOTONIC, &b->begin);
}

double
bar_passed(const struct bar *b)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - b->begin.tv_sec) + (double)(now.tv_nsec - b->begin.tv_nsec) / 1e9;
}

void
bar_show(struct bar *b, const char *what_follows)
{
	static const char filled[] = "########################################";
	double            passed = bar_passed(b);
	int               columns;

	if (!b->is_wanted || passed < FIRST)
		return;
	passed = passed < (double)b->seconds ? passed : (double)b->seconds;
	columns = (int)(passed * COLUMNS / (double)b->seconds);
	fprintf(stderr, "\r[%-*.*s] %d s of %" PRId64 " s%s", COLUMNS, columns, filled, (int)passed, b->seconds, what_follows);
	fflush(stderr);
	b->is_there = true;
}

void
bar_end(struct bar *b)
{
	if (b->is_there)
		fprintf(stderr, "\r%*s\r", COLUMNS + 40, "");
	b->is_there = false;
}
