/*
 * connection.h - one client's connection: its states, its bytes, its timers.
 * The server's thread, but for what httpd_forked() reads.
 */
#ifndef HTTP_CONNECTION_H
#define HTTP_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "answer.h"
#include "listener.h"
#include "our_fd.h"

struct httpd;
struct httpd_listener;
struct httpd_request;

enum httpd_conn_state {
	HTTPD_CONN_FREE,
	HTTPD_CONN_IDLE,   /* between requests, nothing read */
	HTTPD_CONN_READ,   /* a request is arriving */
	HTTPD_CONN_BUSY,   /* the handler owes a reply */
	HTTPD_CONN_FLUSH,  /* the reply is complete, its bytes are not out */
	HTTPD_CONN_LINGER, /* answered and shut down; reading what still comes */
};

struct httpd_conn {
	struct httpd          *h;
	struct httpd_listener *listener;
	struct our_fd_kept     fd; /* none when free; what httpd_forked() closes */
	enum httpd_conn_state  state;
	struct event          *readable, *writable, *timer;
	struct evbuffer       *in, *out;
	struct httpd_request  *incoming; /* READ only: its header is there, its body is not yet */
	struct httpd_request  *request; /* BUSY, and READ while it is being refused */
	size_t                 scanned; /* bytes of in that hold no end of header */
	bool                   eof;        /* the client sent FIN */
	bool                   keep_alive; /* after this reply */
	bool                   loopback;   /* its client is on this machine, or may be: a listener of all addresses hears those, too */
	bool                   linger;     /* input is left over, or to come: it is dropped, and we close gently */
	int64_t                since_ns;   /* CLOCK_MONOTONIC: its state is that, or its client has read something of the reply */
	char                   peer[ASK_PEER_BYTES];
};

/* For what l has accepted: c->fd.  Closes it when there is no memory. */
void httpd_conn_open(struct httpd_conn *c, struct httpd_listener *l,
	const struct sockaddr_storage *peer);
/* On its way from one server to another, with a request that was read. */
struct httpd_moved {
	struct httpd_request *request;
	struct evbuffer      *in, *out;
	struct our_fd_kept    fd;
	bool                  eof, linger;
	enum httpd_places     places;
	char                  peer[ASK_PEER_BYTES];
};
/* For what has come from another server: c->fd is m's, the rest it takes from m.  status: to refuse it with, or 0. */
void httpd_conn_resume(struct httpd_conn *c, struct httpd_listener *l, const struct httpd_moved *m, int status);
void httpd_conn_close(struct httpd_conn *c);
/* Tells its request, closes its socket if that is still ours, frees nothing. */
void httpd_conn_forget(struct httpd_conn *c);
void httpd_conn_move(struct httpd_conn *c); /* reads what has come, or writes what it can: may close it */
void httpd_conn_replied(struct httpd_conn *c); /* its request's reply is complete */
void httpd_conn_output(struct httpd_conn *c);  /* there is more to write */

#endif
