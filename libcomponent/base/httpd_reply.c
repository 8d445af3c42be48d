/*
 * httpd_reply.c - the text of a reply of HTTP/1.1: whole, streamed, or cut off.
 *
 * What a stranger would get wrong:
 * - HEAD gets every header of GET, Content-Length included, and no byte of body.
 * - HTTP/1.0 knows no chunks: a streamed reply ends with the connection.
 * - A streamed reply that fails half-way must not end like a whole one.
 * - Replying frees the request in every case, exactly once; when its connection is
 *   gone (r->conn is NULL) that is all it does.
 *
 * Tests: tests/serve_http.t, tests/serve_limits.t.
 */
#include <config.h>

#include "httpd_internal.h"

#include <string.h>
#include <time.h>

#include "utc.h"

#define TEXT "text/plain; charset=utf-8"

const char *
httpd_status_text(int status)
{
	static const struct {
		int         status;
		const char *text;
	} all[] = {
		{ 200, "OK" }, { 301, "Moved Permanently" }, { 400, "Bad Request" },
		{ 401, "Unauthorized" }, { 403, "Forbidden" }, { 404, "Not Found" },
		{ 405, "Method Not Allowed" }, { 413, "Request Entity Too Large" },
		{ 431, "Request Header Fields Too Large" }, { 500, "Internal Server Error" },
		{ 501, "Not Implemented" }, { 503, "Service Unavailable" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].status == status)
			return all[i].text;
	return "Unknown";
}

/* Not strftime(): the daemon's locale would choose the names. */
static void
date_add(struct evbuffer *out)
{
	static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct utc        at;

	utc_from_unix(time(NULL), &at);
	evbuffer_add_printf(out, "Date: %.3s, %02d %.3s %lld %02d:%02d:%02d GMT\r\n", days + 3 * at.weekday, at.day,
		months + 3 * (at.month - 1), (long long)at.year, at.hour, at.minute, at.second);
}

/* Line breaks in a value would be headers of their own. */
void
httpd_set_header(struct httpd_request *r, const char *name, const char *value)
{
	evbuffer_add_printf(r->reply_headers, "%s: ", name);
	for (; *value; value++)
		evbuffer_add(r->reply_headers, *value == '\r' || *value == '\n' ? " " : value, 1);
	evbuffer_add(r->reply_headers, "\r\n", 2);
}

static void
status_line_add(struct evbuffer *out, unsigned minor, int status)
{
	evbuffer_add_printf(out, "HTTP/1.%u %d %s\r\n", minor ? 1 : 0, status, httpd_status_text(status));
	date_add(out);
}

/* size: -1 for a streamed reply. */
static void
head_add(struct httpd_request *r, int status, const char *type, int64_t size)
{
	struct evbuffer *out = r->conn->out;

	if (size < 0 && r->minor == 0)
		r->conn->keep_alive = false;
	if (r->h->stopping)
		r->conn->keep_alive = false;
	status_line_add(out, r->minor, status);
	evbuffer_add_printf(out, "Content-Type: %s\r\n", type);
	evbuffer_add_buffer(out, r->reply_headers);
	if (size >= 0)
		evbuffer_add_printf(out, "Content-Length: %lld\r\n", (long long)size);
	r->reply_chunked = size < 0 && r->minor > 0;
	if (r->reply_chunked)
		evbuffer_add_printf(out, "Transfer-Encoding: chunked\r\n");
	if (!r->conn->keep_alive)
		evbuffer_add_printf(out, "Connection: close\r\n");
	else if (r->minor == 0)
		evbuffer_add_printf(out, "Connection: keep-alive\r\n");
	evbuffer_add(out, "\r\n", 2);
}

static void
reply_finish(struct httpd_request *r)
{
	if (r->conn)
		httpd_conn_replied(r->conn);
	httpd_request_free(r);
}

void
httpd_reply(struct httpd_request *r, int status, const char *type, const void *body, size_t size)
{
	if (r->conn) {
		head_add(r, status, type, (int64_t)size);
		if (httpd_method(r) != HTTPD_HEAD)
			evbuffer_add(r->conn->out, body, size);
	}
	reply_finish(r);
}

void
httpd_reply_start(struct httpd_request *r, int status, const char *type)
{
	if (!r->conn)
		return;
	head_add(r, status, type, -1);
	httpd_conn_output(r->conn);
}

size_t
httpd_reply_write(struct httpd_request *r, const void *data, size_t size)
{
	struct evbuffer *out;

	if (!r->conn || httpd_method(r) == HTTPD_HEAD || size == 0)
		return 0; /* an empty chunk would be the last */
	out = r->conn->out;
	if (r->reply_chunked)
		evbuffer_add_printf(out, "%zx\r\n", size);
	evbuffer_add(out, data, size);
	if (r->reply_chunked)
		evbuffer_add(out, "\r\n", 2);
	httpd_conn_output(r->conn);
	return evbuffer_get_length(out);
}

void
httpd_reply_end(struct httpd_request *r)
{
	if (r->conn && r->reply_chunked && httpd_method(r) != HTTPD_HEAD)
		evbuffer_add(r->conn->out, "0\r\n\r\n", 5);
	reply_finish(r);
}

void
httpd_reply_abort(struct httpd_request *r)
{
	if (r->conn) {
		r->conn->request = NULL;
		httpd_conn_close(r->conn);
	}
	httpd_request_free(r);
}

void
httpd_reply_refuse(struct httpd_conn *c, int status)
{
	const char *text = httpd_status_text(status);

	status_line_add(c->out, 1, status);
	evbuffer_add_printf(c->out,
		"Content-Type: " TEXT "\r\nX-Content-Type-Options: nosniff\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n%d %s\n",
		strlen(text) + 5, status, text);
	c->keep_alive = false;
	httpd_conn_replied(c);
}
