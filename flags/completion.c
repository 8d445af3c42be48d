/*
 * completion.c - --completion=bash|zsh: a script for the shell, from the rows.
 *
 * It completes names, then words of enums and bools, and files for everything else
 * that may be one.  The script is plain data and one function; it does not run the
 * program, so that a Tab never starts a daemon.
 *
 * The names that go into it (program, options, choices) are checked: the first two by
 * lint.c and component_flags_new(), choices here, because a shell would run what is
 * in them.
 *
 * Tests: tests/flags/output.t, which has bash complete real words.
 */
#include <config.h>

#include "registry.h"

#include <ctype.h>
#include <string.h>

static bool
is_safe(const char *s)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("-_.,:/+=@%", *s))
			return false;
	return true;
}

/* "on|off": what may stand behind '='; false if anything may. */
static bool
write_words(const struct flag_entry *e, struct text *t)
{
	const char *const *choices = e->row.choices;

	if (e->row.type == COMPONENT_FLAG_TYPE_BOOL) {
		text_add(t, "true false");
		return true;
	}
	for (size_t i = 0; choices && choices[i]; i++)
		if (is_safe(choices[i]))
			text_add(t, "%s%s", t->size > 0 ? " " : "", choices[i]);
	return choices != NULL;
}

/* Calls fn for each name of an option. */
static void
each_name(const struct component_flags *f, void (*fn)(const struct flag_entry *e, const char *prefix,
	const char *name, size_t size, struct text *t), struct text *t)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct flag_entry *e = &f->entries[i];
		const char *cursors[] = { e->row.name, e->row.alias };
		const char *word;
		size_t      size;

		if (e->row.bits & COMPONENT_FLAG_HIDDEN)
			continue;
		for (size_t c = 0; c < 2; c++)
			while (words_next(&cursors[c], &word, &size)) {
				fn(e, "", word, size, t);
				if (e->row.type == COMPONENT_FLAG_TYPE_BOOL && !flag_is_bool_action(e))
					fn(e, "no-", word, size, t);
			}
	}
}

static void
bash_name(const struct flag_entry *e, const char *prefix, const char *name, size_t size, struct text *t)
{
	bool wants = e->row.type != COMPONENT_FLAG_TYPE_BOOL && !(e->row.bits & COMPONENT_FLAG_OPTIONAL) && flag_holds_value(e);

	text_add(t, " --%s%.*s%s", prefix, (int)size, name, wants ? "=" : "");
}

static void
bash_case(const struct flag_entry *e, const char *prefix, const char *name, size_t size, struct text *t)
{
	struct text words = TEXT_INIT;

	if (!*prefix && write_words(e, &words))
		text_add(t, "\t--%.*s) words='%s' ;;\n", (int)size, name, text_string(&words));
	else if (!*prefix && e->row.type == COMPONENT_FLAG_TYPE_STRING)
		text_add(t, "\t--%.*s) files=1 ;;\n", (int)size, name);
	text_release(&words);
}

/* The program's name as part of a function's. */
static void
write_function(const struct component_flags *f, struct text *t)
{
	text_add(t, "_");
	for (const char *s = f->spec.name; *s; s++)
		text_add(t, "%c", isalnum((unsigned char)*s) ? *s : '_');
}

static void
write_bash(struct component_flags *f)
{
	struct text *t = &f->output;

	text_add(t, "# bash completion of %s, from %s --completion=bash\n", f->spec.name, f->spec.name);
	write_function(f, t);
	/* "--x=y" is three words for bash: '=' is in COMP_WORDBREAKS. */
	text_add(t, "()\n{\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} option='' words='' files=''\n"
		"\tCOMPREPLY=()\n"
		"\tif [[ $cur == '=' ]]; then\n"
		"\t\toption=${COMP_WORDS[COMP_CWORD-1]} cur=''\n"
		"\telif [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[COMP_CWORD-1]} == '=' ]]; then\n"
		"\t\toption=${COMP_WORDS[COMP_CWORD-2]}\n"
		"\telif [[ ${COMP_WORDS[COMP_CWORD-1]} == -c ]]; then\n"
		"\t\toption=--config\n"
		"\tfi\n"
		"\tcase ${option//_/-} in\n\t'')\n\t\twords='");
	each_name(f, bash_name, t);
	text_add(t, "' ;;\n");
	each_name(f, bash_case, t);
	text_add(t, "\tesac\n"
		"\tif [[ -n $files ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
		"\t\tcompopt -o filenames 2>/dev/null\n"
		"\telse\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
		"\tfi\n"
		"\tif [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == --*= ]]; then\n"
		"\t\tcompopt -o nospace 2>/dev/null\n"
		"\tfi\n"
		"}\ncomplete -F ");
	write_function(f, t);
	text_add(t, " %s\n", f->spec.name);
}

/* Help inside '--x[help]': no quotes, brackets, colons or backslashes. */
static void
write_zsh_help(struct text *t, const char *help)
{
	for (; *help; help++)
		if (!strchr("'[]:\\\n`$\"", *help))
			text_add(t, "%c", *help);
}

static void
zsh_spec(const struct flag_entry *e, const char *prefix, const char *name, size_t size, struct text *t)
{
	struct text words = TEXT_INIT;
	bool        optional = e->row.type == COMPONENT_FLAG_TYPE_BOOL || (e->row.bits & COMPONENT_FLAG_OPTIONAL) ||
		!flag_holds_value(e);
	bool        argument = !*prefix && !flag_is_bool_action(e);

	text_add(t, " \\\n\t'--%s%.*s%s[", prefix, (int)size, name, !argument ? "" : optional ? "=-" : "=");
	write_zsh_help(t, *prefix ? "Switch it off." : e->row.help);
	text_add(t, "]");
	if (argument) {
		text_add(t, "%s%s", optional ? "::" : ":", flag_value_type(&e->row));
		if (write_words(e, &words))
			text_add(t, ":(%s)", text_string(&words));
		else
			text_add(t, ":%s", e->row.type == COMPONENT_FLAG_TYPE_STRING ? "_files" : " ");
	}
	text_add(t, "'");
	text_release(&words);
}

static void
write_zsh(struct component_flags *f)
{
	struct text *t = &f->output;

	text_add(t, "#compdef %s\n# zsh completion of %s, from %s --completion=zsh\n_arguments -s -S",
		f->spec.name, f->spec.name, f->spec.name);
	each_name(f, zsh_spec, t);
	text_add(t, "\n");
}

void
flags_completion_write(struct component_flags *f, int shell)
{
	if (shell == 0)
		write_bash(f);
	else
		write_zsh(f);
}
