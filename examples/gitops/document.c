/*
 * document.c - small documents of "key: value" lines, and application files.
 *
 * The lines are the plainest part of YAML: no nesting, no lists (but the one the
 * controllers write themselves, under "files:"), one document a file, values plain
 * or in quotes, comments after '#'.  Whatever else YAML knows is refused with the
 * line and what to write instead; nothing is guessed.
 *
 * Why not libyaml: half of what it accepts would have to be refused after, and the
 * reason could not say which line was meant.
 *
 * Tests: tests/examples/test_gitops.c.
 */
#include "gitops.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define APPLICATION_MAX (64 * 1024) /* bytes of a file people write by hand */
#define INTERVAL_DEFAULT "1m"

static bool
is_control(char c)
{
	return (unsigned char)c < ' ' || c == 127;
}

static int
fault(struct component_error *err, unsigned line, const char *what, const char *value)
{
	component_error_set(err, "line %u: %s%s%.100s%s", line, what, *value == '\0' ? "" : " '", value,
		*value == '\0' ? "" : "'");
	return -EINVAL;
}

/* One character of a text in double quotes, after its backslash; 0: none that is known. */
static char
escape_read(const char **from)
{
	const char *p = *from;
	unsigned code;

	if (*p == '"' || *p == '\\' || *p == 'n' || *p == 't') {
		++*from;
		return *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
	}
	if (*p != 'x' || strspn(p + 1, "0123456789abcdefABCDEF") < 2 || sscanf(p + 1, "%2x", &code) != 1 || code > 127)
		return '\0'; /* from 128 on YAML means a character, not a byte */
	*from += 3;
	return (char)code;
}

/* The text in the quotes at p, taken off in place, and what follows it; NULL: *ret_fault says why. */
static char *
quoted_read(char *p, char **ret_end, const char **ret_fault)
{
	char quote = *p, *to = p;
	const char *from = p + 1;

	while (*from != '\0' && (*from != quote || (quote == '\'' && from[1] == '\''))) {
		if (quote == '"' && *from == '\\') {
			from++;
			*to = escape_read(&from);
			if (*to++ == '\0') {
				*ret_fault = "after a backslash comes one of \" \\ n t x01 to x7f:";
				return NULL;
			}
			continue;
		}
		from += *from == '\'' && quote == '\'';
		*to++ = *from++;
	}
	if (*from == '\0') {
		*ret_fault = "the quote is not closed:";
		return NULL;
	}
	*ret_end = p + (from - p) + 1;
	*to = '\0';
	return p;
}

/* The value at p, quotes and comment taken off in place; NULL: *ret_fault says why. */
static char *
value_read(char *p, const char **ret_fault)
{
	char *from;

	p += strspn(p, " ");
	if (*p == '"' || *p == '\'') {
		p = quoted_read(p, &from, ret_fault);
		if (p == NULL)
			return NULL;
		from += strspn(from, " ");
		*ret_fault = "there is something after the closing quote:";
		return *from == '\0' || *from == '#' ? p : NULL;
	}
	if (*p != '\0' && strchr("[]{}&*!|>%@`?,", *p) != NULL) {
		*ret_fault = "only plain values are known here; put it in quotes:";
		return NULL;
	}
	from = *p == '#' ? p : strstr(p, " #");
	if (from != NULL)
		*from = '\0';
	for (from = p + strlen(p); from > p && from[-1] == ' '; from--)
		from[-1] = '\0';
	*ret_fault = "a ':' inside a value is ambiguous; put it in quotes:";
	return strstr(p, ": ") != NULL || (from > p && from[-1] == ':') ? NULL : p;
}

/* "  - written 9f86... 0644 1234 path": what the controllers write under files:.  The path is
 * the rest of the line, its blanks too, or in quotes. */
static int
file_line(struct gitops_document *d, char *line, struct component_error *err)
{
	struct gitops_file file = { 0 };
	char word[16], *path, *end = line;
	const char *what = "not a path:";
	unsigned long long size;
	int used = 0;

	if (sscanf(line, "  - %15s %64s %o %llu%n", word, file.hash, &file.mode, &size, &used) != 4 ||
			line[used] != ' ' || strspn(file.hash, "0123456789abcdef") != 64 || file.mode > 0777)
		return fault(err, d->lines, "not a file's line:", line);
	path = line + used + 1;
	if (*path == '"')
		path = quoted_read(path, &end, &what);
	if (path == NULL || (end != line && *end != '\0') || gitops_path_check(path, NULL) != 0)
		return fault(err, d->lines, what, line + used + 1);
	file.path = path;
	file.size = size;
	file.intended = strcmp(word, "intended") == 0;
	return gitops_files_add(&d->files, &file);
}

