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
 * Tests: tests/components/reload.t, tests/components/profiling.t, tests/serve/start_stop.t.
 */
#include <config.h>

#include "serve.h"

#include <stdio.h>
#include <string.h>

#include "port_file.h"

/* One of the two places, on its way. */
struct move {
	struct serve_place *place;
	char                from[SERVE_ADDRESS_SIZE], to[SERVE_ADDRESS_SIZE];
	uintptr_t           old_tag;
	struct listen_set   old; /* to tell of it */
	bool                was_lost, changes, clashes, closed;
};

/* Before anything has changed. */
static int
move_begin(struct move *m, struct component_error *why)
{
	m->was_lost = m->place->lost;
	m->changes = strcmp(m->from, m->to) != 0 || m->was_lost;
	m->clashes = m->changes && !m->was_lost && serve_addresses_clash(m->from, m->to);
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
	serve_place_close(m->place);
	if (!m->changes || m->place->tag == m->old_tag)
		return; /* it has the old listeners only, and all of them unless they stood in the way */
	httpd_unlisten(s->httpd, (void *)m->place->tag);
	m->place->tag = m->old_tag;
	m->place->now = m->old;
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
	r = serve_address_bind(m->from, &m->place->set, &why);
	if (!r)
		r = serve_place_open(s, m->place);
	if (!r)
		return;
	serve_place_close(m->place);
	m->place->now.count = 0;
	m->place->lost = true;
	snprintf(text, sizeof(text), "the address of before cannot be had again: %s", *why.text ? why.text : strerror(-r));
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
	const char            *from = s->port_file_written ? s->options.port_file : NULL;
	const char            *to = o->port_file && *o->port_file && *s->address ? o->port_file : NULL;
	struct component_error why = COMPONENT_ERROR_INIT;

	if (from && !is_same(from, to))
		port_file_remove(from, was);
	s->port_file_written = to && !port_file_write(to, s->address, &why);
	if (to && !s->port_file_written)
		serve_log(s, COMPONENT_LOG_ERROR, why.text, NULL, 0);
}

int
serve_move(struct serve *s, const struct component_profiler_options *o, enum profiler_fault *ret_fault, struct component_error *err)
{
	struct move            moves[2] = { { .place = &s->tcp }, { .place = &s->debug } };
	struct component_error why = COMPONENT_ERROR_INIT;
	char                   was[sizeof(s->address)];
	int                    r = serve_somewhere(o, &why), n;

	if (r) {
		*ret_fault = PROFILER_FAULT_ADDRESS;
		serve_bind_explain(o, *ret_fault, &why, err);
		return r;
	}
	memcpy(was, s->address, sizeof(was));
	serve_tcp_address(&s->options, moves[0].from);
	serve_tcp_address(o, moves[0].to);
	serve_debug_address(&s->options, moves[1].from);
	serve_debug_address(o, moves[1].to);
	for (n = 0; n < 2 && !r; n++)
		r = move_begin(&moves[n], &why);
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
		serve_bind_explain(o, *ret_fault, &why, err);
		return r;
	}
	for (n = 0; n < 2; n++)
		move_end(s, &moves[n]);
	serve_name(s);
	port_file_again(s, o, was);
	serve_announce(s);
	return 0;
}
