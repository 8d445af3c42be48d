/*
 * address.c - the one parser of every *-bind-address.
 *
 * An address is taken apart by hand, left to right, and nothing is guessed: what
 * has two readings is refused with the text to write instead.
 *
 * What a stranger would get wrong: "0.0.0.0:P" is IPv4 alone, ":P" is every
 * interface of both families, and a bare "P" is an error, because some programs
 * mean a port by it and others switch a server off with "0".
 *
 * Why not evutil_parse_sockaddr_port(): it takes "127.0.0.1:6060x" for port 6060
 * and "[::1]6060" for port 0, and reads "::1:6060" as an address without a port.
 * Why not getaddrinfo(): it takes "127.1" and "0x7f.1", service names, and asks
 * the network while options are still being checked.
 *
 * Tests: tests/base/test_address.c, a row for each form.
 */
#include <config.h>

#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PORT_DIGITS_MAX  5
#define PORT_MAX         65535
#define UNIX_PATH_MAX    (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
#define PID_DIGITS_MAX   7   /* 4194304, PID_MAX_LIMIT of 64-bit Linux */
#define LABEL_MAX        63  /* bytes of one part of a host name, RFC 1035 */
#define HOST_NAME_MAX_   253 /* bytes of a whole one */
#define FD_NAME_MAX      255 /* bytes, as systemd has it */
#define FD_DIGITS_MAX    6
#define FD_FIRST         3   /* 0 to 2 are never sockets handed over */

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Where a refusal writes its sentence. */
struct why {
	char    *text;
	unsigned size;
};

static int __attribute__((__format__(__printf__, 2, 3)))
refuse(const struct why *why, const char *format, ...)
{
	va_list args;

	if (why->text && why->size > 0) {
		va_start(args, format);
		vsnprintf(why->text, why->size, format, args);
		va_end(args);
	}
	return -EINVAL;
}

static bool
consists_of(const char *s, const char *set)
{
	return *s && s[strspn(s, set)] == '\0';
}

/* Host copied with room for its NUL; false when it does not fit. */
static bool
host_set(struct address *a, const char *host, size_t length)
{
	if (length >= sizeof(a->host))
		return false;
	memcpy(a->host, host, length);
	a->host[length] = '\0';
	return true;
}

static int
parse_port(const char *s, uint16_t *ret, const struct why *why)
{
	unsigned long port = 0;

	if (!*s)
		return refuse(why, "missing port; write ':6060' for port 6060, ':0' for any free one");
	if (consists_of(s, LETTERS "-" DIGITS) && strchr(LETTERS, *s))
		return refuse(why, "port must be 0..65535; names of services differ between machines, write the number");
	if (!consists_of(s, DIGITS) || strlen(s) > PORT_DIGITS_MAX)
		return refuse(why, "port must be 0..65535, digits only");
	if (*s == '0' && s[1])
		return refuse(why, "port must be 0..65535 without a leading zero; write '%s'",
			s[strspn(s, "0")] ? s + strspn(s, "0") : "0");
	for (; *s; s++)
		port = port * 10 + (unsigned long)(*s - '0');
	if (port > PORT_MAX)
		return refuse(why, "port must be 0..65535");
	*ret = (uint16_t)port;
	return 0;
}

static bool
is_ipv4(const char *s)
{
	struct in_addr a;

	return inet_pton(AF_INET, s, &a) == 1;
}

static bool
is_ipv6(const char *s)
{
	struct in6_addr a;

	return inet_pton(AF_INET6, s, &a) == 1;
}

/* Does the last part look like a number?  Resolvers read "0x7f.1" as an address. */
static bool
ends_in_number(const char *host)
{
	const char *last = strrchr(host, '.');

	last = last ? last + 1 : host;
	if (consists_of(last, DIGITS))
		return true;
	return last[0] == '0' && (last[1] == 'x' || last[1] == 'X');
}

static bool
is_host_name(const char *host)
{
	size_t      length = strlen(host), part;
	const char *p = host;

	if (length == 0 || length > HOST_NAME_MAX_ || ends_in_number(host))
		return false;
	for (;;) {
		part = strspn(p, LETTERS DIGITS "-_");
		if (part == 0 || part > LABEL_MAX || *p == '-')
			return false;
		p += part;
		if (!*p)
			return true;
		if (*p != '.')
			return false;
		p++;
		if (!*p)
			return true; /* the root dot of "host.example." */
	}
}

/* "[::1]:6060", "[fe80::1%eth0]:6060".  Whether the interface exists is asked
 * when binding: it may come up later than the options are read. */
