/*
 * lint.c - faults of the tables themselves, all at once.
 *
 * A slip in a table is the author's, not the user's: it is found at the first start
 * in development, whatever the command line says, and reported with every other one
 * (a name taken twice, help that is missing, a default out of its own range, ...).
 *
 * Two passes: each row alone, then what rows share (names, letters, keys, variables
 * of the environment, references to each other).  A row that is faulty alone is left
 * out of the second pass only where it would be dereferenced.
 *
 * Tests: tests/flags/test_lint.c, a table entry per fault.
 */
#include <config.h>

#include "registry.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES_MAX 64 /* longer ones break every column of --help */

static bool
is_option_name(const char *s, size_t size)
{
	if (size == 0 || size > NAME_BYTES_MAX || s[0] == '-' || s[size - 1] == '-')
		return false;
	for (size_t i = 0; i < size; i++)
		if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && s[i] != '-')
			return false;
	return true;
}

static bool
is_variable_name(const char *s, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!isalpha((unsigned char)s[i]) && s[i] != '_' && (i == 0 || !isdigit((unsigned char)s[i])))
			return false;
	return size > 0 && size < 2 * NAME_BYTES_MAX;
}

static bool
is_key(const char *s, size_t size)
{
	while (size > 0) {
		size_t n = 0;

		while (n < size && s[n] != '.')
			n++;
		if (!is_option_name(s, n) || n + 1 == size)
			return false;
		s += n < size ? n + 1 : n;
		size -= n < size ? n + 1 : n;
	}
	return true;
}

static void
lint_words(const char *name, const char *words, bool (*good)(const char *, size_t), const char *what, struct lines *faults)
{
	const char *word;
	size_t      size;

	while (words_next(&words, &word, &size))
		if (!good(word, size))
			lines_add(faults, "option --%s: '%.*s' is no %s", name, (int)size, word, what);
}

static void
lint_choices(const struct component_flag *row, struct lines *faults)
{
	if (row->type != COMPONENT_FLAG_TYPE_ENUM) {
		if (row->choices)
			lines_add(faults, "option --%s: choices belong to an enum", row->name);
		return;
	}
	if (!row->choices || !row->choices[0]) {
		lines_add(faults, "option --%s: an enum wants choices", row->name);
		return;
	}
	for (size_t i = 0; row->choices[i]; i++)
		for (size_t j = 0; j <= i; j++)
			if (j < i ? strcmp(row->choices[i], row->choices[j]) == 0 : !row->choices[i][0])
				lines_add(faults, "option --%s: choice '%s' is empty or there twice", row->name, row->choices[i]);
}

static void
lint_range(const struct component_flag *row, struct lines *faults)
{
	bool ranged = row->type == COMPONENT_FLAG_TYPE_INT || row->type == COMPONENT_FLAG_TYPE_NUMBER ||
		row->type == COMPONENT_FLAG_TYPE_SIZE || row->type == COMPONENT_FLAG_TYPE_DURATION;

	if (row->min == 0 && row->max == 0)
		return;
	if (!ranged)
		lines_add(faults, "option --%s: min and max belong to numbers", row->name);
	else if (row->min > row->max)
		lines_add(faults, "option --%s: min is above max", row->name);
	else if (row->type == COMPONENT_FLAG_TYPE_SIZE && row->min < 0)
		lines_add(faults, "option --%s: a size is never below 0, min is", row->name);
}

/* The default must be a value that a person could have written. */
static void
lint_default(const struct flag_entry *e, struct lines *faults)
{
	const struct component_flag *row = &e->row;
	const struct flag_value     *v = &e->at[LEVEL_DEFAULT].value;
	struct flag_value            again = { .memory = NULL };
	struct text                  why = TEXT_INIT, shown = TEXT_INIT;
	int                          r = 0, choices = 0;

	if (row->type == COMPONENT_FLAG_TYPE_ENUM) {
		while (row->choices && row->choices[choices])
			choices++;
		if (choices > 0 && (v->choice < 0 || v->choice >= choices))
			lines_add(faults, "option --%s: default %d is none of the %d choices", row->name, v->choice, choices);
		return;
	}
	if (row->type == COMPONENT_FLAG_TYPE_LIST) {
		for (size_t i = 0; i < v->list.count; i++)
			if (!v->list.items || !v->list.items[i] || !v->list.items[i][0])
				r = -1;
		if (r < 0)
			lines_add(faults, "option --%s: the default list has an empty item", row->name);
		return;
	}
	if (row->type == COMPONENT_FLAG_TYPE_NUMBER && !isfinite(v->number))
		text_add(&why, "not a number");
	else if (row->type == COMPONENT_FLAG_TYPE_ADDRESS && v->string && v->string[0])
		r = flag_value_parse(row, v->string, &again, &why);
	else
		r = flag_value_check(row, v, &why);
	if (why.size > 0 || r < 0) {
		if (row->type != COMPONENT_FLAG_TYPE_NUMBER || isfinite(v->number))
			flag_value_format(row, v, &shown);
		lines_add(faults, "option --%s: default '%s': %s", row->name, text_string(&shown), text_string(&why));
	}
	flag_value_release(&again);
	text_release(&why);
	text_release(&shown);
}

