/*
 * notes.c - reads what a server says of itself: JSON of one form, an array of objects whose values are strings.
 *
 * The answer is looked at twice: what ends in the middle, or has another form, leaves no findings behind.
 *
 * What a stranger would get wrong: keys that are not known are passed over, so that later servers may say more.
 *
 * Tests: tests/componentctl/doctor.t
 */
#include <config.h>

#include "notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct note {
	const char *about, *level, *text;
};

static bool
skip(char **at, char c)
{
	*at += strspn(*at, " \t\r\n");
	if (**at != c)
		return false;
	++*at;
	return true;
}

/* A character beyond ASCII is passed on as it came; an escaped one becomes '?', unless it is ASCII. */
static bool
unescape(char **from, char **to)
{
	static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char       *found = **from ? strchr(names, **from) : NULL;
	char              hex[5] = "", *end;
	unsigned long     code;

	if (found) {
		*(*to)++ = meant[found - names];
		++*from;
		return true;
	}
	if (**from != 'u')
		return false;
	strncpy(hex, *from + 1, 4);
	code = strtoul(hex, &end, 16);
	if (end != hex + 4 || !code)
		return false;
	*(*to)++ = code < 0x80 ? (char)code : '?';
	*from += 5;
	return true;
}

/* A string, which is written over itself without its escapes. */
static bool
string_read(char **at, const char **ret)
{
	char *from, *to;

	if (!skip(at, '"'))
		return false;
	from = to = *at;
	*ret = to;
	while (*from != '"') {
		if (!*from)
			return false;
		if (*from != '\\')
			*to++ = *from++;
		else if (from++, !unescape(&from, &to))
			return false;
	}
	*at = from + 1;
	*to = '\0';
	return true;
}

static bool
note_read(char **at, struct note *ret)
{
	*ret = (struct note){ "", "", "" };
	if (!skip(at, '{'))
		return false;
	do {
		const char *key, *value;

		if (!string_read(at, &key) || !skip(at, ':') || !string_read(at, &value))
			return false;
		if (!strcmp(key, "about"))
			ret->about = value;
		else if (!strcmp(key, "level"))
			ret->level = value;
		else if (!strcmp(key, "text"))
			ret->text = value;
	} while (skip(at, ','));
	return skip(at, '}') && *ret->about && *ret->level;
}

/* What mends it, by a part of the server's sentence. */
static void
command_of(const struct target *t, const char *sentence, char *buf, size_t size)
{
	static const struct {
		const char *part, *command;
	} all[] = {
		{ "-lcomponent_hooks", "componentctl run PROGRAM" },
		{ "RLIMIT_SIGPENDING", "prlimit --pid=PID --sigpending=65536:65536" },
		{ "kernel.perf_event_paranoid", "sysctl kernel.perf_event_paranoid=2" },
		{ "--profiling-memory", "PROGRAM --profiling-memory=128MiB" },
	};

	*buf = '\0';
	if (strstr(sentence, "its rate is 0"))
		snprintf(buf, size, "curl %s%s%s-d heap-profile-rate=524288 %s/rates", !*t->socket ? "" : *t->socket == '@' ?
			"--abstract-unix-socket " : "--unix-socket ", t->socket + (*t->socket == '@'), *t->socket ? " " : "", t->url);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !*buf; i++)
		if (strstr(sentence, all[i].part))
			snprintf(buf, size, "%s", all[i].command);
}

static void
note_tell(const struct target *t, const struct note *n, struct findings *f)
{
	char command[2 * TARGET_MAX + 128];

	command_of(t, n->text, command, sizeof(command));
	if (!strcmp(n->level, "ok"))
		findings_ok(f, n->about, NULL, "%s", *n->text ? n->text : "in order");
	else
		findings_warn(f, n->about, command, "%s", n->text);
}

/* f NULL: is it one? */
static bool
read_all(const struct target *t, char *at, struct findings *f)
{
	struct note n;

	if (!skip(&at, '['))
		return false;
	do {
		if (!note_read(&at, &n))
			return false;
		if (f)
			note_tell(t, &n, f);
	} while (skip(&at, ','));
	return skip(&at, ']') && at[strspn(at, " \t\r\n")] == '\0';
}

bool
notes_read(const struct target *t, const void *data, size_t size, struct findings *f)
{
	bool ok = true;

	/* First without findings. */
	for (int i = 0; i < 2 && ok; i++) {
		char *copy = strndup(data ? data : "", size);

		ok = copy && strlen(copy) == size && read_all(t, copy, i ? f : NULL);
		free(copy);
	}
	return ok;
}
