/*
 * front.c - one server for each address at which a component answers itself.
 *
 *     --health-probe-bind-address=:8080 --+
 *     --metrics-bind-address=:8080 -------+--> one front, one listener --> the page that has the path
 *     --profiling-bind-address=:8080 -----'                           '--> else profiling, if it is here
 *
 * The profiling address may be the same.  Then this server alone listens there, and hands over
 * to the other one what is no page of its own, connection and all (profiler_take()).  So a probe
 * is answered before anybody asks for a token or looks at its Host, whatever profiling does, and
 * the listener stays when that goes.  For this, health and metrics are used before profiling.
 *
 * What a stranger would get wrong: pages come and go on the component's thread and are looked
 * for on the server's; a page that has left may still owe answers, and its arg stays valid
 * until the server has ended.
 *
 * Tests: tests/components/shared_listener.t, tests/components/health.t, tests/components/metrics.t.
 */
#include <config.h>

#include "front.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fork.h"
#include "listen.h"
#include "our_lock.h"
#include "profiler.h"
#include "profiling.h"
#include "text.h"

#define PROFILES      "/debug/"
#define STOP_GRACE_MS 200 /* answers are there or 1 s old; nobody waits for a probe at exit */
#define PAGES_MAX     2   /* health and metrics */
#define PATHS_MAX     8   /* of all of them */

struct front {
	struct component *c;
	struct front     *next; /* in the list of all, for fork() */
	struct address    address;
	struct listen_set set; /* bound, and not the server's yet */
	struct httpd *_Atomic httpd;
	char              url[sizeof(((struct listen_socket *)0)->url)]; /* of the first listener */
	const struct front_page *pages[PAGES_MAX]; /* NULL: free */
};

/* Of this process: a child of fork() must close their descriptors.  The lock also guards pages. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct front   *all;
static struct front_page *pages;

static void
on_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void
on_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void
on_fork_child(void)
{
	for (struct front *f = all; f; f = f->next) {
		listen_forked(&f->set);
		httpd_forked(f->httpd);
		f->httpd = NULL; /* its thread is not in this process */
	}
	all = NULL;
	pthread_mutex_unlock(&lock);
}

FORK_SLOT(FORK_FRONTS, on_fork_prepare, on_fork_parent, on_fork_child);

void
front_answer_plain(struct answer *a, int status, const char *text, struct answer_header extra)
{
	const struct answer_header headers[] = { { "Content-Type", ANSWER_TEXT }, extra, { NULL, NULL } };

	answer_whole(a, status, headers, text, strlen(text));
}

static const struct front_page *
page_of(struct front *f, const char *path)
{
	sigset_t                 mask;
	const struct front_page *page = NULL;

	our_lock_take(&lock, &mask);
	for (size_t i = 0; i < PAGES_MAX && !page; i++)
		if (f->pages[i] && f->pages[i]->has(path))
			page = f->pages[i];
	our_lock_release(&lock, &mask);
	return page;
}

/* There is no such page, and profiling is not here. */
static void
answer_unknown(struct front *f, struct answer *a)
{
	sigset_t    mask;
	struct text text = TEXT_INIT;
	const char *paths[PATHS_MAX];
	size_t      n = 0;

	our_lock_take(&lock, &mask);
	for (size_t i = 0; i < PAGES_MAX; i++)
		for (const char *const *at = f->pages[i] ? f->pages[i]->paths : NULL; at && *at && n < PATHS_MAX; at++)
			paths[n++] = *at;
	our_lock_release(&lock, &mask);
	text_add(&text, "404 page not found; %sthere %s ", strncmp(a->ask.path, PROFILES, strlen(PROFILES)) ? "" :
		"profiling is off or has another address; ", n == 1 ? "is" : "are");
	for (size_t i = 0; i < n; i++)
		text_add(&text, "%s%s", !i ? "" : i + 1 < n ? ", " : " and ", paths[i]);
	text_add(&text, "\n");
	front_answer_plain(a, 404, text_string(&text), (struct answer_header){ 0 });
	text_release(&text);
}

static void
on_request(struct answer *a, void *arg)
{
	struct front            *f = arg;
	const struct front_page *page = page_of(f, a->ask.path);
	int                      r;

	if (page && a->ask.method != ASK_GET && a->ask.method != ASK_HEAD) {
		front_answer_plain(a, 405, "method not allowed\n", (struct answer_header){ "Allow", "GET, HEAD" });
		return;
	}
	if (page) {
		page->answer(a, page->arg);
		return;
	}
	r = profiler_take(f, a);
	if (r == -ENOMEM)
		front_answer_plain(a, 500, "out of memory\n", (struct answer_header){ 0 });
	else if (r == -EAGAIN)
		front_answer_plain(a, 503, "too many requests at once; try again\n",
			(struct answer_header){ "Retry-After", "1" });
	else if (r < 0)
		answer_unknown(f, a);
}

static size_t
on_body(const struct ask *ask, void *arg)
{
	return page_of(arg, ask->path) ? 0 : profiler_body_max(arg, ask);
}

