/*
 * move.c - another address for a server that runs.
 *
 *     bind the new one --> it listens --> the old one is closed; its connections go on
 *
 * Listeners are apart from connections: a window that was asked for at the old address is
 * answered there, while the new one accepts.
 *
 * What a stranger would get wrong: an address in the place of the old one (127.0.0.1:6060 and
 * :6060) cannot be bound while that is there.  Then the old one is closed first, and bound
 * again should the new one not be had.
 *
 * Tests: tests/reload.t, tests/profiling.t.
 */
#include <config.h>

#include "serve.h"

#include <string.h>
#include <unistd.h>

#include "address.h"

/* One of the two places, on its way. */
struct move {
	struct serve_place *place;
	const char         *how_named;
	char                from[SERVE_ADDRESS_SIZE], to[SERVE_ADDRESS_SIZE];
	uintptr_t           old_tag;
	struct listen_set   old; /* to tell of it */
	bool                changes, clashes, closed;
};

static bool
texts_clash(const char *from, const char *to)
{
	struct address a, b;

	return *from && *to && !address_parse(from, &a, NULL, 0) && !address_parse(to, &b, NULL, 0) &&
	       address_clashes(&a, &b);
}

/* Before anything has changed. */
static int
move_begin(struct move *m, struct component_error *why)
{
	m->changes = strcmp(m->from, m->to) != 0;
	m->clashes = m->changes && texts_clash(m->from, m->to);
	m->old_tag = m->place->tag;
	m->old = m->place->now;
	return m->changes && !m->clashes ? serve_address_bind(m->to, &m->place->set, why) : 0;
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
			r = serve_address_bind(m->to, &m->place->set, why);
	}
	return r || !m->changes ? r : serve_place_open(s, m->place);
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
}

/* The old listeners were closed for the new ones. */
static void
move_restore(struct serve *s, struct move *m)
{
	if (m->closed && !serve_address_bind(m->from, &m->place->set, NULL) && serve_place_open(s, m->place))
		listen_close(&m->place->set);
}

static void
move_end(struct serve *s, struct move *m)
{
	if (m->changes && !m->clashes)
		httpd_unlisten(s->httpd, (void *)m->old_tag);
}

static void
port_file_again(struct serve *s, const struct component_profiler_options *o)
{
	struct component_error why = COMPONENT_ERROR_INIT;

	if (s->port_file_written && s->options.port_file && (!o->port_file || strcmp(s->options.port_file, o->port_file) != 0))
		unlink(s->options.port_file);
	if (!o->port_file || !*o->port_file || !*s->address)
		return;
	s->port_file_written = !port_file_write(o->port_file, s->address, &why);
	if (!s->port_file_written)
		serve_log(s, COMPONENT_LOG_ERROR, why.text, NULL, 0);
}

int
serve_move(struct serve *s, const struct component_profiler_options *o, struct component_error *err)
{
	struct move            moves[2] = { { .place = &s->tcp, .how_named = o->how_named },
			       { .place = &s->debug, .how_named = "option '--debug-socket-path'" } };
	struct component_error why = COMPONENT_ERROR_INIT;
	int                    r = 0, n;

	serve_tcp_address(&s->options, moves[0].from);
	serve_tcp_address(o, moves[0].to);
	serve_debug_address(&s->options, moves[1].from);
	serve_debug_address(o, moves[1].to);
	for (n = 0; n < 2 && !r; n++)
		r = move_begin(&moves[n], &why);
	if (!r && !moves[0].changes && !moves[1].changes)
		return 0;
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
		serve_bind_explain(moves[n - 1].how_named, &why, err);
		return r;
	}
	for (n = 0; n < 2; n++)
		move_end(s, &moves[n]);
	serve_name(s);
	port_file_again(s, o);
	serve_announce(s);
	return 0;
}
