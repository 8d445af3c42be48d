/*
 * line.c - the command line, read with getopt_long(3).
 *
 *     argv --> check_long() --> getopt_long() --> take() --> LEVEL_LINE of the round
 *              names, nearest   splits words      value
 *
 * What would surprise: getopt_long() accepts abbreviations and knows no '_', and it
 * cannot be told otherwise.  So each word that it is about to read as a long option
 * is looked at before: an unknown name never reaches it, a known one is written in
 * full.  For this we must know which word comes next, hence '-' in the option string
 * (operands in order) and the watch on optind for letters that share a word ("-vc").
 *
 * An unknown option takes an operand right behind it along, so that "--nmae x" is one
 * error and not two.  An option's value that is itself the name of an option is
 * refused: "--config --enable-pprof" has lost its file name.
 *
 * getopt's variables are the daemon's: they are put back.  What it keeps inside cannot be: that
 * operands come in order would hold for the daemon's own getopt(3) too.  So it is made to forget
 * ours, and an optind that was never used becomes 0, which begins anew with the daemon's letters.
 *
 * Tests: tests/flags/test_line.c.
 */
#include <config.h>

#include "registry.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_BASE 256 /* above any letter: getopt_long()'s value of entry 0 */
#define LETTERS_MAX 256 /* bytes of the option string: 62 letters and colons */
#define NAME_BYTES_MAX   128 /* bytes of a name; lint.c holds rows to less */

struct line {
	struct component_flags *f;
	struct flag_round      *round;
	int            argc;
	char         **words;   /* copy of argv's pointers; owned[i] is what we changed */
	char         **owned;
	struct option *options;
	size_t         option_count;
	char          *names;   /* storage of the options' names */
	char           letters[LETTERS_MAX];
	bool           unknown; /* the last word was an unknown option */
	const char    *bare;    /* the last word if it was a bool option without a value */
};

static bool
has_no_form(const struct flag_entry *e)
{
	return e && e->row.type == COMPONENT_FLAG_TYPE_BOOL && e->action == ACTION_NONE;
}

bool
flag_takes_optional_argument(const struct flag_entry *e)
{
	return e->row.type == COMPONENT_FLAG_TYPE_BOOL || (e->row.bits & COMPONENT_FLAG_OPTIONAL) || e->action == ACTION_HELP ||
		e->action == ACTION_VERSION || e->action == ACTION_DUMP || e->action == ACTION_COMPLETION;
}

static void
add_option(struct line *l, char **to, const char *prefix, const char *name, size_t size, int has_arg, int val)
{
	l->options[l->option_count++] = (struct option){ .name = *to, .has_arg = has_arg, .val = val };
	*to += sprintf(*to, "%s%.*s", prefix, (int)size, name) + 1;
}

/* Twice: with to NULL it counts options and bytes. */
static void
build_names(struct line *l, char **to, size_t *options, size_t *bytes)
{
	for (size_t i = 0; i < l->f->count; i++) {
		const struct flag_entry *e = &l->f->entries[i];
		const char *cursors[] = { e->row.name, e->row.alias, e->row.deprecated };
		const char *word;
		size_t      size;
		int         val = OPTION_BASE + 2 * (int)i;

		for (size_t c = 0; c < 3; c++)
			while (words_next(&cursors[c], &word, &size)) {
				bool no = has_no_form(e) && c < 2;

				*options += 1 + no;
				*bytes += 2 * size + sizeof("no-") + 1;
				if (!to)
					continue;
				add_option(l, to, "", word, size,
					flag_takes_optional_argument(e) ? optional_argument : required_argument, val);
				if (no)
					add_option(l, to, "no-", word, size, no_argument, val + 1);
			}
	}
}

