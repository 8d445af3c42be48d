/*
 * write.c - a profile in memory as a pprof file.
 *
 * The message of read.c the other way: all of it in an arena, packed by protobuf-c, then by gzip.  An id is the
 * index + 1.  No memory is remembered (failed) and asked for once.
 *
 * What a stranger would get wrong: names stay as the reader has made them, so that the file is read as p is.
 *
 * Tests: tests/componentctl/test_read.c, tests/componentctl/children.t
 */
#include <config.h>

#include "write.h"

#include <errno.h>
#include <string.h>

#include "gzip.h"
#include "profile.pb-c.h"
#include "strings.h"

typedef Component__Pprof__Profile Message;

struct writer {
	const struct pprof *p;
	struct arena        arena;
	struct strings      strings;
	size_t              room; /* of the string table */
	bool                failed;
	Message             m;
};

/* NULL: and w has failed. */
static void *
array(struct writer *w, size_t count, size_t size)
{
	void *a = arena_array(&w->arena, count + 1, size);

	w->failed |= !a;
	return a;
}

/* Pointers to so many messages of a kind.  NULL: and w has failed. */
static void *
messages(struct writer *w, size_t count, const ProtobufCMessageDescriptor *kind)
{
	void **pointers = array(w, count, sizeof(void *));
	char  *all = array(w, count, kind->sizeof_message);

	for (size_t i = 0; i < count && pointers && all; i++) {
		pointers[i] = all + i * kind->sizeof_message;
		protobuf_c_message_init(kind, pointers[i]);
	}
	return all ? pointers : NULL;
}

/* Its number in the string table. */
static int64_t
text(struct writer *w, const char *word)
{
	uint64_t id = 0;
	bool     is_new = false;

	w->failed |= strings_id(&w->strings, word, strlen(word), true, &id, &is_new) < 0;
	if (is_new && id == w->room) {
		char **more = array(w, 2 * w->room + 1024, sizeof(char *));

		if (more && id)
			memcpy(more, w->m.string_table, id * sizeof(char *));
		w->room = more ? 2 * w->room + 1024 : w->room;
		w->m.string_table = more ? more : w->m.string_table;
	}
	if (!is_new || w->failed)
		return (int64_t)id;
	w->m.string_table[id] = (char *)(uintptr_t)word;
	w->m.n_string_table = id + 1;
	return (int64_t)id;
}

static void
write_types(struct writer *w)
{
	const struct pprof            *p = w->p;
	Component__Pprof__ValueType **to = messages(w, p->type_count + 1, &component__pprof__value_type__descriptor);
	size_t                         first = 0;

	for (size_t i = 0; i < p->type_count && to; i++) {
		to[i]->type = text(w, p->types[i].type);
		to[i]->unit = text(w, p->types[i].unit);
	}
	w->m.sample_type = to;
	w->m.n_sample_type = p->type_count;
	if (to && (*p->period_type.type || *p->period_type.unit)) {
		w->m.period_type = to[p->type_count];
		w->m.period_type->type = text(w, p->period_type.type);
		w->m.period_type->unit = text(w, p->period_type.unit);
	}
	/* Of two with one name a reader takes the first; the last one need not be named. */
	while (strcmp(p->types[first].type, p->types[p->usual].type) != 0)
		first++;
	if (first == p->usual)
		w->m.default_sample_type = text(w, p->types[first].type);
}

static void
write_labels(struct writer *w, const struct pprof_sample *from, Component__Pprof__Sample *to)
{
	struct pprof_label l;
	size_t             count = from->is_base, n = 0;

	for (size_t at = 0; read_label(from, &at, &l);)
		count++;
	if (!count)
		return;
	to->label = messages(w, count, &component__pprof__label__descriptor);
	to->n_label = to->label ? count : 0;
	if (from->is_base && to->label) {
		to->label[n]->key = text(w, "pprof::base");
		to->label[n++]->str = text(w, "true");
	}
	for (size_t at = 0; to->label && read_label(from, &at, &l); n++) {
		to->label[n]->key = text(w, l.key);
		to->label[n]->str = text(w, l.text);
		to->label[n]->num_unit = text(w, l.unit);
		to->label[n]->num = l.number;
	}
}

static void
write_samples(struct writer *w)
{
	const struct pprof        *p = w->p;
	Component__Pprof__Sample **to = messages(w, p->sample_count, &component__pprof__sample__descriptor);

	for (size_t i = 0; i < p->sample_count && to && !w->failed; i++) {
		const struct pprof_sample *from = &p->samples[i];

		to[i]->location_id = array(w, from->count, sizeof(uint64_t));
		for (uint32_t k = 0; k < from->count && to[i]->location_id; k++)
			to[i]->location_id[k] = (uint64_t)(from->stack[k] - p->locations) + 1;
		to[i]->n_location_id = from->count;
		to[i]->value = (int64_t *)(uintptr_t)from->values;
		to[i]->n_value = p->type_count;
		write_labels(w, from, to[i]);
	}
	w->m.sample = to;
	w->m.n_sample = p->sample_count;
}

