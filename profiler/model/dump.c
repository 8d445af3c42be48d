/*
 * dump.c - the memory of a dump.
 *
 * Tests: tests/threads/test_previous_dump.c.
 */
#include <config.h>

#include "dump.h"

#include <string.h>

#include "labels.h"
#include "pages.h"

void
dump_keep_leaked(struct dump *d)
{
	size_t to = 0;

	for (size_t i = 0; i < d->count; i++)
		if (dump_thread_is_leaked(&d->threads[i]))
			d->threads[to++] = d->threads[i];
		else
			labels_unref(d->threads[i].labels);
	d->count = to;
}

void
dump_release(struct dump *d)
{
	for (size_t i = 0; i < d->count; i++)
		labels_unref(d->threads[i].labels);
	pages_unmap(d->threads, d->room * sizeof(*d->threads));
	pages_unmap(d->pcs, d->pc_room * sizeof(*d->pcs));
	memset(d, 0, sizeof(*d));
}