static int
build(struct line *l)
{
	size_t options = 1, bytes = 0, used = 0;
	char  *to;

	build_names(l, NULL, &options, &bytes);
	l->options = calloc(options, sizeof(*l->options));
	l->names = to = malloc(bytes + 1);
	l->words = calloc((size_t)l->argc + 1, sizeof(*l->words));
	l->owned = calloc((size_t)l->argc + 1, sizeof(*l->owned));
	if (!l->options || !l->names || !l->words || !l->owned)
		return -ENOMEM;
	build_names(l, &to, &options, &bytes);
	used += (size_t)sprintf(l->letters, "-:");
	for (size_t i = 0; i < l->f->count && used + 3 < sizeof(l->letters); i++) {
		const struct flag_entry *e = &l->f->entries[i];

		if (e->row.letter)
			used += (size_t)sprintf(l->letters + used, "%c%s", e->row.letter,
				flag_takes_optional_argument(e) ? "" : ":");
	}
	return 0;
}

/* size bytes of word between head and tail. */
static void
report(struct line *l, const char *head, const char *word, size_t size, const char *tail)
{
	struct text quoted = TEXT_INIT, text = TEXT_INIT;

	text_add_bytes(&text, word, size);
	text_add_quoted(&quoted, text_string(&text));
	lines_add(&l->round->errors, "%s %s%s", head, text_string(&quoted), tail);
	text_release(&quoted);
	text_release(&text);
}

/* What may have been meant by the name in text. */
static void
hint_add(const struct component_flags *f, const char *text, size_t size, char *hint, size_t room)
{
	char        near[NAME_BYTES_MAX];
	bool        no = size > 3 && memcmp(text, "no-", 3) == 0;
	const char *name = no ? text + 3 : text;

	if (no && flags_find(f, name, strlen(name), NULL))
		snprintf(hint, room, "; '--%s' wants a value and has no '--no-'", name);
	else if (size > 0 && *flags_nearest(f, PLACE_LINE, name, near, sizeof(near)))
		snprintf(hint, room, "; did you mean '--%s%s'?",
			no && has_no_form(flags_find(f, near, strlen(near), NULL)) ? "no-" : "", near);
}

/* "--x=..." at words[i]: true if getopt_long() may have it. */
static bool
check_long(struct line *l, int i)
{
	const char        *word = l->words[i], *name = word + 2;
	size_t             size = strcspn(name, "=");
	char               text[NAME_BYTES_MAX] = "", hint[NAME_BYTES_MAX + 64] = "";
	const char        *end = name + size;
	char              *copy;

	if (size < sizeof(text))
		memcpy(text, name, size);
	for (char *s = text; *s; s++)
		if (*s == '_')
			*s = '-';
	if (size > 0 && size < sizeof(text) && flags_find(l->f, name, size, NULL)) {
		copy = l->owned[i] = malloc(strlen(word) + 1);
		if (!copy) {
			l->round->errors.failed = true;
			return false;
		}
		sprintf(copy, "--%s%s", text, end);
		l->words[i] = copy;
		return true;
	}
	hint_add(l->f, text, size, hint, sizeof(hint));
	report(l, "unknown option", word, size > 0 ? size + 2 : strlen(word), hint);
	return false;
}

static bool
is_bool_word(const char *word)
{
	static const struct component_flag row = { .type = COMPONENT_FLAG_TYPE_BOOL };
	struct flag_value v;
	struct text       why = TEXT_INIT;
	bool              is = flag_value_parse(&row, word, &v, &why) == 0;

	text_release(&why);
	return is && strlen(word) <= sizeof("false");
}

static void
report_operand(struct line *l, const char *word)
{
	char   hint[NAME_BYTES_MAX + 32] = "";
	size_t size = strcspn(word, "=");

	if (l->bare && is_bool_word(word) && strlen(l->bare) < NAME_BYTES_MAX)
		snprintf(hint, sizeof(hint), "; write '%s=%s'", l->bare, word);
	else if (flags_find(l->f, word, size, NULL) && size < NAME_BYTES_MAX)
		snprintf(hint, sizeof(hint), "; did you mean '--%.*s'?", (int)size, word);
	report(l, "extra operand", word, strlen(word), hint);
}

