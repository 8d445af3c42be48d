/*
 * test_options.c - the server's options are copied whole, whatever header the
 * caller was built with.
 */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "options.h"

static void
strings_and_lists_are_copies(void **state)
{
	char                              address[] = "127.0.0.1:0", host[] = "box";
	const char                       *hosts[] = { host, NULL };
	struct component_profiler_options from = COMPONENT_PROFILER_OPTIONS_INIT, to;

	(void)state;
	from.address = address;
	from.allowed_hosts = hosts;
	assert_int_equal(options_copy(&to, &from, NULL), 0);
	memset(address, 'x', sizeof(address) - 1);
	memset(host, 'x', sizeof(host) - 1);
	hosts[0] = NULL;
	assert_string_equal(to.address, "127.0.0.1:0");
	assert_string_equal(to.allowed_hosts[0], "box");
	assert_null(to.allowed_hosts[1]);
	assert_null(to.redact);
	assert_null(to.token_file);
	assert_int_equal(to.max_seconds, 7200);
	assert_int_equal(to.heap_rate_bytes, 512 * 1024);
	options_release(&to);
}

static void
a_shorter_struct_of_an_older_header_keeps_the_defaults_of_the_rest(void **state)
{
	struct component_profiler_options from, to;

	(void)state;
	memset(&from, 0xff, sizeof(from));
	from.size = offsetof(struct component_profiler_options, debug_socket_path);
	from.address = "[::1]:1";
	assert_int_equal(options_copy(&to, &from, NULL), 0);
	assert_int_equal(to.size, sizeof(to));
	assert_string_equal(to.address, "[::1]:1");
	assert_null(to.debug_socket_path);
	assert_int_equal(to.max_requests, 64);
	assert_int_equal(to.memory_bytes, 32 << 20);
	assert_int_equal(to.symbol_memory_bytes, 64 << 20);
	options_release(&to);
}

static void
a_change_takes_what_the_header_says_and_nothing_else(void **state)
{
	const char                       *hosts[] = { "box", NULL };
	struct component_profiler_options from = COMPONENT_PROFILER_OPTIONS_INIT, now, fresh;
	int                               one;

	(void)state;
	assert_int_equal(options_copy(&now, &from, NULL), 0);
	from.address = from.debug_socket_path = from.token_file = from.port_file = from.how_named = "x";
	from.allowed_hosts = from.redact = hosts;
	from.max_seconds = from.max_requests = 1;
	from.memory_bytes = from.symbol_memory_bytes = UINT64_MAX;
	from.heap_rate_bytes = 1;
	from.mutex_fraction = from.block_rate_ns = 1;
	from.unwinder = COMPONENT_UNWINDER_TABLES;
	from.log_arg = from.page_arg = &one;
	assert_int_equal(options_copy(&fresh, &from, NULL), 0);
	options_change(&now, &fresh);
	assert_string_equal(now.address, "x");
	assert_string_equal(now.debug_socket_path, "x");
	assert_string_equal(now.token_file, "x");
	assert_string_equal(now.port_file, "x");
	assert_string_equal(now.how_named, "x");
	assert_string_equal(now.allowed_hosts[0], "box");
	assert_int_equal(now.max_seconds, 1);
	assert_int_equal(now.max_requests, 1);
	assert_int_equal(now.memory_bytes, UINT64_MAX);
	assert_int_equal(now.symbol_memory_bytes, UINT64_MAX);
	assert_null(now.redact);
	assert_int_equal(now.heap_rate_bytes, 512 * 1024);
	assert_int_equal(now.mutex_fraction, 0);
	assert_int_equal(now.block_rate_ns, 0);
	assert_int_equal(now.unwinder, COMPONENT_UNWINDER_AUTO);
	assert_null(now.log_arg);
	assert_null(now.page_arg);
	options_release(&now);
	options_release(&fresh);
}

static void
what_makes_no_sense_is_refused_with_a_sentence(void **state)
{
	struct component_profiler_options from = COMPONENT_PROFILER_OPTIONS_INIT, to;
	struct component_error            err = COMPONENT_ERROR_INIT;

	(void)state;
	from.max_seconds = 0;
	assert_int_equal(options_copy(&to, &from, &err), -EINVAL);
	assert_non_null(strstr(err.text, "max_seconds: 0"));
	from.max_seconds = 1;
	from.max_requests = -1;
	assert_int_equal(options_copy(&to, &from, &err), -EINVAL);
	assert_non_null(strstr(err.text, "max_requests: -1"));
	from.size = 3;
	assert_int_equal(options_copy(&to, &from, &err), -EINVAL);
	assert_non_null(strstr(err.text, "COMPONENT_PROFILER_OPTIONS_INIT"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_and_lists_are_copies),
		cmocka_unit_test(a_shorter_struct_of_an_older_header_keeps_the_defaults_of_the_rest),
		cmocka_unit_test(a_change_takes_what_the_header_says_and_nothing_else),
		cmocka_unit_test(what_makes_no_sense_is_refused_with_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
