/*
 * reply.c - answers that are made at once: a text, a page, an error.
 *
 * What a stranger would get wrong: go tool pprof shows the text of an error only if
 * X-Go-Pprof is there and the type is text/plain, so reply_error() sends both.
 *
 * Tests: tests/http/protocol.t.
 */
#include <config.h>

#include "reply.h"

#include <stdio.h>

#include "accept.h"
#include "encode.h"
#include "text.h"

void
reply_with(struct answer *a, int status, const char *type, const void *body, size_t size, const char *name,
	const char *value)
{
	const struct answer_header headers[] = { { "Content-Type", type }, { "X-Content-Type-Options", "nosniff" },
		{ name, value }, { NULL, NULL } };

	answer_whole(a, status, headers, body, size);
}

void
reply_text(struct answer *a, int status, const char *type, const void *body, size_t size)
{
	reply_with(a, status, type, body, size, NULL, NULL);
}

void
reply_packed(struct answer *a, const char *type, const void *body, size_t size)
{
	static const char vary[] = "Accept, Accept-Encoding";
	struct text packed = TEXT_INIT;

	if (accept_quality(a->ask.accept_encoding, "gzip") && !encode_gzip(body, size, text_collect, &packed)) {
		const struct answer_header headers[] = { { "Content-Type", type }, { "X-Content-Type-Options", "nosniff" },
			{ "Vary", vary }, { "Content-Encoding", "gzip" }, { NULL, NULL } };

		answer_whole(a, 200, headers, packed.data, packed.size);
	} else {
		reply_with(a, 200, type, body, size, "Vary", vary);
	}
	text_release(&packed);
}

void
reply_error_with(struct answer *a, int status, const char *text, const char *name, const char *value)
{
	const struct answer_header headers[] = { { "Content-Type", ANSWER_TEXT }, { "X-Go-Pprof", "1" },
		{ "X-Content-Type-Options", "nosniff" }, { name, value }, { NULL, NULL } };
	char body[1024];
	int  n = snprintf(body, sizeof(body), "%s\n", text);

	if (n >= (int)sizeof(body))
		n = (int)sizeof(body) - 1;
	answer_whole(a, status, headers, body, (size_t)n);
}

void
reply_error(struct answer *a, int status, const char *text)
{
	reply_error_with(a, status, text, NULL, NULL);
}