static void
take_operand(struct line *l, char *word)
{
	struct component_flags *f = l->f;

	if (f->operands.count < f->operands.most)
		f->operands.words[f->operands.count++] = word;
	else
		report_operand(l, word);
}

/* "--config --enable-pprof": the value is missing. */
static bool
lost_value(struct line *l, int i)
{
	const char *word = l->words[i];

	return optarg == word && word[0] == '-' && word[1] == '-' && word[2] &&
		flags_find(l->f, word + 2, strcspn(word + 2, "="), NULL);
}

static void
note_deprecated(struct line *l, const char *name, const struct flag_entry *e)
{
	enum flag_match match;

	if (flags_find(l->f, name, strcspn(name, "="), &match) && match == MATCH_DEPRECATED)
		lines_add(&l->round->warnings, "option '--%.*s' is deprecated; use '--%s'",
			(int)strcspn(name, "="), name, e->row.name);
}

/* "-v=3" is "-v3", as with Go's pflag: getopt_long() takes the '=' for a part of the value. */
static const char *
letter_value(const char *word, const char *value)
{
	bool is_joined = value && value > word && value <= word + strlen(word);

	return is_joined && *value == '=' ? value + 1 : value;
}

/* An option that getopt_long() has split: val as in build_names(), or a letter. */
static void
take(struct line *l, int val, int at)
{
	const struct flag_entry   *e;
	const struct flag_setting *given;
	bool        negated = val >= OPTION_BASE && (val - OPTION_BASE) % 2;
	const char *text = optarg;
	char        label[NAME_BYTES_MAX + 16];

	l->bare = NULL;
	if (val >= OPTION_BASE) {
		e = &l->f->entries[(val - OPTION_BASE) / 2];
		snprintf(label, sizeof(label), "option '--%.*s'", (int)strcspn(l->words[at] + 2, "="), l->words[at] + 2);
		note_deprecated(l, l->words[at] + 2, e);
	} else {
		e = flags_find_letter(l->f, (char)val);
		snprintf(label, sizeof(label), "option '-%c'", val);
		text = letter_value(l->words[at], text);
	}
	if (text && lost_value(l, optind - 1)) {
		flag_round_fault(l->round, LEVEL_LINE, label, &e->row, NULL,
			"wants a value, but another option follows; write the value with '=' if that is it");
		optind--; /* it is looked at again, as an option */
		return;
	}
	if (!text && e->row.type == COMPONENT_FLAG_TYPE_BOOL) {
		text = negated ? "false" : "true";
		l->bare = negated || val < OPTION_BASE ? NULL : l->words[at];
		if ((e->row.bits & COMPONENT_FLAG_BOOL_WORD) && !negated && val >= OPTION_BASE && optind < l->argc &&
		    (strcmp(l->words[optind], "true") == 0 || strcmp(l->words[optind], "false") == 0))
			text = l->words[optind++];
	} else if (!text && e->row.type == COMPONENT_FLAG_TYPE_ENUM)
		text = e->row.choices[0];
	flag_round_set(l->f, l->round, e, LEVEL_LINE, text ? text : "", label, NULL);
	given = flag_round_at(l->round, l->f, e, LEVEL_LINE);
	if (!l->f->wanted && e->action >= ACTION_HELP && e->action < ACTION_CHECK &&
	    (e->action == ACTION_HELP || given->set) && !(flag_is_bool_action(e) && !given->value.boolean))
		l->f->wanted = e;
}

static void
take_fault(struct line *l, int c, int at)
{
	char letter[3] = { '-', (char)optopt, '\0' };
	bool is_long = optopt >= OPTION_BASE || optopt == 0;
	const char *word = is_long ? l->words[at] : letter;

	if (c == ':')
		report(l, "option", word, strlen(word), is_long ? ": wants a value; write it after '='" :
			": wants a value; write it behind the letter");
	else if (is_long)
		report(l, "option", word, strcspn(word, "="), ": takes no value; leave it out");
	else
		report(l, "unknown option", word, strlen(word), "");
}

