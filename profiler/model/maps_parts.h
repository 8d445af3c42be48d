/*
 * maps_parts.h - what the files of maps.h share.
 */
#ifndef MODEL_MAPS_PARTS_H
#define MODEL_MAPS_PARTS_H

#include "maps.h"

/* maps_loader.c: the lines of all code and of the headers before it, into an empty m with a
 * budget.  0; -EAGAIN: the loader is at work; or another negative errno. */
int maps_of_loader(struct maps *m);

#endif