static int
parse_bracketed(const char *text, struct address *ret, const struct why *why)
{
	const char *end = strchr(text, ']');
	char        literal[ADDRESS_HOST_MAX], *zone;

	if (!end)
		return refuse(why, "'[' without ']'; write '[::1]:6060'");
	if (!host_set(ret, text + 1, (size_t)(end - text - 1)))
		return refuse(why, "address too long");
	memcpy(literal, ret->host, sizeof(literal));
	zone = strchr(literal, '%');
	if (zone) {
		*zone++ = '\0';
		if (!*zone || strpbrk(zone, "%/ \t\r\n"))
			return refuse(why, "'%s' names no interface after '%%'; write '[fe80::1%%eth0]:6060'", ret->host);
	}
	if (!is_ipv6(literal))
		return refuse(why, "'%s' is not an IPv6 address", literal);
	if (end[1] == '\0')
		return refuse(why, "missing port; write '%s:6060'", text);
	if (end[1] != ':')
		return refuse(why, "missing ':' after ']'; write '[%s]:6060'", ret->host);
	ret->kind = ADDRESS_TCP;
	return parse_port(end + 2, &ret->port, why);
}

static int
parse_unix(const char *path, struct address *ret, const struct why *why)
{
	size_t length = strlen(path);

	if (length == 0)
		return refuse(why, "missing path; write 'unix:/run/x.sock'");
	if (*path != '/' && *path != '@')
		return refuse(why, "path must be absolute; write 'unix:/run/%s'", path);
	if (*path == '@' && length == 1)
		return refuse(why, "missing name after '@'; write 'unix:@name'");
	for (const char *s = path; (s = strstr(s, "%p")) != NULL; s += 2)
		length += PID_DIGITS_MAX - 2;
	if (length > UNIX_PATH_MAX)
		return refuse(why, "path has %zu bytes%s; a unix socket's path holds at most %zu", length,
			strstr(path, "%p") ? " with the process's number for %p" : "", UNIX_PATH_MAX);
	ret->kind = ADDRESS_UNIX;
	host_set(ret, path, strlen(path));
	return 0;
}

static int
parse_fd(const char *name, struct address *ret, const struct why *why)
{
	size_t length = strlen(name);
	bool   number = consists_of(name, DIGITS);

	if (length == 0)
		return refuse(why, "missing number or name of the inherited socket; write 'fd:3' or 'fd:NAME'");
	if (number && (length > FD_DIGITS_MAX || (*name == '0' && length > 1)))
		return refuse(why, "'%s' is not a descriptor number; the first inherited socket is 'fd:%d'", name, FD_FIRST);
	if (number && length == 1 && *name < '0' + FD_FIRST)
		return refuse(why, "descriptors 0 to 2 are never inherited sockets; the first is 'fd:%d'", FD_FIRST);
	for (size_t i = 0; i < length; i++)
		if (name[i] <= ' ' || name[i] == 0x7f || name[i] == ':')
			return refuse(why, "a socket's name holds no blank, colon or control character");
	if (length > FD_NAME_MAX)
		return refuse(why, "a socket's name has at most %d bytes", FD_NAME_MAX);
	ret->kind = ADDRESS_FD;
	host_set(ret, name, length);
	return 0;
}

static int
refuse_colons(const char *text, const struct why *why)
{
	const char *last = strrchr(text, ':');
	char        head[ADDRESS_HOST_MAX];
	uint16_t    port;
	struct why  quiet = { NULL, 0 };

	/* "::1" is an address; "::1:6060" is one too, but that is not what was meant. */
	if ((size_t)(last - text) < sizeof(head)) {
		memcpy(head, text, (size_t)(last - text));
		head[last - text] = '\0';
		if (is_ipv6(head) && parse_port(last + 1, &port, &quiet) == 0)
			return refuse(why, "an IPv6 address needs brackets; write '[%s]:%s'", head, last + 1);
	}
	if (is_ipv6(text))
		return refuse(why, "missing port, and an IPv6 address needs brackets; write '[%s]:6060'", text);
	return refuse(why, "too many colons; write HOST:PORT, or '[IPV6]:PORT'");
}

static int
parse_host_port(const char *text, struct address *ret, const struct why *why)
{
	const char *colon = strchr(text, ':');
	int         r;

	if (!host_set(ret, text, colon ? (size_t)(colon - text) : strlen(text)))
		return refuse(why, "host name too long; it has at most %d bytes", HOST_NAME_MAX_);
	if (strcmp(ret->host, "*") == 0)
		return refuse(why, "'*' is not a host; for every interface write ':%s'",
			colon && colon[1] ? colon + 1 : "6060");
	if (*ret->host && !is_ipv4(ret->host) && !is_host_name(ret->host))
		return refuse(why, "'%s' is not an IP address or host name", ret->host);
	if (!colon)
		return refuse(why, "missing port; write '%s:6060'", ret->host);
	r = parse_port(colon + 1, &ret->port, why);
	if (r < 0)
		return r;
	ret->kind = ADDRESS_TCP;
	return 0;
}

