/*
 * hooks_index.c - starts the server at the address of its argument, or finds it
 * started, and prints its index page.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef LINKED
#include <component/profiler.h>
static int (*start)(const char *) = component_profiler_start;
static void (*get_url)(char *, size_t) = component_profiler_url;
#else /* the agent has it, if anybody */
static int (*start)(const char *);
static void (*get_url)(char *, size_t);
#endif

/* Of the agent, which nobody finds by a name alone; NULL, which is RTLD_DEFAULT: there is none. */
#define AGENT_CORE dlopen("libcomponent-preload-core.so", RTLD_LAZY | RTLD_NOLOAD)

int
main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	static const char  request[] = "GET /debug/pprof/ HTTP/1.0\r\n\r\n";
	char               url[256] = "", page[65536];
	size_t             n = 0;
	ssize_t            got;
	int                fd, r;

#ifndef LINKED
	start = (int (*)(const char *))dlsym(AGENT_CORE, "component_profiler_start");
	get_url = (void (*)(char *, size_t))dlsym(AGENT_CORE, "component_profiler_url");
	if (!start || !get_url)
		return 2;
#endif
	if (argc > 1 && (r = start(argv[1])) < 0) {
		fprintf(stderr, "start: %s\n", strerror(-r));
		return 1;
	}
	get_url(url, sizeof(url));
	printf("%s\n", url);
	if (!strrchr(url, ':'))
		return 1;
	to.sin_port = htons((unsigned short)atoi(strrchr(url, ':') + 1));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || write(fd, request, strlen(request)) < 0)
		return 1;
	while (n < sizeof(page) && (got = read(fd, page + n, sizeof(page) - n)) > 0)
		n += (size_t)got;
	fwrite(page, 1, n, stdout);
	return 0;
}
