/*
 * reply_reader.c - one reply of our own server, taken apart as its bytes arrive.
 *
 * What is read was written by httpd_reply.c in the same process, so this knows the forms
 * that has and no others: "HTTP/1.1 200 OK", a Content-Length or chunks without
 * extensions and trailers.  Anything else is REPLY_BAD, and so would be a mistake of ours.
 *
 * What a stranger would get wrong: a connection that ends is no end of a reply.  Only
 * REPLY_END says that it is whole; a server that was stopped cuts its replies off.
 *
 * Tests: tests/test_reply_reader.c.
 */
#include <config.h>

#include "reply_reader.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SIZE_DIGITS_MAX 8 /* of a chunk: more than any buffer of ours */

void
reply_reader_init(struct reply_reader *r, bool head_only)
{
	memset(r, 0, offsetof(struct reply_reader, head));
	r->head_only = head_only;
}

/* "Name: value\r\n" at head + next, cut into strings; false: the empty line. */
static bool
line_cut(struct reply_reader *r, char **ret_line)
{
	char *line = r->head + r->next, *end = strstr(line, "\r\n");

	if (!end || end == line)
		return false;
	*end = '\0';
	r->next = (size_t)(end - r->head) + 2;
	*ret_line = line;
	return true;
}

static bool
header_cut(struct reply_reader *r, const char **ret_name, const char **ret_value)
{
	char *line, *colon;

	if (!line_cut(r, &line))
		return false;
	colon = strstr(line, ": ");
	if (colon)
		*colon = '\0';
	*ret_name = line;
	*ret_value = colon ? colon + 2 : "";
	return true;
}

bool
reply_header(struct reply_reader *r, const char **ret_name, const char **ret_value)
{
	while (header_cut(r, ret_name, ret_value))
		if (strcasecmp(*ret_name, "Connection") && strcasecmp(*ret_name, "Transfer-Encoding"))
			return true;
	return false;
}

/* The head is whole: what does it say about the body?  Its headers are looked at in a way
 * that leaves them to reply_header(). */
static bool
head_read(struct reply_reader *r)
{
	char *line, *length, *end = r->head;
	bool  sized;

	length = strcasestr(r->head, "\r\nContent-Length: ");
	sized = length != NULL;
	if (sized)
		r->left = strtoull(length + strlen("\r\nContent-Length: "), &end, 10);
	if (sized && *end != '\r')
		return false;
	r->chunked = strcasestr(r->head, "\r\nTransfer-Encoding: chunked\r\n") != NULL;
	if (!line_cut(r, &line) || strncmp(line, "HTTP/1.1 ", 9))
		return false;
	r->status = (int)strtol(line + 9, &end, 10);
	if (r->status < 200 || r->status > 599 || *end != ' ')
		return false;
	r->reason = end + 1;
	if (r->chunked == sized)
		return false;
	r->state = r->head_only || (sized && r->left == 0) ? REPLY_DONE : r->chunked ? REPLY_AT_SIZE : REPLY_IN_BODY;
	return true;
}

/* Takes bytes up to the empty line. */
static enum reply_part
head_take(struct reply_reader *r, const char **p, size_t *size)
{
	while (*size > 0) {
		if (r->head_size == REPLY_HEAD_MAX || **p == '\0')
			return REPLY_BAD;
		r->head[r->head_size++] = *(*p)++;
		--*size;
		if (r->head_size < 4 || memcmp(r->head + r->head_size - 4, "\r\n\r\n", 4) != 0)
			continue;
		r->head[r->head_size] = '\0';
		return head_read(r) ? REPLY_HEAD : REPLY_BAD;
	}
	return REPLY_MORE;
}

/* One byte of "1a2b\r\n", of the "\r\n" behind a chunk, or of the "\r\n" behind the last. */
static bool
frame_take(struct reply_reader *r, char c)
{
	if (c == '\r')
		return true;
	if (c != '\n') {
		if (r->state != REPLY_AT_SIZE || !isxdigit((unsigned char)c) || ++r->digits > SIZE_DIGITS_MAX)
			return false;
		r->left = r->left << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
		return true;
	}
	if (r->state == REPLY_AT_LAST)
		r->state = REPLY_DONE;
	else if (r->digits > 0)
		r->state = r->left > 0 ? REPLY_IN_CHUNK : REPLY_AT_LAST;
	/* else the line break behind a chunk */
	r->digits = 0;
	return true;
}

static enum reply_part
data_take(struct reply_reader *r, const char **p, size_t *size, const char **ret_data, size_t *ret_size)
{
	size_t n = *size < r->left ? *size : (size_t)r->left;

	if (n == 0)
		return REPLY_MORE;
	*ret_data = *p;
	*ret_size = n;
	*p += n;
	*size -= n;
	r->left -= n;
	if (r->left == 0)
		r->state = r->state == REPLY_IN_CHUNK ? REPLY_AT_SIZE : REPLY_DONE;
	return REPLY_DATA;
}

enum reply_part
reply_next(struct reply_reader *r, const char **p, size_t *size, const char **ret_data, size_t *ret_size)
{
	while (r->state == REPLY_AT_SIZE || r->state == REPLY_AT_LAST) {
		if (*size == 0)
			return REPLY_MORE;
		--*size;
		if (!frame_take(r, *(*p)++))
			return REPLY_BAD;
	}
	switch (r->state) {
	case REPLY_IN_HEAD:
		return head_take(r, p, size);
	case REPLY_IN_BODY:
	case REPLY_IN_CHUNK:
		return data_take(r, p, size, ret_data, ret_size);
	default:
		return REPLY_END;
	}
}
