/*
 * request.h - a request as it is read, and the sink of its reply.  The server's thread.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/buffer.h>

#include "answer.h"
#include "httpd.h"

struct httpd_conn;
struct httpd_listener;

struct httpd_header {
	const char *name, *value;
};

enum httpd_body_state { HTTPD_BODY_BEGIN, HTTPD_BODY_DATA, HTTPD_BODY_SIZE, HTTPD_BODY_CHUNK,
	HTTPD_BODY_CHUNK_END, HTTPD_BODY_TRAILER, HTTPD_BODY_DONE };

struct httpd_request {
	struct answer          answer; /* first: it is the request for who answers */
	struct httpd          *h;
	struct httpd_conn     *conn; /* NULL: gone */
	struct httpd_listener *listener;
	char                  *head; /* the header's bytes, cut into strings */
	char                  *path; /* of answer.ask, in memory of its own */
	unsigned               minor; /* HTTP/1.minor */
	struct httpd_header    headers[HTTPD_HEADERS_MAX];
	unsigned               header_count;
	int64_t                content_length; /* -1: none given */
	bool                   body_chunked, expect_continue, keep_alive;
	enum httpd_body_state  body_state;
	size_t                 body_left;  /* of the body, or of the chunk */
	size_t                 body_max;   /* more is answered 413 */
	bool                   body_dropped; /* nobody wants it */
	size_t                 trailer_bytes;
	struct evbuffer       *body;
	bool                   reply_chunked;
	bool                   reply_broken;  /* a part of it found no memory */
	char                   peer[ASK_PEER_BYTES];
};

/* Takes one request off in.  -EAGAIN: not all there yet, and out may tell the client to go on; 0: *ret;
 * above 0: an HTTP status to answer *ret with before closing, whatever it asks for. */
int  httpd_request_read(struct httpd_conn *c, struct httpd_request **ret);
void httpd_request_free(struct httpd_request *r);

/* reply.c: an answer becomes the connection's output. */
extern const struct answer_sink httpd_reply_sink;

#endif
