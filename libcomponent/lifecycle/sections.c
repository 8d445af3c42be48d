/*
 * sections.c - what a component says of itself in rows, for /statusz.
 *
 * A section is a title and a function that gives its rows; the component's own come first.  Rows
 * are texts: who serves them chooses the form.
 *
 * Tests: tests/lifecycle/test_order.c, tests/components/status_pages.t.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define HEALTH "Health"

struct section {
	struct section      *next;
	component_status_fn *fn;
	void                *arg;
	char                 title[];
};

struct component_status {
	component_status_visit_fn *visit;
	void                      *arg;
	const char                *section;
};

int
component_status_add(struct component *c, const char *title, component_status_fn *fn, void *arg)
{
	struct section **end = &c->sections;
	struct section  *made;

	if (!title || !*title || !fn)
		return -EINVAL;
	if (!strcmp(title, HEALTH))
		return -EEXIST;
	for (; *end; end = &(*end)->next)
		if (!strcmp((*end)->title, title))
			return -EEXIST;
	made = calloc(1, sizeof(*made) + strlen(title) + 1);
	if (!made)
		return -ENOMEM;
	made->fn = fn;
	made->arg = arg;
	strcpy(made->title, title);
	*end = made;
	return 0;
}

void
component_status_row(struct component_status *to, const char *name, const char *format, ...)
{
	struct text value = TEXT_INIT;
	va_list     args;

	va_start(args, format);
	text_add_va(&value, format, args);
	va_end(args);
	to->visit(to->arg, to->section, name, text_string(&value));
	text_release(&value);
}

static void
health_row(void *arg, const char *name, int status, const char *text)
{
	component_status_row(arg, name, "%s%s%s", status < 0 ? "failed" : "ok", *text ? ": " : "", text);
}

void
component_status_run(struct component *c, component_status_visit_fn *visit, void *arg)
{
	struct component_status to = { visit, arg, HEALTH };

	component_checks_run(c, health_row, &to);
	for (const struct section *s = c->sections; s; s = s->next) {
		to.section = s->title;
		s->fn(c, &to, s->arg);
	}
}

void
sections_free(struct component *c)
{
	while (c->sections) {
		struct section *next = c->sections->next;

		free(c->sections);
		c->sections = next;
	}
}
