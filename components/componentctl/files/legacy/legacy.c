/*
 * legacy.c - profiles as gperftools and jemalloc write them: which format, and from there to samples with names.
 *
 *     data ──▶ a format's parse() ──▶ struct draft, addresses ──▶ samples (draft.c) ──▶ legacy_map.c: names
 *
 * Tests: tests/componentctl/legacy.t, test_read.c
 */
#include <config.h>

#include "legacy.h"

#include <stddef.h>

#include "draft.h"
#include "legacy_map.h"

static const struct legacy_format *const formats[] = { &legacy_heap, &legacy_jemalloc, &legacy_contention, &legacy_cpu };

static const struct legacy_format *
find(const void *data, size_t size)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (formats[i]->is(data, size))
			return formats[i];
	return NULL;
}

bool
legacy_is(const void *data, size_t size)
{
	return find(data, size);
}

int
legacy_read(const void *data, size_t size, struct pprof *ret, struct component_error *err)
{
	const struct legacy_format *format = find(data, size);
	struct legacy               l = { .p = ret, .err = err, .at = data, .end = (const char *)data + size };
	int                         r;

	ret->period_type = (struct pprof_type){ "", "" };
	ret->object = ret->build_id = ret->drop_frames = ret->keep_frames = "";
	r = format ? format->parse(&l) : legacy_refuse(&l, "is no profile of gperftools or jemalloc");
	ret->period = l.period;
	if (!r)
		r = legacy_make_locations(&l);
	if (!r)
		r = legacy_make_samples(&l);
	if (!r)
		r = legacy_map_name(ret, err);
	if (!r && format->finish)
		format->finish(ret);
	return r;
}
