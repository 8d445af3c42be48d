/*
 * check.c - what --check-config looks at beside the options: is there a root?
 *
 * In a file of its own, for it is the only one here that asks the component.
 *
 * Tests: tests/components/reload.t.
 */
#include "gitops.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* --check-config makes nothing, so those below the root may be missing; a root that was named may not. */
int
gitops_directories_check(struct component *c, const struct gitops_directories *d, struct component_error *err)
{
	int dir, r = 0;

	if (!component_flags_given(component_flags(c), "check-config") || !component_flags_given(component_flags(c), "root"))
		return 0;
	dir = gitops_open_dir(d->root, "", false);
	if (dir < 0)
		r = component_flags_fault(component_flags(c), "root", err, "%s; name a directory that is there", strerror(-dir));
	else if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) < 0)
		r = component_flags_fault(component_flags(c), "root", err, "%s; name a directory that this user may write to",
			strerror(errno));
	if (dir >= 0)
		close(dir);
	return r;
}
