/*
 * index.c - the page at /debug/pprof/, in Go's layout to the byte, from the table of collectors.
 *
 * After Go's part comes what Go has no need to say: which kinds cannot be had in
 * this process and why, how stacks are walked, and what is less here than it could be.
 * With ?format=json these notes are the answer, for programs, and what is well is told there, too:
 *
 *     [{"about": "mutex and block", "level": "ok" or "warning", "text": "" or one sentence}]
 *
 * A daemon that has changed its root, or runs in a container that hides /proc or refuses
 * calls, is profiled by other ways, and each of them has its limits.  What a stranger would
 * get wrong: nobody may be blamed for that by guess.  That /proc cannot be read is the fact;
 * whether by chroot(2) or by a mount is not to be seen from within.
 *
 * Tests: tests/http/protocol.t, tests/whole/restricted_process.t, tests/componentctl/doctor.t.
 */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector.h"
#include "format.h"
#include "maps.h"
#include "memory.h"
#include "proc_self.h"
#include "program_file.h"
#include "query.h"
#include "reply.h"
#include "routes.h"
#include "separator.h"
#include "serve.h"
#include "siblings.h"
#include "stack_table.h"
#include "tables.h"
#include "text.h"
#include "thread_events.h"
#include "unwind.h"
#include "viewer.h"

#define TEXT_BYTES 640

/* Reasons may quote a path or a library's name. */
static void
page_add_escaped(struct text *page, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<': text_add(page, "&lt;"); break;
		case '>': text_add(page, "&gt;"); break;
		case '&': text_add(page, "&amp;"); break;
		case '\'': text_add(page, "&#39;"); break;
		case '"': text_add(page, "&#34;"); break;
		default: text_add_bytes(page, text, 1);
		}
	}
}

/* Where notes go: on the page, or as JSON. */
struct notes {
	struct text *out;
	bool         json;
	size_t       count;
};

enum level { OK, WARNING };

/* Without a text all is well, and the page does not say so. */
static void
note_add(struct notes *n, const char *about, enum level level, const char *text)
{
	bool empty = !text || !*text;

	if (n->json) {
		text_add(n->out, "%s{\"about\": ", n->count++ ? ",\n " : "[");
		text_add_json(n->out, about);
		text_add(n->out, ", \"level\": \"%s\", \"text\": ", empty || level == OK ? "ok" : "warning");
		text_add_json(n->out, empty ? "" : text);
		text_add(n->out, "}");
	} else if (!empty) {
		text_add(n->out, "<li>%s: ", about);
		page_add_escaped(n->out, text);
		text_add(n->out, "</li>\n");
	}
}

static void
page_add_row(struct text *page, const struct collector *c)
{
	text_add(page, "<tr><td>%zu</td><td><a href='%s?debug=1'>%s</a></td></tr>\n", c->count ? c->count(c) : 0, c->name,
		c->name);
}

static void
page_add_description(struct text *page, const struct collector *c)
{
	text_add(page, "<li><div class=profile-name>%s: </div> %s</li>\n", c->name, c->description);
}

/* Those that Go's index has, and the program's own, by name. */
static void
all_collectors(struct text *page, void (*add)(struct text *page, const struct collector *c))
{
	const struct collector *all[COLLECTORS_ALL_MAX];
	size_t                  n = collector_list(all);

	for (size_t i = 0; i < n; i++)
		if (!all[i]->beside)
			add(page, all[i]);
}

/* Names and collectors that Go's index does not have. */
static void
page_add_beside(struct text *page)
{
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->alias)
			text_add(page, "<a href=\"%s?debug=1\">%s</a> %s\n<br>\n", collectors[i]->alias, collectors[i]->alias,
				collectors[i]->alias_text);
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->beside)
			text_add(page, "<a href=\"%s%s\">%s</a> %s\n<br>\n", collectors[i]->name,
				collector_is_windowed(collectors[i]) ? "?seconds=5" : "?debug=1", collectors[i]->name,
				collectors[i]->description);
}

