/*
 * dump.c - the memory of a dump.
 */
#include <config.h>

#include "dump.h"

#include <string.h>
#include <sys/mman.h>

#include "labels.h"

void
dump_release(struct dump *d)
{
	for (size_t i = 0; i < d->count; i++)
		labels_unref(d->threads[i].labels);
	if (d->room)
		munmap(d->threads, d->room * sizeof(*d->threads));
	if (d->pc_room)
		munmap(d->pcs, d->pc_room * sizeof(*d->pcs));
	memset(d, 0, sizeof(*d));
}
