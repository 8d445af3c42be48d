/*
 * snapshot.h - a dump, as collectors of threads answer it.
 */
#ifndef COLLECT_DUMP_SNAPSHOT_H
#define COLLECT_DUMP_SNAPSHOT_H

#include <stdbool.h>

#include "collector.h"
#include "dump.h"

/* Each thread by itself or as a profile of c's name, as params say; leaked: only those that wait for
 * ever, model/dump.h.  0 or a negative errno. */
int dump_snapshot(const struct collector *c, const struct collect_params *params, bool leaked, struct product *ret);
/* Marks the addresses of d's stacks with the objects they belong to now, as encoders want them.  It takes
 * the lock of the stack table; where that cannot be had, the rest stays as it is: d->tagged. */
void dump_tag(struct dump *d);

#endif
