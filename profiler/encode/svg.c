/*
 * svg.c - a profile as a picture of a flame graph, for those who cannot run a script: format=svg.
 *
 * Of the type that is shown where one alone is, or of sample_index.
 *
 * Tests: tests/serve/viewer.t
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <stdio.h>

#include "frames.h"
#include "picture.h"
#include "view.h"

static void
stack_add(struct picture *picture, const uintptr_t *pcs, unsigned count, int64_t value, struct symbols *s, struct frames *frames)
{
	uint32_t at = PICTURE_ROOT;

	while (count-- > 0) {
		frames_of(s, pcs[count], frames);
		for (unsigned k = frames->count; k-- > 0;)
			picture_down(picture, &at, frames->frame[k].name);
	}
	picture_add(picture, at, value);
}

static void
stacks_add(struct picture *picture, const struct profile *p, unsigned type, struct view_filter *filter, struct symbols *s,
	struct frames *frames)
{
	struct profile_sample lost;

	for (size_t i = 0; i < p->count; i++) {
		unsigned         n;
		const uintptr_t *pcs = frames_stack(p->samples[i].stack, &n);

		if (p->samples[i].values[type] && view_shows(filter, pcs, n))
			stack_add(picture, pcs, n, p->samples[i].values[type], s, frames);
	}
	if (frames_lost(p, &lost) && lost.values[type] && view_shows(filter, frames_lost_stack, 1))
		stack_add(picture, frames_lost_stack, 1, lost.values[type], s, frames);
}

int
encode_svg(const struct profile *p, const struct view *v, struct symbols *s, encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { 0, ENCODE_MEMORY_MAX };
	struct arena        arena;
	struct view_filter  filter;
	struct picture      picture;
	struct lines        lines;
	struct frames      *frames;
	char                title[200];
	unsigned            type;
	int                 r;

	if (!p->type_count || p->type_count > PROFILE_TYPES_MAX)
		return -EINVAL;
	type = view_type(v, p, frames_type(p));
	arena_init(&arena, &budget);
	frames = arena_alloc(&arena, sizeof(*frames));
	r = frames ? lines_open(&lines, &arena, write, arg) : -ENOMEM;
	if (r < 0)
		goto out;
	r = picture_begin(&picture, &arena);
	view_filter_begin(&filter, v, s, frames, &budget);
	frames_resolve(p, s);
	if (!r)
		stacks_add(&picture, p, type, &filter, s, frames);
	snprintf(title, sizeof(title), "%s of %s: %s", p->name, program_invocation_short_name, p->types[type].type);
	if (!r)
		r = picture_write(&picture, title, p->types[type].unit, &lines);
	view_filter_end(&filter);
	picture_end(&picture);
	if (!r)
		r = lines_close(&lines);
out:
	arena_release(&arena);
	return r;
}
