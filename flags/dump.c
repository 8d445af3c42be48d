/*
 * dump.c - --dump-options: what is in force, and who said so.
 *
 * The text form is a config file: what --dump-options prints can be given to --config
 * as it is (values that are empty, and secrets, are left to the reader as comments).
 * The JSON form is one object with an option a line, so that two dumps can be
 * compared line by line; it holds no version and no path of its own, which lets a
 * test keep it as a golden file.
 *
 * Rows that do something instead of holding a value (--help, --check-config, ...) are
 * left out.
 *
 * Tests: tests/flags/output.t.
 */
#include <config.h>

#include "registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_COLUMN 48 /* where the comments of the text form begin */

/* An empty secret tells nothing, and that it is empty is worth knowing. */
static bool
is_redacted(const struct flag_entry *e, const struct flag_value *v)
{
	struct text t = TEXT_INIT;
	bool        filled;

	if (!(e->row.bits & COMPONENT_FLAG_SECRET))
		return false;
	flag_value_format(&e->row, v, &t);
	filled = t.size > 0 || t.failed;
	text_release(&t);
	return filled;
}

/* Can it stand in YAML without quotes and be read as the same text? */
static bool
is_plain(const char *s)
{
	return *s && !strchr("-?:,[]{}#&*!|>'\"%@` ~", *s) && s[strcspn(s, "\"\\#'{}[],&* \t\n")] == '\0' &&
		s[strlen(s) - 1] != ':' && strcmp(s, "null") != 0 && strcmp(s, "Null") != 0 && strcmp(s, "NULL") != 0 &&
		s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+_./:@%")] == '\0';
}

static void
write_yaml_word(struct text *t, const char *s)
{
	/* A JSON string is a YAML one. */
	if (is_plain(s))
		text_add(t, "%s", s);
	else
		text_add_json(t, s);
}

/* A number stands bare, and in YAML an amount, too; all else is a word. */
static void
write_value(const struct flag_entry *e, const struct flag_value *v, struct text *t, bool json)
{
	void (*word)(struct text *, const char *) = json ? text_add_json : write_yaml_word;
	enum component_flag_type type = e->row.type;
	struct text              value = TEXT_INIT;
	bool                     amount = type == COMPONENT_FLAG_TYPE_SIZE || type == COMPONENT_FLAG_TYPE_DURATION;

	if (type == COMPONENT_FLAG_TYPE_LIST) {
		text_add(t, "[");
		for (size_t i = 0; i < v->list.count; i++) {
			text_add(t, "%s", i > 0 ? ", " : "");
			word(t, v->list.items[i]);
		}
		text_add(t, "]");
		return;
	}
	flag_value_format(&e->row, v, &value);
	if (type == COMPONENT_FLAG_TYPE_BOOL || type == COMPONENT_FLAG_TYPE_INT || type == COMPONENT_FLAG_TYPE_NUMBER ||
	    (amount && !json))
		text_add(t, "%s", text_string(&value));
	else
		word(t, text_string(&value));
	text_release(&value);
}

static void
write_text_row(struct component_flags *f, const struct flag_entry *e)
{
	const struct flag_value *v = &flag_setting_of(e, NULL)->value;
	struct text line = TEXT_INIT;

	/* --config is not read from a config file. */
	if (e->action == ACTION_CONFIG || is_redacted(e, v))
		text_add(&line, "# ");
	text_add(&line, "%s: ", e->row.name);
	if (is_redacted(e, v))
		text_add(&line, "(redacted)");
	else
		write_value(e, v, &line, false);
	text_add(&f->output, "%-*s # ", VALUE_COLUMN, text_string(&line));
	/* A path may hold anything; a comment ends at a newline. */
	for (const char *s = flag_source_of(e); *s; s++)
		text_add(&f->output, "%c", (unsigned char)*s < ' ' ? '?' : *s);
	text_add(&f->output, "\n");
	f->output.failed = f->output.failed || line.failed;
	text_release(&line);
}

static void
write_text(struct component_flags *f)
{
	const char *section;

	for (size_t s = 0; (section = flags_section(f, s)) != NULL; s++) {
		bool heading = false;

		for (size_t i = 0; i < f->count; i++) {
			if (!flag_holds_value(&f->entries[i]) || strcmp(f->entries[i].row.section, section) != 0)
				continue;
			if (!heading)
				text_add(&f->output, "%s# %s\n", f->output.size > 0 ? "\n" : "", section);
			heading = true;
			write_text_row(f, &f->entries[i]);
		}
	}
}

