/*
 * pprof.c - a profile as the gzip'ed protobuf that go tool pprof reads.
 *
 * Each message is filled into protobuf-c's struct, packed alone into a small buffer
 * and written, with its field number in Profile, into the gzip stream:
 *
 *     sample --> location ids --> Sample --> 32 KiB --> deflate --> 64 KiB --> callback
 *     then, for each location: Location --> new: Function --> new: string_table
 *
 * Protobuf lets the fields of Profile come in any order, so only the tables that give
 * out ids stay in memory: their size depends on the number of different addresses, not
 * of samples.  Locations come after all samples, because lines are looked up for all
 * addresses in one go.
 *
 * What a stranger would get wrong: ids are dense and in file order, because stores
 * check that; string_table[0] is "" ; every location has a named function and every
 * mapping that has locations says has_functions, because pprof symbolizes a mixed
 * mapping anew, and badly; our own words and code outside all mappings have mapping 0.
 * protobuf-c's pack functions do not allocate; its unpack ones do and are not used.
 *
 * Why not one big tree and one pack: 51 MB for 100,000 stacks.
 *
 * Tests: tests/encode/test_pprof.c, tests/encode/pprof.t
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <string.h>

#include "comments.h"
#include "frames.h"
#include "gzip.h"
#include "labels.h"
#include "pprof_sample.h"
#include "profile.pb-c.h"
#include "strings.h"
#include "table.h"
#include "utf8.h"
#include "varint.h"

/* Fields of Profile; 2, the samples, are pprof_sample.c's. */
enum field {
	FIELD_SAMPLE_TYPE = 1,
	FIELD_MAPPING = 3,
	FIELD_LOCATION,
	FIELD_FUNCTION,
	FIELD_STRING,
};

#define PREFIX       11   /* bytes: a tag of one byte and a length of up to ten */
#define MESSAGE_MAX  4096 /* bytes: a location with all the lines it can have */
#define COMMENTS_MAX (PROFILE_COMMENTS_MAX / 2 + 4) /* a comment is a character and a newline */

_Static_assert(SYMBOLS_FRAMES_MAX * 32 + 64 < MESSAGE_MAX, "a location fits");

struct mapping_use {
	uint64_t id; /* 0: not written; those that are gone only if they are used */
	bool     functions, files, lines, inlined;
};

struct writer {
	const struct profile *profile;
	struct symbols       *symbols;
	struct arena         *arena;
	struct gzip           gzip;
	struct strings        strings;
	struct table          locations; /* pc to location id */
	struct frames_list    pcs;       /* of the locations, in the order of their ids */
	struct table          functions; /* name and system name to function id */
	struct mapping_use   *used;      /* what is known of a mapping's locations */
	size_t               *mappings;  /* in the order of their ids */
	size_t                mapping_count;
	uint64_t              function_count;
	struct pprof_sample   sample;
	int64_t               bytes_key; /* the text "bytes", once it is there */
	struct frames         frames;
	uint8_t               buf[PREFIX + MESSAGE_MAX];
};