static int
field_line(struct gitops_document *d, char *line, struct component_error *err, bool *ret_files)
{
	size_t n = strspn(line, "abcdefghijklmnopqrstuvwxyz_");
	const char *what = NULL;
	char *value;

	if (*line == ' ' || *line == '-')
		return fault(err, d->lines, "nothing is nested and there are no lists; write 'key: value' from the first "
			"column:", line);
	if (n == 0 || line[n] != ':')
		return fault(err, d->lines, "this is not 'key: value':", line);
	if (line[n + 1] != ' ' && line[n + 1] != '\0')
		return fault(err, d->lines, "a blank is missing after ':':", line);
	line[n] = '\0';
	for (size_t i = 0; i < d->count; i++)
		if (strcmp(d->fields[i].key, line) == 0)
			return fault(err, d->lines, "a key is given twice:", line);
	value = value_read(line + n + 1, &what);
	if (value == NULL)
		return fault(err, d->lines, what, line + n + 1 + strspn(line + n + 1, " "));
	*ret_files = *value == '\0' && strcmp(line, "files") == 0;
	if (*ret_files)
		return 0;
	if (d->count == GITOPS_FIELDS_MAX)
		return fault(err, d->lines, "too many keys:", line);
	d->fields[d->count++] = (struct gitops_field){ line, value, d->lines };
	return 0;
}

static int
one_line(struct gitops_document *d, char *line, struct component_error *err, bool *in_files, bool *started)
{
	size_t n = strlen(line);

	if (n > 0 && line[n - 1] == '\r')
		line[--n] = '\0';
	for (const char *p = line; *p != '\0'; p++)
		if (is_control(*p))
			return fault(err, d->lines, *p == '\t' ? "a tab; write blanks" : "a control character", "");
	if (*in_files)
		return file_line(d, line, err);
	if (line[strspn(line, " ")] == '\0' || line[strspn(line, " ")] == '#')
		return 0;
	if (strcmp(line, "---") == 0 && !*started) {
		*started = true;
		return 0;
	}
	if (strcmp(line, "---") == 0 || strcmp(line, "...") == 0)
		return fault(err, d->lines, "one document a file; this starts or ends another:", line);
	*started = true;
	return field_line(d, line, err, in_files);
}

int
gitops_document_parse(char *text, struct gitops_document *ret, struct component_error *err)
{
	struct gitops_document d = { .text = text };
	bool in_files = false, started = false;
	char *line = text, *next;
	int r = 0;

	if (strncmp(line, "\xef\xbb\xbf", 3) == 0)
		line += 3;
	for (; r == 0 && *line != '\0'; line = next) {
		next = line + strcspn(line, "\n");
		if (*next == '\n')
			*next++ = '\0';
		d.lines++;
		r = one_line(&d, line, err, &in_files, &started);
	}
	if (r != 0) {
		gitops_document_free(&d);
		return r;
	}
	gitops_files_sort(&d.files);
	*ret = d;
	return 0;
}

int
gitops_document_read(const char *root, const char *path, struct gitops_document *ret, struct component_error *err)
{
	char *text;
	int r = gitops_file_read(root, path, GITOPS_DOCUMENT_MAX, &text, err);

	return r == 0 ? gitops_document_parse(text, ret, err) : r;
}

const char *
gitops_document_get(const struct gitops_document *d, const char *key)
{
	for (size_t i = 0; i < d->count; i++)
		if (strcmp(d->fields[i].key, key) == 0)
			return d->fields[i].value;
	return "";
}

void
gitops_document_free(struct gitops_document *d)
{
	gitops_files_free(&d->files);
	free(d->text);
	*d = (struct gitops_document){ 0 };
}

/* Bytes from 128 on stand for themselves, whatever their encoding. */
static void
quoted_write(FILE *f, const char *text)
{
	putc('"', f);
	for (; *text != '\0'; text++) {
		if (is_control(*text)) {
			fprintf(f, "\\x%02x", (unsigned)*text);
			continue;
		}
		if (*text == '"' || *text == '\\')
			putc('\\', f);
		putc(*text, f);
	}
	putc('"', f);
}

static void
value_write(FILE *f, const char *value)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";

	if (*value != '\0' && *value != '-' && value[strspn(value, plain)] == '\0')
		fputs(value, f);
	else
		quoted_write(f, value);
}

/* As it is, unless a line could not hold it or would lose a part of it. */
static void
path_write(FILE *f, const char *path)
{
	bool plain = *path != '"' && *path != ' ' && path[strlen(path) - 1] != ' ';

	for (const char *p = path; plain && *p != '\0'; p++)
		plain = !is_control(*p);
	if (plain)
		fputs(path, f);
	else
		quoted_write(f, path);
}

int
gitops_document_write(const char *root, const char *path, bool sync, const struct gitops_files *files,
	struct component_error *err, ...)
{
	const char *key;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	va_list args;
	int r = -ENOMEM;

