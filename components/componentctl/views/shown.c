/*
 * shown.c - which samples of a profile, and which of their values, a view shows.
 *
 * As go tool pprof has it: focus keeps stacks of which a function, its file or its object is meant, ignore drops
 * them, and a place that both mean is ignored.  The total is of all samples; of a difference by -diff_base, of
 * those of the base.
 *
 * Tests: tests/componentctl/profile.t
 */
#include <config.h>

#include "shown.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "digits.h"

enum { FOCUSED = 1, IGNORED = 2 };

struct filter {
	struct match   focus, ignore;
	unsigned char *meant; /* by location */
	bool           found_focus, found_ignore;
};

static int
choose_type(const struct pprof *p, const char *wanted, size_t *ret, struct component_error *err)
{
	int64_t     number;
	const char *other;
	struct text names = TEXT_INIT;

	*ret = p->usual;
	if (!wanted || !*wanted)
		return 0;
	number = digits_number(wanted, INT32_MAX);
	other = strncmp(wanted, "inuse_", 6) ? wanted : wanted + 6;
	for (size_t i = 0; i < p->type_count && number < 0; i++)
		if (!strcmp(p->types[i].type, wanted) || !strcmp(p->types[i].type, other))
			number = (int64_t)i;
	if (number >= 0 && (size_t)number < p->type_count) {
		*ret = (size_t)number;
		return 0;
	}
	for (size_t i = 0; i < p->type_count && i < 20; i++) {
		text_add(&names, "%s", i ? ", " : "");
		text_add_visible(&names, p->types[i].type, TEXT_QUOTED_MAX);
	}
	component_error_set(err, "--sample-index '%.80s': this profile has no such type; write one of: %s", wanted,
		text_string(&names));
	text_release(&names);
	return -EINVAL;
}

static bool
finds(const struct match *m, const struct pprof_location *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (match_finds(m, l->functions[i]->name) || match_finds(m, l->functions[i]->file))
			return true;
	/* pprof asks a mapping without a file, too, but only a pattern of nothing finds that. */
	return *l->object && match_finds(m, l->object);
}

static void
mean(struct filter *f, const struct pprof *p)
{
	for (size_t i = 0; i < p->location_count; i++) {
		const struct pprof_location *l = &p->locations[i];

		if (f->ignore.usable && finds(&f->ignore, l)) {
			f->meant[i] = IGNORED;
			f->found_ignore = true;
		} else if (!f->focus.usable || finds(&f->focus, l)) {
			f->meant[i] = FOCUSED;
			f->found_focus = true;
		}
	}
}

static bool
shows(const struct filter *f, const struct pprof *p, const struct pprof_sample *s)
{
	unsigned found = 0;

	if (!f->focus.usable && !f->ignore.usable)
		return true;
	for (uint32_t i = 0; i < s->count; i++)
		found |= f->meant[s->stack[i] - p->locations];
	return found == FOCUSED;
}

int
shown_compile(struct match *m, const char *option, const char *pattern, struct component_error *err)
{
	char why[MATCH_WHY_MAX];

	if (!pattern || !*pattern || !match_compile(m, pattern, why, sizeof(why)))
		return 0;
	component_error_set(err, "%s '%.80s': the pattern %s", option, pattern, why);
	return -EINVAL;
}

int
shown_check(const char *option, const char *pattern, struct component_error *err)
{
	struct match m = MATCH_INIT;
	int          r = shown_compile(&m, option, pattern, err);

	match_release(&m);
	return r;
}

static int64_t
total_of(const struct pprof *p, size_t type)
{
	uint64_t all = 0, base = 0;

	for (size_t i = 0; i < p->sample_count; i++) {
		int64_t  v = p->samples[i].values[type];
		uint64_t amount = v < 0 ? -(uint64_t)v : (uint64_t)v;

		all += amount;
		if (p->samples[i].is_base)
			base += amount;
	}
	return (int64_t)base > 0 ? (int64_t)base : (int64_t)all;
}

int
shown_select(struct shown *ret, const struct pprof *p, const struct view *v, struct arena *a, struct text *notes,
	struct component_error *err)
{
	struct filter f = { .focus = MATCH_INIT, .ignore = MATCH_INIT };
	int           r = choose_type(p, v->sample_index, &ret->type, err);

	if (!r)
		r = shown_compile(&f.focus, "--focus", v->focus, err);
	if (!r)
		r = shown_compile(&f.ignore, "--ignore", v->ignore, err);
	if (r < 0)
		goto out;
	ret->p = p;
	ret->count = 0;
	ret->samples = arena_array(a, p->sample_count + 1, sizeof(*ret->samples));
	f.meant = arena_alloc(a, p->location_count + 1);
	if (!ret->samples || !f.meant) {
		r = -ENOMEM;
		goto out;
	}
	mean(&f, p);
	for (size_t i = 0; i < p->sample_count; i++)
		if (shows(&f, p, &p->samples[i]))
			ret->samples[ret->count++] = p->samples[i];
	ret->total = total_of(p, ret->type);
	if (f.focus.usable && !f.found_focus)
		text_add(notes, "--focus '%.80s' is no function, file or object of this profile\n", v->focus);
	if (f.ignore.usable && !f.found_ignore)
		text_add(notes, "--ignore '%.80s' is no function, file or object of this profile\n", v->ignore);
out:
	match_release(&f.focus);
	match_release(&f.ignore);
	return r;
}