/* Tag and length in front of what is at data; together if there is room before it. */
static int
write_field(struct writer *w, enum field field, const void *data, size_t size)
{
	uint8_t prefix[PREFIX];
	size_t  n = 1;
	int     r;

	prefix[0] = (uint8_t)(field << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
	n += varint_write(prefix + 1, size);
	if (data == w->buf + PREFIX) {
		memcpy(w->buf + PREFIX - n, prefix, n);
		return gzip_write(&w->gzip, w->buf + PREFIX - n, n + size);
	}
	r = gzip_write(&w->gzip, prefix, n);
	return r < 0 ? r : gzip_write(&w->gzip, data, size);
}

static int
write_message(struct writer *w, enum field field, const ProtobufCMessage *m)
{
	size_t size = protobuf_c_message_get_packed_size(m);

	if (size > MESSAGE_MAX)
		return -EMSGSIZE;
	protobuf_c_message_pack(m, w->buf + PREFIX);
	return write_field(w, field, w->buf + PREFIX, size);
}

/* The number of a text, written to the string table if it is new. */
static int
string_sized(struct writer *w, const char *text, size_t size, bool keep, int64_t *ret)
{
	uint64_t id;
	bool     is_new;
	int      r;

	if (!utf8_is_clean(text, size)) {
		text = utf8_clean(w->arena, text, size);
		keep = true;
		if (!text)
			return -ENOMEM;
	}
	r = strings_id(&w->strings, text, size, keep, &id, &is_new);
	if (!r && is_new)
		r = write_field(w, FIELD_STRING, text, size);
	if (!r)
		*ret = (int64_t)id;
	return r;
}

static int
string(struct writer *w, const char *text, int64_t *ret)
{
	/* Only the name of an unknown address lives in a buffer that is used again. */
	return string_sized(w, text, strlen(text), text != w->frames.text, ret);
}

static int
value_type(struct writer *w, const struct profile_type *t, Component__Pprof__ValueType *ret)
{
	int r;

	component__pprof__value_type__init(ret);
	r = string(w, t->type ? t->type : "", &ret->type);
	return r < 0 ? r : string(w, t->unit ? t->unit : "", &ret->unit);
}

static int
function_id(struct writer *w, const struct symbol_frame *f, uint64_t *ret)
{
	Component__Pprof__Function m = COMPONENT__PPROF__FUNCTION__INIT;
	uint64_t                   key;
	int                        r;

	r = string(w, f->name, &m.name);
	if (!r)
		r = string(w, f->system_name ? f->system_name : f->name, &m.system_name);
	if (!r)
		r = string(w, f->file ? f->file : "", &m.filename);
	if (r < 0)
		return r;
	/* One function may be in several files of one name; the names tell enough. */
	key = (uint64_t)m.system_name << 32 | (uint64_t)m.filename;
	*ret = table_get(&w->functions, key);
	if (*ret)
		return 0;
	m.id = ++w->function_count;
	m.start_line = f->start_line;
	*ret = m.id;
	r = table_put(&w->functions, key, m.id);
	return r < 0 ? r : write_message(w, FIELD_FUNCTION, &m.base);
}

/* The number of an address; the location itself is written later. */
static int
location_id(void *arg, uintptr_t pc, uint64_t *ret)
{
	struct writer *w = arg;
	int            r;

	*ret = table_get(&w->locations, pc);
	if (*ret)
		return 0;
	r = frames_list_add(&w->pcs, pc);
	*ret = w->pcs.count;
	return r < 0 ? r : table_put(&w->locations, pc, *ret);
}

static void
mapping_number(struct writer *w, size_t i)
{
	if (w->used[i].id)
		return;
	w->mappings[w->mapping_count] = i;
	w->used[i].id = ++w->mapping_count;
}

static void
note_use(struct mapping_use *use, const struct frames *f)
{
	use->functions = true;
	use->inlined |= f->count > 1;
	for (unsigned i = 0; i < f->count; i++) {
		use->files |= f->frame[i].file != NULL;
		use->lines |= f->frame[i].line > 0;
	}
}

static int
write_location(struct writer *w, uint64_t id, uintptr_t pc)
{
	Component__Pprof__Location m = COMPONENT__PPROF__LOCATION__INIT;
	Component__Pprof__Line     lines[SYMBOLS_FRAMES_MAX], *pointers[SYMBOLS_FRAMES_MAX];
	int                        r;

	frames_of(w->symbols, pc, &w->frames);
	for (unsigned i = 0; i < w->frames.count; i++) {
		component__pprof__line__init(&lines[i]);
		lines[i].line = w->frames.frame[i].line;
		pointers[i] = &lines[i];
		r = function_id(w, &w->frames.frame[i], &lines[i].function_id);
		if (r < 0)
			return r;
	}
	m.id = id;
	m.address = w->frames.pseudo ? 0 : w->frames.address;
	m.n_line = w->frames.count;
	m.line = pointers;
	if (w->frames.mapping >= 0) {
		mapping_number(w, (size_t)w->frames.mapping);
		m.mapping_id = w->used[w->frames.mapping].id;
		note_use(&w->used[w->frames.mapping], &w->frames);
	}
	return write_message(w, FIELD_LOCATION, &m.base);
}

static int
write_locations(struct writer *w)
{
	int r = 0;

	symbols_resolve(w->symbols, w->pcs.pcs, w->pcs.count);
	for (size_t i = 0; i < w->pcs.count && !r; i++)
		r = write_location(w, i + 1, w->pcs.pcs[i]);
	return r;
}

/* How many, or a negative errno. */
static int
sample_labels(struct writer *w, const struct profile_sample *s, struct pprof_sample_label ret[PPROF_SAMPLE_LABELS])
{
	struct label labels[LABELS_MAX];
	unsigned     n = s->labels ? labels_read(s->labels, labels) : 0;
	int64_t      key, text;
	int          r = 0;

	for (unsigned i = 0; i < n && !r; i++) {
		r = string(w, labels[i].key, &key);
		if (!r)
			r = string(w, labels[i].value, &text);
		if (!r)
			ret[i] = (struct pprof_sample_label){ (uint64_t)key, (uint64_t)text, 0 };
	}
	if (!r && s->event_bytes && !w->bytes_key)
		r = string(w, "bytes", &w->bytes_key);
	if (!r && s->event_bytes)
		ret[n++] = (struct pprof_sample_label){ (uint64_t)w->bytes_key, 0, s->event_bytes };
	return r < 0 ? r : (int)n;
}

static int
write_sample(struct writer *w, const struct profile_sample *s, const uintptr_t *pcs, unsigned count)
{
	struct pprof_sample_label labels[PPROF_SAMPLE_LABELS];
	const uint8_t            *data;
	size_t                    size;
	int                       n = sample_labels(w, s, labels), r;

	if (n < 0)
		return n;
	r = pprof_sample_pack(&w->sample, pcs, count, location_id, w, s->values, w->profile->type_count, labels,
		(unsigned)n, &data, &size);
	return r < 0 ? r : gzip_write(&w->gzip, data, size);
}

static int
write_samples(struct writer *w)
{
	const struct profile *p = w->profile;
	struct profile_sample lost;
	int                   r = 0;

	for (size_t i = 0; i < p->count && !r; i++) {
		unsigned         n;
		const uintptr_t *pcs = frames_stack(p->samples[i].stack, &n);

		r = write_sample(w, &p->samples[i], pcs, n);
	}
	if (!r && frames_lost(p, &lost))
		r = write_sample(w, &lost, frames_lost_stack, 1);
	return r;
}

static int
write_mappings(struct writer *w)
{
	int r = 0;

	for (size_t n = 0; n < w->mapping_count && !r; n++) {
		size_t                       i = w->mappings[n];
		const struct symbol_mapping *from = symbols_mapping(w->symbols, i);
		Component__Pprof__Mapping    m = COMPONENT__PPROF__MAPPING__INIT;

		m.id = n + 1;
		m.memory_start = from->start;
		m.memory_limit = from->limit;
		m.file_offset = from->offset;
		m.has_functions = w->used[i].functions;
		m.has_filenames = w->used[i].files;
		m.has_line_numbers = w->used[i].lines;
		m.has_inline_frames = w->used[i].inlined;
		r = string(w, from->path, &m.filename);
		if (!r)
			r = string(w, from->build_id, &m.build_id);
		if (!r)
			r = write_message(w, FIELD_MAPPING, &m.base);
	}
	return r;
}

/* A message on its way, and what it is written by. */
struct commented {
	struct writer             *writer;
	Component__Pprof__Profile *message;
};

static int
add_comment(void *arg, const char *text, size_t size)
{
	struct commented          *c = arg;
	Component__Pprof__Profile *m = c->message;

	return m->n_comment == COMMENTS_MAX ? 0 : string_sized(c->writer, text, size, false, &m->comment[m->n_comment++]);
}

/* What is no table: a Profile message with nothing else in it. */
static int
write_rest(struct writer *w)
{
	const struct profile       *p = w->profile;
	Component__Pprof__Profile   m = COMPONENT__PPROF__PROFILE__INIT;
	Component__Pprof__ValueType period_type;
	uint8_t                    *buf;
	size_t                      size;
	int                         r;

	m.comment = arena_array(w->arena, COMMENTS_MAX, sizeof(*m.comment));
	if (!m.comment)
		return -ENOMEM;
	r = comments_of(p, w->symbols, add_comment, &(struct commented){ w, &m });
	if (!r)
		r = value_type(w, &p->period_type, &period_type);
	if (!r && p->default_type)
		r = string(w, p->default_type, &m.default_sample_type);
	if (r < 0)
		return r;
	m.time_nanos = p->time_ns;
	m.duration_nanos = p->duration_ns;
	m.period_type = &period_type;
	m.period = p->period;
	size = component__pprof__profile__get_packed_size(&m);
	buf = arena_alloc(w->arena, size);
	if (!buf)
		return -ENOMEM;
	return gzip_write(&w->gzip, buf, component__pprof__profile__pack(&m, buf));
}

static int
write_types(struct writer *w)
{
	int64_t empty;
	int     r = string(w, "", &empty); /* string_table[0] */

	for (unsigned i = 0; i < w->profile->type_count && !r; i++) {
		Component__Pprof__ValueType t;

		r = value_type(w, &w->profile->types[i], &t);
		if (!r)
			r = write_message(w, FIELD_SAMPLE_TYPE, &t.base);
	}
	return r;
}

int
encode_pprof(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { 0, ENCODE_MEMORY_MAX };
	struct arena        arena;
	struct writer      *w;
	int                 r = -ENOMEM;

	if (p->type_count > PROFILE_TYPES_MAX)
		return -EINVAL;
	arena_init(&arena, &budget);
	w = arena_alloc(&arena, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->profile = p;
	w->symbols = s;
	w->arena = &arena;
	strings_init(&w->strings, w->arena);
	table_init(&w->locations, w->arena->budget);
	table_init(&w->functions, w->arena->budget);
	w->pcs.budget = w->arena->budget;
	w->used = arena_array(w->arena, symbols_mapping_count(s) + 1, sizeof(*w->used));
	w->mappings = arena_array(w->arena, symbols_mapping_count(s) + 1, sizeof(*w->mappings));
	for (size_t i = 0; w->used && w->mappings && i < symbols_mapping_count(s); i++)
		if (!symbols_mapping(s, i)->gone)
			mapping_number(w, i);
	if (w->used && w->mappings)
		r = gzip_open(&w->gzip, w->arena, write, arg);
	if (!r)
		r = write_types(w);
	if (!r)
		r = write_samples(w);
	if (!r)
		r = write_locations(w);
	if (!r)
		r = write_mappings(w);
	if (!r)
		r = write_rest(w);
	if (!r)
		r = gzip_finish(&w->gzip);
	strings_release(&w->strings);
	table_release(&w->locations);
	table_release(&w->functions);
	frames_list_release(&w->pcs);
	arena_release(&arena);
	return r;
}
