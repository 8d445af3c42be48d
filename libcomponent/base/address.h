/*
 * address.h - the one parser of every *-bind-address.
 *
 * Forms: HOST:PORT, :PORT, [IPV6]:PORT, [fe80::1%eth0]:PORT, unix:/path,
 * unix:@name, fd:N, fd:NAME and 0 (off).  "%p" in a path or @name is the process's number.
 * Nothing is guessed: see the table in tests/base/test_address.c.
 */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_HOST_MAX 256 /* bytes with NUL; a DNS name has at most 253 */
#define ADDRESS_WHY_MAX  512 /* bytes with NUL of a refusal: a sentence and the value once */

enum address_kind {
	ADDRESS_OFF,  /* "0" */
	ADDRESS_TCP,  /* host empty: every interface; IPv6 without brackets, zone with '%' */
	ADDRESS_UNIX, /* host: the absolute path, or @name */
	ADDRESS_FD,   /* host: number or name of an inherited socket */
};

struct address {
	enum address_kind kind;
	char              host[ADDRESS_HOST_MAX];
	uint16_t          port;
};

/*
 * address_parse - text to address
 *
 * Returns 0; or -EINVAL with *ret untouched and in ret_why (nullable) a sentence
 * for behind the value, such as "missing host part; write ':6060' or
 * '127.0.0.1:6060'".  ADDRESS_WHY_MAX bytes always suffice.  Asks no resolver.
 */
int address_parse(const char *text, struct address *ret, char *ret_why, unsigned why_size);

/* Would two servers at these addresses want the same socket?  Not for port 0, and
 * without asking a resolver: what it would tell is found when binding. */
bool address_clashes(const struct address *a, const struct address *b);

/* Are they one address, as it was written or in other words?  Nor is port 0, which is another port each time. */
bool address_is_same(const struct address *a, const struct address *b);

/* Of a unix socket: its path or @name, with the number of this process for each "%p".  ADDRESS_HOST_MAX
 * bytes always suffice. */
void address_path(const struct address *a, char *buf, unsigned size);

/* The text again, in canonical form. */
void address_format(const struct address *a, char *buf, unsigned size);

#endif
