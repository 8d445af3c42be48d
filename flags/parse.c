/*
 * parse.c - all sources into the rows' variables, once and again.
 *
 *     line.c  command line --+
 *     env.c   environment  --+--> struct flag_round --> commit() --> variables
 *     file.c  config file  --+    values and faults     or nothing
 *
 * What would surprise: checks of several options (component_flags_add_check) look at
 * the daemon's own variables, so the new values are stored before the checks run and
 * taken back if one fails.  commit() is its own inverse for that: it exchanges the
 * settings of the entries with those of the round, twice is as if never.  What the
 * last good round got in exchange lives until the next one, and with it the strings
 * that other threads may still be reading.
 *
 * --help and its like win over every error: somebody who asks how to write it shall
 * not be told first that he wrote it wrong.
 *
 * Tests: tests/flags/test_precedence.c, tests/flags/test_reload.c.
 */
#include <config.h>

#include "registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_TAIL_MAX 256 /* bytes kept for the last two lines of an error */

/* Exchanges entry and round; values that did not change keep their memory. */
static void
commit(struct component_flags *f, struct flag_round *round)
{
	for (size_t i = 0; i < f->count; i++) {
		struct flag_entry *e = &f->entries[i];

		if (f->parsed && !(e->row.bits & COMPONENT_FLAG_RELOADABLE))
			continue;
		for (int level = LEVEL_FILE; level < LEVEL_COUNT; level++) {
			struct flag_setting *a = &e->at[level], *b = &round->at[i][level], c = *a;

			*a = *b;
			*b = c;
			if (a->set && b->set && flag_value_equal(&e->row, &a->value, &b->value)) {
				b->value = a->value;
				a->value = c.value;
			}
		}
		flag_value_store(&e->row, &flag_setting_of(e, NULL)->value);
	}
}

/* Where a row that cannot change at run time would have another value now. */
static void
warn_unchanged(struct component_flags *f, struct flag_round *round)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct flag_entry *e = &f->entries[i];
		struct flag_entry        would = *e;

		if ((e->row.bits & COMPONENT_FLAG_RELOADABLE) || !flag_holds_value(e))
			continue;
		memcpy(&would.at[LEVEL_FILE], &round->at[i][LEVEL_FILE], (LEVEL_COUNT - LEVEL_FILE) * sizeof(would.at[0]));
		if (!flag_value_equal(&e->row, &flag_setting_of(e, NULL)->value, &flag_setting_of(&would, NULL)->value))
			lines_add(&round->warnings, "--%s (%s) cannot change while the program runs; restart it",
				e->row.name, flag_source_of(&would));
	}
}

/* Is one of these rows given, be it as off, or on by default? */
static bool
is_any_spoken_of(const struct component_flags *f, const char *names)
{
	const char *word;
	size_t      size;

	while (words_next(&names, &word, &size)) {
		const struct flag_entry *e = flags_find(f, word, size, NULL);

		if (flag_was_given(e) || (e->row.type == COMPONENT_FLAG_TYPE_BOOL && flag_setting_of(e, NULL)->value.boolean))
			return true;
	}
	return false;
}

/* "needs": given, but what it belongs to is off, and nobody said so. */
static void
warn_needs(struct component_flags *f, struct flag_round *round)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct flag_entry *e = &f->entries[i];
		const char *names = e->row.needs;

		if (!names || !flag_was_given(e) || is_any_spoken_of(f, names))
			continue;
		/* "0" switches off what is off. */
		if (e->row.type == COMPONENT_FLAG_TYPE_ADDRESS && strcmp(flag_setting_of(e, NULL)->value.string, "0") == 0)
			continue;
		lines_add(&round->warnings, "--%s (%s) has no effect without --%.*s", e->row.name, flag_source_of(e),
			(int)strcspn(names, " "), names);
	}
}

static void
run_checks(struct component_flags *f, struct flag_round *round)
{
	f->current = round;
	for (size_t i = 0; i < f->check_count; i++) {
		struct component_error err = COMPONENT_ERROR_INIT;
		char *rest = err.text, *line;

		if (f->checks[i].fn(f, f->checks[i].arg, &err) >= 0)
			continue;
		if (!err.text[0])
			component_error_set(&err, "a check of the options failed without saying why");
		while ((line = strsep(&rest, "\n")) != NULL)
			if (*line)
				lines_add(&round->errors, "%s", line);
	}
	f->current = NULL;
}

