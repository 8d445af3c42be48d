/*
 * health_answer.c - from results of checks to the text a probe gets.
 *
 * Pure text, so that every form of it can be tested without a daemon.
 *
 * What a stranger would get wrong: reasons are withheld from whoever can reach the
 * port, and a check that passed may still have a remark ("profiling off: address
 * in use"), which is shown with ?verbose.
 *
 * Tests: tests/components/test_health_answer.c.
 */
#include <config.h>

#include "health.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "text.h"

#define NAME_MAX_ 256 /* bytes with NUL of an excluded name looked at; longer ones match nothing */
#define NO_ANSWER "no answer within 0.9s" /* LOOP_ANSWER_MS of health.c */

static const char *const endpoints[] = { "healthz", "livez", "readyz" };

/* The endpoint of a path and the check named behind it, "" if none; NULL: unknown. */
static const char *
split(const char *path, const char **ret_check)
{
	for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++) {
		size_t length = strlen(endpoints[i]);

		if (path[0] != '/' || strncmp(path + 1, endpoints[i], length) != 0)
			continue;
		if (path[length + 1] == '\0' || path[length + 1] == '/') {
			*ret_check = path[length + 1] ? path + length + 2 : "";
			return endpoints[i];
		}
	}
	return NULL;
}

bool
health_path_known(const char *path)
{
	const char *check;

	return split(path, &check) != NULL;
}

void
health_results_add(struct health_results *r, const char *name, int status, const char *text)
{
	struct health_result *more = realloc(r->items, (r->count + 1) * sizeof(*more)), *item;

	if (!more) {
		r->failed = true;
		return;
	}
	r->items = more;
	item = &more[r->count];
	item->name = strdup(name);
	item->text = strdup(text ? text : "");
	item->status = status;
	if (!item->name || !item->text) {
		free(item->name);
		free(item->text);
		r->failed = true;
		return;
	}
	r->count++;
}

void
health_results_clear(struct health_results *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->items[i].name);
		free(r->items[i].text);
	}
	free(r->items);
	memset(r, 0, sizeof(*r));
}

char *
health_results_failing(const struct health_results *r)
{
	struct text t = TEXT_INIT;

	text_add_bytes(&t, "", 0); /* an empty text, too, is one */
	for (size_t i = 0; i < r->count; i++)
		if (r->items[i].status < 0)
			text_add(&t, "%s%s: %s", t.size > 0 ? "; " : "", r->items[i].name,
				*r->items[i].text ? r->items[i].text : strerror(-r->items[i].status));
	if (t.failed)
		text_release(&t);
	return t.data;
}

/* Is the first of the query that parameter?  What it is, decoded, "" without a '=', goes into value. */
static bool
is_first(const char *query, const char *name, char value[NAME_MAX_])
{
	size_t length = strcspn(query, "&"), used = strlen(name);

	*value = '\0';
	if (length < used || strncmp(query, name, used) != 0)
		return false;
	return length == used || (query[used] == '=' && ask_decode(query + used + 1, length - used - 1, ' ', value, NAME_MAX_) >= 0);
}

/* Is a parameter there?  With a value, is it there with that value? */
static bool
query_has(const char *query, const char *name, const char *value)
{
	char found[NAME_MAX_];

	while (query && *query) {
		size_t length = strcspn(query, "&");

		if (is_first(query, name, found) && (!value || strcmp(found, value) == 0))
			return true;
		query += length;
		query += *query == '&';
	}
	return false;
}

/* One line, and whether the check counts as failed. */
static bool
line(struct text *t, const char *query, const char *name, int status, const char *text)
{
	if (query_has(query, "exclude", name)) {
		text_add(t, "[+]%s excluded: ok\n", name);
		return false;
	}
	if (status < 0)
		text_add(t, "[-]%s failed: %s\n", name, text ? text : "reason withheld");
	else
		text_add(t, "[+]%s %s\n", name, text && *text ? text : "ok");
	return status < 0;
}

/* Names to exclude that nobody has: said as Kubernetes says it. */
static void
warn_unknown(struct text *t, const char *query, const struct health_results *r, bool all)
{
	while (query && *query) {
		size_t length = strcspn(query, "&");
		char   name[NAME_MAX_];
		bool   known;

		if (is_first(query, "exclude", name) && *name) {
			known = strcmp(name, "loop") == 0;
			for (size_t i = 0; all && i < r->count; i++)
				known = known || strcmp(name, r->items[i].name) == 0;
			if (!known) {
				text_add(t, "warn: some health checks cannot be excluded: no matches for \"");
				text_add_visible(t, name, SIZE_MAX);
				text_add(t, "\"\n");
			}
		}
		query += length;
		query += *query == '&';
	}
}

static int
whole(struct text *t, const char *endpoint, const char *query, const struct health_results *r)
{
	bool ready = strcmp(endpoint, "readyz") == 0, failed;

	failed = line(t, query, "loop", r->stuck ? -ETIMEDOUT : 0, r->stuck ? NO_ANSWER : NULL);
	for (size_t i = 0; ready && i < r->count; i++)
		failed |= line(t, query, r->items[i].name, r->items[i].status,
			r->items[i].status < 0 ? NULL : r->items[i].text);
	/* Who leaves out the loop, on which they run, asks for the others. */
	if (ready && (r->failed || (r->stuck && !failed))) {
		text_add(t, "[-]checks failed: not known, %s\n", r->failed ? "out of memory" : NO_ANSWER);
		failed = true;
	}
	if (!r->stuck)
		warn_unknown(t, query, r, ready);
	text_add(t, "%s check %s\n", endpoint, failed ? "failed" : "passed");
	return failed ? 500 : 200;
}

static int
single(struct text *t, const char *endpoint, const char *check, const struct health_results *r)
{
	if (r->stuck) {
		text_add(t, "[-]loop failed: " NO_ANSWER "\n");
		return 500;
	}
	if (strcmp(check, "loop") == 0) {
		text_add(t, "ok");
		return 200;
	}
	for (size_t i = 0; strcmp(endpoint, "readyz") == 0 && i < r->count; i++) {
		if (strcmp(check, r->items[i].name) != 0)
			continue;
		if (r->items[i].status < 0)
			text_add(t, "[-]%s failed: reason withheld\n", check);
		else
			text_add(t, "ok");
		return r->items[i].status < 0 ? 500 : 200;
	}
	text_add(t, "404 no such check\n");
	return 404;
}

int
health_answer(const char *path, const char *query, const struct health_results *r, struct health_answer *ret)
{
	const char *check, *endpoint = split(path, &check);
	struct text t = TEXT_INIT;
	int         status = 404;

	if (endpoint)
		status = *check ? single(&t, endpoint, check, r) : whole(&t, endpoint, query, r);
	else
		text_add_bytes(&t, "", 0);
	/* All well and nobody asked for the lines. */
	if (status == 200 && !*check && !query_has(query, "verbose", NULL)) {
		t.size = 0;
		text_add(&t, "ok");
	}
	if (t.failed) {
		text_release(&t);
		return -ENOMEM;
	}
	*ret = (struct health_answer){ .status = status, .body = t.data, .size = t.size };
	return 0;
}
