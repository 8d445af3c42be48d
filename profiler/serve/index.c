/*
 * index.c - the page at /debug/pprof/, in Go's layout to the byte, from the table of collectors.
 *
 * After Go's part comes what Go has no need to say: which kinds cannot be had in
 * this process and why, and how stacks are walked.
 *
 * Tests: tests/http/protocol.t.
 */
#include <config.h>

#include "index.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector.h"
#include "limitations.h"
#include "reply.h"
#include "separator.h"
#include "tables.h"
#include "unwind.h"

struct page {
	char  *text;
	size_t size, capacity;
	bool   failed;
};

static void page_add(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
page_add(struct page *p, const char *format, ...)
{
	va_list args;
	int     n;
	char   *more;

	for (;;) {
		va_start(args, format);
		n = vsnprintf(p->text + p->size, p->capacity - p->size, format, args);
		va_end(args);
		if (n < 0 || p->failed) {
			p->failed = true;
			return;
		}
		if ((size_t)n < p->capacity - p->size)
			break;
		more = realloc(p->text, p->capacity * 2 + (size_t)n);
		if (!more) {
			p->failed = true;
			return;
		}
		p->text = more;
		p->capacity = p->capacity * 2 + (size_t)n;
	}
	p->size += (size_t)n;
}

/* Reasons may quote a path or a library's name. */
static void
page_add_escaped(struct page *p, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<': page_add(p, "&lt;"); break;
		case '>': page_add(p, "&gt;"); break;
		case '&': page_add(p, "&amp;"); break;
		case '\'': page_add(p, "&#39;"); break;
		case '"': page_add(p, "&#34;"); break;
		default: page_add(p, "%c", *text);
		}
	}
}

static void
page_add_note(struct page *p, const char *what, const char *text)
{
	if (!text || !*text)
		return;
	page_add(p, "<li>%s: ", what);
	page_add_escaped(p, text);
	page_add(p, "</li>\n");
}

static void
page_add_row(struct page *p, const struct collector *c)
{
	page_add(p, "<tr><td>%zu</td><td><a href='%s?debug=1'>%s</a></td></tr>\n", c->count ? c->count(c) : 0, c->name,
		c->name);
}

static void
page_add_description(struct page *p, const struct collector *c)
{
	page_add(p, "<li><div class=profile-name>%s: </div> %s</li>\n", c->name, c->description);
}

/* Those that Go's index has, and the program's own, by name. */
static void
all_collectors(struct page *p, void (*add)(struct page *p, const struct collector *c))
{
	const struct collector *all[COLLECTORS_ALL_MAX];
	size_t                  n = collector_list(all);

	for (size_t i = 0; i < n; i++)
		if (!all[i]->beside)
			add(p, all[i]);
}

/* Names and collectors that Go's index does not have. */
static void
page_add_beside(struct page *p)
{
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->alias)
			page_add(p, "<a href=\"%s?debug=1\">%s</a> %s\n<br>\n", collectors[i]->alias, collectors[i]->alias,
				collectors[i]->alias_text);
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->beside)
			page_add(p, "<a href=\"%s%s\">%s</a> %s\n<br>\n", collectors[i]->name,
				collector_is_windowed(collectors[i]) ? "?seconds=5" : "?debug=1", collectors[i]->name,
				collectors[i]->description);
}

/* "rates how often heap, mutex and block are sampled" */
static void
page_add_rates(struct page *p)
{
	size_t count = 0, done = 0;

	for (size_t i = 0; i < collector_count; i++)
		count += collectors[i]->rate != NULL;
	page_add(p, "<a href=\"rates\">rates</a> how often ");
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->rate)
			page_add(p, "%s%s", separator(done++, count, " and "), collectors[i]->name);
	page_add(p, " are sampled\n<br>\n");
}

static void
page_add_notes(struct page *p)
{
	for (size_t i = 0; i < collector_count; i++) {
		const struct collector *c = collectors[i];
		char                    text[400] = "";

		if (c->status && (!c->status_name || *c->status_name))
			page_add_note(p, c->status_name ? c->status_name : c->name, c->status());
		if (c->less)
			c->less(text, sizeof(text));
		page_add_note(p, c->name, text);
	}
}

/* Whose stacks have one frame. */
static void
tables_note(struct page *p)
{
	struct tables_stats stats;
	char                note[TABLES_PATH_MAX + 256], more[64] = "";

	tables_stats(&stats);
	if (!stats.without)
		return;
	if (stats.without > 1)
		snprintf(more, sizeof(more), " and %zu more", stats.without - 1);
	snprintf(note, sizeof(note), "%s%s: none can be found, so stacks end there unless it keeps frame pointers; link it "
		"with -Wl,--eh-frame-hdr, and compile it with -fasynchronous-unwind-tables", stats.without_path, more);
	page_add_note(p, "unwind tables", note);
}

static void
on_limitation(void *arg, const char *what, const char *why)
{
	page_add_note(arg, what, why);
}

static void
page_write(struct page *p)
{
	page_add(p, "<html>\n<head>\n<title>/debug/pprof/</title>\n<style>\n.profile-name{\n"
		"\tdisplay:inline-block;\n\twidth:6rem;\n}\n</style>\n</head>\n<body>\n"
		"/debug/pprof/\n<br>\n<p>Set debug=1 as a query parameter to export in legacy text format</p>\n"
		"<br>\nTypes of profiles available:\n"
		"<table>\n<thead><td>Count</td><td>Profile</td></thead>\n");
	all_collectors(p, page_add_row);
	page_add(p, "</table>\n<a href=\"goroutine?debug=2\">full goroutine stack dump</a>\n<br>\n");
	page_add_beside(p);
	page_add_rates(p);
	page_add(p, "<a href=\"profile?seconds=5&amp;format=top\">what is hot</a> a table of 5 seconds of CPU time, to read here\n"
		"<br>\n");
	page_add(p, "<p>\nProfile Descriptions:\n<ul>\n");
	all_collectors(p, page_add_description);
	page_add(p, "</ul>\n</p>\n<p>\nIn this process:\n<ul>\n");
	page_add_notes(p);
	page_add_note(p, "unwinder", unwind_name());
	tables_note(p);
	limitations_each(on_limitation, p);
	page_add(p, "</ul>\n</p>\n</body>\n</html>");
}

void
index_reply(struct answer *a)
{
	struct page page = { .capacity = 8192 };

	page.text = malloc(page.capacity);
	if (page.text)
		page_write(&page);
	if (page.text && !page.failed)
		reply_text(a, 200, SERVE_HTML, page.text, page.size);
	else
		reply_error(a, 500, "out of memory");
	free(page.text);
}
