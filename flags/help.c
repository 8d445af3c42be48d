/*
 * help.c - --help, --help-all, --help=SECTION and --version from the rows.
 *
 *       -c, --config=FILE        Read options from this YAML file.
 *           --profiling-bind-address=ADDRESS
 *                                Where to serve profiles (default "127.0.0.1:6060")
 *     column 0                   column 29
 *
 * The program's own sections come first, in the order of their tables: who asks for
 * help wants to know what this program does.  Then those that every program has, in an
 * order that never changes.  The width is COLUMNS, else that of the terminal, else 80,
 * so that help in a file is the same everywhere.
 *
 * --help leaves hidden rows, aliases and most names of variables out; --help-all has
 * each of them once.
 *
 * Tests: tests/flags/output.t, with the whole text at 80 columns.
 */
#include <config.h>

#include "registry.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#define HELP_COLUMN     29
#define UNBROKEN        '\037' /* a blank at which no line ends */
#define UNBROKEN_MAX    21     /* bytes that stay together: the narrowest column */
#define WIDTH_PIPED     80
#define WIDTH_MIN       50  /* leaves 21 columns for text; narrower terminals break lines themselves */
#define WIDTH_MAX       500 /* wider is no terminal */

static unsigned
width_of(const struct component_flags *f)
{
	const char    *columns = f->secure ? NULL : flags_env_get(f, "COLUMNS");
	struct winsize w;
	unsigned       width = f->width;

	if (width == 0 && columns && strspn(columns, "0123456789") == strlen(columns) && strlen(columns) < 6)
		width = (unsigned)atoi(columns);
	if (width == 0 && isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0)
		width = w.ws_col;
	if (width == 0)
		width = WIDTH_PIPED;
	return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
}

/* Where a section stands: own ones by their first row, then the library's. */
static size_t
rank_of(const struct component_flags *f, const char *section)
{
	static const char *const library[] = { "Controllers", "Leader election", "Profiling", "Serving", "Lifecycle", "Features",
		"Misc", "Logging" };
	const size_t count = sizeof(library) / sizeof(*library);

	for (size_t k = 0; k < count; k++)
		if (strcmp(section, library[k]) == 0)
			return SIZE_MAX - count + k;
	for (size_t k = 0; k < f->count; k++)
		if (strcmp(section, f->entries[k].row.section) == 0)
			return k;
	return SIZE_MAX;
}

const char *
flags_section(const struct component_flags *f, size_t i)
{
	const char *best = NULL;
	size_t      rank = 0, floor = 0;

	for (size_t shown = 0; shown <= i; shown++) {
		best = NULL;
		for (size_t k = 0; k < f->count; k++) {
			size_t r = rank_of(f, f->entries[k].row.section);

			if (r >= floor && (!best || r < rank)) {
				best = f->entries[k].row.section;
				rank = r;
			}
		}
		if (!best)
			return NULL;
		floor = rank + 1;
	}
	return best;
}

void
flags_usage_write(const struct flag_entry *e, struct text *t)
{
	const struct component_flag *row = &e->row;
	const char *word = flag_value_argument(row);
	size_t      size = 0;

	text_add(t, "--%s", row->name);
	if (flag_is_bool_action(e))
		return;
	if (row->type == COMPONENT_FLAG_TYPE_BOOL || (row->bits & COMPONENT_FLAG_OPTIONAL) || !flag_holds_value(e)) {
		text_add(t, "[=%s]", word);
		return;
	}
	for (size_t i = 0; row->choices && row->choices[i]; i++)
		size += strlen(row->choices[i]) + 1;
	if (row->argument || !row->choices || size > HELP_COLUMN) {
		text_add(t, "=%s", word);
		return;
	}
	for (size_t i = 0; row->choices[i]; i++)
		text_add(t, "%c%s", i > 0 ? '|' : '=', row->choices[i]);
}

bool
flags_default_write(const struct flag_entry *e, struct text *t)
{
	enum flag_level level = e->at[LEVEL_COMPONENT].set ? LEVEL_COMPONENT : LEVEL_DEFAULT;
	const struct flag_value *v = &e->at[level].value;
	const struct component_flag *row = &e->row;
	struct text value = TEXT_INIT;
	bool        words = row->type == COMPONENT_FLAG_TYPE_STRING || row->type == COMPONENT_FLAG_TYPE_ADDRESS ||
		row->type == COMPONENT_FLAG_TYPE_LIST;

	if (!flag_holds_value(e) ||
	    (row->type == COMPONENT_FLAG_TYPE_BOOL && !v->boolean))
		return false;
	flag_value_format(row, v, &value);
	if (value.size > 0)
		text_add(t, words ? "default \"%s\"" : "default %s",
			row->bits & COMPONENT_FLAG_SECRET ? "(redacted)" : value.data);
	text_release(&value);
	return t->size > 0;
}

