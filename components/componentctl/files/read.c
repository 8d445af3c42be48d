/*
 * read.c - a pprof file in memory.
 *
 * Unpacked by zlib and by the code that protobuf-c makes of profiler/encode/profile.proto, into one arena with a
 * budget: an empty message of two bytes takes fifty in memory, and a file of some kilobytes unpacks to as many
 * gigabytes.  Whatever go tool pprof calls malformed is refused here, in as few words.
 *
 * What a stranger would get wrong:
 *  - ids need not be indices: they may be any number but 0, and are looked up.
 *  - names are demangled here only where the file has them mangled alone, and are as short as pprof's.
 *  - drop_frames cuts a stack below the function it means, but never the first frames from the root: see
 *    drop_below().
 *
 * Tests: tests/components/test_read.c, tests/componentctl/profile.t
 */
#include <config.h>

#include "read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "legacy.h"
#include "match.h"
#include "order.h"
#include "profile.pb-c.h"
#include "table.h"
#include "text.h"
#include "utf8.h"

typedef Component__Pprof__Profile Message;

struct reader {
	struct pprof          *p;
	const Message         *m;
	struct table           mappings, functions, locations; /* id to index + 1 */
	struct demangle_room  *demangling;
	bool                   is_legacy; /* and p is what it said */
	uint64_t               named; /* bytes; see count_names() */
	struct component_error *err;
};

static int
refuse(struct component_error *err, const char *why)
{
	component_error_set(err, "%s", why);
	return -EINVAL;
}

static int
no_memory(struct component_error *err)
{
	component_error_set(err, "takes more than the %zu MiB of memory that there are for a profile",
		READ_MEMORY_MAX >> 20);
	return -ENOMEM;
}

/* Unpacks into a mapping of its own, which doubles. */
struct unpacked {
	unsigned char *data;
	size_t         size, room;
};

static int
grow(struct unpacked *u, struct arena_budget *budget, struct component_error *err)
{
	size_t         room = u->room ? u->room * 2 : (size_t)1 << 20;
	unsigned char *data;

	if (room > READ_BYTES_MAX) {
		component_error_set(err, "unpacks to more than %zu MiB", READ_BYTES_MAX >> 20);
		return -EFBIG;
	}
	data = arena_map(budget, room);
	if (!data)
		return no_memory(err);
	if (u->size)
		memcpy(data, u->data, u->size);
	arena_unmap(budget, u->data, u->room);
	u->data = data;
	u->room = room;
	return 0;
}

static int
inflate_all(z_stream *z, struct unpacked *u, struct arena_budget *budget, struct component_error *err)
{
	for (;;) {
		int r = u->size == u->room ? grow(u, budget, err) : 0;

		if (r < 0)
			return r;
		z->next_out = u->data + u->size;
		z->avail_out = (uInt)(u->room - u->size);
		r = inflate(z, Z_NO_FLUSH);
		u->size = u->room - z->avail_out;
		if (r == Z_STREAM_END && !z->avail_in)
			return 0;
		if (r == Z_STREAM_END)
			r = inflateReset(z); /* files that were put one behind the other are one */
		if (r == Z_BUF_ERROR && !z->avail_in && z->avail_out)
			return refuse(err, "is cut off");
		if (r != Z_OK && r != Z_BUF_ERROR)
			return refuse(err, "is damaged: gzip cannot unpack it");
	}
}

static int
unpack_gzip(const void *data, size_t size, struct unpacked *u, struct pprof *p, struct component_error *err)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size, .zalloc = arena_zalloc,
		.zfree = arena_keep, .opaque = &p->arena };
	int      r;

	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return no_memory(err);
	r = inflate_all(&z, u, &p->budget, err);
	inflateEnd(&z);
	return r;
}

