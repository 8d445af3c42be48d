/*
 * format.c - the table of formats.
 *
 * Some files serve one row alone and go with it: pprof_sample.c, gzip.c and profile.proto that of pprof,
 * wait_state.c the dump, picture.c svg, trace/perfetto_message.c Perfetto.
 *
 * Tests: tests/http/protocol.t, tests/serve/delta.t, tests/encode/gotrace.t, tests/serve/profile_write.t.
 */
#include <config.h>

#include "format.h"

#include <stdio.h>
#include <string.h>

#include "gzip.h"
#include "separator.h"

static const struct format formats[] = {
	{ .name = "pprof", .binary = true, .packed = true, .profile = encode_pprof },
	{ .name = "top", .viewed = encode_top },
	{ .name = "folded", .viewed = encode_folded },
	{ .name = "svg", .mime = "image/svg+xml", .viewed = encode_svg },
	{ .name = "html", .mime = "text/html; charset=utf-8", .page = true, .profile = encode_pprof },
	{ .name = "json", .mime = "application/json", .profile = encode_profile_json },
	{ .debug = 1, .text = PRODUCT_TEXT_COUNTS, .profile = encode_counts_text },
	{ .debug = 1, .text = PRODUCT_TEXT_DELAYS, .profile = encode_delay_text },
	{ .debug = 1, .text = PRODUCT_TEXT_CONTENTIONS, .profile = encode_contention_text },
	{ .debug = 1, .text = PRODUCT_TEXT_HEAP, .profile = encode_heap_text },
	{ .debug = 2, .dump = encode_panic },
	{ .name = "dump", .mime = "application/json", .dump = encode_dump_json },
	{ .debug = 1, .residence = encode_residence_text },
	{ .name = "json", .mime = "application/json", .residence = encode_residence_json },
	{ .name = "go1.19", .binary = true, .trace = &gotrace_v1 },
	{ .name = "go1.22", .binary = true, .trace = &gotrace_v2 },
	{ .name = "perfetto", .binary = true, .trace = &perfetto_format },
};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

enum product_type
format_takes(const struct format *f)
{
	return f->profile || f->viewed ? PRODUCT_PROFILE : f->dump ? PRODUCT_DUMP : f->residence ? PRODUCT_RESIDENCE : PRODUCT_TRACE;
}

const struct format *
format_usual(unsigned products)
{
	for (const struct format *f = formats; f < formats + FORMATS; f++)
		if (format_takes(f) & products)
			return f;
	return NULL;
}

const struct format *
format_find(unsigned products, const char *name)
{
	for (const struct format *f = formats; f < formats + FORMATS; f++)
		if (format_takes(f) & products && f->name && strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

const struct format *
format_of_debug(unsigned products, enum product_text text, int64_t debug)
{
	const struct format *found = NULL;

	for (const struct format *f = formats; f < formats + FORMATS; f++)
		if (format_takes(f) & products && f->debug && f->debug <= debug && (f->debug > 1 || f->text == text) &&
		    (!found || f->debug > found->debug))
			found = f;
	return found;
}

void
format_advice(unsigned products, char *buf, size_t size)
{
	const struct format *usual = format_usual(products);
	size_t               n = (size_t)snprintf(buf, size, "write "), count = 0, done = 0;

	for (const struct format *f = usual + 1; f < formats + FORMATS; f++)
		count += format_takes(f) & products && f->name;
	for (const struct format *f = usual + 1; f < formats + FORMATS && n < size; f++)
		if (format_takes(f) & products && f->name)
			n += (size_t)snprintf(buf + n, size - n, "%sformat=%s", separator(done++, count, " or "), f->name);
}

void
format_viewed(char *buf, size_t size)
{
	size_t n = 0, count = 0, done = 0;

	for (const struct format *f = formats; f < formats + FORMATS; f++)
		count += f->viewed != NULL;
	for (const struct format *f = formats; f < formats + FORMATS && n < size; f++)
		if (f->viewed)
			n += (size_t)snprintf(buf + n, size - n, "%sformat=%s", separator(done++, count, " and "), f->name);
}

/* What has no tag is of now. */
static int
dump_write(const struct format *f, struct dump *d, struct symbols *s, encode_write_fn *write, void *arg)
{
	for (; d->tagged < d->pc_count; d->tagged++)
		d->pcs[d->tagged] = symbols_pc(s, d->pcs[d->tagged]);
	return f->dump(d, s, write, arg);
}

int
format_write(const struct format *f, struct product *p, const struct view *v, struct symbols *s, encode_write_fn *write, void *arg)
{
	return f->profile ? f->profile(&p->profile, s, write, arg) :
	       f->viewed  ? f->viewed(&p->profile, v, s, write, arg) :
	       f->dump    ? dump_write(f, &p->dump, s, write, arg) :
	       f->residence ? f->residence(&p->residence, s, write, arg) :
			    encode_trace(&p->trace, f->trace, s, write, arg);
}

static int
member_write(void *gzip, const void *data, size_t size)
{
	return gzip_write(gzip, data, size);
}

int
format_write_member(const struct format *f, struct product *p, const struct view *v, struct symbols *s,
	encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { .limit = GZIP_MEMORY_MAX };
	struct arena        arena;
	struct gzip         g;
	int                 r;

	if (f->packed)
		return format_write(f, p, v, s, write, arg);
	arena_init(&arena, &budget);
	r = gzip_open(&g, &arena, write, arg);
	if (r == 0)
		r = format_write(f, p, v, s, member_write, &g);
	if (r == 0)
		r = gzip_finish(&g);
	arena_release(&arena);
	return r;
}
