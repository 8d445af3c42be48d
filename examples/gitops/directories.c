/*
 * directories.c - where things are: below --root, or where an option says.
 *
 * Those below the root are made where they are missing, so that a first start
 * works; one that was named is a mistake when it is not there.
 *
 * Tests: tests/examples/controllers.t.
 */
#define _GNU_SOURCE /* asprintf */
#include "gitops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
find(const char *root, const char **path, const char *name, struct component_error *err)
{
	char *full = NULL;
	int dir;

	if (*path == NULL)
		return 0;
	if (**path != '\0') {
		dir = gitops_open_dir(*path, "", false);
		if (dir < 0)
			component_error_set(err, "option '--%s-dir': '%s': %s", name, *path, strerror(-dir));
	} else {
		dir = gitops_open_dir(root, name, true);
		if (dir < 0)
			component_error_set(err, "option '--root': '%s': cannot make '%s' there: %s; write --root=DIR, a directory "
				"of yours (scripts/demo-input DIR makes one to try)", root, name, strerror(-dir));
		else if (asprintf(&full, "%s/%s", root, name) >= 0)
			*path = full; /* until the process ends */
	}
	if (dir < 0)
		return dir;
	close(dir);
	return 0;
}

int
gitops_directories_find(struct gitops_directories *d, struct component_error *err)
{
	struct { const char **path, *name; } all[] = {
		{ &d->applications, "applications" }, { &d->sources, "sources" }, { &d->operations, "operations" },
		{ &d->targets, "targets" }, { &d->managed, "managed" }, { &d->status, "status" },
		{ &d->locks, "locks" },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof all / sizeof *all; i++)
		r = find(d->root, all[i].path, all[i].name, err);
	return r;
}
