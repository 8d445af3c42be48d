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
#include "tree.h"

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
root_remove(void **state)
{
	(void)state;
	return tree_remove(root);
}

static const char *
at(const char *path)
{
	return tree_path(root, path);
}

static inline void
put(const char *path, const char *text)
{
	assert_int_equal(gitops_file_write(root, path, text, false, &err), 0);
}

#endif
