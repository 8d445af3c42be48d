/*
 * flags.c - the object behind flags.h: make it, add rows, ask it.
 *
 * An entry is a copy of the row and a setting for each level (registry.h); parse.c
 * fills them, the others read them.  The rows that every program has are added here
 * first, so a program's own row of the same name is a fault that the lint reports.
 *
 * What would surprise: the tables are not looked at when they are added.  A row may
 * name another one (enables, needs) whose table comes later, and all faults of all
 * tables are to be told at once: parse does it.
 *
 * Tests: tests/flags/test_precedence.c, tests/flags/test_lint.c.
 */
#include <config.h>

#include "registry.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define SPEC_SIZE_MIN offsetof(struct component_flags_spec, bugs) /* of the first release */

static const char *const version_forms[] = { "gnu", "raw", "json", NULL };
static const char *const dump_forms[] = { "text", "json", NULL };
static const char *const shells[] = { "bash", "zsh", NULL };

/* The end of a range that is not named.  A range that ends at 0 can only come from below 0,
 * where it would have to be told from a min alone: it is that. */
static void
range_complete(struct component_flag *row)
{
	if (row->max == 0 && row->min != 0)
		row->max = INT64_MAX;
	if (row->min == 0 && row->max < 0)
		row->min = INT64_MIN;
}

static int
add_entry(struct component_flags *f, const struct component_flag *row, enum flag_action action)
{
	struct flag_entry *entries = realloc(f->entries, (f->count + 1) * sizeof(*entries));
	struct flag_entry *e;

	if (!entries)
		return -ENOMEM;
	f->entries = entries;
	e = &entries[f->count++];
	*e = (struct flag_entry){ .row = *row, .action = action };
	range_complete(&e->row);
	e->at[LEVEL_DEFAULT].set = true;
	if (row->value.any && row->type > COMPONENT_FLAG_TYPE_END && row->type <= COMPONENT_FLAG_TYPE_ADDRESS)
		flag_value_load(row, &e->at[LEVEL_DEFAULT].value);
	return 0;
}

static int
add_builtin(struct component_flags *f)
{
	const struct {
		struct component_flag row;
		enum flag_action      action;
	} rows[] = {
		{ COMPONENT_FLAG_STRING("help", &f->builtin.help, "Show options, or those of one section.",
			.section = "Misc", .argument = "SECTION", .letter = 'h'), ACTION_HELP },
		{ COMPONENT_FLAG_BOOL("help-all", &f->builtin.help_all, "Show all options, rarely used ones too.",
			.section = "Misc"), ACTION_HELP_ALL },
		{ COMPONENT_FLAG_ENUM("version", &f->builtin.version, "Show the version, also as one line of facts or as JSON.",
			.section = "Misc", .argument = "raw|json", .choices = version_forms, .letter = 'V'), ACTION_VERSION },
		{ COMPONENT_FLAG_STRING("config", &f->builtin.config, "Read options from this YAML file.",
			.section = "Lifecycle", .argument = "FILE", .letter = 'c'), ACTION_CONFIG },
		{ COMPONENT_FLAG_BOOL("check-config", &f->builtin.check,
			"Look at all options and the config file, print \"configuration OK\", and exit.",
			.section = "Lifecycle"), ACTION_CHECK },
		{ COMPONENT_FLAG_ENUM("dump-options", &f->builtin.dump,
			"Print every option with its value and where it came from, and exit.",
			.section = "Lifecycle", .argument = "text|json", .choices = dump_forms), ACTION_DUMP },
		{ COMPONENT_FLAG_ENUM("completion", &f->builtin.completion, "Print a completion script for a shell, and exit.",
			.section = "Misc", .argument = "bash|zsh", .choices = shells, .bits = COMPONENT_FLAG_HIDDEN),
			ACTION_COMPLETION },
		{ COMPONENT_FLAG_BOOL("generate-man", &f->builtin.man, "Print the manual page in roff, and exit.",
			.section = "Misc", .bits = COMPONENT_FLAG_HIDDEN), ACTION_MAN },
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && r == 0; i++)
		r = add_entry(f, &rows[i].row, rows[i].action);
	return r;
}

static bool
is_program_name(const char *s)
{
	size_t size = s ? strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") : 0;

	return size > 0 && size <= 64 && !s[size] && isalnum((unsigned char)s[0]);
}

int
component_flags_new(const struct component_flags_spec *spec, struct component_flags **ret, struct component_error *err)
{
	struct component_flags *f = NULL;
	int r = -EINVAL;

	if (!ret || !spec || spec->size < SPEC_SIZE_MIN) {
		component_error_set(err, "component_flags_new() wants a COMPONENT_FLAGS_SPEC(...)");
		goto out;
	}
	if (!is_program_name(spec->name)) {
		component_error_set(err, "the name of a program is wanted, at most 64 of a-z, 0-9, '-', '_' and '.'");
		goto out;
	}
	r = -ENOMEM;
	f = calloc(1, sizeof(*f));
	if (!f)
		goto out;
	memcpy(&f->spec, spec, spec->size < sizeof(f->spec) ? spec->size : sizeof(f->spec));
	f->secure = getauxval(AT_SECURE) != 0;
	f->builtin.help = f->builtin.config = "";
	r = add_builtin(f);
	if (r < 0)
		goto out;
	*ret = f;
	f = NULL; /* the caller's now */
out:
	component_flags_free(f);
	if (r == -ENOMEM)
		component_error_set(err, "out of memory");
	return r;
}

