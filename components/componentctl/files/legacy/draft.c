/*
 * draft.c - what the formats of legacy.h have in common: lines, numbers, stacks of addresses, and samples of them.
 *
 * What a stranger would get wrong:
 *  - an address is where a call returns to, and 1 less is in the call.
 *
 * Tests: tests/componentctl/legacy.t, test_read.c
 */
#include <config.h>

#include "draft.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "legacy_map.h"
#include "table.h"

int
legacy_refuse(struct legacy *l, const char *why)
{
	component_error_set(l->err, "%s", why);
	return -EINVAL;
}

int
legacy_no_memory(struct legacy *l)
{
	component_error_set(l->err, "takes more than the %zu MiB of memory that there are for a profile",
		READ_MEMORY_MAX >> 20);
	return -ENOMEM;
}

/* Room for so many, which the file cannot have more of. */
int
legacy_make_room(struct legacy *l, size_t samples, size_t addresses)
{
	if (addresses > READ_FRAMES_MAX) {
		component_error_set(l->err, "has more than %llu functions on its stacks", (unsigned long long)READ_FRAMES_MAX);
		return -EFBIG;
	}
	l->room = samples;
	l->address_room = addresses;
	l->drafts = arena_array(&l->p->arena, samples + 1, sizeof(*l->drafts));
	l->addresses = arena_array(&l->p->arena, addresses + 1, sizeof(*l->addresses));
	return l->drafts && l->addresses ? 0 : legacy_no_memory(l);
}

int
legacy_set_types(struct legacy *l, const struct pprof_type *types, size_t count, struct pprof_type period_type)
{
	l->p->types = arena_array(&l->p->arena, count, sizeof(*types));
	if (!l->p->types)
		return legacy_no_memory(l);
	memcpy(l->p->types, types, count * sizeof(*types));
	l->p->type_count = count;
	l->p->usual = count - 1;
	l->p->period_type = period_type;
	return 0;
}

/* ---- lines ---- */

/* Without blanks around it. */
bool
legacy_next_line(struct legacy *l, struct line *ret)
{
	const char *end;

	if (l->at >= l->end)
		return false;
	end = memchr(l->at, '\n', (size_t)(l->end - l->at));
	end = end ? end : l->end;
	*ret = (struct line){ l->at, end };
	l->at = end < l->end ? end + 1 : end;
	while (ret->at < ret->end && isspace((unsigned char)*ret->at))
		ret->at++;
	while (ret->at < ret->end && isspace((unsigned char)ret->end[-1]))
		ret->end--;
	return true;
}

bool
legacy_begins(const struct line *line, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(line->end - line->at) >= n && !memcmp(line->at, word, n);
}

/* Passes over blanks and a word. */
bool
legacy_take(struct line *line, const char *word)
{
	while (line->at < line->end && *line->at == ' ')
		line->at++;
	if (!legacy_begins(line, word))
		return false;
	line->at += strlen(word);
	return true;
}

bool
legacy_take_number(struct line *line, int64_t *ret)
{
	bool     negative = (legacy_take(line, ""), legacy_begins(line, "-"));
	uint64_t value = 0;

	line->at += negative;
	if (line->at >= line->end || !isdigit((unsigned char)*line->at))
		return false;
	for (; line->at < line->end && isdigit((unsigned char)*line->at); line->at++) {
		if (value > (uint64_t)INT64_MAX / 10)
			return false;
		value = value * 10 + (uint64_t)(*line->at - '0');
	}
	*ret = negative ? -(int64_t)value : (int64_t)value;
	return value <= INT64_MAX;
}

/* "N: BYTES [N: BYTES]" */
bool
legacy_take_amounts(struct line *line, int64_t ret[4])
{
	return legacy_take_number(line, &ret[0]) && legacy_take(line, ":") && legacy_take_number(line, &ret[1]) && legacy_take(line, "[") &&
		legacy_take_number(line, &ret[2]) && legacy_take(line, ":") && legacy_take_number(line, &ret[3]) && legacy_take(line, "]");
}

static int
digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "0x1234 0xabcd": where the calls are.  How many; -1: one is none. */
static int64_t
take_addresses(struct legacy *l, struct line *line)
{
	size_t first = l->address_count;

	while (legacy_take(line, "0x")) {
		const char *digits = line->at;
		uint64_t    value = 0;

		for (; line->at < line->end && digit_of(*line->at) >= 0; line->at++)
			value = value << 4 | (uint64_t)digit_of(*line->at);
		if (line->at == digits || line->at - digits > 16 || l->address_count >= l->address_room)
			return -1;
		l->addresses[l->address_count++] = value - 1;
	}
	return line->at == line->end ? (int64_t)(l->address_count - first) : -1;
}

