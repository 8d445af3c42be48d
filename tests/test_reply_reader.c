/*
 * test_reply_reader.c - replies of our own server, taken apart however their bytes come.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reply_reader.h"

#define WHOLE   "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nX: y: z\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
#define CHUNKED "HTTP/1.1 404 Not Found\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n" \
		"5\r\nhello\r\n1A\r\n\r\n0\r\n\r\nabcdefghijklmnopqrs\r\n0\r\n\r\n"

struct got {
	int  status;
	char headers[512], body[512];
	enum reply_part end;
};

/* Gives text in pieces of so many bytes. */
static void
read_all(const char *text, size_t piece, bool head_only, struct got *ret)
{
	struct reply_reader *r = malloc(sizeof(*r));
	const char          *name, *value, *data = NULL;
	size_t               size = strlen(text), n = 0;
	enum reply_part      part = REPLY_MORE;

	assert_non_null(r);
	memset(ret, 0, sizeof(*ret));
	reply_reader_init(r, head_only);
	for (size_t at = 0; at < size && part != REPLY_END && part != REPLY_BAD; at += piece) {
		const char *p = text + at;
		size_t      left = size - at < piece ? size - at : piece;

		while ((part = reply_next(r, &p, &left, &data, &n)) == REPLY_HEAD || part == REPLY_DATA) {
			if (part == REPLY_DATA) {
				strncat(ret->body, data, n);
				continue;
			}
			ret->status = r->status;
			snprintf(ret->headers, sizeof(ret->headers), "%s|", r->reason);
			while (reply_header(r, &name, &value)) {
				size_t used = strlen(ret->headers);

				snprintf(ret->headers + used, sizeof(ret->headers) - used, "%s=%s|", name, value);
			}
		}
		if (part == REPLY_MORE)
			assert_int_equal(left, 0);
	}
	ret->end = part;
	free(r);
}

static void
a_reply_is_the_same_in_pieces_of_every_size(void **state)
{
	struct got g;

	(void)state;
	for (size_t piece = 1; piece < 200; piece++) {
		read_all(WHOLE, piece, false, &g);
		assert_int_equal(g.end, REPLY_END);
		assert_int_equal(g.status, 200);
		assert_string_equal(g.headers, "OK|Content-Type=a/b|X=y: z|Content-Length=5|");
		assert_string_equal(g.body, "hello");
		read_all(CHUNKED, piece, false, &g);
		assert_int_equal(g.end, REPLY_END);
		assert_int_equal(g.status, 404);
		assert_string_equal(g.headers, "Not Found|Content-Type=a/b|");
		assert_string_equal(g.body, "hello\r\n0\r\n\r\nabcdefghijklmnopqrs");
	}
}

static void
a_reply_that_is_cut_off_anywhere_has_no_end(void **state)
{
	static const char *const all[] = { WHOLE, CHUNKED };
	char                     text[512];
	struct got               g;

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (size_t n = 0; n < strlen(all[i]); n++) {
			snprintf(text, sizeof(text), "%.*s", (int)n, all[i]);
			read_all(text, 7, false, &g);
			assert_int_equal(g.end, REPLY_MORE);
		}
}

static void
the_answer_to_head_ends_with_its_head(void **state)
{
	struct got g;

	(void)state;
	read_all("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 3, true, &g);
	assert_int_equal(g.end, REPLY_END);
	assert_string_equal(g.headers, "OK|Content-Length=5|");
	read_all("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 3, true, &g);
	assert_int_equal(g.end, REPLY_END);
	read_all("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 3, false, &g);
	assert_int_equal(g.end, REPLY_END);
}

static void
what_our_server_does_not_send_is_refused(void **state)
{
	static const char *const all[] = {
		"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ng\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n123456789\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n",
		"\r\n\r\n",
	};
	char       text[REPLY_HEAD_MAX + 100];
	struct got g;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		read_all(all[i], 5, false, &g);
		if (g.end != REPLY_BAD)
			fail_msg("taken: %s", all[i]);
	}
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	read_all(text, 1000, false, &g);
	assert_int_equal(g.end, REPLY_BAD);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reply_is_the_same_in_pieces_of_every_size),
		cmocka_unit_test(a_reply_that_is_cut_off_anywhere_has_no_end),
		cmocka_unit_test(the_answer_to_head_ends_with_its_head),
		cmocka_unit_test(what_our_server_does_not_send_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
