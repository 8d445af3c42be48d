/*
 * features.c - --feature-gates: parts of a program that are not final, on or off.
 *
 * The words and rules are Kubernetes': NAME=true or NAME=false; AllAlpha and AllBeta mean each of
 * that stage that is not named itself, wherever they stand; of a name given twice the last counts;
 * a feature that is final cannot be switched any more, but may be named as it is.
 *
 * What a stranger would get wrong: nothing is set before all of it is known to be right, and what a
 * feature is without a word is what its variable held when the component was made.
 *
 * Tests: tests/lifecycle/test_features.c.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text.h"

#define FLAG "feature-gates"

static const char *const stages[] = { "alpha", "beta", "final" };
static const char *const all_of[] = { "AllAlpha", "AllBeta" };

struct features {
	struct component_list given;
	size_t                count;
	char                 *help;
	bool                  usual[]; /* of each, by place in the spec */
};

static const struct component_feature *
feature_find(const struct component *c, const char *name, size_t size)
{
	const struct component_feature *f = c->spec.features;

	for (; f && f->name; f++)
		if (strlen(f->name) == size && !strncmp(f->name, name, size))
			return f;
	return NULL;
}

/* AllAlpha or AllBeta: the stage; else -1. */
static int
stage_find(const char *name, size_t size)
{
	for (int i = 0; i < 2; i++)
		if (strlen(all_of[i]) == size && !strncmp(all_of[i], name, size))
			return i;
	return -1;
}

/* false: neither. */
static bool
word_read(const char *word, bool *ret)
{
	*ret = !strcasecmp(word, "true") || !strcmp(word, "1");
	return *ret || !strcasecmp(word, "false") || !strcmp(word, "0");
}

static int
word_check(struct component *c, const char *item, struct component_error *err)
{
	const struct component_feature *f;
	size_t size = strcspn(item, "=");
	bool   on;

	if (!item[size] || !word_read(item + size + 1, &on))
		return component_flags_fault(c->flags, FLAG, err, "'%s': write NAME=true or NAME=false", item);
	if (stage_find(item, size) >= 0)
		return 0;
	f = feature_find(c, item, size);
	if (!f)
		return component_flags_fault(c->flags, FLAG, err, "'%.*s': there is no such feature; --help-all names those there are",
			(int)size, item);
	if (f->stage == COMPONENT_FEATURE_FINAL && on != c->features->usual[f - c->spec.features])
		return component_flags_fault(c->flags, FLAG, err, "'%s': it is final and cannot be switched any more; leave it out", f->name);
	return 0;
}

/* As the words say, or as it is without any. */
static bool
is_on(const struct component *c, size_t i)
{
	const struct features          *s = c->features;
	const struct component_feature *f = &c->spec.features[i];
	bool on = s->usual[i], named = false, value;

	for (size_t n = 0; n < s->given.count; n++) {
		const char *item = s->given.items[n];
		size_t      size = strcspn(item, "=");
		bool        is_it = strlen(f->name) == size && !strncmp(f->name, item, size);

		if (!is_it && (named || stage_find(item, size) != (int)f->stage))
			continue;
		word_read(item + size + 1, &value);
		on = value;
		named = named || is_it;
	}
	return on;
}

static int
check(struct component_flags *f, void *arg, struct component_error *err)
{
	struct component *c = arg;
	int r = 0, one;

	(void)f;
	for (size_t n = 0; n < c->features->given.count; n++) {
		one = word_check(c, c->features->given.items[n], err);
		r = r ? r : one;
	}
	for (size_t i = 0; r == 0 && i < c->features->count; i++)
		if (c->spec.features[i].variable)
			*c->spec.features[i].variable = is_on(c, i);
	return r;
}

static char *
help_make(const struct component *c)
{
	struct text t = TEXT_INIT;

	text_add(&t, "Switch parts that are not final on or off, NAME=true or NAME=false; AllAlpha and AllBeta are all of that stage");
	for (size_t i = 0; i < c->features->count; i++) {
		const struct component_feature *f = &c->spec.features[i];

		text_add(&t, "%s %s (%s, %s%s%s)", i ? "," : ":", f->name, stages[f->stage], c->features->usual[i] ? "on" : "off",
			f->help ? ": " : "", f->help ? f->help : "");
	}
	text_add(&t, ".");
	if (!t.failed)
		return t.data;
	text_release(&t);
	return NULL;
}

static int
spec_fault(struct component_error *err, const char *name, const char *what)
{
	component_error_set(err, "struct component_feature '%s': %s", name, what);
	return -EINVAL;
}

static int
spec_check(const struct component *c, struct component_error *err)
{
	const struct component_feature *f = c->spec.features;

	for (; f && f->name; f++) {
		if (!*f->name || f->name[strspn(f->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")])
			return spec_fault(err, f->name, "a name is letters and digits");
		if (f->stage > COMPONENT_FEATURE_FINAL)
			return spec_fault(err, f->name, "there is no such stage");
		if (stage_find(f->name, strlen(f->name)) >= 0 || feature_find(c, f->name, strlen(f->name)) != f)
			return spec_fault(err, f->name, "the name is taken");
	}
	return 0;
}

int
features_init(struct component *c, struct component_error *err)
{
	size_t n = 0;
	int    r = spec_check(c, err);

	if (r < 0)
		return r;
	while (c->spec.features && c->spec.features[n].name)
		n++;
	c->features = calloc(1, sizeof(*c->features) + n * sizeof(bool));
	if (!c->features)
		return -ENOMEM;
	c->features->count = n;
	for (size_t i = 0; i < n; i++)
		c->features->usual[i] = c->spec.features[i].variable ? *c->spec.features[i].variable :
			c->spec.features[i].stage != COMPONENT_FEATURE_ALPHA;
	c->features->help = help_make(c);
	if (!c->features->help)
		return -ENOMEM;
	const struct component_flag rows[] = {
		COMPONENT_FLAG_LIST(FLAG, &c->features->given, c->features->help, .section = "Features", .argument = "NAME=BOOL,..."),
		COMPONENT_FLAG_END
	};
	r = component_flags_add(c->flags, rows, err);
	return r < 0 ? r : component_flags_add_check(c->flags, check, c);
}

void
features_free(struct component *c)
{
	if (c->features)
		free(c->features->help);
	free(c->features);
}

bool
component_feature_enabled(const struct component *c, const char *name)
{
	const struct component_feature *f = feature_find(c, name, strlen(name));

	return f && is_on(c, (size_t)(f - c->spec.features));
}