/* Bound, and asked from now on; the caller's page is in it. */
static int
server_start(struct front *f, const struct front_page *page, struct component_error *err)
{
	struct httpd_options o = { .thread_name = "component-probe", .on_request = on_request, .body_max = on_body,
		.arg = f, .log = component_log_write, .log_arg = f->c };
	struct component_error why = COMPONENT_ERROR_INIT;
	struct listen_set      told;
	int                    r;

	r = listen_open(&f->address, &f->set, &why);
	if (r < 0) {
		component_error_set(err, "cannot serve %s on %s (set --%s, use port 0 for any free port, or 0 to turn it off%s)",
			page->what, why.text, page->option, r == -EADDRINUSE && component_profiler_running() ?
			"; to serve profiles there, too, the program uses this part before component_profiling()" : "");
		return r;
	}
	told = f->set;
	if (*told.note)
		component_log(f->c, COMPONENT_LOG_WARNING, told.note, NULL);
	r = httpd_start(&o, &f->httpd, err);
	if (r == 0) {
		r = profiler_host(f, &f->address, &told);
		if (r == 0)
			r = httpd_listen(f->httpd, &f->set, NULL);
		if (r < 0) {
			profiler_host_end(f);
			httpd_stop_at(&f->httpd, 0);
		}
	}
	if (r < 0)
		listen_close(&f->set);
	else
		strcpy(f->url, told.sockets[0].url);
	return r;
}

/* In the list for as long as a child of fork() could get descriptors of it. */
static void
front_link(struct front *f)
{
	sigset_t mask;

	our_lock_take(&lock, &mask);
	f->next = all;
	all = f;
	our_lock_release(&lock, &mask);
}

static void
front_unlink(struct front *f)
{
	sigset_t mask;

	our_lock_take(&lock, &mask);
	for (struct front **at = &all; *at; at = &(*at)->next) {
		if (*at == f) {
			*at = f->next;
			break;
		}
	}
	our_lock_release(&lock, &mask);
}

/* Of this component, at that address. */
static struct front *
front_find(const struct component *c, const struct address *a)
{
	sigset_t      mask;
	struct front *f;

	our_lock_take(&lock, &mask);
	for (f = all; f && !(f->c == c && address_is_same(&f->address, a)); f = f->next)
		;
	our_lock_release(&lock, &mask);
	return f;
}

static void
pages_change(struct front *f, const struct front_page *from, const struct front_page *to)
{
	sigset_t mask;

	our_lock_take(&lock, &mask);
	for (size_t i = 0; i < PAGES_MAX; i++) {
		if (f->pages[i] == from) {
			f->pages[i] = to;
			break;
		}
	}
	our_lock_release(&lock, &mask);
}

/* false: it is off. */
static bool
page_address(const struct front_page *page, struct address *ret)
{
	return address_parse(*page->address, ret, NULL, 0) == 0 && ret->kind != ADDRESS_OFF;
}

bool
front_is_wanted(const struct front_page *page)
{
	struct address a;

	return page_address(page, &a);
}

int
front_join(const struct front_page *page, struct front **ret, struct component_error *err)
{
	struct address a;
	struct front  *f;
	int            r;

	if (!page_address(page, &a))
		return 0;
	f = front_find(page->c, &a);
	if (f) {
		*ret = f;
		pages_change(f, NULL, page);
		goto out;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->c = page->c;
	f->address = a;
	f->pages[0] = page;
	*ret = f;
	front_link(f);
	r = server_start(f, page, err);
	if (r < 0) {
		*ret = NULL;
		front_unlink(f);
		free(f);
		return r;
	}
out:
	component_log(page->c, COMPONENT_LOG_INFO, page->serving, "url", f->url, NULL);
	return 0;
}

static bool
is_asked(const struct front *f)
{
	for (size_t i = 0; i < PAGES_MAX; i++)
		if (f->pages[i])
			return true;
	return false;
}

void
front_leave(struct front *f, const struct front_page *page)
{
	if (!f)
		return;
	pages_change(f, page, NULL);
	if (is_asked(f))
		return;
	if (f->httpd) {
		profiler_host_end(f);
		httpd_stop_at(&f->httpd, STOP_GRACE_MS);
	}
	front_unlink(f);
	free(f);
}

struct httpd *
front_httpd(struct front *f)
{
	return f ? f->httpd : NULL;
}

void
front_page_add(struct front_page *page)
{
	sigset_t mask;

	our_lock_take(&lock, &mask);
	page->next = pages;
	pages = page;
	our_lock_release(&lock, &mask);
}

void
front_page_remove(struct front_page *page)
{
	sigset_t            mask;
	struct front_page **at;

	our_lock_take(&lock, &mask);
	for (at = &pages; *at && *at != page; at = &(*at)->next)
		;
	if (*at)
		*at = page->next;
	our_lock_release(&lock, &mask);
}

static bool
is_part_of(const char *one, const char *other)
{
	struct address a, b;

	return address_parse(one, &a, NULL, 0) == 0 && address_parse(other, &b, NULL, 0) == 0 && !address_is_same(&a, &b) &&
	       (address_clashes(&a, &b) || listen_fd_overlaps(&a, &b));
}

int
front_check(struct component_flags *f, void *arg, struct component_error *err)
{
	sigset_t                 mask;
	const struct front_page *page = arg;
	char                     profiles[ADDRESS_HOST_MAX + 64];
	const char              *what = "profiles", *option = "profiling-bind-address", *address = profiles;
	const struct front_page *p;

	if (!profiling_address(page->c, profiles, sizeof(profiles)) || !is_part_of(*page->address, profiles)) {
		our_lock_take(&lock, &mask);
		/* Those behind it were added before: of two one says it. */
		for (p = page->next; p && !(p->c == page->c && is_part_of(*page->address, *p->address)); p = p->next)
			;
		our_lock_release(&lock, &mask);
		if (!p)
			return 0;
		what = p->what;
		option = p->option;
		address = *p->address;
	}
	return component_flags_fault(f, page->option, err, "a part of that is where %s %s served "
		"(--%s=%s); write the same for both, or another port", what, what[strlen(what) - 1] == 's' ? "are" : "is",
		option, address);
}
