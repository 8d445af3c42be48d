/*
 * findings.c - what doctor has found, in the order in which it was looked for.
 *
 * Texts come from other processes, too: what is printed for people has no control characters.
 *
 * Tests: tests/componentctl/doctor.t
 */
#include <config.h>

#include "findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell.h"

#define SHOWN_MAX 2000 /* bytes of a text */

static COMPONENT_PRINTF(5, 0) void
add(struct findings *f, bool is_warning, const char *about, const char *command, const char *format, va_list args)
{
	size_t          room = f->room ? 2 * f->room : 32;
	struct finding *more = f->count < f->room ? f->items : reallocarray(f->items, room, sizeof(*more)), *to;
	int             n, c;

	if (!more) {
		f->failed = true;
		return;
	}
	f->room = f->count < f->room ? f->room : room;
	f->items = more;
	to = &f->items[f->count];
	*to = (struct finding){ .is_warning = is_warning, .about = strdup(about) };
	command = command ? command : "";
	c = asprintf(&to->command, "%s%s", shell_sudo(command), command);
	n = vasprintf(&to->text, format, args);
	if (n < 0 || !to->about || c < 0) {
		f->failed = true;
		free(to->about);
		free(c < 0 ? NULL : to->command);
		free(n < 0 ? NULL : to->text);
		return;
	}
	f->count++;
	f->warnings += is_warning;
}

void
findings_ok(struct findings *f, const char *about, const char *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(f, false, about, command, format, args);
	va_end(args);
}

void
findings_warn(struct findings *f, const char *about, const char *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(f, true, about, command, format, args);
	va_end(args);
}

void
findings_print(const struct findings *f, struct text *out)
{
	size_t width = 0;

	for (size_t i = 0; i < f->count; i++) {
		size_t n = strlen(f->items[i].about);

		width = n > width ? n : width;
	}
	for (size_t i = 0; i < f->count; i++) {
		const struct finding *it = &f->items[i];
		size_t                before = out->size;

		text_add(out, "%-7s  ", it->is_warning ? "warning" : "ok");
		text_add_visible(out, it->about, SHOWN_MAX);
		while (out->size && out->size < before + 9 + width + 2)
			text_add(out, " ");
		text_add_visible(out, it->text, SHOWN_MAX);
		text_add(out, "\n");
		if (!*it->command)
			continue;
		text_add(out, "%*s", (int)(9 + width + 4), "");
		text_add_visible(out, it->command, SHOWN_MAX);
		text_add(out, "\n");
	}
}

void
findings_print_json(const struct findings *f, struct text *out)
{
	text_add(out, "[");
	for (size_t i = 0; i < f->count; i++) {
		const struct finding *it = &f->items[i];

		text_add(out, "%s\n  {\"level\": \"%s\", \"about\": ", i ? "," : "", it->is_warning ? "warning" : "ok");
		text_add_json(out, it->about);
		text_add(out, ", \"text\": ");
		text_add_json(out, it->text);
		text_add(out, ", \"command\": ");
		text_add_json(out, it->command);
		text_add(out, "}");
	}
	text_add(out, f->count ? "\n]\n" : "]\n");
}

void
findings_release(struct findings *f)
{
	for (size_t i = 0; i < f->count; i++) {
		free(f->items[i].about);
		free(f->items[i].text);
		free(f->items[i].command);
	}
	free(f->items);
	*f = (struct findings){ .items = NULL };
}