/* "rates how often heap, mutex and block are sampled" */
static void
page_add_rates(struct text *page)
{
	size_t count = 0, done = 0;

	for (size_t i = 0; i < collector_count; i++)
		count += collectors[i]->rate != NULL;
	text_add(page, "<a href=\"rates\">rates</a> how often ");
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->rate)
			text_add(page, "%s%s", separator(done++, count, " and "), collectors[i]->name);
	text_add(page, " are sampled\n<br>\n");
}

static void
status_note(struct notes *n, const struct collector *c)
{
	const char *name = c->status_name ? c->status_name : c->name, *why = c->status();

	if (*why)
		note_add(n, name, WARNING, why);
	else
		note_add(n, name, OK, n->json && c->in_force ? c->in_force() : "");
}

static void
collectors_note(struct notes *n)
{
	for (size_t i = 0; i < collector_count; i++) {
		const struct collector *c = collectors[i];
		char                    text[400] = "";

		if (c->status && (!c->status_name || *c->status_name))
			status_note(n, c);
		if (!c->less)
			continue;
		c->less(text, sizeof(text));
		if (*text)
			note_add(n, c->name, WARNING, text);
	}
}

/* Whose stacks have one frame. */
static void
tables_note(struct notes *n)
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
	note_add(n, "unwind tables", WARNING, note);
}

static void
threads_without_proc(struct notes *n, const char *reason)
{
	char        text[TEXT_BYTES];
	const char *hooks = thread_events_status();

	snprintf(text, sizeof(text), "%s: threads are those that the hooks have seen begin, or whose "
		"numbers the kernel knows; a dump wakes each by a signal, even under a seccomp filter (who "
		"blocks them is [no answer]), and has no names of threads%s%s", reason, *hooks ? "; " : "", hooks);
	note_add(n, "threads", WARNING, text);
}

static void
names_without_proc(struct notes *n, const char *reason)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), "%s: objects are known by the loader's list, code made at run time is "
		"not; where a file cannot be opened by its path only exported names are known%s", reason,
		program_file_is_held() ? ", but for the program's own" : "");
	note_add(n, "names", WARNING, text);
}

static void
memory_refused(struct notes *n)
{
	struct memory m;
	const char   *text;
	int           r;

	if (!memory_call_refused())
		return;
	r = memory_open(&m);
	if (r < 0)
		text = "process_vm_readv() is refused and no descriptor is left: there are no names and no "
			"unwind tables";
	else if (m.to.fd >= 0)
		text = "process_vm_readv() is refused and /proc/thread-self/mem cannot be opened: memory is "
			"read through a socket, blocked threads may have to be woken";
	else
		text = "process_vm_readv() is refused (seccomp): /proc/thread-self/mem is read instead";
	note_add(n, "memory", WARNING, text);
	if (r >= 0)
		memory_close(&m);
}

/* Asked anew each time: all of it may change at any moment. */
static void
limitations_note(struct notes *n)
{
	const char *reason = proc_self_missing();

	if (*reason) {
		threads_without_proc(n, reason);
		if (maps_without_proc())
			names_without_proc(n, reason);
	}
	memory_refused(n);
}