static int
parse(const char *text, struct address *ret, const struct why *why)
{
	const char *colon = strchr(text, ':');

	if (!*text)
		return refuse(why, "empty address; write ':6060' or '127.0.0.1:6060'");
	if (strcmp(text, "0") == 0) {
		ret->kind = ADDRESS_OFF;
		return 0;
	}
	if (strncmp(text, "unix://", 7) == 0 || strncmp(text, "fd://", 5) == 0)
		return refuse(why, "no '//' here; write 'unix:/run/x.sock' or 'fd:3'");
	if (strstr(text, "://"))
		return refuse(why, "no scheme; write HOST:PORT");
	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(text + 5, ret, why);
	if (strncmp(text, "fd:", 3) == 0)
		return parse_fd(text + 3, ret, why);
	if (*text == '/' || *text == '@')
		return refuse(why, "missing port; for a unix socket write 'unix:%s'", text);
	if (consists_of(text, DIGITS))
		return refuse(why, "missing host part; write ':%s' or '127.0.0.1:%s'", text, text);
	if (*text == '[')
		return parse_bracketed(text, ret, why);
	if (colon && strchr(colon + 1, ':'))
		return refuse_colons(text, why);
	return parse_host_port(text, ret, why);
}

int
address_parse(const char *text, struct address *ret, char *ret_why, unsigned why_size)
{
	struct address a = { 0 };
	struct why     why = { ret_why, why_size };
	int            r;

	r = parse(text ? text : "", &a, &why);
	if (r == 0)
		*ret = a;
	return r;
}

void
address_path(const struct address *a, char *buf, unsigned size)
{
	size_t used = 0;

	for (const char *s = a->host; *s && used < size; s++)
		if (s[0] == '%' && s[1] == 'p') {
			used += (size_t)snprintf(buf + used, size - used, "%d", (int)getpid());
			s++;
		} else
			buf[used++] = *s;
	buf[used < size ? used : size - 1] = '\0';
}

void
address_format(const struct address *a, char *buf, unsigned size)
{
	switch (a->kind) {
	case ADDRESS_OFF:
		snprintf(buf, size, "0");
		break;
	case ADDRESS_TCP:
		snprintf(buf, size, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, a->port);
		break;
	case ADDRESS_UNIX:
		snprintf(buf, size, "unix:%s", a->host);
		break;
	case ADDRESS_FD:
		snprintf(buf, size, "fd:%s", a->host);
		break;
	}
}

/* The addresses of a host, one of each family at most: zeros are every interface. */
struct reach {
	bool            has4, has6;
	struct in_addr  in4;
	struct in6_addr in6;
};

/* False: only a resolver knows them. */
static bool
reach_of(const char *host, struct reach *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->has4 = inet_pton(AF_INET, host, &ret->in4) == 1;
	ret->has6 = inet_pton(AF_INET6, host, &ret->in6) == 1;
	if (strcasecmp(host, "localhost") == 0 || strcasecmp(host, "localhost.") == 0) {
		ret->in4.s_addr = htonl(INADDR_LOOPBACK);
		ret->in6 = in6addr_loopback;
		ret->has4 = ret->has6 = true;
	} else if (ret->has6 && IN6_IS_ADDR_V4MAPPED(&ret->in6)) {
		memcpy(&ret->in4, &ret->in6.s6_addr[12], sizeof(ret->in4));
		ret->has4 = true;
		ret->has6 = false;
	} else if (!*host || (ret->has6 && IN6_IS_ADDR_UNSPECIFIED(&ret->in6))) {
		ret->has4 = ret->has6 = true;
	}
	return ret->has4 || ret->has6;
}

static bool
has_any4(const struct reach *r)
{
	return r->has4 && r->in4.s_addr == htonl(INADDR_ANY);
}

static bool
has_any6(const struct reach *r)
{
	return r->has6 && IN6_IS_ADDR_UNSPECIFIED(&r->in6);
}

/* "::1" is "0::1". */
static bool
host_is_same(const char *a, const char *b)
{
	struct in6_addr in_a, in_b;

	return strcasecmp(a, b) == 0 || (inet_pton(AF_INET6, a, &in_a) == 1 && inet_pton(AF_INET6, b, &in_b) == 1 &&
		memcmp(&in_a, &in_b, sizeof(in_a)) == 0);
}

bool
address_is_same(const struct address *a, const struct address *b)
{
	if (a->kind != b->kind || a->kind == ADDRESS_OFF)
		return false;
	if (a->kind != ADDRESS_TCP)
		return strcmp(a->host, b->host) == 0;
	return a->port == b->port && a->port != 0 && host_is_same(a->host, b->host);
}

bool
address_clashes(const struct address *a, const struct address *b)
{
	struct reach to_a, to_b;
	bool         known;

	if (a->kind != ADDRESS_TCP || b->kind != ADDRESS_TCP || address_is_same(a, b))
		return address_is_same(a, b);
	if (a->port != b->port || a->port == 0)
		return false;
	known = reach_of(a->host, &to_a);
	known = reach_of(b->host, &to_b) && known;
	if (!known)
		return has_any4(&to_a) || has_any6(&to_a) || has_any4(&to_b) || has_any6(&to_b);
	return (to_a.has4 && to_b.has4 && (to_a.in4.s_addr == to_b.in4.s_addr || has_any4(&to_a) || has_any4(&to_b))) ||
	       (to_a.has6 && to_b.has6 && (IN6_ARE_ADDR_EQUAL(&to_a.in6, &to_b.in6) || has_any6(&to_a) || has_any6(&to_b)));
}
