/*
 * profiling_extract.c - the options about profiling for a daemon that others wrote: out of its
 * command line, and nothing else of it is changed.
 *
 *     component_profiling_extract(&argc, argv, "memcached", 6071, &profiling, &err);   first in main()
 *     component_profiling_begin(profiling, NULL, NULL, &err);                          a daemon by now
 *     component_after_fork_worker();                                                   in each worker
 *     component_profiling_end(profiling);                                              at its end
 *
 * What a stranger would get wrong: the flags stay, although everything is read: the rows' strings are
 * theirs, and "begin" comes much later.
 *
 * Tests: tests/components/adopted.t.
 */
#include <config.h>

#include "profiling_rows.h"
#include "profiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The pointers alone: the strings are the process's.  None of what is no command line. */
static char **
copied(const int *argc, char **argv)
{
	size_t count = argc && *argc > 0 && argv ? (size_t)*argc : 0;
	char **copy = calloc(count + 1, sizeof(*copy));

	if (copy && count > 0)
		memcpy(copy, argv, count * sizeof(*copy));
	return copy;
}

int
component_profiling_extract(int *argc, char **argv, const char *name, unsigned port,
	struct component_profiling_rows **ret, struct component_error *err)
{
	const struct component_flags_spec spec = COMPONENT_FLAGS_SPEC(.name = name,
		.summary = "The options about profiling, which this program takes beside its own.", .version = "");
	struct component_profiling_rows  *p = NULL;
	struct component_flags           *f = NULL;
	int                               r = component_flags_new(&spec, &f, err);

	if (r == 0)
		r = component_profiling_add(f, port, &p, err);
	if (r < 0)
		goto out;
	p->argv = copied(argc, argv);
	r = component_flags_extract(argc, argv, f, err);
	if (r >= 0 && !p->argv) {
		component_error_set(err, "%s: out of memory", name);
		r = -ENOMEM;
	}
	if (r < 0)
		goto out;
	p->owns_flags = true;
	if (r == 0)
		profiling_rows_ask_file(p, NULL); /* while its path leads there; begin tells what is wrong */
	if (r == 0 && profiling_rows_wanted(p))
		profiler_foresee(); /* begin may come after chroot(2) and in a child */
	*ret = p;
	return r;
out:
	component_flags_free(f);
	if (p)
		free(p->argv);
	free(p); /* it has started nothing, and another server may run */
	return r;
}

char **
component_profiling_argv(const struct component_profiling_rows *p)
{
	return p->argv;
}

const char *
component_profiling_output(const struct component_profiling_rows *p)
{
	return component_flags_output(p->flags);
}