/* What a shell takes as it stands.  The line is there to be pasted, and the path is another process' word. */
static bool
is_plain(const char *path)
{
	return path[strspn(path, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.@%+-")] == '\0';
}

static void
page_add_unix(struct text *page, const char *path)
{
	bool is_abstract = *path == '@', plain = is_plain(path);

	if (plain)
		text_add(page, "curl %s ", is_abstract ? "--abstract-unix-socket" : "--unix-socket");
	page_add_escaped(page, path + (plain && is_abstract));
	if (plain)
		text_add(page, " http://localhost" SERVE_PATH);
}

/* Stacks that found no room are [stack table full]. */
static void
stack_table_note(struct notes *n)
{
	size_t used = stack_table_bytes(), limit = stack_table_limit();
	char   text[160] = "";

	if (used > limit - limit / 8)
		snprintf(text, sizeof(text), "%zu of %zu KiB are taken, and new stacks will be [stack table full]; give it more by "
			"--profiling-memory", used >> 10, limit >> 10);
	note_add(n, "stack table", WARNING, text);
}

/* Where the page for browsers is. */
static void
viewer_add(const struct serve *s, struct notes *n)
{
	char text[TEXT_BYTES];

	viewer_note(s, text, sizeof(text));
	note_add(n, "page", WARNING, text);
}

static void
notes_write(struct serve *s, struct notes *n)
{
	if (serve_is_for_all(s) && !s->off)
		note_add(n, "access", WARNING, SERVE_FOR_ALL);
	collectors_note(n);
	note_add(n, "unwinder", strcmp(unwind_name(), "none") ? OK : WARNING, unwind_name());
	tables_note(n);
	stack_table_note(n);
	limitations_note(n);
	viewer_add(s, n);
}

/* A browser opens TCP, curl a unix socket. */
static void
page_add_sibling(struct text *page, const struct sibling *s)
{
	text_add(page, "<li>%d%s: ", (int)s->pid, s->is_self ? " (this one)" : s->pid == getppid() ? " (the parent)" : "");
	if (strncmp(s->url, SIBLING_TCP, strlen(SIBLING_TCP)) == 0) {
		text_add(page, "<a href='");
		page_add_escaped(page, s->url);
		text_add(page, SERVE_PATH "'>");
		page_add_escaped(page, s->url);
		text_add(page, "</a>");
	} else {
		page_add_unix(page, s->url + strlen(SIBLING_UNIX));
	}
	text_add(page, "</li>\n");
}

/* Only if there are others. */
static void
page_add_siblings(struct text *page)
{
	struct sibling s;
	size_t         at = 0, others = 0;

	while (siblings_next(&at, &s))
		others += !s.is_self;
	if (others == 0)
		return;
	text_add(page, "<p>\nProcesses of this program:\n<ul>\n");
	for (at = 0; siblings_next(&at, &s);)
		page_add_sibling(page, &s);
	text_add(page, "</ul>\n</p>\n");
}

void
index_write(struct serve *s, struct text *page)
{
	text_add(page, "<html>\n<head>\n<title>/debug/pprof/</title>\n<style>\n.profile-name{\n"
		"\tdisplay:inline-block;\n\twidth:6rem;\n}\n</style>\n</head>\n<body>\n"
		"/debug/pprof/\n<br>\n<p>Set debug=1 as a query parameter to export in legacy text format</p>\n"
		"<br>\nTypes of profiles available:\n"
		"<table>\n<thead><td>Count</td><td>Profile</td></thead>\n");
	all_collectors(page, page_add_row);
	text_add(page, "</table>\n");
	if (format_of_debug(PRODUCT_DUMP, PRODUCT_TEXT_COUNTS, 2))
		text_add(page, "<a href=\"goroutine?debug=2\">full goroutine stack dump</a>\n<br>\n");
	page_add_beside(page);
	page_add_rates(page);
	if (format_find(PRODUCT_PROFILE, "top"))
		text_add(page, "<a href=\"profile?seconds=5&amp;format=top\">what is hot</a> "
			"a table of 5 seconds of CPU time, to read here\n<br>\n");
	text_add(page, "<p>\nProfile Descriptions:\n<ul>\n");
	all_collectors(page, page_add_description);
	text_add(page, "</ul>\n</p>\n");
	page_add_siblings(page);
	text_add(page, "<p>\nIn this process:\n<ul>\n");
	notes_write(s, &(struct notes){ .out = page });
	text_add(page, "</ul>\n</p>\n</body>\n</html>");
}

const struct answer_header index_headers[] = { { "Content-Type", SERVE_HTML }, { "X-Content-Type-Options", "nosniff" },
	{ NULL, NULL } };

void
index_reply(struct serve *s, struct answer *a)
{
	struct text page = TEXT_INIT;
	char        format[16] = "";
	bool        json;

	if (viewer_wanted(&a->ask)) {
		viewer_reply(s, a);
		return;
	}
	query_get(a->ask.query, "format", format, sizeof(format));
	json = !strcmp(format, "json");
	if (json) {
		notes_write(s, &(struct notes){ .out = &page, .json = true });
		text_add(&page, "]\n");
	} else {
		index_write(s, &page);
	}
	if (page.failed)
		reply_error(a, 500, "out of memory");
	else
		reply_text(a, 200, json ? SERVE_JSON : SERVE_HTML, page.data, page.size);
	text_release(&page);
}