/* "debug=4": the part behind '=' must be a value. */
static void
lint_names_of_values(const struct component_flag *row, struct lines *faults)
{
	struct component_flag plain = *row;
	const char *cursor = row->words, *word;
	size_t      size;

	plain.words = NULL;
	while (words_next(&cursor, &word, &size)) {
		struct flag_value v = { .memory = NULL };
		struct text       value = TEXT_INIT, why = TEXT_INIT;
		const char       *equals = memchr(word, '=', size);

		if (equals)
			text_add_bytes(&value, equals + 1, size - (size_t)(equals + 1 - word));
		if (!equals || equals == word || !value.size || flag_value_parse(&plain, value.data, &v, &why) < 0)
			lines_add(faults, "option --%s: '%.*s' in words is not NAME=VALUE with a value of the option",
				row->name, (int)size, word);
		flag_value_release(&v);
		text_release(&value);
		text_release(&why);
	}
}

static void
lint_bits(const struct component_flag *row, struct lines *faults)
{
	if (row->letter && !isalnum((unsigned char)row->letter))
		lines_add(faults, "option --%s: a letter is one of a-z, A-Z, 0-9", row->name);
	if (row->letter && (row->bits & COMPONENT_FLAG_SECRET))
		lines_add(faults, "option --%s: a secret has no letter, or a command line that is shown would tell it", row->name);
	if ((row->bits & COMPONENT_FLAG_BOOL_WORD) && row->type != COMPONENT_FLAG_TYPE_BOOL)
		lines_add(faults, "option --%s: BOOL_WORD belongs to a bool", row->name);
	if ((row->bits & COMPONENT_FLAG_OPTIONAL) &&
	    (row->letter || row->type == COMPONENT_FLAG_TYPE_BOOL || row->type == COMPONENT_FLAG_TYPE_ENUM))
		lines_add(faults, "option --%s: OPTIONAL belongs to no bool, to no enum and beside no letter", row->name);
	if (row->enables && !row->env)
		lines_add(faults, "option --%s: enables wants alias variables in env", row->name);
}

size_t
flags_lint_row(const struct flag_entry *e, struct lines *faults)
{
	const struct component_flag *row = &e->row;
	size_t before = faults->count;

	if (!row->name || !is_option_name(row->name, strlen(row->name))) {
		lines_add(faults, "option '%s': a name is made of a-z, 0-9 and '-', at most %d bytes",
			row->name ? row->name : "(none)", NAME_BYTES_MAX);
		return 1;
	}
	if (row->type <= COMPONENT_FLAG_TYPE_END || row->type > COMPONENT_FLAG_TYPE_ADDRESS) {
		lines_add(faults, "option --%s: unknown type %d", row->name, (int)row->type);
		return 1;
	}
	if (!row->help || !row->help[0])
		lines_add(faults, "option --%s: no help", row->name);
	if (!row->section || !row->section[0])
		lines_add(faults, "option --%s: no section", row->name);
	lint_words(row->name, row->alias, is_option_name, "option name (alias)", faults);
	lint_words(row->name, row->deprecated, is_option_name, "option name (deprecated)", faults);
	lint_words(row->name, row->env, is_variable_name, "variable (env)", faults);
	lint_words(row->name, row->key, is_key, "key of a config file", faults);
	lint_bits(row, faults);
	lint_choices(row, faults);
	lint_range(row, faults);
	if (!row->value.any)
		lines_add(faults, "option --%s: no variable", row->name);
	else if (faults->count == before)
		lint_default(e, faults);
	if (faults->count == before)
		lint_names_of_values(row, faults);
	return faults->count - before;
}

/* Something that must be one row's alone. */
struct claim {
	const struct component_flag *row;
	char                        *text;
};

struct claims {
	struct claim *items;
	size_t        count;
	bool          failed;
	const struct component_flag *row; /* of the claims being added */
};