/* As if the round had never been stored. */
static void
take_back(struct component_flags *f, struct flag_round *round)
{
	commit(f, round);
	/* Before the first good parse not even the component's defaults are stored. */
	for (size_t i = 0; !f->parsed && i < f->count; i++)
		flag_value_store(&f->entries[i].row, &f->entries[i].at[LEVEL_DEFAULT].value);
}

/* Stores the round and looks at it; false, with nothing stored, if it has a fault. */
static bool
try_round(struct component_flags *f, struct flag_round *round)
{
	if (round->errors.count > 0 || round->errors.failed)
		return false;
	if (f->parsed)
		warn_unchanged(f, round);
	commit(f, round);
	run_checks(f, round);
	if (round->errors.count > 0 || round->errors.failed) {
		take_back(f, round);
		return false;
	}
	warn_needs(f, round);
	return true;
}

/* All faults that fit, the rest counted, and the way to the manual.  Needs no memory. */
static int
report(struct component_flags *f, const struct lines *faults, bool usage, struct component_error *err)
{
	size_t shown = 0;

	component_error_set(err, "%s", "");
	for (; err && shown < faults->count; shown++) {
		const char *line = faults->items[shown];

		if (strlen(err->text) + strlen(f->spec.name) + strlen(line) + 3 > COMPONENT_ERROR_MAX - ERROR_TAIL_MAX)
			break;
		component_error_add(err, "%s: %s", f->spec.name, line);
	}
	if (shown < faults->count)
		component_error_add(err, "%s: %zu more faults are not shown", f->spec.name, faults->count - shown);
	if (faults->failed)
		component_error_add(err, "%s: out of memory", f->spec.name);
	else if (usage)
		component_error_add(err, "Try '%s --%s' for more information.", f->spec.name,
			flags_find_action(f, ACTION_HELP)->row.name);
	return faults->failed ? -ENOMEM : -EINVAL;
}

static int
report_round(struct component_flags *f, const struct flag_round *round, struct component_error *err)
{
	if (round->errors.failed)
		f->exit_status = EXIT_STATUS_PROGRAM;
	else if (round->file_errors == round->errors.count)
		f->exit_status = EXIT_STATUS_CONFIG;
	else
		f->exit_status = EXIT_STATUS_USAGE;
	return report(f, &round->errors, true, err);
}

/* --help and the like, whatever else is wrong. */
static void
write_wanted(struct component_flags *f, struct flag_round *round)
{
	const struct flag_setting *s = flag_round_at(round, f, f->wanted, LEVEL_LINE);

	switch (f->wanted->action) {
	case ACTION_HELP:
		flags_help_write(f, false, s->set ? s->value.string : NULL, &round->errors);
		break;
	case ACTION_HELP_ALL:
		flags_help_write(f, true, NULL, &round->errors);
		break;
	case ACTION_VERSION:
		flags_version_write(f, s->value.choice);
		break;
	case ACTION_COMPLETION:
		flags_completion_write(f, s->value.choice);
		break;
	default:
		flags_man_write(f);
		break;
	}
	if (f->output.failed)
		round->errors.failed = true;
}

/* Names of SECRET rows, for whoever shows the command line to others. */
static int
list_secrets(struct component_flags *f)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct component_flag *row = &f->entries[i].row;
		const char *cursors[] = { row->name, row->alias, row->deprecated };
		const char *word;
		size_t      size;

		for (size_t c = 0; c < 3 && (row->bits & COMPONENT_FLAG_SECRET); c++)
			while (words_next(&cursors[c], &word, &size))
				lines_add(&f->secret_names, "%.*s", (int)size, word);
	}
	free(f->secrets);
	f->secrets = calloc(f->secret_names.count + 1, sizeof(*f->secrets));
	if (f->secret_names.failed || !f->secrets)
		return -ENOMEM;
	for (size_t i = 0; i < f->secret_names.count; i++)
		f->secrets[i] = f->secret_names.items[i];
	return 0;
}

