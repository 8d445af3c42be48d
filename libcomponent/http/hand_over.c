/*
 * hand_over.c - a connection that one server of ours has accepted, and another one goes on with.
 *
 *     the first one's thread                            the other one's
 *     on_request() --> httpd_leave(): no events of      httpd_join(): a place, events,
 *                      it are left there         -----> on_request(), the reply, its end
 *
 * Two servers that share an address cannot both accept there: each would get what is for the
 * other.  So one accepts, and looks at what is asked; the connection follows its request.
 *
 * What a stranger would get wrong:
 * - Between the two no table of connections has the descriptor.  It has a place among those of
 *   our_fd.c meanwhile, and a child that is forked closes it.  The daemon may have closed it, too.
 * - What comes next on that connection may be for the first server again, so it is closed
 *   after the reply.
 * - The other server has limits of its own: who finds no place there is told so.
 *
 * Why not the other way round, the reply by way of the first thread: a profile may be large and
 * its client slow, and whoever stops the first server would cut it off.
 *
 * Tests: tests/components/shared_listener.t.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "request.h"
#include "server.h"

struct httpd_moved *
httpd_leave(struct answer *a)
{
	struct httpd_request *r = (struct httpd_request *)a;
	struct httpd_conn    *c = r->conn;
	struct httpd_moved   *m = c ? malloc(sizeof(*m)) : NULL;
	sigset_t              mask;
	int                   fd;

	if (!m)
		return NULL;
	our_fd_hold(&mask);
	fd = our_fd_is_kept(&c->fd, NULL) ? our_fd_note(c->fd.fd) : -EBADF;
	if (fd >= 0) {
		our_fd_keep_listed(&m->fd, fd);
		c->fd.fd = -1;
	}
	our_fd_release(&mask);
	if (fd < 0) {
		free(m);
		return NULL;
	}
	m->request = r;
	m->in = c->in;
	m->out = c->out;
	m->places = c->listener->places;
	m->eof = c->eof;
	m->linger = c->linger;
	memcpy(m->peer, c->peer, sizeof(m->peer));
	c->in = c->out = NULL;
	c->request = NULL;
	r->conn = NULL;
	r->listener->users--;
	httpd_conn_close(c);
	return m;
}

void
httpd_join(struct httpd *h, struct httpd_moved *m)
{
	struct httpd_listener *l = &h->guests[m->places];
	struct httpd_conn     *c = NULL;
	bool                   full = false;
	sigset_t               mask;

	m->request->h = h;
	m->request->listener = l;
	l->users++;
	if (!h->stopping && !h->lost && our_fd_is_kept(&m->fd, NULL)) {
		full = httpd_place_ms(l) > 0;
		c = httpd_place(h);
	}
	if (c) {
		our_fd_hold(&mask);
		our_fd_forget(m->fd.fd);
		our_fd_keep(&c->fd, m->fd.fd);
		our_fd_release(&mask);
		httpd_conn_resume(c, l, m, full ? 503 : 0);
	} else {
		our_fd_kept_close(&m->fd);
		httpd_request_free(m->request);
		evbuffer_free(m->in);
		evbuffer_free(m->out);
	}
	free(m);
}
