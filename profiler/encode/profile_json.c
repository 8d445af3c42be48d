/*
 * profile_json.c - a profile for programs that would rather not read protobuf: format=json.
 *
 *     {"version": 1, "name": "heap", ..., "strings": ["", "main", ...],
 *      "objects": [string, ...], "functions": [[name, file], ...],
 *      "frames": [function, line, object, inlined, ...], "labels": [[[key, value], ...], ...],
 *      "nodes": [parent, frame, ...], "samples": [node, labels, value, ...]}
 *
 * One look at each address makes the tables of names, which are written as they grow; then the samples are gone
 * through once for the nodes of the tree that their stacks make, and once more for themselves:
 *
 *     addresses --> strings --> objects, functions, frames, labels --> nodes --> samples
 *
 * What a stranger would get wrong: an address is several frames where functions were inlined, the outermost first.
 * A node may come twice: where there is no memory left to know them all, they are written without being remembered.
 * Numbers that a double does not hold are strings.  What could not be read is known when the names are: so the
 * comments come behind them.
 *
 * Tests: tests/encode/test_profile_json.c, tests/viewer/figures.t.
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "comments.h"
#include "frames.h"
#include "labels.h"
#include "lines.h"
#include "strings.h"
#include "table.h"

#define FORM_VERSION 1
#define EXACT_MAX    ((int64_t)1 << 53) /* the largest number that a double holds with all before it */
#define NONE         UINT32_MAX

/* What tells one from another, and its number. */
struct function_key {
	uint32_t name, file;
};

struct frame_key {
	uint32_t function, line, object, inlined;
};

struct labels_key {
	int64_t  event_bytes;
	uint64_t set;
};

struct writing {
	const struct profile *profile;
	struct profile_sample lost;
	bool                  has_lost;
	struct symbols       *symbols;
	struct frames        *frames;
	struct lines          lines;
	struct strings        texts, objects, functions, frame_keys, label_sets;
	/* By number: the text of each object, two of each function, four numbers of each frame; of each set of labels how
	 * many, and their texts.  Of an address how many frames, and these. */
	struct frames_list    object, function, frame, labels, chain;
	struct table          chains; /* of an address, where in chain, and one more */
	struct table          nodes;
	uint32_t              node_count, comment_count;
	uint32_t             *node_of; /* each sample's */
};

static const struct profile_sample *
sample(const struct writing *w, size_t i)
{
	return i < w->profile->count ? &w->profile->samples[i] : &w->lost;
}

static size_t
sample_count(const struct writing *w)
{
	return w->profile->count + w->has_lost;
}

static const uintptr_t *
sample_stack(const struct writing *w, size_t i, unsigned *ret_count)
{
	*ret_count = 1;
	return i < w->profile->count ? frames_stack(w->profile->samples[i].stack, ret_count) : frames_lost_stack;
}

/* The number of a text, which is written if it is new. */
static int
text_id(struct writing *w, const char *text, uint32_t *ret)
{
	uint64_t id;
	bool     is_new;
	int      r = strings_id(&w->texts, text, strlen(text), text != w->frames->text, &id, &is_new);

	if (r < 0)
		return r;
	if (is_new) {
		lines_text(&w->lines, id ? "," : "");
		lines_json(&w->lines, text);
	}
	*ret = (uint32_t)id;
	return 0;
}

/* The number of a key of a table, and whether it has to be put on a list. */
static int
key_id(struct strings *table, const void *key, size_t size, uint32_t *ret, bool *ret_new)
{
	uint64_t id;
	int      r = strings_id(table, key, size, false, &id, ret_new);

	if (!r)
		*ret = (uint32_t)id;
	return r;
}

static int
put_all(struct frames_list *l, const uint32_t *numbers, unsigned count)
{
	int r = 0;

	for (unsigned i = 0; i < count && !r; i++)
		r = frames_list_add(l, numbers[i]);
	return r;
}