static int
parse_round(struct component_flags *f, struct flag_round *round, int argc, char **argv, struct component_error *err)
{
	int r = flags_line_read(f, round, argc, argv);

	if (r < 0)
		return r;
	if (f->wanted) {
		/* What else is on the line does not matter now. */
		lines_release(&round->errors);
		write_wanted(f, round);
		return round->errors.count > 0 || round->errors.failed ? report_round(f, round, err) : 1;
	}
	flags_env_read(f, round);
	flags_file_read(f, round);
	flags_env_enable(f, round);
	if (!try_round(f, round))
		return report_round(f, round, err);
	r = 1;
	if (flags_find_action(f, ACTION_DUMP)->at[LEVEL_LINE].set)
		flags_dump_write(f, f->builtin.dump);
	else if (f->builtin.check)
		text_add(&f->output, "configuration OK\n");
	else
		r = 0;
	if (f->output.failed) {
		take_back(f, round);
		return -ENOMEM;
	}
	f->parsed = true;
	return r;
}

/* After a fault the warnings alone: they may explain it. */
static void
keep(struct component_flags *f, struct flag_round *round)
{
	flag_round_release(&f->round);
	if (f->parsed) {
		f->config_path = round->config_path;
		f->config_found = round->config_found;
		round->config_path = NULL;
		f->round = *round;
		f->undone = true; /* a parse is not taken back */
		*round = (struct flag_round){ .count = 0 };
		return;
	}
	f->round.warnings = round->warnings;
	round->warnings = (struct lines){ NULL, 0, false };
}

int
component_flags_parse(struct component_flags *f, int argc, char **argv, struct component_error *err)
{
	struct lines      faults = { NULL, 0, false };
	struct flag_round round = { .count = 0 };
	int               r;

	if (!f || argc < 0 || (argc > 0 && !argv)) {
		component_error_set(err, "component_flags_parse() wants the arguments of main()");
		return -EINVAL;
	}
	if (f->parsed) {
		component_error_set(err, "options are parsed once; component_flags_reload() reads the config file again");
		return -EALREADY;
	}
	f->exit_status = 0;
	text_release(&f->output);
	if (flags_lint(f, &faults) > 0 || faults.failed) {
		f->exit_status = EXIT_STATUS_PROGRAM;
		r = report(f, &faults, false, err);
		goto out;
	}
	lines_release(&f->secret_names);
	r = list_secrets(f);
	if (r == 0)
		r = flag_round_init(&round, f);
	if (r == 0)
		r = parse_round(f, &round, argc, argv, err);
	if (r == -ENOMEM) {
		f->exit_status = EXIT_STATUS_PROGRAM;
		component_error_set(err, "%s: out of memory", f->spec.name);
	}
	keep(f, &round);
out:
	flag_round_release(&round);
	lines_release(&faults);
	return r;
}

/* What the command line gave stays as it is. */
static int
copy_line(struct component_flags *f, struct flag_round *round)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct flag_setting *s = &f->entries[i].at[LEVEL_LINE];

		if (!s->set)
			continue;
		if (flag_value_copy(&f->entries[i].row, &s->value, &round->at[i][LEVEL_LINE].value) < 0)
			return -ENOMEM;
		round->at[i][LEVEL_LINE].set = true;
	}
	return 0;
}

int
component_flags_reload(struct component_flags *f, struct component_error *err)
{
	struct flag_round round;
	int               r;

	if (!f || !f->parsed) {
		component_error_set(err, "options are reloaded after they were parsed");
		return -EINVAL;
	}
	r = flag_round_init(&round, f);
	if (r == 0)
		r = copy_line(f, &round);
	if (r < 0) {
		component_error_set(err, "%s: out of memory", f->spec.name);
		goto out;
	}
	flags_env_read(f, &round);
	flags_file_read(f, &round);
	flags_env_enable(f, &round);
	if (!try_round(f, &round)) {
		r = report_round(f, &round, err);
		f->exit_status = 0; /* the program runs on */
		/* Its strings stood in the variables while the checks ran: another thread may read them still. */
		flag_round_release(&f->refused);
		f->refused = round;
		return r;
	}
	flag_round_release(&f->refused);
	flag_round_release(&f->round);
	f->round = round;
	f->round.config_found = f->config_found;
	f->config_found = round.config_found;
	f->undone = false;
	return r;
out:
	flag_round_release(&round);
	return r;
}


/* commit() is its own inverse. */
void
component_flags_undo(struct component_flags *f)
{
	if (!f || !f->parsed || f->undone || !f->round.at)
		return;
	f->undone = true;
	f->config_found = f->round.config_found;
	commit(f, &f->round);
	lines_release(&f->round.warnings);
}
