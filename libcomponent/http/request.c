/*
 * request.c - the text of a request of HTTP/1.1, read into a struct ask.
 *
 * Reading is strict where two readers could disagree about where a request ends
 * (several or odd Content-Length, several Transfer-Encoding, folded headers, NUL, a CR
 * that ends no line, a blank before the colon are refused) and lenient where clients differ (a bare LF ends a line, empty
 * lines before the request, and single CRs there, are skipped, Host may be missing).
 *
 * What a stranger would get wrong:
 * - '+' is a blank in a form but not in a path, and routes see the raw query:
 *   "symbol" separates addresses by it.
 * - A header that is not all there yet stays in the buffer.  A body is taken out as it
 *   comes: chunks of one byte have frames of any size, which nobody is to keep or to read
 *   twice.
 * - Who may ask at all is known by the header, so a body is looked at after body_max() of
 *   the options has said that it is wanted.
 * - The request may outlive its connection (r->conn is NULL then): replying frees
 *   it in every case, exactly once (reply.c).
 *
 * Tests: tests/http/protocol.t, tests/http/limits.t.
 */
#include <config.h>

#include "request.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "connection.h"
#include "server.h"

#define CHUNK_LINE_MAX 256 /* "1a2b;extension"; nobody sends more */

/* The end of the header in the first n bytes, past its empty line; 0: not there. */
static size_t
head_end(const char *p, size_t n, size_t from)
{
	const char *nl;

	for (from = from > 3 ? from - 3 : 0; (nl = memchr(p + from, '\n', n - from)); from = (size_t)(nl - p) + 1) {
		size_t at = (size_t)(nl - p) + 1;

		if (at < n && p[at] == '\n')
			return at + 1;
		if (at + 1 < n && p[at] == '\r' && p[at + 1] == '\n')
			return at + 2;
	}
	return 0;
}

static bool
is_token(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("!#$%&'*+-.^_`|~", *s))
			return false;
	return true;
}

/* Cuts a line off *at; its CR is dropped. */
static char *
line_cut(char **at)
{
	char *line = *at, *nl = strchr(line, '\n');

	*at = nl + 1;
	if (nl > line && nl[-1] == '\r')
		nl--;
	*nl = '\0';
	return line;
}

static enum ask_method
method_of(const char *name)
{
	if (!strcmp(name, "GET"))
		return ASK_GET;
	if (!strcmp(name, "HEAD"))
		return ASK_HEAD;
	return strcmp(name, "POST") ? ASK_OTHER : ASK_POST;
}

/* "GET /path?query HTTP/1.1", also "GET http://host/path HTTP/1.1". */
static int
request_line(struct httpd_request *r, char *line)
{
	struct ask *ask = &r->answer.ask;
	char       *target = strchr(line, ' '), *version, *query;

	if (!target)
		return 400;
	*target++ = '\0';
	version = strrchr(target, ' ');
	if (!version || version == target || !is_token(line))
		return 400;
	*version++ = '\0';
	if (strncmp(version, "HTTP/", 5) || !isdigit((unsigned char)version[5]) || version[6] != '.' ||
	    !isdigit((unsigned char)version[7]) || version[8])
		return 400;
	if (version[5] != '1')
		return 505;
	r->minor = (unsigned)(version[7] - '0');
	ask->method_name = line;
	ask->method = method_of(line);
	if (!strncasecmp(target, "http://", 7)) {
		target = strchr(target + 7, '/');
		if (!target)
			return 400;
	}
	if (*target != '/' && strcmp(target, "*"))
		return 400;
	for (const char *p = target; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			return 400;
	query = strchr(target, '?');
	if (query)
		*query++ = '\0';
	ask->query = query;
	ask->path = r->path = ask_path_decode(target);
	return r->path ? 0 : 400;
}

static int
header_line(struct httpd_request *r, char *line)
{
	char *colon = strchr(line, ':'), *value, *end;

	if (!colon)
		return 400;
	*colon = '\0';
	if (!is_token(line)) /* a folded line and "Name :" fail here too */
		return 400;
	value = colon + 1 + strspn(colon + 1, " \t");
	end = value + strlen(value);
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	if (r->header_count == HTTPD_HEADERS_MAX)
		return 431;
	r->headers[r->header_count++] = (struct httpd_header){ line, value };
	return 0;
}

static bool
has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (; list && *list; list += strcspn(list, ",")) {
		list += strspn(list, ", \t");
		if (!strncasecmp(list, word, n) && (!list[n] || strchr(", \t", list[n])))
			return true;
	}
	return false;
}

static const char *
header(const struct httpd_request *r, const char *name)
{
	for (unsigned i = 0; i < r->header_count; i++)
		if (!strcasecmp(r->headers[i].name, name))
			return r->headers[i].value;
	return NULL;
}