/* Gives "-x=false" at words[i] its long form, as getopt_long() takes no value for the letter of a bool; false: it is none. */
static bool
lengthen(struct line *l, int i)
{
	const char              *word = l->words[i];
	bool                     is_letter = word[0] == '-' && word[1] && word[1] != '-' && word[2] == '=';
	const struct flag_entry *e = is_letter ? flags_find_letter(l->f, word[1]) : NULL;
	char                    *copy;

	if (!e || e->row.type != COMPONENT_FLAG_TYPE_BOOL)
		return false;
	copy = l->owned[i] = malloc(strlen("--") + strlen(e->row.name) + strlen(word));
	if (!copy) {
		l->round->errors.failed = true;
		return false;
	}
	sprintf(copy, "--%s%s", e->row.name, word + 2);
	l->words[i] = copy;
	return true;
}

static void
read_words(struct line *l)
{
	bool in_word = false;

	for (;;) {
		int at = optind > 0 ? optind : 1;
		int c;

		if (!in_word && at < l->argc && !lengthen(l, at) && strncmp(l->words[at], "--", 2) == 0 && l->words[at][2] &&
		    !check_long(l, at)) {
			optind = at + 1;
			l->unknown = !strchr(l->words[at], '=');
			continue;
		}
		c = getopt_long(l->argc, l->words, l->letters, l->options, NULL);
		if (c == -1)
			break;
		in_word = c != 1 && optind == at;
		if (c == 1) {
			if (!l->unknown)
				take_operand(l, optarg);
			l->bare = NULL;
			if (l->f->operands.first)
				break;
		} else if (c == '?' || c == ':')
			take_fault(l, c, at);
		else
			take(l, c, at);
		l->unknown = false;
	}
	l->bare = NULL;
	for (int i = optind; i < l->argc; i++)
		take_operand(l, l->words[i]);
	if (l->f->operands.count < l->f->operands.least)
		lines_add(&l->round->errors, "%s; write %s %s", l->f->operands.count ? "an operand is missing" : "no operand is given",
			l->f->spec.name, l->f->operands.shown);
}

void
flags_operands(struct component_flags *f, const char *name, const char *shown, size_t least, size_t most, bool first)
{
	f->spec.name = name;
	f->operands.shown = shown;
	f->operands.least = least;
	f->operands.most = most;
	f->operands.first = first;
}

void
flags_config_own(struct component_flags *f)
{
	f->config_own = true;
}

char **
flags_operand_words(const struct component_flags *f)
{
	return f->operands.words;
}

/* Room for all that may come. */
static int
operands_begin(struct component_flags *f, int argc)
{
	free(f->operands.words);
	f->operands.count = 0;
	f->operands.words = f->operands.shown ? calloc((size_t)argc + 1, sizeof(*f->operands.words)) : NULL;
	return f->operands.shown && !f->operands.words ? -ENOMEM : 0;
}

/* Whatever was read before: what getopt(3) keeps inside is that of these letters. */
static void
begin_anew(const char *letters)
{
	char  name[] = "";
	char *none[] = { name, NULL };

	optind = 0;
	getopt(1, none, letters);
}

int
flags_line_read(struct component_flags *f, struct flag_round *round, int argc, char **argv)
{
	struct line l = { .f = f, .round = round, .argc = argc };
	int   ind = optind, err = opterr, opt = optopt;
	char *arg = optarg;
	int   r;

	f->wanted = NULL;
	r = operands_begin(f, argc);
	if (r == 0)
		r = build(&l);
	if (r < 0)
		goto out;
	for (int i = 0; i < argc; i++)
		l.words[i] = argv[i];
	begin_anew(l.letters);
	opterr = 0;
	if (argc > 0)
		read_words(&l);
out:
	begin_anew("");
	optind = ind == 1 ? 0 : ind;
	opterr = err;
	optopt = opt;
	optarg = arg;
	for (int i = 0; l.owned && i < argc; i++)
		free(l.owned[i]);
	free(l.owned);
	free(l.words);
	free(l.names);
	free(l.options);
	return r;
}
