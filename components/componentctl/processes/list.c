/*
 * list.c - componentctl list: what serves profiles on this machine and has a record.
 *
 * The columns and the formats of their cells are those that `dapr list` had when people learnt
 * them: the age in its largest unit, a dot before the seconds.  DAPR PORT is the port
 * that answers /debug/pprof/; it is 0 where that is a unix socket, which `-o wide` names, and
 * where profiling is off.
 *
 * Tests: tests/componentctl/list.t.
 */
#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "records.h"
#include "text.h"

#define COMMAND_SHOWN 20   /* characters of it in the table */
#define COLUMNS       10
#define COLUMNS_WIDE  3 /* of them */
#define CELL_MAX      (RECORD_URL_MAX + 16)

enum output { TABLE, WIDE, JSON, YAML };

static const char *const outputs[] = { "table", "wide", "json", "yaml", NULL };
static int               output;

/* ---- cells ---- */

static void
age_of(const struct record *r, char *buf, size_t size)
{
	int64_t seconds = time(NULL) - r->created;

	seconds = seconds > 0 ? seconds : 0;
	if (seconds <= 60)
		snprintf(buf, size, "%llds", (long long)seconds);
	else if (seconds <= 60 * 60)
		snprintf(buf, size, "%lldm", (long long)seconds / 60);
	else if (seconds <= 24 * 60 * 60)
		snprintf(buf, size, "%lldh", (long long)seconds / (60 * 60));
	else
		snprintf(buf, size, "%lldd", (long long)seconds / (24 * 60 * 60));
}

static void
created_of(const struct record *r, char *buf, size_t size)
{
	time_t    t = (time_t)r->created;
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(buf, size, "%Y-%m-%d %H:%M.%S", &tm))
		snprintf(buf, size, "unknown");
}

struct row {
	char id[RECORD_ID_MAX], port[24], app_port[24], age[24], created[32], pid[24], parent[24], url[RECORD_URL_MAX];
	char command[RECORDS_COMMAND_MAX];
};

static void
row_make(const struct record *r, struct row *row)
{
	snprintf(row->id, sizeof(row->id), "%s", r->id);
	snprintf(row->port, sizeof(row->port), "%lld", (long long)records_port(r));
	snprintf(row->app_port, sizeof(row->app_port), "%lld", (long long)r->app_port);
	snprintf(row->pid, sizeof(row->pid), "%ld", (long)r->pid);
	snprintf(row->parent, sizeof(row->parent), "%ld", (long)r->parent);
	snprintf(row->url, sizeof(row->url), "%s", r->url);
	age_of(r, row->age, sizeof(row->age));
	created_of(r, row->created, sizeof(row->created));
	records_command(r, row->command);
}

/* ---- forms ---- */

struct column {
	const char *title;  /* in the table */
	const char *key;    /* in JSON and YAML */
	size_t      at;     /* in struct row */
	bool        number, wide;
};

#define AT(member) offsetof(struct row, member)
static const struct column columns[] = {
	{ "APP ID", "appId", AT(id), false, false },
	{ "DAPR PORT", "daprPort", AT(port), true, false },
	{ "APP PORT", "appPort", AT(app_port), true, false },
	{ "COMMAND", "command", AT(command), false, false },
	{ "AGE", "age", AT(age), false, false },
	{ "CREATED", "created", AT(created), false, false },
	{ "PID", "pid", AT(pid), true, false },
	{ "PROFILE PORT", "profilePort", AT(port), true, true },
	{ "PARENT", "parent", AT(parent), true, true },
	{ "ADDRESS", "address", AT(url), false, true },
};
_Static_assert(sizeof(columns) / sizeof(columns[0]) == COLUMNS, "COLUMNS");

/* Of the table, whose commands are cut after whole characters. */
static const char *
cell(const struct column *c, const struct row *row, char buf[CELL_MAX])
{
	const char *text = (const char *)row + c->at, *end = text;

	if (c->at != AT(command) || output == WIDE)
		return text;
	for (int i = 0; i < COMMAND_SHOWN && *end; i++)
		for (end++; (*end & 0xc0) == 0x80; end++)
			;
	snprintf(buf, CELL_MAX, "%.*s", (int)(end - text), text);
	return buf;
}

static size_t
width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void
table_write(const struct row *rows, size_t count)
{
	size_t width[COLUMNS] = { 0 }, shown = output == WIDE ? COLUMNS : COLUMNS - COLUMNS_WIDE;
	char   buf[CELL_MAX];

	if (!count) {
		puts("No Dapr instances found.");
		return;
	}
	for (size_t c = 0; c < shown; c++) {
		width[c] = strlen(columns[c].title);
		for (size_t i = 0; i < count; i++) {
			size_t w = width_of(cell(&columns[c], &rows[i], buf));

			width[c] = w > width[c] ? w : width[c];
		}
	}
	for (size_t i = 0; i <= count; i++)
		for (size_t c = 0; c < shown; c++) {
			const char *text = i ? cell(&columns[c], &rows[i - 1], buf) : columns[c].title;
			bool        last = c + 1 == shown;

			printf("%s%*s", text, last ? 0 : (int)(width[c] - width_of(text) + 2), "");
			if (last)
				putchar('\n');
		}
}

/* JSON is YAML, too, as far as one value goes. */
static void
value_add(struct text *t, const struct column *c, const struct row *row)
{
	const char *text = (const char *)row + c->at;

	if (c->number)
		text_add(t, "%s", text);
	else
		text_add_json(t, text);
}

static int
objects_write(const struct row *rows, size_t count, bool json)
{
	struct text t = TEXT_INIT;
	int         r;

	text_add(&t, json ? "[" : count ? "" : "[]\n");
	for (size_t i = 0; i < count; i++) {
		text_add(&t, "%s", !json ? "- " : i ? ",\n  {" : "\n  {");
		for (size_t c = 0; c < COLUMNS; c++) {
			text_add(&t, json ? "%s\"%s\": " : "%s%s: ", !c ? "" : json ? ", " : "  ", columns[c].key);
			value_add(&t, &columns[c], &rows[i]);
			text_add(&t, "%s", json ? "" : "\n");
		}
		text_add(&t, "%s", json ? "}" : "");
	}
	text_add(&t, "%s", !json ? "" : count ? "\n]\n" : "]\n");
	r = t.failed ? -ENOMEM : 0;
	if (!r)
		fputs(text_string(&t), stdout);
	text_release(&t);
	return r;
}

static int
list(char **operands, struct component_error *err)
{
	struct records l;
	struct row    *rows = NULL;
	int            r = records_read(&l);

	(void)operands;
	(void)err;
	rows = r ? NULL : calloc(l.count + 1, sizeof(*rows));
	if (!rows) {
		records_release(&l);
		return -ENOMEM;
	}
	for (size_t i = 0; i < l.count; i++)
		row_make(&l.items[i], &rows[i]);
	if (output == TABLE || output == WIDE)
		table_write(rows, l.count);
	else
		r = objects_write(rows, l.count, output == JSON);
	free(rows);
	records_release(&l);
	return r;
}

static const struct component_flag flags[] = {
	COMPONENT_FLAG_ENUM("output", &output, "How the list is written: table is for people, wide has more columns.",
		.section = "List", .choices = outputs, .letter = 'o'),
	COMPONENT_FLAG_END
};

const struct command list_command = {
	.name = "list",
	.summary = "Lists the programs on this machine that serve profiles and have a record.",
	.flags = flags,
	.run = list,
};
