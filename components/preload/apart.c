/*
 * apart.c - the agent's server on threads that have a table of descriptors of their own: apart.h.
 *
 *     the program's thread ──▶ "component-table": new table ── starts the server, whose threads all have it
 *           takes copies  ◀── of the listeners, and of what wakes the server
 *
 * It ends with the first rest (rest.h): from then on there is one table, as if there had never been two.
 *
 * Tests: tests/components/own_table.t.
 */
#include <config.h>

#include "apart.h"

#include "address.h"
#include "at_exit.h"
#include "our_table.h"
#include "profiler.h"
#include "record.h"
#include "signal_masks.h"
#include "under_valgrind.h" /* which knows not all of the calls, and says so */

struct start {
	const struct component_profiler_options *options;
	struct component_error                  *err;
	int                                      r;
};

static size_t
run(void *arg, int fds[OUR_TABLE_SHOWN_MAX])
{
	struct start *s = arg;

	s->r = component_profiler_start_options(s->options, s->err);
	if (!s->r)
		return profiler_show(fds);
	our_table_fail(); /* the port is taken: another one is tried */
	return 0;
}

static bool
is_inherited(const char *text)
{
	struct address a;

	return text && address_parse(text, &a, NULL, 0) == 0 && a.kind == ADDRESS_FD;
}

int
component_profiler_start_apart(const struct component_profiler_options *options, struct component_error *err)
{
	struct start s = { options, err, 0 };
	int          copies[OUR_TABLE_SHOWN_MAX];
	size_t       count;

	at_exit_begin();
	record_takes_words(!is_inherited(options->address)); /* others listen on a socket that is inherited */
	if (is_inherited(options->address) || under_valgrind || our_table_begin(run, &s, copies, &count)) {
		s.r = component_profiler_start_options(options, err);
	} else {
		if (count > 0)
			profiler_shown(copies, count);
		signal_masks_thread(); /* the server was not started by this one */
	}
	at_exit_began();
	return s.r;
}
