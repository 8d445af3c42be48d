/*
 * test_auth.c - which names in Host, which tokens and which origins pass.
 */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "auth.h"

static const char *const globs[] = { "*.example.com", "box", NULL };

static void
names_that_cannot_be_rebound_pass_and_others_do_not(void **state)
{
	static const struct {
		const char *host;
		bool        want;
	} cases[] = {
		{ NULL, true }, { "", true }, { "127.0.0.1", true }, { "127.0.0.1:6060", true }, { "[::1]:6060", true },
		{ "[::1]", true }, { "::1", true }, { "[fe80::1%25eth0]:1", true }, { "localhost", true },
		{ "LocalHost:80", true }, { "localhost.", true }, { "node7", true }, { "NODE7.lan:1", true },
		{ "a.example.com", true }, { "a.b.EXAMPLE.com:9", true }, { "box", true },
		{ "example.com", false }, { "evil.example", false }, { "localhost.evil.example", false },
		{ "127.0.0.1.evil.example", false }, { "node", false }, { "node77", false }, { "node7.evil", false },
		{ "boxer", false }, { "[evil.example]:80", false }, { "127.0.0.1x", false }, { ":80", false },
	};
	struct auth a;

	(void)state;
	assert_int_equal(auth_init(&a), 0);
	strcpy(a.hostname, "node7.lan");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (auth_host_ok(&a, cases[i].host, globs) != cases[i].want)
			fail_msg("host '%s': want %d", cases[i].host ? cases[i].host : "(none)", cases[i].want);
	assert_false(auth_host_ok(&a, "box", NULL));
	auth_release(&a);
}

static void
a_token_is_taken_from_the_header_or_the_query_and_must_be_equal(void **state)
{
	static const struct {
		const char *header, *query;
		bool        want;
	} cases[] = {
		{ "Bearer abc", NULL, true }, { "bearer  abc", NULL, true }, { NULL, "token=abc", true },
		{ "Bearer no", "token=abc", true }, { "Bearer abc", "token=no", true },
		{ NULL, NULL, false }, { "Bearer ab", NULL, false }, { "Bearer abcabc", NULL, false },
		{ "Bearer ", NULL, false }, { "abc", NULL, false }, { NULL, "token=", false },
		{ NULL, "token=no&token=abc", false }, { NULL, "TOKEN=abc", false },
	};
	struct auth a;

	(void)state;
	assert_int_equal(auth_init(&a), 0);
	assert_true(auth_token_ok(&a, NULL, NULL)); /* none is asked for */
	memcpy(a.token, "abc", 3);
	a.token_size = 3;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(auth_token_ok(&a, cases[i].header, cases[i].query), cases[i].want);
	auth_release(&a);
}

/* Reads it from a file of `size` letters; the result of that. */
static int
token_of(const char *path, size_t size, struct component_error *err)
{
	struct auth a;
	char        warning[256];
	FILE       *f = fopen(path, "we");
	int         r;

	assert_non_null(f);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(fputc('a', f), 'a');
	assert_int_equal(fputc('\n', f), '\n');
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(auth_init(&a), 0);
	r = auth_token_read(&a, path, warning, sizeof(warning), err);
	assert_int_equal(a.token_size, r ? 0 : size);
	auth_release(&a);
	return r;
}

static void
a_token_has_4096_bytes_at_most_and_only_a_plain_file_is_opened(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct auth            a;
	char                   folder[] = "/tmp/test_auth.XXXXXX", path[64], warning[256];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/token", folder);
	assert_int_equal(token_of(path, SERVE_TOKEN_MAX, &err), 0);
	assert_int_equal(token_of(path, SERVE_TOKEN_MAX + 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "longer than 4096 bytes"));
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(auth_init(&a), 0);
	alarm(600); /* a pipe is waited for, for good */
	assert_int_equal(auth_token_read(&a, path, warning, sizeof(warning), &err), -EINVAL);
	alarm(0);
	assert_non_null(strstr(err.text, "is not a regular file"));
	auth_release(&a);
	unlink(path);
	rmdir(folder);
}

static void
an_origin_must_be_the_host_itself(void **state)
{
	(void)state;
	assert_true(auth_origin_ok(NULL, "a:1"));
	assert_true(auth_origin_ok("http://a:1", "a:1"));
	assert_true(auth_origin_ok("https://A:1", "a:1"));
	assert_false(auth_origin_ok("http://a", "a:1"));
	assert_false(auth_origin_ok("http://a:12", "a:1"));
	assert_false(auth_origin_ok("http://a:1.evil.example", "a:1"));
	assert_false(auth_origin_ok("http://b.a:1", "a:1"));
	assert_false(auth_origin_ok("null", "null"));
	assert_false(auth_origin_ok("http://a", NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_cannot_be_rebound_pass_and_others_do_not),
		cmocka_unit_test(a_token_is_taken_from_the_header_or_the_query_and_must_be_equal),
		cmocka_unit_test(a_token_has_4096_bytes_at_most_and_only_a_plain_file_is_opened),
		cmocka_unit_test(an_origin_must_be_the_host_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