static void
write_mappings(struct writer *w)
{
	const struct pprof         *p = w->p;
	Component__Pprof__Mapping **to = messages(w, p->mapping_count, &component__pprof__mapping__descriptor);

	for (size_t i = 0; i < p->mapping_count && to; i++) {
		const struct pprof_mapping *from = &p->mappings[i];

		to[i]->id = i + 1;
		to[i]->memory_start = from->start;
		to[i]->memory_limit = from->limit;
		to[i]->file_offset = from->offset;
		to[i]->filename = text(w, from->file);
		to[i]->build_id = text(w, from->build_id);
		to[i]->has_functions = from->has_functions;
		to[i]->has_filenames = from->has_files;
		to[i]->has_line_numbers = from->has_lines;
		to[i]->has_inline_frames = from->has_inlined;
	}
	w->m.mapping = to;
	w->m.n_mapping = p->mapping_count;
}

static void
write_lines(struct writer *w, const struct pprof_location *from, Component__Pprof__Location *to)
{
	to->line = messages(w, from->count, &component__pprof__line__descriptor);
	to->n_line = from->count;
	for (uint32_t i = 0; i < from->count && to->line; i++) {
		to->line[i]->function_id = (uint64_t)(from->functions[i] - w->p->functions) + 1;
		to->line[i]->line = from->lines[i].line;
		to->line[i]->column = from->lines[i].column;
	}
}

static void
write_locations(struct writer *w)
{
	const struct pprof          *p = w->p;
	Component__Pprof__Location **to = messages(w, p->location_count, &component__pprof__location__descriptor);

	for (size_t i = 0; i < p->location_count && to && !w->failed; i++) {
		const struct pprof_location *from = &p->locations[i];

		to[i]->id = i + 1;
		to[i]->mapping_id = from->mapping ? (uint64_t)(from->mapping - p->mappings) + 1 : 0;
		to[i]->address = from->address;
		to[i]->is_folded = from->is_folded;
		write_lines(w, from, to[i]);
	}
	w->m.location = to;
	w->m.n_location = p->location_count;
}

static void
write_functions(struct writer *w)
{
	const struct pprof          *p = w->p;
	Component__Pprof__Function **to = messages(w, p->function_count, &component__pprof__function__descriptor);

	for (size_t i = 0; i < p->function_count && to; i++) {
		to[i]->id = i + 1;
		to[i]->name = text(w, p->functions[i].name);
		to[i]->system_name = text(w, p->functions[i].system_name);
		to[i]->filename = text(w, p->functions[i].file);
		to[i]->start_line = p->functions[i].start_line;
	}
	w->m.function = to;
	w->m.n_function = p->function_count;
}

static void
write_head(struct writer *w)
{
	const struct pprof *p = w->p;

	w->m.comment = array(w, p->comment_count, sizeof(int64_t));
	for (size_t i = 0; i < p->comment_count && w->m.comment; i++)
		w->m.comment[i] = text(w, p->comments[i]);
	w->m.n_comment = p->comment_count;
	w->m.drop_frames = text(w, p->drop_frames);
	w->m.keep_frames = text(w, p->keep_frames);
	w->m.time_nanos = p->time_ns;
	w->m.duration_nanos = p->duration_ns;
	w->m.period = p->period;
}

static int
pack(struct writer *w, encode_write_fn *write, void *arg)
{
	size_t      size = component__pprof__profile__get_packed_size(&w->m);
	uint8_t    *bytes = arena_map(w->arena.budget, size);
	struct gzip gzip;
	int         r = bytes ? gzip_open(&gzip, &w->arena, write, arg) : -ENOMEM;

	if (!r)
		r = gzip_write(&gzip, bytes, component__pprof__profile__pack(&w->m, bytes));
	if (!r)
		r = gzip_finish(&gzip);
	arena_unmap(w->arena.budget, bytes, size);
	return r;
}

int
write_profile(const struct pprof *p, encode_write_fn *write, void *arg)
{
	static void (*const parts[])(struct writer *w) = { write_types, write_samples, write_mappings, write_locations,
		write_functions, write_head };
	struct arena_budget budget = { 0, READ_MEMORY_MAX };
	struct writer       w = { .p = p, .m = COMPONENT__PPROF__PROFILE__INIT };
	int                 r;

	arena_init(&w.arena, &budget);
	strings_init(&w.strings, &w.arena);
	text(&w, ""); /* number 0 */
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !w.failed; i++)
		parts[i](&w);
	r = w.failed ? -ENOMEM : pack(&w, write, arg);
	strings_release(&w.strings);
	arena_release(&w.arena);
	return r;
}