bool
legacy_is_map(const struct line *line)
{
	size_t n = (size_t)(line->end - line->at);

	return memmem(line->at, n, "MAPPED_LIBRARIES:", 17) || memmem(line->at, n, "--- Memory map: ---", 19);
}

/* Room for each line and each address that there is. */
int
legacy_make_room_for_lines(struct legacy *l)
{
	size_t lines = 1, addresses = 0;

	for (const char *c = l->at; (c = memchr(c, '\n', (size_t)(l->end - c))); c++)
		lines++;
	for (const char *c = l->at; c + 1 < l->end && (c = memchr(c, 'x', (size_t)(l->end - c))); c++)
		addresses++;
	return legacy_make_room(l, lines, addresses);
}

int
legacy_add_stack(struct legacy *l, struct line *line, struct draft *d)
{
	int64_t n;

	d->first = l->address_count;
	n = take_addresses(l, line);
	if (n < 0 || l->count >= l->room)
		return legacy_refuse(l, "is damaged: a stack has something else than addresses");
	d->count = (uint32_t)n;
	l->drafts[l->count++] = *d;
	return 0;
}

/* What is left behind the samples. */
int
legacy_read_map(struct legacy *l, struct line *line)
{
	while (!legacy_is_map(line))
		if (!legacy_next_line(l, line))
			break;
	return legacy_map_read(l->at, (size_t)(l->end - l->at), l->p, l->err);
}

int64_t
legacy_whole(double value)
{
	return value >= 0x1p63 ? INT64_MAX : value > -0x1p63 ? (int64_t)value : INT64_MIN;
}

/* ---- samples ---- */

/* Each address once. */
int
legacy_make_locations(struct legacy *l)
{
	struct pprof *p = l->p;
	struct table  seen;
	int           r = 0;

	l->distinct = arena_array(&p->arena, l->address_count + 1, sizeof(*l->distinct));
	if (!l->distinct)
		return legacy_no_memory(l);
	table_init(&seen, &p->budget);
	for (size_t i = 0; i < l->count && !r; i++)
		for (uint32_t k = 0; k < l->drafts[i].count && !r; k++) {
			uint64_t *a = &l->addresses[l->drafts[i].first + k], number = table_get(&seen, *a);

			if (!number) {
				number = ++p->location_count;
				r = table_put(&seen, *a, number);
				l->distinct[number - 1] = *a;
			}
			*a = number - 1;
		}
	table_release(&seen);
	p->locations = r ? NULL : arena_array(&p->arena, p->location_count + 1, sizeof(*p->locations));
	if (!p->locations)
		return legacy_no_memory(l);
	for (size_t i = 0; i < p->location_count; i++)
		p->locations[i] = (struct pprof_location){ .object = "", .address = l->distinct[i] };
	return 0;
}

/* As read.c has them: key, text, unit, number. */
static int
label_block(struct legacy *l, int64_t bytes, struct pprof_sample *to)
{
	static const char key[] = "bytes\0\0";
	char              label[sizeof(key) + sizeof(bytes)];

	to->labels = "";
	if (bytes < 0)
		return 0;
	memcpy(label, key, sizeof(key));
	memcpy(label + sizeof(key), &bytes, sizeof(bytes));
	to->labels = arena_strndup(&l->p->arena, label, sizeof(label));
	to->labels_size = sizeof(label);
	return to->labels ? 0 : -ENOMEM;
}

int
legacy_make_samples(struct legacy *l)
{
	struct pprof *p = l->p;

	p->samples = arena_array(&p->arena, l->count + 1, sizeof(*p->samples));
	if (!p->samples)
		return legacy_no_memory(l);
	for (size_t i = 0; i < l->count; i++) {
		const struct draft  *d = &l->drafts[i];
		struct pprof_sample *to = &p->samples[i];

		to->stack = arena_array(&p->arena, (size_t)d->count + 1, sizeof(struct pprof_location *));
		if (!to->stack || label_block(l, d->block_size, to) < 0)
			return legacy_no_memory(l);
		for (uint32_t k = 0; k < d->count; k++)
			to->stack[k] = &p->locations[l->addresses[d->first + k]];
		to->count = d->count;
		to->values = d->values;
	}
	p->sample_count = l->count;
	return 0;
}
