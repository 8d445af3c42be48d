/*
 * page.h - a profile as a page for browsers, in one file.
 *
 *   threads  one at a time for one struct pprof
 *   source   components/componentctl/files/page.c
 */
#ifndef COMPONENTCTL_PAGE_H
#define COMPONENTCTL_PAGE_H

#include "read.h"

/* path gets the viewer with p inside, whose name there is `name`; viewer: viewer.html.gz; "" or NULL: as installed.
 * Before read_drop_frames().  0, or a negative errno and a sentence. */
int page_save(const struct pprof *p, const char *name, const char *viewer, const char *path, struct component_error *err);

#endif
