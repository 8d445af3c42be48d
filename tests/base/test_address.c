/*
 * test_address.c - what may stand behind --profiling-bind-address and its like.
 *
 * One row a form.  A form with two readings is refused, and the refusal says what
 * to write instead; what is refused leaves the result untouched.
 */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "address.h"

static void
takes_every_form_of_the_table(void **state)
{
	static const struct {
		const char       *text;
		enum address_kind kind;
		const char       *host;
		unsigned          port;
	} rows[] = {
		{ ":6060", ADDRESS_TCP, "", 6060 },
		{ "0.0.0.0:6060", ADDRESS_TCP, "0.0.0.0", 6060 },
		{ "[::]:6060", ADDRESS_TCP, "::", 6060 },
		{ "127.0.0.1:6060", ADDRESS_TCP, "127.0.0.1", 6060 },
		{ "[::1]:6060", ADDRESS_TCP, "::1", 6060 },
		{ "[fe80::1%eth0]:6060", ADDRESS_TCP, "fe80::1%eth0", 6060 },
		{ "[::ffff:127.0.0.1]:6060", ADDRESS_TCP, "::ffff:127.0.0.1", 6060 },
		{ "localhost:6060", ADDRESS_TCP, "localhost", 6060 },
		{ "host.name:6060", ADDRESS_TCP, "host.name", 6060 },
		{ "host-1.example.:6060", ADDRESS_TCP, "host-1.example.", 6060 },
		{ "4a.example:6060", ADDRESS_TCP, "4a.example", 6060 },
		{ "0", ADDRESS_OFF, "", 0 },
		{ ":0", ADDRESS_TCP, "", 0 },
		{ "127.0.0.1:0", ADDRESS_TCP, "127.0.0.1", 0 },
		{ ":65535", ADDRESS_TCP, "", 65535 },
		{ "unix:/run/x.sock", ADDRESS_UNIX, "/run/x.sock", 0 },
		{ "unix:/run/a:b c.sock", ADDRESS_UNIX, "/run/a:b c.sock", 0 },
		{ "unix:@name", ADDRESS_UNIX, "@name", 0 },
		{ "unix:/run/x.%p.sock", ADDRESS_UNIX, "/run/x.%p.sock", 0 },
		{ "fd:3", ADDRESS_FD, "3", 0 },
		{ "fd:profiling", ADDRESS_FD, "profiling", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct address a = { 0 };
		char           why[ADDRESS_WHY_MAX] = "", again[ADDRESS_WHY_MAX];

		if (address_parse(rows[i].text, &a, why, sizeof(why)) < 0)
			fail_msg("'%s' was refused: %s", rows[i].text, why);
		assert_int_equal(a.kind, rows[i].kind);
		assert_string_equal(a.host, rows[i].host);
		assert_int_equal(a.port, rows[i].port);
		address_format(&a, again, sizeof(again));
		assert_string_equal(again, rows[i].text);
	}
}

static void
refuses_the_rest_and_says_what_to_write(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "6060", "missing host part; write ':6060' or '127.0.0.1:6060'" },
		{ "00", "missing host part; write ':00' or '127.0.0.1:00'" },
		{ "", "empty address; write ':6060' or '127.0.0.1:6060'" },
		{ "127.0.0.1:", "missing port" },
		{ ":", "missing port" },
		{ "127.0.0.1", "missing port; write '127.0.0.1:6060'" },
		{ "localhost", "missing port; write 'localhost:6060'" },
		{ "[::1]", "missing port; write '[::1]:6060'" },
		{ "[::1]:", "missing port" },
		{ "::1:6060", "write '[::1]:6060'" },
		{ "::1", "write '[::1]:6060'" },
		{ "fe80::1", "write '[fe80::1]:6060'" },
		{ "a:b:6060", "too many colons" },
		{ "127.0.0.1:6060:7070", "too many colons" },
		{ "[::1]6060", "missing ':' after ']'; write '[::1]:6060'" },
		{ "[::1", "'[' without ']'" },
		{ "[127.0.0.1]:6060", "'127.0.0.1' is not an IPv6 address" },
		{ "[fe80::1%]:6060", "names no interface" },
		{ ":65536", "port must be 0..65535" },
		{ ":70000", "port must be 0..65535" },
		{ ":4294973356", "port must be 0..65535" },
		{ ":-1", "port must be 0..65535" },
		{ ":+80", "port must be 0..65535" },
		{ ":0x50", "port must be 0..65535" },
		{ ": 6060", "port must be 0..65535" },
		{ ":6060 ", "port must be 0..65535" },
		{ "127.0.0.1:6060x", "port must be 0..65535" },
		{ ":06060", "without a leading zero; write '6060'" },
		{ ":00", "without a leading zero; write '0'" },
		{ ":http", "write the number" },
		{ "127.1:6060", "'127.1' is not an IP address or host name" },
		{ "0:6060", "'0' is not an IP address or host name" },
		{ "300.1.1.1:6060", "'300.1.1.1' is not an IP address or host name" },
		{ "127.0.0.01:6060", "'127.0.0.01' is not an IP address or host name" },
		{ "0x7f.1:6060", "is not an IP address or host name" },
		{ "127.0.0.0x1:6060", "is not an IP address or host name" },
		{ " 127.0.0.1:6060", "is not an IP address or host name" },
		{ "a b:6060", "is not an IP address or host name" },
		{ "a..b:6060", "is not an IP address or host name" },
		{ "-a:6060", "is not an IP address or host name" },
		{ "*:6060", "write ':6060'" },
		{ "*:7070", "write ':7070'" },
		{ "tcp://127.0.0.1:6060", "no scheme; write HOST:PORT" },
		{ "http://127.0.0.1:6060/", "no scheme; write HOST:PORT" },
		{ "unix:relative", "path must be absolute; write 'unix:/run/relative'" },
		{ "unix:", "missing path" },
		{ "unix:@", "missing name" },
		{ "unix:///run/x.sock", "no '//' here" },
		{ "/run/x.sock", "write 'unix:/run/x.sock'" },
		{ "@name", "write 'unix:@name'" },
		{ "fd:", "write 'fd:3' or 'fd:NAME'" },
		{ "fd:0", "descriptors 0 to 2" },
		{ "fd:2", "descriptors 0 to 2" },
		{ "fd:03", "not a descriptor number" },
		{ "fd:a b", "no blank" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct address a, before;
		char           why[ADDRESS_WHY_MAX] = "";

		memset(&a, 0x5a, sizeof(a));
		before = a;
		if (address_parse(rows[i].text, &a, why, sizeof(why)) != -EINVAL)
			fail_msg("'%s' was taken", rows[i].text);
		if (!strstr(why, rows[i].why))
			fail_msg("'%s': got \"%s\", want \"%s\"", rows[i].text, why, rows[i].why);
		assert_memory_equal(&a, &before, sizeof(a));
		assert_int_equal(address_parse(rows[i].text, &a, NULL, 0), -EINVAL);
	}
}

