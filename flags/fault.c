/*
 * fault.c - the sentence about a value that reads well and does not fit.
 *
 * A check knows what is wrong; where the value came from is known here.  What would
 * surprise: faults of values that a config file gave are counted, since a file that
 * alone is to blame has an exit status of its own.
 *
 * Tests: tests/flags/test_precedence.c.
 */
#include <config.h>

#include "registry.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void
label_add(struct text *t, const struct flag_entry *e, enum flag_level level)
{
	const char *source = flag_source_of(e);

	if (level == LEVEL_ENV) {
		text_add(t, "environment variable %s", source + strlen("env:"));
		return;
	}
	if (level == LEVEL_FILE) {
		text_add_visible(t, source + strlen("file:"), COMPONENT_ERROR_MAX / 4);
		text_add(t, ": ");
	}
	text_add(t, "option '--%s'", e->row.name);
}

static void
value_add(struct text *t, const struct flag_entry *e, const struct flag_value *v)
{
	struct text value = TEXT_INIT;

	flag_value_format(&e->row, v, &value);
	if (e->row.bits & COMPONENT_FLAG_SECRET)
		text_add(t, "the value");
	else
		text_add_quoted(t, text_string(&value));
	text_release(&value);
}

int
component_flags_fault(struct component_flags *f, const char *name, struct component_error *err, const char *format, ...)
{
	struct flag_entry         *e = f && name ? flags_find(f, name, strlen(name), NULL) : NULL;
	char                       why[COMPONENT_ERROR_MAX];
	struct text                t = TEXT_INIT;
	const struct flag_setting *s;
	enum flag_level            level;
	va_list                    args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (!e) {
		component_error_add(err, "%s", why);
		return -EINVAL;
	}
	s = flag_setting_of(e, &level);
	label_add(&t, e, level);
	text_add(&t, ": ");
	value_add(&t, e, &s->value);
	component_error_add(err, "%s: %s", text_string(&t), why);
	if (f->current && level == LEVEL_FILE)
		f->current->file_errors++;
	text_release(&t);
	return -EINVAL;
}
