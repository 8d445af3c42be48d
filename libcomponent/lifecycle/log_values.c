/*
 * log_values.c - component_log(): its arguments as fields of a line.
 *
 *     "synced", "app", name, KV("files", 3), "late"  -->  app=name files=3 late=(missing)
 *
 * What a stranger would get wrong: a NULL in the place of a key is the end that callers
 * are used to write, one in the place of a value is that value.  In C++ NULL is a number of no worth, so a 0 in the
 * place of the last key is that end as well.
 *
 * Nothing is allocated: numbers have their text on the stack.
 * Tests: tests/project/install.t, in C and C++; tests/lifecycle/test_log.c
 */
#include <config.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "life.h"
#include "log.h"

#define NUMBER_MAX 32 /* -1.7976931348623157e+308 */

struct line_fields {
	struct component_log_field fields[LOG_FIELDS_MAX];
	char                       numbers[LOG_FIELDS_MAX][NUMBER_MAX];
	uint32_t                   bare; /* a bit for each that no quotes are to be around */
	size_t                     count;
	enum log_format            format;
};

/* As few digits as give the same number again, with a point in every locale. */
static void
real_text(double real, char text[NUMBER_MAX])
{
	char *to = text;

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, NUMBER_MAX, "%.*g", digits, real);
		if (strtod(text, NULL) == real)
			break;
	}
	for (const char *at = text; *at; at++) {
		if (strchr("0123456789+-e", *at))
			*to++ = *at;
		else if (to[-1] != '.') /* a point may have several bytes; a digit comes first */
			*to++ = '.';
	}
	*to = '\0';
}

/* The text of a value; *ret_bare: a word of the format's own. */
static const char *
value_text(const struct component_log_value *v, enum log_format format, char number[NUMBER_MAX], bool *ret_bare)
{
	*ret_bare = true;
	switch (v->type) {
	case COMPONENT_LOG_TEXT:
		*ret_bare = !v->as.text;
		if (v->as.text)
			return v->as.text;
		return format == LOG_JSON ? "null" : "(null)";
	case COMPONENT_LOG_NUMBER:
		snprintf(number, NUMBER_MAX, "%lld", v->as.number);
		return number;
	case COMPONENT_LOG_COUNT:
		snprintf(number, NUMBER_MAX, "%llu", v->as.count);
		return number;
	case COMPONENT_LOG_REAL:
		if (isfinite(v->as.real)) {
			real_text(v->as.real, number);
			return number;
		}
		*ret_bare = false; /* json has no such numbers */
		return isnan(v->as.real) ? "NaN" : v->as.real < 0 ? "-Inf" : "+Inf";
	case COMPONENT_LOG_BOOL:
		return v->as.number ? "true" : "false";
	case COMPONENT_LOG_POINTER:
		break;
	}
	*ret_bare = false;
	snprintf(number, NUMBER_MAX, "0x%" PRIxPTR, (uintptr_t)v->as.pointer);
	return number;
}

/* value NULL: there is none. */
static void
field_add(struct line_fields *f, const char *key, const struct component_log_value *value)
{
	struct component_log_field *field;
	bool                        bare = false;

	if (f->count == LOG_FIELDS_MAX)
		return;
	field = &f->fields[f->count];
	field->key = key ? key : "no_key";
	field->value = value ? value_text(value, f->format, f->numbers[f->count], &bare) : "(missing)";
	f->bare |= (uint32_t)bare << f->count++;
}

static bool
is_nothing(const struct component_log_value *v)
{
	return !v->has_key && ((v->type == COMPONENT_LOG_TEXT && !v->as.text) ||
		(v->type == COMPONENT_LOG_NUMBER && v->as.number == 0));
}

/* Where the key is to be; returns how many arguments the field was. */
static size_t
field_next(struct line_fields *f, const struct component_log_value *v, size_t left)
{
	if (!v->has_key && v->type == COMPONENT_LOG_TEXT && !v->as.text)
		return left;
	if (v->has_key || v->type != COMPONENT_LOG_TEXT) {
		field_add(f, v->has_key ? v->key : NULL, v);
		return 1;
	}
	/* A last NULL is the end of them, and no value. */
	if (left == 1 || v[1].has_key || (left == 2 && v[1].type == COMPONENT_LOG_TEXT && !v[1].as.text)) {
		field_add(f, v->as.text, NULL);
		return left == 2 && !v[1].has_key ? 2 : 1;
	}
	field_add(f, v->as.text, &v[1]);
	return 2;
}

void
component_log_values(struct component *c, enum component_log_level level, const struct component_log_value *values,
	size_t count)
{
	struct line_fields f;
	char               number[NUMBER_MAX];
	const char        *message = "";
	bool               bare;

	if ((int)level > c->log.level)
		return;
	f.count = f.bare = 0;
	f.format = (enum log_format)c->log.format;
	if (count > 0)
		message = value_text(values, LOG_TEXT, number, &bare);
	for (size_t i = 1; i < count;) {
		if (i == count - 1 && is_nothing(&values[i]))
			break;
		i += field_next(&f, &values[i], count - i);
	}
	log_write_bare(&c->log, level, message, f.fields, f.bare, f.count);
}

/* Of those who were not compiled with the macro: nothing tells a value that is NULL from the end. */
void
(component_log)(struct component *c, enum component_log_level level, const char *message, ...)
{
	struct component_log_field fields[LOG_FIELDS_MAX];
	size_t                     count = 0;
	const char                *key, *value = "";
	va_list                    args;

	va_start(args, message);
	while (value && count < LOG_FIELDS_MAX && (key = va_arg(args, const char *))) {
		value = va_arg(args, const char *);
		fields[count++] = (struct component_log_field){ key, value ? value : "(missing)" };
	}
	va_end(args);
	log_write(&c->log, level, message, fields, count);
}