/* What the headers say about the body and the connection, and what is asked. */
static int
headers_apply(struct httpd_request *r)
{
	const char *connection = header(r, "Connection");
	const char *encoding = header(r, "Transfer-Encoding");
	unsigned    lengths = 0, hosts = 0, encodings = 0;

	r->content_length = -1;
	for (unsigned i = 0; i < r->header_count; i++) {
		const char *value = r->headers[i].value;

		if (!strcasecmp(r->headers[i].name, "Host"))
			hosts++;
		if (!strcasecmp(r->headers[i].name, "Transfer-Encoding"))
			encodings++;
		if (strcasecmp(r->headers[i].name, "Content-Length"))
			continue;
		lengths++;
		if (!*value || value[strspn(value, "0123456789")])
			return 400;
		r->content_length = strlen(value) > 18 ? INT64_MAX : strtoll(value, NULL, 10);
	}
	if (lengths > 1 || hosts > 1 || encodings > 1 || (lengths && encoding))
		return 400;
	if (encoding && (strcasecmp(encoding, "chunked") || r->minor == 0))
		return r->minor == 0 ? 400 : 501;
	r->body_chunked = encoding != NULL;
	r->expect_continue = r->minor > 0 && has_word(header(r, "Expect"), "100-continue");
	r->keep_alive = r->minor > 0 ? !has_word(connection, "close") : has_word(connection, "keep-alive");
	r->answer.ask.host = header(r, "Host");
	r->answer.ask.authorization = header(r, "Authorization");
	r->answer.ask.origin = header(r, "Origin");
	r->answer.ask.accept = header(r, "Accept");
	r->answer.ask.accept_encoding = header(r, "Accept-Encoding");
	r->answer.ask.user_agent = header(r, "User-Agent");
	return 0;
}

/* The header as strings.  at: a copy of its bytes, NUL at the end. */
static int
head_parse(struct httpd_request *r, char *at)
{
	char *line;
	int   status;

	for (const char *cr = at; (cr = strchr(cr, '\r')); cr++)
		if (cr[1] != '\n')
			return 400;
	status = request_line(r, line_cut(&at));
	while (status == 0) {
		line = line_cut(&at);
		if (!*line)
			break;
		status = header_line(r, line);
	}
	return status ? status : headers_apply(r);
}

/* Skips the empty lines that some clients send after a body. */
static void
blank_lines_skip(struct evbuffer *in)
{
	const unsigned char *p;

	while (evbuffer_get_length(in) && (p = evbuffer_pullup(in, 1)) && (*p == '\r' || *p == '\n'))
		evbuffer_drain(in, 1);
}

/* 0: r's header is complete, parsed, and out of the buffer. */
static int
head_read(struct httpd_conn *c, struct httpd_request *r)
{
	size_t      n, size;
	const char *p;

	if (c->scanned == 0)
		blank_lines_skip(c->in);
	n = evbuffer_get_length(c->in);
	if (n > HTTPD_HEADER_BYTES_MAX)
		n = HTTPD_HEADER_BYTES_MAX;
	if (n == 0)
		return -EAGAIN;
	p = (const char *)evbuffer_pullup(c->in, (ssize_t)n);
	if (!p)
		return -ENOMEM;
	size = head_end(p, n, c->scanned);
	if (!size) {
		c->scanned = n;
		return n == HTTPD_HEADER_BYTES_MAX ? 431 : -EAGAIN;
	}
	if (memchr(p, '\0', size))
		return 400;
	r->head = malloc(size + 1);
	if (!r->head)
		return -ENOMEM;
	memcpy(r->head, p, size);
	r->head[size] = '\0';
	evbuffer_drain(c->in, size);
	c->scanned = 0;
	return head_parse(r, r->head);
}

/*
 * Takes what there is of body_left; -EAGAIN: not all.  The bytes are copied: to move them would
 * keep the whole buffer that each read has made, a KiB for a body's single byte.
 */
static int
data_take(struct httpd_request *r, struct evbuffer *in)
{
	size_t         n = evbuffer_get_length(in);
	unsigned char *p;

	if (n > r->body_left)
		n = r->body_left;
	if (n > 0 && !r->body_dropped) {
		p = evbuffer_pullup(in, (ssize_t)n);
		if (!p || evbuffer_add(r->body, p, n))
			return -ENOMEM;
	}
	evbuffer_drain(in, n);
	r->body_left -= n;
	return r->body_left ? -EAGAIN : 0;
}

/* A line without its end. */
static int
line_take(struct evbuffer *in, char line[CHUNK_LINE_MAX])
{
	struct evbuffer_ptr nl = evbuffer_search_eol(in, NULL, NULL, EVBUFFER_EOL_LF);
	size_t              n = nl.pos < 0 ? evbuffer_get_length(in) : (size_t)nl.pos;

	if (n >= CHUNK_LINE_MAX)
		return 400;
	if (nl.pos < 0)
		return -EAGAIN;
	evbuffer_remove(in, line, n);
	evbuffer_drain(in, 1);
	if (memchr(line, '\0', n))
		return 400;
	line[n] = '\0';
	if (n > 0 && line[n - 1] == '\r')
		line[n - 1] = '\0';
	return strchr(line, '\r') ? 400 : 0;
}

