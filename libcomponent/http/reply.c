/*
 * reply.c - an answer as a reply of HTTP/1.1: whole, streamed, or cut off.
 *
 * What a stranger would get wrong:
 * - HEAD gets every header of GET, Content-Length included, and no byte of body.
 * - HTTP/1.0 knows no chunks: a streamed reply ends with the connection.
 * - A streamed reply that fails half-way must not end like a whole one.
 * - Replying frees the request in every case, exactly once; when its connection is
 *   gone (r->conn is NULL) that is all it does.
 *
 * Tests: tests/http/protocol.t, tests/http/limits.t.
 */
#include <config.h>

#include "connection.h"
#include "request.h"
#include "server.h"

/* These answer whether all of it found memory. */

/* Line breaks in a value would be headers of their own. */
static bool
header_add(struct evbuffer *out, const struct answer_header *header)
{
	bool ok = evbuffer_add_printf(out, "%s: ", header->name) >= 0;

	for (const char *value = header->value; *value; value++)
		ok &= evbuffer_add(out, *value == '\r' || *value == '\n' ? " " : value, 1) == 0;
	return evbuffer_add(out, "\r\n", 2) == 0 && ok;
}

static void
reply_begin(struct answer *a, int status, const struct answer_header *headers, int64_t size)
{
	struct httpd_request *r = (struct httpd_request *)a;
	struct evbuffer      *out;
	char                  date[ANSWER_DATE_BYTES];
	bool                  ok;

	if (!r->conn)
		return;
	out = r->conn->out;
	if (size < 0 && r->minor == 0)
		r->conn->keep_alive = false;
	if (r->h->stopping)
		r->conn->keep_alive = false;
	answer_date(date);
	ok = evbuffer_add_printf(out, "HTTP/1.%d %d %s\r\nDate: %s\r\n", r->minor > 0, status,
		answer_reason(status), date) >= 0;
	for (; headers->name; headers++)
		ok &= header_add(out, headers);
	if (size >= 0)
		ok &= evbuffer_add_printf(out, "Content-Length: %lld\r\n", (long long)size) >= 0;
	r->reply_chunked = size < 0 && r->minor > 0;
	if (r->reply_chunked)
		ok &= evbuffer_add_printf(out, "Transfer-Encoding: chunked\r\n") >= 0;
	if (!r->conn->keep_alive)
		ok &= evbuffer_add_printf(out, "Connection: close\r\n") >= 0;
	else if (r->minor == 0)
		ok &= evbuffer_add_printf(out, "Connection: keep-alive\r\n") >= 0;
	ok &= evbuffer_add(out, "\r\n", 2) == 0;
	r->reply_broken = !ok;
	httpd_conn_output(r->conn);
}

static int64_t
reply_write(struct answer *a, const void *data, size_t size)
{
	struct httpd_request *r = (struct httpd_request *)a;
	struct evbuffer      *out;
	bool                  ok = true;

	if (!r->conn || a->ask.method == ASK_HEAD || size == 0)
		return 0; /* an empty chunk would be the last */
	out = r->conn->out;
	if (r->reply_chunked)
		ok = evbuffer_add_printf(out, "%zx\r\n", size) >= 0;
	ok &= evbuffer_add(out, data, size) == 0;
	if (r->reply_chunked)
		ok &= evbuffer_add(out, "\r\n", 2) == 0;
	r->reply_broken |= !ok;
	httpd_conn_output(r->conn);
	return (int64_t)evbuffer_get_length(out);
}

static void
reply_abort(struct answer *a)
{
	struct httpd_request *r = (struct httpd_request *)a;

	if (r->conn) {
		r->conn->request = NULL;
		httpd_conn_close(r->conn);
	}
	httpd_request_free(r);
}

static void
reply_end(struct answer *a)
{
	struct httpd_request *r = (struct httpd_request *)a;

	if (r->conn && r->reply_chunked && a->ask.method != ASK_HEAD)
		r->reply_broken |= evbuffer_add(r->conn->out, "0\r\n\r\n", 5) != 0;
	if (r->reply_broken) { /* the next one would be read as its rest */
		reply_abort(a);
		return;
	}
	if (r->conn)
		httpd_conn_replied(r->conn);
	httpd_request_free(r);
}

const struct answer_sink httpd_reply_sink = { reply_begin, reply_write, reply_end, reply_abort };