static int
object_id(struct writing *w, const char *path, uint32_t *ret)
{
	uint32_t text;
	bool     is_new;
	int      r = text_id(w, path, &text);

	if (!r)
		r = key_id(&w->objects, &text, sizeof(text), ret, &is_new);
	return r < 0 || !is_new ? r : frames_list_add(&w->object, text);
}

static int
frame_id(struct writing *w, const struct symbol_frame *f, uint32_t object, bool inlined, uint32_t *ret)
{
	struct function_key function = { 0, 0 };
	struct frame_key    frame = { 0, f->file && f->line > 0 ? (uint32_t)f->line : 0, object, inlined };
	bool                is_new;
	int                 r = text_id(w, f->name, &function.name);

	if (!r)
		r = text_id(w, f->file ? f->file : "", &function.file);
	if (!r)
		r = key_id(&w->functions, &function, sizeof(function), &frame.function, &is_new);
	if (!r && is_new)
		r = put_all(&w->function, (uint32_t[]){ function.name, function.file }, 2);
	if (!r)
		r = key_id(&w->frame_keys, &frame, sizeof(frame), ret, &is_new);
	return r < 0 || !is_new ? r : put_all(&w->frame, (uint32_t[]){ frame.function, frame.line, object, inlined }, 4);
}

static int
add_address(struct writing *w, uintptr_t pc)
{
	uint32_t object = NONE, id = 0;
	int      r = 0;

	if (table_get(&w->chains, pc))
		return 0;
	frames_of(w->symbols, pc, w->frames);
	if (w->frames->mapping >= 0)
		r = object_id(w, symbols_mapping(w->symbols, (size_t)w->frames->mapping)->path, &object);
	if (!r)
		r = table_put(&w->chains, pc, w->chain.count + 1);
	if (!r)
		r = frames_list_add(&w->chain, w->frames->count);
	for (unsigned k = w->frames->count; k-- > 0 && !r;) {
		r = frame_id(w, &w->frames->frame[k], object, k + 1 < w->frames->count, &id);
		if (!r)
			r = frames_list_add(&w->chain, id);
	}
	return r;
}

static int
labels_id(struct writing *w, const struct profile_sample *s, uint32_t *ret, bool *ret_new)
{
	struct labels_key key = { s->event_bytes, s->labels };

	return key_id(&w->label_sets, &key, sizeof(key), ret, ret_new);
}

static int
add_label(struct writing *w, const char *key, const char *value)
{
	uint32_t texts[2];
	int      r = text_id(w, key, &texts[0]);

	if (!r)
		r = text_id(w, value, &texts[1]);
	return r < 0 ? r : put_all(&w->labels, texts, 2);
}

/* The size of a block is a label, as it is in pprof. */
static int
add_labels(struct writing *w, const struct profile_sample *s)
{
	struct label labels[LABELS_MAX];
	unsigned     n = s->labels ? labels_read(s->labels, labels) : 0;
	uint32_t     id = 0;
	bool         is_new;
	int          r = labels_id(w, s, &id, &is_new);

	if (r < 0 || !is_new)
		return r;
	r = frames_list_add(&w->labels, n + (s->event_bytes != 0));
	for (unsigned i = 0; i < n && !r; i++)
		r = add_label(w, labels[i].key, labels[i].value);
	if (!r && s->event_bytes) {
		/* There is no frame in it now: its room serves for a text that is not kept. */
		snprintf(w->frames->text, sizeof(w->frames->text), "%" PRId64, s->event_bytes);
		r = add_label(w, "bytes", w->frames->text);
	}
	return r;
}

/* All that has a text; that of number 0 is the empty one, and the set of labels of number 0, too. */
static int
write_strings(struct writing *w)
{
	const struct profile_sample none = { .stack = 0 };
	uint32_t                    empty;
	unsigned                    n;
	int                         r;

	lines_text(&w->lines, ",\n\"strings\":[");
	r = text_id(w, "", &empty);
	if (!r)
		r = add_labels(w, &none);
	for (size_t i = 0; i < sample_count(w) && !r && !w->lines.error; i++) {
		const uintptr_t *pcs = sample_stack(w, i, &n);

		while (n-- > 0 && !r)
			r = add_address(w, pcs[n]);
		if (!r)
			r = add_labels(w, sample(w, i));
	}
	lines_text(&w->lines, "]");
	return r;
}

