/*
 * wall.c - fgprof: where threads spend time, running or not, over a window.
 *
 * A route under the name that Go people know it by, at both places where scrapers look
 * for it, /debug/pprof/fgprof and /debug/fgprof; not a row of kinds.def, since Go's index
 * has none.
 *
 * Tests: tests/fgprof.t.
 */
#include <config.h>

#include "serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wall.h"

static const struct kind kind = { .name = "fgprof", .description = "", .windowed = true };

const struct kind *
wall_kind(const char *name)
{
	return strcmp(name, kind.name) == 0 ? &kind : NULL;
}

bool
wall_is_kind(const struct kind *k)
{
	return k == &kind;
}

int
wall_run(struct job *j)
{
	struct wall_window *window;
	struct profile      p;
	char                text[256];
	int                 r = wall_window_open(&window);

	if (r) {
		snprintf(text, sizeof(text), "Could not enable wall-clock profiling: %s",
			r == -EXDEV ? "/proc is that of another pid namespace" : strerror(-r));
		job_fail(j, 500, text);
		return r;
	}
	job_wait(j, job_spec(j)->seconds);
	if (job_is_gone(j)) {
		wall_window_cancel(window);
		return -ECANCELED;
	}
	r = wall_window_close(window, &p);
	if (r)
		return r;
	r = job_profile_write(j, &p);
	job_window_log(j, &p);
	profile_release(&p);
	return r;
}
