/*
 * merge.c - several profiles as one, as go tool pprof adds and subtracts them.
 *
 * Mappings, functions, addresses and samples are each known by bytes that are equal where they mean the same: an
 * address by its mapping's file and where it is in that, so that processes with other addresses have one stack.
 *
 * What a stranger would get wrong: it does matter that equal samples become one.  The total is of amounts without
 * their signs, and 5 with -5 would count as 10.
 *
 * Tests: tests/componentctl/views.t, against go tool pprof
 */
#include <config.h>

#include "merge.h"

#include <errno.h>
#include <string.h>

#include "strings.h"
#include "text.h"

#define PAGE 4096ULL /* to which pprof rounds a mapping's size */

struct merger {
	struct pprof  *to;
	struct strings mappings, functions, locations, samples;
	uint64_t      *mapping_ids, *function_ids, *location_ids; /* of the source at hand, by index */
	size_t        *types; /* of the source at hand, by type of the result */
};

static void
add_number(struct text *key, uint64_t n)
{
	text_add_bytes(key, (const char *)&n, sizeof(n));
}

static void
add_word(struct text *key, const char *word)
{
	text_add_bytes(key, word, strlen(word) + 1);
}

/* Releases key. */
static int
identify(struct strings *s, struct text *key, uint64_t *ret, bool *ret_new)
{
	int r = key->failed ? -ENOMEM : strings_id(s, text_string(key), key->size, false, ret, ret_new);

	text_release(key);
	return r;
}

/* A mapping without samples does not say that it has names, but the one with them does. */
static void
add_flags(struct pprof_mapping *to, const struct pprof_mapping *from)
{
	to->has_functions |= from->has_functions;
	to->has_files |= from->has_files;
	to->has_lines |= from->has_lines;
	to->has_inlined |= from->has_inlined;
}

/* Of a profile without any mapping, as pprof has it, all is in one without a name. */
static int
merge_mappings(struct merger *m, const struct pprof *p)
{
	static const struct pprof_mapping nameless = { .file = "", .build_id = "" };
	const struct pprof_mapping       *mappings = p->mapping_count ? p->mappings : &nameless;

	m->mapping_ids = arena_array(&m->to->arena, p->mapping_count + 1, sizeof(uint64_t));
	if (!m->mapping_ids)
		return -ENOMEM;
	for (size_t i = 0; i < p->mapping_count || !i; i++) {
		const struct pprof_mapping *from = &mappings[i];
		struct text                 key = TEXT_INIT;
		bool                        is_new;

		add_number(&key, (from->limit - from->start + PAGE - 1) / PAGE);
		add_number(&key, from->offset);
		add_word(&key, *from->build_id ? from->build_id : from->file);
		if (identify(&m->mappings, &key, &m->mapping_ids[i], &is_new) < 0)
			return -ENOMEM;
		if (is_new)
			m->to->mappings[m->to->mapping_count++] = *from;
		else
			add_flags(&m->to->mappings[m->mapping_ids[i]], from);
	}
	return 0;
}

static int
merge_functions(struct merger *m, const struct pprof *p)
{
	m->function_ids = arena_array(&m->to->arena, p->function_count + 1, sizeof(uint64_t));
	if (!m->function_ids)
		return -ENOMEM;
	for (size_t i = 0; i < p->function_count; i++) {
		const struct pprof_function *from = &p->functions[i];
		struct text                  key = TEXT_INIT;
		bool                         is_new;

		add_number(&key, (uint64_t)from->start_line);
		add_word(&key, from->name);
		add_word(&key, from->system_name);
		add_word(&key, from->file);
		if (identify(&m->functions, &key, &m->function_ids[i], &is_new) < 0)
			return -ENOMEM;
		if (is_new)
			m->to->functions[m->to->function_count++] = *from;
	}
	return 0;
}

/* The number + 1; 0: it is in none. */
static uint64_t
mapping_of(const struct merger *m, const struct pprof *p, const struct pprof_location *l)
{
	if (!p->mapping_count)
		return m->mapping_ids[0] + 1;
	return l->mapping ? m->mapping_ids[l->mapping - p->mappings] + 1 : 0;
}

static int
add_location(struct merger *m, const struct pprof *p, const struct pprof_location *from)
{
	struct pprof_location *l = &m->to->locations[m->to->location_count++];
	uint64_t               mapping = mapping_of(m, p, from);

	*l = *from;
	l->functions = arena_array(&m->to->arena, (size_t)from->count + 1, sizeof(*l->functions));
	if (!l->functions)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->count; i++)
		l->functions[i] = &m->to->functions[m->function_ids[from->functions[i] - p->functions]];
	if (mapping) {
		l->mapping = &m->to->mappings[mapping - 1];
		l->object = l->mapping->file;
		l->address = from->address - (from->mapping ? from->mapping->start : 0) + l->mapping->start;
	}
	return 0;
}