/* Numbers, so many of them in brackets of their own: 0 is flat.  NONE is -1. */
static void
write_numbers(struct writing *w, const char *name, const struct frames_list *l, unsigned together)
{
	lines_print(&w->lines, ",\n\"%s\":[", name);
	for (size_t i = 0; i < l->count; i++) {
		lines_text(&w->lines, i ? "," : "");
		lines_text(&w->lines, together && i % together == 0 ? "[" : "");
		lines_print(&w->lines, "%" PRId64, l->pcs[i] == NONE ? (int64_t)-1 : (int64_t)l->pcs[i]);
		lines_text(&w->lines, together && i % together == together - 1 ? "]" : "");
	}
	lines_text(&w->lines, "]");
}

static void
write_label_sets(struct writing *w)
{
	const struct frames_list *l = &w->labels;
	size_t                    at = 0;

	lines_text(&w->lines, ",\n\"labels\":[");
	while (at < l->count) {
		size_t n = l->pcs[at];

		lines_text(&w->lines, at ? ",[" : "[");
		at++;
		for (size_t i = 0; i < n; i++, at += 2)
			lines_print(&w->lines, "%s[%" PRIuPTR ",%" PRIuPTR "]", i ? "," : "", l->pcs[at], l->pcs[at + 1]);
		lines_text(&w->lines, "]");
	}
	lines_text(&w->lines, "]");
}

/* The child of a node for a frame; node numbers here begin at 1, the root of all is 0. */
static uint32_t
write_node(struct writing *w, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t node = (uint32_t)table_get(&w->nodes, key);

	if (node)
		return node;
	lines_print(&w->lines, "%s%" PRId64 ",%" PRIu32, w->node_count ? "," : "", (int64_t)parent - 1, frame);
	node = ++w->node_count;
	(void)table_put(&w->nodes, key, node); /* else it comes again */
	return node;
}

static void
write_nodes(struct writing *w)
{
	unsigned n;

	lines_text(&w->lines, ",\n\"nodes\":[");
	for (size_t i = 0; i < sample_count(w) && !w->lines.error; i++) {
		const uintptr_t *pcs = sample_stack(w, i, &n);
		uint32_t         node = 0;

		while (n-- > 0) {
			const uintptr_t *chain = &w->chain.pcs[table_get(&w->chains, pcs[n]) - 1];

			for (uintptr_t k = 1; k <= chain[0]; k++)
				node = write_node(w, node, (uint32_t)chain[k]);
		}
		w->node_of[i] = node;
	}
	lines_text(&w->lines, "]");
}

static void
write_value(struct lines *l, const char *before, int64_t value)
{
	const char *quote = value > EXACT_MAX || value < -EXACT_MAX ? "\"" : "";

	lines_print(l, "%s%s%" PRId64 "%s", before, quote, value, quote);
}

static int
write_samples(struct writing *w)
{
	uint32_t labels = 0;
	bool     is_new;
	int      r = 0;

	lines_text(&w->lines, ",\n\"samples\":[");
	for (size_t i = 0; i < sample_count(w) && !r && !w->lines.error; i++) {
		r = labels_id(w, sample(w, i), &labels, &is_new);
		if (r < 0)
			break;
		lines_print(&w->lines, "%s%" PRId64 ",%" PRIu32, i ? "," : "", (int64_t)w->node_of[i] - 1, labels);
		for (unsigned k = 0; k < w->profile->type_count; k++)
			write_value(&w->lines, ",", sample(w, i)->values[k]);
	}
	lines_text(&w->lines, "]}\n");
	return r;
}

static void
write_type(struct lines *l, const struct profile_type *t)
{
	lines_text(l, "[");
	lines_json(l, t->type ? t->type : "");
	lines_text(l, ",");
	lines_json(l, t->unit ? t->unit : "");
	lines_text(l, "]");
}

