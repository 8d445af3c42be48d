/*
 * places.h - how many connections there may be, and which one makes room for another.
 * The server's thread.
 */
#ifndef HTTP_PLACES_H
#define HTTP_PLACES_H

#include "connection.h"

/* Connections, allocated when they are needed and kept until the end: httpd_forked() looks at them at
 * any moment. */
#define HTTPD_BLOCK_CONNECTIONS 64
#define HTTPD_BLOCKS_MAX \
	((2 * (HTTPD_REQUESTS_MAX + HTTPD_CONNECTIONS_SPARE) + HTTPD_BLOCK_CONNECTIONS - 1) / \
		HTTPD_BLOCK_CONNECTIONS)

struct httpd_block {
	struct httpd_conn conns[HTTPD_BLOCK_CONNECTIONS];
};

/* Sees to it that there is a place for a connection of l, if need be by closing another one; above 0:
 * there will not be any before so many ms are over, unless a connection moves on. */
unsigned           httpd_place_ms(const struct httpd_listener *l);
struct httpd_conn *httpd_place(struct httpd *h); /* one that no connection has; NULL: no memory */
/* The i-th that there is, used or free; NULL: there are no more. */
struct httpd_conn *httpd_conn_at(const struct httpd *h, size_t i);
void httpd_conn_stopping(struct httpd *h); /* closes those that owe nothing */

#endif
