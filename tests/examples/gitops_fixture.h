/*
 * gitops_fixture.h - a root of its own for each test of what the controllers share.
 */
#ifndef TESTS_EXAMPLES_GITOPS_FIXTURE_H
#define TESTS_EXAMPLES_GITOPS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gitops/gitops.h"

static char root[64];
static struct component_error err;

static int
root_make(void **state)
{
	(void)state;
	strcpy(root, "/tmp/component-gitops-XXXXXX");
	*err.text = '\0';
	return mkdtemp(root) == NULL ? -1 : 0;
}

static int
root_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int
root_remove(void **state)
{
	(void)state;
	return nftw(root, root_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A path below the root; good for four calls. */
static const char *
at(const char *path)
{
	static char full[4][256];
	static unsigned next;
	char *p = full[next++ % 4];

	snprintf(p, sizeof full[0], "%s/%s", root, path);
	return p;
}

static inline void
put(const char *path, const char *text)
{
	assert_int_equal(gitops_file_write(root, path, text, false, &err), 0);
}

#endif
