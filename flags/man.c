/*
 * man.c - --generate-man: the manual page of a program from its rows, in roff.
 *
 * It has what --help-all has, plus the rules that hold for all options.  Section 8:
 * daemons.  No date is in it, so that the same sources make the same page.
 *
 * What would surprise: roff reads a line that begins with '.' or "'" as a command, a
 * backslash anywhere as an escape, and prints '-' as a hyphen that cannot be pasted
 * into a shell.  write_roff() takes care of all four.
 *
 * Tests: tests/flags/output.t, by groff with its warnings where it is installed.
 */
#include <config.h>

#include "registry.h"

#include <ctype.h>

#include <string.h>

static void
write_roff(struct text *t, const char *s)
{
	bool start = t->size == 0 || t->data[t->size - 1] == '\n';

	for (; *s; s++) {
		if (*s == '\\')
			text_add(t, "\\e");
		else if (*s == '-')
			text_add(t, "\\-");
		else if (*s == '\'')
			text_add(t, "\\(aq");
		else if (*s == '\n')
			text_add(t, " ");
		else
			text_add(t, "%s%c", start && *s == '.' ? "\\&" : "", *s);
		start = false;
	}
}

struct variables {
	struct text *t;
	size_t       count;
};

static int
add_variable(void *arg, const char *variable, bool own)
{
	struct variables *v = arg;

	(void)own;
	text_add(v->t, "%s", v->count++ > 0 ? ", " : "Environment: ");
	write_roff(v->t, variable);
	return 0;
}

static void
write_other_names(struct text *t, const char *words, const char *head)
{
	const char *word;
	size_t      size;

	while (words_next(&words, &word, &size)) {
		struct text name = TEXT_INIT;

		text_add(&name, "--%.*s", (int)size, word);
		text_add(t, ".br\n%s: ", head);
		write_roff(t, text_string(&name));
		text_add(t, ".\n");
		text_release(&name);
	}
}

static void
write_row(struct component_flags *f, const struct flag_entry *e)
{
	struct text     *t = &f->output, usage = TEXT_INIT, extra = TEXT_INIT;
	struct variables v = { .t = t };

	flags_usage_write(e, &usage);
	text_add(t, ".TP\n.B ");
	if (e->row.letter)
		text_add(t, "\\-%c\\fR, \\fB", e->row.letter);
	write_roff(t, text_string(&usage));
	text_add(t, "\n");
	write_roff(t, e->row.help);
	if (flags_default_write(e, &extra)) {
		text_add(t, "\n(");
		write_roff(t, text_string(&extra));
		text_add(t, ")");
	}
	text_add(t, "\n");
	write_other_names(t, e->row.alias, "Also");
	write_other_names(t, e->row.deprecated, "Formerly");
	if (flag_holds_value(e)) {
		text_add(t, ".br\n");
		flags_env_each(f, e, add_variable, &v);
		text_add(t, ".\n");
	}
	if (e->row.key) {
		text_add(t, ".br\nIn the config file also: ");
		write_roff(t, e->row.key);
		text_add(t, ".\n");
	}
	t->failed = t->failed || usage.failed || extra.failed;
	text_release(&usage);
	text_release(&extra);
}

static void
write_head(struct component_flags *f)
{
	struct text *t = &f->output;

	text_add(t, ".TH \"");
	for (const char *s = f->spec.name; *s; s++) {
		char upper[2] = { *s == ' ' ? '-' : (char)toupper((unsigned char)*s), '\0' };

		write_roff(t, upper);
	}
	text_add(t, "\" 1 \"\" \"");
	write_roff(t, f->spec.name);
	text_add(t, " ");
	write_roff(t, f->spec.version ? f->spec.version : "");
	text_add(t, "\" \"User Commands\"\n.SH NAME\n");
	for (const char *s = f->spec.name; *s; s++) /* of a command: "program-command", as the page is called */
		write_roff(t, *s == ' ' ? "-" : (const char[]){ *s, '\0' });
	text_add(t, " \\- ");
	write_roff(t, f->spec.summary ? f->spec.summary : "a daemon");
	text_add(t, "\n.SH SYNOPSIS\n.B ");
	write_roff(t, f->spec.name);
	text_add(t, "\n[\\fIOPTION\\fR]...%s%s\n.SH OPTIONS\n", f->operands.shown ? "\n" : "",
		f->operands.shown ? f->operands.shown : "");
	text_add(t, "A value comes from the command line, else the environment, else the config file,\n"
		"else the default. An empty value is not given.\n"
		"A BOOL is true or false; \\fB\\-\\-no\\-\\fINAME\\fR is \\fB\\-\\-\\fINAME\\fB=false\\fR.\n"
		"A DURATION is numbers and units, such as 30s, 1h30m or 500ms.\n"
		"A SIZE is bytes, or a number and KiB, MiB, GiB, kB, MB, GB.\n"
		"Items of a LIST have commas between them; giving the option again adds to it.\n");
}

static void
write_tail(struct component_flags *f)
{
	struct text *t = &f->output;

	text_add(t, ".SH ENVIRONMENT\nEach option names its variables, the strongest first.\n"
		"None is read when the program was started with other privileges than its caller\\(aqs.\n"
		".SH FILES\nThe config file is YAML; its keys are the names of the options.\n"
		".SH EXIT STATUS\n"
		".TP\n.B 0\nA clean stop; or help, version and the like were printed.\n"
		".TP\n.B 1\nA failure at run time.\n"
		".TP\n.B 2\nA bad option or variable.\n"
		".TP\n.B 78\nA bad config file.\n");
	if (f->spec.bugs) {
		text_add(t, ".SH BUGS\nReport bugs to: ");
		write_roff(t, f->spec.bugs);
		text_add(t, "\n");
	}
}

void
flags_man_write(struct component_flags *f)
{
	const char *section;

	write_head(f);
	for (size_t s = 0; (section = flags_section(f, s)) != NULL; s++) {
		text_add(&f->output, ".SS \"");
		write_roff(&f->output, section);
		text_add(&f->output, "\"\n");
		for (size_t i = 0; i < f->count; i++)
			if (strcmp(f->entries[i].row.section, section) == 0 &&
			    f->entries[i].action != ACTION_COMPLETION && f->entries[i].action != ACTION_MAN)
				write_row(f, &f->entries[i]);
	}
	write_tail(f);
}
