/*
 * addresses.c - what a server listens on: TCP or a unix socket, the debug socket beside it; and the
 * file that tells its address.
 *
 *     the first time     bind --> open
 *     another one later  bind the new one --> it listens --> the old one is closed
 *                                                            its connections go on
 *
 * Listeners are apart from connections: a window that was asked for at the old address is
 * answered there, while the new one accepts.
 *
 * The first place may be an address where another server of ours listens already, which hands over
 * what is asked for here: then there is nothing to bind (profiler_host()).
 *
 * What a stranger would get wrong: an address in the place of the old one (127.0.0.1:6060 and
 * :6060) cannot be bound while that is there.  Then the old one is closed first, and bound
 * again should the new one not be had.
 *
 * Tests: tests/components/reload.t, tests/components/profiling.t, tests/serve/start_stop.t.
 */
#include <config.h>

#include "addresses.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "address.h"
#include "our_fd.h"
#include "replacement.h"
#include "serve.h"
#include "siblings.h"

#define ADDRESS_USUAL  "127.0.0.1:6060"
#define ADDRESS_OF_FD  "127.0.0.1:0" /* of a worker, whose parent has been given a socket */
#define TEXT_BYTES     512  /* of an address as options name it */
#define PORT_FILE_MODE 0644 /* an address is no secret */

static _Atomic int mounts;

void
addresses_mounted(int more)
{
	mounts += more;
}

/* ---- addresses where other servers of ours listen ---- */

struct host {
	struct host      *next;
	const void       *owner;
	struct address    address;
	struct listen_set set; /* to tell of it: its descriptors are not here */
};

static pthread_mutex_t hosts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct host    *hosts;

