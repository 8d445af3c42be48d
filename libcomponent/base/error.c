/*
 * error.c - the text of struct component_error: set, and one more line.
 */
#include <config.h>

#include <component/error.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
component_error_set(struct component_error *err, const char *format, ...)
{
	va_list args;

	if (!err)
		return;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
}

void
component_error_add(struct component_error *err, const char *format, ...)
{
	va_list args;
	size_t  used;

	if (!err)
		return;
	used = strlen(err->text);
	if (used > 0 && used < sizeof(err->text) - 1)
		err->text[used++] = '\n';
	va_start(args, format);
	vsnprintf(err->text + used, sizeof(err->text) - used, format, args);
	va_end(args);
}
