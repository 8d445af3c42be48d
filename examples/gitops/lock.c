/*
 * lock.c - one process of a program works below a root; the next one waits or is refused.
 *
 * Two of a program would each write what the other just wrote, and remove what the other
 * has just put there.  Different programs share a root: each has a lock of its own, in
 * locks/, and the kit keeps it (component_lead()), with --leader-elect and without.
 *
 * Tests: tests/examples/test_gitops_lock.c, tests/examples/controllers.t, tests/examples/leader.t.
 */
#include "gitops.h"

/* One root a process. */
static struct {
	struct gitops_directories *dirs;
	int (*begin)(struct component *c, struct component_error *err);
} lock;

/* What a predecessor left unfinished: nobody else writes under these names. */
static void
sweep(const struct gitops_directories *d)
{
	const char *const all[] = { d->applications, d->sources, d->operations, d->targets, d->managed, d->status };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i] != NULL)
			gitops_partials_sweep(all[i]);
}

static int
sweep_and_begin(struct component *c, struct component_error *err)
{
	sweep(lock.dirs);
	return lock.begin(c, err);
}

int
gitops_begin(struct component *c, struct gitops_directories *d,
	int (*begin)(struct component *c, struct component_error *err), struct component_error *err)
{
	struct component_lead_spec spec = { .size = sizeof spec, .option = "locks-dir", .guards = "root", .always = true,
		.advice = "stop it, name another --root, or wait for it with --wait-for-root", .begin = sweep_and_begin };
	int r = gitops_directories_find(d, err);

	if (r != 0)
		return r;
	lock.dirs = d;
	lock.begin = begin;
	gitops_partials_own(component_name(c));
	spec.directory = d->locks;
	spec.wait = d->wait;
	return component_lead(c, &spec, err);
}