int
addresses_host(const void *owner, const struct address *a, const struct listen_set *set)
{
	struct host *h = malloc(sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->owner = owner;
	h->address = *a;
	h->set = *set;
	h->set.note[0] = '\0'; /* that server has said so */
	for (size_t i = 0; i < set->count; i++) {
		h->set.sockets[i].fd = -1;
		h->set.sockets[i].ino = 0;
	}
	pthread_mutex_lock(&hosts_lock);
	h->next = hosts;
	hosts = h;
	pthread_mutex_unlock(&hosts_lock);
	return 0;
}

void
addresses_host_end(const void *owner)
{
	struct host *gone = NULL;

	pthread_mutex_lock(&hosts_lock);
	for (struct host **at = &hosts; *at && !gone; at = &(*at)->next) {
		if ((*at)->owner != owner)
			continue;
		gone = *at;
		*at = gone->next;
		break;
	}
	pthread_mutex_unlock(&hosts_lock);
	free(gone);
}

void
addresses_hosts_forked(void)
{
	pthread_mutex_init(&hosts_lock, NULL);
	hosts = NULL;
}

/* Who listens there, and *ret tells of it; NULL: none of ours. */
static const void *
host_find(const struct address *a, struct listen_set *ret)
{
	const void *owner = NULL;

	pthread_mutex_lock(&hosts_lock);
	for (const struct host *h = hosts; h && !owner; h = h->next) {
		if (address_is_same(a, &h->address)) {
			owner = h->owner;
			*ret = h->set;
		}
	}
	pthread_mutex_unlock(&hosts_lock);
	return owner;
}

/* ---- "HOST:PORT\n" in a file, for scripts that asked for port 0 ---- */

/* Beside its place and renamed, so that a reader finds all of it or nothing.  ret->st_ino: it is to be removed. */
static int
port_file_write(const char *path, const char *address, struct stat *ret, struct component_error *err)
{
	char   *temporary = NULL, text[400];
	int     size = snprintf(text, sizeof(text), "%s\n", address);
	int     fd = replacement_open(path, PORT_FILE_MODE, &temporary), r = fd < 0 ? fd : 0;
	ssize_t wrote;

	if (fd >= 0) {
		wrote = write(fd, text, (size_t)size);
		if (wrote != size)
			r = wrote < 0 ? -errno : -ENOSPC;
		else if (temporary && rename(temporary, path))
			r = -errno;
		if (r && temporary)
			unlink(temporary);
		else if (!r && temporary && fstat(fd, ret))
			ret->st_ino = 0;
		our_fd_close(fd);
	}
	if (r)
		component_error_set(err, "cannot write the port file '%s': %s", path, strerror(-r));
	free(temporary);
	return r;
}

/* Only while it is ours and says what we wrote: a successor on the same port may have replaced it by one that says
 * the same. */
static void
port_file_remove(const char *path, const char *address, struct stat *ours)
{
	char        text[400] = "";
	int         fd = our_fd_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat now;
	ssize_t     n;

	if (fd < 0)
		return;
	n = fstat(fd, &now) || now.st_dev != ours->st_dev || now.st_ino != ours->st_ino ? -1 :
	    read(fd, text, sizeof(text) - 1);
	our_fd_close(fd);
	ours->st_ino = 0;
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	if (n > 0 && !strcmp(text, address))
		unlink(path);
}

/* ---- addresses as options name them ---- */

static int
place_bind(const struct serve *s, struct serve_place *p, const char *text, struct component_error *err)
{
	struct address a;
	char           why[256] = "";
	int            r;

	if (!*text)
		return 0;
	r = address_parse(text, &a, why, sizeof(why));
	if (r) {
		component_error_set(err, "'%s': %s", text, why);
		return r;
	}
	if (a.kind == ADDRESS_OFF)
		return 0;
	p->host = p == &s->tcp ? host_find(&a, &p->set) : NULL;
	return p->host ? 0 : listen_open(&a, &p->set, err);
}

/* Would one address stand in the way of the other?  Not if either is none, or no address. */
static bool
addresses_clash(const char *from, const char *to)
{
	struct address a, b;

	return *from && *to && !address_parse(from, &a, NULL, 0) && !address_parse(to, &b, NULL, 0) &&
	       address_clashes(&a, &b);
}

static const char *
debug_of_worker(const char *path, char buf[TEXT_BYTES])
{
	if (!path || !*path || strstr(path, "%p"))
		return path;
	snprintf(buf, TEXT_BYTES, "%s.%%p", path);
	return buf;
}

static const char *
address_of_worker(const char *address, char buf[TEXT_BYTES])
{
	struct address a;

	address = address && *address ? address : ADDRESS_USUAL;
	if (address_parse(address, &a, NULL, 0))
		return address;
	if (a.kind == ADDRESS_UNIX)
		return debug_of_worker(address, buf);
	if (a.kind == ADDRESS_FD)
		return ADDRESS_OF_FD; /* two processes that accept at one socket answer for each other */
	if (a.kind != ADDRESS_TCP)
		return address;
	a.port = 0;
	address_format(&a, buf, TEXT_BYTES);
	return buf;
}

/* From malloc(), as what it takes the place of. */
static int
replace(const char **at, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return -ENOMEM;
	free((char *)(uintptr_t)*at);
	*at = copy;
	return 0;
}

int
addresses_of_worker(struct component_profiler_options *o)
{
	char buf[TEXT_BYTES];
	int  r = replace(&o->address, address_of_worker(o->address, buf));

	if (!r)
		r = replace(&o->debug_socket_path, debug_of_worker(o->debug_socket_path, buf));
	if (!r)
		r = replace(&o->port_file, NULL);
	return r;
}

/* What addresses options name: "" is none. */
static void
tcp_address(const struct component_profiler_options *o, char buf[TEXT_BYTES])
{
	snprintf(buf, TEXT_BYTES, "%s", o->address && *o->address ? o->address : ADDRESS_USUAL);
}

static void
debug_address(const struct component_profiler_options *o, char buf[TEXT_BYTES])
{
	bool given = o->debug_socket_path && *o->debug_socket_path;

	snprintf(buf, TEXT_BYTES, "%s%s", given ? "unix:" : "", given ? o->debug_socket_path : "");
}

/* What a person reads when an address cannot be had; why starts with it. */
static void
bind_explain(const struct component_profiler_options *o, enum profiler_fault fault,
	const struct component_error *why, struct component_error *err)
{
	const char *how_named = fault == PROFILER_FAULT_DEBUG_SOCKET ?
		"option '--debug-socket-path'" : o->how_named;

	component_error_set(err, "cannot serve profiles on %s%s%s", why->text,
		how_named ? ", given by " : "", how_named ? how_named : "");
}

/* -EINVAL: there is nowhere to be asked. */
static int
somewhere(const struct component_profiler_options *o, struct component_error *why)
{
	struct address a;
	char           text[TEXT_BYTES];

	debug_address(o, text);
	if (*text || mounts > 0)
		return 0;
	tcp_address(o, text);
	if (address_parse(text, &a, NULL, 0) || a.kind != ADDRESS_OFF)
		return 0; /* what is no address is told when it is bound */
	component_error_set(why, "nothing: neither an address nor a debug socket is given");
	return -EINVAL;
}

/* url, address and exposed are of what is bound or served. */
static void
name_first(struct serve *s)
{
	const struct listen_set *set = s->tcp.now.count ? &s->tcp.now : &s->debug.now;
	bool                     exposed = false;

	for (size_t i = 0; i < s->tcp.now.count; i++)
		exposed = exposed || (!s->tcp.now.sockets[i].loopback && !s->tcp.now.sockets[i].is_unix);
	s->exposed = exposed;
	*s->url = *s->address = '\0';
	if (set->count == 0)
		return;
	snprintf(s->url, sizeof(s->url), "%s%s", set->sockets[0].url, SERVE_PATH);
	snprintf(s->address, sizeof(s->address), "%s", set->sockets[0].address);
}

int
addresses_bind(struct serve *s, enum profiler_fault *ret_fault, struct component_error *err)
{
	const struct component_profiler_options *o = &s->options;
	struct component_error why = COMPONENT_ERROR_INIT;
	char                   text[TEXT_BYTES];
	enum profiler_fault    fault = PROFILER_FAULT_ADDRESS;
	int                    r;

	tcp_address(o, text);
	r = somewhere(o, &why);
	if (!r)
		r = place_bind(s, &s->tcp, text, err ? &why : NULL);
	if (!r) {
		debug_address(o, text);
		fault = PROFILER_FAULT_DEBUG_SOCKET;
		r = place_bind(s, &s->debug, text, err ? &why : NULL);
		if (r)
			listen_close(&s->tcp.set);
	}
	if (r) {
		bind_explain(o, fault, &why, err);
		*ret_fault = fault;
	}
	s->tcp.now = s->tcp.set;
	s->debug.now = s->debug.set;
	name_first(s);
	return r;
}

static bool
is_hosted(const struct listen_set *set)
{
	return set->count && set->sockets[0].fd < 0;
}

/* Gives the sockets to the server, under a tag of their own. */
static int
place_open(struct serve *s, struct serve_place *p)
{
	struct listen_set set = p->set;
	int               r;

	p->tag = ++s->last_tag << 1 | (p == &s->debug);
	if (is_hosted(&set))
		p->set.count = 0;
	r = p->set.count ? httpd_listen(s->httpd, &p->set, (void *)p->tag) : 0;
	if (!r) {
		p->handed_by = is_hosted(&set) ? p->host : NULL;
		p->now = set;
		p->lost = false;
	}
	return r;
}

int
addresses_open(struct serve *s, struct component_error *err)
{
	int r = place_open(s, &s->tcp);

	if (!r)
		r = place_open(s, &s->debug);
	if (r)
		component_error_set(err, "the HTTP server cannot listen: %s", strerror(-r));
	return r;
}

int
addresses_port_file(struct serve *s, struct component_error *err)
{
	if (!s->options.port_file || !*s->options.port_file || !*s->address)
		return 0;
	return port_file_write(s->options.port_file, s->address, &s->port_file, err);
}

void
addresses_close(struct serve *s)
{
	siblings_leave();
	record_remove(&s->record);
	listen_close(&s->tcp.set);
	listen_close(&s->debug.set);
	if (s->port_file.st_ino)
		port_file_remove(s->options.port_file, s->address, &s->port_file);
}

void
addresses_forked(struct serve *s)
{
	siblings_forked();
	record_forked(&s->record);
	listen_forked(&s->tcp.set);
	listen_forked(&s->debug.set);
}

static void
warn(const struct serve *s, const char *message, const char *key, const char *value)
{
	struct component_log_field field = { key, value };

	serve_log(s, COMPONENT_LOG_WARNING, message, &field, 1);
}

/* For componentctl; NULL: there is nowhere to ask. */
static void
record_again(struct serve *s, const struct listen_socket *first)
{
	struct record          r = { .app_port = s->options.record_port, .parent = (pid_t)s->options.record_parent };
	struct component_error why = COMPONENT_ERROR_INIT;

	if (!s->options.record_id || !*s->options.record_id)
		return;
	if (!r.parent && s->is_worker && getppid() > 1)
		r.parent = getppid();
	snprintf(r.id, sizeof(r.id), "%s", s->options.record_id);
	snprintf(r.url, sizeof(r.url), "%s", !first ? "" : s->off ? RECORD_URL_OFF :
		first->is_unix ? first->address : first->url);
	if (!first)
		record_remove(&s->record);
	else if (record_write(&s->record, &r, &why))
		serve_log(s, COMPONENT_LOG_WARNING, why.text, NULL, 0);
}

/* NULL: there is none. */
static const struct listen_socket *
first_socket(const struct serve *s)
{
	return s->tcp.now.count ? &s->tcp.now.sockets[0] : s->debug.now.count ? &s->debug.now.sockets[0] : NULL;
}

int
addresses_deafen(struct serve *s, bool deaf)
{
	int r = httpd_deafen(s->httpd, (void *)s->tcp.tag, deaf, &s->tcp.now);

	s->off = deaf || r;
	name_first(s);
	record_again(s, first_socket(s));
	return r;
}

void
addresses_announce(struct serve *s)
{
	const struct listen_set    *tcp = &s->tcp.now, *debug = &s->debug.now;
	const struct listen_socket *first = first_socket(s);
	struct component_log_field  field = { "url", s->url };
	char                        message[400];

	siblings_join(first ? first->url : "");
	record_again(s, first);
	if (!first) {
		serve_log(s, COMPONENT_LOG_INFO, "serving profiles on the program's own HTTP server alone",
			NULL, 0);
		return;
	}
	if (first->is_unix)
		snprintf(message, sizeof(message), "starting profiling server on %s", first->address);
	else
		snprintf(message, sizeof(message), "starting profiling server on port %u", first->port);
	serve_log(s, COMPONENT_LOG_INFO, message, &field, 1);
	if (tcp->count && debug->count) {
		field = (struct component_log_field){ "address", debug->sockets[0].address };
		serve_log(s, COMPONENT_LOG_INFO, "serving profiles on the debug socket", &field, 1);
	}
	if (*tcp->note)
		warn(s, tcp->note, "address", first->address);
	if (serve_is_for_all(s))
		warn(s, SERVE_FOR_ALL, "address", tcp->sockets[0].address);
}

/* ---- other addresses for a server that runs ---- */

/* One of the two places, on its way. */
struct move {
	struct serve_place *place;
	char                from[TEXT_BYTES], to[TEXT_BYTES];
	uintptr_t           old_tag;
	struct listen_set   old; /* to tell of it */
	const void         *old_handed_by;
	bool                was_lost, changes, clashes, closed;
};

/* Before anything has changed. */
static int
move_begin(const struct serve *s, struct move *m, struct component_error *why)
{
	m->was_lost = m->place->lost;
	m->changes = strcmp(m->from, m->to) != 0 || m->was_lost;
	m->clashes = m->changes && !m->was_lost && addresses_clash(m->from, m->to);
	m->old_tag = m->place->tag;
	m->old = m->place->now;
	m->old_handed_by = m->place->handed_by;
	return m->changes && !m->clashes ? place_bind(s, m->place, m->to, why) : 0;
}

/* Where the old one stands in the way, it goes first. */
static int
move_apply(struct serve *s, struct move *m, struct component_error *why)
{
	int r = 0;

	if (m->clashes) {
		r = httpd_unlisten(s->httpd, (void *)m->old_tag);
		m->closed = !r;
		if (!r)
			r = place_bind(s, m->place, m->to, why);
	}
	return r || !m->changes ? r : place_open(s, m->place);
}

static void
move_back(struct serve *s, struct move *m)
{
	listen_close(&m->place->set);
	if (!m->changes || m->place->tag == m->old_tag)
		return; /* it has the old listeners only, and all of them unless they stood in the way */
	httpd_unlisten(s->httpd, (void *)m->place->tag);
	m->place->tag = m->old_tag;
	m->place->now = m->old;
	m->place->handed_by = m->old_handed_by;
	m->place->lost = m->was_lost;
}

/* The old listeners were closed for the new ones.  What cannot be had again, perhaps for want of a
 * privilege that is gone by now, is tried by every change from then on. */
static void
move_restore(struct serve *s, struct move *m)
{
	struct component_error why = COMPONENT_ERROR_INIT;
	char                   text[sizeof(why.text) + 64];
	int                    r;

	if (!m->closed)
		return;
	r = place_bind(s, m->place, m->from, &why);
	if (!r)
		r = place_open(s, m->place);
	if (!r)
		return;
	listen_close(&m->place->set);
	m->place->now.count = 0;
	m->place->handed_by = NULL;
	m->place->lost = true;
	snprintf(text, sizeof(text), "the address of before cannot be had again: %s",
		*why.text ? why.text : strerror(-r));
	serve_log(s, COMPONENT_LOG_ERROR, text, NULL, 0);
}

static void
move_end(struct serve *s, struct move *m)
{
	if (m->changes && !m->clashes)
		httpd_unlisten(s->httpd, (void *)m->old_tag);
}

static bool
is_same(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

/* was: the address that the old file tells. */
static void
port_file_again(struct serve *s, const struct component_profiler_options *o, const char *was)
{
	const char            *from = s->port_file.st_ino ? s->options.port_file : NULL;
	const char            *to = o->port_file && *o->port_file && *s->address ? o->port_file : NULL;
	struct component_error why = COMPONENT_ERROR_INIT;

	if (from && !is_same(from, to))
		port_file_remove(from, was, &s->port_file);
	s->port_file.st_ino = 0;
	if (to && port_file_write(to, s->address, &s->port_file, &why))
		serve_log(s, COMPONENT_LOG_ERROR, why.text, NULL, 0);
}

int
addresses_change(struct serve *s, const struct component_profiler_options *o,
	enum profiler_fault *ret_fault, struct component_error *err)
{
	struct move            moves[2] = { { .place = &s->tcp }, { .place = &s->debug } };
	struct component_error why = COMPONENT_ERROR_INIT;
	char                   was[sizeof(s->address)];
	int                    r = somewhere(o, &why), n;

	if (r) {
		*ret_fault = PROFILER_FAULT_ADDRESS;
		bind_explain(o, *ret_fault, &why, err);
		return r;
	}
	memcpy(was, s->address, sizeof(was));
	tcp_address(&s->options, moves[0].from);
	tcp_address(o, moves[0].to);
	debug_address(&s->options, moves[1].from);
	debug_address(o, moves[1].to);
	for (n = 0; n < 2 && !r; n++)
		r = move_begin(s, &moves[n], &why);
	if (!r && !moves[0].changes && !moves[1].changes) {
		if (!is_same(s->options.port_file, o->port_file))
			port_file_again(s, o, was);
		return 0;
	}
	for (int i = 0; i < 2 && !r; i++) {
		r = move_apply(s, &moves[i], &why);
		n = i + 1;
	}
	for (int i = 0; i < 2 && r; i++)
		move_back(s, &moves[i]);
	for (int i = 0; i < 2 && r; i++)
		move_restore(s, &moves[i]);
	if (r) {
		if (!*why.text)
			component_error_set(&why, "%s: %s", moves[n - 1].to, strerror(-r));
		*ret_fault = n == 1 ? PROFILER_FAULT_ADDRESS : PROFILER_FAULT_DEBUG_SOCKET;
		bind_explain(o, *ret_fault, &why, err);
		return r;
	}
	for (n = 0; n < 2; n++)
		move_end(s, &moves[n]);
	name_first(s);
	port_file_again(s, o, was);
	return 1;
}
