/*
 * yaml_fault.c - what is wrong with a text that libyaml refuses, as people say it.
 *
 * libyaml says where its grammar stopped; a person wants to know which character did it.
 * What would surprise: the text at the fault tells more than libyaml's sentence, so TAB and
 * UTF-16 are looked for there.  A sentence that nobody has translated is shown as it is.
 *
 * Tests: tests/flags/test_file.c.
 */
#include <config.h>

#include "yaml_fault.h"

#include <stdbool.h>
#include <string.h>

#define QUOTE "put the value into quotes, such as \":6060\""

static const struct {
	const char *problem, *context; /* parts of libyaml's sentences; NULL: any */
	const char *words;
} yaml_words[] = {
	{ "tab character", NULL, "a TAB indents this line; indent with blanks" },
	{ "UTF-8", NULL, "a byte that is not UTF-8; save the file as UTF-8" },
	{ "control characters", NULL, "a control character; take it out, or write it as \"\\x01\" "
		"in double quotes" },
	{ "end of stream", "quoted scalar", "a quote is opened and never closed; close it" },
	{ "unknown escape", NULL, "a backslash in double quotes before a character that it cannot stand "
		"before; write it twice, or use single quotes" },
	{ "cannot start any token", NULL, "a value cannot begin with this character ('@', '`' and '%' are "
		"YAML's own); put the value into quotes" },
	{ "expected node content", "flow", "a value is missing, or begins with ':'; " QUOTE },
	{ "expected node content", NULL, "a value is missing, or begins with a character of YAML's own "
		"(']', '}', ','); put the value into quotes" },
	{ "expected ',' or '}'", NULL, "a '{' is not closed, or ',' is missing between two keys; "
		"write {NAME: VALUE, NAME: VALUE}" },
	{ "expected ',' or ']'", NULL, "a '[' is not closed, or ',' is missing between two items; "
		"write [a, b]" },
	{ "mapping values", NULL, "a second ': ' in one line; " QUOTE ", or begin a new line" },
	{ "expected key", NULL, "a line that is indented neither as the ones above it nor as their "
		"section; indent the keys of a section alike" },
	{ "expected ':'", NULL, "the line before is no NAME: VALUE; write ':' and a blank behind "
		"the name" },
	{ "alphabetic", "alias", "a value cannot begin with '*'; put the value into quotes" },
	{ "alphabetic", "anchor", "a value cannot begin with '&'; put the value into quotes" },
};

static bool
has(const char *text, const char *part)
{
	return !part || (text && strstr(text, part));
}

/* What is wrong where the parser has stopped. */
static void
add_words(const yaml_parser_t *p, const struct text *bytes, struct text *why)
{
	const char *problem = p->problem, *context = p->context; /* either may be NULL */
	const char *text = text_string(bytes);
	size_t      size = bytes->size, at = p->problem_mark.index;

	/* Every other byte of Latin text in UTF-16 is a NUL; with a mark at its head libyaml reads it. */
	if (size >= 2 && (!text[0] != !text[1])) {
		text_add(why, "UTF-16 without its mark; save the file as UTF-8");
		return;
	}
	if (at < size && text[at] == '\t') {
		text_add(why, "a TAB where a name or a value begins; indent with blanks");
		return;
	}
	for (size_t i = 0; problem && i < sizeof(yaml_words) / sizeof(yaml_words[0]); i++)
		if (has(problem, yaml_words[i].problem) && has(context, yaml_words[i].context)) {
			text_add(why, "%s", yaml_words[i].words);
			return;
		}
	text_add(why, "%s%s%s", problem ? problem : "out of memory", context ? " " : "",
		context ? context : "");
}

size_t
yaml_fault(const yaml_parser_t *p, const struct text *bytes, struct text *why)
{
	/* A quote that is never closed is at fault where it is opened. */
	bool opened = p->context && strstr(p->context, "quoted");

	add_words(p, bytes, why);
	return (opened ? p->context_mark.line : p->problem_mark.line) + 1;
}
