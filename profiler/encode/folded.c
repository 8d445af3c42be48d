/*
 * folded.c - a profile as "folded" stacks: a line each, root first, then its value.
 *
 *     main;serve;handle_request;epoll_wait 297
 *
 * What flame graph scripts, speedscope and many a shell line read.  Functions that were
 * inlined have a place of their own.  The value is the number of samples where the
 * profile counts those, as Go's fgprof has it; else that of the default type, and for
 * want of one the last.
 *
 * What a stranger would get wrong: stacks that differ in their lines alone give equal
 * texts, one after the other or not; whoever reads this adds them up.
 *
 * Tests: tests/test_encode_text.c, tests/fgprof.t.
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "frames.h"
#include "lines.h"

static unsigned
type_shown(const struct profile *p)
{
	if (!strcmp(p->types[0].type, "samples"))
		return 0;
	for (unsigned i = 0; p->default_type && i < p->type_count; i++)
		if (!strcmp(p->types[i].type, p->default_type))
			return i;
	return p->type_count - 1;
}

/* A semicolon in a name would be another function. */
static void
print_name(struct lines *l, const char *name)
{
	size_t n;

	for (; *name; name += n) {
		n = strcspn(name, ";");
		lines_print(l, "%.*s", (int)(n < 256 ? n : 256), name);
		if (n > 256)
			n = 256;
		else if (name[n])
			lines_print(l, ":"), n++;
	}
}

static void
print_stack(struct lines *l, const uintptr_t *pcs, unsigned count, int64_t value, struct symbols *s,
	    struct frames *frames)
{
	if (!value)
		return;
	while (count-- > 0) {
		frames_of(s, pcs[count], frames);
		for (unsigned k = frames->count; k-- > 0;) {
			print_name(l, frames->frame[k].name);
			lines_print(l, count || k ? ";" : " ");
		}
	}
	lines_print(l, "%" PRId64 "\n", value);
}

int
encode_folded(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	struct arena_budget   budget = { 0, ENCODE_MEMORY_MAX };
	struct arena          arena;
	struct lines          lines;
	struct frames        *frames;
	struct profile_sample lost;
	unsigned              type, n;
	int                   r;

	if (!p->type_count || p->type_count > PROFILE_TYPES_MAX)
		return -EINVAL;
	type = type_shown(p);
	arena_init(&arena, &budget);
	frames = arena_alloc(&arena, sizeof(*frames));
	r = frames ? lines_open(&lines, &arena, write, arg) : -ENOMEM;
	if (r < 0)
		goto out;
	frames_resolve(p, s);
	for (size_t i = 0; i < p->count && !lines.error; i++) {
		const uintptr_t *pcs = frames_stack(p->samples[i].stack, &n);

		print_stack(&lines, pcs, n, p->samples[i].values[type], s, frames);
	}
	if (frames_lost(p, &lost))
		print_stack(&lines, frames_lost_stack, 1, lost.values[type], s, frames);
	r = lines_close(&lines);
out:
	arena_release(&arena);
	return r;
}