static void
claim(struct claims *c, const char *prefix, const char *text, size_t size)
{
	struct claim *items = realloc(c->items, (c->count + 1) * sizeof(*items));
	struct text   t = TEXT_INIT;

	text_add(&t, "%s%.*s", prefix, (int)size, text);
	if (items)
		c->items = items;
	if (!items || t.failed) {
		c->failed = true;
		text_release(&t);
		return;
	}
	items[c->count++] = (struct claim){ c->row, t.data };
}

static int
claim_variable(void *arg, const char *variable, bool own)
{
	(void)own;
	claim(arg, "", variable, strlen(variable));
	return 0;
}

static int
compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int                 order = strcmp(x->text, y->text);

	/* The table's order, so that messages do not depend on qsort(). */
	return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

/* Reports what is claimed twice and forgets the claims. */
static void
settle(struct claims *c, const char *what, struct lines *faults)
{
	if (c->count > 1)
		qsort(c->items, c->count, sizeof(*c->items), compare_claims);
	for (size_t i = 1; i < c->count; i++)
		if (strcmp(c->items[i - 1].text, c->items[i].text) == 0)
			lines_add(faults, "option --%s: %s '%s' belongs to --%s already",
				c->items[i].row->name, what, c->items[i].text, c->items[i - 1].row->name);
	for (size_t i = 0; i < c->count; i++)
		free(c->items[i].text);
	free(c->items);
	faults->failed = faults->failed || c->failed;
	*c = (struct claims){ .items = NULL };
}

static void
claim_names(struct claims *c, const struct flag_entry *e)
{
	const char *cursors[] = { e->row.name, e->row.alias, e->row.deprecated };
	const char *word;
	size_t      size;

	for (size_t i = 0; i < 3; i++)
		while (words_next(&cursors[i], &word, &size)) {
			claim(c, "", word, size);
			if (i < 2 && e->row.type == COMPONENT_FLAG_TYPE_BOOL && !flag_is_bool_action(e))
				claim(c, "no-", word, size);
		}
}

static void
lint_shared(const struct component_flags *f, struct lines *faults)
{
	struct claims names = { .count = 0 }, letters = names, keys = names, variables = names;

	for (size_t i = 0; i < f->count; i++) {
		const struct flag_entry *e = &f->entries[i];
		const char *cursor = e->row.key, *word;
		size_t      size;

		if (!e->row.name)
			continue;
		names.row = letters.row = keys.row = variables.row = &e->row;
		claim_names(&names, e);
		if (e->row.letter)
			claim(&letters, "-", &e->row.letter, 1);
		claim(&keys, "", e->row.name, strlen(e->row.name));
		while (words_next(&cursor, &word, &size))
			claim(&keys, "", word, size);
		flags_env_each(f, e, claim_variable, &variables);
		for (size_t j = 0; j < i; j++)
			if (e->row.value.any && e->row.value.any == f->entries[j].row.value.any)
				lines_add(faults, "option --%s: its variable belongs to --%s already", e->row.name,
					f->entries[j].row.name ? f->entries[j].row.name : "?");
	}
	settle(&names, "name", faults);
	settle(&letters, "letter", faults);
	settle(&keys, "key", faults);
	settle(&variables, "environment variable", faults);
}

static void
lint_reference(const struct component_flags *f, const char *name, const char *member, const char *to, size_t size, bool any_type,
	struct lines *faults)
{
	const struct flag_entry *e = NULL;

	for (size_t i = 0; i < f->count && !e; i++)
		if (f->entries[i].row.name && strlen(f->entries[i].row.name) == size && memcmp(f->entries[i].row.name, to, size) == 0)
			e = &f->entries[i];
	if (!e || (e->row.type != COMPONENT_FLAG_TYPE_BOOL && !any_type))
		lines_add(faults, "option --%s: %s names '%.*s', which is no %soption", name, member, (int)size, to,
			any_type ? "" : "bool ");
}

/* The first is a switch; others, of whatever type, may stand in for it. */
static void
lint_needs(const struct component_flags *f, const struct component_flag *row, struct lines *faults)
{
	const char *cursor = row->needs, *word;
	size_t      size;

	for (bool first = true; words_next(&cursor, &word, &size); first = false)
		lint_reference(f, row->name, "needs", word, size, !first, faults);
}

size_t
flags_lint(const struct component_flags *f, struct lines *faults)
{
	for (size_t i = 0; i < f->count; i++)
		flags_lint_row(&f->entries[i], faults);
	lint_shared(f, faults);
	for (size_t i = 0; i < f->count; i++) {
		const struct component_flag *row = &f->entries[i].row;

		if (!row->name)
			continue;
		if (row->enables)
			lint_reference(f, row->name, "enables", row->enables, strlen(row->enables), false, faults);
		lint_needs(f, row, faults);
	}
	return faults->count;
}