static void
write_json_value(const struct flag_entry *e, const struct flag_value *v, struct text *t)
{
	if (is_redacted(e, v))
		text_add(t, "\"(redacted)\"");
	else
		write_value(e, v, t, true);
}

struct names {
	struct text *t;
	size_t       count;
};

static int
add_name(void *arg, const char *name, bool own)
{
	struct names *n = arg;

	(void)own;
	text_add(n->t, "%s", n->count++ > 0 ? ", " : "");
	text_add_json(n->t, name);
	return 0;
}

static void
write_json_row(struct component_flags *f, const struct flag_entry *e, struct text *t)
{
	struct names names = { .t = t };
	enum flag_level level = e->at[LEVEL_COMPONENT].set ? LEVEL_COMPONENT : LEVEL_DEFAULT;

	text_add(t, "    {\"name\": ");
	text_add_json(t, e->row.name);
	text_add(t, ", \"section\": ");
	text_add_json(t, e->row.section);
	text_add(t, ", \"type\": \"%s\", \"value\": ", flag_value_type(&e->row));
	write_json_value(e, &flag_setting_of(e, NULL)->value, t);
	text_add(t, ", \"source\": ");
	text_add_json(t, flag_source_of(e));
	text_add(t, ", \"default\": ");
	write_json_value(e, &e->at[level].value, t);
	text_add(t, ", \"env\": [");
	flags_env_each(f, e, add_name, &names);
	text_add(t, "], \"help\": ");
	text_add_json(t, e->row.help);
	text_add(t, "}");
}

static void
write_json(struct component_flags *f)
{
	const char *section;
	size_t      rows = 0;

	text_add(&f->output, "{\n  \"component\": ");
	text_add_json(&f->output, f->spec.name);
	text_add(&f->output, ",\n  \"options\": [");
	for (size_t s = 0; (section = flags_section(f, s)) != NULL; s++)
		for (size_t i = 0; i < f->count; i++) {
			if (!flag_holds_value(&f->entries[i]) || strcmp(f->entries[i].row.section, section) != 0)
				continue;
			text_add(&f->output, "%s\n", rows++ > 0 ? "," : "");
			write_json_row(f, &f->entries[i], &f->output);
		}
	text_add(&f->output, "\n  ]\n}\n");
}

void
flags_dump_write(struct component_flags *f, int form)
{
	if (form == 0)
		write_text(f);
	else
		write_json(f);
}

char *
component_flags_dump(struct component_flags *f, bool json)
{
	struct text kept = f->output, now;
	char       *copy;

	f->output = (struct text)TEXT_INIT;
	flags_dump_write(f, json);
	now = f->output;
	f->output = kept;
	copy = now.failed ? NULL : strdup(text_string(&now));
	text_release(&now);
	return copy;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp((*(const struct flag_entry *const *)a)->row.name, (*(const struct flag_entry *const *)b)->row.name);
}

static int
visit_one(const struct flag_entry *e, component_flags_visit_fn *fn, void *arg)
{
	const struct flag_value *v = &flag_setting_of(e, NULL)->value;
	struct text              value = TEXT_INIT;
	int                      r = 0;

	if (is_redacted(e, v))
		text_add(&value, "(redacted)");
	else
		flag_value_format(&e->row, v, &value);
	if (value.failed)
		r = -ENOMEM;
	else
		fn(arg, e->row.name, text_string(&value), flag_source_of(e));
	text_release(&value);
	return r;
}

int
component_flags_visit(struct component_flags *f, component_flags_visit_fn *fn, void *arg)
{
	const struct flag_entry **entries = calloc(f->count + 1, sizeof(struct flag_entry *));
	size_t                    n = 0;
	int                       r = entries ? 0 : -ENOMEM;

	for (size_t i = 0; entries && i < f->count; i++)
		if (flag_holds_value(&f->entries[i]))
			entries[n++] = &f->entries[i];
	if (n)
		qsort(entries, n, sizeof(entries[0]), by_name);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = visit_one(entries[i], fn, arg);
	free(entries);
	return r;
}