	if (f == NULL)
		goto out;
	va_start(args, err);
	while ((key = va_arg(args, const char *)) != NULL) {
		const char *value = va_arg(args, const char *);

		fprintf(f, "%s: ", key);
		value_write(f, value);
		putc('\n', f);
	}
	va_end(args);
	if (files != NULL)
		fputs("files:\n", f);
	for (size_t i = 0; files != NULL && i < files->count; i++) {
		fprintf(f, "  - %s %s %04o %llu ", files->items[i].intended ? "intended" : "written",
			files->items[i].hash, files->items[i].mode, (unsigned long long)files->items[i].size);
		path_write(f, files->items[i].path);
		putc('\n', f);
	}
	r = fclose(f) == 0 ? gitops_file_write(root, path, text, sync, err) : -ENOMEM;

out:
	if (r == -ENOMEM)
		component_error_set(err, "cannot write '%s/%s': out of memory", root, path);
	free(text);
	return r;
}

/* ---- application files ---- */

int64_t
gitops_interval_ns(const char *text)
{
	char unit, more;
	unsigned n;

	if (*text < '0' || *text > '9' || sscanf(text, "%6u%c%c", &n, &unit, &more) != 2)
		return 0;
	if (unit != 's' && unit != 'm' && unit != 'h')
		return 0;
	return unit == 's' ? COMPONENT_SECONDS(n) : unit == 'm' ? COMPONENT_MINUTES(n) : COMPONENT_HOURS(n);
}

static int
field_take(struct gitops_application *a, const struct gitops_field *f, struct component_error *err)
{
	struct component_error why = COMPONENT_ERROR_INIT;
	char what[64 + sizeof why.text];

	if (strcmp(f->key, "name") == 0) {
		a->name = f->value;
	} else if (strcmp(f->key, "source") == 0 || strcmp(f->key, "target") == 0) {
		*(*f->key == 's' ? &a->source : &a->target) = f->value;
		if (gitops_path_check(f->value, &why) != 0) {
			snprintf(what, sizeof what, "%s: %s", f->key, why.text);
			return fault(err, f->line, what, "");
		}
	} else if (strcmp(f->key, "prune") == 0) {
		a->prune = strcmp(f->value, "true") == 0;
		if (!a->prune && strcmp(f->value, "false") != 0)
			return fault(err, f->line, "prune: write true or false, not", f->value);
	} else if (strcmp(f->key, "interval") == 0) {
		a->interval = f->value;
		a->interval_ns = gitops_interval_ns(f->value);
		if (a->interval_ns == 0)
			return fault(err, f->line, "interval: write a whole number and s, m or h, such as 30s, not", f->value);
	} else {
		return fault(err, f->line, "unknown key (there are name, source, target, prune, interval):", f->key);
	}
	return 0;
}

static int
application_check(struct gitops_application *a, const char *key, struct component_error *err)
{
	const char *base = strrchr(key, '/');
	const char *missing = a->name == NULL ? "name" : a->source == NULL ? "source" : a->target == NULL ? "target" : NULL;
	size_t n;

	base = base == NULL ? key : base + 1;
	n = strlen(base) - (sizeof ".yaml" - 1);
	if (missing != NULL)
		return fault(err, a->document.lines, "the file ends without the key", missing);
	if (strlen(a->name) == n && strncmp(a->name, base, n) == 0)
		return 0;
	for (size_t i = 0; i < a->document.count; i++)
		if (strcmp(a->document.fields[i].key, "name") == 0)
			return fault(err, a->document.fields[i].line, "name: it must be the file's name without .yaml, not",
				a->name);
	return -EINVAL;
}

int
gitops_application_read(const char *root, const char *key, struct gitops_application *ret, struct component_error *err)
{
	struct gitops_application a = { .interval = INTERVAL_DEFAULT, .interval_ns = gitops_interval_ns(INTERVAL_DEFAULT) };
	char *text;
	int r = gitops_file_read(root, key, APPLICATION_MAX, &text, err);

	if (r == 0)
		r = gitops_document_parse(text, &a.document, err);
	if (r != 0)
		return r;
	for (size_t i = 0; r == 0 && i < a.document.count; i++)
		r = field_take(&a, &a.document.fields[i], err);
	if (r == 0)
		r = application_check(&a, key, err);
	if (r != 0)
		gitops_application_free(&a);
	else
		*ret = a;
	return r;
}

void
gitops_application_free(struct gitops_application *a)
{
	gitops_document_free(&a->document);
}

/* ---- small things ---- */

bool
gitops_suffix(char ret_path[GITOPS_PATH_MAX], const char *key, const char *from, const char *to)
{
	size_t n = strlen(key), m = strlen(from);

	if (n <= m || strcmp(key + n - m, from) != 0 || key[n - m - 1] == '/' || n - m + strlen(to) >= GITOPS_PATH_MAX)
		return false;
	memmove(ret_path, key, n - m);
	strcpy(ret_path + n - m, to);
	return true;
}

int64_t
gitops_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}
