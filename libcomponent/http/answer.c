/*
 * answer.c - what all doors have in common: words of HTTP, and an answer at once.
 *
 * Tests: tests/http/protocol.t.
 */
#include <config.h>

#include "answer.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "utc.h"

const char *
answer_reason(int status)
{
	static const struct {
		int         status;
		const char *text;
	} all[] = {
		{ 200, "OK" }, { 301, "Moved Permanently" }, { 400, "Bad Request" },
		{ 401, "Unauthorized" }, { 403, "Forbidden" }, { 404, "Not Found" },
		{ 405, "Method Not Allowed" }, { 406, "Not Acceptable" }, { 413, "Request Entity Too Large" },
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
void
answer_date(char buf[ANSWER_DATE_BYTES])
{
	struct utc at;

	utc_from_unix(time(NULL), &at);
	snprintf(buf, ANSWER_DATE_BYTES, "%.3s, %02d %.3s %lld %02d:%02d:%02d GMT", utc_days + 3 * at.weekday, at.day,
		utc_months + 3 * (at.month - 1), (long long)at.year, at.hour, at.minute, at.second);
}

int64_t
ask_decode(const char *text, size_t n, char plus, char *buf, size_t size)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (c == '+') {
			c = plus;
		} else if (c == '%') {
			if (i + 2 >= n || !isxdigit((unsigned char)text[i + 1]) ||
			    !isxdigit((unsigned char)text[i + 2]))
				return -1;
			c = (char)strtoul((char[]){ text[i + 1], text[i + 2], '\0' }, NULL, 16);
			i += 2;
		}
		if (out + 1 < size)
			buf[out++] = c;
	}
	buf[out] = '\0';
	return (int64_t)out;
}

char *
ask_path_decode(const char *target)
{
	size_t  size = strlen(target) + 1;
	char   *path = malloc(size);
	int64_t n = path ? ask_decode(target, size - 1, '+', path, size) : -1;

	if (n >= 0 && strlen(path) == (size_t)n)
		return path;
	free(path);
	return NULL;
}

void
ask_peer_format(const struct sockaddr_storage *sa, char buf[ASK_PEER_BYTES])
{
	const struct sockaddr_in  *in = (const void *)sa;
	const struct sockaddr_in6 *in6 = (const void *)sa;
	char                       text[INET6_ADDRSTRLEN] = "?", zone[IF_NAMESIZE + 12] = "";

	if (sa->ss_family == AF_INET) {
		inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
		snprintf(buf, ASK_PEER_BYTES, "%s:%u", text, ntohs(in->sin_port));
	} else if (sa->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], text, sizeof(text));
		snprintf(buf, ASK_PEER_BYTES, "%s:%u", text, ntohs(in6->sin6_port));
	} else if (sa->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
		if (in6->sin6_scope_id)
			snprintf(zone, sizeof(zone), "%%%u", in6->sin6_scope_id);
		snprintf(buf, ASK_PEER_BYTES, "[%s%s]:%u", text, zone, ntohs(in6->sin6_port));
	} else {
		snprintf(buf, ASK_PEER_BYTES, "unix");
	}
}

void
answer_whole(struct answer *a, int status, const struct answer_header *headers, const void *body, size_t size)
{
	a->sink->begin(a, status, headers, (int64_t)size);
	a->sink->write(a, body, size);
	a->sink->end(a);
}

void
answer_lost(struct answer *a)
{
	answer_fn *fn = a->on_gone ? a->on_gone : a->on_hangup;

	a->on_hangup = a->on_gone = a->on_drain = NULL;
	if (fn)
		fn(a->arg);
}
