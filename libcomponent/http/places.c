/*
 * places.c - places for connections: how many there are, and who makes room.
 *
 * There are as many as requests may be answered at the same time, and some to spare, so that
 * who comes when all of these are taken can be told so.  Unix sockets have as many places of
 * their own: no crowd on a port keeps a person from the debug socket.
 *
 * When all are taken, one that is idle makes room, else the one that has been longest without
 * a whole request, as soon as that is HTTPD_REQUEST_MS_KEPT.  Until then the kernel keeps who
 * comes.  Clients that trickle bytes and come again when they are closed would else hold all
 * places for ever; so they take turns, and a request that comes in one piece is answered at
 * its own.  What a stranger would get wrong: such a piece may be here and not be read yet, or
 * its answer be made and not be sent, so that is done before a connection is closed.
 *
 * Tests: tests/http/limits.t.
 */
#include <config.h>

#include "places.h"

#include <stdlib.h>

#include "clock.h"
#include "server.h"


void
httpd_set_requests(struct httpd *h, unsigned requests)
{
	unsigned was = h->requests;

	if (requests > HTTPD_REQUESTS_MAX)
		requests = HTTPD_REQUESTS_MAX;
	while (was < requests && !atomic_compare_exchange_weak(&h->requests, &was, requests))
		;
}

struct httpd_conn *
httpd_conn_at(const struct httpd *h, size_t i)
{
	struct httpd_block *block;

	if (i / HTTPD_BLOCK_CONNECTIONS >= HTTPD_BLOCKS_MAX)
		return NULL;
	block = h->blocks[i / HTTPD_BLOCK_CONNECTIONS];
	return block ? &block->conns[i % HTTPD_BLOCK_CONNECTIONS] : NULL;
}

static struct httpd_block *
block_new(void)
{
	struct httpd_block *block = calloc(1, sizeof(*block));

	for (size_t i = 0; block && i < HTTPD_BLOCK_CONNECTIONS; i++)
		block->conns[i].fd.fd = -1;
	return block;
}

struct httpd_conn *
httpd_place(struct httpd *h)
{
	struct httpd_conn *c;
	size_t             i;

	for (i = 0; (c = httpd_conn_at(h, i)); i++)
		if (c->state == HTTPD_CONN_FREE)
			return c;
	if (i / HTTPD_BLOCK_CONNECTIONS >= HTTPD_BLOCKS_MAX)
		return NULL;
	h->blocks[i / HTTPD_BLOCK_CONNECTIONS] = block_new();
	return httpd_conn_at(h, i);
}

/* The lower the sooner it makes room; 0: never. */
static const int rank_of[] = {
	[HTTPD_CONN_IDLE] = 1,
	[HTTPD_CONN_LINGER] = 2, /* it has been told */
	[HTTPD_CONN_READ] = 3,
	[HTTPD_CONN_FLUSH] = 4, /* its client does not read the answer */
	[HTTPD_CONN_BUSY] = 0,
};

static int
rank(const struct httpd_conn *c)
{
	return rank_of[c->state];
}

/* The lowest rank goes first, then who has been there longest. */
static bool
goes_before(const struct httpd_conn *a, const struct httpd_conn *b)
{
	if (rank(a) != rank(b))
		return rank(a) < rank(b);
	return a->since_ns < b->since_ns;
}

static struct httpd_conn *
first_to_go(const struct httpd *h, enum httpd_places places)
{
	struct httpd_conn *goes = NULL, *c;

	for (size_t i = 0; (c = httpd_conn_at(h, i)); i++)
		if (c->state != HTTPD_CONN_FREE && c->listener->places == places && rank(c) &&
		    (!goes || goes_before(c, goes)))
			goes = c;
	return goes;
}

/* How long it is to be kept, by what it has had. */
static unsigned
ms_left(const struct httpd_conn *c)
{
	int64_t had;

	if (rank(c) < rank_of[HTTPD_CONN_READ])
		return 0;
	had = (clock_ns(CLOCK_MONOTONIC) - c->since_ns) / 1000000;
	return had >= HTTPD_REQUEST_MS_KEPT ? 0 : (unsigned)(HTTPD_REQUEST_MS_KEPT - had);
}

unsigned
httpd_place_ms(const struct httpd_listener *l)
{
	struct httpd      *h = l->h;
	unsigned           tries = 2 * h->open[l->places]; /* one may have pipelined thousands */
	unsigned           ms;
	struct httpd_conn *c;
	int                was;

	while (h->open[l->places] >= h->requests + HTTPD_CONNECTIONS_SPARE) {
		c = first_to_go(h, l->places);
		if (!c)
			return HTTPD_REQUEST_MS_KEPT;
		was = rank(c);
		if (tries > 0) {
			tries--;
			httpd_conn_move(c);
		}
		if (c->state == HTTPD_CONN_FREE || (rank(c) != was && rank(c) != rank_of[HTTPD_CONN_IDLE]))
			continue;
		ms = ms_left(c);
		if (ms)
			return ms;
		httpd_conn_close(c);
	}
	return 0;
}

size_t
httpd_owed(const struct httpd *h)
{
	const struct httpd_conn *c;
	size_t                   n = 0;

	for (size_t i = 0; (c = httpd_conn_at(h, i)); i++)
		n += c->state == HTTPD_CONN_BUSY || c->state == HTTPD_CONN_FLUSH;
	return n;
}

void
httpd_conn_stopping(struct httpd *h)
{
	struct httpd_conn *c;

	for (size_t i = 0; (c = httpd_conn_at(h, i)); i++)
		if (c->state != HTTPD_CONN_BUSY && c->state != HTTPD_CONN_FLUSH)
			httpd_conn_close(c);
}