/* Words of text from column at on, each further line beginning at HELP_COLUMN. */
static void
wrap(struct text *t, const char *text, size_t *at, unsigned width)
{
	while (*text) {
		size_t size = strcspn(text, " \n");

		if (*at > HELP_COLUMN && *at + 1 + size > width) {
			text_add(t, "\n%*s", HELP_COLUMN, "");
			*at = HELP_COLUMN;
		} else if (*at > HELP_COLUMN) {
			text_add(t, " ");
			(*at)++;
		}
		for (; size > 0; size--, text++, (*at)++)
			text_add(t, "%c", *text == UNBROKEN ? ' ' : *text);
		text += strspn(text, " \n");
	}
}

struct variables {
	struct text *t;
	const char  *shared; /* the variable with the prefix that all share */
	bool         own_too;
	size_t       count;
};

static int
add_variable(void *arg, const char *variable, bool own)
{
	struct variables *v = arg;

	if (!own || v->own_too || strcmp(variable, v->shared) == 0)
		text_add(v->t, "%s%s", v->count++ > 0 ? ", " : "", variable);
	return 0;
}

/* "[env: COMPONENT_X, ALIAS]": for --help only where there is an alias. */
static void
write_variables(struct component_flags *f, const struct flag_entry *e, bool all, struct text *t)
{
	char             shared[FLAG_VARIABLE_MAX];
	struct variables v = { .t = t, .shared = shared, .own_too = all };

	if (!flag_holds_value(e) || (!all && !e->row.env))
		return;
	flag_variable("component", e->row.name, strlen(e->row.name), shared);
	text_add(t, "[env: ");
	flags_env_each(f, e, add_variable, &v);
	text_add(t, "]");
}

/* The option's column, then where its text begins. */
static size_t
write_option(struct text *t, const char *usage, char letter)
{
	size_t start = t->size, size;

	if (letter)
		text_add(t, "  -%c, %s", letter, usage);
	else
		text_add(t, "      %s", usage);
	size = t->size - start;
	if (size > HELP_COLUMN - 2)
		text_add(t, "\n%*s", HELP_COLUMN, "");
	else
		text_add(t, "%*s", (int)(HELP_COLUMN - size), "");
	return HELP_COLUMN;
}

static void
write_row(struct component_flags *f, const struct flag_entry *e, bool all, unsigned width)
{
	struct text usage = TEXT_INIT, extra = TEXT_INIT, tail = TEXT_INIT;
	size_t      at;

	flags_usage_write(e, &usage);
	at = write_option(&f->output, text_string(&usage), e->row.letter);
	wrap(&f->output, e->row.help, &at, width);
	if (flags_default_write(e, &extra)) {
		text_add(&tail, "(%s)", text_string(&extra));
		for (char *s = tail.data; s && *s && tail.size < UNBROKEN_MAX; s++)
			*s = *s == ' ' ? UNBROKEN : *s;
		wrap(&f->output, text_string(&tail), &at, width);
	}
	text_release(&extra);
	write_variables(f, e, all, &extra);
	if (extra.size > 0) {
		text_add(&f->output, "\n%*s", HELP_COLUMN, "");
		at = HELP_COLUMN;
		wrap(&f->output, text_string(&extra), &at, width);
	}
	text_add(&f->output, "\n");
	f->output.failed = f->output.failed || usage.failed || extra.failed || tail.failed;
	text_release(&usage);
	text_release(&extra);
	text_release(&tail);
}

static void
write_aliases(struct component_flags *f, const struct flag_entry *e, const char *words, const char *format, unsigned width)
{
	const char *word;
	size_t      size;

	while (words_next(&words, &word, &size)) {
		struct text usage = TEXT_INIT, help = TEXT_INIT;
		size_t      at;

		text_add(&usage, "--%.*s", (int)size, word);
		text_add(&help, "%s --%s.", format, e->row.name);
		at = write_option(&f->output, text_string(&usage), 0);
		wrap(&f->output, text_string(&help), &at, width);
		text_add(&f->output, "\n");
		text_release(&usage);
		text_release(&help);
	}
}