int
component_flags_add(struct component_flags *f, const struct component_flag *rows, struct component_error *err)
{
	int r = 0;

	if (!f || !rows) {
		component_error_set(err, "component_flags_add() wants a table");
		return -EINVAL;
	}
	if (f->parsed) {
		component_error_set(err, "options cannot be added after they were parsed");
		return -EBUSY;
	}
	for (; rows->type != COMPONENT_FLAG_TYPE_END && r == 0; rows++)
		r = add_entry(f, rows, ACTION_NONE);
	if (r < 0)
		component_error_set(err, "out of memory");
	return r;
}

int
component_flags_set_default(struct component_flags *f, const char *name, const char *value, struct component_error *err)
{
	struct flag_entry *e = f && name ? flags_find(f, name, strlen(name), NULL) : NULL;
	struct flag_value  v = { .memory = NULL };
	struct text        why = TEXT_INIT;
	struct lines       faults = { NULL, 0, false };
	int                r = -EINVAL;

	if (f && f->parsed) {
		component_error_set(err, "the default of --%s cannot be set after the options were parsed", name ? name : "");
		return -EBUSY;
	}
	if (!e) {
		component_error_set(err, "no option --%s to set a default for", name ? name : "");
		return -ENOENT;
	}
	if (!value || !*value)
		component_error_set(err, "default of --%s: must not be empty", name);
	/* A row that would not survive the lint cannot be parsed for either. */
	else if (flags_lint_row(e, &faults) > 0)
		component_error_set(err, "%s", faults.items[0]);
	else {
		r = flag_value_parse(&e->row, value, &v, &why);
		if (r < 0)
			component_error_set(err, "default of --%s: '%s': %s", name, value, text_string(&why));
	}
	if (r == 0) {
		flag_value_release(&e->at[LEVEL_COMPONENT].value);
		e->at[LEVEL_COMPONENT] = (struct flag_setting){ .set = true, .value = v };
	}
	lines_release(&faults);
	text_release(&why);
	return r;
}

int
component_flags_add_check(struct component_flags *f, component_flags_check_fn *fn, void *arg)
{
	struct flag_check *checks;

	if (!f || !fn)
		return -EINVAL;
	if (f->parsed)
		return -EBUSY;
	checks = realloc(f->checks, (f->check_count + 1) * sizeof(*checks));
	if (!checks)
		return -ENOMEM;
	f->checks = checks;
	checks[f->check_count++] = (struct flag_check){ fn, arg };
	return 0;
}

void
component_flags_warn(struct component_flags *f, const char *format, ...)
{
	struct component_error line = COMPONENT_ERROR_INIT;
	va_list args;

	if (!f)
		return;
	va_start(args, format);
	vsnprintf(line.text, sizeof(line.text), format, args);
	va_end(args);
	lines_add(f->current ? &f->current->warnings : &f->round.warnings, "%s", line.text);
}

const struct flag_setting *
flag_setting_of(const struct flag_entry *e, enum flag_level *ret_level)
{
	int level = LEVEL_COUNT - 1;

	while (level > 0 && !e->at[level].set)
		level--;
	if (ret_level)
		*ret_level = (enum flag_level)level;
	return &e->at[level];
}

const char *
flag_source_of(const struct flag_entry *e)
{
	enum flag_level            level;
	const struct flag_setting *s = flag_setting_of(e, &level);

	return s->source ? s->source : level == LEVEL_LINE ? "flag" :
		level == LEVEL_COMPONENT ? "component default" : "default";
}

bool
flag_was_given(const struct flag_entry *e)
{
	enum flag_level level;

	flag_setting_of(e, &level);
	return level >= LEVEL_FILE;
}

const char *
component_flags_output(const struct component_flags *f)
{
	return f ? text_string(&f->output) : "";
}

int
component_flags_exit_status(const struct component_flags *f)
{
	return f ? f->exit_status : EXIT_STATUS_PROGRAM;
}

const char *
component_flags_source(const struct component_flags *f, const char *name)
{
	const struct flag_entry *e = f && name ? flags_find(f, name, strlen(name), NULL) : NULL;

	return e ? flag_source_of(e) : NULL;
}

bool
component_flags_given(const struct component_flags *f, const char *name)
{
	const struct flag_entry *e = f && name ? flags_find(f, name, strlen(name), NULL) : NULL;

	return e && flag_was_given(e);
}

const char *
component_flags_warning(const struct component_flags *f, size_t i)
{
	return f && i < f->round.warnings.count ? f->round.warnings.items[i] : NULL;
}

const char *const *
component_flags_secrets(const struct component_flags *f)
{
	static const char *const none[] = { NULL };

	return f && f->secrets ? f->secrets : none;
}

void
component_flags_free(struct component_flags *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++) {
		struct flag_entry *e = &f->entries[i];
		bool owned = flag_setting_of(e, NULL)->value.memory != NULL;

		if (f->parsed && owned && e->action == ACTION_NONE)
			flag_value_store(&e->row, &e->at[LEVEL_DEFAULT].value);
		for (int level = 0; level < LEVEL_COUNT; level++) {
			flag_value_release(&e->at[level].value);
			free(e->at[level].source);
		}
	}
	free(f->entries);
	free(f->checks);
	free(f->config_path);
	free(f->secrets);
	free(f->operands.words);
	lines_release(&f->secret_names);
	text_release(&f->output);
	flag_round_release(&f->round);
	flag_round_release(&f->refused);
	free(f);
}
