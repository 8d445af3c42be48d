/*
 * listener.h - a socket that listens, and what becomes of it when descriptors run out.
 * The server's thread.
 */
#ifndef HTTP_LISTENER_H
#define HTTP_LISTENER_H

#include <stdbool.h>

#include <netinet/in.h>

#include <event2/event.h>

#include "httpd.h"
#include "listen.h"

#define HTTPD_LISTENERS_MAX 16 /* sockets: two of localhost, a debug socket, spare */

/* Whose places a connection takes. */
enum httpd_places { HTTPD_PLACES_TCP, HTTPD_PLACES_LOCAL /* unix sockets */, HTTPD_PLACES };

/* A listening socket of ours.  Closed or not, it stays as long as connections and requests point
 * at it. */
struct httpd_listener {
	struct httpd        *h;
	struct listen_socket socket;
	enum httpd_places    places;
	void                *tag;
	struct event        *ready; /* NULL: closed */
	struct event        *rest;  /* ends the pause after a failed accept */
	bool                 again; /* it was open when the descriptors were lost */
	bool                 crowded; /* it rests until there is a place */
	bool                 deaf;    /* it does not listen, and its socket is open */
	struct sockaddr_in6  heard_at; /* until then; or a sockaddr_in */
	unsigned             users;   /* connections and requests */
};

void httpd_listeners_close(struct httpd *h);
void httpd_listeners_forget(struct httpd *h); /* closes the sockets that are still ours, frees nothing */
/* Those again, with a new base: 0 or a negative errno. */
int  httpd_listeners_again(struct httpd *h);

#endif
