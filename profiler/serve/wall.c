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
	struct wall_window *window = NULL;
	struct profile      p;
	int                 r = wall_window_open(&window);

	r = window_wait(j, r, "wall-clock profiling", wall_status());
	if (r) {
		if (window)
			wall_window_cancel(window);
		return r;
	}
	r = wall_window_close(window, &p);
	return r ? r : window_finish(j, &p);
}
