/*
 * round.c - one attempt to fill the levels that people write.
 *
 * Everything said on the command line, in the environment and in the config file is
 * gathered here first, with every fault, and the rows' variables are not touched.
 * That is what makes a parse report all errors at once and a reload all-or-nothing.
 *
 * A value that another level overrides is looked at all the same: a config file with
 * a slip in it is an error today, not on the day when the option is taken off the
 * command line.
 *
 * Tests: tests/flags/test_precedence.c.
 */
#include <config.h>

#include "registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
flag_round_init(struct flag_round *round, const struct component_flags *f)
{
	*round = (struct flag_round){ .count = f->count };
	round->at = calloc(f->count, sizeof(*round->at));
	return round->at ? 0 : -ENOMEM;
}

void
flag_round_release(struct flag_round *round)
{
	for (size_t i = 0; round->at && i < round->count; i++)
		for (int level = 0; level < LEVEL_COUNT; level++) {
			flag_value_release(&round->at[i][level].value);
			free(round->at[i][level].source);
		}
	free(round->at);
	free(round->config_path);
	lines_release(&round->errors);
	lines_release(&round->warnings);
	*round = (struct flag_round){ .count = 0 };
}

struct flag_setting *
flag_round_at(struct flag_round *round, const struct component_flags *f, const struct flag_entry *e, enum flag_level level)
{
	return &round->at[e - f->entries][level];
}

void
flag_round_fault(struct flag_round *round, enum flag_level level, const char *label,
	const struct component_flag *row, const char *value, const char *why)
{
	struct text quoted = TEXT_INIT;

	if (value && row && (row->bits & COMPONENT_FLAG_SECRET)) {
		text_add(&quoted, "the value");
		/* Some sentences repeat what they complain about. */
		if (strstr(why, value))
			why = "cannot be read";
	} else if (value)
		text_add_quoted(&quoted, value);
	lines_add(&round->errors, "%s: %s%s%s", label, text_string(&quoted), value ? ": " : "", why);
	if (level == LEVEL_FILE)
		round->file_errors++;
	text_release(&quoted);
}

/* A list that is given again adds to what was there at this level. */
static int
join_list(const struct flag_setting *before, struct flag_value *v)
{
	struct flag_value joined = { .memory = NULL };

	if (flag_value_join(&before->value.list, &v->list, &joined) < 0)
		return -ENOMEM;
	flag_value_release(v);
	*v = joined;
	return 0;
}

void
flag_round_put(struct component_flags *f, struct flag_round *round, const struct flag_entry *e,
	enum flag_level level, struct flag_value *v, const char *source)
{
	struct flag_setting *s = flag_round_at(round, f, e, level);
	char                *copy = source ? strdup(source) : NULL;

	if ((source && !copy) || (s->set && e->row.type == COMPONENT_FLAG_TYPE_LIST && join_list(s, v) < 0)) {
		round->errors.failed = true;
		free(copy);
		flag_value_release(v);
		return;
	}
	flag_value_release(&s->value);
	free(s->source);
	*s = (struct flag_setting){ .set = true, .value = *v, .source = copy };
	v->memory = NULL; /* the setting owns it now */
}

void
flag_round_set(struct component_flags *f, struct flag_round *round, const struct flag_entry *e,
	enum flag_level level, const char *text, const char *label, const char *source)
{
	struct flag_value v = { .memory = NULL };
	struct text       why = TEXT_INIT;

	if (!*text)
		return;
	if (flag_value_parse(&e->row, text, &v, &why) < 0)
		flag_round_fault(round, level, label, &e->row, text, text_string(&why));
	else
		flag_round_put(f, round, e, level, &v, source);
	text_release(&why);
}