static void
refuses_what_does_not_fit_into_a_socket_address(void **state)
{
	char           text[600], why[ADDRESS_WHY_MAX];
	struct address a;

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "unix:/", 6);
	text[5 + 107] = '\0';
	assert_int_equal(address_parse(text, &a, why, sizeof(why)), 0);
	text[5 + 107] = 'x';
	text[5 + 108] = '\0';
	assert_int_equal(address_parse(text, &a, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "path has 108 bytes; a unix socket's path holds at most 107"));

	/* A number may have seven digits. */
	text[5 + 102] = '\0';
	memcpy(text + 20, "%p", 2);
	assert_int_equal(address_parse(text, &a, why, sizeof(why)), 0);
	text[5 + 102] = 'x';
	text[5 + 103] = '\0';
	assert_int_equal(address_parse(text, &a, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "path has 108 bytes with the process's number for %p"));

	memset(text, 'x', sizeof(text));
	memcpy(text + 300, ":6060", 6);
	assert_int_equal(address_parse(text, &a, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "host name too long"));
	memset(text, 'x', sizeof(text));
	memcpy(text + 64, ":6060", 6);
	assert_int_equal(address_parse(text, &a, why, sizeof(why)), -EINVAL);
	assert_int_equal(address_parse(NULL, &a, why, sizeof(why)), -EINVAL);
}

/* As --health-probe-bind-address and --profiling-bind-address are compared. */
static void
tells_the_same_address_from_one_that_is_in_the_way_and_one_that_is_not(void **state)
{
	enum { OTHER, CLASHES, SAME };
	static const struct {
		const char *a, *b;
		int         are;
	} rows[] = {
		{ ":8080", ":8080", SAME },
		{ "127.0.0.1:8080", "127.0.0.1:8080", SAME },
		{ "localhost:8080", "LocalHost:8080", SAME },
		{ "[::1]:8080", "[0::1]:8080", SAME },
		{ "unix:/run/x", "unix:/run/x", SAME },
		{ "unix:/run/%p", "unix:/run/%p", SAME },
		{ "unix:@x", "unix:@x", SAME },
		{ "fd:http", "fd:http", SAME },
		{ ":8080", "127.0.0.1:8080", CLASHES },
		{ "0.0.0.0:8080", ":8080", CLASHES },
		{ "[::]:8080", ":8080", CLASHES },
		{ "localhost:8080", "127.0.0.1:8080", CLASHES },
		{ "localhost:8080", "[::1]:8080", CLASHES },
		{ "[0::0]:8080", "127.0.0.1:8080", CLASHES },
		{ "[::ffff:0.0.0.0]:8080", "127.0.0.1:8080", CLASHES },
		{ "[::ffff:127.0.0.1]:8080", "127.0.0.1:8080", CLASHES },
		{ "localhost.:8080", "127.0.0.1:8080", CLASHES },
		{ "0.0.0.0:8080", "name.example:8080", CLASHES },
		{ ":8080", "[fe80::1%eth0]:8080", CLASHES },
		{ "0.0.0.0:8080", "[::1]:8080", OTHER },
		{ "name.example:8080", "127.0.0.1:8080", OTHER },
		{ ":8080", ":8081", OTHER },
		{ "127.0.0.1:8080", "127.0.0.2:8080", OTHER },
		{ "127.0.0.1:8080", "[::1]:8080", OTHER },
		{ "127.0.0.1:0", "127.0.0.1:0", OTHER },
		{ ":0", "127.0.0.1:0", OTHER },
		{ "unix:/run/x", "unix:/run/y", OTHER },
		{ "unix:/run/x", "fd:x", OTHER },
		{ "0", "0", OTHER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct address a, b;

		assert_int_equal(address_parse(rows[i].a, &a, NULL, 0), 0);
		assert_int_equal(address_parse(rows[i].b, &b, NULL, 0), 0);
		assert_int_equal(address_is_same(&a, &b), rows[i].are == SAME);
		assert_int_equal(address_is_same(&b, &a), rows[i].are == SAME);
		assert_int_equal(address_clashes(&a, &b), rows[i].are != OTHER);
		assert_int_equal(address_clashes(&b, &a), rows[i].are != OTHER);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_every_form_of_the_table),
		cmocka_unit_test(refuses_the_rest_and_says_what_to_write),
		cmocka_unit_test(refuses_what_does_not_fit_into_a_socket_address),
		cmocka_unit_test(tells_the_same_address_from_one_that_is_in_the_way_and_one_that_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