static int
merge_locations(struct merger *m, const struct pprof *p)
{
	m->location_ids = arena_array(&m->to->arena, p->location_count + 1, sizeof(uint64_t));
	if (!m->location_ids)
		return -ENOMEM;
	for (size_t i = 0; i < p->location_count; i++) {
		const struct pprof_location *from = &p->locations[i];
		struct text                  key = TEXT_INIT;
		bool                         is_new;

		add_number(&key, mapping_of(m, p, from));
		add_number(&key, from->address - (from->mapping ? from->mapping->start : 0));
		add_number(&key, from->is_folded);
		for (uint32_t k = 0; k < from->count; k++) {
			add_number(&key, m->function_ids[from->functions[k] - p->functions]);
			add_number(&key, (uint64_t)from->lines[k].line);
			add_number(&key, (uint64_t)from->lines[k].column);
		}
		if (identify(&m->locations, &key, &m->location_ids[i], &is_new) < 0)
			return -ENOMEM;
		if (is_new && add_location(m, p, from) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int
add_sample(struct merger *m, const struct pprof *p, const struct pprof_sample *from, bool is_base)
{
	struct pprof_sample *s = &m->to->samples[m->to->sample_count++];

	*s = *from;
	s->is_base |= is_base;
	s->stack = arena_array(&m->to->arena, (size_t)from->count + 1, sizeof(*s->stack));
	s->values = arena_array(&m->to->arena, m->to->type_count, sizeof(*s->values));
	if (!s->stack || !s->values)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->count; i++)
		s->stack[i] = &m->to->locations[m->location_ids[from->stack[i] - p->locations]];
	return 0;
}

static bool
is_zero(const struct pprof_sample *s, size_t types)
{
	for (size_t i = 0; i < types; i++)
		if (s->values[i])
			return false;
	return true;
}

static int
merge_samples(struct merger *m, const struct merge_source *source)
{
	const struct pprof *p = source->p;

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct pprof_sample *from = &p->samples[i];
		struct text                key = TEXT_INIT;
		int64_t                   *values;
		uint64_t                   id;
		bool                       is_new;

		if (is_zero(from, p->type_count))
			continue;
		add_number(&key, from->is_base || source->is_base);
		add_number(&key, from->count);
		for (uint32_t k = 0; k < from->count; k++)
			add_number(&key, m->location_ids[from->stack[k] - p->locations]);
		text_add_bytes(&key, from->labels, from->labels_size);
		if (identify(&m->samples, &key, &id, &is_new) < 0)
			return -ENOMEM;
		if (is_new && add_sample(m, p, from, source->is_base) < 0)
			return -ENOMEM;
		values = (int64_t *)(uintptr_t)m->to->samples[id].values;
		for (size_t k = 0; k < m->to->type_count; k++) {
			uint64_t value = (uint64_t)from->values[m->types[k]];

			values[k] = (int64_t)((uint64_t)values[k] + (source->sign < 0 ? -value : value));
		}
	}
	return 0;
}

/* Samples that add up to nothing: gone. */
static void
drop_zeros(struct pprof *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		if (!is_zero(&p->samples[i], p->type_count))
			p->samples[kept++] = p->samples[i];
	p->sample_count = kept;
}

/* type_count: it has none. */
static size_t
type_of(const struct pprof *p, const char *type)
{
	size_t i = 0;

	while (i < p->type_count && strcmp(p->types[i].type, type))
		i++;
	return i;
}

/* As pprof, where each profile that loses a type, or has another order, says which is shown, and the first that says so is
 * right. */
static void
choose_usual(const struct merge_source *sources, size_t count, struct pprof *to)
{
	for (size_t i = 0; i < count && (!to->usual_type || !*to->usual_type); i++) {
		const struct pprof *p = sources[i].p;
		bool                same = p->type_count == to->type_count;

		for (size_t k = 0; k < to->type_count && same; k++)
			same = !strcmp(p->types[k].type, to->types[k].type);
		to->usual_type = p->usual_type;
		if (!same && (!p->usual_type || type_of(to, p->usual_type) == to->type_count))
			to->usual_type = to->types[0].type;
	}
	to->usual = to->usual_type ? type_of(to, to->usual_type) : to->type_count;
	if (to->usual == to->type_count)
		to->usual = to->type_count - 1;
}

static int
common_types(const struct merge_source *sources, size_t count, struct pprof *to, struct component_error *err)
{
	const struct pprof *first = sources[0].p;

	for (size_t i = 0; i < count; i++)
		if (sources[i].p->type_count > MERGE_TYPES_MAX) {
			component_error_set(err, "a profile with more than %d types is none to subtract or add", MERGE_TYPES_MAX);
			return -EBADMSG;
		}
	to->types = arena_array(&to->arena, first->type_count, sizeof(*to->types));
	if (!to->types)
		return -ENOMEM;
	for (size_t i = 0; i < first->type_count; i++) {
		bool everywhere = true;

		for (size_t k = 0; k < count; k++) {
			const struct pprof *p = sources[k].p;
			size_t              at = type_of(p, first->types[i].type);

			if (at < p->type_count && strcmp(p->types[at].unit, first->types[i].unit)) {
				component_error_set(err, "the profiles measure '%.80s' in '%.80s' and in '%.80s'; take both "
					"of one program", first->types[i].type, first->types[i].unit, p->types[at].unit);
				return -EBADMSG;
			}
			everywhere = everywhere && at < p->type_count;
		}
		if (everywhere)
			to->types[to->type_count++] = first->types[i];
	}
	if (to->type_count) {
		choose_usual(sources, count, to);
		return 0;
	}
	component_error_set(err, "the profiles measure nothing that is the same; take both of one kind");
	return -EBADMSG;
}

static bool
has_comment(const struct pprof *p, const char *comment)
{
	for (size_t i = 0; i < p->comment_count; i++)
		if (!strcmp(p->comments[i], comment))
			return true;
	return false;
}

/* Room for all that the sources have, and the facts about the whole. */
static int
begin(const struct merge_source *sources, size_t count, struct pprof *to)
{
	size_t mappings = 1, functions = 1, locations = 1, samples = 1, comments = 1;

	for (size_t i = 0; i < count; i++) {
		mappings += sources[i].p->mapping_count + 1;
		functions += sources[i].p->function_count;
		locations += sources[i].p->location_count;
		samples += sources[i].p->sample_count;
		comments += sources[i].p->comment_count;
	}
	to->mappings = arena_array(&to->arena, mappings, sizeof(*to->mappings));
	to->functions = arena_array(&to->arena, functions, sizeof(*to->functions));
	to->locations = arena_array(&to->arena, locations, sizeof(*to->locations));
	to->samples = arena_array(&to->arena, samples, sizeof(*to->samples));
	to->comments = arena_array(&to->arena, comments, sizeof(*to->comments));
	if (!to->mappings || !to->functions || !to->locations || !to->samples || !to->comments)
		return -ENOMEM;
	to->drop_frames = sources[0].p->drop_frames;
	to->keep_frames = sources[0].p->keep_frames;
	to->period_type = sources[0].p->period_type;
	for (size_t i = 0; i < count; i++) {
		const struct pprof *p = sources[i].p;

		if (!to->time_ns || p->time_ns < to->time_ns)
			to->time_ns = p->time_ns;
		to->period = p->period > to->period ? p->period : to->period;
		to->duration_ns = (int64_t)((uint64_t)to->duration_ns + (uint64_t)p->duration_ns);
		for (size_t k = 0; k < p->comment_count && k < 1000; k++)
			if (!has_comment(to, p->comments[k]))
				to->comments[to->comment_count++] = p->comments[k];
	}
	return 0;
}

static int
merge_one(struct merger *m, const struct merge_source *source)
{
	int r;

	for (size_t i = 0; i < m->to->type_count; i++)
		m->types[i] = type_of(source->p, m->to->types[i].type);
	r = merge_mappings(m, source->p);
	if (!r)
		r = merge_functions(m, source->p);
	if (!r)
		r = merge_locations(m, source->p);
	return r ? r : merge_samples(m, source);
}

int
merge_profiles(const struct merge_source *sources, size_t count, struct pprof *ret, struct component_error *err)
{
	struct merger m = { .to = ret };
	int           r;

	*ret = (struct pprof){ .budget = { 0, READ_MEMORY_MAX }, .object = "", .build_id = "" };
	arena_init(&ret->arena, &ret->budget);
	strings_init(&m.mappings, &ret->arena);
	strings_init(&m.functions, &ret->arena);
	strings_init(&m.locations, &ret->arena);
	strings_init(&m.samples, &ret->arena);
	r = common_types(sources, count, ret, err);
	if (!r)
		r = begin(sources, count, ret);
	m.types = r ? NULL : arena_array(&ret->arena, ret->type_count, sizeof(*m.types));
	if (!r && !m.types)
		r = -ENOMEM;
	for (size_t i = 0; i < count && !r; i++)
		r = merge_one(&m, &sources[i]);
	if (!r) {
		drop_zeros(ret);
		ret->object = ret->mapping_count ? ret->mappings[0].file : "";
		ret->build_id = ret->mapping_count ? ret->mappings[0].build_id : "";
	}
	if (r == -ENOMEM)
		component_error_set(err, "the profiles together take more than the %zu MiB of memory that there are for one",
			READ_MEMORY_MAX >> 20);
	strings_release(&m.mappings);
	strings_release(&m.functions);
	strings_release(&m.locations);
	strings_release(&m.samples);
	return r;
}