static void *
message_alloc(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

static int
unpack(struct reader *r, const void *data, size_t size)
{
	const unsigned char *bytes = data;
	struct unpacked      u = { .data = NULL };
	ProtobufCAllocator   memory = { message_alloc, arena_keep, &r->p->arena };
	bool                 packed = size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
	int                  error = 0;

	if (!size)
		return refuse(r->err, "is empty");
	if (size > READ_BYTES_MAX) {
		component_error_set(r->err, "has more than %zu MiB", READ_BYTES_MAX >> 20);
		return -EFBIG;
	}
	if (packed)
		error = unpack_gzip(data, size, &u, r->p, r->err);
	r->is_legacy = !error && legacy_is(packed ? u.data : bytes, packed ? u.size : size);
	if (r->is_legacy) {
		error = legacy_read(packed ? u.data : bytes, packed ? u.size : size, r->p, r->err);
	} else if (!error) {
		r->m = component__pprof__profile__unpack(&memory, packed ? u.size : size, packed ? u.data : bytes);
		if (!r->m && r->p->budget.used > READ_MEMORY_MAX / 2)
			error = no_memory(r->err);
		else if (!r->m)
			error = refuse(r->err, packed ? "is no pprof profile, or cut off" :
				"is no pprof profile (a .pb.gz that /debug/pprof/ has sent, or go test -cpuprofile made)");
	}
	arena_unmap(&r->p->budget, u.data, u.room);
	return error;
}

/* A text of the table; NULL: there is no such one. */
static const char *
text(const struct reader *r, int64_t index)
{
	if (!index)
		return "";
	return index > 0 && (uint64_t)index < r->m->n_string_table ? r->m->string_table[index] : NULL;
}

/* What a terminal may be given: units stand beside each number.  NULL: as text(), or there is no memory. */
static const char *
clean_text(struct reader *r, int64_t index)
{
	const char *s = text(r, index);

	return s && !utf8_is_clean(s, strlen(s)) ? utf8_clean(&r->p->arena, s, strlen(s)) : s;
}

/* Adds up the bytes of names.  Each use counts, since each is looked at, and many may be one long text of the file.  0, or -EFBIG. */
static int
count_names(struct reader *r, const char *a, const char *b, const char *c)
{
	r->named += strlen(a) + strlen(b) + strlen(c);
	if (r->named <= READ_NAMES_MAX)
		return 0;
	component_error_set(r->err, "has more than %llu MiB of names, counted each time that they are used",
		(unsigned long long)(READ_NAMES_MAX >> 20));
	return -EFBIG;
}

static int
read_types(struct reader *r)
{
	const Message *m = r->m;
	struct pprof  *p = r->p;
	const char    *usual = text(r, m->default_sample_type);
	int            error = 0;

	if (!m->n_sample_type)
		return refuse(r->err, "is no pprof profile: it does not say what it measured");
	p->types = arena_array(&p->arena, m->n_sample_type, sizeof(*p->types));
	if (!p->types)
		return no_memory(r->err);
	p->type_count = m->n_sample_type;
	p->usual_type = usual;
	p->usual = p->type_count - 1;
	for (size_t i = p->type_count; i-- > 0 && !error;) {
		p->types[i] = (struct pprof_type){ clean_text(r, m->sample_type[i]->type), clean_text(r, m->sample_type[i]->unit) };
		if (!p->types[i].type || !p->types[i].unit)
			return refuse(r->err, "is damaged: a text is not in its table");
		if (usual && *usual && !strcmp(usual, p->types[i].type))
			p->usual = i;
		error = count_names(r, p->types[i].type, p->types[i].unit, "");
	}
	return usual ? error : refuse(r->err, "is damaged: a text is not in its table");
}

static int
add_id(struct reader *r, struct table *t, uint64_t id, size_t index, const char *what)
{
	if (!id || table_get(t, id)) {
		component_error_set(r->err, "is damaged: %s number %llu is there twice, or none", what,
			(unsigned long long)id);
		return -EINVAL;
	}
	return table_put(t, id, index + 1) < 0 ? no_memory(r->err) : 0;
}

static int
read_mappings(struct reader *r)
{
	const Message *m = r->m;
	struct pprof  *p = r->p;
	int            error = 0;

	p->mappings = arena_array(&p->arena, m->n_mapping + 1, sizeof(*p->mappings));
	if (!p->mappings)
		return no_memory(r->err);
	p->mapping_count = m->n_mapping;
	for (size_t i = 0; i < m->n_mapping && !error; i++) {
		const Component__Pprof__Mapping *from = m->mapping[i];

		p->mappings[i] = (struct pprof_mapping){ from->memory_start, from->memory_limit, from->file_offset,
			text(r, from->filename), text(r, from->build_id), from->has_functions, from->has_filenames,
			from->has_line_numbers, from->has_inline_frames };
		if (!p->mappings[i].file || !p->mappings[i].build_id)
			return refuse(r->err, "is damaged: a text is not in its table");
		error = count_names(r, p->mappings[i].file, p->mappings[i].build_id, "");
		if (!error)
			error = add_id(r, &r->mappings, m->mapping[i]->id, i, "mapping");
	}
	p->object = m->n_mapping ? p->mappings[0].file : "";
	p->build_id = m->n_mapping ? p->mappings[0].build_id : "";
	return error;
}

/* Cuts what is between two brackets, and the brackets, as pprof does: nothing where they do not match. */
static void
cut_between(char *name, char open, char close)
{
	size_t depth = 0, first = 0, to = 0;
	bool   matches = true;

	for (size_t i = 0; name[i]; i++) {
		char c = matches ? name[i] : '\0';

		if (c == open && !depth++)
			first = to;
		if (c == close && !depth--)
			matches = false;
		name[to++] = name[i];
		if (c == close && matches && !depth)
			to = first;
	}
	name[to] = '\0';
}

const char *
read_name(struct pprof *p, struct demangle_room **room, const char *name, const char *system_name)
{
	const char *readable;
	char       *shorter;

	if (*name && strcmp(name, system_name))
		return name;
	readable = demangle_short(system_name, room, &p->arena);
	if (!readable && *system_name == '_') /* macOS has one more */
		readable = demangle_short(system_name + 1, room, &p->arena);
	if (readable)
		return readable;
	name = system_name;
	if (strstr(name, ".<") || strstr(name, "]).") || (!strpbrk(name, "<>[]") && !strstr(name, "::")))
		return name;
	shorter = arena_strndup(&p->arena, name, strlen(name));
	if (!shorter)
		return NULL;
	cut_between(shorter, '(', ')');
	cut_between(shorter, '<', '>');
	return shorter;
}

static int
read_functions(struct reader *r)
{
	const Message *m = r->m;
	struct pprof  *p = r->p;
	int            error = 0;

	p->functions = arena_array(&p->arena, m->n_function + 1, sizeof(*p->functions));
	if (!p->functions)
		return no_memory(r->err);
	for (size_t i = 0; i < m->n_function && !error; i++) {
		const Component__Pprof__Function *f = m->function[i];
		const char *name = text(r, f->name), *system_name = text(r, f->system_name), *file = text(r, f->filename);

		if (!name || !system_name || !file)
			return refuse(r->err, "is damaged: a text is not in its table");
		error = count_names(r, name, system_name, file);
		if (error)
			return error;
		name = read_name(p, &r->demangling, name, system_name);
		if (!name)
			return no_memory(r->err);
		p->functions[i] = (struct pprof_function){ name, file, system_name, f->start_line };
		error = add_id(r, &r->functions, f->id, i, "function");
	}
	p->function_count = m->n_function;
	return error;
}

static int
read_lines(struct reader *r, const Component__Pprof__Location *from, struct pprof_location *to)
{
	struct pprof_line *lines = arena_array(&r->p->arena, from->n_line + 1, sizeof(*lines));
	int                error = count_names(r, to->object, "", "");

	to->functions = arena_array(&r->p->arena, from->n_line + 1, sizeof(struct pprof_function *));
	if (!lines || !to->functions)
		return no_memory(r->err);
	to->lines = lines;
	for (size_t i = 0; i < from->n_line && !error; i++) {
		uint64_t index = table_get(&r->functions, from->line[i]->function_id);

		if (!index)
			return refuse(r->err, "is damaged: a line's function is missing");
		to->functions[i] = &r->p->functions[index - 1];
		lines[i] = (struct pprof_line){ from->line[i]->line, from->line[i]->column };
		error = count_names(r, to->functions[i]->name, to->functions[i]->file, "");
	}
	to->count = (uint32_t)from->n_line;
	return error;
}

static int
read_locations(struct reader *r)
{
	const Message *m = r->m;
	struct pprof  *p = r->p;
	int            error = 0;

	p->locations = arena_array(&p->arena, m->n_location + 1, sizeof(*p->locations));
	if (!p->locations)
		return no_memory(r->err);
	for (size_t i = 0; i < m->n_location && !error; i++) {
		uint64_t mapping = m->location[i]->mapping_id ? table_get(&r->mappings, m->location[i]->mapping_id) : 0;

		p->locations[i].mapping = mapping ? &p->mappings[mapping - 1] : NULL;
		p->locations[i].object = mapping ? p->mappings[mapping - 1].file : "";
		p->locations[i].address = m->location[i]->address;
		p->locations[i].is_folded = m->location[i]->is_folded;
		error = read_lines(r, m->location[i], &p->locations[i]);
		if (!error)
			error = add_id(r, &r->locations, m->location[i]->id, i, "location");
	}
	p->location_count = m->n_location;
	return error;
}

static bool
is_base(const struct reader *r, const Component__Pprof__Sample *s)
{
	for (size_t i = 0; i < s->n_label; i++) {
		const char *key = text(r, s->label[i]->key), *value = text(r, s->label[i]->str);

		if (key && value && !strcmp(key, "pprof::base") && !strcmp(value, "true"))
			return true;
	}
	return false;
}

struct labels {
	const struct reader            *r;
	const Component__Pprof__Sample *s;
};

/* By key; of one key, in the order of the file. */
static bool
label_before(const void *arg, uint32_t a, uint32_t b)
{
	const struct labels *l = arg;
	int                  order = strcmp(text(l->r, l->s->label[a]->key), text(l->r, l->s->label[b]->key));

	return order ? order < 0 : a < b;
}

static void
add_label(struct text *to, const char *key, const char *value, const char *unit, int64_t number)
{
	const char *words[] = { key, value, unit };

	for (unsigned i = 0; i < 3; i++)
		text_add_bytes(to, words[i], strlen(words[i]) + 1);
	text_add_bytes(to, (const char *)&number, sizeof(number));
}

/* Releases all. */
static int
keep_labels(struct pprof *p, struct pprof_sample *s, struct text *all)
{
	char *bytes = all->failed ? NULL : arena_strndup(&p->arena, text_string(all), all->size);

	s->labels_size = bytes ? all->size : 0;
	s->labels = bytes ? bytes : "";
	text_release(all);
	return bytes ? 0 : -ENOMEM;
}

bool
read_label(const struct pprof_sample *s, size_t *at, struct pprof_label *ret)
{
	const char **words[] = { &ret->key, &ret->text, &ret->unit };

	if (*at == s->labels_size)
		return false;
	for (unsigned i = 0; i < 3; i++) {
		*words[i] = s->labels + *at;
		*at += strlen(*words[i]) + 1;
	}
	memcpy(&ret->number, s->labels + *at, sizeof(ret->number));
	*at += sizeof(ret->number);
	return true;
}

int
read_label_add(struct pprof *p, struct pprof_sample *s, const char *key, const char *value)
{
	struct text        all = TEXT_INIT;
	struct pprof_label l;
	bool               is_there = false;

	for (size_t at = 0; read_label(s, &at, &l);) {
		if (!is_there && strcmp(l.key, key) > 0) {
			add_label(&all, key, value, "", 0);
			is_there = true;
		}
		add_label(&all, l.key, l.text, l.unit, l.number);
	}
	if (!is_there)
		add_label(&all, key, value, "", 0);
	return keep_labels(p, s, &all);
}

static int
read_labels(struct reader *r, const Component__Pprof__Sample *from, struct pprof_sample *to)
{
	struct arena *a = &r->p->arena;
	uint32_t     *order;
	struct text   all = TEXT_INIT;
	size_t        bytes = 0;

	to->labels = "";
	if (!from->n_label)
		return 0;
	for (size_t i = 0; i < from->n_label; i++) {
		const char *key = text(r, from->label[i]->key), *value = text(r, from->label[i]->str);
		const char *unit = text(r, from->label[i]->num_unit);

		if (!key || !value || !unit)
			return refuse(r->err, "is damaged: a text is not in its table");
		bytes += strlen(key) + strlen(value) + strlen(unit); /* many may be one long text of the file */
		if (bytes > READ_MEMORY_MAX - r->p->budget.used)
			return no_memory(r->err);
	}
	order = order_of(a, from->n_label, label_before, &(struct labels){ r, from });
	for (size_t i = 0; i < from->n_label && order; i++) {
		const Component__Pprof__Label *l = from->label[order[i]];
		const char                    *key = text(r, l->key);

		if (strcmp(key, "pprof::base") != 0) /* is_base has it, which a merge may set */
			add_label(&all, key, text(r, l->str), text(r, l->num_unit), l->num);
	}
	all.failed |= !order;
	return keep_labels(r->p, to, &all) < 0 ? no_memory(r->err) : 0;
}

static int
read_samples(struct reader *r)
{
	const Message *m = r->m;
	struct pprof  *p = r->p;
	uint64_t       frames = 0;
	int            error;

	p->samples = arena_array(&p->arena, m->n_sample + 1, sizeof(*p->samples));
	if (!p->samples)
		return no_memory(r->err);
	for (size_t i = 0; i < m->n_sample; i++) {
		const Component__Pprof__Sample *from = m->sample[i];
		struct pprof_sample            *to = &p->samples[i];

		if (from->n_value != p->type_count)
			return refuse(r->err, "is damaged: a sample has not as many values as there are types");
		to->stack = arena_array(&p->arena, from->n_location_id + 1, sizeof(struct pprof_location *));
		if (!to->stack)
			return no_memory(r->err);
		for (size_t k = 0; k < from->n_location_id; k++) {
			uint64_t index = table_get(&r->locations, from->location_id[k]);

			if (!index)
				return refuse(r->err, "is damaged: a sample's location is missing");
			to->stack[k] = &p->locations[index - 1];
			frames += 1 + to->stack[k]->count;
		}
		if (frames > READ_FRAMES_MAX) {
			component_error_set(r->err, "has more than %llu functions on its stacks",
				(unsigned long long)READ_FRAMES_MAX);
			return -EFBIG;
		}
		to->count = (uint32_t)from->n_location_id;
		to->values = from->value;
		to->is_base = is_base(r, from);
		error = read_labels(r, from, to);
		if (error)
			return error;
	}
	p->sample_count = m->n_sample;
	return 0;
}

static int
read_head(struct reader *r)
{
	struct pprof                      *p = r->p;
	const Component__Pprof__ValueType *of = r->m->period_type;

	p->period_type = (struct pprof_type){ of ? clean_text(r, of->type) : "", of ? clean_text(r, of->unit) : "" };
	p->period = r->m->period;
	p->time_ns = r->m->time_nanos;
	p->duration_ns = r->m->duration_nanos;
	p->drop_frames = text(r, r->m->drop_frames);
	p->keep_frames = text(r, r->m->keep_frames);
	if (!p->drop_frames || !p->keep_frames || !p->period_type.type || !p->period_type.unit)
		return refuse(r->err, "is damaged: a text is not in its table");
	p->comments = arena_array(&p->arena, r->m->n_comment + 1, sizeof(char *));
	if (!p->comments)
		return no_memory(r->err);
	for (size_t i = 0, bytes = 0; i < r->m->n_comment; i++) {
		p->comments[i] = text(r, r->m->comment[i]);
		if (!p->comments[i])
			return refuse(r->err, "is damaged: a text is not in its table");
		bytes += strlen(p->comments[i]); /* many may be one text of the file */
		if (bytes > READ_BYTES_MAX)
			return no_memory(r->err);
	}
	p->comment_count = r->m->n_comment;
	return 0;
}

#define DROP_NAME_MAX 4096 /* bytes; longer ones stay */

/* A name without its arguments: up to a bracket that is not the name's own.  Of one that is too long, some more than DROP_NAME_MAX. */
static size_t
length_without_arguments(const char *name)
{
	static const char *const kept[] = { "(anonymous namespace)", "operator()" };
	const char              *at = name;

	for (;;) {
		size_t own = 0;

		for (unsigned i = 0; i < 2 && !own; i++)
			own = !strncmp(at, kept[i], strlen(kept[i])) ? strlen(kept[i]) : 0;
		if ((!own && (!*at || *at == '(')) || at - name > DROP_NAME_MAX)
			return (size_t)(at - name);
		at += own ? own : 1;
	}
}

/*
 * What a file's own patterns say of its functions, each asked for once.  glibc remembers each state that a name has led
 * to, which may be one for each byte, as large as the pattern: they are forgotten in time.
 */
#define DROP_STATE_MIN 512                  /* a state takes no less than with patterns of so many bytes */
#define DROP_KEPT_MAX  ((size_t)4 << 20)    /* bytes of names times bytes of patterns: less than 100 MiB of states */
#define DROP_WORK_MAX  ((uint64_t)32 << 30) /* the same: minutes */

enum decision { UNDECIDED, STAYS, GOES };

struct dropper {
	const struct pprof *p;
	struct match        drop, keep;
	uint8_t            *decisions; /* of each function */
	size_t              patterns, kept;
	uint64_t            work;
};

static bool
dropper_compile(struct dropper *d)
{
	char why[MATCH_WHY_MAX];

	match_release(&d->drop);
	match_release(&d->keep);
	d->kept = 0;
	return !match_whole(&d->drop, d->p->drop_frames, why, sizeof(why)) &&
		(!*d->p->keep_frames || !match_whole(&d->keep, d->p->keep_frames, why, sizeof(why)));
}

static enum decision
decide(struct dropper *d, const char *name)
{
	char   plain[DROP_NAME_MAX + 1];
	size_t size;

	name += name[0] == '.';
	size = length_without_arguments(name);
	if (!*name || size > DROP_NAME_MAX || d->work > DROP_WORK_MAX)
		return STAYS;
	d->kept += size * d->patterns;
	d->work += size * d->patterns;
	if (d->kept > DROP_KEPT_MAX && !dropper_compile(d))
		return STAYS;
	memcpy(plain, name, size);
	plain[size] = '\0';
	return match_finds(&d->drop, plain) && !(d->keep.usable && match_finds(&d->keep, plain)) ? GOES : STAYS;
}

static bool
goes(struct dropper *d, const struct pprof_function *f)
{
	uint8_t *decision = &d->decisions[f - d->p->functions];

	if (*decision == UNDECIDED)
		*decision = decide(d, f->name);
	return *decision == GOES;
}

/* Functions of an address that are to go, and those that they were inlined into stay. */
static void
drop_in(struct dropper *d, struct pprof_location *l)
{
	uint32_t i = l->count;

	while (i > 0 && !goes(d, l->functions[i - 1]))
		i--;
	if (!i)
		return;
	l->has_dropped = true;
	l->is_dropped = i == l->count;
	if (!l->is_dropped) {
		l->functions += i;
		l->lines += i;
		l->count -= i;
	}
}

/* Not before a frame that stays, counted from the root, or nothing would be left. */
static void
drop_below(struct pprof_sample *s)
{
	bool stays = false;

	for (uint32_t i = s->count; i-- > 0;) {
		uint32_t cut = s->stack[i]->is_dropped ? i + 1 : i;

		if (!s->stack[i]->has_dropped) {
			stays = true;
		} else if (stays) {
			s->stack += cut;
			s->count -= cut;
			return;
		}
	}
}

int
read_drop_frames(struct pprof *p, struct component_error *err)
{
	struct dropper d = { .p = p, .drop = MATCH_INIT, .keep = MATCH_INIT };
	bool           usable;
	int            r = 0;

	if (!*p->drop_frames)
		return 0;
	d.patterns = DROP_STATE_MIN + strlen(p->drop_frames) + strlen(p->keep_frames);
	d.decisions = arena_alloc(&p->arena, p->function_count + 1);
	if (!d.decisions)
		return no_memory(err);
	/* As pprof, which shows everything where the file's own pattern is none. */
	usable = dropper_compile(&d);
	for (size_t i = 0; i < p->location_count && usable; i++)
		drop_in(&d, &p->locations[i]);
	for (size_t i = 0; i < p->sample_count && usable; i++)
		drop_below(&p->samples[i]);
	if (d.work > DROP_WORK_MAX) {
		component_error_set(err, "has a drop_frames that takes too long for its names");
		r = -EFBIG;
	}
	match_release(&d.drop);
	match_release(&d.keep);
	return r;
}

static int
read_all(struct reader *r)
{
	static int (*const parts[])(struct reader *r) = { read_types, read_mappings, read_functions, read_locations,
		read_samples, read_head };
	int error = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !error; i++)
		error = parts[i](r);
	return error;
}

int
read_profile(const void *data, size_t size, struct pprof *ret, struct component_error *err)
{
	struct reader r = { .p = ret, .err = err };
	int           error;

	*ret = (struct pprof){ .budget = { 0, READ_MEMORY_MAX } };
	arena_init(&ret->arena, &ret->budget);
	table_init(&r.mappings, &ret->budget);
	table_init(&r.functions, &ret->budget);
	table_init(&r.locations, &ret->budget);
	error = unpack(&r, data, size);
	if (!error && !r.is_legacy)
		error = read_all(&r);
	table_release(&r.mappings);
	table_release(&r.functions);
	table_release(&r.locations);
	return error;
}

void
read_release(struct pprof *p)
{
	arena_release(&p->arena);
}
