/*
 * names.c - which row is meant: by option name, key, letter or variable.
 *
 * A row has one name and may have aliases, former names, a letter, a nested key of
 * the config file and variables of its own; bool rows have "no-NAME" too.  Here is
 * the one place that knows all of them.  '_' is read as '-'.  Nothing is found by
 * its beginning: an abbreviation that works today breaks a script on the day when
 * a second option begins like it.
 *
 * Look-ups walk the table.  It has some fifty rows and is searched some hundred
 * times in a process's life; an index would be one more thing to keep right.
 *
 * Tests: tests/flags/test_line.c, tests/flags/test_env.c.
 */
#include <config.h>

#include "registry.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "nearest.h"

bool
flag_is_bool_action(const struct flag_entry *e)
{
	return e->action != ACTION_NONE && e->row.type == COMPONENT_FLAG_TYPE_BOOL;
}

bool
flag_holds_value(const struct flag_entry *e)
{
	return e->action == ACTION_NONE || e->action == ACTION_CONFIG;
}

static bool
same_name(const char *name, size_t size, const char *candidate, size_t candidate_size)
{
	if (size != candidate_size)
		return false;
	for (size_t i = 0; i < size; i++)
		if ((name[i] == '_' ? '-' : name[i]) != candidate[i])
			return false;
	return true;
}

static bool
is_among(const char *words, const char *name, size_t size)
{
	const char *word;
	size_t      n;

	while (words_next(&words, &word, &n))
		if (same_name(name, size, word, n))
			return true;
	return false;
}

struct flag_entry *
flags_find(const struct component_flags *f, const char *name, size_t size, enum flag_match *ret_match)
{
	enum flag_match match = MATCH_NAME;
	bool no = size > 3 && same_name(name, 3, "no-", 3);

	for (size_t i = 0; i < f->count; i++) {
		struct flag_entry *e = &f->entries[i];
		const struct component_flag *row = &e->row;

		if (same_name(name, size, row->name, strlen(row->name)))
			match = MATCH_NAME;
		else if (is_among(row->alias, name, size))
			match = MATCH_ALIAS;
		else if (is_among(row->deprecated, name, size))
			match = MATCH_DEPRECATED;
		else if (no && row->type == COMPONENT_FLAG_TYPE_BOOL && e->action == ACTION_NONE &&
		         (same_name(name + 3, size - 3, row->name, strlen(row->name)) ||
		          is_among(row->alias, name + 3, size - 3)))
			match = MATCH_NO;
		else
			continue;
		if (ret_match)
			*ret_match = match;
		return e;
	}
	return NULL;
}

struct flag_entry *
flags_find_action(const struct component_flags *f, enum flag_action action)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->entries[i].action == action)
			return &f->entries[i];
	return NULL;
}

struct flag_entry *
flags_find_key(const struct component_flags *f, const char *key)
{
	struct flag_entry *e;
	enum flag_match    match;
	const char        *words, *word;
	size_t             size;

	e = flags_find(f, key, strlen(key), &match);
	if (e && match != MATCH_NO)
		return e;
	for (size_t i = 0; i < f->count; i++) {
		words = f->entries[i].row.key;
		while (words_next(&words, &word, &size))
			if (strlen(key) == size && memcmp(key, word, size) == 0)
				return &f->entries[i];
	}
	return NULL;
}

struct flag_entry *
flags_find_letter(const struct component_flags *f, char letter)
{
	for (size_t i = 0; i < f->count; i++)
		if (letter && f->entries[i].row.letter == letter)
			return &f->entries[i];
	return NULL;
}

const char *
flags_nearest(const struct component_flags *f, enum flag_place place, const char *name, char *buf, size_t size)
{
	struct nearest near;
	const char    *word;
	size_t         n;

	nearest_begin(&near, name);
	for (size_t i = 0; i < f->count; i++) {
		const struct flag_entry *e = &f->entries[i];
		const char *cursors[] = { e->row.name, e->row.alias, place == PLACE_FILE ? e->row.key : NULL };

		if ((e->row.bits & COMPONENT_FLAG_HIDDEN) || (place == PLACE_ENV && !flag_holds_value(e)) ||
		    (place == PLACE_FILE && e->action != ACTION_NONE))
			continue;
		for (size_t c = 0; c < 3; c++)
			while (words_next(&cursors[c], &word, &n))
				if (n < size)
					nearest_try(&near, word, n);
	}
	memcpy(buf, near.word, strlen(near.word) + 1);
	return buf;
}

void
flag_variable(const char *prefix, const char *name, size_t size, char buf[FLAG_VARIABLE_MAX])
{
	snprintf(buf, FLAG_VARIABLE_MAX, "%s_%.*s", prefix, (int)size, name);
	for (char *s = buf; *s; s++)
		*s = isalnum((unsigned char)*s) ? (char)toupper((unsigned char)*s) : '_';
}

static int
each_own(const struct flag_entry *e, const char *prefix, flag_env_fn *fn, void *arg)
{
	const char *cursors[] = { e->row.name, e->row.alias, e->row.deprecated };
	const char *word;
	char        variable[FLAG_VARIABLE_MAX];
	size_t      size;
	int         r;

	for (size_t i = 0; i < 3; i++)
		while (words_next(&cursors[i], &word, &size)) {
			flag_variable(prefix, word, size, variable);
			r = fn(arg, variable, true);
			if (r)
				return r;
		}
	return 0;
}

int
flags_env_each(const struct component_flags *f, const struct flag_entry *e, flag_env_fn *fn, void *arg)
{
	const char *words = e->row.env, *word;
	char        variable[FLAG_VARIABLE_MAX];
	size_t      size;
	int         r;

	if (!flag_holds_value(e))
		return 0;
	r = each_own(e, f->spec.name, fn, arg);
	if (r == 0 && strcmp(f->spec.name, "component") != 0 && !(f->config_own && e->action == ACTION_CONFIG))
		r = each_own(e, "component", fn, arg);
	while (r == 0 && words_next(&words, &word, &size)) {
		snprintf(variable, sizeof(variable), "%.*s", (int)size, word);
		r = fn(arg, variable, false);
	}
	return r;
}
