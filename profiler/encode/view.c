/*
 * view.c - what of a profile a text shows: which stacks, which of its values.
 *
 * What a stranger would get wrong: a stack of which one function is in focus and another is to be ignored is
 * dropped, as by pprof.  Each address is looked at once; where memory for that is wanting, again each time.
 *
 * Tests: tests/encode/test_view.c, tests/serve/view.t.
 */
#include <config.h>

#include "view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "separator.h"

enum { SEEN = 1, FOCUS = 2, IGNORE = 4 };

static int
number_of(const char *text, unsigned *ret)
{
	size_t n = strspn(text, "0123456789");

	if (!n || text[n] || n > 3)
		return -EINVAL;
	*ret = 0;
	for (; *text; text++)
		*ret = *ret * 10 + (unsigned)(*text - '0');
	return 0;
}

int
view_type_find(const struct profile_type *types, unsigned count, const char *text, unsigned *ret, char *why,
	       size_t size)
{
	/* pprof's options -inuse_space for "space" and -total_delay for "delay". */
	const char *other = !strncmp(text, "inuse_", 6) ? text + 6 : !strcmp(text, "total_delay") ? "delay" : text;
	unsigned    number = count;
	size_t      n;

	number_of(text, &number);
	for (unsigned i = 0; i < count && number >= count; i++)
		if (!strcmp(types[i].type, text) || !strcmp(types[i].type, other))
			number = i;
	if (number < count) {
		*ret = number;
		return 0;
	}
	n = (size_t)snprintf(why, size, "must be ");
	for (unsigned i = 0; i < count && n < size; i++)
		n += (size_t)snprintf(why + n, size - n, "%s%s", separator(i, count + (count == 1), ", "),
			types[i].type);
	if (n < size)
		snprintf(why + n, size - n, count > 1 ? " or a number from 0 to %u" : " or %u", count - 1);
	return -EINVAL;
}

unsigned
view_type(const struct view *v, const struct profile *p, unsigned usual)
{
	return v->typed && v->type < p->type_count ? v->type : usual;
}

void
view_filter_begin(struct view_filter *f, const struct view *v, struct symbols *s, struct frames *frames,
	struct arena_budget *budget)
{
	*f = (struct view_filter){ .view = v, .symbols = s, .frames = frames };
	table_init(&f->known, budget);
}

void
view_filter_end(struct view_filter *f)
{
	table_release(&f->known);
}

static bool
finds(const char *pattern, const struct view_filter *f)
{
	const struct frames *at = f->frames;

	for (unsigned i = 0; i < at->count; i++)
		if (pattern_finds(pattern, at->frame[i].name) ||
		    pattern_finds(pattern, at->frame[i].file ? at->frame[i].file : ""))
			return true;
	return at->mapping >= 0 && pattern_finds(pattern, symbols_mapping(f->symbols, (size_t)at->mapping)->path);
}

static unsigned
meant(struct view_filter *f, uintptr_t pc)
{
	unsigned known = (unsigned)table_get(&f->known, pc);

	if (known)
		return known;
	frames_of(f->symbols, pc, f->frames);
	known = SEEN;
	if (*f->view->focus && finds(f->view->focus, f))
		known |= FOCUS;
	if (*f->view->ignore && finds(f->view->ignore, f))
		known |= IGNORE;
	table_put(&f->known, pc, known);
	return known;
}

bool
view_shows(struct view_filter *f, const uintptr_t *pcs, unsigned count)
{
	unsigned found = 0;

	if (!*f->view->focus && !*f->view->ignore)
		return true;
	for (unsigned i = 0; i < count && !(found & IGNORE); i++)
		found |= meant(f, pcs[i]);
	return !(found & IGNORE) && (found & FOCUS || !*f->view->focus);
}