/* "1a2b;extension" */
static int
chunk_size_read(struct httpd_request *r, const char *line)
{
	size_t digits = strspn(line, "0123456789abcdefABCDEF"); /* strtoul() takes "0x10" as well */

	if (!digits || (line[digits] && !strchr("; \t", line[digits])))
		return 400;
	errno = 0;
	r->body_left = strtoul(line, NULL, 16);
	if (errno)
		return 400;
	if (r->body_left > r->body_max || evbuffer_get_length(r->body) + r->body_left > r->body_max)
		return 413;
	r->body_state = r->body_left ? HTTPD_BODY_CHUNK : HTTPD_BODY_TRAILER;
	return 0;
}

/* Trailers are read and ignored, up to an empty line. */
static int
frame_take(struct httpd_request *r, struct evbuffer *in)
{
	char line[CHUNK_LINE_MAX];
	int  status = line_take(in, line);

	if (status)
		return status;
	if (r->body_state == HTTPD_BODY_SIZE)
		return chunk_size_read(r, line);
	if (r->body_state == HTTPD_BODY_CHUNK_END) {
		r->body_state = HTTPD_BODY_SIZE;
		return *line ? 400 : 0;
	}
	r->trailer_bytes += strlen(line) + 1;
	if (!*line)
		r->body_state = HTTPD_BODY_DONE;
	return r->trailer_bytes > HTTPD_HEADER_BYTES_MAX ? 431 : 0;
}

static void
body_begin(struct httpd_request *r)
{
	r->body_left = r->content_length > 0 ? (size_t)r->content_length : 0;
	r->body_state = r->body_chunked ? HTTPD_BODY_SIZE : r->body_left ? HTTPD_BODY_DATA : HTTPD_BODY_DONE;
}

static int
body_read(struct httpd_request *r, struct evbuffer *in)
{
	int status = 0;

	if (r->body_state == HTTPD_BODY_BEGIN)
		body_begin(r);
	while (!status && r->body_state != HTTPD_BODY_DONE) {
		if (r->body_state != HTTPD_BODY_DATA && r->body_state != HTTPD_BODY_CHUNK) {
			status = frame_take(r, in);
			continue;
		}
		status = data_take(r, in);
		if (!status)
			r->body_state = r->body_state == HTTPD_BODY_CHUNK ? HTTPD_BODY_CHUNK_END : HTTPD_BODY_DONE;
	}
	return status;
}

/*
 * Whether the body is kept, dropped before the reply, or left where it is: a header that
 * asks for nothing that needs a body costs no more memory than itself.
 */
static int
body_choose(struct httpd_conn *c, struct httpd_request *r)
{
	const struct httpd_options *o = &c->h->options;

	if (!r->body_chunked && r->content_length <= 0)
		return 0;
	r->body_max = o->body_max ? o->body_max(&r->answer.ask, o->arg) : 0;
	if (r->body_max > 0)
		return r->content_length > (int64_t)r->body_max ? 413 : 0;
	r->body_dropped = true;
	if (!r->body_chunked && !r->expect_continue && r->content_length <= HTTPD_BODY_BYTES_DROPPED)
		return 0;
	r->body_state = HTTPD_BODY_DONE;
	r->keep_alive = false;
	c->linger = true;
	return 0;
}

static struct httpd_request *
request_new(struct httpd_conn *c)
{
	struct httpd_request       *r = calloc(1, sizeof(*r));
	const struct listen_socket *socket = &c->listener->socket;

	if (!r)
		return NULL;
	r->h = c->h;
	r->listener = c->listener;
	r->listener->users++;
	r->body = evbuffer_new();
	memcpy(r->peer, c->peer, sizeof(r->peer));
	r->answer.sink = &httpd_reply_sink;
	r->answer.ask = (struct ask){ .peer = r->peer, .prefix = "",
		.by_mode = socket->is_unix && socket->ino, .loopback = c->loopback, .tag = r->listener->tag };
	if (r->body)
		return r;
	httpd_request_free(r);
	return NULL;
}

int
httpd_request_read(struct httpd_conn *c, struct httpd_request **ret)
{
	struct httpd_request *r = c->incoming ? c->incoming : request_new(c);
	int                   status = r ? 0 : -ENOMEM;

	if (r && !c->incoming)
		status = head_read(c, r);
	if (!status && !c->incoming)
		status = body_choose(c, r);
	if (status)
		goto out;
	status = body_read(r, c->in);
	if (status == -EAGAIN) {
		c->incoming = r;
		if (r->expect_continue)
			evbuffer_add_printf(c->out, "HTTP/1.1 100 Continue\r\n\r\n");
		r->expect_continue = false;
		return status;
	}
	if (status)
		goto out;
	r->answer.ask.body_size = evbuffer_get_length(r->body);
	r->answer.ask.body = (const char *)evbuffer_pullup(r->body, -1);
	if (r->answer.ask.body_size > 0 && !r->answer.ask.body)
		status = -ENOMEM;
out:
	c->incoming = NULL;
	if (status < 0)
		httpd_request_free(r);
	else
		*ret = r;
	return status;
}

void
httpd_request_free(struct httpd_request *r)
{
	if (!r)
		return;
	r->listener->users--;
	if (r->body)
		evbuffer_free(r->body);
	free(r->path);
	free(r->head);
	free(r);
}