static int
write_comment(void *arg, const char *text, size_t size)
{
	struct writing *w = arg;
	char            comment[PROFILE_COMMENTS_MAX + 1];

	memcpy(comment, text, size);
	comment[size] = '\0';
	lines_text(&w->lines, w->comment_count++ ? "," : "");
	lines_json(&w->lines, comment);
	return 0;
}

static void
write_comments(struct writing *w)
{
	lines_text(&w->lines, ",\n\"comments\":[");
	comments_of(w->profile, w->symbols, write_comment, w);
	lines_text(&w->lines, "]");
}

static void
write_head(struct writing *w)
{
	const struct profile *p = w->profile;
	struct lines         *l = &w->lines;

	lines_print(l, "{\"version\":%d,\"name\":", FORM_VERSION);
	lines_json(l, p->name);
	lines_text(l, ",\"program\":");
	lines_json(l, program_invocation_short_name);
	lines_print(l, ",\"time_ns\":\"%" PRId64 "\"", p->time_ns);
	write_value(l, ",\"duration_ns\":", p->duration_ns);
	lines_text(l, ",\"period\":[");
	write_type(l, &p->period_type);
	write_value(l, ",", p->period);
	lines_text(l, "],\"types\":[");
	for (unsigned i = 0; i < p->type_count; i++) {
		lines_text(l, i ? "," : "");
		write_type(l, &p->types[i]);
	}
	lines_print(l, "],\"default\":%u,\"lost\":%" PRIu64 ",\"truncated\":%" PRIu64, frames_type(p), p->lost, p->truncated);
}

static void
tables_init(struct writing *w, struct arena *a)
{
	struct strings     *tables[] = { &w->texts, &w->objects, &w->functions, &w->frame_keys, &w->label_sets };
	struct frames_list *lists[] = { &w->object, &w->function, &w->frame, &w->labels, &w->chain };

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		strings_init(tables[i], a);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		*lists[i] = (struct frames_list){ .budget = a->budget };
	table_init(&w->chains, a->budget);
	table_init(&w->nodes, a->budget);
}

static void
tables_release(struct writing *w)
{
	struct strings     *tables[] = { &w->texts, &w->objects, &w->functions, &w->frame_keys, &w->label_sets };
	struct frames_list *lists[] = { &w->object, &w->function, &w->frame, &w->labels, &w->chain };

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		strings_release(tables[i]);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		frames_list_release(lists[i]);
	table_release(&w->chains);
	table_release(&w->nodes);
}

static int
write_all(struct writing *w)
{
	int r;

	write_head(w);
	r = write_strings(w);
	if (r < 0)
		return r;
	write_comments(w);
	write_numbers(w, "objects", &w->object, 0);
	write_numbers(w, "functions", &w->function, 2);
	write_numbers(w, "frames", &w->frame, 0);
	write_label_sets(w);
	write_nodes(w);
	return write_samples(w);
}

int
encode_profile_json(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { 0, ENCODE_MEMORY_MAX };
	struct arena        arena;
	struct writing     *w;
	int                 r = -ENOMEM;

	if (!p->type_count || p->type_count > PROFILE_TYPES_MAX)
		return -EINVAL;
	arena_init(&arena, &budget);
	w = arena_alloc(&arena, sizeof(*w));
	if (!w)
		goto out;
	w->profile = p;
	w->symbols = s;
	w->has_lost = frames_lost(p, &w->lost);
	w->frames = arena_alloc(&arena, sizeof(*w->frames));
	w->node_of = arena_array(&arena, sample_count(w) + 1, sizeof(*w->node_of));
	if (w->frames && w->node_of)
		r = lines_open(&w->lines, &arena, write, arg);
	if (r < 0)
		goto out;
	frames_resolve(p, s);
	tables_init(w, &arena);
	r = write_all(w);
	tables_release(w);
	if (lines_close(&w->lines) < 0 && !r)
		r = w->lines.error;
out:
	arena_release(&arena);
	return r;
}
