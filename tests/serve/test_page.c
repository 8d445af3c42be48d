/*
 * test_page.c - pages of a program's own, asked by HTTP: what reaches the program's function.
 */
#include <config.h>

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include <component/profiler.h>

static void
tell_what_came(void *arg, struct component_profiler_page *page)
{
	(void)arg;
	if (asprintf(&page->text, "%s %s '%s'", page->method, page->path, page->body) < 0)
		page->text = NULL;
}

/* The body of the answer, in buf. */
static const char *
ask(const char *method, const char *path, const char *body, char *buf, size_t size)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	char               url[600], request[512];
	int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), n;
	size_t             got = 0;
	ssize_t            r;

	component_profiler_url(url, sizeof(url));
	to.sin_port = htons((uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	n = snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
		method, path, strlen(body), body);
	assert_int_equal(write(fd, request, (size_t)n), n);
	while (got < size - 1 && (r = read(fd, buf + got, size - 1 - got)) > 0)
		got += (size_t)r;
	buf[got] = '\0';
	close(fd);
	assert_non_null(strstr(buf, "\r\n\r\n"));
	return strstr(buf, "\r\n\r\n") + 4;
}

static void
a_page_that_takes_post_or_put_is_given_the_body_and_one_of_get_is_not(void **state)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	const char *const                 pages[] = { "GET, POST, PUT /form", NULL };
	char                              buf[4096];

	(void)state;
	o.address = "127.0.0.1:0";
	o.page = tell_what_came;
	o.pages = pages;
	assert_int_equal(component_profiler_start_options(&o, NULL), 0);
	assert_string_equal(ask("POST", "/form", "a=b", buf, sizeof(buf)), "POST /form 'a=b'");
	assert_string_equal(ask("PUT", "/form", "a=b", buf, sizeof(buf)), "PUT /form 'a=b'");
	assert_string_equal(ask("GET", "/form", "a=b", buf, sizeof(buf)), "GET /form ''");
	assert_int_equal(component_profiler_stop(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_that_takes_post_or_put_is_given_the_body_and_one_of_get_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