static void
write_section(struct component_flags *f, const char *section, bool all, unsigned width)
{
	size_t heading = f->output.size, rows;

	text_add(&f->output, "\n%s:\n", section);
	rows = f->output.size;
	for (size_t i = 0; i < f->count; i++) {
		const struct flag_entry *e = &f->entries[i];

		if (strcmp(e->row.section, section) != 0 || (!all && (e->row.bits & COMPONENT_FLAG_HIDDEN)))
			continue;
		write_row(f, e, all, width);
		if (all) {
			write_aliases(f, e, e->row.alias, "The same as", width);
			write_aliases(f, e, e->row.deprecated, "Deprecated; use", width);
		}
	}
	/* A section of hidden rows alone has no heading either. */
	if (rows == f->output.size && f->output.data) {
		f->output.size = heading;
		f->output.data[heading] = '\0';
	}
}

static void
write_footer(struct component_flags *f, bool all)
{
	char variable[FLAG_VARIABLE_MAX];

	flag_variable(f->spec.name, "some-option", strlen("some-option"), variable);
	text_add(&f->output, "\n--some-option is %s or COMPONENT_SOME_OPTION in the\n"
		"environment and some-option in the config file.\n", variable);
	text_add(&f->output, "Values come from the command line, else the environment, else the config\n"
		"file; an empty one is not given.\n");
	if (all)
		text_add(&f->output, "BOOL is true or false; --no-some-option is --some-option=false.\n"
			"DURATION is numbers and units, such as 30s, 1h30m or 500ms.\n"
			"SIZE is bytes, or a number and KiB, MiB, GiB, kB, MB, GB.\n"
			"LIST is items with commas between them; giving the option again adds to it.\n");
	else if (!f->foreign)
		text_add(&f->output, "'%s --help-all' shows every option and variable.\n", f->spec.name);
	if (f->spec.bugs)
		text_add(&f->output, "\nReport bugs to: %s\n", f->spec.bugs);
}

static int
write_one_section(struct component_flags *f, const char *section, unsigned width, struct lines *errors)
{
	struct text names = TEXT_INIT, quoted = TEXT_INIT;
	const char *s;

	for (size_t i = 0; (s = flags_section(f, i)) != NULL; i++) {
		if (strcasecmp(s, section) == 0) {
			write_section(f, s, true, width);
			/* Not the blank line that parts it from the one before. */
			if (f->output.size > 0)
				memmove(f->output.data, f->output.data + 1, f->output.size--);
			text_release(&names);
			return 0;
		}
		text_add(&names, "%s'%s'", i > 0 ? ", " : "", s);
	}
	text_add_quoted(&quoted, section);
	lines_add(errors, "option '--help': %s: no such section; write one of %s", text_string(&quoted), text_string(&names));
	text_release(&quoted);
	text_release(&names);
	return -EINVAL;
}

int
flags_help_write(struct component_flags *f, bool all, const char *section, struct lines *errors)
{
	unsigned    width = width_of(f);
	const char *s;

	if (section && *section)
		return write_one_section(f, section, width, errors);
	text_add(&f->output, "Usage: %s [OPTION]...%s%s\n", f->spec.name, f->operands.shown ? " " : "",
		f->operands.shown ? f->operands.shown : "");
	if (f->spec.summary)
		text_add(&f->output, "%s\n", f->spec.summary);
	for (size_t i = 0; (s = flags_section(f, i)) != NULL; i++)
		write_section(f, s, all, width);
	write_footer(f, all);
	return 0;
}

void
flags_version_write(struct component_flags *f, int form)
{
	const char    *version = f->spec.version ? f->spec.version : "unknown";
	struct utsname host = { .machine = "unknown" };
	struct text   *t = &f->output;

	uname(&host);
	if (form == 0) {
		text_add(t, "%s %s\nBuilt with %s %s.\n", f->spec.name, version, PACKAGE_NAME, PACKAGE_VERSION);
		return;
	}
	if (form == 1) {
		text_add(t, "%s/%s %s/%s linux/%s cc/%s\n", f->spec.name, version, PACKAGE_NAME, PACKAGE_VERSION,
			host.machine, __VERSION__);
		return;
	}
	text_add(t, "{\"name\": ");
	text_add_json(t, f->spec.name);
	text_add(t, ", \"version\": ");
	text_add_json(t, version);
	text_add(t, ", \"%s\": \"%s\", \"os\": \"linux\", \"arch\": ", PACKAGE_NAME, PACKAGE_VERSION);
	text_add_json(t, host.machine);
	text_add(t, ", \"compiler\": ");
	text_add_json(t, __VERSION__);
	text_add(t, "}\n");
}
